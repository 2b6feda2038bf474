//! What a new tree takes: a B+-tree for entries of fixed lengths, on sectors, for tests only.
//!
//! Most of a tree is there already: the page file has pages, their cache, checksums and free list;
//! the codec has nodes; `btree` has descents, splits, merges, ranges and loading over a node store;
//! [`Durable`] adds checkpoints and the journal. What is left: the registry's line, what the tree
//! needs of memory and room, [`Read`], and [`Tree`] with the root record that opens it.
//!
//! Another tree has a [`NodeStore`] of its own in place of [`PageStore`], as `ipl` has, which
//! writes changes to logs. A tree without such nodes has `Read` and `Tree` alone, as `list` has.

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::{fmt::Display, ops::Bound};

use device::{Cause, Medium, Meter, Sectors};
use index::{
    Cursor, DeletePolicy, Durable, Error, Footprint, Index, KeyRange, MediumShape, Options,
    Prediction, Read, Result, Statistics, Tree, TreeDescriptor, read_piece_of, root_record,
};
use store::node::Stored;
use store::{EntryShape, LogicalPage, PageFile, Recovery, Update, Width};

use crate::btree::{self, At, BTree, Codecs, NodeStore, PageStore, Rules, Scan};

/// The registry's line.
const ENTRY: TreeDescriptor = TreeDescriptor {
    name: "example",
    about: "a B+-tree for entries of fixed lengths",
    paper: "none",
    nand: false,
    sectors: true,
    deletes: |_| DeletePolicy::Merge,
    tables_part: |_| 0,
    long_values: false,
    parameters: &[],
    create,
    open,
    footprint,
    predict: |_, _, _| Ok(Prediction { page_reads: 0.0, page_writes: 0.0, height: 1 }),
};

/// How far loading fills nodes, and keys in ascending order do.
const FILL_PERCENT: u8 = 70;

struct Example<'d> {
    store: PageStore<'d>,
    btree: BTree<LogicalPage>,
}

fn create<'d>(medium: Medium<'d>, options: &Options) -> Result<Box<dyn Index + 'd>> {
    let disk = disk(medium)?;
    let shape = MediumShape::Sectors(disk.geometry());
    shape.check_units(disk.geometry().sectors(), |like| footprint(options, like))?;
    let page_bytes = disk.geometry().sector_bytes();
    let nodes = codecs(page_bytes, options.shape)?;
    let options = options.page_file(page_bytes, cache_bytes(&nodes, options)?);
    let mut store = PageStore::new(PageFile::create(disk, &options)?, nodes);
    let root = store.create(0, Cause::Load)?;
    Ok(Box::new(Durable::create(Example::over(store, root))?))
}

fn open<'d>(medium: Medium<'d>, options: &Options) -> Result<Box<dyn Index + 'd>> {
    let mut disk = disk(medium)?;
    let found = PageFile::describe(&mut *disk)?;
    let nodes = codecs(found.page_bytes, root_record::decode(&found.root_head, ENTRY.name)?.0)?;
    let options = options.page_file(found.page_bytes, cache_bytes(&nodes, options)?);
    let (file, root) = PageFile::open(disk, &options)?;
    let mut tree = Example::over(PageStore::new(file, nodes), LogicalPage(0));
    tree.restore(&root)?;
    Ok(Box::new(Durable::open(tree)?))
}

fn footprint(options: &Options, medium: MediumShape) -> Result<Footprint> {
    let MediumShape::Sectors(disk) = medium else {
        return Err(Error::WrongMedium { tree: ENTRY.name, medium: "raw flash" });
    };
    let page_bytes = disk.sector_bytes();
    let nodes = codecs(page_bytes, options.shape)?;
    let file = options.page_file(page_bytes, 0);
    let cache = PageFile::least_memory(disk, page_bytes, file.durability)?;
    Ok(Footprint {
        memory_least: cache + buffer_bytes(&nodes),
        tables: PageFile::pages_and_tables(disk, page_bytes, file.durability)?.1,
        // The root, and what the first put may need.
        units_least: PageFile::sectors_least(disk, &file, 1 + pages_for_one(1), 0)?,
    })
}

fn disk(medium: Medium<'_>) -> Result<Box<dyn Sectors + '_>> {
    match medium {
        Medium::Sectors(disk) => Ok(disk),
        Medium::Nand(_) => Err(Error::WrongMedium { tree: ENTRY.name, medium: "raw flash" }),
    }
}

fn codecs(bytes: u32, shape: EntryShape) -> Result<Codecs> {
    let (Width::Fixed(_), Width::Fixed(_)) = (shape.key, shape.value) else {
        return Err(Error::Unsupported { what: "this tree holds entries of fixed lengths" });
    };
    let what = "they can't hold four entries";
    Codecs::new(bytes, shape).ok_or(store::Error::NodeSize { bytes, what }.into())
}

/// Bytes of memory beside the cache: a node to work in, and keys.
fn buffer_bytes(nodes: &Codecs) -> u64 {
    nodes.leaf.node_bytes() as u64 + 4 * nodes.leaf.entry_bytes_most() as u64
}

fn cache_bytes(nodes: &Codecs, options: &Options) -> Result<u64> {
    let (have, need) = (options.memory_bytes, buffer_bytes(nodes));
    have.checked_sub(need).ok_or(store::Error::LittleMemory { have, need }.into())
}

/// Pages that a put may add to a tree so high: a node on each level, and a new root.
fn pages_for_one(height: u8) -> u64 {
    u64::from(height) + 1
}

impl<'d> Example<'d> {
    fn over(store: PageStore<'d>, root: LogicalPage) -> Self {
        Example { btree: BTree::new(root, store.codecs, FILL_PERCENT), store }
    }

    /// Refuses a key, and a value of so many bytes, that this index does not hold.
    fn check_entry(&self, key: &[u8], value: Option<u64>) -> Result<()> {
        let EntryShape { key: keys, value: values } = self.store.codecs.shape;
        let found = key.len() as u64;
        match (keys, values, value) {
            (Width::Fixed(bytes), _, _) if found != u64::from(bytes) => {
                Err(Error::KeyLength { expected: bytes.into(), found })
            }
            (_, Width::Fixed(bytes), Some(found)) if found != u64::from(bytes) => {
                Err(Error::ValueLength { expected: bytes.into(), found })
            }
            _ => Ok(()),
        }
    }

    fn check_update(&self, update: &Update<'_>) -> Result<()> {
        match update {
            Update::Put { key, value } => self.check_entry(key, Some(value.len() as u64)),
            _ => self.check_entry(update.key(), None),
        }
    }

    fn full(&self) -> Error {
        store::Error::Full { pages: self.store.file.pages_most().into() }.into()
    }
}

impl Read for Example<'_> {
    fn get(&mut self, key: &[u8], offset: u32, into: &mut [u8]) -> Result<Option<u32>> {
        self.check_entry(key, None)?;
        btree::read(&mut self.store, self.btree.root, key, (offset, into))
    }

    fn range<'c>(&'c mut self, range: KeyRange<'_>) -> Result<Box<dyn Cursor + 'c>> {
        for bound in [range.from, range.to] {
            if let Bound::Included(key) | Bound::Excluded(key) = bound {
                self.check_entry(key, None)?;
            }
        }
        // Updates that wait in memory would be in place of the empty overlay.
        Ok(Box::new(Scan::new(&mut self.store, &(), self.btree.root, range)?))
    }

    fn check(&mut self, finding: &mut dyn FnMut(&dyn Display)) -> Result<()> {
        let rules =
            Rules { has_exact_separators: true, is_half_full: true, has_branching_root: true };
        let mut lowest = Vec::new();
        self.store.codecs.lowest(&mut lowest);
        let tree = (&mut self.store, self.btree.root);
        let counted = btree::check(tree, &lowest, rules, &mut (), finding)?;
        if counted.entries != self.btree.entries {
            finding(&"the root counts other entries than the leaves hold");
        }
        let checked = self.store.file.check_pages(finding);
        checked.or_else(|error| Error::from(error).report_damage(finding))
    }

    fn statistics(&self) -> Statistics {
        let mut memory = self.store.file.memory();
        memory.buffers += buffer_bytes(&self.store.codecs);
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

impl Tree for Example<'_> {
    fn admit(&mut self, batch: &[Update<'_>]) -> Result<()> {
        for update in batch {
            self.check_update(update)?;
        }
        let puts = batch.iter().filter(|update| matches!(update, Update::Put { .. })).count();
        // The root may get a parent on the way.
        let pages = puts as u64 * pages_for_one(self.btree.height() + 1);
        if pages > self.store.file.pages_free().into() { Err(self.full()) } else { Ok(()) }
    }

    fn apply(&mut self, update: &Update<'_>) -> Result<()> {
        // Nobody admitted what a damaged journal holds.
        self.check_update(update)?;
        let (btree, store) = (&mut self.btree, &mut self.store);
        match update {
            Update::Put { key, value } => btree.put(store, key, Stored::inline(value)).map(drop),
            Update::Delete { key } => btree.delete(store, key).map(drop),
            // A long value that was written to pages of its own.
            Update::PutStored { .. } => Err(store::Error::AdoptedTwice.into()),
        }
    }

    fn is_poisoned(&self) -> bool {
        self.btree.is_poisoned
    }

    fn load(&mut self, sorted: &mut dyn Cursor, fill: u8) -> Result<u64> {
        if self.btree.entries > 0 {
            return Err(Error::NotEmpty);
        }
        self.btree.begin_load(&mut self.store)?;
        let (mut key, mut value) = (Vec::new(), Vec::new());
        while let Some((next, found)) = sorted.next()? {
            self.check_entry(next, Some(found.len().into()))?;
            if !self.btree.is_ascending(next) {
                return Err(Error::NotSorted { position: self.btree.entries });
            }
            key.clear();
            key.extend_from_slice(next);
            value.resize(found.len() as usize, 0);
            read_piece_of(sorted, value.len() as u32, 0, &mut value)?;
            let entry = (key.as_slice(), Stored::inline(&value));
            if !self.btree.append(&mut self.store, entry, fill)? {
                if !self.store.file.has_pages(pages_for_one(self.btree.height()))? {
                    return Err(self.full());
                }
                self.btree.begin_leaf(&mut self.store, &key, fill)?;
                self.btree.append(&mut self.store, entry, fill)?;
            }
        }
        Ok(self.btree.entries)
    }

    fn root_record(&mut self) -> Result<Vec<u8>> {
        self.store.file.write_back_all()?;
        let mut root = root_record::encode(ENTRY.name, self.store.codecs.shape);
        root.extend(self.btree.root.id.0.to_le_bytes());
        root.push(self.btree.root.level);
        root.extend(self.btree.entries.to_le_bytes());
        Ok(root)
    }

    fn restore(&mut self, root: &[u8]) -> Result<()> {
        let damaged =
            store::Error::NotAnIndex { is_ours: true, what: "its root record is damaged" };
        let (_, rest) = root_record::decode(root, ENTRY.name)?;
        let (page, rest) = rest.split_first_chunk().ok_or(damaged)?;
        let (level, entries) = rest.split_first().ok_or(damaged)?;
        let id = LogicalPage(u32::from_le_bytes(*page));
        self.btree.root = At { id, level: *level };
        self.btree.entries = u64::from_le_bytes(*entries.first_chunk().ok_or(damaged)?);
        self.btree.is_poisoned = false;
        Ok(())
    }

    fn entry_bytes_most(&self) -> usize {
        self.store.codecs.leaf.entry_bytes_most()
    }

    fn pages_changed(&self, batch: &[Update<'_>]) -> u32 {
        // On each level a node and its neighbour; their parents; a root; and the free list's pages.
        batch.len() as u32 * (3 * u32::from(self.btree.height()) + 4)
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

mod tests;
