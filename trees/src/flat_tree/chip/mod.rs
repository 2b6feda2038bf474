//! `flat-tree` on raw flash: the same shape, of runs that are packed closer than pages.
//!
//! A lookup reads some ten bytes and not a page: so runs have **units** of a size that the memory
//! for their fences allows, fragments of several partitions share pages, and the memory of updates
//! is emptied partition by partition, the fullest first. A merge reads and writes whole pages.
//!
//! One update, from top to bottom: [`ChipTree::take`](updates) puts it into the memory; [`merge`]
//! writes the fullest partitions and merges others; [`policy`] says which; [`write`] makes units in
//! the page that is being filled, and [`storage`] programs it. [`lookup`] and [`range`] read, and
//! [`held`] has what lookups read lately; [`admission`] counts room, and [`reclaim`] moves pages
//! out of blocks in which little lives.
//!
//! # Choices
//! - The root record is the whole directory, and the journal has what waits in memory, as on
//!   sectors. Nothing of a run is ever written again, so nothing has to be put back.
//! - Fences and filters are in memory alone: after an opening those of a run are made when it is
//!   first asked. Where a root record needs their memory some are let go of.
//! - Where the chip gets full pages are moved as they are: no run has to be written again for that.
//!
//! # Invariants
//! - A page is programmed once, in the order of the log; a run that is named stands in programmed
//!   pages, or in the one that is being filled, which is programmed before a root record names it.
//! - Newer runs hide older ones, and the memory hides all; a bottom has no deletes.
//! - No partition has more fragments than a merge has buffers for.

mod admission;
mod check;
mod cost;
mod directory;
mod fences;
mod held;
mod keys;
mod load;
mod lookup;
mod make;
mod merge;
mod policy;
mod range;
mod read;
mod reclaim;
mod run;
mod storage;
mod units;
mod updates;
mod write;

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::fmt::Display;

use device::Meter;
use index::bounds::{EntryLimits, can_be};
use index::{
    Cursor, KeyRange, MERGES_BROKEN_OFF, NODES_MERGED, NODES_SPLIT, Read, Result, Resume,
    UPDATES_WAITING,
};
use index::{Statistics, Tree};
use store::runs::{Memtable, Which};
use store::{EntryShape, Recovery, Update};

pub(super) use cost::predict;
pub(super) use make::{create, footprint, open};

use directory::{Directory, Totals};
use policy::Policy;
use storage::Storage;

/// The tree.
pub(super) struct ChipTree<'d> {
    storage: Storage<'d>,
    shape: EntryShape,
    limits: EntryLimits,
    directory: Directory,
    memtable: Memtable,
    policy: Policy,
    totals: Totals,
    /// The partition that is to be merged.
    due: Option<usize>,
    /// The most bytes of tables.
    tables_most: Option<u64>,
    /// The most bytes that the directory and the root record took so far.
    tables_peak: u64,
    /// The most that they took together with units that are held.
    tables_told: u64,
    /// Bytes of memory for merges, cursors and keys.
    buffer_bytes: u64,
    /// What a lookup reads.
    buffers: read::Buffers,
    /// Bytes of a run that a cursor has in memory.
    window: usize,
    /// True while an update is taken step by step: it is not in the memory yet.
    is_midway: bool,
    /// True while runs are changed.
    is_poisoned: bool,
    counters: Counters,
}

#[derive(Clone, Copy, Debug, Default)]
struct Counters {
    /// Merges begun, and made.
    begun: u64,
    merges: u64,
    splits: u64,
    joins: u64,
    moved: u64,
}

impl ChipTree<'_> {
    /// Counts everything again, after runs came or went.
    fn recount(&mut self) {
        self.totals = self.directory.totals();
        self.make_memory(0);
        self.expect_tables(0);
        self.due = self.find_due();
    }

    /// Pages that the chip refused are elsewhere from now on.
    fn follow_moved(&mut self) {
        if self.storage.has_moved() {
            for (from, to) in self.storage.moved() {
                self.redirect(&(from.0..from.0 + 1), &|page| (page == from.0).then_some(to.0));
            }
        }
    }
}

impl Read for ChipTree<'_> {
    fn get(&mut self, key: &[u8], offset: u32, into: &mut [u8]) -> Result<Option<u32>> {
        if !can_be(self.limits.check_key(key))? {
            return Ok(None);
        }
        self.look_up(key, (offset, into))
    }

    fn range<'c>(&'c mut self, range: KeyRange<'_>) -> Result<Box<dyn Cursor + 'c>> {
        let range = range.within_length(|key| self.limits.check_key(key))?;
        Ok(Box::new(range::Scan::new(self, range)?))
    }

    fn check(&mut self, finding: &mut dyn FnMut(&dyn Display)) -> Result<()> {
        check::check(self, finding)
    }

    fn resume_after(&mut self, key: Option<&[u8]>) -> Result<Resume> {
        key.map_or(Ok(()), |key| self.limits.check_key(key))?;
        self.resume(key)
    }

    fn statistics(&self) -> Statistics {
        let log = &self.storage.log;
        let memory = store::Memory {
            cache: 0,
            buffers: self.buffer_bytes + log.buffer_bytes() + self.memtable.memory(),
            tables: log.table_bytes() + self.tables_stated(),
            ftl: 0,
        };
        let content = u64::from(self.storage.content());
        Statistics {
            height: 1,
            live_pages: self.totals.all_bytes.div_ceil(content.max(1)),
            memory,
            memory_peak: memory.buffers + memory.tables,
        }
    }

    fn metrics(&self, tell: &mut dyn FnMut(&'static str, u64)) {
        tell(NODES_SPLIT, self.counters.splits);
        tell(NODES_MERGED, self.counters.joins);
        tell(UPDATES_WAITING, self.memtable.held(Which::Active).0);
        tell("partitions", self.directory.parts.len() as u64);
        tell("partitions merged", self.counters.merges);
        tell(MERGES_BROKEN_OFF, self.counters.begun - self.counters.merges);
        tell("entries in fragments", self.totals.pending);
        tell("pages moved", self.counters.moved);
    }

    fn meter(&self) -> Option<&Meter> {
        self.storage.log.meter()
    }
}

impl Tree for ChipTree<'_> {
    fn admit(&mut self, batch: &[Update<'_>]) -> Result<()> {
        self.limits.check_batch(batch)?;
        self.admit_batch(batch)
    }

    fn apply(&mut self, update: &Update<'_>) -> Result<()> {
        loop {
            while self.work()? {}
            if self.take(update)? {
                return Ok(());
            }
        }
    }

    fn apply_step(&mut self, update: &Update<'_>) -> Result<bool> {
        self.is_midway = true;
        let is_taken = !self.work()? && self.take(update)?;
        self.is_midway = !is_taken;
        Ok(is_taken)
    }

    fn has_waiting(&self) -> bool {
        // An update that is still to come counts: a replay has to hand it out again.
        self.is_midway || self.has_waiting_updates()
    }

    fn flush(&mut self) -> Result<()> {
        self.is_midway = false;
        self.flush_all()
    }

    fn wants_room(&self) -> bool {
        self.wants_checkpoint()
    }

    fn reclaim(&mut self) -> Result<()> {
        self.move_some()
    }

    fn waits_for_checkpoint(&self) -> bool {
        !self.storage.log.erases_at_once() && self.storage.log.blocks_to_erase() > 0
    }

    fn is_poisoned(&self) -> bool {
        self.is_poisoned
    }

    fn load(&mut self, sorted: &mut dyn Cursor, _: u8) -> Result<u64> {
        self.load_sorted(sorted)
    }

    fn is_drained(&self) -> bool {
        !self.has_waiting_updates() && self.totals.pending == 0 && self.victim().is_none()
    }

    fn drain(&mut self) -> Result<bool> {
        self.drain_some()
    }

    fn root_record(&mut self) -> Result<Vec<u8>> {
        self.is_poisoned = true;
        self.storage.program(device::Cause::Checkpoint)?;
        self.follow_moved();
        self.is_poisoned = false;
        self.make_memory(self.totals.record);
        self.expect_tables(self.totals.record + 64);
        Ok(self.directory.encode(self.shape, self.totals.record))
    }

    fn restore(&mut self, root: &[u8]) -> Result<()> {
        let pages = (self.storage.content(), self.storage.geometry().pages());
        let (shape, directory) = Directory::decode(root, pages)?;
        if shape != self.shape {
            let what = "its root record has another shape of entries";
            return Err(store::Error::NotAnIndex { is_ours: true, what }.into());
        }
        self.directory = directory;
        self.storage.forget_all();
        for part in &self.directory.parts {
            for view in run::views(&part.runs) {
                view.run.units(shape)?;
                self.storage.claim(view.extents())?;
            }
        }
        self.storage.give_up_all_empty();
        self.memtable.clear();
        (self.is_midway, self.is_poisoned) = (false, false);
        self.recount();
        self.expect_tables(root.len() as u64);
        Ok(())
    }

    fn admit_savepoint(&mut self) -> Result<()> {
        self.admit_name()
    }

    fn pin_savepoints(&mut self) -> Result<()> {
        self.pin_named()
    }

    fn entry_bytes_most(&self) -> usize {
        self.limits.entry
    }

    fn pages_changed(&self, batch: &[Update<'_>]) -> u32 {
        u32::try_from(self.needs_for(batch)).unwrap_or(u32::MAX)
    }

    fn checkpoints_within(&self) -> bool {
        true
    }

    fn recovery(&self) -> &dyn Recovery {
        &self.storage.log
    }

    fn recovery_mut(&mut self) -> &mut dyn Recovery {
        &mut self.storage.log
    }
}
