//! Whole databases: loading, copying to another tree or device, compacting.

use std::path::Path;

use index::{Cursor, KeyRange, KeyValue, Value};
use store::PageFile;

use crate::ahead::Ahead;
use crate::choice::{self, TreeChoice};
use crate::files::{self, Temporary};
use crate::keyspace::Scope;
use crate::options::MemoryLimit;
use crate::options::SECTOR_BYTES;
use crate::range::Source;
use crate::view::{Over, View};
use crate::{Database, Error, OpenOptions, Options, Result};

/// How full nodes are loaded where the tree leaves that open.
const FILL_PERCENT: u8 = 90;

/// How often a copy gets more room.
const CAPACITIES_TRIED: u32 = 4;

/// Entries between two questions whether to go on.
const STEP: u64 = 1 << 10;

/// The outcome of compacting a database.
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
    /// Bytes that the file took on disk before.
    pub bytes_before: u64,
    /// Bytes that the file takes now.
    pub bytes_after: u64,
}

impl Database<'_> {
    /// Fills an empty database with entries in ascending order of their keys, which is faster than
    /// putting them. Returns the number of entries. The entries do not go through the journal:
    /// after a power cut the database is empty, unless `load` had returned; then it holds all of
    /// them.
    ///
    /// # Errors
    /// The database is not empty; an entry is not in order or too long, or there is no room, and
    /// the entries before it stay; the device failed.
    ///
    /// ```
    /// # use flashtree::{Database, Options};
    /// # fn main() -> flashtree::Result<()> {
    /// # let folder = tempfile::tempdir().unwrap();
    /// # let fruit = Database::create(folder.path().join("fruit.db"), &Options::new())?;
    /// assert_eq!(fruit.load([("apple", "red"), ("pear", "green")])?, 2);
    /// # Ok(()) }
    /// ```
    pub fn load<K: AsRef<[u8]>, V: AsRef<[u8]>>(
        &self,
        entries: impl IntoIterator<Item = (K, V)>,
    ) -> Result<u64> {
        let mut given = Given { entries: entries.into_iter(), last: None };
        match self.unnamed() {
            scope if scope.prefix().is_empty() => self.load_from(&mut given),
            scope => self.load_from(&mut Under { scope, cursor: &mut given, key: Vec::new() }),
        }
    }

    fn load_from(&self, entries: &mut dyn Cursor) -> Result<u64> {
        let fill = match self.about.label.fill_percent {
            0 => FILL_PERCENT,
            percent => percent,
        };
        let _turn = self.turn()?;
        let mut core = self.core.lock()?;
        let loaded = core.index.load(entries, fill).map_err(|error| self.refused(&core, error))?;
        // The copy of another database has the keyspaces of that; an empty one had none.
        core.forget_catalog();
        core.snapshots.end_all();
        Ok(loaded)
    }

    /// Copies all entries into `other`, which must be empty. Returns the number of entries.
    ///
    /// # Errors
    /// As [`load`](Database::load), or this database can't be read.
    ///
    /// ```
    /// # use flashtree::{Database, Medium, Options, SectorGeometry};
    /// # fn main() -> flashtree::Result<()> {
    /// # let folder = tempfile::tempdir().unwrap();
    /// # let fruit = Database::create(folder.path().join("fruit.db"), &Options::new())?;
    /// # fruit.put("apple", "red")?;
    /// # let disk = sim::SimulatedDisk::new(SectorGeometry::new(4096, 1000)?, Default::default());
    /// let other = Database::create_on(Medium::Sectors(Box::new(disk)), &Options::new())?;
    /// assert_eq!(fruit.copy_into(&other)?, 1);
    /// # Ok(()) }
    /// ```
    pub fn copy_into(&self, other: &Database<'_>) -> Result<u64> {
        self.copy_while(other, &mut |_| true)
    }

    fn copy_while(&self, other: &Database<'_>, go_on: &mut dyn FnMut(u64) -> bool) -> Result<u64> {
        if self.about.label.keyspaces != other.about.label.keyspaces {
            let what = "only one of the two databases has them".to_owned();
            return Err(Error::BadOption { option: "keyspaces", what });
        }
        let _stay = self.turns.read()?;
        // The lock of the one is free while the other has its own: so two that are copied into
        // each other at the same time are refused, and do not wait for ever.
        let whole = View::new(self, Scope::WHOLE, Over::Nothing);
        let entries = Ahead::new(whole, KeyRange::ALL)?;
        let mut watched = Watched { source: entries, go_on, entries: 0, end: None };
        let loaded = other.load_from(&mut watched);
        watched.end.map_or(loaded, Err)
    }

    /// Copies all entries into a new file with `options`, which may name another tree: so a
    /// database is converted. Options that are not given are those of this database: the types and
    /// shape of the entries, the keyspaces, the durability, the tree with its parameters and fill;
    /// between plain files also the page size, the capacity (more where the entries have no room
    /// in it when they are loaded) and the journal. The memory, and a chip
    /// with its translation layer, are always chosen anew. From raw flash onto sectors only the
    /// parameters that a tree has there are kept. Named checkpoints are not copied. If it fails,
    /// there is no new file.
    ///
    /// # Errors
    /// As [`create`](Database::create) and [`copy_into`](Database::copy_into); or
    /// [`Error::NotHere`], where the tree can't stand with the parameters that it has here.
    ///
    /// ```
    /// # use flashtree::{Database, Options};
    /// # fn main() -> flashtree::Result<()> {
    /// # let folder = tempfile::tempdir().unwrap();
    /// # let fruit = Database::create(folder.path().join("fruit.db"), &Options::new())?;
    /// # fruit.put("apple", "red")?;
    /// let small_pages = Options::new().tree("b-plus:node=512");
    /// let copy = fruit.copy_to(folder.path().join("copy.db"), &small_pages)?;
    /// assert_eq!(copy.get("apple")?, Some(b"red".to_vec()));
    /// # Ok(()) }
    /// ```
    pub fn copy_to(&self, path: impl AsRef<Path>, options: &Options) -> Result<Database<'static>> {
        self.copy_to_while(path, options, &mut |_| true)
    }

    /// As [`copy_to`](Database::copy_to), but stops when `go_on` returns false. It is called about
    /// every thousand entries, with the number of entries copied: from 0 again where it is made
    /// again with a larger capacity.
    ///
    /// # Errors
    /// As [`copy_to`](Database::copy_to), or [`Error::Ended`].
    ///
    /// ```
    /// # use flashtree::{Database, Error, Options};
    /// # fn main() -> flashtree::Result<()> {
    /// # let folder = tempfile::tempdir().unwrap();
    /// # let fruit = Database::create(folder.path().join("fruit.db"), &Options::new())?;
    /// # fruit.put("apple", "red")?;
    /// let path = folder.path().join("copy.db");
    /// let ended = fruit.copy_to_while(&path, &Options::new(), &mut |_| false);
    /// assert!(matches!(ended, Err(Error::Ended)) && !path.exists());
    /// # Ok(()) }
    /// ```
    pub fn copy_to_while(
        &self,
        path: impl AsRef<Path>,
        options: &Options,
        go_on: &mut dyn FnMut(u64) -> bool,
    ) -> Result<Database<'static>> {
        let path = files::absolute(path.as_ref())?;
        let is_asked = options.capacity.is_some();
        let options = self.likened(options.clone(), files::is_block_device(&path))?;
        with_room(options, is_asked, |options| {
            let fill = |copy: &Database<'_>| self.copy_while(copy, go_on).map(drop);
            let made = Database::create_filled(&path, options, fill);
            made.map_err(|error| with_settings_of(options, error))
        })
    }

    /// Completes `options` to those that make a database like this one; `is_bounded` where the
    /// new device has a length of its own.
    fn likened(&self, mut options: Options, is_bounded: bool) -> Result<Options> {
        let about = &self.about;
        if options.key.is_none() && options.value.is_none() {
            options.shape.get_or_insert(about.shape);
        }
        options.keyspaces = about.label.keyspaces;
        options.key.get_or_insert_with(|| about.label.key.clone());
        options.value.get_or_insert_with(|| about.label.value.clone());
        if options.tree.is_empty() {
            // Values of any length fit what stands on sectors only.
            let is_raw = about.is_raw;
            let tree = TreeChoice::of(about.tree, None, &about.label)?;
            let over = if !is_raw && tree.entry.has_choice() { ":over=ftl" } else { "" };
            options.tree = format!("{}{over}", about.tree);
            let stays_raw = is_raw && options.chip.is_some() && options.ftl.is_none();
            let is_alike = is_raw == stays_raw;
            options.settings = if is_alike { tree.packed() } else { tree.packed_form() };
        }
        if options.fill_percent == 0 {
            options.fill_percent = about.label.fill_percent;
        }
        let recovery = self.core.lock()?.index.recovery();
        if !options.is_durability_chosen {
            options.durability = recovery.durability;
        }
        let file = self.path.as_deref().filter(|path| path.is_file() && about.health.is_none());
        let Some(file) = file.filter(|_| options.chip.is_none()) else {
            return Ok(options);
        };
        if options.page_bytes.is_none() && choice::has_node(&options.tree)? {
            options.page_bytes = Some(about.page_bytes);
        }
        let capacity = about.grows_to.map_or_else(|| files::sizes(file).map(|it| it.1), Ok)?;
        if !is_bounded && *options.capacity.get_or_insert(capacity) >= capacity {
            let taken = recovery.journal_bytes_most;
            if options.journal_bytes.is_none() && taken > 0 {
                options.journal_bytes = Some(journal_taking(taken));
            }
        }
        Ok(options)
    }
}

impl Database<'static> {
    /// Rewrites the database in a plain file into a new file without gaps, with nodes as full as
    /// after loading. The new file then takes the name of the old one, so one of the two is always
    /// there. Where a full database has no room in its capacity when it is loaded, the new one has
    /// a larger capacity. The database must not be open. Both files need room meanwhile.
    ///
    /// # Errors
    /// As [`open`](Database::open); named checkpoints are kept, which would be lost; or there is no
    /// room.
    ///
    /// ```
    /// use flashtree::{Database, OpenOptions, Options};
    ///
    /// # fn main() -> flashtree::Result<()> {
    /// # let folder = tempfile::tempdir().unwrap();
    /// # let path = folder.path().join("fruit.db");
    /// # let fruit = Database::create(&path, &Options::new())?;
    /// # fruit.put("apple", "red")?;
    /// # fruit.close()?;
    /// let compaction = Database::compact(&path, &OpenOptions::new())?;
    /// assert_eq!(compaction.entries, 1);
    /// # Ok(()) }
    /// ```
    pub fn compact(path: impl AsRef<Path>, options: &OpenOptions) -> Result<Compaction> {
        Database::compact_while(path, options, &mut |_| true)
    }

    /// As [`compact`](Database::compact), but stops when `go_on` returns false. It is called about
    /// every thousand entries, with the number of entries copied.
    ///
    /// # Errors
    /// As [`compact`](Database::compact), or [`Error::Ended`].
    ///
    /// ```
    /// use flashtree::{Database, Error, OpenOptions, Options};
    ///
    /// # fn main() -> flashtree::Result<()> {
    /// # let folder = tempfile::tempdir().unwrap();
    /// # let path = folder.path().join("fruit.db");
    /// # let fruit = Database::create(&path, &Options::new())?;
    /// # fruit.put("apple", "red")?;
    /// # fruit.close()?;
    /// let ended = Database::compact_while(&path, &OpenOptions::new(), &mut |_| false);
    /// assert!(matches!(ended, Err(Error::Ended)));
    /// # Ok(()) }
    /// ```
    pub fn compact_while(
        path: impl AsRef<Path>,
        options: &OpenOptions,
        go_on: &mut dyn FnMut(u64) -> bool,
    ) -> Result<Compaction> {
        // Both databases have to work inside the budget.
        let half = OpenOptions { memory: halved(options.memory), ..options.clone() };
        let path = files::absolute(path.as_ref())?;
        let old = Database::open(&path, &half).map_err(doubled)?;
        if old.about.health.is_some() || !path.is_file() {
            return Err(Error::NotAPlainFile);
        }
        let count = old.checkpoints()?.len();
        if count > 0 {
            return Err(Error::CheckpointsKept { count });
        }
        let (bytes_before, _) = files::sizes(&path)?;
        let choices = old.likened(Options { memory: half.memory, ..Options::new() }, false)?;
        let (temporary, entries) = with_room(choices, false, |choices| {
            let temporary = Temporary::beside(&path)?;
            let new = Database::make(temporary.path(), choices).map_err(doubled);
            let new = new.map_err(|error| error.about(&path))?;
            let entries = old.copy_while(&new, go_on).map_err(doubled)?;
            new.close()?;
            Ok((temporary, entries))
        })?;
        // The old file is locked until the new one is in its place.
        temporary.publish(&path, true)?;
        old.close()?;
        let (bytes_after, _) = files::sizes(&path)?;
        Ok(Compaction { entries, bytes_before, bytes_after })
    }
}

/// Makes a copy. Where the capacity was not asked for and does not suffice, it is made again with a
/// quarter more: a full tree may hold what it has no room for when that is loaded.
fn with_room<T>(
    mut options: Options,
    is_asked: bool,
    mut make: impl FnMut(&Options) -> Result<T>,
) -> Result<T> {
    use index::Error::Store;
    for _ in 0..CAPACITIES_TRIED {
        match (make(&options), options.capacity) {
            (Err(Error::Full { source: Store(store::Error::Full { .. }) }), Some(capacity))
                if !is_asked =>
            {
                options.capacity = Some(capacity + capacity / 4);
            }
            (made, _) => return made,
        }
    }
    make(&options)
}

/// A parameter that is refused, and that the user did not give: a copy has it from the original.
fn with_settings_of(options: &Options, error: Error) -> Error {
    match error {
        Error::Index(source @ index::Error::BadParameter { .. })
            if !options.settings.is_empty() =>
        {
            match choice::with_settings(&options.tree, &options.settings) {
                Ok(tree) => Error::NotHere { tree, source: source.into() },
                Err(error) => error,
            }
        }
        other => other,
    }
}

/// The length of a journal in a plain file that takes as many bytes of changes as one that takes
/// `taken`, or a few more.
const fn journal_taking(taken: u64) -> u64 {
    taken.div_ceil(PageFile::journal_bytes_in(SECTOR_BYTES)) * SECTOR_BYTES as u64
}

const fn halved(memory: MemoryLimit) -> MemoryLimit {
    let (MemoryLimit::Total(bytes) | MemoryLimit::CachesAndBuffers(bytes)) = memory;
    memory.of_bytes(bytes / 2)
}

/// What half of the memory is too little for needs twice as much in all.
fn doubled(error: Error) -> Error {
    match error {
        Error::LittleMemory { have, need } => {
            Error::LittleMemory { have: have * 2, need: need * 2 }
        }
        Error::LittleTables { have, need } => {
            Error::LittleTables { have: have * 2, need: need * 2 }
        }
        other => other,
    }
}

/// Entries of which the caller wants to hear, and which may end before the last one.
struct Watched<'c, 'd, 'w> {
    source: Ahead<'c, 'd>,
    go_on: &'w mut dyn FnMut(u64) -> bool,
    entries: u64,
    /// Why there are no more.
    end: Option<Error>,
}

/// What a cursor says whose own error is kept elsewhere.
const KEPT: index::Error = index::Error::NoEntry;

impl Cursor for Watched<'_, '_, '_> {
    fn next(&mut self) -> index::Result<Option<KeyValue<'_>>> {
        if self.entries.is_multiple_of(STEP) && !(self.go_on)(self.entries) {
            self.end.get_or_insert(Error::Ended);
        }
        if self.end.is_some() {
            return Ok(None);
        }
        self.entries += 1;
        match self.source.next() {
            Ok(next) => Ok(next),
            Err(error) => {
                self.end = Some(error);
                Err(KEPT)
            }
        }
    }

    fn read_value(&mut self, offset: u32, into: &mut [u8]) -> index::Result<u32> {
        self.source.read_value(offset, into).map_err(|error| {
            self.end = Some(error);
            KEPT
        })
    }
}

/// Entries of the unnamed keyspace as the tree has them.
struct Under<'c> {
    scope: Scope,
    cursor: &'c mut dyn Cursor,
    key: Vec<u8>,
}

impl Cursor for Under<'_> {
    fn next(&mut self) -> index::Result<Option<KeyValue<'_>>> {
        let next = self.cursor.next()?;
        Ok(next.map(|(key, value)| (self.scope.join(key, &mut self.key), value)))
    }

    fn read_value(&mut self, offset: u32, into: &mut [u8]) -> index::Result<u32> {
        self.cursor.read_value(offset, into)
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
        Ok(entry.map(|(key, value)| (key.as_ref(), Value::Inline(value.as_ref()))))
    }

    fn read_value(&mut self, offset: u32, into: &mut [u8]) -> index::Result<u32> {
        let (_, value) = self.last.as_ref().ok_or(index::Error::NoEntry)?;
        Ok(index::read_piece(value.as_ref(), offset, into))
    }
}
