//! Images that no named checkpoint needs.
//!
//! Of several images of a unit, in the epochs after a named checkpoint, the first is the one that
//! going back to it needs; an older name needs none that comes later. So a unit with an image since
//! the newest name that was free at the last checkpoint needs none. And once a checkpoint is made,
//! an epoch that has only images of units with an earlier one since the newest name is of no use,
//! and the next epoch begins where it began. Without that the run would get longer with all that is
//! written while a checkpoint has a name.
//!
//! What is not noted is kept. For a new name it begins with nothing, and an opening reads which
//! images there are.

use alloc::boxed::Box;
use alloc::vec;

use super::Undo;

/// Which units have an image since the newest name, if anything is noted at all.
#[derive(Default)]
pub(super) struct Repeats {
    /// A bit a unit, of those that were in use at a named checkpoint.
    saved: Box<[u8]>,
    /// Units without one, at most.
    left: u32,
    /// True if the open epoch has the first image of some unit.
    has_first: bool,
}

impl Repeats {
    /// Nothing is known of any of the `units` units that were in use at a named checkpoint.
    pub(super) fn reset(&mut self, units: u32) {
        // Before the new one is made, for there is no memory for both.
        self.saved = Box::default();
        self.saved = vec![0; Undo::table_bytes_for(units)].into_boxed_slice();
        self.left = 8 * self.saved.len() as u32;
    }

    /// Units that a named checkpoint may need, of those that were free at the last.
    pub(super) const fn left(&self) -> u32 {
        self.left
    }

    /// True if a named checkpoint may need what `unit` holds, which was free at the last.
    pub(super) fn may_need(&self, unit: u32) -> bool {
        self.saved.get(unit as usize / 8).is_some_and(|byte| byte >> (unit % 8) & 1 == 0)
    }

    /// An epoch begins.
    pub(super) fn begin(&mut self) {
        self.has_first = false;
    }

    /// An image of `unit` was saved.
    pub(super) fn saved(&mut self, unit: u32) {
        // No name needs those beyond.
        if let Some(byte) = self.saved.get_mut(unit as usize / 8) {
            let bit = 1 << (unit % 8);
            if *byte & bit == 0 {
                *byte |= bit;
                self.left -= 1;
                self.has_first = true;
            }
        }
    }

    /// True if the open epoch has no image that a named checkpoint needs.
    pub(super) fn are_all(&self) -> bool {
        !self.has_first
    }

    /// Nothing is known of any unit.
    pub(super) fn forget(&mut self) {
        self.saved.fill(0);
        self.left = 8 * self.saved.len() as u32;
    }
}
