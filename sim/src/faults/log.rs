//! What went wrong, counted.

use std::fmt;
use std::ops::AddAssign;

/// A kind of fault that happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum FaultKind {
    /// The power was cut.
    PowerCut,
    /// A torn program left the page as it was.
    TornProgramUntouched,
    /// A torn program left the page as if it had not been torn.
    TornProgramComplete,
    /// A torn program wrote the first bytes only.
    TornProgramPrefix,
    /// A torn program left each byte erased, written or neither.
    TornProgramScrambled,
    /// A torn program left a page that can't be corrected.
    TornProgramUnreadable,
    /// A torn erase left every page as it was.
    TornEraseUntouched,
    /// A torn erase left pages erased, as they were, or damaged.
    TornErasePartial,
    /// A torn erase left a block that looks erased.
    TornEraseErased,
    /// A torn erase left a block that mostly looks erased, differently at each read.
    TornEraseUnstable,
    /// A torn erase left garbage in every page.
    TornEraseGarbage,
    /// A program was refused.
    RefusedProgram,
    /// An erase was refused.
    RefusedErase,
    /// A program did nothing and said that it did.
    SilentProgram,
    /// An erase did nothing and said that it did.
    SilentErase,
    /// A read had flipped bits, all of which were corrected.
    CorrectedRead,
    /// A read had more flipped bits than can be corrected.
    UncorrectableRead,
    /// A read had flipped bits that nothing on the chip noticed.
    UnseenFlips,
    /// A block wore out.
    WornOut,
    /// A block was bad from the factory.
    FactoryBad,
    /// A sector lost writes that were not flushed.
    SectorLost,
    /// A sector kept the last write, though it was not flushed.
    SectorKept,
    /// A sector was left torn.
    SectorTorn,
    /// A sector could not be read.
    SectorUnreadable,
    /// A write to a disk failed.
    FailedWrite,
}

impl FaultKind {
    /// How many kinds there are.
    pub const COUNT: usize = 25;

    /// All kinds, in the order of their numbers.
    pub const ALL: [FaultKind; FaultKind::COUNT] = [
        FaultKind::PowerCut,
        FaultKind::TornProgramUntouched,
        FaultKind::TornProgramComplete,
        FaultKind::TornProgramPrefix,
        FaultKind::TornProgramScrambled,
        FaultKind::TornProgramUnreadable,
        FaultKind::TornEraseUntouched,
        FaultKind::TornErasePartial,
        FaultKind::TornEraseErased,
        FaultKind::TornEraseUnstable,
        FaultKind::TornEraseGarbage,
        FaultKind::RefusedProgram,
        FaultKind::RefusedErase,
        FaultKind::SilentProgram,
        FaultKind::SilentErase,
        FaultKind::CorrectedRead,
        FaultKind::UncorrectableRead,
        FaultKind::UnseenFlips,
        FaultKind::WornOut,
        FaultKind::FactoryBad,
        FaultKind::SectorLost,
        FaultKind::SectorKept,
        FaultKind::SectorTorn,
        FaultKind::SectorUnreadable,
        FaultKind::FailedWrite,
    ];

    /// Its name in reports.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            FaultKind::PowerCut => "power cut",
            FaultKind::TornProgramUntouched => "torn program, page untouched",
            FaultKind::TornProgramComplete => "torn program, page complete",
            FaultKind::TornProgramPrefix => "torn program, first bytes written",
            FaultKind::TornProgramScrambled => "torn program, page scrambled",
            FaultKind::TornProgramUnreadable => "torn program, page unreadable",
            FaultKind::TornEraseUntouched => "torn erase, block untouched",
            FaultKind::TornErasePartial => "torn erase, block partly erased",
            FaultKind::TornEraseErased => "torn erase, block looks erased",
            FaultKind::TornEraseUnstable => "torn erase, block unstable",
            FaultKind::TornEraseGarbage => "torn erase, block garbage",
            FaultKind::RefusedProgram => "refused program",
            FaultKind::RefusedErase => "refused erase",
            FaultKind::SilentProgram => "silent program",
            FaultKind::SilentErase => "silent erase",
            FaultKind::CorrectedRead => "corrected read",
            FaultKind::UncorrectableRead => "uncorrectable read",
            FaultKind::UnseenFlips => "unseen flips",
            FaultKind::WornOut => "worn-out block",
            FaultKind::FactoryBad => "factory-bad block",
            FaultKind::SectorLost => "sector lost writes",
            FaultKind::SectorKept => "sector kept writes",
            FaultKind::SectorTorn => "torn sector",
            FaultKind::SectorUnreadable => "unreadable sector",
            FaultKind::FailedWrite => "failed write",
        }
    }
}

impl fmt::Display for FaultKind {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.pad(self.name())
    }
}

/// How often each kind of fault happened.
///
/// Logs of several devices or runs can be added up.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FaultLog {
    counts: [u64; FaultKind::COUNT],
}

impl FaultLog {
    /// How often `kind` happened.
    #[must_use]
    pub const fn count(&self, kind: FaultKind) -> u64 {
        self.counts[kind as usize]
    }

    /// How many faults happened in all.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.counts.iter().sum()
    }

    /// The kinds that happened, with their counts.
    pub fn iter(&self) -> impl Iterator<Item = (FaultKind, u64)> + '_ {
        FaultKind::ALL
            .into_iter()
            .map(|kind| (kind, self.count(kind)))
            .filter(|(_, count)| *count > 0)
    }

    pub(crate) fn note(&mut self, kind: FaultKind) {
        self.counts[kind as usize] += 1;
    }
}

impl AddAssign for FaultLog {
    fn add_assign(&mut self, other: FaultLog) {
        for (count, more) in self.counts.iter_mut().zip(other.counts) {
            *count += more;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{FaultKind, FaultLog};

    #[test]
    fn every_kind_stands_at_its_own_number_and_has_a_name_of_its_own() {
        let mut names: Vec<&str> = FaultKind::ALL.iter().map(|kind| kind.name()).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), FaultKind::COUNT);
        for (number, kind) in FaultKind::ALL.into_iter().enumerate() {
            assert_eq!(kind as usize, number, "{kind}");
        }
    }

    #[test]
    fn logs_add_up() {
        let mut log = FaultLog::default();
        log.note(FaultKind::PowerCut);
        let mut sum = log;
        log.note(FaultKind::WornOut);
        sum += log;
        assert_eq!(sum.count(FaultKind::PowerCut), 2);
        let seen: Vec<_> = sum.iter().collect();
        assert_eq!(seen, [(FaultKind::PowerCut, 2), (FaultKind::WornOut, 1)]);
        assert_eq!(sum.total(), 3);
    }
}
