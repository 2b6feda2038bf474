//! What a tree is made with, as far as its costs depend on it.

use crate::la_tree::cache::FRAMES_LEAST;
use crate::la_tree::cost::UnitCosts;
use crate::la_tree::layout::PageShape;
use crate::la_tree::policy::Buffering;
use store::node::HEADER_BYTES;

/// What a tree is made with.
#[derive(Clone, Copy, Debug)]
pub(in crate::la_tree) struct Plan {
    pub(in crate::la_tree) shape: PageShape,
    pub(in crate::la_tree) units: UnitCosts,
    /// True if nodes are written and read as far as they are in use.
    pub(in crate::la_tree) nodes_are_packed: bool,
    /// Bytes of a key and of a value.
    pub(in crate::la_tree) entry: (u16, u16),
    /// K.
    pub(in crate::la_tree) levels_per_buffer: u32,
    pub(in crate::la_tree) buffering: Buffering,
    pub(in crate::la_tree) memory_bytes: u64,
    /// The pool's part of it, and the nodes that the cache holds.
    pub(in crate::la_tree) pool_bytes: u64,
    pub(in crate::la_tree) cache_nodes: u32,
    /// True if ADAPT counts scans of entries in the pool.
    pub(in crate::la_tree) counts_pool: bool,
    /// What pool and cache share, and the bytes of a node there.
    pub(in crate::la_tree) shared: Option<(u64, u64)>,
}

/// Ways that are looked at in which shared memory is divided.
const PARTS: u64 = 24;

/// How full a node of random keys is on the average, in percent.
const FILLED: u32 = 69;

/// Bytes in use of a node of `bytes` bytes whose entries have fixed lengths.
pub(in crate::la_tree) const fn used_bytes(bytes: u32) -> u32 {
    let header = HEADER_BYTES as u32;
    header + (bytes - header) * FILLED / 100
}

impl Plan {
    /// The ways in which memory may be divided.
    pub(super) fn divisions(self) -> impl Iterator<Item = Plan> {
        let parts = if self.shared.is_some() { 1..PARTS } else { 0..1 };
        parts.filter_map(move |part| {
            let Some((bytes, each)) = self.shared else {
                return Some(self);
            };
            let pool_bytes = bytes * part / PARTS;
            let cache_nodes = u32::try_from((bytes - pool_bytes) / each.max(1)).ok()?;
            (cache_nodes >= FRAMES_LEAST).then_some(Plan { pool_bytes, cache_nodes, ..self })
        })
    }

    /// Bytes of an entry in a buffer, its share of the byte of kinds included.
    pub(super) fn entry_bytes(&self) -> f64 {
        f64::from(self.entry.0) + f64::from(self.entry.1) + 0.125
    }

    /// Nodes in a page: they are written as far as they are in use.
    pub(super) fn nodes_per_page(&self) -> f64 {
        let least = f64::from(self.shape.nodes_per_page());
        if !self.nodes_are_packed || self.shape.is_in_place() {
            return least;
        }
        let used = f64::from(used_bytes(self.shape.node_bytes()));
        // Half a node finds no room at the end.
        ((f64::from(self.shape.room()) - used / 2.0) / used).max(least)
    }

    /// Entries that fill a page of fragments.
    pub(super) fn page_entries(&self) -> f64 {
        (f64::from(self.shape.room()) / self.entry_bytes()).max(1.0)
    }
}
