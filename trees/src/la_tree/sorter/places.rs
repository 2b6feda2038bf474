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

impl From<u16> for At {
    fn from(short: u16) -> Self {
        At { byte: u32::from(short) & !SHORT, is_delete: u32::from(short) & SHORT != 0 }
    }
}

impl From<At> for u16 {
    fn from(at: At) -> Self {
        at.byte as u16 | if at.is_delete { SHORT as u16 } else { 0 }
    }
}

impl From<u32> for At {
    fn from(long: u32) -> Self {
        At { byte: long & !super::DELETE, is_delete: long & super::DELETE != 0 }
    }
}

impl From<At> for u32 {
    fn from(at: At) -> Self {
        at.byte | if at.is_delete { super::DELETE } else { 0 }
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

    pub(super) fn len(&self) -> usize {
        either!(self, places => places.len())
    }

    pub(super) fn truncate(&mut self, count: usize) {
        either!(self, places => places.truncate(count));
    }

    pub(super) fn push(&mut self, at: At) {
        either!(self, places => places.push(at.into()));
    }

    pub(super) fn get(&self, place: usize) -> Option<At> {
        either!(self, places => places.get(place).map(|at| (*at).into()))
    }

    pub(super) fn sort(&mut self, mut order: impl FnMut(At, At) -> Ordering) {
        either!(self, places => {
            places.sort_unstable_by(|one, other| order((*one).into(), (*other).into()));
        });
    }

    /// Drops each place that is the same as the one before it, which is `same`'s second.
    pub(super) fn dedup(&mut self, mut same: impl FnMut(At, At) -> bool) {
        either!(self, places => {
            places.dedup_by(|later, kept| same((*later).into(), (*kept).into()));
        });
    }
}
