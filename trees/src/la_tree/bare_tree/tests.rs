use alloc::boxed::Box;
use alloc::string::ToString;
use alloc::vec::Vec;

use device::{Cause, Geometry, NandCosts};
use sim::SimulatedNand;
use store::node::Stored;
use store::{EntryShape, PageLog, PageLogOptions};

use super::{BareTree, Bounds, Halves};
use crate::btree::{self, At, Edit, Rules};
use crate::la_tree::cache::CacheSize;
use crate::la_tree::layout::PageShape;
use crate::la_tree::nodes::Nodes;
use crate::la_tree::storage::Storage;

const CAUSE: Cause = Cause::Update;

#[test]
fn a_walk_over_bounds_that_lead_backwards_ends() {
    let bounds = |lower: &[u8], upper: &[u8]| Bounds {
        lower: lower.to_vec(),
        upper: upper.to_vec(),
        has_upper: true,
    };
    // Node `b` says that `a` begins behind it, and that the other way round.
    let leaves = [bounds(b"a", b"b"), bounds(b"b", b"a")];
    let (mut key, mut passed) = (Vec::from(*b"a"), 0);
    for leaf in leaves.iter().cycle().take(10) {
        if leaf.pass(&mut key).is_none() {
            break;
        }
        passed += 1;
    }
    assert_eq!((passed, &key[..]), (1, &b"b"[..]));
    let last = Bounds { lower: key.clone(), ..Bounds::default() };
    assert_eq!(last.pass(&mut key), Some(false));
}

const SHAPE: EntryShape = EntryShape::fixed(4, 4);

/// A tree of nodes of seven entries, with buffers at every second level, on a chip.
fn tree() -> BareTree<'static> {
    let geometry = Geometry::new(512, 32, 64).unwrap();
    let chip = Box::new(SimulatedNand::new(geometry, NandCosts::default()));
    let log = PageLog::create(chip, &PageLogOptions::default()).unwrap();
    let pages = PageShape::new(&geometry, 64).unwrap();
    let nodes = Nodes::new(SHAPE, pages, CacheSize::Fixed(12), (128, 16)).unwrap();
    let mut tree = BareTree::new(Storage::Chip(log), nodes, 2, 12);
    tree.plant().unwrap();
    tree
}

/// Splits the node of the way at `level` in the middle, after those above that have no room.
fn split(tree: &mut BareTree<'_>, level: u8) {
    if level + 1 == tree.height {
        tree.grow().unwrap();
    }
    let id = tree.path.at(level).id;
    let at = tree.node_at(id, level, CAUSE).unwrap().count() / 2;
    let halves = Halves { at, next_is_right: false };
    match tree.separate(level, halves, &[], CAUSE).unwrap() {
        Some(_) => split(tree, level + 1),
        None => drop(tree.split_node(level, at).unwrap()),
    }
}

fn put(tree: &mut BareTree<'_>, key: u32) {
    let key = key.to_be_bytes();
    loop {
        let leaf = tree.descend(0, &key, CAUSE).unwrap();
        let Err(place) = tree.node_at(leaf, 0, CAUSE).unwrap().search(&key) else {
            return;
        };
        let edit = Edit::Insert { place, key: &key, value: Stored::inline(&key) };
        if tree.edit((leaf, 0), edit).unwrap() {
            tree.entries += 1;
            return;
        }
        split(tree, 0);
    }
}

/// Takes `key` away, and joins its leaf with a neighbour where both fit one.
fn delete(tree: &mut BareTree<'_>, key: u32) {
    let key = key.to_be_bytes();
    let leaf = tree.descend(0, &key, CAUSE).unwrap();
    let place = tree.node_at(leaf, 0, CAUSE).unwrap().search(&key).unwrap();
    assert!(tree.edit((leaf, 0), Edit::Remove { place }).unwrap());
    tree.entries -= 1;
    for level in 0..tree.height - 1 {
        tree.descend(level, &key, CAUSE).unwrap();
        let Some(pair) = tree.neighbours(level, CAUSE).unwrap() else { break };
        match tree.joint(pair, CAUSE).unwrap() {
            (true, _) => tree.join(pair).unwrap(),
            (false, Some(shift)) => {
                tree.separate_pair(pair, shift, CAUSE).unwrap();
                assert!(tree.shift(pair, shift, CAUSE).unwrap(), "keys have one length");
                break;
            }
            (false, None) => break,
        }
    }
    while let Some(child) = tree.only_child(CAUSE).unwrap() {
        tree.lower_root(child).unwrap();
    }
}

/// Everything that every B+-tree keeps holds, and what is counted is there.
fn check(tree: &mut BareTree<'_>) {
    let mut findings = Vec::new();
    let (root, lowest) = (At { id: tree.root, level: tree.height - 1 }, tree.lowest_key());
    let rules = Rules { has_exact_separators: true, is_half_full: false, has_branching_root: true };
    let counted = btree::check((&mut *tree, root), &lowest, rules, &mut (), &mut |finding| {
        findings.push(finding.to_string());
    });
    let known = (tree.count(), &tree.levels[..], tree.entries);
    counted.unwrap().compare(known, &mut |finding| findings.push(finding.to_string()));
    assert_eq!(findings, [""; 0]);
}

#[test]
fn nodes_split_and_merge_and_the_root_comes_and_goes() {
    let mut tree = tree();
    let keys = || (0..600_u32).map(|number| number.wrapping_mul(0x9E37_79B1) >> 8);
    keys().for_each(|key| put(&mut tree, key));
    assert!(tree.height >= 4, "{} levels", tree.height);
    check(&mut tree);
    // Nodes with a buffer are at every second level, and so is the root.
    for level in 0..tree.height {
        let id = tree.descend(level, &[0; 4], CAUSE).unwrap();
        let is_buffered = tree.has_buffers(level) || level + 1 == tree.height;
        assert_eq!(id.buffer().is_some(), is_buffered, "level {level}");
    }
    // S and L of a leaf subtree are its nodes.
    let id = tree.descend(1, &[0; 4], CAUSE).unwrap();
    let children = tree.node_at(id, 1, CAUSE).unwrap().count() as u32;
    assert_eq!(tree.count_subtree(id, 1, CAUSE).unwrap(), (children + 1, children));
    for (number, key) in keys().enumerate() {
        delete(&mut tree, key);
        if number % 50 == 0 {
            check(&mut tree);
        }
    }
    assert_eq!((tree.height, tree.count(), tree.entries), (1, 1, 0));
}
