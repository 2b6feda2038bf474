//! Epochs whose images no named checkpoint needs.
//!
//! Of several images of a unit, in the epochs after a named checkpoint, the first is the one that
//! going back to it needs; an older name needs none that comes later. So once a checkpoint is made,
//! an epoch that has only images of units with an earlier one since the newest name is of no use,
//! and the next epoch begins where it began. Without that each checkpoint that is made while one
//! has a name would take more of the run, for the same few pages.
//!
//! What is not noted is kept. For a new name it begins with nothing, and an opening reads which
//! images there are.

use alloc::boxed::Box;
use alloc::vec;

/// Which units have an image since the newest name, if anything is noted at all.
#[derive(Default)]
pub(super) struct Repeats {
    /// A bit a unit.
    saved: Box<[u8]>,
    /// True if the open epoch has the first image of some unit.
    has_first: bool,
}

impl Repeats {
    /// With a table of so many bytes.
    pub(super) fn new(bytes: usize) -> Self {
        Repeats { saved: vec![0; bytes].into_boxed_slice(), has_first: false }
    }

    /// An epoch begins.
    pub(super) fn begin(&mut self) {
        self.has_first = false;
    }

    /// An image of `unit` was saved.
    pub(super) fn saved(&mut self, unit: u32) {
        match self.saved.get_mut(unit as usize / 8) {
            Some(byte) => {
                let bit = 1 << (unit % 8);
                self.has_first |= *byte & bit == 0;
                *byte |= bit;
            }
            None => self.has_first = true,
        }
    }

    /// True if the open epoch has no image that a named checkpoint needs.
    pub(super) fn are_all(&self) -> bool {
        !self.has_first
    }

    /// Nothing is known of any unit.
    pub(super) fn forget(&mut self) {
        self.saved.fill(0);
    }

    /// True if anything is noted.
    pub(super) fn are_noted(&self) -> bool {
        !self.saved.is_empty()
    }

    pub(super) fn memory(&self) -> u64 {
        self.saved.len() as u64
    }
}
