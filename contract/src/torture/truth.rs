//! What an index may hold after a power cut.
//!
//! A history is a row of events: batches, named checkpoints, rollbacks, names forgotten. Each makes
//! the next world out of the one before. Some first part of the row was acknowledged: it lasts. An
//! index that comes back after a cut must hold exactly the world after some first part of the row
//! that is at least as long: no hole, no half batch, no torn entry, no key from nowhere can be in
//! such a world.
//!
//! The search keeps the keys in which the index differs from the world at hand, and lets each event
//! correct only the keys that it changes: so it costs what the events cost, not worlds times
//! events.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::rc::Rc;

/// A key or a value.
pub type Bytes = Rc<[u8]>;

/// The entries of an index.
pub type Entries = BTreeMap<Bytes, Bytes>;

/// One change of a batch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change {
    /// The key.
    pub key: Bytes,
    /// Its value from now on; `None` if it is deleted.
    pub value: Option<Bytes>,
}

/// A checkpoint that has a name, and what it keeps. No two in a history have the same name.
#[derive(Clone, Debug)]
pub struct Kept {
    /// Its name.
    pub name: Rc<str>,
    /// What a rollback goes back to.
    pub entries: Rc<Entries>,
}

/// What changes the world.
#[derive(Clone, Debug)]
pub enum Event {
    /// A batch of changes, one after the other.
    Batch(Vec<Change>),
    /// A checkpoint with this name.
    Keep(Rc<str>),
    /// Back to the checkpoint with this name: later ones are gone.
    RollBack(Rc<str>),
    /// The checkpoint with this name is kept no longer.
    Forget(Rc<str>),
}

/// What an index holds at one moment.
#[derive(Clone, Debug, Default)]
pub struct World {
    /// Its entries.
    pub entries: Entries,
    /// Its named checkpoints, oldest first.
    pub kept: Vec<Kept>,
}

impl World {
    /// The checkpoint called `name`.
    #[must_use]
    pub fn kept(&self, name: &str) -> Option<&Kept> {
        self.kept.iter().find(|kept| *kept.name == *name)
    }

    fn apply(&mut self, event: &Event) {
        match event {
            Event::Batch(changes) => {
                for Change { key, value } in changes {
                    match value {
                        Some(value) => self.entries.insert(key.clone(), value.clone()),
                        None => self.entries.remove(key),
                    };
                }
            }
            Event::Keep(name) => {
                let entries = Rc::new(self.entries.clone());
                keep(&mut self.kept, name, entries);
            }
            Event::RollBack(name) => {
                if let Some(entries) = roll_back(&mut self.kept, name) {
                    self.entries = (*entries).clone();
                }
            }
            Event::Forget(name) => self.kept.retain(|kept| kept.name != *name),
        }
    }
}

/// Adds a checkpoint with this name to those that are kept.
fn keep(kept: &mut Vec<Kept>, name: &Rc<str>, entries: Rc<Entries>) {
    kept.push(Kept { name: name.clone(), entries });
}

/// Lets go of the checkpoints that came behind this one; returns its entries.
fn roll_back(kept: &mut Vec<Kept>, name: &str) -> Option<Rc<Entries>> {
    let place = kept.iter().position(|kept| *kept.name == *name)?;
    kept.truncate(place + 1);
    kept.last().map(|target| target.entries.clone())
}

/// What was found in an index.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Found {
    /// Its entries, in the order in which it gave them.
    pub entries: Vec<(Vec<u8>, Vec<u8>)>,
    /// The names of its checkpoints, in the order in which it listed them.
    pub names: Vec<String>,
}

impl Found {
    fn value(&self, key: &[u8]) -> Option<&[u8]> {
        let place = self.entries.binary_search_by(|(known, _)| known.as_slice().cmp(key)).ok()?;
        Some(&self.entries[place].1)
    }

    /// The first entry that does not come behind the one before it.
    fn out_of_order(&self) -> Option<usize> {
        self.entries.windows(2).position(|two| two[0].0 >= two[1].0).map(|place| place + 1)
    }

    /// The keys in which this differs from `entries`. Both are sorted, so they are walked together.
    fn differing(&self, entries: &Entries) -> BTreeSet<Bytes> {
        let mut differing = BTreeSet::new();
        let mut wanted = entries.iter().peekable();
        for (key, value) in &self.entries {
            while let Some((missing, _)) = wanted.next_if(|(wanted, _)| ***wanted < **key) {
                differing.insert(missing.clone());
            }
            match wanted.next_if(|(wanted, _)| ***wanted == **key) {
                Some((_, expected)) if **expected == **value => {}
                _ => {
                    differing.insert(key.as_slice().into());
                }
            }
        }
        differing.extend(wanted.map(|(missing, _)| missing.clone()));
        differing
    }
}

/// What happened to an index, as far as it matters for what it may hold.
#[derive(Clone, Debug, Default)]
pub struct Truth {
    /// The world of all that was acknowledged.
    settled: World,
    /// What came after it.
    events: Vec<Event>,
    /// The world after that.
    latest: World,
}

impl Truth {
    /// The world after all events, acknowledged or not.
    #[must_use]
    pub const fn latest(&self) -> &World {
        &self.latest
    }

    /// How many events are not acknowledged.
    #[must_use]
    pub fn open_events(&self) -> usize {
        self.events.len()
    }

    /// Says that `event` is about to happen: from now on it may have happened, or not.
    pub fn begin(&mut self, event: Event) {
        self.latest.apply(&event);
        self.events.push(event);
    }

    /// Says that the last event was refused, with nothing changed.
    pub fn refuse(&mut self) {
        self.events.pop();
        self.latest = self.settled.clone();
        for event in &self.events {
            self.latest.apply(event);
        }
    }

    /// Says that all events so far last.
    pub fn acknowledge(&mut self) {
        for event in self.events.drain(..) {
            self.settled.apply(&event);
        }
    }

    /// Compares what was found after a cut with every world that is allowed. What was found is
    /// acknowledged from then on: who has seen it relies on it. Returns how many events that had
    /// not been acknowledged were found.
    ///
    /// # Errors
    /// No world that is allowed is what was found.
    pub fn learn(&mut self, found: &Found) -> Result<usize, Mismatch> {
        let events = self.find(found)?;
        let whole = events == self.events.len();
        self.events.truncate(events);
        self.acknowledge();
        if !whole {
            self.latest = self.settled.clone();
        }
        Ok(events)
    }

    /// Compares what was found without a cut with the latest world.
    ///
    /// # Errors
    /// It is another.
    pub fn compare(&self, found: &Found) -> Result<(), Mismatch> {
        if let Some(place) = found.out_of_order() {
            return Err(Mismatch::Order { place });
        }
        let differing = found.differing(&self.latest.entries);
        let names: Vec<_> = self.latest.kept.iter().map(|kept| kept.name.clone()).collect();
        if differing.is_empty() && names_agree(&names, found) {
            return Ok(());
        }
        let all = self.events.len();
        Err(Mismatch::World(Closest { events: all, all, differing, names }.describe(self, found)))
    }

    /// How many events have to be added to what was acknowledged to give what was found.
    fn find(&self, found: &Found) -> Result<usize, Mismatch> {
        if let Some(place) = found.out_of_order() {
            return Err(Mismatch::Order { place });
        }
        let mut search = Search::new(&self.settled, found);
        let mut closest = search.closest(0, self.events.len());
        let mut last = search.is_match().then_some(0);
        for (place, event) in self.events.iter().enumerate() {
            search.apply(event);
            if search.is_match() {
                last = Some(place + 1);
            } else if search.differing.len() < closest.differing.len() {
                closest = search.closest(place + 1, self.events.len());
            }
        }
        last.ok_or_else(|| Mismatch::World(closest.describe(self, found)))
    }
}

fn names_agree(names: &[Rc<str>], found: &Found) -> bool {
    names.len() == found.names.len()
        && names.iter().zip(&found.names).all(|(name, found)| **name == **found)
}

/// The way from world to world, with the keys in which each differs from what was found.
struct Search<'s> {
    found: &'s Found,
    differing: BTreeSet<Bytes>,
    kept: Vec<Kept>,
    /// Worlds between two named checkpoints are needed only if one is named on the way.
    entries: LazyEntries<'s>,
}

/// The entries of a world: those of an earlier one and what was changed since.
struct LazyEntries<'s> {
    base: &'s Entries,
    rolled_back: Option<Rc<Entries>>,
    changes: BTreeMap<Bytes, Option<Bytes>>,
}

impl LazyEntries<'_> {
    fn all(&self) -> Entries {
        let mut entries = self.rolled_back.as_deref().unwrap_or(self.base).clone();
        for (key, value) in &self.changes {
            match value {
                Some(value) => entries.insert(key.clone(), value.clone()),
                None => entries.remove(key),
            };
        }
        entries
    }
}

impl<'s> Search<'s> {
    fn new(settled: &'s World, found: &'s Found) -> Self {
        Search {
            found,
            differing: found.differing(&settled.entries),
            kept: settled.kept.clone(),
            entries: LazyEntries {
                base: &settled.entries,
                rolled_back: None,
                changes: BTreeMap::new(),
            },
        }
    }

    fn is_match(&self) -> bool {
        self.differing.is_empty()
            && self.kept.len() == self.found.names.len()
            && self.kept.iter().zip(&self.found.names).all(|(kept, name)| *kept.name == **name)
    }

    fn apply(&mut self, event: &Event) {
        match event {
            Event::Batch(changes) => changes.iter().for_each(|change| self.change(change)),
            Event::Keep(name) => {
                let entries = Rc::new(self.entries.all());
                keep(&mut self.kept, name, entries);
            }
            Event::RollBack(name) => {
                if let Some(entries) = roll_back(&mut self.kept, name) {
                    self.differing = self.found.differing(&entries);
                    self.entries.rolled_back = Some(entries);
                    self.entries.changes.clear();
                }
            }
            Event::Forget(name) => self.kept.retain(|kept| kept.name != *name),
        }
    }

    fn change(&mut self, Change { key, value }: &Change) {
        if self.found.value(key) == value.as_deref() {
            self.differing.remove(key);
        } else {
            self.differing.insert(key.clone());
        }
        self.entries.changes.insert(key.clone(), value.clone());
    }

    fn closest(&self, events: usize, all: usize) -> Closest {
        let names = self.kept.iter().map(|kept| kept.name.clone()).collect();
        Closest { events, all, differing: self.differing.clone(), names }
    }
}

/// The world that is most like what was found.
struct Closest {
    events: usize,
    all: usize,
    differing: BTreeSet<Bytes>,
    names: Vec<Rc<str>>,
}

/// Keys that a mismatch shows.
const SHOWN: usize = 3;

impl Closest {
    fn describe(self, truth: &Truth, found: &Found) -> WorldMismatch {
        let mut world = truth.settled.clone();
        truth.events[..self.events].iter().for_each(|event| world.apply(event));
        let difference = |key: &Bytes| Difference {
            key: key.to_vec(),
            expected: world.entries.get(key).map(|value| value.to_vec()),
            found: found.value(key).map(<[u8]>::to_vec),
        };
        WorldMismatch {
            events: self.events,
            all: self.all,
            differing: self.differing.len(),
            first: self.differing.iter().take(SHOWN).map(difference).collect(),
            expected_names: self.names.iter().map(ToString::to_string).collect(),
            found_names: found.names.clone(),
        }
    }
}

/// What was found is no world that is allowed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Mismatch {
    /// Entries are not in the order of their keys.
    Order {
        /// The first that does not come behind the one before it, from 0.
        place: usize,
    },
    /// Entries or names differ.
    World(WorldMismatch),
}

/// The difference to the world that is most like what was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WorldMismatch {
    /// How many unacknowledged events that world has.
    pub events: usize,
    /// How many there are.
    pub all: usize,
    /// Keys that differ.
    pub differing: usize,
    /// The first of them.
    pub first: Vec<Difference>,
    /// Names that should be listed.
    pub expected_names: Vec<String>,
    /// Names that are.
    pub found_names: Vec<String>,
}

/// A key that has another value than it should.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Difference {
    /// The key.
    pub key: Vec<u8>,
    /// The value that it should have, if any.
    pub expected: Option<Vec<u8>>,
    /// The value that it has, if any.
    pub found: Option<Vec<u8>>,
}

impl fmt::Display for Mismatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Mismatch::Order { place } => write!(f, "entry {place} is not behind the one before it"),
            Mismatch::World(world) => world.fmt(f),
        }
    }
}

impl fmt::Display for WorldMismatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let WorldMismatch { events, all, differing, .. } = self;
        write!(f, "it holds no state that is allowed; the closest, ")?;
        write!(f, "{events} of {all} events behind what was acknowledged, ")?;
        write!(f, "differs in {differing} keys")?;
        for difference in &self.first {
            write!(f, ", {difference}")?;
        }
        if self.expected_names != self.found_names {
            let (expected, found) = (self.expected_names.join(" "), self.found_names.join(" "));
            write!(f, ", and keeps the checkpoints \"{found}\" instead of \"{expected}\"")?;
        }
        Ok(())
    }
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shown = |bytes: &[u8]| {
            let most = bytes.len().min(8);
            let digits: String = bytes[..most].iter().map(|byte| format!("{byte:02x}")).collect();
            format!(
                "{digits}{} ({} bytes)",
                if most < bytes.len() { ".." } else { "" },
                bytes.len()
            )
        };
        let value = |value: &Option<Vec<u8>>| value.as_deref().map_or("nothing".into(), shown);
        let key = shown(&self.key);
        write!(f, "{key} has {}, not {}", value(&self.found), value(&self.expected))
    }
}

#[cfg(test)]
mod tests;
