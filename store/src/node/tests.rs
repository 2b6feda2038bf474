use alloc::collections::BTreeMap;
use alloc::vec;
use alloc::vec::Vec;

use super::{Codec, Stored, count};
use crate::{OverflowValue, Width};

/// A small generator: the tests of this crate need no more.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: u64) -> u64 {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % sides
    }

    fn bytes(&mut self, width: Width, most: u64) -> Vec<u8> {
        let length = match width {
            Width::Fixed(bytes) => u64::from(bytes),
            Width::Variable => self.roll(most + 1),
        };
        (0..length).map(|_| b'a' + self.roll(3) as u8).collect()
    }

    /// A value of at most `most` bytes; where values vary, one in five is long.
    fn value(&mut self, width: Width, most: usize) -> Value {
        let has_room = width == Width::Variable && most >= OverflowValue::ENCODED_BYTES;
        if has_room && self.roll(5) == 0 {
            return (self.bytes(Width::Fixed(OverflowValue::ENCODED_BYTES as u16), 0), true);
        }
        (self.bytes(width, most as u64), false)
    }

    /// Keys that share prefixes of many lengths, as real ones do.
    fn key(&mut self, width: Width, most: usize) -> Vec<u8> {
        let mut key = self.bytes(width, 6);
        if width == Width::Variable {
            let stem: &[u8] =
                [&b"flight/"[..], b"flight/ewr/", b"flown", b""][self.roll(4) as usize];
            key.splice(0..0, stem.iter().copied());
            key.truncate(most);
        }
        key
    }
}

/// A value in a node, and whether it tells of a long one.
type Value = (Vec<u8>, bool);

fn stored(value: &Value) -> Stored<'_> {
    match value.0.first_chunk() {
        Some(bytes) if value.1 => Stored::long(bytes),
        _ => Stored::inline(&value.0),
    }
}

const SHAPES: [(Width, Width); 6] = [
    (Width::Fixed(4), Width::Fixed(4)),
    (Width::Fixed(8), Width::Fixed(4)),
    (Width::Fixed(8), Width::Fixed(8)),
    (Width::Variable, Width::Variable),
    (Width::Variable, Width::Fixed(4)),
    (Width::Fixed(8), Width::Variable),
];

/// The codec for nodes that are put into, and the one for those that are written in order.
fn codecs(bytes: u32, (key, value): (Width, Width)) -> impl Iterator<Item = Codec> {
    Codec::new(bytes, key, value).into_iter().flat_map(|codec| [codec, codec.dense()])
}

fn contents(codec: &Codec, node: &[u8]) -> Vec<(Vec<u8>, Value)> {
    codec.validate(node).unwrap();
    (0..count(node))
        .map(|place| {
            let mut key = Vec::new();
            codec.key(node, place).copy_to(&mut key);
            let value = codec.value(node, place);
            (key, (value.bytes().to_vec(), value.as_long().is_some()))
        })
        .collect()
}

/// A node and what it should hold.
struct Pair {
    codec: Codec,
    node: Vec<u8>,
    scratch: Vec<u8>,
    model: Vec<(Vec<u8>, Value)>,
}

impl Pair {
    fn new(codec: Codec, bytes: usize) -> Self {
        let mut node = vec![0; bytes];
        codec.initialise(&mut node, 0);
        Pair { codec, node, scratch: vec![0; bytes], model: Vec::new() }
    }

    fn put(&mut self, key: &[u8], value: &Value) -> bool {
        let expected = self.model.binary_search_by(|entry| entry.0.as_slice().cmp(key));
        assert_eq!(self.codec.search(&self.node, key), expected);
        match expected {
            Ok(place) => {
                let done =
                    self.codec.replace(&mut self.node, place, stored(value), &mut self.scratch);
                if done {
                    self.model[place].1 = value.clone();
                }
                done
            }
            Err(place) => {
                let room = self.codec.has_room(&self.node, key, value.0.len());
                let done =
                    self.codec.insert(&mut self.node, place, key, stored(value), &mut self.scratch);
                // A value as long as what tells of a long one may be one in a dense node.
                let may_be_long = value.0.len() == OverflowValue::ENCODED_BYTES && !value.1;
                assert!(room == done || may_be_long && done, "has_room and insert disagree");
                if done {
                    self.model.insert(place, (key.to_vec(), value.clone()));
                }
                done
            }
        }
    }

    fn compare(&self) {
        assert_eq!(contents(&self.codec, &self.node), self.model);
        assert!(self.codec.used_bytes(&self.node) <= self.node.len());
    }
}

#[test]
fn random_operations_leave_what_a_sorted_list_holds() {
    for (round, (key_width, value_width)) in SHAPES.into_iter().cycle().take(60).enumerate() {
        let all = [128, 512, 2048].into_iter();
        for codec in all.flat_map(|bytes| codecs(bytes, (key_width, value_width))) {
            let mut dice = Dice(round as u64 + 1);
            let mut pair = Pair::new(codec, codec.node_bytes());
            let most = codec.entry_bytes_most();
            for _ in 0..600 {
                let key = dice.key(key_width, most);
                let value = dice.value(value_width, most - key.len());
                if dice.roll(3) == 0 && !pair.model.is_empty() {
                    let place = dice.roll(pair.model.len() as u64) as usize;
                    pair.codec.remove(&mut pair.node, place);
                    pair.model.remove(place);
                } else {
                    pair.put(&key, &value);
                }
                pair.compare();
            }
        }
    }
}

/// How many of `entries` find room behind each other.
fn appended(codec: Codec, entries: &[(Vec<u8>, Value)]) -> usize {
    let mut pair = Pair::new(codec, codec.node_bytes());
    let fit = entries.iter().take_while(|(key, value)| pair.put(key, value)).count();
    pair.compare();
    fit
}

#[test]
fn entries_of_like_lengths_have_no_slots_in_a_dense_node() {
    let codec = Codec::new(4096, Width::Variable, Width::Variable).unwrap();
    let value = (vec![7; 8], false);
    let entries: Vec<_> =
        (700..1100u64).map(|it| (it.to_be_bytes().to_vec(), value.clone())).collect();
    // Six bytes that all keys share stand once: 4,074 bytes by 16 are 254, and by 10 are 407.
    assert_eq!([appended(codec, &entries), appended(codec.dense(), &entries)], [254, 400]);
}

#[test]
fn a_dense_node_holds_whatever_a_slotted_one_holds() {
    let mut turned = 0;
    for (round, shape) in SHAPES.into_iter().cycle().take(600).enumerate() {
        let codec = Codec::new(512, shape.0, shape.1).unwrap();
        let mut dice = Dice(round as u64 + 31);
        let most = codec.entry_bytes_most();
        // Most have a length, and the rest come in between.
        let odd = 2 + dice.roll(60);
        let entries: BTreeMap<_, _> = (0..400)
            .map(|_| {
                let mut key = dice.key(shape.0, most);
                let is_odd = shape == (Width::Variable, Width::Variable) && dice.roll(odd) == 0;
                if !is_odd && shape.0 == Width::Variable {
                    key.resize(12, b'b');
                }
                let value = match shape.1 {
                    Width::Variable if !is_odd => (dice.bytes(Width::Fixed(5), 0), false),
                    _ => dice.value(shape.1, (most - key.len()) / 3),
                };
                (key, value)
            })
            .collect();
        let entries: Vec<_> = entries.into_iter().collect();
        let (slotted, dense) = (appended(codec, &entries), appended(codec.dense(), &entries));
        assert!(slotted <= dense, "{slotted} and {dense} entries, round {round}");
        turned += usize::from(slotted == dense && shape.1 == Width::Variable);
    }
    assert!(turned > 20, "{turned} nodes lost their density");
}

#[test]
fn splitting_and_joining_keep_every_entry() {
    for (round, (key_width, value_width)) in SHAPES.into_iter().cycle().take(60).enumerate() {
        let codec = Codec::new(512, key_width, value_width).unwrap();
        let mut dice = Dice(round as u64 + 77);
        let mut left = Pair::new(codec, 512);
        let most = codec.entry_bytes_most();
        for _ in 0..400 {
            let key = dice.key(key_width, most);
            let value = dice.value(value_width, (most - key.len()) / 3);
            left.put(&key, &value);
        }
        let place = codec.middle(&left.node);
        assert!(place >= 1 && place < left.model.len());
        let whole = left.model.clone();
        let mut right = Pair::new(codec, 512);
        codec.split_off(&mut left.node, place, &mut right.node, &mut left.scratch);
        right.model = left.model.split_off(place);
        left.compare();
        right.compare();
        assert!(codec.joint_bytes(&left.node, &right.node) <= 512);
        codec.join(&mut left.node, &mut right.node, &mut left.scratch);
        left.model = whole;
        left.compare();
        assert_eq!(count(&right.node), 0);
        assert_eq!(codec.joint_bytes(&left.node, &right.node), codec.used_bytes(&left.node));
    }
}

#[test]
fn how_full_the_end_of_a_node_would_be_is_known_before_it_is_split() {
    let shapes = SHAPES.into_iter().cycle().take(24);
    let all = shapes.flat_map(|shape| codecs(512, shape).map(move |codec| (shape, codec)));
    for (round, ((key_width, value_width), codec)) in all.enumerate() {
        let mut dice = Dice(round as u64 + 5);
        let mut whole = Pair::new(codec, 512);
        let most = codec.entry_bytes_most();
        for _ in 0..400 {
            let key = dice.key(key_width, most);
            let value = dice.value(value_width, (most - key.len()) / 3);
            whole.put(&key, &value);
        }
        for place in 0..=count(&whole.node) {
            let percents = [0, 10, 25, 50, 90];
            let before = percents.map(|percent| codec.is_filled_from(&whole.node, place, percent));
            let (mut left, mut right) = (whole.node.clone(), vec![0; 512]);
            codec.initialise(&mut right, 0);
            codec.split_off(&mut left, place, &mut right, &mut whole.scratch);
            let after = percents.map(|percent| codec.is_filled(&right, percent));
            assert_eq!(before, after, "from {place} of {}, round {round}", count(&whole.node));
        }
    }
}

#[test]
fn shifting_entries_evens_two_neighbours() {
    let mut shifts = [0; 2];
    for (round, (key_width, value_width)) in SHAPES.into_iter().cycle().take(300).enumerate() {
        let codec = Codec::new(512, key_width, value_width).unwrap();
        let mut dice = Dice(round as u64 + 999);
        let (mut left, mut right) = (Pair::new(codec, 512), Pair::new(codec, 512));
        let most = codec.entry_bytes_most();
        let pivot = dice.key(key_width, most);
        for _ in 0..200 + dice.roll(400) {
            let key = dice.key(key_width, most);
            let value = dice.value(value_width, (most - key.len()) / 3);
            let side = if key < pivot { &mut left } else { &mut right };
            side.put(&key, &value);
        }
        for _ in 0..dice.roll(30) {
            let side = if round % 2 == 0 { &mut left } else { &mut right };
            if side.model.pop().is_some() {
                codec.remove(&mut side.node, side.model.len());
            }
        }
        if codec.joint_bytes(&left.node, &right.node) <= 512 {
            continue;
        }
        let Some(shift) = codec.shift(&left.node, &right.node) else {
            continue;
        };
        let (nodes, scratch) = ((&mut left.node, &mut right.node), &mut left.scratch);
        codec.apply_shift(nodes.0, nodes.1, shift, scratch);
        match shift {
            super::Shift::Right(place) => {
                let moved = left.model.split_off(place);
                right.model.splice(0..0, moved);
                shifts[0] += 1;
            }
            super::Shift::Left(moved) => {
                left.model.extend(right.model.drain(..moved));
                shifts[1] += 1;
            }
        }
        left.compare();
        right.compare();
        assert!(!left.model.is_empty() && !right.model.is_empty());
    }
    assert!(shifts[0] > 10 && shifts[1] > 10, "{shifts:?}");
}

#[test]
fn a_2_kib_node_holds_170_entries_of_12_bytes() {
    let codec = Codec::new(2048, Width::Fixed(8), Width::Fixed(4)).unwrap();
    assert_eq!(codec.capacity(8, 4), 170);
    let mut pair = Pair::new(codec, 2048);
    for number in 0..170u64 {
        assert!(pair.put(&number.to_be_bytes(), &(b"page".to_vec(), false)));
    }
    assert!(!pair.put(&170u64.to_be_bytes(), &(b"page".to_vec(), false)));
    pair.compare();
}

#[test]
fn keys_that_share_a_prefix_take_less_room() {
    let codec = Codec::new(512, Width::Variable, Width::Fixed(0)).unwrap();
    let mut pair = Pair::new(codec, 512);
    let mut entries = 0u32;
    while pair.put(
        alloc::format!("a-prefix-that-all-share-{entries:04}").as_bytes(),
        &(Vec::new(), false),
    ) {
        entries += 1;
    }
    assert!(entries > 50, "{entries} entries: without the prefix there would be room for 15");
    assert!(pair.put(b"a-prefix-that-", &(Vec::new(), false)) || entries > 15);
    pair.compare();
}

#[test]
fn garbage_is_refused_and_never_panics() {
    let all = SHAPES.into_iter();
    let all = all.flat_map(|shape| codecs(256, shape).map(move |codec| (shape, codec)));
    for ((key_width, value_width), codec) in all {
        let mut dice = Dice(5);
        let mut pair = Pair::new(codec, 256);
        for _ in 0..100 {
            let key = dice.key(key_width, codec.entry_bytes_most());
            let value = dice.value(value_width, 8);
            pair.put(&key, &value);
        }
        for _ in 0..20_000 {
            let mut damaged = pair.node.clone();
            for _ in 0..=dice.roll(4) {
                let byte = dice.roll(256) as usize;
                damaged[byte] = dice.roll(256) as u8;
            }
            if codec.validate(&damaged).is_err() {
                continue;
            }
            let key = dice.key(key_width, codec.entry_bytes_most());
            let place = codec.search(&damaged, &key).unwrap_or_else(|place| place);
            let _ = codec.used_bytes(&damaged) + codec.middle(&damaged);
            if !codec.insert(
                &mut damaged,
                place,
                &key,
                stored(&dice.value(value_width, 8)),
                &mut pair.scratch,
            ) {
                let mut fresh = vec![0; 256];
                codec.initialise(&mut fresh, 0);
                codec.split_off(
                    &mut damaged,
                    place.min(count(&pair.node)),
                    &mut fresh,
                    &mut pair.scratch,
                );
            }
        }
    }
}
