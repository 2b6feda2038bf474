//! Committing a group: all its requests as one change of its leaf.

use super::LazyUpdate;
use super::blocks::BlockId;
use super::make::SuperGroups;
use super::pool::Kind;
use crate::btree::{NodeSource, Reshaped};
use index::Result;
use store::{LogicalPage, node};

impl LazyUpdate<'_> {
    /// Commits the group that the policy chooses, and those that are chosen with it as far as there
    /// is room for their images; the others are the next.
    pub(super) fn commit_next(&mut self) -> Result<()> {
        let mut victim = None;
        if self.waiting.list.chosen == 0 {
            victim = match self.choices.super_groups {
                SuperGroups::Second => self.victim_of_super_groups()?,
                _ => self.victim()?,
            };
            if let Some(id) = victim {
                self.choose_super_group(id)?;
            }
        }
        let first = self.next_of_super_group().or(victim);
        self.counted.commits += 1;
        self.commit(first)?;
        while self.has_images_beside_batch()
            && let Some(next) = self.next_of_super_group()
        {
            self.counted.commits += 1;
            self.counted.together += 1;
            self.commit(Some(next))?;
        }
        Ok(())
    }

    /// Commits a group; without one, the first request and those that belong to its leaf.
    fn commit(&mut self, group: Option<BlockId>) -> Result<()> {
        for group in [group, None] {
            match self.find_key(group) {
                Ok(true) if self.commit_here()? => return Ok(()),
                Ok(_) if self.waiting.is_empty() => return Ok(()),
                Ok(_) => {}
                Err(error) => {
                    self.follow(false);
                    return Err(error);
                }
            }
        }
        Err(self.store.damaged(self.btree.root.id, "requests belong to no leaf below it"))
    }

    /// As [`commit_leaf`](Self::commit_leaf), with the list kept true to the tree; false if nothing
    /// was committed.
    fn commit_here(&mut self) -> Result<bool> {
        let before = self.waiting.pool.len();
        let committed = self.commit_leaf();
        let is_done = self.waiting.pool.len() < before;
        // Where nothing came of it the list is not true to the tree: that is damaged.
        self.follow(committed.is_ok() && is_done);
        committed.map(|()| is_done)
    }

    /// Commits the requests that belong to the leaf of the key in the first buffer, as many as may
    /// be changed at a time: deletes first, so that a leaf is split only if it has to be, and one
    /// rebalancing at the end.
    fn commit_leaf(&mut self) -> Result<()> {
        self.btree.reshaped = Reshaped::NONE;
        let [key, end, begin, _] = &mut self.waiting.buffers;
        let (leaf, has_end) = self.btree.find_range(&mut self.store, key, (begin, end))?;
        let changed = self.change_leaf(leaf, has_end);
        // Broken off, it may leave a leaf that is not mended.
        self.btree.is_poisoned |= changed.is_err();
        changed
    }

    /// Commits the requests of `leaf`, which is the last of the index unless it `has_end`.
    fn change_leaf(&mut self, leaf: LogicalPage, has_end: bool) -> Result<()> {
        let (mut removed, mut is_split) = (false, false);
        let mut bytes_left = self.commit_bytes();
        for is_put in [false, true] {
            let [from, _, begin, _] = &mut self.waiting.buffers;
            from.clear();
            from.extend_from_slice(begin);
            while let Some(kind) = self.next_request(has_end, is_put) {
                let [key, _, _, value] = &self.waiting.buffers;
                if kind.is_put() {
                    let bytes = key.len() + value.len();
                    if bytes_left < bytes {
                        break;
                    }
                    bytes_left -= bytes;
                    let (store, entry) = (&mut self.store, (&**key, &**value));
                    if is_split || !self.btree.put_in(store, leaf, entry)? {
                        is_split = true;
                        self.btree.put(store, key, node::Stored::inline(value))?;
                    }
                } else {
                    removed |= self.btree.remove_from(&mut self.store, leaf, key)?;
                }
                self.counted.committed += 1;
                let key = core::mem::take(&mut self.waiting.buffers[0]);
                self.waiting.remove(&key);
                self.waiting.buffers[0] = key;
            }
        }
        if removed {
            self.btree.mend(&mut self.store, &self.waiting.buffers[2])?;
        }
        let begin = core::mem::take(&mut self.waiting.buffers[2]);
        self.waiting.forget_room(&begin);
        self.waiting.buffers[2] = begin;
        Ok(())
    }

    /// The next put, or delete, from the key in the first buffer on, which gets its key; its value
    /// goes to the last. None from the key in the second buffer on, if that is an end.
    fn next_request(&mut self, has_end: bool, is_put: bool) -> Option<Kind> {
        let super::waiting::Waiting { pool, buffers: [from, end, _, value], .. } =
            &mut self.waiting;
        let mut place = pool.from(from)?;
        loop {
            let (key, kind, stored) = pool.request(place)?;
            if has_end && key.compare(end).is_ge() {
                return None;
            }
            if kind.is_put() == is_put {
                key.copy_to(from);
                value.clear();
                value.extend_from_slice(stored);
                return Some(kind);
            }
            place = pool.requests.next(place)?;
        }
    }

    /// Keeps the list true to the tree, after changes that were whole or not.
    pub(super) fn follow(&mut self, is_whole: bool) {
        let reshaped = core::mem::replace(&mut self.btree.reshaped, Reshaped::NONE);
        self.counted.splits += u64::from(reshaped.splits);
        self.counted.merges += u64::from(reshaped.merges);
        self.counted.shifts += u64::from(reshaped.shifts);
        if self.waiting.division.nodes == 0 {
            return;
        }
        let root = self.waiting.list.block(super::blocks::ROOT).at();
        let mut is_true = is_whole && root == self.btree.root;
        match reshaped.nodes() {
            Some(nodes) if is_true => {
                for node in nodes {
                    is_true &= self.waiting.list.dissolve(&mut self.waiting.spare, node);
                }
            }
            _ => is_true = false,
        }
        if !is_true {
            self.waiting.begin_list(&self.store.codecs, self.btree.root);
        }
    }

    /// Commits the requests of a dirty leaf that is about to leave the cache, if it has some: that
    /// leaf is written anyway (section 4.4.2.2). False if there is none.
    pub(super) fn ride_along(&mut self) -> Result<bool> {
        if self.waiting.is_empty() {
            return Ok(false);
        }
        // As many as an update brings into the cache: a path when a victim is looked for, and the
        // leaf's when it is committed.
        let leaving = 2 * usize::from(self.btree.height());
        let (store, waiting) = (&self.store, &mut self.waiting);
        let leaf = &store.codecs.leaf;
        let found = store
            .file
            .leaving(leaving)
            .find_map(|(page, bytes)| waiting.has_requests_of(leaf, bytes).then_some(page));
        let Some(page) = found else {
            return Ok(false);
        };
        let block = self.waiting.block_of(&self.waiting.buffers[0]);
        let is_alone = block.is_some_and(|(_, block)| !block.is_group());
        if !self.commit_here()? {
            return Ok(false);
        }
        self.counted.rides += 1;
        self.counted.rides_alone += u64::from(is_alone);
        // It leaves as it was about to, and is written once.
        self.store.file.let_leave(page);
        Ok(true)
    }

    /// How a put of `value`, or a delete, of `key` waits.
    pub(super) fn kind_of(&self, key: &[u8], value: Option<&[u8]>) -> Kind {
        match value {
            Some(_) if self.is_absent(key) => Kind::FreshPut,
            Some(_) => Kind::Put,
            None => Kind::Delete,
        }
    }

    /// True if the tree is known not to hold `key`, without reading anything.
    fn is_absent(&self, key: &[u8]) -> bool {
        let Some((_, block)) = self.waiting.block_of(key).filter(|(_, block)| block.is_group())
        else {
            return false;
        };
        let leaf = &self.store.codecs.leaf;
        let bytes = self.store.file.peek(block.page);
        let bytes = bytes.filter(|bytes| node::level(bytes) == 0 && leaf.is_kind(bytes));
        bytes.is_some_and(|bytes| leaf.search(bytes, key).is_err())
    }

    /// Makes the first request alone.
    pub(super) fn make_first_at_once(&mut self) -> Result<()> {
        let Some(place) = self.waiting.pool.requests.first() else {
            return Ok(());
        };
        let [mut key, mut value] = [0, 3].map(|at| core::mem::take(&mut self.waiting.buffers[at]));
        let mut is_put = false;
        if let Some((first, kind, stored)) = self.waiting.pool.request(place) {
            first.copy_to(&mut key);
            value.clear();
            value.extend_from_slice(stored);
            is_put = kind.is_put();
        }
        let made = self.make_at_once(&key, is_put.then_some(&value));
        (self.waiting.buffers[0], self.waiting.buffers[3]) = (key, value);
        made
    }

    /// Makes an update at once, whatever waits for its key.
    pub(super) fn make_at_once(&mut self, key: &[u8], value: Option<&[u8]>) -> Result<()> {
        self.waiting.remove(key);
        let made = match value {
            Some(value) => self.btree.put(&mut self.store, key, node::Stored::inline(value)),
            None => self.btree.delete(&mut self.store, key),
        };
        self.waiting.forget_room(key);
        self.follow(made.is_ok());
        made.map(drop)
    }
}
