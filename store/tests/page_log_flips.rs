//! Bits that flip in the tag of a page of the journal, of which other pages are behind it: however
//! much of the page was filled, all of the journal comes back, or an error tells of the damage.
#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

use device::{Block, Cause, Geometry, Nand, NandCosts, Page, Result};
use flashtree_store::{Durability, Error, PageKind, PageLog, PageLogOptions, Recovery, Update};
use sim::SimulatedNand;

/// A chip of which a bit in the spare area of one page is read as another than was programmed.
struct Flipped<'n> {
    chip: &'n mut SimulatedNand,
    page: Page,
    bit: usize,
}

impl Nand for Flipped<'_> {
    fn geometry(&self) -> Geometry {
        self.chip.geometry()
    }

    fn read(
        &mut self,
        page: Page,
        offset: u32,
        into: &mut [u8],
        spare: &mut [u8],
        cause: Cause,
    ) -> Result<u16> {
        let read = self.chip.read(page, offset, into, spare, cause)?;
        if page == self.page
            && let Some(byte) = spare.get_mut(self.bit / 8)
        {
            *byte ^= 1 << (self.bit % 8);
        }
        Ok(read)
    }

    fn program(
        &mut self,
        page: Page,
        offset: u32,
        data: &[u8],
        spare: &[u8],
        cause: Cause,
    ) -> Result<()> {
        self.chip.program(page, offset, data, spare, cause)
    }

    fn erase(&mut self, block: Block, cause: Cause) -> Result<()> {
        self.chip.erase(block, cause)
    }

    fn is_bad(&mut self, block: Block) -> Result<bool> {
        self.chip.is_bad(block)
    }

    fn mark_bad(&mut self, block: Block) -> Result<()> {
        self.chip.mark_bad(block)
    }
}

/// A chip with a journal of two batches behind the last of so many checkpoints, the first of which
/// has a value of so many bytes, and the first page of that journal.
fn chip(checkpoints: u32, value_bytes: usize) -> (SimulatedNand, Page) {
    let geometry = Geometry::new(512, 4, 12).unwrap().with_spare(16).unwrap();
    let mut chip = SimulatedNand::new(geometry, NandCosts::default());
    let options = PageLogOptions { durability: Durability::Batch, ..PageLogOptions::default() };
    let mut log = PageLog::create(Box::new(&mut chip), &options).unwrap();
    for _ in 0..checkpoints {
        log.checkpoint(b"root", None).unwrap();
    }
    for value in [vec![7; value_bytes], vec![8; 8]] {
        log.record(&[Update::Put { key: b"key", value: &value }]).unwrap();
        log.sync().unwrap();
    }
    let mut first = None;
    for page in (0..geometry.pages()).map(Page) {
        let tag = log.tag(page, Cause::Recovery).unwrap();
        if let Some(tag) = tag.filter(|tag| tag.kind == PageKind::Journal) {
            first = first.min(Some((tag.sequence, page))).or(Some((tag.sequence, page)));
        }
    }
    drop(log);
    let (_, first) = first.unwrap();
    (chip, first)
}

/// Opens the log, and counts what its journal holds.
fn replayed(nand: Flipped<'_>) -> flashtree_store::Result<u32> {
    let (mut log, _) = PageLog::open(Box::new(nand))?;
    let (mut buffer, mut count) = (vec![0; 1024], 0);
    while log.next_replayed(&mut buffer)?.is_some() {
        count += 1;
    }
    Ok(count)
}

#[test]
fn a_flipped_bit_of_a_tag_in_the_journal_hides_nothing_however_full_its_page_is() {
    let (mut whole, mut told) = (0, 0);
    // The page is the first of its block, or another.
    for (checkpoints, value_bytes) in (1..5).flat_map(|it| (0..460).map(move |bytes| (it, bytes))) {
        let (mut chip, page) = chip(checkpoints, value_bytes);
        for bit in [0, 37, 73, 127] {
            match replayed(Flipped { chip: &mut chip, page, bit }) {
                Ok(2) => whole += 1,
                Err(Error::DamagedJournal { .. }) => told += 1,
                other => {
                    panic!("{checkpoints} checkpoints, {value_bytes} bytes, bit {bit}: {other:?}")
                }
            }
        }
    }
    println!("{whole} came back, {told} were told");
    assert!(whole > 100 && told > 100);
}
