//! Reading what can still be read of a damaged database.
//!
//! Entries are read from the lowest key up to the damage, and then from the first key behind the
//! page that is damaged, and so on. Each gap is told by the keys around it. A tree that can't tell
//! where a damaged page ends is read from the highest key downwards as well, up to the damage.

use std::ops::Bound;
use std::path::Path;

use db::{Database, Direction, Error, KeyRange, Resume, Value};

use super::scan::Typed;
use crate::failure::Failure;
use crate::failure::FileFailure;
use crate::interrupts;

/// The most gaps whose keys are kept; all of them are counted.
const GAPS_MOST: usize = 8;

/// What could not be read.
#[derive(Debug, Default)]
pub(super) struct Lost {
    /// The damage that was met first.
    pub(super) first: Option<Error>,
    /// The first gaps, in order.
    pub(super) gaps: Vec<Gap>,
    /// Gaps beyond those.
    pub(super) more_gaps: u64,
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
    /// Where the walk is: at the last key, or at one behind damage that was not read.
    place: Option<Vec<u8>>,
    /// The key before a gap whose end is not known yet.
    open: Option<Option<Vec<u8>>>,
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
    let mut walk = Walk { path, key: None, place: None, open: None, lost: Lost::default() };
    let mut from: Option<Vec<u8>> = None;
    loop {
        let bound = from.as_deref().map_or(Bound::Unbounded, Bound::Included);
        if let End::Last = walk.go(database, bound, &mut each)? {
            break;
        }
        if interrupts::interrupted() {
            return Err(FileFailure::Interrupted.into());
        }
        let behind = database.resume_after(walk.place.as_deref()).map_err(FileFailure::of(path))?;
        let next = match behind {
            Resume::From(key) => Some(key),
            Resume::End => None,
            Resume::Unknown => walk.lowest_from_above(database)?,
        };
        // What is damaged and not noticed must not lead back.
        let Some(next) = next.filter(|next| Some(next) > walk.place.as_ref()) else { break };
        walk.place = Some(next.clone());
        from = Some(next);
    }
    walk.end_gap(None);
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
            Err(error) => return self.gap(error),
        };
        loop {
            let entry = match entries.next() {
                Ok(Some(entry)) => entry,
                Ok(None) => return Ok(End::Last),
                Err(error) => return self.gap(error),
            };
            self.read(entry.key);
            let long;
            let value = match entry.value {
                Value::Inline(value) => value,
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
            let key = self.key.as_deref().unwrap_or_default();
            each(&Typed { key: (key, &keys), value: (value, &values), path: self.path })?;
        }
    }

    /// Notes that `key` was read.
    fn read(&mut self, key: &[u8]) {
        for kept in [&mut self.key, &mut self.place] {
            let kept = kept.get_or_insert_default();
            kept.clear();
            kept.extend_from_slice(key);
        }
        if self.open.is_some() {
            self.end_gap(Some(key.to_vec()));
        }
    }

    /// Notes damage behind the last key.
    fn gap(&mut self, error: Error) -> Result<End, Failure> {
        self.damage(error)?;
        if self.open.is_none() {
            self.open = Some(self.key.clone());
        }
        Ok(End::Damage)
    }

    /// Notes that a gap, if there is one, ends before the key `behind`.
    fn end_gap(&mut self, behind: Option<Vec<u8>>) {
        let Some(before) = self.open.take() else { return };
        match self.lost.gaps.len() < GAPS_MOST {
            true => self.lost.gaps.push(Gap { before, behind }),
            false => self.lost.more_gaps += 1,
        }
    }

    /// The lowest key that can be reached from the highest one downwards, above the present place.
    fn lowest_from_above(
        &mut self,
        database: &mut Database<'_>,
    ) -> Result<Option<Vec<u8>>, Failure> {
        let from = self.place.as_deref().map_or(Bound::Unbounded, Bound::Excluded);
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
    fn damage(&mut self, error: Error) -> Result<(), Failure> {
        if !error.is_damage() {
            return Err(FileFailure::of(self.path)(error).into());
        }
        self.lost.first.get_or_insert(error);
        Ok(())
    }
}
