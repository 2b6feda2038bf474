//! Which keyspaces there are.

use std::ops::Bound;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use index::{Direction, Index, KeyRange, Update};

use super::scope::{Scope, Space, UNNAMED};
use crate::encoding::Type;
use crate::snapshot::Snapshots;
use crate::{Error, Result};

/// What a key of the catalog begins with.
const CATALOG: u8 = 0;
/// The second byte of the key of a keyspace.
const NAMED: u8 = 1;

/// Entries of a dropped keyspace that are deleted at once.
const STEP: usize = 32;

/// The keyspaces of a database.
#[derive(Debug, Default)]
pub(crate) struct Catalog {
    pub(crate) spaces: Vec<Arc<Space>>,
    /// Numbers of those that were dropped, of which entries may be left: of what has no name.
    pub(crate) dropped: Vec<u32>,
    /// True if damage hides some of those: no number is known to be free.
    is_partial: bool,
    /// Numbers below this are not given again: a snapshot may have entries of who had them.
    next: u32,
}

impl Catalog {
    /// Reads which keyspaces there are.
    pub(crate) fn read(index: &mut dyn Index) -> Result<Self> {
        let from = Bound::Included(&[CATALOG][..]);
        let to = Bound::Excluded(&[CATALOG + 1][..]);
        let mut catalog = Catalog::default();
        let mut cursor = index.range(KeyRange { from, to, direction: Direction::Ascending })?;
        while let Some((key, value)) = cursor.next()? {
            let is_read = match key {
                [CATALOG, NAMED, name @ ..] => catalog.read_named(name, value.whole()),
                // An entry for each that was dropped, by versions before.
                [CATALOG, ..] => Some(()),
                _ => None,
            };
            is_read.ok_or_else(damaged)?;
        }
        drop(cursor);
        // Those that have a name are there all the same.
        match catalog.find_dropped(index) {
            Err(error) if error.is_damage() => catalog.is_partial = true,
            found => found?,
        }
        Ok(catalog)
    }

    /// Finds keyspaces that have entries and no name: a seek for each that has entries.
    fn find_dropped(&mut self, index: &mut dyn Index) -> Result<()> {
        let mut before = UNNAMED;
        while let Some(prefix) = Scope::numbered(before, &Type::Bytes, &Type::Bytes).behind() {
            let from = Bound::Included(&prefix[..]);
            let (to, direction) = (Bound::Unbounded, Direction::Ascending);
            let mut cursor = index.range(KeyRange { from, to, direction })?;
            let Some((key, _)) = cursor.next()? else { break };
            let number = Scope::split(key).map(|(number, _)| number);
            let number = number.filter(|number| *number > before).ok_or_else(damaged)?;
            if !self.has(number) {
                self.dropped.push(number);
            }
            before = number;
        }
        Ok(())
    }

    fn read_named(&mut self, name: &[u8], value: Option<&[u8]>) -> Option<()> {
        let name = String::from_utf8(name.to_vec()).ok()?;
        let (number, types) = value?.split_first_chunk()?;
        let number = u32::from_le_bytes(*number);
        let mut at = 0;
        let key = Type::unpack(types, &mut at).ok()?;
        let value = Type::unpack(types, &mut at).ok()?;
        if at != types.len() || number <= UNNAMED || self.has(number) {
            return None;
        }
        let is_gone = AtomicBool::new(false);
        self.spaces.push(Arc::new(Space { name, number, key, value, is_gone }));
        Some(())
    }

    /// True if a keyspace has this number, or had it and has entries left.
    fn has(&self, number: u32) -> bool {
        self.spaces.iter().any(|space| space.number == number) || self.dropped.contains(&number)
    }

    pub(crate) fn find(&self, name: &str) -> Option<&Arc<Space>> {
        self.spaces.iter().find(|space| space.name == name)
    }

    /// A keyspace that there is not yet, with the lowest number that is free and was not given
    /// since the list was read.
    ///
    /// # Errors
    /// Damage hides which numbers are free.
    pub(crate) fn new_space(&self, name: &str, key: Type, value: Type) -> Result<Space> {
        if self.is_partial {
            return Err(damaged());
        }
        let mut free = (UNNAMED + 1).max(self.next)..;
        let number = free.find(|number| !self.has(*number)).unwrap_or(u32::MAX);
        Ok(Space { name: name.to_owned(), number, key, value, is_gone: AtomicBool::new(false) })
    }

    /// No handle that was given out is good any more.
    pub(crate) fn forget(&self) {
        for space in &self.spaces {
            space.is_gone.store(true, Ordering::Relaxed);
        }
    }
}

impl Space {
    /// Its entry in the catalog.
    pub(crate) fn entry(&self) -> (Vec<u8>, Vec<u8>) {
        let mut value = self.number.to_le_bytes().to_vec();
        self.key.pack(&mut value);
        self.value.pack(&mut value);
        ([&[CATALOG, NAMED], self.name.as_bytes()].concat(), value)
    }
}

/// Deletes some entries of the first keyspace that was dropped, or forgets it when there are none
/// left.
pub(crate) fn free_some(
    index: &mut dyn Index,
    snapshots: &mut Snapshots,
    catalog: &mut Catalog,
) -> Result<()> {
    let Some(&number) = catalog.dropped.first() else {
        return Ok(());
    };
    let scope = Scope::numbered(number, &Type::Bytes, &Type::Bytes);
    let (from, to) = scope.bounds(KeyRange::ALL)?;
    let (from, to) = (from.as_ref().map(Vec::as_slice), to.as_ref().map(Vec::as_slice));
    let mut keys = Vec::new();
    let mut cursor = index.range(KeyRange { from, to, direction: Direction::Ascending })?;
    while keys.len() < STEP {
        let Some((key, _)) = cursor.next()? else { break };
        keys.push(key.to_vec());
    }
    drop(cursor);
    if keys.is_empty() {
        catalog.dropped.remove(0);
        catalog.next = catalog.next.max(number.saturating_add(1));
        return Ok(());
    }
    let deletes: Vec<_> = keys.iter().map(|key| Update::Delete { key }).collect();
    Ok(snapshots.update(index, &deletes)?)
}

fn damaged() -> Error {
    Error::NotADatabase {
        path: None,
        is_ours: true,
        what: "its list of keyspaces is damaged".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicBool;

    use super::{Catalog, Space};
    use crate::encoding::Type;
    use crate::{Database, Options};

    #[test]
    fn what_has_no_name_was_dropped_and_damage_to_it_hides_no_name() {
        let folder = tempfile::tempdir().unwrap();
        let database = Database::create(folder.path().join("raw.db"), &Options::new()).unwrap();
        let read = || Catalog::read(&mut *database.core.lock().unwrap().index).unwrap();
        let (name, is_gone) = ("kept".to_owned(), AtomicBool::new(false));
        let space = Space { name, number: 2, key: Type::Bytes, value: Type::Bytes, is_gone };
        let (key, value) = space.entry();
        database.put(key, value).unwrap();
        database.put([2, 7], "of the keyspace").unwrap();
        database.put([3, 7], "of one that was dropped").unwrap();
        let catalog = read();
        assert_eq!(catalog.dropped, [3]);
        assert_eq!(catalog.new_space("new", Type::Bytes, Type::Bytes).unwrap().number, 4);
        // A number of five bytes that has one: it would be found again and again.
        database.put([240, 0, 0, 0, 3, 7], "of nobody").unwrap();
        let catalog = read();
        assert!(catalog.find("kept").is_some());
        assert!(catalog.new_space("new", Type::Bytes, Type::Bytes).is_err());
    }
}
