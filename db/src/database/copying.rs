//! Whole databases: loading, copying to another tree or device, compacting.

use std::path::Path;

use index::{Cursor, KeyRange, KeyValue, Value};

use crate::files::{self, Temporary};
use crate::options::MemoryLimit;
use crate::{Database, Error, OpenOptions, Options, Result};

/// How full nodes are loaded where the tree leaves that open.
const FILL_PERCENT: u8 = 90;

/// What compacting a database did.
///
/// ```
/// # use flashtree::{Database, OpenOptions, Options};
/// # fn main() -> flashtree::Result<()> {
/// # let folder = tempfile::tempdir().unwrap();
/// # let path = folder.path().join("fruit.db");
/// # Database::create(&path, &Options::new())?.close()?;
/// let compaction = Database::compact(&path, &OpenOptions::new())?;
/// assert_eq!(compaction.entries, 0);
/// # Ok(()) }
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Compaction {
    /// Entries of the database.
    pub entries: u64,
    /// Bytes that the file took on its disk before.
    pub bytes_before: u64,
    /// Bytes that it takes now.
    pub bytes_after: u64,
}

impl Database<'_> {
    /// Fills the empty database with entries that come in ascending order of their keys, which is
    /// faster than putting them; returns how many there were. It does not go through the journal:
    /// a power cut leaves the database empty, or with all of them when it returned.
    ///
    /// # Errors
    /// The database is not empty; an entry is not in order or too long, or there is no room, and
    /// the entries before it stay; the device failed.
    ///
    /// ```
    /// # use flashtree::{Database, Options};
    /// # fn main() -> flashtree::Result<()> {
    /// # let folder = tempfile::tempdir().unwrap();
    /// # let mut fruit = Database::create(folder.path().join("fruit.db"), &Options::new())?;
    /// assert_eq!(fruit.load([("apple", "red"), ("pear", "green")])?, 2);
    /// # Ok(()) }
    /// ```
    pub fn load<K: AsRef<[u8]>, V: AsRef<[u8]>>(
        &mut self,
        entries: impl IntoIterator<Item = (K, V)>,
    ) -> Result<u64> {
        self.load_from(&mut Given { entries: entries.into_iter(), last: None })
    }

    fn load_from(&mut self, entries: &mut dyn Cursor) -> Result<u64> {
        let fill = match self.standing.label.fill_percent {
            0 => FILL_PERCENT,
            percent => percent,
        };
        Ok(self.changing()?.load(entries, fill)?)
    }

    /// Copies all entries into `other`, which has to be empty; returns how many there were.
    ///
    /// # Errors
    /// As [`load`](Database::load), or this database can't be read.
    ///
    /// ```
    /// # use flashtree::{Database, Medium, Options, SectorGeometry};
    /// # fn main() -> flashtree::Result<()> {
    /// # let folder = tempfile::tempdir().unwrap();
    /// # let mut fruit = Database::create(folder.path().join("fruit.db"), &Options::new())?;
    /// # fruit.put("apple", "red")?;
    /// # let disk = sim::SimulatedDisk::new(SectorGeometry::new(4096, 1000)?, Default::default());
    /// let mut other = Database::create_on(Medium::Sectors(Box::new(disk)), &Options::new())?;
    /// assert_eq!(fruit.copy_into(&mut other)?, 1);
    /// # Ok(()) }
    /// ```
    pub fn copy_into(&mut self, other: &mut Database<'_>) -> Result<u64> {
        let mut cursor = self.standing.index.range(KeyRange::ALL)?;
        other.load_from(&mut *cursor)
    }

    /// Copies all entries into a new file with `options`, which may name another tree: so a
    /// database is converted. The types of keys and values go along, unless the options name
    /// others. Named checkpoints stay behind. If it fails, there is no new file.
    ///
    /// # Errors
    /// As [`create`](Database::create) and [`copy_into`](Database::copy_into).
    ///
    /// ```
    /// # use flashtree::{Database, Options};
    /// # fn main() -> flashtree::Result<()> {
    /// # let folder = tempfile::tempdir().unwrap();
    /// # let mut fruit = Database::create(folder.path().join("fruit.db"), &Options::new())?;
    /// # fruit.put("apple", "red")?;
    /// let small_pages = Options::new().tree("b-plus:node=512");
    /// let mut copy = fruit.copy_to(folder.path().join("copy.db"), &small_pages)?;
    /// assert_eq!(copy.get("apple")?, Some(b"red".to_vec()));
    /// # Ok(()) }
    /// ```
    pub fn copy_to(
        &mut self,
        path: impl AsRef<Path>,
        options: &Options,
    ) -> Result<Database<'static>> {
        let mut options = options.clone();
        options.key.get_or_insert_with(|| self.standing.label.key.clone());
        options.value.get_or_insert_with(|| self.standing.label.value.clone());
        Database::create_filled(path.as_ref(), &options, |copy| self.copy_into(copy).map(drop))
    }
}

impl Database<'static> {
    /// Rewrites the database in a plain file into a new file, without gaps and with nodes as full
    /// as when they are loaded, which then takes the name of the old one: so whatever happens, one
    /// of the two is there. The database must not be open, and needs room for both meanwhile.
    ///
    /// # Errors
    /// As [`open`](Database::open); checkpoints are kept, which would be lost; there is no room.
    ///
    /// ```
    /// use flashtree::{Database, OpenOptions, Options};
    ///
    /// # fn main() -> flashtree::Result<()> {
    /// # let folder = tempfile::tempdir().unwrap();
    /// # let path = folder.path().join("fruit.db");
    /// # let mut fruit = Database::create(&path, &Options::new())?;
    /// # fruit.put("apple", "red")?;
    /// # fruit.close()?;
    /// let compaction = Database::compact(&path, &OpenOptions::new())?;
    /// assert_eq!(compaction.entries, 1);
    /// # Ok(()) }
    /// ```
    pub fn compact(path: impl AsRef<Path>, options: &OpenOptions) -> Result<Compaction> {
        // Both databases have to work inside the budget.
        let half = OpenOptions { memory: halved(options.memory), ..options.clone() };
        let path = files::absolute(path.as_ref())?;
        let mut old = Database::open(&path, &half).map_err(doubled)?;
        if old.standing.health.is_some() || !path.is_file() {
            return Err(Error::NotAPlainFile);
        }
        let count = old.checkpoints().len();
        if count > 0 {
            return Err(Error::CheckpointsKept { count });
        }
        let (bytes_before, capacity) = files::sizes(&path)?;
        let choices = old.as_made(half.memory, capacity);
        let temporary = Temporary::beside(&path)?;
        let mut new = Database::make(temporary.path(), &choices).map_err(doubled)?;
        let entries = old.copy_into(&mut new)?;
        new.close()?;
        // The old file is locked until the new one is in its place.
        temporary.publish(&path, true)?;
        old.close()?;
        let (bytes_after, _) = files::sizes(&path)?;
        Ok(Compaction { entries, bytes_before, bytes_after })
    }

    /// Options that make a database like this one.
    fn as_made(&self, memory: MemoryLimit, capacity: u64) -> Options {
        let standing = &self.standing;
        let recovery = standing.index.recovery();
        let mut options = Options::new().tree(standing.tree).capacity(capacity);
        options.page_bytes = Some(standing.page_bytes);
        options.memory = memory;
        options.durability = recovery.durability;
        options.journal_bytes = Some(recovery.journal_bytes_most).filter(|bytes| *bytes > 0);
        options.key = Some(standing.label.key.clone());
        options.value = Some(standing.label.value.clone());
        options.shape = Some(standing.shape);
        options.fill_percent = standing.label.fill_percent;
        options
    }
}

const fn halved(memory: MemoryLimit) -> MemoryLimit {
    match memory {
        MemoryLimit::Total(bytes) => MemoryLimit::Total(bytes / 2),
        MemoryLimit::CachesAndBuffers(bytes) => MemoryLimit::CachesAndBuffers(bytes / 2),
    }
}

/// What half of the memory is too little for needs twice as much in all.
fn doubled(error: Error) -> Error {
    match error {
        Error::LittleMemory { have, need } => {
            Error::LittleMemory { have: have * 2, need: need * 2 }
        }
        other => other,
    }
}

/// Entries that the caller gives.
struct Given<I, K, V> {
    entries: I,
    last: Option<(K, V)>,
}

impl<I, K, V> Cursor for Given<I, K, V>
where
    I: Iterator<Item = (K, V)>,
    K: AsRef<[u8]>,
    V: AsRef<[u8]>,
{
    fn next(&mut self) -> index::Result<Option<KeyValue<'_>>> {
        self.last = self.entries.next();
        let entry = self.last.as_ref();
        Ok(entry.map(|(key, value)| (key.as_ref(), Value::Whole(value.as_ref()))))
    }

    fn read_value(&mut self, offset: u32, into: &mut [u8]) -> index::Result<u32> {
        let (_, value) = self.last.as_ref().ok_or(index::Error::NoEntry)?;
        Ok(index::read_piece(value.as_ref(), offset, into))
    }
}
