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
    programs_per_page: u16,
    ordered: bool,
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
            programs_per_page: geometry.programs_per_page(),
            ordered: geometry.order() == ProgramOrder::Ascending,
        })
    }

    /// The same where only `bytes` bytes of a page are content.
    pub(super) const fn with_content(mut self, bytes: u32) -> Self {
        self.page_bytes = bytes;
        self
    }

    /// True if a page is programmed as a whole only.
    pub(super) const fn is_whole(&self) -> bool {
        self.programs_per_page == 1
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

    /// The most bytes that one write of deltas has.
    pub(super) const fn write_bytes_most(&self) -> u32 {
        self.page_bytes
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

    /// Log pages in the set: the reads that a node costs besides its own page.
    pub(super) const fn len(self) -> u32 {
        self.0.count_ones()
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

    /// Node pages in use.
    pub(super) const fn nodes(&self) -> u16 {
        self.nodes
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
        let fits =
            self.programs < shape.programs_per_page && bytes <= shape.page_bytes - self.log_bytes;
        let full_logs = self.full_logs + u16::from(!fits);
        if full_logs >= shape.log_pages {
            return None;
        }
        if !fits {
            *self = BlockState { full_logs, log_bytes: 0, programs: 0, ..*self };
        }
        let place = LogPlace { page: self.full_logs, offset: self.log_bytes };
        self.log_bytes += bytes;
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
        assert_eq!(block.take_log(&shape, shape.write_bytes_most() + 1), None);
        assert_eq!(block.take_log(&shape, 0), None);
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
            assert_eq!(block.nodes(), if closed { 2 } else { 3 });
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
        assert_eq!(set.len(), 3);
    }
}
