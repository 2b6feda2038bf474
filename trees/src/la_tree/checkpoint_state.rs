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

use device::{Cause, Page};
use store::PageKind;

use super::buffers::Chain;
use super::compaction::Compaction;
use super::ground::Ground;
use super::layout::Place;
use super::nodes::damaged;
use super::plan::{CHUNK_HEADER, Choices};
use super::reclaim::Stage;
use super::table::{BufferRecord, NodeTable};
use super::{LaTree, NAME};
use index::{Error, Result, root_record};

mod pool;
mod root;

pub(super) use pool::PIECE_BYTES;
pub(super) use root::describe;
use root::{FORMAT, damaged_root, decode, pages_in};

/// Bytes of a root record beside the pages it names and the nodes of each level, at most.
pub(super) const ROOT_BYTES: u64 = 152;

const PLAIN: u8 = 2;
const BUFFERED: u8 = 3;
const POOL: u8 = 4;

impl LaTree<'_> {
    /// The choices that are stored with the tree.
    const fn choices(&self) -> Choices {
        Choices {
            node_bytes: self.plan.pages.node_bytes(),
            levels_a_buffer: self.bare.levels_a_buffer,
        }
    }

    /// Pages of the chunks of both tables.
    pub(super) fn chunk_pages(&self) -> u64 {
        (self.bare.nodes.plain.chunks.len() + self.bare.nodes.buffered.chunks.len()) as u64
    }

    /// Writes all that is only in memory; returns the root record.
    pub(super) fn write_state(&mut self) -> Result<Vec<u8>> {
        self.is_poisoned = true;
        let stands = self.bare.log.is_disk() && !self.is_open;
        if !stands {
            self.reclaim_if_it_fits()?;
            self.bare.nodes.write_all(&mut self.bare.log, Cause::Checkpoint)?;
            if let Some(disk) = self.bare.log.disk_mut() {
                disk.begin_state()?;
                self.bare.nodes.buffered.chunks.fill(None);
            }
            self.forget_old_chunks();
            self.write_chunks(PLAIN)?;
            self.write_chunks(BUFFERED)?;
        }
        let mut record = root_record::encode(NAME, self.plan.shape);
        // Growing, it would be in memory twice.
        let lists = 4 * (self.chunk_pages() + self.pool_pages() + 4);
        record.reserve_exact((ROOT_BYTES + 4 * u64::from(self.bare.height) + lists) as usize);
        self.encode_head(&mut record);
        for table in [&self.bare.nodes.plain, &self.bare.nodes.buffered] {
            let numbers = table.numbers.high_water();
            record.extend_from_slice(&numbers.to_le_bytes());
            for chunk in 0..numbers.div_ceil(table.chunk_numbers.max(1)) as usize {
                let page = table.chunks.get(chunk).copied().flatten().unwrap_or(Page(u32::MAX));
                record.extend_from_slice(&page.0.to_le_bytes());
            }
        }
        match stands {
            true => {
                // They stand behind those of the chunks.
                let state = self.bare.log.disk().map_or(&[][..], |disk| disk.state.as_slice());
                let pool = state.get(self.chunk_pages() as usize..).unwrap_or_default();
                record.extend_from_slice(&(pool.len() as u32).to_le_bytes());
                pool.iter().for_each(|page| record.extend_from_slice(&page.0.to_le_bytes()));
            }
            false => self.write_pool(&mut record)?,
        }
        if let Some(disk) = self.bare.log.disk() {
            disk.encode_tail(&mut record);
        }
        self.generation.is_waiting = false;
        self.is_open = false;
        self.begin_room();
        self.is_poisoned = false;
        Ok(record)
    }

    fn encode_head(&self, record: &mut Vec<u8>) {
        let choices = self.choices();
        record.extend_from_slice(&choices.node_bytes.to_le_bytes());
        record.push(choices.levels_a_buffer | FORMAT << 4);
        record.extend_from_slice(&self.bare.root.0.to_le_bytes());
        record.push(self.bare.height);
        record.extend_from_slice(&self.bare.entries.to_le_bytes());
        for nodes in self.bare.levels.iter().take(self.bare.height.into()) {
            record.extend_from_slice(&nodes.to_le_bytes());
        }
        record.extend_from_slice(&self.buffers.next_owner.to_le_bytes());
        record.extend_from_slice(&self.generation.first.to_le_bytes());
        record.extend_from_slice(&self.generation.first_owner.to_le_bytes());
        let (stage, next) = match self.generation.stage {
            None => (0, 0),
            Some(Stage::InnerBuffers(next)) => (1, next),
            Some(Stage::LeafBuffers(next)) => (2, next),
            Some(Stage::Plain(next)) => (3, next),
            Some(Stage::Buffered(next)) => (4, next),
        };
        record.push(stage);
        record.extend_from_slice(&u32::to_le_bytes(next));
    }

    /// Writes the chunks of a table that changed.
    fn write_chunks(&mut self, kind: u8) -> Result<()> {
        let table = if kind == PLAIN { &self.bare.nodes.plain } else { &self.bare.nodes.buffered };
        let (numbers, each) = (table.numbers.high_water(), table.chunk_numbers.max(1));
        for chunk in 0..numbers.div_ceil(each) {
            let table =
                if kind == PLAIN { &self.bare.nodes.plain } else { &self.bare.nodes.buffered };
            let range = chunk * each..numbers.min((chunk + 1) * each);
            let is_dirty = |number: u32| kind == BUFFERED && self.buffers.record(number).is_dirty();
            let known = table.chunks.get(chunk as usize).copied().flatten();
            if known.is_some() && !range.clone().any(is_dirty) {
                continue;
            }
            let mut bytes = core::mem::take(&mut self.buffers.page);
            let page = self.write_chunk((kind, chunk), range.clone(), &mut bytes);
            self.buffers.page = bytes;
            let page = page?;
            let table = if kind == PLAIN {
                &mut self.bare.nodes.plain
            } else {
                &mut self.bare.nodes.buffered
            };
            // It may never have been marked, if all of it was there before an opening.
            table.changed(range.start);
            if let Some(place) = table.chunks.get_mut(chunk as usize) {
                *place = Some(page);
            }
            for number in range.filter(|_| kind == BUFFERED) {
                if let Some(record) = self.buffers.record_mut(number) {
                    record.set_dirty(false);
                }
            }
        }
        Ok(())
    }

    fn write_chunk(
        &mut self,
        chunk: (u8, u32),
        range: core::ops::Range<u32>,
        bytes: &mut [u8],
    ) -> Result<Page> {
        bytes.fill(0xFF);
        let mut at = self.bare.log.content_start() + CHUNK_HEADER as usize;
        let mut encoded = Vec::with_capacity(BufferRecord::BYTES);
        for number in range {
            encoded.clear();
            let table =
                if chunk.0 == PLAIN { &self.bare.nodes.plain } else { &self.bare.nodes.buffered };
            encoded.extend_from_slice(&table.numbers.stored(number).to_le_bytes());
            if chunk.0 == BUFFERED {
                self.buffers.record(number).encode(&mut encoded);
            }
            bytes[at..at + encoded.len()].copy_from_slice(&encoded);
            at += encoded.len();
        }
        append(&mut self.bare.log, chunk, bytes, &mut |_, _| {})
    }

    /// Becomes the tree that `record` describes.
    pub(super) fn read_state(&mut self, record: &[u8]) -> Result<()> {
        let root = decode(record, self.plan.chunks)?;
        if root.choices != self.choices() || root.shape != self.plan.shape {
            return Err(damaged_root());
        }
        self.is_poisoned = true;
        self.lean.forget();
        self.bare.nodes.forget();
        self.buffers.forget();
        self.lend_for_numbers(root.plain.0, root.buffered.0)?;
        let numbers = |count| NodeTable::with_numbers(count).map_err(|_| damaged_root());
        self.bare.nodes.plain.numbers = numbers(root.plain.0)?;
        self.bare.nodes.buffered.numbers = numbers(root.buffered.0)?;
        for (kind, list) in [(PLAIN, root.plain.1), (BUFFERED, root.buffered.1)] {
            for (chunk, page) in pages_in(list).enumerate() {
                self.read_chunk((kind, chunk as u32), page)?;
            }
        }
        self.bare.nodes.plain.numbers.release_unwritten();
        self.bare.nodes.buffered.numbers.release_unwritten();
        self.read_pool(root.pool)?;
        self.bare.entries = root.entries;
        self.bare.levels = root.levels;
        self.forget_room();
        self.room.compaction = Compaction::default();
        let lists = [root.plain.1, root.buffered.1, root.pool];
        let (known, pages) =
            ((root.entries, self.bare.leaves()), lists.into_iter().flat_map(pages_in));
        let is_possible = match self.bare.log.disk_mut() {
            Some(disk) => disk.take_state(root.tail, known, pages),
            None => root.tail.is_empty(),
        };
        if !is_possible {
            return Err(damaged_root());
        }
        self.hold_chains()?;
        if self.bare.nodes.place(root.root).is_none() {
            return Err(damaged_root());
        }
        (self.bare.root, self.bare.height) = (root.root, root.height);
        self.buffers.next_owner = root.next_owner;
        self.generation.first = root.first;
        self.generation.first_owner = root.first_owner;
        self.generation.stage = root.stage;
        self.generation.is_waiting = false;
        if let Some(log) = self.bare.log.chip_mut() {
            log.mark_old(root.first)?;
            if root.stage.is_none() {
                log.release_old();
            }
        }
        self.generation.copies = root.stage.is_some() && self.is_to_copy();
        self.is_open = false;
        self.is_poisoned = false;
        Ok(())
    }

    /// On a disk, counts the fragments of each page.
    fn hold_chains(&mut self) -> Result<()> {
        for number in 0..self.buffers.records.len() as u32 {
            if !self.bare.log.is_disk() {
                break;
            }
            let record = self.buffers.record(number);
            match self.buffers.hold_chain(&mut self.bare.log, &record, Cause::Recovery) {
                // What is behind damage can't be reached. Whoever reads the buffer is told.
                Err(Error::Store(damage)) if damage.is_damage() => {}
                held => held?,
            }
        }
        Ok(())
    }

    fn read_chunk(&mut self, chunk: (u8, u32), page: Page) -> Result<()> {
        let mut bytes = core::mem::take(&mut self.buffers.page);
        let taken = read(&mut self.bare.log, chunk, page, &mut bytes)
            .and_then(|at| self.take_chunk(chunk, page, &bytes[at..]));
        self.buffers.page = bytes;
        taken
    }

    fn take_chunk(&mut self, chunk: (u8, u32), page: Page, mut bytes: &[u8]) -> Result<()> {
        let (shape, pages) = (self.plan.pages, self.bare.log.pages());
        let is_plain = chunk.0 == PLAIN;
        let table =
            if is_plain { &mut self.bare.nodes.plain } else { &mut self.bare.nodes.buffered };
        let each = table.chunk_numbers;
        let last = table.numbers.high_water().min((chunk.1 + 1) * each);
        table.changed(chunk.1 * each);
        if let Some(known) = table.chunks.get_mut(chunk.1 as usize) {
            *known = Some(page);
        }
        for number in chunk.1 * each..last {
            let (stored, rest) =
                bytes.split_first_chunk().ok_or(damaged(page, "the node table is cut off"))?;
            let table =
                if is_plain { &mut self.bare.nodes.plain } else { &mut self.bare.nodes.buffered };
            let is_place = |place| shape.is_place(place, pages);
            let filled = table.numbers.fill(number, u32::from_le_bytes(*stored), is_place);
            filled.map_err(|what| damaged(page, what))?;
            bytes = rest;
            if !is_plain {
                let (record, rest) =
                    BufferRecord::decode(bytes).map_err(|what| damaged(page, what))?;
                if u64::from(record.fragments()) > self.plan.pages.fragments(self.bare.log.pages())
                {
                    return Err(damaged(page, "a buffer has more fragments than find room"));
                }
                self.buffers.set_record(number, record);
                if let Some(record) = self.buffers.record_mut(number) {
                    record.set_dirty(false);
                }
                bytes = rest;
            }
        }
        Ok(())
    }

    /// Pins every page that the root record `record` reaches.
    pub(super) fn pin_state(&mut self, record: &[u8]) -> Result<()> {
        let root = decode(record, self.plan.chunks)?;
        pages_in(root.pool).for_each(|page| self.bare.log.pin(page));
        let mut bytes = core::mem::take(&mut self.buffers.page);
        let mut pinned = Ok(());
        for (kind, list, numbers) in
            [(PLAIN, root.plain.1, root.plain.0), (BUFFERED, root.buffered.1, root.buffered.0)]
        {
            for (chunk, page) in pages_in(list).enumerate() {
                self.bare.log.pin(page);
                if pinned.is_ok() {
                    let chunk = (kind, chunk as u32);
                    pinned = read(&mut self.bare.log, chunk, page, &mut bytes)
                        .and_then(|at| self.pin_chunk(chunk, numbers, &bytes[at..]));
                }
            }
        }
        self.buffers.page = bytes;
        pinned
    }

    fn pin_chunk(&mut self, chunk: (u8, u32), numbers: u32, mut bytes: &[u8]) -> Result<()> {
        let chunks = self.plan.chunks;
        let each = if chunk.0 == PLAIN { chunks.0 } else { chunks.1 };
        let (shape, pages) = (self.plan.pages, self.bare.log.pages());
        for _ in chunk.1 * each..numbers.min((chunk.1 + 1) * each) {
            let Some((stored, rest)) = bytes.split_first_chunk() else {
                break;
            };
            let place = Place(u32::from_le_bytes(*stored));
            if place < Place(Place::MOST) && shape.is_place(place, pages) {
                self.bare.log.pin(shape.locate(place).0);
            }
            bytes = rest;
            if chunk.0 == BUFFERED {
                let (record, rest) =
                    BufferRecord::decode(bytes).map_err(|what| damaged(Page(0), what))?;
                let (mut chain, cause) = (Chain::of(&record), Cause::Checkpoint);
                while let Some(link) = chain.newest() {
                    self.bare.log.pin(link.page);
                    self.buffers.next_fragment(&mut self.bare.log, &mut chain, cause)?;
                }
                bytes = rest;
            }
        }
        Ok(())
    }
}

/// Programs `bytes` as the page of a chunk; `seal` completes it for a page.
fn append(
    log: &mut Ground<'_>,
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
    log: &mut Ground<'_>,
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
