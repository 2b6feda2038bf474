//! What a tree on raw flash takes in the worst case: the present half gets full now, and a new
//! generation has to take everything.

use device::Geometry;
use store::PageLog;
use store::node::Codec;

use super::LaTree;
use super::layout;
use super::plan::Plan;
use super::policy::Buffering;
use super::settle::{PIECE_BYTES, ROOT_BYTES};
use crate::random_keys::average_bytes;
use crate::registry::Options;
use crate::smallest_chip::{self, Grown};
use crate::{Result, Width};

/// Bytes of a child's number.
const CHILD: usize = super::nodes::CHILD_BYTES as usize;

/// Entries of the greatest size that are pending in the smallest tree.
const PENDING_LEAST: u64 = 8;

/// A tree, as far as it matters for room.
#[derive(Clone, Copy, Debug)]
pub(super) struct Load {
    /// Entries in the buffers of inner subtrees, and of leaf subtrees.
    pub(super) pending: [u64; 2],
    pub(super) nodes: u64,
    pub(super) leaves: u64,
    pub(super) height: u8,
    pub(super) buffers: u64,
    /// Pages of tables.
    pub(super) chunks: u64,
}

/// What trees of such a plan take.
#[derive(Clone, Copy, Debug)]
pub(super) struct Worst<'p> {
    pub(super) plan: &'p Plan,
    pub(super) leaf: &'p Codec,
    pub(super) inner: &'p Codec,
}

impl Worst<'_> {
    /// Nodes more that so many entries make of a tree with so many leaves.
    pub(super) fn nodes_born(&self, entries: u64, leaves: u64) -> u64 {
        let capacity = self.leaf.capacity(self.plan.entry_most, 0).max(4) as u64;
        let leaves = entries.min(leaves + 2 * entries / capacity);
        leaves + leaves / (self.children_least() - 1)
    }

    /// Children of a node that was split.
    pub(super) fn children_least(&self) -> u64 {
        self.inner.capacity(self.plan.entry_most, CHILD).max(4) as u64 / 2
    }

    /// Nodes that there are, with `more` entries pending, when all are settled.
    pub(super) fn nodes(&self, load: &Load, more: u64) -> u64 {
        let pending: u64 = load.pending.iter().sum();
        load.nodes + self.nodes_born(pending + more, load.leaves) + u64::from(load.height)
    }

    /// Pages that a new generation takes, with `more` entries pending; of blocks of `block` pages
    /// the log keeps back as many as `own` says for a root record of so many bytes.
    pub(super) fn pages(&self, load: &Load, more: u64, (block, own): (u64, Own<'_>)) -> u64 {
        let plan = self.plan;
        let [inner, leaf] = load.pending;
        let pending = inner + leaf + more;
        let children = self.children_least();
        let nodes = self.nodes(load, more);
        let per_page = u64::from(plan.pages.nodes_per_page());
        let room = u64::from(plan.pages.room());
        let piece = plan.sizes.entry_most.min(usize::from(u16::MAX)) as u64 + 13;
        let levels = u64::from(load.height / plan.levels_a_buffer + 1);
        let pool = plan.sizes.pool.most();
        let held = if plan.buffering == Buffering::None { 0 } else { pending * piece };
        let heads = PIECE_BYTES * load.buffers;
        let fragments = ((inner + more) * piece * levels + held.min(2 * pool)).div_ceil(room);
        let held_pages = (held + 6 * pending).min(2 * pool + heads).div_ceil(room);
        let chunks = nodes / u64::from(plan.chunks.0.max(1))
            + nodes / children / u64::from(plan.chunks.1.max(1))
            + load.chunks
            + 2;
        // Beside what the log keeps back for its own pages, it has a block that it is filling and
        // one with the last record; and the end of the tree's present block is not used.
        let own = own(ROOT_BYTES + 4 * (chunks + held_pages));
        nodes.div_ceil(per_page)
            + 2
            + fragments
            + 2 * (chunks + held_pages)
            + self.emptying_pages(load, (pending, nodes))
            + (u64::from(own) + 3) * block
    }

    /// Pages that emptying one buffer takes at most, which happens before it is seen that the
    /// present half is full: no node of its subtree is written twice.
    fn emptying_pages(&self, load: &Load, (pending, nodes): (u64, u64)) -> u64 {
        let entries = (2 * self.plan.sorter_entries as u64).min(pending);
        let children = self.inner.capacity(self.plan.sizes.entry_least, CHILD) as u64;
        let levels = u32::from(self.plan.levels_a_buffer.min(load.height)) - 1;
        let subtree = (2 * children.saturating_pow(levels)).min(2 * entries).min(nodes);
        let most = (subtree + self.nodes_born(entries, subtree)).min(2 * entries.min(nodes));
        most.div_ceil(u64::from(self.plan.pages.nodes_per_page())) + 2
    }
}

/// Blocks that the log keeps back if root records may have so many bytes.
pub(super) type Own<'o> = &'o dyn Fn(u64) -> u32;

/// Pages of a half of so many that puts leave to deletes.
pub(super) fn put_reserve(half: u64, block: u64) -> u64 {
    (half / 16).max(2 * block)
}

/// Blocks that suffice for a block's worth of entries, and a few of the greatest length: two blocks
/// may go bad, of which one lies in each half.
pub(super) fn fewest_blocks(plan: &Plan, chip: Geometry, options: &Options) -> Result<u32> {
    let (shape, bytes) = (plan.shape, plan.pages.node_bytes());
    let small = store::Error::NodeSize { bytes, what: "they can't hold four entries" };
    let leaf = layout::codec(bytes, shape.key, shape.value).ok_or(small)?;
    let inner = layout::codec(bytes, shape.key, Width::Fixed(CHILD as u16)).ok_or(small)?;
    let worst = Worst { plan, leaf: &leaf, inner: &inner };
    let entries = smallest_chip::entries_of_a_block(chip, shape);
    let (key, value) = (average_bytes(shape.key).into(), average_bytes(shape.value).into());
    let capacity = |level| match level {
        0 => leaf.capacity(key, value),
        _ => inner.capacity(key, CHILD),
    };
    let grown = Grown::new(entries, &capacity, super::descent::HEIGHT_MOST as u8);
    let nodes = grown.nodes();
    let each = |chunk: u32| nodes.div_ceil(chunk.max(1).into());
    let load = Load {
        pending: [0; 2],
        nodes,
        leaves: grown.leaves,
        height: grown.height,
        buffers: grown.inner,
        chunks: each(plan.chunks.0) + each(plan.chunks.1),
    };
    let block = u64::from(chip.pages_per_block());
    let own = |root| PageLog::own_reserve_on(chip, &options.page_log(), root);
    let need = worst.pages(&load, PENDING_LEAST, (block, &own)) + block;
    // A sixteenth of a half, and two blocks at the least, is left to deletes.
    let half = (need * 16).div_ceil(15).max(need + 2 * block);
    Ok(u32::try_from(2 * half.div_ceil(block)).unwrap_or(u32::MAX))
}

impl LaTree<'_> {
    pub(super) const fn worst(&self) -> Worst<'_> {
        Worst { plan: &self.plan, leaf: &self.nodes.leaf, inner: &self.nodes.inner }
    }

    pub(super) fn load(&self) -> Load {
        Load {
            pending: self.buffers.pending,
            nodes: self.nodes.count(&self.log),
            leaves: self.leaves,
            height: self.height,
            buffers: self.buffers.records.len() as u64,
            chunks: self.chunk_pages(),
        }
    }
}
