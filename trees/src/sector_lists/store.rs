//! Reading nodes: from the cache, or from their lists of sectors and from what waits.

use alloc::vec;
use alloc::vec::Vec;

use device::{Cause, DiskCosts};
use index::Result;
use index::random_keys::{OCCUPANCY, average_bytes};
use store::Recovery;
use store::node;
use store::{CheckpointId, EntryShape, Frames, LEVELS_MOST, LogicalPage, PageFile, Update};

use super::buffer::Buffer;
use super::choices::{Mode, Waits};
use super::commit::Placed;
use super::layout::{HEADER_BYTES, Packer, Sector, Unit, apply, groups, read_whole, shape_at};
use super::pages::DUE_MOST;
use super::switching::Costs;
use super::table::{Limits, NodeId, Table};
use crate::btree::Codecs;

/// Frames of the cache at least: two neighbours that change together, their parent, and one that
/// comes in.
const FRAMES_LEAST: u32 = 4;

/// Units, and nodes that are to be written anew, that find room beside those that fill the buffer:
/// what an update adds that splits or joins nodes on two levels. One that changes more has a commit
/// between two levels.
const UNITS_BESIDE: usize = 12;

/// Sectors whose units the buffer holds at most, where entries are long.
const BUFFER_SECTORS: usize = 4;

/// What a cached node is.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct State {
    /// True if the next commit writes it as a whole.
    pub(super) is_marked: bool,
    /// True if it is in disk mode, and its sector does not have it yet.
    pub(super) is_dirty: bool,
    /// True if it was changed since it came in, or since it was written in disk mode.
    pub(super) was_changed: bool,
}

/// The sizes that everything follows from.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Shape {
    pub(crate) codecs: Codecs,
    /// Bytes of a sector, sectors of the disk, and pages of the device in one.
    pub(crate) sector: u32,
    pub(crate) sectors: u32,
    pub(crate) pages: u32,
    /// Units at which the buffer is full, nodes to be written anew counted as one each.
    pub(crate) units: usize,
    /// The most sectors in a list.
    pub(crate) list: usize,
    pub(crate) waits: Waits,
    pub(crate) mode: Mode,
}

impl Shape {
    /// What the sizes of the table follow from.
    pub(crate) const fn limits(&self) -> Limits {
        let Shape { list, mode, sector, sectors, .. } = *self;
        Limits { most: list, mode, sector, sectors }
    }

    /// Bytes of the longest unit.
    fn unit_bytes(&self) -> usize {
        let child = usize::from(crate::btree::CHILD_BYTES);
        let entry = self.codecs.leaf.entry_bytes_most().max(self.codecs.inner.entry_bytes_most());
        let fixed = match self.codecs.shape.key {
            store::Width::Fixed(key) => usize::from(key) + child,
            store::Width::Variable => entry,
        };
        // A flag, and two lengths.
        1 + 4 + entry.max(fixed)
    }

    /// Bytes of the buffer.
    fn buffer_bytes(&self) -> usize {
        let each = Buffer::bytes_of(self.unit_bytes());
        let most = match self.waits {
            Waits::Units(_) => BUFFER_SECTORS * self.sector as usize,
            Waits::Sectors(sectors) => usize::from(sectors) * (self.sector as usize - HEADER_BYTES),
        };
        (self.waiting_most() * each).min(most).max(4 * each)
    }

    /// What waits at least when the buffer is full, however long it is.
    pub(crate) fn units_least(&self) -> usize {
        let each = Buffer::bytes_of(self.unit_bytes());
        self.units.min(self.buffer_bytes() / each).max(1)
    }

    /// Nodes that are due to become pages at most.
    pub(crate) const fn due_most(&self) -> usize {
        if matches!(self.mode, Mode::SelfTuning { .. }) { DUE_MOST } else { 0 }
    }

    /// Nodes that wait for a commit at most.
    const fn waiting_most(&self) -> usize {
        self.units + UNITS_BESIDE
    }

    /// Nodes that a commit writes at most, and sectors: it makes as many lists shorter, if they
    /// have to be, as there are nodes that wait.
    pub(crate) const fn sectors_most(&self) -> usize {
        2 * self.waiting_most() + 1
    }

    /// Bytes of memory beside the page file, the table and the cache.
    pub(crate) fn work_bytes(&self) -> u64 {
        let node = self.codecs.leaf.node_bytes();
        let lists = self.waiting_most() * 2 * size_of::<NodeId>()
            + self.sectors_most() * (size_of::<Placed>() + size_of::<LogicalPage>());
        let key = self.codecs.leaf.entry_bytes_most();
        let due = self.due_most() * size_of::<NodeId>();
        (self.buffer_bytes() + self.sector as usize + 2 * node + lists + key + due) as u64
    }

    /// Units of so many bytes of key and value with which the buffer is full.
    pub(super) fn units_waiting(&self, entry: usize) -> usize {
        match self.waits {
            Waits::Units(_) => self.units,
            Waits::Sectors(_) => self.units.min(self.buffer_bytes() / Buffer::bytes_of(1 + entry)),
        }
    }

    /// What SWITCHMODE reckons with on a disk with such costs: entries of average length, in nodes
    /// as full as random keys leave them.
    pub(super) fn costs(&self, costs: Option<DiskCosts>) -> Costs {
        let EntryShape { key, value } = self.codecs.shape;
        let entry = usize::from(average_bytes(key)) + usize::from(average_bytes(value));
        let fit = (self.sector - HEADER_BYTES as u32) / (Buffer::bytes_of(1 + entry) as u32);
        let node = self.codecs.leaf.node_bytes() / entry.max(1);
        Costs::new(costs, (self.sector, self.pages), (fit, (node as f64 * OCCUPANCY) as u32))
    }

    /// Bytes of memory of a node in the cache.
    pub(crate) fn frame_bytes(&self) -> u64 {
        (Frames::<State>::TABLE_BYTES + self.codecs.leaf.node_bytes()) as u64
    }

    /// Bytes of the smallest cache.
    pub(crate) fn cache_least(&self) -> u64 {
        u64::from(FRAMES_LEAST) * self.frame_bytes()
    }

    /// Nodes for which so many bytes are a cache, of which there can be `most`.
    fn frames(&self, bytes: u64, most: u32) -> u32 {
        let frames = u32::try_from(bytes / self.frame_bytes()).unwrap_or(u32::MAX);
        frames.min(most).max(FRAMES_LEAST)
    }
}

/// Nodes as lists of sectors of a page file.
pub(crate) struct Store<'d> {
    pub(crate) file: PageFile<'d>,
    pub(crate) shape: Shape,
    pub(crate) table: Table,
    pub(super) frames: Frames<State>,
    pub(super) buffer: Buffer,
    /// Nodes that are to be written anew.
    pub(super) marked: Vec<NodeId>,
    /// Nodes a level.
    pub(crate) levels: [u32; LEVELS_MOST],
    /// Nodes in disk mode that their sectors do not have yet.
    pub(crate) dirty: u32,
    /// Sectors that have to stay free beside all lists.
    pub(crate) kept: u64,
    /// Sectors that the updates which were let in may write before a checkpoint.
    pub(crate) promised: u64,
    /// The checkpoint before which sectors were given back that wait for the next.
    pub(crate) freed_at: Option<CheckpointId>,
    /// Where the search for lists that can be made shorter goes on.
    pub(super) level_from: u32,
    /// Where the search for sectors that are mostly stale goes on.
    pub(super) collect_from: u32,
    /// Where the search for sectors goes on that the file is to do without.
    pub(super) leave_from: u32,
    /// Pages of a root record that can't be read, until the next checkpoint.
    pub(crate) root_pages: Option<Vec<LogicalPage>>,
    /// The sequence of the sector that was written last.
    pub(crate) sequence: u64,
    /// True if a commit was broken off.
    pub(crate) is_poisoned: bool,
    pub(crate) counted: Counted,
    /// What SWITCHMODE reckons with, and the nodes that are due to become pages.
    pub(super) costs: Costs,
    pub(super) due: Vec<NodeId>,
    /// What was counted of each node, and how it was before.
    #[cfg(test)]
    pub(super) served: Vec<(NodeId, super::switching::Operation, super::switching::Node)>,
    /// Nodes that were asked for, cached or not.
    #[cfg(test)]
    pub(super) asked: Vec<NodeId>,
    /// The key of an entry that is changed.
    pub(super) key: Vec<u8>,
    /// A node that a commit writes, and one to work in.
    pub(super) image: Vec<u8>,
    pub(super) scratch: Vec<u8>,
    pub(super) packer: Packer,
    /// Nodes that a commit writes, and where it did.
    pub(super) work: Vec<NodeId>,
    pub(super) placed: Vec<Placed>,
    /// Sectors of a commit that was broken off, which are to be given back.
    pub(super) lost: Vec<LogicalPage>,
}

/// What was done since the tree was made or opened.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Counted {
    /// Nodes that came, by splits, and went, by merges.
    pub(crate) made: u64,
    pub(crate) freed: u64,
    pub(crate) commits: u64,
    /// Nodes that were written anew for the length of their list.
    pub(crate) compactions: u64,
    /// Sectors that were mostly stale, of which all nodes were written anew for that.
    pub(crate) collected: u64,
    /// Nodes that were written elsewhere, so that the file can get shorter.
    pub(crate) moved: u64,
    /// Sectors written, groups in them, and index units in these.
    pub(crate) sectors: u64,
    pub(crate) groups: u64,
    pub(crate) units: u64,
    /// Nodes written in disk mode, and changes of mode.
    pub(crate) pages: u64,
    pub(crate) to_disk: u64,
    pub(crate) to_log: u64,
}

/// What a node is read from.
pub(super) struct Reading<'r, 'd> {
    pub(super) file: &'r mut PageFile<'d>,
    pub(super) shape: &'r Shape,
    pub(super) table: &'r Table,
    pub(super) buffer: &'r Buffer,
    pub(super) scratch: &'r mut [u8],
}

impl Reading<'_, '_> {
    /// Makes `into` the node: what its sectors hold of it, then what waits.
    pub(super) fn read(&mut self, node: NodeId, into: &mut [u8], cause: Cause) -> Result<()> {
        let Reading { file, shape, table, buffer, scratch } = self;
        let list = table.list(node);
        if list.len() == 0 {
            return Err(bad_node(node, "no sector holds this node").into());
        }
        for (place, sector) in list.enumerate() {
            let bytes = file.page(sector, cause, &Sector)?;
            let damaged = |what| store::Error::DamagedPage { page: sector, what };
            let mut is_found = false;
            for group in groups(bytes).filter(|group| group.node == node) {
                if group.is_whole != (place == 0 && !is_found) {
                    return Err(damaged("it holds a node that does not begin as a whole").into());
                }
                is_found = true;
                let codec = shape.codecs.at(group.level);
                if group.is_whole {
                    read_whole(codec, &group, into).map_err(damaged)?;
                } else if group.level == node::level(into) {
                    apply((shape.codecs.shape, codec), into, group.content, scratch)
                        .map_err(damaged)?;
                } else {
                    return Err(damaged("an index unit in it is of another level").into());
                }
            }
            if !is_found {
                return Err(damaged("it holds nothing of a node whose list names it").into());
            }
        }
        let codec = shape.codecs.at(node::level(into));
        for unit in buffer.of(node) {
            apply((shape.codecs.shape, codec), into, unit, scratch)
                .map_err(|what| bad_node(node, what))?;
        }
        Ok(())
    }
}

impl<'d> Store<'d> {
    /// A store without nodes, with so many bytes of memory for its cache.
    pub(crate) fn new(file: PageFile<'d>, shape: Shape, cache_bytes: u64) -> Self {
        let node = shape.codecs.leaf.node_bytes();
        let frames = shape.frames(cache_bytes, file.pages_most());
        Store {
            table: Table::new(shape.limits()),
            costs: shape.costs(file.costs()),
            due: Vec::with_capacity(shape.due_most()),
            #[cfg(test)]
            served: Vec::new(),
            #[cfg(test)]
            asked: Vec::new(),
            frames: Frames::new(frames, node, 1),
            buffer: Buffer::new(shape.buffer_bytes()),
            marked: Vec::with_capacity(shape.waiting_most()),
            levels: [0; LEVELS_MOST],
            dirty: 0,
            kept: 0,
            promised: 0,
            freed_at: None,
            level_from: 0,
            collect_from: 0,
            leave_from: 0,
            root_pages: None,
            sequence: 0,
            is_poisoned: false,
            counted: Counted::default(),
            key: Vec::with_capacity(shape.codecs.leaf.entry_bytes_most()),
            image: vec![0; node],
            scratch: vec![0; node],
            packer: Packer::new(shape.sector as usize),
            work: Vec::with_capacity(shape.waiting_most()),
            placed: Vec::with_capacity(shape.sectors_most()),
            lost: Vec::with_capacity(shape.sectors_most()),
            file,
            shape,
        }
    }

    /// Bytes of memory of the cache.
    pub(crate) fn cache_bytes(&self) -> u64 {
        self.frames.memory()
    }

    /// Units and nodes that the next commit writes.
    pub(crate) fn waiting(&self) -> usize {
        self.buffer.len() + self.marked.len()
    }

    /// True if the buffer is full, or has no room for an update of a leaf.
    pub(crate) fn is_full(&self, update: &Update<'_>) -> bool {
        let has_room = match (self.shape.waits, update) {
            (Waits::Sectors(_), Update::Put { key, value }) => self.has_room_for(key, value),
            (Waits::Sectors(_), Update::Delete { key }) => self.has_room_for(key, &[]),
            _ => true,
        };
        self.waiting() >= self.shape.units || !has_room
    }

    fn has_room_for(&self, key: &[u8], value: &[u8]) -> bool {
        let unit = Unit::Put { key, value }.bytes(self.shape.codecs.shape);
        self.buffer.has_bytes(Buffer::bytes_of(unit))
    }

    /// Sectors that there is room for behind a checkpoint, those in use included.
    pub(crate) fn room(&self) -> u64 {
        u64::from(self.table.sectors()) + u64::from(self.file.pages_free_then())
    }

    /// Sectors that all lists may have together: as many as are kept stay free then, whatever
    /// shares sectors with what.
    pub(crate) fn listed_most(&self) -> u64 {
        self.room().saturating_sub(self.kept)
    }

    /// Forgets all that is only in memory.
    pub(crate) fn forget_all(&mut self) {
        self.frames.forget_all();
        self.buffer.clear();
        self.marked.clear();
        self.lost.clear();
        self.due.clear();
        self.root_pages = None;
        (self.freed_at, self.is_poisoned, self.dirty) = (None, false, 0);
    }

    /// The frame of a node, which is read if it is not in the cache.
    pub(super) fn frame(&mut self, id: NodeId, cause: Cause) -> Result<u32> {
        #[cfg(test)]
        self.asked.push(id);
        if let Some(found) = self.frames.touch(id.0) {
            return Ok(found);
        }
        if !self.table.exists(id) {
            return Err(bad_node(id, "no sector holds this node").into());
        }
        self.free_frame()?;
        let frame = self.frames.enter(id.0);
        let Store { file, shape, table, frames, buffer, scratch, .. } = self;
        let mut reading = Reading { file, shape, table, buffer, scratch };
        let read = reading.read(id, frames.bytes_mut(frame), cause);
        match read {
            Ok(()) => self.count_read(id),
            Err(_) => self.frames.forget(frame),
        }
        read.map(|()| frame)
    }

    /// Lets a frame be free: the node that was used longest ago goes. Once the disk failed, only
    /// one goes that need not be written.
    pub(super) fn free_frame(&mut self) -> Result<()> {
        let Some(mut victim) = self.frames.victim() else {
            return Ok(());
        };
        let waits = |frame: u32| {
            let state = self.frames.state(frame);
            state.is_marked || state.is_dirty
        };
        if waits(victim) {
            let clean = self.frames.oldest_first().find(|frame| !waits(*frame));
            match clean {
                Some(clean) if self.file.failure().is_some() => victim = clean,
                _ if self.frames.state(victim).is_dirty => self.write_page(victim)?,
                _ => self.commit()?,
            }
        }
        self.frames.forget(victim);
        Ok(())
    }

    /// There is room for so many units of the longest, or nodes to be written anew: where there is
    /// none, all that waits is written. Whoever changes several nodes asks before the first: a
    /// commit that failed between two would leave half a change.
    pub(super) fn make_room(&mut self, units: usize) -> Result<()> {
        let bytes = Buffer::bytes_of(self.shape.unit_bytes());
        let has_places = self.waiting() + units <= self.shape.waiting_most();
        match has_places && self.buffer.has_bytes(units * bytes) {
            true => Ok(()),
            false => self.commit(),
        }
    }

    /// The same for one unit of so many bytes.
    pub(super) fn make_room_for(&mut self, unit: usize) -> Result<()> {
        let has_places = self.waiting() < self.shape.waiting_most();
        match has_places && self.buffer.has_bytes(Buffer::bytes_of(unit)) {
            true => Ok(()),
            false => self.commit(),
        }
    }

    /// The node in `frame` is to be written anew.
    pub(super) fn mark(&mut self, id: NodeId, frame: u32) {
        let state = self.frames.state_mut(frame);
        if !state.is_marked {
            state.is_marked = true;
            self.marked.push(id);
            self.buffer.remove(id);
        }
    }

    /// Notes a change of the node in `frame`, unless all of it is to be written.
    pub(super) fn note(&mut self, id: NodeId, level: u8, frame: u32, unit: &Unit<'_>) {
        let state = self.frames.state(frame);
        if !state.is_marked && !state.is_dirty {
            let shape = shape_at(level, self.shape.codecs.shape);
            self.buffer.push(id, level, shape, unit);
        }
    }
}

/// A node that makes no sense.
pub(super) fn bad_node(id: NodeId, what: &'static str) -> store::Error {
    store::Error::DamagedPage { page: LogicalPage(id.0), what }
}
