//! What waits in memory: the pool, the list that groups it, and the nodes that both stand in.

use alloc::vec::Vec;

use store::node::{self, Codec};
use store::{EntryShape, LogicalPage, Width};

use super::blocks::{Block, BlockId, Room};
use super::list::List;
use super::order::{Order, Policy};
use super::pool::{Kind, Pool, Taken};
use crate::btree::{At, Codecs, NODE_BYTES_BESIDE, Spare, update_codec};
use index::random_keys::average_bytes;

/// Nodes below which waiting gains nothing: two of requests, and one of ranges.
pub(super) const NODES_LEAST: usize = 4;

/// Bytes of a block, with its place in the order.
const BLOCK_BYTES: usize = size_of::<Block>() + Order::BYTES_PER_BLOCK;

/// Requests that a block counts; more memory is the page cache's.
const REQUESTS_MOST: u64 = 32_000;

/// Bytes of an entry beside its key and value, where lengths vary.
const SLOT_BYTES: f64 = 6.0;

/// How full nodes in memory are, and how many ranges a block has.
const FULL: f64 = 0.92;
const RANGES: f64 = 1.9;

/// Blocks for a request: one, for each may be alone in its leaf, and some of inner nodes.
const BLOCKS: f64 = 1.05;

/// How the memory of what waits is divided.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Division {
    pub(super) nodes: usize,
    blocks: usize,
    node_bytes: usize,
    bytes: u64,
}

impl Division {
    /// Bytes beside requests and blocks.
    pub(super) fn beside(codecs: &Codecs) -> u64 {
        codecs.leaf.node_bytes() as u64
    }

    /// Divides `bytes` bytes, with `nodes_most` nodes at most; nothing waits where that is too
    /// little.
    pub(super) fn new(codecs: &Codecs, bytes: u64, nodes_most: u64) -> Self {
        let node = codecs.leaf.node_bytes();
        let slot = if codecs.is_variable() { SLOT_BYTES } else { 0.0 };
        let [key, value] = [codecs.shape.key, codecs.shape.value].map(average_bytes).map(f64::from);
        let request = (key + value + 1.0 + slot) / FULL;
        let range = (key + 2.0 + slot) / FULL;
        let block = BLOCK_BYTES as f64;
        let each = request + BLOCKS * (RANGES * range + block);
        let left = bytes;
        let requests = (left as f64 / each) as u64;
        let of_nodes = left.saturating_sub((requests as f64 * BLOCKS * block) as u64);
        let node = (node + NODE_BYTES_BESIDE) as u64;
        let shortest = if codecs.is_variable() { SLOT_BYTES } else { key + value + 1.0 };
        let per_node = (codecs.leaf.node_bytes() as f64 / shortest) as u64;
        let nodes = (of_nodes / node).min(nodes_most).min(REQUESTS_MOST / per_node.max(1));
        // Where the disk bounds the nodes, blocks are as many as they need.
        let requests = requests.min(2 * nodes * node / (each as u64).max(1) + 2);
        let blocks = ((requests as f64 * BLOCKS) as u64).clamp(2, u64::from(u16::MAX) - 1);
        Division::of(codecs, (nodes as usize, blocks as usize))
    }

    pub(super) const fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Requests of so many bytes each that wait for so many leaves, of which each has a block at
    /// most.
    pub(super) fn requests(&self, (entry, range): (f64, f64), leaves: f64) -> f64 {
        let nodes = (self.nodes * self.node_bytes) as f64 * FULL;
        let blocks = (self.blocks as f64).min(leaves);
        (nodes - blocks * RANGES * range).max(0.0) / entry
    }

    /// So many nodes and blocks, if they are not too few.
    pub(super) fn of(codecs: &Codecs, (nodes, blocks): (usize, usize)) -> Self {
        let node = codecs.leaf.node_bytes();
        let has_codecs = update_codec(codecs.shape, node as u32).is_some();
        if nodes < NODES_LEAST || !has_codecs {
            return Division::default();
        }
        let bytes = node + nodes * (node + NODE_BYTES_BESIDE) + blocks * BLOCK_BYTES;
        Division { nodes, blocks, node_bytes: node, bytes: bytes as u64 }
    }
}

/// What waits.
#[derive(Debug)]
pub(super) struct Waiting {
    pub(super) pool: Pool,
    pub(super) list: List,
    pub(super) spare: Spare,
    /// Keys: the beginning and the end of a range, of another, and a request's own.
    pub(super) buffers: [Vec<u8>; 4],
    pub(super) division: Division,
}

impl Waiting {
    /// Room for requests, as `division` says; `codecs` are those of the tree.
    pub(super) fn new(codecs: &Codecs, policy: Policy, division: Division) -> Self {
        let (shape, node) = (codecs.shape, codecs.leaf.node_bytes());
        let Division { nodes, blocks, .. } = division;
        let longest = if nodes > 0 { codecs.leaf.entry_bytes_most() } else { 0 };
        let requests = update_codec(shape, node as u32).unwrap_or(codecs.leaf);
        let ranges = range_codec(shape, node as u32).unwrap_or(codecs.leaf);
        Waiting {
            pool: Pool::new(shape, requests, nodes),
            list: List::new(policy, ranges, (nodes, blocks)),
            spare: Spare::new(nodes, node),
            buffers: core::array::from_fn(|_| Vec::with_capacity(longest)),
            division,
        }
    }

    /// Bytes of memory that it takes.
    pub(super) const fn memory_bytes(&self) -> u64 {
        self.division.bytes
    }

    pub(super) const fn is_empty(&self) -> bool {
        self.pool.len() == 0
    }

    /// The list begins anew: it knows nothing of the tree but its root.
    pub(super) fn begin_list(&mut self, codecs: &Codecs, root: At<LogicalPage>) {
        if self.division.nodes == 0 {
            return;
        }
        let (len, puts) = (self.pool.len() as i32, self.pool.puts.count as i32);
        let lowest = &mut self.buffers[0];
        codecs.lowest(lowest);
        self.list.reset(&mut self.spare, (lowest, root), (len, 2 * puts - len));
    }

    pub(super) fn clear(&mut self, codecs: &Codecs, root: At<LogicalPage>) {
        self.pool.clear(&mut self.spare);
        self.begin_list(codecs, root);
    }

    /// Takes a request; false if there is no room for it.
    pub(super) fn take(&mut self, key: &[u8], (kind, value): (Kind, &[u8])) -> Taken {
        // The list always has a node.
        let taken = self.pool.take(&mut self.spare, key, (kind, value));
        let growth = |kind: Kind| if kind.is_put() { 1 } else { -1 };
        match taken {
            Taken::New => self.list.hit(key, (1, growth(kind))),
            Taken::Replaced(before) => self.list.hit(key, (0, growth(kind) - growth(before))),
            Taken::Cancelled => self.list.forget(&mut self.spare, key, (-1, -1)),
            Taken::Full => {}
        }
        taken
    }

    /// The request of `key`, if there is one, waits no more.
    pub(super) fn remove(&mut self, key: &[u8]) {
        if self.is_empty() {
            return;
        }
        if let Ok(place) = self.pool.requests.search(key)
            && let Some((_, kind, _)) = self.pool.request(place)
        {
            self.pool.remove(&mut self.spare, place);
            let growth = if kind.is_put() { -1 } else { 1 };
            self.list.forget(&mut self.spare, key, (-1, growth));
        }
    }

    /// The leaf of `key` was changed.
    pub(super) fn forget_room(&mut self, key: &[u8]) {
        if let Some((id, block)) = self.block_of(key)
            && block.is_group()
            && block.is_known()
        {
            self.list.know(id, Room::UNKNOWN);
        }
    }

    /// True if requests are known to belong to the leaf that `bytes` may be, whose first key then
    /// is in the first buffer: those of its group, or between its first key and its last.
    pub(super) fn has_requests_of(&mut self, leaf: &Codec, bytes: &[u8]) -> bool {
        let count = node::count(bytes);
        if node::level(bytes) > 0 || !leaf.is_kind(bytes) || count == 0 {
            return false;
        }
        let [key, last, ..] = &mut self.buffers;
        leaf.key(bytes, 0).copy_to(key);
        let Some((id, _)) = self.list.find(key) else {
            return false;
        };
        let block = self.list.block(id);
        if block.is_group() || block.count == 0 {
            return block.count > 0;
        }
        leaf.key(bytes, count - 1).copy_to(last);
        let request = self.pool.from(key).and_then(|place| self.pool.requests.at(place));
        request.is_some_and(|(request, _)| request.compare(last).is_le())
    }

    /// The block of the group or inner node that `key` belongs to.
    pub(super) fn block_of(&self, key: &[u8]) -> Option<(BlockId, &Block)> {
        let (id, _) = self.list.find(key)?;
        Some((id, self.list.block(id)))
    }
}

/// The codec of ranges: each has its block's number.
fn range_codec(shape: EntryShape, node_bytes: u32) -> Option<Codec> {
    Codec::new(node_bytes, shape.key, Width::Fixed(2))
}
