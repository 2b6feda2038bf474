//! Cost models: what a workload is in numbers, and what it costs.

/// A workload in numbers, for the cost models.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Profile {
    /// Entries in the index.
    pub entries: u64,
    /// Share of the operations that are lookups, 0 to 1.
    pub lookups: f64,
    /// Share of the operations that are puts of keys that are absent, 0 to 1.
    pub inserts: f64,
    /// Share of the operations that are puts of keys that are present, 0 to 1.
    pub overwrites: f64,
    /// Share of the operations that are deletes, 0 to 1.
    pub deletes: f64,
}

/// What an operation of a workload costs on average, by a tree's cost model.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Prediction {
    /// Pages read an operation.
    pub page_reads: f64,
    /// Pages written an operation, before any translation layer.
    pub page_writes: f64,
    /// Nodes on the way from the root to a leaf.
    pub height: u32,
}
