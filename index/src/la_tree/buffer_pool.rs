//! The buffer pool (section 4.2): entries that are not on flash yet, so that few and large
//! fragments get there.
//!
//! When the pool is full, the buffer with the most entries in it goes to flash first ("highest-
//! packed buffer fragment"). Its oldest entries that fit the page being filled are taken; then the
//! next buffer's, until the page is full.
//!
//! Memory is cells of equal size. An entry takes as many as it needs, and where entries have one
//! size, a cell has it, too: most buffers have a few entries here, and nothing is lost at their
//! ends. The cells of a buffer are a list; the link to the first cell of a delete is marked.
//! Buffers with the same number of entries are a list as well, so the fullest is found without a
//! search; all that fill a page alone count as equally full.
//!
//! Invariant: every cell is in exactly one list, a buffer's or the free one; a buffer is in the
//! list of its number of entries, or in none if it has none.

use alloc::boxed::Box;
use alloc::vec;

use super::stream::{Damage, Form, GROUP, Pending, Writer};
use super::table::Chunked;

mod links;

use links::{Links, NO_CELL};

/// Bytes of a cell where entries vary in size, or are large.
const CELL_BYTES: usize = 16;

/// The largest entry of fixed size that a cell is made for.
const ENTRY_IN_CELL: usize = 32;

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
    first: u32,
    last: u32,
    /// Bytes of the entries alone.
    bytes: u32,
    entries: u32,
    /// Neighbours in the list of buffers with as many entries.
    before: u32,
    after: u32,
}

const EMPTY: Slot = Slot {
    first: NO_CELL,
    last: NO_CELL,
    bytes: 0,
    entries: 0,
    before: NO_BUFFER,
    after: NO_BUFFER,
};

/// How much of a buffer was taken, as a stream.
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
    links: Links,
    first_free: u32,
    free: usize,
    slots: Chunked<Slot>,
    /// The first buffer of each list; the last list also has all with more entries.
    classes: Box<[u32]>,
    /// No list above this one has a buffer.
    highest: usize,
    /// An entry that is in several cells, put together.
    whole: Box<[u8]>,
}

impl BufferPool {
    /// A pool in `memory_bytes` bytes, and `entry_most` for the largest entry; buffers that have
    /// `page_entries` entries fill a page.
    pub(super) fn new(memory_bytes: u64, form: Form, page_entries: u32, entry_most: usize) -> Self {
        let classes = (page_entries as usize).clamp(1, CLASSES_MOST) + 1;
        let rest = memory_bytes.saturating_sub(classes as u64 * 4);
        let mut cell_bytes = match form.fixed_bytes() {
            Some(bytes) if bytes <= ENTRY_IN_CELL => bytes.max(1),
            _ => CELL_BYTES,
        };
        let cells = loop {
            match Links::fit(rest, cell_bytes) {
                Some(cells) => break cells,
                None => cell_bytes *= 2,
            }
        };
        BufferPool {
            form,
            cells: vec![0; cells * cell_bytes].into_boxed_slice(),
            cell_bytes,
            links: Links::new(cells),
            first_free: if cells == 0 { NO_CELL } else { 0 },
            free: cells,
            slots: Chunked::new(),
            classes: vec![NO_BUFFER; classes].into_boxed_slice(),
            highest: 0,
            whole: vec![0; entry_most + cell_bytes].into_boxed_slice(),
        }
    }

    /// Bytes of the memory budget in use.
    pub(super) fn memory_bytes(&self) -> u64 {
        (self.cells.len() + self.links.memory_bytes() + 4 * self.classes.len()) as u64
    }

    /// Bytes of what is known of each buffer, which come beside the budget.
    pub(super) fn table_bytes(&self) -> u64 {
        self.slots.memory_bytes()
    }

    /// Bytes, as a stream, and entries that `buffer` has in the pool.
    pub(super) fn held(&self, buffer: BufferId) -> Taken {
        let slot = self.slot(buffer);
        let kinds = slot.entries.div_ceil(GROUP);
        Taken { bytes: (slot.bytes + kinds) as usize, entries: slot.entries }
    }

    /// True if an entry of `bytes` bytes finds room.
    pub(super) fn has_room(&self, bytes: usize) -> bool {
        self.free >= bytes.div_ceil(self.cell_bytes).max(1)
    }

    /// Appends `entry` to `buffer`; false, and nothing changed, if there is no room for it.
    #[must_use]
    pub(super) fn append(&mut self, buffer: BufferId, entry: &Pending<'_>) -> bool {
        let bytes = self.form.bytes(entry);
        if !self.has_room(bytes) {
            return false;
        }
        self.slots.grow(buffer.0 as usize + 1, EMPTY);
        self.unlist(buffer);
        let mut slot = self.slot(buffer);
        let is_delete = entry.value.is_none();
        self.add_cell(&mut slot, is_delete);
        let (form, mut used) = (self.form, 0);
        form.write(entry, &mut |mut piece| {
            while !piece.is_empty() {
                if used == self.cell_bytes {
                    self.add_cell(&mut slot, false);
                    used = 0;
                }
                let (now, later) = piece.split_at(piece.len().min(self.cell_bytes - used));
                let at = slot.last as usize * self.cell_bytes + used;
                self.cells[at..at + now.len()].copy_from_slice(now);
                used += now.len();
                piece = later;
            }
        });
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

    /// A buffer with the most entries of those that have at most `most`, if one has `least`.
    pub(super) fn fullest_within(&self, least: u32, most: u32) -> Option<BufferId> {
        let top = self.highest.min(most as usize);
        let first = (least as usize..=top).rev().map(|class| self.classes[class]);
        first.into_iter().find(|first| *first != NO_BUFFER).map(BufferId)
    }

    /// Calls `each` with every entry that `buffer` has here, the oldest first.
    ///
    /// # Errors
    /// The pool's memory is damaged, or `each` refused an entry.
    pub(super) fn visit(
        &mut self,
        buffer: BufferId,
        each: &mut dyn FnMut(&Pending<'_>) -> Result<(), Damage>,
    ) -> Result<(), Damage> {
        let slot = self.slot(buffer);
        let mut cell = slot.first;
        for _ in 0..slot.entries {
            let (entry, last) =
                entry_at(&self.cells, &self.links, &mut self.whole, self.form, cell)?;
            each(&entry)?;
            cell = self.links.next(last);
        }
        Ok(())
    }

    /// Copies the entries of `buffer` behind its `from` oldest ones as a stream to the start of
    /// `into`, as many as fit.
    ///
    /// # Errors
    /// The pool's memory is damaged.
    pub(super) fn copy(
        &mut self,
        buffer: BufferId,
        from: u32,
        into: &mut [u8],
    ) -> Result<Taken, Damage> {
        let mut writer = Writer::new(self.form, into);
        let (mut place, mut has_room) = (0, true);
        self.visit(buffer, &mut |entry| {
            has_room = has_room && (place < from || writer.push(entry));
            place += 1;
            Ok(())
        })?;
        Ok(Taken { bytes: writer.bytes(), entries: writer.entries() })
    }

    /// Takes the oldest entries of `buffer`, `most` at most, that fit into `into` out of the
    /// pool as a stream at the start of `into`.
    ///
    /// # Errors
    /// The pool's memory is damaged.
    pub(super) fn take(
        &mut self,
        buffer: BufferId,
        most: u32,
        into: &mut [u8],
    ) -> Result<Taken, Damage> {
        let mut slot = self.slot(buffer);
        if slot.entries == 0 {
            return Ok(Taken { bytes: 0, entries: 0 });
        }
        self.unlist(buffer);
        let mut writer = Writer::new(self.form, into);
        let mut taken = Ok(());
        while slot.entries > 0 && writer.entries() < most {
            let read = entry_at(&self.cells, &self.links, &mut self.whole, self.form, slot.first);
            let last = match read {
                Ok((entry, last)) if writer.push(&entry) => {
                    slot.bytes -= self.form.bytes(&entry) as u32;
                    last
                }
                Ok(_) => break,
                Err(damage) => {
                    taken = Err(damage);
                    break;
                }
            };
            slot.entries -= 1;
            let next = self.links.next(last);
            self.release(slot.first, last);
            slot.first = next;
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
        let slot = self.slot(buffer);
        if slot.entries == 0 {
            return;
        }
        self.unlist(buffer);
        self.release(slot.first, slot.last);
        self.set_slot(buffer, EMPTY);
    }

    /// Makes the cells of a list from `first` to `last` free.
    fn release(&mut self, first: u32, last: u32) {
        let mut cell = first;
        self.free += 1;
        while cell != last {
            cell = self.links.next(cell);
            self.free += 1;
        }
        self.links.set(last, self.first_free, false);
        self.first_free = first;
    }

    /// Adds a free cell, of which there is one, to the end of a list.
    fn add_cell(&mut self, slot: &mut Slot, is_delete: bool) {
        let cell = self.first_free;
        self.first_free = self.links.next(cell);
        self.free -= 1;
        self.links.set(cell, NO_CELL, is_delete);
        if slot.first == NO_CELL {
            slot.first = cell;
        } else {
            self.links.lead(slot.last, cell);
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

/// The entry that begins in `cell`, and the last of its cells.
fn entry_at<'p>(
    cells: &'p [u8],
    links: &Links,
    whole: &'p mut [u8],
    form: Form,
    cell: u32,
) -> Result<(Pending<'p>, u32), Damage> {
    const CUT: Damage = "an entry in the pool has no end";
    let bytes = links.cell_bytes(cells.len());
    let piece = |cell: u32| {
        let at = cell as usize * bytes;
        cells.get(at..at + bytes).ok_or(CUT)
    };
    let is_delete = links.is_marked(cell);
    if form.read(piece(cell)?, is_delete).is_ok() {
        return form.read(piece(cell)?, is_delete).map(|(entry, _)| (entry, cell));
    }
    let (mut last, mut length) = (cell, 0);
    loop {
        let into = whole.get_mut(length..length + bytes).ok_or(CUT)?;
        into.copy_from_slice(piece(last)?);
        length += bytes;
        if form.read(&whole[..length], is_delete).is_ok() {
            break;
        }
        last = links.next(last);
    }
    form.read(&whole[..length], is_delete).map(|(entry, _)| (entry, last))
}

#[cfg(test)]
mod tests;
