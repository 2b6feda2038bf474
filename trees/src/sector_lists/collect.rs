//! Log garbage collection (FlashDB, section 5.3.1): where room gets rare, nodes are written as a
//! whole, so that lists get shorter; first those that keep a sector whose groups are mostly stale.
//!
//! A group is stale if the list of its node does not name the sector any more. How much of a
//! sector is stale is counted by the bytes of its entries. That is found by
//! reading the sector, so a commit looks at a few only, and goes on there the next time. What still
//! has to get shorter then is taken in turn.
//!
//! And the partition shrinks (section 4): sectors in the tail that the file is to do without get
//! empty. The tree is its own remapper: nodes there are written elsewhere.

use device::Cause;
use index::Result;
use store::{LogicalPage, PageFile};

use super::choices::Waits;
use super::commit::Placed;
use super::layout::{Sector, groups};
use super::store::Store;
use super::table::{NodeId, Table};

/// Sectors that a commit reads to look for stale groups, at most, and numbers of sectors among
/// which it looks.
const READ_MOST: u32 = 16;
const LOOKED_AT_MOST: u32 = 256;

/// Nodes that an update moves out of the tail, at most.
const MOVED_MOST: u64 = 16;

fn may_get_shorter((table, placed, marked): (&Table, &[Placed], &[NodeId]), node: NodeId) -> bool {
    let is_here = placed.iter().any(|it| it.node == node) || marked.contains(&node);
    table.list(node).len() > 1 && !is_here
}

/// The page of a sector; none if it is damaged, which is told when it is needed.
fn sound<'f>(file: &'f mut PageFile<'_>, sector: LogicalPage) -> Result<Option<&'f [u8]>> {
    match file.page(sector, Cause::Update, &Sector) {
        Ok(page) => Ok(Some(page)),
        Err(error) if error.is_damage() => Ok(None),
        Err(error) => Err(error.into()),
    }
}

impl Store<'_> {
    /// Lets sectors go where units of so many nodes would make all lists together too long. Returns
    /// how long they are.
    pub(super) fn make_room_in_lists(&mut self, nodes: usize, most: u64) -> Result<u64> {
        let listed = self.table.listed();
        match self.shape.waits {
            Waits::Units(_) => Ok(listed),
            Waits::Sectors(_) => self.collect(listed, most.saturating_sub(nodes as u64), nodes),
        }
    }

    /// Writes further nodes as a whole, whose lists are not all as short as can be, as long as the
    /// lists together would be too long.
    pub(super) fn make_shorter(
        &mut self,
        mut listed: u64,
        most: u64,
        placed_most: usize,
    ) -> Result<()> {
        let numbers = self.table.numbers().len() as u32;
        for _ in 0..numbers {
            if listed <= most || self.placed.len() >= placed_most {
                break;
            }
            let node = NodeId(self.level_from % numbers);
            self.level_from = node.0 + 1;
            if self.table.exists(node) && self.may_get_shorter(node) {
                listed = self.write_whole(node, listed)?;
                self.counted.compactions += 1;
            }
        }
        Ok(())
    }

    /// True if a node's list is longer than one sector, and is not about to be that.
    fn may_get_shorter(&self, node: NodeId) -> bool {
        may_get_shorter((&self.table, &self.placed, &self.marked), node)
    }

    /// Moves the nodes of a sector out of the tail that the file is to do without, as far as there
    /// is room beside what is promised: those in disk mode get another sector, and others are
    /// logged as a whole by the next commit.
    pub(crate) fn leave_tail(&mut self) -> Result<()> {
        let Some(tail) = self.file.tail() else { return Ok(()) };
        let (_, end) = self.file.pages_used();
        if u64::from(self.file.pages_free()) <= self.promised.saturating_add(self.kept) {
            return Ok(());
        }
        for _ in 0..LOOKED_AT_MOST {
            let sector = LogicalPage(self.leave_from.max(tail.0));
            self.leave_from = if sector.0 + 1 < end { sector.0 + 1 } else { 0 };
            if self.table.is_listed(sector) && !self.is_to_be_written(sector) {
                return self.leave(sector);
            }
        }
        Ok(())
    }

    fn leave(&mut self, sector: LogicalPage) -> Result<()> {
        let (mut number, before) = (0, self.counted.moved);
        // What is moved may be the last that the sector had.
        while self.table.is_listed(sector) && self.counted.moved - before < MOVED_MOST {
            let Some(page) = sound(&mut self.file, sector)? else { return Ok(()) };
            let Some(group) = groups(page).nth(number) else { break };
            let node = group.node;
            number += 1;
            if self.table.names(node, sector) && !self.marked.contains(&node) {
                self.make_room(1)?;
                let frame = self.frame(node, Cause::Update)?;
                match self.table.is_page(node) {
                    true => self.move_page(node, frame)?,
                    false => self.mark(node, frame),
                }
                self.counted.moved += 1;
            }
        }
        Ok(())
    }

    /// Lets sectors go that are mostly stale; returns how long all lists together are then.
    fn collect(&mut self, mut listed: u64, most: u64, placed_most: usize) -> Result<u64> {
        let (_, end) = self.file.pages_used();
        let mut read = 0;
        for _ in 0..LOOKED_AT_MOST {
            if listed <= most || read >= READ_MOST || self.placed.len() >= placed_most {
                break;
            }
            let sector = LogicalPage(self.collect_from);
            self.collect_from = if sector.0 + 1 < end { sector.0 + 1 } else { 0 };
            if !self.table.is_listed(sector) || self.is_to_be_written(sector) {
                continue;
            }
            read += 1;
            let before = self.placed.len();
            while listed > most && self.placed.len() < placed_most {
                let Some(node) = self.kept_by(sector)? else { break };
                listed = self.write_whole(node, listed)?;
                self.counted.compactions += 1;
            }
            let is_emptied = self.placed.len() > before && !self.has_fresh(sector)?;
            self.counted.collected += u64::from(is_emptied);
        }
        Ok(listed)
    }

    /// True if a sector has anything that is not written elsewhere, or may have.
    fn has_fresh(&mut self, sector: LogicalPage) -> Result<bool> {
        let Some(page) = sound(&mut self.file, sector)? else { return Ok(true) };
        let placed = &self.placed;
        let is_fresh =
            |node| self.table.names(node, sector) && !placed.iter().any(|it| it.node == node);
        Ok(groups(page).any(|group| is_fresh(group.node)))
    }

    /// True if the page of a sector stands in memory alone: what the sector has is not known to be
    /// anything.
    fn is_to_be_written(&self, sector: LogicalPage) -> bool {
        let is_dirty = |frame: &u32| self.frames.state(*frame).is_dirty;
        let mut dirty = (0..self.frames.len()).filter(is_dirty).take(self.dirty as usize);
        dirty.any(|frame| {
            let node = self.frames.key(frame).map(NodeId);
            node.is_some_and(|node| self.table.list(node).next() == Some(sector))
        })
    }

    /// A node that a mostly stale sector is kept for, and that may get shorter.
    fn kept_by(&mut self, sector: LogicalPage) -> Result<Option<NodeId>> {
        let Some(page) = sound(&mut self.file, sector)? else { return Ok(None) };
        let this = (&self.table, &self.placed[..], &self.marked[..]);
        let (mut all, mut stale, mut found) = (0, 0, None);
        for group in groups(page) {
            all += group.content.len();
            if !self.table.names(group.node, sector) {
                stale += group.content.len();
            } else if found.is_none() {
                found = Some(group.node).filter(|node| may_get_shorter(this, *node));
            }
        }
        Ok(found.filter(|_| 2 * stale >= all))
    }
}
