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
//! `ground.rs`, and the B+-tree over them in `tree.rs`.
//!
//! # Choices that the paper leaves open
//! - Log pages are the block's last ones, so that a chip that orders its programs takes all node
//!   pages first. Where it does, a node that is born after the first log page was written goes to
//!   another block.
//! - Where the chip allows parts of a page to be programmed, each write of deltas takes only its
//!   bytes of a log page; otherwise it takes a whole page.
//! - Where free blocks get rare, the nodes of two blocks are merged into one.
//!
//! # Invariants
//! - Blocks of the last checkpoint are written on, but no page that a checkpoint counts: what it
//!   does not count is ignored after a power cut, and such blocks are only merged then.
//! - A delta is made to a node as it was made before, so it becomes the same bytes.

mod block;
mod check;
mod cost;
mod ground;
mod layout;
mod merge;
mod scan;
mod table;
mod tree;

use alloc::boxed::Box;
use alloc::vec;
use alloc::vec::Vec;
use core::fmt::Display;

use device::{Cause, Geometry, Medium, Meter, Nand};
use store::{EntryShape, PageLog, Recovery, Update, Width};

use crate::parameters::{Kind, Parameter};
use crate::registry::{Entry, MediumShape, Options};
use crate::{
    Cursor, Durable, Error, Index, KeyRange, Lookup, Result, Statistics, Tree, Value, entry_size,
    read_piece, root_record,
};
use block::BlockShape;
use ground::{FRAMES_LEAST, Forms, Ground};
use table::{BLOCK_BYTES, NODE_BYTES, NodeId, Table};
use tree::{HEIGHT_MOST, Step, Toward};

/// The registry's line.
pub(crate) const ENTRY: Entry = Entry {
    name: NAME,
    about: "in-page logging: changes of a node go to log pages of its erase block",
    paper: "Lee and Moon (SIGMOD 2007), as the LA-Tree paper builds it, section 5",
    nand: true,
    sectors: false,
    parameters: PARAMETERS,
    create,
    open,
    least_memory,
    predict: cost::predict,
};

const NAME: &str = "ipl";

const PARAMETERS: &[Parameter] = &[Parameter {
    name: "log-pages",
    about: "log pages in an erase block: as many as node pages where none is given",
    kind: Kind::Count,
    default: "",
}];

/// How often two blocks become one between two checkpoints, at most.
const COMPACTIONS_MOST: u32 = 4;

/// The tree.
pub(crate) struct Ipl<'d> {
    ground: Ground<'d>,
    root: NodeId,
    height: u8,
    entries: u64,
    log_pages: u16,
    fill_percent: u8,
    /// The nodes on the way to a leaf, by level, and whether it went to the last child everywhere.
    way: [Step; HEIGHT_MOST],
    is_rightmost: bool,
    whole: bool,
    separator: Vec<u8>,
    key: Vec<u8>,
    /// A node while room is made for it.
    kept: Vec<u8>,
}

fn chip_of(medium: MediumShape) -> Result<Geometry> {
    match medium {
        MediumShape::Nand(chip) => Ok(chip),
        MediumShape::Sectors(_) => Err(Error::WrongMedium { tree: NAME, medium: "a disk" }),
    }
}

fn log_pages(options: &Options) -> Option<u32> {
    let pages = options.settings.number("log-pages");
    pages.map(|pages| u32::try_from(pages).unwrap_or(u32::MAX))
}

impl Forms {
    fn on(chip: Geometry, shape: EntryShape) -> Result<Self> {
        let bytes = PageLog::content_bytes_on(chip);
        let small = store::Error::NodeSize { bytes, what: "they can't hold four entries" };
        Ok(Forms::new(bytes, shape).ok_or(small)?)
    }
}

impl BlockShape {
    fn on(chip: Geometry, log_pages: Option<u32>) -> Result<Self> {
        let shape = BlockShape::new(&chip, log_pages).ok_or_else(|| Error::BadParameter {
            name: "log-pages",
            value: alloc::format!("{}", log_pages.unwrap_or_default()),
            expected: "at most 64, and fewer than the block has pages",
        })?;
        Ok(shape.with_content(PageLog::content_bytes_on(chip)))
    }
}

fn chip(medium: Medium<'_>) -> Result<Box<dyn Nand + '_>> {
    match medium {
        Medium::Nand(chip) => Ok(chip),
        Medium::Sectors(_) => Err(Error::WrongMedium { tree: NAME, medium: "a disk" }),
    }
}

/// Bytes of memory beside the cache: pages to work in, one more node, keys, and a root record, twice
/// more in a checkpoint.
fn work_bytes(chip: Geometry, forms: &Forms) -> u64 {
    let keys = 6 * (forms.leaf.entry_bytes_most() as u64 + 16);
    Ground::work_bytes(chip) + u64::from(chip.page_bytes()) + keys
}

fn least_memory(options: &Options, medium: MediumShape) -> Result<u64> {
    let chip = chip_of(medium)?;
    BlockShape::on(chip, log_pages(options))?;
    let log = PageLog::least_memory(chip, &options.page_log(false));
    least_of(chip, options.shape, log)
}

fn least_of(chip: Geometry, shape: EntryShape, log: u64) -> Result<u64> {
    let forms = Forms::on(chip, shape)?;
    let frames = FRAMES_LEAST as u64 * Ground::frame_bytes(&forms);
    Ok(log + work_bytes(chip, &forms) + frames)
}

fn create<'d>(medium: Medium<'d>, options: &Options) -> Result<Box<dyn Index + 'd>> {
    let nand = chip(medium)?;
    let geometry = nand.geometry();
    let need = least_memory(options, MediumShape::Nand(geometry))?;
    let shape = BlockShape::on(geometry, log_pages(options))?;
    let frames = frames(geometry, options.shape, (options.memory_bytes, need))?;
    let log = PageLog::create(nand, &options.page_log(false))?;
    let mut tree = Ipl::over(log, shape, options.shape, frames)?;
    let leaf = tree.ground.forms.leaf;
    leaf.initialise(&mut tree.kept, 0);
    tree.root = tree.ground.give_birth_of(&tree.kept, Cause::Load)?;
    let (have, need) = (tree.ground.log.free_blocks(), tree.kept_back(false));
    if have < need {
        return Err(device::Error::TooFewBlocks { have, need }.into());
    }
    Ok(Box::new(Durable::create(tree)?))
}

fn open<'d>(medium: Medium<'d>, options: &Options) -> Result<Box<dyn Index + 'd>> {
    let (log, record) = PageLog::open(chip(medium)?)?;
    let root = Root::decode(&record)?;
    let geometry = log.geometry();
    let need = least_of(geometry, root.shape, log.buffer_bytes())?;
    let frames = frames(geometry, root.shape, (options.memory_bytes, need))?;
    let shape = BlockShape::on(geometry, Some(u32::from(root.log_pages)))?;
    let mut tree = Ipl::over(log, shape, root.shape, frames)?;
    // A rollback comes back with the root record of a checkpoint that was made before others. One
    // that gets a name is made twice.
    let is_of_old = tree.ground.log.statistics().checkpoint.0 > root.made.saturating_add(1);
    let is_torn = tree.ground.log.has_rest() || is_of_old;
    tree.restore_from(&record, is_torn)?;
    drop(record);
    Ok(Box::new(Durable::open(tree)?))
}

/// Nodes in the cache, of `have` bytes of memory where `need` are the least.
fn frames(chip: Geometry, shape: EntryShape, (have, need): (u64, u64)) -> Result<usize> {
    let Some(left) = have.checked_sub(need) else {
        return Err(store::Error::LittleMemory { have, need }.into());
    };
    let more = left / Ground::frame_bytes(&Forms::on(chip, shape)?);
    // More nodes than the chip has pages are never in use.
    Ok(FRAMES_LEAST + more.min(u64::from(chip.pages())) as usize)
}

/// What a root record says.
///
/// ```text
///  | name and shape | made u64 | log pages u16 | height u8 | root u32 | entries u64 | nodes u32 |
///  | table |
/// ```
struct Root<'r> {
    /// The number of the checkpoint that it was made for.
    made: u64,
    shape: EntryShape,
    log_pages: u16,
    height: u8,
    root: NodeId,
    entries: u64,
    nodes: u32,
    table: &'r [u8],
}

impl<'r> Root<'r> {
    fn decode(record: &'r [u8]) -> Result<Self> {
        let damaged = store::Error::NotAnIndex { what: "its root record is damaged" };
        let (shape, rest) = root_record::decode(record, NAME)?;
        let (made, rest) = rest.split_first_chunk().ok_or(damaged)?;
        let (log_pages, rest) = rest.split_first_chunk().ok_or(damaged)?;
        let (height, rest) = rest.split_first().ok_or(damaged)?;
        let (root, rest) = rest.split_first_chunk().ok_or(damaged)?;
        let (entries, rest) = rest.split_first_chunk().ok_or(damaged)?;
        let (nodes, table) = rest.split_first_chunk().ok_or(damaged)?;
        Ok(Root {
            made: u64::from_le_bytes(*made),
            shape,
            log_pages: u16::from_le_bytes(*log_pages),
            height: *height,
            root: NodeId(u32::from_le_bytes(*root)),
            entries: u64::from_le_bytes(*entries),
            nodes: u32::from_le_bytes(*nodes),
            table,
        })
    }

    /// Reads the table into `table`; false if it makes no sense.
    fn read_table(&self, table: &mut Table, shape: &BlockShape) -> bool {
        table.clear();
        let bytes = (self.nodes as usize).checked_mul(NODE_BYTES);
        let Some((nodes, blocks)) = bytes.and_then(|at| self.table.split_at_checked(at)) else {
            return false;
        };
        let (nodes, _) = nodes.as_chunks::<NODE_BYTES>();
        let (blocks, rest) = blocks.as_chunks::<BLOCK_BYTES>();
        rest.is_empty()
            && nodes.iter().all(|node| table.read_node(node, shape))
            && blocks.iter().all(|block| table.read_block(block))
            && table.is_sound()
            && table.exists(self.root)
            && (1..HEIGHT_MOST).contains(&usize::from(self.height))
    }
}

impl<'d> Ipl<'d> {
    fn over(
        log: PageLog<'d>,
        shape: BlockShape,
        entries: EntryShape,
        frames: usize,
    ) -> Result<Self> {
        let forms = Forms::on(log.geometry(), entries)?;
        let bytes = log.content_bytes();
        let key = forms.leaf.entry_bytes_most();
        Ok(Ipl {
            ground: Ground::new(log, shape, forms, frames),
            root: NodeId(0),
            height: 1,
            entries: 0,
            log_pages: shape.log_pages(),
            fill_percent: 100,
            way: [Step { node: NodeId(0), place: 0 }; HEIGHT_MOST],
            is_rightmost: false,
            whole: true,
            separator: Vec::with_capacity(key),
            key: Vec::with_capacity(key),
            kept: vec![0; bytes],
        })
    }

    fn check_key(&self, key: &[u8]) -> Result<()> {
        match self.ground.forms.shape.key {
            Width::Fixed(bytes) if key.len() != usize::from(bytes) => {
                Err(Error::KeyLength { expected: u64::from(bytes), found: key.len() as u64 })
            }
            _ => entry_size(key.len(), self.entry_bytes_most()),
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

    /// Blocks that an update leaves free: for a merge, for programs that are refused, and for puts
    /// two more, for deletes.
    const fn kept_back(&self, deletes_only: bool) -> u32 {
        if deletes_only { 3 } else { 5 }
    }

    /// Blocks that a batch of so many updates may need, and writing back all that is in the cache
    /// behind it. Each visit of a node may push another one out of the cache, whose block may have
    /// to be merged; a block that was merged takes as many writes as it has log pages. Where blocks
    /// are free again at once, only births need any.
    fn blocks_for(&self, updates: usize, puts: usize) -> u32 {
        let table = &self.ground.table;
        let height = u32::from(self.height);
        let updates = u32::try_from(updates).unwrap_or(u32::MAX);
        let cached = self.ground.frames().min(table.live());
        let visits = updates.saturating_mul(3 * height + 4).saturating_add(cached);
        let puts = u32::try_from(puts).unwrap_or(u32::MAX);
        let births = match puts {
            0 => 0,
            // Each may split its leaf, but there are only so many, and halves of them fill again.
            _ => puts.min(table.live().saturating_add(puts / 4 + 1)).saturating_add(height + 1),
        };
        let births = births.min(births.div_ceil(u32::from(self.ground.shape.node_pages())) + 2);
        if self.ground.log.erases_at_once() {
            return births;
        }
        let logs = u32::from(self.log_pages);
        let merges = visits.min(table.used().saturating_add(births).saturating_add(visits / logs));
        merges.saturating_add(births).saturating_add(COMPACTIONS_MOST)
    }

    fn check_room(&self, updates: usize, puts: usize) -> Result<()> {
        let log = &self.ground.log;
        let need = self.blocks_for(updates, puts).saturating_add(self.kept_back(puts == 0));
        let chip = log.geometry();
        // The table has to fit the record of a checkpoint.
        let record = u64::from(chip.page_bytes()) * u64::from(chip.pages_per_block()) / 2;
        let births = (puts + usize::from(self.height) + 1) * (NODE_BYTES + BLOCK_BYTES);
        let is_long = puts > 0 && (self.ground.table.bytes() + births) as u64 > record;
        if log.free_blocks() < need || is_long {
            return Err(store::Error::Full { pages: u64::from(log.usable_pages()) }.into());
        }
        Ok(())
    }

    /// Makes room ahead of need: where deletes left blocks with few nodes.
    fn make_room(&mut self) -> Result<()> {
        let log = &self.ground.log;
        let is_short = if log.erases_at_once() {
            self.ground.is_short() && log.free_blocks() > 2
        } else {
            // As many blocks as are in use may have to be merged before a checkpoint.
            let wanted = self.ground.table.used() + self.blocks_for(1, 1);
            log.free_blocks() < wanted && log.released_blocks() < 2 * COMPACTIONS_MOST
        };
        if is_short {
            self.ground.compact(Cause::Reclamation)?;
        }
        Ok(())
    }

    fn restore_from(&mut self, record: &[u8], is_torn: bool) -> Result<()> {
        let root = Root::decode(record)?;
        self.ground.forget_all();
        let shape = self.ground.shape;
        if !root.read_table(&mut self.ground.table, &shape) {
            return Err(store::Error::NotAnIndex { what: "its table makes no sense" }.into());
        }
        (self.root, self.height, self.entries) = (root.root, root.height, root.entries);
        if is_torn {
            self.ground.table.seal_all(&shape);
        }
        self.whole = true;
        Ok(())
    }

    fn pin_named(&mut self) -> Result<()> {
        for place in 0..self.ground.log.checkpoints().len() {
            let name = self.ground.log.checkpoints().get(place).map(|kept| kept.name.clone());
            let record = self.ground.log.kept_root(&name.unwrap_or_default())?;
            let root = Root::decode(&record)?;
            let at = (root.nodes as usize).saturating_mul(NODE_BYTES);
            let (blocks, _) = root.table.get(at..).unwrap_or_default().as_chunks::<BLOCK_BYTES>();
            for [b0, b1, b2, b3, ..] in blocks {
                let block = device::Block(u32::from_le_bytes([*b0, *b1, *b2, *b3]));
                self.ground.log.pin(self.ground.log.geometry().first_page(block));
            }
        }
        Ok(())
    }

    fn apply_whole(&mut self, update: &Update<'_>) -> Result<()> {
        self.make_room()?;
        match update {
            Update::Put { key, value } => self.put(key, value, Cause::Update),
            Update::Delete { key } => self.delete(key),
            Update::Adopt { .. } => Err(store::Error::AdoptedTwice.into()),
        }
    }

    fn load_sorted(&mut self, sorted: &mut dyn Cursor) -> Result<u64> {
        if self.entries > 0 {
            return Err(Error::NotEmpty);
        }
        let (mut previous, mut key, mut whole) = (Vec::new(), Vec::new(), Vec::new());
        while let Some((next, value)) = sorted.next()? {
            self.check_entry(next, value.len() as usize)?;
            if self.entries > 0 && next <= previous.as_slice() {
                return Err(Error::NotSorted { position: self.entries });
            }
            self.check_room(1, 1)?;
            key.clear();
            key.extend_from_slice(next);
            match value {
                Value::Whole(value) => self.put(&key, value, Cause::Load)?,
                Value::Long(bytes) => {
                    whole.resize(bytes as usize, 0);
                    let limit = u64::from(bytes);
                    let bytes = u64::from(sorted.read_value(0, &mut whole)?);
                    if bytes != limit {
                        return Err(store::Error::LongValuePieces { bytes, limit }.into());
                    }
                    self.put(&key, &whole, Cause::Load)?;
                }
            }
            core::mem::swap(&mut previous, &mut key);
        }
        Ok(self.entries)
    }
}

impl Lookup for Ipl<'_> {
    fn get(&mut self, key: &[u8], offset: u32, into: &mut [u8]) -> Result<Option<u32>> {
        self.check_key(key)?;
        let leaf = self.descend_to(Toward::Key(key), Cause::Lookup)?;
        let codec = self.ground.forms.leaf;
        let bytes = self.ground.node(leaf, Cause::Lookup)?;
        let found = codec.search(bytes, key).ok();
        Ok(found.map(|place| read_piece(codec.value(bytes, place).bytes(), offset, into)))
    }

    fn range<'c>(&'c mut self, range: KeyRange<'_>) -> Result<Box<dyn Cursor + 'c>> {
        Ok(Box::new(scan::Scan::new(self, range)?))
    }

    fn check(&mut self, finding: &mut dyn FnMut(&dyn Display)) -> Result<()> {
        check::check(self, finding)
    }

    fn statistics(&self) -> Statistics {
        let Ground { log, forms, table, .. } = &self.ground;
        // While a checkpoint is made, its record has the table in three copies.
        let record = 3 * table.bytes() as u64;
        let memory = store::Memory {
            cache: self.ground.cache_bytes(),
            buffers: work_bytes(log.geometry(), forms) + log.buffer_bytes(),
            tables: log.table_bytes() + table.memory_bytes() + record,
            ..store::Memory::default()
        };
        Statistics {
            height: u32::from(self.height),
            live_pages: u64::from(table.live()),
            memory,
            memory_peak: memory.cache + memory.buffers + memory.tables,
        }
    }

    fn meter(&self) -> Option<&Meter> {
        self.ground.log.meter()
    }
}

impl Tree for Ipl<'_> {
    fn admit(&mut self, batch: &[Update<'_>]) -> Result<()> {
        let mut puts = 0;
        for update in batch {
            match update {
                Update::Put { key, value } => self.check_entry(key, value.len())?,
                Update::Adopt { .. } => return Err(store::Error::AdoptedTwice.into()),
                Update::Delete { key } => self.check_key(key)?,
            }
            puts += usize::from(!matches!(update, Update::Delete { .. }));
        }
        self.check_room(batch.len(), puts)
    }

    fn apply(&mut self, update: &Update<'_>) -> Result<()> {
        self.whole = false;
        self.apply_whole(update)?;
        self.whole = true;
        Ok(())
    }

    fn is_whole(&self) -> bool {
        self.whole
    }

    fn load(&mut self, sorted: &mut dyn Cursor, fill_percent: u8) -> Result<u64> {
        self.fill_percent = fill_percent.clamp(50, 100);
        self.load_sorted(sorted)
    }

    fn maintain(&mut self, _pages: u32) -> Result<bool> {
        Ok(false)
    }

    fn settle(&mut self) -> Result<Vec<u8>> {
        self.ground.write_back_all(Cause::Flush)?;
        let table = &mut self.ground.table;
        table.close_logs();
        let mut record = root_record::encode(NAME, self.ground.forms.shape);
        record.reserve_exact(27 + table.bytes());
        let made = self.ground.log.statistics().checkpoint.0 + 1;
        record.extend_from_slice(&made.to_le_bytes());
        record.extend_from_slice(&self.log_pages.to_le_bytes());
        record.push(self.height);
        record.extend_from_slice(&self.root.0.to_le_bytes());
        record.extend_from_slice(&self.entries.to_le_bytes());
        record.extend_from_slice(&table.numbers().to_le_bytes());
        table.write::<Error>(&mut |bytes| {
            record.extend_from_slice(bytes);
            Ok(())
        })?;
        Ok(record)
    }

    fn restore(&mut self, root: &[u8]) -> Result<()> {
        // Its blocks may have been written on since.
        self.restore_from(root, true)
    }

    fn keep_named(&mut self) -> Result<()> {
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
        let puts = batch.iter().filter(|update| !matches!(update, Update::Delete { .. })).count();
        let blocks = self.blocks_for(batch.len(), puts).saturating_add(self.kept_back(false));
        blocks.saturating_mul(self.ground.log.geometry().pages_per_block())
    }

    fn recovery(&self) -> &dyn Recovery {
        &self.ground.log
    }

    fn recovery_mut(&mut self) -> &mut dyn Recovery {
        &mut self.ground.log
    }
}
