//! What to compare, and how.

use std::path::PathBuf;

use index::Durability;

/// The chip that is imitated where none is named.
pub const DEFAULT_CHIP: &str = "winbond-w25n01gv";

/// The translation layer where none is named.
pub(crate) const DEFAULT_FTL: &str = "page-map";

/// Everything that decides a comparison; the same plan gives the same rows, wall times aside.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The device's spec, such as `winbond-w25n01gv:blocks=64` or `file:PATH`.
    pub device: String,
    /// The spec of the chip that `nand-file:` imitates, if not [`DEFAULT_CHIP`].
    pub chip: Option<String>,
    /// Whether a device's file is replaced even if it is not ours.
    pub overwrite: bool,
    /// The workload's spec, such as `weather:ltu=10`.
    pub workload: String,
    /// The specs of the trees; empty for every tree that fits.
    pub trees: Vec<String>,
    /// The spec of the translation layer for trees that stand on sectors, if not page
    /// mapping.
    pub ftl: Option<String>,
    /// The memory budget.
    pub memory: MemoryLimit,
    /// The most bytes of the device that may be used.
    pub size_bytes: Option<u64>,
    /// Operations in all, if not what the workload says.
    pub operations: Option<u64>,
    /// The seed of everything random.
    pub seed: u64,
    /// What has to survive a power cut.
    pub durability: Durability,
    /// How much is compared with an in-memory ordered map.
    pub verify: Verify,
    /// The file that the workload `csv` reads.
    pub input: Option<PathBuf>,
    /// Trees that run at the same time; on a device in a real file one runs after the other.
    pub jobs: usize,
}

/// What a memory budget bounds, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MemoryLimit {
    /// Caches and buffers, as the papers count.
    CachesAndBuffers(u64),
    /// All: caches, buffers, tables and the translation layer's mapping.
    Total(u64),
}

/// How much is compared with an in-memory ordered map.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Verify {
    /// Every lookup and range on the way, and all contents at the end.
    #[default]
    Full,
    /// Some of the lookups, and some of the contents at the end.
    Sampled,
    /// Nothing.
    Off,
}

/// A part of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// Loading what is there before measuring.
    Preload,
    /// The measured operations.
    Run,
    /// Comparing all contents with what they should be.
    Verify,
}

/// Somebody who watches a comparison and may end it.
pub trait Watcher: Sync {
    /// The tree at place `tree` of the comparison, whose spec is `spec`, begins a phase of `steps`
    /// steps.
    fn begin(&self, tree: usize, spec: &str, phase: Phase, steps: u64);
    /// It made `steps` more steps.
    fn advance(&self, tree: usize, steps: u64);
    /// It is done.
    fn finish(&self, tree: usize);
    /// True if all should stop soon.
    fn cancelled(&self) -> bool {
        false
    }
}

/// Nobody watches.
#[derive(Clone, Copy, Debug, Default)]
pub struct Unwatched;

impl Watcher for Unwatched {
    fn begin(&self, _tree: usize, _spec: &str, _phase: Phase, _steps: u64) {}
    fn advance(&self, _tree: usize, _steps: u64) {}
    fn finish(&self, _tree: usize) {}
}
