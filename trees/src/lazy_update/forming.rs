//! Forming groups: requests go down the list, as far as nodes of the tree were read.

use device::Cause;

use super::LazyUpdate;
use super::blocks::{BlockId, Room};
use super::waiting::Waiting;
use crate::btree::{Node, NodeSource};
use index::Result;
use store::LogicalPage;

impl LazyUpdate<'_> {
    /// Divides the requests of an index block among blocks of the next level, by the entries of its
    /// node (algorithm 3, lines 6 to 11). False if there is no room for so many blocks.
    pub(super) fn form(&mut self, id: BlockId, cause: Cause) -> Result<bool> {
        let block = *self.waiting.list.block(id);
        let node = self.store.node(block.at(), cause)?;
        if node.count() == 0 {
            return Err(self.store.damaged(block.page, "it has no children"));
        }
        self.counted.formed += 1;
        Ok(self.waiting.divide(id, &node))
    }

    /// Reads a leaf to learn what it has room for.
    pub(super) fn know(&mut self, id: BlockId) -> Result<()> {
        let block = *self.waiting.list.block(id);
        let is_variable = self.store.codecs.is_variable();
        let leaf = self.store.node(block.at(), Cause::Update)?;
        let mut room = room_of(&leaf, is_variable);
        if block.page == self.btree.root.id {
            room.less = u16::MAX - 1;
        }
        self.counted.sized += 1;
        self.waiting.list.know(id, room);
        Ok(())
    }

    /// What a lookup of `key` read is used to form groups (algorithm 4).
    pub(super) fn form_behind_lookup(&mut self, key: &[u8]) -> Result<()> {
        loop {
            let Some((id, _)) = self.waiting.list.find(key) else {
                return Ok(());
            };
            let block = *self.waiting.list.block(id);
            let is_done = block.is_group() || block.count == 0 || self.waiting.list.is_full();
            if is_done || !self.is_cached(block.page) {
                return Ok(());
            }
            if !self.form(id, Cause::Lookup)? || self.waiting.list.block(id).count > 0 {
                return Ok(());
            }
        }
    }

    fn is_cached(&self, page: LogicalPage) -> bool {
        self.store.file.peek(page).is_some()
    }
}

/// What a leaf has room for, in entries as long as its own.
pub(super) fn room_of(leaf: &Node<'_>, is_variable: bool) -> Room {
    let count = leaf.count();
    let used = leaf.codec.used_bytes(leaf.bytes);
    let capacity = match is_variable {
        false => leaf.codec.capacity(0, 0),
        true => count * leaf.codec.node_bytes() / used.max(1),
    };
    let short = |entries: usize| u16::try_from(entries).unwrap_or(u16::MAX - 1).min(u16::MAX - 1);
    let (more, less) = (capacity.saturating_sub(count), count.saturating_sub(capacity / 2));
    Room { more: short(more), less: short(less) }
}

impl Waiting {
    /// Divides the requests of the index block `id` by the entries of its `node`: goes through the
    /// ranges below the node until the block has none left.
    fn divide(&mut self, id: BlockId, node: &Node<'_>) -> bool {
        let Waiting { pool, list, spare, buffers, .. } = self;
        let [from, end, lower, key] = buffers;
        node.key(0).copy_to(from);
        let (mut range, mut next) = (list.ranges.at_or_before(from), pool.from(from));
        while let Some(place) = range.filter(|_| list.block(id).count > 0) {
            let Some(owner) = list.of_range(place).filter(|owner| list.is_within(*owner, id))
            else {
                break;
            };
            range = list.ranges.next(place);
            if owner != id {
                continue;
            }
            list.ranges.copy_key(place, from);
            let mut has_end = range.is_some_and(|behind| list.ranges.copy_key(behind, end));
            next = pool.skip_to(next, from);
            let first = next.and_then(|place| pool.requests.at(place));
            let Some((first, _)) = first.filter(|(it, _)| !has_end || it.compare(end).is_lt())
            else {
                continue;
            };
            first.copy_to(key);
            let child = node.search_child(key);
            node.key(child).copy_to(lower);
            if child + 1 < node.count() {
                node.key(child + 1).copy_to(end);
                has_end = true;
            }
            let mut change = (0, 0);
            while let Some(place) = next
                && let Some((it, kind, _)) = pool.request(place)
                && (!has_end || it.compare(end).is_lt())
            {
                change = (change.0 + 1, change.1 + if kind.is_put() { 1 } else { -1 });
                next = pool.requests.next(place);
            }
            let until = has_end.then_some(&**end);
            if !list.divide(spare, (id, node.child(child)), (lower, until), change) {
                return false;
            }
            // Ranges stand elsewhere now.
            range = if has_end { list.ranges.at_or_before(end) } else { None };
        }
        true
    }
}
