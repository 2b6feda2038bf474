//! Changes of nodes that need the scratch node.

use device::Cause;
use store::node::Codec;

use super::super::layout::{NodeId, damaged};
use super::super::storage::Storage;
use super::Nodes;
use crate::btree::Edit;
use index::Result;

impl Nodes {
    /// Makes a change in a node at a level; false, and nothing changed, if there is no room for it.
    pub(in super::super) fn edit(
        &mut self,
        log: &mut Storage<'_>,
        (id, level): (NodeId, u8),
        edit: Edit<'_>,
    ) -> Result<bool> {
        let codec = self.at(level);
        let log = match log {
            Storage::Disk(disk) => {
                let node = self.page_mut(disk, id, level, Cause::Update)?;
                return Ok(edit.apply(&codec, node, &mut self.scratch));
            }
            Storage::Chip(log) => log,
        };
        let frame = self.frame(log, id, level, Cause::Update)?;
        let is_done = edit.apply(&codec, self.cache.node_mut(frame), &mut self.scratch);
        if is_done {
            self.cache.set_dirty(frame, true);
        }
        Ok(is_done)
    }

    /// Lets `change` move entries between two nodes of one level, whose codec it gets, and a node
    /// of memory.
    pub(in super::super) fn change_pair(
        &mut self,
        log: &mut Storage<'_>,
        pair: (NodeId, NodeId),
        level: u8,
        change: impl FnOnce(&Codec, &mut [u8], &mut [u8], &mut [u8]),
    ) -> Result<()> {
        let codec = self.at(level);
        let log = match log {
            Storage::Disk(disk) => {
                let pages = self.logical_pair(disk, pair, level, Cause::Update)?;
                let (left, right) = disk.file.two_pages_mut(pages, Cause::Update, &self.codecs)?;
                change(&codec, left, right, &mut self.scratch);
                return Ok(());
            }
            Storage::Chip(log) => log,
        };
        let (first, second) = self.frames(log, pair, level, Cause::Update)?;
        if first == second {
            return Err(damaged(self.page_of(pair.0), "a node is its own neighbour"));
        }
        self.cache.set_dirty(first, true);
        self.cache.set_dirty(second, true);
        let (left, right) = self.cache.two_mut(first, second);
        change(&codec, left, right, &mut self.scratch);
        Ok(())
    }
}
