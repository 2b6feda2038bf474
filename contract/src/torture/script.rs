//! A history that contains everything: it fills leaves until one splits, empties them until two
//! merge or one goes, makes a checkpoint, and writes until a block is reclaimed, or a whole
//! generation of them.

use super::actions::{Action, Actor};
use super::cell::Cell;
use super::truth::{Change, World};
use super::witness::{EMPTIED, MERGES, Witness};

/// Keys that scripts use beside those of other histories.
pub(super) const FRESH_KEYS: u32 = 4000;

/// Batches that split leaves before the first that merges some: where pages share sectors, not
/// every merge shows.
const SPLITS: u64 = 4;

/// Keys of a batch, at most: far less than what is refused for want of room.
const STEP_MOST: u32 = 32;

/// Keys of a batch at the least, where longer ones are refused: it is still a batch.
const STEP_LEAST: u32 = 4;

/// Where a script stands.
pub(super) struct Script {
    impossible: Vec<&'static str>,
    /// The first key that no other history uses.
    fresh: u32,
    /// Keys of one batch.
    step: u32,
    /// Fresh keys that are in the index.
    filled: u32,
    /// Fresh keys that were put.
    put: u32,
    /// True if enough was filled.
    merges_are_due: bool,
    /// Updates that were refused, each of which one entry made room for.
    refused: u64,
    /// Steps since nothing was missing but reclamations.
    writes: u32,
}

impl Script {
    pub(super) fn new(cell: &Cell, keys: u32) -> Self {
        let impossible = cell.impossible();
        let step = cell.neighbours_most().min(STEP_MOST);
        Script {
            impossible,
            fresh: keys,
            step,
            filled: 0,
            put: 0,
            merges_are_due: false,
            refused: 0,
            writes: 0,
        }
    }

    /// What comes next in an index that holds `world`, after what `witness` counts.
    pub(super) fn next(
        &mut self,
        actor: &mut Actor<'_>,
        world: &World,
        witness: &Witness,
    ) -> Action {
        // What is kept may leave no room.
        if let Some(kept) = world.kept.first() {
            return Action::Forget(kept.name.clone());
        }
        // Nor may what other histories left.
        if witness.refused > self.refused {
            self.refused = witness.refused;
            // What a batch may take in the worst case grows with it, and may be more than the chip,
            // even where nothing is to be deleted.
            self.step = (self.step / 2).max(STEP_LEAST);
            if let Some(key) = world.entries.keys().next() {
                return Action::Update(vec![Change { key: key.clone(), value: None }]);
            }
        }
        let lacks = witness.lacks(&self.impossible);
        if witness.splits < SPLITS && !self.merges_are_due && self.filled + self.step <= FRESH_KEYS
        {
            let first = self.fresh + self.filled;
            self.filled += self.step;
            self.put = self.filled;
            return Action::Update(actor.side_by_side(first..first + self.step, false));
        }
        self.merges_are_due = true;
        let wants_deletes = [MERGES, EMPTIED, "deletes"].iter().any(|what| lacks.contains(what));
        if wants_deletes && self.put > 0 {
            if self.filled == 0 {
                // Where deletes wait in buffers, others of the same keys push them to the leaves.
                self.filled = self.put;
            }
            self.filled = self.filled.saturating_sub(self.step);
            let first = self.fresh + self.filled;
            return Action::Update(actor.side_by_side(first..first + self.step, true));
        }
        self.writes += 1;
        match self.writes % 2 {
            1 => Action::Update(actor.side_by_side(self.writes..self.writes + 1, false)),
            _ => Action::Checkpoint,
        }
    }
}
