//! Which runs there are: a snapshot in the root record, and deltas in the journal.
//!
//! ```text
//!  snapshot  `RUNS` | next run u64 | next delta u64 | covered u64
//!            | pins u32 | each: checkpoint u64, delta u64
//!            | runs u32 | each: born u64, died u64 (all bits set: it lives), run
//!            | what was cut off of runs, and is pinned, as runs
//!  delta     `D` | number u64 | next run u64 | covered u64
//!            | born u16, dead u16, cuts u16, note's bytes u16
//!            | runs with extents | numbers of the dead, u64 each
//!            | cuts, each: run u64, first page u32, end u32 | note
//! ```
//!
//! Deltas are counted; `born` and `died` are the numbers of those that said so. A run can be read
//! by an opening that comes to a state between the two. So its room is free again as soon as the
//! delta that it died with is durable, and no named checkpoint is in between.
//!
//! # Invariants
//! - What a run is made of is durable before the delta that names it is recorded.
//! - A delta is replayed exactly once, in its order: one that the snapshot holds is passed over,
//!   and one that is missing is damage.

use alloc::vec::Vec;
use core::ops::Range;

use device::Cause;

use super::run::{Run, RunId};
use super::space::Space;
use crate::bytes::Reader;
use crate::{CheckpointId, Durability, Error, Result, Savepoint};

/// Bytes of a delta beside its runs, 8 for each of the dead, 16 for each cut, and its note.
pub const DELTA_HEAD_BYTES: usize = 33;

const MAGIC: [u8; 4] = *b"RUNS";
const DELTA: u8 = b'D';
const ALIVE: u64 = u64::MAX;

const fn damaged(what: &'static str) -> Error {
    Error::NotAnIndex { is_ours: true, what }
}

const OVERLAP: Error = damaged("two of its runs have a page in common");
const SENSELESS: Error = damaged("its manifest makes no sense");

/// A change of a manifest.
#[derive(Clone, Debug, Default)]
pub struct Delta<'d> {
    /// Runs that there are from now on.
    pub born: Vec<Run>,
    /// Runs that there are no more.
    pub dead: Vec<RunId>,
    /// Pages of runs that live on which nothing needs any more, counted from the run's first: what
    /// becomes of slices of a run that others share.
    pub cuts: Vec<(RunId, Range<u32>)>,
    /// The last update, as the tree counts them, that stands in runs, or was never to.
    pub covered: u64,
    /// What else the tree has to know.
    pub note: &'d [u8],
}

/// A run, and the deltas between which it lives.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Life {
    run: Run,
    born: u64,
    died: u64,
}

impl Life {
    /// True if it was there before delta `at`, and not gone before.
    const fn is_in(&self, at: u64) -> bool {
        self.born < at && at <= self.died
    }
}

/// All runs of a tree.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Manifest {
    /// In the order of their numbers: those that live, and those whose room is not free yet.
    lives: Vec<Life>,
    /// What was cut off of runs that live on, and is not free yet.
    ghosts: Vec<Life>,
    next_run: u64,
    next_delta: u64,
    covered: u64,
    /// Checkpoints that are kept, and the delta before which they stand.
    pins: Vec<(CheckpointId, u64)>,
    /// Deltas before this one are durable.
    durable: u64,
}

impl Manifest {
    /// One without runs.
    #[must_use]
    pub fn new() -> Self {
        Manifest { next_run: 1, ..Manifest::default() }
    }

    /// A number for a run that is going to be written.
    pub const fn number_run(&mut self) -> RunId {
        self.next_run += 1;
        RunId(self.next_run - 1)
    }

    /// The runs that there are, in the order of their numbers.
    pub fn runs(&self) -> impl DoubleEndedIterator<Item = &Run> {
        self.lives.iter().filter(|life| life.died == ALIVE).map(|life| &life.run)
    }

    /// The run of this number, if there is one.
    #[must_use]
    pub fn run(&self, id: RunId) -> Option<&Run> {
        let place = self.lives.binary_search_by_key(&id, |life| life.run.id).ok()?;
        self.lives.get(place).filter(|life| life.died == ALIVE).map(|life| &life.run)
    }

    /// The last update that stands in runs.
    #[must_use]
    pub const fn covered(&self) -> u64 {
        self.covered
    }

    /// The number of the next delta.
    #[must_use]
    pub const fn next_delta(&self) -> u64 {
        self.next_delta
    }

    /// Pages of the runs that there are, and of those whose room is not free yet.
    #[must_use]
    pub fn pages(&self) -> (u64, u64) {
        let (mut live, mut dead) = (0, 0);
        for life in self.all() {
            *if life.died == ALIVE { &mut live } else { &mut dead } += life.run.pages();
        }
        (live, dead)
    }

    /// Pages of those, living and not, that a checkpoint which is kept is in.
    #[must_use]
    pub fn pages_pinned(&self) -> (u64, u64) {
        let (mut live, mut dead) = (0, 0);
        for life in self.all().filter(|life| self.is_pinned(life)) {
            *if life.died == ALIVE { &mut live } else { &mut dead } += life.run.pages();
        }
        (live, dead)
    }

    fn is_pinned(&self, life: &Life) -> bool {
        self.pins.iter().any(|(_, at)| life.is_in(*at))
    }

    /// Bytes of memory that it takes.
    #[must_use]
    pub fn memory(&self) -> u64 {
        let beside = self.lives.capacity() * (size_of::<Life>() - size_of::<Run>());
        let ghosts = self.ghosts.capacity() * size_of::<Life>();
        let runs = self.all().map(|life| life.run.memory()).sum::<u64>() + ghosts as u64;
        let spare = self.lives.capacity().saturating_sub(self.lives.len()) * size_of::<Run>();
        runs + (beside + spare + self.pins.capacity() * size_of::<(CheckpointId, u64)>()) as u64
    }

    /// Records `delta` and makes its change: the runs that it names are made durable first. False,
    /// with nothing changed, if the journal has no room before the next checkpoint.
    ///
    /// # Errors
    /// It makes no sense, or the device failed.
    pub fn record(&mut self, space: &mut dyn Space, delta: Delta<'_>) -> Result<bool> {
        let is_known = |id: &RunId| self.run(*id).is_some();
        let cut = |(id, pages): &(RunId, Range<u32>)| {
            self.run(*id).is_some_and(|run| run.clone().cut(pages).is_some())
        };
        let is_short = delta.note.len() <= usize::from(u16::MAX);
        if !delta.dead.iter().all(is_known) || !delta.cuts.iter().all(cut) || !is_short {
            return Err(damaged("a delta names what there is not"));
        }
        if !delta.born.is_empty() {
            space.flush(Cause::Merge)?;
        }
        let mut bytes = Vec::new();
        self.encode_delta(&delta, &mut bytes);
        if !space.recovery_mut().delta(&bytes)? {
            return Ok(false);
        }
        self.make(delta)?;
        Ok(true)
    }

    fn encode_delta(&self, delta: &Delta<'_>, to: &mut Vec<u8>) {
        to.push(DELTA);
        for number in [self.next_delta, self.next_run, delta.covered] {
            to.extend_from_slice(&number.to_le_bytes());
        }
        let counts = [delta.born.len(), delta.dead.len(), delta.cuts.len(), delta.note.len()];
        for count in counts {
            to.extend_from_slice(&(count as u16).to_le_bytes());
        }
        delta.born.iter().for_each(|run| run.encode(to));
        delta.dead.iter().for_each(|id| to.extend_from_slice(&id.0.to_le_bytes()));
        for (id, pages) in &delta.cuts {
            to.extend_from_slice(&id.0.to_le_bytes());
            to.extend_from_slice(&pages.start.to_le_bytes());
            to.extend_from_slice(&pages.end.to_le_bytes());
        }
        to.extend_from_slice(delta.note);
    }

    /// Makes the change of the next delta.
    fn make(&mut self, delta: Delta<'_>) -> Result<()> {
        let number = self.next_delta;
        for (id, pages) in &delta.cuts {
            let life = self.living(*id)?;
            let run = life.run.cut(pages).ok_or(damaged("a delta names pages that are gone"))?;
            // What is cut off stays until it may be freed.
            let ghost = Life { run, born: life.born, died: number };
            self.ghosts.push(ghost);
        }
        for id in &delta.dead {
            self.living(*id)?.died = number;
        }
        for run in delta.born {
            let place = self.lives.partition_point(|life| life.run.id < run.id);
            if self.lives.get(place).is_some_and(|life| life.run.id == run.id) {
                return Err(damaged("a delta names a run twice"));
            }
            self.lives.insert(place, Life { run, born: number, died: ALIVE });
        }
        self.covered = self.covered.max(delta.covered);
        self.next_delta += 1;
        Ok(())
    }

    /// Makes a change that the next checkpoint records. What was born since the last one and dies
    /// is free at once: no opening comes to a state between two checkpoints.
    ///
    /// # Errors
    /// A run that dies is not there, or what is in use was counted wrongly.
    pub fn change(&mut self, space: &mut dyn Space, born: Vec<Run>, dead: &[RunId]) -> Result<()> {
        let checkpoint = self.durable;
        self.make(Delta { born, dead: dead.to_vec(), ..Delta::default() })?;
        let mut freed = Ok(());
        self.lives.retain(|life| {
            let is_kept = life.died == ALIVE || life.born < checkpoint || freed.is_err();
            if !is_kept {
                freed = space.free(&life.run.extents);
            }
            is_kept
        });
        freed
    }

    /// The run of this number, which lives.
    fn living(&mut self, id: RunId) -> Result<&mut Life> {
        let place = self.lives.binary_search_by_key(&id, |life| life.run.id);
        let life = place.ok().and_then(|place| self.lives.get_mut(place));
        let life = life.filter(|life| life.died == ALIVE);
        life.ok_or(damaged("a delta names a run that there is not"))
    }

    /// Replays a delta, before anything was written since the opening. Returns its note; `None` if
    /// the snapshot held it.
    ///
    /// # Errors
    /// It is damaged, one before it is missing, or its pages are in use.
    pub fn replay<'d>(
        &mut self,
        space: &mut dyn Space,
        delta: &'d [u8],
    ) -> Result<Option<&'d [u8]>> {
        let mut from = Reader::new(delta);
        let head = (from.array::<1>(), from.u64(), from.u64(), from.u64());
        let (Some([DELTA]), Some(number), Some(next_run), Some(covered)) = head else {
            return Err(SENSELESS);
        };
        if number < self.next_delta {
            return Ok(None);
        }
        if number > self.next_delta || next_run < self.next_run {
            return Err(damaged("a change of its runs is missing"));
        }
        let mut count = || from.array().map(u16::from_le_bytes).ok_or(SENSELESS);
        let [born_count, dead_count, cut_count, note_bytes] =
            [count()?, count()?, count()?, count()?];
        let mut born = Vec::new();
        for _ in 0..born_count {
            let run = Run::decode(&mut from, space.page_bytes())?;
            if run.id.0 >= next_run || run.id.0 < 1 {
                return Err(SENSELESS);
            }
            born.push(run);
        }
        let mut dead = Vec::new();
        for _ in 0..dead_count {
            dead.push(RunId(from.u64().ok_or(SENSELESS)?));
        }
        let mut cuts = Vec::new();
        for _ in 0..cut_count {
            let id = RunId(from.u64().ok_or(SENSELESS)?);
            let (start, end) = from.u32().zip(from.u32()).ok_or(SENSELESS)?;
            cuts.push((id, start..end));
        }
        let note = from.bytes(note_bytes.into()).filter(|_| from.left() == 0).ok_or(SENSELESS)?;
        for run in &born {
            let mut others = self.all().flat_map(|life| life.run.held());
            if others.any(|other| run.held().any(|it| it.meets(other))) {
                return Err(OVERLAP);
            }
        }
        self.next_run = next_run;
        born.iter().flat_map(Run::held).try_for_each(|extent| space.claim(&[extent]))?;
        self.make(Delta { born, dead, cuts, covered, note })?;
        // It was durable, or it could not be replayed.
        self.durable = self.next_delta;
        self.release(space)?;
        Ok(Some(note))
    }

    /// Makes all deltas durable, and frees what waited for that.
    ///
    /// # Errors
    /// The device failed.
    pub fn sync(&mut self, space: &mut dyn Space) -> Result<u64> {
        let recorded = self.next_delta;
        space.recovery_mut().sync()?;
        if matches!(space.recovery().durability(), Durability::Checkpoint) {
            // Only a checkpoint makes anything last.
            return Ok(0);
        }
        self.durable = recorded;
        self.release(space)
    }

    /// A checkpoint was made whose root record holds all of this.
    ///
    /// # Errors
    /// What is in use was counted wrongly.
    pub fn checkpointed(&mut self, space: &mut dyn Space) -> Result<u64> {
        self.durable = self.next_delta;
        self.release(space)
    }

    /// Frees the room of the runs that no state needs which an opening may come to; returns
    /// how many pages that were.
    ///
    /// # Errors
    /// What is in use was counted wrongly.
    pub fn release(&mut self, space: &mut dyn Space) -> Result<u64> {
        let mut pages = 0;
        let mut freed = Ok(());
        let (durable, pins) = (self.durable, &self.pins);
        let mut is_kept = |life: &Life| {
            let is_pinned = pins.iter().any(|(_, at)| life.is_in(*at));
            let is_kept = life.died >= durable || is_pinned || freed.is_err();
            if !is_kept {
                freed = life.run.held().try_for_each(|extent| space.free(&[extent]));
                pages += life.run.pages();
            }
            is_kept
        };
        self.lives.retain(&mut is_kept);
        self.ghosts.retain(&mut is_kept);
        freed.map(|()| pages)
    }

    /// Runs, living or not, and what was cut off of some.
    fn all(&self) -> impl Iterator<Item = &Life> {
        self.lives.iter().chain(&self.ghosts)
    }

    /// Lets `kept` be the checkpoints that are kept, each of which pins the runs of its time: one
    /// that is new was made now, behind all deltas. One that was forgotten comes back with a later
    /// one that is kept, so it pins its runs as long as there is such.
    pub fn pin_checkpoints(&mut self, kept: &[Savepoint]) {
        self.pins.retain(|(id, _)| kept.iter().any(|other| other.id >= *id));
        for other in kept {
            if !self.pins.iter().any(|(id, _)| *id == other.id) {
                self.pins.push((other.id, self.next_delta));
            }
        }
    }

    /// Writes a snapshot to the end of `to`.
    pub fn encode(&self, to: &mut Vec<u8>) {
        to.extend_from_slice(&MAGIC);
        for number in [self.next_run, self.next_delta, self.covered] {
            to.extend_from_slice(&number.to_le_bytes());
        }
        to.extend_from_slice(&(self.pins.len() as u32).to_le_bytes());
        for (id, at) in &self.pins {
            to.extend_from_slice(&id.0.to_le_bytes());
            to.extend_from_slice(&at.to_le_bytes());
        }
        // With this snapshot all deltas are durable: what only waits for that is not in it.
        let is_kept =
            |life: &&Life| life.died == ALIVE || self.pins.iter().any(|(_, at)| life.is_in(*at));
        for lives in [&self.lives, &self.ghosts] {
            let count = lives.iter().filter(is_kept).count();
            to.extend_from_slice(&(count as u32).to_le_bytes());
            for life in lives.iter().filter(is_kept) {
                to.extend_from_slice(&life.born.to_le_bytes());
                to.extend_from_slice(&life.died.to_le_bytes());
                life.run.encode(to);
            }
        }
    }

    /// Reads a snapshot, claims what it names, and returns it with what stands behind it.
    ///
    /// # Errors
    /// It is damaged, or two runs have a page in common.
    pub fn restore<'b>(space: &mut dyn Space, bytes: &'b [u8]) -> Result<(Self, &'b [u8])> {
        let mut from = Reader::new(bytes);
        let manifest = Self::decode(&mut from, space.page_bytes())?;
        manifest.check_disjoint()?;
        let mut held = manifest.all().flat_map(|life| life.run.held());
        held.try_for_each(|extent| space.claim(&[extent]))?;
        drop(held);
        let rest = from.bytes(from.left()).unwrap_or_default();
        Ok((manifest, rest))
    }

    /// Refuses runs that have a page in common.
    fn check_disjoint(&self) -> Result<()> {
        let mut all: Vec<_> = self.all().flat_map(|life| life.run.held()).collect();
        all.sort_unstable();
        match all.windows(2).any(|pair| pair[0].meets(pair[1])) {
            true => Err(OVERLAP),
            false => Ok(()),
        }
    }

    fn decode(from: &mut Reader<'_>, page_bytes: u32) -> Result<Self> {
        if from.array() != Some(MAGIC) {
            return Err(SENSELESS);
        }
        let mut number = || from.u64().ok_or(SENSELESS);
        let (next_run, next_delta, covered) = (number()?, number()?, number()?);
        let mut manifest =
            Manifest { next_run, next_delta, covered, durable: next_delta, ..Manifest::default() };
        for _ in 0..from.u32().ok_or(SENSELESS)? {
            let (id, at) = from.u64().zip(from.u64()).ok_or(SENSELESS)?;
            if at > next_delta {
                return Err(SENSELESS);
            }
            manifest.pins.push((CheckpointId(id), at));
        }
        for _ in 0..from.u32().ok_or(SENSELESS)? {
            let life = Self::decode_life(from, page_bytes, (next_run, next_delta))?;
            if manifest.lives.last().is_some_and(|before| before.run.id >= life.run.id) {
                return Err(SENSELESS);
            }
            manifest.lives.push(life);
        }
        for _ in 0..from.u32().ok_or(SENSELESS)? {
            let life = Self::decode_life(from, page_bytes, (next_run, next_delta))?;
            if life.died == ALIVE {
                return Err(SENSELESS);
            }
            manifest.ghosts.push(life);
        }
        Ok(manifest)
    }

    fn decode_life(
        from: &mut Reader<'_>,
        page_bytes: u32,
        (next_run, next_delta): (u64, u64),
    ) -> Result<Life> {
        let (born, died) = from.u64().zip(from.u64()).ok_or(SENSELESS)?;
        let run = Run::decode(from, page_bytes)?;
        let has_lived = born < next_delta && (died == ALIVE || born < died && died < next_delta);
        match has_lived && (1..next_run).contains(&run.id.0) {
            true => Ok(Life { run, born, died }),
            false => Err(SENSELESS),
        }
    }
}
