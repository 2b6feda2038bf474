//! The root record, with the table: what a checkpoint needs beside the blocks.

use store::{EntryShape, LEVELS_MOST, Recovery, Reservation};

use super::block::BlockShape;
use super::table::{BLOCK_BYTES, NODE_BYTES, NodeId, Table};
use super::{Ipl, NAME};
use crate::btree::At;
use index::{Result, root_record};

/// The version of the record and of log pages. Records of the one before have 0 in its place.
const VERSION: u32 = 1;

/// Bits of the number of a checkpoint.
const MADE_BITS: u32 = 56;

/// What a root record says.
///
/// ```text
///  | name and shape | made 56 bits | version u8 | log pages u16 | height u8 | root u32 |
///  | entries u64 | nodes of each level u32, leaves first | numbers of nodes u32 | table |
///  | longest key u16 |
/// ```
///
/// The last only where keys vary; where it is missing there, any may be as long as can be.
pub(super) struct Root<'r> {
    /// The number of the checkpoint that it was made for.
    pub(super) made: u64,
    pub(super) shape: EntryShape,
    pub(super) log_pages: u16,
    height: u8,
    root: NodeId,
    entries: u64,
    levels: [u32; LEVELS_MOST],
    nodes: u32,
    table: &'r [u8],
}

/// The number of the checkpoint that a record is made for, as the record has it, with the version.
pub(super) fn encode_made(made: u64) -> [u8; 8] {
    ((made % (1 << MADE_BITS)) | (u64::from(VERSION) << MADE_BITS)).to_le_bytes()
}

impl<'r> Root<'r> {
    pub(super) fn decode(record: &'r [u8]) -> Result<Self> {
        let damaged =
            store::Error::NotAnIndex { is_ours: true, what: "its root record is damaged" };
        let (shape, rest) = root_record::decode(record, NAME)?;
        let (made, rest) = rest.split_first_chunk().ok_or(damaged)?;
        let made = u64::from_le_bytes(*made);
        let what = match (made >> MADE_BITS) as u32 {
            VERSION => None,
            0 => Some(root_record::EARLIER_FORMAT),
            _ => Some("its tree has the format of a later flashtree"),
        };
        if let Some(what) = what {
            return Err(store::Error::NotAnIndex { is_ours: true, what }.into());
        }
        let (log_pages, rest) = rest.split_first_chunk().ok_or(damaged)?;
        let (height, rest) = rest.split_first().ok_or(damaged)?;
        let (root, rest) = rest.split_first_chunk().ok_or(damaged)?;
        let (entries, rest) = rest.split_first_chunk().ok_or(damaged)?;
        let counts = 4 * usize::from(*height);
        let (counts, rest) = rest.split_at_checked(counts).ok_or(damaged)?;
        let mut levels = [0; LEVELS_MOST];
        for (nodes, count) in levels.iter_mut().zip(counts.as_chunks().0) {
            *nodes = u32::from_le_bytes(*count);
        }
        let (nodes, table) = rest.split_first_chunk().ok_or(damaged)?;
        Ok(Root {
            made: made % (1 << MADE_BITS),
            shape,
            log_pages: u16::from_le_bytes(*log_pages),
            height: *height,
            root: NodeId(u32::from_le_bytes(*root)),
            entries: u64::from_le_bytes(*entries),
            levels,
            nodes: u32::from_le_bytes(*nodes),
            table,
        })
    }

    /// Reads the table into `table`, and gives the longest key; `None` if it makes no sense.
    fn read_table(&self, table: &mut Table, shape: &BlockShape) -> Option<usize> {
        table.clear();
        let bytes = (self.nodes as usize).checked_mul(NODE_BYTES);
        let (nodes, blocks) = bytes.and_then(|at| self.table.split_at_checked(at))?;
        let (nodes, _) = nodes.as_chunks::<NODE_BYTES>();
        let (blocks, rest) = blocks.as_chunks::<BLOCK_BYTES>();
        let longest_key = match *rest {
            [] => usize::MAX,
            [low, high] => u16::from_le_bytes([low, high]).into(),
            _ => return None,
        };
        let is_sound = nodes.iter().all(|node| table.read_node(node, shape))
            && blocks.iter().all(|block| table.read_block(block))
            && table.is_sound()
            && table.exists(self.root)
            && (1..LEVELS_MOST).contains(&usize::from(self.height))
            && self.levels.iter().map(|nodes| u64::from(*nodes)).sum::<u64>()
                == u64::from(table.live());
        is_sound.then_some(longest_key)
    }
}

impl Ipl<'_> {
    pub(super) fn restore_from(&mut self, record: &[u8], is_torn: bool) -> Result<()> {
        let root = Root::decode(record)?;
        self.store.cache.clear();
        self.may_compact = true;
        let shape = self.store.shape;
        let Some(longest_key) = root.read_table(&mut self.store.table, &shape) else {
            let what = "its table makes no sense";
            return Err(store::Error::NotAnIndex { is_ours: true, what }.into());
        };
        self.longest_key = longest_key;
        self.btree.root = At { id: root.root, level: root.height - 1 };
        self.btree.entries = root.entries;
        (self.store.levels, self.room) = (root.levels, Reservation::default());
        self.store.table.begin_since();
        // What is replayed was admitted with nothing merged.
        self.store.kept = u32::MAX;
        self.store.log.expect_root(record.len() as u64);
        for block in self.store.table.used_blocks() {
            self.store.log.claim_block(block)?;
        }
        if is_torn {
            self.store.table.seal_all(&shape);
        }
        self.is_poisoned = false;
        Ok(())
    }

    pub(super) fn pin_named(&mut self) -> Result<()> {
        for place in 0..self.store.log.checkpoints().len() {
            let name = self.store.log.checkpoints().get(place).map(|kept| kept.name.clone());
            let record = self.store.log.kept_root(&name.unwrap_or_default())?;
            // A rollback writes it once more.
            self.store.log.expect_root(record.len() as u64);
            let root = Root::decode(&record)?;
            let at = (root.nodes as usize).saturating_mul(NODE_BYTES);
            let (blocks, _) = root.table.get(at..).unwrap_or_default().as_chunks::<BLOCK_BYTES>();
            for [b0, b1, b2, b3, ..] in blocks {
                let block = device::Block(u32::from_le_bytes([*b0, *b1, *b2, *b3]));
                self.store.log.pin(self.store.log.geometry().first_page(block));
            }
        }
        Ok(())
    }
}
