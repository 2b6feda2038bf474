//! The engine of the trees that copy their paths: on raw flash a change of a leaf moves it, so its
//! parent changes too, and all nodes up to the root.
//!
//! Three divisions of a page are three trees ([`layout::Division`]): mu-Tree and mu*-Tree put the
//! whole path into one page, the B+-tree that wanders gives every node its own. All else is the
//! same.
//!
//! One `put`, from top to bottom ([`operations`]): it is let in if there is room for it
//! ([`admission`]), and waits in the operation buffer ([`recent`]). What leaves that ([`flush`])
//! goes to the tree on flash ([`bare_tree`]): down the [`path`] to its leaf, then a [`plan`] of the
//! pages that the new path takes, for which the [`policy`] divides them, and their bytes
//! ([`assembly`]). Where few blocks are free, [`collection`] chooses [`victims`] and moves what
//! lives in them, page by page or in one [`walk`].
//!
//! No part knows the tree, and none a part that stands on it: [`page`] says what stands in a page,
//! [`path_nodes`] reads and programs pages, with a [`node_cache`], [`live`] which of them live,
//! [`census`] counts nodes, and [`room`] what the chip takes. [`operations`] and this file are the
//! tree's own, and [`make`], which makes and opens it; [`cost`] tells what a workload costs.
//!
//! # Durability
//! The root record of a checkpoint names the root's page, and the page log keeps what the last
//! checkpoint reaches. What the operation buffer holds goes to the tree before one, unless the
//! journal stays.
//!
//! # Invariants
//! - What collection erases is reached by no root that an opening could find.
//! - Moves and deletes add no node, and puts only as many as there is room for: [`room`].

mod admission;
mod assembly;
mod bare_tree;
mod census;
mod check;
mod collection;
pub(crate) mod cost;
pub(crate) mod flush;
pub(crate) mod layout;
mod live;
mod load;
pub(crate) mod make;
mod node_cache;
mod operations;
mod page;
mod path;
mod path_nodes;
mod plan;
pub(crate) mod policy;
mod recent;
mod room;
mod root;
mod victims;
mod walk;

#[cfg(test)]
pub(crate) mod model;

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::fmt::Display;

use device::{Cause, Meter};
use store::{Memory, Recovery, Update};

use crate::btree::{self, At, Scan};
use admission::Admission;
use bare_tree::BareTree;
use collection::Collection;
use flush::Flush;
use index::bounds::{EntryLimits, can_be};
use index::{Cursor, Error, KeyRange, Read, Result, Resume, Statistics, Tree, read_piece};
use recent::Recent;
use root::Root;

/// A tree that copies its paths.
pub(crate) struct PathTree<'d> {
    name: &'static str,
    limits: EntryLimits,
    bare: BareTree<'d>,
    /// Puts and deletes that the tree has not seen.
    buffer: Recent,
    flush: Flush,
    admission: Admission,
    collection: Collection,
}

impl Read for PathTree<'_> {
    fn get(&mut self, key: &[u8], offset: u32, into: &mut [u8]) -> Result<Option<u32>> {
        if !can_be(self.limits.check_key(key))? {
            return Ok(None);
        }
        if let Some((_, held)) = self.buffer.get(key) {
            return Ok(held.map(|value| read_piece(value, offset, into)));
        }
        let root = self.bare.root();
        btree::read(&mut self.bare.nodes, root, key, (offset, into))
    }

    fn range<'c>(&'c mut self, range: KeyRange<'_>) -> Result<Box<dyn Cursor + 'c>> {
        let range = range.within_length(|key| self.limits.check_key(key))?;
        let root = self.bare.root();
        Ok(Box::new(Scan::new(&mut self.bare.nodes, &self.buffer, root, range)?))
    }

    fn check(&mut self, finding: &mut dyn FnMut(&dyn Display)) -> Result<()> {
        check::check(&mut self.bare, finding)
    }

    fn resume_after(&mut self, key: Option<&[u8]>) -> Result<Resume> {
        key.map_or(Ok(()), |key| self.limits.check_key(key))?;
        let root = self.bare.root();
        btree::resume_after(&mut self.bare.nodes, root, key)
    }

    fn statistics(&self) -> Statistics {
        let bare = &self.bare;
        let memory = Memory {
            cache: bare.nodes.cache_bytes(),
            buffers: bare.working_bytes() + self.buffer.memory_bytes() as u64,
            tables: bare.nodes.log.table_bytes() + bare.live.memory_bytes(),
            ftl: 0,
        };
        Statistics {
            height: u32::from(bare.height()),
            live_pages: u64::from(bare.standing().live_pages),
            memory,
            memory_peak: memory.cache + memory.buffers + memory.tables,
        }
    }

    fn metrics(&self, tell: &mut dyn FnMut(&'static str, u64)) {
        tell(index::NODES_EMPTIED, self.bare.emptied);
        tell(index::LEAVES, self.bare.census.demand.leaves());
        tell(index::INNER_NODES, self.bare.census.demand.inner());
        tell(index::UPDATES_WAITING, self.buffer.len() as u64);
    }

    fn meter(&self) -> Option<&Meter> {
        self.bare.nodes.log.meter()
    }
}

impl Tree for PathTree<'_> {
    fn admit(&mut self, batch: &[Update<'_>]) -> Result<()> {
        self.limits.check_batch(batch)?;
        self.admit_updates(batch)
    }

    fn apply(&mut self, update: &Update<'_>) -> Result<()> {
        while !self.apply_step(update)? {}
        Ok(())
    }

    fn apply_step(&mut self, update: &Update<'_>) -> Result<bool> {
        self.bare.allow_growth();
        match update {
            Update::Put { key, value } => self.update(key, Some(value)),
            Update::Delete { key } => self.update(key, None),
            Update::PutStored { .. } => Err(store::Error::AdoptedTwice.into()),
        }
    }

    fn wants_room(&self) -> bool {
        // Without a journal what a batch writes is free before it is taken.
        let (log, room) = (&self.bare.nodes.log, self.bare.room());
        // Beside named checkpoints, too, all was free; there the reserve is in hand.
        let needed = match log.pinned_blocks() {
            0 => room.reserve_blocks(self.bare.census.demand.inner()),
            _ => room.change_blocks() + u64::from(room.spare_blocks),
        };
        log.durability().has_journal() && u64::from(log.free_blocks()) < needed
    }

    fn reclaim(&mut self) -> Result<()> {
        match self.empty_blocks()? {
            true => Ok(()),
            false => Err(self.bare.nodes.no_room()),
        }
    }

    fn rebase(&mut self) {
        self.admission.begin_replay(&operations::now(&self.bare, 0));
    }

    fn waits_for_checkpoint(&self) -> bool {
        // A checkpoint is the base again of what is promised.
        self.bare.nodes.log.blocks_to_erase() > 0 || self.admission.lacks_base
    }

    fn has_waiting(&self) -> bool {
        self.buffer.len() > 0
    }

    fn flush(&mut self) -> Result<()> {
        self.write_waiting(0)
    }

    fn is_drained(&self) -> bool {
        let is_written = self.bare.nodes.lasts() || self.buffer.len() == 0;
        is_written && self.admission.wanted == 0
    }

    fn drain(&mut self) -> Result<bool> {
        if !self.bare.nodes.lasts() {
            return self.write_oldest();
        }
        let is_gained = self.empty_blocks()?;
        if !is_gained || self.bare.nodes.free_soon() >= self.admission.wanted {
            self.admission.wanted = 0;
        }
        Ok(is_gained)
    }

    fn is_poisoned(&self) -> bool {
        // Nothing of a change counts before its last page stands.
        false
    }

    fn load(&mut self, sorted: &mut dyn Cursor, fill_percent: u8) -> Result<u64> {
        if self.buffer.len() > 0 {
            return Err(Error::NotEmpty);
        }
        let (limits, (collection, tree)) = (self.limits, self.parts());
        load::load_sorted(tree, collection, limits, (sorted, fill_percent))
    }

    fn root_record(&mut self) -> Result<Vec<u8>> {
        Ok(self.bare.record().encode(self.name))
    }

    fn restore(&mut self, root: &[u8]) -> Result<()> {
        let root = Root::decode(root, self.name)?;
        while let Some(place) = self.buffer.oldest_place() {
            self.buffer.remove(place..place + 1);
        }
        self.collection.victim = None;
        self.bare.restore(&root, self.buffer.memory_bytes() as u64)?;
        self.rebase();
        Ok(())
    }

    fn pin_savepoints(&mut self) -> Result<()> {
        let nodes = &mut self.bare.nodes;
        nodes.log.unpin_all()?;
        for place in 0..nodes.log.checkpoints().len() {
            let Some(kept) = nodes.log.checkpoints().get(place) else {
                break;
            };
            let name = kept.name.clone();
            let record = nodes.log.kept_root(&name)?;
            let root = Root::decode(&record, self.name)?;
            let header = nodes.read_header(root.page, Cause::Recovery)?;
            // No leaf is read: its page is known from its parent.
            let root = At { id: root.page, level: header.layout.height - 1 };
            nodes.walk(root, Cause::Recovery, |log, page| log.pin(page))?;
        }
        Ok(())
    }

    fn entry_bytes_most(&self) -> usize {
        self.limits.entry
    }

    fn key_bytes_most(&self) -> usize {
        self.limits.key
    }

    fn pages_changed(&self, _batch: &[Update<'_>]) -> u32 {
        // Admission has seen to it.
        0
    }

    fn recovery(&self) -> &dyn Recovery {
        &self.bare.nodes.log
    }

    fn recovery_mut(&mut self) -> &mut dyn Recovery {
        &mut self.bare.nodes.log
    }
}
