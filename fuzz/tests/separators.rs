//! Nodes that lead astray, behind checksums that are right: whatever they say, each use of an index
//! ends. That is told by counts: of entries, and of operations of the device.

#![allow(clippy::expect_used, clippy::panic, reason = "a fuzzer fails by panicking")]

use device::SectorGeometry;
use flashtree_fuzz::cell::{Cell, SECTOR_BYTES};
use flashtree_fuzz::disk::ImageDisk;
use flashtree_fuzz::structure::{Kind, Piece, Plan, number};
use index::{Durability, EntryShape, Error, Index, KeyRange, Result, Update};
use trees::TREES;

const NODE_BYTES: u32 = 256;
const SECTORS: u64 = 400;

/// The difference between two keys.
const APART: u32 = 16;

/// Keys of an index whose nodes have three levels, and of one with two.
const THREE_LEVELS: u32 = 3000;
const TWO_LEVELS: u32 = 200;

const HEADER: usize = 8;
const ENTRY: usize = 8;

/// An index that was closed.
struct Image {
    cell: Cell,
    bytes: Vec<u8>,
    plan: Plan,
}

fn key(number: u32) -> [u8; 4] {
    (number * APART).to_be_bytes()
}

fn geometry() -> SectorGeometry {
    SectorGeometry::new(SECTOR_BYTES, SECTORS).expect("it is a disk")
}

impl Image {
    fn new(tree: &str, durability: Durability, keys: u32) -> Self {
        let entry = *TREES.iter().find(|entry| entry.name == tree).expect("there is such a tree");
        let shape = EntryShape::fixed(4, 4);
        let cell = Cell { entry, shape, node_bytes: NODE_BYTES, durability };
        let mut disk = ImageDisk::of(geometry(), vec![0; geometry().bytes() as usize]);
        let mut index = cell.create(Box::new(&mut disk)).expect("the disk suits it");
        for number in 0..keys {
            // In no order, so that leaves have room; 37 is no factor of their number.
            let (key, value) = (key(number * 37 % keys), number.to_le_bytes());
            index.update(&[Update::Put { key: &key, value: &value }]).expect("it has room");
        }
        index.close().expect("it can be closed");
        drop(index);
        let bytes = disk.into_bytes();
        let plan = Plan::of(&bytes, SECTOR_BYTES as usize).expect("it is an index");
        Image { cell, bytes, plan }
    }

    /// The nodes at these levels, and how many entries each has.
    fn nodes(&self, levels: std::ops::RangeInclusive<u8>) -> Vec<(Piece, usize)> {
        let all = self.plan.pieces(&self.bytes).into_iter().filter(|it| it.kind == Kind::Packed);
        let wanted = all.filter(|it| levels.contains(&self.bytes[it.at + 6]));
        wanted.map(|it| (it, number(&self.bytes, it.at + 4, 2) as usize)).collect()
    }

    fn key_at(&self, node: &Piece, place: usize) -> u32 {
        let at = node.at + HEADER + place * ENTRY;
        u32::from_be_bytes(self.bytes[at..at + 4].try_into().expect("it has four bytes"))
    }

    /// A disk with what `change` makes of the entries of `node`, each in eight bytes.
    fn damaged(&self, node: &Piece, mut change: impl FnMut(usize, &mut [u8])) -> ImageDisk {
        let mut bytes = self.bytes.clone();
        let entries = number(&bytes, node.at + 4, 2) as usize;
        let area = &mut bytes[node.at + HEADER..][..entries * ENTRY];
        area.chunks_exact_mut(ENTRY).enumerate().for_each(|(place, entry)| change(place, entry));
        self.plan.repair(&mut bytes, node);
        ImageDisk::of(geometry(), bytes)
    }
}

/// Reads all in both directions; refuses more entries than a disk has room for.
fn walk(index: &mut dyn Index) -> Result<()> {
    let most = SECTORS as u32 * SECTOR_BYTES / ENTRY as u32;
    for range in [KeyRange::ALL, KeyRange::ALL.reversed()] {
        let (mut cursor, mut found) = (index.range(range)?, 0);
        while cursor.next()?.is_some() {
            found += 1;
            assert!(found <= most, "a walk goes on for ever");
        }
    }
    Ok(())
}

fn is_damage<T>(outcome: &Result<T>) -> bool {
    matches!(outcome, Err(Error::Store(error)) if error.is_damage())
}

/// Puts and deletes `keys` in turn until one fails.
fn change(index: &mut dyn Index, keys: impl Iterator<Item = u32>) -> Result<()> {
    for (place, key) in keys.enumerate() {
        let key = &key.to_be_bytes();
        match place % 2 {
            0 => index.update(&[Update::Put { key, value: b"more" }])?,
            _ => index.update(&[Update::Delete { key }])?,
        }
    }
    index.close()
}

#[test]
fn ranges_end_though_the_first_separator_of_a_node_is_raised() {
    for tree in ["la-tree", "b-plus"] {
        for keys in [TWO_LEVELS, THREE_LEVELS] {
            let image = Image::new(tree, Durability::None, keys);
            for (node, _) in image.nodes(1..=9) {
                let raised = image.key_at(&node, 1) - 1;
                let mut disk = image.damaged(&node, |place, entry| {
                    if place == 0 {
                        entry[..4].copy_from_slice(&raised.to_be_bytes());
                    }
                });
                let mut index = image.cell.open(Box::new(&mut disk)).expect("its root is whole");
                walk(&mut *index).expect("every node is whole");
            }
        }
    }
}

#[test]
fn walks_end_though_leaves_have_keys_of_others_and_are_split() {
    for keys in [TWO_LEVELS, THREE_LEVELS] {
        let image = Image::new("la-tree", Durability::Checkpoint, keys);
        let all = keys * APART;
        let mut refused = 0;
        for (leaf, _) in image.nodes(0..=0).into_iter().step_by(4) {
            let first = image.key_at(&leaf, 0);
            let mut disk = image.damaged(&leaf, |_, entry| {
                let key = u32::from_be_bytes(entry[..4].try_into().expect("it has four bytes"));
                entry[..4].copy_from_slice(&(key + all / 3).to_be_bytes());
            });
            disk.start(None);
            let mut index = image.cell.open(Box::new(&mut disk)).expect("its root is whole");
            // So many that the leaf is split, and with them all others.
            let near = (0..60).map(|number| first + number);
            let changed = change(&mut *index, near.chain((0..all).step_by(7)));
            refused += u32::from(is_damage(&changed));
            drop(index);
            assert!(!disk.is_endless(), "a change goes on for ever");
            // What was written is nodes all the same: their keys are in order.
            let mut index = image.cell.open(Box::new(&mut disk)).expect("its root is whole");
            walk(&mut *index).expect("every node is whole");
        }
        assert!(refused > 0, "no leaf was split");
    }
}

#[test]
fn runs_of_flat_tree_whose_leaves_do_not_ascend_are_damaged() {
    let image = Image::new("flat-tree", Durability::Checkpoint, THREE_LEVELS);
    let leaves = image.nodes(0..=0);
    let mut told = 0;
    for (leaf, _) in leaves.iter().step_by(4) {
        let mut disk = image.damaged(leaf, |_, entry| entry[0] = 0x80);
        let mut index = image.cell.open(Box::new(&mut disk)).expect("its root is whole");
        let walked = walk(&mut *index);
        // The last leaf of a run has none behind it: what is beyond its partition is passed by.
        assert!(walked.is_ok() || is_damage(&walked), "{walked:?}");
        told += usize::from(is_damage(&walked));
    }
    assert!(told > leaves.len() / 8, "{told} of {} told", leaves.len().div_ceil(4));
}

#[test]
fn emptying_ends_though_a_node_names_itself_or_one_above_as_its_child() {
    const BUFFERED: u32 = 0x8000_0000;
    for durability in [Durability::None, Durability::Every] {
        let image = Image::new("la-tree", durability, THREE_LEVELS);
        let mut refused = 0;
        for (node, _) in image.nodes(2..=9) {
            for buffer in 0..6 {
                let mut disk = image.damaged(&node, |_, entry| {
                    entry[4..].copy_from_slice(&(BUFFERED | buffer).to_le_bytes());
                });
                disk.start(None);
                let mut index = image.cell.open(Box::new(&mut disk)).expect("its root is whole");
                let keys = (0..2000).map(|number| number * 7919 % (THREE_LEVELS * APART));
                refused += u32::from(is_damage(&change(&mut *index, keys)));
                drop(index);
                assert!(!disk.is_endless(), "entries go round for ever");
            }
        }
        assert!(refused > 0, "no node was among its own children");
    }
}

#[test]
fn ranges_end_though_all_children_are_one() {
    let mut image = Image::new("b-plus", Durability::None, THREE_LEVELS);
    // All inner nodes: 900 ways lead to one leaf then, more than there are pages.
    for (node, _) in image.nodes(1..=9) {
        let at = node.at + HEADER + 4;
        let first = image.bytes[at..at + 4].to_vec();
        let disk = image.damaged(&node, |_, entry| entry[4..].copy_from_slice(&first));
        image.bytes = disk.into_bytes();
    }
    let mut disk = ImageDisk::of(geometry(), image.bytes);
    let mut index = image.cell.open(Box::new(&mut disk)).expect("its root is whole");
    assert!(is_damage(&walk(&mut *index)), "a page was read more often than there are pages");
}
