//! What one erase block holds.

use device::Geometry;

/// What was done to a page since the last erase of its block.
#[derive(Clone, Copy, Default)]
pub(crate) struct PageState {
    /// Bytes of data that are closed: the next part starts here or later.
    filled: u32,
    /// Programs so far.
    programs: u16,
    /// True if the spare area was programmed.
    spare: bool,
}

impl PageState {
    pub(crate) const fn filled(self) -> u32 {
        self.filled
    }

    pub(crate) const fn programs(self) -> u16 {
        self.programs
    }

    pub(crate) const fn spare(self) -> bool {
        self.spare
    }
}

/// The contents of a block that was programmed since its last erase.
///
/// Invariant: bytes that no page state calls filled are never read, so a recycled block need not
/// be cleaned. `next` is one more than the highest place programmed.
pub(crate) struct Contents {
    pages: Box<[PageState]>,
    /// For each page its data, then its spare area.
    bytes: Box<[u8]>,
    page_bytes: usize,
    stride: usize,
    next: u32,
}

// A copy leaves out what no page state calls filled: copies of a chip are made for every power cut
// that a test tries.
impl Clone for Contents {
    fn clone(&self) -> Self {
        let used = self.stride * self.next as usize;
        let mut bytes = vec![0; self.bytes.len()].into_boxed_slice();
        bytes[..used].copy_from_slice(&self.bytes[..used]);
        Contents { pages: self.pages.clone(), bytes, ..*self }
    }
}

impl Contents {
    pub(crate) fn new(geometry: &Geometry) -> Self {
        let stride = (geometry.page_bytes() + geometry.spare_bytes()) as usize;
        let pages = geometry.pages_per_block() as usize;
        Contents {
            pages: vec![PageState::default(); pages].into_boxed_slice(),
            bytes: vec![0; stride * pages].into_boxed_slice(),
            page_bytes: geometry.page_bytes() as usize,
            stride,
            next: 0,
        }
    }

    /// Erases the block; its memory is kept for the next one.
    pub(crate) fn erase(&mut self) {
        self.pages[..self.next as usize].fill(PageState::default());
        self.next = 0;
    }

    /// One more than the highest place that was programmed.
    pub(crate) const fn next(&self) -> u32 {
        self.next
    }

    pub(crate) fn state(&self, place: u32) -> PageState {
        self.pages[place as usize]
    }

    /// Programs a page of which the rules were checked.
    pub(crate) fn program(&mut self, place: u32, offset: u32, data: &[u8], spare: &[u8]) {
        let start = self.stride * place as usize;
        let state = &mut self.pages[place as usize];
        state.programs += 1;
        if !data.is_empty() {
            let page = &mut self.bytes[start..start + self.page_bytes];
            let (from, to) = (offset as usize, offset as usize + data.len());
            if from > state.filled as usize {
                page[state.filled as usize..from].fill(0xFF);
            }
            page[from..to].copy_from_slice(data);
            state.filled = offset + data.len() as u32;
        }
        if !spare.is_empty() {
            let area = &mut self.bytes[start + self.page_bytes..start + self.stride];
            let (given, rest) = area.split_at_mut(spare.len());
            given.copy_from_slice(spare);
            rest.fill(0xFF);
            state.spare = true;
        }
        self.next = self.next.max(place + 1);
    }

    /// Reads bytes of a page and of its spare area.
    pub(crate) fn read(&self, place: u32, offset: u32, into: &mut [u8], spare: &mut [u8]) {
        let start = self.stride * place as usize;
        let state = self.pages[place as usize];
        let from = offset as usize;
        let known = (state.filled as usize).saturating_sub(from).min(into.len());
        let (programmed, erased) = into.split_at_mut(known);
        programmed.copy_from_slice(&self.bytes[start + from..start + from + known]);
        erased.fill(0xFF);
        if state.spare {
            let area = start + self.page_bytes;
            spare.copy_from_slice(&self.bytes[area..area + spare.len()]);
        } else {
            spare.fill(0xFF);
        }
    }

    /// The bytes of a page, its data and then its spare area, as they read.
    pub(crate) fn whole(&self, place: u32) -> Box<[u8]> {
        let mut bytes = vec![0xFF; self.stride].into_boxed_slice();
        let (data, spare) = bytes.split_at_mut(self.page_bytes);
        self.read(place, 0, data, spare);
        bytes
    }

    /// Bytes of memory that the contents take.
    pub(crate) fn memory(&self) -> u64 {
        (self.bytes.len() + size_of_val(&*self.pages)) as u64
    }
}
