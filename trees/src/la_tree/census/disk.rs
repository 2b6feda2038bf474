//! Room: what may be changed before the next checkpoint, and what is admitted.
//!
//! The page file keeps what pages held at the last checkpoint, for a bounded number of pages.
//! Emptying a buffer goes leaf by leaf, and each leaf is a **step**: where there is no room left to
//! keep the pages of one step more, what has not gone down is put back into the buffers, and goes
//! down after the next checkpoint. A tree without buffers does the same: what would change one leaf
//! too many waits in the root's buffer, and so does all that comes as long as anything waits.
//!
//! # Invariant
//! An update is admitted if, with it, `P + W + K + R(A + I) + N R(C) <= D`, in pages of the disk:
//!
//! - `P`: the pages that were ever used;
//! - `W`: those that all that is pending makes beyond the free ones: nodes, fragments, the state at
//!   a checkpoint beside the last one's, what a replay may leave in buffers, the page file's own.
//!   Deletes draw on a reserve that puts leave;
//! - `K`: what names keep of the undo log; `R(i)`: what `i` images take of it;
//! - `A + I`: images that there always is room for, and those of free pages and their lists in `W`;
//! - `N R(C)`: for each of `N` names, the checkpoint that forgets it, which changes `C` pages.
//!
//! A name is one `N` more; a step leaves what `W` and `N` take. Where nothing changed, the state is
//! not written again: so `C` counts the page file's own pages alone, and closing takes none.

use store::{Durability, OverflowValue, Recovery, Update};

use super::super::disk::Disk;
use super::super::layout::{PIECE_BYTES, ROOT_BYTES};
use super::super::limits::Limits;
use super::super::plan::Plan;
use super::Census;

/// Pages of a root record that is longer than a superblock has room for, twice.
const ROOT_PAGES: u64 = 6;

/// What is to find room beside what is pending.
#[derive(Clone, Copy, Debug, Default)]
pub(in super::super) struct More {
    pub(in super::super) puts: u64,
    pub(in super::super) deletes: u64,
    /// Bytes of their entries.
    pub(in super::super) bytes: u64,
    /// Pages of long values.
    pub(in super::super) pages: u64,
    /// Checkpoints that are kept.
    pub(in super::super) names: usize,
}

impl More {
    /// What `batch` brings.
    pub(in super::super) fn of(batch: &[Update<'_>], limits: &Limits, disk: &Disk<'_>) -> Self {
        let mut more = More::default();
        for update in batch {
            let (key, value) = match update {
                Update::Put { key, value } => (key, value.len()),
                Update::Delete { key } => (key, 0),
                Update::PutStored { key, .. } => (key, OverflowValue::ENCODED_BYTES),
            };
            let is_delete = matches!(update, Update::Delete { .. });
            more.puts += u64::from(!is_delete);
            more.deletes += u64::from(is_delete);
            let long = limits.long_bytes(update);
            more.pages += long.map_or(0, |length| u64::from(disk.file.pages_for_long(length)));
            let value = long.map_or(value, |_| OverflowValue::ENCODED_BYTES);
            more.bytes += (key.len() + value + 1) as u64;
        }
        more
    }
}

/// What of a disk matters.
#[derive(Clone, Copy, Debug, Default)]
struct Now {
    durability: Durability,
    /// Bytes that went down to leaves, which a replay may leave in buffers.
    gone_down: u64,
    /// True if there are pages of fragments.
    fragments: bool,
    /// Pages with such that are in use, and pages of the state.
    live: u64,
    state: u64,
    /// Free pages that held something, where what they hold may have to be kept.
    reused: Option<u64>,
}

impl Census<'_> {
    /// Pages that the state at a checkpoint takes, if `held` bytes of `entries` entries are in the
    /// pool.
    fn state_pages(&self, held: u64, entries: u64) -> u64 {
        let room = u64::from(self.plan.pages.room()) - 32;
        let records = self.records + 2;
        let chunks = records / u64::from(self.plan.chunks.1.max(1)) + 1;
        let heads = PIECE_BYTES * records.min(entries);
        let pool = (held + heads).div_ceil(room / 2);
        // The page file has room for a root record as long as the last.
        let root = (ROOT_BYTES + 4 * (self.height + chunks + pool)) / room;
        chunks + pool + root
    }

    /// Pages that all that is pending takes in the worst case, with so much more, and images that
    /// have to be kept beside those that there is always room for.
    fn needs_on_disk(&self, now: &Now, more: More) -> (u64, u64) {
        let More { puts, deletes, bytes, pages, .. } = more;
        let (plan, height) = (self.plan, self.height);
        let pending = self.waiting() + puts + deletes;
        let all_bytes = self.pending_bytes + bytes;
        let node = plan.pages.node_bytes() as u64 - 16;
        let leaves = match self.waiting() + puts {
            0 => 0,
            some => some.min(self.leaves() + (4 * (all_bytes + 8 * some)).div_ceil(node)),
        };
        let children = u64::from(self.refill.1);
        let nodes = leaves + leaves / (children - 1) + if leaves > 0 { height + 1 } else { 0 };
        let levels = height / u64::from(plan.levels_a_buffer) + 1;
        let room = u64::from(plan.pages.room());
        let spread = all_bytes + 13 * pending;
        let pool = plan.sizes.pool.most;
        let held = spread.min(2 * pool);
        let going = if levels > 1 { spread * (levels - 1) } else { 0 };
        // Cells may be half empty. What fits the pool never becomes a fragment.
        let stays = !now.fragments && 2 * all_bytes + 16 * pending <= pool / 2;
        let fragments = if stays { 0 } else { (going + held).div_ceil(room) + 2 };
        let journal = (2 * now.gone_down).div_ceil(room);
        let state = self.state_pages(held, pending);
        // What a delete may need when nothing else is pending: the next state stands beside that
        // which is written then, and gives back only what the last one takes now.
        let least = self.state_pages(plan.entry_most as u64 + 13, 1);
        let reserve = match puts {
            0 => 0,
            _ => (least + 1).saturating_sub(now.state).max(2),
        };
        let need = nodes + fragments + state + journal + reserve + pages + 1;
        let names = (room / 4).max(1);
        let lists = match now.durability {
            Durability::None => 0,
            _ => (need + now.live).div_ceil(names) + 2,
        };
        let images = match now.reused {
            // Pages beside those that were ever used hold nothing.
            Some(reused) => need.min(reused) + lists,
            None => lists.saturating_sub(8),
        };
        (need, images)
    }

    /// The same as `disk` is, with names.
    fn needs_on(&self, disk: &Disk<'_>, more: More) -> (u64, u64) {
        let durability = disk.file.durability();
        let now = Now {
            durability,
            gone_down: if durability.has_journal() { disk.gone_down } else { 0 },
            fragments: disk.pages_of_fragments() > 0,
            live: disk.pages_live.into(),
            state: disk.state.len() as u64,
            reused: disk.file.keeps_free_pages().then(|| disk.file.pages_kept_free().into()),
        };
        self.needs_on_disk(&now, more)
    }

    /// True if all that is pending finds room, with so much more.
    pub(in super::super) fn fits(&self, disk: &Disk<'_>, more: More) -> bool {
        let (pages, images) = self.needs_on(disk, more);
        disk.file.has_room(pages, images, more.names)
    }

    /// Pages in use that one step of emptying changes: on each level a node, and its neighbour or a
    /// page that comes to name free ones.
    const fn step_pages(&self) -> u32 {
        2 * self.height as u32 + 3
    }

    /// True if the pages of one more step can be kept for the last checkpoint. In a replay the room
    /// is for long values, which can't wait: with other memory more or less of what came between
    /// them went down before, and the next one has to find what it found then.
    pub(in super::super) fn may_step(&self, disk: &Disk<'_>, limits: &Limits) -> bool {
        let waits = limits.has_long_values() && disk.file.is_replaying();
        let (promised, images) = self.needs_on(disk, More::default());
        !waits && disk.file.changes_left(promised, images) >= self.step_pages()
    }

    /// Pages that `batch` changes at most before it asks whether there is room.
    pub(in super::super) fn pages_changed(
        &self,
        disk: &Disk<'_>,
        limits: &Limits,
        batch: &[Update<'_>],
    ) -> u32 {
        let mut pages = self.step_pages();
        let mut longest = disk.longest_value;
        for bytes in batch.iter().filter_map(|update| limits.long_bytes(update)) {
            longest = longest.max(bytes);
            let written = disk.file.pages_changed_to_write_long(bytes);
            pages = pages.saturating_add(self.step_pages()).saturating_add(written);
        }
        if longest > 0 {
            let freeing = disk.file.pages_changed_to_free_long(longest);
            pages = pages.saturating_add(freeing.saturating_mul(batch.len() as u32));
        }
        pages
    }
}

/// Pages and images that a tree needs which is made and comes to have one entry, if pages share
/// sectors or not. The first state stands beside the next, and so do root records.
pub(in super::super) fn needs_at_first(
    plan: &Plan,
    durability: Durability,
    is_shared: bool,
) -> (u64, u64) {
    let mut tree = Census { records: 1, refill: (1, 2), ..Census::of_none(plan) };
    tree.levels[0] = 1;
    let reused = (is_shared && durability != Durability::None).then_some(0);
    let now = Now { durability, reused, ..Now::default() };
    // The root is there, and so is the record of its buffer.
    let pages = 1 + tree.state_pages(0, 0) + ROOT_PAGES;
    let bytes = plan.entry_most as u64;
    tree.needs_on_disk(&now, More { puts: 1, bytes, pages, ..More::default() })
}
