//! The buffer pool (section 4.2): entries that are not on flash yet, so that few and large
//! fragments get there.
//!
//! When the pool is full, the buffer with the most entries in it goes to flash first ("highest-
//! packed buffer fragment"). Its oldest entries that fit the page being filled are taken; then the
//! next buffer's, until the page is full.
//!
//! Memory is cells of equal size; the entries of a buffer are a stream (`stream.rs`) in a list of
//! cells. Buffers with the same number of entries are a list, too, so the fullest is found without
//! a search; all that fill a page alone count as equally full.
//!
//! Invariant: every cell is in exactly one list, a buffer's or the free one; a buffer is in the
//! list of its number of entries, or in none if it has none.

use alloc::boxed::Box;
use alloc::vec;

use super::stream::{Damage, Form, GROUP, Pending, Writer};
use super::table::Chunked;

/// Bytes of a cell in a pool that is not large.
const CELL_BYTES: usize = 16;

/// Cells are numbered in 16 bits.
const CELLS_MOST: u64 = 0xFFFF;

/// The end of a list of cells.
const NO_CELL: u16 = u16::MAX;

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
    first: u16,
    last: u16,
    /// The cell and the byte in it where the kinds of the last group stand.
    kinds_cell: u16,
    kinds_at: u16,
    bytes: u32,
    entries: u32,
    /// Neighbours in the list of buffers with as many entries.
    before: u32,
    after: u32,
}

const EMPTY: Slot = Slot {
    first: NO_CELL,
    last: NO_CELL,
    kinds_cell: NO_CELL,
    kinds_at: 0,
    bytes: 0,
    entries: 0,
    before: NO_BUFFER,
    after: NO_BUFFER,
};

/// How much of a buffer was taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Taken {
    pub(super) bytes: usize,
    pub(super) entries: u32,
}

/// The pool.
#[derive(Debug)]
pub(super) struct BufferPool {
    form: Form,
    cells: Box<[u8]>,
    cell_bytes: usize,
    next: Box<[u16]>,
    first_free: u16,
    free: usize,
    slots: Chunked<Slot>,
    /// The first buffer of each list; the last list also has all with more entries.
    classes: Box<[u32]>,
    /// No list above this one has a buffer.
    highest: usize,
}

impl BufferPool {
    /// A pool in `memory_bytes` bytes; buffers that have `page_entries` entries fill a page.
    pub(super) fn new(memory_bytes: u64, form: Form, page_entries: u32) -> Self {
        let classes = (page_entries as usize).clamp(1, CLASSES_MOST) + 1;
        let rest = memory_bytes.saturating_sub(classes as u64 * 4);
        let mut cell_bytes = CELL_BYTES;
        while rest / (cell_bytes as u64 + 2) > CELLS_MOST {
            cell_bytes *= 2;
        }
        let cells = (rest / (cell_bytes as u64 + 2)) as usize;
        BufferPool {
            form,
            cells: vec![0; cells * cell_bytes].into_boxed_slice(),
            cell_bytes,
            next: (1..=cells)
                .map(|cell| if cell < cells { cell as u16 } else { NO_CELL })
                .collect(),
            first_free: if cells == 0 { NO_CELL } else { 0 },
            free: cells,
            slots: Chunked::new(),
            classes: vec![NO_BUFFER; classes].into_boxed_slice(),
            highest: 0,
        }
    }

    /// Bytes of the memory budget in use.
    pub(super) fn memory_bytes(&self) -> u64 {
        (self.cells.len() + 2 * self.next.len() + 4 * self.classes.len()) as u64
    }

    /// Bytes of what is known of each buffer, which come beside the budget.
    pub(super) fn table_bytes(&self) -> u64 {
        self.slots.memory_bytes()
    }

    /// Bytes and entries that `buffer` has in the pool.
    pub(super) fn held(&self, buffer: BufferId) -> Taken {
        let slot = self.slot(buffer);
        Taken { bytes: slot.bytes as usize, entries: slot.entries }
    }

    /// True if `bytes` more bytes of entries find room for certain.
    pub(super) fn has_room(&self, bytes: usize) -> bool {
        // One byte of kinds, and a last cell that is just full.
        self.free > (bytes + 1).div_ceil(self.cell_bytes)
    }

    /// Appends `entry` to `buffer`; false, and nothing changed, if there is no room for it.
    #[must_use]
    pub(super) fn append(&mut self, buffer: BufferId, entry: &Pending<'_>) -> bool {
        if !self.has_room(self.form.bytes(entry)) {
            return false;
        }
        self.grow(buffer);
        self.append_known(buffer, entry);
        true
    }

    /// Appends `entry` to `buffer`, which has a slot; there is room for it.
    fn append_known(&mut self, buffer: BufferId, entry: &Pending<'_>) {
        self.unlist(buffer);
        let mut slot = self.slot(buffer);
        if slot.entries.is_multiple_of(GROUP) {
            self.push(&mut slot, &[0]);
            slot.kinds_cell = slot.last;
            slot.kinds_at = self.end_in_cell(slot.bytes) as u16 - 1;
        }
        if entry.value.is_none() {
            let kinds = usize::from(slot.kinds_cell) * self.cell_bytes + usize::from(slot.kinds_at);
            self.cells[kinds] |= 1 << (slot.entries % GROUP);
        }
        let form = self.form;
        form.write(entry, &mut |piece| self.push(&mut slot, piece));
        slot.entries += 1;
        self.set_slot(buffer, slot);
        self.list(buffer);
    }

    /// The buffer with the most entries in the pool; `None` if the pool is empty.
    pub(super) fn fullest(&mut self) -> Option<BufferId> {
        while self.highest > 0 && self.classes[self.highest] == NO_BUFFER {
            self.highest -= 1;
        }
        let first = self.classes[self.highest];
        (first != NO_BUFFER).then_some(BufferId(first))
    }

    /// Copies the stream of `buffer` to the start of `into`, as far as it fits; returns its bytes.
    pub(super) fn copy(&self, buffer: BufferId, into: &mut [u8]) -> usize {
        let slot = self.slot(buffer);
        let bytes = (slot.bytes as usize).min(into.len());
        let mut cell = slot.first;
        for piece in into[..bytes].chunks_mut(self.cell_bytes) {
            let at = usize::from(cell) * self.cell_bytes;
            piece.copy_from_slice(&self.cells[at..at + piece.len()]);
            cell = self.next[usize::from(cell)];
        }
        bytes
    }

    /// Takes the oldest entries of `buffer`, `most` at most, that fit into `into` out of the pool as
    /// a stream at the start of `into`. `scratch` has room for all that the buffer holds.
    ///
    /// # Errors
    /// `scratch` is too short (nothing changed), or the pool's memory is damaged.
    pub(super) fn take(
        &mut self,
        buffer: BufferId,
        most: u32,
        into: &mut [u8],
        scratch: &mut [u8],
    ) -> Result<Taken, Damage> {
        let held = self.held(buffer);
        if held.bytes <= into.len() && held.entries <= most {
            self.copy(buffer, into);
            self.clear(buffer);
            return Ok(held);
        }
        let all = self.copy(buffer, scratch);
        if all < held.bytes {
            return Err("there is no room to divide a fragment of the pool");
        }
        let (taken, mut rest) = divide(self.form, &scratch[..all], most, into)?;
        self.clear(buffer);
        while let Some((entry, _)) = rest.next()? {
            // The cells that were the buffer's own are free; the rest needs no more than they are.
            self.append_known(buffer, &entry);
        }
        Ok(taken)
    }

    /// Forgets what `buffer` has in the pool.
    pub(super) fn clear(&mut self, buffer: BufferId) {
        let slot = self.slot(buffer);
        if slot.entries == 0 {
            return;
        }
        self.unlist(buffer);
        self.next[usize::from(slot.last)] = self.first_free;
        self.first_free = slot.first;
        self.free += (slot.bytes as usize).div_ceil(self.cell_bytes);
        self.set_slot(buffer, EMPTY);
    }

    /// The byte behind the last one in a stream's last cell, if the stream has `bytes` bytes.
    fn end_in_cell(&self, bytes: u32) -> usize {
        match bytes as usize % self.cell_bytes {
            0 => self.cell_bytes,
            end => end,
        }
    }

    /// Appends bytes to a stream; the caller made sure of the cells.
    fn push(&mut self, slot: &mut Slot, mut piece: &[u8]) {
        while !piece.is_empty() {
            let used = slot.bytes as usize % self.cell_bytes;
            if used == 0 {
                self.add_cell(slot);
            }
            let (now, later) = piece.split_at(piece.len().min(self.cell_bytes - used));
            let at = usize::from(slot.last) * self.cell_bytes + used;
            self.cells[at..at + now.len()].copy_from_slice(now);
            slot.bytes += now.len() as u32;
            piece = later;
        }
    }

    fn add_cell(&mut self, slot: &mut Slot) {
        let cell = self.first_free;
        self.first_free = self.next[usize::from(cell)];
        self.free -= 1;
        if slot.bytes == 0 {
            slot.first = cell;
        } else {
            self.next[usize::from(slot.last)] = cell;
        }
        slot.last = cell;
    }

    fn slot(&self, buffer: BufferId) -> Slot {
        self.slots.get(buffer.0 as usize).copied().unwrap_or(EMPTY)
    }

    fn set_slot(&mut self, buffer: BufferId, slot: Slot) {
        if let Some(held) = self.slots.get_mut(buffer.0 as usize) {
            *held = slot;
        }
    }

    /// Makes sure that `buffer` has a slot.
    fn grow(&mut self, buffer: BufferId) {
        self.slots.grow(buffer.0 as usize + 1, EMPTY);
    }

    fn class(&self, entries: u32) -> usize {
        (entries as usize).min(self.classes.len() - 1)
    }

    fn list(&mut self, buffer: BufferId) {
        let mut slot = self.slot(buffer);
        let class = self.class(slot.entries);
        slot.before = NO_BUFFER;
        slot.after = self.classes[class];
        if let Some(after) = self.slots.get_mut(slot.after as usize) {
            after.before = buffer.0;
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
        match self.slots.get_mut(slot.before as usize) {
            Some(before) => before.after = slot.after,
            None => {
                let class = self.class(slot.entries);
                self.classes[class] = slot.after;
            }
        }
        if let Some(after) = self.slots.get_mut(slot.after as usize) {
            after.before = slot.before;
        }
    }
}

/// Writes the oldest entries of `stream`, `most` at most, that fit into `into`; returns how much that is, and a
/// reader of the others.
fn divide<'s>(
    form: Form,
    stream: &'s [u8],
    most: u32,
    into: &mut [u8],
) -> Result<(Taken, super::stream::Reader<'s>), Damage> {
    let mut writer = Writer::new(form, into);
    let mut reader = form.reader(stream);
    loop {
        let rest = reader.clone();
        match reader.next()? {
            Some((entry, _)) if writer.entries() < most && writer.push(&entry) => {}
            _ => {
                let taken = Taken { bytes: writer.bytes(), entries: writer.entries() };
                return Ok((taken, rest));
            }
        }
    }
}

#[cfg(test)]
mod tests;
