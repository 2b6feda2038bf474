//! A history on a device one of whose operations fails, and what must hold then: what failed was
//! refused or makes the index read-only until it is opened again, what it reads meanwhile is right,
//! and then it holds what was acknowledged.

use std::collections::BTreeSet;

use contract::torture::truth::{Bytes, Change, Event, Found, Truth};
use index::{Durability, Error, Index, KeyRange, Update, Value};

/// Steps of a history.
pub(crate) const STEPS: u32 = 90;

/// Keys of an index: more than the least memory holds.
pub(crate) const KEYS: u32 = 400;

/// A history that is played on a failing device.
pub(crate) struct Play {
    pub(crate) truth: Truth,
    durability: Durability,
    /// The event of an update that failed, which may have happened.
    open: Option<Event>,
    /// Keys of all batches that failed, where half of one may be read: there is no durability.
    halved: BTreeSet<Bytes>,
    /// Calls that were refused since.
    pub(crate) refused: u32,
    pub(crate) name: String,
}

fn key(number: u32) -> Bytes {
    (number % KEYS).wrapping_mul(0x9E37_79B9).to_be_bytes().into()
}

impl Play {
    /// Nothing was played.
    pub(crate) fn new(durability: Durability, name: String) -> Self {
        let truth = Truth::default();
        Play { truth, durability, open: None, halved: BTreeSet::new(), refused: 0, name }
    }

    /// Books what came of a call that changes something.
    fn book(&mut self, event: Event, outcome: &index::Result<()>) {
        if let Err(error) = outcome {
            let is_possible = match error {
                error if is_of_device(error) => true,
                // What is kept by a name leaves a small chip no room.
                Error::Store(store::Error::Kept { .. }) => true,
                // What was kept when the index failed is not known.
                Error::Store(store::Error::NoCheckpoint | store::Error::CheckpointName { .. }) => {
                    self.refused > 0
                }
                _ => false,
            };
            assert!(is_possible, "{}: {event:?}: {error:?}", self.name);
            self.refused += 1;
            if let (Event::Batch(changes), Durability::None) = (&event, self.durability) {
                self.halved.extend(changes.iter().map(|change| change.key.clone()));
            }
            if self.open.is_none() {
                self.truth.begin(event.clone());
                self.open = Some(event);
            }
            return;
        }
        self.settle_open();
        self.truth.begin(event.clone());
        let lasts = match event {
            Event::Batch(_) => self.durability == Durability::Every,
            Event::Keep(_) | Event::RollBack(_) | Event::Forget(_) => true,
        };
        if lasts {
            self.truth.acknowledge();
        }
    }

    /// Something came after what failed: so it was refused with nothing changed.
    fn settle_open(&mut self) {
        if self.open.take().is_some() {
            self.truth.refuse();
        }
    }

    /// The keys that are read behind a step: other ones each time.
    pub(crate) fn keys_behind(step: u32) -> impl Iterator<Item = u32> {
        (step % 11..KEYS).step_by(11)
    }

    /// Plays a step.
    pub(crate) fn step(&mut self, index: &mut dyn Index, step: u32) {
        let name = |number: u32| -> std::rc::Rc<str> { format!("kept {number}").into() };
        match step % 30 {
            // Without durability there is nothing that lasts before the end.
            5 | 11 | 17 | 19 | 23 | 27 if self.durability == Durability::None => {}
            11 => {
                let made = index.checkpoint(Some(&name(step))).map(|_| ());
                self.book(Event::Keep(name(step)), &made);
            }
            19 => {
                let gone = index.roll_back(&name(step - 8));
                self.book(Event::RollBack(name(step - 8)), &gone);
            }
            23 => {
                let forgotten = index.forget(&name(step - 12));
                self.book(Event::Forget(name(step - 12)), &forgotten);
            }
            5 | 17 | 27 => {
                let lasts = match self.durability {
                    Durability::Checkpoint => index.checkpoint(None).map(|_| ()),
                    _ => index.sync(),
                };
                if lasts.is_ok() {
                    self.settle_open();
                    self.truth.acknowledge();
                }
            }
            _ => {
                let changes: Vec<Change> = (0..10 + step % 9)
                    .map(|part| {
                        let number = step.wrapping_mul(7) + part * 13;
                        let value = (step << 16 | number).to_le_bytes();
                        let value = (!number.is_multiple_of(5)).then(|| value.into());
                        Change { key: key(number), value }
                    })
                    .collect();
                let updated = update(index, &changes);
                self.book(Event::Batch(changes), &updated);
            }
        }
    }

    /// What is read of some keys is right or refused.
    pub(crate) fn read(
        &self,
        index: &mut dyn Index,
        keys: impl Iterator<Item = u32>,
        has_failed: bool,
        is_broken: bool,
    ) {
        for number in keys {
            let key = key(number);
            let mut into = [0; 4];
            match index.get(&key, 0, &mut into) {
                Ok(found) => {
                    assert!(!is_broken, "{}: a flush failed, and it is read", self.name);
                    let is_open = match &self.open {
                        _ if self.halved.contains(&key) => true,
                        None => false,
                        Some(Event::Batch(changes)) => {
                            changes.iter().any(|change| change.key == key)
                        }
                        Some(_) => true,
                    };
                    let wanted = self.truth.latest().entries.get(&key);
                    let value = found.map(|bytes| &into[..bytes as usize]);
                    let is_right = value == wanted.map(|value| &value[..]);
                    assert!(is_open || is_right, "{}: key {number} reads {value:?}", self.name);
                }
                Err(error) if is_of_device(&error) => {
                    assert!(has_failed, "{}: nothing failed", self.name);
                }
                Err(error) => panic!("{}: a get: {error:?}", self.name),
            }
        }
    }
}

/// What a failed device makes of a call: a page that can't be read once is as good as damaged.
fn is_of_device(error: &Error) -> bool {
    match error {
        Error::Store(store::Error::NotAnIndex { is_ours, .. }) => *is_ours,
        Error::Store(error) => matches!(error, store::Error::Device(_)) || error.is_damage(),
        error => matches!(error, Error::Unsupported { .. }),
    }
}

/// Makes a batch of changes.
pub(crate) fn update(index: &mut dyn Index, changes: &[Change]) -> index::Result<()> {
    let batch: Vec<Update<'_>> = changes
        .iter()
        .map(|Change { key, value }| match value {
            Some(value) => Update::Put { key, value },
            None => Update::Delete { key },
        })
        .collect();
    index.update(&batch)
}

/// Everything.
pub(crate) fn read_all(index: &mut dyn Index) -> index::Result<Found> {
    let mut entries = Vec::new();
    let mut cursor = index.range(KeyRange::ALL)?;
    while let Some((key, value)) = cursor.next()? {
        let Value::Inline(value) = value else { panic!("no value is long") };
        entries.push((key.to_vec(), value.to_vec()));
    }
    drop(cursor);
    let names = index.checkpoints().iter().map(|kept| kept.name.clone()).collect();
    Ok(Found { entries, names })
}

impl Play {
    /// Closes the index; true if that is done.
    pub(crate) fn close(&mut self, index: &mut dyn Index) -> bool {
        let is_closed = index.close().is_ok();
        self.refused += u32::from(!is_closed);
        is_closed
    }

    /// What an opening finds is right, where what was played `is_closed`, or the power was cut.
    pub(crate) fn end(&mut self, found: index::Result<Found>, is_closed: bool) {
        let name = &self.name;
        let found = match found {
            Ok(found) => found,
            // What has no durability and was not closed is lost, and that is told.
            Err(Error::Store(store::Error::NotClosed))
                if self.durability == Durability::None && !is_closed && self.refused > 0 =>
            {
                return;
            }
            Err(error) => panic!("{name}: opened again: {error:?}"),
        };
        if self.durability == Durability::None && self.open.is_none() {
            // All or nothing of it.
            self.truth.acknowledge();
        }
        if let Err(mismatch) = self.truth.learn(&found) {
            panic!("{name}: {mismatch}");
        }
    }
}
