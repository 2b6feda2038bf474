//! Choosing the group that is committed next (sections 4.2 to 4.4.2).

use device::Cause;

use super::LazyUpdate;
use super::blocks::{BlockId, ROOT};
use super::list::List;
use super::order::Policy;
use crate::btree::NodeSource;
use index::Result;

impl LazyUpdate<'_> {
    /// The group block that the policy commits next; `None` if requests have no group, since there
    /// is no room for its block.
    ///
    /// With pruning (algorithm 5) an index block counts as a group of all its requests, and a group
    /// whose leaf is not known as one that is neither split nor merged: no group that comes of it
    /// can be better. So only what comes first is looked into, until that is a group that is known.
    pub(super) fn victim(&mut self) -> Result<Option<BlockId>> {
        let is_by_cost = self.waiting.list.policy() == Policy::CostBased;
        if !self.choices.is_pruning {
            self.form_all(is_by_cost)?;
        }
        loop {
            let Some(id) = self.waiting.list.first() else {
                return Ok(None);
            };
            let block = *self.waiting.list.block(id);
            if !block.is_group() {
                let is_full = self.waiting.list.is_full();
                if is_full && let Some(group) = self.any_group()? {
                    return Ok(Some(group));
                }
                if !self.form(id, Cause::Update)? {
                    return self.any_group();
                }
                if self.waiting.list.block(id).count > 0 {
                    // Never while the list is true to the tree.
                    self.waiting.begin_list(&self.store.codecs, self.btree.root);
                    return Ok(None);
                }
            } else if is_by_cost && !block.is_known() {
                self.know(id)?;
            } else {
                let list = &self.waiting.list;
                debug_assert!(list.comes_first(id), "another group is better by the policy");
                if self.choices.is_pruning {
                    let unknown = if is_by_cost { list.unknown } else { 0 };
                    self.counted.pruned += u64::from(list.unformed + unknown > 0);
                }
                self.counted.chosen += 1;
                return Ok(Some(id));
            }
        }
    }

    /// Forms all groups (algorithm 3), and learns what their leaves have room for if that counts.
    pub(super) fn form_all(&mut self, is_sizing: bool) -> Result<()> {
        // New blocks may stand before those that were divided, each on a level below: so all blocks
        // are visited once for each level at most, and not at all where nothing came.
        let mut is_done = false;
        while !is_done {
            let List { unformed, unknown, .. } = self.waiting.list;
            if unformed == 0 && (!is_sizing || unknown == 0) {
                return Ok(());
            }
            is_done = true;
            for place in 0..self.waiting.list.blocks.len() {
                let id = BlockId(place as u16);
                let block = *self.waiting.list.block(id);
                if !block.is_live || block.count == 0 {
                    continue;
                }
                if !block.is_group() {
                    // Without room for groups those that there are are sized, and no more.
                    if self.waiting.list.is_full() || !self.form(id, Cause::Update)? {
                        continue;
                    }
                    if self.waiting.list.block(id).count > 0 {
                        // Never while the list is true to the tree.
                        self.waiting.begin_list(&self.store.codecs, self.btree.root);
                        return Ok(());
                    }
                    is_done = false;
                } else if is_sizing && !block.is_known() {
                    self.know(id)?;
                }
            }
        }
        Ok(())
    }

    /// The best group among those that there are. Where the size of its leaf counts that is known:
    /// a group that is better by its bound alone is sized, and compared again.
    fn any_group(&mut self) -> Result<Option<BlockId>> {
        loop {
            let list = &self.waiting.list;
            let Some(id) = list.first_group() else {
                return Ok(None);
            };
            if list.policy() != Policy::CostBased || list.block(id).is_known() {
                return Ok(Some(id));
            }
            self.know(id)?;
        }
    }

    /// A key of the group's leaf goes to the first buffer; of that of the first request, if there
    /// is no group. False if nothing waits.
    pub(super) fn find_key(&mut self, group: Option<BlockId>) -> Result<bool> {
        let Self { store, waiting, .. } = self;
        let key = &mut waiting.buffers[0];
        let block = match group {
            Some(id) if id != ROOT || !waiting.list.block(id).is_group() => *waiting.list.block(id),
            // The leaf of the first request is as good as any other.
            _ => {
                let first = waiting.pool.requests.first();
                let request = first.and_then(|place| waiting.pool.requests.at(place));
                return Ok(request.map(|(first, _)| first.copy_to(key)).is_some());
            }
        };
        let node = store.node(block.at(), Cause::Update)?;
        // A leaf without neighbours may have lost all its entries.
        let is_found = match node.count() {
            0 => group.is_some_and(|id| waiting.list.copy_beginning(id, key)),
            _ => {
                node.key(0).copy_to(key);
                true
            }
        };
        match is_found {
            true => Ok(true),
            false => Err(store.damaged(block.page, "it is empty, and no range leads to it")),
        }
    }
}

#[cfg(test)]
mod tests;
