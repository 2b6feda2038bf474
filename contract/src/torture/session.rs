//! A session: an index is opened, compared with what it may hold, and used until the power goes.

use std::collections::BTreeMap;
use std::rc::Rc;

use index::DeletePolicy;
use index::{Durability, Index, Lookup, RecoveryStatistics, Statistics, Update};

use super::actions::{Action, Actor};
use super::cell::Cell;
use super::device::{Device, Fate, How, Size};
use super::failure::Failure;
use super::found::read_all;
use super::script::{self, Script};
use super::seeds::{chance, random};
use super::truth::{Change, Event, Truth};
use super::witness::Witness;
use crate::tree::Model;

/// The choice of how much memory there is.
const MEMORY: u64 = u64::MAX - 1;

/// Why a session ended before its time.
pub(super) enum Stop {
    /// The power was cut.
    Cut,
    /// Too many blocks of the chip went bad.
    Worn,
    /// The device failed a request.
    Refused,
    /// Something is wrong.
    Failed(Failure),
}

impl From<Failure> for Stop {
    fn from(failure: Failure) -> Self {
        Stop::Failed(failure)
    }
}

impl Stop {
    /// What the error of an action means.
    pub(super) fn of(action: &'static str, error: index::Error) -> Self {
        match lower(&error) {
            Some(device::Error::PowerCut) => Stop::Cut,
            Some(device::Error::Full { .. }) => Stop::Worn,
            Some(device::Error::Driver { .. }) => Stop::Refused,
            _ => Failure::Broken { action, error }.into(),
        }
    }
}

/// The device's error below an index's.
pub(super) fn lower(error: &index::Error) -> Option<device::Error> {
    match error {
        index::Error::Store(store::Error::Device(error)) => Some(*error),
        _ => None,
    }
}

/// Why something was refused with nothing changed.
enum Refusal {
    /// There is no room for it.
    Room,
    /// The journal is shorter.
    Journal,
    /// No tree takes such a key or value.
    Impossible,
}

impl Refusal {
    /// What `error` means, if it is a refusal.
    fn of(error: &index::Error) -> Option<Self> {
        use index::Error::{
            EntryTooLong, KeyLength, KeyTooLong, Store, TreeFull, ValueLength, ValueTooLong,
        };
        use store::Error::{Full, Kept, LongBatch};
        match error {
            TreeFull { .. } | Store(Full { .. } | Kept { .. }) => Some(Refusal::Room),
            Store(LongBatch { bytes, limit }) if bytes > limit => Some(Refusal::Journal),
            EntryTooLong { .. }
            | KeyTooLong { .. }
            | ValueTooLong { .. }
            | KeyLength { .. }
            | ValueLength { .. } => Some(Refusal::Impossible),
            _ => None,
        }
    }

    /// Counts it.
    fn count(self, witness: &mut Witness) {
        match self {
            Refusal::Room => witness.refused += 1,
            Refusal::Journal => witness.longer_than_journal += 1,
            Refusal::Impossible => witness.impossible += 1,
        }
    }
}

/// Who decides what is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Play {
    /// Chance.
    Random,
    /// A script, until the history is complete or, if it is known how long that takes, as long.
    Script,
}

/// What happens in a session.
#[derive(Clone, Copy, Debug)]
pub(super) struct Part {
    /// Decides what is done.
    pub(super) seed: u64,
    /// Which session of its device it is.
    pub(super) number: u32,
    /// How much is done, at most.
    pub(super) actions: u32,
    /// Who decides what is done.
    pub(super) play: Play,
    /// What goes wrong.
    pub(super) fate: Fate,
}

/// How a session ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ended {
    /// By a cut while the index was being opened.
    CutOpening,
    /// By a cut later.
    Cut,
    /// By itself; the power was cut then.
    Done,
    /// Too many blocks went bad.
    Worn,
    /// The device failed a request.
    Refused,
}

/// A device and what the index on it may hold.
pub(super) struct Storage<'c> {
    pub(super) cell: &'c Cell,
    pub(super) device: Device,
    pub(super) truth: Truth,
    pub(super) witness: Witness,
    /// How many times its least memory the index has.
    pub(super) memory: u64,
    /// Operations of the last opening, and changes among them.
    pub(super) opening: (u64, u64),
    /// Keys that histories use.
    pub(super) keys: u32,
    size: Size,
    /// Actions of the last session.
    pub(super) actions: u32,
}

impl<'c> Storage<'c> {
    pub(super) fn new(cell: &'c Cell, seed: u64) -> Result<Self, Failure> {
        let size = Size::of(cell, seed);
        Ok(Storage {
            cell,
            device: Device::new(cell, seed)?,
            truth: Truth::default(),
            witness: Witness { devices: 1, ..Witness::default() },
            memory: [1, 2, 4][(chance(cell, seed, MEMORY) % 3) as usize],
            opening: (0, 0),
            keys: size.keys(cell),
            size,
            actions: 0,
        })
    }

    /// True if there is hardly room.
    pub(super) fn is_tight(&self) -> bool {
        self.size == Size::Tight
    }

    /// The most entries that the index can have.
    pub(super) fn most(&self) -> usize {
        (self.keys + script::FRESH_KEYS) as usize + 1
    }

    /// Plays a session. The power is cut when it has ended, if it was not before.
    pub(super) fn session(&mut self, part: &Part) -> Result<Ended, Failure> {
        self.device.start(&part.fate);
        let stand = self.cell.stand;
        let (reclaimed, resized) = (self.device.reclaimed(stand), self.device.cuts_resizing());
        let mut opened = false;
        let stopped = self.open_and_use(part, &mut opened);
        self.witness.reclamations += self.device.reclaimed(stand) - reclaimed;
        let [growing, shrinking] = self.device.cuts_resizing();
        self.witness.cuts_growing += growing - resized[0];
        self.witness.cuts_shrinking += shrinking - resized[1];
        let ended = self.ended(stopped, opened)?;
        self.witness.recovery_cuts += u64::from(ended == Ended::CutOpening);
        self.device.cut_power()?;
        // Where the history ended before the cut, the power goes between two operations.
        self.witness.cuts += u64::from(part.fate.cut.is_some());
        Ok(ended)
    }

    fn ended(&mut self, stopped: Result<(), Stop>, opened: bool) -> Result<Ended, Failure> {
        match stopped {
            Ok(()) => Ok(Ended::Done),
            Err(Stop::Cut) => Ok(if opened { Ended::Cut } else { Ended::CutOpening }),
            // What can't be read without power is a finding of the check.
            Err(Stop::Failed(Failure::Findings(_))) if self.device.is_without_power() => {
                Ok(Ended::Cut)
            }
            Err(Stop::Worn) => self.worn(),
            Err(Stop::Refused) => {
                self.witness.failed_requests += 1;
                Ok(Ended::Refused)
            }
            Err(Stop::Failed(failure)) => Err(failure),
        }
    }

    /// Only a chip that lost many blocks may be full.
    fn worn(&mut self) -> Result<Ended, Failure> {
        let (bad, blocks) = self.device.bad_blocks();
        if bad < blocks / 6 {
            return Err(Failure::Full { bad, blocks });
        }
        self.witness.worn_out += 1;
        Ok(Ended::Worn)
    }

    fn open_and_use(&mut self, part: &Part, opened: &mut bool) -> Result<(), Stop> {
        let (cell, most) = (self.cell, self.most());
        let index = self.device.index(cell, How::Open, self.memory);
        let mut index = index.map_err(|error| match Stop::of("opening", error) {
            Stop::Failed(Failure::Broken { error, .. }) => Failure::Open(error).into(),
            stop => stop,
        })?;
        *opened = true;
        let found = read_all(&mut *index, most)?;
        let open_events = self.truth.open_events() as u64;
        let beyond = self.truth.learn(&found).map_err(Failure::Lost)? as u64;
        let recovery = index.recovery();
        self.witness.recoveries += 1;
        self.witness.restored += u64::from(recovery.restored > 0);
        self.witness.replayed += u64::from(recovery.replayed > 0);
        self.witness.resumed += u64::from(recovery.resumed > 0);
        self.witness.within += recovery.within;
        self.witness.beyond += u64::from(beyond > 0);
        self.witness.events_lost += open_events - beyond;
        let before = self.witness;
        let random = random(cell, part.seed, part.number);
        let mut actor = Actor::new(cell, self.keys, part.number, random);
        let mut script = Script::new(cell, self.keys);
        let mut usage = Usage {
            cell,
            index: &mut *index,
            truth: &mut self.truth,
            witness: &mut self.witness,
            most,
        };
        self.actions = 0;
        for _ in 0..part.actions {
            let action = match part.play {
                Play::Random => actor.next(usage.truth.latest()),
                Play::Script => {
                    let world = usage.truth.latest();
                    script.next(&mut actor, world, &(*usage.witness - before))
                }
            };
            usage.perform(action)?;
            self.actions += 1;
        }
        Ok(())
    }

    /// Plays a session in which nothing goes wrong and nothing is done; then it is known how many
    /// operations the opening took.
    pub(super) fn recover(&mut self, seed: u64) -> Result<(), Failure> {
        self.device.start(&Fate { seed, ..Fate::default() });
        let cell = self.cell;
        drop(self.device.index(cell, How::Open, self.memory).map_err(Failure::Open)?);
        self.opening = self.device.operations();
        Ok(())
    }

    /// Makes the index, and loads it with `sorted` entries if there are any.
    pub(super) fn make(&mut self, sorted: Vec<Change>) -> Result<(), Stop> {
        self.truth = Truth::default();
        let (cell, most) = (self.cell, self.most());
        let index = self.device.index(cell, How::Make, self.memory);
        let mut index = index.map_err(|error| match Stop::of("making", error) {
            Stop::Failed(Failure::Broken { error, .. }) => Failure::Make(error).into(),
            stop => stop,
        })?;
        if sorted.is_empty() {
            return Ok(());
        }
        let pair = |change: &Change| Some((change.key.to_vec(), change.value.clone()?.to_vec()));
        let model = Model { entries: sorted.iter().filter_map(pair).collect::<BTreeMap<_, _>>() };
        self.truth.begin(Event::Batch(sorted));
        index.load(&mut model.cursor(), 70).map_err(|error| Stop::of("a load", error))?;
        self.truth.acknowledge();
        let found = read_all(&mut *index, most)?;
        let wrong = |mismatch| Failure::Wrong { after: "a load", mismatch };
        Ok(self.truth.compare(&found).map_err(wrong)?)
    }
}

/// An index in use.
struct Usage<'u> {
    cell: &'u Cell,
    index: &'u mut dyn Index,
    truth: &'u mut Truth,
    witness: &'u mut Witness,
    most: usize,
}

impl Usage<'_> {
    fn perform(&mut self, action: Action) -> Result<(), Stop> {
        // DeletePolicy that were buffered come to the tree later, and what they empty goes then.
        let emptied = nodes_changed(self.index).emptied;
        self.act(action)?;
        self.witness.emptied += u64::from(nodes_changed(self.index).emptied > emptied);
        Ok(())
    }

    fn act(&mut self, action: Action) -> Result<(), Stop> {
        match action {
            Action::Update(changes) => self.update(changes),
            Action::Sync => {
                self.index.sync().map_err(|error| Stop::of("a sync", error))?;
                self.truth.acknowledge();
                self.witness.syncs += 1;
                Ok(())
            }
            Action::Checkpoint => {
                self.index.checkpoint(None).map_err(|error| Stop::of("a checkpoint", error))?;
                self.truth.acknowledge();
                self.witness.checkpoints += 1;
                Ok(())
            }
            Action::Keep(name) => self.keep(name),
            Action::RollBack(name) => self.roll_back(name),
            Action::Forget(name) => self.forget(name),
            Action::Close => {
                self.index.close().map_err(|error| Stop::of("closing", error))?;
                self.truth.acknowledge();
                self.witness.closes += 1;
                Ok(())
            }
            Action::Get(key) => self.get(&key),
        }
    }

    fn update(&mut self, changes: Vec<Change>) -> Result<(), Stop> {
        let batch: Vec<Update<'_>> = changes
            .iter()
            .map(|Change { key, value }| match value {
                Some(value) => Update::Put { key, value },
                None => Update::Delete { key },
            })
            .collect();
        let before = (self.index.statistics(), self.index.recovery());
        let nodes = nodes_changed(self.index);
        if let Err(error) = self.prepare(&batch)? {
            self.truth.begin(Event::Batch(Vec::new()));
            return self.not_updated(&[], &before, error);
        }
        self.truth.begin(Event::Batch(changes.clone()));
        match self.index.update(&batch) {
            Ok(()) => {}
            Err(error) => return self.not_updated(&changes, &before, error),
        }
        if self.cell.durability == Durability::Every {
            self.truth.acknowledge();
        }
        self.count(&changes);
        let after = (self.index.statistics(), self.index.recovery());
        self.witness.forced += u64::from(after.1.checkpoint != before.1.checkpoint);
        self.witness.within += after.1.within - before.1.within;
        self.witness.heights += u64::from(after.0.height != before.0.height);
        let puts = changes.iter().filter(|change| change.value.is_some()).count();
        let changed = nodes_changed(self.index);
        self.witness.generations += u64::from(changed.generations > nodes.generations);
        if changed.split.is_some() {
            self.witness.splits += u64::from(changed.split > nodes.split);
            self.witness.merges += u64::from(changed.merged > nodes.merged);
        } else if !changes.iter().any(|change| self.is_long(change)) {
            // Where a value is long, pages come and go without splits and merges.
            let merges = self.cell.deletes() == DeletePolicy::Merge;
            let (more, fewer) = (puts > 0, merges && puts < changes.len());
            self.witness.splits += u64::from(more && after.0.live_pages > before.0.live_pages);
            self.witness.merges += u64::from(fewer && after.0.live_pages < before.0.live_pages);
        }
        Ok(())
    }

    /// Has one batch in two prepared, and looks up a key of it meanwhile.
    fn prepare(&mut self, batch: &[Update<'_>]) -> Result<index::Result<()>, Stop> {
        let Some(key) = batch.first().map(Update::key) else {
            return Ok(Ok(()));
        };
        if key.last().is_none_or(|last| last.is_multiple_of(2)) {
            return Ok(Ok(()));
        }
        let expected = self.truth.latest().entries.get(key);
        let (mut looked_up, mut is_right) = (0, true);
        let mut look_up = |index: &mut dyn Lookup| {
            let mut into = [0; 64];
            // What can't be read breaks the preparation off as well.
            if let Ok(found) = index.get(key, 0, &mut into) {
                is_right &= is_value(found, &into, expected.map(AsRef::as_ref));
                looked_up += 1;
            }
        };
        let prepared = loop {
            match self.index.prepare(batch, &mut look_up) {
                Ok(true) => self.witness.prepared += 1,
                Ok(false) => break Ok(()),
                Err(error) => break Err(error),
            }
        };
        self.witness.looked_up += looked_up;
        if is_right { Ok(prepared) } else { Err(Failure::Get.into()) }
    }

    /// What it means that an update failed.
    fn not_updated(
        &mut self,
        changes: &[Change],
        before: &(Statistics, RecoveryStatistics),
        error: index::Error,
    ) -> Result<(), Stop> {
        if let Some(refusal) = Refusal::of(&error) {
            self.truth.refuse();
            refusal.count(self.witness);
            return Ok(());
        }
        let stop = Stop::of("an update", error);
        if matches!(stop, Stop::Cut) {
            self.count_cut(changes, before);
        }
        // The journal may have it and the tree may not: so nothing more must be taken.
        if matches!(stop, Stop::Refused) && self.cell.durability.has_journal() {
            let again = self.index.update(&[]);
            if !is_read_only(&again) {
                return Err(Failure::TakenThereafter(again).into());
            }
        }
        Err(stop)
    }

    /// Counts a cut in a batch, before which things stood as they did `before`.
    fn count_cut(&mut self, changes: &[Change], before: &(Statistics, RecoveryStatistics)) {
        self.witness.cuts_in_batches += u64::from(changes.len() > 1);
        self.witness.cuts_in_merges +=
            u64::from(nodes_changed(self.index).broken_off.is_some_and(|merges| merges > 0));
        if changes.iter().any(|change| self.is_long(change)) {
            self.witness.cuts_in_long_values += 1;
            let is_recorded = self.index.recovery().journal_bytes > before.1.journal_bytes;
            let has_pages = self.index.statistics().live_pages > before.0.live_pages;
            self.witness.cuts_before_record += u64::from(has_pages && !is_recorded);
        }
    }

    fn is_long(&self, change: &Change) -> bool {
        let most = self.cell.node_bytes() as usize / 4;
        change.value.as_ref().is_some_and(|value| value.len() > most)
    }

    fn count(&mut self, changes: &[Change]) {
        self.witness.updates += changes.len() as u64;
        self.witness.batches += u64::from(changes.len() > 1);
        let deletes = changes.iter().filter(|change| change.value.is_none()).count();
        self.witness.deletes += deletes as u64;
        let long = changes.iter().filter(|change| self.is_long(change)).count();
        self.witness.long_values += long as u64;
        let names = self.cell.node_bytes() / 4 * self.cell.node_bytes();
        let is_longest = |value: &super::truth::Bytes| value.len() as u32 >= names;
        let longest = changes.iter().filter(|change| change.value.as_ref().is_some_and(is_longest));
        self.witness.longest_values += longest.count() as u64;
    }

    fn keep(&mut self, name: Rc<str>) -> Result<(), Stop> {
        self.truth.begin(Event::Keep(name.clone()));
        match self.index.checkpoint(Some(&name)) {
            Ok(_) => {
                self.truth.acknowledge();
                self.witness.named += 1;
                Ok(())
            }
            Err(error) => match Refusal::of(&error) {
                Some(refusal) => {
                    self.truth.refuse();
                    refusal.count(self.witness);
                    Ok(())
                }
                None => Err(Stop::of("a named checkpoint", error)),
            },
        }
    }

    fn roll_back(&mut self, name: Rc<str>) -> Result<(), Stop> {
        self.truth.begin(Event::RollBack(name.clone()));
        self.index.roll_back(&name).map_err(|error| Stop::of("a rollback", error))?;
        self.truth.acknowledge();
        self.witness.rollbacks += 1;
        let found = read_all(self.index, self.most)?;
        let wrong = |mismatch| Failure::Wrong { after: "a rollback", mismatch };
        Ok(self.truth.compare(&found).map_err(wrong)?)
    }

    fn forget(&mut self, name: Rc<str>) -> Result<(), Stop> {
        self.truth.begin(Event::Forget(name.clone()));
        self.index.forget(&name).map_err(|error| Stop::of("forgetting", error))?;
        self.truth.acknowledge();
        self.witness.forgotten += 1;
        Ok(())
    }

    fn get(&mut self, key: &[u8]) -> Result<(), Stop> {
        let mut into = [0; 64];
        let found = self.index.get(key, 0, &mut into).map_err(|error| Stop::of("a get", error))?;
        let expected = self.truth.latest().entries.get(key);
        let is_right = is_value(found, &into, expected.map(AsRef::as_ref));
        if is_right { Ok(()) } else { Err(Failure::Get.into()) }
    }
}

/// True if what was found, of so many bytes of which `read` has the first, is what is `expected`.
fn is_value(found: Option<u32>, read: &[u8], expected: Option<&[u8]>) -> bool {
    match (found, expected) {
        (None, None) => true,
        (Some(length), Some(value)) => {
            let most = value.len().min(read.len());
            length as usize == value.len() && read[..most] == value[..most]
        }
        _ => false,
    }
}

/// What an index tells of its nodes since it was opened, where it does.
#[derive(Default)]
struct Changed {
    split: Option<u64>,
    merged: Option<u64>,
    emptied: Option<u64>,
    /// Generations of pages that were reclaimed.
    generations: Option<u64>,
    /// Merges of runs that were broken off.
    broken_off: Option<u64>,
}

fn nodes_changed(index: &dyn Index) -> Changed {
    let mut changed = Changed::default();
    index.metrics(&mut |name, number| match name {
        index::NODES_SPLIT => changed.split = Some(number),
        index::NODES_MERGED => changed.merged = Some(number),
        index::NODES_EMPTIED => changed.emptied = Some(number),
        index::GENERATIONS_RECLAIMED => changed.generations = Some(number),
        index::MERGES_BROKEN_OFF => changed.broken_off = Some(number),
        _ => {}
    });
    changed
}

/// True if an update was refused since an earlier one was broken off, by a failed request or by one
/// that failed as the power was cut.
fn is_read_only(updated: &index::Result<()>) -> bool {
    use device::Error::{AfterFailedFlush, AfterFailedWrite, PowerCut};
    use index::Error::{Store, Unsupported};
    let Err(error) = updated else { return false };
    match error {
        Unsupported { .. } => true,
        Store(store::Error::Device(error)) => {
            matches!(error, AfterFailedWrite | AfterFailedFlush | PowerCut)
        }
        _ => false,
    }
}
