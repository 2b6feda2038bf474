//! Nodes that are pages of a page file, rewritten in place.

use alloc::vec;
use alloc::vec::Vec;
use core::marker::PhantomData;

use device::Cause;
use index::{OverflowValue, Result};
use store::node::{self, Shift};
use store::runs::FileSpace;
use store::{LogicalPage, PageFile};

use super::{At, Codecs, Edit, Node, NodeSource, NodeStore};

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
        self.codecs.at(at.level).split_off(node, place, fresh, &mut self.scratch);
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
