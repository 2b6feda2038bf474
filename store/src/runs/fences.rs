//! Fences in memory: the first key of every unit, or of every so many, so that a lookup reads one.
//!
//! They come from the writer, or from the run's footer, or from its units; runs that name each
//! other's units by fences of their own need none.
//!
//! ```text
//!  in a footer   count u32 | each: unit u32, key's bytes u16, key
//! ```

use alloc::vec::Vec;
use core::ops::Range;

use crate::bytes::Reader;

/// First keys of units, packed one behind the other.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Fences {
    keys: Vec<u8>,
    /// Where each key ends, and its unit.
    ends: Vec<(u32, u32)>,
}

impl Fences {
    /// Adds the first key of `unit`, which is behind all others.
    pub(super) fn push(&mut self, unit: u32, key: &[u8]) {
        self.keys.extend_from_slice(key);
        self.ends.push((self.keys.len() as u32, unit));
    }

    /// How many there are.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.ends.len()
    }

    /// True if there is none.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    fn key(&self, place: usize) -> &[u8] {
        let start = place.checked_sub(1).map_or(0, |before| self.ends[before].0);
        self.keys.get(start as usize..self.ends[place].0 as usize).unwrap_or_default()
    }

    /// The units, of `units` in all, in one of which `key` stands if it stands in the run: what is
    /// to be read for a lookup. Nothing, if it is below the first key.
    #[must_use]
    pub fn plan(&self, key: &[u8], units: u32) -> Range<u32> {
        let (mut low, mut high) = (0, self.ends.len());
        while low < high {
            let middle = low + (high - low) / 2;
            if self.key(middle) <= key {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        let Some(place) = low.checked_sub(1) else {
            return 0..0;
        };
        let end = self.ends.get(low).map_or(units, |(_, unit)| *unit);
        self.ends[place].1..end
    }

    /// Bytes of memory that they take.
    #[must_use]
    pub const fn memory(&self) -> u64 {
        (self.keys.capacity() + self.ends.capacity() * size_of::<(u32, u32)>()) as u64
    }

    /// Writes them to the end of a footer.
    pub(super) fn encode(&self, to: &mut Vec<u8>) {
        to.extend_from_slice(&(self.ends.len() as u32).to_le_bytes());
        for place in 0..self.ends.len() {
            let key = self.key(place);
            to.extend_from_slice(&self.ends[place].1.to_le_bytes());
            to.extend_from_slice(&(key.len() as u16).to_le_bytes());
            to.extend_from_slice(key);
        }
    }

    /// Those of a footer; `None` if they are no ascending keys of ascending units below `units`.
    pub(super) fn decode(bytes: &[u8], units: u32) -> Option<Self> {
        let mut from = Reader::new(bytes);
        let mut fences = Fences::default();
        for place in 0..from.u32()? {
            let unit = from.u32()?;
            let length = u16::from_le_bytes(from.array()?);
            let key = from.bytes(length.into())?;
            let before = place.checked_sub(1).map(|before| before as usize);
            let is_behind = match before {
                Some(before) => fences.ends[before].1 < unit && fences.key(before) <= key,
                None => unit == 0,
            };
            if !is_behind || unit >= units {
                return None;
            }
            fences.push(unit, key);
        }
        (from.left() == 0).then_some(fences)
    }
}
