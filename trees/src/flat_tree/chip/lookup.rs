//! Lookups: what waits in memory, then the fragments from the newest to the oldest, then the
//! bottom. And where reading can go on behind damage.

use alloc::vec::Vec;

use index::{Error, Result, Resume, read_piece};
use store::runs::{Kind, Which};

use super::super::filter;
use super::ChipTree;
use super::read::{Buffers, Where, read_unit, search};
use super::run::view_at;
use super::{fences, keys};

impl ChipTree<'_> {
    /// Reads the value of `key` from byte `offset` on; returns its whole length.
    pub(super) fn look_up(
        &mut self,
        key: &[u8],
        (offset, into): (u32, &mut [u8]),
    ) -> Result<Option<u32>> {
        if let Some((kind, value)) = self.memtable.get(Which::Active, key) {
            return Ok((kind == Kind::Put).then(|| read_piece(value, offset, into)));
        }
        self.policy.mix.note_lookup();
        let at = self.directory.find(key);
        let scale = self.directory.scale(at);
        let mut start = 0;
        loop {
            self.warm(at, start)?;
            let Some(part) = self.directory.parts.get_mut(at) else {
                return Ok(None);
            };
            let Some(view) = view_at(&part.runs, start) else {
                return Ok(None);
            };
            start = view.end;
            if !view.may_have(key) {
                continue;
            }
            let run = (&view, self.shape);
            let found = search(
                &mut self.storage,
                run,
                (key, &part.low, scale),
                &mut self.buffers,
                |kind, value| (kind == Kind::Put).then(|| read_piece(value, offset, into)),
            )?;
            if let Some(found) = found {
                return Ok(found);
            }
            if !view.run.is_bottom {
                part.paid = part.paid.saturating_add(1);
                self.pay(at);
            }
        }
    }

    /// A fragment of a partition was read in vain.
    fn pay(&mut self, at: usize) {
        if self.due.is_none() && self.directory.parts.get(at).is_some_and(|it| self.has_paid(it)) {
            self.due = Some(at);
        }
    }

    /// Makes the tables of the run that begins at `start` of the list of a partition, if it has
    /// none and there is memory for them. What can't be read for that is no error: it is not what
    /// is asked for.
    fn warm(&mut self, at: usize, start: usize) -> Result<()> {
        let filter_bits = self.policy.filter_bits();
        let view = self.directory.parts.get(at).and_then(|it| view_at(&it.runs, start));
        let cold = view.filter(|view| !view.has_tables());
        let bytes = cold.map(|view| view.run.table_bytes(filter_bits));
        let Some(bytes) = bytes.filter(|bytes| self.has_memory(*bytes as u64)) else {
            return Ok(());
        };
        self.expect_tables(bytes as u64);
        let parts = &self.directory.parts;
        let Some(view) = parts.get(at).and_then(|it| view_at(&it.runs, start)) else {
            return Ok(());
        };
        let scale = self.directory.scale(at);
        let kept = view.run.kept;
        let low = parts.get(at).map(|part| &*part.low).unwrap_or_default();
        let form = view.run.units(self.shape)?;
        let Buffers { unit: into, short } = &mut self.buffers;
        let units = view.run.units;
        let mut tables = alloc::vec![0; bytes];
        let (fences, bits) = tables.split_at_mut(fences::bytes_of(units).min(bytes));
        for unit in 0..units {
            let (storage, run) = (&mut self.storage, (&view, &form));
            let held = match read_unit(storage, run, unit, into, Where::OnChip) {
                Ok(held) => held,
                Err(Error::Store(damage)) if damage.is_damage() => return Ok(()),
                Err(error) => return Err(error),
            };
            let mut note = |place: usize, visit: &mut dyn FnMut(&[u8])| {
                visit(keys::whole(held.entry(place).key, kept, (low, self.shape), short));
            };
            if !fences.is_empty() {
                note(0, &mut |key| fences::set(fences, units, unit, scale.fence(key)));
            }
            if !bits.is_empty() {
                (0..held.len()).for_each(|at| note(at, &mut |key| filter::add(bits, key)));
            }
        }
        if let Some(part) = self.directory.parts.get_mut(at) {
            let before = part.runs.capacity();
            part.replace(start, None, Some((filter_bits, &tables)));
            self.totals.memory += (part.runs.capacity() - before) as u64;
        }
        self.expect_tables(0);
        Ok(())
    }

    /// Where reading can go on behind the unit of each run that holds `key`, or would.
    pub(super) fn resume(&mut self, key: Option<&[u8]>) -> Result<Resume> {
        let at = key.map_or(0, |key| self.directory.find(key));
        let mut behind: Option<Vec<u8>> = self.directory.high(at).map(<[u8]>::to_vec);
        let scale = self.directory.scale(at);
        let mut start = 0;
        let parts = &self.directory.parts;
        let low = parts.get(at).map(|part| &*part.low).unwrap_or_default();
        while let Some(view) = parts.get(at).and_then(|part| view_at(&part.runs, start)) {
            start = view.end;
            let form = view.run.units(self.shape)?;
            let first = key.map_or(0, |key| view.plan(scale.fence(key)).start);
            for unit in first..view.run.units {
                let (storage, run) = (&mut self.storage, (&view, &form));
                let Buffers { unit: into, short } = &mut self.buffers;
                let next = match read_unit(storage, run, unit, into, Where::OnChip) {
                    Ok(held) => {
                        keys::whole(held.entry(0).key, view.run.kept, (low, self.shape), short)
                    }
                    Err(Error::Store(damage)) if damage.is_damage() => continue,
                    Err(error) => return Err(error),
                };
                let is_behind = match key {
                    Some(key) => next > key,
                    None => unit > 0,
                };
                if is_behind && behind.as_deref().is_none_or(|behind| next < behind) {
                    behind = Some(next.to_vec());
                }
                if is_behind {
                    break;
                }
            }
        }
        Ok(behind.map_or(Resume::End, Resume::From))
    }
}
