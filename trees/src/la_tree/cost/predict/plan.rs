//! What a tree is made with, as far as its costs depend on it.

use crate::la_tree::cost::UnitCosts;
use crate::la_tree::layout::PageShape;
use crate::la_tree::policy::Buffering;

/// What a tree is made with.
#[derive(Clone, Copy, Debug)]
pub(in crate::la_tree) struct Plan {
    pub(in crate::la_tree) shape: PageShape,
    pub(in crate::la_tree) units: UnitCosts,
    /// Bytes of a key and of a value.
    pub(in crate::la_tree) entry: (u16, u16),
    /// K.
    pub(in crate::la_tree) levels_per_buffer: u32,
    pub(in crate::la_tree) buffering: Buffering,
    pub(in crate::la_tree) memory_bytes: u64,
    /// The pool's part of it, and the nodes that the cache holds.
    pub(in crate::la_tree) pool_bytes: u64,
    pub(in crate::la_tree) cache_nodes: u32,
}

impl Plan {
    /// Bytes of an entry in a buffer, its share of the byte of kinds included.
    pub(super) fn entry_bytes(&self) -> f64 {
        f64::from(self.entry.0) + f64::from(self.entry.1) + 0.125
    }

    /// Entries that fill a page of fragments.
    pub(super) fn page_entries(&self) -> f64 {
        (f64::from(self.shape.room()) / self.entry_bytes()).max(1.0)
    }
}
