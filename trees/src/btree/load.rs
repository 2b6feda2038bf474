//! Loading sorted entries, from the leaves up.
//!
//! Only the right edge of the tree is touched: the last node of every level takes entries until it
//! is filled, then a new one begins to its right. The last nodes may be left with little, as they
//! are when keys arrive in ascending order.

use device::Cause;
use index::{Cursor, Result, read_piece_of};
use store::node::{NodeKey, Stored};
use store::{OverflowValue, PageFile};

use super::{At, BTree, Edit, NodeId, NodeStore, Toward};

/// Copies a long value out of the entry at which `sorted` stands, through `buffer`.
pub(crate) fn copy_long(
    file: &mut PageFile<'_>,
    sorted: &mut dyn Cursor,
    bytes: u32,
    buffer: &mut [u8],
) -> Result<OverflowValue> {
    let mut writer = file.start_long(bytes, Cause::Load)?;
    let mut copied = Ok(());
    while copied.is_ok() && writer.bytes_left() > 0 {
        let length = buffer.len().min(writer.bytes_left() as usize);
        let piece = &mut buffer[..length];
        let offset = bytes - writer.bytes_left();
        copied = read_piece_of(sorted, bytes, offset, piece)
            .and_then(|()| Ok(file.append_long(&mut writer, piece, Cause::Load)?));
    }
    match copied {
        Ok(()) => Ok(file.finish_long(writer)?),
        Err(error) => {
            let _ = file.abandon_long(writer);
            Err(error)
        }
    }
}

impl<I: NodeId> BTree<I> {
    /// Loading begins, of an empty tree.
    pub(crate) fn begin_load<S: NodeStore<Id = I>>(&mut self, store: &mut S) -> Result<()> {
        self.previous.clear();
        self.seek(store, Toward::Last, Cause::Load).map(drop)
    }

    /// True if `key` lies behind all that was loaded.
    pub(crate) fn is_ascending(&self, key: &[u8]) -> bool {
        self.entries == 0 || key > self.previous.as_slice()
    }

    /// Appends an entry behind all others, if its leaf is not filled yet and has room.
    pub(crate) fn append<S: NodeStore<Id = I>>(
        &mut self,
        store: &mut S,
        (key, value): (&[u8], Stored<'_>),
        fill: u8,
    ) -> Result<bool> {
        let leaf = At::leaf(self.path.at(0).id);
        let node = store.node(leaf, Cause::Load)?;
        let place = node.count();
        let is_filled = node.codec.is_filled(node.bytes, fill);
        let edit = Edit::Insert { place, key, value };
        let is_appended = !is_filled && store.edit(leaf, edit, Cause::Load)?;
        if is_appended {
            self.entries += 1;
            self.previous.clear();
            self.previous.extend_from_slice(key);
        }
        Ok(is_appended)
    }

    /// Begins a leaf to the right of the last one, for `key` and those behind it.
    pub(crate) fn begin_leaf<S: NodeStore<Id = I>>(
        &mut self,
        store: &mut S,
        key: &[u8],
        fill: u8,
    ) -> Result<I> {
        self.separator.clear();
        self.separator.extend_from_slice(key);
        let left = NodeKey { prefix: &[], suffix: &self.previous };
        self.codecs.shorten(&left, &mut self.separator);
        self.begin_right(store, 0, fill)
    }

    /// Begins a node to the right of the last one at `level`; `self.separator` separates them.
    fn begin_right<S: NodeStore<Id = I>>(
        &mut self,
        store: &mut S,
        level: u8,
        fill: u8,
    ) -> Result<I> {
        if level == self.root.level {
            let separator = core::mem::take(&mut self.separator);
            let grown = self.grow(store, Cause::Load);
            self.separator = separator;
            grown?;
        }
        let mut parent = At { id: self.path.at(level + 1).id, level: level + 1 };
        let node = store.node(parent, Cause::Load)?;
        let codec = node.codec;
        if codec.is_filled(node.bytes, fill) || !codec.has_room(node.bytes, &self.separator, 4) {
            parent.id = self.begin_right(store, level + 1, fill)?;
        }
        let right = store.create(level, Cause::Load)?;
        let place = store.node(parent, Cause::Load)?.count();
        self.insert_child(store, parent, place, right, Cause::Load)?;
        self.path.set(level + 1, parent.id, place);
        self.path.set(level, right, 0);
        Ok(right)
    }
}
