//! Lookups: what waits in memory, then the fragments from the newest to the oldest, then the
//! bottom.

use alloc::vec::Vec;

use index::{Result, read_piece};
use store::runs::Which;

use super::FlatTree;
use super::directory::Fragment;
use super::policy::Due;
use super::runs::{Form, Held, Run};
use crate::btree::{At, NodeSource};
use device::Cause;

/// What a lookup found.
enum Found {
    /// A value of so many bytes.
    Present(u32),
    Deleted,
}

impl FlatTree<'_> {
    /// Reads the value of `key` from byte `offset` on; returns its whole length.
    pub(super) fn look_up(
        &mut self,
        key: &[u8],
        (offset, into): (u32, &mut [u8]),
    ) -> Result<Option<u32>> {
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
    pub(super) fn prefetch_runs(&mut self, keys: &[&[u8]]) -> Result<()> {
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
        let run = *run;
        if filter.is_none() {
            match self.runs.filter_of(run, self.filter_bits) {
                Ok(made) => {
                    *filter = Some(made);
                    self.recount();
                    return self.may_have(at, place, key);
                }
                Err(index::Error::Store(damage)) if damage.is_damage() => return Ok(Some(run)),
                Err(error) => return Err(error),
            }
        }
        let may_have = filter.as_ref().is_none_or(|filter| filter.may_have(key));
        Ok(may_have.then_some(run))
    }

    /// A fragment of a partition was read in vain.
    fn pay(&mut self, at: usize) {
        if let Some(partition) = self.directory.partitions.get_mut(at) {
            partition.paid = partition.paid.saturating_add(1);
            if self.due.is_none() && Self::has_paid(partition) {
                self.due = Some(Due::pressing(at));
            }
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
