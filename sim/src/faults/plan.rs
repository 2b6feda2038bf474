//! What shall go wrong on a chip: every knob by its name.

use device::{Block, Page};

/// What shall go wrong on a simulated chip.
///
/// Nothing does in the default plan. All that a plan leaves open is decided by its seed: the same
/// chip, the same plan and the same operations give the same faults on every machine.
///
/// Operations are counted from 1 on, since the plan was armed. Only those count that reach the
/// chip: one that a rule forbids does not, nor does one without power; nor do
/// [`is_bad`](device::Nand::is_bad) and [`mark_bad`](device::Nand::mark_bad), which can't be torn.
///
/// Rates are probabilities of one operation, from 0 to 1; others are taken as the nearest of
/// these, and what is no number as 0. Where the two rates of one kind of operation add up to more
/// than 1, the second gives way.
///
/// ```
/// use flashtree_sim::{Cut, FaultPlan, TornProgram};
///
/// let plan = FaultPlan {
///     power_cut: Some(Cut::Change(1000)),
///     torn_program: TornProgram::Scrambled,
///     ..FaultPlan::seeded(7)
/// };
/// assert_eq!(plan.refused_erase.rate, 0.0);
/// ```
#[derive(Clone, Debug, Default, PartialEq)]
pub struct FaultPlan {
    /// Decides all that the plan leaves open.
    pub seed: u64,
    /// When the power is cut.
    pub power_cut: Option<Cut>,
    /// What the cut leaves of a program.
    pub torn_program: TornProgram,
    /// What the cut leaves of an erase.
    pub torn_erase: TornErase,
    /// Programs that return [`ProgramRefused`](device::Error::ProgramRefused). The page holds
    /// anything then, and its block refuses every program from then on.
    pub refused_program: Failure,
    /// Erases that return [`EraseRefused`](device::Error::EraseRefused). The block holds anything
    /// then, and refuses every erase from then on.
    pub refused_erase: Failure,
    /// Programs that return success and change nothing.
    pub silent_program: Failure,
    /// Erases that return success and change nothing. The chip then accepts programs; what they
    /// write is mixed with what was there, and can't be corrected when it is read.
    pub silent_erase: Failure,
    /// Bits that flip when a page is read.
    pub flips: Flips,
    /// Blocks that fail after many erases.
    pub wear_out: Option<WearOut>,
    /// Blocks that are bad from the factory, marked when the plan is armed; blocks that the chip
    /// does not have are passed over.
    pub bad_blocks: Vec<Block>,
    /// How many blocks beside those are bad from the factory; the seed decides which.
    pub random_bad_blocks: u32,
}

impl FaultPlan {
    /// A plan in which nothing goes wrong yet, with the seed that decides the rest.
    #[must_use]
    pub fn seeded(seed: u64) -> Self {
        FaultPlan { seed, ..FaultPlan::default() }
    }

    /// A plan in which the power is cut once; the seed decides what the torn operation leaves.
    #[must_use]
    pub fn cut(seed: u64, at: Cut) -> Self {
        FaultPlan { power_cut: Some(at), ..FaultPlan::seeded(seed) }
    }
}

/// When the power is cut. The operation that it hits is torn and returns
/// [`PowerCut`](device::Error::PowerCut), as everything after it does until the power is back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cut {
    /// At this operation: reads count too.
    Operation(u64),
    /// At this operation among those that change the medium: programs and erases of a chip;
    /// writes, trims and flushes of a disk.
    Change(u64),
}

/// What a torn program leaves in its page, the spare area and earlier parts of the page
/// included. In any case the page counts as programmed: it takes no program until its block is
/// erased, even if it looks erased.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TornProgram {
    /// Any of the others, by the seed.
    #[default]
    Any,
    /// What was there before.
    Untouched,
    /// All that was to be written.
    Complete,
    /// The first bytes of what was to be written; the seed decides how many.
    Prefix,
    /// Each byte erased, written or neither; or each of the data, or each of the spare area.
    Scrambled,
    /// The same, and the chip's code calls the page uncorrectable.
    Unreadable,
}

/// What a torn erase leaves in its block. In any case each page counts as programmed: the block
/// must be erased before it takes a program, even if it looks erased.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TornErase {
    /// Any of the others, by the seed.
    #[default]
    Any,
    /// Every page as it was.
    Untouched,
    /// Each page erased, as it was, scrambled or unreadable.
    Partial,
    /// Every page looks erased.
    Erased,
    /// Every page mostly looks erased; some reads find flipped bits or fail.
    Unstable,
    /// Garbage in every page, some of it unreadable.
    Garbage,
}

/// Which programs or erases fail.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Failure {
    /// The first of their kind from this operation on.
    pub at_operation: Option<u64>,
    /// All of these blocks; blocks that the chip does not have are passed over.
    pub blocks: Vec<Block>,
    /// Each with this probability.
    pub rate: f64,
}

impl Failure {
    /// The first of its kind from operation `operation` on.
    #[must_use]
    pub fn at(operation: u64) -> Self {
        Failure { at_operation: Some(operation), ..Failure::default() }
    }

    /// All of these blocks.
    #[must_use]
    pub fn of(blocks: &[Block]) -> Self {
        Failure { blocks: blocks.to_vec(), ..Failure::default() }
    }

    /// Each with this probability.
    #[must_use]
    pub fn with_rate(rate: f64) -> Self {
        Failure { rate, ..Failure::default() }
    }
}

/// Bits that flip when a page is read. The page itself keeps its content: the next read may be
/// clean.
#[derive(Clone, Debug, PartialEq)]
pub struct Flips {
    /// Bits in a page that the chip's code corrects. A chip without a code (`None`) gives flipped
    /// bits to its reader, who alone can notice them.
    pub ecc_bits: Option<u16>,
    /// Reads with flipped bits within the code: 1 to `ecc_bits` of them.
    pub corrected_rate: f64,
    /// Reads with more flipped bits than the code corrects.
    pub uncorrectable_rate: f64,
    /// How these rates grow with use.
    pub growth: Growth,
    /// Pages in which bits flip at every read, as far as the chip has them.
    pub weak_pages: Vec<WeakPage>,
}

impl Default for Flips {
    fn default() -> Self {
        Flips {
            ecc_bits: Some(1),
            corrected_rate: 0.0,
            uncorrectable_rate: 0.0,
            growth: Growth::default(),
            weak_pages: Vec::new(),
        }
    }
}

/// How the rates of flips grow: they are multiplied by `1 + per_read * reads of the block since
/// its last erase (and since the plan was armed) + per_erase * erases of the block`, at most by
/// `most`.
///
/// The default does not grow. Growth with reads is counted, which costs time at every read.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Growth {
    /// What each read adds to the factor.
    pub per_read: f64,
    /// What each erase adds to the factor.
    pub per_erase: f64,
    /// The largest factor; at least 1.
    pub most: f64,
}

impl Default for Growth {
    fn default() -> Self {
        Growth { per_read: 0.0, per_erase: 0.0, most: 1.0 }
    }
}

/// A page in which bits flip at every read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WeakPage {
    /// The page.
    pub page: Page,
    /// How many of its bits flip.
    pub bits: u16,
}

/// Blocks that fail after many erases: from `endurance` erases on, each erase makes the block
/// refuse this erase or the programs after it, with a probability that grows evenly from 0 and
/// reaches 1 at `certain` erases.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WearOut {
    /// Erases that every block survives.
    pub endurance: u32,
    /// Erases that no block survives; if it is not above `endurance`, the next one fails.
    pub certain: u32,
}
