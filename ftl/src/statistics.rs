//! What a translation layer did.

use core::ops::AddAssign;

/// Counts since the disk was made or opened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Statistics {
    /// Sectors that were written from above.
    pub sectors_written: u64,
    /// Pages that were programmed for any reason.
    pub pages_programmed: u64,
    /// Pages with live data that collection moved.
    pub pages_moved: u64,
    /// Pages that hold only the layer's own metadata.
    pub pages_of_metadata: u64,
    /// Pages that could not be read when they were to be moved.
    pub pages_lost: u64,
    /// Pages whose metadata was found damaged when the disk was opened, although they had been
    /// programmed in full. What they held is not known: a sector may have what it had before.
    pub pages_damaged: u64,
    /// Flipped bits that the chip corrected.
    pub bits_corrected: u64,
    /// Pages that were moved since bits had flipped in them.
    pub pages_scrubbed: u64,
    /// Blocks that were collected.
    pub collections: u64,
    /// Blocks with few erases that were emptied to be worn in their turn.
    pub static_moves: u64,
    /// Blocks that users filled in order and that took the place of a data block.
    pub switch_merges: u64,
    /// Blocks that users began, the rest of which was copied.
    pub partial_merges: u64,
    /// Blocks all or the first part of which was copied.
    pub full_merges: u64,
    /// Blocks that were erased.
    pub blocks_erased: u64,
    /// Blocks that refused to work and were retired.
    pub blocks_retired: u64,
    /// How erases are spread over the blocks: page mapping and DAC know it since the disk was made,
    /// layers that map blocks since it was made or opened.
    pub erases: Option<Erases>,
}

/// How erases are spread over the good blocks of a chip, as far as a translation layer knows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Erases {
    /// Erases of the block with the fewest.
    pub least: u32,
    /// Erases of the block with the most.
    pub most: u32,
    /// Erases of all blocks together.
    pub total: u64,
    /// Blocks that are not bad.
    pub blocks: u32,
}

impl Erases {
    /// Erases of a block on average.
    #[must_use]
    pub fn mean(&self) -> f64 {
        self.total as f64 / f64::from(self.blocks.max(1))
    }
}

impl Statistics {
    /// Pages programmed for each sector written; `None` before the first write.
    #[must_use]
    pub fn write_amplification(&self) -> Option<f64> {
        (self.sectors_written > 0)
            .then(|| self.pages_programmed as f64 / self.sectors_written as f64)
    }
}

/// Adds up what one session after the other did.
impl AddAssign for Statistics {
    fn add_assign(&mut self, other: Statistics) {
        self.sectors_written += other.sectors_written;
        self.pages_programmed += other.pages_programmed;
        self.pages_moved += other.pages_moved;
        self.pages_of_metadata += other.pages_of_metadata;
        self.pages_lost += other.pages_lost;
        self.pages_damaged += other.pages_damaged;
        self.bits_corrected += other.bits_corrected;
        self.pages_scrubbed += other.pages_scrubbed;
        self.collections += other.collections;
        self.static_moves += other.static_moves;
        self.switch_merges += other.switch_merges;
        self.partial_merges += other.partial_merges;
        self.full_merges += other.full_merges;
        self.blocks_erased += other.blocks_erased;
        self.blocks_retired += other.blocks_retired;
        self.erases = other.erases.or(self.erases);
    }
}
