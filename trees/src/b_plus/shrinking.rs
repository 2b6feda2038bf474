//! Borrowing and merging after deletes.

use device::Cause;
use store::node::{self, Shift, Stored};
use store::{Error, LogicalPage};

use super::BPlus;
use index::Result;

/// Two neighbours below one parent.
#[derive(Clone, Copy, Debug)]
struct Neighbours {
    level: u8,
    parent: LogicalPage,
    left: LogicalPage,
    right: LogicalPage,
    /// The place of the right one in the parent.
    right_place: usize,
}

impl BPlus<'_> {
    /// Fills up the node at `level` of the present way, which is less than half full: merges it
    /// with a neighbour, or takes entries from it.
    pub(super) fn rebalance(&mut self, level: u8) -> Result<()> {
        if level + 1 >= self.height {
            return self.lower_root();
        }
        let Some(pair) = self.neighbours(level)? else {
            return Ok(());
        };
        let codec = *self.nodes.at(level);
        let pages = (pair.left, pair.right);
        let (left, right) = self.file.two_pages_mut(pages, Cause::Update, &self.nodes)?;
        for (page, node) in [(pair.left, &*left), (pair.right, &*right)] {
            if node::level(node) != level {
                return Err(Error::DamagedPage { page, what: "it is at another level" }.into());
            }
        }
        if let Some(last) = node::count(left).checked_sub(1)
            && node::count(right) > 0
        {
            codec.key(left, last).copy_to(&mut self.separator);
            if codec.key(right, 0).compare(&self.separator).is_le() {
                let what = "its keys are not above those of its left neighbour";
                return Err(Error::DamagedPage { page: pair.right, what }.into());
            }
        }
        if codec.joint_bytes(left, right) <= codec.node_bytes() {
            codec.join(left, right, &mut self.scratch);
            return self.drop_right(pair);
        }
        match codec.shift(left, right) {
            Some(shift) => self.borrow(pair, shift),
            None => Ok(()),
        }
    }

    /// The node at `level` of the present way with its left neighbour, or else its right one.
    fn neighbours(&mut self, level: u8) -> Result<Option<Neighbours>> {
        let parent = self.path.at(level + 1);
        let node = self.file.page(parent.page, Cause::Update, &self.nodes)?;
        let right_place = parent.place.max(1);
        if right_place >= node::count(node) {
            return Ok(None);
        }
        let left = self.nodes.child(node, right_place - 1);
        let right = self.nodes.child(node, right_place);
        Ok(Some(Neighbours { level, parent: parent.page, left, right, right_place }))
    }

    /// Takes the emptied right neighbour out of its parent and gives it back.
    fn drop_right(&mut self, pair: Neighbours) -> Result<()> {
        let parent = self.file.page_mut(pair.parent, Cause::Update, &self.nodes)?;
        self.nodes.inner.remove(parent, pair.right_place);
        let underfull = self.nodes.inner.is_underfull(parent);
        let is_root = pair.level + 2 == self.height;
        self.file.free(pair.right, Cause::Update)?;
        if underfull || is_root {
            self.rebalance(pair.level + 1)?;
        }
        Ok(())
    }

    /// Moves entries between two neighbours, if the parent has room for the new separator.
    fn borrow(&mut self, pair: Neighbours, shift: Shift) -> Result<()> {
        let codec = *self.nodes.at(pair.level);
        let pages = (pair.left, pair.right);
        let (left, right) = self.file.two_pages_mut(pages, Cause::Update, &self.nodes)?;
        let (before, first) = match shift {
            Shift::Right(place) => (codec.key(left, place - 1), codec.key(left, place)),
            Shift::Left(moved) => (codec.key(right, moved - 1), codec.key(right, moved)),
        };
        first.copy_to(&mut self.separator);
        if pair.level == 0 {
            self.nodes.shorten(&before, &mut self.separator);
        }
        if !self.rename(pair)? {
            return Ok(());
        }
        let (left, right) = self.file.two_pages_mut(pages, Cause::Update, &self.nodes)?;
        codec.apply_shift(left, right, shift, &mut self.scratch);
        Ok(())
    }

    /// Makes `self.separator` the key of the right neighbour in its parent; false, and nothing
    /// changed, if there is no room for it.
    fn rename(&mut self, pair: Neighbours) -> Result<bool> {
        let codec = self.nodes.inner;
        let child = pair.right.0.to_le_bytes();
        let child = Stored::inline(&child);
        let parent = self.file.page_mut(pair.parent, Cause::Update, &self.nodes)?;
        let old = &mut self.previous;
        codec.key(parent, pair.right_place).copy_to(old);
        codec.remove(parent, pair.right_place);
        let scratch = &mut self.scratch;
        if codec.insert(parent, pair.right_place, &self.separator, child, scratch) {
            return Ok(true);
        }
        let restored = codec.insert(parent, pair.right_place, old, child, scratch);
        debug_assert!(restored, "what was taken away fits again");
        Ok(false)
    }

    /// Makes the root's only child the root, as long as it has only one.
    fn lower_root(&mut self) -> Result<()> {
        while self.height > 1 {
            let node = self.file.page(self.root, Cause::Update, &self.nodes)?;
            match node::count(node) {
                0 => {
                    let what = "it has no children";
                    return Err(Error::DamagedPage { page: self.root, what }.into());
                }
                1 => {}
                _ => break,
            }
            let child = self.nodes.child(node, 0);
            self.file.free(self.root, Cause::Update)?;
            self.root = child;
            self.height -= 1;
        }
        Ok(())
    }
}
