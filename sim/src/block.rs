//! What one erase block holds.

use device::Geometry;

/// What was done to a page since the last erase of its block.
#[derive(Clone, Copy, Default)]
pub(crate) struct PageState {
    /// Bytes of data that are closed: the next part starts here or later.
    filled: u32,
    /// Bytes of data that are in memory; those behind them read as erased.
    kept: u32,
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
/// Invariant: bytes that no page state calls kept are never read, so a recycled block need not
/// be cleaned. `next` is one more than the highest place programmed.
pub(crate) struct Contents {
    pages: Box<[PageState]>,
    /// For each page its data, then its spare area.
    bytes: Box<[u8]>,
    page_bytes: usize,
    stride: usize,
    next: u32,
}

// A copy leaves out what is behind the last page programmed: copies of a chip are made for every
// power cut that a test tries.
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
            let from = offset as usize;
            let kept = without_erased_end(data);
            if !kept.is_empty() {
                page[(state.kept as usize).min(from)..from].fill(0xFF);
                device::copy(&mut page[from..from + kept.len()], kept);
                state.kept = offset + kept.len() as u32;
            }
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
        let known = (state.kept as usize).saturating_sub(from).min(into.len());
        let (programmed, erased) = into.split_at_mut(known);
        device::copy(programmed, &self.bytes[start + from..start + from + known]);
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

/// `data` without pieces at its end that are as if erased: nodes that are half full end so, and
/// what is not copied costs no time.
fn without_erased_end(mut data: &[u8]) -> &[u8] {
    // Without branching in a piece, so that the processor takes many bytes at a time.
    while let Some((rest, last)) = data.split_last_chunk::<128>()
        && last.iter().fold(0xFF, |all, byte| all & byte) == 0xFF
    {
        data = rest;
    }
    data
}

#[cfg(test)]
mod tests {
    use device::Geometry;

    use super::Contents;

    #[test]
    fn parts_that_end_as_if_erased_read_as_they_were_programmed() {
        let mut contents = Contents::new(&Geometry::new(512, 2, 4).unwrap());
        // What stood there before the erase is not to be seen.
        contents.program(0, 0, &[0x11; 512], &[]);
        contents.erase();
        let mut expected = [0xFF; 512];
        let parts: [(usize, usize, usize); 4] =
            [(0, 128, 30), (128, 64, 0), (300, 100, 7), (400, 112, 70)];
        for (from, length, programmed) in parts {
            expected[from..from + programmed].fill(0x22);
            let part = expected[from..from + length].to_vec();
            contents.program(0, from as u32, &part, &[]);
            assert_eq!(contents.state(0).filled() as usize, from + length);
            assert_eq!(contents.whole(0)[..512], expected);
            let mut middle = [0; 90];
            contents.read(0, 20, &mut middle, &mut []);
            assert_eq!(middle, expected[20..110]);
        }
    }
}
