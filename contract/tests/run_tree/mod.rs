//! A tree of the suite's own: a memtable, runs of it, and merges of these, in the smallest form.
//!
//! Updates go to memory. What is in it is frozen, becomes a run in steps, each update one, and a
//! delta names that; when there are too many runs they become one in the same way.

use core::fmt::Display;
use core::ops::Bound;

use device::{Cause, Meter};
use index::{
    Cursor, Direction, KeyRange, KeyValue, Read, Result, Statistics, Tree, Update, Value,
    read_piece,
};
use store::runs::{
    CursorOptions, Delta, Entry, Kind, Kinds, Manifest, Memtable, Merge, MergeOptions, Merged,
    NoHooks, Run, RunCursor, RunId, RunWriter, Source, Space, UnitReader, UnitShape, Way, Which,
    WriterOptions,
};
use store::{EntryShape, Recovery};

use room::Room;

mod room;

/// The figures that tell how many deltas there were, and how many pages of runs were freed.
pub(crate) const DELTAS: &str = "deltas";
pub(crate) const FREED: &str = "pages freed";

const SHAPE: EntryShape = EntryShape::fixed(2, 20);
const ENTRY_BYTES: u64 = 22;

/// Runs at which all become one.
const RUNS_MOST: usize = 3;

/// The part of the memory, in hundredths, at which it is frozen.
const FROZEN_AT: u32 = 40;

/// Bytes of the longest delta, and of the longest root record.
const DELTA_BYTES_MOST: usize = 800;
pub(crate) const ROOT_BYTES_MOST: u64 = 6000;

/// What the tree does wrong, if anything.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mistake {
    None,
    /// Room is used again before the delta that frees it is durable.
    FreedTooEarly,
}

/// A run that is being made.
struct Job {
    merge: Merge,
    cursors: Vec<RunCursor>,
    /// Where the frozen memory is read on.
    position: (usize, usize),
    dead: Vec<RunId>,
    is_done: bool,
}

pub(crate) struct RunTree<'d> {
    space: Box<dyn Space + 'd>,
    table: Memtable,
    manifest: Manifest,
    reader: UnitReader,
    job: Option<Job>,
    updates: u64,
    freed: u64,
    is_open: bool,
    mistake: Mistake,
}

impl<'d> RunTree<'d> {
    pub(crate) fn over(space: Box<dyn Space + 'd>, mistake: Mistake) -> Self {
        let reader = UnitReader::new(64, 8, (1, space.alignment()), 0);
        let table = Memtable::new(6000, SHAPE, 22).unwrap();
        let manifest = Manifest::new();
        let (updates, freed) = (0, 0);
        RunTree {
            space,
            table,
            manifest,
            reader,
            job: None,
            updates,
            freed,
            is_open: false,
            mistake,
        }
    }

    fn shape() -> UnitShape {
        UnitShape::new(64, SHAPE, Kinds::Deletes).unwrap()
    }

    /// Nothing more is replayed.
    fn end_replay(&mut self) -> Result<()> {
        if !self.is_open {
            self.is_open = true;
            self.space.end_claims()?;
        }
        Ok(())
    }

    /// Begins to make a run of `dead` ones, or, if there are none, of what is frozen.
    fn begin(&mut self, dead: Vec<RunId>) -> Result<()> {
        let runs: Vec<Run> =
            dead.iter().rev().filter_map(|id| self.manifest.run(*id).cloned()).collect();
        let entries =
            self.table.held(Which::Frozen).0 + runs.iter().map(|it| it.entries).sum::<u64>();
        let shape = Self::shape();
        let units = entries.div_ceil(shape.capacity(2, 20) as u64);
        let pages = RunWriter::pages_for(&*self.space, &shape, units, (2, 0)) as u32;
        let options = WriterOptions {
            id: self.manifest.number_run(),
            label: 0,
            shape,
            sequences: 0..=self.updates,
            request_bytes: 1024,
            pages,
            fence_step: 0,
            cause: Cause::Merge,
        };
        let reading = CursorOptions {
            window_bytes: 512,
            request_bytes: 512,
            record_bytes_most: 0,
            is_whole: true,
            cause: Cause::Merge,
        };
        let cursors = runs.iter().map(|run| RunCursor::new(run, reading, 1)).collect();
        let writer = RunWriter::new(&mut *self.space, options)?;
        let drops_deletes = !dead.is_empty();
        let merge = Merge::new(writer, MergeOptions { drops_deletes });
        self.job = Some(Job { merge, cursors, position: (0, 0), dead, is_done: false });
        Ok(())
    }

    /// Goes on with the run that is being made; `bytes` of it.
    fn step(&mut self, bytes: u64) -> Result<()> {
        let Some(job) = &mut self.job else {
            return Ok(());
        };
        if !job.is_done {
            let mut frozen = self.table.cursor(Which::Frozen, Default::default());
            frozen.resume(job.position);
            let mut sources: Vec<&mut dyn Source> = Vec::new();
            if job.dead.is_empty() {
                sources.push(&mut frozen);
            }
            sources.extend(job.cursors.iter_mut().map(|cursor| cursor as &mut dyn Source));
            job.is_done = job.merge.step(&mut *self.space, &mut sources, &mut NoHooks, bytes)?;
            job.position = frozen.position();
        }
        if job.is_done { self.publish() } else { Ok(()) }
    }

    /// Names the run that was made, if the journal has room for that.
    fn publish(&mut self) -> Result<()> {
        let Some(job) = self.job.take() else {
            return Ok(());
        };
        let (run, _) = job.merge.finish(&mut *self.space)?;
        let is_flush = job.dead.is_empty();
        let extents = run.extents.clone();
        let delta = Delta {
            born: vec![run],
            dead: job.dead,
            note: &[u8::from(is_flush)],
            ..Delta::default()
        };
        if !self.manifest.record(&mut *self.space, delta)? {
            // It is made anew after the next checkpoint.
            return Ok(self.space.free(&extents)?);
        }
        if is_flush {
            self.table.drain(Which::Frozen, None);
        }
        if self.mistake == Mistake::FreedTooEarly {
            self.freed += self.manifest.checkpointed(&mut *self.space)?;
        } else if self.updates.is_multiple_of(3) {
            self.freed += self.manifest.sync(&mut *self.space)?;
        }
        Ok(())
    }

    /// Begins what is due, and does a step of it.
    fn work(&mut self) -> Result<()> {
        let is_frozen = self.table.held(Which::Frozen).0 > 0;
        if self.job.is_none() {
            let runs: Vec<RunId> = self.manifest.runs().map(|run| run.id).collect();
            // Room that a merge gives back is asked for at once by what is frozen.
            if is_frozen {
                self.begin(if runs.len() >= RUNS_MOST { runs } else { Vec::new() })?;
            }
        }
        self.step(300)
    }

    /// Freezes what is in memory if it is time for that. A replay has to freeze it at the same
    /// update, and comes to a delta only behind a whole batch: so this is done between two.
    fn freeze(&mut self) -> Result<()> {
        let is_frozen = self.table.held(Which::Frozen).0 > 0;
        if !is_frozen && self.table.percent_used() >= FROZEN_AT {
            let delta = Delta { note: &[2], ..Delta::default() };
            if self.manifest.record(&mut *self.space, delta)? {
                let _ = self.table.freeze();
            }
        }
        Ok(())
    }

    /// All entries, by a merge of everything.
    fn entries(&mut self, way: Way) -> Result<Vec<(Vec<u8>, Vec<u8>)>> {
        let reading = CursorOptions {
            window_bytes: 256,
            request_bytes: 128,
            record_bytes_most: 0,
            is_whole: false,
            cause: Cause::Lookup,
        };
        let runs = self.manifest.runs().rev();
        let mut runs: Vec<RunCursor> = runs.map(|run| RunCursor::new(run, reading, 1)).collect();
        let heads = [Which::Active, Which::Frozen];
        let mut heads = heads.map(|which| self.table.cursor(which, Default::default()));
        if way == Way::Down {
            heads.iter_mut().for_each(|head| head.to_end());
            runs.iter_mut().for_each(RunCursor::to_end);
        }
        let heads = heads.iter_mut().map(|head| head as &mut dyn Source);
        let runs = runs.iter_mut().map(|run| run as &mut dyn Source);
        let mut sources: Vec<&mut dyn Source> = heads.chain(runs).collect();
        let mut entries = Vec::new();
        while let Some((_, entry)) = Merged::next(&mut *self.space, &mut sources, way)? {
            if entry.kind == Kind::Put {
                entries.push((entry.key.to_vec(), entry.value.to_vec()));
            }
        }
        Ok(entries)
    }

    fn find(&mut self, key: &[u8]) -> Result<Option<Vec<u8>>> {
        let mut found = None;
        for which in [Which::Active, Which::Frozen] {
            let held = self.table.get(which, key);
            found = found.or(held.map(|(kind, value)| (kind, value.to_vec())));
        }
        for run in self.manifest.runs().rev() {
            if found.is_none() {
                let entry = self.reader.get(&mut *self.space, (run, None), key, Cause::Lookup)?;
                found = entry.map(|Entry { kind, value, .. }| (kind, value.to_vec()));
            }
        }
        Ok(found.filter(|(kind, _)| *kind == Kind::Put).map(|(_, value)| value))
    }

    fn room(&self) -> Room {
        let page = u64::from(self.space.page_bytes());
        let (live, dead) = self.manifest.pages();
        let waiting = self.table.held(Which::Active).0 + self.table.held(Which::Frozen).0;
        Room {
            capacity: self.space.pages_most() * page,
            live: live * page,
            pending: waiting * ENTRY_BYTES * 2,
            dead: dead * page,
            reserve: live * page + 8 * page,
        }
    }
}

impl Read for RunTree<'_> {
    fn get(&mut self, key: &[u8], offset: u32, into: &mut [u8]) -> Result<Option<u32>> {
        Ok(self.find(key)?.map(|value| read_piece(&value, offset, into)))
    }

    fn range<'c>(&'c mut self, range: KeyRange<'_>) -> Result<Box<dyn Cursor + 'c>> {
        assert_eq!((range.from, range.to), (Bound::Unbounded, Bound::Unbounded));
        let way = if range.direction == Direction::Ascending { Way::Up } else { Way::Down };
        let mut entries = self.entries(way)?;
        entries.reverse();
        Ok(Box::new(Copies { entries, last: None }))
    }

    fn check(&mut self, _: &mut dyn FnMut(&dyn Display)) -> Result<()> {
        for run in self.manifest.runs() {
            self.reader.open(&mut *self.space, run, Cause::Lookup)?;
        }
        Ok(())
    }

    fn statistics(&self) -> Statistics {
        Statistics::default()
    }

    fn metrics(&self, tell: &mut dyn FnMut(&'static str, u64)) {
        tell(DELTAS, self.manifest.next_delta());
        tell(FREED, self.freed);
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
        let (_, value) = self.last.as_ref().ok_or(index::Error::NoEntry)?;
        Ok(read_piece(value, offset, into))
    }
}

impl Tree for RunTree<'_> {
    fn admit(&mut self, batch: &[Update<'_>]) -> Result<()> {
        self.end_replay()?;
        self.freeze()?;
        match self.room().take(batch.len() as u64 * ENTRY_BYTES * 2) {
            true => Ok(()),
            false => Err(store::Error::Full { pages: self.space.pages_most() }.into()),
        }
    }

    fn apply(&mut self, update: &Update<'_>) -> Result<()> {
        self.updates += 1;
        let is_in = match update {
            Update::Put { key, value } => self.table.put(key, Kind::Put, value),
            Update::Delete { key } => self.table.put(key, Kind::Delete, &[]),
            Update::PutStored { .. } => false,
        };
        if !is_in {
            return Err(store::Error::Full { pages: 0 }.into());
        }
        if self.is_open { self.work() } else { Ok(()) }
    }

    fn apply_delta(&mut self, delta: &[u8]) -> Result<()> {
        match self.manifest.replay(&mut *self.space, delta)? {
            Some([1]) => self.table.drain(Which::Frozen, None),
            Some([2]) => assert!(self.table.freeze(), "it was frozen then"),
            _ => {}
        }
        Ok(())
    }

    fn delta_bytes_most(&self) -> usize {
        DELTA_BYTES_MOST
    }

    fn rebase(&mut self) {
        self.freed += self.manifest.checkpointed(&mut *self.space).unwrap();
    }

    fn is_poisoned(&self) -> bool {
        false
    }

    fn load(&mut self, _: &mut dyn Cursor, _: u8) -> Result<u64> {
        Err(index::Error::NotEmpty)
    }

    fn root_record(&mut self) -> Result<Vec<u8>> {
        self.end_replay()?;
        let mut root = Vec::new();
        self.manifest.encode(&mut root);
        root.extend(self.updates.to_le_bytes());
        for which in [Which::Frozen, Which::Active] {
            root.push(self.table.held(which).0 as u8);
            let mut cursor = self.table.cursor(which, Default::default());
            while cursor.load(&mut *self.space, Way::Up)? {
                let Some(entry) = cursor.head(Way::Up) else { break };
                root.extend([entry.kind as u8].iter().chain(entry.key).chain(entry.value));
                cursor.step(Way::Up);
            }
        }
        Ok(root)
    }

    fn restore(&mut self, root: &[u8]) -> Result<()> {
        let (manifest, rest) = Manifest::restore(&mut *self.space, root)?;
        self.manifest = manifest;
        let (updates, mut rest) = rest.split_first_chunk().unwrap();
        self.updates = u64::from_le_bytes(*updates);
        for is_frozen in [true, false] {
            let (count, mut entries) = rest.split_first().unwrap();
            for _ in 0..*count {
                let is_put = entries[0] == 0;
                let value = if is_put { &entries[3..23] } else { &[] };
                let kind = if is_put { Kind::Put } else { Kind::Delete };
                assert!(self.table.put(&entries[1..3], kind, value));
                entries = &entries[3 + value.len()..];
            }
            assert!(!is_frozen || self.table.freeze());
            rest = entries;
        }
        Ok(())
    }

    fn entry_bytes_most(&self) -> usize {
        64
    }

    fn pages_changed(&self, _: &[Update<'_>]) -> u32 {
        0
    }

    fn recovery(&self) -> &dyn Recovery {
        self.space.recovery()
    }

    fn recovery_mut(&mut self) -> &mut dyn Recovery {
        self.space.recovery_mut()
    }
}
