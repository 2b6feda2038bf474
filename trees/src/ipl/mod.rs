//! `ipl`: in-page logging, as the LA-Tree paper builds it (section 5) after Lee and Moon (SIGMOD
//! 2007).
//!
//! An erase block holds node pages and, at its end, log pages for the changes of these nodes. A
//! node that was changed is not written again when it leaves the cache: its changes, the deltas, go
//! to a log page of its own block, as a record. Reading a node is reading its page and its records,
//! mostly one, and no more of their pages. When the log pages are full, nodes and deltas are merged
//! into a fresh block, and the old one can be erased.
//!
//! What goes where in a block is in `block.rs`, the bytes of a log page in `layout.rs`, how deltas
//! change a node in `merge.rs`, the tables in `table.rs`, what is read in `log_store.rs`, what is
//! written in `writing.rs`; `nodes.rs` makes deltas of what the B+-tree over them changes.
//!
//! # Choices that the paper leaves open
//! - Log pages are the block's last ones, so that a chip that orders its programs takes all node
//!   pages first. Where it does, a node that is born after the first log page was written goes to
//!   another block.
//! - Where the chip allows parts of a page to be programmed, a record takes only its bytes of a log
//!   page; otherwise it takes a whole page.
//! - Deltas of a node are gathered: its newest record is read with it, and written again with later
//!   deltas behind its own, until it is full.
//! - Where free blocks get rare, the nodes of two blocks are merged into one. Where none is left
//!   for a merge, a changed node gets a page in another block, alone.
//!
//! # Invariants
//! - Blocks of the last checkpoint are written on, but no page that a checkpoint counts: what it
//!   does not count is ignored after a power cut, and such blocks are only merged then.
//! - A delta is made to a node as it was made before, so it becomes the same bytes.

mod block;
mod cache;
mod check;
mod cost;
mod layout;
mod log_store;
mod make;
mod merge;
mod nodes;
mod reclaim;
mod room;
mod root;
mod table;
mod writing;

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::fmt::Display;

use device::{Cause, Meter};
use store::node::Stored;
use store::{Recovery, Reservation, Update, Width};

use crate::btree::{self, BTree, NodeSource, Scan};
use index::bounds::{EntryLimits, can_be};
use index::parameters::{Kind, Parameter};
use index::{Cursor, Error, KeyRange, Read, Result, Resume, Statistics, Tree, root_record};
use index::{DeletePolicy, TreeDescriptor};
use log_store::LogStore;
use table::NodeId;

/// The registry's line.
pub(crate) const ENTRY: TreeDescriptor = TreeDescriptor {
    name: NAME,
    about: "in-page logging: changes of a node go to log pages of its erase block",
    paper: "Lee and Moon (SIGMOD 2007), as the LA-Tree paper builds it, section 5",
    nand: true,
    sectors: false,
    deletes: |_| DeletePolicy::Merge,
    tables_part: |_| 0,
    long_values: false,
    parameters: PARAMETERS,
    create: make::create,
    open: make::open,
    footprint: make::footprint,
    predict: cost::predict,
};

const NAME: &str = "ipl";

const PARAMETERS: &[Parameter] = &[Parameter {
    name: "log-pages",
    about: "log pages in an erase block: as many as node pages where none is given",
    kind: Kind::Count(1, u16::MAX as u64),
    default: "",
}];

/// The tree.
pub(crate) struct Ipl<'d> {
    store: LogStore<'d>,
    btree: BTree<NodeId>,
    room: Reservation,
    /// The longest key that was put since the tree was made.
    longest_key: usize,
    log_pages: u16,
    is_poisoned: bool,
    /// True while sorted entries are loaded, which no journal has.
    is_loading: bool,
    /// False if making room came to nodes that can't be read.
    may_compact: bool,
}

impl Ipl<'_> {
    fn limits(&self) -> EntryLimits {
        let codecs = &self.store.forms;
        let (key, entry) = (codecs.key_bytes_most(), self.entry_bytes_most());
        EntryLimits { shape: codecs.shape, key, entry }
    }

    fn apply_whole(&mut self, update: &Update<'_>) -> Result<()> {
        match update {
            Update::Put { key, value } => {
                self.btree.put(&mut self.store, key, Stored::inline(value))?;
            }
            Update::Delete { key } => {
                self.btree.delete(&mut self.store, key)?;
            }
            Update::PutStored { .. } => return Err(store::Error::AdoptedTwice.into()),
        }
        self.make_room()
    }

    fn load_sorted(&mut self, sorted: &mut dyn Cursor, fill: u8) -> Result<u64> {
        if self.btree.entries > 0 {
            return Err(Error::NotEmpty);
        }
        self.btree.begin_load(&mut self.store)?;
        self.limits().take_sorted(sorted, |key, value| self.append(key, value, fill))
    }

    fn append(&mut self, key: &[u8], value: &[u8], fill: u8) -> Result<()> {
        self.check_room(&[Update::Put { key, value }])?;
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

impl Read for Ipl<'_> {
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
        let LogStore { log, forms, table, shape, .. } = &self.store;
        let memory = store::Memory {
            cache: self.store.cache_bytes(),
            buffers: make::work_bytes(log.geometry(), forms, log.durability()) + log.buffer_bytes(),
            tables: LogStore::table_bytes(log.geometry(), shape),
            ..store::Memory::default()
        };
        Statistics {
            height: self.btree.height().into(),
            live_pages: u64::from(table.live()),
            memory,
            memory_peak: memory.cache + memory.buffers + memory.tables,
        }
    }

    fn metrics(&self, tell: &mut dyn FnMut(&'static str, u64)) {
        let (leaves, inner) = self.store.levels.split_at(1);
        let nodes = |levels: &[u32]| levels.iter().map(|nodes| u64::from(*nodes)).sum();
        tell(index::LEAVES, nodes(leaves));
        tell(index::INNER_NODES, nodes(inner));
    }

    fn meter(&self) -> Option<&Meter> {
        self.store.log.meter()
    }
}

impl Tree for Ipl<'_> {
    fn admit(&mut self, batch: &[Update<'_>]) -> Result<()> {
        self.limits().check_batch(batch)?;
        self.check_room(batch)
    }

    fn apply(&mut self, update: &Update<'_>) -> Result<()> {
        self.is_poisoned = true;
        self.may_compact = true;
        self.apply_whole(update)?;
        self.is_poisoned = false;
        Ok(())
    }

    fn is_drained(&self) -> bool {
        !self.has_room_to_make()
    }

    fn drain(&mut self) -> Result<bool> {
        self.compact(true)
    }

    fn is_poisoned(&self) -> bool {
        self.is_poisoned
    }

    fn load(&mut self, sorted: &mut dyn Cursor, fill_percent: u8) -> Result<u64> {
        self.is_loading = true;
        let loaded = self.load_sorted(sorted, fill_percent.clamp(50, 100));
        self.is_loading = false;
        loaded
    }

    fn root_record(&mut self) -> Result<Vec<u8>> {
        self.store.write_back_all(Cause::Flush)?;
        self.make_room_for_checkpoint()?;
        let table = &mut self.store.table;
        table.close_logs();
        let mut record = root_record::encode(NAME, self.store.forms.shape);
        record.reserve_exact(29 + 4 * usize::from(self.btree.height()) + table.bytes());
        let made = self.store.log.statistics().checkpoint.0 + 1;
        record.extend_from_slice(&root::encode_made(made));
        record.extend_from_slice(&self.log_pages.to_le_bytes());
        record.push(self.btree.height());
        record.extend_from_slice(&self.btree.root.id.0.to_le_bytes());
        record.extend_from_slice(&self.btree.entries.to_le_bytes());
        for nodes in &self.store.levels[..self.btree.height().into()] {
            record.extend_from_slice(&nodes.to_le_bytes());
        }
        record.extend_from_slice(&table.numbers().to_le_bytes());
        table.write::<Error>(&mut |bytes| {
            record.extend_from_slice(bytes);
            Ok(())
        })?;
        table.begin_since();
        if self.store.forms.shape.key == Width::Variable {
            let longest = u16::try_from(self.longest_key).unwrap_or(u16::MAX);
            record.extend_from_slice(&longest.to_le_bytes());
        }
        Ok(record)
    }

    fn restore(&mut self, root: &[u8]) -> Result<()> {
        // Its blocks may have been written on since.
        self.restore_from(root, true)
    }

    fn pin_savepoints(&mut self) -> Result<()> {
        self.store.log.unpin_all()?;
        self.pin_named()?;
        for block in self.store.table.used_blocks() {
            self.store.log.pin(self.store.log.geometry().first_page(block));
        }
        while let Some(block) = self.store.log.victim() {
            self.store.log.release(block);
        }
        self.store.log.unpin_all()?;
        self.pin_named()
    }

    fn entry_bytes_most(&self) -> usize {
        self.store.forms.leaf.entry_bytes_most()
    }

    fn pages_changed(&self, batch: &[Update<'_>]) -> u32 {
        self.blocks_needed(batch).saturating_mul(self.store.log.geometry().pages_per_block())
    }

    fn recovery(&self) -> &dyn Recovery {
        &self.store.log
    }

    fn recovery_mut(&mut self) -> &mut dyn Recovery {
        &mut self.store.log
    }
}
