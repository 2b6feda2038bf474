use core::ops::Bound;
use std::collections::BTreeMap;
use std::vec;
use std::vec::Vec;

use store::{EntryShape, Width};

use super::Waiting;
use crate::btree::Overlay;
use crate::path_copying::model::Dice;
use index::Direction;

type Plain = BTreeMap<Vec<u8>, Option<Vec<u8>>>;

fn compare(waiting: &Waiting, plain: &Plain, bounds: (Bound<&[u8]>, Bound<&[u8]>)) {
    let entry = |place| {
        let (key, value) = waiting.at(place).unwrap();
        let mut whole = Vec::new();
        key.copy_to(&mut whole);
        (whole, value.map(<[u8]>::to_vec))
    };
    for direction in [Direction::Ascending, Direction::Descending] {
        let start = if direction == Direction::Ascending { bounds.0 } else { bounds.1 };
        let mut place = waiting.first(start, direction);
        let mut found = Vec::new();
        while let Some(here) = place {
            found.push(entry(here));
            place = waiting.next(here, direction);
        }
        let owned = |(key, value): (&Vec<u8>, &Option<Vec<u8>>)| (key.clone(), value.clone());
        let expected: Vec<_> = match direction {
            Direction::Ascending => {
                plain.range::<[u8], _>((start, Bound::Unbounded)).map(owned).collect()
            }
            Direction::Descending => {
                plain.range::<[u8], _>((Bound::Unbounded, start)).rev().map(owned).collect()
            }
        };
        assert_eq!(found, expected, "{direction:?}, {bounds:?}");
    }
}

#[test]
fn it_holds_what_a_plain_map_holds_and_makes_way_in_the_order_of_keys() {
    let shapes = [
        EntryShape::fixed(4, 6),
        EntryShape { key: Width::Fixed(4), value: Width::Variable },
        EntryShape::VARIABLE,
    ];
    for shape in shapes {
        let mut dice = Dice(7);
        let mut waiting = Waiting::new(shape, 256, 4096);
        let mut plain = Plain::new();
        let mut went = 0;
        for step in 0..4000 {
            let key = (dice.roll(300) as u32).to_be_bytes().to_vec();
            let bytes = if shape.value == Width::Variable { dice.roll(30) } else { 6 };
            let value = vec![step as u8; bytes as usize];
            let value = (dice.roll(4) > 0).then_some(value);
            while !waiting.insert(&key, value.as_deref()) {
                let (mut next, mut held) = (Vec::new(), Vec::new());
                let is_put = waiting.copy_next(&mut next, &mut held).unwrap();
                let expected = plain.remove(&next).unwrap();
                assert_eq!(is_put.then_some(held), expected);
                waiting.remove(&next);
                went += 1;
            }
            plain.insert(key.clone(), value.clone());
            assert_eq!(waiting.get(&key).unwrap(), value.as_deref());
            assert_eq!(waiting.len(), plain.len());
            if step % 100 == 0 {
                let other = (dice.roll(300) as u32).to_be_bytes();
                let unbounded = (Bound::Unbounded, Bound::Unbounded);
                compare(&waiting, &plain, unbounded);
                compare(&waiting, &plain, (Bound::Included(&other), Bound::Included(&other)));
                compare(&waiting, &plain, (Bound::Excluded(&other), Bound::Excluded(&other)));
            }
        }
        assert!(went > 500, "{went}");
        waiting.clear();
        assert_eq!((waiting.len(), waiting.get(&[0; 4])), (0, None));
    }
}

#[test]
fn too_little_memory_lets_nothing_wait() {
    let mut none = Waiting::new(EntryShape::fixed(8, 8), 4096, 10_000);
    assert!(!none.insert(&[0; 8], None) && !none.takes(8, 8));
    assert_eq!((none.memory_bytes(), none.len()), (0, 0));
    assert_eq!(none.first(Bound::Unbounded, Direction::Descending), None);
}
