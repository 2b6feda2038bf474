//! Values too long for a node: pages of their own, written and read in pieces.
//!
//! The bytes stand in data pages, one behind the other. Index pages, each of which leads to the
//! next, name the data pages; an [`OverflowValue`] is the first index page and the value's length.
//!
//! ```text
//! index page                                            data page
//!  0     4      6   7     8      12     16        20     0     4      6   7     8      12
//!  +-----+------+---+-----+------+------+---------+----  +-----+------+---+-----+------+------
//!  |check|names | 0 |kind | next |value |previous | page |check|place | 0 |kind |index |bytes of
//!  |sum  | u16  |   | u8  | u32  |bytes | u32     | u32..|sum  | u16  |   | u8  |page  |the value
//!  +-----+------+---+-----+------+------+---------+----  +-----+------+---+-----+------+------
//! ```
//!
//! Invariants: every page but the last of its kind is full, so where a byte stands follows from
//! the value's length. A data page says which index page names it, and where; an index page says
//! which one leads to it, and how long the value is: so no damaged pointer leads into another
//! value unseen, or in a circle. Nothing here takes memory; two pages are needed at a time.

mod check;

use device::Cause;

use super::{PageCheck, PageFile};
use crate::{Error, LogicalPage, OverflowValue, Result, page_kind};

const COUNT: usize = 4;
const NEXT: usize = 8;
const VALUE_BYTES: usize = 12;
const PREVIOUS: usize = 16;
const NAMES: usize = 20;
/// In a data page: the index page that names it.
const OWNER: usize = 8;
const DATA: usize = 12;

/// No page.
const NONE: u32 = u32::MAX;

struct IndexPageCheck;

impl PageCheck for IndexPageCheck {
    fn check(&self, page: &[u8]) -> core::result::Result<(), &'static str> {
        if !self.is_kind(page) {
            return Err("it does not tell where a long value stands");
        }
        if u32::from(count(page)) > names_most(page.len() as u32) {
            return Err("it counts more pages of a long value than it can name");
        }
        Ok(())
    }

    fn is_kind(&self, page: &[u8]) -> bool {
        page[page_kind::AT] == page_kind::INDEX
    }
}

struct DataPageCheck;

impl PageCheck for DataPageCheck {
    fn check(&self, page: &[u8]) -> core::result::Result<(), &'static str> {
        if self.is_kind(page) { Ok(()) } else { Err("it holds no part of a long value") }
    }

    fn is_kind(&self, page: &[u8]) -> bool {
        page[page_kind::AT] == page_kind::DATA
    }
}

/// In an index page, the pages that it names; in a data page, its place among them.
fn count(page: &[u8]) -> u16 {
    u16::from_le_bytes([page[COUNT], page[COUNT + 1]])
}

fn set_count(page: &mut [u8], count: u16) {
    page[COUNT..COUNT + 2].copy_from_slice(&count.to_le_bytes());
}

fn read(page: &[u8], at: usize) -> u32 {
    u32::from_le_bytes([page[at], page[at + 1], page[at + 2], page[at + 3]])
}

fn write(page: &mut [u8], at: usize, number: u32) {
    page[at..at + 4].copy_from_slice(&number.to_le_bytes());
}

/// Data pages that an index page names at most: at least 27, at most 8187.
fn names_most(page_bytes: u32) -> u32 {
    (page_bytes - NAMES as u32) / 4
}

/// Bytes of a value in a data page.
fn data_most(page_bytes: u32) -> u32 {
    page_bytes - DATA as u32
}

/// Where the name at `place` stands in its index page.
fn name_at(place: u32) -> usize {
    NAMES + place as usize * 4
}

/// A long value that is being written. It does not borrow the page file, so what is written may
/// come out of it; whoever gives the value up must [`abandon`](PageFile::abandon_long) it.
#[derive(Debug)]
#[must_use = "its pages are lost unless it is finished or abandoned"]
pub struct LongWriter {
    value: OverflowValue,
    /// Bytes written so far.
    written: u32,
    /// The index page that takes names.
    index: LogicalPage,
    /// The data page that takes bytes; none before the first.
    data: Option<LogicalPage>,
    /// Why the value is written.
    cause: Cause,
}

impl LongWriter {
    /// Bytes that are still to come.
    #[must_use]
    pub const fn bytes_left(&self) -> u32 {
        self.value.bytes - self.written
    }
}

/// An index page of a value, on the way along the chain.
#[derive(Clone, Copy, Debug)]
struct Link {
    page: LogicalPage,
    previous: u32,
    /// Data pages of the value before those that this page names.
    before: u32,
}

impl PageFile<'_> {
    /// Pages that a long value of `bytes` bytes takes.
    #[must_use]
    pub fn pages_for_long(&self, bytes: u32) -> u32 {
        let data = self.data_pages(bytes);
        data.saturating_add(data.div_ceil(names_most(self.page_bytes())).max(1))
    }

    /// Pages in use before that writing a long value of `bytes` bytes changes at most: those that
    /// name free pages; where pages share sectors, the neighbours of all that it takes; and while
    /// checkpoints are kept by name all of these, for each takes room: its own or that of an image.
    #[must_use]
    pub fn pages_changed_to_write_long(&self, bytes: u32) -> u32 {
        let lists = self.pages_changed_to_free_long(bytes);
        if self.checkpoints.are_kept() {
            return lists.saturating_add(self.pages_for_long(bytes));
        }
        if self.layout.pages_per_sector == 1 {
            return lists;
        }
        let reused = self.free.pages.saturating_add(self.freed.pages);
        lists.saturating_add(self.pages_for_long(bytes).min(reused.saturating_add(1)))
    }

    /// Pages in use before that giving back a long value of `bytes` bytes changes at most: those
    /// that come to name free pages.
    #[must_use]
    pub fn pages_changed_to_free_long(&self, bytes: u32) -> u32 {
        // A page of the free list names a few pages more than an index page does.
        self.pages_for_long(bytes) / names_most(self.page_bytes()) + 2
    }

    fn data_pages(&self, bytes: u32) -> u32 {
        bytes.div_ceil(data_most(self.page_bytes()))
    }

    /// Begins a long value of `bytes` bytes.
    ///
    /// # Errors
    /// No page is free (nothing changed), or the disk failed.
    pub fn start_long(&mut self, bytes: u32, cause: Cause) -> Result<LongWriter> {
        let first = self.begin_index(bytes, NONE, cause)?;
        let value = OverflowValue { first, bytes };
        Ok(LongWriter { value, written: 0, index: first, data: None, cause })
    }

    /// Makes a new index page.
    fn begin_index(&mut self, bytes: u32, previous: u32, cause: Cause) -> Result<LogicalPage> {
        let index = self.allocate(cause)?;
        let page = self.fresh(index)?;
        page[page_kind::AT] = page_kind::INDEX;
        write(page, NEXT, NONE);
        write(page, VALUE_BYTES, bytes);
        write(page, PREVIOUS, previous);
        Ok(index)
    }

    /// Writes the next piece of a long value.
    ///
    /// # Errors
    /// No page is free, the disk failed, or the pieces are longer than the value was said to be.
    /// The value then is to be given up: see [`PageFile::abandon_long`].
    pub fn append_long(
        &mut self,
        writer: &mut LongWriter,
        piece: &[u8],
        cause: Cause,
    ) -> Result<()> {
        if piece.len() as u64 > u64::from(writer.bytes_left()) {
            let (bytes, limit) = (piece.len() as u64, u64::from(writer.bytes_left()));
            return Err(Error::LongValuePieces { bytes, limit });
        }
        let room = data_most(self.page_bytes());
        let mut rest = piece;
        while !rest.is_empty() {
            let begun = writer.written % room;
            let data = match writer.data {
                Some(data) if begun > 0 => data,
                _ => self.begin_data(writer, cause)?,
            };
            let (now, later) = rest.split_at(rest.len().min((room - begun) as usize));
            let at = DATA + begun as usize;
            let page = self.page_mut(data, cause, &DataPageCheck)?;
            page[at..at + now.len()].copy_from_slice(now);
            writer.written += now.len() as u32;
            rest = later;
        }
        Ok(())
    }

    /// Makes the next data page, and another index page before it if the last one is full.
    fn begin_data(&mut self, writer: &mut LongWriter, cause: Cause) -> Result<LogicalPage> {
        let most = names_most(self.page_bytes());
        let page = self.page(writer.index, cause, &IndexPageCheck)?;
        if u32::from(count(page)) >= most {
            let next = self.begin_index(writer.value.bytes, writer.index.0, cause)?;
            write(self.page_mut(writer.index, cause, &IndexPageCheck)?, NEXT, next.0);
            writer.index = next;
        }
        let data = self.allocate(cause)?;
        let page = self.page_mut(writer.index, cause, &IndexPageCheck)?;
        let place = count(page);
        write(page, name_at(u32::from(place)), data.0);
        set_count(page, place + 1);
        let page = self.fresh(data)?;
        page[page_kind::AT] = page_kind::DATA;
        set_count(page, place);
        write(page, OWNER, writer.index.0);
        writer.data = Some(data);
        Ok(data)
    }

    /// Ends a long value, all of whose bytes were written.
    ///
    /// # Errors
    /// Some were not; the value is given up.
    pub fn finish_long(&mut self, writer: LongWriter) -> Result<OverflowValue> {
        if writer.bytes_left() > 0 {
            let (bytes, limit) = (u64::from(writer.written), u64::from(writer.value.bytes));
            self.abandon_long(writer)?;
            return Err(Error::LongValuePieces { bytes, limit });
        }
        Ok(writer.value)
    }

    /// Gives back the pages of a long value that will not be finished.
    ///
    /// # Errors
    /// The disk failed.
    pub fn abandon_long(&mut self, writer: LongWriter) -> Result<()> {
        self.free_chain(writer.value, false, writer.cause)
    }

    /// Writes a long value that stands in memory as a whole. If that fails, its pages are given
    /// back.
    ///
    /// # Errors
    /// No page is free, or the disk failed.
    pub fn write_long(&mut self, value: &[u8], cause: Cause) -> Result<OverflowValue> {
        let limit = u64::from(u32::MAX);
        let Ok(bytes) = u32::try_from(value.len()) else {
            return Err(Error::LongValuePieces { bytes: value.len() as u64, limit });
        };
        let mut writer = self.start_long(bytes, cause)?;
        match self.append_long(&mut writer, value, cause) {
            Ok(()) => self.finish_long(writer),
            Err(error) => {
                // What failed first is told: a disk that failed takes nothing back, either.
                let _ = self.abandon_long(writer);
                Err(error)
            }
        }
    }

    /// Reads a long value from byte `offset` on into `into`, as far as both reach.
    ///
    /// # Errors
    /// A page of it is damaged, or the disk failed.
    pub fn read_long(
        &mut self,
        value: OverflowValue,
        offset: u32,
        into: &mut [u8],
        cause: Cause,
    ) -> Result<()> {
        let wanted = (value.bytes.saturating_sub(offset) as usize).min(into.len());
        let mut rest = &mut into[..wanted];
        let (names, room) = (names_most(self.page_bytes()), data_most(self.page_bytes()));
        let mut offset = offset;
        let mut link = Link { page: value.first, previous: NONE, before: 0 };
        while !rest.is_empty() {
            let number = offset / room;
            while number >= link.before + names {
                link = self.next_link(value, link, cause)?.ok_or(too_short(link.page))?;
            }
            let begun = DATA + (offset % room) as usize;
            let page = self.data_page(value, link, number - link.before, cause)?;
            let length = rest.len().min(page.len() - begun);
            let (now, later) = rest.split_at_mut(length);
            now.copy_from_slice(&page[begun..begun + length]);
            offset += length as u32;
            rest = later;
        }
        Ok(())
    }

    /// Gives back the pages of a long value.
    ///
    /// # Errors
    /// A page of it is damaged, or the disk failed: the pages before are given back, and the value
    /// is broken.
    pub fn free_long(&mut self, value: OverflowValue, cause: Cause) -> Result<()> {
        self.free_chain(value, true, cause)
    }

    /// Gives back an index page after the other, each after what it names. What is not `whole`
    /// names less than its length says.
    fn free_chain(&mut self, value: OverflowValue, whole: bool, cause: Cause) -> Result<()> {
        let mut link = Some(Link { page: value.first, previous: NONE, before: 0 });
        while let Some(now) = link {
            if whole {
                self.index_page(value, now, cause)?;
            }
            link = self.next_link(value, now, cause)?;
            let names = u32::from(count(self.page(now.page, cause, &IndexPageCheck)?));
            for place in 0..names {
                let page = self.page(now.page, cause, &IndexPageCheck)?;
                let data = LogicalPage(read(page, name_at(place)));
                self.free(data, cause)?;
            }
            self.free(now.page, cause)?;
        }
        Ok(())
    }

    /// The index page at `link`, after a look at whether it belongs there.
    fn index_page(&mut self, value: OverflowValue, link: Link, cause: Cause) -> Result<&[u8]> {
        let names = names_most(self.page_bytes());
        let left = self.data_pages(value.bytes).saturating_sub(link.before);
        let page = self.chained_page(value, link, cause)?;
        let is_last = read(page, NEXT) == NONE;
        if u32::from(count(page)) != left.min(names) || is_last != (left <= names) {
            return Err(too_short(link.page));
        }
        Ok(page)
    }

    /// The index page at `link`, of a value that may not be whole.
    fn chained_page(&mut self, value: OverflowValue, link: Link, cause: Cause) -> Result<&[u8]> {
        let page = self.page(link.page, cause, &IndexPageCheck)?;
        let damaged = |what| Err(Error::DamagedPage { page: link.page, what });
        if read(page, VALUE_BYTES) != value.bytes {
            return damaged("it belongs to a long value of another length");
        }
        if read(page, PREVIOUS) != link.previous {
            return damaged("it belongs to another long value");
        }
        Ok(page)
    }

    /// The index page after the one at `link`; `None` after the last.
    fn next_link(
        &mut self,
        value: OverflowValue,
        link: Link,
        cause: Cause,
    ) -> Result<Option<Link>> {
        let names = names_most(self.page_bytes());
        let most = self.data_pages(value.bytes);
        let next = read(self.chained_page(value, link, cause)?, NEXT);
        if next == NONE {
            return Ok(None);
        }
        let before = link.before.saturating_add(names);
        if before >= most {
            let what = "it goes on behind the end of its long value";
            return Err(Error::DamagedPage { page: link.page, what });
        }
        Ok(Some(Link { page: LogicalPage(next), previous: link.page.0, before }))
    }

    /// The data page that the index page at `link` names at `place`.
    fn data_page(
        &mut self,
        value: OverflowValue,
        link: Link,
        place: u32,
        cause: Cause,
    ) -> Result<&[u8]> {
        let index = self.index_page(value, link, cause)?;
        if place >= u32::from(count(index)) {
            return Err(too_short(link.page));
        }
        let named = LogicalPage(read(index, name_at(place)));
        let page = self.page(named, cause, &DataPageCheck)?;
        if read(page, OWNER) != link.page.0 || u32::from(count(page)) != place {
            let what = "it is another part of a long value, or one of another";
            return Err(Error::DamagedPage { page: named, what });
        }
        Ok(page)
    }
}

fn too_short(page: LogicalPage) -> Error {
    let what = "it does not name as many pages as its long value has";
    Error::DamagedPage { page, what }
}

#[cfg(test)]
mod tests;
