//! A tree of the suite's own: two piles of entries in memory, and all of both in its root record.
//!
//! It is what a tree of sorted runs asks of `Durable`, without the runs: its demand is bytes, and
//! it makes changes of its own, when it likes, which a replay can only know from deltas. Updates go
//! to the upper pile; after some lookups those with one first byte go down to the lower one.

use core::fmt::Display;
use core::ops::Bound;
use std::collections::BTreeMap;

use device::Meter;
use index::{
    Cursor, Direction, Error, KeyRange, KeyValue, Read, Result, Statistics, Tree, Update, Value,
    read_piece,
};
use store::{Recovery, Reservation};

/// The figure that tells how often something went down.
pub(crate) const MERGES: &str = "merges";

/// Bytes of entries that find room, and how many of these are kept.
pub(crate) const CAPACITY: u64 = 2000;
const RESERVE: u64 = 200;

/// Bytes of the longest root record.
pub(crate) const ROOT_BYTES_MOST: u64 = 4 * CAPACITY;

/// Something goes down with the next update after so many lookups.
const LOOKUPS: u32 = 3;

/// First bytes of keys.
pub(crate) const GROUPS: u8 = 4;

type Upper = BTreeMap<Vec<u8>, Option<Vec<u8>>>;
type Lower = BTreeMap<Vec<u8>, Vec<u8>>;

pub(crate) struct Piles<'d> {
    recovery: Box<dyn Recovery + 'd>,
    upper: Upper,
    lower: Lower,
    merges: u64,
    lookups: u32,
    room: Reservation,
}

impl<'d> Piles<'d> {
    pub(crate) fn over(recovery: Box<dyn Recovery + 'd>) -> Self {
        let (upper, lower) = (Upper::new(), Lower::new());
        let room = Reservation::default();
        let mut piles = Piles { recovery, upper, lower, merges: 0, lookups: 0, room };
        piles.rebase();
        piles
    }

    fn bytes(&self) -> (u64, u64) {
        let upper =
            self.upper.iter().map(|(key, value)| key.len() + value.as_ref().map_or(0, Vec::len));
        let lower = self.lower.iter().map(|(key, value)| key.len() + value.len());
        (lower.sum::<usize>() as u64, upper.sum::<usize>() as u64)
    }

    /// What it holds.
    fn entries(&self) -> Lower {
        let mut entries = self.lower.clone();
        for (key, value) in &self.upper {
            put(&mut entries, key, value.as_deref());
        }
        entries
    }

    /// Lets the entries of the upper pile go down that begin with `group`.
    fn merge(&mut self, group: u8) {
        let (down, up) = core::mem::take(&mut self.upper)
            .into_iter()
            .partition::<Upper, _>(|(key, _)| key.first() == Some(&group));
        self.upper = up;
        for (key, value) in down {
            put(&mut self.lower, &key, value.as_deref());
        }
        self.merges += 1;
    }

    /// Lets some entries go down if it is time for that, and if that can be recorded.
    fn merge_some(&mut self) -> Result<()> {
        if self.lookups < LOOKUPS {
            return Ok(());
        }
        let group = (self.merges % u64::from(GROUPS)) as u8;
        let delta = [&self.merges.to_le_bytes()[..], &[group]].concat();
        if self.recovery.delta(&delta)? {
            self.lookups = 0;
            self.merge(group);
        }
        Ok(())
    }
}

fn put(entries: &mut Lower, key: &[u8], value: Option<&[u8]>) {
    match value {
        Some(value) => drop(entries.insert(key.to_vec(), value.to_vec())),
        None => drop(entries.remove(key)),
    }
}

impl Read for Piles<'_> {
    fn get(&mut self, key: &[u8], offset: u32, into: &mut [u8]) -> Result<Option<u32>> {
        self.lookups += 1;
        let upper = self.upper.get(key).map(Option::as_deref);
        let found = upper.unwrap_or_else(|| self.lower.get(key).map(Vec::as_slice));
        Ok(found.map(|value| read_piece(value, offset, into)))
    }

    fn range<'c>(&'c mut self, range: KeyRange<'_>) -> Result<Box<dyn Cursor + 'c>> {
        let bounds: (Bound<&[u8]>, Bound<&[u8]>) = (range.from, range.to);
        let entries = self.entries();
        let mut entries: Vec<_> =
            entries.range::<[u8], _>(bounds).map(|(k, v)| (k.clone(), v.clone())).collect();
        if range.direction == Direction::Ascending {
            entries.reverse();
        }
        Ok(Box::new(Copies { entries, last: None }))
    }

    fn check(&mut self, _: &mut dyn FnMut(&dyn Display)) -> Result<()> {
        Ok(())
    }

    fn statistics(&self) -> Statistics {
        Statistics::default()
    }

    fn metrics(&self, tell: &mut dyn FnMut(&'static str, u64)) {
        tell(MERGES, self.merges);
    }

    fn meter(&self) -> Option<&Meter> {
        None
    }
}

/// Entries that are still to come, the next one last.
struct Copies {
    entries: Vec<(Vec<u8>, Vec<u8>)>,
    last: Option<(Vec<u8>, Vec<u8>)>,
}

impl Cursor for Copies {
    fn next(&mut self) -> Result<Option<KeyValue<'_>>> {
        self.last = self.entries.pop();
        Ok(self.last.as_ref().map(|(key, value)| (key.as_slice(), Value::Inline(value))))
    }

    fn read_value(&mut self, offset: u32, into: &mut [u8]) -> Result<u32> {
        let (_, value) = self.last.as_ref().ok_or(Error::NoEntry)?;
        Ok(read_piece(value, offset, into))
    }
}

impl Tree for Piles<'_> {
    fn admit(&mut self, batch: &[Update<'_>]) -> Result<()> {
        let bytes = |update: &Update<'_>| match update {
            Update::Put { key, value } => (key.len() + value.len()) as u64,
            Update::Delete { .. } | Update::PutStored { .. } => 0,
        };
        match self.room.take(batch.iter().map(bytes).sum()) {
            true => Ok(()),
            false => Err(store::Error::Full { pages: 0 }.into()),
        }
    }

    fn apply(&mut self, update: &Update<'_>) -> Result<()> {
        match update {
            Update::Put { key, value } => self.upper.insert(key.to_vec(), Some(value.to_vec())),
            Update::Delete { key } => self.upper.insert(key.to_vec(), None),
            Update::PutStored { .. } => return Err(store::Error::AdoptedTwice.into()),
        };
        self.merge_some()
    }

    fn apply_delta(&mut self, delta: &[u8]) -> Result<()> {
        let damaged = store::Error::NotAnIndex { is_ours: true, what: "a merge is missing" };
        let (number, group) = delta.split_first_chunk().ok_or(damaged)?;
        match (u64::from_le_bytes(*number), group) {
            // The root record has it.
            (number, _) if number < self.merges => Ok(()),
            (number, [group]) if number == self.merges => {
                self.merge(*group);
                Ok(())
            }
            _ => Err(damaged.into()),
        }
    }

    fn delta_bytes_most(&self) -> usize {
        9
    }

    fn rebase(&mut self) {
        let (live, pending) = self.bytes();
        self.room = Reservation::of_bytes(CAPACITY, (live, pending, RESERVE));
    }

    fn is_poisoned(&self) -> bool {
        false
    }

    fn load(&mut self, sorted: &mut dyn Cursor, _: u8) -> Result<u64> {
        while let Some((key, value)) = sorted.next()? {
            self.lower.insert(key.to_vec(), value.whole().unwrap_or_default().to_vec());
        }
        Ok(self.lower.len() as u64)
    }

    fn root_record(&mut self) -> Result<Vec<u8>> {
        let mut root = self.merges.to_le_bytes().to_vec();
        let upper = self.upper.iter().map(|(key, value)| (key, 1, value.as_ref()));
        let lower = self.lower.iter().map(|(key, value)| (key, 0, Some(value)));
        for (key, pile, value) in upper.chain(lower) {
            root.extend([pile, u8::from(value.is_some()), key.len() as u8]);
            root.push(value.map_or(0, Vec::len) as u8);
            root.extend(key);
            root.extend(value.into_iter().flatten());
        }
        Ok(root)
    }

    fn restore(&mut self, root: &[u8]) -> Result<()> {
        let damaged = store::Error::NotAnIndex { is_ours: true, what: "its piles are damaged" };
        let (merges, mut rest) = root.split_first_chunk().ok_or(damaged)?;
        self.merges = u64::from_le_bytes(*merges);
        (self.upper, self.lower) = (Upper::new(), Lower::new());
        while let Some(([pile, is_put, key, value], behind)) = rest.split_first_chunk() {
            let (key, behind) = behind.split_at_checked(usize::from(*key)).ok_or(damaged)?;
            let (value, behind) = behind.split_at_checked(usize::from(*value)).ok_or(damaged)?;
            match pile {
                0 => drop(self.lower.insert(key.to_vec(), value.to_vec())),
                _ => drop(self.upper.insert(key.to_vec(), (*is_put > 0).then(|| value.to_vec()))),
            }
            rest = behind;
        }
        self.rebase();
        Ok(())
    }

    fn entry_bytes_most(&self) -> usize {
        64
    }

    fn pages_changed(&self, _: &[Update<'_>]) -> u32 {
        0
    }

    fn checkpoints_within(&self) -> bool {
        true
    }

    fn recovery(&self) -> &dyn Recovery {
        &*self.recovery
    }

    fn recovery_mut(&mut self) -> &mut dyn Recovery {
        &mut *self.recovery
    }
}
