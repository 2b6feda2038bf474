//! What is wrong with a chip, how a plan is armed, and the power.

use std::collections::BTreeMap;

use device::{Block, Error, Operation, Result};

use super::{Place, SimulatedNand, choose};
use crate::faults::condition::{BlockCondition, Habit, PageImage};
use crate::faults::injector::{Injector, Verdict};
use crate::faults::schedule::Clock;
use crate::faults::{FaultKind, FaultLog, FaultPlan};

/// What is wrong with a chip, and what will be.
#[derive(Clone)]
pub(super) struct Faulty {
    power: Power,
    pub(super) injector: Injector,
    pub(super) conditions: BTreeMap<Block, BlockCondition>,
    /// Reads of each block since its last erase; empty if they don't matter.
    pub(super) reads: Vec<u32>,
    pub(super) log: FaultLog,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Power {
    On,
    Off,
}

impl Default for Faulty {
    fn default() -> Self {
        Faulty {
            power: Power::On,
            injector: Injector::new(FaultPlan::default()),
            conditions: BTreeMap::new(),
            reads: Vec::new(),
            log: FaultLog::default(),
        }
    }
}

impl Faulty {
    pub(super) fn is_without_power(&self) -> bool {
        self.power == Power::Off
    }

    pub(super) const fn log(&self) -> FaultLog {
        self.log
    }

    pub(super) fn image(&self, at: Place) -> Option<&PageImage> {
        self.conditions.get(&at.block)?.pages.get(&at.place)
    }

    pub(super) fn weak_bits(&self, at: Place) -> u16 {
        let weak = self.conditions.get(&at.block).and_then(|found| found.weak.get(&at.place));
        weak.copied().unwrap_or(0)
    }

    /// What the block's habit makes of an operation that would go well.
    pub(super) fn habit(&self, block: Block, operation: Operation) -> Verdict {
        let Some(condition) = self.conditions.get(&block) else { return Verdict::Proceed };
        let habit = match operation {
            Operation::Read => Habit::Works,
            Operation::Program => condition.program,
            Operation::Erase => condition.erase,
        };
        match habit {
            Habit::Works => Verdict::Proceed,
            Habit::Refuses => Verdict::Refuse,
            Habit::Drops => Verdict::Drop,
        }
    }
}

/// Arming, and the power.
impl SimulatedNand {
    pub(super) fn take_plan(&mut self, plan: FaultPlan) {
        let mut faulty = self.faulty.take().unwrap_or_default();
        let growth = plan.flips.growth;
        let reads_matter = growth.per_read > 0.0 && growth.most > 1.0;
        let blocks = self.blocks.len();
        faulty.reads = if reads_matter { vec![0; blocks] } else { Vec::new() };
        self.worn_from = plan.wear_out.map_or(u32::MAX, |wear_out| wear_out.endurance);
        self.clock = Clock::idle();
        faulty.injector = Injector::new(plan);
        self.faulty = Some(faulty);
        self.take_bad_blocks();
        self.take_habits();
        self.take_weak_pages();
        for block in (0..self.geometry.blocks()).map(Block) {
            self.watch(block);
        }
        self.look_ahead();
    }

    fn take_bad_blocks(&mut self) {
        let Some(faulty) = self.faulty.as_deref_mut() else { return };
        let plan = &faulty.injector.plan;
        let mut bad = plan.bad_blocks.clone();
        bad.retain(|block| block.0 < self.geometry.blocks());
        let good = |block: &Block| !self.blocks[block.0 as usize].bad && !bad.contains(block);
        let others = (0..self.geometry.blocks()).map(Block).filter(good).collect();
        bad.extend(choose(others, plan.random_bad_blocks, &mut faulty.injector.random));
        for block in bad {
            let state = &mut self.blocks[block.0 as usize];
            if !state.bad {
                state.bad = true;
                faulty.log.note(FaultKind::FactoryBad);
            }
        }
    }

    fn take_habits(&mut self) {
        let Some(faulty) = self.faulty.as_deref_mut() else { return };
        let plan = &faulty.injector.plan;
        let conditions = &mut faulty.conditions;
        let on_chip = |block: &&Block| block.0 < self.geometry.blocks();
        for (failure, habit) in
            [(&plan.silent_program, Habit::Drops), (&plan.refused_program, Habit::Refuses)]
        {
            for block in failure.blocks.iter().filter(on_chip) {
                conditions.entry(*block).or_default().program = habit;
            }
        }
        for (failure, habit) in
            [(&plan.silent_erase, Habit::Drops), (&plan.refused_erase, Habit::Refuses)]
        {
            for block in failure.blocks.iter().filter(on_chip) {
                conditions.entry(*block).or_default().erase = habit;
            }
        }
    }

    fn take_weak_pages(&mut self) {
        let Some(faulty) = self.faulty.as_deref_mut() else { return };
        for weak in &faulty.injector.plan.flips.weak_pages {
            if self.geometry.check_page(weak.page).is_ok() && weak.bits > 0 {
                let block = self.geometry.block_of(weak.page);
                let place = self.geometry.place_of(weak.page);
                faulty.conditions.entry(block).or_default().weak.insert(place, weak.bits);
            }
        }
    }

    pub(super) fn lose_power(&mut self) {
        let faulty = self.faulty.get_or_insert_default();
        faulty.power = Power::Off;
        faulty.log.note(FaultKind::PowerCut);
        self.clock.look_at(0);
    }

    pub(super) fn regain_power(&mut self) {
        if let Some(faulty) = &mut self.faulty {
            faulty.power = Power::On;
            self.look_ahead();
        }
    }

    /// Sets the countdown to the next event.
    pub(super) fn look_ahead(&mut self) {
        if let Some(faulty) = self.faulty.as_deref() {
            let next = match faulty.power {
                Power::On => faulty.injector.next_event(&self.clock),
                Power::Off => 0,
            };
            self.clock.look_at(next);
        }
    }

    pub(super) fn check_power(&self) -> Result<()> {
        if self.is_without_power() { Err(Error::PowerCut) } else { Ok(()) }
    }

    #[cold]
    pub(super) fn unless_without_power(&self, error: Error) -> Error {
        if self.is_without_power() { Error::PowerCut } else { error }
    }

    /// Watches `block` if there is a reason, or no longer.
    pub(super) fn watch(&mut self, block: Block) {
        let worn = self.meter.erases()[block.0 as usize] >= self.worn_from;
        let Some(faulty) = self.faulty.as_deref_mut() else { return };
        if faulty.conditions.get(&block).is_some_and(BlockCondition::is_sound) {
            faulty.conditions.remove(&block);
        }
        let counted = !faulty.reads.is_empty();
        let wrong = faulty.conditions.contains_key(&block);
        self.blocks[block.0 as usize].watched = worn || counted || wrong;
    }
}
