//! Which block to collect.
//!
//! Blocks stand in one chain for each number of live pages: when a page dies its block goes to the
//! end of the chain below. So the emptiest block is never searched, and the first block of a
//! chain is the one in it whose last page died longest ago: cost-benefit need only compare the
//! first blocks of all chains, as many as a block has pages, and chooses as if it had compared all
//! blocks. `least` follows the lowest chain that may hold a block; it only rises over chains that
//! are empty, and falls by what was added, so its way is paid for by the pages that died and the
//! blocks that were closed.
//!
//! Round-robin looks at one block after the other. It passes over blocks that are not worth it,
//! each once in a round.

use alloc::boxed::Box;
use alloc::vec;

use device::Block;

use crate::Victim;
use crate::blocks::{Links, List};

/// The candidates for collection.
pub(crate) struct Candidates {
    chains: Box<[List]>,
    least: usize,
    /// For each block the live pages with which it stands in a chain; [`ABSENT`] if it does not.
    live: Box<[u16]>,
    /// For each block the time at which its last page died; only for cost-benefit.
    touched: Box<[u64]>,
    /// The block that round-robin looks at next.
    hand: u32,
}

/// No chain. A block of as many pages counts as one of a page less, as long as all of them live.
const ABSENT: u16 = u16::MAX;

impl Candidates {
    /// No candidates yet, on a chip of so many blocks of so many pages.
    pub(crate) fn new(victim: Victim, blocks: u32, pages_per_block: u32) -> Self {
        let timed = if victim == Victim::CostBenefit { blocks as usize } else { 0 };
        Candidates {
            chains: vec![List::EMPTY; pages_per_block as usize + 1].into_boxed_slice(),
            least: 0,
            live: vec![ABSENT; blocks as usize].into_boxed_slice(),
            touched: vec![0; timed].into_boxed_slice(),
            hand: 0,
        }
    }

    /// Adds a candidate with `live` live pages, the last of which died at the time `now`, which
    /// never goes back.
    pub(crate) fn insert(&mut self, links: &mut Links, block: Block, live: u32, now: u64) {
        let live = live.min(u32::from(ABSENT) - 1);
        links.push(&mut self.chains[live as usize], block);
        self.least = self.least.min(live as usize);
        self.live[block.0 as usize] = live as u16;
        if let Some(touched) = self.touched.get_mut(block.0 as usize) {
            *touched = now;
        }
    }

    /// Takes a candidate away.
    pub(crate) fn remove(&mut self, links: &mut Links, block: Block) {
        let live = &mut self.live[block.0 as usize];
        if *live != ABSENT {
            links.remove(&mut self.chains[*live as usize], block);
            *live = ABSENT;
        }
    }

    /// A page of a candidate died, and `live` are left.
    pub(crate) fn page_died(&mut self, links: &mut Links, block: Block, live: u32, now: u64) {
        self.remove(links, block);
        self.insert(links, block, live, now);
    }

    /// The block to collect next, if there is one with fewer than `most` live pages.
    pub(crate) fn choose(&mut self, victim: Victim, most: u32, now: u64) -> Option<Block> {
        let emptiest = self.emptiest().filter(|(_, live)| *live < most);
        match (victim, emptiest) {
            (_, None) => None,
            // What holds nothing costs nothing.
            (Victim::Greedy, Some((block, _))) | (Victim::CostBenefit, Some((block, 0))) => {
                Some(block)
            }
            (Victim::CostBenefit, _) => self.most_beneficial(most, now),
            (Victim::RoundRobin, _) => self.next_in_order(most),
        }
    }

    fn emptiest(&mut self) -> Option<(Block, u32)> {
        while self.least < self.chains.len() {
            if let Some(block) = self.chains[self.least].first() {
                return Some((block, self.least as u32));
            }
            self.least += 1;
        }
        None
    }

    fn most_beneficial(&self, most: u32, now: u64) -> Option<Block> {
        let pages = self.chains.len() - 1;
        let chains = self.chains[..most as usize].iter().enumerate();
        let benefit = |(live, chain): (usize, &List)| {
            let block = chain.first()?;
            let age = (now - self.touched[block.0 as usize] + 1) as f64;
            Some((age * (pages - live) as f64 / (2 * live) as f64, block))
        };
        chains
            .filter_map(benefit)
            .max_by(|(one, _), (other, _)| one.total_cmp(other))
            .map(|(_, block)| block)
    }

    fn next_in_order(&mut self, most: u32) -> Option<Block> {
        let (before, behind) = self.live.split_at(self.hand as usize);
        let mut blocks = (self.hand..).zip(behind).chain((0..).zip(before));
        let (block, _) = blocks.find(|(_, live)| u32::from(**live) < most)?;
        self.hand = (block + 1) % self.live.len() as u32;
        Some(Block(block))
    }

    /// Bytes of memory that the tables take.
    pub(crate) fn memory(&self) -> u64 {
        let blocks = size_of_val(&*self.live) + size_of_val(&*self.touched);
        (size_of_val(&*self.chains) + blocks) as u64
    }
}

#[cfg(test)]
mod tests {
    use device::Block;

    use super::Candidates;
    use crate::Victim;
    use crate::blocks::Blocks;

    #[test]
    fn greedy_takes_the_block_with_the_fewest_live_pages() {
        let mut blocks = Blocks::new(4);
        let mut candidates = Candidates::new(Victim::Greedy, 4, 8);
        let choose = |candidates: &mut Candidates| candidates.choose(Victim::Greedy, 9, 0);
        assert_eq!(choose(&mut candidates), None);
        for (block, live) in [(0, 8), (1, 5), (2, 7), (3, 5)] {
            candidates.insert(&mut blocks.links, Block(block), live, 0);
        }
        assert_eq!(choose(&mut candidates), Some(Block(1)));
        assert_eq!(candidates.choose(Victim::Greedy, 5, 0), None);
        for live in (3..7).rev() {
            candidates.page_died(&mut blocks.links, Block(2), live, 0);
        }
        assert_eq!(choose(&mut candidates), Some(Block(2)));
        for block in [2, 1, 3] {
            candidates.remove(&mut blocks.links, Block(block));
        }
        assert_eq!(choose(&mut candidates), Some(Block(0)));
        candidates.insert(&mut blocks.links, Block(1), 0, 0);
        assert_eq!(choose(&mut candidates), Some(Block(1)));
    }

    #[test]
    fn round_robin_takes_one_block_after_the_other_that_is_worth_it() {
        let mut blocks = Blocks::new(5);
        let mut candidates = Candidates::new(Victim::RoundRobin, 5, 8);
        for (block, live) in [(0, 3), (1, 8), (3, 7), (4, 1)] {
            candidates.insert(&mut blocks.links, Block(block), live, 0);
        }
        let chosen = [0; 5].map(|_| candidates.choose(Victim::RoundRobin, 8, 0));
        assert_eq!(chosen, [0, 3, 4, 0, 3].map(|block| Some(Block(block))));
    }

    #[test]
    fn cost_benefit_chooses_as_if_it_had_compared_all_blocks() {
        let mut blocks = Blocks::new(64);
        let mut candidates = Candidates::new(Victim::CostBenefit, 64, 16);
        let mut known: [Option<(u32, u64)>; 64] = [None; 64];
        let mut state = 1_u64;
        for now in 1..5000 {
            state = state.wrapping_mul(0x5851_F42D_4C95_7F2D).wrapping_add(99);
            let block = (state >> 33) as usize % 64;
            let live = match known[block] {
                Some((live, _)) if live > 1 => live - 1,
                Some(_) => {
                    candidates.remove(&mut blocks.links, Block(block as u32));
                    known[block] = None;
                    continue;
                }
                None => 1 + (state >> 50) as u32 % 16,
            };
            candidates.page_died(&mut blocks.links, Block(block as u32), live, now);
            known[block] = Some((live, now));
            let benefit = |found: Option<(u32, u64)>| {
                found.filter(|(live, _)| *live < 15).map_or(-1.0, |(live, touched)| {
                    (now - touched + 1) as f64 * f64::from(16 - live) / f64::from(2 * live)
                })
            };
            let best = known.iter().copied().map(benefit).fold(-1.0, f64::max);
            let chosen = candidates.choose(Victim::CostBenefit, 15, now);
            assert_eq!(chosen.map_or(-1.0, |block| benefit(known[block.0 as usize])), best);
        }
    }
}
