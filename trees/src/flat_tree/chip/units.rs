//! How units of a run are made and read: with whole keys, or with gaps between them.

use alloc::vec::Vec;

use index::Result;
use store::EntryShape;
use store::runs::{Entry, GapBuilder, GapShape, Unit, UnitBuilder, UnitSeed, UnitShape};

/// The longest unit with gaps, in bytes: to be read it is unpacked.
const GAPS_MOST: u32 = 256;

/// Units of a run.
#[derive(Clone, Copy, Debug)]
pub(super) enum Units {
    Whole(UnitShape),
    Gaps(GapShape),
}

/// Memory for a unit that is read.
#[derive(Default)]
pub(super) struct UnitBuffer {
    /// As it stands on the chip.
    pub(super) raw: Vec<u8>,
    /// Unpacked.
    unpacked: Vec<u8>,
}

/// Bytes of memory that unpacking a unit takes at most, of entries of this shape.
pub(super) fn unpacked_bytes(entries: EntryShape) -> u64 {
    let shape = UnitShape::new(GAPS_MOST, entries, store::runs::Kinds::Puts).ok();
    shape.and_then(GapShape::new).map_or(0, |shape| shape.unpacked_bytes() as u64)
}

impl Units {
    /// Units of `shape`, with gaps if they can have them.
    pub(super) fn with_gaps(shape: UnitShape) -> Self {
        match GapShape::new(shape).filter(|_| shape.bytes() <= GAPS_MOST) {
            Some(gaps) => Units::Gaps(gaps),
            None => Units::Whole(shape),
        }
    }

    pub(super) const fn have_gaps(&self) -> bool {
        matches!(self, Units::Gaps(_))
    }

    /// The unit in `raw`, verified; `unpacked` may hold what it has.
    pub(super) fn verify<'b>(
        &self,
        seed: UnitSeed,
        raw: &'b [u8],
        unpacked: &'b mut Vec<u8>,
    ) -> Result<Unit<'b>> {
        match self {
            Units::Whole(shape) => Ok(shape.verify(seed, raw)?),
            Units::Gaps(shape) => Ok(shape.verify(seed, raw, unpacked)?),
        }
    }

    /// The unit in a buffer, verified.
    pub(super) fn verify_in<'b>(
        &self,
        seed: UnitSeed,
        buffer: &'b mut UnitBuffer,
    ) -> Result<Unit<'b>> {
        self.verify(seed, &buffer.raw, &mut buffer.unpacked)
    }

    /// A unit that was verified before, in `raw`, or in `unpacked` if it has gaps.
    pub(super) const fn view<'b>(&self, raw: &'b [u8], unpacked: &'b [u8]) -> Unit<'b> {
        match self {
            Units::Whole(shape) => shape.view(raw),
            Units::Gaps(shape) => shape.view(unpacked),
        }
    }
}

/// A unit that is being made.
#[derive(Clone, Copy, Debug)]
pub(super) enum Builder {
    Whole(UnitShape, UnitBuilder),
    Gaps(GapBuilder),
}

impl Builder {
    pub(super) fn new(units: Units) -> Self {
        match units {
            Units::Whole(shape) => Builder::Whole(shape, UnitBuilder::new(shape)),
            Units::Gaps(shape) => Builder::Gaps(GapBuilder::new(shape)),
        }
    }

    /// The unit that comes behind this one.
    pub(super) fn next(&self) -> Self {
        match self {
            Builder::Whole(shape, _) => Builder::Whole(*shape, UnitBuilder::new(*shape)),
            Builder::Gaps(builder) => Builder::Gaps(builder.next()),
        }
    }

    /// Adds an entry to the unit in `bytes`; false, and nothing changed, if there is no room.
    pub(super) fn push(&mut self, bytes: &mut [u8], entry: &Entry<'_>) -> bool {
        match self {
            Builder::Whole(_, builder) => builder.push(bytes, entry),
            Builder::Gaps(builder) => builder.push(bytes, entry),
        }
    }

    /// Ends the unit in `bytes`.
    pub(super) fn seal(&self, seed: UnitSeed, bytes: &mut [u8]) {
        match self {
            Builder::Whole(_, builder) => builder.seal(seed, bytes),
            Builder::Gaps(builder) => builder.seal(seed, bytes),
        };
    }
}
