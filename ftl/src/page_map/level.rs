//! Static wear levelling: data that does not change leaves blocks with few erases.
//!
//! Data that nobody changes keeps its block from ever being erased. So a hand goes round over all
//! blocks, a few with each block that users fill. A block that it finds far behind, and that was
//! begun long ago, is emptied; what lived there goes to a frontier of its own, which takes the
//! most worn of the free blocks. So worn blocks come to rest, and rested ones are worn.

use device::{Block, Nand, Result};

use super::PageMap;
use super::blocks::Role;
use crate::Levelling;

/// The hand.
#[derive(Clone, Copy, Default)]
pub(super) struct Hand {
    next: u32,
    /// Erases in all when a block may be emptied next.
    not_before: u64,
}

/// Blocks that the hand goes over for each block that users fill.
const LOOKS: u32 = 8;

/// Erases for each block that is emptied, at least.
const ERASES_A_MOVE: u64 = 3;

impl<N: Nand> PageMap<N> {
    /// Empties a block that lags behind, if the hand finds one; returns whether it did.
    pub(super) fn level(&mut self) -> Result<bool> {
        if self.levelling != Levelling::Static
            || self.statistics.blocks_erased < self.hand.not_before
            || self.blocks.free_count() < self.shape.reserve()
        {
            return Ok(false);
        }
        let wear = self.wear.summary();
        let most = self.named_free().map(|block| self.wear.erases(block)).max();
        let Some(behind) = most.and_then(|most| most.checked_sub(spread(wear.mean()))) else {
            return Ok(false);
        };
        if wear.least > behind {
            return Ok(false);
        }
        let blocks = self.shape.geometry.blocks();
        for _ in 0..LOOKS.min(blocks) {
            let block = Block(self.hand.next);
            self.hand.next = (block.0 + 1) % blocks;
            if self.rests(block) && self.wear.erases(block) <= behind {
                self.hand.not_before = self.statistics.blocks_erased + ERASES_A_MOVE;
                self.empty(block, self.placement.of_rest())?;
                self.statistics.static_moves += 1;
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// True if nothing was written to `block` while as many pages were programmed as the chip has.
    fn rests(&self, block: Block) -> bool {
        let age = self.sequence - self.notes[block.0 as usize].sequence;
        self.blocks.role(block) == Role::Closed && age > u64::from(self.shape.geometry.pages())
    }
}

/// How many erases a block may lag behind: a sixteenth of the mean, since what all blocks had is
/// spread evenly already; but at least so many that data which rests is seldom moved.
fn spread(mean: f64) -> u32 {
    ((mean / 16.0) as u32).max(LEAST_SPREAD)
}

const LEAST_SPREAD: u32 = 12;
