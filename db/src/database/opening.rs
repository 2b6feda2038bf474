//! Making and opening databases.

use std::path::Path;

use device::Medium;

use super::Access;
use crate::backend::{Backend, Standing};
use crate::driver::Driver;
use crate::files::{self, Site, Temporary};
use crate::{Database, OpenOptions, Options, Result};

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
        fill: impl FnOnce(&Self) -> Result<()>,
    ) -> Result<Self> {
        let path = files::absolute(path)?;
        let site = files::patiently(options.wait, || Site::look(&path, options.overwrite))?;
        if let Site::BlockDevice(bytes) = site {
            let backend = files::make_on_block_device(&path, bytes, options)?;
            let made = Database::over(backend.create(options)?, &path);
            fill(&made)?;
            return Ok(made);
        }
        let temporary = Temporary::beside(&path)?;
        let made = Database::make(temporary.path(), options);
        let mut made = made.map_err(|error| error.about(&path))?;
        fill(&made)?;
        // From here on it is opened as it stands in the file.
        made.settle(&mut *made.core.lock()?)?;
        temporary.publish(&path, matches!(site, Site::Taken(_)))?;
        made.path = Some(path);
        Ok(made)
    }

    /// Makes a database in an empty file.
    pub(crate) fn make(path: &Path, options: &Options) -> Result<Self> {
        let backend = files::make(path, options)?;
        Ok(Database::over(backend.create(options)?, path))
    }

    fn over(standing: Standing<'static>, path: &Path) -> Self {
        Database::new(standing, Some(path.to_owned()), Access::Writing)
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
        let standing = files::open(&path, options).and_then(|backend| backend.open(options));
        Ok(Database::over(standing.map_err(|error| error.at(&path))?, &path))
    }

    /// Opens the database in a file for reading, beside other readers. Nothing is written, so a
    /// database that needs recovery is refused.
    ///
    /// # Errors
    /// As [`open`](Database::open), or [`Error::NeedsRecovery`](crate::Error::NeedsRecovery).
    ///
    /// ```
    /// use flashtree::{Database, Error, OpenOptions, Options};
    ///
    /// # fn main() -> flashtree::Result<()> {
    /// # let folder = tempfile::tempdir().unwrap();
    /// # let path = folder.path().join("fruit.db");
    /// # Database::create(&path, &Options::new())?.close()?;
    /// let fruit = Database::open_read_only(&path, &OpenOptions::new())?;
    /// let another = Database::open_read_only(&path, &OpenOptions::new())?;
    /// assert!(matches!(fruit.put("apple", "red"), Err(Error::ReadOnly)));
    /// # Ok(()) }
    /// ```
    pub fn open_read_only(path: impl AsRef<Path>, options: &OpenOptions) -> Result<Self> {
        let path = files::absolute(path.as_ref())?;
        let backend = files::open_read_only(&path, options);
        let standing = backend.and_then(|backend| backend.open(options));
        let standing = standing.map_err(|error| error.at(&path))?;
        Ok(Database::new(standing, Some(path), Access::Reading))
    }

    /// True if there is a readable database at `path`. An index made without this crate does not
    /// count.
    #[must_use]
    pub fn is_at(path: impl AsRef<Path>) -> bool {
        let path = files::absolute(path.as_ref());
        let any = OpenOptions::new().memory(0);
        let backend = path.and_then(|path| files::open_read_only(&path, &any));
        backend.and_then(Backend::has_label).unwrap_or(false)
    }
}

impl<'d> Database<'d> {
    /// Makes a database on a device, and opens it. Whatever the device held is lost. On a chip, a
    /// tree that stands on sectors gets a translation layer: see [`Options::ftl`].
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
    /// let fruit = Database::create_on(Medium::Nand(Box::new(&mut chip)), &Options::new())?;
    /// fruit.put("apple", "red")?;
    /// fruit.close()?;
    ///
    /// let medium = Medium::Nand(Box::new(&mut chip));
    /// let fruit = Database::open_on(medium, &OpenOptions::new())?;
    /// assert!(fruit.contains("apple")?);
    /// # Ok(()) }
    /// ```
    pub fn create_on(medium: Medium<'d>, options: &Options) -> Result<Self> {
        let standing = Backend::new(medium, Driver::Fixed(0)).create(options)?;
        Ok(Database::new(standing, None, Access::Writing))
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
        let standing = Backend::new(medium, Driver::Fixed(0)).open(options)?;
        Ok(Database::new(standing, None, Access::Writing))
    }

    /// Opens the database on a device for reading. Nothing is written to the device.
    ///
    /// # Errors
    /// As [`open_on`](Database::open_on), or [`Error::NeedsRecovery`](crate::Error::NeedsRecovery).
    ///
    /// ```
    /// # use flashtree::{Database, Medium, OpenOptions, Options, SectorGeometry};
    /// # fn main() -> flashtree::Result<()> {
    /// # let costs = device::DiskCosts::default();
    /// let mut disk = sim::SimulatedDisk::new(SectorGeometry::new(4096, 1000)?, costs);
    /// Database::create_on(Medium::Sectors(Box::new(&mut disk)), &Options::new())?.close()?;
    /// let medium = Medium::Sectors(Box::new(disk));
    /// let fruit = Database::open_read_only_on(medium, &OpenOptions::new())?;
    /// assert!(!fruit.contains("apple")?);
    /// # Ok(()) }
    /// ```
    pub fn open_read_only_on(medium: Medium<'d>, options: &OpenOptions) -> Result<Self> {
        let standing = Backend::new(medium, Driver::Fixed(0)).read_only().open(options)?;
        Ok(Database::new(standing, None, Access::Reading))
    }
}
