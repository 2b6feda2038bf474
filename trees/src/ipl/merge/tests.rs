use alloc::collections::BTreeMap;
use alloc::vec;
use alloc::vec::Vec;

use store::EntryShape;
use store::node::{self, Codec};

use super::apply;
use crate::ipl::layout::Delta;

/// A change as the model makes it.
type Change = (u64, Vec<u8>, Vec<u8>);

fn changes(seed: u64, count: usize) -> Vec<Change> {
    let mut state = seed;
    let mut below = |bound: u64| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963);
        (state >> 33) % bound
    };
    let mut change = |number: usize| {
        let key = (below(12) as u32).to_be_bytes().to_vec();
        (below(20), key, (number as u32).to_le_bytes().to_vec())
    };
    (0..count).map(&mut change).collect()
}

fn delta((kind, key, value): &Change) -> Delta<'_> {
    match kind {
        0 => Delta::Cut { key },
        1..8 => Delta::Delete { key },
        _ => Delta::Put { key, value },
    }
}

#[test]
fn a_node_with_its_deltas_is_the_node_that_was_changed() {
    for shape in [EntryShape::fixed(4, 4), EntryShape::VARIABLE] {
        let codec = Codec::new(512, shape.key, shape.value).unwrap();
        for seed in 0..40 {
            let changes = changes(seed, 60);
            let mut model = BTreeMap::new();
            let mut deltas = Vec::new();
            for change in &changes {
                match delta(change) {
                    Delta::Put { key, value } => _ = model.insert(key, value),
                    Delta::Delete { key } => _ = model.remove(key),
                    Delta::Cut { key } => _ = model.split_off(key),
                }
                let mut one = vec![0; delta(change).bytes(shape)];
                delta(change).write(shape, &mut one);
                deltas.extend_from_slice(&one);
            }
            let (mut page, mut fresh, mut scratch) = (vec![0; 512], vec![0; 512], vec![0; 512]);
            codec.initialise(&mut page, 0);
            apply((shape, &codec), &mut page, &deltas, (&mut fresh, &mut scratch)).unwrap();
            assert_eq!(codec.validate(&page), Ok(()));
            let found: Vec<_> = (0..node::count(&page))
                .map(|place| {
                    (codec.key(&page, place).suffix.to_vec(), codec.value(&page, place).bytes())
                })
                .collect();
            assert_eq!(found.len(), model.len(), "{shape}, seed {seed}");
            for ((_, value), expected) in found.iter().zip(model.values()) {
                assert_eq!(*value, &expected[..], "{shape}, seed {seed}");
            }
        }
    }
}

#[test]
fn deltas_that_were_not_made_for_a_node_are_refused() {
    let shape = EntryShape::fixed(4, 4);
    let codec = Codec::new(128, shape.key, shape.value).unwrap();
    let (mut page, mut fresh, mut scratch) = (vec![0; 128], vec![0; 128], vec![0; 128]);
    codec.initialise(&mut page, 0);
    let mut deltas = Vec::new();
    for number in 0..16_u32 {
        let mut one = [0; 9];
        let key = number.to_be_bytes();
        Delta::Put { key: &key, value: b"four" }.write(shape, &mut one);
        deltas.extend_from_slice(&one);
    }
    let refused = apply((shape, &codec), &mut page, &deltas, (&mut fresh, &mut scratch));
    assert!(refused.is_err(), "15 entries fit");
    assert!(apply((shape, &codec), &mut page, &[9; 20], (&mut fresh, &mut scratch)).is_err());
}
