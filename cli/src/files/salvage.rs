//! Reading what can still be read of a damaged database.
//!
//! Entries are read from the lowest key up to the damage, and then from the lowest key that can be
//! reached from above. So what is lost is between two keys that are known, and is told.

use std::ops::Bound;
use std::path::Path;

use db::{Database, Direction, Error, KeyRange, Value};

use super::FileFailure;
use super::scan::Typed;
use crate::failure::Failure;

/// What could not be read.
#[derive(Debug, Default)]
pub(super) struct Lost {
    /// The damage that was met first.
    pub(super) first: Option<Error>,
    /// The keys that can't be read, if there are such.
    pub(super) gap: Option<Gap>,
    /// Entries whose keys can be read, and their values can't.
    pub(super) values: u64,
}

/// Keys that can't be read, by those around them.
#[derive(Debug)]
pub(super) struct Gap {
    /// The last key before the gap.
    pub(super) before: Option<Vec<u8>>,
    /// The first key behind it.
    pub(super) behind: Option<Vec<u8>>,
}

/// Where a walk ended.
enum End {
    Last,
    Damage,
}

/// A walk over a database, of which something may be lost.
struct Walk<'w> {
    path: &'w Path,
    /// The key that was read last.
    key: Option<Vec<u8>>,
    lost: Lost,
}

/// Calls `each` with every entry that can be read, in order.
///
/// # Errors
/// Those of `each`, or the database can't be read for another reason than damage.
pub(super) fn scan(
    database: &mut Database<'_>,
    path: &Path,
    mut each: impl FnMut(&Typed<'_>) -> Result<(), Failure>,
) -> Result<Lost, Failure> {
    let mut walk = Walk { path, key: None, lost: Lost::default() };
    if let End::Last = walk.go(database, Bound::Unbounded, &mut each)? {
        return Ok(walk.lost);
    }
    let before = walk.key.clone();
    let behind = walk.lowest_from_above(database)?;
    if let Some(key) = &behind {
        // Damage that comes only now is beyond what this can do.
        walk.go(database, Bound::Included(key), &mut each)?;
    }
    walk.lost.gap = Some(Gap { before, behind });
    Ok(walk.lost)
}

impl Walk<'_> {
    /// Reads upwards as far as possible.
    fn go(
        &mut self,
        database: &mut Database<'_>,
        from: Bound<&[u8]>,
        each: &mut impl FnMut(&Typed<'_>) -> Result<(), Failure>,
    ) -> Result<End, Failure> {
        let (keys, values) = (database.key_type().clone(), database.value_type().clone());
        let mut entries = match database.scan(KeyRange { from, ..KeyRange::ALL }) {
            Ok(entries) => entries,
            Err(error) => return self.damage(error),
        };
        loop {
            let entry = match entries.next() {
                Ok(Some(entry)) => entry,
                Ok(None) => return Ok(End::Last),
                Err(error) => return self.damage(error),
            };
            let key = self.key.get_or_insert_default();
            key.clear();
            key.extend_from_slice(entry.key);
            let long;
            let value = match entry.value {
                Value::Whole(value) => value,
                _ => match entries.value() {
                    Ok(value) => {
                        long = value;
                        &long
                    }
                    Err(error) => {
                        self.lost.values += 1;
                        self.damage(error)?;
                        continue;
                    }
                },
            };
            each(&Typed { key: (key, &keys), value: (value, &values), path: self.path })?;
        }
    }

    /// The lowest key that can be reached from the highest one downwards, above the last one.
    fn lowest_from_above(
        &mut self,
        database: &mut Database<'_>,
    ) -> Result<Option<Vec<u8>>, Failure> {
        let from = self.key.as_deref().map_or(Bound::Unbounded, Bound::Excluded);
        let range = KeyRange { from, to: Bound::Unbounded, direction: Direction::Descending };
        let mut entries = match database.scan(range) {
            Ok(entries) => entries,
            Err(error) if error.is_damage() => return Ok(None),
            Err(error) => return Err(FileFailure::of(self.path)(error).into()),
        };
        let mut lowest: Option<Vec<u8>> = None;
        loop {
            match entries.next() {
                Ok(Some(entry)) => {
                    let key = lowest.get_or_insert_default();
                    key.clear();
                    key.extend_from_slice(entry.key);
                }
                Ok(None) => return Ok(lowest),
                Err(error) if error.is_damage() => return Ok(lowest),
                Err(error) => return Err(FileFailure::of(self.path)(error).into()),
            }
        }
    }

    /// Notes damage; what is none ends the walk.
    fn damage(&mut self, error: Error) -> Result<End, Failure> {
        if !error.is_damage() {
            return Err(FileFailure::of(self.path)(error).into());
        }
        self.lost.first.get_or_insert(error);
        Ok(End::Damage)
    }
}
