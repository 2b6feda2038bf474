//! What the histories do, decided by a seed and by what the index holds.

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
    /// How many actions have to do with named checkpoints.
    names_percent: u32,
}

impl<'c> Actor<'c> {
    pub(super) fn new(cell: &'c Cell, session: u32, mut random: ChaCha8Rng) -> Self {
        let deletes_percent = [10, 30, 80][random.random_range(0..3)];
        let batches_percent = [5, 40, 90][random.random_range(0..3)];
        let long_percent = [2, 10, 50][random.random_range(0..3)];
        let names_percent = [0, 8, 30][random.random_range(0..3)];
        Actor {
            cell,
            random,
            session,
            names: 0,
            deletes_percent,
            batches_percent,
            long_percent,
            names_percent,
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
            _ => Action::Update(self.batch()),
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

    fn batch(&mut self) -> Vec<Change> {
        if self.random.random_range(0..100) >= self.batches_percent {
            return vec![self.change()];
        }
        if self.random.random_ratio(1, 3) {
            return (0..self.random.random_range(2..8)).map(|_| self.change()).collect();
        }
        // Keys side by side: leaves fill up and are emptied.
        let first = self.random.random_range(0..self.cell.keys());
        let most = (self.cell.node_bytes() / self.cell.entry_bytes() * 3 / 2).clamp(4, 96);
        let end = (first + self.random.random_range(2..=most)).min(self.cell.keys());
        let delete = self.random.random_range(0..100) < self.deletes_percent;
        let change = |number| {
            let key = self.key_of(number);
            let value = (!delete).then(|| self.short_value(&key));
            Change { key, value }
        };
        (first..end).map(change).collect()
    }

    fn change(&mut self) -> Change {
        let key = self.key();
        let delete = self.random.random_range(0..100) < self.deletes_percent;
        let value = (!delete).then(|| self.value(&key));
        Change { key, value }
    }

    fn key(&mut self) -> Bytes {
        let number = self.random.random_range(0..self.cell.keys());
        self.key_of(number)
    }

    fn key_of(&self, number: u32) -> Bytes {
        match self.cell.shape.shape.key {
            Width::Fixed(4) => (number << 12 | 7).to_be_bytes().into(),
            Width::Fixed(_) => (u64::from(number) << 20).to_be_bytes().into(),
            Width::Variable => {
                // Short enough for the smallest nodes.
                let stems = ["", "a", "flights/", "flights/e", "w"];
                let stem = stems[number as usize * stems.len() / self.cell.keys() as usize];
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
        if !is_long {
            return self.short_value(key);
        }
        let most = self.cell.node_bytes() * LONG_VALUE_NODES;
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
