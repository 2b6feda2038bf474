//! Loading on a disk: what is left of a tree that was emptied goes first.

use device::Cause;
use store::OverflowValue;
use store::node::{self, Stored};

use super::super::LaTree;
use super::super::layout::NodeId;
use super::super::nodes::damaged;
use super::room::More;
use index::read_piece_of;
use index::{Cursor, Result};

impl LaTree<'_> {
    /// Gives back every page of the tree, which has no entries that could be found.
    pub(in super::super) fn drop_all(&mut self) -> Result<()> {
        let mut left = self.nodes.count(&self.log);
        self.drop_node((self.root, self.height - 1), &mut left)?;
        self.nodes.forget();
        self.buffers.forget();
        if let Some(disk) = self.log.disk_mut() {
            disk.drop_fragments(Cause::Load)?;
            disk.drop_state(Cause::Load)?;
        }
        (self.height, self.entries) = (1, 0);
        self.room.levels.fill(0);
        Ok(())
    }

    /// Gives a node back, after all that is below it; `left` nodes are not given back yet.
    fn drop_node(&mut self, (id, level): (NodeId, u8), left: &mut u64) -> Result<()> {
        // Damaged nodes may share children, and theirs theirs.
        let what = "it is a child of more than one node";
        *left = left.checked_sub(1).ok_or(damaged(self.nodes.page_of(id), what))?;
        let codec = self.nodes.at(level);
        let count = node::count(self.nodes.node(&mut self.log, id, level, Cause::Load)?);
        for place in 0..count {
            if level > 0 {
                let child = self.child(id, level, place, Cause::Load)?;
                self.drop_node((child, level - 1), left)?;
                continue;
            }
            let node = self.nodes.node(&mut self.log, id, level, Cause::Load)?;
            let long = codec.value(node, place).as_long();
            self.drop_value(long, Cause::Load)?;
        }
        self.nodes.free(&mut self.log, id)
    }

    pub(in super::super) fn append_long(
        &mut self,
        key: &[u8],
        long: OverflowValue,
        last: (&[u8], u8),
    ) -> Result<()> {
        let appended = self.append_entry(key, Stored::long(&long.to_bytes()), last);
        if appended.is_err() {
            let _ = self.drop_value(Some(long), Cause::Load);
        }
        appended
    }

    fn check_room_for_long(&mut self, bytes: u32) -> Result<()> {
        let full = store::Error::Full { pages: u64::from(self.log.pages()) };
        let Some(disk) = self.log.disk() else {
            return Err(full.into());
        };
        let pages = u64::from(disk.file.pages_for_long(bytes));
        match self.finds_room(More { puts: 1, pages, ..More::default() })? {
            true => Ok(()),
            false => Err(full.into()),
        }
    }

    pub(in super::super) fn write_long(&mut self, value: &[u8]) -> Result<OverflowValue> {
        self.check_room_for_long(value.len() as u32)?;
        match self.log.disk_mut() {
            Some(disk) => {
                disk.longest_value = disk.longest_value.max(value.len() as u32);
                Ok(disk.file.write_long(value, Cause::Load)?)
            }
            None => Err(store::Error::AdoptedTwice.into()),
        }
    }

    /// Copies a long value out of the entry at which `sorted` stands.
    pub(in super::super) fn copy_long(
        &mut self,
        sorted: &mut dyn Cursor,
        bytes: u32,
    ) -> Result<OverflowValue> {
        self.check_room_for_long(bytes)?;
        let Some(disk) = self.log.disk_mut() else {
            return Err(store::Error::AdoptedTwice.into());
        };
        disk.longest_value = disk.longest_value.max(bytes);
        let mut writer = disk.file.start_long(bytes, Cause::Load)?;
        // Nothing else needs the scratch node until the value is written.
        let scratch = &mut self.nodes.scratch;
        let mut copied = Ok(());
        while copied.is_ok() && writer.bytes_left() > 0 {
            let length = scratch.len().min(writer.bytes_left() as usize);
            let piece = &mut scratch[..length];
            let offset = bytes - writer.bytes_left();
            copied = read_piece_of(sorted, bytes, offset, piece)
                .and_then(|()| Ok(disk.file.append_long(&mut writer, piece, Cause::Load)?));
        }
        match copied {
            Ok(()) => Ok(disk.file.finish_long(writer)?),
            Err(error) => {
                let _ = disk.file.abandon_long(writer);
                Err(error)
            }
        }
    }
}
