//! Generated entries: the entry number `id` has a key that follows from it alone.

use index::{EntryShape, Width};

/// How keys follow from the numbers of entries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Order {
    /// Scattered over all keys, each key once.
    Scattered,
    /// Ascending.
    Ascending,
}

/// Entries made from their numbers.
#[derive(Clone, Debug)]
pub(super) struct Numbers {
    pub(super) shape: EntryShape,
    pub(super) order: Order,
    pub(super) seed: u64,
}

/// The most entries: one half of the keys of 4 bytes; the other half are never inserted.
pub(super) const MOST_NUMBERS: u64 = 1 << 31;

/// The longest value of variable length, without what marks a change.
pub(super) const LONGEST_VALUE: usize = 40;

const SHORTEST_VALUE: u64 = 10;

impl Numbers {
    pub(super) fn key(&self, id: u32, out: &mut Vec<u8>) {
        self.write_key(self.number(u64::from(id)), out);
    }

    /// A key that no entry has. It lies among those of the first `issued` entries.
    pub(super) fn miss(&self, draw: u64, issued: u32, out: &mut Vec<u8>) {
        let number = match self.order {
            Order::Scattered if self.key_bytes() == Some(4) => {
                self.number(MOST_NUMBERS | (draw % MOST_NUMBERS))
            }
            Order::Scattered => self.number(1 << 63 | draw),
            Order::Ascending => 2 * (draw % u64::from(issued.max(1))) + 1,
        };
        self.write_key(number, out);
    }

    /// The first value of the entry `id`.
    pub(super) fn value(&self, id: u32, out: &mut Vec<u8>) {
        match self.shape.value {
            Width::Fixed(bytes) => push_low_bytes(u64::from(id), bytes, out),
            Width::Variable => {
                push_decimal(u64::from(id), 10, out);
                let filling = scatter64(u64::from(id)) % (LONGEST_VALUE as u64 - SHORTEST_VALUE);
                out.extend(std::iter::repeat_n(b'.', filling as usize));
            }
        }
    }

    fn key_bytes(&self) -> Option<u16> {
        match self.shape.key {
            Width::Fixed(bytes) => Some(bytes),
            Width::Variable => None,
        }
    }

    /// The number that the key spells. Both scatterings are bijections, so that no two entries
    /// have one key; ascending numbers are even, so that odd ones are free for misses.
    fn number(&self, id: u64) -> u64 {
        match self.order {
            Order::Ascending => 2 * id,
            Order::Scattered if self.key_bytes() == Some(4) => {
                u64::from(scatter32(id as u32 ^ scatter64(self.seed) as u32))
            }
            Order::Scattered => scatter64(id ^ scatter64(self.seed)),
        }
    }

    /// True if entries can be met in the order of their keys without a list of them.
    pub(super) fn can_be_walked(&self) -> bool {
        self.order == Order::Ascending || self.key_bytes() == Some(4)
    }

    /// The entry that has key number `place` of all that there may be, in ascending order; `None`
    /// behind the last. Only where it can be walked.
    pub(super) fn walked(&self, place: u64) -> Option<u32> {
        let place = u32::try_from(place).ok()?;
        Some(match self.order {
            Order::Ascending => place,
            Order::Scattered => gather32(place) ^ scatter64(self.seed) as u32,
        })
    }

    fn write_key(&self, number: u64, out: &mut Vec<u8>) {
        match self.shape.key {
            Width::Fixed(bytes) => push_low_bytes(number, bytes, out),
            // Ascending numbers are padded, so that the order of their texts is theirs.
            Width::Variable if self.order == Order::Ascending => push_decimal(number, 10, out),
            Width::Variable => push_decimal(number, 1, out),
        }
    }
}

/// The lowest `bytes` bytes of `number`, the most significant first; at most 8.
pub(super) fn push_low_bytes(number: u64, bytes: u16, out: &mut Vec<u8>) {
    let all = number.to_be_bytes();
    out.extend_from_slice(&all[all.len() - usize::from(bytes.min(8))..]);
}

/// The digits of `number`, at least `least` of them.
pub(super) fn push_decimal(number: u64, least: usize, out: &mut Vec<u8>) {
    let mut digits = [b'0'; 20];
    let mut rest = number;
    let mut first = digits.len();
    while rest > 0 {
        first -= 1;
        digits[first] = b'0' + (rest % 10) as u8;
        rest /= 10;
    }
    out.extend_from_slice(&digits[first.min(digits.len() - least)..]);
}

/// The finalizer of MurmurHash3 for 32 bits (Appleby): a bijection.
const fn scatter32(mut x: u32) -> u32 {
    x ^= x >> 16;
    x = x.wrapping_mul(0x85eb_ca6b);
    x ^= x >> 13;
    x = x.wrapping_mul(0xc2b2_ae35);
    x ^ x >> 16
}

/// The number that [`scatter32`] makes into `x`: its multipliers' inverses, and its shifts undone.
const fn gather32(mut x: u32) -> u32 {
    x ^= x >> 16;
    x = x.wrapping_mul(0x7ed1_b41d);
    x ^= x >> 13 ^ x >> 26;
    x = x.wrapping_mul(0xa5cb_9243);
    x ^ x >> 16
}

/// The output function of SplitMix64 (Steele, Lea, Flood, OOPSLA 2014): a bijection.
pub(crate) const fn scatter64(x: u64) -> u64 {
    let mut x = x.wrapping_add(0x9e37_79b9_7f4a_7c15);
    x = (x ^ x >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ x >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ x >> 31
}

#[cfg(test)]
mod tests {
    use super::{LONGEST_VALUE, Numbers, Order, push_decimal};
    use index::EntryShape;
    use std::collections::BTreeSet;

    const SHAPES: [EntryShape; 4] = [
        EntryShape::fixed(4, 4),
        EntryShape::fixed(8, 4),
        EntryShape::fixed(8, 8),
        EntryShape::VARIABLE,
    ];

    #[test]
    fn keys_are_unique_and_misses_are_no_keys() {
        for shape in SHAPES {
            for order in [Order::Scattered, Order::Ascending] {
                let numbers = Numbers { shape, order, seed: 7 };
                let mut keys = BTreeSet::new();
                let mut bytes = Vec::new();
                for id in 0..20_000 {
                    bytes.clear();
                    numbers.key(id, &mut bytes);
                    assert!(keys.insert(bytes.clone()), "{shape} {order:?} {id}");
                }
                for draw in 0..20_000 {
                    bytes.clear();
                    numbers.miss(super::scatter64(draw), 20_000, &mut bytes);
                    assert!(!keys.contains(&bytes), "{shape} {order:?} {draw}");
                }
            }
        }
    }

    #[test]
    fn what_was_scattered_is_gathered() {
        for number in (0..100_000).flat_map(|x: u32| [x, !x, x.wrapping_mul(0x9e37_79b9)]) {
            assert_eq!(super::gather32(super::scatter32(number)), number);
        }
    }

    #[test]
    fn ascending_keys_ascend() {
        for shape in SHAPES {
            let numbers = Numbers { shape, order: Order::Ascending, seed: 7 };
            let keys: Vec<Vec<u8>> = [0, 1, 9, 10, 99_999, 1 << 30, (1 << 31) - 1]
                .into_iter()
                .map(|id| {
                    let mut key = Vec::new();
                    numbers.key(id, &mut key);
                    key
                })
                .collect();
            assert!(keys.is_sorted(), "{shape}");
        }
    }

    #[test]
    fn values_have_the_length_that_was_promised() {
        for shape in SHAPES {
            let numbers = Numbers { shape, order: Order::Scattered, seed: 7 };
            for id in [0, 1, 1000, u32::MAX - 1] {
                let mut value = Vec::new();
                numbers.value(id, &mut value);
                match shape.value {
                    index::Width::Fixed(bytes) => assert_eq!(value.len(), usize::from(bytes)),
                    index::Width::Variable => assert!((10..=LONGEST_VALUE).contains(&value.len())),
                }
            }
        }
    }

    #[test]
    fn numbers_are_spelled_in_digits() {
        for (number, least, text) in
            [(0, 1, "0"), (7, 3, "007"), (1234, 3, "1234"), (u64::MAX, 1, "18446744073709551615")]
        {
            let mut out = Vec::new();
            push_decimal(number, least, &mut out);
            assert_eq!(out, text.as_bytes());
        }
    }
}
