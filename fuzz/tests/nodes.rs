//! The node codec: what `validate` accepts is used without a panic, and two nodes under any row of
//! operations are two ordered maps.

#![allow(clippy::expect_used, clippy::panic, reason = "a fuzzer fails by panicking")]

use std::collections::BTreeMap;

use flashtree_fuzz::expected::NODES;
use flashtree_fuzz::reach::Reach;
use flashtree_fuzz::runner::Target;
use proptest::prelude::*;
use store::node::{self, Codec, Shift, Stored};
use store::{OverflowValue, Width};

/// A codec that can be made.
#[derive(Clone, Copy, Debug)]
struct Form {
    bytes: u32,
    key: Width,
    value: Width,
    dense: bool,
}

impl Form {
    fn codec(&self) -> Codec {
        let codec = Codec::new(self.bytes, self.key, self.value).expect("these sizes make a codec");
        if self.dense { codec.dense() } else { codec }
    }

    fn key(&self, bytes: &[u8]) -> Vec<u8> {
        let mut key = bytes.to_vec();
        match self.key {
            Width::Fixed(length) => key.resize(usize::from(length), 7),
            Width::Variable => key.truncate(self.codec().entry_bytes_most()),
        }
        key
    }

    /// A value that fits beside `key`.
    fn value(&self, key: &[u8], length: u16, fill: u8) -> Vec<u8> {
        let most = self.codec().entry_bytes_most() - key.len();
        let length = match self.value {
            Width::Fixed(length) => usize::from(length),
            Width::Variable => usize::from(length) % (most + 1),
        };
        vec![fill; length]
    }
}

fn forms() -> impl Strategy<Value = Form> {
    let sizes = prop_oneof![Just(128), Just(256), Just(512), Just(2048)];
    let widths = prop_oneof![
        Just((Width::Fixed(4), Width::Fixed(4))),
        Just((Width::Fixed(8), Width::Fixed(3))),
        Just((Width::Fixed(5), Width::Fixed(0))),
        Just((Width::Fixed(6), Width::Variable)),
        Just((Width::Variable, Width::Fixed(4))),
        Just((Width::Variable, Width::Variable)),
    ];
    let all = (sizes, widths, any::<bool>());
    all.prop_map(|(bytes, (key, value), dense)| Form { bytes, key, value, dense })
}

/// Keys that share beginnings.
fn keys() -> impl Strategy<Value = Vec<u8>> {
    let letter = prop_oneof![4 => 0..3u8, 1 => any::<u8>()];
    prop_oneof![
        prop::collection::vec(letter.clone(), 0..8),
        prop::collection::vec(letter, 0..3)
            .prop_map(|end| [&b"a long beginning"[..], &end].concat()),
    ]
}

#[derive(Clone, Debug)]
enum Operation {
    Put { key: Vec<u8>, length: u16, fill: u8, long: bool },
    Remove { place: u16 },
    Search { key: Vec<u8> },
    Split { place: u16 },
    Middle,
    Join,
    Shift,
}

fn operations() -> impl Strategy<Value = Operation> {
    prop_oneof![
        12 => (keys(), prop_oneof![0..12u16, any::<u16>()], any::<u8>(), prop::bool::weighted(0.1))
            .prop_map(|(key, length, fill, long)| Operation::Put { key, length, fill, long }),
        3 => any::<u16>().prop_map(|place| Operation::Remove { place }),
        2 => keys().prop_map(|key| Operation::Search { key }),
        1 => any::<u16>().prop_map(|place| Operation::Split { place }),
        1 => Just(Operation::Middle),
        1 => Just(Operation::Join),
        2 => Just(Operation::Shift),
    ]
}

/// Two neighbours; the right one may be empty.
struct Pair {
    form: Form,
    codec: Codec,
    left: Vec<u8>,
    right: Vec<u8>,
    scratch: Vec<u8>,
}

/// A key, its value, and whether that is told to be long.
type Entry = (Vec<u8>, (Vec<u8>, bool));

type Model = BTreeMap<Vec<u8>, (Vec<u8>, bool)>;

impl Pair {
    fn new(form: Form) -> Self {
        let codec = form.codec();
        let mut node = vec![0xEE; form.bytes as usize];
        codec.initialise(&mut node, 0);
        let (right, scratch) = (node.clone(), node.clone());
        Pair { form, codec, left: node, right, scratch }
    }

    fn of(form: Form, left: Vec<u8>, right: Vec<u8>) -> Self {
        Pair { left, right, ..Pair::new(form) }
    }

    /// The first key of the right node.
    fn separator(&self) -> Option<Vec<u8>> {
        let mut key = Vec::new();
        (node::count(&self.right) > 0).then(|| {
            self.codec.key(&self.right, 0).copy_to(&mut key);
            key
        })
    }

    fn node_mut(&mut self, key: &[u8]) -> (&mut Vec<u8>, &mut Vec<u8>) {
        match self.separator() {
            Some(separator) if *key >= *separator => (&mut self.right, &mut self.scratch),
            _ => (&mut self.left, &mut self.scratch),
        }
    }

    /// Puts an entry where it belongs; false if it found no room.
    fn put(&mut self, key: &[u8], value: &[u8], long: bool) -> bool {
        let (codec, form) = (self.codec, self.form);
        let told = [value.first().copied().unwrap_or(0); OverflowValue::ENCODED_BYTES];
        let is_long = long && form.value == Width::Variable;
        let is_long = is_long && key.len() + told.len() <= codec.entry_bytes_most();
        let stored = if is_long { Stored::long(&told) } else { Stored::inline(value) };
        let (node, scratch) = self.node_mut(key);
        let before = node.clone();
        let has_room = codec.has_room(node, key, stored.bytes().len());
        let done = match codec.search(node, key) {
            Ok(place) => codec.replace(node, place, stored, scratch),
            Err(place) => {
                let done = codec.insert(node, place, key, stored, scratch);
                // For a value that may be one in pages of its own a dense node says the least.
                let is_more = form.dense && stored.bytes().len() == told.len();
                assert!(done == has_room || is_more && done, "an insert finds the room there is");
                done
            }
        };
        assert!(done || *node == before, "what was refused changed something");
        done
    }

    fn apply(&mut self, operation: &Operation) {
        let codec = self.codec;
        match operation {
            Operation::Put { key, length, fill, long } => {
                let key = self.form.key(key);
                let value = self.form.value(&key, *length, *fill);
                self.put(&key, &value, *long);
            }
            Operation::Remove { place } => {
                let node = if place % 2 == 0 { &mut self.left } else { &mut self.right };
                if node::count(node) > 0 {
                    let place = usize::from(place / 2) % node::count(node);
                    codec.remove(node, place);
                }
            }
            Operation::Search { key } => {
                let key = self.form.key(key);
                let _ = codec.search(&self.left, &key);
                let _ = codec.search(&self.right, &key);
            }
            Operation::Split { place } => {
                let place = usize::from(*place) % (node::count(&self.left) + 1);
                self.split(place);
            }
            Operation::Middle if node::count(&self.left) > 1 => {
                self.split(codec.middle(&self.left));
            }
            Operation::Middle => {}
            Operation::Join => self.join(),
            Operation::Shift => self.shift(),
        }
    }

    /// Splits the left node if the right one is empty.
    fn split(&mut self, place: usize) {
        if node::count(&self.right) == 0 {
            self.codec.initialise(&mut self.right, 0);
            self.codec.split_off(&mut self.left, place, &mut self.right, &mut self.scratch);
        }
    }

    fn join(&mut self) {
        if self.codec.joint_bytes(&self.left, &self.right) <= self.codec.node_bytes() {
            self.codec.join(&mut self.left, &mut self.right, &mut self.scratch);
            self.codec.initialise(&mut self.right, 0);
        }
    }

    fn shift(&mut self) {
        let Pair { codec, left, right, scratch, .. } = self;
        if codec.joint_bytes(left, right) <= codec.node_bytes() {
            return;
        }
        if let Some(shift) = codec.shift(left, right) {
            let moved = match shift {
                Shift::Right(place) => node::count(left) - place,
                Shift::Left(moved) => moved,
            };
            assert!(moved > 0, "a shift moves something");
            codec.apply_shift(left, right, shift, scratch);
        }
    }

    /// All that both hold.
    fn entries(&self) -> Vec<Entry> {
        let mut entries = Vec::new();
        for node in [&self.left, &self.right] {
            for place in 0..node::count(node) {
                let mut key = Vec::new();
                self.codec.key(node, place).copy_to(&mut key);
                let value = self.codec.value(node, place);
                entries.push((key, (value.bytes().to_vec(), value.as_long().is_some())));
            }
        }
        entries
    }

    fn check(&self) {
        for node in [&self.left, &self.right] {
            assert_eq!(self.codec.validate(node), Ok(()));
            assert!(self.codec.used_bytes(node) <= self.codec.node_bytes());
            let _ = self.codec.is_filled(node, 70);
            let _ = self.codec.is_underfull(node);
        }
    }
}

/// What the operation makes of the map, given what the nodes said before.
fn apply_to_model(pair: &mut Pair, model: &mut Model, operation: &Operation) {
    match operation {
        Operation::Put { key, length, fill, long } => {
            let key = pair.form.key(key);
            let value = pair.form.value(&key, *length, *fill);
            if pair.put(&key, &value, *long) {
                let now = pair.entries().into_iter().find(|(known, _)| *known == key);
                let (_, (bytes, is_long)) = now.expect("what was put is there");
                assert!(is_long || bytes == value, "a value comes back as it was");
                model.insert(key, (bytes, is_long));
            }
        }
        Operation::Remove { .. } => {
            let before = pair.entries();
            pair.apply(operation);
            let after = pair.entries();
            let gone = before.iter().find(|(key, _)| after.iter().all(|(known, _)| known != key));
            if let Some((key, _)) = gone {
                model.remove(key);
            }
            assert!(before.len() - after.len() <= 1);
        }
        Operation::Search { key } => {
            let key = pair.form.key(key);
            let (node, _) = pair.node_mut(&key);
            let node = node.clone();
            assert_eq!(pair.codec.search(&node, &key).is_ok(), model.contains_key(&key));
        }
        _ => pair.apply(operation),
    }
}

#[test]
fn nodes_are_ordered_maps() {
    let strategy = (forms(), prop::collection::vec(operations(), 0..80));
    Target { name: "nodes_are_ordered_maps", inputs: 800 }.fuzz(strategy, |(form, operations)| {
        let mut pair = Pair::new(form);
        let mut model = Model::new();
        for operation in &operations {
            apply_to_model(&mut pair, &mut model, operation);
            pair.check();
            let wanted: Vec<_> = model.clone().into_iter().collect();
            assert_eq!(pair.entries(), wanted, "after {operation:?}");
        }
    });
}

/// What is done to a node's bytes: numbers that steer it are what is mostly hit.
#[derive(Clone, Copy, Debug)]
struct Damage {
    at: u16,
    to: u16,
    wide: bool,
}

fn damages() -> impl Strategy<Value = Damage> {
    let at = prop_oneof![3 => 4..64u16, 1 => 0..2048u16];
    let to = prop_oneof![4 => 0..64u16, 2 => 0..2100u16, 1 => any::<u16>()];
    (at, to, any::<bool>()).prop_map(|(at, to, wide)| Damage { at, to, wide })
}

fn damage(node: &mut [u8], damage: Damage) {
    let at = usize::from(damage.at) % (node.len() - 1);
    let [low, high] = damage.to.to_le_bytes();
    node[at] = low;
    if damage.wide {
        node[at + 1] = high;
    }
}

#[test]
fn accepted_bytes_never_panic() {
    let raw = prop::collection::vec(any::<u8>(), 0..200);
    let strategy = (
        (forms(), raw, any::<bool>()),
        prop::collection::vec(operations(), 0..40),
        prop::collection::vec(damages(), 0..5),
        prop::collection::vec(operations(), 1..20),
    );
    let reach = Reach::default();
    let target = Target { name: "accepted_bytes_never_panic", inputs: 10000 };
    target.fuzz(strategy, |((form, raw, mixed), made, hits, used)| {
        let codec = form.codec();
        let mut pair = Pair::new(form);
        made.iter().for_each(|operation| pair.apply(operation));
        if mixed {
            let length = raw.len().min(pair.left.len() - 8);
            pair.left[8..8 + length].copy_from_slice(&raw[..length]);
        }
        for hit in hits {
            damage(&mut pair.left, hit);
        }
        match codec.validate(&pair.left) {
            Ok(()) => reach.note("accepted"),
            Err(reason) => return reach.note(reason),
        }
        for operation in &used {
            // Neighbours keep their order in a tree, which looks before it joins them.
            let fresh = Pair::new(form).right;
            pair = Pair::of(form, pair.left, fresh);
            pair.apply(operation);
            if node::count(&pair.right) > 0 {
                pair.shift();
                pair.join();
            }
            assert!(codec.used_bytes(&pair.left) <= codec.node_bytes());
            let _ = pair.entries();
        }
    });
    reach.check(target.name, NODES);
}
