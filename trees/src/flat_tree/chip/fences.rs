//! Fences: of each unit of a run where in its partition its first key is, in steps.
//!
//! There are 4,096 steps in a partition, of 12 bits a fence, where these are some to each unit; of
//! a run of more units 65,536.

/// The most units that have short fences.
const SHORT_MOST: u32 = 256;

/// Bytes of the fences of so many units: a single one needs none.
pub(super) const fn bytes_of(units: u32) -> usize {
    match units {
        0 | 1 => 0,
        _ if units <= SHORT_MOST => (units as usize * 12).div_ceil(8),
        _ => 2 * units as usize,
    }
}

/// A fence, of 16 bits, as it is kept beside those of so many units.
pub(super) const fn kept(fence: u16, units: u32) -> u16 {
    if units <= SHORT_MOST { fence >> 4 } else { fence }
}

/// The fence of a unit, as it is kept.
pub(super) fn at(fences: &[u8], units: u32, unit: u32) -> u16 {
    let bits = if units <= SHORT_MOST { 12 } else { 16 };
    let first = unit as usize * bits;
    let bytes = fences.get(first / 8..).and_then(<[u8]>::first_chunk);
    let pair = bytes.map_or(0, |bytes| u16::from_le_bytes(*bytes));
    if bits == 16 { pair } else { pair >> (first % 8) & 0xFFF }
}

/// Writes the fence of a unit, of 16 bits, to `fences`, which were zeros.
pub(super) fn set(fences: &mut [u8], units: u32, unit: u32, fence: u16) {
    let bits = if units <= SHORT_MOST { 12 } else { 16 };
    let first = unit as usize * bits;
    let shifted = if bits == 16 { fence } else { kept(fence, units) << (first % 8) };
    for (byte, set) in fences.iter_mut().skip(first / 8).zip(shifted.to_le_bytes()) {
        *byte |= set;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_fence_comes_back() {
        for units in [2, 3, 255, 256, 257, 1000] {
            let mut fences = alloc::vec![0; bytes_of(units)];
            let fence = |unit: u32| (unit * 60_000 / units) as u16 + 7;
            (0..units).for_each(|unit| set(&mut fences, units, unit, fence(unit)));
            assert!((0..units).all(|unit| at(&fences, units, unit) == kept(fence(unit), units)));
        }
    }
}
