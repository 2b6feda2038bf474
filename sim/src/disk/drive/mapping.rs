//! Where the units of a drive stand on its flash.
//!
//! A unit that is written goes to the next slot of the open stripe; the slot where it stood is
//! dead. When free stripes run short, the stripe with the fewest living units, of several the one
//! closed longest ago, is collected: they are moved to the open stripe, and it is erased.
//!
//! Invariant: every unit stands in exactly one slot, whose entry names it; a stripe is open, closed
//! or free, and a free one holds nothing.

use std::collections::{BTreeSet, VecDeque};

/// Free stripes below which stripes are collected. Collecting one fills at most one.
const FREE_LEAST: usize = 2;

/// No unit.
const DEAD: u32 = u32::MAX;

/// What a write makes the drive do before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// A unit is moved from one slot to another.
    Move { from: u32, to: u32 },
    /// A stripe is erased.
    Erase { stripe: u32 },
}

/// The map of a drive.
#[derive(Clone, Debug)]
pub(super) struct Mapping {
    units_per_stripe: u32,
    /// The slot of each unit.
    slot_of: Box<[u32]>,
    /// The unit in each slot, or `DEAD`.
    unit_in: Box<[u32]>,
    /// Living units of each stripe.
    living: Box<[u32]>,
    /// The closed stripes by living units, and within them in the order in which they were closed.
    closed: Vec<BTreeSet<(u64, u32)>>,
    /// When each stripe was closed.
    closed_at: Box<[u64]>,
    closings: u64,
    free: VecDeque<u32>,
    open: u32,
    /// Slots of the open stripe that were given out.
    filled: u32,
}

impl Mapping {
    /// A drive of `units` units that was written once in their order, on as few stripes as hold
    /// them, with `spare` free ones beside.
    pub(super) fn new(units: u32, units_per_stripe: u32, spare: u32) -> Self {
        let used = units.div_ceil(units_per_stripe);
        let stripes = used + spare;
        let mut unit_in = vec![DEAD; stripes as usize * units_per_stripe as usize];
        for (unit, slot) in (0..units).zip(&mut unit_in) {
            *slot = unit;
        }
        let mut map = Mapping {
            units_per_stripe,
            slot_of: (0..units).collect(),
            unit_in: unit_in.into_boxed_slice(),
            living: vec![0; stripes as usize].into_boxed_slice(),
            closed: vec![BTreeSet::new(); units_per_stripe as usize + 1],
            closed_at: vec![0; stripes as usize].into_boxed_slice(),
            closings: 0,
            free: (used + 1..stripes).collect(),
            open: used,
            filled: 0,
        };
        for stripe in 0..used {
            map.living[stripe as usize] = (units - stripe * units_per_stripe).min(units_per_stripe);
            map.close(stripe);
        }
        map
    }

    pub(super) const fn stripes(&self) -> u32 {
        self.living.len() as u32
    }

    /// The slot where `unit` stands.
    pub(super) fn slot(&self, unit: u32) -> u32 {
        self.slot_of[unit as usize]
    }

    /// Gives `unit` another slot and returns it; adds to `steps` what has to be done before.
    pub(super) fn write(&mut self, unit: u32, steps: &mut Vec<Step>) -> u32 {
        self.make_room(steps);
        self.place(unit)
    }

    /// Puts a unit into the next slot of the open stripe, which has one.
    fn place(&mut self, unit: u32) -> u32 {
        let before = self.slot_of[unit as usize];
        self.unit_in[before as usize] = DEAD;
        self.lessen(before / self.units_per_stripe);
        let slot = self.open * self.units_per_stripe + self.filled;
        self.filled += 1;
        self.slot_of[unit as usize] = slot;
        self.unit_in[slot as usize] = unit;
        self.living[self.open as usize] += 1;
        slot
    }

    /// Takes one off the living units of a stripe.
    fn lessen(&mut self, stripe: u32) {
        let living = self.living[stripe as usize];
        let key = (self.closed_at[stripe as usize], stripe);
        if self.closed[living as usize].remove(&key) {
            self.closed[living as usize - 1].insert(key);
        }
        self.living[stripe as usize] = living - 1;
    }

    fn close(&mut self, stripe: u32) {
        self.closings += 1;
        self.closed_at[stripe as usize] = self.closings;
        self.closed[self.living[stripe as usize] as usize].insert((self.closings, stripe));
    }

    /// Sees to it that the open stripe has a slot, and that enough stripes are free.
    fn make_room(&mut self, steps: &mut Vec<Step>) {
        self.open_another();
        while self.free.len() < FREE_LEAST && self.collect(steps) {}
    }

    /// Opens a free stripe if the open one is full.
    fn open_another(&mut self) {
        if self.filled == self.units_per_stripe
            && let Some(stripe) = self.free.pop_front()
        {
            self.close(self.open);
            self.open = stripe;
            self.filled = 0;
        }
    }

    /// Collects the stripe in which least is alive; false if all of each is.
    fn collect(&mut self, steps: &mut Vec<Step>) -> bool {
        let gaining = self.units_per_stripe as usize;
        let victim = self.closed[..gaining].iter_mut().find_map(BTreeSet::pop_first);
        let Some((_, victim)) = victim else { return false };
        let first = victim * self.units_per_stripe;
        for from in first..first + self.units_per_stripe {
            let unit = self.unit_in[from as usize];
            if unit != DEAD {
                self.open_another();
                let to = self.place(unit);
                steps.push(Step::Move { from, to });
            }
        }
        steps.push(Step::Erase { stripe: victim });
        self.free.push_back(victim);
        self.open_another();
        true
    }
}

#[cfg(test)]
mod tests;
