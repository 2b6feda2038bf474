//! Loading sorted entries: leaf after leaf, each in one page with the nodes above it, as an update
//! writes them; one page behind the other. Where every node has a page to itself, all of them are
//! written with each leaf.
//!
//! So the layout adapts as it does with updates. Leaves are filled as far as is asked for, inner
//! nodes completely. What a leaf writes of the nodes above it is given up by the next one, but its
//! page lives by the leaf: no page is dead where a page holds the whole path.

use alloc::vec::Vec;

use device::Cause;
use store::Growth;
use store::node::{self, Codec, Stored};

use super::bare_tree::rewrite::Order;
use super::bare_tree::{BareTree, lone_header};
use super::collection::Collection;
use super::layout::{HEIGHT_MOST, Layout};
use super::page::{Brief, Header};
use super::plan::Edit;
use super::policy::{Change, Splits, State};
use index::bounds::EntryLimits;
use index::{Cursor, Error, Result};

/// The leaf that is filled.
#[derive(Clone, Copy)]
struct Leaf {
    layout: Layout,
    codec: Codec,
    /// Leaves before it.
    before: u64,
    /// True from when it is written: what stands where it was made may be something else then.
    is_ended: bool,
}

/// A tree that is loaded.
struct Load<'l, 'd> {
    tree: &'l mut BareTree<'d>,
    collection: &'l mut Collection,
    leaf: Leaf,
    /// Its first key.
    first: Vec<u8>,
}

/// Loads sorted entries into a tree for which nothing waits; returns how many.
pub(super) fn load_sorted(
    tree: &mut BareTree<'_>,
    collection: &mut Collection,
    limits: EntryLimits,
    (sorted, fill): (&mut dyn Cursor, u8),
) -> Result<u64> {
    if !tree.is_empty()? {
        return Err(Error::NotEmpty);
    }
    let (leaf, first) = (begin_leaf(tree, 0)?, Vec::with_capacity(limits.key));
    let mut load = Load { tree, collection, leaf, first };
    let loaded = limits.take_sorted(sorted, |key, value| load.add(key, value, fill));
    if !load.leaf.is_ended {
        // What came before an error stays.
        load.end_leaf(true)?;
    }
    loaded
}

/// An empty leaf, in the page that is made.
fn begin_leaf(tree: &mut BareTree<'_>, before: u64) -> Result<Leaf> {
    let present = tree.standing().next.layout;
    let layout = match tree.policy.leaves(2).next() {
        Some(largest) if present.height == 1 => Layout { leaf: largest, height: 2, ..present },
        _ => present,
    };
    let place = tree.nodes.pages.place_of(&layout, 0);
    let (range, codec) = place.ok_or(tree.damage("a leaf that is none"))?;
    tree.nodes.content().fill(0xFF);
    codec.initialise(&mut tree.nodes.content()[range], 0);
    Ok(Leaf { layout, codec, before, is_ended: false })
}

impl Load<'_, '_> {
    fn add(&mut self, key: &[u8], value: &[u8], fill: u8) -> Result<()> {
        self.tree.census.note_key(key.len(), &self.tree.policy);
        let codec = self.leaf.codec;
        let node = self.node();
        let is_filled = codec.is_filled(node, fill) && node::count(node) > 1;
        if is_filled || !self.append(key, value) {
            self.leaf.is_ended = true;
            self.end_leaf(false)?;
            self.leaf = begin_leaf(self.tree, self.leaf.before + 1)?;
            if !self.append(key, value) {
                return Err(self.tree.damage("an empty leaf has no room"));
            }
        }
        Ok(())
    }

    fn node(&mut self) -> &mut [u8] {
        let range = self.tree.nodes.pages.bytes_of(&self.leaf.layout, 0).unwrap_or_default();
        &mut self.tree.nodes.content()[range]
    }

    fn append(&mut self, key: &[u8], value: &[u8]) -> bool {
        let codec = self.leaf.codec;
        let range = self.tree.nodes.pages.bytes_of(&self.leaf.layout, 0).unwrap_or_default();
        let node = &mut self.tree.nodes.content()[range];
        let other = self.tree.scratch.other.get_mut(..codec.node_bytes()).unwrap_or_default();
        let at = node::count(node);
        codec.insert(node, at, key, Stored::inline(value), other)
    }

    /// Writes the leaf, and the nodes above it.
    fn end_leaf(&mut self, is_last: bool) -> Result<()> {
        if node::count(self.node()) == 0 {
            return Ok(());
        }
        self.tree.allow_growth();
        match self.leaf.before {
            _ if self.leaf.layout.height == 1 => self.write_lone_leaf(is_last),
            0 if is_last => self.write_lone_leaf(is_last),
            before => {
                self.make_room()?;
                if before == 0 { self.write_first_root() } else { self.write_leaf() }
            }
        }
    }

    /// Sees to it that there is room for a leaf more.
    fn make_room(&mut self) -> Result<()> {
        let tree = &mut *self.tree;
        let inner = u64::from(tree.height()) + 1;
        let growth = Growth { leaves: 1, inner, levels: 1 };
        // A level too many is refused where it is made.
        let mut room = tree.room();
        room.height_most = HEIGHT_MOST;
        if !room.has_room(&tree.census.demand)(growth) {
            return Err(tree.nodes.no_room());
        }
        if u64::from(tree.nodes.log.free_blocks()) >= tree.reserve_blocks() {
            return Ok(());
        }
        if tree.nodes.lasts() {
            // Nothing can be made free before the checkpoint behind it.
            return Err(tree.nodes.no_room());
        }
        // What makes room overwrites the page that is made.
        let kept = tree.nodes.content().to_vec();
        let outcome = self.collection.make_room_for_one(tree);
        self.tree.nodes.content().copy_from_slice(&kept);
        outcome
    }

    fn write_leaf(&mut self) -> Result<()> {
        let Leaf { layout, codec, .. } = self.leaf;
        let tree = &mut *self.tree;
        let range = tree.nodes.pages.bytes_of(&layout, 0).unwrap_or_default();
        // It stands in no page yet, which it could be the lowest of.
        let (brief, page) = (Brief { layout, lowest: 1 }, tree.root().id);
        let node = &tree.nodes.content()[range];
        codec.key(node, 0).copy_to(&mut self.first);
        if !tree.path.copy((page, 0), (&brief, 0), &codec, node) {
            return Err(tree.damage("a leaf is larger than it can be"));
        }
        tree.descend(codec.node_bytes(), (&self.first, 1), Cause::Load)?;
        let (edit, change, cause) = (Edit::Append, Change::Put, Cause::Load);
        tree.rewrite(&Order { base: 0, edit, change, cause })
    }

    /// Writes the first leaf, with a root whose only child it is.
    fn write_first_root(&mut self) -> Result<()> {
        let (pages, layout) = (self.tree.nodes.pages, self.leaf.layout);
        let no_node = self.tree.damage("no root fits");
        let (range, codec) = pages.place_of(&layout, 1).ok_or(no_node.clone())?;
        let next = State { layout, splits: Splits::default() };
        let lone = lone_header(&self.tree.policy);
        let mut header = Header { layout, highest: 1, next, ..lone };
        let mut child = None;
        if pages.stands_alone(1) {
            let alone = Header { highest: 0, has_root: false, ..header };
            child = Some(self.tree.write_made(alone, Cause::Load, &mut |_, _| {})?.0);
            header = Header { live_pages: 2, lowest: 1, ..header };
            self.tree.nodes.content().fill(0xFF);
        }
        let mut other = core::mem::take(&mut self.tree.scratch.other);
        let lowest = self.tree.lowest_key().to_vec();
        let mut fits = true;
        let made = self.tree.write_made(header, Cause::Load, &mut |page, content| {
            let node = &mut content[range.clone()];
            codec.initialise(node, 1);
            let child = child.unwrap_or(page).0.to_le_bytes();
            let scratch = other.get_mut(..codec.node_bytes()).unwrap_or_default();
            fits = codec.insert(node, 0, &lowest, Stored::inline(&child), scratch);
        });
        self.tree.scratch.other = other;
        let written = made?;
        if !fits {
            return Err(no_node);
        }
        self.tree.begin(written, &[1, 1]);
        Ok(())
    }

    /// The only leaf: it has the whole page.
    fn write_lone_leaf(&mut self, is_last: bool) -> Result<()> {
        if !is_last {
            return Err(self.tree.policy.tree_full());
        }
        let pages = self.tree.nodes.pages;
        let header = lone_header(&self.tree.policy);
        let place = pages.place_of(&header.layout, 0);
        let (range, codec) = place.ok_or(self.tree.damage("a leaf that is none"))?;
        let bytes = self.leaf.codec.node_bytes();
        let Some(old) = self.tree.path.room(bytes) else {
            return Err(self.tree.damage("a leaf is larger than it can be"));
        };
        let from = pages.bytes_of(&self.leaf.layout, 0).unwrap_or_default();
        device::copy(old, &self.tree.nodes.content()[from]);
        let node = &mut self.tree.nodes.content()[range];
        codec.initialise(node, 0);
        let other = self.tree.scratch.other.get_mut(..codec.node_bytes()).unwrap_or_default();
        let key = &mut self.tree.scratch.key;
        for place in 0..node::count(old) {
            self.leaf.codec.key(old, place).copy_to(key);
            if !codec.insert(node, place, key, self.leaf.codec.value(old, place), other) {
                return Err(self.tree.damage("a lone leaf has no room"));
            }
        }
        let written = self.tree.write_made(header, Cause::Load, &mut |_, _| {})?;
        self.tree.begin(written, &[1]);
        Ok(())
    }
}
