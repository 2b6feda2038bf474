//! Nodes in memory: the cache, changes with their deltas, and reading.

use alloc::vec;
use alloc::vec::Vec;

use device::{Cause, Geometry, Page};
use store::node::{self, Codec};
use store::{EntryShape, LEVELS_MOST, LogicalPage, PageLog, Recovery, Width};

use super::block::{BlockShape, Parts};
use super::cache::Cache;
use super::layout::{DeltaForm, HEADER_BYTES, Writes};
use super::make::has_parts;
use super::merge;
use super::table::{NodeId, Place, Table};
use crate::btree::{CHILD_BYTES, Codecs};
use index::Result;

/// How often a page is read that looks damaged: flips come and go.
const READS_MOST: u32 = 3;

/// The fewest nodes in the cache: two neighbours, their parent, and one more.
pub(super) const FRAMES_LEAST: usize = 4;

/// What tells whether the content of a page is whole.
type Check<'c> = &'c dyn Fn(Page, &[u8]) -> core::result::Result<(), store::Error>;

/// What leaves and inner nodes look like, and their deltas.
#[derive(Clone, Copy, Debug)]
pub(super) struct Forms {
    pub(super) shape: EntryShape,
    pub(super) leaf: Codec,
    pub(super) inner: Codec,
    leaf_deltas: DeltaForm,
    inner_deltas: DeltaForm,
}

impl Forms {
    /// The forms of nodes of `bytes` bytes; `None` if they could not hold four entries.
    pub(super) fn new(bytes: u32, shape: EntryShape) -> Option<Self> {
        let child = Width::Fixed(CHILD_BYTES);
        Some(Forms {
            shape,
            leaf: Codec::new(bytes, shape.key, shape.value)?,
            inner: Codec::new(bytes, shape.key, child)?,
            leaf_deltas: DeltaForm::new(shape),
            inner_deltas: DeltaForm::new(EntryShape { key: shape.key, value: child }),
        })
    }

    pub(super) const fn codecs(&self) -> Codecs {
        Codecs { shape: self.shape, leaf: self.leaf, inner: self.inner, is_one_of_many: false }
    }

    pub(super) const fn at(&self, level: u8) -> &Codec {
        if level == 0 { &self.leaf } else { &self.inner }
    }

    pub(super) const fn deltas(&self, level: u8) -> DeltaForm {
        if level == 0 { self.leaf_deltas } else { self.inner_deltas }
    }

    /// Room for the deltas of a node in the cache.
    pub(super) fn delta_bytes(&self) -> usize {
        HEADER_BYTES + (self.leaf.node_bytes() / 4).max(self.leaf.entry_bytes_most() + 8)
    }
}

/// What the tree stands on.
pub(super) struct Ground<'d> {
    pub(super) log: PageLog<'d>,
    pub(super) shape: BlockShape,
    pub(super) forms: Forms,
    pub(super) table: Table,
    pub(super) cache: Cache,
    /// Nodes of each level, leaves first.
    pub(super) levels: [u32; LEVELS_MOST],
    /// The key of an entry that is changed.
    pub(super) key: Vec<u8>,
    /// A whole page: one that is read, or programmed.
    pub(super) page: Vec<u8>,
    /// A node that is read or merged, and two more to work in.
    pub(super) image: Vec<u8>,
    pub(super) fresh: Vec<u8>,
    pub(super) scratch: Vec<u8>,
    /// Nodes that a merge moves.
    pub(super) moved: Vec<NodeId>,
    /// The content of a log page before the next part of it is programmed, where none may be lost:
    /// a chip that refuses a part may take those before it.
    pub(super) parts: Vec<u8>,
    /// The log page that `parts` stand in for.
    pub(super) lost: Option<Page>,
    /// Free blocks that are kept for what was admitted: see `room.rs`.
    pub(super) kept: u32,
}

impl<'d> Ground<'d> {
    pub(super) fn new(log: PageLog<'d>, shape: BlockShape, forms: Forms, frames: usize) -> Self {
        let chip = log.geometry();
        let bytes = log.content_bytes();
        Ground {
            table: Table::new(chip.blocks(), Self::nodes_most(chip, &shape)),
            cache: Cache::new(frames, bytes, forms.delta_bytes()),
            levels: [0; LEVELS_MOST],
            key: Vec::with_capacity(forms.leaf.entry_bytes_most()),
            page: vec![0xFF; chip.page_bytes() as usize],
            image: vec![0; bytes],
            fresh: vec![0; bytes],
            scratch: vec![0; bytes],
            moved: Vec::with_capacity(usize::from(shape.node_pages())),
            parts: vec![0; if has_parts(chip, log.durability()) { bytes } else { 0 }],
            lost: None,
            kept: u32::MAX,
            log,
            shape,
            forms,
        }
    }

    /// Nodes that there can be: those in the cache that no page holds yet will need one, too.
    fn nodes_most(chip: Geometry, shape: &BlockShape) -> usize {
        chip.blocks() as usize * usize::from(shape.node_pages())
    }

    /// Bytes of memory of the tables.
    pub(super) fn table_bytes(chip: Geometry, shape: &BlockShape) -> u64 {
        PageLog::table_bytes_on(chip)
            + Table::bytes_of(chip.blocks(), Self::nodes_most(chip, shape))
    }

    /// Bytes of memory of a node in the cache.
    pub(super) fn frame_bytes(forms: &Forms) -> u64 {
        Cache::frame_bytes(forms.leaf.node_bytes(), forms.delta_bytes())
    }

    /// Bytes of memory of all else but the log and the tables: four pages, and one more while a
    /// checkpoint is left behind; what a merge moves.
    pub(super) fn work_bytes(chip: Geometry) -> u64 {
        5 * u64::from(chip.page_bytes()) + 4 * u64::from(chip.pages_per_block())
    }

    pub(super) fn cache_bytes(&self) -> u64 {
        self.cache.len() as u64 * Self::frame_bytes(&self.forms)
    }

    /// The frame of a node, which is read if it is not in the cache.
    pub(super) fn frame(&mut self, id: NodeId, cause: Cause) -> Result<usize> {
        if let Some(found) = self.cache.find(id) {
            self.cache.touch(found);
            return Ok(found);
        }
        // What makes room in the cache may merge the very block that the node is in.
        let free = self.free_frame(cause)?;
        let place = self.table.place(id).ok_or(no_node(id))?;
        self.read_node(place, cause)?;
        device::copy(self.cache.node_mut(free), &self.image);
        self.cache.assign(free, id, false);
        Ok(free)
    }

    /// A frame without a node: what was used longest ago goes.
    pub(super) fn free_frame(&mut self, cause: Cause) -> Result<usize> {
        let oldest = self.cache.oldest();
        self.write_back(oldest, cause)?;
        self.cache.clear(oldest);
        Ok(oldest)
    }

    /// Reads a node and its deltas into `self.image`.
    pub(super) fn read_node(&mut self, place: Place, cause: Cause) -> Result<()> {
        let page = self.page_of(place.block, place.page);
        let start = self.log.content_start();
        self.read_page(page, cause, &|page, content| {
            let expected = u32::from_le_bytes([content[0], content[1], content[2], content[3]]);
            let found = checksum(page, content);
            if found == expected {
                return Ok(());
            }
            let page = LogicalPage(page.0);
            Err(store::Error::CorruptPage { page, expected, found })
        })?;
        device::copy(&mut self.image, &self.page[start..]);
        let level = node::level(&self.image);
        let codec = *self.forms.at(level);
        codec.validate(&self.image).map_err(|what| damaged(page, what))?;
        for log in place.logs.pages() {
            let page = self.page_of(place.block, self.shape.log_place(log));
            let parts = self.shape.parts();
            self.read_page(page, cause, &|page, content| check_log(page, content, parts))?;
            let Ground { page: bytes, image, fresh, scratch, forms, shape, .. } = self;
            let mut writes = Writes::new(page, &bytes[start..], shape.parts());
            while let Some(write) = writes.next().map_err(|what| damaged(page, what))? {
                if write.node == place.page {
                    let work = (&mut fresh[..], &mut scratch[..]);
                    merge::apply(forms.deltas(level), &codec, image, write.deltas, work)
                        .map_err(|what| damaged(page, what))?;
                }
            }
        }
        Ok(())
    }

    /// Keeps what stands in a log page, of which a further part is to be programmed.
    pub(super) fn keep_parts(&mut self, page: Page, cause: Cause) -> Result<()> {
        let parts = self.shape.parts();
        self.read_page(page, cause, &|page, content| check_log(page, content, parts))?;
        device::copy(&mut self.parts, &self.page[self.log.content_start()..]);
        Ok(())
    }

    /// Reads a page into `self.page` until `check` finds it whole.
    fn read_page(&mut self, page: Page, cause: Cause, check: Check<'_>) -> Result<()> {
        let start = self.log.content_start();
        if self.lost == Some(page) {
            device::copy(&mut self.page[start..], &self.parts);
            return Ok(());
        }
        let mut reads = 1;
        loop {
            let content = &mut self.page[start..];
            let read = self.log.read(page, 0, content, cause);
            match read.and_then(|()| check(page, content)) {
                Err(error) if error.is_damage() && reads < READS_MOST => reads += 1,
                checked => return Ok(checked?),
            }
        }
    }
}

fn check_log(page: Page, content: &[u8], parts: Parts) -> core::result::Result<(), store::Error> {
    let mut writes = Writes::new(page, content, parts);
    // Only pages that were written are read: one that looks erased has lost what it held.
    if writes.next().map_err(|what| damaged(page, what))?.is_none() {
        return Err(damaged(page, "a log page is empty"));
    }
    while writes.next().map_err(|what| damaged(page, what))?.is_some() {}
    Ok(())
}

pub(super) fn checksum(page: Page, content: &[u8]) -> u32 {
    device::checksum(&[b"ipl", &page.0.to_le_bytes(), &content[4..]])
}

pub(super) fn damaged(page: Page, what: &'static str) -> store::Error {
    store::Error::DamagedPage { page: LogicalPage(page.0), what }
}

/// A node that should exist.
pub(super) fn no_node(id: NodeId) -> store::Error {
    store::Error::DamagedPage { page: LogicalPage(id.0), what: "no page holds this node" }
}

/// A node that makes no sense.
pub(super) fn bad_node(id: NodeId, what: &'static str) -> store::Error {
    store::Error::DamagedPage { page: LogicalPage(id.0), what }
}
