//! Loading sorted entries, from the leaves up.
//!
//! Only the right edge of the tree is touched: the last node of every level takes entries until it
//! is filled, then a new one begins to its right. In the end the last node of a level may have too
//! few: it shares the entries of the one before it, or is merged with that.

use alloc::vec::Vec;

use device::{Cause, Page};
use store::node::{self, NodeKey, Stored};

use super::LaTree;
use super::descent::Toward;
use super::nodes::damaged;
use super::scan::Scan;
use super::shrinking::QUARTER;
use super::table::BufferRecord;
use crate::btree::Edit;
use index::read_piece_of;
use index::{Cursor, Error, KeyRange, Result, Value};

impl LaTree<'_> {
    pub(super) fn load_sorted(&mut self, sorted: &mut dyn Cursor, fill: u8) -> Result<u64> {
        let fill = fill.clamp(QUARTER, 100);
        if self.log.is_disk() {
            if Scan::new(self, KeyRange::ALL)?.next()?.is_some() {
                return Err(Error::NotEmpty);
            }
            self.is_poisoned = true;
            self.drop_all()?;
        } else {
            self.is_poisoned = true;
            self.empty_all(Cause::Load)?;
            let is_emptied = self.buffers.pending == [0; 2];
            if !is_emptied || self.entries > 0 {
                self.is_poisoned = false;
                return Err(if is_emptied { Error::NotEmpty } else { self.refusal() });
            }
            // What is left of a tree that was emptied has separators that are in the way.
            self.nodes.forget();
            self.buffers.forget();
            self.height = 1;
        }
        self.plant()?;
        self.bounds.reset();
        self.path.set(0, self.root, 0);
        self.walk(0, 0, Toward::Last, Cause::Load)?;
        let loaded = self.load_entries(sorted, fill);
        self.end_load(loaded)
    }

    /// Ends a load, of which the tree keeps what it could if that was broken off.
    fn end_load(&mut self, loaded: Result<()>) -> Result<u64> {
        if !matches!(&loaded, Err(Error::Store(store::Error::Device(_)))) {
            self.fill_up_last()?;
            self.is_poisoned = false;
        }
        // The rates are those of updates.
        self.nodes.observed = self.nodes.programmed;
        loaded?;
        Ok(self.entries)
    }

    /// Lets the last node of each level that has too few entries share those of the one before it:
    /// from the root down, so that each of them has a neighbour below its parent.
    fn fill_up_last(&mut self) -> Result<()> {
        let counters = self.counters;
        for level in (0..self.height - 1).rev() {
            let top = self.height - 1;
            if level < top {
                self.bounds.reset();
                self.path.set(top, self.root, 0);
                self.walk(top, level, Toward::Last, Cause::Load)?;
                self.note_lean(level);
                self.rebalance_lean(Cause::Load)?;
            }
        }
        self.lower_root(Cause::Load)?;
        // Those count changes.
        self.counters = counters;
        Ok(())
    }

    /// Appends what is `sorted`, which must be above everything there is.
    fn load_entries(&mut self, sorted: &mut dyn Cursor, fill: u8) -> Result<()> {
        let (mut previous, mut key, mut whole) = (Vec::new(), Vec::new(), Vec::new());
        while let Some((next, value)) = sorted.next()? {
            let bytes = value.len();
            self.check_entry(next, bytes as usize)?;
            if self.entries > 0 && next <= previous.as_slice() {
                return Err(Error::NotSorted { position: self.entries });
            }
            key.clear();
            key.extend_from_slice(next);
            if self.is_long(key.len(), u64::from(bytes)) {
                let long = match value {
                    Value::Inline(value) => self.write_long(value)?,
                    Value::Long(_) => self.copy_long(sorted, bytes)?,
                };
                self.append_long(&key, long, (&previous, fill))?;
            } else {
                let value = match value {
                    Value::Inline(value) => value,
                    Value::Long(_) => {
                        whole.resize(bytes as usize, 0);
                        read_piece_of(sorted, bytes, 0, &mut whole)?;
                        &whole
                    }
                };
                self.append_entry(&key, Stored::inline(value), (&previous, fill))?;
            }
            core::mem::swap(&mut previous, &mut key);
        }
        Ok(())
    }

    /// Puts an entry behind all others, into the last leaf or a new one.
    pub(super) fn append_entry(
        &mut self,
        key: &[u8],
        value: Stored<'_>,
        last: (&[u8], u8),
    ) -> Result<()> {
        let (previous, fill) = last;
        let leaf = self.path.at(0).id;
        let codec = self.nodes.codecs.leaf;
        let node = self.nodes.node(&mut self.log, leaf, 0, Cause::Load)?;
        let count = node::count(node);
        let room = !codec.is_filled(node, fill);
        let edit = Edit::Insert { place: count, key, value };
        if room && self.nodes.edit(&mut self.log, (leaf, 0), edit)? {
            self.entries += 1;
            return Ok(());
        }
        self.check_tables(1)?;
        if !self.has_room_to_load()? {
            return Err(store::Error::Full { pages: u64::from(self.log.usable_pages() / 2) }.into());
        }
        self.reclaim_if_due()?;
        self.lend_for_put()?;
        self.separator.clear();
        self.separator.extend_from_slice(key);
        let left = NodeKey { prefix: &[], suffix: previous };
        self.nodes.codecs.shorten(&left, &mut self.separator);
        self.begin_right(0, fill)?;
        let leaf = self.path.at(0).id;
        let edit = Edit::Insert { place: 0, key, value };
        if !self.nodes.edit(&mut self.log, (leaf, 0), edit)? {
            return Err(damaged(Page(0), "an empty leaf has no room"));
        }
        self.entries += 1;
        Ok(())
    }

    /// Begins a node to the right of the last one at `level`; `self.separator` separates them.
    fn begin_right(&mut self, level: u8, fill: u8) -> Result<()> {
        if level + 1 == self.height {
            let separator = core::mem::take(&mut self.separator);
            self.grow(Cause::Load)?;
            self.separator = separator;
        }
        let parent = self.path.at(level + 1).id;
        let inner = self.nodes.codecs.inner;
        let node = self.nodes.node(&mut self.log, parent, level + 1, Cause::Load)?;
        if inner.is_filled(node, fill) || !inner.has_room(node, &self.separator, 4) {
            self.begin_right(level + 1, fill)?;
        }
        let parent = self.path.at(level + 1).id;
        let node = self.nodes.node(&mut self.log, parent, level + 1, Cause::Load)?;
        let place = node::count(node);
        let is_buffered = self.has_buffers(level);
        let right = self.nodes.create(&mut self.log, is_buffered, level)?;
        self.adopt(parent, level + 1, place, right)?;
        self.path.set(level + 1, parent, place);
        self.path.set(level, right, 0);
        self.room.levels[usize::from(level)] += 1;
        match right.buffer() {
            Some(number) => {
                let owner = self.buffers.owner(&self.log)?;
                let is_leaf = self.buffers_below(level).is_none();
                self.buffers.set_record(number, BufferRecord::new(owner, 1, is_leaf));
                Ok(())
            }
            None => self.count_nodes(level, 1),
        }
    }
}
