//! The B+-tree over lists of sectors: what `bftl` and `flashdb` are, with their choices.
//!
//! One update, from top to bottom: [`Tree::apply`] lets nodes change their form that are due, and
//! has what waits written if the buffer is full; [`BTree::put`] goes down to the leaf and edits it;
//! the store notes the unit, or has the node written as a page.

mod check;
#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test fails by panicking")]
mod competitive;
mod cost;
mod make;
mod node_size;
mod played;
mod room;
mod root;
#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test fails by panicking")]
mod scanned;

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::fmt::Display;

use device::Meter;
use store::node::Stored;
use store::{Recovery, Update};

use super::{Choices, Mode, NodeId, Scanned, Store, Waits};
use crate::btree::{self, At, BTree, NodeSource, Scan};
use index::bounds::{EntryLimits, can_be};
use index::parameters::{Kind, Parameter};
use index::{Cursor, KeyRange, Options, Read, Result, Resume, Statistics, Tree, UPDATES_WAITING};
use index::{DeletePolicy, TreeDescriptor};
use root::Root;

/// A tree that stands on this store.
pub(crate) trait Kindred {
    const NAME: &'static str;
    const PARAMETERS: &'static [Parameter];
    /// The parameter for the bytes in a sector.
    const SECTOR: &'static str;

    /// True if a node, where its size is not given, is as long as is best on the device.
    const IS_SIZED: bool;

    /// What is chosen when an index is made, with sectors of so many bytes.
    fn choices(options: &Options, sector: u32) -> Choices;
}

/// The registry's line of a tree.
pub(crate) const fn descriptor<K: Kindred>(
    about: &'static str,
    paper: &'static str,
) -> TreeDescriptor {
    TreeDescriptor {
        name: K::NAME,
        about,
        paper,
        nand: false,
        sectors: true,
        deletes: |_| DeletePolicy::Merge,
        tables_part: |_| 2,
        long_values: false,
        parameters: K::PARAMETERS,
        create: make::create::<K>,
        open: make::open::<K>,
        footprint: make::footprint::<K>,
        predict: cost::predict::<K>,
    }
}

/// The most sectors that a list can be given.
const LIST_MOST: u64 = 64;

/// The parameter for the most sectors of a list, by the tree's own name for it.
pub(crate) const fn list(name: &'static str, default: &'static str) -> Parameter {
    Parameter {
        name,
        about: "sectors that a node may be spread over before it is written as a whole",
        kind: Kind::Count(1, LIST_MOST),
        default,
    }
}

/// The parameter for the bytes in a sector, by the tree's own name for it.
pub(crate) const fn sector(name: &'static str) -> Parameter {
    Parameter {
        name,
        about: "bytes in a sector, which a node fills: a multiple of the device's page",
        kind: Kind::Bytes,
        default: "",
    }
}

/// A number that is given, or else `default`, from 1 to `most`.
pub(crate) fn number(options: &Options, name: &str, default: u64, most: u64) -> u64 {
    options.settings.number(name).unwrap_or(default).clamp(1, most)
}

/// The most sectors of a list, by the tree's own name for it.
pub(crate) fn list_most(options: &Options, name: &str, default: u64) -> usize {
    number(options, name, default, LIST_MOST) as usize
}

/// The tree.
pub(crate) struct ListTree<'d> {
    store: Store<'d>,
    btree: BTree<NodeId>,
    name: &'static str,
    /// What it was made with; a small disk has a smaller buffer.
    choices: Choices,
    /// The most bytes of tables, and the most that they took so far.
    tables_most: Option<u64>,
    tables_peak: u64,
}

impl ListTree<'_> {
    fn limits(&self) -> EntryLimits {
        let codecs = &self.store.shape.codecs;
        let (key, entry) = (codecs.key_bytes_most(), self.entry_bytes_most());
        EntryLimits { shape: codecs.shape, key, entry }
    }

    /// Bytes of the tree's own tables that are stated.
    fn tables_stated(&self) -> u64 {
        self.tables_peak.max(self.store.table.bytes())
    }

    fn append(&mut self, key: &[u8], value: &[u8], fill: u8) -> Result<()> {
        self.make_room_to_load()?;
        let entry = (key, Stored::inline(value));
        if self.btree.append(&mut self.store, entry, fill)? {
            return Ok(());
        }
        let leaf = self.btree.begin_leaf(&mut self.store, key, fill)?;
        if !self.btree.append(&mut self.store, entry, fill)? {
            return Err(self.store.damaged(leaf, "it is empty and has no room"));
        }
        Ok(())
    }
}

impl ListTree<'_> {
    /// Becomes what a scan found, with the first bytes of the root record.
    fn rebuild(&mut self, head: &[u8], scan: Scanned) -> Result<()> {
        let (root, entries) = Root::head(head, self.name)?;
        self.store.rebuild(scan, root)?;
        (self.btree.root, self.btree.entries) = (root, entries);
        self.store.kept = self.pages_kept();
        self.tables_peak = self.tables_stated();
        Ok(())
    }
}

impl Read for ListTree<'_> {
    fn get(&mut self, key: &[u8], offset: u32, into: &mut [u8]) -> Result<Option<u32>> {
        if !can_be(self.limits().check_key(key))? {
            return Ok(None);
        }
        btree::read(&mut self.store, self.btree.root, key, (offset, into))
    }

    fn range<'c>(&'c mut self, range: KeyRange<'_>) -> Result<Box<dyn Cursor + 'c>> {
        let range = range.within_length(|key| self.limits().check_key(key))?;
        Ok(Box::new(Scan::new(&mut self.store, &(), self.btree.root, range)?))
    }

    fn check(&mut self, finding: &mut dyn FnMut(&dyn Display)) -> Result<()> {
        check::check(self, finding)
    }

    fn resume_after(&mut self, key: Option<&[u8]>) -> Result<Resume> {
        key.map_or(Ok(()), |key| self.limits().check_key(key))?;
        btree::resume_after(&mut self.store, self.btree.root, key)
    }

    fn statistics(&self) -> Statistics {
        let Store { file, shape, .. } = &self.store;
        let mut memory = file.memory();
        memory.cache += self.store.cache_bytes();
        memory.buffers += make::work_bytes(shape);
        memory.tables += self.tables_stated();
        Statistics {
            height: self.btree.height().into(),
            live_pages: file.sectors_used(),
            memory,
            memory_peak: memory.cache + memory.buffers + memory.tables,
        }
    }

    fn metrics(&self, tell: &mut dyn FnMut(&'static str, u64)) {
        let (leaves, inner) = self.store.levels.split_at(1);
        let nodes = |levels: &[u32]| levels.iter().map(|nodes| u64::from(*nodes)).sum();
        tell(index::LEAVES, nodes(leaves));
        tell(index::INNER_NODES, nodes(inner));
        tell(UPDATES_WAITING, self.store.waiting() as u64);
        let counted = &self.store.counted;
        // Pages do not show them: nodes share sectors, and wait.
        tell(index::NODES_SPLIT, counted.made);
        tell(index::NODES_MERGED, counted.freed);
        tell("commits", counted.commits);
        tell("nodes compacted", counted.compactions);
        tell("sectors written", counted.sectors);
        tell("groups written", counted.groups);
        tell("entries logged", counted.units);
        tell("sectors in lists", self.store.table.listed());
        tell("bytes of the table", self.store.table.own_bytes());
        if matches!(self.choices.waits, Waits::Sectors(_)) {
            tell("sectors collected", counted.collected);
        }
        tell("nodes moved for a shorter file", counted.moved);
        if self.choices.mode != Mode::Log {
            tell("nodes in disk mode", self.store.table.pages().into());
            tell("nodes written in disk mode", counted.pages);
            tell("nodes switched to disk mode", counted.to_disk);
            tell("nodes switched to log mode", counted.to_log);
            tell("bytes of counters", self.store.table.counter_bytes());
        }
    }

    fn meter(&self) -> Option<&Meter> {
        self.store.file.meter()
    }
}

impl Tree for ListTree<'_> {
    fn admit(&mut self, batch: &[Update<'_>]) -> Result<()> {
        self.limits().check_batch(batch)?;
        self.check_room(batch)
    }

    fn apply(&mut self, update: &Update<'_>) -> Result<()> {
        // Nobody admitted what a damaged journal holds.
        self.limits().check_batch(core::slice::from_ref(update))?;
        self.store.kept = self.pages_kept();
        // A failure of these comes before the change: then that is merely refused.
        self.store.adapt()?;
        self.store.leave_tail()?;
        if self.store.is_full(update) {
            self.store.commit()?;
        }
        match update {
            Update::Put { key, value } => {
                self.btree.put(&mut self.store, key, Stored::inline(value))?;
            }
            Update::Delete { key } => {
                self.btree.delete(&mut self.store, key)?;
            }
            Update::PutStored { .. } => return Err(store::Error::AdoptedTwice.into()),
        }
        self.tables_peak = self.tables_stated();
        Ok(())
    }

    fn wants_room(&self) -> bool {
        let file = &self.store.file;
        let is_short = u64::from(file.pages_free()) < self.step();
        file.durability().has_journal() && is_short && self.waits_for_checkpoint()
    }

    fn pages_promised(&self) -> Option<u64> {
        // Lists of two sectors each, as where puts are let in.
        let all = 2 * u64::from(self.store.table.nodes()) + self.pages_kept();
        Some(all.saturating_sub(self.store.table.sectors().into()))
    }

    fn rebase(&mut self) {
        self.store.freed_at = None;
    }

    fn waits_for_checkpoint(&self) -> bool {
        self.store.freed_at == Some(self.store.file.statistics().checkpoint)
    }

    fn is_poisoned(&self) -> bool {
        self.btree.is_poisoned || self.store.is_poisoned
    }

    fn load(&mut self, sorted: &mut dyn Cursor, fill_percent: u8) -> Result<u64> {
        if self.btree.entries > 0 {
            return Err(index::Error::NotEmpty);
        }
        self.store.kept = self.pages_kept();
        self.btree.begin_load(&mut self.store)?;
        let taken = self.limits().take_sorted(sorted, |key, value| {
            self.append(key, value, make::fill_percent(fill_percent))
        });
        self.tables_peak = self.tables_stated();
        taken
    }

    fn root_record(&mut self) -> Result<Vec<u8>> {
        self.store.kept = self.pages_kept();
        self.store.commit()?;
        self.store.write_pages()?;
        if let Some(pages) = self.store.root_pages.take() {
            self.store.file.free_root(pages)?;
        }
        self.store.file.write_back_all()?;
        self.tables_peak = self.tables_stated();
        Ok(Root::of(self).encode(self.name, &self.store.table))
    }

    fn restore(&mut self, record: &[u8]) -> Result<()> {
        let (root, table) = Root::decode(record, self.name)?;
        let (_, sectors) = self.store.file.pages_used();
        let is_sound = root.choices == self.choices
            && root.shape == self.store.shape.codecs.shape
            && self.store.table.read(table, root.numbers, sectors)
            && self.store.table.exists(root.node);
        if !is_sound {
            return Err(root::damaged().into());
        }
        self.store.forget_all();
        self.store.levels = root.levels;
        self.store.sequence = root.sequence;
        self.btree.root = At { id: root.node, level: root.level };
        self.btree.entries = root.entries;
        self.btree.is_poisoned = false;
        self.store.kept = self.pages_kept();
        self.tables_peak = self.tables_stated();
        Ok(())
    }

    fn entry_bytes_most(&self) -> usize {
        self.store.shape.codecs.leaf.entry_bytes_most()
    }

    fn pages_changed(&self, batch: &[Update<'_>]) -> u32 {
        self.images(batch)
    }

    fn checkpoints_within(&self) -> bool {
        true
    }

    fn recovery(&self) -> &dyn Recovery {
        &self.store.file
    }

    fn recovery_mut(&mut self) -> &mut dyn Recovery {
        &mut self.store.file
    }
}
