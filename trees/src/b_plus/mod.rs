//! `b-plus`: the standard B+-tree, the yardstick of all five papers.
//!
//! Every node is a page of the page file, rewritten in place. Entries are in the leaves; an inner
//! node holds, for each child, the lowest key that may be below it and the child's page. There are
//! no links between leaves: a range goes on through the parents, so a 2 KiB leaf holds 170 entries
//! of 12 bytes, and the same tree can wander on raw flash.
//!
//! One `put`, from top to bottom: [`BPlus::put`] writes a long value apart ([`values`]),
//! [`BTree::put`] goes down to the leaf, writes the entry, and where the leaf is full splits it; a
//! delete borrows or merges.
//!
//! So it is on sectors. On raw flash every update rewrites its path: [`wandering`].
//!
//! # Choices that textbooks leave open
//! - A full node is split in the middle. Only where keys arrive in ascending order, at the right
//!   edge of the tree, the left node keeps `fill` percent.
//! - A node below half borrows from, or merges with, one neighbour: the left one if there is one.
//! - Separators between leaves of variable keys are as short as they can be.
//! - With entries of variable length a node may stay below half, where its neighbour's entries or
//!   the parent's new separator would not fit.
//!
//! # Invariants
//! - The first key of an inner node is exactly the separator that its parent has for it; on the
//!   left edge that is the lowest key there is.
//! - A child's level is its parent's minus one, so no damage can make a descent run in a circle.
//! - At most three pages are needed at a time: see [`store::FRAMES_LEAST`].

mod check;
mod cost;
mod layout;
mod load;
mod room;
mod values;
mod waiting;
mod wandering;

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::fmt::Display;
use core::ops::Bound;
use core::slice;

use device::{Cause, Medium, Meter};
use store::node;
use store::{Durability, LogicalPage, PageFile, Recovery, Update};

use crate::btree::{self, At, BTree, Codecs, NodeStore, PageStore, Puts, Scan};
use crate::path_copying::layout::Division;
use crate::path_copying::{flush, make};
use index::parameters::{Kind, Parameter};
use index::{Cursor, Durable, Index, KeyRange, Read, Result, Resume, Statistics, Tree, read_piece};
use index::{DeletePolicy, Footprint, MediumShape, Options, TreeDescriptor};
use layout::{Root, codecs};
use waiting::Waiting;

/// The registry's line.
pub(crate) const ENTRY: TreeDescriptor = TreeDescriptor {
    name: NAME,
    about: "the standard B+-tree, one node a page, rewritten in place; on raw flash it wanders",
    paper: "the baseline of all five papers",
    nand: true,
    sectors: true,
    deletes: |on_nand| if on_nand { DeletePolicy::Empty } else { DeletePolicy::Merge },
    tables_part: |_| 0,
    long_values: true,
    parameters: PARAMETERS,
    create,
    open,
    footprint,
    predict: cost::predict,
};

const NAME: &str = "b-plus";

/// Nodes are never filled to less than half, which a delete would mend at once.
const FILL_LEAST: u8 = 50;

const PARAMETERS: &[Parameter] = &[
    Parameter {
        name: "node",
        about: "bytes in a node: a multiple or a whole fraction of the device's page",
        kind: Kind::Bytes,
        default: "",
    },
    Parameter {
        name: "fill",
        about: "percent of a node that loading, and keys in ascending order, fill",
        kind: Kind::Percent(FILL_LEAST),
        default: "70",
    },
    make::COLLECT,
    make::CACHE,
    flush::parameter(Division::Whole),
    WAITING,
];

/// What waits for its leaf: nothing in the standard B+-tree, which is what papers measure.
const WAITING: Parameter = Parameter {
    name: "waiting",
    about: "on sectors: share of the memory left over in which updates wait; 0.5 in databases",
    kind: Kind::Ratio(0.0, 0.75),
    default: "0",
};

/// The tree.
pub(crate) struct BPlus<'d> {
    store: PageStore<'d>,
    btree: BTree<LogicalPage>,
    /// Bytes in the longest long value that there ever was.
    longest_value: u32,
    /// Updates that are in no leaf yet.
    waiting: Waiting,
    /// Puts that waited since the last checkpoint behind which nothing does: a replay makes all of
    /// them again.
    puts: Puts,
    /// What makes way: its key and its value.
    outgoing: (Vec<u8>, Vec<u8>),
}

fn create<'d>(medium: Medium<'d>, options: &Options) -> Result<Box<dyn Index + 'd>> {
    let disk = match medium {
        Medium::Sectors(disk) => disk,
        Medium::Nand(nand) => return wandering::create(nand, options),
    };
    let node_bytes = node_bytes(options, disk.geometry());
    let nodes = codecs(node_bytes, options.shape)?;
    let (memory_bytes, waiting) = shares(options, &nodes, (disk.geometry(), options.durability))?;
    let file_options = options.page_file(node_bytes, memory_bytes);
    let shape = MediumShape::Sectors(disk.geometry());
    shape.check_units(disk.geometry().sectors(), |like| footprint(options, like))?;
    let mut store = PageStore::new(PageFile::create(disk, &file_options)?, nodes);
    let root = store.create(0, Cause::Load)?;
    let tree = BPlus::over(store, root, options, waiting);
    Ok(Box::new(Durable::create(tree)?))
}

fn open<'d>(medium: Medium<'d>, options: &Options) -> Result<Box<dyn Index + 'd>> {
    let mut disk = match medium {
        Medium::Sectors(disk) => disk,
        Medium::Nand(nand) => return wandering::open(nand, options),
    };
    let found = PageFile::describe(&mut *disk)?;
    let nodes = codecs(found.page_bytes, Root::decode(&found.root_head, NAME)?.shape)?;
    let shape = (disk.geometry(), Some(found.durability));
    let (memory_bytes, waiting) = shares(options, &nodes, shape)?;
    let (file, record) = PageFile::open(disk, &options.page_file(found.page_bytes, memory_bytes))?;
    let store = PageStore::new(file, nodes);
    let mut tree = BPlus::over(store, LogicalPage(0), options, waiting);
    tree.restore(&record)?;
    Ok(Box::new(Durable::open(tree)?))
}

fn node_bytes(options: &Options, disk: device::SectorGeometry) -> u32 {
    let default = disk.sector_bytes().clamp(node::NODE_BYTES_LEAST, node::NODE_BYTES_MOST);
    match options.settings.number("node") {
        Some(bytes) => u32::try_from(bytes).unwrap_or(u32::MAX),
        None => default,
    }
}

/// Bytes of the memory budget that are not the page file's: the scratch node, the separator and the
/// key before, and a cursor's key and bound, or what a replay reads.
fn buffer_bytes(nodes: &Codecs) -> u64 {
    nodes.leaf.node_bytes() as u64 + 4 * nodes.leaf.entry_bytes_most() as u64
}

/// What the page file gets of the memory budget, and what waits.
fn shares(
    options: &Options,
    nodes: &Codecs,
    (disk, durability): (device::SectorGeometry, Option<Durability>),
) -> Result<(u64, u64)> {
    let (have, need) = (options.memory_bytes, buffer_bytes(nodes));
    let rest = have.checked_sub(need).ok_or(store::Error::LittleMemory { have, need })?;
    let durability = durability.unwrap_or_default();
    let node = nodes.leaf.node_bytes() as u32;
    let left = rest.saturating_sub(PageFile::least_memory(disk, node, durability)?);
    // Without a journal what waits would have room for its images at once only.
    let may_wait = durability == Durability::None || durability.has_journal();
    let share = options.settings.ratio(WAITING.name).filter(|_| may_wait).unwrap_or(0.0);
    let waiting = (left as f64 * share) as u64;
    Ok((rest - waiting, waiting))
}

fn footprint(options: &Options, medium: MediumShape) -> Result<Footprint> {
    let disk = match medium {
        MediumShape::Sectors(disk) => disk,
        MediumShape::Nand(chip) => return wandering::footprint(options, chip),
    };
    let node_bytes = node_bytes(options, disk);
    let nodes = codecs(node_bytes, options.shape)?;
    let file = options.page_file(node_bytes, 0);
    // The root, and what the first put may need.
    let pages = 1 + nodes.pages_for_one(1);
    Ok(Footprint {
        memory_least: PageFile::least_memory(disk, node_bytes, file.durability)?
            + buffer_bytes(&nodes),
        tables: PageFile::pages_and_tables(disk, node_bytes, file.durability)?.1,
        units_least: PageFile::sectors_least(disk, &file, pages, 0)?,
    })
}

impl<'d> BPlus<'d> {
    fn over(store: PageStore<'d>, root: LogicalPage, options: &Options, waiting: u64) -> Self {
        let fill = options.settings.number("fill").unwrap_or(70);
        let codecs = store.codecs;
        BPlus {
            btree: BTree::new(root, codecs, fill_percent(fill)),
            longest_value: 0,
            waiting: Waiting::new(codecs.shape, codecs.leaf.node_bytes() as u32, waiting),
            puts: Puts::default(),
            outgoing: (Vec::new(), Vec::new()),
            store,
        }
    }

    fn delete(&mut self, key: &[u8]) -> Result<()> {
        let before = self.btree.delete(&mut self.store, key)?;
        self.drop_value(before)
    }

    /// True if an update may wait. While checkpoints are kept by name none does: what changes then
    /// has its images taken before it is let in.
    fn lets_wait(&self, update: &Update<'_>) -> Result<bool> {
        self.store.codecs.check_update(update)?;
        let (key, value) = match update {
            Update::Put { key, value } => (key.len(), value.len()),
            Update::Delete { key } => (key.len(), 0),
            Update::PutStored { .. } => return Ok(false),
        };
        let is_long = self.store.codecs.is_long(key, value as u32);
        let fits = !is_long && self.waiting.takes(key, value);
        Ok(fits && self.store.file.checkpoints().is_empty())
    }
}

fn fill_percent(percent: u64) -> u8 {
    percent.clamp(u64::from(FILL_LEAST), 100) as u8
}

impl Read for BPlus<'_> {
    fn get(&mut self, key: &[u8], offset: u32, into: &mut [u8]) -> Result<Option<u32>> {
        self.store.codecs.check_key(key)?;
        if let Some(update) = self.waiting.get(key) {
            return Ok(update.map(|value| read_piece(value, offset, into)));
        }
        btree::read(&mut self.store, self.btree.root, key, (offset, into))
    }

    fn prefetch(&mut self, keys: &[&[u8]]) -> Result<()> {
        let root = self.btree.root;
        let unchanged = keys.iter().filter(|key| self.waiting.get(key).is_none());
        let descents = unchanged.map(|key| (root, *key)).collect();
        self.store.prefetch(descents)
    }

    fn range<'c>(&'c mut self, range: KeyRange<'_>) -> Result<Box<dyn Cursor + 'c>> {
        for bound in [range.from, range.to] {
            if let Bound::Included(key) | Bound::Excluded(key) = bound {
                self.store.codecs.check_key(key)?;
            }
        }
        Ok(Box::new(Scan::new(&mut self.store, &self.waiting, self.btree.root, range)?))
    }

    fn check(&mut self, finding: &mut dyn FnMut(&dyn Display)) -> Result<()> {
        check::check(self, finding)
    }

    fn resume_after(&mut self, key: Option<&[u8]>) -> Result<Resume> {
        if let Some(key) = key {
            self.store.codecs.check_key(key)?;
        }
        btree::resume_after(&mut self.store, self.btree.root, key)
    }

    fn statistics(&self) -> Statistics {
        let mut memory = self.store.file.memory();
        memory.buffers += buffer_bytes(&self.store.codecs) + self.waiting.memory_bytes();
        Statistics {
            height: self.btree.height().into(),
            live_pages: self.store.file.sectors_used(),
            memory,
            memory_peak: memory.cache + memory.buffers + memory.tables,
        }
    }

    fn meter(&self) -> Option<&Meter> {
        self.store.file.meter()
    }
}

impl Tree for BPlus<'_> {
    fn admit(&mut self, batch: &[Update<'_>]) -> Result<()> {
        for update in batch {
            self.store.codecs.check_update(update)?;
        }
        // Deletes take nothing, and find no room taken by what waits, which was let in before.
        let puts = self.puts_of(batch);
        let values = self.pages_for_values(batch);
        let own = self.store.pages_needed(&puts, &self.btree);
        let all = match puts.count > 0 && self.puts.count > 0 {
            true => self.store.pages_needed(&puts.and(self.puts), &self.btree),
            false => own,
        };
        self.store.check_free(all + values)?;
        self.store.file.promise(own + values);
        Ok(())
    }

    fn apply(&mut self, update: &Update<'_>) -> Result<()> {
        // Nobody admitted what a damaged journal holds.
        self.store.codecs.check_update(update)?;
        self.waiting.remove(update.key());
        match update {
            Update::Put { key, value } => self.put(key, value),
            Update::PutStored { key, value } => self.adopt_value(key, *value),
            Update::Delete { key } => self.delete(key),
        }
    }

    fn apply_step(&mut self, update: &Update<'_>) -> Result<bool> {
        if !self.lets_wait(update)? {
            return self.apply(update).map(|()| true);
        }
        let (key, value) = match update {
            Update::Put { key, value } => (key, Some(*value)),
            Update::PutStored { key, .. } | Update::Delete { key } => (key, None),
        };
        if !self.waiting.insert(key, value) {
            return self.flush().map(|()| false);
        }
        self.puts = self.puts.and(self.puts_of(slice::from_ref(update)));
        Ok(true)
    }

    fn has_waiting(&self) -> bool {
        self.waiting.len() > 0
    }

    fn flush(&mut self) -> Result<()> {
        let (mut key, mut value) = core::mem::take(&mut self.outgoing);
        let written = match self.waiting.copy_next(&mut key, &mut value) {
            Some(true) => self.put(&key, &value),
            Some(false) => self.delete(&key),
            None => Ok(()),
        };
        if written.is_ok() {
            self.waiting.remove(&key);
        }
        if !self.has_waiting() && !self.store.file.durability().has_journal() {
            self.puts = Puts::default();
        }
        self.outgoing = (key, value);
        written
    }

    fn wants_room(&self) -> bool {
        self.has_waiting() && self.store.file.is_due_within(Some(self.btree.pages_of_one()))
    }

    fn pages_promised(&self) -> Option<u64> {
        Some(0)
    }

    fn rebase(&mut self) {
        self.puts = Puts::default();
    }

    fn is_drained(&self) -> bool {
        !self.has_waiting()
    }

    fn drain(&mut self) -> Result<bool> {
        self.flush().map(|()| true)
    }

    fn is_poisoned(&self) -> bool {
        self.btree.is_poisoned
    }

    fn load(&mut self, sorted: &mut dyn Cursor, fill_percent: u8) -> Result<u64> {
        self.load_sorted(sorted, self::fill_percent(u64::from(fill_percent)))
    }

    fn root_record(&mut self) -> Result<Vec<u8>> {
        self.store.file.write_back_all()?;
        let root = Root {
            shape: self.store.codecs.shape,
            page: self.btree.root.id,
            height: self.btree.height(),
            entries: self.btree.entries,
            longest_value: self.longest_value,
        };
        Ok(root.encode(NAME))
    }

    fn restore(&mut self, root: &[u8]) -> Result<()> {
        let root = Root::decode(root, NAME)?;
        if root.page.0 >= self.store.file.pages_used().1 || root.height == 0 {
            return Err(store::Error::NotAnIndex {
                is_ours: true,
                what: "its root record names no page",
            }
            .into());
        }
        self.btree.root = At { id: root.page, level: root.height - 1 };
        self.btree.entries = root.entries;
        self.btree.is_poisoned = false;
        self.longest_value = root.longest_value;
        self.waiting.clear();
        self.puts = Puts::default();
        Ok(())
    }

    fn entry_bytes_most(&self) -> usize {
        self.store.codecs.leaf.entry_bytes_most()
    }

    fn pages_changed(&self, batch: &[Update<'_>]) -> u32 {
        let levels = u64::from(self.btree.pages_of_one());
        let pages = batch.len() as u64 * levels + self.pages_changed_by_values(batch);
        u32::try_from(pages).unwrap_or(u32::MAX)
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
