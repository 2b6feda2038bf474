//! Which block to collect: greedily, the one with the fewest live pages.
//!
//! Blocks stand in one chain for each number of live pages, so that nothing is ever searched:
//! when a page dies its block goes one chain down. `least` follows the lowest chain that may
//! hold a block; it only rises over chains that are empty, and falls by what was added, so its
//! way is paid for by the pages that died and the blocks that were closed.
//!
//! Another policy is another file with these functions.

use alloc::boxed::Box;
use alloc::vec;

use device::Block;

use crate::blocks::{Links, List};

/// The candidates for collection.
pub(crate) struct Greedy {
    chains: Box<[List]>,
    least: usize,
}

impl Greedy {
    pub(crate) fn new(pages_per_block: u32) -> Self {
        let chains = vec![List::EMPTY; pages_per_block as usize + 1].into_boxed_slice();
        Greedy { chains, least: 0 }
    }

    /// Adds a candidate with `live` live pages.
    pub(crate) fn insert(&mut self, links: &mut Links, block: Block, live: u32) {
        links.push(&mut self.chains[live as usize], block);
        self.least = self.least.min(live as usize);
    }

    /// Takes a candidate with `live` live pages away.
    pub(crate) fn remove(&mut self, links: &mut Links, block: Block, live: u32) {
        links.remove(&mut self.chains[live as usize], block);
    }

    /// A page of a candidate died, and `live` are left.
    pub(crate) fn page_died(&mut self, links: &mut Links, block: Block, live: u32) {
        self.remove(links, block, live + 1);
        self.insert(links, block, live);
    }

    /// The block to collect next, and its live pages.
    pub(crate) fn choose(&mut self) -> Option<(Block, u32)> {
        while self.least < self.chains.len() {
            if let Some(block) = self.chains[self.least].first() {
                return Some((block, self.least as u32));
            }
            self.least += 1;
        }
        None
    }

    /// Bytes of memory that the tables take.
    pub(crate) fn memory(&self) -> u64 {
        size_of_val(&*self.chains) as u64
    }
}

#[cfg(test)]
mod tests {
    use device::Block;

    use super::Greedy;
    use crate::blocks::Blocks;

    #[test]
    fn the_block_with_the_fewest_live_pages_is_chosen() {
        let mut blocks = Blocks::new(4);
        let mut greedy = Greedy::new(8);
        assert_eq!(greedy.choose(), None);
        for (block, live) in [(0, 8), (1, 5), (2, 7), (3, 5)] {
            greedy.insert(&mut blocks.links, Block(block), live);
        }
        assert_eq!(greedy.choose(), Some((Block(1), 5)));
        for live in (3..7).rev() {
            greedy.page_died(&mut blocks.links, Block(2), live);
        }
        assert_eq!(greedy.choose(), Some((Block(2), 3)));
        for (block, live) in [(2, 3), (1, 5), (3, 5)] {
            greedy.remove(&mut blocks.links, Block(block), live);
        }
        assert_eq!(greedy.choose(), Some((Block(0), 8)));
        greedy.insert(&mut blocks.links, Block(1), 0);
        assert_eq!(greedy.choose(), Some((Block(1), 0)));
    }
}
