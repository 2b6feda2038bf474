//! What a disk has not made durable, and what is left of it after a power cut.

use std::collections::BTreeMap;

use rand::{Rng, RngExt};
use rand_chacha::ChaCha8Rng;

use super::plan::Unflushed;
use super::store::Store;
use crate::faults::{FaultKind, FaultLog};

/// Bytes in a piece of a torn sector.
const PIECE_BYTES: usize = 64;

/// The sectors that were changed since the last flush.
///
/// Of all that was written to a sector meanwhile one version is kept, drawn evenly: so any of them
/// may be what a cut leaves, and memory does not grow with rewriting.
#[derive(Clone, Debug, Default)]
pub(crate) struct Pending {
    sectors: BTreeMap<u64, Versions>,
}

#[derive(Clone, Debug)]
struct Versions {
    /// What the last flush made durable.
    flushed: Box<[u8]>,
    /// That, or any version since.
    drawn: Box<[u8]>,
    /// Versions since the last flush.
    count: u64,
    /// True if the change that made the last version was cut.
    torn: bool,
}

impl Pending {
    pub(crate) fn clear(&mut self) {
        self.sectors.clear();
    }

    /// Remembers `sector` of `store`, which is about to hold `new`.
    pub(crate) fn change(
        &mut self,
        store: &Store,
        sector: u64,
        new: &[u8],
        random: &mut ChaCha8Rng,
    ) {
        let versions = self.sectors.entry(sector).or_insert_with(|| {
            let flushed = store.sector(sector);
            Versions { drawn: flushed.clone(), flushed, count: 0, torn: false }
        });
        versions.count += 1;
        if random.random_range(0..=versions.count) == 0 {
            versions.drawn.copy_from_slice(new);
        }
    }

    /// Says that the last change of `sector` was cut: the power goes now.
    pub(crate) fn tear(&mut self, sector: u64) {
        if let Some(versions) = self.sectors.get_mut(&sector) {
            versions.torn = true;
        }
    }

    /// Lets the power go: `store` holds from now on what is left, and all of it is durable.
    pub(crate) fn settle(
        &mut self,
        store: &mut Store,
        fates: &Fates,
        random: &mut ChaCha8Rng,
        log: &mut FaultLog,
    ) {
        let whole = match fates.unflushed {
            Unflushed::Any => {
                [Unflushed::Lost, Unflushed::Kept, Unflushed::Mixed][random.random_range(0..3)]
            }
            other => other,
        };
        for (sector, versions) in std::mem::take(&mut self.sectors) {
            let fate = match (versions.torn, whole) {
                (false, Unflushed::Lost) => Fate::Flushed,
                (false, Unflushed::Kept) => Fate::Last,
                _ => fates.draw(random),
            };
            versions.leave(fate, sector, store, random);
            log.note(match fate {
                Fate::Flushed | Fate::Drawn => FaultKind::SectorLost,
                Fate::Last => FaultKind::SectorKept,
                Fate::Torn => FaultKind::SectorTorn,
            });
        }
    }

    /// Leaves of `sector` what a change that failed may leave, without a cut.
    pub(crate) fn fail(
        &self,
        store: &mut Store,
        sector: u64,
        fates: &Fates,
        random: &mut ChaCha8Rng,
    ) {
        if let Some(versions) = self.sectors.get(&sector) {
            versions.leave(fates.draw(random), sector, store, random);
        }
    }
}

impl Versions {
    fn leave(&self, fate: Fate, sector: u64, store: &mut Store, random: &mut ChaCha8Rng) {
        match fate {
            Fate::Flushed => store.put_sector(sector, &self.flushed),
            Fate::Drawn => store.put_sector(sector, &self.drawn),
            Fate::Last => {}
            Fate::Torn => {
                let mut bytes = store.sector(sector);
                let pieces = bytes.chunks_mut(PIECE_BYTES).zip(self.flushed.chunks(PIECE_BYTES));
                for (piece, flushed) in pieces {
                    match random.random_range(0..5) {
                        0 | 1 => piece.copy_from_slice(flushed),
                        2 | 3 => {}
                        _ => random.fill_bytes(piece),
                    }
                }
                store.put_sector(sector, &bytes);
            }
        }
    }
}

/// What a cut may leave.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Fates {
    pub(crate) unflushed: Unflushed,
    pub(crate) atomic_sectors: bool,
}

/// What a sector holds after a cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fate {
    Flushed,
    Drawn,
    Last,
    Torn,
}

impl Fates {
    fn draw(&self, random: &mut ChaCha8Rng) -> Fate {
        let fates = [Fate::Flushed, Fate::Drawn, Fate::Last, Fate::Torn];
        fates[random.random_range(0..if self.atomic_sectors { 3 } else { 4 })]
    }
}
