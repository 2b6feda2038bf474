//! Loading sorted entries, from the leaves up.
//!
//! Only the right edge of the tree is touched: the last node of every level takes entries until it
//! is filled, then a new one begins to its right. The last nodes may be left with little, as they
//! are when keys arrive in ascending order.

use device::Cause;
use store::{LogicalPage, node};

use super::BPlus;
use super::descent::Toward;
use crate::{Cursor, Error, Result, entry_size};

impl BPlus<'_> {
    pub(super) fn load_sorted(&mut self, sorted: &mut dyn Cursor, fill: u8) -> Result<u64> {
        if self.entries > 0 {
            return Err(Error::NotEmpty);
        }
        self.descend_toward(Toward::Last, Cause::Load)?;
        self.previous.clear();
        while let Some((key, value)) = sorted.next()? {
            self.nodes.check_key(key)?;
            self.nodes.check_value(value)?;
            entry_size(key.len() + value.len(), self.nodes.leaf.entry_bytes_most())?;
            if self.entries > 0 && key <= self.previous.as_slice() {
                return Err(Error::NotSorted { position: self.entries });
            }
            self.append_entry(key, value, fill)?;
            self.previous.clear();
            self.previous.extend_from_slice(key);
        }
        Ok(self.entries)
    }

    fn append_entry(&mut self, key: &[u8], value: &[u8], fill: u8) -> Result<()> {
        let codec = self.nodes.leaf;
        let leaf = self.path.at(0).page;
        let node = self.file.page_mut(leaf, Cause::Load, &self.nodes)?;
        let room = !codec.is_filled(node, fill);
        if room && codec.insert(node, node::count(node), key, value, &mut self.scratch) {
            self.entries += 1;
            return Ok(());
        }
        if self.pages_needed(1) > u64::from(self.file.pages_free()) {
            return Err(store::Error::Full { pages: u64::from(self.file.pages()) }.into());
        }
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
