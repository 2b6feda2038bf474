//! Keys of one length, less what those of a partition share: how far each is from the first.
//!
//! Keys are numbers of as many bytes as they have. The distances of those of a partition take
//! fewer, and are in the same order.

use alloc::boxed::Box;
use alloc::vec::Vec;

use store::{EntryShape, Width};

/// Bytes of all keys; `None` if they vary, and stand whole.
pub(super) const fn width(entries: EntryShape) -> Option<usize> {
    match entries.key {
        Width::Fixed(bytes) if bytes > 0 => Some(bytes as usize),
        _ => None,
    }
}

/// Writes the distance of `key` from `low` to `into`, in as many bytes as the key has.
fn subtract(key: &[u8], low: &[u8], into: &mut Vec<u8>) {
    into.clear();
    into.extend_from_slice(key);
    let mut borrows = false;
    for (place, byte) in into.iter_mut().enumerate().rev() {
        let from = low.get(place).copied().unwrap_or(0);
        let (less, once) = byte.overflowing_sub(from);
        let (less, again) = less.overflowing_sub(u8::from(borrows));
        (*byte, borrows) = (less, once || again);
    }
}

/// Writes the key that is `distance` from `low`, of `width` bytes, to `into`.
pub(super) fn restore(distance: &[u8], low: &[u8], width: usize, into: &mut Vec<u8>) {
    into.clear();
    into.resize(width.saturating_sub(distance.len()), 0);
    into.extend_from_slice(distance);
    let mut carries = false;
    for (place, byte) in into.iter_mut().enumerate().rev() {
        let more = low.get(place).copied().unwrap_or(0);
        let (sum, once) = byte.overflowing_add(more);
        let (sum, again) = sum.overflowing_add(u8::from(carries));
        (*byte, carries) = (sum, once || again);
    }
}

/// The key that stands as `held` in a run that keeps so many bytes of keys, 0 if all of them; the
/// run's partition begins at `low`.
pub(super) fn whole<'k>(
    held: &'k [u8],
    kept: u32,
    (low, entries): (&[u8], EntryShape),
    into: &'k mut Vec<u8>,
) -> &'k [u8] {
    match width(entries) {
        Some(width) if kept > 0 => {
            restore(held, low, width, into);
            into
        }
        _ => held,
    }
}

/// Writes the distance of `key` from `low`, in `bytes` bytes, to `into`; false if it takes more, as
/// that of a key does which is not of the partition.
pub(super) fn shorten(key: &[u8], low: &[u8], bytes: usize, into: &mut Vec<u8>) -> bool {
    subtract(key, low, into);
    let above = into.len().saturating_sub(bytes);
    let is_in = into.iter().take(above).all(|byte| *byte == 0);
    into.drain(..above);
    is_in
}

/// The first key whose distance from `low` takes more than so many bytes.
pub(super) fn edge(low: &[u8], bytes: usize, width: usize) -> Box<[u8]> {
    let (mut distance, mut key) = (Vec::with_capacity(bytes + 1), Vec::with_capacity(width));
    distance.push(1);
    distance.resize(bytes + 1, 0);
    restore(&distance, low, width, &mut key);
    key.into_boxed_slice()
}

/// Bytes that distances of keys from `low` on, below `high`, take, in a part of
/// `share.0 / share.1` of them; at most as many as keys have.
pub(super) fn bytes_kept(
    low: &[u8],
    high: Option<&[u8]>,
    width: usize,
    share: (u64, u64),
) -> usize {
    let mut span = Vec::with_capacity(width);
    match high {
        Some(high) => {
            subtract(high, low, &mut span);
            // The last key is one less.
            for byte in span.iter_mut().rev() {
                let (less, borrows) = byte.overflowing_sub(1);
                *byte = less;
                if !borrows {
                    break;
                }
            }
        }
        None => span.extend((0..width).map(|at| !low.get(at).copied().unwrap_or(0))),
    }
    let Some(first) = span.iter().position(|byte| *byte > 0) else {
        return 1;
    };
    // The highest bytes tell enough; those behind are counted.
    let top = span.iter().skip(first).take(8);
    let top = top.fold(0, |sum: u128, byte| sum << 8 | u128::from(*byte));
    let behind = width.saturating_sub(first + 8);
    let part = top * u128::from(share.0) / u128::from(share.1.max(1));
    let bits = (u128::BITS - part.leading_zeros()) as usize;
    (bits.div_ceil(8) + behind).clamp(1, width)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distances_are_in_the_order_of_keys_and_keys_come_back() {
        let low = 0x00FF_FE80_u32.to_be_bytes();
        let (mut short, mut before, mut key) = (Vec::new(), Vec::new(), Vec::new());
        for number in 0..0x1_0000_u32 {
            let found = (0x00FF_FE80 + number).to_be_bytes();
            assert!(shorten(&found, &low, 2, &mut short));
            assert!(short.len() == 2 && (number == 0 || short > before));
            restore(&short, &low, 4, &mut key);
            assert_eq!(key, found);
            before.clone_from(&short);
        }
        assert!(!shorten(&0x0100_FE80_u32.to_be_bytes(), &low, 2, &mut short));
        assert!(!shorten(&0x00FF_FE7F_u32.to_be_bytes(), &low, 2, &mut short));
    }

    #[test]
    fn bytes_are_as_many_as_the_part_of_the_keys_takes() {
        let kept = |low: u32, high: u32, share| {
            bytes_kept(&low.to_be_bytes(), Some(&high.to_be_bytes()), 4, share)
        };
        assert_eq!(kept(7, 7 + 0x100, (1, 1)), 1);
        assert_eq!(kept(7, 7 + 0x101, (1, 1)), 2);
        assert_eq!(kept(7, 7 + 0x200, (1, 2)), 1);
        assert_eq!(kept(7, 7 + 0x81, (2, 1)), 2);
        assert_eq!(kept(7, 8, (1, 1)), 1);
        assert_eq!(*edge(&7_u32.to_be_bytes(), 1, 4), 0x107_u32.to_be_bytes());
        assert_eq!(bytes_kept(&[], Some(&[0, 0, 1, 0]), 4, (1, 1)), 1);
        assert_eq!(bytes_kept(&[], None, 4, (1, 1)), 4);
        assert_eq!(bytes_kept(&[0xFF, 0xFF, 0xF0, 0], None, 4, (1, 1)), 2);
        assert_eq!(bytes_kept(&[0; 20], Some(&[1; 20]), 20, (1, 256)), 19);
    }
}
