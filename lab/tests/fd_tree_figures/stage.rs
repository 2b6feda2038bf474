//! The drives of the paper, an index of a size on one of them, and what its operations cost.

use flashtree_lab::{Durability, MemoryLimit, Plan, Row, Unwatched, Verify, compare};

/// The drives of figures 8 to 12.
pub(crate) const DRIVES: [&str; 2] = ["mtron-msd-sata3035", "intel-x25-m"];

/// The trees of the paper; those that the registry doesn't have are left out.
pub(crate) const TREES: [&str; 4] = ["b-plus", "bftl", "lsm", "fd-tree"];

/// Bytes of an entry: a key of 4 bytes, and 4 bytes of record id and type.
const ENTRY_BYTES: u64 = 8;

/// An index on a drive.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Stage {
    /// The drive.
    pub(crate) device: &'static str,
    /// Bytes of all entries; the drive offers eight times as much, for trees that write anew.
    pub(crate) index_bytes: u64,
    /// Bytes of the buffer pool.
    pub(crate) memory_bytes: u64,
    /// Operations measured.
    pub(crate) operations: u64,
}

impl Stage {
    /// What `tree` does under a mix of searches, inserts, deletes and updates, in percent.
    pub(crate) fn row(&self, tree: &str, mix: &str) -> Row {
        let entries = self.index_bytes / ENTRY_BYTES;
        let plan = Plan {
            device: self.device.to_string(),
            chip: None,
            overwrite: false,
            workload: format!("uniform:preload={entries},mix={mix},entry=4+4"),
            trees: vec![tree.to_string()],
            ftl: None,
            memory: MemoryLimit::CachesAndBuffers(self.memory_bytes),
            size_bytes: Some(8 * self.index_bytes),
            operations: Some(self.operations),
            seed: 1,
            durability: Durability::None,
            verify: Verify::Off,
            input: None,
            jobs: 1,
        };
        let row = compare(&plan, &Unwatched).unwrap().measured.remove(0).row;
        assert_eq!(row.error, None, "{tree} on {} under {mix}", self.device);
        row
    }
}

/// The trees of the paper that there are.
pub(crate) fn trees_here() -> impl Iterator<Item = &'static str> {
    TREES.into_iter().filter(|tree| trees::find(tree).is_some())
}
