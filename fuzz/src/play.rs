//! Playing sessions on an index, and comparing all that it says with what it may say.

use std::ops::Bound;
use std::rc::Rc;

use contract::torture::truth::{Bytes, Change, Event, Found, Truth, World};
use device::{SectorGeometry, Sectors};
use index::{Direction, Durability, Index, KeyRange, Update};

use crate::cell::{Cell, KEYS};
use crate::disk::ImageDisk;
use crate::history::{Action, End, KeyChange, Session};
use crate::reading::read_all;

/// An index on a disk, and what it may hold.
pub struct Player {
    /// What it is.
    pub cell: Cell,
    /// Its disk.
    pub disk: ImageDisk,
    truth: Truth,
    /// Every world that a power cut may lead to.
    pub worlds: Vec<World>,
    /// Every world before those.
    pub earlier: Vec<World>,
    /// Operations of the device at the end of each action of the last session.
    pub spans: Vec<u64>,
    is_made: bool,
    marks: u32,
    names: u32,
}

/// Why a session goes on no longer.
enum Stop {
    Cut,
    /// An index without durability was not closed.
    Lost,
}

impl Player {
    /// An index to be made on an empty disk.
    #[must_use]
    pub fn new(cell: Cell) -> Self {
        Self::on(cell, cell.disk())
    }

    /// An index to be made on an empty disk of this shape.
    #[must_use]
    pub fn on(cell: Cell, geometry: SectorGeometry) -> Self {
        Player {
            cell,
            disk: ImageDisk::new(geometry),
            truth: Truth::default(),
            worlds: vec![World::default()],
            earlier: Vec::new(),
            spans: Vec::new(),
            is_made: false,
            marks: 0,
            names: 0,
        }
    }

    /// Plays `sessions` one after the other.
    ///
    /// # Panics
    /// The index says something that it must not.
    pub fn play(&mut self, sessions: &[Session]) {
        for session in sessions {
            if self.session(session).is_none() {
                return;
            }
        }
        self.session(&Session { actions: vec![Action::Read], end: End::Close });
    }

    /// Plays one session; none if there is no index any more.
    pub fn session(&mut self, session: &Session) -> Option<()> {
        let (cut, fate) = match session.end {
            End::Cut(at, fate) => (Some(u64::from(at)), fate),
            End::Close | End::Drop => (None, 0),
        };
        let geometry = self.disk.geometry();
        let mut disk = std::mem::replace(&mut self.disk, ImageDisk::new(geometry));
        disk.start(cut);
        let outcome = self.use_index(&mut disk, session);
        assert!(!disk.is_endless(), "it uses the disk without end");
        assert!(
            outcome.is_ok() || disk.is_without_power() || self.cell.durability == Durability::None,
            "it stopped although nothing was cut"
        );
        disk.settle(fate);
        self.disk = disk;
        match outcome {
            Ok(()) | Err(Stop::Cut) => self.is_made.then_some(()),
            Err(Stop::Lost) => None,
        }
    }

    fn use_index(&mut self, disk: &mut ImageDisk, session: &Session) -> Result<(), Stop> {
        // The operations are counted by the disk, which the index holds; so they are asked for
        // through a cell beside it.
        let counter = disk.counter();
        let cell = self.cell;
        let mut index = match self.is_made {
            true => self.opened(cell.open(Box::new(disk)))?,
            false => {
                let made = cell.create(Box::new(disk));
                self.stop_or(made, "making")?
            }
        };
        if self.is_made {
            let found = self.read(&mut *index)?;
            self.truth.learn(&found).unwrap_or_else(|mismatch| panic!("after opening: {mismatch}"));
            self.forget_worlds();
        }
        self.is_made = true;
        self.spans.clear();
        for action in &session.actions {
            self.perform(&mut *index, action)?;
            self.spans.push(counter.get());
        }
        if let End::Close = session.end {
            let closed = index.close();
            self.stop_or(closed, "closing")?;
            self.acknowledge();
        }
        Ok(())
    }

    fn opened<'d>(
        &self,
        outcome: index::Result<Box<dyn Index + 'd>>,
    ) -> Result<Box<dyn Index + 'd>, Stop> {
        match outcome {
            Err(index::Error::Store(store::Error::NotClosed)) => {
                assert_eq!(self.cell.durability, Durability::None, "it opens without a close");
                Err(Stop::Lost)
            }
            outcome => self.stop_or(outcome, "opening"),
        }
    }

    /// What an operation gave; only a cut may make it fail.
    fn stop_or<T>(&self, outcome: index::Result<T>, what: &str) -> Result<T, Stop> {
        match outcome {
            Ok(value) => Ok(value),
            Err(index::Error::Store(store::Error::Device(device::Error::PowerCut))) => {
                Err(Stop::Cut)
            }
            Err(error) => panic!("{:?}: {what}: {error}", self.cell),
        }
    }

    fn read(&self, index: &mut dyn Index) -> Result<Found, Stop> {
        let read = read_all(index, usize::from(KEYS));
        let found = self.stop_or(read, "reading")?;
        let mut findings = Vec::new();
        let checked = index.check(&mut |finding| findings.push(finding.to_string()));
        self.stop_or(checked, "checking")?;
        if findings.iter().any(|finding| finding.contains("power")) {
            return Err(Stop::Cut);
        }
        assert!(findings.is_empty(), "{findings:?}");
        Ok(found)
    }

    fn acknowledge(&mut self) {
        self.truth.acknowledge();
        self.forget_worlds();
    }

    /// Nothing but the latest world is possible from now on.
    fn forget_worlds(&mut self) {
        self.earlier.append(&mut self.worlds);
        self.worlds.push(self.truth.latest().clone());
    }

    fn begin(&mut self, event: Event) {
        self.truth.begin(event);
        self.worlds.push(self.truth.latest().clone());
    }

    fn lasts(&self) -> bool {
        self.cell.durability != Durability::None
    }

    fn perform(&mut self, index: &mut dyn Index, action: &Action) -> Result<(), Stop> {
        match action {
            Action::Update(changes) => self.update(index, changes),
            Action::Span { first, count, length } => {
                let keys = *first..first.saturating_add(*count).min(KEYS);
                let changes: Vec<_> = keys.map(|key| (key, *length)).collect();
                self.update(index, &changes)
            }
            Action::Sync if self.lasts() => {
                let synced = index.sync();
                self.stop_or(synced, "a sync")?;
                // What came after a checkpoint is in the journal: an image may be cut anywhere.
                self.truth.acknowledge();
                Ok(())
            }
            Action::Checkpoint if self.lasts() => {
                let made = index.checkpoint(None);
                self.stop_or(made, "a checkpoint")?;
                self.acknowledge();
                Ok(())
            }
            Action::Keep if self.lasts() => self.keep(index),
            Action::RollBack(place) if self.lasts() => self.go_back(index, *place),
            Action::Forget(place) if self.lasts() => self.forget(index, *place),
            Action::Close => {
                let closed = index.close();
                self.stop_or(closed, "closing")?;
                self.acknowledge();
                Ok(())
            }
            Action::Get(number) => self.get(index, *number),
            Action::Range(from, to, backward) => self.range(index, (*from, *to), *backward),
            Action::Read => {
                let found = self.read(index)?;
                let compared = self.truth.compare(&found);
                compared.unwrap_or_else(|mismatch| panic!("{mismatch}"));
                Ok(())
            }
            _ => Ok(()),
        }
    }

    fn update(&mut self, index: &mut dyn Index, changes: &[KeyChange]) -> Result<(), Stop> {
        let mut batch = Vec::new();
        for (number, length) in changes {
            self.marks += 1;
            let key: Bytes = self.cell.key(*number).into();
            let value = length.map(|length| self.cell.value(&key, length, self.marks).into());
            batch.push(Change { key, value });
        }
        let updates: Vec<_> = batch
            .iter()
            .map(|Change { key, value }| match value {
                Some(value) => Update::Put { key, value },
                None => Update::Delete { key },
            })
            .collect();
        let updated = index.update(&updates);
        drop(updates);
        match updated {
            Err(error) if is_refusal(&error) => Ok(()),
            updated => {
                // A batch on which the power goes may have been made.
                self.begin(Event::Batch(batch));
                self.stop_or(updated, "an update")?;
                if self.cell.durability == Durability::Every {
                    self.truth.acknowledge();
                }
                Ok(())
            }
        }
    }

    fn keep(&mut self, index: &mut dyn Index) -> Result<(), Stop> {
        self.names += 1;
        let name: Rc<str> = format!("name {}", self.names).into();
        let kept = index.checkpoint(Some(&name));
        if kept.as_ref().is_err_and(is_refusal) {
            return Ok(());
        }
        self.begin(Event::Keep(name));
        self.stop_or(kept, "a named checkpoint")?;
        self.acknowledge();
        Ok(())
    }

    fn name(&self, place: u8) -> Option<Rc<str>> {
        let kept = &self.truth.latest().kept;
        Some(kept.get(usize::from(place).checked_rem(kept.len())?)?.name.clone())
    }

    fn go_back(&mut self, index: &mut dyn Index, place: u8) -> Result<(), Stop> {
        let Some(name) = self.name(place) else { return Ok(()) };
        let rolled = index.roll_back(&name);
        self.begin(Event::RollBack(name));
        self.stop_or(rolled, "a rollback")?;
        self.acknowledge();
        Ok(())
    }

    fn forget(&mut self, index: &mut dyn Index, place: u8) -> Result<(), Stop> {
        let Some(name) = self.name(place) else { return Ok(()) };
        let forgotten = index.forget(&name);
        self.begin(Event::Forget(name));
        self.stop_or(forgotten, "forgetting")?;
        self.acknowledge();
        Ok(())
    }

    fn get(&self, index: &mut dyn Index, number: u16) -> Result<(), Stop> {
        let key = self.cell.key(number);
        let mut into = [0xEE; 64];
        let found = index.get(&key, 3, &mut into);
        let found = self.stop_or(found, "a get")?;
        let wanted = self.truth.latest().entries.get(&key[..]);
        assert_eq!(found, wanted.map(|value| value.len() as u32), "the length of a value");
        if let Some(piece) = wanted.and_then(|value| value.get(3..)) {
            let length = piece.len().min(into.len());
            assert_eq!(into[..length], piece[..length], "a piece of a value");
        }
        Ok(())
    }

    fn range(
        &self,
        index: &mut dyn Index,
        (from, to): (u16, u16),
        backward: bool,
    ) -> Result<(), Stop> {
        let mut bounds = [self.cell.key(from), self.cell.key(to)];
        bounds.sort();
        let [from, to] = &bounds;
        let direction = if backward { Direction::Descending } else { Direction::Ascending };
        let range = KeyRange { from: Bound::Included(from), to: Bound::Excluded(to), direction };
        let entries = &self.truth.latest().entries;
        let mut wanted: Vec<_> =
            entries.keys().filter(|key| ***key >= **from && ***key < **to).cloned().collect();
        if backward {
            wanted.reverse();
        }
        let cursor = index.range(range);
        let mut cursor = self.stop_or(cursor, "a range")?;
        for key in &wanted {
            let next = cursor.next();
            let found = self.stop_or(next, "a range's next")?.map(|(key, _)| key.to_vec());
            assert_eq!(found.as_deref(), Some(&**key), "the next key of a range");
        }
        let next = cursor.next();
        assert!(self.stop_or(next, "a range's end")?.is_none(), "a range ends");
        Ok(())
    }
}

/// True if what was asked for was refused with nothing changed.
#[must_use]
pub fn is_refusal(error: &index::Error) -> bool {
    use index::Error::{EntryTooLong, KeyTooLong, Store, TreeFull, ValueTooLong};
    use store::Error::{CheckpointName, Full, Kept, LongBatch};
    matches!(
        error,
        EntryTooLong { .. }
            | KeyTooLong { .. }
            | ValueTooLong { .. }
            | TreeFull { .. }
            | Store(Full { .. } | LongBatch { .. } | Kept { .. } | CheckpointName { .. })
    )
}
