//! The suite that every chip passes: random operations, allowed and forbidden, under every fault,
//! compared with a plain model of the contract on [`device::Nand`].
//!
//! A **history** is a shape of a chip, a fault and a seed. It is a few **sessions**; in each a plan
//! of the fault is armed and operations follow. What the contract leaves open after a fault, the
//! model leaves open: a torn program may leave anything in its page, a torn or refused erase in
//! its block, a refused program in its page, and nothing else may change, ever. Flipped bits that
//! the chip corrects are reported, and those that it can't are an error. After each cut and each
//! session every page is compared, and at the end every block is erased and used again.
//!
//! A fault that can't be seen when it happens, an operation that was silently dropped, is known
//! from the chip that was made to do it; its effect is compared. At the end the faults that the
//! chip counted must be those that the suite saw.

mod fault;
mod hooked;
mod model;
mod run;
mod subject;

use std::collections::BTreeMap;
use std::fmt;
use std::ops::AddAssign;
use std::panic::{AssertUnwindSafe, catch_unwind};

use device::{Geometry, ProgramOrder};
use sim::FaultKind;

pub use fault::Fault;
pub use hooked::{Hook, Hooked, Program, Read};
pub use subject::{Sound, Subject};

/// One history.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Case {
    /// The shape.
    pub geometry: Geometry,
    /// What goes wrong.
    pub fault: Fault,
    /// What the random numbers start from.
    pub seed: u64,
}

impl fmt::Display for Case {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shape = &self.geometry;
        let order = match shape.order() {
            ProgramOrder::Any => "any",
            ProgramOrder::Ascending => "ascending",
        };
        write!(
            f,
            "{}+{}/{}x{}/programs{}/{order}/{}/seed{}",
            shape.page_bytes(),
            shape.spare_bytes(),
            shape.pages_per_block(),
            shape.blocks(),
            shape.programs_per_page(),
            self.fault,
            self.seed
        )
    }
}

fn shapes(pages: &[(u32, u32)]) -> Vec<Geometry> {
    let mut shapes = Vec::new();
    for (page_bytes, spare_bytes) in pages {
        for programs in [1, 4] {
            let shape = Geometry::new(*page_bytes, 8, 5)
                .and_then(|shape| shape.with_spare(*spare_bytes))
                .and_then(|shape| shape.with_programs(programs))
                .expect("the shape is possible");
            let orders = [ProgramOrder::Ascending, ProgramOrder::Any];
            shapes.extend(orders.map(|order| shape.with_order(order)));
        }
    }
    shapes
}

const PAGES: [(u32, u32); 6] = [(512, 0), (512, 16), (2048, 0), (2048, 64), (4096, 0), (4096, 128)];

/// All histories in which nothing goes wrong.
#[must_use]
pub fn cases() -> Vec<Case> {
    let pages: Vec<(u32, u32)> = PAGES.into_iter().chain([(64, 0), (64, 64)]).collect();
    let with_seeds =
        |geometry| (1..=2).map(move |seed| Case { geometry, fault: Fault::None, seed });
    shapes(&pages).into_iter().flat_map(with_seeds).collect()
}

/// All histories in which `fault` goes wrong.
#[must_use]
pub fn cases_with(fault: Fault) -> Vec<Case> {
    let seeds = if matches!(fault, Fault::CutAt(_)) { 1..=1 } else { 1..=2 };
    let with_seeds = |geometry| seeds.clone().map(move |seed| Case { geometry, fault, seed });
    shapes(&PAGES).into_iter().flat_map(with_seeds).collect()
}

/// What a history was made of, so that a test can see that it was not empty.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Witness {
    /// Programs that the rules allow.
    pub programs: u64,
    /// Reads of what exists.
    pub reads: u64,
    /// Erases that the rules allow.
    pub erases: u64,
    /// Operations that a rule forbids.
    pub refusals: u64,
    /// Pages compared at the ends of sessions and after cuts.
    pub compared: u64,
    /// Faults that happened.
    pub faults: BTreeMap<FaultKind, u64>,
}

impl AddAssign for Witness {
    fn add_assign(&mut self, other: Witness) {
        self.programs += other.programs;
        self.reads += other.reads;
        self.erases += other.erases;
        self.refusals += other.refusals;
        self.compared += other.compared;
        for (kind, count) in other.faults {
            *self.faults.entry(kind).or_default() += count;
        }
    }
}

impl fmt::Display for Witness {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Witness { programs, reads, erases, refusals, compared, faults } = self;
        write!(f, "{programs} programs, {erases} erases, {reads} reads ({compared} to compare), ")?;
        write!(f, "{refusals} forbidden")?;
        for (kind, count) in faults {
            write!(f, "; {count} {kind}")?;
        }
        Ok(())
    }
}

/// Plays the history of `case` on the chip that `make` makes, which holds nothing.
///
/// # Panics
/// The chip differs from the model.
pub fn check<S: Subject>(case: &Case, make: impl FnOnce(Geometry) -> S) -> Witness {
    run::Run::new(case, make(case.geometry)).play()
}

/// Plays every history and adds up what happened in those of each fault. If one fails, the message
/// has the `command` that plays it again: with its name in `FLASHTREE_CASE` it alone is played.
///
/// # Panics
/// A history fails; a fault happened fewer than 100 times in all of its histories.
pub fn check_all<S: Subject>(cases: &[Case], command: &str, make: impl Fn(&Case) -> S) {
    let wanted = std::env::var("FLASHTREE_CASE").ok();
    let mut groups: BTreeMap<&str, (Fault, Witness)> = BTreeMap::new();
    let is_wanted = |case: &&Case| wanted.as_ref().is_none_or(|name| *name == case.to_string());
    for case in cases.iter().filter(is_wanted) {
        let run = || check(case, |_| make(case));
        let witness = catch_unwind(AssertUnwindSafe(run)).unwrap_or_else(|_| {
            panic!("{case} failed; play it again with\n  FLASHTREE_CASE='{case}' {command}")
        });
        groups.entry(case.fault.name()).or_insert((case.fault, Witness::default())).1 += witness;
    }
    assert!(!groups.is_empty(), "there is no such case");
    for (name, (fault, witness)) in &groups {
        println!("{name}: {witness}");
        let count = fault.kind().map(|kind| witness.faults.get(&kind).copied().unwrap_or(0));
        assert!(wanted.is_some() || count.is_none_or(|count| count >= 100), "{name}: {count:?}");
    }
}
