//! What a comparison found.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// The rows of a comparison, and the trees that could not take part.
#[derive(Clone, Debug, Default)]
pub struct Comparison {
    /// A row for each tree, in the order of the plan.
    pub measured: Vec<Measured>,
    /// How many of them have an error since the tree does not fit, though it was named: they are
    /// wrong usage.
    pub refused: usize,
    /// Trees that do not fit the device or the workload, where none was named.
    pub left_out: Vec<LeftOut>,
    /// What there is to say about the device, a line each.
    pub remarks: Vec<String>,
}

/// The clock of a device's times.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Clock {
    /// The device's model says how long everything takes.
    #[default]
    Model,
    /// The clock of the wall: device times are those until calls of a real device returned, and
    /// the latency of an operation is its time by the clock.
    Wall,
}

/// A tree that could not take part.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeftOut {
    /// Its name.
    pub tree: String,
    /// Why, in a line.
    pub reason: String,
}

/// A row, and what plots need beyond it.
#[derive(Clone, Debug, Default)]
pub struct Measured {
    /// The figures.
    pub row: Row,
    /// The clock of the times in it.
    pub clock: Clock,
    /// Erases of each block of the device at the end; empty where they can't be seen.
    pub erases_by_block: Vec<u32>,
    /// Mean device time an operation, in microseconds, of equal parts of the measured phase.
    pub course_us_per_op: Vec<f64>,
}

/// The figures of one tree. What a device does not have is `None`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Row {
    /// The spec as given.
    pub tree: String,
    /// The device's spec.
    pub device: String,
    /// The translation layer's spec, where one was used.
    pub ftl: Option<String>,
    /// The workload's spec.
    pub workload: String,
    /// The seed.
    pub seed: u64,
    /// Memory of caches and buffers, in bytes.
    pub memory_bytes: u64,
    /// The bound on all memory, in bytes, where one was given.
    pub memory_total_bytes: Option<u64>,
    /// The durability's name.
    pub durability: String,
    /// Gets, puts, deletes and ranges of the measured phase, one each.
    pub operations: u64,
    /// Device time an operation: the sum of `by_cause`.
    pub device_us_per_op: f64,
    /// Energy an operation.
    pub energy_uj_per_op: Option<f64>,
    /// Device time of settling what was still buffered at the end.
    pub settle_us: f64,
    /// Pages read.
    pub page_reads: u64,
    /// Pages programmed.
    pub page_programs: u64,
    /// Blocks erased.
    pub block_erases: Option<u64>,
    /// Bytes read.
    pub bytes_read: u64,
    /// Bytes programmed.
    pub bytes_programmed: u64,
    /// Bytes programmed over bytes of keys and values put and keys deleted.
    pub write_amplification: Option<f64>,
    /// Bytes that the flash inside a disk programmed, where it can be seen.
    pub flash_bytes_programmed: Option<u64>,
    /// Those bytes over bytes of keys and values put and keys deleted.
    pub flash_write_amplification: Option<f64>,
    /// Bytes that the operating system counts as read from storage, on `file:`.
    pub system_bytes_read: Option<u64>,
    /// Bytes that it counts as written to storage, on `file:`.
    pub system_bytes_written: Option<u64>,
    /// Pages that hold live data at the end.
    pub live_pages: u64,
    /// Nodes from the root to a leaf.
    pub height: u32,
    /// Memory by purpose.
    pub memory: MemoryUse,
    /// The most that cache, buffers and tables took together.
    pub peak_memory_bytes: u64,
    /// Erases of the block erased most.
    pub erases_most: Option<u64>,
    /// Mean erases a block.
    pub erases_mean: Option<f64>,
    /// Wall time of the measured phase.
    pub wall_seconds: f64,
    /// Wall time an operation.
    pub wall_us_per_op: f64,
    /// Device time an operation, by cause.
    pub by_cause: BTreeMap<String, f64>,
    /// Device time of single operations; by the clock of the wall on `file:`.
    pub latency_us: Latency,
    /// What was verified.
    pub verified: Verified,
    /// Why the tree failed, if it did.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub error: Option<String>,
}

/// Bytes of memory by purpose.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct MemoryUse {
    /// Caches of pages and nodes.
    pub cache: u64,
    /// Buffers and scratch space.
    pub buffers: u64,
    /// The tree's tables.
    pub tables: u64,
    /// The translation layer's mapping, where there is a layer.
    pub ftl: Option<u64>,
}

/// Quantiles of the time of single operations, in microseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Latency {
    /// Half are faster.
    pub p50: f64,
    /// 99 % are faster.
    pub p99: f64,
    /// 99.9 % are faster.
    pub p99_9: f64,
    /// 99.99 % are faster; by the clock of the wall only.
    pub p99_99: Option<f64>,
    /// The slowest.
    pub max: f64,
}

/// What was compared with an in-memory ordered map: `true`, `"sampled"` or `null` in JSON.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Verified {
    /// Everything.
    Full,
    /// Samples.
    Sampled,
    /// Nothing, or the run failed before.
    #[default]
    No,
}

impl Serialize for Verified {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Verified::Full => serializer.serialize_bool(true),
            Verified::Sampled => serializer.serialize_str("sampled"),
            Verified::No => serializer.serialize_none(),
        }
    }
}

impl<'de> Deserialize<'de> for Verified {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(untagged)]
        enum Form {
            Flag(bool),
            Word(String),
            Nothing(()),
        }
        match Form::deserialize(deserializer)? {
            Form::Flag(true) => Ok(Verified::Full),
            Form::Word(word) if word == "sampled" => Ok(Verified::Sampled),
            Form::Nothing(()) => Ok(Verified::No),
            Form::Flag(false) | Form::Word(_) => {
                Err(serde::de::Error::custom("verified is true, \"sampled\" or null"))
            }
        }
    }
}
