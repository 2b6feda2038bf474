use alloc::collections::BTreeMap;
use alloc::vec::Vec;

use super::super::page::Item;
use super::{WINDOW_BYTES_LEAST, Window, is_beyond};
use index::Direction;

type Model = BTreeMap<Vec<u8>, Option<Vec<u8>>>;

/// Offers `count` entries of pseudorandom keys, some of them deletes, to a window.
fn fill(direction: Direction, count: u32) -> (Window, Option<Vec<u8>>, Model) {
    let mut window = Window::new(WINDOW_BYTES_LEAST);
    let (mut limit, mut model) = (None, Model::new());
    for number in 0..count {
        let mixed = number.wrapping_mul(0x9E37_79B9);
        let key = (mixed >> 22).to_be_bytes()[2..].to_vec();
        let value = (mixed % 5 > 0).then(|| number.to_le_bytes()[..(mixed % 4) as usize].to_vec());
        if !is_beyond(&key, direction, limit.as_deref()) {
            let item = Item { key: &key, value: value.as_deref() };
            window.offer(item, direction, &mut limit);
        }
        model.entry(key).or_insert(value);
    }
    window.sort();
    (window, limit, model)
}

#[test]
fn a_window_has_the_newest_entry_of_each_key_up_to_its_limit() {
    for direction in [Direction::Ascending, Direction::Descending] {
        for count in [0, 1, 10, 40, 200, 5000] {
            let (window, limit, model) = fill(direction, count);
            let expected: Vec<_> = model
                .iter()
                .filter(|(key, _)| !is_beyond(key, direction, limit.as_deref()))
                .map(|(key, value)| (key.as_slice(), value.as_deref()))
                .collect();
            let found: Vec<_> =
                (0..window.count()).map(|place| (window.key(place), window.value(place))).collect();
            assert_eq!(found, expected, "{direction:?} {count}");
            assert_eq!(
                limit.is_some(),
                count as usize > window.slots_most,
                "{direction:?} {count}"
            );
        }
    }
}

#[test]
fn a_window_stays_within_its_bytes_and_is_at_least_half_full_at_a_limit() {
    let (window, limit, _) = fill(Direction::Ascending, 5000);
    assert!(limit.is_some());
    assert_eq!(window.bytes.capacity(), window.room);
    assert_eq!(window.slots.capacity(), window.slots_most);
    assert!(window.count() >= window.slots_most / 2, "{}", window.count());
}
