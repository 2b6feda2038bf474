//! What was done to the pages of a chip since the last erase of their blocks.
//!
//! ```text
//!  0                   3          5       6          8
//!  +-------------------+----------+-------+----------+
//!  | data bytes closed | programs | spare | checksum |
//!  | u24               | u16      | 0, 1  | u16      |
//!  +-------------------+----------+-------+----------+
//! ```
//!
//! Eight zeros are a page that is erased. The checksum covers the page's number.

use crc::{CRC_16_IBM_SDLC, Crc};
use device::{Error, Geometry, Page, ProgramOrder, Result};

const CRC: Crc<u16> = Crc::<u16>::new(&CRC_16_IBM_SDLC);

/// What was done to a page since the last erase of its block.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct PageState {
    /// Bytes of data that are closed: the next part starts here or later.
    pub(super) filled: u32,
    /// Programs so far.
    pub(super) programs: u16,
    pub(super) spare: Spare,
}

/// The spare area of a page.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Spare {
    #[default]
    Erased,
    Programmed,
    /// The state of the page makes no sense: nobody knows what was done to it.
    Unknown,
}

impl PageState {
    /// Bytes in the file.
    pub(super) const BYTES: usize = 8;

    /// The state of a page of which nobody knows what was done to it: until it is erased it can be
    /// neither read nor programmed.
    const UNKNOWN: PageState =
        PageState { filled: u32::MAX, programs: u16::MAX, spare: Spare::Unknown };

    pub(super) fn is_unknown(self) -> bool {
        self.spare == Spare::Unknown
    }

    /// The bytes for the file; the page is not in an unknown state.
    pub(super) fn encode(self, page: Page) -> [u8; Self::BYTES] {
        let mut bytes = [0; Self::BYTES];
        bytes[..3].copy_from_slice(&self.filled.to_le_bytes()[..3]);
        bytes[3..5].copy_from_slice(&self.programs.to_le_bytes());
        bytes[5] = u8::from(self.spare == Spare::Programmed);
        let checksum = checksum(page, &bytes);
        bytes[6..].copy_from_slice(&checksum.to_le_bytes());
        bytes
    }

    /// Reads the state of `page`; bytes that make no sense on this chip are an unknown state.
    pub(super) fn decode(page: Page, bytes: [u8; Self::BYTES], chip: &Geometry) -> Self {
        if bytes == [0; Self::BYTES] {
            return PageState::default();
        }
        let state = PageState {
            filled: u32::from_le_bytes([bytes[0], bytes[1], bytes[2], 0]),
            programs: u16::from_le_bytes([bytes[3], bytes[4]]),
            spare: if bytes[5] == 0 { Spare::Erased } else { Spare::Programmed },
        };
        let sound = state.encode(page) == bytes
            && state.filled <= chip.page_bytes()
            && (1..=chip.programs_per_page()).contains(&state.programs);
        if sound { state } else { PageState::UNKNOWN }
    }

    /// The state after a program that the rules allow.
    pub(super) fn after(self, offset: u32, data: &[u8], spare: &[u8]) -> Self {
        PageState {
            filled: if data.is_empty() { self.filled } else { offset + data.len() as u32 },
            programs: self.programs + 1,
            spare: if spare.is_empty() { self.spare } else { Spare::Programmed },
        }
    }
}

fn checksum(page: Page, bytes: &[u8; PageState::BYTES]) -> u16 {
    let mut digest = CRC.digest();
    digest.update(&page.0.to_le_bytes());
    digest.update(&bytes[..6]);
    digest.finalize()
}

/// The states of all pages of a chip.
pub(super) struct States {
    geometry: Geometry,
    pages: Vec<PageState>,
    /// For each block one more than the highest place that was programmed.
    next: Vec<u32>,
    unknown: u32,
}

impl States {
    /// No page yet; they are added in their order.
    pub(super) fn new(geometry: Geometry) -> Self {
        let (pages, blocks) = (geometry.pages() as usize, geometry.blocks() as usize);
        let (pages, next) = (Vec::with_capacity(pages), Vec::with_capacity(blocks));
        States { geometry, pages, next, unknown: 0 }
    }

    /// Adds pages, as they stand in the file.
    pub(super) fn add(&mut self, bytes: &[u8]) {
        for bytes in bytes.as_chunks().0 {
            let page = Page(self.pages.len() as u32);
            let state = PageState::decode(page, *bytes, &self.geometry);
            let place = self.geometry.place_of(page);
            if place == 0 {
                self.next.push(0);
            }
            self.pages.push(state);
            self.unknown += u32::from(state.is_unknown());
            if state != PageState::default() {
                self.reach(page);
            }
        }
    }

    /// Notes that `page` was programmed.
    fn reach(&mut self, page: Page) {
        let next = &mut self.next[self.geometry.block_of(page).0 as usize];
        *next = (*next).max(self.geometry.place_of(page) + 1);
    }

    /// Pages that were in an unknown state when the file was opened.
    pub(super) const fn unknown(&self) -> u32 {
        self.unknown
    }

    pub(super) fn get(&self, page: Page) -> PageState {
        self.pages[page.0 as usize]
    }

    pub(super) fn set(&mut self, page: Page, state: PageState) {
        self.pages[page.0 as usize] = state;
        self.reach(page);
    }

    /// Erases the block that begins with `first`.
    pub(super) fn erase(&mut self, first: Page) {
        let start = first.0 as usize;
        let end = start + self.geometry.pages_per_block() as usize;
        self.pages[start..end].fill(PageState::default());
        self.next[self.geometry.block_of(first).0 as usize] = 0;
    }

    /// Refuses a program that the state of the chip forbids; its arguments were checked.
    pub(super) fn check_program(
        &self,
        page: Page,
        offset: u32,
        data: &[u8],
        spare: &[u8],
    ) -> Result<()> {
        let block = self.geometry.block_of(page);
        let next = self.next[block.0 as usize];
        let ascending = self.geometry.order() == ProgramOrder::Ascending;
        if ascending && self.geometry.place_of(page) + 1 < next {
            let lowest = Page(self.geometry.first_page(block).0 + next - 1);
            return Err(Error::OutOfOrder { page, lowest });
        }
        let state = self.get(page);
        let over = !data.is_empty() && offset < state.filled;
        if over || state.is_unknown() || (!spare.is_empty() && state.spare != Spare::Erased) {
            let erased_from = state.filled.min(self.geometry.page_bytes());
            return Err(Error::NotErased { page, erased_from });
        }
        let limit = self.geometry.programs_per_page();
        if state.programs >= limit {
            return Err(Error::TooManyPrograms { page, limit });
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::{PageState, Spare};
    use device::{Geometry, Page};

    fn chip() -> Geometry {
        Geometry::new(65_536, 4, 4).unwrap().with_spare(16).unwrap().with_programs(3).unwrap()
    }

    const SOME: PageState = PageState { filled: 65_536, programs: 3, spare: Spare::Programmed };

    #[test]
    fn a_state_says_what_was_put_in() {
        let erased = PageState::default();
        for state in [erased, SOME, erased.after(0, &[], &[1]), erased.after(5, &[1], &[])] {
            let bytes = if state == erased { [0; 8] } else { state.encode(Page(9)) };
            assert_eq!(PageState::decode(Page(9), bytes, &chip()), state);
        }
    }

    #[test]
    fn a_flipped_bit_or_a_state_of_another_page_is_noticed() {
        for bit in 0..64 {
            let mut bytes = SOME.encode(Page(9));
            bytes[bit / 8] ^= 1 << (bit % 8);
            assert!(PageState::decode(Page(9), bytes, &chip()).is_unknown(), "bit {bit}");
        }
        assert!(PageState::decode(Page(8), SOME.encode(Page(9)), &chip()).is_unknown());
    }

    #[test]
    fn a_state_that_this_chip_can_not_have_is_unknown() {
        for state in [
            PageState { filled: 65_537, ..SOME },
            PageState { programs: 4, ..SOME },
            PageState { programs: 0, ..SOME },
        ] {
            assert!(PageState::decode(Page(1), state.encode(Page(1)), &chip()).is_unknown());
        }
    }
}
