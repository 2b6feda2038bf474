//! The shape of a device, checked once when it is made.

use crate::{Block, Error, GeometryFault, Page, Result, Sector};

/// In which order the pages of a block may be programmed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProgramOrder {
    /// Any order.
    Any,
    /// Ascending: after a page was programmed, no lower page of its block may be, until the block
    /// is erased. Pages may be left out.
    Ascending,
}

/// The shape of a NAND chip.
///
/// Invariant: only [`Geometry::new`] makes one, so every field is in its bounds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Geometry {
    page_bytes: u32,
    spare_bytes: u32,
    pages_per_block: u32,
    blocks: u32,
    programs_per_page: u16,
    order: ProgramOrder,
}

impl Geometry {
    /// A chip of `blocks` blocks of `pages_per_block` pages of `page_bytes` bytes, without a spare
    /// area, whose pages take one program each, in ascending order.
    ///
    /// # Errors
    /// [`Error::Geometry`] names the number that is out of its bounds.
    pub fn new(page_bytes: u32, pages_per_block: u32, blocks: u32) -> Result<Self> {
        if !(64..=65_536).contains(&page_bytes) || !page_bytes.is_power_of_two() {
            return Err(GeometryFault::PageBytes(page_bytes).into());
        }
        if pages_per_block == 0 || pages_per_block > u32::from(u16::MAX) {
            return Err(GeometryFault::PagesPerBlock(pages_per_block).into());
        }
        if blocks == 0 {
            return Err(GeometryFault::Blocks(blocks).into());
        }
        let pages = u64::from(pages_per_block) * u64::from(blocks);
        if pages >= u64::from(u32::MAX) {
            return Err(GeometryFault::Pages(pages).into());
        }
        Ok(Geometry {
            page_bytes,
            spare_bytes: 0,
            pages_per_block,
            blocks,
            programs_per_page: 1,
            order: ProgramOrder::Ascending,
        })
    }

    /// The same chip with so many blocks.
    ///
    /// # Errors
    /// As [`Geometry::new`].
    pub fn with_blocks(self, blocks: u32) -> Result<Self> {
        Self::new(self.page_bytes, self.pages_per_block, blocks)?;
        Ok(Geometry { blocks, ..self })
    }

    /// The same chip with `spare_bytes` bytes of spare area a page.
    ///
    /// # Errors
    /// [`GeometryFault::SpareBytes`] if they exceed the page's.
    pub fn with_spare(mut self, spare_bytes: u32) -> Result<Self> {
        if spare_bytes > self.page_bytes {
            return Err(GeometryFault::SpareBytes(spare_bytes).into());
        }
        self.spare_bytes = spare_bytes;
        Ok(self)
    }

    /// The same chip, each page of which may be programmed `programs` times between two erases.
    ///
    /// # Errors
    /// [`GeometryFault::ProgramsPerPage`] if `programs` is 0.
    pub fn with_programs(mut self, programs: u16) -> Result<Self> {
        if programs == 0 {
            return Err(GeometryFault::ProgramsPerPage(programs).into());
        }
        self.programs_per_page = programs;
        Ok(self)
    }

    /// The same chip with another order of programming.
    #[must_use]
    pub fn with_order(mut self, order: ProgramOrder) -> Self {
        self.order = order;
        self
    }

    /// Bytes of data in a page.
    #[must_use]
    pub const fn page_bytes(&self) -> u32 {
        self.page_bytes
    }

    /// Bytes of a page's spare area that its user may fill; 0 if there is none. Bytes that the
    /// chip's own error correction takes are not counted.
    #[must_use]
    pub const fn spare_bytes(&self) -> u32 {
        self.spare_bytes
    }

    /// Pages in a block.
    #[must_use]
    pub const fn pages_per_block(&self) -> u32 {
        self.pages_per_block
    }

    /// Blocks on the chip, bad ones included.
    #[must_use]
    pub const fn blocks(&self) -> u32 {
        self.blocks
    }

    /// How often a page may be programmed between two erases.
    #[must_use]
    pub const fn programs_per_page(&self) -> u16 {
        self.programs_per_page
    }

    /// In which order the pages of a block may be programmed.
    #[must_use]
    pub const fn order(&self) -> ProgramOrder {
        self.order
    }

    /// Pages on the chip.
    #[must_use]
    pub const fn pages(&self) -> u32 {
        self.pages_per_block * self.blocks
    }

    /// Bytes of data on the chip.
    #[must_use]
    pub const fn bytes(&self) -> u64 {
        self.pages() as u64 * self.page_bytes as u64
    }

    /// Bytes of data in a block.
    #[must_use]
    pub const fn block_bytes(&self) -> u64 {
        self.pages_per_block as u64 * self.page_bytes as u64
    }

    /// The block that `page` lies in.
    #[must_use]
    pub const fn block_of(&self, page: Page) -> Block {
        Block(page.0 / self.pages_per_block)
    }

    /// The place of `page` in its block, from 0.
    #[must_use]
    pub const fn place_of(&self, page: Page) -> u32 {
        page.0 % self.pages_per_block
    }

    /// The first page of `block`.
    #[must_use]
    pub const fn first_page(&self, block: Block) -> Page {
        Page(block.0 * self.pages_per_block)
    }

    /// Refuses a page that the chip does not have.
    ///
    /// # Errors
    /// [`Error::NoSuchPage`].
    pub const fn check_page(&self, page: Page) -> Result<()> {
        if page.0 >= self.pages() {
            return Err(Error::NoSuchPage { page, pages: self.pages() });
        }
        Ok(())
    }

    /// Refuses a block that the chip does not have.
    ///
    /// # Errors
    /// [`Error::NoSuchBlock`].
    pub const fn check_block(&self, block: Block) -> Result<()> {
        if block.0 >= self.blocks {
            return Err(Error::NoSuchBlock { block, blocks: self.blocks });
        }
        Ok(())
    }

    /// Refuses bytes that do not lie inside a page, or more spare bytes than a page has.
    ///
    /// # Errors
    /// [`Error::BadLength`].
    pub fn check_bytes(&self, offset: u32, data: usize, spare: usize) -> Result<()> {
        let fits =
            (offset as usize).checked_add(data).is_some_and(|end| end <= self.page_bytes as usize);
        if !fits {
            let length = u32::try_from(data).unwrap_or(u32::MAX);
            return Err(Error::BadLength { offset, length, limit: self.page_bytes });
        }
        if spare > self.spare_bytes as usize {
            let length = u32::try_from(spare).unwrap_or(u32::MAX);
            return Err(Error::BadLength { offset: 0, length, limit: self.spare_bytes });
        }
        Ok(())
    }
}

/// The shape of a disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SectorGeometry {
    sector_bytes: u32,
    sectors: u64,
    alignment: u32,
}

impl SectorGeometry {
    /// A disk of `sectors` sectors of `sector_bytes` bytes, whose buffers may lie anywhere.
    ///
    /// # Errors
    /// [`Error::Geometry`] names the number that is out of its bounds.
    pub fn new(sector_bytes: u32, sectors: u64) -> Result<Self> {
        if !(64..=1 << 20).contains(&sector_bytes) || !sector_bytes.is_power_of_two() {
            return Err(GeometryFault::SectorBytes(sector_bytes).into());
        }
        if sectors == 0 || sectors > (i64::MAX as u64) / u64::from(sector_bytes) {
            return Err(GeometryFault::Sectors(sectors).into());
        }
        Ok(SectorGeometry { sector_bytes, sectors, alignment: 1 })
    }

    /// The same disk with so many sectors.
    ///
    /// # Errors
    /// As [`SectorGeometry::new`].
    pub fn with_sectors(self, sectors: u64) -> Result<Self> {
        Self::new(self.sector_bytes, sectors)?;
        Ok(SectorGeometry { sectors, ..self })
    }

    /// The same disk, fastest (or only usable) with buffers aligned to `bytes`.
    ///
    /// # Errors
    /// [`GeometryFault::Alignment`] if `bytes` is no power of two.
    pub fn with_alignment(mut self, bytes: u32) -> Result<Self> {
        if !bytes.is_power_of_two() {
            return Err(GeometryFault::Alignment(bytes).into());
        }
        self.alignment = bytes;
        Ok(self)
    }

    /// Bytes in a sector: the unit of writing.
    #[must_use]
    pub const fn sector_bytes(&self) -> u32 {
        self.sector_bytes
    }

    /// Sectors on the disk.
    #[must_use]
    pub const fn sectors(&self) -> u64 {
        self.sectors
    }

    /// The alignment of buffers in memory, in bytes, that the disk is fastest with.
    #[must_use]
    pub const fn alignment(&self) -> u32 {
        self.alignment
    }

    /// Bytes on the disk.
    #[must_use]
    pub const fn bytes(&self) -> u64 {
        self.sectors * self.sector_bytes as u64
    }

    /// Refuses bytes that are not all on the disk: `length` bytes from byte `offset` of `first`.
    ///
    /// # Errors
    /// [`Error::NoSuchSector`].
    pub fn check_bytes(&self, first: Sector, offset: u32, length: usize) -> Result<()> {
        let missing = Error::NoSuchSector { sector: first, sectors: self.sectors };
        if first.0 >= self.sectors {
            return Err(missing);
        }
        let end = u64::from(offset)
            .checked_add(length as u64)
            .and_then(|bytes| bytes.checked_add(first.0 * u64::from(self.sector_bytes)));
        match end {
            Some(end) if end <= self.bytes() => Ok(()),
            Some(_) => {
                Err(Error::NoSuchSector { sector: Sector(self.sectors), sectors: self.sectors })
            }
            None => Err(missing),
        }
    }

    /// Refuses a write that is not a run of whole sectors on the disk.
    ///
    /// # Errors
    /// [`Error::BadLength`] or [`Error::NoSuchSector`].
    pub fn check_run(&self, first: Sector, length: usize) -> Result<()> {
        if !length.is_multiple_of(self.sector_bytes as usize) {
            let length = u32::try_from(length).unwrap_or(u32::MAX);
            return Err(Error::BadLength { offset: 0, length, limit: self.sector_bytes });
        }
        self.check_bytes(first, 0, length)
    }
}

#[cfg(test)]
mod tests {
    use super::{Geometry, SectorGeometry};
    use crate::{Block, Error, GeometryFault, Page, Sector};

    #[test]
    fn a_chip_with_impossible_numbers_is_refused() {
        let fault = |result| match result {
            Err(Error::Geometry(fault)) => fault,
            other => panic!("{other:?}"),
        };
        assert_eq!(fault(Geometry::new(1000, 64, 1)), GeometryFault::PageBytes(1000));
        assert_eq!(fault(Geometry::new(32, 64, 1)), GeometryFault::PageBytes(32));
        assert_eq!(fault(Geometry::new(512, 0, 1)), GeometryFault::PagesPerBlock(0));
        assert_eq!(fault(Geometry::new(512, 64, 0)), GeometryFault::Blocks(0));
        assert_eq!(
            fault(Geometry::new(512, 65_535, u32::MAX)),
            GeometryFault::Pages(65_535 * u64::from(u32::MAX))
        );
        let chip = Geometry::new(512, 64, 4).unwrap();
        assert_eq!(fault(chip.with_spare(513)), GeometryFault::SpareBytes(513));
        assert_eq!(fault(chip.with_programs(0)), GeometryFault::ProgramsPerPage(0));
    }

    #[test]
    fn pages_blocks_and_places_agree() {
        let chip = Geometry::new(2048, 64, 1024).unwrap();
        assert_eq!(chip.pages(), 65_536);
        assert_eq!(chip.bytes(), 128 << 20);
        assert_eq!(chip.block_of(Page(130)), Block(2));
        assert_eq!(chip.place_of(Page(130)), 2);
        assert_eq!(chip.first_page(Block(2)), Page(128));
        assert!(chip.check_page(Page(65_536)).is_err());
        assert!(chip.check_block(Block(1024)).is_err());
        assert!(chip.check_bytes(2000, 48, 0).is_ok());
        assert!(chip.check_bytes(2000, 49, 0).is_err());
        assert!(chip.check_bytes(u32::MAX, usize::MAX, 0).is_err());
        assert!(chip.check_bytes(0, 0, 1).is_err());
    }

    #[test]
    fn a_disk_with_impossible_numbers_is_refused() {
        assert!(SectorGeometry::new(0, 1).is_err());
        assert!(SectorGeometry::new(4096, 0).is_err());
        assert!(SectorGeometry::new(4096, u64::MAX).is_err());
        assert!(SectorGeometry::new(4096, 1).unwrap().with_alignment(3).is_err());
    }

    #[test]
    fn requests_must_lie_on_the_disk() {
        let disk = SectorGeometry::new(512, 10).unwrap();
        assert!(disk.check_bytes(Sector(9), 0, 512).is_ok());
        assert!(disk.check_bytes(Sector(9), 1, 512).is_err());
        assert!(disk.check_bytes(Sector(10), 0, 0).is_err());
        assert!(disk.check_bytes(Sector(u64::MAX), u32::MAX, usize::MAX).is_err());
        assert!(disk.check_run(Sector(0), 1024).is_ok());
        assert!(disk.check_run(Sector(0), 1000).is_err());
    }
}
