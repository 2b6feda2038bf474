//! When partitions are merged, which of them, and how large they are.

use super::FlatTree;
use super::admission::More;
use super::directory::Partition;
use super::growth::Cut;
use super::runs::Form;

/// Of the space that may be taken beyond the data, what entries may take that newer ones hide.
pub(super) const GARBAGE_SHARE: f64 = 0.8;

/// Entries may wait in fragments up to this share of those in bottoms: more of them gain little.
pub(super) const PENDING_MOST: f64 = 0.9;

/// By how much a merge moves the estimate of how many pending entries hide others.
const STEP: f64 = 1.0 / 4.0;

/// When the memory of updates is so full, in hundredths, what the last flush brought is merged.
const PERCENT_MERGED: u32 = 75;

/// What is pending may wait while this part more is free than the next update needs.
const SPARE_PART: u64 = 4;

/// The smallest share of pending entries that is taken to hide others.
const HIDING_LEAST: f64 = 1.0 / 256.0;

/// On a small device a partition has at least this part of the pages, up to so many: else its root,
/// and the leaf that is not full, are a good part of it. And the part of the device's pages that
/// it has at most.
const PARTITIONS_FEW: u64 = 24;
const PAGES_LEAST: u64 = 8;
pub(super) const PAGES_PART: u64 = 64;

/// What a flush gives a partition, if updates are spread evenly: so many pages; or this part of the
/// memory of updates, where that has few.
pub(super) const PAGES_A_FLUSH: u64 = 16;
pub(super) const PARTS_A_FLUSH: u64 = 4;

/// The part of the pages in use that may wait for a checkpoint to be used again, and how many may
/// at least.
const FREED_PART: u32 = 32;
const FREED_LEAST: u32 = 64;

/// What the policy knows.
#[derive(Clone, Copy, Debug)]
pub(super) struct Policy {
    /// How much room there may be for each byte of data.
    pub(super) space: f64,
    /// Bytes of a partition, if they were chosen.
    pub(super) partition: Option<u64>,
    /// Of entries that were merged from fragments, the share that hid others.
    pub(super) hiding: f64,
    /// The most entries that were flushed at once.
    pub(super) flushed: u64,
}

impl Policy {
    pub(super) const fn new(space: f64, partition: Option<u64>) -> Self {
        Policy { space, partition, hiding: 1.0, flushed: 0 }
    }

    /// Learns from a merge in which so many of the `pending` entries hid others.
    pub(super) fn learn(&mut self, pending: u64, hid: u64) {
        if pending > 0 {
            let share = (hid as f64 / pending as f64).min(1.0);
            self.hiding += (share - self.hiding) * STEP;
        }
    }

    /// By how many more entries wait in fragments than should.
    fn excess(&self, bottom: u64, pending: u64) -> f64 {
        let (bottom, pending, flushed) = (bottom as f64, pending as f64, self.flushed as f64);
        let garbage = (self.space - 1.0) * GARBAGE_SHARE * bottom;
        let hidden = pending - garbage.max(flushed) / self.hiding.max(HIDING_LEAST);
        hidden.max(pending - (PENDING_MOST * bottom).max(flushed))
    }
}

/// A partition that is to be merged.
#[derive(Clone, Copy, Debug)]
pub(super) struct Due {
    pub(super) at: usize,
    pub(super) why: Why,
}

/// Why a partition is to be merged.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Why {
    /// Nothing else may come before.
    Pressing,
    /// So many more entries than should wait in all fragments.
    Excess(f64),
    /// It is small, and may fit beside its neighbour.
    Small,
}

impl Due {
    pub(super) const fn pressing(at: usize) -> Self {
        Due { at, why: Why::Pressing }
    }
}

/// The fewest pages that a partition of a small device should have, of so many in use.
fn pages_least(pages: u64) -> u64 {
    (pages / PARTITIONS_FEW).clamp(1, PAGES_LEAST)
}

/// How much there is to gain by merging: pending entries for each that is rewritten.
fn gain(partition: &Partition) -> f64 {
    partition.pending() as f64 / (partition.bottom_entries() + 64) as f64
}

impl FlatTree<'_> {
    /// Of the entries of a partition, the share that merging it leaves, as far as can be told.
    fn share_left(&self, partition: &Partition) -> f64 {
        // Counts are what a manifest says: in a damaged one they may be anything.
        let (bottom, pending) = (partition.bottom_entries() as f64, partition.pending() as f64);
        1.0 - pending * self.policy.hiding / (bottom + pending).max(1.0)
    }

    /// Pages that merging a partition comes to, as far as can be told.
    pub(super) fn pages_expected(&self, partition: &Partition) -> u64 {
        let pages = match partition.bottom {
            // Fragments have pages that are not full.
            Some(run) if run.entries > 0 => {
                let more = partition.pending() as f64 / run.entries as f64;
                (f64::from(run.pages) * (1.0 + more)).min(partition.pages() as f64)
            }
            _ => partition.pages() as f64,
        };
        (pages * self.share_left(partition)) as u64
    }

    /// Bytes in leaves that merging a partition comes to, as far as can be told.
    pub(super) fn bytes_expected(&self, partition: &Partition) -> u64 {
        let bytes = match partition.content {
            Some(content) => u64::from(content.bytes),
            None => partition.pages().saturating_mul(self.leaf_room()),
        };
        (bytes as f64 * self.share_left(partition)) as u64
    }

    /// Bytes of entries that a leaf of a bottom has room for.
    pub(super) fn leaf_room(&self) -> u64 {
        self.runs.forms.of(Form::Bottom).leaf.entries_room() as u64
    }

    /// Pages that a partition should have.
    pub(super) fn partition_pages(&self) -> u64 {
        let file = &self.runs.store.file;
        let page = u64::from(file.page_bytes());
        if let Some(bytes) = self.policy.partition {
            return (bytes / page).max(1);
        }
        let memory = self.memtable.memory().max(1);
        let part = (PAGES_A_FLUSH * page).min(memory / PARTS_A_FLUSH);
        let wanted = self.totals.pages.saturating_mul(part) / memory;
        let most = u64::from(file.pages_most()) / PAGES_PART;
        let least = if self.is_small() { pages_least(self.totals.pages) } else { 1 };
        wanted.clamp(least, most.max(least))
    }

    /// True if the device has so few pages that the least partition counts.
    pub(super) fn is_small(&self) -> bool {
        u64::from(self.runs.store.file.pages_most()) < 2 * PAGES_LEAST * PAGES_PART
    }

    /// The partition to merge next, if one has something pending.
    pub(super) fn most_pending(&self) -> Option<usize> {
        let partitions = self.directory.partitions.iter().enumerate();
        let some = partitions.filter(|(_, partition)| !partition.fragments.is_empty());
        let best = some.max_by(|(_, one), (_, other)| gain(one).total_cmp(&gain(other)));
        best.map(|(at, _)| at)
    }

    /// The partition with most pages of fragments among those that can be merged now.
    pub(super) fn largest_pending(&self) -> Option<usize> {
        let partitions = &self.directory.partitions;
        let pending = (0..partitions.len()).filter(|at| !partitions[*at].fragments.is_empty());
        let is_alone = |at: usize| self.may_merge_waiting() && self.joined(at).len() == 1;
        let room = |at: &usize| match is_alone(*at) {
            true => self.has_room_for_merged(*at, Cut::NONE),
            false => self.has_room_to_merge(*at),
        };
        pending.filter(room).max_by_key(|at| partitions[*at].fragment_pages())
    }

    /// The partition that has to be merged, if one has.
    pub(super) fn find_due(&self) -> Option<Due> {
        if let Some(at) = self.find_pressing() {
            return Some(Due::pressing(at));
        }
        let excess = self.policy.excess(self.totals.bottom_entries, self.totals.pending);
        if excess > 0.0 {
            return self.most_pending().map(|at| Due { at, why: Why::Excess(excess) });
        }
        let small = (0..self.directory.partitions.len()).find(|at| self.joined(*at).len() > 1);
        small.map(|at| Due { at, why: Why::Small })
    }

    /// The partition that has to be merged before the next update, if one has.
    fn find_pressing(&self) -> Option<usize> {
        let partitions = &self.directory.partitions;
        // One more may come with the batch that is let in, and one with the checkpoint behind it.
        if self.totals.fragments_most + 2 >= self.fragments_most {
            let most = (0..partitions.len()).max_by_key(|at| partitions[*at].fragments.len());
            return most.filter(|at| !partitions[*at].fragments.is_empty());
        }
        let memory = self.totals.memory;
        let is_tight = self.tables_most.is_some_and(|most| memory > most / 4 * 3);
        if is_tight { self.most_pending() } else { None }
    }

    /// True if what is due may wait no longer, with so many hundredths of the memory `used`. A
    /// flush brings many entries at once, and many partitions may be small at once: their merges
    /// are spread over the updates that fill the memory again.
    pub(super) fn is_pressing(&self, due: Due, used: u32) -> bool {
        match due.why {
            Why::Pressing => true,
            Why::Small => self.joined_at.is_none_or(|at| used > at),
            Why::Excess(excess) => {
                let needs = self.needs(&More::of_a_put());
                let is_short =
                    needs + needs / SPARE_PART > self.runs.store.file.pages_free().into();
                let left =
                    f64::from(PERCENT_MERGED.saturating_sub(used)) / f64::from(PERCENT_MERGED);
                is_short || excess > self.policy.flushed as f64 * left
            }
        }
    }

    /// True if a checkpoint is to give back what merges freed, before the file grows for others.
    pub(super) fn is_much_freed(&self) -> bool {
        let file = &self.runs.store.file;
        file.pages_freed() > (file.pages_used().0 / FREED_PART).max(FREED_LEAST)
    }

    /// True if lookups paid for the merge of a partition.
    pub(super) fn has_paid(partition: &Partition) -> bool {
        u64::from(partition.paid) > 2 * partition.pages()
    }
}
