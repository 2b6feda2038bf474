//! The blocks in which least lives.

use alloc::vec::Vec;

use device::Block;

/// What moving writes.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Cost {
    /// Pages beside each other.
    pub(super) moved: u64,
    /// Pages apart from these, and by how many more pages there are in their blocks than before.
    pub(super) apart: u64,
    pub(super) pages_apart: u64,
}

/// What emptying some blocks comes to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Gain {
    pub(super) count: usize,
    written: u64,
    gained: u64,
}

impl Gain {
    /// True if less is written for each page that is gained.
    pub(super) fn is_better_than(&self, other: Gain) -> bool {
        self.written * other.gained < other.written * self.gained
    }
}

/// Some blocks, those in which least lives first.
pub(super) struct Victims {
    most: usize,
    blocks: Vec<(u16, Block)>,
}

impl Victims {
    pub(super) fn new(most: usize) -> Self {
        Victims { most, blocks: Vec::with_capacity(most) }
    }

    /// Takes a block in, if less lives in it than in another, or there is room for more.
    pub(super) fn offer(&mut self, block: Block, lives: u16) {
        let place = self.blocks.partition_point(|(other, _)| *other <= lives);
        if place == self.most {
            return;
        }
        self.blocks.truncate(self.most - 1);
        self.blocks.insert(place, (lives, block));
    }

    /// Those in which nothing lives.
    pub(super) fn dead(&self) -> impl Iterator<Item = Block> + '_ {
        self.blocks.iter().take_while(|(lives, _)| *lives == 0).map(|(_, block)| *block)
    }

    /// How many of them gain most for what moving them writes, and what. `cost` says how many pages
    /// are written for so many that live, of `block` pages each, of which so many are to be `free`.
    pub(super) fn best(
        &self,
        cost: impl Fn(u64) -> Cost,
        (block, free): (u64, u64),
    ) -> Option<Gain> {
        let (mut lives, mut best) = (0, None::<Gain>);
        for (count, (more, _)) in (1..).zip(&self.blocks) {
            lives += u64::from(*more);
            let Cost { moved, apart, pages_apart } = cost(lives);
            let taken = moved + pages_apart;
            let Some(gained) = (count * block).checked_sub(taken).filter(|gain| *gain > 0) else {
                continue;
            };
            let gain = Gain { count: count as usize, written: moved + apart, gained };
            if moved <= free && best.is_none_or(|best| gain.is_better_than(best)) {
                best = Some(gain);
            }
        }
        best
    }

    /// Keeps so many of them.
    pub(super) fn keep(&mut self, count: usize) {
        self.blocks.truncate(count);
    }

    /// Pages that live in all of them.
    pub(super) fn lives(&self) -> u64 {
        self.blocks.iter().map(|(lives, _)| u64::from(*lives)).sum()
    }

    /// All of them, in the order of their numbers.
    pub(super) fn in_order(self) -> Vec<Block> {
        let mut blocks: Vec<Block> = self.blocks.into_iter().map(|(_, block)| block).collect();
        blocks.sort_unstable();
        blocks
    }
}

#[cfg(test)]
mod tests;
