use super::LivePages;
use device::Page;

#[test]
fn a_page_lives_from_when_it_is_added_until_it_is_removed() {
    let mut live = LivePages::new(2);
    assert_eq!(live.is_live(Page(9)), None);
    live.is_known = true;
    live.add(Page(9));
    live.add(Page(15));
    live.remove(Page(15));
    live.add(Page(16));
    assert_eq!(live.is_live(Page(9)), Some(true));
    assert_eq!(live.is_live(Page(15)), Some(false));
    assert_eq!(live.is_live(Page(16)), None);
    assert_eq!(live.count(), Some(1));
    live.forget();
    assert_eq!(live.count(), None);
}

#[test]
fn the_table_is_at_most_half_of_the_memory_or_none() {
    assert_eq!(LivePages::bytes_of(65_536, (10_000, 6_000)), 0);
    assert_eq!(LivePages::bytes_of(65_536, (10_000, 100_000)), 8_192);
    assert_eq!(LivePages::bytes_of(4_096, (10_000, 600)), 512);
    assert_eq!(LivePages::bytes_of(4_096, (10_000, 500)), 0);
    assert_eq!(LivePages::bytes_of(65_536, (8_192, 8_192)), 8_192);
    assert_eq!(LivePages::bytes_of(65_536, (8_191, 8_192)), 0);
}
