//! The buffer pool (section 4.2): entries that are not on flash yet, so that few and large
//! fragments get there.
//!
//! When the pool is full, the buffer with the most entries in it goes to flash first ("highest-
//! packed buffer fragment"). Its oldest entries that fit the page being filled are taken; then the
//! next buffer's, until the page is full.
//!
//! Entries stand in [`cells`], and those of a buffer are a list, of pieces where the pool is large
//! and buffers have many. Buffers with the same number of entries are a list as well, so the
//! fullest is found without a search; all that have a page of deletes or more, or
//! [`CLASSES_MOST`], count as equally full.
//!
//! Where memory is shared with the node cache, what is in the last chunk of cells moves to free
//! cells of the others before it is given back.
//!
//! Invariant: a buffer is in the list of its number of entries, or in none if it has none.

use alloc::boxed::Box;
use alloc::vec;
use core::ops::RangeInclusive;

use super::stream::{Damage, Form, GROUP, Pending, Writer};

mod cells;
mod links;
mod size;
mod slots;

use cells::{Cells, List, Shape};
pub(super) use size::PoolSize;
use slots::Slots;

/// The end of a list of buffers.
const NO_BUFFER: u32 = u32::MAX;

/// Lists of buffers grow to so many entries; buffers with more are in the last list.
const CLASSES_MOST: usize = 256;

/// The number of a buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct BufferId(pub(super) u32);

/// What a buffer has in the pool.
#[derive(Clone, Copy, Debug)]
struct Slot {
    list: List,
    /// Bytes of the entries alone.
    bytes: u32,
    entries: u32,
    /// Neighbours in the list of buffers with as many entries.
    before: u32,
    after: u32,
}

const EMPTY: Slot =
    Slot { list: List::EMPTY, bytes: 0, entries: 0, before: NO_BUFFER, after: NO_BUFFER };

/// How much of a buffer was taken, as a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Taken {
    pub(super) bytes: usize,
    pub(super) entries: u32,
}

/// How much of a buffer was copied; nothing changed it since.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Copied {
    pub(super) entries: u32,
    /// Where the next entry begins, behind the first.
    cell: u32,
}

/// The pool.
#[derive(Debug)]
pub(super) struct BufferPool {
    pub(super) cells: Cells,
    slots: Slots,
    /// The first buffer of each list; the last list also has all with more entries.
    classes: Box<[u32]>,
    /// No list above this one has a buffer.
    highest: usize,
}

impl BufferPool {
    /// A pool of such a size, and `entry_most` bytes for the largest entry; buffers that have
    /// `page_entries` entries fill a page.
    pub(super) fn new(size: PoolSize, form: Form, page_entries: u32, entry_most: usize) -> Self {
        let size = size.less(Self::lists_bytes(page_entries));
        let cells = Cells::new(size, form, entry_most);
        BufferPool {
            slots: Slots::new(cells.is_small),
            cells,
            classes: vec![NO_BUFFER; lists(page_entries)].into_boxed_slice(),
            highest: 0,
        }
    }

    /// Bytes of a pool's memory that the lists of buffers by their entries take.
    pub(super) fn lists_bytes(page_entries: u32) -> u64 {
        4 * lists(page_entries) as u64
    }

    /// Bytes of the memory budget in use.
    pub(super) fn memory_bytes(&self) -> u64 {
        self.cells.memory_bytes() + 4 * self.classes.len() as u64
    }

    /// Gives the last chunk of cells back; as many others are free.
    pub(super) fn shrink(&mut self) {
        if !self.cells.can_shrink() {
            return;
        }
        let limit = self.cells.withdraw_last_chunk();
        for buffer in 0..self.slots.len() as u32 {
            let slot = self.slot(BufferId(buffer));
            if slot.entries > 0 {
                let list = self.cells.move_below(slot.list, limit);
                self.set_slot(BufferId(buffer), Slot { list, ..slot });
            }
        }
        self.cells.remove_last_chunk();
    }

    /// Bytes of what is known of each buffer, which come beside the budget.
    pub(super) fn table_bytes(&self) -> u64 {
        self.slots.memory_bytes()
    }

    /// The most bytes of the table where there are so many buffers, of a small pool or not.
    pub(super) const fn table_bytes_most(is_small: bool, buffers: u64) -> u64 {
        Slots::bytes_most(is_small, buffers)
    }

    /// True if a pool of such a size has few cells.
    pub(super) fn is_small_with(size: PoolSize, form: Form, page_entries: u32) -> bool {
        Shape::of(size.less(Self::lists_bytes(page_entries)), form).is_small()
    }

    /// Bytes, as a stream, and entries that `buffer` has in the pool.
    pub(super) fn held(&self, buffer: BufferId) -> Taken {
        let slot = self.slot(buffer);
        let kinds = slot.entries.div_ceil(GROUP);
        Taken { bytes: (slot.bytes + kinds) as usize, entries: slot.entries }
    }

    /// Appends `entry` to `buffer`; false, and nothing changed, if there is no room for it.
    #[must_use]
    pub(super) fn append(&mut self, buffer: BufferId, entry: &Pending<'_>) -> bool {
        let bytes = self.cells.form.bytes(entry);
        let mut slot = self.slot(buffer);
        if !self.cells.has_room(&slot.list, bytes) {
            return false;
        }
        self.slots.grow(buffer.0 as usize + 1, EMPTY);
        self.unlist(buffer);
        self.cells.append(&mut slot.list, entry);
        slot.bytes += bytes as u32;
        slot.entries += 1;
        self.set_slot(buffer, slot);
        self.list(buffer);
        true
    }

    /// The buffer with the most entries in the pool; `None` if the pool is empty.
    pub(super) fn fullest(&mut self) -> Option<BufferId> {
        while self.highest > 0 && self.classes[self.highest] == NO_BUFFER {
            self.highest -= 1;
        }
        let first = self.classes[self.highest];
        (first != NO_BUFFER).then_some(BufferId(first))
    }

    /// The buffer with the most entries in the pool beside `without`, if one has enough for the
    /// last list.
    pub(super) fn largest(&self, without: Option<BufferId>) -> Option<BufferId> {
        let mut next = self.classes.last().copied().unwrap_or(NO_BUFFER);
        let mut largest = None;
        while let Some(slot) = self.slots.get(next) {
            let is_larger = largest.is_none_or(|(entries, _)| slot.entries > entries);
            if is_larger && without != Some(BufferId(next)) {
                largest = Some((slot.entries, BufferId(next)));
            }
            next = slot.after;
        }
        largest.map(|(_, buffer)| buffer)
    }

    /// A buffer with the most entries of those that have at most `most`, if one has `least`. Those
    /// of the last list are left out, for they may have any more.
    pub(super) fn fullest_within(&self, least: u32, most: u32) -> Option<BufferId> {
        let top = self.highest.min(most as usize).min(self.classes.len() - 2);
        let first = (least as usize..=top).rev().map(|class| self.classes[class]);
        first.into_iter().find(|first| *first != NO_BUFFER).map(BufferId)
    }

    /// Calls `each` with every entry that `buffer` has here, the oldest first, but for some whose
    /// keys have no prefix in `wanted`.
    pub(super) fn visit(
        &mut self,
        buffer: BufferId,
        wanted: &RangeInclusive<u64>,
        each: &mut dyn FnMut(&Pending<'_>),
    ) -> Result<(), Damage> {
        let slot = self.slot(buffer);
        self.cells.visit(&slot.list, wanted, each)
    }

    /// Hands the newest entry of `key` that `buffer` has here to `found`.
    pub(super) fn find<T>(
        &mut self,
        buffer: BufferId,
        key: &[u8],
        found: &mut dyn FnMut(&Pending<'_>) -> T,
    ) -> Result<Option<T>, Damage> {
        let slot = self.slot(buffer);
        let Some(cell) = self.cells.newest(&slot.list, slot.entries, key)? else {
            return Ok(None);
        };
        let (entry, _) = self.cells.entry(cell)?;
        Ok(Some(found(&entry)))
    }

    /// Copies the entries of `buffer` behind those that were `copied`, as a stream to the start of
    /// `into`, as many as fit.
    pub(super) fn copy(
        &mut self,
        buffer: BufferId,
        copied: &mut Copied,
        into: &mut [u8],
    ) -> Result<Taken, Damage> {
        let slot = self.slot(buffer);
        let mut writer = Writer::new(self.cells.form, into);
        let mut cell = if copied.entries == 0 { slot.list.first } else { copied.cell };
        while copied.entries < slot.entries {
            let (entry, last) = self.cells.entry(cell)?;
            if !writer.push(&entry) {
                break;
            }
            cell = self.cells.next(last);
            copied.entries += 1;
        }
        copied.cell = cell;
        Ok(Taken { bytes: writer.bytes(), entries: writer.entries() })
    }

    /// Takes the oldest entries of `buffer` that fit into `into` out of the pool as a stream at the
    /// start of `into`.
    pub(super) fn take(&mut self, buffer: BufferId, into: &mut [u8]) -> Result<Taken, Damage> {
        let mut slot = self.slot(buffer);
        if slot.entries == 0 {
            return Ok(Taken { bytes: 0, entries: 0 });
        }
        self.unlist(buffer);
        let form = self.cells.form;
        let mut writer = Writer::new(form, into);
        let mut taken = Ok(());
        while slot.entries > 0 {
            let last = match self.cells.entry(slot.list.first) {
                Ok((entry, last)) if writer.push(&entry) => {
                    slot.bytes -= form.bytes(&entry) as u32;
                    last
                }
                Ok(_) => break,
                Err(damage) => {
                    taken = Err(damage);
                    break;
                }
            };
            slot.entries -= 1;
            self.cells.release(&mut slot.list, last);
        }
        if slot.entries == 0 {
            slot = EMPTY;
        }
        self.set_slot(buffer, slot);
        if slot.entries > 0 {
            self.list(buffer);
        }
        taken.map(|()| Taken { bytes: writer.bytes(), entries: writer.entries() })
    }

    /// Forgets what `buffer` has in the pool.
    pub(super) fn clear(&mut self, buffer: BufferId) {
        let Slot { mut list, entries, .. } = self.slot(buffer);
        if entries == 0 {
            return;
        }
        self.unlist(buffer);
        let last = list.last;
        self.cells.release(&mut list, last);
        self.set_slot(buffer, EMPTY);
    }

    fn slot(&self, buffer: BufferId) -> Slot {
        self.slots.get(buffer.0).unwrap_or(EMPTY)
    }

    fn set_slot(&mut self, buffer: BufferId, slot: Slot) {
        self.slots.set(buffer.0, slot);
    }

    fn class(&self, entries: u32) -> usize {
        (entries as usize).min(self.classes.len() - 1)
    }

    fn list(&mut self, buffer: BufferId) {
        let mut slot = self.slot(buffer);
        let class = self.class(slot.entries);
        slot.before = NO_BUFFER;
        slot.after = self.classes[class];
        if let Some(after) = self.slots.get(slot.after) {
            self.slots.set(slot.after, Slot { before: buffer.0, ..after });
        }
        self.classes[class] = buffer.0;
        self.set_slot(buffer, slot);
        self.highest = self.highest.max(class);
    }

    fn unlist(&mut self, buffer: BufferId) {
        let slot = self.slot(buffer);
        if slot.entries == 0 {
            return;
        }
        match self.slots.get(slot.before) {
            Some(before) => self.slots.set(slot.before, Slot { after: slot.after, ..before }),
            None => {
                let class = self.class(slot.entries);
                self.classes[class] = slot.after;
            }
        }
        if let Some(after) = self.slots.get(slot.after) {
            self.slots.set(slot.after, Slot { before: slot.before, ..after });
        }
    }
}

/// Lists by entries: a buffer that fills a page is in the last one.
fn lists(page_entries: u32) -> usize {
    (page_entries as usize).clamp(1, CLASSES_MOST) + 1
}

#[cfg(test)]
mod tests;
