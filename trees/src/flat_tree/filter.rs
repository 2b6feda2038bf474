//! Which keys a fragment may have: a Bloom filter whose bits for one key stand in one block.
//!
//! A filter is in memory only: it is made when a fragment is written, or read for the first time.

use alloc::boxed::Box;
use alloc::vec;

/// Bytes of a block: a line of a processor's cache.
const BLOCK_BYTES: usize = 64;

/// A filter of so many bytes, or fewer, has no bytes more than its keys ask for.
const EXACT_MOST: u64 = 256;

/// Bits that are set for a key.
const PROBES: u32 = 6;

/// A filter over the keys of one fragment.
pub(super) struct Filter {
    bits: Box<[u8]>,
}

impl Filter {
    /// Bytes of a filter for so many keys, with `bits` bits a key.
    pub(super) fn bytes_for(keys: u64, bits: u32) -> u64 {
        bytes_for(keys, bits)
    }

    /// An empty filter for so many keys.
    pub(super) fn for_keys(keys: u64, bits: u32) -> Self {
        let bytes = usize::try_from(bytes_for(keys, bits)).unwrap_or(BLOCK_BYTES);
        Filter { bits: vec![0; bytes].into_boxed_slice() }
    }

    /// Bytes of memory that it takes.
    pub(super) const fn memory(&self) -> u64 {
        self.bits.len() as u64
    }

    /// Notes that there is `key`.
    pub(super) fn add(&mut self, key: &[u8]) {
        add(&mut self.bits, key);
    }

    /// False if there is no such key.
    pub(super) fn may_have(&self, key: &[u8]) -> bool {
        may_have(&self.bits, key)
    }
}

/// Bytes of a filter for so many keys, with `bits` bits a key.
pub(super) fn bytes_for(keys: u64, bits: u32) -> u64 {
    let bytes = (keys * u64::from(bits)).div_ceil(8).max(1);
    if bytes <= EXACT_MOST { bytes } else { bytes.next_multiple_of(BLOCK_BYTES as u64) }
}

/// Notes in the bits of a filter that there is `key`.
pub(super) fn add(bits: &mut [u8], key: &[u8]) {
    let (start, places) = places(bits.len(), key);
    for place in places {
        if let Some(byte) = bits.get_mut(start + place / 8) {
            *byte |= 1 << (place % 8);
        }
    }
}

/// False if the bits of a filter say that there is no such key.
pub(super) fn may_have(bits: &[u8], key: &[u8]) -> bool {
    let (start, mut places) = places(bits.len(), key);
    places.all(|place| bits.get(start + place / 8).is_some_and(|byte| byte >> (place % 8) & 1 == 1))
}

/// Where the block of `key` begins in a filter of so many bytes, and its bits there.
fn places(bytes: usize, key: &[u8]) -> (usize, impl Iterator<Item = usize> + use<>) {
    let hash = hash(key);
    // Where they fill no whole number of blocks, a block begins at any byte.
    let step = if bytes.is_multiple_of(BLOCK_BYTES) { BLOCK_BYTES } else { 1 };
    let blocks = (bytes.saturating_sub(BLOCK_BYTES) / step + 1) as u64;
    let block = ((hash >> 32) * blocks) >> 32;
    let start = block as usize * step;
    let bits = bytes.min(BLOCK_BYTES) as u64 * 8;
    // Ten bits of another hash each.
    let other = mixed(hash);
    let places = (0..PROBES).map(move |probe| ((other >> (10 * probe) & 0x3FF) * bits) >> 10);
    let places = places.map(|place| place as usize);
    (start, places)
}

fn hash(key: &[u8]) -> u64 {
    let mut hash = 0x9E37_79B9_7F4A_7C15 ^ key.len() as u64;
    for part in key.chunks(8) {
        let mut word = [0; 8];
        word[..part.len()].copy_from_slice(part);
        hash = (hash ^ u64::from_le_bytes(word)).wrapping_mul(0xFF51_AFD7_ED55_8CCD);
        hash ^= hash >> 32;
    }
    mixed(hash)
}

fn mixed(mut hash: u64) -> u64 {
    hash = (hash ^ (hash >> 33)).wrapping_mul(0xFF51_AFD7_ED55_8CCD);
    hash = (hash ^ (hash >> 33)).wrapping_mul(0xC4CE_B9FE_1A85_EC53);
    hash ^ (hash >> 33)
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
