//! Loading sorted entries, from the leaves up.
//!
//! Only the right edge of the tree is touched: the last node of every level takes entries until it
//! is filled, then a new one begins to its right. The last nodes may be left with little, as they
//! are when keys arrive in ascending order.

use alloc::vec::Vec;

use device::Cause;
use store::LogicalPage;
use store::node::{self, Stored};

use super::BPlus;
use super::descent::Toward;
use index::read_piece_of;
use index::{Cursor, Error, Result, Value};

impl BPlus<'_> {
    pub(super) fn load_sorted(&mut self, sorted: &mut dyn Cursor, fill: u8) -> Result<u64> {
        if self.entries > 0 {
            return Err(Error::NotEmpty);
        }
        self.descend_toward(Toward::Last, Cause::Load)?;
        self.previous.clear();
        // What a cursor of this tree would take: while it is loaded it has none.
        let (mut key, mut whole) = (Vec::new(), Vec::new());
        while let Some((next, value)) = sorted.next()? {
            let bytes = match value {
                Value::Whole(value) => value.len(),
                Value::Long(bytes) => bytes as usize,
            };
            self.nodes.check_entry(next, bytes)?;
            if self.entries > 0 && next <= self.previous.as_slice() {
                return Err(Error::NotSorted { position: self.entries });
            }
            let is_long = self.nodes.is_long(next.len(), bytes as u32);
            match value {
                Value::Whole(value) if !is_long => {
                    self.append_entry(next, Stored::inline(value), fill)?;
                    remember(&mut self.previous, next);
                    continue;
                }
                _ => remember(&mut key, next),
            }
            if is_long {
                self.append_long_entry(&key, sorted, bytes as u32, fill)?;
            } else {
                // Another tree's nodes are smaller than this one's.
                whole.resize(bytes, 0);
                read_piece_of(sorted, bytes as u32, 0, &mut whole)?;
                self.append_entry(&key, Stored::inline(&whole), fill)?;
            }
            remember(&mut self.previous, &key);
        }
        Ok(self.entries)
    }

    /// Appends an entry whose long value `sorted` hands out.
    fn append_long_entry(
        &mut self,
        key: &[u8],
        sorted: &mut dyn Cursor,
        bytes: u32,
        fill: u8,
    ) -> Result<()> {
        let beside = self.nodes.pages_for_one(self.height);
        self.check_room(u64::from(self.file.pages_for_long(bytes)) + beside)?;
        let value = self.load_long(sorted, bytes)?;
        self.longest_value = self.longest_value.max(bytes);
        let appended = self.append_entry(key, Stored::long(&value.to_bytes()), fill);
        if appended.is_err() {
            let _ = self.file.free_long(value, Cause::Load);
        }
        appended
    }

    fn check_room(&mut self, pages: u64) -> Result<()> {
        if !self.file.has_pages(pages)? {
            return Err(store::Error::Full { pages: u64::from(self.file.pages_most()) }.into());
        }
        Ok(())
    }

    fn append_entry(&mut self, key: &[u8], value: Stored<'_>, fill: u8) -> Result<()> {
        let codec = self.nodes.leaf;
        let leaf = self.path.at(0).page;
        let node = self.file.page_mut(leaf, Cause::Load, &self.nodes)?;
        let room = !codec.is_filled(node, fill);
        if room && codec.insert(node, node::count(node), key, value, &mut self.scratch) {
            self.entries += 1;
            return Ok(());
        }
        self.check_room(self.nodes.pages_for_one(self.height))?;
        self.separator.clear();
        self.separator.extend_from_slice(key);
        let left = node::NodeKey { prefix: &[], suffix: &self.previous };
        self.nodes.shorten(&left, &mut self.separator);
        let leaf = self.begin_right(0, fill)?;
        let node = self.file.page_mut(leaf, Cause::Load, &self.nodes)?;
        if !codec.insert(node, 0, key, value, &mut self.scratch) {
            let what = "it is empty and has no room";
            return Err(store::Error::DamagedPage { page: leaf, what }.into());
        }
        self.entries += 1;
        Ok(())
    }

    /// Begins a node to the right of the last one at `level`; `self.separator` separates them.
    fn begin_right(&mut self, level: u8, fill: u8) -> Result<LogicalPage> {
        if level + 1 == self.height {
            let separator = core::mem::take(&mut self.separator);
            self.grow()?;
            self.separator = separator;
        }
        let mut parent = self.path.at(level + 1).page;
        let node = self.file.page(parent, Cause::Load, &self.nodes)?;
        let inner = &self.nodes.inner;
        if inner.is_filled(node, fill) || !inner.has_room(node, &self.separator, 4) {
            parent = self.begin_right(level + 1, fill)?;
        }
        let right = self.file.allocate(Cause::Load)?;
        self.nodes.at(level).initialise(self.file.fresh(right)?, level);
        let node = self.file.page(parent, Cause::Load, &self.nodes)?;
        let place = node::count(node);
        self.adopt(parent, place, right)?;
        self.path.set(level + 1, parent, place);
        self.path.set(level, right, 0);
        Ok(right)
    }
}

/// Lets `kept` be `key`.
fn remember(kept: &mut Vec<u8>, key: &[u8]) {
    kept.clear();
    kept.extend_from_slice(key);
}
