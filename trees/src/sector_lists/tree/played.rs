//! How a leaf fares under SWITCHMODE: a sequence of operations on it is played, always the same.
//!
//! Whether a leaf is in log or in disk mode depends on what came before, and on chance. No formula
//! tells the share of each; so the counter itself is asked, with lookups and updates in a random
//! order, each of which finds the leaf missing in the cache by the same chance.

use crate::sector_lists::Mode;
use crate::sector_lists::switching::{Costs, Node, Operation};

/// Operations that are played, the first of which only bring the leaf to where it goes on from.
const OPERATIONS: u32 = 60_000;
const BEFORE: u32 = 5000;

/// What the operations are.
#[derive(Clone, Copy, Debug)]
pub(super) struct Leaf {
    pub(super) costs: Costs,
    pub(super) mode: Mode,
    /// The most sectors of its list.
    pub(super) list: u32,
    /// The chance that it is not in the cache, and that an operation is an update.
    pub(super) missing: f64,
    pub(super) updates: f64,
    /// The chance that an entry is logged in a sector that has none of this leaf yet.
    pub(super) spread: f64,
}

/// What came of them, each an operation.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Played {
    /// Times that it was read, and sectors of entries beside one that has it as a whole.
    pub(super) misses: f64,
    pub(super) shared: f64,
    /// Pages written, and those that had to be changed later than when they were read.
    pub(super) pages: f64,
    pub(super) changed_later: f64,
    /// Entries logged, and times that it was logged as a whole, of which some for a full list.
    pub(super) entries: f64,
    pub(super) whole: f64,
    pub(super) compacted: f64,
    /// Sectors of its list that were given back when it became a page.
    pub(super) left: f64,
    /// The share of the operations that found it in log mode.
    pub(super) in_log: f64,
}

/// Numbers as good as random, from 0 to 1.
struct Random(u64);

impl Random {
    fn is_below(&mut self, chance: f64) -> bool {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        ((self.0 >> 11) as f64) < chance * (1u64 << 53) as f64
    }
}

struct Play {
    leaf: Leaf,
    random: Random,
    node: Node,
    is_dirty: bool,
    was_changed: bool,
    counts: Played,
}

impl Play {
    fn serve(&mut self, operation: Operation) -> bool {
        self.node.serve(&self.leaf.costs, operation, self.leaf.mode)
    }

    /// It is read if it is missing; true if that was so.
    fn read(&mut self) -> bool {
        if !self.random.is_below(self.leaf.missing) {
            return false;
        }
        if core::mem::take(&mut self.is_dirty) {
            self.counts.pages += 1.0;
        }
        self.was_changed = false;
        self.counts.misses += 1.0;
        let beside = f64::from(self.node.sectors.saturating_sub(1));
        self.counts.shared += beside;
        let is_due = self.serve(Operation::Read { sectors: self.node.sectors });
        if is_due && !self.node.is_page {
            self.become_page();
        }
        true
    }

    fn become_page(&mut self) {
        self.counts.left += f64::from(self.node.sectors);
        self.node = Node { counter: 0, sectors: 1, is_page: true };
        (self.is_dirty, self.was_changed) = (true, true);
    }

    fn update(&mut self, was_read: bool) {
        let is_first = !core::mem::replace(&mut self.was_changed, true);
        let is_due = self.serve(Operation::Write { is_first });
        if self.node.is_page && is_due {
            self.node = Node { counter: 0, sectors: 1, is_page: false };
            self.is_dirty = false;
            self.counts.whole += 1.0;
        } else if self.node.is_page {
            if !self.is_dirty && !was_read {
                self.counts.changed_later += 1.0;
            }
            self.is_dirty = true;
        } else {
            self.log();
            if is_due {
                self.become_page();
            }
        }
    }

    fn log(&mut self) {
        self.counts.entries += 1.0;
        if !self.random.is_below(self.leaf.spread) {
            return;
        }
        self.node.sectors += 1;
        if self.node.sectors > self.leaf.list {
            self.node.sectors = 1;
            self.counts.whole += 1.0;
            self.counts.compacted += 1.0;
        }
    }
}

/// Plays the operations.
pub(super) fn play(leaf: Leaf) -> Played {
    let mut play = Play {
        leaf,
        random: Random(0x9E37_79B9_7F4A_7C15),
        node: Node { counter: 0, sectors: 1, is_page: false },
        is_dirty: false,
        was_changed: false,
        counts: Played::default(),
    };
    for operation in 0..OPERATIONS {
        if operation == BEFORE {
            play.counts = Played::default();
        }
        let was_read = play.read();
        play.counts.in_log += if play.node.is_page { 0.0 } else { 1.0 };
        if play.random.is_below(leaf.updates) {
            play.update(was_read);
        }
    }
    let mut counts = play.counts;
    let each = 1.0 / f64::from(OPERATIONS - BEFORE);
    for count in [
        &mut counts.misses,
        &mut counts.shared,
        &mut counts.pages,
        &mut counts.changed_later,
        &mut counts.entries,
        &mut counts.whole,
        &mut counts.compacted,
        &mut counts.left,
        &mut counts.in_log,
    ] {
        *count *= each;
    }
    counts
}
