//! The drives of the paper, an index of a size on one of them, and what its operations cost.

use flashtree_lab::{Durability, Measured, MemoryLimit, Plan, Unwatched, Verify, compare};

/// The drives of figures 8 to 12.
pub(crate) const DRIVES: [&str; 2] = ["mtron-msd-sata3035", "intel-x25-m"];

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
    /// Entries put one by one before measuring.
    pub(crate) before: u64,
    /// Operations measured.
    pub(crate) operations: u64,
}

impl Stage {
    /// What `tree` does under a mix of searches, inserts, deletes and updates, in percent.
    pub(crate) fn measured(&self, tree: &str, mix: &str) -> Measured {
        let (entries, before) = (self.index_bytes / ENTRY_BYTES, self.before);
        let plan = Plan {
            device: self.device.to_string(),
            chip: None,
            overwrite: false,
            workload: format!("uniform:preload={entries},before={before},mix={mix},entry=4+4"),
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
        let measured = compare(&plan, &Unwatched).unwrap().measured.remove(0);
        assert_eq!(measured.row.error, None, "{tree} on {} under {mix}", self.device);
        measured
    }
}

/// The mean of the second half, in which the pool is warm.
pub(crate) fn second_half(course: &[f64]) -> f64 {
    mean(&course[course.len() / 2..])
}

/// The mean from a merge into the last level to the last such merge: so all that merges do counts
/// as often. These are the dearest parts of the course.
pub(crate) fn whole_periods(course: &[f64]) -> f64 {
    let mut sorted = course.to_vec();
    sorted.sort_by(f64::total_cmp);
    let (median, most) = (sorted[sorted.len() / 2], sorted[sorted.len() - 1]);
    let is_dear = |us: &f64| *us > f64::midpoint(median, most);
    let first = course.iter().position(is_dear).unwrap();
    let last = course.iter().rposition(is_dear).unwrap();
    assert!(last - first > course.len() / 3, "no two merges into the last level");
    mean(&course[first + 1..=last])
}

fn mean(course: &[f64]) -> f64 {
    course.iter().sum::<f64>() / course.len() as f64
}
