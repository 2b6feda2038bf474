//! Where reading goes on behind damaged units.

use device::Cause;
use index::{Result, Resume};
use store::runs::{FileSpace, Kind, Run, Unit, UnitReader};

use super::{Levels, WRONG};

/// The units of one run, some of which may be damaged.
struct Units<'t, 'd> {
    space: &'t mut FileSpace<'d>,
    reader: &'t mut UnitReader,
    run: &'t Run,
}

impl Units<'_, '_> {
    /// What is in unit `at`, unless that is damaged.
    fn read(&mut self, at: u32) -> Result<Option<Unit<'_>>> {
        match self.reader.unit(self.space, self.run, at, Cause::Lookup) {
            Ok((_, unit)) => Ok(Some(unit)),
            Err(error) if error.is_damage() => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// The last unit that can be read and begins at or below `key`; the first unit if none does.
    fn place(&mut self, key: &[u8]) -> Result<u32> {
        let (mut low, mut high) = (0, self.run.units);
        while high - low > 1 {
            let middle = low + (high - low) / 2;
            let mut below = None;
            for at in middle..high {
                if let Some(unit) = self.read(at)? {
                    below = (!unit.is_empty() && unit.entry(0).key <= key).then_some(at);
                    break;
                }
            }
            match below {
                Some(at) => low = at,
                None => high = middle,
            }
        }
        Ok(low)
    }

    /// Where reading goes on if what comes behind `key` is damaged.
    fn behind_damage(&mut self, key: Option<&[u8]>) -> Result<Option<Resume>> {
        let mut is_damaged = false;
        for at in key.map_or(Ok(0), |key| self.place(key))?..self.run.units {
            let Some(unit) = self.read(at)? else {
                is_damaged = true;
                continue;
            };
            // The fence that a unit begins with may have a key of the units before.
            let places = key.map_or(0, |key| unit.upper(key))..unit.len();
            let mut entries = places.map(|place| unit.entry(place));
            if let Some(next) = entries.find(|entry| entry.kind != Kind::InnerFence) {
                return Ok(is_damaged.then(|| Resume::From(next.key.to_vec())));
            }
        }
        Ok(is_damaged.then_some(Resume::End))
    }
}

impl Levels<'_> {
    /// Where all runs can be read again that can't be read behind `key`. Of a damaged head nothing
    /// is known: a run may have what the head deletes.
    pub(super) fn behind_damage(&mut self, key: Option<&[u8]>) -> Result<Resume> {
        let mut farthest = Resume::Unknown;
        for component in &self.components {
            let run = self.manifest.run(component.run).ok_or(WRONG)?;
            let (space, reader) = (&mut self.store.file, &mut self.reader);
            let found = Units { space, reader, run }.behind_damage(key)?;
            farthest = match (farthest, found) {
                (Resume::From(one), Some(Resume::From(other))) => Resume::From(one.max(other)),
                (Resume::Unknown, Some(found)) | (_, Some(found @ Resume::End)) => found,
                (farthest, _) => farthest,
            };
        }
        Ok(farthest)
    }
}
