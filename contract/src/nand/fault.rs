//! What goes wrong in a history: one fault at a time.

use std::fmt;

use device::{Block, Geometry, Page};
use rand::RngExt;
use rand_chacha::ChaCha8Rng;
use sim::{
    Cut, Failure, FaultKind, FaultPlan, Flips, Growth, TornErase, TornProgram, WeakPage, WearOut,
};

/// What goes wrong in a history.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// Nothing.
    None,
    /// The power is cut at any operation, again and again.
    PowerCut,
    /// The power is cut at this operation of a short history, once.
    CutAt(u64),
    /// The power is cut at programs, which leave this.
    TornProgram(TornProgram),
    /// The power is cut at erases, which leave this.
    TornErase(TornErase),
    /// Bits flip that the chip corrects.
    FlipsWithin,
    /// More bits flip than the chip corrects.
    FlipsBeyond,
    /// Bits flip on a chip that does not notice it.
    FlipsUnseen,
    /// Bits flip at every read of some pages, more than the chip corrects in half of them.
    WeakPages,
    /// The chip refuses programs.
    RefusedProgram,
    /// The chip refuses erases.
    RefusedErase,
    /// Programs do nothing and say that they did.
    SilentProgram,
    /// Erases do nothing and say that they did.
    SilentErase,
    /// The same, on a chip that notices no flipped bits.
    SilentEraseUnseen,
    /// Blocks are bad from the factory.
    FactoryBad,
    /// Blocks wear out.
    WearOut,
}

/// Operations in a history in which the power is cut at a chosen one.
const SHORT: u64 = 40;

/// Erases that every block of a chip bears, and erases that none does.
pub(super) const WEAR_OUT: WearOut = WearOut { endurance: 4, certain: 12 };

impl Fault {
    /// Every fault; [`Fault::CutAt`] with each operation of its short history.
    #[must_use]
    pub fn all() -> Vec<Fault> {
        let mut all = vec![
            Fault::PowerCut,
            Fault::FlipsWithin,
            Fault::FlipsBeyond,
            Fault::FlipsUnseen,
            Fault::WeakPages,
            Fault::RefusedProgram,
            Fault::RefusedErase,
            Fault::SilentProgram,
            Fault::SilentErase,
            Fault::SilentEraseUnseen,
            Fault::FactoryBad,
            Fault::WearOut,
        ];
        all.extend(TORN_PROGRAMS.map(|(torn, _)| Fault::TornProgram(torn)));
        all.extend(TORN_ERASES.map(|(torn, _)| Fault::TornErase(torn)));
        all.extend((1..=SHORT).map(Fault::CutAt));
        all
    }

    /// The kind under which a chip counts it; none if nothing goes wrong.
    #[must_use]
    pub fn kind(self) -> Option<FaultKind> {
        match self {
            Fault::None => None,
            Fault::PowerCut | Fault::CutAt(_) => Some(FaultKind::PowerCut),
            Fault::TornProgram(torn) => kind_in(&TORN_PROGRAMS, torn),
            Fault::TornErase(torn) => kind_in(&TORN_ERASES, torn),
            Fault::FlipsWithin => Some(FaultKind::CorrectedRead),
            Fault::FlipsBeyond | Fault::WeakPages => Some(FaultKind::UncorrectableRead),
            Fault::FlipsUnseen => Some(FaultKind::UnseenFlips),
            Fault::RefusedProgram => Some(FaultKind::RefusedProgram),
            Fault::RefusedErase => Some(FaultKind::RefusedErase),
            Fault::SilentProgram => Some(FaultKind::SilentProgram),
            Fault::SilentErase | Fault::SilentEraseUnseen => Some(FaultKind::SilentErase),
            Fault::FactoryBad => Some(FaultKind::FactoryBad),
            Fault::WearOut => Some(FaultKind::WornOut),
        }
    }

    /// The fault's name; histories with different operations of a cut have the same.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Fault::None => "none",
            Fault::PowerCut => "power-cut",
            Fault::CutAt(_) => "cut-at",
            Fault::TornProgram(torn) => match torn {
                TornProgram::Any => "torn-program",
                TornProgram::Untouched => "torn-program-untouched",
                TornProgram::Complete => "torn-program-complete",
                TornProgram::Prefix => "torn-program-prefix",
                TornProgram::Scrambled => "torn-program-scrambled",
                TornProgram::Unreadable => "torn-program-unreadable",
            },
            Fault::TornErase(torn) => match torn {
                TornErase::Any => "torn-erase",
                TornErase::Untouched => "torn-erase-untouched",
                TornErase::Partial => "torn-erase-partial",
                TornErase::Erased => "torn-erase-erased",
                TornErase::Unstable => "torn-erase-unstable",
                TornErase::Garbage => "torn-erase-garbage",
            },
            Fault::FlipsWithin => "flips-within",
            Fault::FlipsBeyond => "flips-beyond",
            Fault::FlipsUnseen => "flips-unseen",
            Fault::WeakPages => "weak-pages",
            Fault::RefusedProgram => "refused-program",
            Fault::RefusedErase => "refused-erase",
            Fault::SilentProgram => "silent-program",
            Fault::SilentErase => "silent-erase",
            Fault::SilentEraseUnseen => "silent-erase-unseen",
            Fault::FactoryBad => "factory-bad",
            Fault::WearOut => "wear-out",
        }
    }

    /// Sessions of a history, and operations in each.
    pub(super) const fn length(self) -> (u32, u32) {
        match self {
            Fault::None => (1, 2000),
            Fault::CutAt(_) => (1, SHORT as u32),
            Fault::PowerCut => (16, 200),
            Fault::FactoryBad => (1, 200),
            Fault::WearOut => (1, 1200),
            _ => (4, 200),
        }
    }

    /// Erases in a hundred operations.
    pub(super) const fn erases(self) -> u32 {
        match self {
            Fault::None => 7,
            Fault::WearOut => 30,
            _ => 15,
        }
    }

    /// The plan of a session.
    pub(super) fn plan(self, geometry: &Geometry, random: &mut ChaCha8Rng) -> FaultPlan {
        let mut plan = FaultPlan { flips: self.flips(geometry, random), ..FaultPlan::default() };
        plan.seed = random.random();
        let failure = failure(geometry, random);
        match self {
            Fault::None
            | Fault::FlipsWithin
            | Fault::FlipsBeyond
            | Fault::FlipsUnseen
            | Fault::WeakPages => {}
            Fault::PowerCut => {
                let at = random.random_range(1..=60);
                let cut = [Cut::Operation, Cut::Change][random.random_range(0..2)];
                plan.power_cut = Some(cut(at));
            }
            Fault::CutAt(at) => {
                plan.power_cut = Some(Cut::Operation(at));
                // Each leaves something else.
                plan.seed = plan.seed.wrapping_add(at);
            }
            Fault::TornProgram(torn) => plan.torn_program = torn,
            Fault::TornErase(torn) => plan.torn_erase = torn,
            Fault::RefusedProgram => plan.refused_program = failure,
            Fault::RefusedErase => plan.refused_erase = failure,
            Fault::SilentProgram => plan.silent_program = failure,
            Fault::SilentErase | Fault::SilentEraseUnseen => plan.silent_erase = failure,
            Fault::FactoryBad => {
                plan.bad_blocks = vec![Block(random.random_range(0..geometry.blocks())), LAST];
                plan.random_bad_blocks = random.random_range(1..=2);
            }
            Fault::WearOut => plan.wear_out = Some(WEAR_OUT),
        }
        plan
    }

    fn flips(self, geometry: &Geometry, random: &mut ChaCha8Rng) -> Flips {
        let mut flips = Flips { ecc_bits: Some(random.random_range(1..=8)), ..Flips::default() };
        let rate = [0.1, 1.0][random.random_range(0..2)];
        if random.random() {
            flips.growth = Growth { per_read: 0.01, per_erase: 0.1, most: 4.0 };
        }
        match self {
            Fault::FlipsWithin => flips.corrected_rate = rate,
            Fault::FlipsBeyond => flips.uncorrectable_rate = rate,
            Fault::FlipsUnseen => {
                flips.ecc_bits = None;
                flips.corrected_rate = 0.3;
                flips.uncorrectable_rate = 0.3;
            }
            Fault::SilentEraseUnseen => flips.ecc_bits = None,
            // The code stays the same in all sessions: a page that is weak stays weak.
            Fault::WeakPages => {
                flips.ecc_bits = Some(4);
                flips.weak_pages = (0..6)
                    .map(|_| WeakPage {
                        page: Page(random.random_range(0..geometry.pages())),
                        bits: random.random_range(1..=8),
                    })
                    .collect();
            }
            _ => {}
        }
        flips
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Fault::CutAt(at) => write!(f, "{}-{at}", self.name()),
            _ => f.write_str(self.name()),
        }
    }
}

/// A block that no chip has.
const LAST: Block = Block(u32::MAX);

/// The first from some operation on, some block, or some of all.
fn failure(geometry: &Geometry, random: &mut ChaCha8Rng) -> Failure {
    match random.random_range(0..3) {
        0 => Failure::at(random.random_range(1..=60)),
        1 => Failure::of(&[Block(random.random_range(0..geometry.blocks())), LAST]),
        _ => Failure::with_rate(0.1),
    }
}

/// What a torn program leaves, and the kind under which a chip counts it.
pub(super) const TORN_PROGRAMS: [(TornProgram, FaultKind); 5] = [
    (TornProgram::Untouched, FaultKind::TornProgramUntouched),
    (TornProgram::Complete, FaultKind::TornProgramComplete),
    (TornProgram::Prefix, FaultKind::TornProgramPrefix),
    (TornProgram::Scrambled, FaultKind::TornProgramScrambled),
    (TornProgram::Unreadable, FaultKind::TornProgramUnreadable),
];

/// What a torn erase leaves, and the kind under which a chip counts it.
pub(super) const TORN_ERASES: [(TornErase, FaultKind); 5] = [
    (TornErase::Untouched, FaultKind::TornEraseUntouched),
    (TornErase::Partial, FaultKind::TornErasePartial),
    (TornErase::Erased, FaultKind::TornEraseErased),
    (TornErase::Unstable, FaultKind::TornEraseUnstable),
    (TornErase::Garbage, FaultKind::TornEraseGarbage),
];

/// The kind of `torn`; none for any of them.
pub(super) fn kind_in<T: PartialEq>(kinds: &[(T, FaultKind)], torn: T) -> Option<FaultKind> {
    kinds.iter().find(|(other, _)| *other == torn).map(|(_, kind)| *kind)
}
