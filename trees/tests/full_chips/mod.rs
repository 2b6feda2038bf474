//! What tests of full chips have in common: filling them, deleting from them one by one.

use std::fmt::Debug;

use index::{EntryShape, Error, Index, Update, Width};

/// Puts that are refused before the chip counts as full.
pub(crate) const REFUSALS: u32 = 12;

/// A key and a value.
pub(crate) type Pair = (Vec<u8>, Vec<u8>);

/// An entry of `shape` that begins with `mixed` in key and value; where lengths vary, as long as
/// the `varied` bytes of it say.
pub(crate) fn entry(shape: EntryShape, mixed: [u8; 8], varied: [usize; 2]) -> Pair {
    let bytes = |width, varied: u8| match width {
        Width::Fixed(bytes) => bytes.into(),
        Width::Variable => 8 + usize::from(varied % 13),
    };
    let (mut key, mut value) = (mixed.to_vec(), mixed.to_vec());
    key.resize(bytes(shape.key, mixed[varied[0]]), b'k');
    value.resize(bytes(shape.value, mixed[varied[1]]), b'v');
    (key, value)
}

pub(crate) fn put(index: &mut dyn Index, (key, value): &Pair) -> index::Result<()> {
    index.update(&[Update::Put { key, value }])
}

/// Puts entries by number until some were refused; returns the numbers of what was taken.
pub(crate) fn fill(
    index: &mut dyn Index,
    case: &dyn Debug,
    entry: &dyn Fn(u64) -> Pair,
) -> Vec<u64> {
    let (mut taken, mut refused) = (Vec::new(), 0);
    for number in 0.. {
        match put(index, &entry(number)) {
            Ok(()) => taken.push(number),
            Err(Error::TreeFull { .. } | Error::Store(store::Error::Full { .. })) => refused += 1,
            Err(error) => panic!("{case:?}: {error}"),
        }
        if refused == REFUSALS {
            break;
        }
    }
    taken
}

/// Deletes entries by number, each of which has to be taken.
pub(crate) fn delete(
    index: &mut dyn Index,
    case: &dyn Debug,
    entry: &dyn Fn(u64) -> Pair,
    numbers: &[u64],
) {
    for (place, number) in numbers.iter().enumerate() {
        let (key, _) = entry(*number);
        if let Err(error) = index.update(&[Update::Delete { key: &key }]) {
            let live = index.statistics().live_pages;
            panic!("{case:?}: delete {place} of {} with {live} live: {error}", numbers.len());
        }
    }
}

/// The blocks that a chip of too few needs, going by what is said.
#[allow(dead_code, reason = "not every test that has this module asks")]
pub(crate) fn blocks_needed(made: index::Result<Box<dyn Index + '_>>, case: &dyn Debug) -> u32 {
    match made.map(drop) {
        Err(Error::Store(store::Error::Device(device::Error::TooFewBlocks { need, .. }))) => need,
        other => panic!("{case:?}, too few blocks: {other:?}"),
    }
}
