//! The database.

use std::fmt::{self, Display};
use std::ops::{Bound, RangeBounds};
use std::path::{Path, PathBuf};

use device::Medium;
use index::{CheckpointId, Direction, Index, KeyRange, NamedCheckpoint, Update};

use crate::encoding::Type;
use crate::files::{self, Site, Temporary};
use crate::ground::{Ground, Standing};
use crate::range::{behind_prefix, read_whole};
use crate::{Batch, Error, FileSizes, OpenOptions, Options, Range, Result, Stats};

/// Values up to so many bytes are read at once.
const SHORT_BYTES: usize = 1024;

/// An open database. Dropping it closes it, and errors of that are lost:
/// [`close`](Database::close) reports them.
///
/// ```
/// use flashtree::{Database, Options};
///
/// # fn main() -> flashtree::Result<()> {
/// # let folder = tempfile::tempdir().unwrap();
/// let mut fruit = Database::create(folder.path().join("fruit.db"), &Options::new())?;
/// fruit.put("apple", "red")?;
/// assert_eq!(fruit.get("apple")?, Some(b"red".to_vec()));
/// # Ok(()) }
/// ```
pub struct Database<'d> {
    pub(crate) standing: Standing<'d>,
    /// The file, for a database in one.
    path: Option<PathBuf>,
    access: Access,
}

/// What may be done with a database.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Access {
    Writing,
    Reading,
    /// It is closed already.
    Closed,
}

/// Making and opening.
impl Database<'static> {
    /// Makes a database in a file, or on a block device that may be overwritten, and opens it.
    ///
    /// A file is made under another name beside it and gets its own when it is whole.
    ///
    /// # Errors
    /// Something exists there already that [`Options::overwrite`] does not give up; the options
    /// can't be used; the system refuses.
    ///
    /// ```
    /// use flashtree::{Database, Error, Options};
    ///
    /// # fn main() -> flashtree::Result<()> {
    /// # let folder = tempfile::tempdir().unwrap();
    /// # let path = folder.path().join("fruit.db");
    /// Database::create(&path, &Options::new())?.close()?;
    /// let again = Database::create(&path, &Options::new());
    /// assert!(matches!(again, Err(Error::Exists { .. })));
    /// # Ok(()) }
    /// ```
    pub fn create(path: impl AsRef<Path>, options: &Options) -> Result<Self> {
        Self::create_filled(path.as_ref(), options, |_| Ok(()))
    }

    /// Makes a database that has its name only when `fill` is done with it.
    pub(crate) fn create_filled(
        path: &Path,
        options: &Options,
        fill: impl FnOnce(&mut Self) -> Result<()>,
    ) -> Result<Self> {
        let path = files::absolute(path)?;
        let site = Site::look(&path, options.overwrite)?;
        if let Site::BlockDevice(bytes) = site {
            let ground = files::make_on_block_device(&path, bytes, options)?;
            let mut made = Database::over(ground.create(options)?, &path);
            fill(&mut made)?;
            return Ok(made);
        }
        let temporary = Temporary::beside(&path)?;
        let mut made = Database::make(temporary.path(), options)?;
        fill(&mut made)?;
        // From here on it is opened as it stands in the file.
        made.standing.index.close()?;
        temporary.publish(&path, matches!(site, Site::Taken(_)))?;
        made.path = Some(path);
        Ok(made)
    }

    /// Makes a database in a new file.
    pub(crate) fn make(path: &Path, options: &Options) -> Result<Self> {
        let ground = files::make(path, options)?;
        Ok(Database::over(ground.create(options)?, path))
    }

    fn over(standing: Standing<'static>, path: &Path) -> Self {
        Database { standing, path: Some(path.to_owned()), access: Access::Writing }
    }

    /// Opens the database in a file or on a block device. After a power cut, it comes back as its
    /// durability says.
    ///
    /// # Errors
    /// There is none, or something else; it is in use; it is damaged; the memory is too small; the
    /// system refuses.
    ///
    /// ```
    /// use flashtree::{Database, Error, OpenOptions, Options};
    ///
    /// # fn main() -> flashtree::Result<()> {
    /// # let folder = tempfile::tempdir().unwrap();
    /// # let path = folder.path().join("fruit.db");
    /// # Database::create(&path, &Options::new())?.close()?;
    /// let fruit = Database::open(&path, &OpenOptions::new())?;
    /// let again = Database::open(&path, &OpenOptions::new());
    /// assert!(matches!(again, Err(Error::InUse { .. })));
    /// # Ok(()) }
    /// ```
    pub fn open(path: impl AsRef<Path>, options: &OpenOptions) -> Result<Self> {
        let path = files::absolute(path.as_ref())?;
        let ground = files::open(&path, options)?;
        Ok(Database::over(ground.open(options)?, &path))
    }

    /// Opens the database in a file for reading, beside others who read. Nothing at all is
    /// written; so one that has to be recovered can't be opened like this.
    ///
    /// # Errors
    /// As [`open`](Database::open), or [`Error::NeedsRecovery`].
    ///
    /// ```
    /// use flashtree::{Database, Error, OpenOptions, Options};
    ///
    /// # fn main() -> flashtree::Result<()> {
    /// # let folder = tempfile::tempdir().unwrap();
    /// # let path = folder.path().join("fruit.db");
    /// # Database::create(&path, &Options::new())?.close()?;
    /// let mut fruit = Database::open_read_only(&path, &OpenOptions::new())?;
    /// let another = Database::open_read_only(&path, &OpenOptions::new())?;
    /// assert!(matches!(fruit.put("apple", "red"), Err(Error::ReadOnly)));
    /// # Ok(()) }
    /// ```
    pub fn open_read_only(path: impl AsRef<Path>, options: &OpenOptions) -> Result<Self> {
        let path = files::absolute(path.as_ref())?;
        let standing = files::open_read_only(&path)?.open(options)?;
        Ok(Database { standing, path: Some(path), access: Access::Reading })
    }
}

impl<'d> Database<'d> {
    /// Makes a database on a device, whatever that held before, and opens it. On a chip, a tree
    /// that stands on sectors gets a translation layer: [`Options::ftl`].
    ///
    /// # Errors
    /// The options can't be used, or the device failed.
    ///
    /// ```
    /// use flashtree::{Database, Geometry, Medium, OpenOptions, Options};
    /// use sim::SimulatedNand;
    ///
    /// # fn main() -> flashtree::Result<()> {
    /// # let costs = device::NandCosts::default();
    /// let mut chip = SimulatedNand::new(Geometry::new(2048, 64, 256)?, costs);
    /// let mut fruit = Database::create_on(Medium::Nand(Box::new(&mut chip)), &Options::new())?;
    /// fruit.put("apple", "red")?;
    /// fruit.close()?;
    ///
    /// let medium = Medium::Nand(Box::new(&mut chip));
    /// let mut fruit = Database::open_on(medium, &OpenOptions::new())?;
    /// assert!(fruit.contains("apple")?);
    /// # Ok(()) }
    /// ```
    pub fn create_on(medium: Medium<'d>, options: &Options) -> Result<Self> {
        let standing = Ground::new(medium, 0).create(options)?;
        Ok(Database { standing, path: None, access: Access::Writing })
    }

    /// Opens the database on a device.
    ///
    /// # Errors
    /// There is none, the memory is too small, or the device failed.
    ///
    /// ```
    /// # use flashtree::{Database, Medium, OpenOptions, Options, SectorGeometry};
    /// # fn main() -> flashtree::Result<()> {
    /// # let costs = device::DiskCosts::default();
    /// let mut disk = sim::SimulatedDisk::new(SectorGeometry::new(4096, 1000)?, costs);
    /// let nothing = Database::open_on(Medium::Sectors(Box::new(disk)), &OpenOptions::new());
    /// assert!(matches!(nothing, Err(flashtree::Error::NotADatabase { .. })));
    /// # Ok(()) }
    /// ```
    pub fn open_on(medium: Medium<'d>, options: &OpenOptions) -> Result<Self> {
        let standing = Ground::new(medium, 0).open(options)?;
        Ok(Database { standing, path: None, access: Access::Writing })
    }

    /// Opens the database on a device for reading: nothing at all is written to it.
    ///
    /// # Errors
    /// As [`open_on`](Database::open_on), or [`Error::NeedsRecovery`].
    ///
    /// ```
    /// # use flashtree::{Database, Medium, OpenOptions, Options, SectorGeometry};
    /// # fn main() -> flashtree::Result<()> {
    /// # let costs = device::DiskCosts::default();
    /// let mut disk = sim::SimulatedDisk::new(SectorGeometry::new(4096, 1000)?, costs);
    /// Database::create_on(Medium::Sectors(Box::new(&mut disk)), &Options::new())?.close()?;
    /// let medium = Medium::Sectors(Box::new(disk));
    /// let mut fruit = Database::open_read_only_on(medium, &OpenOptions::new())?;
    /// assert!(!fruit.contains("apple")?);
    /// # Ok(()) }
    /// ```
    pub fn open_read_only_on(medium: Medium<'d>, options: &OpenOptions) -> Result<Self> {
        let standing = Ground::new(medium, 0).read_only().open(options)?;
        Ok(Database { standing, path: None, access: Access::Reading })
    }

    /// The index, to be changed.
    pub(crate) fn changing(&mut self) -> Result<&mut (dyn Index + 'd)> {
        match self.access {
            Access::Writing => Ok(&mut *self.standing.index),
            Access::Reading | Access::Closed => Err(Error::ReadOnly),
        }
    }

    /// Lets `key` have `value`.
    ///
    /// # Errors
    /// Key or value is too long or of a wrong length, there is no room (nothing changed), or the
    /// device failed.
    ///
    /// ```
    /// # use flashtree::{Database, Options};
    /// # fn main() -> flashtree::Result<()> {
    /// # let folder = tempfile::tempdir().unwrap();
    /// # let mut fruit = Database::create(folder.path().join("fruit.db"), &Options::new())?;
    /// fruit.put("apple", "red")?;
    /// fruit.put("apple", vec![0; 1 << 20])?;
    /// assert_eq!(fruit.value_length("apple")?, Some(1 << 20));
    /// # Ok(()) }
    /// ```
    pub fn put(&mut self, key: impl AsRef<[u8]>, value: impl AsRef<[u8]>) -> Result<()> {
        let put = Update::Put { key: key.as_ref(), value: value.as_ref() };
        Ok(self.changing()?.update(&[put])?)
    }

    /// Lets `key` be absent; it may be so already.
    ///
    /// # Errors
    /// The key is too long or of a wrong length, there is no room even for that (nothing changed),
    /// or the device failed.
    ///
    /// ```
    /// # use flashtree::{Database, Options};
    /// # fn main() -> flashtree::Result<()> {
    /// # let folder = tempfile::tempdir().unwrap();
    /// # let mut fruit = Database::create(folder.path().join("fruit.db"), &Options::new())?;
    /// fruit.put("apple", "red")?;
    /// fruit.delete("apple")?;
    /// assert!(!fruit.contains("apple")?);
    /// # Ok(()) }
    /// ```
    pub fn delete(&mut self, key: impl AsRef<[u8]>) -> Result<()> {
        let delete = Update::Delete { key: key.as_ref() };
        Ok(self.changing()?.update(&[delete])?)
    }

    /// Makes all changes of `batch`, in their order, or none: not even a power cut leaves half of
    /// it.
    ///
    /// # Errors
    /// As [`put`](Database::put), or the journal can't take so long a batch.
    ///
    /// ```
    /// # use flashtree::{Batch, Database, Options};
    /// # fn main() -> flashtree::Result<()> {
    /// # let folder = tempfile::tempdir().unwrap();
    /// # let mut fruit = Database::create(folder.path().join("fruit.db"), &Options::new())?;
    /// fruit.write(Batch::new().put("apple", "red").put("pear", "green"))?;
    /// assert!(fruit.contains("pear")?);
    /// # Ok(()) }
    /// ```
    pub fn write(&mut self, batch: &Batch) -> Result<()> {
        Ok(self.changing()?.update(&batch.updates())?)
    }

    /// The value of `key`.
    ///
    /// # Errors
    /// The key is of a wrong length, the device failed, or what was read is damaged.
    ///
    /// ```
    /// # use flashtree::{Database, Options};
    /// # fn main() -> flashtree::Result<()> {
    /// # let folder = tempfile::tempdir().unwrap();
    /// # let mut fruit = Database::create(folder.path().join("fruit.db"), &Options::new())?;
    /// fruit.put("apple", "red")?;
    /// assert_eq!(fruit.get("apple")?, Some(b"red".to_vec()));
    /// assert_eq!(fruit.get("pear")?, None);
    /// # Ok(()) }
    /// ```
    pub fn get(&mut self, key: impl AsRef<[u8]>) -> Result<Option<Vec<u8>>> {
        let key = key.as_ref();
        let mut short = [0; SHORT_BYTES];
        let Some(length) = self.get_into(key, 0, &mut short)? else {
            return Ok(None);
        };
        if let Some(value) = short.get(..length as usize) {
            return Ok(Some(value.to_vec()));
        }
        let index = &mut *self.standing.index;
        let value = read_whole(|offset, into| Ok(index.get(key, offset, into)?.unwrap_or(0)))?;
        Ok(Some(value))
    }

    /// Reads the value of `key` from byte `offset` on into `into`, as far as both reach; returns
    /// the whole length of the value, or `None` if the key is absent. So a long value can be read
    /// in pieces.
    ///
    /// # Errors
    /// As [`get`](Database::get).
    ///
    /// ```
    /// # use flashtree::{Database, Options};
    /// # fn main() -> flashtree::Result<()> {
    /// # let folder = tempfile::tempdir().unwrap();
    /// # let mut fruit = Database::create(folder.path().join("fruit.db"), &Options::new())?;
    /// fruit.put("apple", vec![7; 100_000])?;
    /// let mut piece = [0; 10];
    /// assert_eq!(fruit.get_into("apple", 99_995, &mut piece)?, Some(100_000));
    /// assert_eq!(piece, [7, 7, 7, 7, 7, 0, 0, 0, 0, 0]);
    /// # Ok(()) }
    /// ```
    pub fn get_into(
        &mut self,
        key: impl AsRef<[u8]>,
        offset: u32,
        into: &mut [u8],
    ) -> Result<Option<u32>> {
        Ok(self.standing.index.get(key.as_ref(), offset, into)?)
    }

    /// The length of the value of `key`, in bytes.
    ///
    /// # Errors
    /// As [`get`](Database::get).
    ///
    /// ```
    /// # use flashtree::{Database, Options};
    /// # fn main() -> flashtree::Result<()> {
    /// # let folder = tempfile::tempdir().unwrap();
    /// # let mut fruit = Database::create(folder.path().join("fruit.db"), &Options::new())?;
    /// fruit.put("apple", "red")?;
    /// assert_eq!(fruit.value_length("apple")?, Some(3));
    /// # Ok(()) }
    /// ```
    pub fn value_length(&mut self, key: impl AsRef<[u8]>) -> Result<Option<u32>> {
        self.get_into(key, 0, &mut [])
    }

    /// True if `key` is present.
    ///
    /// # Errors
    /// As [`get`](Database::get).
    ///
    /// ```
    /// # use flashtree::{Database, Options};
    /// # fn main() -> flashtree::Result<()> {
    /// # let folder = tempfile::tempdir().unwrap();
    /// # let mut fruit = Database::create(folder.path().join("fruit.db"), &Options::new())?;
    /// assert!(!fruit.contains("apple")?);
    /// # Ok(()) }
    /// ```
    pub fn contains(&mut self, key: impl AsRef<[u8]>) -> Result<bool> {
        Ok(self.value_length(key)?.is_some())
    }

    /// The entries of `range`, in its direction: what the other ranges come down to.
    ///
    /// # Errors
    /// A bound is of a wrong length, the device failed, or what was read is damaged.
    ///
    /// ```
    /// # use flashtree::{Database, KeyRange, Options};
    /// # fn main() -> flashtree::Result<()> {
    /// # let folder = tempfile::tempdir().unwrap();
    /// # let mut fruit = Database::create(folder.path().join("fruit.db"), &Options::new())?;
    /// fruit.put("apple", "red")?;
    /// assert_eq!(fruit.scan(KeyRange::ALL.reversed())?.into_iter().count(), 1);
    /// # Ok(()) }
    /// ```
    pub fn scan(&mut self, range: KeyRange<'_>) -> Result<Range<'_>> {
        Ok(Range::new(self.standing.index.range(range)?))
    }

    /// The entries whose keys are in `bounds`, ascending.
    ///
    /// # Errors
    /// As [`scan`](Database::scan).
    ///
    /// ```
    /// # use flashtree::{Database, Options};
    /// # fn main() -> flashtree::Result<()> {
    /// # let folder = tempfile::tempdir().unwrap();
    /// # let mut fruit = Database::create(folder.path().join("fruit.db"), &Options::new())?;
    /// # for name in ["apple", "banana", "cherry"] { fruit.put(name, "")?; }
    /// let mut range = fruit.range("b"..="cherry")?;
    /// assert_eq!(range.next()?.unwrap().key, b"banana");
    /// assert_eq!(range.next()?.unwrap().key, b"cherry");
    /// # Ok(()) }
    /// ```
    pub fn range<K: AsRef<[u8]>>(&mut self, bounds: impl RangeBounds<K>) -> Result<Range<'_>> {
        self.bounded(&bounds, Direction::Ascending)
    }

    /// The entries whose keys are in `bounds`, descending.
    ///
    /// # Errors
    /// As [`scan`](Database::scan).
    ///
    /// ```
    /// # use flashtree::{Database, Options};
    /// # fn main() -> flashtree::Result<()> {
    /// # let folder = tempfile::tempdir().unwrap();
    /// # let mut fruit = Database::create(folder.path().join("fruit.db"), &Options::new())?;
    /// # for name in ["apple", "banana", "cherry"] { fruit.put(name, "")?; }
    /// assert_eq!(fruit.range_descending(.."c")?.next()?.unwrap().key, b"banana");
    /// # Ok(()) }
    /// ```
    pub fn range_descending<K: AsRef<[u8]>>(
        &mut self,
        bounds: impl RangeBounds<K>,
    ) -> Result<Range<'_>> {
        self.bounded(&bounds, Direction::Descending)
    }

    fn bounded<K: AsRef<[u8]>>(
        &mut self,
        bounds: &impl RangeBounds<K>,
        direction: Direction,
    ) -> Result<Range<'_>> {
        let from = bounds.start_bound().map(AsRef::as_ref);
        let to = bounds.end_bound().map(AsRef::as_ref);
        self.scan(KeyRange { from, to, direction })
    }

    /// The entries whose keys begin with `prefix`, ascending.
    ///
    /// # Errors
    /// As [`scan`](Database::scan).
    ///
    /// ```
    /// # use flashtree::{Database, Options};
    /// # fn main() -> flashtree::Result<()> {
    /// # let folder = tempfile::tempdir().unwrap();
    /// # let mut fruit = Database::create(folder.path().join("fruit.db"), &Options::new())?;
    /// # for name in ["apple", "apricot", "banana"] { fruit.put(name, "")?; }
    /// assert_eq!(fruit.prefix("ap")?.into_iter().count(), 2);
    /// # Ok(()) }
    /// ```
    pub fn prefix(&mut self, prefix: impl AsRef<[u8]>) -> Result<Range<'_>> {
        self.prefixed(prefix.as_ref(), Direction::Ascending)
    }

    /// The entries whose keys begin with `prefix`, descending.
    ///
    /// # Errors
    /// As [`scan`](Database::scan).
    ///
    /// ```
    /// # use flashtree::{Database, Options};
    /// # fn main() -> flashtree::Result<()> {
    /// # let folder = tempfile::tempdir().unwrap();
    /// # let mut fruit = Database::create(folder.path().join("fruit.db"), &Options::new())?;
    /// # for name in ["apple", "apricot", "banana"] { fruit.put(name, "")?; }
    /// assert_eq!(fruit.prefix_descending("ap")?.next()?.unwrap().key, b"apricot");
    /// # Ok(()) }
    /// ```
    pub fn prefix_descending(&mut self, prefix: impl AsRef<[u8]>) -> Result<Range<'_>> {
        self.prefixed(prefix.as_ref(), Direction::Descending)
    }

    fn prefixed(&mut self, prefix: &[u8], direction: Direction) -> Result<Range<'_>> {
        let behind = behind_prefix(prefix);
        let to = behind.as_ref().map(Vec::as_slice);
        self.scan(KeyRange { from: Bound::Included(prefix), to, direction })
    }

    /// All entries, ascending.
    ///
    /// # Errors
    /// As [`scan`](Database::scan).
    ///
    /// ```
    /// # use flashtree::{Database, Options};
    /// # fn main() -> flashtree::Result<()> {
    /// # let folder = tempfile::tempdir().unwrap();
    /// # let mut fruit = Database::create(folder.path().join("fruit.db"), &Options::new())?;
    /// assert!(fruit.all()?.next()?.is_none());
    /// # Ok(()) }
    /// ```
    pub fn all(&mut self) -> Result<Range<'_>> {
        self.scan(KeyRange::ALL)
    }

    /// All entries, descending.
    ///
    /// # Errors
    /// As [`scan`](Database::scan).
    ///
    /// ```
    /// # use flashtree::{Database, Options};
    /// # fn main() -> flashtree::Result<()> {
    /// # let folder = tempfile::tempdir().unwrap();
    /// # let mut fruit = Database::create(folder.path().join("fruit.db"), &Options::new())?;
    /// assert!(fruit.all_descending()?.next()?.is_none());
    /// # Ok(()) }
    /// ```
    pub fn all_descending(&mut self) -> Result<Range<'_>> {
        self.scan(KeyRange::ALL.reversed())
    }

    /// The entry with the lowest key.
    ///
    /// # Errors
    /// As [`scan`](Database::scan).
    ///
    /// ```
    /// # use flashtree::{Database, Options};
    /// # fn main() -> flashtree::Result<()> {
    /// # let folder = tempfile::tempdir().unwrap();
    /// # let mut fruit = Database::create(folder.path().join("fruit.db"), &Options::new())?;
    /// fruit.put("apple", "red")?;
    /// assert_eq!(fruit.first()?, Some((b"apple".to_vec(), b"red".to_vec())));
    /// # Ok(()) }
    /// ```
    pub fn first(&mut self) -> Result<Option<(Vec<u8>, Vec<u8>)>> {
        self.all()?.into_iter().next().transpose()
    }

    /// The entry with the highest key.
    ///
    /// # Errors
    /// As [`scan`](Database::scan).
    ///
    /// ```
    /// # use flashtree::{Database, Options};
    /// # fn main() -> flashtree::Result<()> {
    /// # let folder = tempfile::tempdir().unwrap();
    /// # let mut fruit = Database::create(folder.path().join("fruit.db"), &Options::new())?;
    /// assert_eq!(fruit.last()?, None);
    /// # Ok(()) }
    /// ```
    pub fn last(&mut self) -> Result<Option<(Vec<u8>, Vec<u8>)>> {
        self.all_descending()?.into_iter().next().transpose()
    }

    /// The number of entries, which are all read for it.
    ///
    /// # Errors
    /// As [`scan`](Database::scan).
    ///
    /// ```
    /// # use flashtree::{Database, Options};
    /// # fn main() -> flashtree::Result<()> {
    /// # let folder = tempfile::tempdir().unwrap();
    /// # let mut fruit = Database::create(folder.path().join("fruit.db"), &Options::new())?;
    /// fruit.put("apple", "red")?;
    /// assert_eq!(fruit.count()?, 1);
    /// # Ok(()) }
    /// ```
    pub fn count(&mut self) -> Result<u64> {
        let mut entries = 0;
        let mut range = self.all()?;
        while range.next()?.is_some() {
            entries += 1;
        }
        Ok(entries)
    }

    /// Makes every change that returned survive a power cut, unless the durability is none: then
    /// only closing does.
    ///
    /// # Errors
    /// The durability is none, or the device failed.
    ///
    /// ```
    /// # use flashtree::{Database, Options};
    /// # fn main() -> flashtree::Result<()> {
    /// # let folder = tempfile::tempdir().unwrap();
    /// # let mut fruit = Database::create(folder.path().join("fruit.db"), &Options::new())?;
    /// fruit.put("apple", "red")?;
    /// fruit.sync()?;
    /// # Ok(()) }
    /// ```
    pub fn sync(&mut self) -> Result<()> {
        Ok(self.changing()?.sync()?)
    }

    /// Keeps the present state under `name`, 1 to 64 bytes, to go back to. What is changed later
    /// takes more room for as long as it is kept.
    ///
    /// # Errors
    /// The name is taken or impossible, the durability is none, there is no room, or the device
    /// failed.
    ///
    /// ```
    /// # use flashtree::{Database, Options};
    /// # fn main() -> flashtree::Result<()> {
    /// # let folder = tempfile::tempdir().unwrap();
    /// # let mut fruit = Database::create(folder.path().join("fruit.db"), &Options::new())?;
    /// fruit.put("apple", "red")?;
    /// fruit.checkpoint("harvest")?;
    /// fruit.delete("apple")?;
    /// fruit.rollback("harvest")?;
    /// assert!(fruit.contains("apple")?);
    /// fruit.forget("harvest")?;
    /// # Ok(()) }
    /// ```
    pub fn checkpoint(&mut self, name: &str) -> Result<CheckpointId> {
        Ok(self.changing()?.checkpoint(Some(name))?)
    }

    /// The checkpoints that are kept, oldest first.
    ///
    /// ```
    /// # use flashtree::{Database, Options};
    /// # fn main() -> flashtree::Result<()> {
    /// # let folder = tempfile::tempdir().unwrap();
    /// # let mut fruit = Database::create(folder.path().join("fruit.db"), &Options::new())?;
    /// fruit.checkpoint("harvest")?;
    /// assert_eq!(fruit.checkpoints()[0].name, "harvest");
    /// # Ok(()) }
    /// ```
    #[must_use]
    pub fn checkpoints(&self) -> &[NamedCheckpoint] {
        self.standing.index.checkpoints()
    }

    /// Goes back to the state that was kept under `name`. All that came after it is gone, later
    /// checkpoints included; `name` stays, and so do the checkpoints that were kept with it then:
    /// those that were forgotten since come back.
    ///
    /// # Errors
    /// There is no such checkpoint, or the device failed.
    ///
    /// ```
    /// # use flashtree::{Database, Options};
    /// # fn main() -> flashtree::Result<()> {
    /// # let folder = tempfile::tempdir().unwrap();
    /// # let mut fruit = Database::create(folder.path().join("fruit.db"), &Options::new())?;
    /// fruit.checkpoint("empty")?;
    /// fruit.put("apple", "red")?;
    /// fruit.rollback("empty")?;
    /// assert_eq!(fruit.count()?, 0);
    /// # Ok(()) }
    /// ```
    pub fn rollback(&mut self, name: &str) -> Result<()> {
        Ok(self.changing()?.roll_back(name)?)
    }

    /// Keeps the state called `name` no longer.
    ///
    /// # Errors
    /// There is no such checkpoint, or the device failed.
    ///
    /// ```
    /// # use flashtree::{Database, Options};
    /// # fn main() -> flashtree::Result<()> {
    /// # let folder = tempfile::tempdir().unwrap();
    /// # let mut fruit = Database::create(folder.path().join("fruit.db"), &Options::new())?;
    /// fruit.checkpoint("empty")?;
    /// fruit.forget("empty")?;
    /// assert!(fruit.checkpoints().is_empty());
    /// # Ok(()) }
    /// ```
    pub fn forget(&mut self, name: &str) -> Result<()> {
        Ok(self.changing()?.forget(name)?)
    }

    /// What the keys are, as the database was made.
    ///
    /// ```
    /// # use flashtree::{Database, Options, encoding::Type};
    /// # fn main() -> flashtree::Result<()> {
    /// # let folder = tempfile::tempdir().unwrap();
    /// # let path = folder.path().join("fruit.db");
    /// let fruit = Database::create(path, &Options::new().key(Type::Text))?;
    /// assert_eq!(fruit.key_type(), &Type::Text);
    /// # Ok(()) }
    /// ```
    #[must_use]
    pub const fn key_type(&self) -> &Type {
        &self.standing.label.key
    }

    /// What the values are, as the database was made.
    ///
    /// ```
    /// # use flashtree::{Database, Options, encoding::Type};
    /// # fn main() -> flashtree::Result<()> {
    /// # let folder = tempfile::tempdir().unwrap();
    /// # let path = folder.path().join("fruit.db");
    /// let fruit = Database::create(path, &Options::new())?;
    /// assert_eq!(fruit.value_type(), &Type::Bytes);
    /// # Ok(()) }
    /// ```
    #[must_use]
    pub const fn value_type(&self) -> &Type {
        &self.standing.label.value
    }

    /// How the database stands.
    ///
    /// # Errors
    /// The system can't measure the file.
    ///
    /// ```
    /// # use flashtree::{Database, Durability, Options};
    /// # fn main() -> flashtree::Result<()> {
    /// # let folder = tempfile::tempdir().unwrap();
    /// # let fruit = Database::create(folder.path().join("fruit.db"), &Options::new())?;
    /// assert_eq!(fruit.stats()?.recovery.durability, Durability::Batch);
    /// # Ok(()) }
    /// ```
    pub fn stats(&self) -> Result<Stats> {
        let Standing { index, tree, page_bytes, label, driver_bytes, health, .. } = &self.standing;
        let sizes = self.path.as_deref().map(files::sizes).transpose()?;
        let statistics = index.statistics();
        Ok(Stats {
            tree,
            key: label.key.clone(),
            value: label.value.clone(),
            page_bytes: *page_bytes,
            height: statistics.height,
            live_pages: statistics.live_pages,
            memory: statistics.memory,
            driver_bytes: *driver_bytes,
            memory_peak: statistics.memory_peak,
            recovery: index.recovery(),
            checkpoints: index.checkpoints().to_vec(),
            file: sizes.map(|(taken, capacity)| FileSizes { taken, capacity }),
            health: health.as_ref().map(|health| health.get()),
        })
    }

    /// Verifies every page and every invariant; returns what is wrong, and where, one line each.
    ///
    /// # Errors
    /// The device failed. Damage is a finding, not an error.
    ///
    /// ```
    /// # use flashtree::{Database, Options};
    /// # fn main() -> flashtree::Result<()> {
    /// # let folder = tempfile::tempdir().unwrap();
    /// # let mut fruit = Database::create(folder.path().join("fruit.db"), &Options::new())?;
    /// assert!(fruit.check()?.is_empty());
    /// # Ok(()) }
    /// ```
    pub fn check(&mut self) -> Result<Vec<String>> {
        let mut findings = Vec::new();
        self.check_with(&mut |finding| findings.push(finding.to_string()))?;
        Ok(findings)
    }

    /// Verifies every page and every invariant, and tells each finding as it comes: there can be
    /// many.
    ///
    /// # Errors
    /// As [`check`](Database::check).
    ///
    /// ```
    /// # use flashtree::{Database, Options};
    /// # fn main() -> flashtree::Result<()> {
    /// # let folder = tempfile::tempdir().unwrap();
    /// # let mut fruit = Database::create(folder.path().join("fruit.db"), &Options::new())?;
    /// fruit.check_with(&mut |finding| eprintln!("{finding}"))?;
    /// # Ok(()) }
    /// ```
    pub fn check_with(&mut self, finding: &mut dyn FnMut(&dyn Display)) -> Result<()> {
        Ok(self.standing.index.check(finding)?)
    }

    /// Writes back all that is only in memory and closes the database.
    ///
    /// # Errors
    /// The device failed; what lasts is what the durability says.
    ///
    /// ```
    /// # use flashtree::{Database, Options};
    /// # fn main() -> flashtree::Result<()> {
    /// # let folder = tempfile::tempdir().unwrap();
    /// # let mut fruit = Database::create(folder.path().join("fruit.db"), &Options::new())?;
    /// fruit.close()?;
    /// # Ok(()) }
    /// ```
    pub fn close(mut self) -> Result<()> {
        self.shut()
    }

    /// Closes the database, once.
    fn shut(&mut self) -> Result<()> {
        match std::mem::replace(&mut self.access, Access::Closed) {
            Access::Writing => Ok(self.standing.index.close()?),
            Access::Reading | Access::Closed => Ok(()),
        }
    }
}

impl Drop for Database<'_> {
    fn drop(&mut self) {
        // There is nobody to tell; who wants to know calls `close`.
        let _ = self.shut();
    }
}

impl fmt::Debug for Database<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Database")
            .field("tree", &self.standing.tree)
            .field("path", &self.path)
            .field("access", &self.access)
            .finish_non_exhaustive()
    }
}
