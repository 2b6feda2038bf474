//! What goes where in an erase block, and when it is merged.
//!
//! ```text
//!   0                      nodes                   pages
//!   +------+------+- ... --+-----+-----+- ... -----+
//!   | node | node |        | log | log |           |
//!   +------+------+- ... --+-----+-----+- ... -----+
//! ```
//!
//! Invariant: pages of a kind are used from the lowest on; a log page is used by as many writes of
//! deltas as the chip lets it be programmed, and as fit.

use device::{Geometry, ProgramOrder};

/// How the blocks of a chip are divided.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct BlockShape {
    node_pages: u16,
    log_pages: u16,
    page_bytes: u32,
    /// Bytes of a page in front of its content.
    head_bytes: u32,
    programs_per_page: u16,
    ordered: bool,
}

/// Bytes of a sector: chips that take parts of a page take them by sectors, each with a code of
/// its own against flips.
const SECTOR_BYTES: u32 = 512;

/// Where parts of a page begin: at sectors, or anywhere where a page is not longer than one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Parts {
    sector_bytes: u32,
    head_bytes: u32,
}

impl Parts {
    /// The first byte of the content from `offset` on at which a part may begin.
    pub(super) const fn next(self, offset: u32) -> u32 {
        if offset == 0 {
            return 0;
        }
        (offset + self.head_bytes).next_multiple_of(self.sector_bytes) - self.head_bytes
    }
}

impl BlockShape {
    /// Blocks of `geometry` with `log_pages` log pages, or an equal number of both where that is
    /// `None` (section 5). `None` if a block would be left without pages of one kind, or with more
    /// log pages than a [`LogSet`] names.
    pub(super) fn new(geometry: &Geometry, log_pages: Option<u32>) -> Option<Self> {
        let pages = geometry.pages_per_block();
        let log_pages = log_pages.unwrap_or((pages / 2).min(LogSet::PAGES_MOST));
        let node_pages = pages.checked_sub(log_pages)?;
        if node_pages == 0 || log_pages == 0 || log_pages > LogSet::PAGES_MOST {
            return None;
        }
        Some(BlockShape {
            node_pages: u16::try_from(node_pages).ok()?,
            log_pages: u16::try_from(log_pages).ok()?,
            page_bytes: geometry.page_bytes(),
            head_bytes: 0,
            programs_per_page: geometry.programs_per_page(),
            ordered: geometry.order() == ProgramOrder::Ascending,
        })
    }

    /// The same where only `bytes` bytes of a page are content.
    pub(super) const fn with_content(mut self, bytes: u32) -> Self {
        self.head_bytes += self.page_bytes - bytes;
        self.page_bytes = bytes;
        self
    }

    /// Where parts of a log page begin.
    pub(super) const fn parts(&self) -> Parts {
        let long = self.head_bytes + self.page_bytes > SECTOR_BYTES;
        let sector_bytes = if long { SECTOR_BYTES } else { 1 };
        Parts { sector_bytes, head_bytes: self.head_bytes }
    }

    /// True if a page is programmed as a whole only.
    pub(super) const fn is_whole(&self) -> bool {
        self.programs_per_page == 1
    }

    /// True if the pages of a block are programmed in their order only.
    pub(super) const fn is_ordered(&self) -> bool {
        self.ordered
    }

    /// Node pages in a block.
    pub(super) const fn node_pages(&self) -> u16 {
        self.node_pages
    }

    /// Log pages in a block.
    pub(super) const fn log_pages(&self) -> u16 {
        self.log_pages
    }

    /// The place of log page `page` in its block.
    pub(super) const fn log_place(&self, page: u16) -> u16 {
        self.node_pages + page
    }
}

/// The log pages of a block that have deltas of a node, which the paper's in-memory table keeps for
/// each node.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct LogSet(u64);

impl LogSet {
    /// Log pages that a set can name.
    pub(super) const PAGES_MOST: u32 = u64::BITS;

    /// No log page.
    pub(super) const NONE: LogSet = LogSet(0);

    /// The set as a number, a bit a log page.
    pub(super) const fn bits(self) -> u64 {
        self.0
    }

    /// The set that [`LogSet::bits`] gave.
    pub(super) const fn from_bits(bits: u64) -> Self {
        LogSet(bits)
    }

    /// Adds a log page.
    pub(super) const fn add(&mut self, page: u16) {
        self.0 |= 1 << (page as u32 % Self::PAGES_MOST);
    }

    /// The log pages, the oldest first.
    pub(super) fn pages(self) -> impl Iterator<Item = u16> {
        (0..Self::PAGES_MOST as u16).filter(move |page| self.0 >> page & 1 == 1)
    }
}

/// Where deltas go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct LogPlace {
    /// The log page, from 0.
    pub(super) page: u16,
    /// The byte of it.
    pub(super) offset: u32,
}

/// How full a block is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct BlockState {
    /// Node pages in use.
    nodes: u16,
    /// Log pages that are full or are not to be written to any more.
    full_logs: u16,
    /// Bytes of the log page after these that are in use, and programs it had.
    log_bytes: u32,
    programs: u16,
}

impl BlockState {
    /// A block with so many node pages in use, and so many log pages that are not to be written to
    /// any more.
    pub(super) const fn of(nodes: u16, full_logs: u16) -> Self {
        BlockState { nodes, full_logs, log_bytes: 0, programs: 0 }
    }

    /// Node pages in use, and log pages that are not to be written to any more.
    pub(super) const fn counts(&self) -> (u16, u16) {
        (self.nodes, self.full_logs)
    }

    /// Nothing is to be written to the block any more.
    pub(super) const fn seal(&mut self, shape: &BlockShape) {
        *self = BlockState::of(shape.node_pages, shape.log_pages);
    }

    /// A log page that was begun is not to be written to any more: a later part of it, torn, could
    /// take earlier parts with it.
    pub(super) const fn close_log(&mut self) {
        if self.programs > 0 {
            *self = BlockState::of(self.nodes, self.full_logs + 1);
        }
    }

    /// True if a log page was written to.
    pub(super) const fn has_logs(&self) -> bool {
        self.full_logs > 0 || self.programs > 0
    }

    /// True if the block still has pages for nodes, and would have none any more as soon as a log
    /// page is written.
    pub(super) const fn is_closed_by_logs(&self, shape: &BlockShape) -> bool {
        shape.ordered && !self.has_logs() && self.nodes < shape.node_pages
    }

    /// Takes a page for a node that is born; `None` if the block has none, or the chip would not
    /// take it any more because a log page, which comes after it, was programmed.
    pub(super) fn take_node(&mut self, shape: &BlockShape) -> Option<u16> {
        let closed = shape.ordered && self.has_logs();
        if closed || self.nodes == shape.node_pages {
            return None;
        }
        self.nodes += 1;
        Some(self.nodes - 1)
    }

    /// Takes `bytes` bytes of a log page for deltas; `None` if the logs have no room for them: then
    /// the block is to be merged.
    pub(super) fn take_log(&mut self, shape: &BlockShape, bytes: u32) -> Option<LogPlace> {
        if bytes == 0 || bytes > shape.page_bytes {
            return None;
        }
        let offset = shape.parts().next(self.log_bytes);
        let fits = self.programs < shape.programs_per_page && offset + bytes <= shape.page_bytes;
        let full_logs = self.full_logs + u16::from(!fits);
        if full_logs >= shape.log_pages {
            return None;
        }
        if !fits {
            *self = BlockState { full_logs, log_bytes: 0, programs: 0, ..*self };
        }
        let offset = if fits { offset } else { 0 };
        let place = LogPlace { page: self.full_logs, offset };
        self.log_bytes = offset + bytes;
        self.programs += 1;
        Some(place)
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec::Vec;

    use device::{Geometry, ProgramOrder};

    use super::{BlockShape, BlockState, LogPlace, LogSet};

    fn chip(programs: u16, order: ProgramOrder) -> Geometry {
        Geometry::new(512, 32, 8192).unwrap().with_programs(programs).unwrap().with_order(order)
    }

    fn shape(programs: u16, order: ProgramOrder) -> BlockShape {
        BlockShape::new(&chip(programs, order), None).unwrap()
    }

    #[test]
    fn a_block_has_as_many_log_pages_as_node_pages_unless_told_otherwise() {
        let half = shape(1, ProgramOrder::Any);
        assert_eq!((half.node_pages(), half.log_pages(), half.log_place(0)), (16, 16, 16));
        let chip = chip(1, ProgramOrder::Any);
        assert_eq!(BlockShape::new(&chip, Some(4)).unwrap().node_pages(), 28);
        for wrong in [0, 32, 33, u32::MAX] {
            assert_eq!(BlockShape::new(&chip, Some(wrong)), None);
        }
        let large = Geometry::new(4096, 256, 64).unwrap();
        assert_eq!(BlockShape::new(&large, None).unwrap().log_pages(), 64);
    }

    #[test]
    fn without_partial_programs_every_write_of_deltas_takes_a_page() {
        let shape = shape(1, ProgramOrder::Any);
        let mut block = BlockState::default();
        for page in 0..16 {
            assert_eq!(block.take_log(&shape, 20), Some(LogPlace { page, offset: 0 }));
        }
        assert_eq!(block.take_log(&shape, 20), None, "the block is to be merged");
    }

    #[test]
    fn with_partial_programs_writes_share_a_page_while_they_fit_and_may_be_programmed() {
        let shape = shape(4, ProgramOrder::Any);
        let mut block = BlockState::default();
        let places: Vec<_> = [200, 200, 200, 10, 10, 10, 10]
            .into_iter()
            .map(|bytes| block.take_log(&shape, bytes).map(|place| (place.page, place.offset)))
            .collect();
        let expected = [(0, 0), (0, 200), (1, 0), (1, 200), (1, 210), (1, 220), (2, 0)].map(Some);
        assert_eq!(places, expected);
        assert_eq!(block.take_log(&shape, 513), None);
        assert_eq!(block.take_log(&shape, 0), None);
    }

    #[test]
    fn parts_of_a_long_page_begin_at_its_sectors() {
        let chip = Geometry::new(2048, 32, 64).unwrap().with_programs(4).unwrap();
        let places = |content| {
            let shape = BlockShape::new(&chip, None).unwrap().with_content(content);
            let mut block = BlockState::default();
            let mut place = |bytes| block.take_log(&shape, bytes);
            [300, 20, 490, 20, 20].map(|bytes| place(bytes).map(|at| (at.page, at.offset)))
        };
        let whole = [(0, 0), (0, 512), (0, 1024), (0, 1536), (1, 0)];
        assert_eq!(places(2048), whole.map(Some));
        // The tag of 16 bytes is in the first sector.
        let behind_a_tag = [(0, 0), (0, 496), (0, 1008), (0, 1520), (1, 0)];
        assert_eq!(places(2032), behind_a_tag.map(Some));
    }

    #[test]
    fn the_logs_hold_what_fits_them_and_never_more() {
        for (programs, bytes) in [(1, 512), (64, 12), (64, 100), (4, 100), (2, 512)] {
            let shape = shape(programs, ProgramOrder::Any);
            let mut block = BlockState::default();
            let mut writes = 0;
            while let Some(place) = block.take_log(&shape, bytes) {
                assert!(place.page < 16 && place.offset + bytes <= 512);
                writes += 1;
            }
            let a_page = (512 / bytes).min(u32::from(programs));
            assert_eq!(writes, 16 * a_page, "{programs} programs, {bytes} bytes");
        }
    }

    #[test]
    fn a_node_born_after_the_first_log_goes_to_another_block_where_programs_are_ordered() {
        for (order, closed) in [(ProgramOrder::Ascending, true), (ProgramOrder::Any, false)] {
            let shape = shape(1, order);
            let mut block = BlockState::default();
            assert_eq!(block.take_node(&shape), Some(0));
            assert_eq!(block.take_node(&shape), Some(1));
            assert!(!block.has_logs());
            block.take_log(&shape, 20).unwrap();
            assert!(block.has_logs());
            assert_eq!(block.take_node(&shape).is_none(), closed);
            assert_eq!(block.counts().0, if closed { 2 } else { 3 });
        }
    }

    #[test]
    fn a_block_takes_only_as_many_nodes_as_it_has_pages_for() {
        let shape = shape(1, ProgramOrder::Ascending);
        let mut block = BlockState::default();
        let taken = (0..40).filter_map(|_| block.take_node(&shape)).count();
        assert_eq!(taken, 16);
    }

    #[test]
    fn a_set_names_its_log_pages_in_order_and_once() {
        let mut set = LogSet::default();
        for page in [5, 0, 63, 5] {
            set.add(page);
        }
        assert_eq!(set.pages().collect::<Vec<_>>(), [0, 5, 63]);
    }
}
