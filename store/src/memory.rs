//! Where an index's memory goes.

/// Bytes of memory that an index holds. `cache` and `buffers` are what a memory budget bounds;
/// tables come beside it, each with a stated bound.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Memory {
    /// Caches of pages and nodes, with the tables that find them.
    pub cache: u64,
    /// Buffers of updates, and scratch space for merges and recovery.
    pub buffers: u64,
    /// The tree's own tables (node table, node translation table).
    pub tables: u64,
    /// The translation layer's mapping.
    pub ftl: u64,
}
