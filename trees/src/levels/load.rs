//! Loading sorted entries: the last level, and the runs of fences above it, written once.

use alloc::vec::Vec;

use device::Cause;
use index::{Cursor, Error, Result, Tree, Value, read_piece_of};
use store::runs::{Entry, Kinds, RunWriter};

use super::cascade::{Above, abandon, finish_fences, give_up};
use super::{Component, Levels};

impl Levels<'_> {
    /// Fills the empty tree; what found no room is left out, and told.
    pub(super) fn load_sorted(&mut self, sorted: &mut dyn Cursor) -> Result<u64> {
        if self.heads().any(|head| head.btree.entries > 0) || !self.components.is_empty() {
            self.settle_for_load()?;
        }
        // What is loaded takes half of the pages at most, so that the next merge has room.
        let most = u64::from(self.plan.choices.pages).saturating_sub(self.room_pinned());
        let longest = (self.plan.longest.0 as u64, self.plan.longest.1 as u64);
        let known = core::mem::replace(&mut self.longest, longest);
        let begun = self.begin_load(most);
        self.longest = known;
        let (mut writer, mut above) = begun?;
        let mut state = Loading::default();
        let mut loaded = Ok(());
        while loaded.is_ok() {
            loaded = match self.load_next(sorted, &mut state, (&mut writer, &mut above)) {
                Ok(true) => Ok(()),
                Ok(false) => break,
                Err(error) => Err(error),
            };
        }
        let ended = self.end_load(writer, above);
        loaded?;
        ended?;
        Ok(state.count)
    }

    fn room_pinned(&self) -> u64 {
        self.manifest.pages().1
    }

    /// Nothing may be in it; deletes may.
    fn settle_for_load(&mut self) -> Result<()> {
        let mut all = self.scan(index::KeyRange::ALL)?;
        let is_empty = all.next()?.is_none();
        drop(all);
        if !is_empty {
            return Err(Error::NotEmpty);
        }
        if !Tree::drain(self)? {
            return Err(store::Error::Full { pages: self.plan.choices.pages.into() }.into());
        }
        Ok(())
    }

    /// Begins what may take `pages` pages at most.
    fn begin_load(&mut self, pages: u64) -> Result<(RunWriter, Vec<RunWriter>)> {
        let bytes = self.plan.buffer_bytes(1, self.plan.stack + 1);
        let mut units = pages / 2;
        while units > 1 && self.plan.pages_with_fences(units, self.longest) > pages {
            units -= units / 8 + 1;
        }
        let above = self.fence_writers(units, Cause::Load)?;
        match self.writer((Kinds::Puts, Cause::Load), units, bytes) {
            Ok(writer) => Ok((writer, above)),
            Err(error) => {
                abandon(&mut self.store.file, above)?;
                Err(error)
            }
        }
    }

    /// Loads one entry; false at the end.
    fn load_next(
        &mut self,
        sorted: &mut dyn Cursor,
        state: &mut Loading,
        (writer, above): (&mut RunWriter, &mut Vec<RunWriter>),
    ) -> Result<bool> {
        let Some((key, value)) = sorted.next()? else {
            return Ok(false);
        };
        let bytes = value.len();
        self.check_entry(key, bytes as usize)?;
        if state.count > 0 && key <= state.last.as_slice() {
            return Err(Error::NotSorted { position: state.count });
        }
        state.last.clear();
        state.last.extend_from_slice(key);
        if let Value::Inline(value) = value {
            state.value.clear();
            state.value.extend_from_slice(value);
        } else {
            state.value.resize(bytes as usize, 0);
            read_piece_of(sorted, bytes, 0, &mut state.value)?;
        }
        let entry = state.last.len() + state.value.len();
        self.note_longest(state.last.len(), entry);
        let (entries, bytes) = (state.count + 1, state.bytes + entry as u64);
        if !self.has_room_for((entries, bytes)) {
            return Err(store::Error::Full { pages: self.plan.choices.pages.into() }.into());
        }
        let put = Entry::put(&state.last, &state.value);
        writer.push(&mut self.store.file, &put, &mut Above(above))?;
        (state.count, state.bytes) = (entries, bytes);
        Ok(true)
    }

    /// What was loaded is the last level.
    fn end_load(&mut self, writer: RunWriter, above: Vec<RunWriter>) -> Result<()> {
        let space = &mut self.store.file;
        if writer.entries() == 0 {
            writer.abandon(space)?;
            return abandon(space, above);
        }
        let run = match writer.finish(space) {
            Ok((run, _)) => run,
            Err(error) => {
                abandon(space, above)?;
                return Err(error.into());
            }
        };
        let stack = match finish_fences(space, above, run.units) {
            Ok(stack) => stack,
            Err(error) => {
                give_up(space, &[run])?;
                return Err(error);
            }
        };
        let units = u64::from(run.units);
        let level = (1..63).find(|level| self.plan.capacity(*level) >= units).unwrap_or(63);
        let ids = stack.iter().map(|run| run.id).collect();
        self.components = alloc::vec![Component { level, run: run.id, stack: ids }];
        let mut born = alloc::vec![run];
        born.extend(stack);
        self.manifest.change(&mut self.store.file, born, &[])?;
        if self.durability() == store::Durability::None {
            self.manifest.checkpointed(&mut self.store.file)?;
        }
        self.count_merge();
        Ok(())
    }
}

/// What a load has so far.
#[derive(Default)]
struct Loading {
    last: Vec<u8>,
    value: Vec<u8>,
    count: u64,
    bytes: u64,
}
