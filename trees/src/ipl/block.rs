//! What goes where in an erase block, and when it is merged.
//!
//! ```text
//!   0                      nodes                   pages
//!   +------+------+- ... --+-----+-----+- ... -----+
//!   | node | node |        | log | log |           |
//!   +------+------+- ... --+-----+-----+- ... -----+
//! ```
//!
//! Invariant: pages of a kind are used from the lowest on; a log page is used by as many records of
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

impl BlockShape {
    /// Blocks of `geometry` with `log_pages` log pages, or an equal number of both where that is
    /// `None` (section 5). `None` if a block would be left without pages of one kind.
    pub(super) fn new(geometry: &Geometry, log_pages: Option<u32>) -> Option<Self> {
        let pages = geometry.pages_per_block();
        let log_pages = log_pages.unwrap_or(pages / 2);
        let node_pages = pages.checked_sub(log_pages)?;
        if node_pages == 0 || log_pages == 0 {
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

    /// The first byte of the content from `offset` on at which a part may begin: of a sector, or
    /// any where a page is not longer than one.
    const fn next_part(&self, offset: u32) -> u32 {
        if offset == 0 || self.head_bytes + self.page_bytes <= SECTOR_BYTES {
            return offset;
        }
        (offset + self.head_bytes).next_multiple_of(SECTOR_BYTES) - self.head_bytes
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

/// Where a record of deltas stands in a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct RecordPlace {
    /// The log page, from 0.
    pub(super) page: u16,
    /// The byte of its content.
    pub(super) offset: u16,
    /// Bytes of the record.
    pub(super) bytes: u16,
}

impl RecordPlace {
    /// Bytes of a place where it is written.
    pub(super) const BYTES: usize = 6;

    pub(super) fn to_bytes(self) -> [u8; Self::BYTES] {
        let ([p0, p1], [o0, o1]) = (self.page.to_le_bytes(), self.offset.to_le_bytes());
        let [b0, b1] = self.bytes.to_le_bytes();
        [p0, p1, o0, o1, b0, b1]
    }

    pub(super) const fn from_bytes([p0, p1, o0, o1, b0, b1]: [u8; Self::BYTES]) -> Self {
        RecordPlace {
            page: u16::from_le_bytes([p0, p1]),
            offset: u16::from_le_bytes([o0, o1]),
            bytes: u16::from_le_bytes([b0, b1]),
        }
    }

    /// True if blocks of `shape` have such a place.
    pub(super) fn is_in(&self, shape: &BlockShape) -> bool {
        let end = u32::from(self.offset) + u32::from(self.bytes);
        self.page < shape.log_pages && end <= shape.page_bytes
    }
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

    /// Takes room for a record of `length` bytes; `None` if the logs have none for it: then the
    /// block is to be merged.
    pub(super) fn take_log(&mut self, shape: &BlockShape, length: usize) -> Option<RecordPlace> {
        let length = u16::try_from(length).ok().filter(|length| *length > 0)?;
        let bytes = u32::from(length);
        if bytes > shape.page_bytes {
            return None;
        }
        let offset = shape.next_part(self.log_bytes);
        let fits = self.programs < shape.programs_per_page && offset + bytes <= shape.page_bytes;
        let full_logs = self.full_logs + u16::from(!fits);
        if full_logs >= shape.log_pages {
            return None;
        }
        if !fits {
            *self = BlockState { full_logs, log_bytes: 0, programs: 0, ..*self };
        }
        let offset = if fits { offset } else { 0 };
        let place = RecordPlace {
            page: self.full_logs,
            offset: u16::try_from(offset).ok()?,
            bytes: length,
        };
        self.log_bytes = offset + bytes;
        self.programs += 1;
        Some(place)
    }
}

#[cfg(test)]
mod tests;
