//! Blocks in the order in which they are chosen as victims.
//!
//! Those with requests stand in a heap, and each block knows its place there; so the next victim is
//! found without visiting every block.

use alloc::vec::Vec;
use core::cmp::Ordering;

use super::blocks::{Block, BlockId};

/// How victims are chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Policy {
    /// The group that was hit longest ago.
    Lru,
    /// The group that began first.
    Fifo,
    /// The group of most requests (section 4.2).
    BiggestSize,
    /// The group of the smallest gain for each request (section 4.3).
    CostBased,
}

impl Policy {
    pub(super) const NAMES: &'static [&'static str] =
        &["biggest-size", "cost-based", "lru", "fifo"];

    pub(super) fn from_name(name: &str) -> Self {
        match name {
            "biggest-size" => Policy::BiggestSize,
            "lru" => Policy::Lru,
            "fifo" => Policy::Fifo,
            _ => Policy::CostBased,
        }
    }

    /// Which of two blocks with requests comes first; their gains may only be bounded. Ties go to
    /// the one that was hit longest ago.
    pub(super) fn compare(self, one: &Block, other: &Block) -> Ordering {
        let by_worth = match self {
            Policy::Lru | Policy::Fifo => Ordering::Equal,
            Policy::BiggestSize => other.count.cmp(&one.count),
            Policy::CostBased => {
                // H(g) = gain(g) / requests.
                let times =
                    |gain: &Block, size: &Block| u32::from(gain.gain()) * u32::from(size.count);
                times(one, other).cmp(&times(other, one))
            }
        };
        by_worth.then(one.hit.cmp(&other.hit))
    }
}

/// The blocks that have requests.
#[derive(Debug)]
pub(super) struct Order {
    policy: Policy,
    heap: Vec<BlockId>,
}

impl Order {
    /// Bytes for each block that there may be.
    pub(super) const BYTES_PER_BLOCK: usize = size_of::<BlockId>();

    pub(super) fn new(policy: Policy, blocks: usize) -> Self {
        Order { policy, heap: Vec::with_capacity(blocks) }
    }

    pub(super) fn clear(&mut self) {
        self.heap.clear();
    }

    /// The block that comes first.
    pub(super) fn first(&self) -> Option<BlockId> {
        self.heap.first().copied()
    }

    /// The group that comes first. Below a group in the heap none comes before it.
    pub(super) fn first_group(&self, blocks: &[Block]) -> Option<BlockId> {
        self.first_group_below(blocks, 0).map(|at| self.heap[at])
    }

    fn first_group_below(&self, blocks: &[Block], at: usize) -> Option<usize> {
        let id = self.heap.get(at)?;
        if blocks[id.place()].is_group() {
            return Some(at);
        }
        let [left, right] = [2 * at + 1, 2 * at + 2].map(|it| self.first_group_below(blocks, it));
        match (left, right) {
            (Some(one), Some(other)) if self.is_before(blocks, other, one) => right,
            _ => left.or(right),
        }
    }

    fn is_before(&self, blocks: &[Block], one: usize, other: usize) -> bool {
        let (one, other) = (self.heap[one], self.heap[other]);
        let by_policy = self.policy.compare(&blocks[one.place()], &blocks[other.place()]);
        by_policy.then(one.0.cmp(&other.0)).is_lt()
    }

    fn swap(&mut self, blocks: &mut [Block], one: usize, other: usize) {
        self.heap.swap(one, other);
        for at in [one, other] {
            blocks[self.heap[at].place()].place = at as u16;
        }
    }

    /// Puts a block, which is not there, in its place.
    pub(super) fn link(&mut self, blocks: &mut [Block], id: BlockId) {
        blocks[id.place()].place = self.heap.len() as u16;
        self.heap.push(id);
        self.settle(blocks, id);
    }

    /// Takes a block out.
    pub(super) fn unlink(&mut self, blocks: &mut [Block], id: BlockId) {
        let at = usize::from(blocks[id.place()].place);
        let Some(last) = self.heap.pop().filter(|last| *last != id) else {
            return;
        };
        if let Some(gap) = self.heap.get_mut(at) {
            *gap = last;
            blocks[last.place()].place = at as u16;
            self.settle(blocks, last);
        }
    }

    /// Moves a block to where it belongs, after it changed.
    pub(super) fn settle(&mut self, blocks: &mut [Block], id: BlockId) {
        let mut at = usize::from(blocks[id.place()].place);
        while at > 0 && self.is_before(blocks, at, (at - 1) / 2) {
            self.swap(blocks, at, (at - 1) / 2);
            at = (at - 1) / 2;
        }
        loop {
            let [left, right] = [2 * at + 1, 2 * at + 2];
            if left >= self.heap.len() {
                return;
            }
            let has_right = right < self.heap.len();
            let child = if has_right && self.is_before(blocks, right, left) { right } else { left };
            if !self.is_before(blocks, child, at) {
                return;
            }
            self.swap(blocks, at, child);
            at = child;
        }
    }
}
