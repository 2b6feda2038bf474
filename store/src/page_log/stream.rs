//! Where pages go: blocks that are being filled, one after the other.

use alloc::collections::VecDeque;

use device::{Block, Geometry, Page};

/// Whose pages a stream takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum StreamOf {
    Tree,
    /// Pages of the tree that go to blocks apart from the others.
    Apart,
    /// The journal, and records of checkpoints.
    Own,
}

/// Blocks that are being filled, one after the other.
#[derive(Clone, Debug)]
pub(super) struct Stream {
    pub(super) of: StreamOf,
    pub(super) ahead: VecDeque<Block>,
    /// The next page of the first of them.
    pub(super) place: u32,
}

impl Stream {
    pub(super) const fn new(of: StreamOf) -> Self {
        Stream { of, ahead: VecDeque::new(), place: 0 }
    }

    /// The next page is in a block that was not begun yet.
    pub(super) fn end(&mut self) {
        self.ahead.clear();
        self.place = 0;
    }

    pub(super) fn holds(&self, block: Block) -> bool {
        self.ahead.contains(&block)
    }

    /// The block that the next page is in, if that is known.
    pub(super) fn present(&self) -> Option<Block> {
        self.ahead.front().copied()
    }

    /// Pages that can be programmed without a further block.
    pub(super) fn room(&self, chip: Geometry) -> u32 {
        self.ahead.len() as u32 * chip.pages_per_block() - self.place
    }

    pub(super) fn next(&self, chip: Geometry) -> Option<Page> {
        self.present().map(|block| Page(chip.first_page(block).0 + self.place))
    }

    /// The next page is in another block, unless so many have room in this one.
    pub(super) fn leave_unless(&mut self, pages: usize, chip: Geometry) {
        let left = chip.pages_per_block() - self.place;
        if self.place > 0 && (left as usize) < pages {
            self.leave_block();
        }
    }

    pub(super) fn leave_block(&mut self) {
        self.ahead.pop_front();
        self.place = 0;
    }

    pub(super) fn step(&mut self, chip: Geometry) {
        self.place += 1;
        if self.place == chip.pages_per_block() {
            self.leave_block();
        }
    }
}
