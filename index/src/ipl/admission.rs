//! Room: what an update may need before it is taken.

use device::Cause;
use store::Recovery;

use super::Ipl;
use super::block::BlockShape;
use super::ground::Ground;
use super::table::{BLOCK_BYTES, NODE_BYTES, Since};
use crate::smallest_chip::Grown;
use crate::{Error, Result};

/// How often two blocks become one between two checkpoints, at most.
const COMPACTIONS_MOST: u32 = 4;

/// Bytes of a root record beside its table, at most.
const BESIDE_BYTES_MOST: usize = 128;

/// What a batch is, as far as it matters for room.
#[derive(Clone, Copy, Debug)]
pub(super) struct Size {
    pub(super) puts: usize,
    pub(super) deletes: usize,
}

/// Blocks that an update leaves free: for a merge, for programs that are refused, and for puts two
/// more, for deletes.
const fn kept_back(deletes_only: bool) -> u32 {
    if deletes_only { 3 } else { 5 }
}

/// Free blocks below which none is taken to make room.
const FREE_LEAST: u32 = 3;

/// What a tree is, as far as it matters for room.
#[derive(Clone, Copy, Debug)]
pub(super) struct Load {
    height: u32,
    /// Nodes.
    live: u32,
    /// Nodes in the cache that have to be written, and those of them that no page holds yet.
    dirty: u32,
    unwritten: u32,
    /// Blocks that hold nodes.
    used: u32,
    since: Since,
}

impl Load {
    /// The tree of so many nodes, all of them changed; where blocks get rare, few of their pages
    /// for nodes are left over.
    pub(super) fn new(grown: Grown, shape: &BlockShape) -> Self {
        let live = u32::try_from(grown.nodes()).unwrap_or(u32::MAX);
        let used = live.saturating_add(live / 4).div_ceil(shape.node_pages().into()) + 1;
        let height = grown.height.into();
        Load { height, live, dirty: live, unwritten: live, used, since: Since::default() }
    }

    /// As it is behind a checkpoint.
    const fn settled(self) -> Self {
        let since = Since { touched: 0, untouched: self.used, begun: 0, born: 0, changes: 0 };
        Load { dirty: 0, unwritten: 0, since, ..self }
    }

    /// Nodes that a batch may write anew, as pages: the halves of splits, new roots, and what takes
    /// over entries of a neighbour.
    fn births(&self, Size { puts, deletes }: Size) -> u32 {
        let Load { height, live, .. } = *self;
        let puts = u32::try_from(puts).unwrap_or(u32::MAX);
        let deletes = u32::try_from(deletes).unwrap_or(u32::MAX);
        let splits = match puts {
            0 => 0,
            // Each may split its leaf, but there are only so many, and halves of them fill again.
            _ => puts.min(live.saturating_add(puts / 4 + 1)).saturating_add(height + 1),
        };
        let taken_over = deletes.saturating_mul(height + 1);
        splits.saturating_add(taken_over.min(deletes.saturating_add(live.saturating_mul(2))))
    }

    /// Nodes of now that a batch may change: those on the way of each update, where separators
    /// come and go.
    fn changes(&self, Size { puts, deletes }: Size) -> u32 {
        let updates = u32::try_from(puts.saturating_add(deletes)).unwrap_or(u32::MAX);
        updates.saturating_mul(self.height)
    }

    /// Blocks that are begun for nodes without a page: all pages of one are used before the next.
    /// Where programs are ordered, a changed node may take one of them, too.
    fn begun(born: u32, changes: u32, shape: &BlockShape) -> u32 {
        let pages = if shape.is_ordered() { born.saturating_add(changes) } else { born };
        born.min(pages.div_ceil(shape.node_pages().into()))
    }

    /// Blocks that are begun for a batch, and for what is in the cache.
    fn begun_for(&self, size: Size, shape: &BlockShape) -> u32 {
        let births = self.births(size);
        let changes = self.changed(size).saturating_add(births);
        Load::begun(self.unwritten.saturating_add(births), changes, shape)
    }

    /// Nodes that stand in a page and were changed since, in the cache, or may be by a batch.
    fn changed(&self, size: Size) -> u32 {
        self.changes(size).saturating_add(self.dirty.saturating_sub(self.unwritten))
    }

    /// Blocks that a batch may need, and writing back all that is in the cache behind it, and a
    /// few for two to become one.
    ///
    /// A block in which a node was changed may have to be merged, once: what was begun since the
    /// last checkpoint is free as soon as it was merged again.
    fn blocks_now(&self, size: Size, shape: &BlockShape) -> u32 {
        let merged = self.changed(size).min(self.used);
        merged.saturating_add(self.begun_for(size, shape)).saturating_add(COMPACTIONS_MOST)
    }

    /// Blocks that a replay of all since the last checkpoint may need with the batch, beside those
    /// that were begun since. What it does in another cache, it writes at other times, so it may
    /// merge every block in which a node was changed, for it writes on none.
    fn blocks_again(&self, size: Size, shape: &BlockShape) -> u32 {
        let (Since { touched, untouched, begun, born, changes }, more) =
            (self.since, self.changes(size));
        let births = self.births(size);
        let merged = touched.saturating_add(untouched.min(more));
        let changes = changes.saturating_add(more).saturating_add(births);
        let blocks = Load::begun(born.saturating_add(births), changes, shape);
        merged.saturating_add(blocks + COMPACTIONS_MOST).saturating_sub(begun)
    }

    /// Blocks that a batch may need where blocks are free again at once: only births fill any,
    /// those of the batch, and earlier ones that are in the cache only.
    fn blocks_at_once(&self, size: Size, shape: &BlockShape) -> u32 {
        let nodes = u32::from(shape.node_pages());
        let pages = self.writes(size).saturating_add(self.births(size));
        let unwritten = self.unwritten.div_ceil(nodes);
        self.births(size).min(pages.div_ceil(nodes) + 2).saturating_add(unwritten)
    }

    /// Pages that are written for a batch and what is in the cache, but for births: a node is
    /// written back after a change at the earliest, and with each birth two more nodes change.
    fn writes(&self, size: Size) -> u32 {
        let updates = u32::try_from(size.puts.saturating_add(size.deletes)).unwrap_or(u32::MAX);
        self.births(size).saturating_mul(2).saturating_add(updates).saturating_add(self.dirty)
    }

    /// Blocks that have to be free, now or behind a checkpoint, so that after the batch a delete
    /// is taken, and after that the next.
    fn blocks_for_delete(&self, size: Size, shape: &BlockShape, at_once: bool) -> u32 {
        let after = Load { height: self.height + 1, ..self.settled() };
        let delete = Size { puts: 0, deletes: 1 };
        // Nodes change in as many blocks as they do in a tree that has more of them.
        let after = Load { used: u32::MAX, ..after };
        let (put, need) = match at_once {
            true => (self.blocks_at_once(size, shape), after.blocks_at_once(delete, shape)),
            false => (self.begun_for(size, shape), after.blocks_now(delete, shape)),
        };
        put.saturating_add(need).saturating_add(kept_back(true))
    }

    /// Blocks that suffice for the tree and one more put, all else apart: each write takes a page,
    /// of nodes or of a log, and may find its block full.
    pub(super) fn blocks(&self, shape: &BlockShape, at_once: bool) -> u32 {
        let put = Size { puts: 1, deletes: 0 };
        let blocks = if at_once {
            self.blocks_at_once(put, shape)
        } else {
            let pages = self.writes(put).saturating_add(self.births(put));
            let each = u32::from(shape.node_pages().min(shape.log_pages()));
            let blocks = self.used.saturating_add(pages.div_ceil(each) + 2);
            pages.min(blocks).saturating_add(COMPACTIONS_MOST)
        };
        blocks.saturating_add(kept_back(false)).saturating_add(self.used)
    }

    /// Bytes of its root record, at most, with so many blocks.
    pub(super) const fn root_bytes(&self, blocks: u32) -> u64 {
        let nodes = self.live as u64 + self.height as u64 + 2;
        nodes * NODE_BYTES as u64 + blocks as u64 * BLOCK_BYTES as u64 + BESIDE_BYTES_MOST as u64
    }
}

/// Free blocks that a batch asks for: now, and together with those that a checkpoint makes free.
#[derive(Clone, Copy, Debug)]
struct Need {
    now: u32,
    behind: u32,
}

impl Ipl<'_> {
    fn load(&self) -> Load {
        let Ground { table, cache, .. } = &self.ground;
        Load {
            height: self.height.into(),
            live: table.live(),
            dirty: cache.dirty(),
            unwritten: cache.unwritten(),
            used: table.used(),
            since: table.since(),
        }
    }

    fn need(&self, load: &Load, size: Size) -> Need {
        let Ground { log, shape, .. } = &self.ground;
        let at_once = log.erases_at_once();
        let blocks = match (at_once, log.durability().has_journal() && !self.is_loading) {
            (true, _) => load.blocks_at_once(size, shape),
            (false, false) => load.blocks_now(size, shape),
            (false, true) => load.blocks_now(size, shape).max(load.blocks_again(size, shape)),
        };
        let now = blocks.saturating_add(kept_back(size.puts == 0));
        if size.puts == 0 {
            return Need { now, behind: 0 };
        }
        Need { now, behind: load.blocks_for_delete(size, shape, at_once) }
    }

    /// Blocks that a batch may need, and those that it leaves free.
    pub(super) fn blocks_with_reserve(&self, size: Size) -> u32 {
        self.need(&self.load(), size).now
    }

    /// Blocks that a checkpoint makes free.
    fn blocks_left(&self) -> u32 {
        let log = &self.ground.log;
        log.released_blocks().saturating_sub(log.blocks_only_kept())
    }

    pub(super) fn check_room(&mut self, size: Size) -> Result<()> {
        if self.ground.log.erases_at_once() {
            self.make_room_at_once(size)?;
        }
        let load = self.load();
        let need = self.need(&load, size);
        // The table has to fit the record of a checkpoint.
        let births = if size.puts > 0 { load.births(size) as usize } else { 0 };
        let blocks = need.now.saturating_add(need.behind) as usize;
        let more = births.saturating_mul(NODE_BYTES).saturating_add(blocks * BLOCK_BYTES);
        let root = self.ground.table.bytes().saturating_add(more) + BESIDE_BYTES_MOST;
        let left = self.blocks_left();
        let log = &mut self.ground.log;
        let free = log.free_blocks_beside(root as u64);
        if free < need.now || free.saturating_add(left) < need.behind {
            return Err(log.no_room(log.blocks_only_kept() > 0).into());
        }
        log.expect_root(root as u64);
        Ok(())
    }

    /// Where blocks are free at once, as much room as the batch needs, if it can be had.
    fn make_room_at_once(&mut self, size: Size) -> Result<()> {
        loop {
            let Need { now, behind } = self.need(&self.load(), size);
            // One more for what the record of a checkpoint grows by.
            if self.ground.log.free_blocks() > now.max(behind) {
                return Ok(());
            }
            self.ground.erase_if_possible()?;
            let free = self.ground.log.free_blocks();
            if free > now.max(behind) || free < FREE_LEAST || !self.compact(true)? {
                return Ok(());
            }
        }
    }

    /// Makes room ahead of the next update: where deletes left blocks with few nodes.
    pub(super) fn make_room(&mut self) -> Result<()> {
        let log = &self.ground.log;
        if !log.erases_at_once() {
            return Ok(());
        }
        let (free, put) = (log.free_blocks(), Size { puts: 1, deletes: 0 });
        let wanted = self.blocks_with_reserve(put) + 1;
        if free > 2 && (free < wanted || self.ground.is_short()) {
            self.compact(false)?;
        }
        Ok(())
    }

    /// Makes room before a checkpoint, behind which all blocks that were left are free: an update
    /// that was refused comes back then. Blocks that named checkpoints keep don't get free.
    pub(super) fn make_room_to_settle(&mut self) -> Result<()> {
        while self.can_compact() {
            let (is_lacking, log) = (self.is_lacking(), &self.ground.log);
            // As many blocks as are in use may have to be merged before a checkpoint. That begins
            // before puts are refused, however small the chip is.
            let wanted = self.ground.table.used().saturating_add(self.wanted());
            let is_wanted =
                log.free_blocks() < wanted && log.released_blocks() < 2 * COMPACTIONS_MOST;
            if !is_lacking && !is_wanted || !self.compact(is_lacking)? {
                self.may_compact &= !is_lacking;
                return Ok(());
            }
        }
        Ok(())
    }

    fn can_compact(&self) -> bool {
        let log = &self.ground.log;
        let is_free = log.free_blocks() >= FREE_LEAST && log.pinned_blocks() == 0;
        self.may_compact && !log.erases_at_once() && is_free
    }

    /// Blocks that a put asks for behind a checkpoint.
    fn wanted(&self) -> u32 {
        let Need { now, behind } = self.need(&self.load().settled(), Size { puts: 1, deletes: 0 });
        // One more for what the record of a checkpoint grows by.
        now.max(behind).saturating_add(1)
    }

    /// True if behind a checkpoint a put would be refused.
    fn is_lacking(&self) -> bool {
        let ahead = self.ground.log.free_blocks().saturating_add(self.blocks_left());
        ahead < self.wanted()
    }

    /// True if a further checkpoint makes more room.
    pub(super) fn has_room_to_make(&self) -> bool {
        self.can_compact() && self.is_lacking() && self.ground.has_block_to_spare()
    }

    /// Makes one block of two, or if `in_part`, fills up one with nodes of another; false if that
    /// makes no room. Nodes that can't be read stay where they are: who asks for them is told.
    fn compact(&mut self, in_part: bool) -> Result<bool> {
        match self.ground.compact(in_part, Cause::Reclamation) {
            Err(Error::Store(error)) if error.is_damage() => {
                self.ground.erase_if_possible()?;
                Ok(false)
            }
            compacted => compacted,
        }
    }
}
