//! How a database stands.

use index::{Memory, RecoveryStatistics, Savepoint};

use crate::Health;
use crate::encoding::Type;

/// How a database stands at the moment.
///
/// ```
/// # use flashtree::{Database, Options};
/// # fn main() -> flashtree::Result<()> {
/// # let folder = tempfile::tempdir().unwrap();
/// let fruit = Database::create(folder.path().join("fruit.db"), &Options::new())?;
/// let stats = fruit.stats()?;
/// assert_eq!((stats.tree, stats.height), ("flat-tree", 1));
/// assert!(stats.memory_bytes() <= 16 << 20);
/// # Ok(()) }
/// ```
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Stats {
    /// The tree.
    pub tree: &'static str,
    /// What the keys are.
    pub key: Type,
    /// What the values are.
    pub value: Type,
    /// Bytes in a page of the tree.
    pub page_bytes: u32,
    /// Nodes on a longest way from the root to a leaf.
    pub height: u32,
    /// Pages of the device that hold live data.
    pub live_pages: u64,
    /// Bytes in each of them.
    pub live_page_bytes: u32,
    /// Bytes of memory in use by the tree and a translation layer, by purpose.
    pub memory: Memory,
    /// Bytes of memory that the driver of the device takes.
    pub driver_bytes: u64,
    /// The most that caches, buffers and tables took together so far, in bytes.
    pub memory_peak: u64,
    /// What stands on the device for recovery, and what the last recovery did; the durability
    /// among it.
    pub recovery: RecoveryStatistics,
    /// The checkpoints that are kept, oldest first.
    pub checkpoints: Vec<Savepoint>,
    /// The file, for a database in one.
    pub file: Option<FileSizes>,
    /// How the chip is, for a database on one.
    pub health: Option<Health>,
}

impl Stats {
    /// Bytes of memory in use in all: what [`Options::memory_total`] bounds.
    ///
    /// [`Options::memory_total`]: crate::Options::memory_total
    ///
    /// ```
    /// # use flashtree::{Database, Options};
    /// # fn main() -> flashtree::Result<()> {
    /// # let folder = tempfile::tempdir().unwrap();
    /// let options = Options::new().memory_total(256_000);
    /// let fruit = Database::create(folder.path().join("fruit.db"), &options)?;
    /// assert!(fruit.stats()?.memory_bytes() <= 256_000);
    /// # Ok(()) }
    /// ```
    #[must_use]
    pub const fn memory_bytes(&self) -> u64 {
        let memory = &self.memory;
        memory.cache + memory.buffers + memory.tables + memory.ftl + self.driver_bytes
    }
}

/// The sizes of a file.
///
/// ```
/// # use flashtree::{Database, Options};
/// # fn main() -> flashtree::Result<()> {
/// # let folder = tempfile::tempdir().unwrap();
/// let options = Options::new().capacity(1 << 30);
/// let fruit = Database::create(folder.path().join("fruit.db"), &options)?;
/// let sizes = fruit.stats()?.file.expect("it is in a file");
/// assert_eq!(sizes.capacity, 1 << 30);
/// assert!(sizes.length < 1 << 20);
/// # Ok(()) }
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileSizes {
    /// Bytes that it takes on its disk.
    pub taken: u64,
    /// Its length in bytes.
    pub length: u64,
    /// Bytes that it can grow to.
    pub capacity: u64,
}
