//! The entries of a buffer on their way down, in the order of their keys: sorted in memory, and
//! where they do not fit, the oldest first and then the next ones.
//!
//! Memory holds one buffer: who takes the entries of another puts those on its way back before.
//!
//! Invariant: the entry on its way is a copy. It stays while the buffers and the nodes that it goes
//! to change. Its key lies in the bounds of the node whose buffer it left.

use alloc::vec::Vec;

use device::{Cause, Page};
use store::node::Stored;

use super::bare_tree::Bounds;
use super::buffers::{Buffers, Chain};
use super::layout::damaged;
use super::sorter::Sorter;
use super::storage::Storage;
use super::stream::Pending;
use index::Result;

/// The entry that is next.
#[derive(Clone, Debug)]
pub(super) struct Entry {
    pub(super) key: Vec<u8>,
    pub(super) value: Vec<u8>,
    pub(super) is_delete: bool,
    /// True if the value tells where the entry's long value stands.
    pub(super) is_long: bool,
}

impl Entry {
    fn take(&mut self, entry: &Pending<'_>) {
        self.key.clear();
        self.key.extend_from_slice(entry.key);
        self.value.clear();
        self.value.extend_from_slice(entry.value.unwrap_or_default());
        (self.is_delete, self.is_long) = (entry.value.is_none(), false);
    }

    /// The entry, as it stands in a buffer.
    pub(super) fn pending(&self) -> Pending<'_> {
        let value = (!self.is_delete).then_some(self.value.as_slice());
        Pending { key: &self.key, value }
    }

    /// The value, as it stands in a leaf.
    pub(super) fn stored(&self) -> Stored<'_> {
        match self.value.first_chunk() {
            Some(long) if self.is_long => Stored::long(long),
            _ => Stored::inline(&self.value),
        }
    }
}

/// What is going down, and the entry of it that is next.
#[derive(Debug)]
pub(super) struct Emptying {
    pub(super) sorter: Sorter,
    pub(super) entry: Entry,
    /// True if one entry is all there is: it comes from no buffer.
    is_single: bool,
    /// Sorted entries that went down.
    place: usize,
    /// Of a buffer that does not fit memory, what is newer than all that is there.
    newer: Option<Chain>,
    /// All keys lie in these.
    bounds: Bounds,
}

impl Emptying {
    pub(super) fn new(sorter: Sorter, entry_most: usize) -> Self {
        let bytes = || Vec::with_capacity(entry_most);
        Emptying {
            sorter,
            entry: Entry { key: bytes(), value: bytes(), is_delete: false, is_long: false },
            is_single: false,
            place: 0,
            newer: None,
            bounds: Bounds::with_capacity(entry_most),
        }
    }

    /// Makes the entries of buffer `number`, of a node with these bounds, those that go down, and
    /// the buffer empty. False if they do not fit memory, and go down in parts.
    pub(super) fn take_off(
        &mut self,
        log: &mut Storage<'_>,
        buffers: &mut Buffers,
        (number, bounds): (u32, &Bounds),
        cause: Cause,
    ) -> Result<bool> {
        self.sorter.clear();
        self.bounds.copy_from(bounds);
        let fits = buffers.record(number).bytes as usize <= self.sorter.bytes();
        if !fits {
            buffers.evict(log, number, cause)?;
        }
        buffers.load_held(number, &mut self.sorter)?;
        self.load(log, buffers, (Chain::of(&buffers.record(number)), fits), cause)?;
        buffers.begin_anew(log, number)?;
        Ok(fits)
    }

    /// Loads a chain, or its oldest part if it does not fit.
    fn load(
        &mut self,
        log: &mut Storage<'_>,
        buffers: &mut Buffers,
        (mut chain, fits): (Chain, bool),
        cause: Cause,
    ) -> Result<()> {
        buffers.load_chain(log, &mut chain, (&mut self.sorter, fits), cause)?;
        self.newer = Some(chain).filter(|chain| chain.newest().is_some());
        self.sorter.sort();
        (self.is_single, self.place) = (false, 0);
        Ok(())
    }

    /// Makes one entry all that goes down.
    pub(super) fn take_single(&mut self, entry: &Pending<'_>, is_long: bool) {
        self.sorter.clear();
        self.entry.take(entry);
        self.entry.is_long = is_long;
        (self.is_single, self.place, self.newer) = (true, 0, None);
    }

    /// The entry that is all there is, if so it is, to go on with it later.
    pub(super) fn single(&self) -> Option<Entry> {
        self.is_single.then(|| self.entry.clone())
    }

    /// Goes on with the entry that is all there is.
    pub(super) fn resume(&mut self, single: Entry) {
        self.entry = single;
        (self.is_single, self.place, self.newer) = (true, 1, None);
    }

    /// Goes on to the next entry that goes down; false after the last.
    pub(super) fn next(
        &mut self,
        log: &mut Storage<'_>,
        buffers: &mut Buffers,
        cause: Cause,
    ) -> Result<bool> {
        if self.is_single {
            self.place += 1;
            return Ok(self.place == 1);
        }
        loop {
            let Some(entry) = self.sorter.get(self.place) else {
                let Some(chain) = self.newer.take() else {
                    return Ok(false);
                };
                self.sorter.clear();
                self.load(log, buffers, (chain, false), cause)?;
                continue;
            };
            self.entry.take(&entry);
            self.place += 1;
            if !self.bounds.contains(&self.entry.key) {
                return Err(damaged(Page(0), "a buffer has entries of another node"));
            }
            return Ok(true);
        }
    }

    /// The entry that comes `ahead` places behind the one that is next.
    pub(super) fn peek(&self, ahead: usize) -> Option<Pending<'_>> {
        (self.place + ahead).checked_sub(1).and_then(|place| self.sorter.get(place))
    }
}

#[cfg(test)]
mod tests;
