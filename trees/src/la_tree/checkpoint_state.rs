//! The tree's state on flash: tables in chunks of a page, the pool's entries, and the root record.
//!
//! ```text
//!  root record   what all begin with | node bytes u32 | K u8
//!                | root u32 | height u8 | entries u64 | nodes of each level u32, leaves first
//!                | next owner u32
//!                | generation: first sequence u64, first owner u32, stage u8, next u32
//!                | twice, for nodes without and with buffers: numbers u32, page of each chunk u32
//!                | pages of the pool: count u32, each u32
//!                | on a disk: nodes u64, bytes of the longest long value u32
//!
//!  page          0          4          8
//!                +----------+----------+--------------------------------------
//!                | checksum | kind and | nodes without buffers: places u32
//!                | u32      | chunk u32| nodes with: place u32 and record each
//!                |          |          | pool: buffer u32, bytes u16, fragment
//!                +----------+----------+--------------------------------------
//! ```
//!
//! Numbers are little-endian. The checksum covers the page's address and the rest of the content.
//! Only chunks that changed since they were written, or that stand in old pages, are written again;
//! on a disk all are.
//! The pool's entries are written as fragments that no chain has yet: an opening takes them back
//! into the pool, so that a checkpoint does not make buffers more fragmented. Where the pool is
//! smaller than it was, they stay where they are, as the newest of their chains: with less memory
//! nothing has to be written to open the tree.

use alloc::vec::Vec;
use core::ops::Range;

use device::{Cause, Page};
use store::PageKind;

use super::buffers::{Buffers, Chain};
use super::layout::{CHUNK_HEADER, Place, damaged};
use super::nodes::Nodes;
use super::storage::Storage;
use super::table::{BufferRecord, NodeTable, Table};
use index::{Error, Result};

mod pool;
mod root;

pub(super) use root::{Choices, Head, Root, damaged_root, describe, pages_in};

const PLAIN: u8 = 2;
const BUFFERED: u8 = 3;
const POOL: u8 = 4;

/// What is stored of a number: where its node stands, and the record of its buffer.
struct Stored {
    number: u32,
    place: u32,
    record: Option<BufferRecord>,
}

/// What of a tree is written at a checkpoint.
pub(super) struct State<'s, 'd> {
    pub(super) log: &'s mut Storage<'d>,
    pub(super) nodes: &'s mut Nodes,
    pub(super) buffers: &'s mut Buffers,
}

impl State<'_, '_> {
    fn table(&mut self, kind: u8) -> &mut Table {
        if kind == PLAIN { &mut self.nodes.plain } else { &mut self.nodes.buffered }
    }

    /// Writes the nodes that are only in memory, and the chunks of tables that changed.
    pub(super) fn write_tables(&mut self) -> Result<()> {
        self.nodes.write_all(self.log, Cause::Checkpoint)?;
        if let Some(disk) = self.log.disk_mut() {
            disk.begin_state()?;
            self.nodes.buffered.chunks.fill(None);
        }
        self.nodes.forget_old_chunks(self.log);
        self.write_table(PLAIN)?;
        self.write_table(BUFFERED)
    }

    fn write_table(&mut self, kind: u8) -> Result<()> {
        let chunks = self.table(kind).chunks_in_use();
        for chunk in 0..chunks {
            let (known, range) = (self.table(kind).page_of(chunk), self.table(kind).range(chunk));
            let is_dirty = |number: u32| kind == BUFFERED && self.buffers.record(number).is_dirty();
            if known.is_some() && !range.clone().any(is_dirty) {
                continue;
            }
            let page = self.write_chunk((kind, chunk), range.clone())?;
            self.table(kind).stored(chunk, page);
            for number in range.filter(|_| kind == BUFFERED) {
                if let Some(record) = self.buffers.record_mut(number) {
                    record.set_dirty(false);
                }
            }
        }
        Ok(())
    }

    fn write_chunk(&mut self, chunk: (u8, u32), range: Range<u32>) -> Result<Page> {
        let mut bytes = core::mem::take(&mut self.buffers.page);
        bytes.fill(0xFF);
        let mut at = self.log.content_start() + CHUNK_HEADER as usize;
        let mut encoded = Vec::with_capacity(4 + BufferRecord::BYTES);
        for number in range {
            encoded.clear();
            let stored = self.table(chunk.0).numbers.stored(number);
            encoded.extend_from_slice(&stored.to_le_bytes());
            if chunk.0 == BUFFERED {
                self.buffers.record(number).encode(&mut encoded);
            }
            bytes[at..at + encoded.len()].copy_from_slice(&encoded);
            at += encoded.len();
        }
        let page = append(self.log, chunk, &mut bytes, &mut |_, _| {});
        self.buffers.page = bytes;
        page
    }

    /// Hands what is stored of each of the first `numbers` numbers of a table to `each`, as far as
    /// the chunk in `page` has them.
    fn read_chunk(
        &mut self,
        (kind, chunk): (u8, u32),
        (page, numbers): (Page, u32),
        each: &mut dyn FnMut(&mut Self, &Stored) -> Result<()>,
    ) -> Result<()> {
        let each_chunk = self.table(kind).chunk_numbers;
        let first = chunk.saturating_mul(each_chunk);
        let mut bytes = core::mem::take(&mut self.buffers.page);
        let taken = read(self.log, (kind, chunk), page, &mut bytes).and_then(|at| {
            let mut rest = &bytes[at..];
            for number in first..first.saturating_add(each_chunk).min(numbers) {
                let cut = damaged(page, "the node table is cut off");
                let (stored, behind) = rest.split_first_chunk().ok_or(cut)?;
                rest = behind;
                let mut record = None;
                if kind == BUFFERED {
                    let read = BufferRecord::decode(rest).map_err(|what| damaged(page, what))?;
                    (record, rest) = (Some(read.0), read.1);
                }
                each(self, &Stored { number, place: u32::from_le_bytes(*stored), record })?;
            }
            Ok(())
        });
        self.buffers.page = bytes;
        taken
    }

    /// Becomes what the root record `root` names.
    pub(super) fn read(&mut self, root: &Root<'_>) -> Result<()> {
        for (kind, (numbers, list)) in [(PLAIN, root.plain), (BUFFERED, root.buffered)] {
            let table = NodeTable::with_numbers(numbers).map_err(|_| damaged_root())?;
            self.table(kind).numbers = table;
            for (chunk, page) in (0..).zip(pages_in(list)) {
                self.table(kind).stored(chunk, page);
                let take =
                    &mut |state: &mut Self, stored: &Stored| state.take((page, kind), stored);
                self.read_chunk((kind, chunk), (page, numbers), take)?;
            }
            self.table(kind).numbers.release_unwritten();
        }
        self.read_pool(root.pool)
    }

    fn take(&mut self, (page, kind): (Page, u8), stored: &Stored) -> Result<()> {
        let (shape, pages, number) = (self.nodes.pages, self.log.pages(), stored.number);
        let is_place = |place| shape.is_place(place, pages);
        let filled = self.table(kind).numbers.fill(number, stored.place, is_place);
        filled.map_err(|what| damaged(page, what))?;
        let Some(record) = stored.record else {
            return Ok(());
        };
        if u64::from(record.fragments()) > shape.fragments(pages) {
            return Err(damaged(page, "a buffer has more fragments than find room"));
        }
        self.buffers.set_record(number, record);
        if let Some(record) = self.buffers.record_mut(number) {
            record.set_dirty(false);
        }
        Ok(())
    }

    /// On a disk, counts the fragments of each page.
    pub(super) fn hold_chains(&mut self) -> Result<()> {
        for number in 0..self.buffers.records.len() as u32 {
            if !self.log.is_disk() {
                break;
            }
            let record = self.buffers.record(number);
            match self.buffers.hold_chain(self.log, &record, Cause::Recovery) {
                // What is behind damage can't be reached. Whoever reads the buffer is told.
                Err(Error::Store(damage)) if damage.is_damage() => {}
                held => held?,
            }
        }
        Ok(())
    }

    /// Pins every page that the root record `root` reaches.
    pub(super) fn pin(&mut self, root: &Root<'_>) -> Result<()> {
        pages_in(root.pool).for_each(|page| self.log.pin(page));
        for (kind, (numbers, list)) in [(PLAIN, root.plain), (BUFFERED, root.buffered)] {
            for (chunk, page) in (0..).zip(pages_in(list)) {
                self.log.pin(page);
                let pin = &mut |state: &mut Self, stored: &Stored| state.pin_stored(stored);
                self.read_chunk((kind, chunk), (page, numbers), pin)?;
            }
        }
        Ok(())
    }

    fn pin_stored(&mut self, stored: &Stored) -> Result<()> {
        let (shape, place) = (self.nodes.pages, Place(stored.place));
        if place < Place(Place::MOST) && shape.is_place(place, self.log.pages()) {
            self.log.pin(shape.locate(place).0);
        }
        let Some(mut chain) = stored.record.as_ref().map(Chain::of) else {
            return Ok(());
        };
        while let Some(link) = chain.newest() {
            self.log.pin(link.page);
            self.buffers.next_fragment(self.log, &mut chain, Cause::Checkpoint)?;
        }
        Ok(())
    }
}

/// Programs `bytes` as the page of a chunk; `seal` completes it for a page.
fn append(
    log: &mut Storage<'_>,
    (kind, chunk): (u8, u32),
    bytes: &mut [u8],
    seal: &mut dyn FnMut(Page, &mut [u8]),
) -> Result<Page> {
    let start = log.content_start();
    let mark = chunk << 8 | u32::from(kind);
    bytes[start + 4..start + 8].copy_from_slice(&mark.to_le_bytes());
    let mut next = Vec::with_capacity(1);
    loop {
        log.reserve(1, &mut next, Cause::Checkpoint)?;
        let page = next[0];
        seal(page, bytes);
        let checksum = device::checksum(&[&page.0.to_le_bytes(), &bytes[start + 4..]]);
        bytes[start..start + 4].copy_from_slice(&checksum.to_le_bytes());
        match log.program(page, bytes, PageKind::Tree(kind), Cause::Checkpoint) {
            Err(error) if error.is_refusal() => {}
            programmed => return Ok(programmed.map(|()| page)?),
        }
    }
}

/// Reads the page of a chunk into `bytes`; returns where what it holds begins.
fn read(
    log: &mut Storage<'_>,
    (kind, chunk): (u8, u32),
    page: Page,
    bytes: &mut [u8],
) -> Result<usize> {
    let start = log.content_start();
    log.read(page, 0, &mut bytes[start..], Cause::Recovery)?;
    let mark = (chunk << 8 | u32::from(kind)).to_le_bytes();
    let checksum = device::checksum(&[&page.0.to_le_bytes(), &bytes[start + 4..]]);
    if bytes[start..start + 4] != checksum.to_le_bytes() || bytes[start + 4..start + 8] != mark {
        return Err(damaged(page, "a page of the tree's tables has another checksum, or mark"));
    }
    Ok(start + CHUNK_HEADER as usize)
}

#[cfg(test)]
mod tests;
