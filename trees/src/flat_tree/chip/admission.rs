//! Room: pages are counted before an update is let in.
//!
//! Two inequalities, of pages:
//!
//! ```text
//! F + M + W <= free              F: what a flush of all that waits writes, the batch included
//! L + F + D <= (1 - d) (N - R)   M: what the largest merge writes that may come then
//! ```
//!
//! `W` is what moving out of a block writes, with the page that is being filled, `L` what lives in
//! `N` pages, in parts of runs, which are no fewer than pages. `R` are pages of the blocks that can
//! be whole where the first inequality fails, and of the one that is being filled; `D` is what puts
//! leave to deletes. If the second holds, and the first does not, then one block has at most
//! `(1 - d)` of its pages in use, so moving these gains the others: whatever is let in can be
//! flushed, and one partition after the other merged. A block is worth moving if it gains `d` of
//! its pages, and be it one ([`Room::gain_least`]). Merges end with about as many parts as there
//! were: a bottom may come to begin or end in another page. For that puts leave `D`. So deletes,
//! which leave less, are let in at the latest when all was merged and nothing more can be gained:
//! then the first inequality is enough.
//!
//! An opening does not go on with the block that was being filled. A block is free then all the
//! same, for more than `W` was at the checkpoint; nothing is being filled; and so one can be moved.
//! What the checkpoint behind a replay keeps back is free to moves only
//! ([`Storage::free_pages`](super::storage::Storage::free_pages)).
//!
//! Where a checkpoint makes room, moving and merging are steps with one in between.

use device::Geometry;
use index::Result;
use store::runs::Which;
use store::{Recovery, Update};

use super::ChipTree;
use super::directory::Part;
use super::held::GROUP;
use super::make::MEMTABLE_PART;
use super::write::unit_for;

/// Bytes of a fragment beside its entries: its first unit may hold but one.
const RUN_BYTES: u64 = 32;

/// Pages that a merge may write beyond those that it reads.
const MERGE_PAGES: u64 = 4;

/// Pages that puts leave to deletes, beside a part of those in use.
const KEPT_PAGES: u64 = 4;
const KEPT_PART: u64 = 256;

/// Blocks that may go bad before a tree holds less.
const SPARE_BLOCKS: u64 = 2;

/// Bytes of a run in a root record, where it is in two blocks at the most.
const HEAD_BYTES: u64 = 40;

/// Partitions that one merge may add.
const PARTS_MORE: u64 = 4;

/// What is to find room.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct More {
    pub(super) updates: u64,
    bytes: u64,
    has_puts: bool,
}

impl More {
    pub(super) fn of(batch: &[Update<'_>]) -> Self {
        let mut more = More { updates: batch.len() as u64, ..More::default() };
        for update in batch {
            more.bytes += update.key().len() as u64;
            if let Update::Put { value, .. } = update {
                more.has_puts = true;
                more.bytes += value.len() as u64;
            }
        }
        more
    }

    /// A put of an entry of so many bytes.
    pub(super) const fn put(bytes: u64) -> Self {
        More { updates: 1, bytes, has_puts: true }
    }
}

/// What room is counted by: everything of it is known before there is a tree.
#[derive(Clone, Copy, Debug)]
pub(super) struct Room {
    /// Pages of a block.
    pub(super) block: u64,
    /// Good blocks that no named checkpoint keeps.
    pub(super) blocks: u64,
    /// Blocks of the log's own.
    pub(super) own: u64,
}

impl Room {
    /// Pages that moving out of a block gains at least, or it is not worth it.
    pub(super) const fn gain_least(block: u64) -> u64 {
        let part = block / 16;
        if part < 1 { 1 } else { part }
    }

    /// Pages that moving takes: those of a block, and the one that is being filled.
    const fn moving(&self) -> u64 {
        self.block + 2
    }

    /// True if so many parts of pages find room beside `reserve` pages that are to be free.
    pub(super) const fn fits(&self, parts: u64, reserve: u64) -> bool {
        let used = self.blocks.saturating_sub(self.own + SPARE_BLOCKS);
        // Where less is free, no more blocks than that are, and one is being filled.
        let used = used.saturating_sub(reserve.saturating_sub(1) / self.block + 1);
        parts <= used * self.block.saturating_sub(Self::gain_least(self.block))
    }

    /// Pages that are to be free before a flush of `flush` pages beside a partition of `largest`
    /// parts of pages.
    pub(super) const fn needs(&self, flush: u64, largest: u64) -> u64 {
        2 * flush + largest / 3 * 4 + MERGE_PAGES + self.moving()
    }
}

/// Blocks that an index on chips like this one needs to take so many entries of `bytes` bytes.
pub(super) fn blocks_for(
    (chip, content): (Geometry, u64),
    own: u64,
    (entries, bytes): (u64, u64),
) -> u64 {
    let block = u64::from(chip.pages_per_block());
    // Units that are not full, heads, and what waits in fragments: half as much again, and more.
    let parts = 12 + (2 * entries * (bytes + 4)).div_ceil(content);
    (own + SPARE_BLOCKS..u64::from(u32::MAX))
        .find(|blocks| {
            let room = Room { block, blocks: *blocks, own };
            let pages = blocks * block;
            let flush = pages / MEMTABLE_PART * 3 / 2 + 4;
            let kept = KEPT_PAGES + pages / KEPT_PART;
            room.fits(parts + kept + 2 * flush, room.needs(flush, parts))
        })
        .unwrap_or(u64::MAX)
}

impl ChipTree<'_> {
    pub(super) fn room(&self) -> Room {
        let log = &self.storage.log;
        Room {
            block: self.storage.pages_per_block(),
            blocks: u64::from(log.good_blocks().saturating_sub(log.pinned_blocks())),
            own: log.own_most().into(),
        }
    }

    /// Runs that a flush writes at the most, with so much more.
    fn flush_runs(&self, more: &More) -> u64 {
        let waiting = self.memtable.held(Which::Active).0 + more.updates;
        let parts = self.directory.parts.len() as u64;
        // A batch that is longer than the memory is flushed more than once; a partition that gets
        // much has several.
        let flushes = 1 + 4 * more.bytes / self.memtable.memory().max(1);
        let beside = waiting / self.entries_wanted().max(1);
        waiting.min(parts.saturating_mul(flushes) + beside)
    }

    /// Pages that a flush writes, with so much more.
    fn flush_pages(&self, more: &More) -> u64 {
        let (waiting, bytes) = self.memtable.held(Which::Active);
        let (entries, bytes) = (waiting + more.updates, bytes + more.bytes);
        let content = u64::from(self.storage.content());
        let beside = u64::from(unit_for(self.shape, 0)).min(10);
        let bytes = match self.shape.value {
            // Deletes have room for a value.
            store::Width::Fixed(value) => bytes.max(entries * u64::from(value)) + entries * 4,
            store::Width::Variable => bytes + entries * beside,
        };
        let bytes = bytes + RUN_BYTES * self.flush_runs(more);
        // Of a page less than an entry's unit is left.
        let used = content
            - u64::from(self.fragment_unit(64, self.limits.entry as u32, 0)).min(content / 2);
        if entries == 0 { 1 } else { bytes.div_ceil(used.max(1)) + 2 }
    }

    /// Pages that are to be free, with so much more.
    pub(super) fn needs(&self, more: &More) -> u64 {
        self.room().needs(self.flush_pages(more), self.totals.largest)
    }

    pub(super) fn needs_for(&self, batch: &[Update<'_>]) -> u64 {
        self.needs(&More::of(batch))
    }

    pub(super) fn admit_batch(&mut self, batch: &[Update<'_>]) -> Result<()> {
        self.admit_more(&More::of(batch))
    }

    /// Refuses what there is no room for.
    pub(super) fn admit_more(&mut self, more: &More) -> Result<()> {
        self.make_place(more)?;
        self.check_tables(more)
    }

    /// Makes room for so much more, or refuses it.
    pub(super) fn make_place(&mut self, more: &More) -> Result<()> {
        // A partition with as many runs as a merge can have gets none more.
        while self.totals.fragments_most + 1 >= self.policy.fragments_most {
            let at = self.due.filter(|at| self.has_room_to_merge(*at));
            let Some(at) = at else {
                return Err(self.no_room());
            };
            self.merge(at)?;
        }
        while self.is_short(more) {
            if !(self.may_erase() && self.gain_room()?) {
                return Err(self.no_room());
            }
        }
        Ok(())
    }

    /// True if there is too little room for so much more.
    fn is_short(&self, more: &More) -> bool {
        let (room, needs) = (self.room(), self.needs(more));
        if needs > self.storage.free_pages() {
            return true;
        }
        let kept = match more.has_puts {
            true => KEPT_PAGES + room.blocks * room.block / KEPT_PART,
            false => 0,
        };
        let flush = self.flush_pages(more) + self.flush_runs(more);
        let record = self.totals.record + HEAD_BYTES * self.flush_runs(more);
        let is_long = record > self.policy.root_most;
        let fits = || room.fits(self.storage.parts_live() + flush + kept, needs);
        is_long || !(fits() || !more.has_puts && self.is_gained())
    }

    /// True if neither a move nor a merge gains room.
    fn is_gained(&self) -> bool {
        self.victim().is_none() && self.most_pending().is_none()
    }

    pub(super) fn no_room(&self) -> index::Error {
        let log = &self.storage.log;
        log.no_room(log.pinned_blocks() > 0).into()
    }

    /// True if room is made without a checkpoint.
    pub(super) fn may_erase(&self) -> bool {
        self.storage.log.erases_at_once()
    }

    /// True if a checkpoint, or moving before one, is to make room before the next step.
    pub(super) fn wants_checkpoint(&self) -> bool {
        let log = &self.storage.log;
        if !log.durability().has_journal() {
            return false;
        }
        let wanted = self.needs(&More::default()) + 2 * self.storage.pages_per_block();
        let is_short = self.storage.free_pages() < wanted;
        is_short && (log.blocks_to_erase() > 0 || self.can_move())
    }

    /// Bytes of tables that are stated beside the log's, with what lookups had of their memory.
    pub(super) fn tables_stated(&self) -> u64 {
        self.tables_told + self.tables_beside() - self.storage.log.table_bytes()
    }

    /// Bytes of tables that stay as they are.
    pub(super) fn tables_beside(&self) -> u64 {
        let log = self.storage.log.table_bytes();
        log + super::storage::Storage::table_bytes_on(self.storage.geometry()) + TABLES_LEAST
    }

    /// Of so many bytes of tables, those that are left to runs.
    pub(super) fn tables_left(&self, most: u64) -> u64 {
        let parts = self.directory.parts.len() * size_of::<Part>();
        most.saturating_sub(self.tables_beside() + parts as u64).max(1)
    }

    /// True if tables may have so many bytes more.
    pub(super) fn has_memory(&self, bytes: u64) -> bool {
        let taken = self.totals.memory + self.tables_beside() + bytes;
        self.tables_most.is_none_or(|most| taken <= most)
    }

    /// Tables may take so many bytes more for a while; lookups have what they never took.
    pub(super) fn expect_tables(&mut self, more: u64) {
        self.tables_peak = self.tables_peak.max(self.totals.memory + more);
        if let Some(most) = self.tables_most {
            let taken = self.tables_peak + self.tables_beside() + most / TABLES_SPARE_PART;
            let unit = self.bottom_unit(self.entry_bytes() as u32).clamp(HELD_LEAST, GROUP);
            self.storage.held.fit(most.saturating_sub(taken), unit);
        }
        self.tables_told = self.tables_told.max(self.tables_peak + self.storage.held.memory());
    }

    /// Lets tables of runs go, until so many bytes more have room.
    pub(super) fn make_memory(&mut self, bytes: u64) {
        let mut at = 0;
        while !self.has_memory(bytes) && at < self.directory.parts.len() {
            if let Some(part) = self.directory.parts.get_mut(at) {
                let before = part.runs.capacity();
                part.cool();
                self.totals.memory -= before.saturating_sub(part.runs.capacity()) as u64;
            }
            at += 1;
        }
    }

    /// Bytes of tables that there may be with so much more: with tables let go of, heads are left,
    /// and the root record of them.
    fn tables_needed(&self, more: &More) -> u64 {
        let heads = 2 * (self.totals.record + HEAD_BYTES * self.flush_runs(more));
        let parts = (self.directory.parts.len() + 2) as u64 * (size_of::<Part>() as u64);
        self.tables_beside() + heads + parts
    }

    /// True if tables have room for a few partitions more, beside what may come.
    pub(super) fn has_memory_for_parts(&self) -> bool {
        let more = PARTS_MORE * (size_of::<Part>() as u64 + 2 * HEAD_BYTES);
        let need = self.tables_needed(&More::default()) + more;
        self.tables_most.is_none_or(|most| need <= most)
    }

    /// Refuses what the tables have no room for, if that is bounded.
    fn check_tables(&mut self, more: &More) -> Result<()> {
        let Some(have) = self.tables_most.filter(|_| more.has_puts) else {
            return Ok(());
        };
        loop {
            let need = self.tables_needed(more);
            if need <= have {
                return Ok(());
            }
            match self.most_pending().filter(|at| self.has_room_to_merge(*at)) {
                Some(at) => self.merge(at)?,
                None => return Err(store::Error::LittleTables { have, need }.into()),
            }
        }
    }

    /// True if there is room to merge the partition at `at`, and for a flush beside.
    pub(super) fn has_room_to_merge(&self, at: usize) -> bool {
        let parts = self.directory.parts.get(self.joined(at)).unwrap_or_default();
        let pages: u64 = parts.iter().map(|part| u64::from(part.counts.parts)).sum();
        let flush = self.flush_pages(&More::default());
        pages / 3 * 4 + MERGE_PAGES + flush <= self.storage.free_pages()
    }
}

/// The part of the memory of tables by which they may grow before they are counted again.
const TABLES_SPARE_PART: u64 = 16;

/// Bytes of units that are held for lookups, at least.
const HELD_LEAST: u32 = 64;

/// Bytes of tables beside runs, as long as there is one partition.
pub(super) const TABLES_LEAST: u64 = 1024;
