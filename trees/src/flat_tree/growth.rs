//! What merging writes, counted before: so what is nearly full is filled without fragments.
//!
//! Where a flush as fragments has no room any more, and the file can't grow, what waits in memory
//! is **merged** into bottoms: partition by partition, each as soon as what it writes is free, with
//! checkpoints between that free what was given back. So the free pages have to take one partition
//! at a time, and what all of them grow by.
//!
//! One inequality, of pages that are free behind the next checkpoint: `G + L + R + D <= free`.
//!
//! - `G`: by how many pages all partitions together grow if everything is merged;
//! - `L`: pages of the largest partition, whose old runs stay while it is merged, then or later;
//! - `R`: a root record that is longer than the last;
//! - `D`: what puts leave to deletes.
//!
//! # Invariant
//! A merge leaves no more pages in use than were counted: the old ones and the partition's part of
//! `G`. Of deletes that is nothing, so pages in use do not grow under them. Why that holds:
//!
//! - Leaves are filled one after the other as far as they go, and no way to cut sorted entries into
//!   leaves has fewer. So fewer entries have no more leaves, and a put adds two at most: it may
//!   stand alone between what its leaf held below and above it.
//! - What a leaf leaves free is less than the longest entry: so `bytes / (room - longest)` leaves
//!   hold any entries of so many bytes, whichever runs they come from. Bytes are counted with the
//!   prefix that all keys of the partition have in common, and leaves only have longer ones.
//! - No cut of a bottom and no join is part of `G`. Both are made where what waits would have room
//!   as fragments, with deletes, beside what they add. Else no partition is joined, and a bottom is
//!   cut where as much again as `L` stays free, or `L` gets smaller by more than the cut adds.
//!
//! A replay comes to other merges than there were: so this counts only from the last state of which
//! a checkpoint has everything, and to which nothing was added but by merging what waits. What was
//! cut then has a checkpoint behind it before an update comes.

use alloc::vec::Vec;

use device::Cause;
use index::{Direction, Result};
use store::node::Codec;
use store::runs::{Kind, MemtableCursor, Source as _, Way, Which};
use store::{Durability, OverflowValue, Recovery as _, Update};

use super::FlatTree;
use super::admission::More;
use super::directory::{Directory, Partition, Waiting};
use super::runs::{Content, Form, LONG, RunCursor};

/// Pages that puts leave to deletes: so many, and this part of those in use.
const KEPT_PAGES: u64 = 4;
const KEPT_PART: u64 = 128;

/// Pages of a root record that is longer than the last, for which the page file has room.
const RECORD_PAGES: u64 = 2;

/// Pages that a piece of a bottom that is cut adds: a leaf that is not full, and a root.
pub(super) const CUT_PAGES: u64 = 2;

/// Leaves that a put adds at most, where it stands between two halves of one.
const LEAVES_A_PUT: u64 = 2;

/// What a child takes in a node beside its key, at most.
const CHILD_BESIDE: u64 = 12;

/// The fewest children that a full node above leaves has.
const CHILDREN_LEAST: u64 = 4;

/// The part of a partition's pages by which nodes above leaves become more, where they are several.
const MORE_ABOVE_PART: u64 = 32;

/// The part of the memory that a batch may take to find room in an empty one.
const BATCH_PART: u64 = 4;

/// How partitions grow if all that waits is merged.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Growth {
    /// By how many pages, all together.
    pages: u64,
    /// Pages of the largest then: when it is merged again they stay.
    largest: u64,
}

impl Growth {
    /// One more partition, which grows by so many pages and has so many then.
    fn add(&mut self, pages: u64, merged: u64) {
        self.pages += pages;
        self.largest = self.largest.max(merged);
    }
}

/// How a bottom is cut.
#[derive(Clone, Copy, Debug)]
pub(super) struct Cut {
    /// Bytes in leaves of each piece, after which it ends.
    pub(super) bytes: u64,
    /// Leaves of each piece, at most.
    pub(super) leaves: u64,
    /// Pages that it adds at most.
    pub(super) pages: u64,
}

impl Cut {
    pub(super) const NONE: Self = Cut { bytes: u64::MAX, leaves: u64::MAX, pages: 0 };
}

impl FlatTree<'_> {
    /// True if what waits can be merged into bottoms step by step: the file is as long as it gets,
    /// no name needs what is given back, and checkpoints may come between.
    pub(super) fn may_merge_waiting(&self) -> bool {
        let file = &self.runs.store.file;
        let durability = file.durability();
        let is_freed = durability == Durability::None || durability.has_journal();
        is_freed && !self.is_kept() && file.pages_to_grow() == 0
    }

    /// Pages free behind the next checkpoint.
    fn pages_free_then(&self) -> u64 {
        let file = &self.runs.store.file;
        u64::from(file.pages_free()) + u64::from(file.pages_freed())
    }

    /// Pages that are to be free behind the next checkpoint, where partitions grow so.
    fn needs_merged(&self, growth: Growth, has_puts: bool) -> u64 {
        let kept = if has_puts { KEPT_PAGES + self.totals.pages / KEPT_PART } else { 0 };
        growth.pages + growth.largest.max(self.totals.largest) + self.record_pages() + kept
    }

    fn record_pages(&self) -> u64 {
        self.totals.record_bytes / u64::from(self.runs.store.file.page_bytes()) + RECORD_PAGES
    }

    /// True if there is room for `batch` when all that waits is merged with it.
    pub(super) fn has_room_merged(&mut self, batch: &[Update<'_>], more: &More) -> Result<bool> {
        let is_short = BATCH_PART * more.bytes() <= self.memtable.memory();
        // A batch that is in no journal is flushed at once.
        let is_recorded = !self.runs.store.file.lasts_by_checkpoint(batch, true);
        if !is_short || !is_recorded || !self.is_settled || !self.may_merge_waiting() {
            return Ok(false);
        }
        if self.growth.is_none() {
            self.count_waiting()?;
        }
        self.count_batch(batch)?;
        let growth = self.growth.unwrap_or_default();
        let needs = self.needs_merged(growth, more.has_puts()) + more.pages();
        let has_room = needs <= self.pages_free_then();
        if !has_room {
            // What was counted does not come.
            self.forget_waiting();
        }
        Ok(has_room)
    }

    /// True if what waits would have room as fragments behind a checkpoint, with deletes, beside so
    /// many pages; or if it never comes there otherwise, so that admission has counted them.
    pub(super) fn has_room_beside(&self, pages: u64) -> bool {
        let needs = self.needs(&More::of_a_put()) + pages;
        !self.may_merge_waiting() || needs <= self.pages_free_then()
    }

    /// Counts what `batch` adds to that which waits, if that is counted.
    pub(super) fn count_batch(&mut self, batch: &[Update<'_>]) -> Result<()> {
        let Some(mut growth) = self.growth else {
            return Ok(());
        };
        for update in batch {
            let Some(bytes) = self.bytes_of(update) else {
                continue;
            };
            let at = self.directory.find(update.key());
            growth.pages = growth.pages.saturating_sub(self.growth_of(at));
            self.add_waiting(at, update.key(), bytes);
            self.measure(at)?;
            growth.add(self.growth_of(at), self.pages_merged(at));
        }
        self.growth = Some(growth);
        Ok(())
    }

    /// Bytes that the value of a put takes in a leaf.
    fn bytes_of(&self, update: &Update<'_>) -> Option<usize> {
        match update {
            Update::Put { key, value } if self.is_long(key.len(), value.len() as u64) => {
                Some(OverflowValue::ENCODED_BYTES)
            }
            Update::Put { value, .. } => Some(value.len()),
            Update::PutStored { .. } => Some(OverflowValue::ENCODED_BYTES),
            Update::Delete { .. } => None,
        }
    }

    fn add_waiting(&mut self, at: usize, key: &[u8], bytes: usize) {
        let prefix = self.directory.prefix(at);
        let leaf = self.runs.forms.of(Form::Bottom).leaf;
        if let Some(partition) = self.directory.partitions.get_mut(at) {
            partition.waiting.add(Content::of(&leaf, (key.len(), prefix), bytes));
        }
    }

    /// Counts what waits for each partition.
    pub(super) fn count_waiting(&mut self) -> Result<()> {
        let leaf = self.runs.forms.of(Form::Bottom).leaf;
        let mut cursor = self.memtable.cursor(Which::Active, [Vec::new(), Vec::new()]);
        for at in 0..self.directory.partitions.len() {
            self.directory.count(at, &mut cursor, &leaf);
        }
        drop(cursor);
        self.measure_all()?;
        let mut growth = Growth::default();
        for at in 0..self.directory.partitions.len() {
            growth.add(self.growth_of(at), self.pages_merged(at));
        }
        self.growth = Some(growth);
        Ok(())
    }

    /// Nothing that waits is counted.
    pub(super) fn forget_waiting(&mut self) {
        for partition in &mut self.directory.partitions {
            partition.waiting = Waiting::default();
        }
        self.growth = None;
    }

    /// Learns what the entries of all partitions take, of which that counts.
    pub(super) fn measure_all(&mut self) -> Result<()> {
        (0..self.directory.partitions.len()).try_for_each(|at| self.measure(at))
    }

    /// Learns what the entries of the partition at `at` take, if that counts: after an opening it
    /// is not known.
    fn measure(&mut self, at: usize) -> Result<()> {
        let is_wanted = |it: &&Partition| {
            let grows = it.waiting.puts > 0 || !it.fragments.is_empty();
            // One that is not known may grow without a put, as `pages_merged` counts it.
            it.content.is_none() && (grows || it.pages() > CHILDREN_LEAST)
        };
        let Some(partition) = self.directory.partitions.get(at).filter(is_wanted) else {
            return Ok(());
        };
        let prefix = self.directory.prefix(at);
        let leaf = self.runs.forms.of(Form::Bottom).leaf;
        let mut content = Content::default();
        let fragments = partition.fragments.iter().map(|it| (Form::Fragment, it.run));
        for run in fragments.chain(partition.bottom.map(|run| (Form::Bottom, run))) {
            let mut cursor = RunCursor::whole(&mut self.runs, run, Cause::Merge)?;
            while cursor.load(&mut self.runs, Direction::Ascending)? {
                if let Some(bytes) = cursor.held().bytes() {
                    content = content.with(Content::of(&leaf, (cursor.key().len(), prefix), bytes));
                }
                cursor.pass(Direction::Ascending);
            }
        }
        if let Some(partition) = self.directory.partitions.get_mut(at) {
            partition.content = Some(content);
        }
        Ok(())
    }

    /// Counts what waits for the partition at `at`; returns how many updates do.
    pub(super) fn count_waiting_at(&mut self, at: usize) -> u64 {
        let leaf = self.runs.forms.of(Form::Bottom).leaf;
        let mut cursor = self.memtable.cursor(Which::Active, [Vec::new(), Vec::new()]);
        if let Some(partition) = self.directory.partitions.get(at).filter(|_| at > 0) {
            cursor.seek(&partition.low, false);
        }
        self.directory.count(at, &mut cursor, &leaf)
    }

    /// By how many pages the partition at `at` grows if it is merged with the puts counted for it.
    pub(super) fn growth_of(&self, at: usize) -> u64 {
        let pages = self.directory.partitions.get(at).map_or(0, Partition::pages);
        self.pages_merged(at).saturating_sub(pages)
    }

    /// Pages that merging the partition at `at` writes at most, with the puts counted for it, where
    /// its bottom is not cut.
    pub(super) fn pages_merged(&self, at: usize) -> u64 {
        let Some(partition) = self.directory.partitions.get(at) else {
            return 0;
        };
        let Waiting { puts, content } = partition.waiting;
        let (pages, is_bottom_alone) = (partition.pages(), partition.fragments.is_empty());
        let prefix = self.directory.prefix(at);
        let leaf = self.runs.forms.of(Form::Bottom).leaf;
        let room = leaf.entries_room() as u64;
        let known = partition.content.filter(|content| content.bytes < u32::MAX);
        if puts == 0 && is_bottom_alone {
            // Keys that separate fewer leaves may be longer than those that did before.
            let children = known.map_or(u64::MAX, |content| children_least(room, content));
            return if pages <= children { pages } else { pages + pages / MORE_ABOVE_PART + 1 };
        }
        let held = known.unwrap_or_else(|| {
            let most = self.runs.forms.entry_most();
            let bytes = u32::try_from(pages.saturating_mul(room)).unwrap_or(u32::MAX);
            Content { bytes, ..Content::of(&leaf, (most, 0), 0) }
        });
        let all = held.with(content);
        let mut leaves = leaves_most(room, prefix, all);
        if is_bottom_alone {
            leaves = leaves.min(pages + LEAVES_A_PUT * u64::from(puts));
        }
        nodes_most(room, all, leaves).0
    }

    /// True if the partition at `at` can be merged now, with the puts counted for it and so cut.
    pub(super) fn has_room_for_merged(&self, at: usize, cut: Cut) -> bool {
        let free = u64::from(self.runs.store.file.pages_free());
        self.pages_merged(at) + cut.pages + self.record_pages() <= free
    }

    /// What merging the partition at `at` writes is merged.
    pub(super) fn note_merged(&mut self, grown: u64) {
        if let Some(growth) = &mut self.growth {
            growth.pages = growth.pages.saturating_sub(grown);
        }
    }

    /// How the bottom of the partition at `at`, merged with the puts counted for it, is cut: not
    /// where that takes room that others were let in with. With deletes nothing is.
    pub(super) fn cut_merged(&self, at: usize) -> Cut {
        let (merged, wanted) = (self.pages_merged(at), self.partition_pages());
        let partition = self.directory.partitions.get(at);
        let (puts, pages) = partition.map_or((0, 0), |it| (it.waiting.puts, it.pages()));
        if puts == 0 || 4 * merged <= 5 * wanted {
            return Cut::NONE;
        }
        let growth = self.growth.unwrap_or_default();
        let largest = growth.largest.max(self.totals.largest);
        let is_largest = merged.max(pages) >= largest;
        let others = if is_largest { self.largest_beside(at) } else { largest };
        let needs = self.needs_merged(growth, true) + largest;
        let waits = index::Tree::waits_for_checkpoint(self);
        let mut pieces = merged.div_ceil(wanted);
        while pieces > 1 {
            let (cut, piece) = self.cut_in(at, pieces);
            let is_free = needs + cut.pages <= self.pages_free_then();
            let is_paid = others.max(piece) + cut.pages < merged;
            if (is_free || is_paid) && (waits || self.has_room_for_merged(at, cut)) {
                return cut;
            }
            pieces /= 2;
        }
        Cut::NONE
    }

    /// The bottom of the partition at `at`, merged with what was counted for it, in so many pieces;
    /// and the most pages of one.
    fn cut_in(&self, at: usize, pieces: u64) -> (Cut, u64) {
        let content = self.directory.partitions.get(at).and_then(|it| {
            let held = it.content?.with(it.waiting.content);
            (held.bytes < u32::MAX && pieces > 1).then_some(held)
        });
        let Some(all) = content else {
            return (Cut::NONE, self.pages_merged(at));
        };
        let room = self.leaf_room();
        let bytes = u64::from(all.bytes).div_ceil(pieces);
        let piece = Content { bytes: bytes as u32 + u32::from(all.longest), ..all };
        let leaves = leaves_most(room, self.directory.prefix(at), piece);
        let (pages, levels) = nodes_most(room, all, leaves);
        // Of each piece the last node of a level is not full.
        (Cut { bytes, leaves, pages: pieces * levels.max(CUT_PAGES) }, pages)
    }

    /// Pages of the largest partition but that at `at`, with the puts counted for them.
    fn largest_beside(&self, at: usize) -> u64 {
        let partitions = self.directory.partitions.iter().enumerate();
        let others = partitions.filter(|(other, _)| *other != at);
        let pages = others.map(|(other, it)| it.pages().max(self.pages_merged(other)));
        pages.max().unwrap_or(0)
    }
}

/// The most leaves that hold `all`, with so much room in each, if all keys have `prefix` bytes in
/// common.
fn leaves_most(room: u64, prefix: usize, all: Content) -> u64 {
    let filled = (room + 1).saturating_sub(prefix as u64 + u64::from(all.longest));
    u64::from(all.bytes).div_ceil(filled.max(room / 2))
}

/// The most nodes of so many leaves and above them, and levels of these.
fn nodes_most(room: u64, all: Content, leaves: u64) -> (u64, u64) {
    let (mut nodes, mut level, mut levels) = (leaves, leaves, 1);
    while level > 1 {
        level = level.div_ceil(children_least(room, all));
        nodes += level;
        levels += 1;
    }
    (nodes, levels)
}

/// The fewest children of a full node above leaves, with so much room, where keys are no longer.
fn children_least(room: u64, content: Content) -> u64 {
    (room / (u64::from(content.longest_key) + CHILD_BESIDE)).max(CHILDREN_LEAST)
}

impl Directory {
    /// Counts what waits for the partition at `at`, from where `cursor` stands to where that ends;
    /// returns how many updates there are.
    fn count(&mut self, at: usize, cursor: &mut MemtableCursor<'_>, leaf: &Codec) -> u64 {
        let (mut waiting, mut updates) = (Waiting::default(), 0);
        let (high, prefix) = (self.high(at), self.prefix(at));
        while cursor.advance(Way::Up) {
            let is_beyond = |key: &[u8]| high.is_some_and(|high| key >= high);
            let Some(entry) = cursor.head(Way::Up).filter(|entry| !is_beyond(entry.key)) else {
                break;
            };
            if entry.kind == Kind::Put || entry.kind == LONG {
                waiting.add(Content::of(leaf, (entry.key.len(), prefix), entry.value.len()));
            }
            updates += 1;
            cursor.step(Way::Up);
        }
        if let Some(partition) = self.partitions.get_mut(at) {
            partition.waiting = waiting;
        }
        updates
    }
}
