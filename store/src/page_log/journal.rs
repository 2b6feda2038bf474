//! The journal: every batch since the last checkpoint, as a stream of atomic records in pages.
//!
//! ```text
//!  page    0          4        12      16      20
//!          +----------+--------+-------+-------+--------
//!          | checksum | epoch  | index | used  | stream
//!          | u32      | u64    | u32   | u32   |
//!          +----------+--------+-------+-------+--------
//! ```
//!
//! The epoch is the number of the checkpoint before, but for those that left the journal as it was.
//! A page that is written before it is full stays
//! as it is, and the stream goes on in the next one. What is acknowledged ends with a page that
//! stands twice: where its stream is too long for that, one without any follows. Records are those
//! of [`journal_record`](crate::journal_record).

use alloc::vec::Vec;

use device::{Cause, Geometry, Page};

use super::own_pages::{CHECKSUM_BYTES, Form, OwnPages};
use super::record::Epoch;
use super::{PageKind, PageLogOptions};
use crate::bytes::{Reader, Writer};
use crate::canary::Canary;
use crate::journal_record::{self, RECORD_HEADER, UPDATE_HEADER, UpdateHead};
use crate::{Error, Replayed, Result, Update};

/// Bytes between the checksum of a page and the stream.
const BEFORE_STREAM: usize = 16;
const HEADER: usize = CHECKSUM_BYTES + BEFORE_STREAM;

/// What a journal takes at most where nothing is said.
const PAGES_USUAL: u32 = 64;

/// The fewest pages with which a journal works.
pub(super) const PAGES_LEAST: u32 = 4;

/// Bytes of the stream that a page has room for.
fn room(own: &OwnPages<'_>, form: Form) -> usize {
    own.content_bytes(form) - HEADER
}

/// The journal at its end, or, after an opening, where it is read.
#[derive(Debug, Default)]
pub(super) struct Journal {
    pages_most: u32,
    /// The checkpoint from which it began.
    pub(super) epoch: Epoch,
    /// The sequence of its last page, or a later one.
    pub(super) end: u64,
    /// Pages of records that were written since it began.
    records: u32,
    /// Pages that were written since the checkpoint.
    written: u32,
    /// Bytes of the stream in the log's own page that are in no page yet.
    used: usize,
    /// True if pages of the tree, or half of a record, stand behind the checkpoint.
    pub(super) has_rest: bool,
    /// True if a page tells that something came after the checkpoint: `whole_blocks.rs`.
    pub(super) told_rest: bool,
    /// After an opening: the pages to replay, how many of them were read, and how much of the
    /// present one.
    found: Vec<Page>,
    next: usize,
    read: usize,
    /// Bytes of the stream that were found and not read.
    left: u64,
    /// Bytes of the present record that were not read.
    record: u32,
    pub(super) replayed: u64,
    /// Records that were written inside a batch, or in a replay, since the log was opened.
    pub(super) within: u64,
}

impl Journal {
    pub(super) fn new(pages_most: u32) -> Self {
        Journal { pages_most, found: Vec::with_capacity(pages_most as usize), ..Self::default() }
    }

    /// The pages that `options` give a journal on `chip`.
    pub(super) fn pages_for(chip: Geometry, options: &PageLogOptions) -> u32 {
        if !options.has_journal() {
            return 0;
        }
        let usual = (chip.pages() / 16).min(PAGES_USUAL);
        let page = u64::from(chip.page_bytes());
        let wanted = options.journal_bytes.map_or(u64::from(usual), |bytes| bytes.div_ceil(page));
        u32::try_from(wanted).unwrap_or(u32::MAX).clamp(PAGES_LEAST, chip.pages() / 4 + PAGES_LEAST)
    }

    pub(super) fn memory_bytes_most(chip: Geometry, options: &PageLogOptions) -> u64 {
        u64::from(Self::pages_for(chip, options)) * size_of::<Page>() as u64
    }

    pub(super) fn memory_bytes(&self) -> u64 {
        (self.found.capacity() * size_of::<Page>()) as u64
    }

    pub(super) const fn pages_most(&self) -> u32 {
        self.pages_most
    }

    /// Pages that an opening would replay now.
    pub(super) fn pages(&self) -> u32 {
        self.written + u32::from(self.used > 0) + self.found.len() as u32
    }

    /// True while it is replayed.
    pub(super) fn is_replayed(&self) -> bool {
        !self.found.is_empty()
    }

    /// A record of so many pages was written that leaves it as it is. It counts as part of it: so
    /// the log's own pages stay bounded.
    pub(super) fn note_record(&mut self, pages: u32) {
        self.records = self.records.saturating_add(pages);
        self.within += 1;
    }

    /// An empty journal begins.
    pub(super) fn begin(&mut self, epoch: Epoch) {
        self.found.clear();
        let found = core::mem::take(&mut self.found);
        *self = Journal {
            pages_most: self.pages_most,
            found,
            epoch,
            end: epoch.since,
            replayed: self.replayed,
            within: self.within,
            ..Self::default()
        };
    }

    /// True if a record of `bytes` bytes has to wait for a checkpoint.
    pub(super) fn is_full_for(&self, own: &OwnPages<'_>, bytes: u64) -> Result<bool> {
        let room = room(own, Form::Once) as u64;
        let pages = (self.used as u64 + bytes).div_ceil(room);
        // One page is kept for the end of what is acknowledged.
        let most = u64::from(self.pages_most) - 1;
        if bytes.div_ceil(room) > most {
            return Err(Error::LongBatch { bytes, limit: most * room });
        }
        let written = u64::from(self.written) + u64::from(self.records);
        Ok(written + pages > most)
    }

    /// Writes the record of `batch`; pages are programmed as they get full.
    pub(super) fn append_record(
        &mut self,
        own: &mut OwnPages<'_>,
        batch: &[Update<'_>],
    ) -> Result<()> {
        journal_record::write(batch, &mut |bytes| self.append_bytes(own, bytes))
    }

    /// Writes the record of a tree's delta, if there is room; false if there is none.
    pub(super) fn append_delta(&mut self, own: &mut OwnPages<'_>, delta: &[u8]) -> Result<bool> {
        let bytes = journal_record::delta_bytes(delta.len());
        if self.is_full_for(own, bytes)? {
            return Ok(false);
        }
        journal_record::write_delta(delta, &mut |bytes| self.append_bytes(own, bytes))
            .map(|()| true)
    }

    fn append_bytes(&mut self, own: &mut OwnPages<'_>, mut bytes: &[u8]) -> Result<()> {
        while !bytes.is_empty() {
            if self.used == room(own, Form::Once) {
                self.write_page(own, Form::Once)?;
            }
            let into = &mut own.content_mut()[BEFORE_STREAM + self.used..];
            let length = bytes.len().min(into.len());
            let (now, rest) = bytes.split_at(length);
            into[..length].copy_from_slice(now);
            self.used += length;
            bytes = rest;
        }
        Ok(())
    }

    /// Programs what of the stream is in no page yet, so that its end stands twice.
    pub(super) fn sync(&mut self, own: &mut OwnPages<'_>) -> Result<()> {
        if self.used == 0 {
            return Ok(());
        }
        if self.used > room(own, Form::Twice) {
            self.write_page(own, Form::Once)?;
        }
        self.write_page(own, Form::Twice)
    }

    fn write_page(&mut self, own: &mut OwnPages<'_>, form: Form) -> Result<()> {
        let content = own.content_mut();
        content[BEFORE_STREAM + self.used..].fill(0xFF);
        let mut to = Writer::new(content);
        to.u64(self.epoch.id);
        to.u32(self.written);
        to.u32(self.used as u32);
        own.append(PageKind::Journal, form, Cause::Journal)?;
        self.written += 1;
        self.used = 0;
        self.end = own.pages.sequence - 1;
        Ok(())
    }

    /// Takes the pages of the journal of the last checkpoint, in their order, for the replay:
    /// `pages` are all that have the kind.
    pub(super) fn find(&mut self, own: &mut OwnPages<'_>, pages: &[Page]) -> Result<()> {
        self.begin(self.epoch);
        // Whatever stands there now may be part of it.
        self.end = own.pages.sequence;
        for page in pages {
            let index = self.found.len() as u32;
            let Some((found, used)) = self.read_page(own, *page)? else {
                // Torn by a cut, or refused and written again behind.
                continue;
            };
            if found + 1 == index {
                // A program that was refused may have left all of it, and it came again.
                continue;
            }
            let is_too_long = index == self.pages_most;
            if found != index || is_too_long {
                return Err(Error::DamagedJournal { page: index });
            }
            self.found.push(*page);
            self.left += used as u64;
        }
        Ok(())
    }

    /// Reads a page of this epoch's journal: its index, and bytes of the stream in it.
    fn read_page(&self, own: &mut OwnPages<'_>, page: Page) -> Result<Option<(u32, usize)>> {
        let taken = own.pages.mistake.is(Canary::TornPageAccepted).then_some(Form::Once);
        let Some(form) = own.read(page, Cause::Recovery)?.or(taken) else {
            return Ok(None);
        };
        let mut from = Reader::new(own.content());
        let (Some(epoch), Some(index), Some(used)) = (from.u64(), from.u32(), from.u32()) else {
            return Ok(None);
        };
        let used = used as usize;
        let is_present =
            epoch == self.epoch.id || own.pages.mistake.is(Canary::StaleJournalReplayed);
        let is_whole = is_present && used <= room(own, form);
        Ok(is_whole.then_some((index, used)))
    }

    /// The next update to replay; only those of whole records are.
    pub(super) fn next_replayed<'b>(
        &mut self,
        own: &mut OwnPages<'_>,
        buffer: &'b mut [u8],
    ) -> Result<Option<Replayed<'b>>> {
        let damaged = Error::DamagedJournal { page: self.next as u32 };
        while self.record == 0 {
            let mut head = [0; RECORD_HEADER];
            if self.left < RECORD_HEADER as u64 {
                return Ok(None);
            }
            self.take_bytes(own, &mut head)?;
            self.record = u32::from_le_bytes(head);
            let is_half = self.left < u64::from(self.record);
            if is_half && !own.pages.mistake.is(Canary::HalfBatchReplayed) {
                // Half a record: its batch was never acknowledged.
                self.left = 0;
                self.record = 0;
                return Ok(None);
            }
        }
        let is_half = self.left < u64::from(self.record).min(64);
        if is_half && own.pages.mistake.is(Canary::HalfBatchReplayed) {
            return Ok(None);
        }
        let mut head = [0; UPDATE_HEADER];
        if (self.record as usize) < UPDATE_HEADER {
            return Err(damaged);
        }
        self.take_bytes(own, &mut head)?;
        let head = UpdateHead::decode(head).ok_or(damaged)?;
        let all = (UPDATE_HEADER + head.key_bytes) as u64 + u64::from(head.value_bytes);
        let left = u64::from(self.record).checked_sub(all).ok_or(damaged)?;
        self.record = left as u32;
        let bytes = head.key_bytes + head.value_bytes as usize;
        let buffer = buffer.get_mut(..bytes).ok_or(damaged)?;
        self.take_bytes(own, buffer)?;
        self.replayed += 1;
        let (key, value) = buffer.split_at(head.key_bytes);
        Ok(Some(head.kind.replayed(key, value)))
    }

    /// Reads the page of the journal again that is replayed, after the log's own page was used.
    pub(super) fn read_again(&mut self, own: &mut OwnPages<'_>) -> Result<()> {
        let damaged = Error::DamagedJournal { page: self.next as u32 };
        let Some(place) = self.next.checked_sub(1) else {
            return Ok(());
        };
        let page = *self.found.get(place).ok_or(damaged)?;
        self.read_page(own, page)?.ok_or(damaged).map(drop)
    }

    /// Reads the next bytes of the stream.
    ///
    /// The tree may have used the log between two updates, but not its own page, for nothing is
    /// recorded while a journal is replayed.
    fn take_bytes(&mut self, own: &mut OwnPages<'_>, mut into: &mut [u8]) -> Result<()> {
        let damaged = Error::DamagedJournal { page: self.next as u32 };
        self.left = self.left.checked_sub(into.len() as u64).ok_or(damaged)?;
        while !into.is_empty() {
            if self.read == self.used {
                let page = *self.found.get(self.next).ok_or(damaged)?;
                let (_, used) = self.read_page(own, page)?.ok_or(damaged)?;
                self.next += 1;
                (self.used, self.read) = (used, 0);
                continue;
            }
            let from = &own.content()[BEFORE_STREAM + self.read..];
            let length = into.len().min(self.used - self.read);
            let (now, rest) = into.split_at_mut(length);
            now.copy_from_slice(&from[..length]);
            self.read += length;
            into = rest;
        }
        Ok(())
    }
}
