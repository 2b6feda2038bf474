//! The journal: every batch since the last checkpoint, as a stream of atomic records in sectors.
//!
//! ```text
//!  page   0        4      8       16      20        24     28        32        36
//!         +--------+------+-------+-------+---------+------+---------+---------+--------
//!         | check- | JRNL | epoch | index | version | used | flushed | check-  | stream
//!         | sum    |      | u64   | u32   | u32     | u32  | u32     | sum of  |
//!         |        |      |       |       |         |      |         | previous|
//!         +--------+------+-------+-------+---------+------+---------+---------+--------
//! ```
//!
//! A page that is flushed before it is full is written again, with what came meanwhile, into the
//! other of two sectors: so the version that was acknowledged stands until the next is durable.
//! The page after it takes the sector behind those that the page took. Every page names the
//! checksum of the one before, so that a page that an earlier life of the same epoch left can't
//! follow; and it says how many pages before it were durable, so that a damaged one among these is
//! an error and not the end. Records are those of [`journal_record`](crate::journal_record).

use alloc::vec;
use alloc::vec::Vec;

use device::{Cause, Request, Sector, Sectors};

use crate::bytes::{Reader, Writer};
use crate::canary::{Canary, Mistake};
use crate::journal_record::{self, RECORD_HEADER, UPDATE_HEADER, UpdateHead};
use crate::{Error, Result, Update, checksum};

const MAGIC: [u8; 4] = *b"JRNL";
const HEADER: usize = 36;

/// Sectors that must be looked at to know that nothing follows a page.
const SECTORS_AHEAD: u32 = 4;

/// The journal, at its end or, after an opening, where it is read.
pub(super) struct Journal {
    identity: u64,
    first: Sector,
    sectors: u32,
    mistake: Mistake,
    epoch: u64,
    /// The sector where the present page may stand; the next one is the other choice.
    base: u32,
    page: Vec<u8>,
    header: PageHeader,
    /// The sector of the version of the present page that was written last.
    written: Option<u32>,
    /// The highest sector that the present page took.
    last: u32,
    /// Bytes of the present page that no version has.
    is_page_dirty: bool,
    is_unflushed: bool,
    /// Bytes of the stream before the present page.
    bytes_before: u64,
    /// Bytes of the whole stream that was found at opening, and what was read of it.
    found: u64,
    read: u64,
}

/// What stands at the start of a page.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct PageHeader {
    index: u32,
    version: u32,
    used: u32,
    /// Pages before this one that were durable when it was written.
    flushed: u32,
    /// The checksum of the page before.
    previous: u32,
}

impl Journal {
    /// Bytes of memory that the journal's page takes.
    pub(super) fn buffer_bytes(sector_bytes: u32) -> u64 {
        u64::from(sector_bytes)
    }

    /// The sectors of a journal of about `bytes` bytes, or of one that suits the disk.
    pub(super) fn sectors_for(bytes: Option<u64>, disk: device::SectorGeometry) -> u32 {
        let usual = (disk.bytes() / 64).min(4 << 20);
        let sectors = bytes.unwrap_or(usual).div_ceil(u64::from(disk.sector_bytes()));
        u32::try_from(sectors).unwrap_or(u32::MAX).max(2 * SECTORS_AHEAD)
    }

    /// The journal of the page file `identity` in `sectors` sectors from `first` on.
    pub(super) fn new(
        identity: u64,
        first: Sector,
        sectors: u32,
        sector_bytes: u32,
        mistake: Mistake,
    ) -> Self {
        Journal {
            mistake,
            identity,
            first,
            sectors,
            epoch: 0,
            base: 0,
            last: 0,
            page: vec![0; sector_bytes as usize],
            header: PageHeader::default(),
            written: None,
            is_page_dirty: false,
            is_unflushed: false,
            bytes_before: 0,
            found: 0,
            read: 0,
        }
    }

    /// Begins the epoch after the checkpoint with this sequence, with an empty journal.
    pub(super) fn begin(&mut self, epoch: u64) {
        self.epoch = epoch;
        self.rewind();
        self.found = 0;
    }

    fn rewind(&mut self) {
        self.base = 0;
        self.last = 0;
        self.header = PageHeader::default();
        self.written = None;
        self.is_page_dirty = false;
        self.is_unflushed = false;
        self.bytes_before = 0;
        self.read = 0;
    }

    fn capacity(&self) -> usize {
        self.page.len() - HEADER
    }

    /// The longest record that an empty journal takes.
    pub(super) fn record_bytes_most(&self) -> u64 {
        u64::from(self.sectors.saturating_sub(2)) * self.capacity() as u64
    }

    /// True if a record of `bytes` bytes fits behind what there is.
    pub(super) fn has_room(&self, bytes: u64) -> bool {
        let pages = (u64::from(self.header.used) + bytes).div_ceil(self.capacity() as u64);
        // The present page may stand in its second sector, and the last may need a second one.
        u64::from(self.base) + pages + 2 <= u64::from(self.sectors)
    }

    /// Bytes of the stream, and the most that there can be.
    pub(super) fn bytes(&self) -> (u64, u64) {
        let most = u64::from(self.sectors) * self.capacity() as u64;
        (self.bytes_before + u64::from(self.header.used), most)
    }

    /// True from an opening that found updates until the checkpoint after their replay.
    pub(super) const fn is_replayed(&self) -> bool {
        self.found > 0
    }

    /// Writes the record of `batch`; pages go to the disk as they get full.
    pub(super) fn append(&mut self, disk: &mut dyn Sectors, batch: &[Update<'_>]) -> Result<()> {
        journal_record::write(batch, &mut |bytes| self.put(disk, bytes))
    }

    fn put(&mut self, disk: &mut dyn Sectors, mut bytes: &[u8]) -> Result<()> {
        while !bytes.is_empty() {
            if self.header.used as usize == self.capacity() {
                self.write_page(disk)?;
                self.next_page();
            }
            let at = HEADER + self.header.used as usize;
            let length = bytes.len().min(self.page.len() - at);
            let (now, rest) = bytes.split_at(length);
            self.page[at..at + length].copy_from_slice(now);
            self.header.used += length as u32;
            self.is_page_dirty = true;
            bytes = rest;
        }
        Ok(())
    }

    /// Writes the next version of the present page.
    fn write_page(&mut self, disk: &mut dyn Sectors) -> Result<()> {
        if !self.is_page_dirty {
            return Ok(());
        }
        let sector = match self.written {
            Some(sector) if sector == self.base => self.base + 1,
            _ => self.base,
        };
        if sector >= self.sectors {
            let (bytes, limit) = self.bytes();
            return Err(Error::LongBatch { bytes, limit });
        }
        self.header.version += 1;
        self.page[HEADER + self.header.used as usize..].fill(0);
        let mut to = Writer::new(&mut self.page[checksum::BYTES..HEADER]);
        to.bytes(&MAGIC);
        to.u64(self.epoch);
        let PageHeader { index, version, used, flushed, previous } = self.header;
        for number in [index, version, used, flushed, previous] {
            to.u32(number);
        }
        let checksum = page_checksum(self.identity, &self.page);
        self.page[..checksum::BYTES].copy_from_slice(&checksum.to_le_bytes());
        disk.write(Sector(self.first.0 + u64::from(sector)), &self.page, Cause::Journal)?;
        self.written = Some(sector);
        self.last = self.last.max(sector);
        self.is_page_dirty = false;
        self.is_unflushed = true;
        Ok(())
    }

    /// Goes on behind the present page, which is full and written.
    fn next_page(&mut self) {
        self.bytes_before += u64::from(self.header.used);
        // The other version may be the one that was acknowledged, as long as this one is not
        // flushed.
        self.base = self.last + 1;
        self.last = self.base;
        self.header = PageHeader {
            index: self.header.index + 1,
            version: 0,
            used: 0,
            flushed: self.header.flushed,
            previous: stored_checksum(&self.page),
        };
        self.written = None;
    }

    /// Makes the whole stream durable.
    pub(super) fn flush(&mut self, disk: &mut dyn Sectors) -> Result<()> {
        self.write_page(disk)?;
        if self.is_unflushed {
            if !self.mistake.is(Canary::AcknowledgedBeforeFlush) {
                disk.flush(Cause::Journal)?;
            }
            self.is_unflushed = false;
            self.header.flushed = self.header.index;
        }
        Ok(())
    }

    /// Finds out how much of the journal of `epoch` there is, and stands at its beginning.
    pub(super) fn scan(&mut self, disk: &mut dyn Sectors, epoch: u64) -> Result<()> {
        self.begin(epoch);
        let mut index = 0;
        while self.read_page(disk, index)? {
            self.found += u64::from(self.header.used);
            if (self.header.used as usize) < self.capacity() {
                break;
            }
            index += 1;
            self.next_page();
        }
        self.refuse_gap(disk, index)?;
        self.rewind();
        if self.found > 0 {
            self.read_page(disk, 0)?;
        }
        Ok(())
    }

    /// Reads page `index`, which stands at `base` or behind; false if there is none.
    fn read_page(&mut self, disk: &mut dyn Sectors, index: u32) -> Result<bool> {
        let previous = self.header.previous;
        let (mut best, mut held, mut last) = (None::<(u32, PageHeader)>, None, self.base);
        // A full page stands in the first more often than not: that one is read last and kept.
        for sector in [self.base.saturating_add(1), self.base] {
            held = Some(sector);
            let Some(header) = self.read_sector(disk, sector)? else {
                continue;
            };
            let is_next = header.previous == previous
                || self.mistake.is(Canary::StaleJournalReplayed)
                || self.mistake.is(Canary::TornPageAccepted);
            if header.index != index || !is_next {
                continue;
            }
            last = last.max(sector);
            if best.is_none_or(|(_, best)| best.version < header.version) {
                best = Some((sector, header));
            }
        }
        let Some((sector, header)) = best else {
            return Ok(false);
        };
        if held != Some(sector) {
            self.read_sector(disk, sector)?;
        }
        self.header = header;
        self.written = Some(sector);
        self.last = last;
        Ok(true)
    }

    /// Reads a sector of the journal into the page's memory; `None` if no page of this epoch
    /// stands there.
    fn read_sector(&mut self, disk: &mut dyn Sectors, sector: u32) -> Result<Option<PageHeader>> {
        if sector >= self.sectors {
            return Ok(None);
        }
        let first = Sector(self.first.0 + u64::from(sector));
        let into = &mut self.page[..];
        disk.read(&mut [Request { first, offset: 0, into }], Cause::Recovery)?;
        let page = self.decode_page();
        Ok(page.filter(|page| page.used as usize <= self.capacity()))
    }

    /// What the page in memory says of itself, if it is whole and of this epoch.
    fn decode_page(&self) -> Option<PageHeader> {
        let (page, mistake) = (&self.page[..], self.mistake);
        let mut from = Reader::new(page);
        let checksum = page_checksum(self.identity, page);
        let is_whole = from.u32()? == checksum || mistake.is(Canary::TornPageAccepted);
        let is_journal = from.array()? == MAGIC;
        let is_present = from.u64()? == self.epoch || mistake.is(Canary::StaleJournalReplayed);
        if !(is_whole && is_journal && is_present) {
            return None;
        }
        let [index, version, used, flushed, previous] =
            [from.u32()?, from.u32()?, from.u32()?, from.u32()?, from.u32()?];
        Some(PageHeader { index, version, used, flushed, previous })
    }

    /// Refuses a journal that goes on behind its end: pages before `index` are whole, and a later
    /// one says that this one was durable too.
    fn refuse_gap(&mut self, disk: &mut dyn Sectors, index: u32) -> Result<()> {
        for sector in self.base..self.base.saturating_add(SECTORS_AHEAD) {
            if let Some(header) = self.read_sector(disk, sector)?
                && header.flushed > index
            {
                return Err(Error::DamagedJournal { page: index });
            }
        }
        Ok(())
    }

    /// The next update of the journal that was found, whose key is copied to `key`; the value is
    /// to be read by [`Journal::take`] or passed over by [`Journal::skip`]. Only updates of whole
    /// records are given out: `record` is what is left of the present one.
    pub(super) fn next_update(
        &mut self,
        disk: &mut dyn Sectors,
        record: &mut u32,
        key: &mut [u8],
    ) -> Result<Option<UpdateHead>> {
        while *record == 0 {
            if self.left() < RECORD_HEADER as u64 {
                return Ok(None);
            }
            let mut bytes = [0; RECORD_HEADER];
            self.take(disk, &mut bytes)?;
            *record = u32::from_le_bytes(bytes);
            let is_half = self.left() < u64::from(*record);
            if is_half && !self.mistake.is(Canary::HalfBatchReplayed) {
                *record = 0;
                self.read = self.found;
                return Ok(None);
            }
        }
        if self.mistake.is(Canary::HalfBatchReplayed) && self.left() < u64::from(*record).min(64) {
            return Ok(None);
        }
        let mut head = [0; UPDATE_HEADER];
        let damaged = Error::DamagedJournal { page: self.header.index };
        *record = record.checked_sub(UPDATE_HEADER as u32).ok_or(damaged)?;
        self.take(disk, &mut head)?;
        let head = UpdateHead::decode(head).ok_or(damaged)?;
        let rest = (head.key_bytes as u32).checked_add(head.value_bytes);
        *record = rest.and_then(|rest| record.checked_sub(rest)).ok_or(damaged)?;
        let key = key.get_mut(..head.key_bytes).ok_or(damaged)?;
        self.take(disk, key)?;
        Ok(Some(head))
    }

    /// Bytes that were found and not read yet.
    fn left(&self) -> u64 {
        self.found.saturating_sub(self.read)
    }

    /// Reads the next bytes of the stream.
    ///
    /// # Errors
    /// So many were not found, or the device failed.
    pub(super) fn take(&mut self, disk: &mut dyn Sectors, mut into: &mut [u8]) -> Result<()> {
        while !into.is_empty() {
            let piece = self.piece(disk, into.len())?;
            let (now, rest) = into.split_at_mut(piece.len());
            now.copy_from_slice(piece);
            into = rest;
        }
        Ok(())
    }

    /// At least one and up to `most` of the next bytes of the stream.
    fn piece(&mut self, disk: &mut dyn Sectors, most: usize) -> Result<&[u8]> {
        let most = self.left().min(most as u64) as usize;
        let mut at = self.read.saturating_sub(self.bytes_before) as usize;
        if at == self.header.used as usize && most > 0 {
            self.next_page();
            let index = self.header.index;
            if !self.read_page(disk, index)? {
                return Err(Error::DamagedJournal { page: index });
            }
            at = 0;
        }
        let end = (at + most).min(self.header.used as usize);
        // A page may not be again what it was when the journal was looked through.
        if end <= at {
            return Err(Error::DamagedJournal { page: self.header.index });
        }
        self.read += (end - at) as u64;
        Ok(&self.page[HEADER + at..HEADER + end])
    }
}

fn stored_checksum(page: &[u8]) -> u32 {
    page.first_chunk().map_or(0, |bytes| u32::from_le_bytes(*bytes))
}

/// Checksums of journal pages are those of an address that no page has.
const ADDRESS: u64 = 1 << 61;

fn page_checksum(identity: u64, page: &[u8]) -> u32 {
    checksum::of(identity ^ ADDRESS, &page[checksum::BYTES..])
}
