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

use store::{Durability, Recovery, Update};

use super::super::LaTree;
use super::super::checkpoint_state::{PIECE_BYTES, ROOT_BYTES};
use super::super::plan::Plan;
use super::{Disk, ROOT_PAGES};
use index::Result;

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

/// What a tree is, as far as room matters.
#[derive(Clone, Copy, Debug, Default)]
struct Now {
    durability: Durability,
    height: u64,
    leaves: u64,
    /// Children that an inner node takes.
    children: u64,
    /// Records of buffers.
    records: u64,
    /// Entries in buffers of inner subtrees and of leaf subtrees, and bytes of both.
    pending: [u64; 2],
    pending_bytes: u64,
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

impl Plan {
    /// Pages that the state at a checkpoint takes, if `held` bytes of `entries` entries are in the
    /// pool.
    fn state_pages(&self, now: &Now, held: u64, entries: u64) -> u64 {
        let room = u64::from(self.pages.room()) - 32;
        let records = now.records + 2;
        let chunks = records / u64::from(self.chunks.1.max(1)) + 1;
        let heads = PIECE_BYTES * records.min(entries);
        let pool = (held + heads).div_ceil(room / 2);
        // The page file has room for a root record as long as the last.
        let root = (ROOT_BYTES + 4 * (now.height + chunks + pool)) / room;
        chunks + pool + root
    }

    /// Pages that all that is pending takes in the worst case, with so much more, and images that
    /// have to be kept beside those that there is always room for.
    fn needs_on_disk(&self, now: &Now, more: More) -> (u64, u64) {
        let More { puts, deletes, bytes, pages, .. } = more;
        let [inner, leaf] = now.pending;
        let pending = inner + leaf + puts + deletes;
        let all_bytes = now.pending_bytes + bytes;
        let node = self.pages.node_bytes() as u64 - 16;
        let leaves = match inner + leaf + puts {
            0 => 0,
            some => some.min(now.leaves + (4 * (all_bytes + 8 * some)).div_ceil(node)),
        };
        let (children, height) = (now.children.max(4) / 2, now.height);
        let nodes = leaves + leaves / (children - 1) + if leaves > 0 { height + 1 } else { 0 };
        let levels = height / u64::from(self.levels_a_buffer) + 1;
        let room = u64::from(self.pages.room());
        let spread = all_bytes + 13 * pending;
        let pool = self.sizes.pool.most();
        let held = spread.min(2 * pool);
        let going = if levels > 1 { spread * (levels - 1) } else { 0 };
        // Cells may be half empty. What fits the pool never becomes a fragment.
        let stays = !now.fragments && 2 * all_bytes + 16 * pending <= pool / 2;
        let fragments = if stays { 0 } else { (going + held).div_ceil(room) + 2 };
        let journal = (2 * now.gone_down).div_ceil(room);
        let state = self.state_pages(now, held, pending);
        // What a delete may need when nothing else is pending: the next state stands beside that
        // which is written then, and gives back only what the last one takes now.
        let least = self.state_pages(now, self.entry_most as u64 + 13, 1);
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

    /// Pages and images that a tree needs which is made and comes to have one entry, if pages
    /// share sectors or not. The first state stands beside the next, and so do root records.
    pub(super) fn needs_at_first(&self, durability: Durability, is_shared: bool) -> (u64, u64) {
        let now = Now {
            durability,
            height: 1,
            leaves: 1,
            records: 1,
            reused: (is_shared && durability != Durability::None).then_some(0),
            ..Now::default()
        };
        // The root is there, and so is the record of its buffer.
        let pages = 1 + self.state_pages(&now, 0, 0) + ROOT_PAGES;
        let bytes = self.entry_most as u64;
        self.needs_on_disk(&now, More { puts: 1, bytes, pages, ..More::default() })
    }
}

impl LaTree<'_> {
    /// Pages in use that one step of emptying changes: on each level a node, and its neighbour or a
    /// page that comes to name free ones.
    pub(in super::super) fn step_pages(&self) -> u32 {
        2 * u32::from(self.bare.height) + 3
    }

    /// True if the pages of one more step can be kept for the last checkpoint. In a replay the room
    /// is for long values, which can't wait: with other memory more or less of what came between
    /// them went down before, and the next one has to find what it found then.
    pub(in super::super) fn may_step(&self) -> bool {
        self.bare.log.disk().is_none_or(|disk| {
            let waits = self.limits.has_long_values() && disk.file.is_replaying();
            let (promised, images) = self.needs_on_disk(disk, More::default());
            !waits && disk.file.changes_left(promised, images) >= self.step_pages()
        })
    }

    /// Pages that `batch` changes at most before it asks whether there is room.
    pub(in super::super) fn pages_changed_on_disk(&self, batch: &[Update<'_>]) -> u32 {
        let Some(disk) = self.bare.log.disk() else {
            return 0;
        };
        let mut pages = self.step_pages();
        let mut longest = disk.longest_value;
        for update in batch {
            if let Some(bytes) = self.limits.long_bytes(update) {
                longest = longest.max(bytes);
                let written = disk.file.pages_changed_to_write_long(bytes);
                pages = pages.saturating_add(self.step_pages()).saturating_add(written);
            }
        }
        if longest > 0 {
            let freeing = disk.file.pages_changed_to_free_long(longest);
            pages = pages.saturating_add(freeing.saturating_mul(batch.len() as u32));
        }
        pages
    }

    /// True if all that is pending finds room, with so much more.
    pub(in super::super) fn fits_on_disk(&self, more: More) -> bool {
        self.bare.log.disk().is_none_or(|disk| {
            let (pages, images) = self.needs_on_disk(disk, more);
            disk.file.has_room(pages, images, more.names)
        })
    }

    fn admit_if(&self, fits: bool) -> Result<()> {
        let full = store::Error::Full { pages: u64::from(self.bare.log.pages()) };
        if fits { Ok(()) } else { Err(full.into()) }
    }

    /// Refuses one more name if what is pending would find no room. Right behind a checkpoint all
    /// of that is written: the page file counts the rest.
    pub(in super::super) fn admit_name_on_disk(&self) -> Result<()> {
        let more = More { names: 1, ..More::default() };
        self.admit_if(!self.is_open || self.fits_on_disk(more))
    }

    /// True if all that is pending finds room, with so much more; the file grows for it where it
    /// can.
    pub(in super::super) fn finds_room(&mut self, more: More) -> Result<bool> {
        while !self.fits_on_disk(more) {
            let Some(disk) = self.bare.log.disk_mut() else {
                return Ok(false);
            };
            if !Recovery::extend(&mut disk.file)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    fn needs_on_disk(&self, disk: &Disk<'_>, more: More) -> (u64, u64) {
        let durability = disk.file.durability();
        let now = Now {
            durability,
            height: self.bare.height.into(),
            leaves: self.bare.leaves(),
            children: self.bare.nodes.codecs.inner.capacity(self.plan.entry_most, 4) as u64,
            records: self.buffers.records.len() as u64,
            pending: self.buffers.pending,
            pending_bytes: self.buffers.pending_bytes,
            gone_down: if durability.has_journal() { disk.gone_down } else { 0 },
            fragments: disk.pages_of_fragments() > 0,
            live: disk.pages_live.into(),
            state: disk.state.len() as u64,
            reused: disk.file.keeps_free_pages().then(|| disk.file.pages_kept_free().into()),
        };
        self.plan.needs_on_disk(&now, more)
    }

    /// Refuses `batch` if there is no room for its worst case.
    pub(in super::super) fn admit_on_disk(&mut self, batch: &[Update<'_>]) -> Result<()> {
        let mut more = More::default();
        for update in batch {
            let (key, value) = match update {
                Update::Put { key, value } => (key, value.len()),
                Update::Delete { key } => (key, 0),
                Update::PutStored { key, .. } => (key, store::OverflowValue::ENCODED_BYTES),
            };
            more.puts += u64::from(!matches!(update, Update::Delete { .. }));
            more.deletes += u64::from(matches!(update, Update::Delete { .. }));
            let value = match (self.limits.long_bytes(update), self.bare.log.disk()) {
                (Some(length), Some(disk)) => {
                    more.pages += u64::from(disk.file.pages_for_long(length));
                    store::OverflowValue::ENCODED_BYTES
                }
                _ => value,
            };
            more.bytes += (key.len() + value + 1) as u64;
        }
        if more.puts > 0 {
            self.check_tables(more.puts + more.deletes)?;
        }
        self.admit_if(self.fits_on_disk(more))
    }
}
