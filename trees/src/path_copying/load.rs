//! Loading sorted entries: leaf after leaf, each in one page with the nodes above it, as an update
//! writes them; one page behind the other. Where every node has a page to itself, all of them are
//! written with each leaf.
//!
//! So the layout adapts as it does with updates. Leaves are filled as far as is asked for, inner
//! nodes completely. What a leaf writes of the nodes above it is given up by the next one, but its
//! page lives by the leaf: no page is dead where a page holds the whole path.

use device::{Cause, Page};
use store::Growth;
use store::node::{self, Codec, Stored};

use super::layout::{HEIGHT_MOST, Layout};
use super::page::{Header, seal_node};
use super::path_nodes::Brief;
use super::plan::Edit;
use super::policy::{Change, Splits, State};
use super::rewrite::Order;
use super::{Durably, PathTree};
use index::{Cursor, Error, Result};

/// The leaf that is filled.
struct Leaf {
    layout: Layout,
    codec: Codec,
    /// Leaves before it.
    before: u64,
    /// True from when it is written: what stands where it was made may be something else then.
    is_ended: bool,
}

impl PathTree<'_> {
    pub(super) fn load_sorted(&mut self, sorted: &mut dyn Cursor, fill: u8) -> Result<u64> {
        let is_empty = self.height() == 1 && self.count_root(Cause::Load)? == 0;
        if !is_empty || self.buffer.len() > 0 {
            return Err(Error::NotEmpty);
        }
        let mut leaf = self.begin_leaf(0)?;
        let limits = self.limits;
        let loaded =
            limits.take_sorted(sorted, |key, value| self.load_entry(key, value, &mut leaf, fill));
        if !leaf.is_ended {
            // What came before an error stays.
            self.end_leaf(&leaf, true)?;
        }
        loaded
    }

    fn load_entry(&mut self, key: &[u8], value: &[u8], leaf: &mut Leaf, fill: u8) -> Result<()> {
        let is_filled = {
            let node = self.leaf_node(leaf);
            leaf.codec.is_filled(node, fill) && node::count(node) > 1
        };
        if is_filled || !self.append(leaf, key, value) {
            leaf.is_ended = true;
            self.end_leaf(leaf, false)?;
            *leaf = self.begin_leaf(leaf.before + 1)?;
            if !self.append(leaf, key, value) {
                return Err(super::damage(self.root, "an empty leaf has no room"));
            }
        }
        Ok(())
    }

    fn leaf_node(&mut self, leaf: &Leaf) -> &mut [u8] {
        let range = self.store.pages.bytes_of(&leaf.layout, 0).unwrap_or_default();
        &mut self.store.content()[range]
    }

    fn append(&mut self, leaf: &Leaf, key: &[u8], value: &[u8]) -> bool {
        let range = self.store.pages.bytes_of(&leaf.layout, 0).unwrap_or_default();
        let node = &mut self.store.content()[range];
        let other = self.scratch.other.get_mut(..leaf.codec.node_bytes()).unwrap_or_default();
        let at = node::count(node);
        leaf.codec.insert(node, at, key, Stored::inline(value), other)
    }

    /// An empty leaf, in the page that is made.
    fn begin_leaf(&mut self, before: u64) -> Result<Leaf> {
        let present = self.standing.next.layout;
        let layout = match self.policy.leaves(2).next() {
            Some(largest) if present.height == 1 => Layout { leaf: largest, height: 2, ..present },
            _ => present,
        };
        let codec = self.store.pages.codec(&layout, 0);
        let codec = codec.ok_or(super::damage(self.root, "a leaf that is none"))?;
        let leaf = Leaf { layout, codec, before, is_ended: false };
        self.store.content().fill(0xFF);
        let node = self.leaf_node(&leaf);
        codec.initialise(node, 0);
        Ok(leaf)
    }

    /// Writes the leaf, and the nodes above it.
    fn end_leaf(&mut self, leaf: &Leaf, is_last: bool) -> Result<()> {
        let count = node::count(self.leaf_node(leaf));
        if count == 0 {
            return Ok(());
        }
        self.allow_growth();
        if leaf.before == 0 && is_last || leaf.layout.height == 1 {
            return self.write_lone_leaf(leaf, is_last);
        }
        self.make_room_for_leaf()?;
        let mut first = core::mem::take(&mut self.value);
        let node = self.leaf_node(leaf);
        leaf.codec.key(node, 0).copy_to(&mut first);
        let outcome = self.write_leaf(leaf, &first);
        self.value = first;
        outcome
    }

    /// Sees to it that there is room for a leaf more.
    fn make_room_for_leaf(&mut self) -> Result<()> {
        let inner = u64::from(self.height()) + 1;
        if !self.has_room()(Growth { leaves: 1, inner, levels: 1 }) {
            return Err(self.no_room());
        }
        if u64::from(self.store.log.free_blocks()) >= self.reserve_blocks() {
            return Ok(());
        }
        match self.durably {
            Durably::Not => self.keep_leaf_and(PathTree::make_room_for_one),
            // Nothing can be made free before the checkpoint behind it.
            Durably::ByCheckpoints => Err(self.no_room()),
        }
    }

    /// Does what overwrites the page that is made, and brings it back.
    fn keep_leaf_and(&mut self, act: impl FnOnce(&mut Self) -> Result<()>) -> Result<()> {
        let kept = self.store.content().to_vec();
        let outcome = act(self);
        self.store.content().copy_from_slice(&kept);
        outcome
    }

    fn write_leaf(&mut self, leaf: &Leaf, first: &[u8]) -> Result<()> {
        if leaf.before == 0 {
            return self.write_first_root(leaf);
        }
        let range = self.store.pages.bytes_of(&leaf.layout, 0).unwrap_or_default();
        // It stands in no page yet, which it could be the lowest of.
        let brief = Brief { layout: leaf.layout, lowest: 1 };
        let node = &self.store.content()[range];
        if !self.path.copy((self.root, 0), (&brief, 0), &leaf.codec, node) {
            return Err(super::damage(self.root, "a leaf is larger than it can be"));
        }
        self.descend_behind(leaf.codec.node_bytes(), (first, 1), Cause::Load)?;
        self.rewrite(&Order {
            base: 0,
            edit: Edit::Append,
            change: Change::Put,
            cause: Cause::Load,
        })
    }

    /// Writes the first leaf, with a root whose only child it is.
    fn write_first_root(&mut self, leaf: &Leaf) -> Result<()> {
        let (pages, layout) = (self.store.pages, leaf.layout);
        let no_node = super::damage(self.root, "no root fits");
        let codec = pages.codec(&layout, 1).ok_or(no_node.clone())?;
        let range = pages.bytes_of(&layout, 1).ok_or(no_node.clone())?;
        let mut header = Header {
            sequence: 0,
            live_pages: 1,
            layout,
            lowest: 0,
            highest: 1,
            has_root: true,
            next: State { layout, splits: Splits::default() },
        };
        let mut child = None;
        if pages.stands_alone(1) {
            let alone = Header { highest: 0, has_root: false, ..header };
            child = Some(self.write_made(alone, Cause::Load)?.0);
            header = Header { live_pages: 2, lowest: 1, ..header };
            self.store.content().fill(0xFF);
        }
        let mut other = core::mem::take(&mut self.scratch.other);
        let lowest = core::mem::take(&mut self.plan.lowest_key);
        let mut fits = true;
        let made = self.write_made_with((header, Cause::Load), &mut |page, content| {
            let node = &mut content[range.clone()];
            codec.initialise(node, 1);
            let child = child.unwrap_or(page).0.to_le_bytes();
            let scratch = other.get_mut(..codec.node_bytes()).unwrap_or_default();
            fits = codec.insert(node, 0, &lowest, Stored::inline(&child), scratch);
        });
        (self.scratch.other, self.plan.lowest_key) = (other, lowest);
        let (page, header) = made?;
        if !fits {
            return Err(no_node);
        }
        self.live.forget();
        self.nodes = [0; HEIGHT_MOST as usize];
        self.nodes[..2].fill(1);
        self.stand_on(page, header);
        Ok(())
    }

    /// The only leaf: it has the whole page.
    fn write_lone_leaf(&mut self, leaf: &Leaf, is_last: bool) -> Result<()> {
        if !is_last {
            return Err(self.policy.tree_full());
        }
        let pages = self.store.pages;
        let layout = self.policy.first().layout;
        let no_node = super::damage(self.root, "a leaf that is none");
        let codec = pages.codec(&layout, 0).ok_or(no_node.clone())?;
        let range = pages.bytes_of(&layout, 0).ok_or(no_node)?;
        let bytes = leaf.codec.node_bytes();
        let Some(old) = self.path.room(bytes) else {
            return Err(super::damage(self.root, "a leaf is larger than it can be"));
        };
        let from = pages.bytes_of(&leaf.layout, 0).unwrap_or_default();
        device::copy(old, &self.store.content()[from]);
        let node = &mut self.store.content()[range];
        codec.initialise(node, 0);
        let other = self.scratch.other.get_mut(..codec.node_bytes()).unwrap_or_default();
        let key = &mut self.scratch.key;
        for place in 0..node::count(old) {
            leaf.codec.key(old, place).copy_to(key);
            if !codec.insert(node, place, key, leaf.codec.value(old, place), other) {
                return Err(super::damage(self.root, "a lone leaf has no room"));
            }
        }
        let header = Header {
            sequence: 0,
            live_pages: 1,
            layout,
            lowest: 0,
            highest: 0,
            has_root: true,
            next: self.policy.first(),
        };
        let (page, header) = self.write_made(header, Cause::Load)?;
        self.live.forget();
        self.stand_on(page, header);
        Ok(())
    }

    /// Seals the page that was made, with `header`, and programs it; where the chip refuses,
    /// elsewhere.
    pub(super) fn write_made(&mut self, header: Header, cause: Cause) -> Result<(Page, Header)> {
        self.write_made_with((header, cause), &mut |_, _| {})
    }

    /// As [`PathTree::write_made`]; `finish` completes the page when its address is known.
    pub(super) fn write_made_with(
        &mut self,
        (mut header, cause): (Header, Cause),
        finish: &mut dyn FnMut(Page, &mut [u8]),
    ) -> Result<(Page, Header)> {
        loop {
            header.sequence = self.store.log.reserve(1, &mut self.addresses, cause)?;
            let Some(page) = self.addresses.first().copied() else {
                return Err(super::damage(self.root, "a page has no address"));
            };
            let pages = self.store.pages;
            finish(page, self.store.content());
            for level in header.lowest..=header.highest {
                let made = pages.place_of(&header.layout, level);
                let (range, codec) = made.ok_or(super::damage(page, "no page is divided so"))?;
                seal_node(&codec, page, header.sequence, &mut self.store.content()[range]);
            }
            header.encode(page, self.store.content());
            match self.store.program(page, &header, cause) {
                Err(Error::Store(error)) if error.is_refusal() => {}
                other => return other.map(|()| (page, header)),
            }
        }
    }
}
