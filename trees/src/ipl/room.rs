//! Room: how many nodes the tree may have, and the blocks that have to be free for an update.
//!
//! Two things are counted, and nothing is tried.
//! - **Nodes.** A chip has room for so many ([`capacity`]), which follows from its good blocks. A
//!   batch is taken if the nodes that there are and those that its puts may add are not more; one
//!   put alone also if its leaf has room for it, so that it adds none. Deletes add none.
//! - **Blocks.** Until the next checkpoint a block that was left is not free. So no block is
//!   merged that takes one of those that are kept for what was admitted, and for writing it back
//!   ([`LogStore::kept`]): then a changed node whose block has no log page left gets a page in a
//!   fresh block, alone. So goes a replay, too, which can't write to blocks of the checkpoint.
//!   Each birth and each change takes a page of fresh blocks at the most, never a block. Where
//!   fewer blocks are free than a batch may need, a checkpoint comes before it; and near full,
//!   checkpoints fill up blocks with nodes of others until an update finds what it needs.
//!
//! # Invariants
//! - Of the blocks, the capacity leaves as many as one update needs, and of the pages of the others
//!   one in [`SPARE_PAGES`]. So as long as fewer blocks are free there are two that can give up one
//!   in a few steps, and an update finds its blocks behind a few checkpoints, whatever it is.
//! - All pages of a block that was begun are used before the next is begun, unless the chip
//!   refuses one: as long as it has pages for nodes, changed ones take these, and no log page that
//!   would close it. A node leaves a block of the checkpoint once; a block that was begun since is
//!   free as soon as it was merged.

use device::{Cause, Geometry};
use store::{
    Demand, Durability, EntryShape, Growth, LEVELS_MOST, PageLog, PageLogOptions, Recovery,
    Reservation, Update, Width,
};

use super::Ipl;
use super::block::BlockShape;
use super::log_store::LogStore;
use super::table::{BLOCK_BYTES, NODE_BYTES, Since};
use crate::btree::{CHILD_BYTES, Codecs, Puts};
use index::{Error, Result};

/// One in so many pages for nodes stays unused, so that blocks can be filled up with nodes of
/// others.
const SPARE_PAGES: u32 = 32;

/// Blocks that a checkpoint fills up with nodes of others where there is no need yet, at most.
const FILLED_UP: u32 = 4;

/// Free blocks for a merge that is under way, for a block that a checkpoint left half filled and a
/// replay can't go on with, and for a program that is refused.
const IN_HAND: u32 = 3;

/// Free blocks below which none is filled up: that takes one, and one more if it refuses a program.
const FREE_LEAST: u32 = 2;

/// The height for which the smallest chip is to have room.
const HEIGHT_LEAST: u8 = 4;

/// Bytes of a root record beside its tables, at most.
const BESIDE_BYTES_MOST: u64 = 256;

/// Bytes of the root record of a full chip with so many good blocks, at most.
pub(super) fn root_bytes_most(shape: &BlockShape, blocks: u32) -> u64 {
    let each = u64::from(shape.node_pages()) * NODE_BYTES as u64 + BLOCK_BYTES as u64;
    u64::from(blocks) * each + BESIDE_BYTES_MOST
}

/// Nodes for which there is room on so many blocks, of which the log's own pages take `own`, if an
/// update needs `work` blocks. Those that may get bad later are left out.
const fn capacity(shape: &BlockShape, blocks: u32, own: u32, work: u32) -> u32 {
    let bad = if blocks / 64 > 2 { blocks / 64 } else { 2 };
    let pages = blocks.saturating_sub(own + bad + work);
    let pages = pages.saturating_mul(shape.node_pages() as u32);
    pages - pages.div_ceil(SPARE_PAGES)
}

/// Blocks on which as many nodes find room as four blocks have pages.
pub(super) fn fewest_blocks(
    chip: Geometry,
    (shape, forms): (&BlockShape, &Codecs),
    log: &PageLogOptions,
) -> u32 {
    let work = work_blocks(HEIGHT_LEAST, (shape, forms), log.durability == Durability::None);
    let own = PageLog::own_most_on(chip, log, root_bytes_most(shape, chip.blocks()));
    let is_enough =
        |blocks: &u32| capacity(shape, *blocks, own, work) >= 4 * chip.pages_per_block();
    (own..u32::MAX).find(is_enough).unwrap_or(u32::MAX)
}

/// What a batch may do to nodes.
#[derive(Clone, Copy, Debug, Default)]
struct More {
    /// Nodes that may be written anew, as pages: the halves of splits, new roots, and what takes
    /// over entries of a neighbour.
    births: u32,
    /// How often nodes may be changed otherwise.
    changes: u32,
}

impl More {
    /// What puts that add `grown` to a tree, and deletes, may do to it. A split cuts a node, and
    /// gives its parent a child; a new root only takes the old one. A node that is joined is taken
    /// from its parent, and where two share their entries, their parent gets another key for one.
    fn of(demand: &Demand, (puts, grown): (u64, Growth), deletes: u64) -> Self {
        let nodes = grown.leaves.saturating_add(grown.inner);
        let height = demand.levels.iter().filter(|nodes| **nodes > 0).count() as u64;
        let least = deletes.saturating_add(demand.nodes().saturating_mul(2));
        let taken_over = deletes.saturating_mul(height + 1).min(least);
        let changes = (puts + deletes)
            .saturating_add(nodes.saturating_mul(2).saturating_sub(grown.levels.into()))
            .saturating_add(taken_over);
        let number = |count: u64| count.min(u32::MAX.into()) as u32;
        More { births: number(nodes.saturating_add(taken_over)), changes: number(changes) }
    }
}

/// Blocks that are begun for so many nodes without a page, and for changed ones of `nodes` that
/// stand where they can't stay. Where programs are ordered, a change may take a page anywhere.
fn begun(born: u32, changes: u32, nodes: u32, shape: &BlockShape) -> u32 {
    let moved = born.saturating_add(changes.min(nodes));
    let pages = if shape.is_ordered() { born.saturating_add(changes) } else { moved };
    moved.min(pages.div_ceil(shape.node_pages().into()))
}

/// Blocks that one update may need in a tree of such a height, whatever it is, behind a checkpoint.
fn work_blocks(height: u8, (shape, forms): (&BlockShape, &Codecs), at_once: bool) -> u32 {
    let mut demand = forms.demand(usize::MAX);
    demand.levels.iter_mut().take(height.into()).for_each(|nodes| *nodes = u32::MAX);
    let nodes = if at_once { 0 } else { u32::MAX };
    let blocks = |more: More| begun(more.births, more.changes, nodes, shape);
    let one_put = More::of(&demand, (1, demand.growth(1)), 0);
    let one_delete = More::of(&demand, (0, Growth::default()), 1);
    blocks(one_put).max(blocks(one_delete)) + IN_HAND
}

impl Codecs {
    /// A tree of such nodes whose keys have `longest` bytes at the most, as far as room matters,
    /// without any nodes.
    fn demand(&self, longest: usize) -> Demand {
        let EntryShape { key, value } = self.shape;
        let longest = longest.min(self.inner.entry_bytes_most());
        let children = self.inner.capacity(longest, CHILD_BYTES.into()) / 2;
        let (puts, children) = match (key, value) {
            (Width::Fixed(key), Width::Fixed(value)) => {
                (self.leaf.capacity(key.into(), value.into()) / 2, children.max(2))
            }
            // An inner node is cut in the middle but for one child. A leaf, whose keys share what
            // they have in common, may be split by every put.
            _ => (1, children.saturating_sub(1).max(1)),
        };
        Demand {
            levels: [0; LEVELS_MOST],
            puts_a_leaf: puts.max(1) as u32,
            children_a_node: children as u32,
            leaves_a_put: 1,
        }
    }
}

impl Ipl<'_> {
    fn work_blocks(&self) -> u32 {
        let LogStore { log, shape, forms, .. } = &self.store;
        // A put may make it higher.
        work_blocks(self.btree.height() + 1, (shape, forms), log.erases_at_once())
    }

    /// Nodes for which there is room.
    fn capacity(&self) -> u32 {
        let LogStore { log, shape, .. } = &self.store;
        let blocks = log.good_blocks().saturating_sub(log.blocks_only_kept());
        capacity(shape, blocks, log.own_most(), self.work_blocks())
    }

    /// Takes these puts, if the nodes that they may add find room.
    fn take(&mut self, puts: &Puts) -> bool {
        if self.room.take(puts.count) {
            return true;
        }
        let demand = self.demand();
        let left = u64::from(self.capacity()).saturating_sub(demand.nodes());
        let fits = |growth: Growth| growth.leaves.saturating_add(growth.inner) <= left;
        // All that was put is in nodes, so any moment is a base.
        self.room = Reservation::new(&demand, 0, fits);
        if self.room.take(puts.count) {
            return true;
        }
        // Those that are counted by their bytes are alone since their base.
        self.room = Reservation::default();
        fits(self.growth(&demand, puts))
    }

    fn growth(&self, demand: &Demand, puts: &Puts) -> Growth {
        self.store.forms.growth(demand, puts, self.btree.entries)
    }

    /// Notes how long keys are.
    fn note_keys(&mut self, batch: &[Update<'_>]) {
        let puts = batch.iter().filter(|update| !matches!(update, Update::Delete { .. }));
        let longest = puts.map(|put| put.key().len()).max().unwrap_or(0);
        if longest > self.longest_key {
            (self.longest_key, self.room) = (longest, Reservation::default());
        }
    }

    /// Refuses `batch` if there is no room for it, and one leaf more while the tree is loaded.
    pub(super) fn check_room(&mut self, batch: &[Update<'_>]) -> Result<()> {
        self.note_keys(batch);
        let puts = Puts::of(batch);
        let is_low = usize::from(self.btree.height()) + 2 < LEVELS_MOST;
        if puts.count > 0 && !(is_low && self.take(&puts)) && !self.adds_none(batch)? {
            let log = &self.store.log;
            return Err(log.no_room(log.blocks_only_kept() > 0).into());
        }
        let need = self.blocks_needed(batch);
        if self.store.log.erases_at_once() {
            self.make_room_at_once(need)?;
        }
        let log = &self.store.log;
        if log.free_blocks() < need {
            return Err(log.no_room(log.blocks_only_kept() > 0).into());
        }
        self.store.kept = need;
        Ok(())
    }

    /// True if `batch` is one put for which its leaf has room; a load begins leaves before that.
    fn adds_none(&mut self, batch: &[Update<'_>]) -> Result<bool> {
        let (false, [Update::Put { key, value }]) = (self.is_loading, batch) else {
            return Ok(false);
        };
        let shape = self.store.forms.shape;
        let leaf = self.btree.find_leaf(&mut self.store, key)?;
        let is_replaced = leaf.search(key).is_ok() && shape.value != Width::Variable;
        Ok(is_replaced || leaf.codec.has_room(leaf.bytes, key, value.len()))
    }

    /// Free blocks that `batch` needs, and writing back all that is in the cache behind it.
    pub(super) fn blocks_needed(&self, batch: &[Update<'_>]) -> u32 {
        let LogStore { log, table, cache, shape, .. } = &self.store;
        let (demand, puts) = (self.demand(), Puts::of(batch));
        let (grown, deletes) = (self.growth(&demand, &puts), batch.len() as u64 - puts.count);
        let More { births, changes } = More::of(&demand, (puts.count, grown), deletes);
        // Where blocks are free again at once, no node has to move, and what was changed begins no
        // block: as long as it takes pages for nodes, its own has some.
        let (nodes, changed) = match log.erases_at_once() {
            true => (0, 0),
            false => (table.live(), cache.dirty().saturating_sub(cache.unwritten())),
        };
        let born = births.saturating_add(cache.unwritten());
        let now = begun(born, changes.saturating_add(changed), nodes, shape);
        let again = match log.durability().has_journal() && !self.is_loading {
            true => self.blocks_again(More { births, changes }),
            false => 0,
        };
        // Nodes can't be moved together while names are kept: deletes take what puts leave.
        let is_kept = log.pinned_blocks() > 0 && puts.count > 0;
        let left = if is_kept { self.work_blocks() } else { 0 };
        now.max(again).saturating_add(left).saturating_add(IN_HAND)
    }

    /// Blocks that a replay of all since the last checkpoint may take with the batch, beside those
    /// that were begun since.
    fn blocks_again(&self, more: More) -> u32 {
        let Since { nodes, begun: since, born, changes } = self.store.table.since();
        let (born, changes) =
            (born.saturating_add(more.births), changes.saturating_add(more.changes));
        begun(born, changes, nodes, &self.store.shape).saturating_sub(since)
    }

    fn demand(&self) -> Demand {
        Demand { levels: self.store.levels, ..self.store.forms.demand(self.longest_key) }
    }

    /// Where blocks are free at once, fills up blocks until `need` are free, if that can be.
    fn make_room_at_once(&mut self, need: u32) -> Result<()> {
        while self.store.log.free_blocks() < need {
            self.store.erase_if_possible()?;
            let free = self.store.log.free_blocks();
            if free >= need || free < FREE_LEAST || !self.compact(true)? {
                return Ok(());
            }
        }
        Ok(())
    }

    /// Where blocks are free at once, makes room ahead of the next update, if deletes left blocks
    /// with few nodes.
    pub(super) fn make_room(&mut self) -> Result<()> {
        let log = &self.store.log;
        if !log.erases_at_once() {
            return Ok(());
        }
        let free = log.free_blocks();
        if free >= FREE_LEAST && (free < self.work_blocks() || self.store.is_short()) {
            self.compact(false)?;
        }
        Ok(())
    }

    /// Fills up blocks before a checkpoint, behind which those that were left are free.
    pub(super) fn make_room_for_checkpoint(&mut self) -> Result<()> {
        while self.can_compact() {
            let (is_lacking, log) = (self.is_lacking(), &self.store.log);
            // As many blocks as are in use may come to be merged before a checkpoint. That begins
            // before nodes have to move alone, however small the chip is.
            let wanted = self.store.table.used().saturating_add(self.work_blocks());
            let is_wanted = log.free_blocks() < wanted && log.released_blocks() < 2 * FILLED_UP;
            if !is_lacking && !is_wanted || !self.compact(is_lacking)? {
                self.may_compact &= !is_lacking;
                return Ok(());
            }
        }
        Ok(())
    }

    fn can_compact(&self) -> bool {
        let log = &self.store.log;
        let is_free = log.free_blocks() >= FREE_LEAST && log.pinned_blocks() == 0;
        self.may_compact && !log.erases_at_once() && is_free
    }

    /// True if behind a checkpoint an update may find too few blocks.
    fn is_lacking(&self) -> bool {
        let log = &self.store.log;
        let left = log.released_blocks().saturating_sub(log.blocks_only_kept());
        log.free_blocks().saturating_add(left) < self.work_blocks()
    }

    /// True if a further checkpoint makes more room.
    pub(super) fn has_room_to_make(&self) -> bool {
        self.can_compact() && self.is_lacking() && self.store.has_block_to_spare()
    }

    /// Makes one block of two, or if `in_part`, fills up one with nodes of another; false if that
    /// makes no room. Nodes that can't be read stay where they are: who asks for them is told.
    pub(super) fn compact(&mut self, in_part: bool) -> Result<bool> {
        match self.store.compact(in_part, Cause::Reclamation) {
            Err(Error::Store(error)) if error.is_damage() => {
                self.store.erase_if_possible()?;
                Ok(false)
            }
            compacted => compacted,
        }
    }
}
