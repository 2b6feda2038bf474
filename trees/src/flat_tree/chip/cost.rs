//! The cost model on raw flash: what a workload of random keys costs.

use device::Geometry;
use index::random_keys::{OCCUPANCY, average_bytes};
use index::{Options, Prediction, Profile, Result};
use store::PageLog;

use super::make::Plan;

/// Predicts what an operation costs, where tables are not bounded.
pub(in super::super) fn predict(
    profile: &Profile,
    options: &Options,
    chip: Geometry,
) -> Result<Prediction> {
    let log = PageLog::least_memory(chip, &options.page_log());
    let plan = Plan::new(options.memory_bytes, (chip, log), options.shape)?;
    let bytes =
        f64::from(average_bytes(options.shape.key)) + f64::from(average_bytes(options.shape.value));
    let entries = profile.entries.max(1) as f64;
    let waiting = (OCCUPANCY * plan.memtable as f64 / (bytes + 1.0)).clamp(1.0, entries);
    let updates = profile.inserts + profile.overwrites + profile.deletes;
    let stored = bytes * 1.1 / f64::from(plan.content);
    let pending = 0.9 * entries.max(waiting);
    let merged = 1.0 + entries / (2.0 * pending);
    let pages = stored * (1.0 + merged);
    let found = 1.0 - waiting / entries / 2.0;
    Ok(Prediction {
        page_reads: profile.lookups * found + updates * stored * merged,
        page_writes: updates * pages,
        height: 1,
    })
}
