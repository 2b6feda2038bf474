//! Commits: what waits is packed into sectors, and the table says where it is.
//!
//! First the units, those of a node together; then nodes as a whole: those that are marked, and
//! those whose list can't get longer, which are read, if they are not cached, and so compacted. The
//! table changes when all of it is written, so that a failure leaves every node readable.

use device::Cause;
use index::Result;
use store::node;
use store::{Durability, LogicalPage, Recovery};

use super::layout::{SEQUENCES, whole_parts};
use super::store::{Reading, Store, bad_node};
use super::table::NodeId;

/// Where a commit wrote a node, or its units.
#[derive(Clone, Copy, Debug)]
pub(super) struct Placed {
    pub(super) node: NodeId,
    /// The sector; `NO_SECTOR` as long as it has none.
    sector: u32,
    is_whole: bool,
}

const NO_SECTOR: u32 = u32::MAX;

impl Store<'_> {
    /// Writes all that waits.
    pub(crate) fn commit(&mut self) -> Result<()> {
        if self.waiting() == 0 {
            return Ok(());
        }
        self.placed.clear();
        self.packer.begin();
        self.give_back_lost()?;
        if let Err(error) = self.write_all() {
            self.give_up();
            return Err(error);
        }
        let entered = self.enter_all();
        self.buffer.clear();
        for place in 0..self.marked.len() {
            if let Some(frame) = self.frames.find(self.marked[place].0) {
                self.frames.state_mut(frame).is_marked = false;
            }
        }
        self.marked.clear();
        self.counted.commits += 1;
        entered
    }

    fn write_all(&mut self) -> Result<()> {
        let mut nodes = core::mem::take(&mut self.work);
        nodes.clear();
        nodes.extend(self.buffer.iter().map(|waiting| waiting.node));
        nodes.sort_unstable_by_key(|node| node.0);
        nodes.dedup();
        let written = self.write_nodes(&nodes);
        self.work = nodes;
        written
    }

    fn write_nodes(&mut self, nodes: &[NodeId]) -> Result<()> {
        let most = self.listed_most();
        let placed_most = 2 * (nodes.len() + self.marked.len());
        let mut listed = self.make_room_in_lists(nodes.len(), most)?;
        for node in nodes {
            if self.is_placed(*node) {
                continue;
            }
            let has_room = self.table.list(*node).len() < self.table.most();
            if has_room && listed < most && self.write_units(*node)? {
                listed += 1;
            }
        }
        for node in nodes {
            // Both are in the same order.
            if !self.is_placed(*node) {
                listed = self.write_whole(*node, listed)?;
                self.counted.compactions += 1;
            }
        }
        for place in 0..self.marked.len() {
            listed = self.write_whole(self.marked[place], listed)?;
        }
        self.make_shorter(listed, most, placed_most)?;
        self.end_sector()
    }

    pub(super) fn is_placed(&self, node: NodeId) -> bool {
        self.placed.iter().any(|placed| placed.node == node)
    }

    /// Remembers the sectors of a commit that was broken off: what broke it off might let nothing
    /// be given back now.
    fn give_up(&mut self) {
        for place in 0..self.placed.len() {
            if self.placed[place].sector != NO_SECTOR {
                self.lose(LogicalPage(self.placed[place].sector));
            }
        }
    }

    fn give_back_lost(&mut self) -> Result<()> {
        while let Some(sector) = self.lost.last() {
            self.file.free(*sector, Cause::Update)?;
            self.lost.pop();
        }
        Ok(())
    }

    /// Packs the units of a node; false if they are too long for a sector.
    fn write_units(&mut self, node: NodeId) -> Result<bool> {
        let add = |(units, bytes): (u64, usize), unit: &[u8]| (units + 1, bytes + unit.len());
        let (units, bytes) = self.buffer.of(node).fold((0, 0), add);
        if bytes > self.packer.content_most() {
            return Ok(false);
        }
        self.counted.units += units;
        self.begin_group(bytes)?;
        let mut units = self.buffer.iter().filter(|waiting| waiting.node == node).peekable();
        let level = units.peek().map_or(0, |first| first.level);
        self.packer.add((node, level, false), bytes, units.map(|waiting| waiting.unit));
        self.placed.push(Placed { node, sector: NO_SECTOR, is_whole: false });
        Ok(true)
    }

    /// Packs a node as a whole; returns how long all lists together are then, which were `listed`.
    pub(super) fn write_whole(&mut self, id: NodeId, listed: u64) -> Result<u64> {
        let Store { file, shape, table, frames, buffer, scratch, image, .. } = self;
        match frames.find(id.0) {
            Some(frame) => device::copy(image, frames.bytes(frame)),
            None => {
                let mut reading = Reading { file, shape, table, buffer, scratch };
                reading.read(id, image, Cause::Update)?;
            }
        }
        let level = node::level(&self.image);
        let kept = self.shape.codecs.at(level).kept_bytes(&self.image);
        let (_, bytes) = whole_parts(&self.image, kept);
        let is_alone = bytes > self.packer.content_most();
        match is_alone {
            true => self.begin_sector()?,
            false => self.begin_group(bytes)?,
        }
        let (parts, bytes) = whole_parts(&self.image, kept);
        match is_alone {
            true => self.packer.add_alone((id, level, false), parts),
            false => self.packer.add((id, level, true), bytes, parts.into_iter()),
        }
        self.placed.push(Placed { node: id, sector: NO_SECTOR, is_whole: true });
        Ok((listed + 1).saturating_sub(self.table.list(id).len() as u64))
    }

    /// There is room for a group of so many bytes in the sector that is being filled.
    fn begin_group(&mut self, bytes: usize) -> Result<()> {
        self.counted.groups += 1;
        match self.packer.has_room(bytes) {
            true => Ok(()),
            false => self.end_sector(),
        }
    }

    /// A node can fill a sector.
    fn begin_sector(&mut self) -> Result<()> {
        self.counted.groups += 1;
        self.end_sector()
    }

    /// Writes the sector that is being filled, and begins another.
    fn end_sector(&mut self) -> Result<()> {
        if self.packer.is_empty() {
            return Ok(());
        }
        let sector = self.file.allocate(Cause::Update)?;
        for placed in self.placed.iter_mut().rev().take_while(|it| it.sector == NO_SECTOR) {
            placed.sector = sector.0;
        }
        self.write_packed(sector)?;
        self.packer.begin();
        self.counted.sectors += 1;
        Ok(())
    }

    /// Writes what is packed to a sector, as the newest of all.
    pub(super) fn write_packed(&mut self, sector: LogicalPage) -> Result<()> {
        if self.sequence + 1 >= SEQUENCES {
            return Err(store::Error::Full { pages: self.file.pages_most().into() }.into());
        }
        self.sequence += 1;
        device::copy(self.file.fresh(sector)?, self.packer.finish(self.sequence));
        Ok(self.file.write_now(sector)?)
    }

    /// The table takes over what was written. An error is of the device, which did not take back
    /// what was replaced; all else is done.
    fn enter_all(&mut self) -> Result<()> {
        let mut entered = Ok(());
        for place in 0..self.placed.len() {
            let Placed { node, sector, is_whole } = self.placed[place];
            if is_whole {
                entered = entered.and(self.release(node));
            }
            if !self.table.push(node, LogicalPage(sector)) {
                self.is_poisoned = true;
                return Err(bad_node(node, "its list of sectors is too long").into());
            }
        }
        entered
    }

    /// Empties the list of a node. An error is of the device, and the list is empty all the same.
    pub(super) fn release(&mut self, node: NodeId) -> Result<()> {
        let mut released = Ok(());
        while let Some(freed) = self.table.pop(node) {
            let Some(sector) = freed else { continue };
            if released.is_ok() {
                released = self.file.free(sector, Cause::Update);
            }
            if released.is_err() {
                self.lose(sector);
            }
            self.note_freed();
        }
        Ok(released?)
    }

    /// Keeps in mind that a sector is to be given back.
    fn lose(&mut self, sector: LogicalPage) {
        if self.lost.last() != Some(&sector) {
            match self.lost.len() < self.lost.capacity() {
                true => self.lost.push(sector),
                false => self.is_poisoned = true,
            }
        }
    }

    /// Sectors were given back, which the last checkpoint may need.
    fn note_freed(&mut self) {
        if self.file.durability() != Durability::None {
            self.freed_at = Some(self.file.statistics().checkpoint);
        }
    }
}
