//! What each block of the chip is used for, and how often it was erased.

use alloc::vec;
use alloc::vec::Vec;

use device::Block;

use super::tag::ERASES_MOST;

const ERASES: u32 = ERASES_MOST;
const BAD: u32 = 1 << 20;
const USED: u32 = 1 << 21;
const RELEASED: u32 = 1 << 22;
const BLANK: u32 = 1 << 23;
const REFUSED: u32 = 1 << 24;
const PINNED: u32 = 1 << 25;
const OLD: u32 = 1 << 26;
const OWN: u32 = 1 << 27;
const APART: u32 = 1 << 28;

/// A table of four bytes a block.
///
/// A block is bad, or free, or used. A free one is blank, or has to be erased before its first
/// page is programmed. A used one may be pinned, for a checkpoint needs it; released, if only the
/// last checkpoint needs it; refused, if it refused a program and is to be used no more; old, if
/// it was used when the tree last asked for a new generation; apart, if it holds pages that the
/// tree wrote apart from others; or the log's own, with the journal and the records of checkpoints.
#[derive(Clone, Debug)]
pub(super) struct Blocks {
    table: Vec<u32>,
    free: u32,
    bad: u32,
    released: u32,
    pinned: u32,
    /// Of the log's own, but for pinned ones.
    own: u32,
    /// Written apart by the tree, but for released and pinned ones.
    apart: u32,
    /// Where the search for a victim goes on.
    hand: u32,
    /// A free block that holds what no other does: it is taken only if there is no other.
    kept_for_last: Option<Block>,
}

impl Blocks {
    /// Bytes of memory for so many blocks.
    pub(super) const fn memory_bytes(blocks: u32) -> u64 {
        blocks as u64 * 4
    }

    /// A table of `blocks` blocks, all of them used.
    pub(super) fn new(blocks: u32) -> Self {
        Blocks {
            table: vec![USED; blocks as usize],
            free: 0,
            bad: 0,
            released: 0,
            pinned: 0,
            own: 0,
            apart: 0,
            hand: 0,
            kept_for_last: None,
        }
    }

    fn entry(&self, block: Block) -> u32 {
        self.table.get(block.0 as usize).copied().unwrap_or(BAD)
    }

    fn change(&mut self, block: Block, change: impl FnOnce(u32) -> u32) {
        let Some(entry) = self.table.get_mut(block.0 as usize) else {
            return;
        };
        let (old, new) = (*entry, change(*entry));
        *entry = new;
        let is = |entry: u32, what: u32| entry & what != 0;
        let count = |counter: &mut u32, was: bool, is: bool| {
            *counter = *counter + u32::from(is) - u32::from(was);
        };
        count(&mut self.free, !is(old, USED | BAD), !is(new, USED | BAD));
        count(&mut self.bad, is(old, BAD), is(new, BAD));
        count(&mut self.released, is(old, RELEASED), is(new, RELEASED));
        count(&mut self.pinned, is(old, PINNED), is(new, PINNED));
        let is_own = |entry: u32| entry & (OWN | PINNED) == OWN;
        count(&mut self.own, is_own(old), is_own(new));
        let is_apart = |entry: u32| entry & (APART | RELEASED | PINNED) == APART;
        count(&mut self.apart, is_apart(old), is_apart(new));
    }

    pub(super) fn erases(&self, block: Block) -> u32 {
        self.entry(block) & ERASES
    }

    /// Erases of the least worn block that is not bad, of the most worn one, and of all.
    pub(super) fn erase_spread(&self) -> (u32, u32, u64) {
        let good = self.table.iter().filter(|entry| **entry & BAD == 0).map(|entry| entry & ERASES);
        let (mut least, mut most, mut all) = (u32::MAX, 0, 0);
        for erases in good {
            least = least.min(erases);
            most = most.max(erases);
            all += u64::from(erases);
        }
        (least.min(most), most, all)
    }

    pub(super) fn set_erases(&mut self, block: Block, erases: u32) {
        self.change(block, |entry| entry & !ERASES | erases.min(ERASES));
    }

    pub(super) fn set_bad(&mut self, block: Block) {
        self.change(block, |entry| entry & ERASES | BAD);
    }

    /// The block holds pages that may be needed.
    pub(super) fn set_used(&mut self, block: Block) {
        self.change(block, |entry| entry & ERASES | USED);
    }

    /// Nothing in the block is needed, but it was not erased.
    pub(super) fn set_free(&mut self, block: Block) {
        self.change(block, |entry| entry & ERASES);
    }

    /// Blocks in use that are the log's own, and not pinned.
    pub(super) const fn own(&self) -> u32 {
        self.own
    }

    /// The block was erased.
    pub(super) fn set_erased(&mut self, block: Block) {
        self.change(block, |entry| ((entry & ERASES) + 1).min(ERASES) | BLANK);
    }

    /// The block, which is used, holds pages of the log's own.
    pub(super) fn set_own(&mut self, block: Block) {
        self.change(block, |entry| entry | OWN);
    }

    pub(super) fn is_own(&self, block: Block) -> bool {
        self.entry(block) & OWN != 0
    }

    /// Releases every block of the log's own but `present`.
    pub(super) fn release_own(&mut self, present: Option<Block>) {
        for block in (0..self.count()).map(Block) {
            if self.is_own(block) && Some(block) != present {
                self.set_released(block);
            }
        }
    }

    /// The block, which is used, holds pages that the tree writes apart.
    pub(super) fn set_apart(&mut self, block: Block) {
        self.change(block, |entry| entry | APART);
    }

    pub(super) fn is_apart(&self, block: Block) -> bool {
        self.entry(block) & APART != 0
    }

    /// Blocks that hold pages that the tree wrote apart, and are neither released nor kept.
    pub(super) const fn apart(&self) -> u32 {
        self.apart
    }

    pub(super) fn set_refused(&mut self, block: Block) {
        self.change(block, |entry| entry | REFUSED);
    }

    pub(super) fn set_released(&mut self, block: Block) {
        self.change(block, |entry| if entry & USED != 0 { entry | RELEASED } else { entry });
    }

    pub(super) fn set_pinned(&mut self, block: Block) {
        self.change(block, |entry| entry | PINNED);
    }

    /// What is pinned is what the tree is made of now.
    pub(super) fn take_back_pinned(&mut self) {
        for block in (0..self.count()).map(Block) {
            if self.entry(block) & PINNED != 0 {
                self.change(block, |entry| entry & !RELEASED);
            }
        }
    }

    /// Releases every block of the tree that is not pinned.
    pub(super) fn release_unpinned(&mut self) {
        for block in (0..self.count()).map(Block) {
            if self.is_of_tree(block) && !self.is_pinned(block) {
                self.set_released(block);
            }
        }
    }

    pub(super) fn unpin_all(&mut self) {
        for block in (0..self.count()).map(Block) {
            self.change(block, |entry| entry & !PINNED);
        }
    }

    /// Every used block of the tree is old from now on.
    pub(super) fn set_all_old(&mut self) {
        let of_tree = |entry: &&mut u32| **entry & (USED | OWN) == USED;
        self.table.iter_mut().filter(of_tree).for_each(|entry| *entry |= OLD);
    }

    pub(super) fn set_old(&mut self, block: Block, is_old: bool) {
        let old = if is_old && self.is_of_tree(block) { OLD } else { 0 };
        self.change(block, |entry| entry & !OLD | old);
    }

    pub(super) fn is_bad(&self, block: Block) -> bool {
        self.entry(block) & BAD != 0
    }

    pub(super) fn is_blank(&self, block: Block) -> bool {
        self.entry(block) & BLANK != 0
    }

    pub(super) fn is_refused(&self, block: Block) -> bool {
        self.entry(block) & REFUSED != 0
    }

    pub(super) fn is_pinned(&self, block: Block) -> bool {
        self.entry(block) & PINNED != 0
    }

    pub(super) fn is_old(&self, block: Block) -> bool {
        self.entry(block) & OLD != 0
    }

    pub(super) fn is_free(&self, block: Block) -> bool {
        self.entry(block) & (USED | BAD) == 0
    }

    pub(super) fn is_of_tree(&self, block: Block) -> bool {
        self.entry(block) & (USED | OWN) == USED
    }

    pub(super) fn count(&self) -> u32 {
        self.table.len() as u32
    }

    pub(super) fn free(&self) -> u32 {
        self.free
    }

    pub(super) fn good(&self) -> u32 {
        self.count() - self.bad
    }

    pub(super) fn bad(&self) -> u32 {
        self.bad
    }

    pub(super) fn released(&self) -> u32 {
        self.released
    }

    pub(super) fn pinned(&self) -> u32 {
        self.pinned
    }

    /// Blocks that are pinned, and that nothing else needs.
    pub(super) fn only_kept(&self) -> u32 {
        let is_only_kept = |entry: &&u32| **entry & (RELEASED | PINNED) == RELEASED | PINNED;
        self.table.iter().filter(is_only_kept).count() as u32
    }

    /// The free block that was erased least often: so wear is spread. The one that is kept for last
    /// comes behind all others.
    pub(super) fn least_worn_free(&self) -> Option<Block> {
        let free = (0..self.count()).map(Block).filter(|block| self.is_free(*block));
        free.min_by_key(|block| (Some(*block) == self.kept_for_last, self.erases(*block)))
    }

    /// From now on `block` is taken only if no other is free; `None` lets all be taken alike.
    pub(super) fn keep_for_last(&mut self, block: Option<Block>) {
        self.kept_for_last = block;
    }

    /// The next used block, in the order of their numbers, that is neither pinned nor released,
    /// nor the log's own, nor refused by `is_excluded`; one that refused a program comes first.
    pub(super) fn victim(&mut self, is_excluded: impl Fn(Block) -> bool) -> Option<Block> {
        let candidates = || {
            let blocks = (self.hand..self.count()).chain(0..self.hand).map(Block);
            blocks.filter(|block| self.may_be_victim(*block) && !is_excluded(*block))
        };
        let refused = candidates().find(|block| self.is_refused(*block));
        let found = refused.or_else(|| candidates().next())?;
        if refused.is_none() {
            self.hand = (found.0 + 1) % self.count().max(1);
        }
        Some(found)
    }

    /// True if `block` is in use by the tree, and not kept.
    pub(super) fn may_be_victim(&self, block: Block) -> bool {
        self.entry(block) & (USED | PINNED | RELEASED | OWN) == USED
    }

    /// True if nothing needs what `block` holds, be it erased or not.
    pub(super) fn is_stale(&self, block: Block) -> bool {
        let entry = self.entry(block);
        entry & (RELEASED | PINNED) == RELEASED || entry & (USED | BAD) == 0
    }

    /// The first released block from `from` on that is not pinned.
    pub(super) fn next_released(&self, from: u32) -> Option<Block> {
        let is_released = |entry: u32| entry & (RELEASED | PINNED) == RELEASED;
        (from..self.count()).map(Block).find(|block| is_released(self.entry(*block)))
    }
}

#[cfg(test)]
mod tests {
    use device::Block;

    use super::Blocks;

    #[test]
    fn blocks_are_counted_by_what_they_are_used_for() {
        let mut blocks = Blocks::new(4);
        assert_eq!((blocks.free(), blocks.good(), blocks.released()), (0, 4, 0));
        blocks.set_bad(Block(0));
        blocks.set_free(Block(1));
        blocks.set_released(Block(2));
        blocks.set_released(Block(1));
        assert_eq!((blocks.free(), blocks.good(), blocks.released()), (1, 3, 1));
        blocks.set_erased(Block(2));
        assert_eq!((blocks.free(), blocks.released(), blocks.erases(Block(2))), (2, 0, 1));
        assert_eq!(blocks.least_worn_free(), Some(Block(1)));
        for block in [Block(1), Block(2), Block(3)] {
            blocks.set_used(block);
            blocks.set_apart(block);
        }
        blocks.set_pinned(Block(1));
        blocks.set_released(Block(2));
        assert_eq!(blocks.apart(), 1);
        blocks.unpin_all();
        blocks.set_erased(Block(3));
        assert_eq!(blocks.apart(), 1);
    }

    #[test]
    fn victims_go_round_and_leave_out_what_is_kept() {
        let mut blocks = Blocks::new(5);
        blocks.set_pinned(Block(1));
        blocks.set_bad(Block(3));
        let mut next = || blocks.victim(|block| block == Block(4)).map(|block| block.0);
        assert_eq!([next(), next(), next()], [Some(0), Some(2), Some(0)]);
        blocks.set_refused(Block(2));
        blocks.set_refused(Block(4));
        assert_eq!(blocks.victim(|_| false), Some(Block(2)));
        assert_eq!(blocks.victim(|block| block == Block(2)), Some(Block(4)));
    }
}
