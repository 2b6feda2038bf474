//! Nodes as pages of a page file.

use device::{Cause, Page};
use store::{LogicalPage, node};

use super::super::disk::Disk;
use super::super::layout::{NodeId, Place, damaged};
use super::Nodes;
use index::Result;

const OTHER_LEVEL: &str = "a node is at another level";

impl Nodes {
    /// The page of node `id`.
    #[inline]
    fn logical(&self, id: NodeId) -> Result<LogicalPage> {
        let place = self.place(id).ok_or(damaged(Page(0), "a node is named that does not exist"));
        place.map(|place| LogicalPage(place.0))
    }

    /// Node `id` in its page, whichever level it is at.
    pub(in super::super) fn page_any<'p>(
        &mut self,
        disk: &'p mut Disk<'_>,
        id: NodeId,
        cause: Cause,
    ) -> Result<&'p [u8]> {
        let page = self.logical(id)?;
        let is_read = !disk.file.is_cached(page);
        let node = disk.file.page(page, cause, &self.codecs)?;
        if is_read {
            self.reads.count(node::level(node), node.len(), cause == Cause::Lookup);
        }
        Ok(node)
    }

    pub(in super::super) fn page<'p>(
        &mut self,
        disk: &'p mut Disk<'_>,
        id: NodeId,
        level: u8,
        cause: Cause,
    ) -> Result<&'p [u8]> {
        let node = self.page_any(disk, id, cause)?;
        if node::level(node) != level {
            return Err(damaged(self.page_of(id), OTHER_LEVEL));
        }
        Ok(node)
    }

    pub(in super::super) fn page_mut<'p>(
        &mut self,
        disk: &'p mut Disk<'_>,
        id: NodeId,
        level: u8,
        cause: Cause,
    ) -> Result<&'p mut [u8]> {
        self.page(disk, id, level, cause)?;
        let page = self.logical(id)?;
        Ok(disk.file.page_mut(page, cause, &self.codecs)?)
    }

    /// The pages of two nodes at `level`.
    pub(in super::super) fn logical_pair(
        &mut self,
        disk: &mut Disk<'_>,
        pair: (NodeId, NodeId),
        level: u8,
        cause: Cause,
    ) -> Result<(LogicalPage, LogicalPage)> {
        self.page(disk, pair.0, level, cause)?;
        self.page(disk, pair.1, level, cause)?;
        Ok((self.logical(pair.0)?, self.logical(pair.1)?))
    }

    pub(in super::super) fn pages_of_pair<'p>(
        &mut self,
        disk: &'p mut Disk<'_>,
        pair: (NodeId, NodeId),
        level: u8,
        cause: Cause,
    ) -> Result<(&'p [u8], &'p [u8])> {
        let pages = self.logical_pair(disk, pair, level, cause)?;
        Ok(disk.file.two_pages(pages, cause, &self.codecs)?)
    }

    /// Makes an empty node at `level` in a page of its own.
    fn make_page(&mut self, disk: &mut Disk<'_>, level: u8) -> Result<LogicalPage> {
        let page = disk.file.allocate(Cause::Update)?;
        self.at(level).initialise(disk.file.fresh(page)?, level);
        disk.nodes += 1;
        Ok(page)
    }

    pub(in super::super) fn create_page(
        &mut self,
        disk: &mut Disk<'_>,
        is_buffered: bool,
        level: u8,
    ) -> Result<NodeId> {
        let page = self.make_page(disk, level)?;
        if !is_buffered {
            return Ok(NodeId(page.0));
        }
        let id = self.number(disk.file.pages_most(), true)?;
        self.stand_at(id.buffer().unwrap_or_default(), page)?;
        Ok(id)
    }

    /// Notes that the node with the buffer numbered `number` stands in `page`.
    fn stand_at(&mut self, number: u32, page: LogicalPage) -> Result<()> {
        self.buffered.changed(number);
        match self.buffered.numbers.move_to(NodeId(number), Place(page.0)) {
            true => Ok(()),
            false => Err(damaged(Page(page.0), "its number is no node's")),
        }
    }

    pub(in super::super) fn free_page(&mut self, disk: &mut Disk<'_>, id: NodeId) -> Result<()> {
        let page = self.logical(id)?;
        if let Some(number) = id.buffer() {
            self.buffered.changed(number);
            if !self.buffered.numbers.release(NodeId(number)) {
                return Err(damaged(Page(page.0), "its number is no node's"));
            }
        }
        disk.nodes = disk.nodes.saturating_sub(1);
        Ok(disk.file.free(page, Cause::Update)?)
    }

    /// As [`Nodes::slide_under`].
    pub(in super::super) fn slide_page_under(
        &mut self,
        disk: &mut Disk<'_>,
        old: NodeId,
        level: u8,
    ) -> Result<NodeId> {
        let page = self.logical(old)?;
        let number = old.buffer().ok_or(damaged(Page(page.0), "the root has no buffer"))?;
        let above = self.make_page(disk, level + 1)?;
        self.stand_at(number, above)?;
        Ok(NodeId(page.0))
    }

    /// As [`Nodes::take_over`].
    pub(in super::super) fn page_takes_over(
        &mut self,
        disk: &mut Disk<'_>,
        parent: NodeId,
        child: NodeId,
    ) -> Result<()> {
        let (old, page) = (self.logical(parent)?, self.logical(child)?);
        let number = parent.buffer().ok_or(damaged(Page(old.0), "the root has no buffer"))?;
        self.stand_at(number, page)?;
        disk.nodes = disk.nodes.saturating_sub(1);
        Ok(disk.file.free(old, Cause::Update)?)
    }
}
