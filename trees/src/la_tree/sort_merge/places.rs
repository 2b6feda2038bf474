//! Where entries begin in the memory for sorting, each marked if it is a delete: two bytes an
//! entry where that memory is small enough, or else four.

use alloc::vec::Vec;
use core::cmp::Ordering;

/// Memory for sorting below this is numbered by two bytes.
const SHORT: u32 = 0x8000;

/// An entry's place, and whether the entry is a delete.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct At {
    pub(super) byte: u32,
    pub(super) is_delete: bool,
}

impl At {
    const fn long(self) -> u32 {
        self.byte | if self.is_delete { super::DELETE } else { 0 }
    }

    const fn short(self) -> u16 {
        self.byte as u16 | if self.is_delete { SHORT as u16 } else { 0 }
    }

    const fn of_long(long: u32) -> Self {
        At { byte: long & !super::DELETE, is_delete: long & super::DELETE != 0 }
    }

    const fn of_short(short: u16) -> Self {
        At { byte: short as u32 & !SHORT, is_delete: short as u32 & SHORT != 0 }
    }
}

/// A list of places, all of whose memory is taken at once.
#[derive(Debug)]
pub(super) enum Places {
    Short(Vec<u16>),
    Long(Vec<u32>),
}

impl Default for Places {
    fn default() -> Self {
        Places::Short(Vec::new())
    }
}

impl Places {
    /// Bytes of each place in memory of `bytes` bytes.
    pub(super) const fn each(bytes: u32) -> u64 {
        if bytes < SHORT { 2 } else { 4 }
    }

    /// Room for `entries` places in memory of `bytes` bytes.
    pub(super) fn new(bytes: u32, entries: usize) -> Self {
        match bytes < SHORT {
            true => Places::Short(Vec::with_capacity(entries)),
            false => Places::Long(Vec::with_capacity(entries)),
        }
    }

    #[cfg(test)]
    pub(super) fn memory_bytes(&self) -> u64 {
        match self {
            Places::Short(places) => 2 * places.capacity() as u64,
            Places::Long(places) => 4 * places.capacity() as u64,
        }
    }

    pub(super) fn len(&self) -> usize {
        match self {
            Places::Short(places) => places.len(),
            Places::Long(places) => places.len(),
        }
    }

    pub(super) fn truncate(&mut self, count: usize) {
        match self {
            Places::Short(places) => places.truncate(count),
            Places::Long(places) => places.truncate(count),
        }
    }

    pub(super) fn push(&mut self, at: At) {
        match self {
            Places::Short(places) => places.push(at.short()),
            Places::Long(places) => places.push(at.long()),
        }
    }

    pub(super) fn get(&self, place: usize) -> Option<At> {
        match self {
            Places::Short(places) => places.get(place).map(|at| At::of_short(*at)),
            Places::Long(places) => places.get(place).map(|at| At::of_long(*at)),
        }
    }

    pub(super) fn sort(&mut self, mut order: impl FnMut(At, At) -> Ordering) {
        match self {
            Places::Short(places) => places
                .sort_unstable_by(|one, other| order(At::of_short(*one), At::of_short(*other))),
            Places::Long(places) => {
                places.sort_unstable_by(|one, other| order(At::of_long(*one), At::of_long(*other)));
            }
        }
    }

    /// Drops each place that is the same as the one before it, which is `same`'s second.
    pub(super) fn dedup(&mut self, mut same: impl FnMut(At, At) -> bool) {
        match self {
            Places::Short(places) => {
                places.dedup_by(|later, kept| same(At::of_short(*later), At::of_short(*kept)));
            }
            Places::Long(places) => {
                places.dedup_by(|later, kept| same(At::of_long(*later), At::of_long(*kept)));
            }
        }
    }
}
