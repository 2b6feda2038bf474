//! A chip of bytes that anyone may have written, and the metadata on it, by FORMAT.md.

use std::collections::BTreeSet;

use device::{Block, Cause, Error, Geometry, Nand, Page, Result};

use crate::OPERATIONS_MOST;
use crate::structure::{number, set_number};

/// The code of the error with which a chip gives up.
const ENDLESS: i32 = -77;

/// The chip. It obeys no rule of programming, since damage may lead a layer to break them.
#[derive(Clone)]
pub struct ImageChip {
    geometry: Geometry,
    /// For each page its data, then its spare area.
    bytes: Vec<u8>,
    bad: Vec<bool>,
    /// Pages with more flipped bits than can be corrected, until they are erased.
    unreadable: BTreeSet<u32>,
    operations: u64,
}

impl ImageChip {
    /// What `chip` holds.
    ///
    /// # Panics
    /// It can't be read.
    #[must_use]
    pub fn of(chip: &mut dyn Nand) -> Self {
        let geometry = chip.geometry();
        let page_bytes = geometry.page_bytes() as usize;
        let stride = page_bytes + geometry.spare_bytes() as usize;
        let mut bytes = vec![0; stride * geometry.pages() as usize];
        for (page, into) in bytes.chunks_exact_mut(stride).enumerate() {
            let (data, spare) = into.split_at_mut(page_bytes);
            chip.read(Page(page as u32), 0, data, spare, Cause::Lookup).expect("it can be read");
        }
        let blocks = (0..geometry.blocks()).map(Block);
        let bad = blocks.map(|block| chip.is_bad(block).expect("it has this block")).collect();
        ImageChip { geometry, bytes, bad, unreadable: BTreeSet::new(), operations: 0 }
    }

    fn stride(&self) -> usize {
        (self.geometry.page_bytes() + self.geometry.spare_bytes()) as usize
    }

    /// The data and the spare area of a page, to be damaged.
    pub fn page_mut(&mut self, page: u32) -> (&mut [u8], &mut [u8]) {
        let stride = self.stride();
        let whole = &mut self.bytes[page as usize * stride..][..stride];
        whole.split_at_mut(self.geometry.page_bytes() as usize)
    }

    /// The data and the spare area of a page.
    #[must_use]
    pub fn page(&self, page: u32) -> (&[u8], &[u8]) {
        let stride = self.stride();
        self.bytes[page as usize * stride..][..stride].split_at(self.geometry.page_bytes() as usize)
    }

    /// Makes a page unreadable.
    pub fn spoil(&mut self, page: u32) {
        self.unreadable.insert(page);
    }

    /// Marks a block bad.
    pub fn condemn(&mut self, block: u32) {
        self.bad[block as usize] = true;
    }

    /// Pages that are not erased.
    #[must_use]
    pub fn used_pages(&self) -> Vec<u32> {
        let pages = self.bytes.chunks_exact(self.stride()).enumerate();
        let used = pages.filter(|(_, bytes)| bytes.iter().any(|byte| *byte != 0xFF));
        used.map(|(page, _)| page as u32).collect()
    }

    /// True if it gave up.
    #[must_use]
    pub const fn is_endless(&self) -> bool {
        self.operations > OPERATIONS_MOST
    }

    /// Counts from 0 again.
    pub const fn start(&mut self) {
        self.operations = 0;
    }

    fn count(&mut self) -> Result<()> {
        self.operations += 1;
        if self.is_endless() { Err(Error::Driver { code: ENDLESS }) } else { Ok(()) }
    }
}

impl Nand for ImageChip {
    fn geometry(&self) -> Geometry {
        self.geometry
    }

    fn read(
        &mut self,
        page: Page,
        offset: u32,
        into: &mut [u8],
        spare: &mut [u8],
        _cause: Cause,
    ) -> Result<u16> {
        self.count()?;
        self.geometry.check_page(page)?;
        self.geometry.check_bytes(offset, into.len(), spare.len())?;
        if self.unreadable.contains(&page.0) {
            return Err(Error::Uncorrectable { page });
        }
        let (data, area) = ImageChip::page(self, page.0);
        into.copy_from_slice(&data[offset as usize..][..into.len()]);
        spare.copy_from_slice(&area[..spare.len()]);
        Ok(0)
    }

    fn program(
        &mut self,
        page: Page,
        offset: u32,
        data: &[u8],
        spare: &[u8],
        _cause: Cause,
    ) -> Result<()> {
        self.count()?;
        self.geometry.check_page(page)?;
        self.geometry.check_bytes(offset, data.len(), spare.len())?;
        let block = self.geometry.block_of(page);
        if self.bad[block.0 as usize] {
            return Err(Error::BadBlock { block });
        }
        let (bytes, area) = self.page_mut(page.0);
        bytes[offset as usize..][..data.len()].copy_from_slice(data);
        area[..spare.len()].copy_from_slice(spare);
        Ok(())
    }

    fn erase(&mut self, block: Block, _cause: Cause) -> Result<()> {
        self.count()?;
        self.geometry.check_block(block)?;
        if self.bad[block.0 as usize] {
            return Err(Error::BadBlock { block });
        }
        let first = self.geometry.first_page(block).0;
        let pages = first..first + self.geometry.pages_per_block();
        let stride = self.stride();
        self.bytes[first as usize * stride..pages.end as usize * stride].fill(0xFF);
        self.unreadable.retain(|page| !pages.contains(page));
        Ok(())
    }

    fn is_bad(&mut self, block: Block) -> Result<bool> {
        self.geometry.check_block(block)?;
        Ok(self.bad[block.0 as usize])
    }

    fn mark_bad(&mut self, block: Block) -> Result<()> {
        self.geometry.check_block(block)?;
        self.bad[block.0 as usize] = true;
        Ok(())
    }
}

/// What a translation layer keeps on a page beside the sectors.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Metadata {
    /// A header of page mapping or DAC.
    Header,
    /// A page that closes a group.
    Closing,
    /// A page of a layer that maps blocks.
    Own,
    /// A spare area that was programmed.
    Spare,
}

/// The metadata in the data of a page.
#[must_use]
pub fn own_metadata(data: &[u8]) -> Option<Metadata> {
    match data.get(..4)? {
        b"FTPM" | b"FTDC" => Some(Metadata::Header),
        b"FTCL" => Some(Metadata::Closing),
        b"FTBM" | b"FTFA" => Some(Metadata::Own),
        _ => None,
    }
}

impl Metadata {
    /// Where its numbers stand, in bytes, and their lengths.
    #[must_use]
    pub const fn fields(self) -> &'static [(usize, usize)] {
        match self {
            Metadata::Header => &[
                (4, 4),
                (8, 8),
                (16, 4),
                (20, 4),
                (24, 1),
                (25, 1),
                (26, 2),
                (32, 4),
                (36, 4),
                (40, 4),
                (92, 8),
            ],
            Metadata::Closing => {
                &[(4, 4), (8, 8), (16, 8), (28, 4), (32, 4), (36, 4), (40, 4), (60, 4)]
            }
            Metadata::Own => &[
                (8, 8),
                (16, 8),
                (24, 4),
                (28, 1),
                (29, 1),
                (30, 2),
                (32, 2),
                (34, 2),
                (36, 4),
                (40, 4),
                (44, 8),
                (52, 4),
                (56, 4),
            ],
            Metadata::Spare => &[(0, 4), (4, 6), (10, 3), (15, 1)],
        }
    }

    /// Repairs its checksum.
    pub fn repair(self, page: u32, data: &mut [u8], spare: &mut [u8]) {
        let address = page.to_le_bytes();
        match self {
            Metadata::Header => {
                let sum = device::checksum(&[&data[..28], &data[32..], &address]);
                set_number(data, 28, 4, u64::from(sum));
            }
            Metadata::Closing => {
                let entries = number(data, 4, 4).min(data.len() as u64) as usize;
                let end = (28 + 8 * entries).min(data.len());
                let sum = device::checksum(&[&data[..24], &data[28..end], &address]);
                set_number(data, 24, 4, u64::from(sum));
            }
            Metadata::Own => {
                let members = 36 + 20 * number(data, 32, 2) + 8 * number(data, 34, 2);
                let end = (members as usize).min(data.len());
                let sum = device::checksum(&[&data[8..end], &address]);
                set_number(data, 4, 4, u64::from(sum));
            }
            Metadata::Spare => {}
        }
        if spare.len() >= 16 {
            repair_spare(page, data, spare);
        }
    }
}

/// A spare area covers its page's data, and itself.
fn repair_spare(page: u32, data: &[u8], spare: &mut [u8]) {
    let sum = device::checksum(&[data]);
    set_number(spare, 10, 3, u64::from(sum & 0x00FF_FFFF));
    let kind = spare[15] >> 4;
    let sum = device::checksum(&[&spare[..13], &[kind], &page.to_le_bytes()]);
    set_number(spare, 13, 3, u64::from(kind) << 20 | u64::from(sum >> 12));
}
