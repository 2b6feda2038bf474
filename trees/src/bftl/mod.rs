//! `bftl`: the B-tree layer over a translation layer of Wu, Chang and Kuo, the baseline of four of
//! the five papers.
//!
//! Changes of nodes wait in a reservation buffer of so many index units. When it is full, the
//! units are packed by node into sectors, which are written anew on any translation layer; the node
//! translation table has the sectors of each node. Where a list would get longer than its most, the
//! node is read and written as a whole instead. All of that is `sector_lists`; the memory that is
//! left caches nodes.
//!
//! One update, from top to bottom: [`Tree::apply`] has what waits written if the buffer is full;
//! [`BTree::put`] goes down to the leaf and edits it; the store notes the unit.
//!
//! # Choices that the papers leave open
//! - A node has as many bytes as fit a sector beside the headers, so that it is one sector after
//!   it was compacted.
//! - A node that splits, or takes over entries of a neighbour, is written as a whole by the next
//!   commit.
//! - Sectors are filled one after the other, first with units, then with whole nodes.
//! - A checkpoint begins with a commit, so its root record has the table and no units.
//! - On a small disk the buffer is smaller, and where room gets rare lists are shorter: see
//!   `room.rs`.
//!
//! # Invariants
//! - As `sector_lists` and `btree` have them.

mod check;
mod cost;
mod make;
mod room;
mod root;

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::fmt::Display;

use device::Meter;
use store::node::Stored;
use store::{Recovery, Update};

use crate::btree::{self, At, BTree, NodeSource, Scan};
use crate::sector_lists::{NodeId, Store};
use index::bounds::{EntryLimits, can_be};
use index::parameters::{Kind, Parameter};
use index::{Cursor, KeyRange, Read, Result, Resume, Statistics, Tree, UPDATES_WAITING};
use index::{DeletePolicy, TreeDescriptor};
use root::Root;

/// The registry's line.
pub(crate) const ENTRY: TreeDescriptor = TreeDescriptor {
    name: NAME,
    about: "changes of nodes wait, and are packed into sectors: a node is a list of sectors",
    paper: "Wu, Chang and Kuo (2003), as the papers measure it",
    nand: false,
    sectors: true,
    deletes: |_| DeletePolicy::Merge,
    tables_grow: true,
    long_values: false,
    parameters: PARAMETERS,
    create: make::create,
    open: make::open,
    footprint: make::footprint,
    predict: cost::predict,
};

const NAME: &str = "bftl";

/// The most units that the buffer can be given.
const UNITS_MOST: u64 = 4096;

/// The most sectors that a list can be given.
const LIST_MOST: u64 = 64;

const RESERVATION: Parameter = Parameter {
    name: "reservation",
    about: "index units that wait before they are written; fewer on a small disk",
    kind: Kind::Count(1, UNITS_MOST),
    default: "60",
};

const LIST: Parameter = Parameter {
    name: "list",
    about: "sectors that a node may be spread over before it is written as a whole",
    kind: Kind::Count(1, LIST_MOST),
    default: "3",
};

const SECTOR: Parameter = Parameter {
    name: "sector",
    about: "bytes in a sector, which a node fills: a multiple of the device's page",
    kind: Kind::Bytes,
    default: "",
};

const PARAMETERS: &[Parameter] = &[RESERVATION, LIST, SECTOR];

/// The tree.
pub(crate) struct Bftl<'d> {
    store: Store<'d>,
    btree: BTree<NodeId>,
    /// The parameter, of which a small disk has less.
    reservation: u16,
    /// The most bytes of tables, and the most that they took so far.
    tables_most: Option<u64>,
    tables_peak: u64,
}

impl Bftl<'_> {
    fn limits(&self) -> EntryLimits {
        let most = self.entry_bytes_most();
        EntryLimits { shape: self.store.shape.codecs.shape, key: most, entry: most }
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

impl Read for Bftl<'_> {
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
        tell("sectors in lists", self.store.table.listed());
    }

    fn meter(&self) -> Option<&Meter> {
        self.store.file.meter()
    }
}

impl Tree for Bftl<'_> {
    fn admit(&mut self, batch: &[Update<'_>]) -> Result<()> {
        self.limits().check_batch(batch)?;
        self.check_room(batch)
    }

    fn apply(&mut self, update: &Update<'_>) -> Result<()> {
        // Nobody admitted what a damaged journal holds.
        self.limits().check_batch(core::slice::from_ref(update))?;
        self.store.kept = self.pages_kept();
        // A commit that fails comes before the change: then that is merely refused.
        if self.store.is_full() {
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

    fn maintain(&mut self, _: u32) -> Result<bool> {
        Ok(false)
    }

    fn root_record(&mut self) -> Result<Vec<u8>> {
        self.store.kept = self.pages_kept();
        self.store.commit()?;
        self.store.file.write_back_all()?;
        self.tables_peak = self.tables_stated();
        Ok(Root::of(self).encode(&self.store.table))
    }

    fn restore(&mut self, record: &[u8]) -> Result<()> {
        let (root, table) = Root::decode(record)?;
        let (_, sectors) = self.store.file.pages_used();
        let is_sound = root.list == self.store.shape.list
            && root.shape == self.store.shape.codecs.shape
            && self.store.table.read(table, root.numbers, sectors)
            && self.store.table.exists(root.node);
        if !is_sound {
            return Err(root::damaged().into());
        }
        self.store.forget_all();
        self.store.levels = root.levels;
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
