use std::collections::HashMap;

use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use super::{FREE_LEAST, Mapping, Step};

/// The same rules over stripes that are lists of units, searched from end to end each time.
struct Plain {
    units_per_stripe: usize,
    stripes: Vec<Vec<Option<u32>>>,
    /// Closed stripes in the order in which they were closed.
    closed: Vec<usize>,
    free: Vec<usize>,
    open: usize,
}

impl Plain {
    fn new(units: u32, units_per_stripe: u32, spare: usize) -> Self {
        let all: Vec<Option<u32>> = (0..units).map(Some).collect();
        let mut stripes: Vec<_> =
            all.chunks(units_per_stripe as usize).map(<[Option<u32>]>::to_vec).collect();
        let used = stripes.len();
        stripes.resize(used + spare, Vec::new());
        let (closed, free) = ((0..used).collect(), (used + 1..used + spare).collect());
        let units_per_stripe = units_per_stripe as usize;
        Plain { units_per_stripe, stripes, closed, free, open: used }
    }

    fn slot(&self, unit: u32) -> u32 {
        let found = self.stripes.iter().enumerate().find_map(|(stripe, units)| {
            let slot = units.iter().position(|held| *held == Some(unit))?;
            Some(stripe * self.units_per_stripe + slot)
        });
        found.unwrap() as u32
    }

    fn living(&self, stripe: usize) -> usize {
        self.stripes[stripe].iter().flatten().count()
    }

    fn open_another(&mut self) {
        if self.stripes[self.open].len() == self.units_per_stripe && !self.free.is_empty() {
            self.closed.push(self.open);
            self.open = self.free.remove(0);
        }
    }

    fn place(&mut self, unit: u32) -> u32 {
        for held in self.stripes.iter_mut().flatten() {
            if *held == Some(unit) {
                *held = None;
            }
        }
        self.stripes[self.open].push(Some(unit));
        self.slot(unit)
    }

    fn write(&mut self, unit: u32, steps: &mut Vec<Step>) -> u32 {
        self.open_another();
        while self.free.len() < FREE_LEAST {
            let least = self.closed.iter().map(|stripe| self.living(*stripe)).min().unwrap();
            let at = self.closed.iter().position(|stripe| self.living(*stripe) == least).unwrap();
            let victim = self.closed.remove(at);
            for slot in 0..self.stripes[victim].len() {
                if let Some(unit) = self.stripes[victim][slot] {
                    self.open_another();
                    let to = self.place(unit);
                    let from = (victim * self.units_per_stripe + slot) as u32;
                    steps.push(Step::Move { from, to });
                }
            }
            steps.push(Step::Erase { stripe: victim as u32 });
            self.stripes[victim].clear();
            self.free.push(victim);
            self.open_another();
        }
        self.place(unit)
    }
}

/// Follows what a mapping does to a flash of its own: which content stands in which slot.
fn follow(flash: &mut HashMap<u32, u32>, units_per_stripe: u32, steps: &[Step]) {
    for step in steps {
        match *step {
            Step::Move { from, to } => {
                let unit = flash[&from];
                assert_eq!(flash.insert(to, unit), None, "slot {to} was not erased");
            }
            Step::Erase { stripe } => {
                flash.retain(|slot, _| slot / units_per_stripe != stripe);
            }
        }
    }
}

#[test]
fn a_mapping_does_what_a_plain_one_does_and_loses_nothing() {
    for seed in 0..60 {
        let mut random = ChaCha8Rng::seed_from_u64(seed);
        let units_per_stripe = random.random_range(1..=6);
        let units: u32 = random.random_range(1..=40);
        let spare = random.random_range(4..=7);
        let mut map = Mapping::new(units, units_per_stripe, spare);
        let mut plain = Plain::new(units, units_per_stripe, spare as usize);
        let mut flash: HashMap<u32, u32> = (0..units).map(|unit| (unit, unit)).collect();
        let hot = random.random_range(1..=units);
        for number in 0..600 {
            let unit = random.random_range(0..if number % 3 == 0 { units } else { hot });
            let (mut steps, mut expected) = (Vec::new(), Vec::new());
            let slot = map.write(unit, &mut steps);
            assert_eq!(slot, plain.write(unit, &mut expected), "seed {seed}, write {number}");
            assert_eq!(steps, expected, "seed {seed}, write {number}");
            follow(&mut flash, units_per_stripe, &steps);
            assert_eq!(flash.insert(slot, unit), None, "seed {seed}: slot {slot} was not erased");
            for unit in 0..units {
                assert_eq!(flash[&map.slot(unit)], unit, "seed {seed}, write {number}");
                assert_eq!(map.slot(unit), plain.slot(unit), "seed {seed}, write {number}");
            }
            assert!(map.free.len() >= FREE_LEAST, "seed {seed}, write {number}");
        }
    }
}

#[test]
fn where_units_are_written_in_their_order_nothing_is_moved() {
    let (units, units_per_stripe) = (64, 4);
    let mut map = Mapping::new(units, units_per_stripe, 4);
    let mut steps = Vec::new();
    for unit in (0..units).cycle().take(1000) {
        map.write(unit, &mut steps);
    }
    assert!(steps.iter().all(|step| matches!(step, Step::Erase { .. })), "{steps:?}");
    // Two stripes stay free, and one is open: each of the others that was filled was erased.
    assert_eq!(steps.len(), 1000 / units_per_stripe as usize - 2);
}
