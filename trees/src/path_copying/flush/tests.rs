use super::Flush;
use crate::path_copying::recent::{Entry, Recent};

#[test]
fn neighbours_go_with_an_entry_up_to_the_first_that_does_not_join() {
    let mut buffer = Recent::new(4096, 2);
    for key in *b"abcdefgh" {
        assert!(buffer.insert(&[key], Some(b"1")));
    }
    let leaf = |from: u8, to: u8| move |entry: Entry<'_>| (from..=to).contains(&entry.0[0]);
    assert_eq!(Flush::Entry.places_with((&buffer, 3), leaf(b'a', b'h')), 3..4);
    assert_eq!(Flush::Leaf.places_with((&buffer, 3), leaf(b'c', b'f')), 2..6);
    assert_eq!(Flush::Leaf.places_with((&buffer, 3), leaf(b'd', b'd')), 3..4);
    assert_eq!(Flush::Leaf.places_with((&buffer, 0), leaf(b'a', b'h')), 0..8);
}
