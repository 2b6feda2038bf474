use std::boxed::Box;
use std::vec;
use std::vec::Vec;

use contract::RamDisk;
use device::{Cause, SectorGeometry};
use store::node::Stored;
use store::{EntryShape, LogicalPage, PageFile, PageFileOptions};

use super::BTree;
use crate::btree::{At, Codecs, Extent, NodeSource, NodeStore, PageStore, Puts, Reshaped, Toward};
use crate::path_copying::model::Dice;

const PAGE: u32 = 512;

/// A B+-tree of entries of any length.
struct Tree<'d> {
    store: PageStore<'d>,
    btree: BTree<LogicalPage>,
    /// Since the base: nodes that were there, puts, and what was counted for none of them.
    base: (u64, Puts, Extent),
}

impl Tree<'_> {
    fn new(disk: &mut RamDisk, fill_percent: u8) -> Tree<'_> {
        let file = PageFile::create(Box::new(disk), &PageFileOptions::new(PAGE, 64 << 10)).unwrap();
        let mut store = PageStore::new(file, Codecs::new(PAGE, EntryShape::VARIABLE).unwrap());
        let root = store.create(0, Cause::Load).unwrap();
        let btree = BTree::new(root, store.codecs, fill_percent);
        let mut tree = Tree {
            store,
            btree,
            base: (0, Puts::default(), Extent { nodes: 0, height: 0, entries: 0 }),
        };
        tree.set_base();
        tree
    }

    fn nodes(&self) -> u64 {
        self.store.file.pages_used().0.into()
    }

    fn set_base(&mut self) {
        let (nodes, height) = (self.nodes(), self.btree.height());
        let extent = Extent { nodes, height, entries: self.btree.entries };
        self.base = (nodes, Puts::default(), extent);
    }

    fn first_of_last_leaf(&mut self) -> Vec<u8> {
        let last = self.btree.seek(&mut self.store, Toward::Key(&[255; 200]), Cause::Update);
        let node = self.store.node(At::leaf(last.unwrap()), Cause::Update).unwrap();
        let mut key = Vec::new();
        node.key(0).copy_to(&mut key);
        key
    }

    /// True if the leaf of `key` takes it with a value of `value` bytes as it is.
    fn has_room(&mut self, key: &[u8], value: usize) -> bool {
        let leaf = self.btree.seek(&mut self.store, Toward::Key(key), Cause::Update).unwrap();
        let node = self.store.node(At::leaf(leaf), Cause::Update).unwrap();
        node.codec.has_room(node.bytes, key, value)
    }

    fn entries_of_leaf(&mut self, key: &[u8]) -> usize {
        let leaf = self.btree.seek(&mut self.store, Toward::Key(key), Cause::Update).unwrap();
        self.store.node(At::leaf(leaf), Cause::Update).unwrap().count()
    }

    /// Puts an entry: each level splits at most once, and all nodes were counted.
    fn put(&mut self, key: &[u8], value: &[u8]) {
        self.btree.reshaped = Reshaped::NONE;
        self.btree.put(&mut self.store, key, Stored::inline(value)).unwrap();
        let split: Vec<_> = self.btree.reshaped.nodes().unwrap().map(|node| node.level).collect();
        let mut levels = split.clone();
        levels.sort_unstable();
        levels.dedup();
        assert_eq!(levels.len(), split.len(), "one put split a level twice: {split:?}");

        let (nodes, puts, extent) = &mut self.base;
        *puts = puts.and(Puts::one(key.len() + value.len()));
        let counted = self.btree.codecs.nodes_needed(puts, *extent);
        let added = u64::from(self.store.file.pages_used().0) - *nodes;
        assert!(added <= counted, "{added} nodes came with {puts:?}, counted were {counted}");
    }
}

fn disk() -> RamDisk {
    RamDisk::new(SectorGeometry::new(PAGE, 20_000).unwrap())
}

#[test]
fn a_key_apart_from_a_leaf_of_long_alike_keys_splits_it_once() {
    for (ascending, fill_percent) in [(true, 70), (false, 70), (true, 100)] {
        let mut disk = disk();
        let mut tree = Tree::new(&mut disk, fill_percent);
        let order = |number: u8| if ascending { number } else { 39 - number };
        for group in 0..40 {
            for number in 0..60 {
                let mut key = vec![2 * order(group) + 1; 100];
                key.push(number);
                tree.put(&key, &[]);
            }
        }
        tree.set_base();
        for group in 0..40 {
            tree.put(&[2 * order(group)], &[]);
            tree.put(&[2 * order(group) + 1], &[]);
            tree.put(&[2 * order(group) + 1, 255], &[]);
        }
    }
}

#[test]
fn whatever_keys_share_a_put_splits_each_level_once_and_was_counted() {
    for seed in 0..60 {
        let mut disk = disk();
        let mut dice = Dice(seed);
        let mut tree = Tree::new(&mut disk, [50, 70, 100][seed as usize % 3]);
        let longest = tree.btree.codecs.key_bytes_most() as u64;
        let mut stems: Vec<Vec<u8>> = vec![Vec::new()];
        while stems.len() < 30 {
            let mut stem = stems[dice.roll(stems.len() as u64) as usize].clone();
            let run = dice.roll(longest - 1 - stem.len() as u64);
            stem.resize(stem.len() + run as usize, dice.roll(256) as u8);
            stems.push(stem);
        }
        for _ in 0..3000 {
            if dice.roll(500) == 0 {
                tree.set_base();
            }
            // The beginning of a stem, and little behind it: many keys share much, and some little.
            let stem = &stems[dice.roll(stems.len() as u64) as usize];
            let shared = if dice.roll(4) == 0 { dice.roll(stem.len() as u64 + 1) } else { 99 };
            let mut key = stem[..stem.len().min(shared as usize)].to_vec();
            key.extend((0..1 + dice.roll(2)).map(|_| dice.roll(256) as u8));
            let bytes = key.len() as u64;
            let most = longest - bytes;
            let value =
                if dice.roll(8) == 0 { dice.roll(most + 1) } else { dice.roll(most.min(4) + 1) };
            tree.put(&key, &vec![0; value as usize]);
        }
    }
}

#[test]
fn a_leaf_is_split_in_the_middle_where_a_half_takes_what_shares_less() {
    for key in [b"a", b"z"] {
        let mut disk = disk();
        let mut tree = Tree::new(&mut disk, 70);
        for number in 0_u8.. {
            let alike = [b'm', number, 0, 0, 0, 0, 0, 0];
            if !tree.has_room(&alike, 0) {
                break;
            }
            tree.put(&alike, &[]);
        }
        let before = tree.btree.entries;
        tree.put(key, &[0; 8]);
        assert_eq!(tree.btree.height(), 2);
        let entries = tree.entries_of_leaf(key);
        assert!(entries > before as usize / 4, "{entries} of {before} stand beside it");
    }
}

/// Keys as long as they may be, between which separators are as long; the last leaf is split again
/// and again.
#[test]
fn the_longest_keys_make_no_tree_higher_than_halves_do() {
    const STEM: usize = 4;
    let mut disk = disk();
    let mut tree = Tree::new(&mut disk, 70);
    let longest = tree.btree.codecs.key_bytes_most();
    let key = |stem: u32, last: u8| {
        let mut key = vec![0; longest];
        key[..STEM].copy_from_slice(&stem.to_be_bytes());
        key[longest - 1] = last;
        key
    };
    let mut stems = vec![1 << 28, 3 << 28];
    for stem in &stems {
        tree.put(&key(*stem, 0), &[]);
    }
    for _ in 0..300 {
        let first = tree.first_of_last_leaf();
        let below = u32::from_be_bytes(*first.first_chunk().unwrap());
        let place = stems.partition_point(|stem| *stem <= below);
        let above = stems.get(place).copied().unwrap_or(u32::MAX);
        let stem = below + ((above - below) / 16).max(1);
        tree.put(&key(stem, 1), &[]);
        tree.put(&key(stem, 0), &[]);
        stems.insert(stems.partition_point(|it| *it < stem), stem);
    }
    assert!(tree.btree.height() <= 8, "it is {} high", tree.btree.height());
}
