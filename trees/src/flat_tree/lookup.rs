//! Lookups: what waits in memory, then the fragments from the newest to the oldest, then the
//! bottom.

use alloc::vec::Vec;

use index::{Lookup, Result, read_piece};
use store::runs::{Memtable, Which};

use super::FlatTree;
use super::directory::{Directory, Fragment};
use super::policy::Due;
use super::runs::{Form, Held, Run, Runs};
use crate::btree::{At, NodeSource};
use device::Cause;

/// What a lookup found.
enum Found {
    /// A value of so many bytes.
    Present(u32),
    Deleted,
}

/// What lookups read: all of a tree but what it counts. So they can come in the midst of a merge,
/// whose old runs stay until it is done.
pub(super) struct Reader<'t, 'd> {
    pub(super) runs: &'t mut Runs<'d>,
    pub(super) directory: &'t mut Directory,
    pub(super) memtable: &'t Memtable,
    /// Bits of filters that are made where there are none; with 0 none is made.
    pub(super) filter_bits: u32,
    /// True once a filter was made.
    has_made: bool,
    /// The partition of which a fragment was read in vain.
    paid: Option<usize>,
}

impl<'t, 'd> Reader<'t, 'd> {
    pub(super) const fn new(
        runs: &'t mut Runs<'d>,
        directory: &'t mut Directory,
        memtable: &'t Memtable,
    ) -> Self {
        Reader { runs, directory, memtable, filter_bits: 0, has_made: false, paid: None }
    }

    /// Reads the value of `key` from byte `offset` on; returns its whole length.
    fn look_up(&mut self, key: &[u8], (offset, into): (u32, &mut [u8])) -> Result<Option<u32>> {
        self.runs.forms.check_key(key)?;
        if let Some(waiting) = self.memtable.get(Which::Active, key) {
            return match Held::waiting(waiting) {
                Held::Value(value) => Ok(Some(read_piece(value, offset, into))),
                Held::Deleted => Ok(None),
                Held::Long(long) => {
                    self.runs.store.read_long(long, offset, into)?;
                    Ok(Some(long.bytes()))
                }
            };
        }
        let at = self.directory.find(key);
        for place in (0..self.fragments_of(at)).rev() {
            let Some(run) = self.may_have(at, place, key)? else {
                continue;
            };
            match self.search((Form::Fragment, run), key, (offset, &mut *into))? {
                Some(Found::Present(bytes)) => return Ok(Some(bytes)),
                Some(Found::Deleted) => return Ok(None),
                None => self.pay(at),
            }
        }
        let Some(bottom) = self.directory.partitions.get(at).and_then(|it| it.bottom) else {
            return Ok(None);
        };
        match self.search((Form::Bottom, bottom), key, (offset, into))? {
            Some(Found::Present(bytes)) => Ok(Some(bytes)),
            Some(Found::Deleted) | None => Ok(None),
        }
    }

    /// Brings the pages of the runs that lookups will read first.
    fn prefetch_runs(&mut self, keys: &[&[u8]]) -> Result<()> {
        let (mut fragments, mut bottoms) = (Vec::new(), Vec::new());
        for &key in keys {
            if self.memtable.get(Which::Active, key).is_some() {
                continue;
            }
            let at = self.directory.find(key);
            let Some(partition) = self.directory.partitions.get(at) else { continue };
            // A filter that is still to be made costs a reading of its whole fragment.
            let may_have = |it: &&Fragment| it.filter.as_ref().is_none_or(|it| it.may_have(key));
            match (partition.fragments.iter().rev().find(may_have), partition.bottom) {
                (Some(fragment), _) => fragments.push((fragment.run.root, key)),
                (None, Some(bottom)) => bottoms.push((bottom.root, key)),
                (None, None) => {}
            }
        }
        self.runs.choose(Form::Fragment).prefetch(fragments)?;
        self.runs.choose(Form::Bottom).prefetch(bottoms)
    }

    fn fragments_of(&self, at: usize) -> usize {
        self.directory.partitions.get(at).map_or(0, |partition| partition.fragments.len())
    }

    /// The fragment at `place` of a partition, if it may have `key`. Its filter is made if there is
    /// none; what can't be read for that is no error: it is not what is asked for.
    fn may_have(&mut self, at: usize, place: usize, key: &[u8]) -> Result<Option<Run>> {
        let partition = self.directory.partitions.get_mut(at);
        let fragment = partition.and_then(|it| it.fragments.get_mut(place));
        let Some(Fragment { run, filter }) = fragment else {
            return Ok(None);
        };
        if filter.is_none() && self.filter_bits > 0 {
            match self.runs.filter_of(*run, self.filter_bits) {
                Ok(made) => {
                    *filter = Some(made);
                    self.has_made = true;
                }
                Err(index::Error::Store(damage)) if damage.is_damage() => {}
                Err(error) => return Err(error),
            }
        }
        let may_have = filter.as_ref().is_none_or(|filter| filter.may_have(key));
        Ok(may_have.then_some(*run))
    }

    /// A fragment of a partition was read in vain.
    fn pay(&mut self, at: usize) {
        if let Some(partition) = self.directory.partitions.get_mut(at) {
            partition.paid = partition.paid.saturating_add(1);
            self.paid = Some(at);
        }
    }

    /// Searches a run for `key`, and reads its value.
    fn search(
        &mut self,
        (form, run): (Form, Run),
        key: &[u8],
        (offset, into): (u32, &mut [u8]),
    ) -> Result<Option<Found>> {
        let store = self.runs.choose(form);
        let mut at = run.root;
        while at.level > 0 {
            let node = store.node(at, Cause::Lookup)?;
            if node.count() == 0 {
                return Err(store.damaged(at.id, "it has no children"));
            }
            at = At { id: node.child(node.search_child(key)), level: at.level - 1 };
        }
        let node = store.node(at, Cause::Lookup)?;
        let Ok(place) = node.search(key) else {
            return Ok(None);
        };
        let long = match Held::of(form, node.value(place)) {
            Held::Value(value) => {
                return Ok(Some(Found::Present(read_piece(value, offset, into))));
            }
            Held::Deleted => return Ok(Some(Found::Deleted)),
            Held::Long(long) => long,
        };
        store.read_long(long, offset, into)?;
        Ok(Some(Found::Present(long.bytes())))
    }
}

impl Lookup for Reader<'_, '_> {
    fn get(&mut self, key: &[u8], offset: u32, into: &mut [u8]) -> Result<Option<u32>> {
        self.look_up(key, (offset, into))
    }

    fn prefetch(&mut self, keys: &[&[u8]]) -> Result<()> {
        self.prefetch_runs(keys)
    }
}

impl FlatTree<'_> {
    /// Reads the value of `key` from byte `offset` on; returns its whole length.
    pub(super) fn look_up(&mut self, key: &[u8], piece: (u32, &mut [u8])) -> Result<Option<u32>> {
        let FlatTree { runs, directory, memtable, filter_bits, .. } = self;
        let mut reader = Reader::new(runs, directory, memtable);
        reader.filter_bits = *filter_bits;
        let found = reader.look_up(key, piece);
        let Reader { has_made, paid, .. } = reader;
        if has_made {
            self.recount();
        }
        let paid = paid.filter(|at| self.directory.partitions.get(*at).is_some_and(Self::has_paid));
        self.due = self.due.or(paid.map(Due::pressing));
        found
    }

    /// Brings the pages of the runs that lookups will read first.
    pub(super) fn prefetch_runs(&mut self, keys: &[&[u8]]) -> Result<()> {
        let FlatTree { runs, directory, memtable, .. } = self;
        Reader::new(runs, directory, memtable).prefetch_runs(keys)
    }
}
