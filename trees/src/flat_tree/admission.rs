//! Room: pages are counted before an update is let in.
//!
//! One inequality, of pages that are free now: `F + M + R + D <= free`.
//!
//! - `F`: what a flush of all that waits writes, the batch included;
//! - `M`: what the largest merge writes that may come then: all of `F` may go to one partition;
//! - `R`: the next root record;
//! - `D`: what puts leave to deletes.
//!
//! What a merge gives back is free behind the next checkpoint. So whatever is let in can be
//! flushed, and one partition after the other merged, with a checkpoint in between.
//!
//! While a checkpoint is kept by name, a page that is used again may have an image that stays: so
//! each takes room, and no checkpoint comes inside a batch. Then partitions are merged only before
//! a batch, with a checkpoint behind, and none gets more fragments until the next. So a replay,
//! which comes to no merge either, takes the room that the batches before it were let in with.

use index::Result;
use store::runs::Which;
use store::{Recovery as _, Update, Width};

use super::FlatTree;
use super::directory::Fragment;
use super::filter::Filter;
use super::make::tables_least;
use super::runs::Form;

/// Bytes that an entry takes in a page beside its key and value, at most.
const ENTRY_BESIDE: u64 = 16;

/// Pages that a run takes beside its entries: a leaf and a root that are not full.
const RUN_PAGES: u64 = 2;

/// Pages that a merge may write beyond those that it reads.
const MERGE_PAGES: u64 = 8;

/// Pages that puts leave to deletes: so many, and this part of those in use.
const KEPT_PAGES: u64 = 8;
const KEPT_PART: u64 = 32;

/// Pages of a root record beside those that its bytes fill.
const RECORD_PAGES: u64 = 3;

/// Pages of free lists, and of the page file's own, that a step changes.
const STEP_PAGES: u32 = 8;

/// What is to find room.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct More {
    updates: u64,
    bytes: u64,
    /// Pages of long values.
    pages: u64,
    has_puts: bool,
}

impl More {
    /// A put whose room is counted elsewhere.
    pub(super) const fn of_a_put() -> Self {
        More { updates: 0, bytes: 0, pages: 0, has_puts: true }
    }

    pub(super) const fn bytes(&self) -> u64 {
        self.bytes
    }

    pub(super) const fn pages(&self) -> u64 {
        self.pages
    }

    pub(super) const fn has_puts(&self) -> bool {
        self.has_puts
    }

    /// What a batch needs room for.
    pub(super) fn of(tree: &FlatTree<'_>, batch: &[Update<'_>]) -> Self {
        let mut more = More { updates: batch.len() as u64, ..More::default() };
        for update in batch {
            more.bytes += update.key().len() as u64;
            if let Update::Put { key, value } = update {
                more.has_puts = true;
                if tree.is_long(key.len(), value.len() as u64) {
                    let pages = tree.runs.store.file.pages_for_long(value.len() as u32);
                    more.pages += u64::from(pages);
                } else {
                    more.bytes += value.len() as u64;
                }
            }
        }
        more
    }

    /// Flushes that it takes: what is longer than the memory of updates is flushed more than once.
    pub(super) fn flushes(&self, memory: u64) -> u64 {
        1 + 4 * self.bytes / memory.max(1)
    }
}

/// Pages that an empty tree needs to take its first entry.
pub(super) fn needs_at_first() -> u64 {
    let flush = 1 + RUN_PAGES + 1;
    2 * flush + MERGE_PAGES + KEPT_PAGES + RECORD_PAGES + 2
}

impl FlatTree<'_> {
    /// Pages of leaves, and of nodes above them, that so many entries fill.
    fn pages_of(&self, entries: u64, bytes: u64) -> u64 {
        let codecs = self.runs.forms.of(Form::Fragment);
        let leaves = match (codecs.shape.key, codecs.shape.value) {
            (Width::Fixed(key), Width::Fixed(value)) => {
                let capacity = codecs.leaf.capacity(key.into(), value.into()) as u64;
                entries.div_ceil(capacity.max(1))
            }
            // An entry that finds no room has a quarter of a page at most.
            _ => {
                let page = codecs.leaf.node_bytes() as u64 - 32;
                (bytes + ENTRY_BESIDE * entries).div_ceil(page / 3 * 2)
            }
        };
        leaves + leaves / 3
    }

    /// Pages that a flush writes, with so much more.
    pub(super) fn flush_pages(&self, more: &More) -> u64 {
        let (waiting, bytes) = self.memtable.held(Which::Active);
        let (entries, bytes) = (waiting + more.updates, bytes + more.bytes);
        let partitions = self.directory.partitions.len() as u64;
        let runs = entries.min(partitions.saturating_mul(more.flushes(self.memtable.memory())));
        self.pages_of(entries, bytes) + RUN_PAGES * runs
    }

    /// Pages that are taken until all that waits is flushed, with so much more.
    fn pages_taken(&self, more: &More) -> u64 {
        self.flush_pages(more) + more.pages
    }

    /// Pages that are to be free, with so much more.
    pub(super) fn needs(&self, more: &More) -> u64 {
        let flush = self.flush_pages(more);
        let merge = self.totals.largest / 3 * 4 + flush + MERGE_PAGES;
        let record = self.totals.record_bytes + 64 * flush;
        let record = record / u64::from(self.runs.store.file.page_bytes()) + RECORD_PAGES;
        let kept = match more.has_puts {
            true => {
                // A bottom may come to have a page more, though it has fewer entries.
                let partitions = self.directory.partitions.len() as u64;
                KEPT_PAGES + self.totals.pages / KEPT_PART + partitions
            }
            false => 0,
        };
        flush + merge + record + kept + more.pages
    }

    pub(super) fn admit_batch(&mut self, batch: &[Update<'_>]) -> Result<()> {
        for update in batch {
            self.check_update(update)?;
        }
        let full = store::Error::Full { pages: u64::from(self.runs.store.file.pages_most()) };
        // Where only a checkpoint gives room back, a merge may have had none.
        if self.is_kept() && self.lacks_fragments(batch) {
            let kept = self.runs.store.file.statistics().kept_bytes;
            return Err(store::Error::Kept { kept }.into());
        }
        while !self.is_kept() && self.totals.fragments_most + 1 >= self.fragments_most {
            match self.due_with_room() {
                Some(at) => self.merge(at, &mut |_| {})?,
                None => return Err(full.into()),
            }
        }
        let more = More::of(self, batch);
        self.check_tables(&more)?;
        self.owed = self.pages_taken(&more);
        let (needs, file) = (self.needs(&more), &self.runs.store.file);
        // While names are kept, pages that are used again have images beside them.
        if needs <= file.pages_free().into() && (!self.is_kept() || file.has_pages_now(needs)) {
            return self.count_batch(batch);
        }
        match self.has_room_merged(batch, &more)? {
            true => Ok(()),
            false => Err(full.into()),
        }
    }

    /// Refuses what the tables have no room for, if that is bounded.
    pub(super) fn check_tables(&self, more: &More) -> Result<()> {
        let Some(most) = self.tables_most.filter(|_| more.has_puts) else {
            return Ok(());
        };
        let entries = self.memtable.held(Which::Active).0 + more.updates;
        let runs = entries.min(self.directory.partitions.len() as u64);
        let each = 2 * size_of::<Fragment>() as u64 + 32;
        let more = runs * each + Filter::bytes_for(entries, self.filter_bits);
        let taken = (self.totals.memory + more).max(tables_least(&self.runs.forms));
        let need = self.runs.store.file.memory().tables + taken;
        match need <= most {
            true => Ok(()),
            false => Err(store::Error::LittleTables { have: most, need }.into()),
        }
    }

    /// Bytes of tables that are stated.
    pub(super) fn tables_stated(&self) -> u64 {
        self.tables_peak.max(tables_least(&self.runs.forms))
    }

    /// True if a page that is used again may have to be kept for a checkpoint with a name.
    pub(super) fn is_kept(&self) -> bool {
        self.runs.store.file.keeps_free_pages()
    }

    /// True if a partition may come to have too many fragments with `batch` and the checkpoint
    /// behind it, if none is merged.
    fn lacks_fragments(&self, batch: &[Update<'_>]) -> bool {
        let flushes = More::of(self, batch).flushes(self.memtable.memory()) + 1;
        self.totals.fragments_most as u64 + flushes > self.fragments_most as u64
    }

    /// True if a partition has to be merged before `batch` comes, and can be; or if long values can
    /// be given back.
    pub(super) fn works_before(&self, batch: &[Update<'_>]) -> bool {
        let lacks_fragments = self.lacks_fragments(batch);
        let has_garbage = !self.directory.garbage.is_empty() && self.has_room_to_free();
        has_garbage
            || self.due_with_room().is_some()
            || lacks_fragments && self.largest_pending().is_some()
    }

    /// The partition that has to be merged, if there is room for it.
    pub(super) fn due_with_room(&self) -> Option<usize> {
        self.due.map(|due| due.at).filter(|at| self.has_room_to_merge(*at))
    }

    /// True if there is room to merge the partition at `at`, and for the rest of a batch and for a
    /// flush beside.
    pub(super) fn has_room_to_merge(&self, at: usize) -> bool {
        let range = self.joined(at);
        let partitions = self.directory.partitions.get(range).unwrap_or_default();
        let pages: u64 = partitions.iter().map(super::directory::Partition::pages).sum();
        let flush = self.flush_pages(&More::default()).max(self.owed);
        self.runs.store.file.has_pages_now(pages / 3 * 4 + MERGE_PAGES + flush)
    }

    /// True if what waits has room as fragments, and deletes have theirs then.
    pub(super) fn has_room_to_flush(&self) -> bool {
        let needs = self.needs(&More::of_a_put());
        !self.may_merge_waiting() || needs <= u64::from(self.runs.store.file.pages_free())
    }

    /// Refuses a name where what comes would find no room as fragments, for while it is kept
    /// nothing is merged step by step; or where what waits needs room that other names leave.
    pub(super) fn check_room_for_name(&self) -> Result<()> {
        let file = &self.runs.store.file;
        let lacks_room =
            self.may_merge_waiting() && self.needs(&More::default()) > file.pages_free().into();
        if lacks_room || self.is_kept() && self.has_waiting_updates() {
            return Err(store::Error::Full { pages: file.pages_most().into() }.into());
        }
        Ok(())
    }

    /// Pages in use that a step changes: those of free lists.
    pub(super) fn step_pages(&self) -> u32 {
        match self.directory.longest {
            0 => STEP_PAGES,
            longest => STEP_PAGES + self.runs.store.file.pages_changed_to_free_long(longest),
        }
    }

    /// True if pages can be given back before a checkpoint.
    pub(super) fn has_room_to_free(&self) -> bool {
        self.runs.store.file.changes_left(0, 0) >= self.step_pages()
    }
}
