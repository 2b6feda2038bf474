//! How a chip is divided: the places of a block, and how many blocks are for what.

use device::{Block, Error, Geometry, Page, Result, SectorGeometry};

use super::own;
use crate::{Options, spare};

/// Where the metadata of pages goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    /// To the spare area of each page.
    Spare,
    /// To pages of its own.
    Own,
}

/// What tells one layer from another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Kind {
    /// The first bytes of its pages.
    pub(crate) mark: [u8; 4],
    /// True if the log takes sectors, false if only metadata.
    pub(crate) sectors_in_log: bool,
}

/// A chip as a layer uses it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Shape {
    pub(crate) geometry: Geometry,
    pub(crate) place: Place,
    pub(crate) kind: Kind,
    /// What the disk was made with: log blocks that take random writes, or blocks that are
    /// filled in order.
    pub(crate) logs: u32,
}

impl Shape {
    /// # Errors
    /// [`Error::TooFewPages`] if blocks have too few pages.
    pub(crate) fn new(geometry: Geometry, kind: Kind, logs: u32) -> Result<Self> {
        let pages = geometry.pages_per_block();
        let (place, least) = if geometry.spare_bytes() as usize >= spare::BYTES {
            (Place::Spare, 2)
        } else {
            (Place::Own, 4)
        };
        if pages < least {
            return Err(Error::TooFewPages { have: pages, need: least });
        }
        Ok(Shape { geometry, place, kind, logs: logs.clamp(1, Options::LOGS_MOST) })
    }

    /// True if metadata goes to pages of its own.
    pub(crate) const fn has_own_pages(&self) -> bool {
        matches!(self.place, Place::Own)
    }

    /// Sectors of a logical block. Without a spare area a block has a header and a last page that
    /// says that it is complete.
    pub(crate) const fn sectors_per_block(&self) -> u32 {
        self.geometry.pages_per_block() - 2 * self.has_own_pages() as u32
    }

    /// The logical block of a sector, and its place in it.
    pub(crate) const fn split(&self, sector: u32) -> (u32, u32) {
        (sector / self.sectors_per_block(), sector % self.sectors_per_block())
    }

    /// The page of `block` that has place `offset` of a logical block.
    pub(crate) const fn page_at(&self, block: Block, offset: u32) -> Page {
        Page(self.geometry.first_page(block).0 + self.has_own_pages() as u32 + offset)
    }

    /// The last page of `block`.
    pub(crate) const fn last_page(&self, block: Block) -> Page {
        Page(self.geometry.first_page(block).0 + self.geometry.pages_per_block() - 1)
    }

    /// Blocks that may be filled in order at the same time.
    pub(crate) fn fillings(&self) -> u32 {
        match (self.kind.sectors_in_log, self.place) {
            (true, _) => 1,
            (false, Place::Spare) => self.logs,
            (false, Place::Own) => self.logs.min(own::most_states(self.geometry.page_bytes())),
        }
    }

    /// Blocks of the log.
    pub(crate) const fn log_blocks(&self) -> u32 {
        if self.kind.sectors_in_log { self.logs } else { 1 }
    }

    /// Pages with the header of a block of the log: the only block of a log has it twice.
    pub(crate) const fn log_headers(&self) -> u32 {
        1 + !self.kind.sectors_in_log as u32
    }

    /// Sectors of the log that can be found.
    pub(crate) const fn log_pages(&self) -> u32 {
        if self.kind.sectors_in_log { self.logs * self.geometry.pages_per_block() } else { 0 }
    }

    /// The most sectors between two pages of the log that name them; 0 where the spare area does.
    pub(crate) fn group(&self) -> u32 {
        match self.place {
            Place::Own if self.kind.sectors_in_log => {
                own::most_members(self.geometry.page_bytes(), self.fillings())
                    .min(self.geometry.pages_per_block() - 2)
            }
            _ => 0,
        }
    }

    /// Blocks beyond the data blocks: those that are filled, the log, one to merge into and one
    /// for the log's next.
    fn working_blocks(&self) -> u32 {
        self.fillings() + self.log_blocks() + 2
    }

    /// The disk that `good` blocks make: without the working blocks and without the share that
    /// is to be kept of the others.
    ///
    /// # Errors
    /// [`Error::TooFewBlocks`] if they are too few.
    pub(crate) fn disk(&self, good: u32, options: &Options) -> Result<SectorGeometry> {
        let working = self.working_blocks();
        let Some(filled @ 1..) = good.checked_sub(working) else {
            return Err(Error::TooFewBlocks { have: good, need: working + 1 });
        };
        let kept = (f64::from(filled) * options.over_provision()) as u32;
        self.disk_of(filled.saturating_sub(kept).max(1))
    }

    /// The disk of `logical` logical blocks.
    ///
    /// # Errors
    /// [`Error::TooFewBlocks`] if the chip has not so many.
    pub(crate) fn disk_of(&self, logical: u32) -> Result<SectorGeometry> {
        let need = logical.saturating_add(self.log_blocks());
        let have = self.geometry.blocks();
        if have < need {
            return Err(Error::TooFewBlocks { have, need });
        }
        let sectors = u64::from(logical) * u64::from(self.sectors_per_block());
        SectorGeometry::new(self.geometry.page_bytes(), sectors)
    }
}

#[cfg(test)]
mod tests {
    use device::{Block, Error, Geometry, Page};

    use super::{Kind, Shape};
    use crate::Options;

    const FAST: Kind = Kind { mark: *b"TEST", sectors_in_log: true };
    const BLOCKS: Kind = Kind { mark: *b"TEST", sectors_in_log: false };

    fn shape(kind: Kind, page: u32, spare: u32, logs: u32) -> Shape {
        let geometry = Geometry::new(page, 64, 1000).unwrap().with_spare(spare).unwrap();
        Shape::new(geometry, kind, logs).unwrap()
    }

    #[test]
    fn without_a_spare_area_a_block_has_two_pages_of_metadata() {
        let with = shape(FAST, 2048, 16, 8);
        let without = shape(FAST, 2048, 15, 8);
        assert_eq!((with.sectors_per_block(), without.sectors_per_block()), (64, 62));
        assert_eq!((with.split(130), without.split(130)), ((2, 2), (2, 6)));
        assert_eq!(with.page_at(Block(3), 5), Page(3 * 64 + 5));
        assert_eq!(without.page_at(Block(3), 5), Page(3 * 64 + 6));
        assert_eq!((with.group(), without.group()), (0, 62));
    }

    #[test]
    fn blocks_that_are_filled_in_order_must_fit_the_page_that_names_them() {
        assert_eq!(shape(BLOCKS, 64, 64, 8).fillings(), 8);
        assert_eq!(shape(BLOCKS, 64, 0, 8).fillings(), 1);
        assert_eq!(shape(FAST, 64, 0, 8).group(), 1);
        assert_eq!((shape(FAST, 512, 0, 8).fillings(), shape(FAST, 512, 0, 8).group()), (1, 57));
    }

    #[test]
    fn over_provisioning_comes_beside_the_blocks_that_work() {
        let sectors = |good, ratio| {
            let options = Options::default().with_over_provision(ratio).unwrap();
            shape(FAST, 2048, 64, 8).disk(good, &options).map(|disk| disk.sectors() / 64)
        };
        assert_eq!(sectors(1000, 0.0), Ok(1000 - 11));
        assert_eq!(sectors(1000, 0.1), Ok(989 - 98));
        assert_eq!(sectors(12, 0.9), Ok(1));
        assert_eq!(sectors(11, 0.0), Err(Error::TooFewBlocks { have: 11, need: 12 }));
    }
}
