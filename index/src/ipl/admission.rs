//! Room: what an update may need before it is taken.

use device::Cause;

use super::Ipl;
use super::block::BlockShape;
use super::table::{BLOCK_BYTES, NODE_BYTES};
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
pub(super) const fn kept_back(deletes_only: bool) -> u32 {
    if deletes_only { 3 } else { 5 }
}

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
}

impl Load {
    /// The tree of so many nodes, all of them changed; where blocks get rare, few of their pages
    /// for nodes are left over.
    pub(super) fn new(grown: Grown, shape: &BlockShape) -> Self {
        let live = u32::try_from(grown.nodes()).unwrap_or(u32::MAX);
        let used = live.saturating_add(live / 4).div_ceil(shape.node_pages().into()) + 1;
        Load { height: grown.height.into(), live, dirty: live, unwritten: live, used }
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

    /// Blocks that a batch may need, and writing back all that is in the cache behind it; `at_once`
    /// if blocks are free again as soon as nothing lives in them.
    ///
    /// A node is written back after a change at the earliest, and with each birth two more nodes
    /// change. Each write takes a page, of nodes or of a log, and may find its block full, so that
    /// it is merged; a block that was merged, or begun, takes as many writes as it has pages of the
    /// scarcer kind. Where blocks are free again at once, only births fill any: those of the batch,
    /// and earlier ones that are in the cache only.
    fn blocks_for(&self, size: Size, shape: &BlockShape, at_once: bool) -> u32 {
        let births = self.births(size);
        let updates = u32::try_from(size.puts.saturating_add(size.deletes)).unwrap_or(u32::MAX);
        let writes = births.saturating_mul(2).saturating_add(updates);
        let pages = births.saturating_add(writes.saturating_add(self.dirty));
        let nodes = u32::from(shape.node_pages());
        if at_once {
            let unwritten = self.unwritten.div_ceil(nodes);
            return births.min(pages.div_ceil(nodes) + 2).saturating_add(unwritten);
        }
        let each = nodes.min(u32::from(shape.log_pages()));
        let blocks = self.used.saturating_add(pages.div_ceil(each) + 2);
        pages.min(blocks).saturating_add(COMPACTIONS_MOST)
    }

    /// Blocks that suffice for the tree and one more put.
    pub(super) fn blocks(&self, shape: &BlockShape, at_once: bool) -> u32 {
        let put = Size { puts: 1, deletes: 0 };
        let blocks = self.blocks_for(put, shape, at_once).saturating_add(kept_back(false));
        blocks.saturating_add(self.used)
    }

    /// Bytes of its root record, at most, with so many blocks.
    pub(super) const fn root_bytes(&self, blocks: u32) -> u64 {
        let nodes = self.live as u64 + self.height as u64 + 2;
        nodes * NODE_BYTES as u64 + blocks as u64 * BLOCK_BYTES as u64 + BESIDE_BYTES_MOST as u64
    }
}

impl Ipl<'_> {
    fn load(&self) -> Load {
        Load {
            height: self.height.into(),
            live: self.ground.table.live(),
            dirty: self.ground.cache.dirty(),
            unwritten: self.ground.cache.unwritten(),
            used: self.ground.table.used(),
        }
    }

    pub(super) fn blocks_for(&self, size: Size) -> u32 {
        self.load().blocks_for(size, &self.ground.shape, self.ground.log.erases_at_once())
    }

    /// Blocks that a batch may need, and those that it leaves free.
    pub(super) fn blocks_with_reserve(&self, size: Size) -> u32 {
        self.blocks_for(size).saturating_add(kept_back(size.puts == 0))
    }

    pub(super) fn check_room(&mut self, size: Size) -> Result<()> {
        let need = self.blocks_with_reserve(size);
        // The table has to fit the record of a checkpoint.
        let births = if size.puts > 0 { self.load().births(size) as usize } else { 0 };
        let more = births.saturating_mul(NODE_BYTES).saturating_add(need as usize * BLOCK_BYTES);
        let root = self.ground.table.bytes().saturating_add(more) + BESIDE_BYTES_MOST;
        let log = &mut self.ground.log;
        if log.free_blocks_beside(root as u64) < need {
            return Err(log.no_room(log.blocks_only_kept() > 0).into());
        }
        log.expect_root(root as u64);
        Ok(())
    }

    /// Makes room ahead of the next update: where deletes left blocks with few nodes.
    pub(super) fn make_room(&mut self) -> Result<()> {
        if self.is_short() {
            self.compact()?;
        }
        Ok(())
    }

    /// As [`Ipl::make_room`], before a checkpoint, behind which all blocks that were left are free:
    /// a put that was refused comes back then. Blocks that named checkpoints keep don't get free.
    pub(super) fn make_room_to_settle(&mut self) -> Result<()> {
        let log = &self.ground.log;
        if log.erases_at_once() || log.pinned_blocks() > 0 {
            return Ok(());
        }
        while self.is_short() && self.compact()? {}
        Ok(())
    }

    /// True if blocks with few nodes should become one. That begins before puts are refused,
    /// however small the chip is.
    fn is_short(&self) -> bool {
        let put = Size { puts: 1, deletes: 0 };
        let log = &self.ground.log;
        let free = log.free_blocks();
        if log.erases_at_once() {
            let wanted = self.blocks_with_reserve(put) + 1;
            return free > 2 && (free < wanted || self.ground.is_short());
        }
        // As many blocks as are in use may have to be merged before a checkpoint.
        let wanted = self.ground.table.used().max(kept_back(false)) + self.blocks_for(put);
        free < wanted && log.released_blocks() < 2 * COMPACTIONS_MOST
    }

    /// Makes one block of two; false if no two fit together. Nodes that can't be read stay where
    /// they are: who asks for them is told.
    fn compact(&mut self) -> Result<bool> {
        match self.ground.compact(Cause::Reclamation) {
            Err(Error::Store(error)) if error.is_damage() => {
                self.ground.erase_if_possible()?;
                Ok(false)
            }
            compacted => compacted,
        }
    }
}
