//! What a user chooses when a database is made or opened.

use std::time::Duration;

use device::Geometry;
use index::{Durability, EntryShape};

use crate::encoding::Type;
use crate::{Error, Result, choice};

/// Bytes of a sector of every database in a plain file: what file systems and disks write at once.
pub(crate) const SECTOR_BYTES: u32 = 4096;

/// What bounds the memory of a database.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum MemoryLimit {
    /// Everything: caches, buffers, tables, a translation layer's mapping, and the buffers of the
    /// file.
    Total(u64),
    /// Caches and buffers; tables and mapping come beside them.
    CachesAndBuffers(u64),
}

impl MemoryLimit {
    /// A limit like this one, of so many bytes.
    pub(crate) const fn of_bytes(self, bytes: u64) -> Self {
        match self {
            MemoryLimit::Total(_) => MemoryLimit::Total(bytes),
            MemoryLimit::CachesAndBuffers(_) => MemoryLimit::CachesAndBuffers(bytes),
        }
    }

    /// The most bytes of entries that a range reads ahead.
    pub(crate) fn bytes_ahead(self) -> usize {
        let (MemoryLimit::Total(bytes) | MemoryLimit::CachesAndBuffers(bytes)) = self;
        (bytes / AHEAD_SHARE).clamp(AHEAD_LEAST, AHEAD_MOST) as usize
    }

    /// Bytes that are kept free for what one range reads ahead. The least is beside the budget.
    pub(crate) fn bytes_ahead_reserved(self) -> u64 {
        match (self, self.bytes_ahead() as u64) {
            (_, AHEAD_LEAST) | (MemoryLimit::CachesAndBuffers(_), _) => 0,
            (MemoryLimit::Total(_), bytes) => bytes,
        }
    }
}

/// What the threads of a process have of each other.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sharing {
    /// How long a thread waits for its turn.
    pub(crate) turn_wait: Duration,
    /// The most bytes that all snapshots keep.
    pub(crate) snapshot_bytes: u64,
}

impl Sharing {
    const USUAL: Sharing = Sharing { turn_wait: TURN_WAIT, snapshot_bytes: MEMORY_TOTAL };
}

/// A range reads this share of the memory ahead, in these bounds in bytes.
const AHEAD_SHARE: u64 = 64;
const AHEAD_LEAST: u64 = 1 << 10;
const AHEAD_MOST: u64 = 64 << 10;

/// How long a thread waits for its turn to change something, if nothing else is chosen: so long
/// that only a transaction that was forgotten, or that waits for the thread itself, comes to it.
const TURN_WAIT: Duration = Duration::from_secs(60);

/// The memory that a database takes if nothing else is chosen, in bytes, everything included.
///
/// ```
/// use flashtree::{MEMORY_TOTAL, OpenOptions};
/// let options = OpenOptions::new().memory_total(MEMORY_TOTAL / 2);
/// ```
pub const MEMORY_TOTAL: u64 = 16 << 20;

/// How far a file can grow if nothing else is chosen: so many times the memory, since what is kept
/// in memory of each of its pages is part of that.
const CAPACITY_TIMES: u64 = 4096;

/// The same for a tree whose tables grow with its entries. They have a few bytes for each page of
/// the file, too: so these take a seventh of the memory, and most is left for what grows.
const CAPACITY_TIMES_GROWING: u64 = 256;

/// How far a file can grow at least if nothing else is chosen, in bytes, however little the memory.
const CAPACITY_LEAST: u64 = 1 << 20;

/// The farthest a file can grow if nothing else is chosen, in bytes.
const CAPACITY_MOST: u64 = 4 << 30;

/// The farthest that a file can be chosen to grow, in bytes: places in it have 63 bits.
const CAPACITY_CHOSEN_MOST: u64 = i64::MAX as u64;

/// The longest journal if nothing else is chosen, in bytes: it takes several values of 1 MiB, and
/// is replayed in a fraction of a second.
const JOURNAL_MOST: u64 = 4 << 20;

/// The share of a device that the journal takes if nothing else is chosen.
const JOURNAL_SHARE: u64 = 8;

/// The choices when a database is made.
///
/// ```
/// use flashtree::{Database, Durability, Options};
///
/// # fn main() -> flashtree::Result<()> {
/// let folder = tempfile::tempdir().unwrap();
/// let options = Options::new()
///     .tree("b-plus:fill=90")
///     .page_bytes(2048)
///     .memory_total(256 << 10)
///     .durability(Durability::Every)
///     .key("tuple(text,time)".parse()?)
///     .value("f64".parse()?);
/// let readings = Database::create(folder.path().join("readings.db"), &options)?;
/// # readings.put("k", 1.5_f64.to_be_bytes())?;
/// # Ok(()) }
/// ```
#[derive(Clone, Debug)]
#[must_use]
pub struct Options {
    pub(crate) tree: String,
    pub(crate) page_bytes: Option<u32>,
    pub(crate) memory: MemoryLimit,
    pub(crate) durability: Durability,
    /// True if the durability was chosen. A copy has that of the original if it was not.
    pub(crate) is_durability_chosen: bool,
    pub(crate) journal_bytes: Option<u64>,
    pub(crate) capacity: Option<u64>,
    pub(crate) overwrite: bool,
    pub(crate) wait: Duration,
    pub(crate) sharing: Sharing,
    pub(crate) identity: Option<u64>,
    pub(crate) key: Option<Type>,
    pub(crate) value: Option<Type>,
    pub(crate) shape: Option<EntryShape>,
    pub(crate) keyspaces: bool,
    pub(crate) chip: Option<Geometry>,
    pub(crate) ftl: Option<String>,
    /// How full nodes are loaded, if the tree's spec does not say; 0 for the tree's own choice.
    pub(crate) fill_percent: u8,
    /// Settings of the tree, packed, that go before those of its spec.
    pub(crate) settings: Vec<u8>,
}

impl Options {
    /// In a file the tree `flat-tree`, on a chip `b-plus` over page mapping; pages of 4 KiB, 16 MiB
    /// of memory in all, durability batch, room for 4 GiB, keys and values of any bytes.
    ///
    /// ```
    /// let options = flashtree::Options::new();
    /// ```
    pub const fn new() -> Self {
        Options {
            tree: String::new(),
            page_bytes: None,
            memory: MemoryLimit::Total(MEMORY_TOTAL),
            durability: Durability::Batch,
            is_durability_chosen: false,
            journal_bytes: None,
            capacity: None,
            overwrite: false,
            wait: Duration::ZERO,
            sharing: Sharing::USUAL,
            identity: None,
            key: None,
            value: None,
            shape: None,
            keyspaces: false,
            chip: None,
            ftl: None,
            fill_percent: 0,
            settings: Vec::new(),
        }
    }

    /// The tree and its parameters, `NAME[:key=value,...]`.
    ///
    /// ```
    /// let options = flashtree::Options::new().tree("b-plus:fill=90");
    /// ```
    pub fn tree(mut self, spec: impl Into<String>) -> Self {
        self.tree = spec.into();
        self
    }

    /// The number that goes into every checksum, so that no page of another database is taken for
    /// one of this. If it is not given, it is drawn by lot; give one where the same calls have to
    /// make the same bytes.
    ///
    /// ```
    /// let options = flashtree::Options::new().identity(7);
    /// ```
    pub const fn identity(mut self, identity: u64) -> Self {
        self.identity = Some(identity);
        self
    }

    /// Bytes in a page of the tree. Where no tree is named it is `b-plus` then.
    ///
    /// ```
    /// let options = flashtree::Options::new().page_bytes(2048);
    /// ```
    pub const fn page_bytes(mut self, bytes: u32) -> Self {
        self.page_bytes = Some(bytes);
        self
    }

    /// The most bytes of memory for everything together: caches, buffers, tables, a translation
    /// layer's mapping, the file's buffers. What is read is handed out in memory of the caller.
    ///
    /// ```
    /// let options = flashtree::Options::new().memory_total(128 << 10);
    /// ```
    pub const fn memory_total(mut self, bytes: u64) -> Self {
        self.memory = MemoryLimit::Total(bytes);
        self
    }

    /// The most bytes of memory for caches and buffers; tables and mapping come beside them.
    ///
    /// ```
    /// let options = flashtree::Options::new().memory(64 << 10);
    /// ```
    pub const fn memory(mut self, bytes: u64) -> Self {
        self.memory = MemoryLimit::CachesAndBuffers(bytes);
        self
    }

    /// How much of what returned lasts through a power cut.
    ///
    /// ```
    /// use flashtree::{Durability, Options};
    /// let options = Options::new().durability(Durability::Every);
    /// ```
    pub const fn durability(mut self, durability: Durability) -> Self {
        self.durability = durability;
        self.is_durability_chosen = true;
        self
    }

    /// Bytes of the journal: they bound the time that opening takes, and the longest batch and
    /// value. An eighth of the device, if nothing else is chosen, and at most 4 MiB.
    ///
    /// ```
    /// let options = flashtree::Options::new().journal_bytes(1 << 20);
    /// ```
    pub const fn journal_bytes(mut self, bytes: u64) -> Self {
        self.journal_bytes = Some(bytes);
        self
    }

    /// How many bytes the file can grow to: 4096 times the memory, if nothing else is chosen, or
    /// 256 times for a tree whose tables grow with its entries, as those of `la-tree` do; at most
    /// 4 GiB. The file is as long as what is in it, with room for what comes while it is open. A
    /// [copy](crate::Database::copy_to) can have another capacity.
    ///
    /// ```
    /// let options = flashtree::Options::new().capacity(1 << 30);
    /// ```
    pub const fn capacity(mut self, bytes: u64) -> Self {
        self.capacity = Some(bytes);
        self
    }

    /// Whether what exists under the database's name is replaced, whatever it is.
    ///
    /// ```
    /// let options = flashtree::Options::new().overwrite(true);
    /// ```
    pub const fn overwrite(mut self, overwrite: bool) -> Self {
        self.overwrite = overwrite;
        self
    }

    /// How long to wait while another process or handle has what is to be replaced: as
    /// [`OpenOptions::wait`].
    ///
    /// ```
    /// use std::time::Duration;
    /// let options = flashtree::Options::new().overwrite(true).wait(Duration::from_secs(5));
    /// ```
    pub const fn wait(mut self, wait: Duration) -> Self {
        self.wait = wait;
        self
    }

    /// How long a thread waits for its turn while another has a transaction, or reads a state that
    /// stays, before that is an error ([`Error::Waited`]): 60 seconds, if nothing else is chosen.
    ///
    /// ```
    /// use std::time::Duration;
    /// let options = flashtree::Options::new().turn_wait(Duration::from_secs(5));
    /// ```
    pub const fn turn_wait(mut self, wait: Duration) -> Self {
        self.sharing.turn_wait = wait;
        self
    }

    /// The most bytes of memory that all [snapshots](crate::Snapshot) together take for what was
    /// changed since, beside the budget: 16 MiB, if nothing else is chosen.
    ///
    /// ```
    /// let options = flashtree::Options::new().snapshot_bytes(64 << 20);
    /// ```
    pub const fn snapshot_bytes(mut self, bytes: u64) -> Self {
        self.sharing.snapshot_bytes = bytes;
        self
    }

    /// What the keys are. It is kept in the database. Keys of a type that has a fixed length are
    /// stored without their length.
    ///
    /// ```
    /// use flashtree::{Options, encoding::Type};
    /// let options = Options::new().key(Type::Text);
    /// ```
    pub fn key(mut self, key: Type) -> Self {
        self.key = Some(key);
        self
    }

    /// What the values are. It is kept in the database.
    ///
    /// ```
    /// use flashtree::{Options, encoding::Type};
    /// let options = Options::new().value(Type::F64);
    /// ```
    pub fn value(mut self, value: Type) -> Self {
        self.value = Some(value);
        self
    }

    /// The lengths of keys and values, where the types do not say.
    ///
    /// ```
    /// use flashtree::{EntryShape, Options};
    /// let options = Options::new().shape(EntryShape::fixed(16, 8));
    /// ```
    pub const fn shape(mut self, shape: EntryShape) -> Self {
        self.shape = Some(shape);
        self
    }

    /// Whether there may be keyspaces: parts with names, keys and types of their own. Each key is a
    /// byte longer then, or five where there are more than 239 of them. The types and methods of
    /// the database are those of a keyspace without a name.
    ///
    /// ```
    /// let options = flashtree::Options::new().keyspaces(true);
    /// ```
    pub const fn keyspaces(mut self, keyspaces: bool) -> Self {
        self.keyspaces = keyspaces;
        self
    }

    /// A chip of this geometry, imitated in the file, in place of a plain file: for trees that are
    /// made for raw flash.
    ///
    /// ```
    /// use flashtree::{Geometry, Options};
    /// let options = Options::new().chip(Geometry::new(2048, 64, 256).unwrap());
    /// ```
    pub const fn chip(mut self, geometry: Geometry) -> Self {
        self.chip = Some(geometry);
        self
    }

    /// The translation layer under a tree that stands on sectors, where the device is a chip:
    /// `page-map`, `dac`, `fast` or `block-map`, with parameters.
    ///
    /// ```
    /// let options = flashtree::Options::new().ftl("page-map:over-provision=0.1");
    /// ```
    pub fn ftl(mut self, spec: impl Into<String>) -> Self {
        self.ftl = Some(spec.into());
        self
    }

    /// The spec of the tree that was chosen, or what is usual there.
    pub(crate) fn tree_spec(&self, on_chip: bool) -> &str {
        match self.tree.as_str() {
            "" => choice::usual(on_chip, self.page_bytes),
            named => named,
        }
    }

    /// How far a file can grow, in whole sectors.
    ///
    /// # Errors
    /// No file has that length, or none of it is left beside the journal.
    pub(crate) fn checked_capacity(&self) -> Result<u64> {
        let (MemoryLimit::Total(memory) | MemoryLimit::CachesAndBuffers(memory)) = self.memory;
        let times = match choice::tables_grow(self.tree_spec(self.chip.is_some())) {
            true => CAPACITY_TIMES_GROWING,
            false => CAPACITY_TIMES,
        };
        let usual = memory.saturating_mul(times).clamp(CAPACITY_LEAST, CAPACITY_MOST);
        let bytes = self.capacity.unwrap_or(usual);
        let sector = u64::from(SECTOR_BYTES);
        if self.capacity.is_some() && !(sector..=CAPACITY_CHOSEN_MOST).contains(&bytes) {
            let what =
                format!("{bytes} bytes, and it must have {SECTOR_BYTES} to {CAPACITY_CHOSEN_MOST}");
            return Err(Error::BadOption { option: "capacity", what });
        }
        let bytes = bytes - bytes % sector;
        let journal = self.journal_for(bytes);
        if self.durability.has_journal() && journal >= bytes {
            let what = format!("{journal} bytes leave nothing of a capacity of {bytes}");
            return Err(Error::BadOption { option: "journal bytes", what });
        }
        Ok(bytes)
    }

    /// Bytes of the journal on a device of so many bytes.
    pub(crate) fn journal_for(&self, device_bytes: u64) -> u64 {
        self.journal_bytes.unwrap_or_else(|| (device_bytes / JOURNAL_SHARE).min(JOURNAL_MOST))
    }

    /// The shape of the entries, which may follow from the types.
    pub(crate) fn entry_shape(&self) -> EntryShape {
        if self.keyspaces {
            return EntryShape::VARIABLE;
        }
        let width = |of: &Option<Type>| of.as_ref().map_or(index::Width::Variable, Type::width);
        self.shape
            .unwrap_or_else(|| EntryShape { key: width(&self.key), value: width(&self.value) })
    }
}

impl Default for Options {
    fn default() -> Self {
        Options::new()
    }
}

/// The choices when a database is opened. What it was made with needs not be said again.
///
/// ```
/// use flashtree::{Database, OpenOptions, Options};
///
/// # fn main() -> flashtree::Result<()> {
/// # let folder = tempfile::tempdir().unwrap();
/// # let path = folder.path().join("fruit.db");
/// Database::create(&path, &Options::new())?.close()?;
/// let fruit = Database::open(&path, &OpenOptions::new().memory_total(512 << 10))?;
/// # Ok(()) }
/// ```
#[derive(Clone, Debug)]
#[must_use]
pub struct OpenOptions {
    pub(crate) memory: MemoryLimit,
    pub(crate) durability: Option<Durability>,
    pub(crate) ftl: Option<String>,
    pub(crate) wait: Duration,
    pub(crate) sharing: Sharing,
}

impl OpenOptions {
    /// 16 MiB of memory in all, and what the database was made with.
    ///
    /// ```
    /// let options = flashtree::OpenOptions::new();
    /// ```
    pub const fn new() -> Self {
        OpenOptions {
            memory: MemoryLimit::Total(MEMORY_TOTAL),
            durability: None,
            ftl: None,
            wait: Duration::ZERO,
            sharing: Sharing::USUAL,
        }
    }

    /// The most bytes of memory for everything together, as [`Options::memory_total`].
    ///
    /// ```
    /// let options = flashtree::OpenOptions::new().memory_total(128 << 10);
    /// ```
    pub const fn memory_total(mut self, bytes: u64) -> Self {
        self.memory = MemoryLimit::Total(bytes);
        self
    }

    /// The most bytes of memory for caches and buffers, as [`Options::memory`].
    ///
    /// ```
    /// let options = flashtree::OpenOptions::new().memory(64 << 10);
    /// ```
    pub const fn memory(mut self, bytes: u64) -> Self {
        self.memory = MemoryLimit::CachesAndBuffers(bytes);
        self
    }

    /// Another durability than the database was made with, from now on. Durability none stays
    /// none, and the others can't become none.
    ///
    /// ```
    /// use flashtree::{Durability, OpenOptions};
    /// let options = OpenOptions::new().durability(Durability::Every);
    /// ```
    pub const fn durability(mut self, durability: Durability) -> Self {
        self.durability = Some(durability);
        self
    }

    /// The parameters of the translation layer, as [`Options::ftl`]; without them the layer is
    /// found on the chip, and has its defaults.
    ///
    /// ```
    /// let options = flashtree::OpenOptions::new().ftl("page-map:victim=cost-benefit");
    /// ```
    pub fn ftl(mut self, spec: impl Into<String>) -> Self {
        self.ftl = Some(spec.into());
        self
    }

    /// How long to wait while another process or handle has the database, before that is an error
    /// ([`Error::InUse`]). Not at all, if nothing else is chosen.
    ///
    /// ```
    /// use std::time::Duration;
    /// let options = flashtree::OpenOptions::new().wait(Duration::from_secs(5));
    /// ```
    pub const fn wait(mut self, wait: Duration) -> Self {
        self.wait = wait;
        self
    }

    /// How long a thread waits for its turn while another has a transaction, or reads a state that
    /// stays, before that is an error ([`Error::Waited`]): 60 seconds, if nothing else is chosen.
    ///
    /// ```
    /// use std::time::Duration;
    /// let options = flashtree::OpenOptions::new().turn_wait(Duration::from_secs(5));
    /// ```
    pub const fn turn_wait(mut self, wait: Duration) -> Self {
        self.sharing.turn_wait = wait;
        self
    }

    /// The most bytes of memory that all [snapshots](crate::Snapshot) together take for what was
    /// changed since, beside the budget: 16 MiB, if nothing else is chosen.
    ///
    /// ```
    /// let options = flashtree::OpenOptions::new().snapshot_bytes(64 << 20);
    /// ```
    pub const fn snapshot_bytes(mut self, bytes: u64) -> Self {
        self.sharing.snapshot_bytes = bytes;
        self
    }
}

impl Default for OpenOptions {
    fn default() -> Self {
        OpenOptions::new()
    }
}
