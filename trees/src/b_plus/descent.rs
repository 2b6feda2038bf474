//! The way from the root to a leaf.

use device::Cause;
use store::node;
use store::{Error, LogicalPage};

use super::BPlus;
use index::Result;

/// The most nodes on a way: with two children a node, more than 32 bits of pages could fill.
pub(super) const HEIGHT_MOST: usize = 32;

/// One node on the way.
#[derive(Clone, Copy, Debug)]
pub(super) struct Step {
    /// The node.
    pub(super) page: LogicalPage,
    /// In an inner node, the place of the child that the way goes on with.
    pub(super) place: usize,
}

/// The nodes on the way to a leaf, by level.
#[derive(Debug)]
pub(super) struct Path {
    steps: [Step; HEIGHT_MOST],
    rightmost: bool,
}

impl Path {
    pub(super) fn new() -> Self {
        Path { steps: [Step { page: LogicalPage(0), place: 0 }; HEIGHT_MOST], rightmost: false }
    }

    /// The step at `level`.
    pub(super) fn at(&self, level: u8) -> Step {
        self.steps[usize::from(level) % HEIGHT_MOST]
    }

    pub(super) fn set(&mut self, level: u8, page: LogicalPage, place: usize) {
        self.steps[usize::from(level) % HEIGHT_MOST] = Step { page, place };
    }

    /// True if the way went to the last child in every node.
    pub(super) fn is_rightmost(&self) -> bool {
        self.rightmost
    }
}

/// Where a descent turns to.
#[derive(Clone, Copy, Debug)]
pub(super) enum Toward<'k> {
    /// The leaf where this key is or belongs.
    Key(&'k [u8]),
    /// The first leaf.
    First,
    /// The last leaf.
    Last,
}

impl BPlus<'_> {
    /// Goes down to the leaf where `key` is or belongs, and keeps the way.
    #[inline]
    pub(super) fn descend(&mut self, key: &[u8], cause: Cause) -> Result<LogicalPage> {
        self.descend_toward(Toward::Key(key), cause)
    }

    pub(super) fn descend_toward(
        &mut self,
        toward: Toward<'_>,
        cause: Cause,
    ) -> Result<LogicalPage> {
        self.path.rightmost = true;
        let top = self.height.saturating_sub(1);
        self.descend_from(top, self.root, toward, cause)
    }

    /// Goes on down from the node `page` at `level`.
    pub(super) fn descend_from(
        &mut self,
        mut level: u8,
        mut page: LogicalPage,
        toward: Toward<'_>,
        cause: Cause,
    ) -> Result<LogicalPage> {
        loop {
            let node = self.file.page(page, cause, &self.nodes)?;
            if node::level(node) != level {
                return Err(Error::DamagedPage { page, what: "it is at another level" }.into());
            }
            if level == 0 {
                self.path.set(0, page, 0);
                return Ok(page);
            }
            let Some(last) = node::count(node).checked_sub(1) else {
                return Err(Error::DamagedPage { page, what: "it has no children" }.into());
            };
            let place = match toward {
                Toward::First => 0,
                Toward::Last => last,
                Toward::Key(key) => self
                    .nodes
                    .inner
                    .search(node, key)
                    .unwrap_or_else(|place| place.saturating_sub(1)),
            };
            let child = self.nodes.child(node, place);
            self.path.rightmost &= place == last;
            self.path.set(level, page, place);
            page = child;
            level -= 1;
        }
    }
}
