//! Loading sorted entries: leaf after leaf, each in a page of its own, and behind it a page with
//! the nodes above it, which is an update of its parent.
//!
//! So the layout adapts as it does with updates. The nodes that each leaf gives up are dead at
//! once; no page that is needed is collected meanwhile, so loading takes twice as many pages as it
//! fills.

use alloc::vec::Vec;

use device::{Cause, Page};
use store::node::{self, Codec, Stored};

use super::layout::Layout;
use super::page::{Header, seal_node};
use super::plan::Edit;
use super::policy::{Change, Splits, State};
use super::rewrite::Order;
use super::{Durably, PathTree, full};
use crate::{Cursor, Error, Result, Value};

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
        let mut loaded = 0;
        let mut leaf = self.begin_leaf(0)?;
        // What a cursor of this tree would take: while it is loaded it has none.
        let (mut long_key, mut long) = (Vec::new(), Vec::new());
        let outcome = loop {
            let entry = match sorted.next() {
                Ok(Some((key, Value::Whole(value)))) => (key, value),
                Ok(Some((key, Value::Long(bytes)))) => {
                    if let Err(error) = self.check_entry(key, bytes as usize) {
                        break Err(error);
                    }
                    long_key.clear();
                    long_key.extend_from_slice(key);
                    // Another tree's nodes are smaller than this one's.
                    long.resize(bytes as usize, 0);
                    if let Err(error) = sorted.read_value(0, &mut long) {
                        break Err(error);
                    }
                    (long_key.as_slice(), long.as_slice())
                }
                Ok(None) => break Ok(()),
                Err(error) => break Err(error),
            };
            if let Err(error) = self.load_entry(entry, loaded, &mut leaf, fill) {
                break Err(error);
            }
            loaded += 1;
        };
        if !leaf.is_ended {
            // What came before an error stays.
            self.end_leaf(&leaf, true)?;
        }
        outcome.map(|()| loaded)
    }

    fn load_entry(
        &mut self,
        (key, value): (&[u8], &[u8]),
        loaded: u64,
        leaf: &mut Leaf,
        fill: u8,
    ) -> Result<()> {
        self.check_entry(key, value.len())?;
        // The key before.
        if loaded > 0 && key <= self.key.as_slice() {
            return Err(Error::NotSorted { position: loaded });
        }
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
        self.key.clear();
        self.key.extend_from_slice(key);
        Ok(())
    }

    fn leaf_node(&mut self, leaf: &Leaf) -> &mut [u8] {
        let range = self.ground.pages.bytes_of(&leaf.layout, 0).unwrap_or_default();
        &mut self.ground.content()[range]
    }

    fn append(&mut self, leaf: &Leaf, key: &[u8], value: &[u8]) -> bool {
        let range = self.ground.pages.bytes_of(&leaf.layout, 0).unwrap_or_default();
        let node = &mut self.ground.content()[range];
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
        let codec = self.ground.pages.codec(&layout, 0);
        let codec = codec.ok_or(super::damage(self.root, "a leaf that is none"))?;
        let leaf = Leaf { layout, codec, before, is_ended: false };
        self.ground.content().fill(0xFF);
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

    fn make_room_for_leaf(&mut self) -> Result<()> {
        if self.durably == Durably::Not {
            // Collection makes its pages where the leaf is: the leaf is put aside.
            return self.keep_leaf_and(|tree| tree.make_room_for_one());
        }
        let live = u64::from(self.standing.live_pages);
        let all = self.pages_all();
        let log = &self.ground.log;
        let needed = self.written_most(1) + self.reserve_pages() + 2;
        if u64::from(log.free_pages()) < needed || self.held_pages(live) + needed > all {
            return Err(full(u64::from(log.usable_pages())));
        }
        Ok(())
    }

    /// Does what overwrites the page that is made, and brings it back.
    fn keep_leaf_and(&mut self, act: impl FnOnce(&mut Self) -> Result<()>) -> Result<()> {
        let Some(free) = self.ground.log.free_pages().checked_sub(1) else {
            return act(self);
        };
        // Only what is short of room overwrites anything.
        if u64::from(free) > self.reserve_pages() + self.written_most(1) + 1 {
            return Ok(());
        }
        let kept = self.ground.content().to_vec();
        let outcome = act(self);
        self.ground.content().copy_from_slice(&kept);
        outcome
    }

    fn write_leaf(&mut self, leaf: &Leaf, first: &[u8]) -> Result<()> {
        let state = State { layout: leaf.layout, splits: self.standing.next.splits };
        let live_pages = self.standing.live_pages + 1;
        let header = Header {
            sequence: 0,
            live_pages,
            layout: leaf.layout,
            lowest: 0,
            highest: 0,
            has_root: false,
            closes_batch: false,
            next: state,
        };
        let page = self.write_made(header)?.0;
        if leaf.before == 0 {
            return self.write_first_root(page, leaf.layout, first);
        }
        self.standing.live_pages = live_pages;
        self.live.add(page);
        self.descend(first, 1, Cause::Load)?;
        self.way.spot_mut(1).place += 1;
        let child = page.0.to_le_bytes();
        self.rewrite(&Order {
            base: 1,
            edit: Edit::Insert { key: first, value: &child },
            change: Change::Put,
            closes: false,
            cause: Cause::Load,
        })
    }

    /// A root whose only child is the leaf in `page`.
    fn write_first_root(&mut self, page: Page, layout: Layout, _first: &[u8]) -> Result<()> {
        let pages = self.ground.pages;
        let no_node = super::damage(page, "no root fits");
        let codec = pages.codec(&layout, 1).ok_or(no_node.clone())?;
        let range = pages.bytes_of(&layout, 1).ok_or(no_node)?;
        self.ground.content().fill(0xFF);
        let lowest = self.plan.lowest_key.clone();
        let node = &mut self.ground.content()[range];
        codec.initialise(node, 1);
        let child = page.0.to_le_bytes();
        let other = self.scratch.other.get_mut(..codec.node_bytes()).unwrap_or_default();
        if !codec.insert(node, 0, &lowest, Stored::inline(&child), other) {
            return Err(super::damage(page, "an empty root has no room"));
        }
        let header = Header {
            sequence: 0,
            live_pages: 2,
            layout,
            lowest: 1,
            highest: 1,
            has_root: true,
            closes_batch: false,
            next: State { layout, splits: Splits::default() },
        };
        let (page, header) = self.write_made(header)?;
        self.live.forget();
        self.stand_on(page, header);
        Ok(())
    }

    /// The only leaf: it has the whole page.
    fn write_lone_leaf(&mut self, leaf: &Leaf, is_last: bool) -> Result<()> {
        if !is_last {
            return Err(self.policy.tree_full());
        }
        let pages = self.ground.pages;
        let layout = self.policy.first().layout;
        let no_node = super::damage(self.root, "a leaf that is none");
        let codec = pages.codec(&layout, 0).ok_or(no_node.clone())?;
        let range = pages.bytes_of(&layout, 0).ok_or(no_node)?;
        let bytes = leaf.codec.node_bytes();
        let Some(old) = self.way.room(bytes) else {
            return Err(super::damage(self.root, "a leaf is larger than it can be"));
        };
        let from = pages.bytes_of(&leaf.layout, 0).unwrap_or_default();
        old.copy_from_slice(&self.ground.content()[from]);
        let node = &mut self.ground.content()[range];
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
            closes_batch: false,
            next: self.policy.first(),
        };
        let (page, header) = self.write_made(header)?;
        self.live.forget();
        self.stand_on(page, header);
        Ok(())
    }

    /// Seals the page that was made, with `header`, and programs it; where the chip refuses,
    /// elsewhere.
    pub(super) fn write_made(&mut self, mut header: Header) -> Result<(Page, Header)> {
        loop {
            header.sequence = self.ground.log.reserve(1, &mut self.addresses, Cause::Load)?;
            let Some(page) = self.addresses.first().copied() else {
                return Err(super::damage(self.root, "a page has no address"));
            };
            let pages = self.ground.pages;
            for level in header.lowest..=header.highest {
                let range = pages.bytes_of(&header.layout, level).unwrap_or_default();
                seal_node(page, header.sequence, &mut self.ground.content()[range]);
            }
            header.encode(page, self.ground.content());
            match self.ground.program(page, &header, Cause::Load) {
                Err(Error::Store(error)) if error.is_refusal() => {}
                other => return other.map(|()| (page, header)),
            }
        }
    }
}
