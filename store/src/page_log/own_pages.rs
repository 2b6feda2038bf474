//! Pages of the log's own, with the journal and the records of checkpoints, one of them in memory.
//!
//! What is acknowledged ends with a page that stands twice: a tag and content in its first half,
//! and both again in the other. No damage to one half hides it, and so nothing before it.

use alloc::vec;
use alloc::vec::Vec;
use core::ops::Range;

use device::{Cause, Geometry, Page};

use super::pages::Pages;
use super::stream::{Stream, StreamOf};
use super::tag::{self, PageKind, Place};
use crate::Result;

/// Bytes of the checksum in front of the content of each page.
pub(super) const CHECKSUM_BYTES: usize = 4;

/// How a page of the log's own stands on the chip.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    /// Its content is as long as the page.
    Once,
    /// Its tag and its content stand in each half.
    Twice,
}

/// Bytes of the content of a page that stands twice.
pub(super) const fn content_bytes_twice(chip: Geometry) -> usize {
    chip.page_bytes() as usize / 2 - tag::BYTES
}

/// Writes the checksum of the content of `page` into its first bytes.
fn seal(page: Page, content: &mut [u8]) {
    if let Some((head, rest)) = content.split_first_chunk_mut::<CHECKSUM_BYTES>() {
        *head = device::checksum(&[&page.0.to_le_bytes(), rest]).to_le_bytes();
    }
}

/// True if the first bytes of the content of `page` are its checksum.
fn is_sealed(page: Page, content: &[u8]) -> bool {
    content.split_first_chunk::<CHECKSUM_BYTES>().is_some_and(|(head, rest)| {
        u32::from_le_bytes(*head) == device::checksum(&[&page.0.to_le_bytes(), rest])
    })
}

/// The pages of the log's own, over those of the chip.
pub(super) struct OwnPages<'d> {
    pub(super) pages: Pages<'d>,
    pub(super) stream: Stream,
    /// The one page in memory: the last that was read, or the next to be written.
    bytes: Vec<u8>,
}

impl<'d> OwnPages<'d> {
    pub(super) fn new(pages: Pages<'d>) -> Self {
        let bytes = vec![0xFF; pages.geometry.page_bytes() as usize];
        OwnPages { pages, stream: Stream::new(StreamOf::Own), bytes }
    }

    pub(super) fn memory_bytes(&self) -> u64 {
        self.bytes.len() as u64
    }

    /// Bytes of the content of a page that stands so.
    pub(super) fn content_bytes(&self, form: Form) -> usize {
        match form {
            Form::Once => self.pages.content_bytes(),
            Form::Twice => content_bytes_twice(self.pages.geometry),
        }
    }

    /// The content of the page in memory, behind its checksum.
    pub(super) fn content(&self) -> &[u8] {
        &self.bytes[self.pages.content_start() + CHECKSUM_BYTES..]
    }

    /// As [`OwnPages::content`].
    pub(super) fn content_mut(&mut self) -> &mut [u8] {
        let start = self.pages.content_start() + CHECKSUM_BYTES;
        &mut self.bytes[start..]
    }

    /// Seals the content of the page in memory and programs it; where the chip refuses, elsewhere.
    pub(super) fn append(&mut self, kind: PageKind, form: Form, cause: Cause) -> Result<Page> {
        let start = self.pages.content_start();
        let content = start..start + self.content_bytes(form);
        let (pages, bytes) = (&mut self.pages, &mut self.bytes);
        let mut next = Vec::new();
        loop {
            pages.reserve(&mut self.stream, (1, 0), &mut next, cause)?;
            let page = next[0];
            seal(page, &mut bytes[content.clone()]);
            if form == Form::Twice {
                let half = bytes.len() / 2;
                let tag = pages.next_tag(page, kind, Place::Middle)?;
                bytes[half..half + tag::BYTES].copy_from_slice(&tag);
                bytes.copy_within(content.clone(), half + tag::BYTES);
            }
            match pages.program(&mut self.stream, page, bytes, (kind, cause)) {
                Err(error) if error.is_refusal() => {}
                programmed => return programmed.map(|()| page),
            }
        }
    }

    /// Programs a page that says nothing, and leaves the one in memory as it is.
    pub(super) fn append_blank(&mut self, cause: Cause) -> Result<Page> {
        let blank = vec![0xFF; self.bytes.len()];
        let present = core::mem::replace(&mut self.bytes, blank);
        let appended = self.append(PageKind::Piece, Form::Twice, cause);
        self.bytes = present;
        appended
    }

    /// Reads `page` into memory, and tells how it stands there; `None` if no content is sealed.
    pub(super) fn read(&mut self, page: Page, cause: Cause) -> Result<Option<Form>> {
        let (start, end) = (self.pages.content_start(), self.bytes.len());
        let other = end / 2 + tag::BYTES;
        let length = self.content_bytes(Form::Twice);
        let is_read = self.read_part(page, 0..end, cause)?;
        if is_read && is_sealed(page, &self.bytes[start..]) {
            return Ok(Some(Form::Once));
        }
        for copy in [start..start + length, other..other + length] {
            // What the chip could not correct may be the other copy only.
            let is_read = is_read || self.read_part(page, copy.clone(), cause)?;
            if is_read && is_sealed(page, &self.bytes[copy.clone()]) {
                self.bytes.copy_within(copy, start);
                return Ok(Some(Form::Twice));
            }
        }
        Ok(None)
    }

    fn read_part(&mut self, page: Page, bytes: Range<usize>, cause: Cause) -> Result<bool> {
        let into = &mut self.bytes[bytes.clone()];
        self.pages.read_part(page, bytes.start, into, cause)
    }
}
