//! A key that is longer than any of an index can be is absent, and as a bound it bounds.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test fails by panicking"
)]

use std::collections::BTreeSet;
use std::ops::Bound;

use device::{Geometry, Medium, NandCosts, SectorGeometry};
use flashtree_trees::TREES;
use index::parameters::Settings;
use index::{Direction, EntryShape, Error, Index, KeyRange, Update};
use index::{MediumShape, Options, TreeDescriptor};
use sim::SimulatedNand;
use store::Width;

const LENGTHS: [usize; 6] = [64, 257, 1023, 4096, 32_769, 70_000];

fn options(entry: &TreeDescriptor, shape: EntryShape, medium: MediumShape) -> Options {
    let settings = Settings::parse(entry.name, entry.parameters, []).unwrap();
    let mut options = Options::new(shape, 0, settings);
    options.memory_bytes = 2 * entry.least_memory(&options, medium).unwrap();
    options
}

/// Every tree on every medium that it stands on.
fn each(shape: EntryShape, mut visit: impl FnMut(&str, &mut dyn Index)) {
    for entry in TREES {
        if entry.nand {
            let geometry = Geometry::new(2048, 16, 64).unwrap();
            let options = options(entry, shape, MediumShape::Nand(geometry));
            let chip = SimulatedNand::new(geometry, NandCosts::default());
            let made = (entry.create)(Medium::Nand(Box::new(chip)), &options);
            visit(entry.name, &mut *made.unwrap());
        }
        if entry.sectors {
            let geometry = SectorGeometry::new(2048, 4000).unwrap();
            let options = options(entry, shape, MediumShape::Sectors(geometry));
            let disk = contract::RamDisk::new(geometry);
            let made = (entry.create)(Medium::Sectors(Box::new(disk)), &options);
            visit(&format!("{} on a disk", entry.name), &mut *made.unwrap());
        }
    }
}

fn keys(index: &mut dyn Index, range: KeyRange<'_>) -> Vec<Vec<u8>> {
    let mut cursor = index.range(range).unwrap();
    let mut keys = Vec::new();
    while let Some((key, _)) = cursor.next().unwrap() {
        keys.push(key.to_vec());
    }
    keys
}

#[test]
fn a_key_longer_than_any_is_absent() {
    each(EntryShape::VARIABLE, |name, index| {
        index.update(&[Update::Put { key: b"k", value: b"v" }]).unwrap();
        for length in LENGTHS {
            let found = index.get(&vec![b'k'; length], 0, &mut []);
            assert_eq!(found, Ok(None), "{name}, {length} bytes");
        }
    });
}

#[test]
fn a_bound_longer_than_any_key_bounds_as_it_says() {
    let short: [&[u8]; 5] = [b"a", b"k", b"kk", b"kl", b"z"];
    each(EntryShape::VARIABLE, |name, index| {
        for key in short {
            index.update(&[Update::Put { key, value: b"v" }]).unwrap();
        }
        for length in LENGTHS {
            let long = vec![b'k'; length];
            for bound in [Bound::Included(&long[..]), Bound::Excluded(&long[..])] {
                for direction in [Direction::Ascending, Direction::Descending] {
                    let (below, above) = short.split_at(3);
                    let to = KeyRange { from: Bound::Unbounded, to: bound, direction };
                    let from = KeyRange { from: bound, to: Bound::Unbounded, direction };
                    for (range, expected) in [(to, below), (from, above)] {
                        let mut expected = expected.to_vec();
                        if direction == Direction::Descending {
                            expected.reverse();
                        }
                        assert_eq!(keys(index, range), expected, "{name}, {range:?}");
                    }
                }
            }
        }
    });
}

#[test]
fn a_key_of_another_length_than_all_keys_have_is_refused() {
    each(EntryShape::fixed(8, 8), |name, index| {
        for length in [0, 7, 9, 70_000] {
            let key = vec![0; length];
            let refused = index.get(&key, 0, &mut []);
            assert!(matches!(refused, Err(Error::KeyLength { .. })), "{name}: {refused:?}");
            let range = KeyRange { from: Bound::Included(&key), ..KeyRange::ALL };
            assert!(matches!(index.range(range).err(), Some(Error::KeyLength { .. })), "{name}");
        }
    });
}

/// Keys between which separators are as long as they are, always beside the last ones: nodes with
/// two or three of them split as often as can be.
#[test]
fn keys_as_long_as_they_may_be_are_taken_wherever_they_come() {
    const STEM: usize = 8;
    let without_value = EntryShape { value: Width::Fixed(0), ..EntryShape::VARIABLE };
    for (shape, beside) in [(EntryShape::VARIABLE, 3), (without_value, 2), (without_value, 3)] {
        each(shape, |name, index| {
            let refused = index.update(&[Update::Put { key: &[1; 70_000], value: b"" }]);
            let longest = match refused {
                Err(Error::KeyTooLong { limit, .. } | Error::EntryTooLong { limit, .. }) => limit,
                other => panic!("{name}: {other:?}"),
            };
            let key = |stem: u64, last: u8| {
                let mut key = vec![0; longest as usize];
                key[..STEM].copy_from_slice(&stem.to_be_bytes());
                key[longest as usize - 1] = last;
                key
            };
            let mut stems = vec![1 << 60, 2 << 60, 3 << 60];
            let mut model = BTreeSet::new();
            'all: for _ in 0..300 {
                let place = stems.len() - beside;
                let stem = stems[place] + ((stems[place + 1] - stems[place]) / 16).max(1);
                stems.insert(place + 1, stem);
                for last in [1, 0] {
                    let key = key(stem, last);
                    match index.update(&[Update::Put { key: &key, value: b"" }]) {
                        Ok(()) => model.insert(key),
                        Err(error) if is_for_lack_of_room(&error) => break 'all,
                        Err(error) => panic!("{name}, {} keys: {error}", model.len()),
                    };
                }
            }
            assert!(model.len() > 20, "{name}: {} keys", model.len());
            assert_eq!(keys(index, KeyRange::ALL), model.into_iter().collect::<Vec<_>>(), "{name}");
            let mut findings = Vec::new();
            index.check(&mut |finding| findings.push(finding.to_string())).unwrap();
            assert_eq!(findings, Vec::<String>::new(), "{name}");
        });
    }
}

fn is_for_lack_of_room(error: &Error) -> bool {
    use store::Error::{Full, LittleMemory, LittleTables};
    matches!(
        error,
        Error::TreeFull { .. }
            | Error::Store(Full { .. } | LittleMemory { .. } | LittleTables { .. })
    )
}
