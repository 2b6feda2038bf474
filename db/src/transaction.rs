//! Transactions: several changes, all or none, that see themselves.
//!
//! What a transaction changes is in memory, over what the index holds, and goes to the index as one
//! batch when it is committed. The writer's turn is its own from the beginning to the end: so what
//! it read can't have changed, while others go on reading what was there before it.

use std::sync::Arc;

use index::Update;

use crate::keyspace::Scope;
use crate::snapshot::Overlay;
use crate::turns::Turn;
use crate::view::{Change, Over, View};
use crate::{Database, Result};

/// Several changes that are made together, or not at all. It reads what it has changed; others read
/// what was there before, until it is committed. Dropping it changes nothing.
///
/// What it changes takes memory until then, beside the budget.
///
/// ```
/// use flashtree::{Database, Options, Readable};
///
/// # fn main() -> flashtree::Result<()> {
/// # let folder = tempfile::tempdir().unwrap();
/// let accounts = Database::create(folder.path().join("accounts.db"), &Options::new())?;
/// let mut transaction = accounts.begin()?;
/// transaction.put("ann", "10")?;
/// transaction.put("bob", "20")?;
/// assert_eq!(transaction.count()?, 2);
/// assert_eq!(accounts.count()?, 0);
/// transaction.commit()?;
/// assert_eq!(accounts.count()?, 2);
/// # Ok(()) }
/// ```
#[must_use]
pub struct Transaction<'t, 'd> {
    database: &'t Database<'d>,
    turn: Turn<'t>,
    overlay: Overlay,
    /// True if it is durable when it is committed.
    is_synced: bool,
}

/// Transactions.
impl<'d> Database<'d> {
    /// Begins a transaction, once no other thread has one: see [`Transaction`] and
    /// [`write`](Database::write).
    ///
    /// # Errors
    /// The database is open for reading only; another thread had a transaction for longer than
    /// [`Options::turn_wait`](crate::Options::turn_wait), or this thread has one.
    ///
    /// ```
    /// # use flashtree::{Database, Options};
    /// # fn main() -> flashtree::Result<()> {
    /// # let folder = tempfile::tempdir().unwrap();
    /// # let fruit = Database::create(folder.path().join("fruit.db"), &Options::new())?;
    /// let mut transaction = fruit.begin()?;
    /// transaction.put("apple", "red")?;
    /// drop(transaction);
    /// assert!(!fruit.contains("apple")?);
    /// # Ok(()) }
    /// ```
    pub fn begin(&self) -> Result<Transaction<'_, 'd>> {
        self.check_writing()?;
        let turn = self.turns.write()?;
        Ok(Transaction { database: self, turn, overlay: Overlay::new(), is_synced: true })
    }

    /// Makes all changes of `writing`, or none if it returns an error. When this returns they are
    /// durable, whatever the durability of the database but none.
    ///
    /// A power cut, or a kill, never leaves a part of them.
    ///
    /// # Errors
    /// As [`begin`](Database::begin), `writing` and [`Transaction::commit`].
    ///
    /// ```
    /// # use flashtree::{Database, Error, Options, Readable};
    /// # fn main() -> flashtree::Result<()> {
    /// # let folder = tempfile::tempdir().unwrap();
    /// # let accounts = Database::create(folder.path().join("accounts.db"), &Options::new())?;
    /// # accounts.put("ann", [30])?;
    /// # accounts.put("bob", [0])?;
    /// let paid = accounts.write(|transaction| {
    ///     let ann = transaction.get("ann")?.map_or(0, |bytes| bytes[0]);
    ///     let bob = transaction.get("bob")?.map_or(0, |bytes| bytes[0]);
    ///     // An error leaves everything as it was.
    ///     let rest = ann.checked_sub(20).ok_or(Error::Ended)?;
    ///     transaction.put("ann", [rest])?;
    ///     transaction.put("bob", [bob + 20])?;
    ///     Ok(20)
    /// })?;
    /// assert_eq!((paid, accounts.get("bob")?), (20, Some(vec![20])));
    /// # Ok(()) }
    /// ```
    pub fn write<R>(
        &self,
        writing: impl FnOnce(&mut Transaction<'_, 'd>) -> Result<R>,
    ) -> Result<R> {
        let mut transaction = self.begin()?;
        let written = writing(&mut transaction)?;
        transaction.commit()?;
        Ok(written)
    }

    /// Puts `new` in the place of the value of `key` if that is `expected`, and tells whether it
    /// was; `None` stands for an absent key. It is durable when this returns.
    ///
    /// # Errors
    /// As [`write`](Database::write).
    ///
    /// ```
    /// # use flashtree::{Database, Options};
    /// # fn main() -> flashtree::Result<()> {
    /// # let folder = tempfile::tempdir().unwrap();
    /// # let fruit = Database::create(folder.path().join("fruit.db"), &Options::new())?;
    /// assert!(fruit.compare_and_set("apple", None, Some(b"red"))?);
    /// assert!(!fruit.compare_and_set("apple", Some(b"green"), None)?);
    /// assert!(fruit.compare_and_set("apple", Some(b"red"), None)?);
    /// assert!(!fruit.contains("apple")?);
    /// # Ok(()) }
    /// ```
    pub fn compare_and_set(
        &self,
        key: impl AsRef<[u8]>,
        expected: Option<&[u8]>,
        new: Option<&[u8]>,
    ) -> Result<bool> {
        self.write(|transaction| transaction.compare_and_set(key, expected, new))
    }
}

impl<'t, 'd> Transaction<'t, 'd> {
    /// Inserts or replaces `key`.
    ///
    /// # Errors
    /// The key can't be in this database.
    ///
    /// ```
    /// # use flashtree::{Database, Options, Readable};
    /// # fn main() -> flashtree::Result<()> {
    /// # let folder = tempfile::tempdir().unwrap();
    /// # let fruit = Database::create(folder.path().join("fruit.db"), &Options::new())?;
    /// fruit.write(|transaction| {
    ///     transaction.put("apple", "red")?;
    ///     assert_eq!(transaction.get("apple")?, Some(b"red".to_vec()));
    ///     Ok(())
    /// })?;
    /// # Ok(()) }
    /// ```
    pub fn put(&mut self, key: impl AsRef<[u8]>, value: impl AsRef<[u8]>) -> Result<()> {
        self.set(&self.database.unnamed(), key.as_ref(), Some(value.as_ref()))
    }

    /// Deletes `key`, if it is present.
    ///
    /// # Errors
    /// The key can't be in this database.
    ///
    /// ```
    /// # use flashtree::{Database, Options, Readable};
    /// # fn main() -> flashtree::Result<()> {
    /// # let folder = tempfile::tempdir().unwrap();
    /// # let fruit = Database::create(folder.path().join("fruit.db"), &Options::new())?;
    /// fruit.put("apple", "red")?;
    /// fruit.write(|transaction| {
    ///     transaction.delete("apple")?;
    ///     assert!(!transaction.contains("apple")?);
    ///     Ok(())
    /// })?;
    /// # Ok(()) }
    /// ```
    pub fn delete(&mut self, key: impl AsRef<[u8]>) -> Result<()> {
        self.set(&self.database.unnamed(), key.as_ref(), None)
    }

    /// Puts `new` in the place of the value of `key` if that is `expected`, and tells whether it
    /// was; `None` stands for an absent key.
    ///
    /// # Errors
    /// As [`Readable::get`](crate::Readable::get) and [`put`](Transaction::put).
    ///
    /// ```
    /// # use flashtree::{Database, Options};
    /// # fn main() -> flashtree::Result<()> {
    /// # let folder = tempfile::tempdir().unwrap();
    /// # let fruit = Database::create(folder.path().join("fruit.db"), &Options::new())?;
    /// fruit.write(|transaction| {
    ///     assert!(transaction.compare_and_set("apple", None, Some(b"red"))?);
    ///     assert!(!transaction.compare_and_set("apple", None, Some(b"green"))?);
    ///     Ok(())
    /// })?;
    /// # Ok(()) }
    /// ```
    pub fn compare_and_set(
        &mut self,
        key: impl AsRef<[u8]>,
        expected: Option<&[u8]>,
        new: Option<&[u8]>,
    ) -> Result<bool> {
        self.compare(&self.database.unnamed(), key.as_ref(), expected, new)
    }

    /// Leaves it to the durability of the database when this transaction is durable, as that of a
    /// [`put`](Database::put): so under `batch` it is at the next sync.
    ///
    /// ```
    /// # use flashtree::{Database, Options};
    /// # fn main() -> flashtree::Result<()> {
    /// # let folder = tempfile::tempdir().unwrap();
    /// # let fruit = Database::create(folder.path().join("fruit.db"), &Options::new())?;
    /// fruit.write(|transaction| {
    ///     transaction.sync_later();
    ///     transaction.put("apple", "red")
    /// })?;
    /// fruit.sync()?; // From here on it survives a power cut.
    /// # Ok(()) }
    /// ```
    pub const fn sync_later(&mut self) {
        self.is_synced = false;
    }

    /// Bytes of memory that the keys and values take which it has changed.
    ///
    /// ```
    /// # use flashtree::{Database, Options};
    /// # fn main() -> flashtree::Result<()> {
    /// # let folder = tempfile::tempdir().unwrap();
    /// # let fruit = Database::create(folder.path().join("fruit.db"), &Options::new())?;
    /// let mut transaction = fruit.begin()?;
    /// transaction.put("apple", "red")?;
    /// assert_eq!(transaction.byte_len(), 8);
    /// # Ok(()) }
    /// ```
    #[must_use]
    pub fn byte_len(&self) -> usize {
        let value = |value: &Option<Arc<[u8]>>| value.as_ref().map_or(0, |value| value.len());
        self.overlay.iter().map(|(key, changed)| key.len() + value(changed)).sum()
    }

    /// Makes all changes, durably unless less was asked for: [`sync_later`](Self::sync_later).
    ///
    /// # Errors
    /// A key or value is too long, there is no room, others read a state that stays for too long,
    /// or it is too long for the journal of a chip: nothing changed. Or the device failed: then
    /// all of it or nothing is there when the database is opened again.
    ///
    /// ```
    /// # use flashtree::{Database, Options};
    /// # fn main() -> flashtree::Result<()> {
    /// # let folder = tempfile::tempdir().unwrap();
    /// # let fruit = Database::create(folder.path().join("fruit.db"), &Options::new())?;
    /// let mut transaction = fruit.begin()?;
    /// transaction.put("apple", "red")?;
    /// transaction.commit()?;
    /// assert!(fruit.contains("apple")?);
    /// # Ok(()) }
    /// ```
    pub fn commit(self) -> Result<()> {
        if self.overlay.is_empty() {
            return Ok(());
        }
        let updates: Vec<Update<'_>> = self.overlay.iter().map(update).collect();
        self.turn.change()?;
        let mut core = self.database.prepared(&updates)?;
        self.database.update_core(&mut core, &Scope::WHOLE, &updates)?;
        match self.is_synced {
            true => self.database.sync_core(&mut core),
            false => Ok(()),
        }
    }

    pub(crate) const fn database(&self) -> &'t Database<'d> {
        self.database
    }

    /// Sets the value of a key, or deletes it.
    pub(crate) fn set(&mut self, scope: &Scope, key: &[u8], value: Option<&[u8]>) -> Result<()> {
        scope.check_key(key)?;
        if let Some(value) = value {
            scope.check_value(value)?;
        }
        self.overlay.insert([scope.prefix(), key].concat(), value.map(Arc::from));
        Ok(())
    }

    /// Sets the value of a key if it is the one expected.
    pub(crate) fn compare(
        &mut self,
        scope: &Scope,
        key: &[u8],
        expected: Option<&[u8]>,
        new: Option<&[u8]>,
    ) -> Result<bool> {
        if self.view_of(scope.clone()).get(key)?.as_deref() != expected {
            return Ok(false);
        }
        self.set(scope, key, new).map(|()| true)
    }

    /// What it sees of a keyspace.
    pub(crate) fn view_of(&self, scope: Scope) -> View<'_, 'd> {
        View::new(self.database, scope, Over::Changes(&self.overlay))
    }

    pub(crate) fn view(&self) -> View<'_, 'd> {
        self.view_of(self.database.unnamed())
    }
}

impl std::fmt::Debug for Transaction<'_, '_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Transaction").field("changes", &self.overlay.len()).finish_non_exhaustive()
    }
}

fn update<'c>((key, value): Change<'c>) -> Update<'c> {
    match value {
        Some(value) => Update::Put { key, value },
        None => Update::Delete { key },
    }
}
