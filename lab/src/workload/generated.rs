//! `uniform`, `sequential` and `zipf`: entries that are made from their numbers.

use super::numbers::{Numbers, Order};
use super::{Chosen, Source, WorkloadEntry, parameters as p};
use crate::error::Result;

/// New keys, scattered evenly over all that there can be.
pub(super) const UNIFORM: WorkloadEntry = WorkloadEntry {
    name: "uniform",
    about: "new keys, each only once, scattered evenly; lookups, deletes and updates meet each \
            key that is there with the same chance",
    parameters: &[
        p::ENTRY_NUMBERS,
        p::PRELOAD_MANY,
        p::BEFORE,
        p::UPDATES,
        p::LTU,
        p::DELETES,
        p::HITS,
        p::RANGES,
        p::SCAN,
        p::MIX,
    ],
    source: scattered,
};

/// New keys in ascending order.
pub(super) const SEQUENTIAL: WorkloadEntry = WorkloadEntry {
    name: "sequential",
    about: "new keys in ascending order: the even numbers; lookups, deletes and updates meet each \
            key that is there with the same chance",
    parameters: UNIFORM.parameters,
    source: ascending,
};

/// Old keys, some of them far more often than others.
pub(super) const ZIPF: WorkloadEntry = WorkloadEntry {
    name: "zipf",
    about: "puts, lookups and deletes of the loaded keys, drawn by rank under a Zipf distribution \
            (rejection-inversion, Hoermann and Derflinger 1996), the ranks scattered over the keys",
    parameters: &[
        p::ENTRY_NUMBERS,
        p::PRELOAD_MANY,
        p::UPDATES,
        p::LTU,
        p::DELETES,
        p::HITS,
        p::RANGES,
        p::SCAN,
        p::SKEW,
        p::MIX,
    ],
    source: scattered,
};

fn scattered(chosen: &Chosen, seed: u64) -> Result<Source> {
    Ok(Source::Numbers(Numbers { shape: chosen.entry, order: Order::Scattered, seed }))
}

fn ascending(chosen: &Chosen, seed: u64) -> Result<Source> {
    Ok(Source::Numbers(Numbers { shape: chosen.entry, order: Order::Ascending, seed }))
}
