//! `ipl`: in-page logging, as the LA-Tree paper builds it (section 5) after Lee and Moon (SIGMOD
//! 2007).
//!
//! An erase block holds node pages and, at its end, log pages for the changes of these nodes. A
//! node that was changed is not written again when it leaves the cache: its changes, the deltas, go
//! to a log page of its own block. Reading a node is reading its page and every log page of the
//! block that has deltas of it. When the log pages are full, nodes and deltas are merged into a
//! fresh block, and the old one can be erased.
//!
//! What goes where in a block is in `block.rs`, the bytes of a log page in `layout.rs`, how deltas
//! change a node in `merge.rs`, the tables in `table.rs`, the cache and all that is written in
//! `ground.rs`; `nodes.rs` makes deltas of what the B+-tree over them changes.
//!
//! # Choices that the paper leaves open
//! - Log pages are the block's last ones, so that a chip that orders its programs takes all node
//!   pages first. Where it does, a node that is born after the first log page was written goes to
//!   another block.
//! - Where the chip allows parts of a page to be programmed, each write of deltas takes only its
//!   bytes of a log page; otherwise it takes a whole page.
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
mod ground;
mod layout;
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
use block::LogSet;
use ground::Ground;
use index::bounds::can_be;
use index::parameters::{Kind, Parameter};
use index::read_piece_of;
use index::{
    Behind, Cursor, Error, KeyRange, Read, Result, Statistics, Tree, Value,
    bounds::{entry_size, key_size},
    root_record,
};
use index::{DeletePolicy, TreeDescriptor};
use table::NodeId;

/// The registry's line.
pub(crate) const ENTRY: TreeDescriptor = TreeDescriptor {
    name: NAME,
    about: "in-page logging: changes of a node go to log pages of its erase block",
    paper: "Lee and Moon (SIGMOD 2007), as the LA-Tree paper builds it, section 5",
    nand: true,
    sectors: false,
    deletes: |_| DeletePolicy::Merge,
    tables_grow: false,
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
    kind: Kind::Count(1, LogSet::PAGES_MOST as u64),
    default: "",
}];

/// The tree.
pub(crate) struct Ipl<'d> {
    ground: Ground<'d>,
    btree: BTree<NodeId>,
    room: Reservation,
    log_pages: u16,
    whole: bool,
    /// True while sorted entries are loaded, which no journal has.
    is_loading: bool,
    /// False if making room came to nodes that can't be read.
    may_compact: bool,
}

impl Ipl<'_> {
    fn check_key(&self, key: &[u8]) -> Result<()> {
        match self.ground.forms.shape.key {
            Width::Fixed(bytes) if key.len() != usize::from(bytes) => {
                Err(Error::KeyLength { expected: u64::from(bytes), found: key.len() as u64 })
            }
            _ => key_size(key.len(), self.entry_bytes_most()),
        }
    }

    fn check_entry(&self, key: &[u8], value: usize) -> Result<()> {
        self.check_key(key)?;
        match self.ground.forms.shape.value {
            Width::Fixed(bytes) if value != usize::from(bytes) => {
                Err(Error::ValueLength { expected: u64::from(bytes), found: value as u64 })
            }
            _ => entry_size(key.len() + value, self.entry_bytes_most()),
        }
    }

    fn apply_whole(&mut self, update: &Update<'_>) -> Result<()> {
        match update {
            Update::Put { key, value } => {
                self.btree.put(&mut self.ground, key, Stored::inline(value))?;
            }
            Update::Delete { key } => {
                self.btree.delete(&mut self.ground, key)?;
            }
            Update::PutStored { .. } => return Err(store::Error::AdoptedTwice.into()),
        }
        self.make_room()
    }

    fn load_sorted(&mut self, sorted: &mut dyn Cursor, fill: u8) -> Result<u64> {
        if self.btree.entries > 0 {
            return Err(Error::NotEmpty);
        }
        self.btree.begin_load(&mut self.ground)?;
        let (mut key, mut whole) = (Vec::new(), Vec::new());
        while let Some((next, value)) = sorted.next()? {
            self.check_entry(next, value.len() as usize)?;
            if !self.btree.is_ascending(next) {
                return Err(Error::NotSorted { position: self.btree.entries });
            }
            key.clear();
            key.extend_from_slice(next);
            whole.clear();
            match value {
                Value::Inline(value) => whole.extend_from_slice(value),
                Value::Long(bytes) => {
                    whole.resize(bytes as usize, 0);
                    read_piece_of(sorted, bytes, 0, &mut whole)?;
                }
            }
            self.check_room(&[Update::Put { key: &key, value: &whole }])?;
            let entry = (&*key, Stored::inline(&whole));
            if self.btree.append(&mut self.ground, entry, fill)? {
                continue;
            }
            let leaf = self.btree.begin_leaf(&mut self.ground, &key, fill)?;
            if !self.btree.append(&mut self.ground, entry, fill)? {
                return Err(self.ground.damaged(leaf, "it is empty and has no room"));
            }
        }
        Ok(self.btree.entries)
    }
}

impl Read for Ipl<'_> {
    fn get(&mut self, key: &[u8], offset: u32, into: &mut [u8]) -> Result<Option<u32>> {
        if !can_be(self.check_key(key))? {
            return Ok(None);
        }
        btree::read(&mut self.ground, self.btree.root, key, (offset, into))
    }

    fn range<'c>(&'c mut self, range: KeyRange<'_>) -> Result<Box<dyn Cursor + 'c>> {
        let range = range.within_length(|key| self.check_key(key))?;
        Ok(Box::new(Scan::new(&mut self.ground, &(), self.btree.root, range)?))
    }

    fn check(&mut self, finding: &mut dyn FnMut(&dyn Display)) -> Result<()> {
        check::check(self, finding)
    }

    fn behind(&mut self, key: Option<&[u8]>) -> Result<Behind> {
        if let Some(key) = key {
            self.check_key(key)?;
        }
        btree::resume_after(&mut self.ground, self.btree.root, key)
    }

    fn statistics(&self) -> Statistics {
        let Ground { log, forms, table, shape, .. } = &self.ground;
        let memory = store::Memory {
            cache: self.ground.cache_bytes(),
            buffers: make::work_bytes(log.geometry(), forms, log.durability()) + log.buffer_bytes(),
            tables: Ground::table_bytes(log.geometry(), shape),
            ..store::Memory::default()
        };
        Statistics {
            height: self.btree.height().into(),
            live_pages: u64::from(table.live()),
            memory,
            memory_peak: memory.cache + memory.buffers + memory.tables,
        }
    }

    fn figures(&self, tell: &mut dyn FnMut(&'static str, u64)) {
        let (leaves, inner) = self.ground.levels.split_at(1);
        let nodes = |levels: &[u32]| levels.iter().map(|nodes| u64::from(*nodes)).sum();
        tell(index::LEAVES, nodes(leaves));
        tell(index::INNER_NODES, nodes(inner));
    }

    fn meter(&self) -> Option<&Meter> {
        self.ground.log.meter()
    }
}

impl Tree for Ipl<'_> {
    fn admit(&mut self, batch: &[Update<'_>]) -> Result<()> {
        for update in batch {
            match update {
                Update::Put { key, value } => self.check_entry(key, value.len())?,
                Update::PutStored { .. } => return Err(store::Error::AdoptedTwice.into()),
                Update::Delete { key } => self.check_key(key)?,
            }
        }
        self.check_room(batch)
    }

    fn apply(&mut self, update: &Update<'_>) -> Result<()> {
        self.whole = false;
        self.may_compact = true;
        self.apply_whole(update)?;
        self.whole = true;
        Ok(())
    }

    fn is_settled(&self) -> bool {
        !self.has_room_to_make()
    }

    fn drain(&mut self) -> Result<bool> {
        self.compact(true)
    }

    fn is_whole(&self) -> bool {
        self.whole
    }

    fn load(&mut self, sorted: &mut dyn Cursor, fill_percent: u8) -> Result<u64> {
        self.is_loading = true;
        let loaded = self.load_sorted(sorted, fill_percent.clamp(50, 100));
        self.is_loading = false;
        loaded
    }

    fn maintain(&mut self, _pages: u32) -> Result<bool> {
        Ok(false)
    }

    fn settle(&mut self) -> Result<Vec<u8>> {
        self.ground.write_back_all(Cause::Flush)?;
        self.make_room_to_settle()?;
        let table = &mut self.ground.table;
        table.close_logs();
        let mut record = root_record::encode(NAME, self.ground.forms.shape);
        record.reserve_exact(27 + 4 * usize::from(self.btree.height()) + table.bytes());
        let made = self.ground.log.statistics().checkpoint.0 + 1;
        record.extend_from_slice(&made.to_le_bytes());
        record.extend_from_slice(&self.log_pages.to_le_bytes());
        record.push(self.btree.height());
        record.extend_from_slice(&self.btree.root.id.0.to_le_bytes());
        record.extend_from_slice(&self.btree.entries.to_le_bytes());
        for nodes in &self.ground.levels[..self.btree.height().into()] {
            record.extend_from_slice(&nodes.to_le_bytes());
        }
        record.extend_from_slice(&table.numbers().to_le_bytes());
        table.write::<Error>(&mut |bytes| {
            record.extend_from_slice(bytes);
            Ok(())
        })?;
        table.begin_since();
        Ok(record)
    }

    fn restore(&mut self, root: &[u8]) -> Result<()> {
        // Its blocks may have been written on since.
        self.restore_from(root, true)
    }

    fn pin_savepoints(&mut self) -> Result<()> {
        self.ground.log.unpin_all()?;
        self.pin_named()?;
        for block in self.ground.table.used_blocks() {
            self.ground.log.pin(self.ground.log.geometry().first_page(block));
        }
        while let Some(block) = self.ground.log.victim() {
            self.ground.log.release(block);
        }
        self.ground.log.unpin_all()?;
        self.pin_named()
    }

    fn entry_bytes_most(&self) -> usize {
        self.ground.forms.leaf.entry_bytes_most()
    }

    fn pages_changed(&self, batch: &[Update<'_>]) -> u32 {
        self.blocks_needed(batch).saturating_mul(self.ground.log.geometry().pages_per_block())
    }

    fn recovery(&self) -> &dyn Recovery {
        &self.ground.log
    }

    fn recovery_mut(&mut self) -> &mut dyn Recovery {
        &mut self.ground.log
    }
}
