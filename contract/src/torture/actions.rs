//! What the histories do, decided by a seed and by what the index holds.

use std::ops::Range;
use std::rc::Rc;

use index::Width;
use rand::{Rng, RngExt};
use rand_chacha::ChaCha8Rng;

use super::cell::Cell;
use super::truth::{Bytes, Change, World};

/// One step of a history.
#[derive(Clone, Debug)]
pub(super) enum Action {
    /// A batch.
    Update(Vec<Change>),
    /// A sync.
    Sync,
    /// A checkpoint without a name.
    Checkpoint,
    /// A checkpoint with this name.
    Keep(Rc<str>),
    /// A rollback to this name.
    RollBack(Rc<str>),
    /// This name is forgotten.
    Forget(Rc<str>),
    /// The index is closed, and used on.
    Close,
    /// A get of this key.
    Get(Bytes),
}

/// Checkpoints that are kept at the same time, at most.
const NAMES_MOST: usize = 4;

/// The longest values, in nodes.
const LONG_VALUE_NODES: u32 = 3;

/// Who decides.
pub(super) struct Actor<'c> {
    cell: &'c Cell,
    random: ChaCha8Rng,
    /// The session, which makes its names unlike those of others.
    session: u32,
    names: u32,
    deletes_percent: u32,
    batches_percent: u32,
    /// How many puts have a long value, where values can be long.
    long_percent: u32,
    /// How many changes hit a key that has a long value already: its pages are given back.
    rewrites_percent: u32,
    /// How many actions have to do with named checkpoints.
    names_percent: u32,
    /// Keys that there are.
    keys: u32,
    /// Keys side by side that were deleted: the pages that this gave back are soon used again.
    deleted: Option<Range<u32>>,
}

/// One batch in so many is longer than the journal, and one in so many can't be taken.
const RARE: u32 = 80;

impl<'c> Actor<'c> {
    pub(super) fn new(cell: &'c Cell, keys: u32, session: u32, mut random: ChaCha8Rng) -> Self {
        let deletes_percent = [10, 30, 80][random.random_range(0..3)];
        let batches_percent = [5, 40, 90][random.random_range(0..3)];
        let long_percent = [2, 10, 50][random.random_range(0..3)];
        let names_percent = [0, 8, 30][random.random_range(0..3)];
        let rewrites_percent = [0, 10, 60][random.random_range(0..3)];
        if cell.shape.shape.value == Width::Variable && random.random_ratio(1, 3) {
            return Actor::of_long_values(cell, keys, session, random);
        }
        Actor {
            cell,
            random,
            session,
            names: 0,
            deletes_percent,
            batches_percent,
            long_percent,
            rewrites_percent,
            names_percent,
            keys,
            deleted: None,
        }
    }

    /// One who does little else than to write long values and to replace them: so pages are given
    /// back that nothing changed since the last checkpoint, and used again.
    fn of_long_values(cell: &'c Cell, keys: u32, session: u32, random: ChaCha8Rng) -> Self {
        Actor {
            cell,
            random,
            session,
            names: 0,
            deletes_percent: 10,
            batches_percent: 5,
            long_percent: 90,
            rewrites_percent: 60,
            names_percent: 0,
            keys,
            deleted: None,
        }
    }

    /// What comes next, where the index holds `world`.
    pub(super) fn next(&mut self, world: &World) -> Action {
        if self.random.random_range(0..100) < self.names_percent {
            return self.about_names(world);
        }
        match self.random.random_range(0..100) {
            0..7 => Action::Sync,
            7..11 => Action::Checkpoint,
            11..13 => Action::Close,
            13..18 => Action::Get(self.key()),
            _ => Action::Update(self.batch(world)),
        }
    }

    fn about_names(&mut self, world: &World) -> Action {
        let kept = &world.kept;
        match self.random.random_range(0..8) {
            0..4 if kept.len() < NAMES_MOST => {
                self.names += 1;
                Action::Keep(format!("{}-{}", self.session, self.names).into())
            }
            0..6 if !kept.is_empty() => Action::RollBack(self.name(world)),
            _ if !kept.is_empty() => Action::Forget(self.name(world)),
            _ => Action::Sync,
        }
    }

    /// The entries that an index is loaded with.
    pub(super) fn sorted(&mut self) -> Vec<Change> {
        let keep = self.random.random_range(0..100);
        let mut changes = Vec::new();
        for number in 0..self.cell.keys() {
            if self.random.random_range(0..100) < keep {
                let key = self.key_of(number);
                let value = Some(self.short_value(&key));
                changes.push(Change { key, value });
            }
        }
        changes.sort_by(|one, other| one.key.cmp(&other.key));
        changes
    }

    fn name(&mut self, world: &World) -> Rc<str> {
        world.kept[self.random.random_range(0..world.kept.len())].name.clone()
    }

    fn batch(&mut self, world: &World) -> Vec<Change> {
        match self.random.random_range(0..RARE) {
            0 => return self.long_batch(world),
            1 => return self.impossible_batch(world),
            _ => {}
        }
        if self.random.random_range(0..100) >= self.batches_percent {
            return vec![self.change(world)];
        }
        if self.random.random_ratio(1, 3) {
            let changes = self.random.random_range(2..8);
            return (0..changes).map(|_| self.change(world)).collect();
        }
        if let Some(deleted) = self.deleted.take()
            && self.random.random_ratio(1, 2)
        {
            return self.side_by_side(deleted, false);
        }
        // Keys side by side: leaves fill up and are emptied.
        let first = self.random.random_range(0..self.keys);
        let most = self.cell.neighbours_most();
        let end = (first + self.random.random_range(2..=most)).min(self.keys);
        let delete = self.random.random_range(0..100) < self.deletes_percent;
        self.deleted = delete.then_some(first..end);
        self.side_by_side(first..end, delete)
    }

    /// Puts, or deletes, of keys side by side.
    pub(super) fn side_by_side(&mut self, keys: Range<u32>, delete: bool) -> Vec<Change> {
        let change = |number| {
            let key = self.key_of(number);
            let value = (!delete).then(|| self.short_value(&key));
            Change { key, value }
        };
        keys.map(change).collect()
    }

    /// A batch that the journal can't take as a whole, however empty it is.
    fn long_batch(&mut self, world: &World) -> Vec<Change> {
        let (mut changes, mut bytes) = (Vec::new(), 0);
        while bytes <= self.cell.journal_bytes() {
            let change = self.change(world);
            bytes += change.key.len() as u64;
            bytes += change.value.as_ref().map_or(0, |value| value.len() as u64);
            changes.push(change);
        }
        changes
    }

    /// A batch whose last change no tree takes.
    fn impossible_batch(&mut self, world: &World) -> Vec<Change> {
        let possible = self.random.random_range(1..4);
        let mut changes: Vec<_> = (0..possible).map(|_| self.change(world)).collect();
        let key = self.bytes(self.cell.page_bytes.max(self.cell.node_bytes()) as usize);
        let value = self.random.random_bool(0.5).then(|| self.short_value(&[]));
        changes.push(Change { key, value });
        changes
    }

    fn change(&mut self, world: &World) -> Change {
        let delete = self.random.random_range(0..100) < self.deletes_percent;
        if self.random.random_range(0..100) < self.rewrites_percent
            && let Some(key) = self.key_with_long_value(world)
        {
            let value = (!delete).then(|| self.long_value());
            return Change { key, value };
        }
        let key = self.key();
        let value = (!delete).then(|| self.value(&key));
        Change { key, value }
    }

    fn key(&mut self) -> Bytes {
        let number = self.random.random_range(0..self.keys);
        self.key_of(number)
    }

    fn key_of(&self, number: u32) -> Bytes {
        match self.cell.shape.shape.key {
            Width::Fixed(4) => (number << 12 | 7).to_be_bytes().into(),
            Width::Fixed(_) => (u64::from(number) << 20).to_be_bytes().into(),
            Width::Variable => {
                // Short enough for the smallest nodes.
                let stems = ["", "a", "flights/", "flights/e", "w"];
                let stem = stems[(number as usize * stems.len() / self.cell.keys() as usize)
                    .min(stems.len() - 1)];
                match number {
                    0 => [].into(),
                    _ => format!("{stem}{number:04}").into_bytes().into(),
                }
            }
        }
    }

    /// What every tree takes of a key and its value in a node: a quarter of it, without the room
    /// for slots.
    fn entry_most(&self) -> usize {
        (self.cell.least_node_bytes() as usize - 16) / 4 - 8
    }

    fn value(&mut self, key: &[u8]) -> Bytes {
        let is_long = self.cell.shape.shape.value == Width::Variable
            && key.last().is_some_and(|byte| byte.is_multiple_of(3))
            && self.random.random_range(0..100) < self.long_percent;
        if is_long { self.long_value() } else { self.short_value(key) }
    }

    /// A key of `world` that has a long value, if there are any.
    fn key_with_long_value(&mut self, world: &World) -> Option<Bytes> {
        if self.cell.shape.shape.value != Width::Variable {
            return None;
        }
        let from = self.key();
        let is_long = |(_, value): &(&Bytes, &Bytes)| value.len() > self.entry_most();
        world.entries.range(from..).find(is_long).map(|(key, _)| key.clone())
    }

    fn long_value(&mut self) -> Bytes {
        let mut most = self.cell.node_bytes() * LONG_VALUE_NODES;
        if self.random.random_ratio(1, 3) {
            most = most.max(self.cell.longest_value());
        }
        let length = self.random.random_range(self.entry_most() as u32..=most);
        self.bytes(length as usize)
    }

    fn short_value(&mut self, key: &[u8]) -> Bytes {
        let length = match self.cell.shape.shape.value {
            Width::Fixed(bytes) => usize::from(bytes),
            Width::Variable => {
                let most = self.entry_most().saturating_sub(key.len());
                let usual = if self.random.random_ratio(1, 20) { most } else { most.min(40) };
                self.random.random_range(0..=usual)
            }
        };
        self.bytes(length)
    }

    fn bytes(&mut self, length: usize) -> Bytes {
        let mut bytes = vec![0; length];
        self.random.fill_bytes(&mut bytes);
        bytes.into()
    }
}
