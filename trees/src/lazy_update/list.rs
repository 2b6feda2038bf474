//! The lazy-update list: which requests of the pool belong to which node of the tree.
//!
//! The paper's orthogonal list is a tree of blocks, each with its range of keys, its children and a
//! list of requests. Here the blocks name their parents, and one sorted list has where the range of
//! which block begins: a key belongs to the lowest block whose range holds it. So a request is
//! found by two binary searches and not by going through lists of children, and no block has a
//! list of requests: they are those of the pool between two keys.
//!
//! Invariants
//! - The first range begins with the lowest key. Two neighbouring ranges are of different blocks.
//! - A group block has one range, that of its leaf. The ranges of an index block and of all blocks
//!   below it make up that of its inner node.
//! - A block has requests or children, the root's aside.
//! - Nothing of it is needed to read or to change the tree: it may be begun anew at any time.

use alloc::vec;
use alloc::vec::Vec;

use store::LogicalPage;
use store::node::Codec;

use super::blocks::{Block, BlockId, Change, NONE, ROOT, Room};
use super::order::{Order, Policy};
use crate::btree::{At, Place, Sorted, Spare};

const NO_BLOCK: Block = Block::FREE;

/// True if `id` is `ancestor` or below it.
fn is_within(blocks: &[Block], mut id: BlockId, ancestor: BlockId) -> bool {
    let level = |id: BlockId| blocks.get(id.place()).map_or(u8::MAX, |block| block.level);
    // Levels rise toward the root, so this ends.
    while id != ancestor {
        if id == ROOT || level(id) >= level(ancestor) {
            return false;
        }
        id = blocks[id.place()].parent;
    }
    true
}

/// The list.
#[derive(Debug)]
pub(super) struct List {
    policy: Policy,
    pub(super) ranges: Sorted,
    pub(super) blocks: Vec<Block>,
    /// The first block that is free; others follow by `place`.
    free: BlockId,
    order: Order,
    clock: u32,
    /// Index blocks with requests, and groups whose leaf's size is not known.
    pub(super) unformed: usize,
    pub(super) unknown: usize,
    /// Blocks that are chosen.
    pub(super) chosen: usize,
    /// Blocks that have to get free before there is room for more than a few: else each division
    /// would read a node for the one block that a commit frees.
    wanted: usize,
}

/// The part of the blocks that is wanted where one was missing.
const WANTED_PART: usize = 16;

impl List {
    pub(super) fn new(policy: Policy, codec: Codec, (nodes, blocks): (usize, usize)) -> Self {
        List {
            policy,
            ranges: Sorted::new((codec, false), nodes),
            blocks: vec![Block::FREE; blocks],
            free: NONE,
            order: Order::new(policy, blocks),
            clock: 0,
            unformed: 0,
            unknown: 0,
            chosen: 0,
            wanted: 0,
        }
    }

    pub(super) const fn policy(&self) -> Policy {
        self.policy
    }

    /// Begins anew: all requests, of which `change` tells, are the root's. False if there is no
    /// room even for that.
    pub(super) fn reset(
        &mut self,
        spare: &mut Spare,
        (lowest, root): (&[u8], At<LogicalPage>),
        change: Change,
    ) -> bool {
        self.ranges.clear(spare);
        self.blocks.fill(Block::FREE);
        self.order.clear();
        (self.unformed, self.unknown, self.chosen, self.wanted) = (0, 0, 0, 0);
        for place in 1..self.blocks.len() {
            self.blocks[place].place = place as u16 + 1;
        }
        if let Some(last) = self.blocks.last_mut() {
            last.place = NONE.0;
        }
        self.free = if self.blocks.len() > 1 { BlockId(1) } else { NONE };
        let Some(block) = self.blocks.first_mut() else {
            return true;
        };
        *block = Block { page: root.id, level: root.level, is_live: true, ..Block::FREE };
        let has_room = self.ranges.insert(spare, lowest, &ROOT.to_bytes());
        self.change(ROOT, change);
        has_room
    }

    pub(super) fn block(&self, id: BlockId) -> &Block {
        self.blocks.get(id.place()).unwrap_or(&NO_BLOCK)
    }

    /// True if there is no room to form groups.
    pub(super) fn is_full(&self) -> bool {
        self.free == NONE || self.wanted > 0
    }

    /// Blocks that exist.
    pub(super) fn live(&self) -> impl Iterator<Item = (BlockId, &Block)> {
        let numbered = self.blocks.iter().enumerate();
        numbered.filter(|(_, it)| it.is_live).map(|(place, it)| (BlockId(place as u16), it))
    }

    /// Where the first range of a block begins; false if it has none. All ranges are looked at.
    pub(super) fn copy_beginning(&self, id: BlockId, key: &mut Vec<u8>) -> bool {
        let mut next = self.ranges.first();
        while let Some(place) = next {
            if self.of_range(place) == Some(id) {
                self.ranges.copy_key(place, key);
                return true;
            }
            next = self.ranges.next(place);
        }
        false
    }

    /// The block that `key` belongs to, and where its range begins.
    #[inline]
    pub(super) fn find(&self, key: &[u8]) -> Option<(BlockId, Place)> {
        let place = self.ranges.at_or_before(key)?;
        Some((self.of_range(place)?, place))
    }

    /// The block of the range at `place`.
    pub(super) fn of_range(&self, place: Place) -> Option<BlockId> {
        let (_, value) = self.ranges.at(place)?;
        let id = BlockId::from_bytes(*value.first_chunk()?);
        self.blocks.get(id.place()).filter(|block| block.is_live).map(|_| id)
    }

    /// True if `id` is `ancestor` or below it.
    pub(super) fn is_within(&self, id: BlockId, ancestor: BlockId) -> bool {
        is_within(&self.blocks, id, ancestor)
    }

    /// The block of a node, if there is one. It is looked for among all: only rebalancing asks.
    pub(super) fn of_node(&self, node: At<LogicalPage>) -> Option<BlockId> {
        self.live().find(|(_, block)| block.at() == node).map(|(id, _)| id)
    }

    /// The block that comes first as a victim, or has to be looked into for that.
    pub(super) fn first(&self) -> Option<BlockId> {
        self.order.first()
    }

    /// True if no block with requests comes before this one.
    pub(super) fn comes_first(&self, id: BlockId) -> bool {
        let asked = self.live().filter(|(_, block)| block.count > 0);
        let mut compared = asked.map(|(_, other)| self.policy.compare(self.block(id), other));
        compared.all(core::cmp::Ordering::is_le)
    }

    /// The group that comes first among those that there are.
    pub(super) fn first_group(&self) -> Option<BlockId> {
        self.order.first_group(&self.blocks)
    }

    /// Lets `edit` change what the rank of a block follows from.
    fn edit(&mut self, id: BlockId, edit: impl FnOnce(&mut Block)) {
        let place = id.place();
        let before = self.blocks[place];
        edit(&mut self.blocks[place]);
        let after = self.blocks[place];
        match (before.count > 0, after.count > 0) {
            (false, false) => {}
            (false, true) => self.order.link(&mut self.blocks, id),
            (true, false) => self.order.unlink(&mut self.blocks, id),
            (true, true) => self.order.settle(&mut self.blocks, id),
        }
        if before.count > 0 {
            self.count(&before, usize::wrapping_sub);
        }
        if after.count > 0 {
            self.count(&after, usize::wrapping_add);
        }
        if after.is_group()
            && let Some(parent) = self.blocks.get_mut(after.parent.place())
        {
            parent.room = Room::UNKNOWN;
        }
    }

    fn count(&mut self, block: &Block, add: impl Fn(usize, usize) -> usize) {
        self.unformed = add(self.unformed, usize::from(!block.is_group()));
        self.unknown = add(self.unknown, usize::from(block.is_group() && !block.is_known()));
    }

    fn change(&mut self, id: BlockId, change: Change) {
        self.edit(id, |block| block.change(change));
    }

    /// A request for `key` came, and changed so much.
    pub(super) fn hit(&mut self, key: &[u8], change: Change) {
        let Some((id, _)) = self.find(key) else {
            return;
        };
        if self.clock == u32::MAX {
            // The order by age is lost, and nothing else.
            self.clock = 0;
            self.blocks.iter_mut().for_each(|block| block.hit = 0);
            self.order.clear();
            for place in 0..self.blocks.len() {
                if self.blocks[place].count > 0 {
                    self.order.link(&mut self.blocks, BlockId(place as u16));
                }
            }
        }
        self.clock += 1;
        let (now, is_lasting) = (self.clock, self.policy == Policy::Fifo);
        self.edit(id, |block| {
            if !is_lasting || block.count == 0 {
                block.hit = now;
            }
            block.change(change);
        });
    }

    /// A request for `key` is gone, and changed so much.
    pub(super) fn forget(&mut self, spare: &mut Spare, key: &[u8], change: Change) {
        if let Some((id, _)) = self.find(key) {
            self.change(id, change);
            self.tidy(spare, key, id);
        }
    }

    /// Removes a block that has neither requests nor children, and its parent if that then has
    /// none; a range of it holds `key`.
    fn tidy(&mut self, spare: &mut Spare, key: &[u8], mut id: BlockId) {
        while id != ROOT {
            let block = *self.block(id);
            if block.count > 0 || block.children > 0 {
                return;
            }
            let Some((_, place)) = self.find(key) else {
                return;
            };
            self.ranges.set_value(spare, place, &block.parent.to_bytes());
            self.unite_around(spare, key);
            self.release(id);
            id = block.parent;
        }
    }

    /// Makes one of the range that holds `key` and its neighbours, where they are of one block.
    fn unite_around(&mut self, spare: &mut Spare, key: &[u8]) {
        for is_behind in [true, false] {
            let Some(here) = self.ranges.at_or_before(key) else {
                return;
            };
            let other = match is_behind {
                true => self.ranges.next(here),
                false => self.ranges.before(here),
            };
            let Some(other) = other else { continue };
            if self.of_range(other) == self.of_range(here) {
                self.ranges.remove(spare, if is_behind { other } else { here });
            }
        }
    }

    /// Takes a block away, which has no requests.
    fn release(&mut self, id: BlockId) {
        let parent = self.block(id).parent;
        let before = core::mem::replace(&mut self.blocks[id.place()], Block::FREE);
        self.chosen -= usize::from(before.is_chosen);
        debug_assert!(before.count == 0 && before.is_live, "it has requests");
        self.blocks[id.place()].place = self.free.0;
        self.free = id;
        self.wanted = self.wanted.saturating_sub(1);
        if let Some(parent) = self.blocks.get_mut(parent.place()) {
            parent.children = parent.children.saturating_sub(1);
        }
    }

    /// As [`List::divide_in_room`]; where there is no room, notes that.
    pub(super) fn divide(
        &mut self,
        spare: &mut Spare,
        nodes: (BlockId, LogicalPage),
        range: (&[u8], Option<&[u8]>),
        change: Change,
    ) -> bool {
        let has_room = self.divide_in_room(spare, nodes, range, change);
        if !has_room {
            self.wanted = self.blocks.len() / WANTED_PART;
        }
        has_room
    }

    /// Gives requests of the index block `parent` to a new block of `node`, one level below. The
    /// block's range is from `from` to `end`, which lie in one range of the parent's; it ends with
    /// that where there is no `end`. False, with nothing changed, if there is no room.
    fn divide_in_room(
        &mut self,
        spare: &mut Spare,
        (parent, node): (BlockId, LogicalPage),
        (from, end): (&[u8], Option<&[u8]>),
        (count, growth): Change,
    ) -> bool {
        let id = self.free;
        if id == NONE {
            return false;
        }
        let begins = self.ranges.search(from).is_ok();
        if !self.ranges.insert(spare, from, &id.to_bytes()) {
            return false;
        }
        if let Some(end) = end
            && self.ranges.search(end).is_err()
            && !self.ranges.insert(spare, end, &parent.to_bytes())
        {
            if let Ok(place) = self.ranges.search(from) {
                match begins {
                    true => self.ranges.set_value(spare, place, &parent.to_bytes()),
                    false => self.ranges.remove(spare, place),
                }
            }
            return false;
        }
        let Block { hit, level, .. } = *self.block(parent);
        self.free = BlockId(self.block(id).place);
        let level = level.saturating_sub(1);
        self.blocks[id.place()] =
            Block { page: node, hit, parent, level, is_live: true, ..Block::FREE };
        self.blocks[parent.place()].children += 1;
        self.change(parent, (-count, -growth));
        self.change(id, (count, growth));
        true
    }

    /// The best super group below an index block: see [`Block::best`].
    pub(super) fn note_best(&mut self, id: BlockId, (member, score): (BlockId, u16)) {
        self.blocks[id.place()].room = Room { more: member.0, less: score };
    }

    /// The leaf of a group block has so much room.
    pub(super) fn know(&mut self, id: BlockId, room: Room) {
        self.edit(id, |block| block.room = room);
    }

    /// The group is to be committed with another, or not.
    pub(super) fn choose(&mut self, id: BlockId, is_chosen: bool) {
        let block = &mut self.blocks[id.place()];
        self.chosen = self.chosen - usize::from(block.is_chosen) + usize::from(is_chosen);
        block.is_chosen = is_chosen;
    }

    /// No block is chosen or visited: a leaf could not be read while they were marked.
    pub(super) fn unmark(&mut self) {
        for block in &mut self.blocks {
            (block.is_chosen, block.is_visited) = (false, false);
        }
        self.chosen = 0;
    }

    pub(super) fn visit(&mut self, id: BlockId, is_visited: bool) {
        self.blocks[id.place()].is_visited = is_visited;
    }

    /// The block of `node`, and all below it, are no more; their requests are the parent's. False
    /// if that is the root's, and the list is to begin anew.
    pub(super) fn dissolve(&mut self, spare: &mut Spare, node: At<LogicalPage>) -> bool {
        let Some(gone) = self.of_node(node) else {
            return true;
        };
        if gone == ROOT {
            return false;
        }
        let parent = self.block(gone).parent;
        let List { ranges, blocks, .. } = self;
        ranges.unite(spare, |id| match is_within(blocks, BlockId::from_bytes(id), gone) {
            true => parent.to_bytes(),
            false => id,
        });
        let mut moved = (0, 0);
        // From the leaves up: a block is found to be below another by its parents.
        for level in 0..=node.level {
            for place in 0..self.blocks.len() {
                let (id, block) = (BlockId(place as u16), self.blocks[place]);
                if block.is_live && block.level == level && self.is_within(id, gone) {
                    let change = (i32::from(block.count), i32::from(block.growth));
                    moved = (moved.0 + change.0, moved.1 + change.1);
                    self.change(id, (-change.0, -change.1));
                    self.release(id);
                }
            }
        }
        self.change(parent, moved);
        true
    }
}

#[cfg(test)]
mod tests;
