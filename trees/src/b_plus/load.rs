//! Loading sorted entries, long values among them.

use alloc::vec::Vec;

use store::node::Stored;

use super::BPlus;
use index::read_piece_of;
use index::{Cursor, Error, Result, Value};

impl BPlus<'_> {
    pub(super) fn load_sorted(&mut self, sorted: &mut dyn Cursor, fill: u8) -> Result<u64> {
        if self.btree.entries > 0 {
            return Err(Error::NotEmpty);
        }
        self.btree.begin_load(&mut self.store)?;
        // What a cursor of this tree would take: while it is loaded it has none.
        let (mut key, mut whole) = (Vec::new(), Vec::new());
        while let Some((next, value)) = sorted.next()? {
            let bytes = value.len();
            self.store.codecs.check_entry(next, bytes as usize)?;
            if !self.btree.is_ascending(next) {
                return Err(Error::NotSorted { position: self.btree.entries });
            }
            let is_long = self.store.codecs.is_long(next.len(), bytes);
            if let Value::Inline(value) = value
                && !is_long
            {
                self.append_entry(next, Stored::inline(value), fill)?;
                continue;
            }
            key.clear();
            key.extend_from_slice(next);
            if is_long {
                self.append_long_entry(&key, sorted, bytes, fill)?;
            } else {
                // Another tree's nodes are smaller than this one's.
                whole.resize(bytes as usize, 0);
                read_piece_of(sorted, bytes, 0, &mut whole)?;
                self.append_entry(&key, Stored::inline(&whole), fill)?;
            }
        }
        Ok(self.btree.entries)
    }

    /// Appends an entry whose long value `sorted` hands out.
    fn append_long_entry(
        &mut self,
        key: &[u8],
        sorted: &mut dyn Cursor,
        bytes: u32,
        fill: u8,
    ) -> Result<()> {
        let pages = u64::from(self.store.file.pages_for_long(bytes));
        self.check_room(pages + self.pages_for_one())?;
        let value = self.load_long(sorted, bytes)?;
        self.longest_value = self.longest_value.max(bytes);
        let appended = self.append_entry(key, Stored::long(&value.to_bytes()), fill);
        if appended.is_err() {
            let _ = self.store.file.free_long(value, device::Cause::Load);
        }
        appended
    }

    fn pages_for_one(&self) -> u64 {
        self.store.codecs.pages_for_one(self.btree.height())
    }

    fn check_room(&mut self, pages: u64) -> Result<()> {
        if !self.store.file.has_pages(pages)? {
            let pages = u64::from(self.store.file.pages_most());
            return Err(store::Error::Full { pages }.into());
        }
        Ok(())
    }

    fn append_entry(&mut self, key: &[u8], value: Stored<'_>, fill: u8) -> Result<()> {
        if self.btree.append(&mut self.store, (key, value), fill)? {
            return Ok(());
        }
        self.check_room(self.pages_for_one())?;
        let leaf = self.btree.begin_leaf(&mut self.store, key, fill)?;
        if !self.btree.append(&mut self.store, (key, value), fill)? {
            let what = "it is empty and has no room";
            return Err(store::Error::DamagedPage { page: leaf, what }.into());
        }
        Ok(())
    }
}
