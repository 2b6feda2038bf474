//! Units whose keys are numbers that stand as gaps: how far each is from the one before.
//!
//! ```text
//!  header as of others | low bits 6 bits | first key | gap | gap | ...   ... | value 1 | value 0
//! ```
//!
//! Before a key or a gap stands its entry's kind, in as many bits as the run's kinds take.
//! A gap, less one, is a Rice code: its quotient by 2 to the power of the low bits, as so many
//! ones and a zero, and the low bits of it. From a quotient of 8 on there are eight ones, and the
//! whole number in as many bits as a key has. Bits of a byte are taken from the lowest on.
//!
//! So an entry is at most a byte longer than one whose key stands whole, and where keys are random
//! it has the bits of the mean gap and one and a half. How many low bits pay is learnt from the
//! unit before. To read one, it is unpacked to a unit with whole keys.

use alloc::vec::Vec;

use super::build::put_header;
use super::{Builder, Entry, Form, Kind, Kinds, Seed, Unit, UnitShape};
use crate::{Error, Result, Width};

/// The longest keys, in bytes.
const KEY_BYTES_MOST: usize = 8;

/// Bits that tell how many low bits there are.
const LOW_BITS: usize = 6;

/// The quotient from which on a gap stands whole.
const QUOTIENT_MOST: u32 = 8;

/// A unit has at most so many times the entries that it would have with whole keys.
const PACKED_MOST: usize = 2;

/// Low bits of the first unit: as if a run had so many keys, as a power of two.
const KEYS_EXPECTED: usize = 10;

/// How units with gaps are made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GapShape {
    shape: UnitShape,
    /// What a unit is unpacked to.
    plain: UnitShape,
    key: usize,
    value: usize,
    /// The most entries.
    most: usize,
}

impl GapShape {
    /// Units of `shape` with gaps; `None` if they can't have any: keys and values have one length
    /// each, keys at most eight bytes, and there are no fences.
    #[must_use]
    pub fn new(shape: UnitShape) -> Option<Self> {
        let (Width::Fixed(key), Width::Fixed(value)) = (shape.entries.key, shape.entries.value)
        else {
            return None;
        };
        let (key, value) = (usize::from(key), usize::from(value));
        if key == 0 || key > KEY_BYTES_MOST || shape.kinds == Kinds::Fences {
            return None;
        }
        let most = (PACKED_MOST * shape.capacity(key, value)).min(shape.count_most());
        // The longest header, kinds, and what the smallest unit has.
        let bytes = 6 + most * (key + value) + (most * shape.kinds.bits()).div_ceil(8);
        let bytes = bytes.max(shape.bytes as usize);
        let plain = UnitShape::new(u32::try_from(bytes).ok()?, shape.entries, shape.kinds).ok()?;
        Some(GapShape { shape, plain, key, value, most })
    }

    /// How units are made of which these are read.
    #[must_use]
    pub const fn packed(&self) -> UnitShape {
        self.shape
    }

    /// Bytes of a unit that was unpacked.
    #[must_use]
    pub const fn unpacked_bytes(&self) -> usize {
        self.plain.bytes as usize
    }

    /// The unit that `bytes` hold, verified, and unpacked to `into`.
    ///
    /// # Errors
    /// It is damaged, or another unit.
    pub fn verify<'b>(&self, seed: Seed, bytes: &[u8], into: &'b mut Vec<u8>) -> Result<Unit<'b>> {
        let damaged = |what| Error::DamagedUnit { run: seed.run, unit: seed.unit, what };
        self.shape.compare(seed, bytes)?;
        if self.shape.form(bytes) != Form::Entries {
            return Err(damaged("it has no entries, where its run has nothing else"));
        }
        into.clear();
        into.resize(self.unpacked_bytes(), 0);
        self.unpack(bytes, into).ok_or(damaged("its gaps make no sense"))?;
        Ok(self.plain.view(into))
    }

    /// A unit that was unpacked.
    #[must_use]
    pub const fn view<'b>(&self, unpacked: &'b [u8]) -> Unit<'b> {
        self.plain.view(unpacked)
    }

    fn unpack(&self, bytes: &[u8], into: &mut [u8]) -> Option<()> {
        let (count, _) = self.shape.header_number(bytes);
        let values = bytes.len().checked_sub(count * self.value)?;
        if count == 0 || count > self.most {
            return None;
        }
        let mut from = Bits { bytes: bytes.get(..values)?, at: self.shape.header() * 8 };
        let low_bits = from.take(LOW_BITS)? as usize;
        let (key_bits, kind_bits) = (8 * self.key, self.shape.kinds.bits());
        let mut key = 0_u64;
        let mut builder = Builder::new(self.plain);
        for place in 0..count {
            let kind = Kind::from_number(from.take(kind_bits)? as u8);
            key = match place {
                0 => from.take(key_bits)?,
                _ => key.checked_add(from.take_gap(low_bits, key_bits)?)?.checked_add(1)?,
            };
            if key > u64::MAX >> (64 - key_bits) {
                return None;
            }
            let at = bytes.len() - (place + 1) * self.value;
            let value = bytes.get(at..at + self.value)?;
            let whole = key.to_be_bytes();
            let entry = Entry { key: whole.get(8 - self.key..)?, kind, value };
            builder.push(into, &entry).then_some(())?;
        }
        put_header(&self.plain, into, (count, 0));
        Some(())
    }
}

/// Bits that are read.
struct Bits<'b> {
    bytes: &'b [u8],
    at: usize,
}

impl Bits<'_> {
    /// The next `bits` bits, at most 64.
    fn take(&mut self, bits: usize) -> Option<u64> {
        let (mut number, mut taken) = (0, 0);
        while taken < bits {
            let byte = *self.bytes.get(self.at / 8)? >> (self.at % 8);
            let more = (8 - self.at % 8).min(bits - taken);
            let part = u64::from(byte) & (u64::MAX >> (64 - more));
            number |= part << taken;
            taken += more;
            self.at += more;
        }
        Some(number)
    }

    /// The next gap, less one.
    fn take_gap(&mut self, low_bits: usize, key_bits: usize) -> Option<u64> {
        let mut quotient = 0;
        while quotient < QUOTIENT_MOST && self.take(1)? == 1 {
            quotient += 1;
        }
        if quotient == QUOTIENT_MOST {
            return self.take(key_bits);
        }
        let low = self.take(low_bits)?;
        let high = u64::from(quotient).checked_mul(1_u64.checked_shl(low_bits as u32)?)?;
        high.checked_add(low)
    }
}

/// Units with gaps that are being made, one after the other.
#[derive(Clone, Copy, Debug)]
pub struct GapBuilder {
    shape: GapShape,
    count: usize,
    low_bits: usize,
    first: u64,
    last: u64,
    /// The bit where the next gap goes.
    at: usize,
}

impl GapBuilder {
    /// An empty unit; its bytes have to be zeros.
    #[must_use]
    pub const fn new(shape: GapShape) -> Self {
        let low_bits = (8 * shape.key).saturating_sub(KEYS_EXPECTED);
        GapBuilder { shape, count: 0, low_bits, first: 0, last: 0, at: 0 }
    }

    /// The unit that comes behind this one.
    #[must_use]
    pub fn next(&self) -> Self {
        let gaps = self.count.saturating_sub(1) as u64;
        let low_bits = match (self.last - self.first).checked_div(gaps) {
            // From 0.962 of the mean on a bit more is shorter, where gaps are random.
            Some(mean) => (mean - mean / 27).checked_ilog2().unwrap_or(0) as usize,
            None => self.low_bits,
        };
        GapBuilder { shape: self.shape, count: 0, low_bits, first: 0, last: 0, at: 0 }
    }

    /// Adds `entry`, whose key is above all others, to the unit in `bytes`; false, and nothing
    /// changed, if there is no room.
    #[must_use]
    pub fn push(&mut self, bytes: &mut [u8], entry: &Entry<'_>) -> bool {
        let shape = &self.shape;
        if self.count == shape.most || entry.key.len() != shape.key {
            return false;
        }
        let key = entry.key.iter().fold(0, |key, byte| key << 8 | u64::from(*byte));
        debug_assert!(self.count == 0 || key > self.last, "keys are in their order");
        let kind = (u64::from(entry.kind.number()), shape.shape.kinds.bits());
        let fields = match self.count {
            0 => [(self.low_bits as u64, LOW_BITS), kind, (key, 8 * shape.key)],
            _ => self.gap_fields(kind, key.wrapping_sub(self.last).wrapping_sub(1)),
        };
        let start = if self.count == 0 { shape.shape.header() * 8 } else { self.at };
        let end = fields.iter().fold(start, |end, (_, bits)| end + bits);
        let values = bytes.len() - self.count * shape.value;
        if end.div_ceil(8) + shape.value > values {
            return false;
        }
        self.at = start;
        for (number, bits) in fields {
            put_bits(bytes, self.at, (number, bits));
            self.at += bits;
        }
        let value = values - shape.value;
        bytes[value..value + entry.value.len()].copy_from_slice(entry.value);
        if self.count == 0 {
            self.first = key;
        }
        self.last = key;
        self.count += 1;
        true
    }

    /// What stands of an entry of a kind whose key is `gap` and one behind the one before: numbers,
    /// and bits of each.
    fn gap_fields(&self, kind: (u64, usize), gap: u64) -> [(u64, usize); 3] {
        match gap >> self.low_bits {
            quotient if quotient < QUOTIENT_MOST.into() => {
                let ones = (1 << quotient) - 1;
                let low = gap & ((1 << self.low_bits) - 1);
                [kind, (ones, quotient as usize + 1), (low, self.low_bits)]
            }
            _ => {
                let ones = (1 << QUOTIENT_MOST) - 1;
                [kind, (ones, QUOTIENT_MOST as usize), (gap, 8 * self.shape.key)]
            }
        }
    }

    /// Ends the unit in `bytes`; returns its checksum.
    pub fn seal(&self, seed: Seed, bytes: &mut [u8]) -> u32 {
        put_header(&self.shape.shape, bytes, (self.count, 0));
        seed.seal(&self.shape.shape, bytes)
    }
}

/// Writes the lowest `bits` bits of a number from bit `at` on, where there are zeros.
fn put_bits(bytes: &mut [u8], mut at: usize, (mut number, mut bits): (u64, usize)) {
    while bits > 0 {
        let more = (8 - at % 8).min(bits);
        bytes[at / 8] |= ((number & (u64::MAX >> (64 - more))) << (at % 8)) as u8;
        number >>= more;
        (at, bits) = (at + more, bits - more);
    }
}
