//! The table of nodes and the table of blocks, which the paper keeps in memory.
//!
//! ```text
//!  in a checkpoint, for each node    | block u32 | page u16 | its newest record, 6 bytes |
//!  for each block with nodes         | block u32 | node pages in use u16 | log pages closed u16 |
//! ```

use crate::btree;
use alloc::vec;
use alloc::vec::Vec;

use device::Block;

use super::block::{BlockShape, BlockState, RecordPlace};

/// A node: its number in the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct NodeId(pub(super) u32);

impl btree::NodeId for NodeId {
    fn from_bytes(bytes: [u8; 4]) -> Self {
        NodeId(u32::from_le_bytes(bytes))
    }

    fn to_bytes(self) -> [u8; 4] {
        self.0.to_le_bytes()
    }
}

/// Bytes of a node in a checkpoint.
pub(super) const NODE_BYTES: usize = 6 + RecordPlace::BYTES;

/// Bytes of a block in a checkpoint.
pub(super) const BLOCK_BYTES: usize = 8;

const NO_BLOCK: u32 = u32::MAX;

/// A node that no page holds yet.
const UNWRITTEN: u32 = u32::MAX - 1;

/// Where a node stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Place {
    pub(super) block: Block,
    /// The place of its page in the block.
    pub(super) page: u16,
    /// The newest record of its deltas.
    pub(super) record: Option<RecordPlace>,
}

#[derive(Clone, Copy, Debug)]
struct NodeEntry {
    block: u32,
    page: u16,
    /// Its newest record; one of no bytes is none.
    record: RecordPlace,
}

const NO_RECORD: RecordPlace = RecordPlace { page: 0, offset: 0, bytes: 0 };

const FREE: NodeEntry = NodeEntry { block: NO_BLOCK, page: 0, record: NO_RECORD };

#[derive(Clone, Copy, Debug, Default)]
struct BlockEntry {
    state: BlockState,
    /// Nodes that live in it.
    live: u16,
    /// True if it holds nodes, or is to.
    is_used: bool,
    /// True if it was begun since the last checkpoint.
    is_new: bool,
}

/// What happened since the last checkpoint, as a replay with any memory would have it, too: nodes
/// change and are born in the same order, however many of them fit the cache.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Since {
    /// Nodes that there were then.
    pub(super) nodes: u32,
    /// Blocks in use that were begun since.
    pub(super) begun: u32,
    /// Nodes that were born or that took over entries of a neighbour, and changes of all.
    pub(super) born: u32,
    pub(super) changes: u32,
}

/// Nodes by number, and blocks.
#[derive(Debug)]
pub(super) struct Table {
    nodes: Vec<NodeEntry>,
    blocks: Vec<BlockEntry>,
    /// Nodes that exist.
    live: u32,
    /// Blocks that hold nodes.
    used: u32,
    since: Since,
    /// Where the search for a free number begins.
    free_from: usize,
}

impl Table {
    /// An empty table of `blocks` blocks, with room for `nodes` nodes: it never grows beyond.
    pub(super) fn new(blocks: u32, nodes: usize) -> Self {
        let blocks = vec![BlockEntry::default(); blocks as usize];
        let nodes = Vec::with_capacity(nodes);
        Table { nodes, blocks, live: 0, used: 0, since: Since::default(), free_from: 0 }
    }

    /// Bytes of memory of such a table, and of the record of a checkpoint that has it once more
    /// while it is made: as on a full chip, so that they don't grow beyond what was stated.
    pub(super) const fn bytes_of(blocks: u32, nodes: usize) -> u64 {
        let nodes = nodes * (size_of::<NodeEntry>() + NODE_BYTES);
        (nodes + blocks as usize * (size_of::<BlockEntry>() + BLOCK_BYTES)) as u64
    }

    /// Nodes that exist.
    pub(super) const fn live(&self) -> u32 {
        self.live
    }

    /// Blocks that hold nodes.
    pub(super) const fn used(&self) -> u32 {
        self.used
    }

    /// What happened since the last checkpoint.
    pub(super) const fn since(&self) -> Since {
        self.since
    }

    /// A checkpoint holds all that there is.
    pub(super) fn begin_since(&mut self) {
        for block in &mut self.blocks {
            block.is_new = false;
        }
        self.since = Since { nodes: self.live, ..Since::default() };
    }

    /// A node is to be changed.
    pub(super) fn count_change(&mut self) {
        self.since.changes = self.since.changes.saturating_add(1);
    }

    /// A node is to be written as a page that it did not have.
    pub(super) fn count_birth(&mut self) {
        self.since.born = self.since.born.saturating_add(1);
    }

    /// Numbers that were given, of nodes that exist or do no more.
    pub(super) fn numbers(&self) -> u32 {
        self.nodes.len() as u32
    }

    /// A number for a node that is born.
    pub(super) fn allocate(&mut self) -> NodeId {
        let free = self.nodes[self.free_from..].iter().position(|node| node.block == NO_BLOCK);
        let number = free.map_or(self.nodes.len(), |place| self.free_from + place);
        if number == self.nodes.len() {
            if self.nodes.len() == self.nodes.capacity() {
                self.nodes.reserve_exact(self.nodes.len() / 8 + 16);
            }
            self.nodes.push(FREE);
        }
        self.nodes[number].block = UNWRITTEN;
        self.free_from = number + 1;
        self.live += 1;
        NodeId(number as u32)
    }

    /// Where a node stands; `None` if no page holds it.
    pub(super) fn place(&self, node: NodeId) -> Option<Place> {
        let entry = self.nodes.get(node.0 as usize).filter(|node| node.block < UNWRITTEN)?;
        let record = Some(entry.record).filter(|record| record.bytes > 0);
        Some(Place { block: Block(entry.block), page: entry.page, record })
    }

    /// True if there is such a node.
    pub(super) fn exists(&self, node: NodeId) -> bool {
        self.nodes.get(node.0 as usize).is_some_and(|node| node.block != NO_BLOCK)
    }

    /// Lets a node stand in node page `page` of `block`; returns a block that holds none any more.
    pub(super) fn put(&mut self, node: NodeId, block: Block, page: u16) -> Option<Block> {
        let left = self.leave(node);
        let entry = &mut self.nodes[node.0 as usize];
        *entry = NodeEntry { block: block.0, page, record: NO_RECORD };
        self.blocks[block.0 as usize].live += 1;
        left.filter(|left| *left != block)
    }

    /// No page holds a node any more, though it exists; returns a block that holds none any more.
    pub(super) fn take_up(&mut self, node: NodeId) -> Option<Block> {
        let left = self.leave(node);
        self.nodes[node.0 as usize] = NodeEntry { block: UNWRITTEN, ..FREE };
        left
    }

    /// A node is no more; returns a block that holds none any more.
    pub(super) fn free(&mut self, node: NodeId) -> Option<Block> {
        let left = self.leave(node);
        self.nodes[node.0 as usize] = FREE;
        self.free_from = self.free_from.min(node.0 as usize);
        self.live -= 1;
        left
    }

    fn leave(&mut self, node: NodeId) -> Option<Block> {
        let block = self.place(node)?.block;
        let entry = self.blocks.get_mut(block.0 as usize)?;
        entry.live -= 1;
        (entry.live == 0).then_some(block)
    }

    /// The newest record of a node stands there.
    pub(super) fn set_record(&mut self, node: NodeId, record: RecordPlace) {
        self.nodes[node.0 as usize].record = record;
    }

    /// The nodes in `block`.
    pub(super) fn nodes_in(&self, block: Block) -> impl Iterator<Item = NodeId> {
        let numbers = self.nodes.iter().enumerate();
        let here = numbers.filter(move |(_, node)| node.block == block.0);
        here.map(|(number, _)| NodeId(number as u32))
    }

    /// How many nodes live in `block`.
    pub(super) fn live_in(&self, block: Block) -> u16 {
        self.blocks[block.0 as usize].live
    }

    pub(super) fn state(&mut self, block: Block) -> &mut BlockState {
        &mut self.blocks[block.0 as usize].state
    }

    /// The block is to hold nodes.
    pub(super) fn begin_block(&mut self, block: Block) {
        let begun = BlockEntry { is_used: true, is_new: true, ..BlockEntry::default() };
        self.blocks[block.0 as usize] = begun;
        self.used += 1;
        self.since.begun += 1;
    }

    /// The block holds none any more; true if it was begun since the last checkpoint.
    pub(super) fn end_block(&mut self, block: Block) -> bool {
        let ended = core::mem::take(&mut self.blocks[block.0 as usize]);
        self.used -= 1;
        self.since.begun -= u32::from(ended.is_new);
        ended.is_new
    }

    /// True if the block was begun since the last checkpoint.
    pub(super) fn is_new(&self, block: Block) -> bool {
        self.blocks[block.0 as usize].is_new
    }

    /// The blocks that hold nodes.
    pub(super) fn used_blocks(&self) -> impl Iterator<Item = Block> {
        let used = self.blocks.iter().enumerate().filter(|(_, block)| block.is_used);
        used.map(|(number, _)| Block(number as u32))
    }

    /// A block that takes one more node.
    pub(super) fn block_with_room(&self, shape: &BlockShape) -> Option<Block> {
        self.used_blocks().find(|block| {
            let mut state = self.blocks[block.0 as usize].state;
            state.take_node(shape).is_some()
        })
    }

    /// The block other than `beside` with the fewest nodes, which are at most `most`.
    pub(super) fn emptiest(&self, beside: Option<Block>, most: u16) -> Option<Block> {
        let others = self.used_blocks().filter(|block| Some(*block) != beside);
        let fitting = others.filter(|block| self.live_in(*block) <= most);
        fitting.min_by_key(|block| self.live_in(*block))
    }

    /// Nothing is written to any block as it is now any more.
    pub(super) fn seal_all(&mut self, shape: &BlockShape) {
        for block in self.blocks.iter_mut().filter(|block| block.is_used) {
            block.state.seal(shape);
        }
    }

    /// No log page that was begun is written to any more.
    pub(super) fn close_logs(&mut self) {
        self.blocks.iter_mut().for_each(|block| block.state.close_log());
    }

    /// Bytes of the table in a checkpoint.
    pub(super) fn bytes(&self) -> usize {
        self.nodes.len() * NODE_BYTES + self.used as usize * BLOCK_BYTES
    }

    /// Hands the table, as it stands in a checkpoint, to `take` piece by piece.
    pub(super) fn write<E>(&self, take: &mut dyn FnMut(&[u8]) -> Result<(), E>) -> Result<(), E> {
        for node in &self.nodes {
            let mut bytes = [0; NODE_BYTES];
            bytes[..4].copy_from_slice(&node.block.to_le_bytes());
            bytes[4..6].copy_from_slice(&node.page.to_le_bytes());
            bytes[6..].copy_from_slice(&node.record.to_bytes());
            take(&bytes)?;
        }
        for block in self.used_blocks() {
            let (nodes, logs) = self.blocks[block.0 as usize].state.counts();
            let mut bytes = [0; BLOCK_BYTES];
            bytes[..4].copy_from_slice(&block.0.to_le_bytes());
            bytes[4..6].copy_from_slice(&nodes.to_le_bytes());
            bytes[6..].copy_from_slice(&logs.to_le_bytes());
            take(&bytes)?;
        }
        Ok(())
    }

    /// Forgets everything.
    pub(super) fn clear(&mut self) {
        self.nodes.clear();
        self.blocks.fill(BlockEntry::default());
        (self.live, self.used, self.free_from) = (0, 0, 0);
        self.since = Since::default();
    }

    /// Adds a node as [`Table::write`] wrote it; false if it makes no sense.
    pub(super) fn read_node(&mut self, bytes: &[u8; NODE_BYTES], shape: &BlockShape) -> bool {
        let [b0, b1, b2, b3, p0, p1, record @ ..] = *bytes;
        let (block, page) = (u32::from_le_bytes([b0, b1, b2, b3]), u16::from_le_bytes([p0, p1]));
        let record = RecordPlace::from_bytes(record);
        if self.nodes.len() == self.nodes.capacity() {
            self.nodes.reserve_exact(self.nodes.len() / 8 + 16);
        }
        if block == NO_BLOCK {
            self.nodes.push(FREE);
            return true;
        }
        let Some(entry) = self.blocks.get_mut(block as usize) else {
            return false;
        };
        entry.live += 1;
        self.live += 1;
        self.nodes.push(NodeEntry { block, page, record });
        record.is_in(shape) && page < shape.node_pages() && entry.live <= shape.node_pages()
    }

    /// Adds a block as [`Table::write`] wrote it; false if it makes no sense.
    pub(super) fn read_block(&mut self, bytes: &[u8; BLOCK_BYTES]) -> bool {
        let [b0, b1, b2, b3, n0, n1, l0, l1] = *bytes;
        let block = u32::from_le_bytes([b0, b1, b2, b3]);
        let Some(entry) = self.blocks.get_mut(block as usize).filter(|block| !block.is_used) else {
            return false;
        };
        let (nodes, logs) = (u16::from_le_bytes([n0, n1]), u16::from_le_bytes([l0, l1]));
        entry.state = BlockState::of(nodes, logs);
        entry.is_used = true;
        self.used += 1;
        true
    }

    /// True if every node stands in a block that is used.
    pub(super) fn is_sound(&self) -> bool {
        self.blocks.iter().all(|block| block.is_used || block.live == 0)
    }
}

#[cfg(test)]
mod tests;
