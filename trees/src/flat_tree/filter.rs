//! Which keys a fragment may have: a Bloom filter whose bits for one key stand in one block.
//!
//! A filter is in memory only: it is made when a fragment is written, or read for the first time.

use alloc::boxed::Box;
use alloc::vec;

/// Bytes of a block: a line of a processor's cache.
const BLOCK_BYTES: usize = 64;

/// Bits that are set for a key.
const PROBES: u32 = 6;

/// A filter over the keys of one fragment.
pub(super) struct Filter {
    bits: Box<[u8]>,
}

impl Filter {
    /// Bytes of a filter for so many keys, with `bits` bits a key.
    pub(super) fn bytes_for(keys: u64, bits: u32) -> u64 {
        let bytes = (keys * u64::from(bits)).div_ceil(8).max(1);
        let block = BLOCK_BYTES as u64;
        if bytes <= block { bytes } else { bytes.next_multiple_of(block) }
    }

    /// An empty filter for so many keys.
    pub(super) fn for_keys(keys: u64, bits: u32) -> Self {
        let bytes = usize::try_from(Self::bytes_for(keys, bits)).unwrap_or(BLOCK_BYTES);
        Filter { bits: vec![0; bytes].into_boxed_slice() }
    }

    /// Bytes of memory that it takes.
    pub(super) const fn memory(&self) -> u64 {
        self.bits.len() as u64
    }

    /// Notes that there is `key`.
    pub(super) fn add(&mut self, key: &[u8]) {
        let (start, places) = self.places(key);
        for place in places {
            if let Some(byte) = self.bits.get_mut(start + place / 8) {
                *byte |= 1 << (place % 8);
            }
        }
    }

    /// False if there is no such key.
    pub(super) fn may_have(&self, key: &[u8]) -> bool {
        let (start, mut places) = self.places(key);
        places.all(|place| {
            self.bits.get(start + place / 8).is_some_and(|byte| byte >> (place % 8) & 1 == 1)
        })
    }

    /// Where the block of `key` begins, and its bits there.
    fn places(&self, key: &[u8]) -> (usize, impl Iterator<Item = usize> + use<>) {
        let hash = hash(key);
        let blocks = (self.bits.len() / BLOCK_BYTES).max(1) as u64;
        let block = ((hash >> 32) * blocks) >> 32;
        let bits = (self.bits.len().min(BLOCK_BYTES) * 8) as u32;
        let (first, step) = (hash as u32 & 0xFFFF, (hash as u32 >> 16) | 1);
        let places = (0..PROBES).map(move |probe| ((first + probe * step) % bits) as usize);
        (block as usize * BLOCK_BYTES, places)
    }
}

fn hash(key: &[u8]) -> u64 {
    let mut hash = 0x9E37_79B9_7F4A_7C15 ^ key.len() as u64;
    for part in key.chunks(8) {
        let mut word = [0; 8];
        word[..part.len()].copy_from_slice(part);
        hash = (hash ^ u64::from_le_bytes(word)).wrapping_mul(0xFF51_AFD7_ED55_8CCD);
        hash ^= hash >> 32;
    }
    hash.wrapping_mul(0xC4CE_B9FE_1A85_EC53) ^ (hash >> 29)
}

#[cfg(test)]
mod tests {
    use super::Filter;

    #[test]
    fn no_key_is_missed_and_few_others_pass() {
        for keys in [1, 5, 51, 1000, 20_000_u64] {
            let mut filter = Filter::for_keys(keys, 10);
            for key in 0..keys {
                filter.add(&key.to_be_bytes());
            }
            assert!((0..keys).all(|key| filter.may_have(&key.to_be_bytes())));
            let others = (1 << 40)..(1 << 40) + 20_000_u64;
            let passed = others.filter(|key| filter.may_have(&key.to_be_bytes())).count();
            let most = if keys < 50 { 8000 } else { 500 };
            assert!(passed < most, "{passed} of 20000 pass a filter of {keys} keys");
        }
    }
}
