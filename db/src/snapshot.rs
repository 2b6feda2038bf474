//! Snapshots: states that stay while others write.
//!
//! No tree has to keep an old state. A snapshot keeps what was there before, in memory: whoever
//! changes a key first has the value read that it had, for every snapshot that has not got it. So
//! a snapshot costs nothing until something is changed, and then a lookup a key; every tree has
//! them, on every device.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use index::{Index, Update};

use crate::keyspace::Scope;
use crate::range::read_whole;
use crate::view::{Over, View};
use crate::{Database, Error, Keyspace, Result};

/// Keys of the tree, and in place of what it has: a value, or none where the key is absent.
pub(crate) type Overlay = BTreeMap<Vec<u8>, Option<Arc<[u8]>>>;

/// Bytes that an entry of an overlay takes beside its key and value, about.
pub(crate) const OVERLAY_ENTRY_BYTES: usize = 96;

/// What all snapshots keep.
pub(crate) struct Snapshots {
    /// The oldest comes first.
    live: Vec<Kept>,
    /// The number of the next one.
    next: u64,
    /// Bytes that all of them take, and may take.
    bytes: u64,
    most: u64,
}

/// What one snapshot keeps.
struct Kept {
    number: u64,
    /// `None` once it is over.
    before: Option<Overlay>,
    bytes: u64,
}

impl Snapshots {
    pub(crate) const fn new(most: u64) -> Self {
        Snapshots { live: Vec::new(), next: 0, bytes: 0, most }
    }

    /// What was changed since the snapshot was taken, as it was then.
    pub(crate) fn before(&self, number: u64) -> Result<&Overlay> {
        let kept = self.live.iter().find(|kept| kept.number == number);
        kept.and_then(|kept| kept.before.as_ref()).ok_or(Error::SnapshotOver { limit: self.most })
    }

    /// Ends all of them: everything may be another now.
    pub(crate) fn end_all(&mut self) {
        for place in 0..self.live.len() {
            self.end(place);
        }
    }

    /// Updates the index, once every snapshot has what it is about to change.
    pub(crate) fn update(
        &mut self,
        index: &mut dyn Index,
        updates: &[Update<'_>],
    ) -> index::Result<()> {
        if !self.live.is_empty() {
            for update in updates {
                self.keep(index, update.key())?;
            }
        }
        index.update(updates)
    }

    /// Keeps what the index has of a key, for every snapshot that has not got it.
    fn keep(&mut self, index: &mut dyn Index, key: &[u8]) -> index::Result<()> {
        let lacks = |kept: &Kept| kept.before.as_ref().is_some_and(|it| !it.contains_key(key));
        let mut lacking = self.live.iter().filter(|kept| lacks(kept)).count() as u64;
        if lacking == 0 {
            return Ok(());
        }
        let length = index.get(key, 0, &mut [])?;
        let bytes = (key.len() + OVERLAY_ENTRY_BYTES) as u64 + u64::from(length.unwrap_or(0));
        // Room first: the oldest goes.
        while lacking > 0 && self.bytes + bytes * lacking > self.most {
            let Some(oldest) = self.live.iter().position(|kept| kept.before.is_some()) else {
                break;
            };
            lacking -= u64::from(self.live.get(oldest).is_some_and(lacks));
            self.end(oldest);
        }
        if lacking == 0 {
            return Ok(());
        }
        let value = match length {
            None => None,
            Some(_) => {
                let read = |offset, into: &mut [u8]| {
                    index.get(key, offset, into).map(Option::unwrap_or_default)
                };
                Some(Arc::from(read_whole(read)?))
            }
        };
        for kept in &mut self.live {
            if let Some(before) = kept.before.as_mut().filter(|it| !it.contains_key(key)) {
                before.insert(key.to_vec(), value.clone());
                kept.bytes += bytes;
                self.bytes += bytes;
            }
        }
        Ok(())
    }

    /// Begins one.
    fn begin(&mut self) -> u64 {
        let number = self.next;
        self.next += 1;
        self.live.push(Kept { number, before: Some(Overlay::new()), bytes: 0 });
        number
    }

    /// Ends the one at this place, of which only its number stays.
    fn end(&mut self, place: usize) {
        if let Some(kept) = self.live.get_mut(place) {
            self.bytes -= kept.bytes;
            (kept.before, kept.bytes) = (None, 0);
        }
    }
}

/// A state of a database that stays while others write.
///
/// It keeps, in memory beside the budget, the keys and values that were changed since, up to
/// [`Options::snapshot_bytes`](crate::Options::snapshot_bytes) for all snapshots together. Where
/// that is not enough the oldest is over: reading it fails with
/// [`Error::SnapshotOver`], while writers go on. [`Database::rollback`] and
/// [`Database::load`] end all of them.
///
/// ```
/// use flashtree::{Database, Options, Readable};
///
/// # fn main() -> flashtree::Result<()> {
/// # let folder = tempfile::tempdir().unwrap();
/// let fruit = Database::create(folder.path().join("fruit.db"), &Options::new())?;
/// fruit.put("apple", "red")?;
/// let before = fruit.snapshot()?;
/// fruit.put("apple", "green")?;
/// fruit.put("pear", "yellow")?;
/// assert_eq!(before.get("apple")?, Some(b"red".to_vec()));
/// assert_eq!((before.count()?, fruit.count()?), (1, 2));
/// # Ok(()) }
/// ```
#[must_use]
pub struct Snapshot<'s, 'd> {
    database: &'s Database<'d>,
    number: u64,
}

/// Snapshots.
impl<'d> Database<'d> {
    /// The present state, to be read while others write: see [`Snapshot`].
    ///
    /// # Errors
    /// A panic left the database half changed, or a call of this thread is not over.
    ///
    /// ```
    /// # use flashtree::{Database, Options, Readable};
    /// # fn main() -> flashtree::Result<()> {
    /// # let folder = tempfile::tempdir().unwrap();
    /// # let fruit = Database::create(folder.path().join("fruit.db"), &Options::new())?;
    /// let empty = fruit.snapshot()?;
    /// fruit.put("apple", "red")?;
    /// assert_eq!(empty.first()?, None);
    /// # Ok(()) }
    /// ```
    pub fn snapshot(&self) -> Result<Snapshot<'_, 'd>> {
        let number = self.core.lock()?.snapshots.begin();
        Ok(Snapshot { database: self, number })
    }
}

impl<'s, 'd> Snapshot<'s, 'd> {
    /// A keyspace of the same database, as it was then; it can be read when it is dropped later.
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
    /// let before = shop.snapshot()?;
    /// colours.put("apple", "red")?;
    /// assert_eq!(before.keyspace(&colours)?.count()?, 0);
    /// # Ok(()) }
    /// ```
    pub fn keyspace(&self, keyspace: &Keyspace<'_, '_>) -> Result<SnapshotKeyspace<'_, 's, 'd>> {
        let scope = keyspace.scope_in(self.database)?;
        scope.check()?;
        Ok(SnapshotKeyspace { snapshot: self, scope })
    }

    fn view_of(&self, scope: Scope) -> View<'_, 'd> {
        View::new(self.database, scope, Over::Snapshot(self.number))
    }

    pub(crate) fn view(&self) -> View<'_, 'd> {
        self.view_of(self.database.unnamed())
    }
}

impl Drop for Snapshot<'_, '_> {
    fn drop(&mut self) {
        // After a panic nobody reads or writes any more.
        if let Ok(mut core) = self.database.core.lock() {
            let snapshots = &mut core.snapshots;
            let of = |kept: &Kept| kept.number == self.number;
            if let Some(place) = snapshots.live.iter().position(of) {
                snapshots.end(place);
                snapshots.live.remove(place);
            }
        }
    }
}

impl fmt::Debug for Snapshot<'_, '_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Snapshot").field("number", &self.number).finish_non_exhaustive()
    }
}

/// A keyspace inside a snapshot: see [`Snapshot::keyspace`].
#[derive(Debug)]
#[must_use]
pub struct SnapshotKeyspace<'a, 's, 'd> {
    snapshot: &'a Snapshot<'s, 'd>,
    scope: Scope,
}

impl<'d> SnapshotKeyspace<'_, '_, 'd> {
    pub(crate) fn view(&self) -> View<'_, 'd> {
        self.snapshot.view_of(self.scope.clone())
    }
}
