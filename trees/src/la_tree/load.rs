//! Loading sorted entries, from the leaves up.
//!
//! Only the right edge of the tree is touched: the last node of every level takes entries until it
//! is filled, then a new one begins to its right. In the end the last node of a level may have too
//! few: it shares the entries of the one before it, or is merged with that.

use alloc::vec::Vec;

use device::{Cause, Page};
use store::OverflowValue;
use store::node::{NodeKey, Stored};

use super::LaTree;
use super::bare_tree::{QUARTER, Toward};
use super::census::More;
use super::layout::damaged;
use super::scan::Scan;
use crate::btree::{Edit, copy_long};
use index::read_piece_of;
use index::{Cursor, Error, KeyRange, Result, Value};

impl LaTree<'_> {
    pub(super) fn load_sorted(&mut self, sorted: &mut dyn Cursor, fill: u8) -> Result<u64> {
        let fill = fill.clamp(QUARTER, 100);
        if self.bare.log.is_disk() {
            if Scan::new(self, KeyRange::ALL)?.next()?.is_some() {
                return Err(Error::NotEmpty);
            }
            self.is_poisoned = true;
            let mut left = self.bare.count();
            self.bare.drop_node(self.bare.root, self.bare.height - 1, &mut left)?;
            if let Some(disk) = self.bare.log.disk_mut() {
                disk.drop_fragments(Cause::Load)?;
                disk.drop_state(Cause::Load)?;
            }
        } else {
            self.is_poisoned = true;
            self.empty_all(Cause::Load)?;
            let is_emptied = self.buffers.pending == [0; 2];
            if !is_emptied || self.bare.entries > 0 {
                self.is_poisoned = false;
                return Err(if is_emptied { Error::NotEmpty } else { self.refusal() });
            }
        }
        // What is left of a tree that was emptied has separators that are in the way.
        self.bare.forget();
        self.buffers.forget();
        self.plant()?;
        self.bare.bounds.reset();
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
        self.bare.nodes.observed = self.bare.nodes.programmed;
        loaded?;
        Ok(self.bare.entries)
    }

    /// Lets the last node of each level that has too few entries share those of the one before it:
    /// from the root down, so that each of them has a neighbour below its parent.
    fn fill_up_last(&mut self) -> Result<()> {
        let counters = self.counters;
        for level in (0..self.bare.height - 1).rev() {
            // Rebalancing never lowers the root.
            let top = self.bare.height - 1;
            self.bare.begin();
            self.bare.walk(top, level, Toward::Last, Cause::Load)?;
            self.note_lean(level);
            self.rebalance_lean(Cause::Load)?;
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
            self.limits.check_entry(next, bytes as usize)?;
            if self.bare.entries > 0 && next <= previous.as_slice() {
                return Err(Error::NotSorted { position: self.bare.entries });
            }
            key.clear();
            key.extend_from_slice(next);
            if self.limits.is_long(key.len(), u64::from(bytes)) {
                self.check_room_for_long(bytes)?;
                let long = self.write_long(sorted, bytes)?;
                let appended =
                    self.append_entry(&key, Stored::long(&long.to_bytes()), (&previous, fill));
                if appended.is_err() {
                    let _ = self.bare.drop_value(Some(long), Cause::Load);
                }
                appended?;
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

    fn check_room_for_long(&mut self, bytes: u32) -> Result<()> {
        let disk = self.bare.log.disk();
        let pages = disk.map_or(0, |disk| u64::from(disk.file.pages_for_long(bytes)));
        match self.finds_room(More { puts: 1, pages, ..More::default() })? {
            true => Ok(()),
            false => Err(self.refusal()),
        }
    }

    /// Copies a long value out of the entry at which `sorted` stands.
    fn write_long(&mut self, sorted: &mut dyn Cursor, bytes: u32) -> Result<OverflowValue> {
        let Some(disk) = self.bare.log.disk_mut() else {
            return Err(store::Error::AdoptedTwice.into());
        };
        disk.longest_value = disk.longest_value.max(bytes);
        // Nothing else needs the scratch node until the value is written.
        copy_long(&mut disk.file, sorted, bytes, &mut self.bare.nodes.scratch)
    }

    /// Puts an entry behind all others, into the last leaf or a new one.
    fn append_entry(&mut self, key: &[u8], value: Stored<'_>, last: (&[u8], u8)) -> Result<()> {
        let (previous, fill) = last;
        let leaf = self.bare.path.at(0).id;
        let node = self.bare.node_at(leaf, 0, Cause::Load)?;
        let is_filled = node.codec.is_filled(node.bytes, fill);
        let edit = Edit::Insert { place: node.count(), key, value };
        if !is_filled && self.bare.edit((leaf, 0), edit)? {
            self.bare.entries += 1;
            return Ok(());
        }
        self.check_tables(1)?;
        if !self.has_room_to_load()? {
            return Err(
                store::Error::Full { pages: u64::from(self.bare.log.usable_pages() / 2) }.into()
            );
        }
        self.reclaim_if_due()?;
        self.lend_for_put()?;
        self.bare.separator.clear();
        self.bare.separator.extend_from_slice(key);
        let left = NodeKey { prefix: &[], suffix: previous };
        self.bare.nodes.codecs.shorten(&left, &mut self.bare.separator);
        self.begin_right(0, fill)?;
        let leaf = self.bare.path.at(0).id;
        let edit = Edit::Insert { place: 0, key, value };
        if !self.bare.edit((leaf, 0), edit)? {
            return Err(damaged(Page(0), "an empty leaf has no room"));
        }
        self.bare.entries += 1;
        Ok(())
    }

    /// True if one more leaf finds room.
    fn has_room_to_load(&mut self) -> Result<bool> {
        match self.bare.log.is_disk() {
            true => self.finds_room(More { puts: 1, ..More::default() }),
            false => Ok(self.census().has_room_to_load()),
        }
    }

    /// Begins a node to the right of the last one at `level`; `self.bare.separator` separates them.
    fn begin_right(&mut self, level: u8, fill: u8) -> Result<()> {
        if level + 1 == self.bare.height {
            let separator = core::mem::take(&mut self.bare.separator);
            self.grow(Cause::Load)?;
            self.bare.separator = separator;
        }
        let right = match self.bare.begin_right(level, fill)? {
            Some(right) => right,
            None => {
                self.begin_right(level + 1, fill)?;
                let what = "an empty node has no room";
                self.bare.begin_right(level, fill)?.ok_or(damaged(Page(0), what))?
            }
        };
        match right.buffer() {
            Some(_) => self.begin_buffer(right, self.bare.buffers_below(level).is_none()),
            None => self.count_nodes(level, 1),
        }
    }
}
