//! Keyspaces: several databases in one tree, each under a number before its keys.

mod catalog;
mod scope;

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use index::Update;

use crate::encoding::{Error as TypeError, PACKED_BYTES_MOST, Type};
use crate::inside::Core;
use crate::view::{Over, View};
use crate::{Batch, Database, Error, Result, Transaction};

pub(crate) use catalog::{Catalog, free_some};
pub(crate) use scope::{Scope, Space, under};

/// The longest name of a keyspace, in bytes.
const NAME_BYTES_MOST: usize = 255;

/// A part of a database with a name, and with keys and types of its own. It is a handle: the
/// keyspace stays when it is dropped.
///
/// ```
/// use flashtree::encoding::{Type, encode};
/// use flashtree::{Database, Options, Readable};
///
/// # fn main() -> flashtree::Result<()> {
/// # let folder = tempfile::tempdir().unwrap();
/// let options = Options::new().keyspaces(true);
/// let shop = Database::create(folder.path().join("shop.db"), &options)?;
/// let prices = shop.create_keyspace("prices", Type::Text, Type::U64)?;
/// let colours = shop.create_keyspace("colours", Type::Text, Type::Text)?;
/// prices.put("apple", encode(&5_u64))?;
/// colours.put("apple", "red")?;
/// assert_eq!(colours.get("apple")?, Some(b"red".to_vec()));
///
/// // A transaction spans them.
/// shop.write(|transaction| {
///     transaction.keyspace(&prices)?.put("pear", encode(&7_u64))?;
///     transaction.keyspace(&colours)?.put("pear", "green")
/// })?;
/// assert_eq!((prices.count()?, colours.count()?), (2, 2));
/// # Ok(()) }
/// ```
#[derive(Clone)]
pub struct Keyspace<'k, 'd> {
    database: &'k Database<'d>,
    space: Arc<Space>,
    scope: Scope,
}

/// Keyspaces.
impl<'d> Database<'d> {
    /// Makes the keyspace `name`, of 1 to 255 bytes, for keys and values of these types; or opens
    /// it, if it is there with the same types. It is made at once, durably unless the durability is
    /// none.
    ///
    /// # Errors
    /// The database was made without [`Options::keyspaces`](crate::Options::keyspaces); the
    /// keyspace has other types; or as [`put`](Database::put).
    ///
    /// ```
    /// # use flashtree::{Database, Options, encoding::Type};
    /// # fn main() -> flashtree::Result<()> {
    /// # let folder = tempfile::tempdir().unwrap();
    /// let options = Options::new().keyspaces(true);
    /// let shop = Database::create(folder.path().join("shop.db"), &options)?;
    /// let prices = shop.create_keyspace("prices", Type::Text, Type::U64)?;
    /// assert_eq!(prices.value_type(), &Type::U64);
    /// # Ok(()) }
    /// ```
    pub fn create_keyspace(&self, name: &str, key: Type, value: Type) -> Result<Keyspace<'_, 'd>> {
        check_types(name, &key, &value)?;
        let _turn = self.turn()?;
        let mut core = self.core.lock()?;
        let catalog = self.catalog(&mut core)?;
        if let Some(space) = catalog.find(name) {
            if (&space.key, &space.value) != (&key, &value) {
                let what =
                    format!("{name} has keys of {} and values of {}", space.key, space.value);
                return Err(Error::BadOption { option: "keyspace", what });
            }
            return Ok(self.handle(space));
        }
        let space = Arc::new(catalog.new_space(name, key, value)?);
        let (key, value) = space.entry();
        self.update_core(&mut core, &Scope::WHOLE, &[Update::Put { key: &key, value: &value }])?;
        self.catalog(&mut core)?.spaces.push(Arc::clone(&space));
        self.sync_core(&mut core)?;
        Ok(self.handle(&space))
    }

    /// The keyspace `name`.
    ///
    /// # Errors
    /// There is none ([`Error::NoKeyspace`](crate::Error::NoKeyspace)); the database was made
    /// without [`Options::keyspaces`](crate::Options::keyspaces), or can't be read.
    ///
    /// ```
    /// # use flashtree::{Database, Error, Options};
    /// # fn main() -> flashtree::Result<()> {
    /// # let folder = tempfile::tempdir().unwrap();
    /// let options = Options::new().keyspaces(true);
    /// let shop = Database::create(folder.path().join("shop.db"), &options)?;
    /// assert!(matches!(shop.keyspace("prices"), Err(Error::NoKeyspace { .. })));
    /// # Ok(()) }
    /// ```
    pub fn keyspace(&self, name: &str) -> Result<Keyspace<'_, 'd>> {
        let mut core = self.core.lock()?;
        match self.catalog(&mut core)?.find(name) {
            Some(space) => Ok(self.handle(space)),
            None => Err(Error::NoKeyspace { name: name.to_owned() }),
        }
    }

    /// The names of all keyspaces; none if the database was made without.
    ///
    /// # Errors
    /// The database can't be read.
    ///
    /// ```
    /// # use flashtree::{Database, Options, encoding::Type};
    /// # fn main() -> flashtree::Result<()> {
    /// # let folder = tempfile::tempdir().unwrap();
    /// let options = Options::new().keyspaces(true);
    /// let shop = Database::create(folder.path().join("shop.db"), &options)?;
    /// shop.create_keyspace("prices", Type::Text, Type::U64)?;
    /// assert_eq!(shop.keyspaces()?, ["prices"]);
    /// # Ok(()) }
    /// ```
    pub fn keyspaces(&self) -> Result<Vec<String>> {
        if !self.about.label.keyspaces {
            return Ok(Vec::new());
        }
        let mut core = self.core.lock()?;
        Ok(self.catalog(&mut core)?.spaces.iter().map(|space| space.name.clone()).collect())
    }

    /// Drops the keyspace `name` with all its entries, at once. Later updates delete some of the
    /// entries each, which gives their room back; [`free_dropped`](Database::free_dropped) does so
    /// without an update. Handles of it are refused from then on.
    ///
    /// # Errors
    /// As [`keyspace`](Database::keyspace) and [`delete`](Database::delete).
    ///
    /// ```
    /// # use flashtree::{Database, Options, Readable, encoding::Type};
    /// # fn main() -> flashtree::Result<()> {
    /// # let folder = tempfile::tempdir().unwrap();
    /// let options = Options::new().keyspaces(true);
    /// let shop = Database::create(folder.path().join("shop.db"), &options)?;
    /// let prices = shop.create_keyspace("prices", Type::Text, Type::Bytes)?;
    /// prices.put("apple", "5")?;
    /// shop.drop_keyspace("prices")?;
    /// assert!(prices.get("apple").is_err());
    /// while shop.free_dropped()? {}
    /// # Ok(()) }
    /// ```
    pub fn drop_keyspace(&self, name: &str) -> Result<()> {
        let _turn = self.turn()?;
        let mut core = self.core.lock()?;
        let Some(space) = self.catalog(&mut core)?.find(name).cloned() else {
            return Err(Error::NoKeyspace { name: name.to_owned() });
        };
        // A delete has room in a full database, too.
        let key = space.entry().0;
        self.update_core(&mut core, &Scope::WHOLE, &[Update::Delete { key: &key }])?;
        space.is_gone.store(true, Ordering::Relaxed);
        let catalog = self.catalog(&mut core)?;
        catalog.spaces.retain(|kept| kept.number != space.number);
        catalog.dropped.push(space.number);
        self.sync_core(&mut core)
    }

    /// Deletes some entries of keyspaces that were dropped. Returns true if there may be more.
    ///
    /// # Errors
    /// As [`delete`](Database::delete).
    ///
    /// ```
    /// # use flashtree::{Database, Options};
    /// # fn main() -> flashtree::Result<()> {
    /// # let folder = tempfile::tempdir().unwrap();
    /// let options = Options::new().keyspaces(true);
    /// let shop = Database::create(folder.path().join("shop.db"), &options)?;
    /// assert!(!shop.free_dropped()?);
    /// # Ok(()) }
    /// ```
    pub fn free_dropped(&self) -> Result<bool> {
        if !self.about.label.keyspaces {
            return Ok(false);
        }
        let _turn = self.turn()?;
        let mut core = self.core.lock()?;
        self.catalog(&mut core)?;
        self.free_step(&mut core)?;
        Ok(!self.catalog(&mut core)?.dropped.is_empty())
    }

    fn handle(&self, space: &Arc<Space>) -> Keyspace<'_, 'd> {
        Keyspace { database: self, space: Arc::clone(space), scope: Scope::of(space) }
    }

    /// The keyspaces, which are read when they are asked for first.
    pub(crate) fn catalog<'c>(&self, core: &'c mut Core<'_>) -> Result<&'c mut Catalog> {
        if !self.about.label.keyspaces {
            let what = "the database was made without keyspaces".to_owned();
            return Err(Error::BadOption { option: "keyspace", what });
        }
        core.catalog()
    }

    /// Deletes some entries of a dropped keyspace.
    pub(crate) fn free_step(&self, core: &mut Core<'_>) -> Result<()> {
        core.free_some().map_err(|error| match error {
            Error::Index(error) | Error::Full { source: error } => self.refused(core, error),
            other => other,
        })
    }
}

/// Refuses a name or types that can't be kept.
fn check_types(name: &str, key: &Type, value: &Type) -> Result<()> {
    if name.is_empty() || name.len() > NAME_BYTES_MOST {
        let what = format!("its name has {} bytes, and 1 to {NAME_BYTES_MOST} can be", name.len());
        return Err(Error::BadOption { option: "keyspace", what });
    }
    key.check()?;
    value.check()?;
    let mut packed = Vec::new();
    key.pack(&mut packed);
    value.pack(&mut packed);
    match packed.len() {
        bytes if bytes > PACKED_BYTES_MOST => {
            Err(TypeError::LongType { bytes, most: PACKED_BYTES_MOST }.into())
        }
        _ => Ok(()),
    }
}

impl Keyspace<'_, '_> {
    /// Its name.
    ///
    /// ```
    /// # use flashtree::{Database, Options, encoding::Type};
    /// # fn main() -> flashtree::Result<()> {
    /// # let folder = tempfile::tempdir().unwrap();
    /// # let options = Options::new().keyspaces(true);
    /// # let shop = Database::create(folder.path().join("shop.db"), &options)?;
    /// let prices = shop.create_keyspace("prices", Type::Text, Type::U64)?;
    /// assert_eq!(prices.name(), "prices");
    /// # Ok(()) }
    /// ```
    #[must_use]
    pub fn name(&self) -> &str {
        &self.space.name
    }

    /// The type of its keys.
    ///
    /// ```
    /// # use flashtree::{Database, Options, encoding::Type};
    /// # fn main() -> flashtree::Result<()> {
    /// # let folder = tempfile::tempdir().unwrap();
    /// # let options = Options::new().keyspaces(true);
    /// # let shop = Database::create(folder.path().join("shop.db"), &options)?;
    /// let prices = shop.create_keyspace("prices", Type::Text, Type::U64)?;
    /// assert_eq!(prices.key_type(), &Type::Text);
    /// # Ok(()) }
    /// ```
    #[must_use]
    pub fn key_type(&self) -> &Type {
        &self.space.key
    }

    /// The type of its values.
    ///
    /// ```
    /// # use flashtree::{Database, Options, encoding::Type};
    /// # fn main() -> flashtree::Result<()> {
    /// # let folder = tempfile::tempdir().unwrap();
    /// # let options = Options::new().keyspaces(true);
    /// # let shop = Database::create(folder.path().join("shop.db"), &options)?;
    /// let prices = shop.create_keyspace("prices", Type::Text, Type::U64)?;
    /// assert_eq!(prices.value_type(), &Type::U64);
    /// # Ok(()) }
    /// ```
    #[must_use]
    pub fn value_type(&self) -> &Type {
        &self.space.value
    }

    /// Inserts or replaces `key`, and lasts, as [`Database::put`].
    ///
    /// # Errors
    /// As [`Database::put`]; or the keyspace was dropped.
    ///
    /// ```
    /// # use flashtree::{Database, Options, encoding::Type};
    /// # fn main() -> flashtree::Result<()> {
    /// # let folder = tempfile::tempdir().unwrap();
    /// # let options = Options::new().keyspaces(true);
    /// # let shop = Database::create(folder.path().join("shop.db"), &options)?;
    /// let prices = shop.create_keyspace("prices", Type::Text, Type::U64)?;
    /// prices.put("apple", 5_u64.to_be_bytes())?;
    /// assert!(prices.put("apple", "a word").is_err());
    /// # Ok(()) }
    /// ```
    pub fn put(&self, key: impl AsRef<[u8]>, value: impl AsRef<[u8]>) -> Result<()> {
        let put = Update::Put { key: key.as_ref(), value: value.as_ref() };
        self.database.update_in(&self.scope, &[put])
    }

    /// Deletes `key`, if it is present, as [`Database::delete`].
    ///
    /// # Errors
    /// As [`Database::delete`]; or the keyspace was dropped.
    ///
    /// ```
    /// # use flashtree::{Database, Options, Readable, encoding::Type};
    /// # fn main() -> flashtree::Result<()> {
    /// # let folder = tempfile::tempdir().unwrap();
    /// # let options = Options::new().keyspaces(true);
    /// # let shop = Database::create(folder.path().join("shop.db"), &options)?;
    /// let prices = shop.create_keyspace("prices", Type::Text, Type::Bytes)?;
    /// prices.put("apple", "5")?;
    /// prices.delete("apple")?;
    /// assert!(!prices.contains("apple")?);
    /// # Ok(()) }
    /// ```
    pub fn delete(&self, key: impl AsRef<[u8]>) -> Result<()> {
        self.database.update_in(&self.scope, &[Update::Delete { key: key.as_ref() }])
    }

    /// Makes all changes of `batch` in this keyspace, or none, as [`Database::write_batch`].
    ///
    /// # Errors
    /// As [`Database::write_batch`]; or the keyspace was dropped.
    ///
    /// ```
    /// # use flashtree::{Batch, Database, Options, Readable, encoding::Type};
    /// # fn main() -> flashtree::Result<()> {
    /// # let folder = tempfile::tempdir().unwrap();
    /// # let options = Options::new().keyspaces(true);
    /// # let shop = Database::create(folder.path().join("shop.db"), &options)?;
    /// let prices = shop.create_keyspace("prices", Type::Text, Type::Bytes)?;
    /// prices.write_batch(Batch::new().put("apple", "5").put("pear", "7"))?;
    /// assert_eq!(prices.count()?, 2);
    /// # Ok(()) }
    /// ```
    pub fn write_batch(&self, batch: &Batch) -> Result<()> {
        self.database.update_in(&self.scope, &batch.updates())
    }
}

impl<'d> Keyspace<'_, 'd> {
    pub(crate) fn view(&self) -> View<'_, 'd> {
        View::new(self.database, self.scope.clone(), Over::Nothing)
    }

    /// Where its entries are in `database`, which has to be its own.
    pub(crate) fn scope_in(&self, database: &Database<'_>) -> Result<Scope> {
        // A database of another lifetime is another type, and may be the same.
        let own = std::ptr::from_ref(self.database).cast::<()>();
        match own == std::ptr::from_ref(database).cast() {
            true => Ok(self.scope.clone()),
            false => Err(Error::NoKeyspace { name: self.space.name.clone() }),
        }
    }
}

impl fmt::Debug for Keyspace<'_, '_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Keyspace").field("name", &self.space.name).finish_non_exhaustive()
    }
}

/// A keyspace inside a transaction: see [`Transaction::keyspace`].
#[derive(Debug)]
pub struct TransactionKeyspace<'a, 't, 'd> {
    transaction: &'a mut Transaction<'t, 'd>,
    scope: Scope,
}

impl<'t, 'd> Transaction<'t, 'd> {
    /// A keyspace of the same database, to be read and changed in this transaction.
    ///
    /// # Errors
    /// It is one of another database, or was dropped.
    ///
    /// ```
    /// # use flashtree::{Database, Options, Readable, encoding::Type};
    /// # fn main() -> flashtree::Result<()> {
    /// # let folder = tempfile::tempdir().unwrap();
    /// # let options = Options::new().keyspaces(true);
    /// # let shop = Database::create(folder.path().join("shop.db"), &options)?;
    /// let colours = shop.create_keyspace("colours", Type::Text, Type::Text)?;
    /// shop.write(|transaction| {
    ///     transaction.put("in no keyspace", "that has a name")?;
    ///     let mut colours = transaction.keyspace(&colours)?;
    ///     colours.put("apple", "red")?;
    ///     assert_eq!(colours.count()?, 1);
    ///     Ok(())
    /// })?;
    /// # Ok(()) }
    /// ```
    pub fn keyspace(
        &mut self,
        keyspace: &Keyspace<'_, '_>,
    ) -> Result<TransactionKeyspace<'_, 't, 'd>> {
        let scope = keyspace.scope_in(self.database())?;
        scope.check()?;
        Ok(TransactionKeyspace { transaction: self, scope })
    }
}

impl TransactionKeyspace<'_, '_, '_> {
    /// Inserts or replaces `key`, as [`Transaction::put`].
    ///
    /// # Errors
    /// As [`Transaction::put`].
    ///
    /// ```
    /// # use flashtree::{Database, Options, encoding::Type};
    /// # fn main() -> flashtree::Result<()> {
    /// # let folder = tempfile::tempdir().unwrap();
    /// # let options = Options::new().keyspaces(true);
    /// # let shop = Database::create(folder.path().join("shop.db"), &options)?;
    /// let colours = shop.create_keyspace("colours", Type::Text, Type::Text)?;
    /// shop.write(|transaction| transaction.keyspace(&colours)?.put("apple", "red"))?;
    /// # Ok(()) }
    /// ```
    pub fn put(&mut self, key: impl AsRef<[u8]>, value: impl AsRef<[u8]>) -> Result<()> {
        self.transaction.set(&self.scope, key.as_ref(), Some(value.as_ref()))
    }

    /// Deletes `key`, if it is present, as [`Transaction::delete`].
    ///
    /// # Errors
    /// As [`Transaction::delete`].
    ///
    /// ```
    /// # use flashtree::{Database, Options, encoding::Type};
    /// # fn main() -> flashtree::Result<()> {
    /// # let folder = tempfile::tempdir().unwrap();
    /// # let options = Options::new().keyspaces(true);
    /// # let shop = Database::create(folder.path().join("shop.db"), &options)?;
    /// let colours = shop.create_keyspace("colours", Type::Text, Type::Text)?;
    /// shop.write(|transaction| transaction.keyspace(&colours)?.delete("apple"))?;
    /// # Ok(()) }
    /// ```
    pub fn delete(&mut self, key: impl AsRef<[u8]>) -> Result<()> {
        self.transaction.set(&self.scope, key.as_ref(), None)
    }

    /// Puts `new` in the place of the value of `key` if that is `expected`, as
    /// [`Transaction::compare_and_set`].
    ///
    /// # Errors
    /// As [`Transaction::compare_and_set`].
    ///
    /// ```
    /// # use flashtree::{Database, Options, encoding::Type};
    /// # fn main() -> flashtree::Result<()> {
    /// # let folder = tempfile::tempdir().unwrap();
    /// # let options = Options::new().keyspaces(true);
    /// # let shop = Database::create(folder.path().join("shop.db"), &options)?;
    /// let colours = shop.create_keyspace("colours", Type::Text, Type::Text)?;
    /// let is_set = shop.write(|transaction| {
    ///     transaction.keyspace(&colours)?.compare_and_set("apple", None, Some(b"red"))
    /// })?;
    /// assert!(is_set);
    /// # Ok(()) }
    /// ```
    pub fn compare_and_set(
        &mut self,
        key: impl AsRef<[u8]>,
        expected: Option<&[u8]>,
        new: Option<&[u8]>,
    ) -> Result<bool> {
        self.transaction.compare(&self.scope, key.as_ref(), expected, new)
    }
}

impl<'d> TransactionKeyspace<'_, '_, 'd> {
    pub(crate) fn view(&self) -> View<'_, 'd> {
        self.transaction.view_of(self.scope.clone())
    }
}
