//! Where everything random comes from.

use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;

use super::cell::Cell;

/// A number that depends on every bit of both.
pub(super) fn mix(seed: u64, number: u64) -> u64 {
    let mut mixed = seed ^ number.wrapping_add(1).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    for _ in 0..2 {
        mixed = (mixed ^ mixed >> 29).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    }
    mixed ^ mixed >> 32
}

/// A number for one choice among those that the history with this seed depends on; another cell
/// gets another.
pub(super) fn chance(cell: &Cell, seed: u64, choice: u64) -> u64 {
    let name = cell.to_string();
    let name = name.bytes().fold(0xCBF2_9CE4_8422_2325, |hash: u64, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01B3)
    });
    mix(mix(seed, name), choice)
}

/// The random numbers of session `number` of the history with this seed; another cell gets others.
pub(super) fn random(cell: &Cell, seed: u64, number: u32) -> ChaCha8Rng {
    ChaCha8Rng::seed_from_u64(chance(cell, seed, u64::from(number)))
}
