//! Finding the journal again after an opening, and handing out its updates.

use device::{Cause, Request, Sector, Sectors};

use super::{HEADER, Journal, MAGIC, PageHeader, Place, stored_checksum};
use crate::bytes::Reader;
use crate::canary::Canary;
use crate::journal_record::{RECORD_HEADER, UPDATE_HEADER, UpdateHead};
use crate::{Error, Result};

impl Journal {
    /// Finds out how much of the journal of `epoch` there is, and stands at its beginning.
    pub(in super::super) fn scan(&mut self, disk: &mut dyn Sectors, epoch: u64) -> Result<()> {
        self.begin(epoch);
        self.has_begun = false;
        let mut index = 0;
        while self.read_page(disk, index)? {
            self.found += u64::from(self.header.used);
            index += 1;
            self.next_page(self.last + 1);
        }
        self.refuse_gap(disk, index)?;
        self.rewind();
        if self.found > 0 {
            self.read_page(disk, 0)?;
        }
        Ok(())
    }

    /// True if nothing was found, and yet a page of this epoch stands there, or a part of one. What
    /// is torn there next could complete it, so it has to be of another epoch.
    pub(in super::super) const fn is_torn(&self) -> bool {
        self.found == 0 && self.has_begun
    }

    /// True if `page` says that it is of this epoch, whole or not.
    fn is_of_epoch(&self, page: &[u8]) -> bool {
        let mut from = Reader::new(page);
        let said = (from.u32(), from.array(), from.u64());
        said.1 == Some(MAGIC) && said.2 == Some(self.epoch)
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
        self.checksum = stored_checksum(&self.page);
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
        match disk.read(&mut [Request { first, offset: 0, into }], Cause::Recovery) {
            // It may be torn, as one that fails its checksum, and of this epoch.
            Err(device::Error::Uncorrectable { .. }) => {
                self.has_begun = true;
                return Ok(None);
            }
            read => read?,
        }
        let half = self.page.len() / 2;
        let (one, other) = self.page.split_at(half);
        self.has_begun |= [one, other].iter().any(|page| self.is_of_epoch(page));
        for whole in [&self.page[..], one] {
            if let Some(header) = self.decode(sector, whole) {
                return Ok(Some(header));
            }
        }
        let header = self.decode(sector, other);
        if header.is_some() {
            self.page.copy_within(half.., 0);
        }
        Ok(header)
    }

    /// What `page` in `sector` says of itself, if it is whole and of this epoch.
    fn decode(&self, sector: u32, page: &[u8]) -> Option<PageHeader> {
        let mistake = self.mistake;
        let mut from = Reader::new(page);
        let checksum = from.u32()?;
        let is_journal = from.array()? == MAGIC;
        let is_present = from.u64()? == self.epoch || mistake.is(Canary::StaleJournalReplayed);
        if !(is_journal && is_present) {
            return None;
        }
        if checksum != self.checksum_at(sector, page) && !mistake.is(Canary::TornPageAccepted) {
            return None;
        }
        let [index, version, used, previous] = [from.u32()?, from.u32()?, from.u32()?, from.u32()?];
        let flushed = from.u64()?;
        let is_possible = used as usize <= page.len() - HEADER;
        is_possible.then_some(PageHeader { index, version, used, previous, flushed })
    }

    /// Refuses a journal of which more was acknowledged than what was found, the pages before
    /// `index`: a later one says so.
    fn refuse_gap(&mut self, disk: &mut dyn Sectors, index: u32) -> Result<()> {
        for sector in 0..self.sectors {
            match self.read_sector(disk, sector) {
                Ok(Some(header)) if header.flushed > self.found => {
                    return Err(Error::DamagedJournal { page: index });
                }
                Err(error @ Error::Device(device::Error::PowerCut)) => return Err(error),
                // The pages before it were readable, and others tell what this one would.
                Ok(_) | Err(_) => {}
            }
        }
        Ok(())
    }

    /// Goes on at `place`, where a checkpoint inside a batch stands.
    ///
    /// # Errors
    /// The journal does not reach so far, or the device failed.
    pub(in super::super) fn stand_at(
        &mut self,
        disk: &mut dyn Sectors,
        place: Place,
    ) -> Result<()> {
        self.pass(disk, place.record)?;
        if place.updates > 0 && !self.begin_record(disk)? {
            return Err(Error::DamagedJournal { page: self.header.index });
        }
        for _ in 0..place.updates {
            let head = self.update_head(disk)?;
            self.pass(disk, head.key_bytes as u64 + u64::from(head.value_bytes))?;
        }
        Ok(())
    }

    /// Passes over the next `bytes` bytes of the stream.
    fn pass(&mut self, disk: &mut dyn Sectors, mut bytes: u64) -> Result<()> {
        while bytes > 0 {
            let most = usize::try_from(bytes).unwrap_or(usize::MAX);
            bytes -= self.piece(disk, most)?.len() as u64;
        }
        Ok(())
    }

    /// Where the next update stands; or, if none was read, the record that was written last.
    pub(in super::super) const fn place(&self) -> Place {
        self.place
    }

    /// The next update of the journal that was found, whose key is copied to `key`; the value is
    /// to be read by [`Journal::take`]. Only updates of whole records are given out.
    pub(in super::super) fn next_update(
        &mut self,
        disk: &mut dyn Sectors,
        key: &mut [u8],
    ) -> Result<Option<UpdateHead>> {
        while self.record_left == 0 {
            if !self.begin_record(disk)? {
                return Ok(None);
            }
        }
        let is_half = self.left() < u64::from(self.record_left).min(64);
        if is_half && self.mistake.is(Canary::HalfBatchReplayed) {
            return Ok(None);
        }
        let head = self.update_head(disk)?;
        let damaged = Error::DamagedJournal { page: self.header.index };
        let key = key.get_mut(..head.key_bytes).ok_or(damaged)?;
        self.take(disk, key)?;
        Ok(Some(head))
    }

    /// Reads the head of the next record; false if there is no whole one.
    fn begin_record(&mut self, disk: &mut dyn Sectors) -> Result<bool> {
        self.place = Place { record: self.read, updates: 0 };
        if self.left() < RECORD_HEADER as u64 {
            return Ok(false);
        }
        let mut bytes = [0; RECORD_HEADER];
        self.take(disk, &mut bytes)?;
        self.record_left = u32::from_le_bytes(bytes);
        let is_half = self.left() < u64::from(self.record_left);
        if is_half && !self.mistake.is(Canary::HalfBatchReplayed) {
            self.record_left = 0;
            self.read = self.found;
            return Ok(false);
        }
        Ok(true)
    }

    /// Reads the head of the next update of the present record.
    fn update_head(&mut self, disk: &mut dyn Sectors) -> Result<UpdateHead> {
        let damaged = Error::DamagedJournal { page: self.header.index };
        let left = self.record_left.checked_sub(UPDATE_HEADER as u32).ok_or(damaged)?;
        let mut bytes = [0; UPDATE_HEADER];
        self.take(disk, &mut bytes)?;
        let head = UpdateHead::decode(bytes).ok_or(damaged)?;
        let rest = (head.key_bytes as u32).checked_add(head.value_bytes);
        self.record_left = rest.and_then(|rest| left.checked_sub(rest)).ok_or(damaged)?;
        self.place.updates += 1;
        Ok(head)
    }

    /// The page at which it is read.
    pub(in super::super) const fn page_index(&self) -> u32 {
        self.header.index
    }

    /// Bytes that were found and not read yet.
    fn left(&self) -> u64 {
        self.found.saturating_sub(self.read)
    }

    /// Reads the next bytes of the stream.
    ///
    /// # Errors
    /// So many were not found, or the device failed.
    pub(in super::super) fn take(
        &mut self,
        disk: &mut dyn Sectors,
        mut into: &mut [u8],
    ) -> Result<()> {
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
            self.next_page(self.last + 1);
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
