//! What a tree takes, by its plan: pages, and bytes of tables.

use device::Geometry;
use index::random_keys::average_bytes;
use store::node::HEADER_BYTES;
use store::{Demand, Growth, PageLog, PageLogOptions};

use super::super::buffers::Buffers;
use super::super::layout::ROOT_BYTES;
use super::super::table::Table;
use super::Plan;
use crate::btree::{CHILD_BYTES, HEIGHT_MOST};

/// How full nodes are taken to be where it is said how many entries there will be, in percent.
const FILLED: u64 = 62;

/// Blocks beside those that the log keeps back: one that it begins, and the ends of those that are
/// the last of two generations.
const BLOCKS_BESIDE: u32 = 3;

/// Pages of a half of so many that stay free.
pub(in super::super) fn reserve(half: u64, block: u64) -> u64 {
    (half / 16).max(2 * block)
}

/// Pages that the generations have together, of so many blocks of `block` pages, of which the log
/// keeps `own` back.
pub(in super::super) fn pages_of_generations(blocks: u32, own: u32, block: u64) -> u64 {
    u64::from(blocks.saturating_sub(own + BLOCKS_BESIDE)) * block
}

impl Plan {
    pub(in super::super) fn node_pages(&self, nodes: u64) -> u64 {
        nodes.div_ceil(u64::from(self.pages.nodes_per_page()))
    }

    /// Pages of both tables of so many leaves and inner nodes, at most: buffers are at every level
    /// or at inner ones.
    fn table_pages(&self, leaves: u64, inner: u64) -> u64 {
        let buffered = if self.levels_a_buffer == 1 { leaves + inner } else { inner + 1 };
        let plain = (leaves + inner).div_ceil(self.chunks.0.max(1).into());
        plain + buffered.div_ceil(self.chunks.1.max(1).into())
    }

    /// Pages of so many leaves and inner nodes, and of their tables, twice.
    pub(in super::super) fn pages_of(&self, leaves: u64, inner: u64) -> u64 {
        self.node_pages(leaves + inner) + 2 * self.table_pages(leaves, inner) + 2
    }

    /// Bytes in the worst case of the tables that have so many numbers of nodes without buffers and
    /// with, and grow so much.
    pub(in super::super) fn table_bytes_grown(
        &self,
        (plain, buffered): (u64, u64),
        growth: Growth,
    ) -> u64 {
        let inner = growth.inner + 1;
        let born = growth.leaves + inner;
        let buffered = buffered + if self.levels_a_buffer == 1 { born } else { inner };
        let plain = if self.pages.is_in_place() { 0 } else { plain + born };
        Table::bytes_most(plain, self.chunks.0)
            + Table::bytes_most(buffered, self.chunks.1)
            + Buffers::table_bytes_most(self.has_small_pool, buffered)
    }

    /// The same of an empty tree that a put comes to, whatever its nodes hold.
    pub(in super::super) fn table_bytes_at_first(&self) -> u64 {
        let mut root = Demand { puts_a_leaf: 1, leaves_a_put: 1, ..Demand::default() };
        root.levels[0] = 1;
        self.table_bytes_grown((0, 1), root.growth(1))
    }

    /// The same of a tree of so many entries, if they are known, whose nodes are as full as deletes
    /// and puts of random keys leave them, and a little less.
    pub(in super::super) fn table_bytes_of(&self, entries: Option<u64>) -> u64 {
        let capacity = |value| {
            let key = average_bytes(self.shape.key);
            let room = self.pages.node_bytes().saturating_sub(HEADER_BYTES as u32);
            u64::from(room / (u32::from(key) + u32::from(value)).max(1)).max(4)
        };
        let filled = |number: u64, capacity: u64| (number * 100).div_ceil(capacity * FILLED);
        let leaves = filled(entries.unwrap_or(0), capacity(average_bytes(self.shape.value)));
        let (mut inner, mut nodes) = (0, leaves);
        while nodes > 1 {
            nodes = filled(nodes, capacity(CHILD_BYTES));
            inner += nodes;
        }
        let grown = self.table_bytes_grown((0, 1), Growth { leaves, inner, ..Growth::default() });
        grown.max(self.table_bytes_at_first())
    }

    /// Bytes of the longest root record on a chip with so many pages.
    pub(in super::super) fn root_bytes_most(&self, pages: u32) -> u64 {
        let nodes = u64::from(pages / 2) * u64::from(self.pages.nodes_per_page());
        // No more than finds room waits, whatever the pool holds: with other memory it is the same.
        let pool = u64::from(pages) / 16 + 2;
        let levels = HEIGHT_MOST as u64;
        ROOT_BYTES + 4 * (levels + self.table_pages(nodes, nodes / 3) + pool)
    }
}

/// Blocks of which half have as many pages as four blocks, beside the reserve.
pub(in super::super) fn fewest_blocks(plan: &Plan, chip: Geometry, log: &PageLogOptions) -> u32 {
    let block = u64::from(chip.pages_per_block());
    let own = PageLog::own_reserve_on(chip, log, plan.root_bytes_most(chip.pages()));
    let is_enough = |blocks: &u32| {
        let half = pages_of_generations(*blocks, own, block) / 2;
        half >= reserve(half, block) + 4 * block
    };
    (own..u32::MAX).find(is_enough).unwrap_or(u32::MAX)
}
