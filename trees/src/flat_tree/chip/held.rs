//! Units that lookups read, held in memory that the tables of runs do not need yet.
//!
//! Where a workload is local, a unit's neighbours are asked for next. Reading them as well costs
//! the bytes alone, and is done as long as it pays: what it costs more is weighed against the reads
//! that it saved, on one miss in [`PROBE`] at least.
//!
//! Invariant: what is held is what stands in its page. A page is programmed once after each erase,
//! and whoever programs it lets its units go.

use device::Page;
use store::Frames;

/// Bytes up to which units are read together.
pub(super) const GROUP: u32 = 256;

/// Misses of which one is read with its neighbours, whatever that brought.
const PROBE: u32 = 16;

/// Groups that were read after which what they brought counts half.
const GROUPS: u32 = 256;

/// The fewest units that are worth their tables.
const COUNT_LEAST: u64 = 16;

/// Pages are divided into cells of so many bytes, for a number each.
const CELL: usize = 16;

/// What is known of a unit that is held.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct State {
    offset: u16,
    bytes: u16,
    /// True if it was read beside another, and not asked for since.
    is_neighbour: bool,
}

/// Units, those used lately.
pub(super) struct Held {
    frames: Frames<State>,
    frame: usize,
    /// Cells of a page.
    cells: u32,
    /// True if each cell of the chip has a number.
    can_be: bool,
    misses: u32,
    /// Groups that were read, and reads that they saved.
    groups: u32,
    saved: u32,
}

impl Held {
    /// Nothing, of a chip of so many pages with `content` bytes each.
    pub(super) fn new(pages: u32, content: usize) -> Self {
        let cells = content.div_ceil(CELL) as u32;
        let all = u64::from(pages) * u64::from(cells);
        Held {
            frames: Frames::new(0, 0, 1),
            frame: 0,
            cells,
            can_be: all < u64::from(u32::MAX),
            misses: 0,
            groups: 0,
            saved: 0,
        }
    }

    /// Bytes of memory that it takes.
    pub(super) fn memory(&self) -> u64 {
        if self.frames.is_empty() { 0 } else { self.frames.memory() }
    }

    /// Takes no more than `bytes` bytes from now on, for units of up to `unit` bytes. What is held
    /// is forgotten where that is less than it takes now, or more than twice as much.
    pub(super) fn fit(&mut self, bytes: u64, unit: u32) {
        let now = self.memory();
        let each = u64::from(unit) + Frames::<State>::TABLE_BYTES as u64;
        // The next time it is less again, as tables grow.
        let wanted = if bytes < now { bytes / 4 * 3 } else { bytes } / each;
        let wanted = if wanted < COUNT_LEAST || !self.can_be { 0 } else { wanted };
        if bytes < now || wanted / 2 > self.frames.len().into() {
            self.frame = unit as usize;
            self.frames = Frames::new(0, 0, 1);
            self.frames = Frames::new(u32::try_from(wanted).unwrap_or(0), self.frame, 1);
        }
    }

    /// True if units of so many bytes are held.
    pub(super) fn takes(&self, bytes: usize) -> bool {
        bytes <= self.frame && !self.frames.is_empty()
    }

    fn key(&self, page: Page, offset: u32) -> u32 {
        page.0 * self.cells + offset / CELL as u32
    }

    /// Copies the unit that begins there, if it is held.
    pub(super) fn copy(&mut self, page: Page, offset: u32, into: &mut [u8]) -> bool {
        let Some(frame) = self.frames.touch(self.key(page, offset)) else {
            return false;
        };
        let (held, state) = self.frames.both_mut(frame);
        if (u32::from(state.offset), usize::from(state.bytes)) != (offset, into.len()) {
            return false;
        }
        self.saved += u32::from(core::mem::take(&mut state.is_neighbour));
        into.copy_from_slice(&held[..into.len()]);
        true
    }

    /// True if what is read now is to be read with its neighbours, where `more` is what that costs
    /// beside reading it alone, which costs `alone`.
    pub(super) fn reads_group(&mut self, alone: u64, more: u64) -> bool {
        self.misses = self.misses.wrapping_add(1);
        let pays = u64::from(self.saved) * alone >= u64::from(self.groups) * more;
        pays || self.misses.is_multiple_of(PROBE)
    }

    /// A group was read.
    pub(super) const fn note_group(&mut self) {
        self.groups += 1;
        if self.groups >= GROUPS {
            (self.groups, self.saved) = (self.groups / 2, self.saved / 2);
        }
    }

    /// Holds a unit.
    pub(super) fn hold(&mut self, page: Page, offset: u32, (bytes, is_neighbour): (&[u8], bool)) {
        let key = self.key(page, offset);
        let frame = match self.frames.touch(key) {
            Some(frame) => frame,
            None => self.frames.enter(key),
        };
        let (held, state) = self.frames.both_mut(frame);
        let is_known = u32::from(state.offset) == offset && usize::from(state.bytes) == bytes.len();
        let was_asked_for = is_known && !state.is_neighbour;
        *state = State {
            offset: offset as u16,
            bytes: bytes.len() as u16,
            is_neighbour: is_neighbour && !was_asked_for,
        };
        held[..bytes.len()].copy_from_slice(bytes);
    }

    /// Lets the units of a page go.
    pub(super) fn forget(&mut self, page: Page) {
        if self.frames.is_empty() {
            return;
        }
        for cell in 0..self.cells {
            if let Some(frame) = self.frames.find(page.0 * self.cells + cell) {
                self.frames.forget(frame);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec;
    use alloc::vec::Vec;

    use device::Page;
    use rand::{RngExt, SeedableRng};
    use rand_chacha::ChaCha8Rng;

    use super::Held;

    const CONTENT: usize = 2000;

    #[test]
    fn what_is_copied_is_what_stands_in_the_page_within_the_memory() {
        let mut random = ChaCha8Rng::seed_from_u64(1);
        let mut pages: Vec<Vec<u8>> = vec![vec![0; CONTENT]; 20];
        let mut held = Held::new(20, CONTENT);
        let (mut hits, mut most) = (0, 0);
        for step in 0..40_000_u32 {
            let page = random.random_range(0..20);
            let address = Page(page as u32);
            match random.random_range(0..2000) {
                0..10 => {
                    pages[page].fill(random.random());
                    held.forget(address);
                }
                10..12 => {
                    most = random.random_range(0..60_000);
                    held.fit(most, 64);
                }
                _ => {
                    // Runs begin anywhere, so units of one page are of several lengths.
                    let length = [30, 50, 64, 70][random.random_range(0..4)];
                    let start = random.random_range(0..(CONTENT - length) / 99) * 99;
                    let (bytes, mut into) = (start..start + length, vec![0; length]);
                    if !held.takes(length) {
                        continue;
                    }
                    if held.copy(address, start as u32, &mut into) {
                        assert_eq!(into, pages[page][bytes], "step {step}");
                        hits += 1;
                    } else {
                        let read = (&pages[page][bytes], random.random());
                        held.hold(address, start as u32, read);
                    }
                }
            }
            assert!(held.memory() <= most, "step {step}");
        }
        assert!(hits > 1000, "{hits}");
    }

    #[test]
    fn neighbours_are_read_while_that_pays_and_seldom_where_it_does_not() {
        let mut held = Held::new(20, CONTENT);
        held.fit(10_000, 64);
        let mut groups = |is_local: bool| {
            let mut groups = 0;
            for number in 0..1600 {
                if held.reads_group(30, 10) {
                    groups += 1;
                    held.note_group();
                    held.forget(Page(number % 20));
                    held.hold(Page(number % 20), 64, (&[0; 64], true));
                    if is_local {
                        assert!(held.copy(Page(number % 20), 64, &mut [0; 64]));
                    }
                }
            }
            groups
        };
        assert_eq!(groups(true), 1600);
        let few = groups(false);
        assert!((100..600).contains(&few), "{few}");
        assert!(groups(true) > 1000);
    }
}
