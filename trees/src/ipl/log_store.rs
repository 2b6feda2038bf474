//! Nodes in memory: the cache, changes with their deltas, and reading.

use alloc::vec;
use alloc::vec::Vec;

use device::{Cause, Geometry, Page};
use store::node;
use store::{EntryShape, LEVELS_MOST, LogicalPage, PageLog, Recovery, Width};

use super::block::{BlockShape, RecordPlace};
use super::cache::{Cache, Unsaved};
use super::layout::{Address, FRONT_BYTES_MOST, read_record};
use super::make::has_parts;
use super::merge;
use super::table::{NodeId, Place, Table};
use crate::btree::{CHILD_BYTES, Codecs};
use index::Result;

/// How often a page is read that looks damaged: flips come and go.
const READS_MOST: u32 = 3;

/// The fewest nodes in the cache: two neighbours, their parent, and one more.
pub(super) const FRAMES_LEAST: u32 = 4;

impl Codecs {
    /// What the deltas of a node name: a child is the value of an inner node's entry.
    pub(super) const fn deltas(&self, level: u8) -> EntryShape {
        match level {
            0 => self.shape,
            _ => EntryShape { key: self.shape.key, value: Width::Fixed(CHILD_BYTES) },
        }
    }

    /// The most bytes of a record: a quarter of a page, or what one delta may take.
    pub(super) fn record_bytes(&self) -> usize {
        let longest = FRONT_BYTES_MOST + self.leaf.entry_bytes_most() + 8;
        longest.max(self.leaf.node_bytes() / 4)
    }
}

/// What the tree stands on.
pub(super) struct LogStore<'d> {
    pub(super) log: PageLog<'d>,
    pub(super) shape: BlockShape,
    pub(super) forms: Codecs,
    pub(super) table: Table,
    pub(super) cache: Cache,
    /// Nodes of each level, leaves first.
    pub(super) levels: [u32; LEVELS_MOST],
    /// The key of an entry that is changed.
    pub(super) key: Vec<u8>,
    /// A whole page that is programmed.
    pub(super) page: Vec<u8>,
    /// A node that is read or merged, its newest record and an earlier one.
    pub(super) image: Vec<u8>,
    pub(super) record: Vec<u8>,
    earlier: Vec<u8>,
    /// Two more nodes to work in.
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

impl<'d> LogStore<'d> {
    pub(super) fn new(log: PageLog<'d>, shape: BlockShape, forms: Codecs, frames: u32) -> Self {
        let chip = log.geometry();
        let (bytes, record_bytes) = (log.content_bytes(), forms.record_bytes());
        LogStore {
            table: Table::new(chip.blocks(), Self::nodes_most(chip, &shape)),
            cache: Cache::new(frames, bytes, record_bytes),
            levels: [0; LEVELS_MOST],
            key: Vec::with_capacity(forms.leaf.entry_bytes_most()),
            page: vec![0xFF; chip.page_bytes() as usize],
            image: vec![0; bytes],
            record: Vec::with_capacity(record_bytes),
            earlier: Vec::with_capacity(record_bytes),
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
    pub(super) fn frame_bytes(forms: &Codecs) -> u64 {
        Cache::frame_bytes(forms.leaf.node_bytes(), forms.record_bytes())
    }

    /// Bytes of memory of all else but the log and the tables: four pages, and one more while a
    /// checkpoint is left behind; two records; what a merge moves.
    pub(super) fn work_bytes(chip: Geometry, forms: &Codecs) -> u64 {
        let records = 2 * forms.record_bytes() as u64;
        5 * u64::from(chip.page_bytes()) + records + 4 * u64::from(chip.pages_per_block())
    }

    pub(super) fn cache_bytes(&self) -> u64 {
        u64::from(self.cache.len()) * Self::frame_bytes(&self.forms)
    }

    /// The frame of a node, which is read if it is not in the cache.
    pub(super) fn frame(&mut self, id: NodeId, cause: Cause) -> Result<u32> {
        if let Some(found) = self.cache.touch(id) {
            return Ok(found);
        }
        // What makes room in the cache may merge the very block that the node is in.
        self.free_frame(cause)?;
        let place = self.table.place(id).ok_or(no_node(id))?;
        self.read_node(place, cause)?;
        let frame = self.cache.enter(id, Unsaved::Nothing);
        device::copy(self.cache.node_mut(frame), &self.image);
        self.cache.set_record(frame, &self.record);
        Ok(frame)
    }

    /// Lets a frame be free: what was used longest ago goes.
    pub(super) fn free_frame(&mut self, cause: Cause) -> Result<()> {
        if let Some(victim) = self.cache.victim() {
            self.write_back(victim, cause)?;
            self.cache.forget(victim);
        }
        Ok(())
    }

    /// Reads a node, as its deltas make it, into `self.image`, and its newest record into
    /// `self.record`. Each record is read once, and nothing else of its page.
    pub(super) fn read_node(&mut self, place: Place, cause: Cause) -> Result<()> {
        let page = self.page_of(place.block, place.page);
        read_checked(&mut self.log, (page, 0), &mut self.image, cause, |content| {
            let expected = u32::from_le_bytes([content[0], content[1], content[2], content[3]]);
            let found = checksum(page, content);
            if found == expected {
                return Ok(());
            }
            let page = LogicalPage(page.0);
            Err(store::Error::CorruptPage { page, expected, found })
        })?;
        let codec = *self.forms.at(node::level(&self.image));
        codec.validate(&self.image).map_err(|what| damaged(page, what))?;
        self.record.clear();
        let Some(newest) = place.record else {
            return Ok(());
        };
        let mut record = core::mem::take(&mut self.record);
        let applied = self.apply_records((place, newest), &mut record, cause);
        self.record = record;
        applied
    }

    /// Makes the changes of all records of a node to `self.image`; `record` becomes the newest.
    fn apply_records(
        &mut self,
        (place, newest): (Place, RecordPlace),
        record: &mut Vec<u8>,
        cause: Cause,
    ) -> Result<()> {
        let address = self.read_record(place, newest, record, cause)?;
        let no_sense = |what| damaged(address.page, what);
        let (places, deltas) = read_record(address, record).map_err(no_sense)?;
        let mut earlier = core::mem::take(&mut self.earlier);
        for bytes in places {
            let at = RecordPlace::from_bytes(*bytes);
            let applied = match at.is_in(&self.shape) {
                true => self.read_record(place, at, &mut earlier, cause).and_then(|address| {
                    let (_, deltas) = read_record(address, &earlier).map_err(no_sense)?;
                    self.apply(address, deltas)
                }),
                false => Err(no_sense("a record names one that no block has a place for").into()),
            };
            if applied.is_err() {
                self.earlier = earlier;
                return applied;
            }
        }
        self.earlier = earlier;
        self.apply(address, deltas)
    }

    fn apply(&mut self, address: Address, deltas: &[u8]) -> Result<()> {
        let LogStore { image, fresh, scratch, forms, .. } = self;
        let level = node::level(image);
        let work = (&mut fresh[..], &mut scratch[..]);
        let form = (forms.deltas(level), forms.at(level));
        let applied = merge::apply(form, image, deltas, work);
        Ok(applied.map_err(|what| damaged(address.page, what))?)
    }

    /// Reads a record of a node into `record`.
    fn read_record(
        &mut self,
        node: Place,
        at: RecordPlace,
        record: &mut Vec<u8>,
        cause: Cause,
    ) -> Result<Address> {
        let page = self.page_of(node.block, self.shape.log_place(at.page));
        let address = Address { page, offset: at.offset, node: node.page };
        let check = |record: &[u8]| match read_record(address, record) {
            Ok(_) => Ok(()),
            Err(what) => Err(damaged(page, what)),
        };
        record.clear();
        record.resize(usize::from(at.bytes).min(record.capacity()), 0);
        if self.lost == Some(page) {
            let (from, bytes) = (usize::from(at.offset), record.len());
            device::copy(record, &self.parts[from..from + bytes]);
            if check(record).is_ok() {
                return Ok(address);
            }
        }
        read_checked(&mut self.log, (page, at.offset.into()), record, cause, check)?;
        Ok(address)
    }

    /// Keeps the first `bytes` bytes of a log page, of which a further part is to be programmed.
    pub(super) fn keep_parts(&mut self, page: Page, bytes: u16, cause: Cause) -> Result<()> {
        let LogStore { log, parts, .. } = self;
        read_checked(log, (page, 0), &mut parts[..usize::from(bytes)], cause, |_| Ok(()))
    }
}

/// Reads bytes of a page's content from a byte of it on, again until `check` finds them whole.
fn read_checked(
    log: &mut PageLog<'_>,
    (page, offset): (Page, u32),
    into: &mut [u8],
    cause: Cause,
    check: impl Fn(&[u8]) -> core::result::Result<(), store::Error>,
) -> Result<()> {
    let mut reads = 1;
    loop {
        let read = log.read(page, offset, into, cause);
        match read.and_then(|()| check(into)) {
            Err(error) if error.is_damage() && reads < READS_MOST => reads += 1,
            checked => return Ok(checked?),
        }
    }
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
