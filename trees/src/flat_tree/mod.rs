//! `flat-tree`: our own. Key partitions in a directory in memory, no nodes above them.
//!
//! Each partition has one sorted **bottom** and newer sorted **fragments**, all of them runs that
//! are written once. Updates wait in one ordered memory; when that is full each partition gets its
//! part as a fragment. The partition in which most is pending, for each entry of its bottom, is
//! merged first: its runs become one bottom, or several where it is too long, and one too short is
//! joined to its neighbour. A lookup asks the memory, then the fragments behind their filters, then
//! the bottom: so mostly it reads one page.
//!
//! One update, from top to bottom: [`FlatTree::take`] puts it into the memory; [`merge`] writes
//! what is full; [`policy`] says what is due; [`runs`] writes pages. [`lookup`] and [`range`] read,
//! [`admission`] counts room, [`growth`] where a disk is nearly full.
//!
//! # Choices
//! - A run is a packed tree of pages in a page file. So fences are inner nodes: a few, which stay
//!   in the cache, and no run has to be read when the tree is opened.
//! - Filters are in memory alone. After an opening each is made when its fragment is first asked.
//! - The journal has what waits in memory. A checkpoint after which it begins anew comes behind a
//!   flush; one inside a batch leaves it as it is, and all of it is replayed.
//!
//! # Invariants
//! - No page of a run is overwritten while a root record names it: what is given back can be used
//!   again behind the next checkpoint.
//! - Newer runs hide older ones, and the memory hides all; a bottom has no deletes.
//! - No partition has more fragments than a merge has buffers for.

mod admission;
mod check;
mod chip;
mod cost;
mod directory;
mod filter;
mod growth;
mod load;
mod lookup;
mod make;
mod merge;
mod merger;
mod policy;
mod range;
mod runs;
mod updates;

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::fmt::Display;
use core::ops::Bound;

use device::Meter;
use index::parameters::{Kind, Parameter};
use index::{
    Cursor, KeyRange, MERGES_BROKEN_OFF, Meanwhile, NODES_MERGED, NODES_SPLIT, Read, Result, Resume,
};
use index::{DeletePolicy, Statistics, Tree, TreeDescriptor, UPDATES_WAITING};
use store::runs::{Memtable, Which};
use store::{CheckpointId, Durability, Recovery, Update};

use crate::btree;
use admission::More;
use directory::{Directory, Totals};
use growth::Growth;
use policy::{Due, Policy};
use range::Scan;
use runs::{Form, Runs};

/// The registry's line.
pub(crate) const ENTRY: TreeDescriptor = TreeDescriptor {
    name: NAME,
    about: "partitions in memory, each of sorted runs that are merged: few bytes written and read",
    paper: "none: docs/flat-tree.md",
    nand: true,
    sectors: true,
    long_values: true,
    deletes: |_| DeletePolicy::Merge,
    tables_part: |on_nand| if on_nand { 2 } else { 4 },
    parameters: PARAMETERS,
    create: make::create,
    open: make::open,
    footprint: make::footprint,
    predict: cost::predict,
};

const NAME: &str = "flat-tree";

const AUTO: &[&str] = &["auto"];

const UNIT: Parameter = Parameter {
    name: "unit",
    about: "bytes that a lookup reads: a multiple of the device's page; auto is one page",
    kind: Kind::WordOrBytes(AUTO, 32_768),
    default: "auto",
};

const FILTER: Parameter = Parameter {
    name: "filter",
    about: "bits of a filter for each entry of a fragment; auto: 14, on raw flash 8 or 12",
    kind: Kind::WordOrCount(AUTO, 64),
    default: "auto",
};

const PARTITION: Parameter = Parameter {
    name: "partition",
    about: "bytes of a partition; auto follows from the data and the memory",
    kind: Kind::WordOrBytes(AUTO, 1 << 30),
    default: "auto",
};

const MEMTABLE: Parameter = Parameter {
    name: "memtable",
    about: "share of the memory left over in which updates wait",
    kind: Kind::Ratio(0.0, 0.75),
    default: "0.25",
};

const SPACE: Parameter = Parameter {
    name: "space",
    about: "room for each byte of data, at which partitions are merged",
    kind: Kind::Ratio(1.05, 4.0),
    default: "1.25",
};

const PARAMETERS: &[Parameter] = &[UNIT, FILTER, PARTITION, MEMTABLE, SPACE];

/// The tree.
pub(crate) struct FlatTree<'d> {
    runs: Runs<'d>,
    directory: Directory,
    memtable: Memtable,
    policy: Policy,
    totals: Totals,
    /// How partitions grow when all that waits is merged, while that is counted.
    growth: Option<Growth>,
    /// The partition that is to be merged.
    due: Option<Due>,
    /// How full the memory of updates was, in hundredths, when small partitions were joined last
    /// since the last flush.
    joined_at: Option<u32>,
    /// The most fragments of a partition.
    fragments_most: usize,
    filter_bits: u32,
    /// The most bytes of tables.
    tables_most: Option<u64>,
    /// Pages that flushing what waits takes, with the batch that was let in.
    owed: u64,
    /// The most bytes that the directory took so far.
    tables_peak: u64,
    /// Bytes of memory for merges, cursors and keys.
    buffer_bytes: u64,
    /// The checkpoint before which pages were given back that wait for the next.
    freed_at: Option<CheckpointId>,
    /// True if a merge waits for a checkpoint to make room.
    lacks_room: bool,
    /// True while an update is taken step by step: it is not in the memory yet.
    is_midway: bool,
    /// True while updates wait that no journal has: no checkpoint may come before all of them are
    /// flushed.
    is_unrecorded: bool,
    /// True if the last checkpoint has all runs, but for those that came of merging what waits.
    is_settled: bool,
    /// True while runs are changed.
    is_poisoned: bool,
    /// Merges begun, and made.
    begun: u64,
    merges: u64,
    splits: u64,
    joins: u64,
}

impl FlatTree<'_> {
    /// Counts everything again, after runs came or went.
    fn recount(&mut self) {
        self.totals = self.directory.totals();
        self.growth = None;
        self.tables_peak = self.tables_peak.max(self.totals.memory);
        self.due = self.find_due();
    }

    /// Pages were given back, which the last checkpoint may need.
    fn note_freed(&mut self) {
        let file = &self.runs.store.file;
        if file.durability() != Durability::None {
            self.freed_at = Some(file.statistics().checkpoint);
        }
    }
}

impl Read for FlatTree<'_> {
    fn get(&mut self, key: &[u8], offset: u32, into: &mut [u8]) -> Result<Option<u32>> {
        self.look_up(key, (offset, into))
    }

    fn prefetch(&mut self, keys: &[&[u8]]) -> Result<()> {
        self.prefetch_runs(keys)
    }

    fn range<'c>(&'c mut self, range: KeyRange<'_>) -> Result<Box<dyn Cursor + 'c>> {
        for bound in [range.from, range.to] {
            if let Bound::Included(key) | Bound::Excluded(key) = bound {
                self.check_key(key)?;
            }
        }
        Ok(Box::new(Scan::new(self, range)?))
    }

    fn check(&mut self, finding: &mut dyn FnMut(&dyn Display)) -> Result<()> {
        check::check(self, finding)
    }

    fn resume_after(&mut self, key: Option<&[u8]>) -> Result<Resume> {
        key.map_or(Ok(()), |key| self.check_key(key))?;
        let at = key.map_or(0, |key| self.directory.find(key));
        let mut behind = match self.directory.high(at) {
            Some(high) => Resume::From(high.to_vec()),
            None => Resume::End,
        };
        let Some(partition) = self.directory.partitions.get(at) else {
            return Ok(behind);
        };
        let fragments = partition.fragments.iter().map(|it| (Form::Fragment, it.run));
        let runs: Vec<_> = fragments.chain(partition.bottom.map(|it| (Form::Bottom, it))).collect();
        for (form, run) in runs {
            let next = btree::resume_after(self.runs.choose(form), run.root, key)?;
            let is_nearer = match (&next, &behind) {
                (Resume::From(next), Resume::From(behind)) => next < behind,
                (Resume::From(_), _) => true,
                _ => false,
            };
            if is_nearer {
                behind = next;
            }
        }
        Ok(behind)
    }

    fn statistics(&self) -> Statistics {
        let file = &self.runs.store.file;
        let mut memory = file.memory();
        memory.buffers += self.buffer_bytes + self.memtable.memory();
        memory.tables += self.tables_stated();
        Statistics {
            height: u32::from(self.totals.height.max(1)),
            live_pages: file.sectors_used(),
            memory,
            memory_peak: memory.cache + memory.buffers + memory.tables,
        }
    }

    fn metrics(&self, tell: &mut dyn FnMut(&'static str, u64)) {
        tell(NODES_SPLIT, self.splits);
        tell(NODES_MERGED, self.joins);
        tell(UPDATES_WAITING, self.memtable.held(Which::Active).0);
        tell("partitions", self.directory.partitions.len() as u64);
        tell("partitions merged", self.merges);
        tell(MERGES_BROKEN_OFF, self.begun - self.merges);
        tell("entries in fragments", self.totals.pending);
    }

    fn meter(&self) -> Option<&Meter> {
        self.runs.store.file.meter()
    }
}

impl Tree for FlatTree<'_> {
    fn admit(&mut self, batch: &[Update<'_>]) -> Result<()> {
        self.admit_batch(batch)
    }

    fn apply(&mut self, update: &Update<'_>) -> Result<()> {
        // Nobody admitted what a damaged journal holds.
        self.check_update(update)?;
        // A replay hands out stored values, and nothing else comes this way from a journal.
        self.is_unrecorded |= !matches!(update, Update::PutStored { .. });
        loop {
            while self.work(false)? {}
            if self.take(update, false)? {
                return Ok(());
            }
        }
    }

    fn apply_step(&mut self, update: &Update<'_>) -> Result<bool> {
        self.check_update(update)?;
        self.is_midway = true;
        let is_taken = !self.work(true)? && self.take(update, true)?;
        self.is_midway = !is_taken;
        Ok(is_taken)
    }

    fn has_waiting(&self) -> bool {
        // An update that is still to come counts: a replay has to hand it out again.
        self.is_midway || self.has_waiting_updates()
    }

    fn flush(&mut self) -> Result<()> {
        self.is_midway = false;
        self.flush_waiting(!self.is_unrecorded, &mut |_| {})
    }

    fn wants_flush(&self) -> bool {
        let most = self.entry_bytes_most() as u64;
        self.has_long_values() && self.has_waiting_updates() && !self.memtable.takes(1, most)
    }

    fn wants_room(&self) -> bool {
        let file = &self.runs.store.file;
        let is_short = self.waits_for_checkpoint() && (self.lacks_room || self.is_much_freed());
        file.durability().has_journal() && (is_short || file.is_due_within(Some(self.step_pages())))
    }

    fn rebase(&mut self) {
        self.freed_at = None;
        self.is_settled = true;
    }

    fn waits_for_checkpoint(&self) -> bool {
        self.freed_at == Some(self.runs.store.file.statistics().checkpoint)
    }

    fn is_poisoned(&self) -> bool {
        self.is_poisoned
    }

    fn load(&mut self, sorted: &mut dyn Cursor, _: u8) -> Result<u64> {
        self.load_sorted(sorted)
    }

    fn is_due_before(&self, batch: &[Update<'_>]) -> bool {
        FlatTree::is_due_before(self, batch)
    }

    fn prepare(&mut self, batch: &[Update<'_>], meanwhile: Meanwhile<'_, '_>) -> Result<bool> {
        FlatTree::prepare(self, batch, meanwhile)
    }

    fn is_drained(&self) -> bool {
        !self.has_waiting_updates() && self.totals.pending == 0 && self.directory.garbage.is_empty()
    }

    fn drain(&mut self) -> Result<bool> {
        if self.has_waiting_updates() {
            return self.flush_waiting(!self.is_unrecorded, &mut |_| {}).map(|()| true);
        }
        let mut is_made = false;
        while self.has_room_to_free() && self.give_back_garbage()? {
            is_made = true;
        }
        if is_made {
            return Ok(true);
        }
        // As many as have room before a checkpoint gives back what theirs was: who asks comes again
        // behind it.
        self.measure_all()?;
        // Before a batch no more is merged than has to be.
        let is_due = self.is_kept() && self.due_with_room().is_some();
        while self.directory.garbage.is_empty()
            && let Some(at) = if is_due { self.due_with_room() } else { self.largest_pending() }
        {
            self.merge(at, &mut |_| {})?;
            is_made = true;
        }
        Ok(is_made)
    }

    fn root_record(&mut self) -> Result<Vec<u8>> {
        let shape = self.runs.forms.shape();
        let waiting = self.long_values_waiting();
        self.runs.store.file.write_back_all()?;
        Ok(self.directory.encode(shape, &waiting))
    }

    fn restore(&mut self, root: &[u8]) -> Result<()> {
        let (_, pages) = self.runs.store.file.pages_used();
        let (shape, directory) = Directory::decode(root, pages)?;
        if shape != self.runs.forms.shape() {
            let what = "its root record has another shape of entries";
            return Err(store::Error::NotAnIndex { is_ours: true, what }.into());
        }
        self.policy.flushed = directory.flushed();
        self.directory = directory;
        self.memtable.clear();
        (self.freed_at, self.lacks_room) = (None, false);
        (self.is_midway, self.is_poisoned, self.is_unrecorded) = (false, false, false);
        self.is_settled = true;
        self.recount();
        Ok(())
    }

    fn wants_checkpoint(&self, batch: &[Update<'_>]) -> bool {
        if !self.has_waiting_updates() || self.memtable.has_room(More::of(self, batch).bytes()) {
            return false;
        }
        let journal = self.runs.store.file.statistics();
        // As much again has no room there.
        2 * journal.journal_bytes > journal.journal_bytes_most
    }

    fn drains_before(&self, batch: &[Update<'_>]) -> bool {
        self.is_kept() && self.works_before(batch)
    }

    fn admit_savepoint(&mut self) -> Result<()> {
        self.check_room_for_name()
    }

    fn entry_bytes_most(&self) -> usize {
        self.runs.forms.entry_most()
    }

    fn pages_changed(&self, batch: &[Update<'_>]) -> u32 {
        let steps = More::of(self, batch).flushes(self.memtable.memory());
        let base = u64::from(self.step_pages()) * steps + self.pages_changed_by_values(batch);
        let flushed = if self.is_kept() { self.flush_pages(&More::of(self, batch)) } else { 0 };
        u32::try_from(base + flushed).unwrap_or(u32::MAX)
    }

    fn checkpoints_within(&self) -> bool {
        true
    }

    fn recovery(&self) -> &dyn Recovery {
        &self.runs.store.file
    }

    fn recovery_mut(&mut self) -> &mut dyn Recovery {
        &mut self.runs.store.file
    }
}
