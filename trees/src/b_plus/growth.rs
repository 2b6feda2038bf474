//! Splitting nodes, and a new root.

use device::Cause;
use store::node::{self, Stored};
use store::{Error, LogicalPage};

use super::BPlus;
use super::descent::HEIGHT_MOST;
use index::Result;

impl BPlus<'_> {
    /// Splits the node at `level` of the present way, or, where its parent has no room for one
    /// more child, a node above it. Returns the new right neighbour of the node, which
    /// `self.separator` separates from it; or `None` if room was made above only, and the way is
    /// to be walked again.
    ///
    /// Where entries arrive at the right edge of the tree (`append`), the node keeps most of them.
    pub(super) fn split(&mut self, level: u8, append: bool) -> Result<Option<LogicalPage>> {
        if level + 1 == self.height {
            self.grow()?;
        }
        let page = self.path.at(level).page;
        let parent = self.path.at(level + 1);
        let place = self.split_place(level, page, append)?;
        self.separate(level, page, place)?;

        let parent_node = self.file.page(parent.page, Cause::Update, &self.nodes)?;
        if !self.nodes.inner.has_room(parent_node, &self.separator, 4) {
            self.split(level + 1, append)?;
            return Ok(None);
        }
        let right = self.file.allocate(Cause::Update)?;
        let codec = *self.nodes.at(level);
        codec.initialise(self.file.fresh(right)?, level);
        let (node, fresh) = self.file.two_pages_mut((page, right), Cause::Update, &self.nodes)?;
        codec.split_off(node, place, fresh, &mut self.scratch);
        self.adopt(parent.page, parent.place + 1, right)?;
        Ok(Some(right))
    }

    /// Gives the root a parent.
    pub(super) fn grow(&mut self) -> Result<()> {
        if usize::from(self.height) >= HEIGHT_MOST {
            let what = "the tree is higher than its pages allow";
            return Err(Error::DamagedPage { page: self.root, what }.into());
        }
        let root = self.file.allocate(Cause::Update)?;
        self.nodes.inner.initialise(self.file.fresh(root)?, self.height);
        self.nodes.lowest(&mut self.separator);
        self.adopt(root, 0, self.root)?;
        self.path.set(self.height, root, 0);
        self.root = root;
        self.height += 1;
        Ok(())
    }

    fn split_place(&mut self, level: u8, page: LogicalPage, append: bool) -> Result<usize> {
        let fill_percent = usize::from(self.fill_percent);
        let node = self.file.page(page, Cause::Update, &self.nodes)?;
        let entries = node::count(node);
        if entries < 2 {
            return Err(Error::DamagedPage { page, what: "it is full with one entry" }.into());
        }
        if append {
            return Ok((entries * fill_percent).div_ceil(100).clamp(1, entries - 1));
        }
        Ok(self.nodes.at(level).middle(node))
    }

    /// Puts into `self.separator` what separates the entries before `place` from the others.
    fn separate(&mut self, level: u8, page: LogicalPage, place: usize) -> Result<()> {
        let node = self.file.page(page, Cause::Update, &self.nodes)?;
        let codec = self.nodes.at(level);
        codec.key(node, place).copy_to(&mut self.separator);
        if level == 0 {
            self.nodes.shorten(&codec.key(node, place - 1), &mut self.separator);
        }
        Ok(())
    }

    /// Makes `child`, from `self.separator` on, the child at `place` of `parent`, which has room.
    pub(super) fn adopt(
        &mut self,
        parent: LogicalPage,
        place: usize,
        child: LogicalPage,
    ) -> Result<()> {
        let node = self.file.page_mut(parent, Cause::Update, &self.nodes)?;
        if place > node::count(node) {
            // A damaged free list gave out a page that is in use.
            let what = "it was on the free list, and it is in use";
            return Err(Error::DamagedPage { page: parent, what }.into());
        }
        let child = child.0.to_le_bytes();
        let child = Stored::inline(&child);
        if !self.nodes.inner.insert(node, place, &self.separator, child, &mut self.scratch) {
            return Err(Error::DamagedPage { page: parent, what: "it has no room" }.into());
        }
        Ok(())
    }
}
