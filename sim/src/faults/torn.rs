//! What a torn operation leaves.

use std::ops::Range;

use rand::{Rng, RngExt};
use rand_chacha::ChaCha8Rng;

use crate::faults::condition::{PageImage, Reading};
use crate::faults::{FaultKind, TornErase, TornProgram};

impl TornProgram {
    const ALL: [TornProgram; 5] = [
        TornProgram::Untouched,
        TornProgram::Complete,
        TornProgram::Prefix,
        TornProgram::Scrambled,
        TornProgram::Unreadable,
    ];

    /// One of the five that are not `Any`.
    pub(crate) fn settle(self, random: &mut ChaCha8Rng) -> TornProgram {
        match self {
            TornProgram::Any => TornProgram::ALL[random.random_range(0..TornProgram::ALL.len())],
            other => other,
        }
    }

    pub(crate) const fn kind(self) -> FaultKind {
        match self {
            TornProgram::Untouched => FaultKind::TornProgramUntouched,
            TornProgram::Any | TornProgram::Complete => FaultKind::TornProgramComplete,
            TornProgram::Prefix => FaultKind::TornProgramPrefix,
            TornProgram::Scrambled => FaultKind::TornProgramScrambled,
            TornProgram::Unreadable => FaultKind::TornProgramUnreadable,
        }
    }
}

impl TornErase {
    const ALL: [TornErase; 5] = [
        TornErase::Untouched,
        TornErase::Partial,
        TornErase::Erased,
        TornErase::Unstable,
        TornErase::Garbage,
    ];

    /// One of the five that are not `Any`.
    pub(crate) fn settle(self, random: &mut ChaCha8Rng) -> TornErase {
        match self {
            TornErase::Any => TornErase::ALL[random.random_range(0..TornErase::ALL.len())],
            other => other,
        }
    }

    pub(crate) const fn kind(self) -> FaultKind {
        match self {
            TornErase::Untouched => FaultKind::TornEraseUntouched,
            TornErase::Any | TornErase::Partial => FaultKind::TornErasePartial,
            TornErase::Erased => FaultKind::TornEraseErased,
            TornErase::Unstable => FaultKind::TornEraseUnstable,
            TornErase::Garbage => FaultKind::TornEraseGarbage,
        }
    }
}

/// What a torn program of the bytes `range` leaves of a page that held `old` and was to hold
/// `new`, `page_bytes` bytes of which are data and not spare area.
pub(crate) fn page_after_program(
    torn: TornProgram,
    (old, new): (Box<[u8]>, Box<[u8]>),
    range: Range<usize>,
    page_bytes: usize,
    random: &mut ChaCha8Rng,
) -> PageImage {
    match torn {
        TornProgram::Untouched => PageImage::new(old, Reading::Stable),
        TornProgram::Any | TornProgram::Complete => PageImage::new(new, Reading::Stable),
        TornProgram::Prefix => {
            let mut bytes = old;
            let end = random.random_range(range.clone());
            bytes[range.start..end].copy_from_slice(&new[range.start..end]);
            PageImage::new(bytes, Reading::Stable)
        }
        TornProgram::Scrambled | TornProgram::Unreadable => {
            let mut bytes = old;
            bytes[range.clone()].copy_from_slice(&new[range.clone()]);
            // The parts of the page that stood there before may suffer too; so may only some.
            let hit = if random.random() { part(&bytes, page_bytes, random) } else { range };
            scramble(&mut bytes[hit], random);
            let unreadable = torn == TornProgram::Unreadable;
            PageImage::new(bytes, if unreadable { Reading::Unreadable } else { Reading::Stable })
        }
    }
}

/// What a torn erase leaves of a page of `stride` bytes, `page_bytes` of which are data and not
/// spare area, that held `old` and takes no program.
pub(crate) fn page_after_erase(
    torn: TornErase,
    old: PageImage,
    (stride, page_bytes): (usize, usize),
    random: &mut ChaCha8Rng,
) -> PageImage {
    let stable_or_not = |random: &mut ChaCha8Rng| match random.random() {
        true => Reading::Stable,
        false => Reading::Unreadable,
    };
    match torn {
        TornErase::Untouched => old,
        TornErase::Erased => PageImage::blank(Reading::Stable),
        TornErase::Unstable => PageImage::blank(Reading::Unstable),
        TornErase::Garbage => {
            let mut bytes = old.bytes(stride);
            random.fill_bytes(&mut bytes);
            PageImage::new(bytes, stable_or_not(random))
        }
        TornErase::Any | TornErase::Partial => match random.random_range(0..3) {
            0 => old,
            1 => PageImage::blank(Reading::Stable),
            _ => {
                let mut bytes = old.bytes(stride);
                let hit = part(&bytes, page_bytes, random);
                scramble(&mut bytes[hit], random);
                PageImage::new(bytes, stable_or_not(random))
            }
        },
    }
}

/// All of a page, its data or its spare area.
fn part(page: &[u8], page_bytes: usize, random: &mut ChaCha8Rng) -> Range<usize> {
    match random.random_range(0..3) {
        0 => 0..page.len(),
        1 => 0..page_bytes,
        _ => page_bytes..page.len(),
    }
}

/// Leaves each byte as it is, erased or as neither.
fn scramble(bytes: &mut [u8], random: &mut ChaCha8Rng) {
    for byte in bytes {
        match random.random_range(0..3) {
            0 => {}
            1 => *byte = 0xFF,
            _ => *byte = random.random(),
        }
    }
}

/// Flips `bits` bits anywhere in `bytes`.
pub(crate) fn flip(bytes: &mut [u8], bits: u16, random: &mut ChaCha8Rng) {
    if bytes.is_empty() {
        return;
    }
    for _ in 0..bits {
        let place = random.random_range(0..bytes.len());
        bytes[place] ^= 1 << random.random_range(0..8);
    }
}
