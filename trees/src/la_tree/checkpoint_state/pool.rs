//! The pool's entries in a checkpoint, as fragments that may become part of their chains.

use alloc::vec::Vec;

use device::Page;

use super::super::buffer_pool::{BufferId, Copied, Taken};
use super::super::chunks::Chunked;
use super::super::layout::{
    CHUNK_HEADER, FRAGMENT_HEADER_BYTES, Link, PIECE_HEADER, damaged, open_fragment, seal_fragment,
};
use super::super::table::BufferRecord;
use super::root::pages_in;
use super::{POOL, State, append, read};
use index::Result;

/// The end of the entries in a page of the pool.
const NO_BUFFER: u32 = u32::MAX;

/// The page of the pool that is being filled.
struct Filling<'p> {
    bytes: &'p mut [u8],
    /// Bytes in use.
    at: usize,
    start: usize,
    /// Pages that are written.
    pages: u32,
    /// The list of them.
    list: &'p mut Vec<u8>,
}

/// The buffer whose entries are being read back.
struct Reading {
    number: u32,
    /// Fragments of it so far.
    fragments: u32,
    /// True if they did not fit the pool.
    is_left: bool,
}

impl State<'_, '_> {
    /// Writes the pool's entries, and the list of their pages to `record`.
    pub(in super::super) fn write_pool(&mut self, record: &mut Vec<u8>) -> Result<()> {
        let count_at = record.len();
        record.extend_from_slice(&[0; 4]);
        let mut bytes = core::mem::take(&mut self.buffers.page);
        let start = self.log.content_start() + CHUNK_HEADER as usize;
        let filling = Filling { bytes: &mut bytes, at: start, start, pages: 0, list: record };
        let pages = self.write_pool_pages(filling);
        self.buffers.page = bytes;
        record[count_at..count_at + 4].copy_from_slice(&pages?.to_le_bytes());
        Ok(())
    }

    fn write_pool_pages(&mut self, mut page: Filling<'_>) -> Result<u32> {
        for number in 0..self.buffers.records.len() as u32 {
            let held = self.buffers.pool.held(BufferId(number)).entries;
            let mut before = self.buffers.record(number).newest();
            let mut copied = Copied::default();
            while copied.entries < held {
                let taken = self.fill_piece(&mut page, (number, &mut copied), before)?;
                if copied.entries == held {
                    break;
                }
                if taken.entries == 0 && page.at == page.start {
                    return Err(damaged(Page(0), "an entry does not fit a page"));
                }
                // So a page has at most one fragment of a buffer, and a link leads to another page.
                let end = page.at;
                let at = self.write_pool_page(&mut page)?;
                if taken.entries > 0 {
                    let offset = (end - taken.bytes) as u16;
                    before = Some(Link { page: at, offset, bytes: taken.bytes as u16 });
                }
            }
        }
        if page.at > page.start {
            self.write_pool_page(&mut page)?;
        }
        Ok(page.pages)
    }

    /// Copies entries of a buffer to the page, as a fragment that is to be sealed; returns what was
    /// copied, with the fragment's bytes.
    fn fill_piece(
        &mut self,
        page: &mut Filling<'_>,
        (number, copied): (u32, &mut Copied),
        before: Option<Link>,
    ) -> Result<Taken> {
        let piece = page.bytes.get_mut(page.at..).unwrap_or_default();
        let header = PIECE_HEADER + FRAGMENT_HEADER_BYTES;
        let Some((head, stream)) = piece.split_at_mut_checked(header) else {
            return Ok(Taken { bytes: 0, entries: 0 });
        };
        let taken = self.buffers.pool.copy(BufferId(number), copied, stream);
        let taken = taken.map_err(|what| damaged(Page(0), what))?;
        if taken.entries == 0 {
            return Ok(taken);
        }
        let bytes = FRAGMENT_HEADER_BYTES + taken.bytes;
        head[..4].copy_from_slice(&number.to_le_bytes());
        head[4..PIECE_HEADER].copy_from_slice(&(bytes as u16).to_le_bytes());
        head[PIECE_HEADER + 4..].copy_from_slice(&Link::encode(before));
        page.at += PIECE_HEADER + bytes;
        Ok(Taken { bytes, entries: taken.entries })
    }

    /// Writes the page, and begins the next.
    fn write_pool_page(&mut self, page: &mut Filling<'_>) -> Result<Page> {
        page.bytes[page.at..].fill(0xFF);
        let (records, start) = (&self.buffers.records, page.start);
        let seal = &mut |at, bytes: &mut [u8]| seal_pieces(records, (at, start), bytes);
        let at = append(self.log, (POOL, page.pages), page.bytes, seal)?;
        page.list.extend_from_slice(&at.0.to_le_bytes());
        page.pages += 1;
        page.at = page.start;
        Ok(at)
    }

    /// Takes the entries on the pages of `list` into the pool, as far as it has room for them.
    pub(super) fn read_pool(&mut self, list: &[u8]) -> Result<()> {
        let mut reading = Reading { number: NO_BUFFER, fragments: 0, is_left: false };
        for (chunk, page) in pages_in(list).enumerate() {
            let mut bytes = core::mem::take(&mut self.buffers.page);
            let taken = read(self.log, (POOL, chunk as u32), page, &mut bytes)
                .and_then(|at| self.take_pool_page((page, at), &bytes, &mut reading));
            self.buffers.page = bytes;
            taken?;
        }
        Ok(())
    }

    fn take_pool_page(
        &mut self,
        (page, mut at): (Page, usize),
        bytes: &[u8],
        reading: &mut Reading,
    ) -> Result<()> {
        let cut = "a page of the pool is cut off";
        while let Some((number, length)) = piece_at(bytes, at) {
            let from = at + PIECE_HEADER;
            let end = from + usize::from(length);
            let fragment = bytes.get(from..end).ok_or_else(|| damaged(page, cut))?;
            if number as usize >= self.buffers.records.len() {
                return Err(damaged(page, "the pool has entries of no buffer"));
            }
            let link = Link { page, offset: from as u16, bytes: length };
            self.take_piece((number, link), fragment, reading)?;
            at = end;
        }
        Ok(())
    }

    /// Takes a fragment into the pool; if there is no room, it stays where it is, with all of its
    /// buffer that came before: they become the newest of its chain.
    fn take_piece(
        &mut self,
        (number, link): (u32, Link),
        fragment: &[u8],
        reading: &mut Reading,
    ) -> Result<()> {
        let buffer = BufferId(number);
        let owner = self.buffers.record(number).owner;
        let opened = open_fragment(owner, link, fragment);
        let (_, stream) = opened.map_err(|what| damaged(link.page, what))?;
        if reading.number != number {
            *reading = Reading { number, fragments: 0, is_left: false };
        }
        reading.fragments += 1;
        let mut reader = self.buffers.form.reader(stream);
        while let Some((entry, _)) = reader.next().map_err(|what| damaged(link.page, what))? {
            reading.is_left = reading.is_left || !self.buffers.pool.append(buffer, &entry);
        }
        if !reading.is_left {
            return Ok(());
        }
        self.buffers.pool.clear(buffer);
        let mut record = self.buffers.record(number);
        record.add_fragments(link, core::mem::take(&mut reading.fragments));
        self.buffers.set_record(number, record);
        Ok(())
    }
}

/// The buffer and the length of the fragment at `at`; `None` behind the last.
fn piece_at(bytes: &[u8], at: usize) -> Option<(u32, u16)> {
    let (head, _) = bytes.get(at..)?.split_first_chunk::<PIECE_HEADER>()?;
    let [b0, b1, b2, b3, l0, l1] = *head;
    let number = u32::from_le_bytes([b0, b1, b2, b3]);
    (number != NO_BUFFER).then_some((number, u16::from_le_bytes([l0, l1])))
}

/// Completes the fragments on a page of the pool, from a byte of it on.
fn seal_pieces(records: &Chunked<BufferRecord>, (page, mut at): (Page, usize), bytes: &mut [u8]) {
    while let Some((number, length)) = piece_at(bytes, at) {
        let from = at + PIECE_HEADER;
        at = from + usize::from(length);
        let (Some(record), Some(fragment)) =
            (records.get(number as usize), bytes.get_mut(from..at))
        else {
            return;
        };
        let before = fragment[4..].first_chunk().and_then(|link| Link::decode(*link).ok()?);
        let sealed = seal_fragment(record.owner, (page, from as u16), before, fragment);
        debug_assert!(sealed.is_some(), "its length was kept within a page");
    }
}
