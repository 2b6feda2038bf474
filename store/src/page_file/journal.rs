//! The journal: every batch since the last checkpoint, as a stream of atomic records in pages.
//!
//! ```text
//!  0        4      8       16      20        24     28         32        40
//!  +--------+------+-------+-------+---------+------+----------+---------+--------
//!  | check- | JRNL | epoch | index | version | used | checksum | flushed | stream
//!  | sum    |      | u64   | u32   | u32     | u32  | of prev. | u64     |
//!  +--------+------+-------+-------+---------+------+----------+---------+--------
//! ```
//!
//! A page is a sector. What a flush ends with is a page that stands **twice**, in each half of its
//! sector, so that damage to one half of it loses nothing. Every page says how many bytes of the
//! stream were durable when it was written (`flushed`). A flush of several pages flushes the full
//! ones before it writes the last, which then tells of them. So whatever was acknowledged is either
//! found, or missed: then the journal is damaged, and not at its end.
//!
//! A page that is flushed before it is full is written again, with what came meanwhile, into the
//! other of two sectors: so the version that was acknowledged stands until the next is durable. If
//! it is too long to stand twice, it ends where it was flushed, and what came is in the next page.
//! A page may be written before it is flushed, so that the end of the process loses nothing of it
//! (`journal_through`): into the other sector as well, again and again until the flush, so that a
//! power cut takes no more than what was not flushed.
//! Every page names the checksum of the one before, so that a page that an earlier life of the
//! same epoch left can't follow. Records are those of [`journal_record`](crate::journal_record).

use alloc::vec;
use alloc::vec::Vec;

use device::{Cause, Request, Sector, Sectors};

use super::PageFileOptions;
use super::layout::Layout;
use super::superblock::Place;
use crate::bytes::Writer;
use crate::canary::{Canary, Mistake};
use crate::{Error, Result, Update, checksum, journal_record};

mod replay;

const MAGIC: [u8; 4] = *b"JRNL";
const HEADER: usize = 40;

/// The fewest sectors of a journal.
pub(super) const SECTORS_LEAST: u32 = 8;

/// Sectors beside those that a record fills: of two pages the second choice, and the page that ends
/// a flush.
const SECTORS_BESIDE: u32 = 3;

/// The journal, at its end or, after an opening, where it is read.
pub(super) struct Journal {
    identity: u64,
    first: Sector,
    sectors: u32,
    /// The most that these become.
    sectors_most: u32,
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
    /// The checksum of that version.
    checksum: u32,
    /// Bytes of the stream in that version, if it is flushed; it stands twice then.
    acknowledged: u32,
    /// Bytes of the present page that no version has.
    is_page_dirty: bool,
    /// True if pages before the present one are not flushed.
    is_unflushed: bool,
    /// True if the end of the process is to lose nothing.
    goes_through: bool,
    /// True if a version of the present page was written that is not flushed. It is in the sector
    /// that is not `written`.
    is_through: bool,
    /// Bytes of the stream before the present page.
    bytes_before: u64,
    /// Bytes of the whole stream that was found at opening, and what was read of it.
    found: u64,
    read: u64,
    /// True if a sector was read that is of this epoch, whole or not.
    has_begun: bool,
    /// Bytes that are left of the record that is being replayed.
    record_left: u32,
    /// Of the next update to replay; of the first of the record that was written last.
    place: Place,
}

/// What stands at the start of a page.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct PageHeader {
    index: u32,
    version: u32,
    used: u32,
    /// The checksum of the page before.
    previous: u32,
    /// Bytes of the stream that were durable when it was written.
    flushed: u64,
}

/// How a page stands in its sector.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    /// It takes all of it.
    Once,
    /// It stands in each half.
    Twice,
}

impl Journal {
    /// Bytes of memory that the journal's page takes.
    pub(super) fn buffer_bytes(sector_bytes: u32) -> u64 {
        u64::from(sector_bytes)
    }

    /// The sectors of a journal of about as many bytes as `options` say, or of one that suits the
    /// disk; 0 if there is none.
    pub(super) fn sectors_of(options: &PageFileOptions, disk: device::SectorGeometry) -> u32 {
        if !options.durability.has_journal() {
            return 0;
        }
        let usual = (disk.bytes() / 64).min(4 << 20);
        let bytes = options.journal_bytes.unwrap_or(usual);
        let sectors = bytes.div_ceil(u64::from(disk.sector_bytes()));
        u32::try_from(sectors).unwrap_or(u32::MAX).max(SECTORS_LEAST)
    }

    /// The journal of the page file `identity`, where `layout` has it.
    pub(super) fn new(identity: u64, layout: &Layout, mistake: Mistake) -> Self {
        Journal {
            mistake,
            identity,
            first: layout.journal(),
            sectors: layout.journal_sectors,
            sectors_most: layout.journal_most,
            epoch: 0,
            base: 0,
            last: 0,
            page: vec![0; layout.sector_bytes() as usize],
            header: PageHeader::default(),
            written: None,
            checksum: 0,
            acknowledged: 0,
            is_page_dirty: false,
            is_unflushed: false,
            goes_through: false,
            is_through: false,
            bytes_before: 0,
            found: 0,
            read: 0,
            has_begun: false,
            record_left: 0,
            place: Place::default(),
        }
    }

    /// From now on records reach the disk before they return, if they are to.
    pub(super) const fn going_through(mut self, goes_through: bool) -> Self {
        self.goes_through = goes_through;
        self
    }

    /// Begins the epoch after the checkpoint with this sequence, with an empty journal; if it is
    /// the present one, the journal stays.
    pub(super) fn begin(&mut self, epoch: u64) {
        if self.epoch != epoch {
            self.epoch = epoch;
            self.rewind();
            self.found = 0;
        }
    }

    /// Fills the sectors of a journal that is to stand in `sectors` sectors from `first` on: with
    /// what was written of this one, if that `is_kept`, and zeros behind, so that a commit never
    /// has to make room.
    pub(super) fn copy(
        &self,
        disk: &mut dyn Sectors,
        (first, sectors): (Sector, u32),
        is_kept: bool,
        buffer: &mut [u8],
    ) -> Result<()> {
        let written = if is_kept && self.is_begun() { self.last + 1 } else { 0 };
        for sector in 0..sectors {
            let at = |first: Sector| Sector(first.0 + u64::from(sector));
            let into = &mut *buffer;
            if sector < written {
                let first = at(self.first);
                disk.read(&mut [Request { first, offset: 0, into }], Cause::Checkpoint)?;
            } else if sector == written {
                into.fill(0);
            }
            disk.write(at(first), buffer, Cause::Checkpoint)?;
        }
        Ok(())
    }

    /// From now on it stands in `sectors` sectors from `first` on.
    pub(super) fn set_place(&mut self, first: Sector, sectors: u32) {
        (self.first, self.sectors) = (first, sectors);
    }

    /// True if something of this epoch may stand in it.
    pub(super) const fn is_begun(&self) -> bool {
        self.written.is_some() || self.is_through || self.header.index > 0
    }

    /// The sectors of a journal that takes a record of `bytes` bytes.
    pub(super) fn sectors_taking(&self, bytes: u64) -> u32 {
        let sectors = bytes.div_ceil(self.capacity() as u64) + u64::from(SECTORS_BESIDE);
        u32::try_from(sectors).unwrap_or(u32::MAX)
    }

    fn rewind(&mut self) {
        self.base = 0;
        self.last = 0;
        self.header = PageHeader::default();
        self.written = None;
        self.checksum = 0;
        self.acknowledged = 0;
        self.is_page_dirty = false;
        self.is_unflushed = false;
        self.is_through = false;
        self.bytes_before = 0;
        self.read = 0;
        self.record_left = 0;
        self.place = Place::default();
    }

    fn capacity(&self) -> usize {
        Self::bytes_in(self.page.len())
    }

    /// Bytes of the stream in a sector of so many bytes.
    pub(super) const fn bytes_in(sector: usize) -> usize {
        sector - HEADER
    }

    /// Bytes of the stream in a page that stands twice.
    fn capacity_twice(&self) -> usize {
        (self.page.len() / 2).saturating_sub(HEADER)
    }

    /// The longest record that an empty journal takes which is as long as it can be.
    pub(super) fn record_bytes_most(&self) -> u64 {
        u64::from(self.sectors_most.saturating_sub(SECTORS_BESIDE)) * self.capacity() as u64
    }

    /// True if the journal as it is takes a record of `bytes` bytes once it is empty.
    pub(super) fn takes(&self, bytes: u64) -> bool {
        self.sectors_taking(bytes) <= self.sectors
    }

    /// True if a record of `bytes` bytes fits behind what there is.
    pub(super) fn has_room(&self, bytes: u64) -> bool {
        let pages = (u64::from(self.header.used) + bytes).div_ceil(self.capacity() as u64);
        u64::from(self.base) + pages + u64::from(SECTORS_BESIDE) <= u64::from(self.sectors)
    }

    /// Bytes of the stream, and the most that there can be.
    pub(super) fn bytes(&self) -> (u64, u64) {
        let most = u64::from(self.sectors_most) * self.capacity() as u64;
        (self.bytes_before + u64::from(self.header.used), most)
    }

    /// True from an opening that found updates until the checkpoint after their replay.
    pub(super) const fn is_replayed(&self) -> bool {
        self.found > 0
    }

    /// Writes the record of `batch`; pages go to the disk as they get full.
    pub(super) fn append(&mut self, disk: &mut dyn Sectors, batch: &[Update<'_>]) -> Result<()> {
        let record = self.bytes_before + u64::from(self.header.used);
        self.place = Place { record, updates: 0 };
        journal_record::write(batch, &mut |bytes| self.put(disk, bytes))?;
        if self.goes_through { self.write_through(disk) } else { Ok(()) }
    }

    /// Writes what no version of the present page has, without making it durable. What was
    /// acknowledged stays where it is.
    fn write_through(&mut self, disk: &mut dyn Sectors) -> Result<()> {
        if self.is_page_dirty {
            let acknowledged = self.written;
            self.write_page(disk, Form::Once)?;
            self.written = acknowledged;
            self.is_through = true;
        }
        Ok(())
    }

    /// Writes the record of a tree's delta, if there is room; false if there is none.
    pub(super) fn append_delta(&mut self, disk: &mut dyn Sectors, delta: &[u8]) -> Result<bool> {
        let has_room = self.has_room(journal_record::delta_bytes(delta.len()));
        if has_room {
            journal_record::write_delta(delta, &mut |bytes| self.put(disk, bytes))?;
        }
        Ok(has_room)
    }

    fn put(&mut self, disk: &mut dyn Sectors, mut bytes: &[u8]) -> Result<()> {
        while !bytes.is_empty() {
            if self.header.used as usize == self.capacity() {
                self.write_once(disk)?;
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

    /// Writes the present page, which stands once and is not flushed, and goes on behind it.
    fn write_once(&mut self, disk: &mut dyn Sectors) -> Result<()> {
        self.write_page(disk, Form::Once)?;
        self.is_unflushed = true;
        // The other version may be the one that was acknowledged.
        self.next_page(self.last + 1);
        Ok(())
    }

    /// Writes the next version of the present page.
    fn write_page(&mut self, disk: &mut dyn Sectors, form: Form) -> Result<()> {
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
        let PageHeader { index, version, used, previous, flushed } = self.header;
        for number in [index, version, used, previous] {
            to.u32(number);
        }
        to.u64(flushed);
        let half = self.page.len() / 2;
        let sealed = match form {
            Form::Once => &self.page[..],
            Form::Twice => &self.page[..half],
        };
        self.checksum = self.checksum_at(sector, sealed);
        self.page[..checksum::BYTES].copy_from_slice(&self.checksum.to_le_bytes());
        if form == Form::Twice {
            self.page.copy_within(..half, half);
        }
        disk.write(Sector(self.first.0 + u64::from(sector)), &self.page, Cause::Journal)?;
        self.written = Some(sector);
        self.last = self.last.max(sector);
        self.is_page_dirty = false;
        Ok(())
    }

    /// Goes on with an empty page, whose first choice is the sector `base`.
    fn next_page(&mut self, base: u32) {
        self.bytes_before += u64::from(self.header.used);
        self.base = base;
        self.last = base;
        self.header = PageHeader {
            index: self.header.index + 1,
            version: 0,
            used: 0,
            previous: self.checksum,
            flushed: self.header.flushed,
        };
        self.written = None;
        self.is_through = false;
        self.acknowledged = 0;
    }

    /// Ends the present page where it was flushed; what came since goes to the next one.
    fn split_page(&mut self) {
        let (start, end) = (self.acknowledged, self.header.used);
        self.header.used = start;
        // Its other sector holds an older version, if any, which nobody needs.
        self.next_page(self.written.map_or(self.base, |sector| sector + 1));
        let (start, end) = (HEADER + start as usize, HEADER + end as usize);
        self.page.copy_within(start..end, HEADER);
        self.header.used = (end - start) as u32;
    }

    /// Makes the whole stream durable, so that its end stands twice.
    pub(super) fn flush(&mut self, disk: &mut dyn Sectors) -> Result<()> {
        if !self.is_page_dirty && !self.is_unflushed && !self.is_through {
            return Ok(());
        }
        let (used, fits) = (self.header.used as usize, self.capacity_twice());
        let since = used - self.acknowledged as usize;
        // A version that says more than where it would be split may stand there already.
        let can_split = self.acknowledged > 0 && !self.is_through;
        if used > fits && can_split && since <= fits {
            self.split_page();
        } else if used > fits {
            self.write_once(disk)?;
        }
        if self.is_unflushed {
            self.flush_disk(disk)?;
            self.is_unflushed = false;
            self.header.flushed = self.bytes_before;
        }
        self.write_page(disk, Form::Twice)?;
        self.is_through = false;
        self.flush_disk(disk)?;
        self.acknowledged = self.header.used;
        self.header.flushed = self.bytes_before + u64::from(self.acknowledged);
        Ok(())
    }

    fn flush_disk(&self, disk: &mut dyn Sectors) -> Result<()> {
        if self.mistake.is(Canary::AcknowledgedBeforeFlush) {
            return Ok(());
        }
        Ok(disk.flush(Cause::Journal)?)
    }

    /// The checksum of `page` in `sector`: a page that lies elsewhere doesn't have it.
    fn checksum_at(&self, sector: u32, page: &[u8]) -> u32 {
        let address = self.identity ^ ADDRESS ^ u64::from(sector);
        checksum::of(address, &page[checksum::BYTES..])
    }
}

fn stored_checksum(page: &[u8]) -> u32 {
    page.first_chunk().map_or(0, |bytes| u32::from_le_bytes(*bytes))
}

/// Checksums of journal pages are those of an address that no page has.
const ADDRESS: u64 = 1 << 61;
