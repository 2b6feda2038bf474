//! The bytes of a page of the list, and of the root record.
//!
//! ```text
//!  0          4          8        16     20
//!  +----------+----------+--------+------+-------+-------+- ... -+-------+
//!  | checksum | previous | number | used | entry | entry |       | entry |
//!  | u32      | page u32 | u64    | u32  |       |       |       |       |
//!  +----------+----------+--------+------+-------+-------+- ... -+-------+
//!
//!  entry      | key | value | kind u8 |                                  lengths are fixed
//!             | key | value | key u16 | value u16 | kind u8 |            lengths vary
//! ```
//!
//! Lengths stand behind what they measure, so that a page is read from its newest entry back. A
//! delete has a value of zeros where the length is fixed, and an empty one where it varies. The
//! checksum covers the page's address and all that is in use. `number` counts the pages of the list
//! from 0, so no damage makes the way back run in a circle.
//!
//! Invariant: everything here takes any bytes; what makes no sense is an error, never a panic.

use alloc::vec::Vec;

use device::Page;
use store::{EntryShape, LogicalPage, Width};

use super::NAME;
use super::window::{WINDOW_BYTES_LEAST, WINDOW_BYTES_MOST};
use index::bounds::EntryLimits;
use index::{Result, root_record};

/// Bytes of a page in front of its entries.
pub(super) const HEADER_BYTES: usize = 20;

/// The page before the first one.
const NO_PAGE: u32 = u32::MAX;

const DELETE: u8 = 0;
const PUT: u8 = 1;

/// An entry of the list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Item<'b> {
    pub(super) key: &'b [u8],
    /// `None` if the key is absent from here on.
    pub(super) value: Option<&'b [u8]>,
}

/// How entries of one shape are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Form {
    pub(super) shape: EntryShape,
    entry_bytes_most: usize,
}

impl Form {
    /// The form of entries of `shape` in pages of `page_bytes` bytes; `None` if such a page holds
    /// less than four.
    pub(super) fn new(page_bytes: u32, shape: EntryShape) -> Option<Self> {
        let mut form = Form { shape, entry_bytes_most: 0 };
        // Nor is an entry longer than a quarter of a range's window.
        let bytes = page_bytes.min(WINDOW_BYTES_MOST) as usize;
        form.entry_bytes_most = (bytes / 4).checked_sub(form.trailer_bytes())?;
        let fixed = |width| if let Width::Fixed(bytes) = width { usize::from(bytes) } else { 0 };
        (fixed(shape.key) + fixed(shape.value) <= form.entry_bytes_most).then_some(form)
    }

    /// The most bytes that a key and its value have together.
    pub(super) const fn entry_bytes_most(&self) -> usize {
        self.entry_bytes_most
    }

    pub(super) const fn limits(&self) -> EntryLimits {
        let most = self.entry_bytes_most;
        EntryLimits { shape: self.shape, key: most, entry: most }
    }

    /// Bytes that an entry takes, whose value has `value` bytes.
    pub(super) fn bytes(&self, key: usize, value: Option<usize>) -> usize {
        let value = match self.shape.value {
            Width::Fixed(bytes) => usize::from(bytes),
            Width::Variable => value.unwrap_or(0),
        };
        key + value + self.trailer_bytes()
    }

    fn trailer_bytes(&self) -> usize {
        let length = |width| if matches!(width, Width::Variable) { 2 } else { 0 };
        length(self.shape.key) + length(self.shape.value) + 1
    }

    /// Appends an entry that was checked to `bytes`.
    pub(super) fn append(&self, item: Item<'_>, bytes: &mut Vec<u8>) {
        bytes.extend_from_slice(item.key);
        let start = bytes.len();
        bytes.extend_from_slice(item.value.unwrap_or_default());
        if let Width::Fixed(value) = self.shape.value {
            bytes.resize(start + usize::from(value), 0);
        }
        let value = bytes.len() - start;
        for (width, length) in [(self.shape.key, item.key.len()), (self.shape.value, value)] {
            if width == Width::Variable {
                // An entry is shorter than a quarter of the largest page.
                bytes.extend_from_slice(&(length as u16).to_le_bytes());
            }
        }
        bytes.push(if item.value.is_some() { PUT } else { DELETE });
    }

    /// The last entry in `bytes`, and what stands before it.
    pub(super) fn last<'b>(
        &self,
        bytes: &'b [u8],
    ) -> core::result::Result<(Item<'b>, &'b [u8]), &'static str> {
        const SHORT: &str = "an entry is cut off";
        let (kind, rest) = bytes.split_last().ok_or(SHORT)?;
        let (value, rest) = split_length(self.shape.value, rest).ok_or(SHORT)?;
        let (key, rest) = split_length(self.shape.key, rest).ok_or(SHORT)?;
        let start = rest.len().checked_sub(key + value).ok_or(SHORT)?;
        if key + value > self.entry_bytes_most {
            return Err("an entry is longer than it can be");
        }
        let (before, entry) = rest.split_at(start);
        let (key, value) = entry.split_at(key);
        let value = match *kind {
            PUT => Some(value),
            DELETE => None,
            _ => return Err("an entry is neither a put nor a delete"),
        };
        Ok((Item { key, value }, before))
    }
}

fn split_length(width: Width, bytes: &[u8]) -> Option<(usize, &[u8])> {
    match width {
        Width::Fixed(length) => Some((usize::from(length), bytes)),
        Width::Variable => {
            let (rest, length) = bytes.split_last_chunk()?;
            Some((usize::from(u16::from_le_bytes(*length)), rest))
        }
    }
}

/// Bytes of the smallest window of a range.
pub(super) fn least_window(page_bytes: u32) -> u32 {
    page_bytes.clamp(WINDOW_BYTES_LEAST, WINDOW_BYTES_MOST)
}

/// What stands in front of a page's entries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Header {
    /// The page of the list before this one.
    pub(super) previous: Option<Page>,
    /// How many pages the list has before this one.
    pub(super) number: u64,
    /// Bytes of entries.
    pub(super) used: u32,
}

impl Header {
    pub(super) fn decode(bytes: &[u8; HEADER_BYTES]) -> Self {
        let [_, _, _, _, p0, p1, p2, p3, rest @ ..] = *bytes;
        let [n0, n1, n2, n3, n4, n5, n6, n7, u0, u1, u2, u3] = rest;
        let previous = u32::from_le_bytes([p0, p1, p2, p3]);
        Header {
            previous: (previous != NO_PAGE).then_some(Page(previous)),
            number: u64::from_le_bytes([n0, n1, n2, n3, n4, n5, n6, n7]),
            used: u32::from_le_bytes([u0, u1, u2, u3]),
        }
    }

    /// Writes the header of `page`, whose `content` has its entries already.
    pub(super) fn seal(&self, page: Page, content: &mut [u8]) {
        let previous = self.previous.map_or(NO_PAGE, |page| page.0);
        content[4..8].copy_from_slice(&previous.to_le_bytes());
        content[8..16].copy_from_slice(&self.number.to_le_bytes());
        content[16..20].copy_from_slice(&self.used.to_le_bytes());
        let end = HEADER_BYTES + self.used as usize;
        let checksum = checksum(page, &content[4..end]);
        content[..4].copy_from_slice(&checksum.to_le_bytes());
    }
}

/// The header of `page` and where its entries end in `content`.
///
/// # Errors
/// What is wrong with the page.
pub(super) fn check(
    page: Page,
    content: &[u8],
) -> core::result::Result<(Header, usize), store::Error> {
    let logical = LogicalPage(page.0);
    let damaged = store::Error::DamagedPage { page: logical, what: "it is cut off" };
    let header = Header::decode(content.first_chunk().ok_or(damaged)?);
    let end = HEADER_BYTES.saturating_add(header.used as usize);
    let bytes = content.get(..end).ok_or(damaged)?;
    let found = checksum(page, &bytes[4..]);
    let expected = u32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]);
    if found != expected {
        return Err(store::Error::CorruptPage { page: logical, expected, found });
    }
    Ok((header, end))
}

fn checksum(page: Page, bytes: &[u8]) -> u32 {
    device::checksum(&[b"list", &page.0.to_le_bytes(), bytes])
}

/// What stands in the root record; entries that are in no page yet stand behind it.
///
/// ```text
///  | name and shape | newest page u32 | pages u64 | entries u64 | entries in no page yet |
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Root<'r> {
    pub(super) shape: EntryShape,
    pub(super) newest: Option<Page>,
    /// Pages of the list.
    pub(super) pages: u64,
    /// Entries in them, and in `open`.
    pub(super) entries: u64,
    /// Entries that are in no page yet.
    pub(super) open: &'r [u8],
}

impl<'r> Root<'r> {
    pub(super) fn encode(&self) -> Vec<u8> {
        let mut record = root_record::encode(NAME, self.shape);
        record.reserve_exact(20 + self.open.len());
        let newest = self.newest.map_or(NO_PAGE, |page| page.0);
        record.extend_from_slice(&newest.to_le_bytes());
        record.extend_from_slice(&self.pages.to_le_bytes());
        record.extend_from_slice(&self.entries.to_le_bytes());
        record.extend_from_slice(self.open);
        record
    }

    pub(super) fn decode(record: &'r [u8]) -> Result<Self> {
        let damaged =
            store::Error::NotAnIndex { is_ours: true, what: "its root record is damaged" };
        let (shape, rest) = root_record::decode(record, NAME)?;
        let (newest, rest) = rest.split_first_chunk().ok_or(damaged)?;
        let (pages, rest) = rest.split_first_chunk().ok_or(damaged)?;
        let (entries, open) = rest.split_first_chunk().ok_or(damaged)?;
        let newest = u32::from_le_bytes(*newest);
        let newest = (newest != NO_PAGE).then_some(Page(newest));
        let pages = u64::from_le_bytes(*pages);
        if newest.is_some() != (pages > 0) {
            return Err(damaged.into());
        }
        Ok(Root { shape, newest, pages, entries: u64::from_le_bytes(*entries), open })
    }
}

#[cfg(test)]
mod tests;
