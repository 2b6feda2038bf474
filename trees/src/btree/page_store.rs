//! Nodes that are pages of a page file, rewritten in place.

use alloc::vec;
use alloc::vec::Vec;
use core::fmt::Display;
use core::marker::PhantomData;

use device::Cause;
use index::{Error, OverflowValue, Result};
use store::node::{self, Shift};
use store::runs::FileSpace;
use store::{LogicalPage, PageFile};

use super::check::{Inspector, Rules, check};
use super::{At, BTree, Codecs, Edit, Extent, Node, NodeSource, NodeStore, Puts};

/// Who is told what is wrong.
type Told<'t> = &'t mut dyn FnMut(&dyn Display);

/// What has a page file of nodes: it may be the front of something else.
pub(crate) trait Pages<'d> {
    fn pages(&self) -> &PageFile<'d>;
    fn pages_mut(&mut self) -> &mut PageFile<'d>;
}

impl<'d> Pages<'d> for PageFile<'d> {
    #[inline]
    fn pages(&self) -> &PageFile<'d> {
        self
    }

    #[inline]
    fn pages_mut(&mut self) -> &mut PageFile<'d> {
        self
    }
}

impl<'d> Pages<'d> for FileSpace<'d> {
    #[inline]
    fn pages(&self) -> &PageFile<'d> {
        self.file()
    }

    #[inline]
    fn pages_mut(&mut self) -> &mut PageFile<'d> {
        self.file_mut()
    }
}

/// A page file of nodes.
pub(crate) struct PageStore<'d, F = PageFile<'d>> {
    pub(crate) file: F,
    pub(crate) codecs: Codecs,
    /// As long as a node.
    pub(crate) scratch: Vec<u8>,
    _device: PhantomData<&'d ()>,
}

impl<'d, F: Pages<'d>> PageStore<'d, F> {
    pub(crate) fn new(file: F, codecs: Codecs) -> Self {
        let scratch = vec![0; file.pages().page_bytes() as usize];
        PageStore { file, codecs, scratch, _device: PhantomData }
    }
}

impl PageStore<'_> {
    /// Refuses what needs more pages than are free.
    pub(crate) fn check_free(&self, pages: u64) -> Result<()> {
        match pages <= u64::from(self.file.pages_free()) {
            true => Ok(()),
            false => Err(self.full()),
        }
    }

    pub(crate) fn full(&self) -> Error {
        store::Error::Full { pages: u64::from(self.file.pages_most()) }.into()
    }

    /// Pages that these puts may need in the worst case.
    pub(crate) fn pages_needed(&self, puts: &Puts, btree: &BTree<LogicalPage>) -> u64 {
        let extent = Extent {
            nodes: self.file.pages_used().0.into(),
            height: btree.height(),
            entries: btree.entries,
        };
        self.codecs.nodes_needed(puts, extent)
    }

    /// Verifies the nodes of `btree`, with `inspector` beside, then that they and those that
    /// `others` counts are all pages in use, and the page file.
    pub(crate) fn check<I: Inspector<Self>>(
        &mut self,
        btree: &BTree<LogicalPage>,
        (inspector, others): (&mut I, impl FnOnce(&mut Self, &I, Told<'_>) -> Result<u64>),
        finding: Told<'_>,
    ) -> Result<()> {
        let mut lowest = Vec::new();
        self.codecs.lowest(&mut lowest);
        let rules = Rules {
            has_exact_separators: true,
            is_half_full: !self.codecs.is_variable(),
            has_branching_root: true,
        };
        let root = btree.root;
        let counted = check((&mut *self, root), &lowest, rules, inspector, &mut *finding)?;
        let pages = counted.nodes + others(&mut *self, inspector, &mut *finding)?;
        let own = self.file.pages_used().0.saturating_sub(self.file.record_pages());
        if pages != u64::from(own) {
            finding(&format_args!("{own} pages are in use, but the tree has {pages}"));
        }
        counted.compare_entries(btree.entries, finding);
        match self.file.check_pages(finding) {
            Ok(()) => Ok(()),
            Err(error) => Error::Store(error).report_damage(finding),
        }
    }
}

impl<'d, F: Pages<'d>> NodeSource for PageStore<'d, F> {
    type Id = LogicalPage;

    #[inline]
    fn node(&mut self, at: At<LogicalPage>, cause: Cause) -> Result<Node<'_>> {
        let bytes = self.file.pages_mut().page(at.id, cause, &self.codecs)?;
        if node::level(bytes) != at.level {
            let what = "it is at another level";
            return Err(store::Error::DamagedPage { page: at.id, what }.into());
        }
        Ok(Node { codec: *self.codecs.at(at.level), bytes })
    }

    fn nodes_most(&self) -> u64 {
        u64::from(self.file.pages().pages_used().1)
    }

    fn read_long(&mut self, value: OverflowValue, offset: u32, into: &mut [u8]) -> Result<()> {
        Ok(self.file.pages_mut().read_long(value, offset, into, Cause::Lookup)?)
    }
}

impl<'d, F: Pages<'d>> NodeStore for PageStore<'d, F> {
    #[inline]
    fn edit(&mut self, at: At<LogicalPage>, edit: Edit<'_>, cause: Cause) -> Result<bool> {
        let node = self.file.pages_mut().page_mut(at.id, cause, &self.codecs)?;
        Ok(edit.apply(self.codecs.at(at.level), node, &mut self.scratch))
    }

    fn create(&mut self, level: u8, cause: Cause) -> Result<LogicalPage> {
        let page = self.file.pages_mut().allocate(cause)?;
        self.codecs.at(level).initialise(self.file.pages_mut().fresh(page)?, level);
        Ok(page)
    }

    fn free(&mut self, at: At<LogicalPage>, cause: Cause) -> Result<()> {
        Ok(self.file.pages_mut().free(at.id, cause)?)
    }

    fn pair(
        &mut self,
        left: At<LogicalPage>,
        right: LogicalPage,
        cause: Cause,
    ) -> Result<(Node<'_>, Node<'_>)> {
        let codec = *self.codecs.at(left.level);
        let (one, other) =
            self.file.pages_mut().two_pages_mut((left.id, right), cause, &self.codecs)?;
        for (page, node) in [(left.id, &*one), (right, &*other)] {
            if node::level(node) != left.level {
                let what = "it is at another level";
                return Err(store::Error::DamagedPage { page, what }.into());
            }
        }
        Ok((Node { codec, bytes: one }, Node { codec, bytes: other }))
    }

    fn split(&mut self, at: At<LogicalPage>, place: usize, cause: Cause) -> Result<LogicalPage> {
        let right = self.create(at.level, cause)?;
        let (node, fresh) =
            self.file.pages_mut().two_pages_mut((at.id, right), cause, &self.codecs)?;
        let codec = self.codecs.at(at.level);
        // Making a page may have let go of this one, and a disk that lies gives another back.
        if node::level(node) != at.level || node::count(node) <= place {
            let what = "it is not the one that was to be split";
            return Err(store::Error::DamagedPage { page: at.id, what }.into());
        }
        codec.split_off(node, place, fresh, &mut self.scratch);
        Ok(right)
    }

    fn join(&mut self, left: At<LogicalPage>, right: LogicalPage, cause: Cause) -> Result<()> {
        let (one, other) =
            self.file.pages_mut().two_pages_mut((left.id, right), cause, &self.codecs)?;
        self.codecs.at(left.level).join(one, other, &mut self.scratch);
        Ok(())
    }

    fn shift(
        &mut self,
        left: At<LogicalPage>,
        right: LogicalPage,
        shift: Shift,
        cause: Cause,
    ) -> Result<()> {
        let (one, other) =
            self.file.pages_mut().two_pages_mut((left.id, right), cause, &self.codecs)?;
        self.codecs.at(left.level).apply_shift(one, other, shift, &mut self.scratch);
        Ok(())
    }
}
