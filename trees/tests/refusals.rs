//! What is refused leaves everything as it was and the index usable: a device that named
//! checkpoints fill lets go of them, and a key that no entry can have never reaches the journal.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

use device::{DiskCosts, Geometry, Medium, NandCosts, SectorGeometry};
use flashtree_trees::TREES;
use index::parameters::Settings;
use index::{Durability, EntryShape, Error, Index, Update};
use index::{MediumShape, Options, TreeDescriptor};
use sim::{SimulatedDisk, SimulatedNand};

const SECTOR_BYTES: u32 = 512;

fn disk(sectors: u64) -> SimulatedDisk {
    let geometry = SectorGeometry::new(SECTOR_BYTES, sectors).unwrap();
    SimulatedDisk::new(geometry, DiskCosts::default())
}

/// An index in so many times the least memory.
fn index<'d>(
    entry: &TreeDescriptor,
    disk: &'d mut SimulatedDisk,
    durability: Durability,
    memory: u64,
    is_new: bool,
) -> Box<dyn Index + 'd> {
    try_index(entry, disk, durability, memory, is_new).unwrap()
}

fn try_index<'d>(
    entry: &TreeDescriptor,
    disk: &'d mut SimulatedDisk,
    durability: Durability,
    memory: u64,
    is_new: bool,
) -> index::Result<Box<dyn Index + 'd>> {
    let settings = Settings::parse(entry.name, entry.parameters, []).unwrap();
    let mut options = Options::new(EntryShape::VARIABLE, 0, settings);
    options.durability = Some(durability);
    options.journal_bytes = Some(8 << 10);
    let shape = MediumShape::Sectors(device::Sectors::geometry(disk));
    options.memory_bytes = memory * entry.least_memory(&options, shape)?;
    let medium = Medium::Sectors(Box::new(disk));
    if is_new { (entry.create)(medium, &options) } else { (entry.open)(medium, &options) }
}

fn trees() -> impl Iterator<Item = &'static TreeDescriptor> {
    TREES.iter().copied().filter(|entry| entry.sectors)
}

/// Rounds without a name that is taken, after which none is tried any more: where runs stand beside
/// the pages that names keep images of, these may be full alone, and puts go on.
const ROUNDS_WITHOUT_NAME: u32 = 100;

/// Puts and names checkpoints until neither is taken any more, or no name is; returns how many are
/// kept.
fn fill_with_names(index: &mut dyn Index) -> usize {
    let mut named = 0;
    for round in 0u32.. {
        let mut refused = 0;
        for number in 0..40 {
            let key = (round * 7919 + number * 104_729) % 300;
            // Another value each time: the same again may change nothing.
            let put = Update::Put { key: &key.to_be_bytes(), value: &[round as u8; 40] };
            match index.update(&[put]) {
                Ok(()) => {}
                Err(Error::Store(store::Error::Full { .. } | store::Error::Kept { .. })) => {
                    refused += 1;
                }
                Err(error) => panic!("{error}"),
            }
        }
        match index.checkpoint(Some(&format!("round {round}"))) {
            Ok(_) => named = round,
            Err(Error::Store(
                store::Error::Full { .. }
                | store::Error::Kept { .. }
                | store::Error::CheckpointName { .. },
            )) => refused += 1,
            Err(error) => panic!("{error}"),
        }
        if refused == 41 || round - named == ROUNDS_WITHOUT_NAME {
            break;
        }
        assert!(round < 500, "named checkpoints never fill the device");
    }
    index.checkpoints().len()
}

#[test]
fn what_fills_the_device_can_be_forgotten_in_any_order_and_memory() {
    for entry in trees() {
        for durability in [Durability::Checkpoint, Durability::Batch, Durability::Every] {
            for (sectors, memory) in [(220, 1), (220, 16), (300, 4), (700, 2)] {
                let mut disk = disk(sectors);
                let mut full = index(entry, &mut disk, durability, memory, true);
                let kept = fill_with_names(&mut *full);
                assert!(kept > 0, "{}: nothing was kept", entry.name);
                drop(full);
                // What was written in much memory must be mended in little.
                let mut full = index(entry, &mut disk, durability, memory, false);
                for place in 0..kept {
                    let names = full.checkpoints();
                    let name = names[place * 7 % names.len()].name.clone();
                    full.forget(&name).unwrap_or_else(|error| {
                        panic!("{} in {sectors} sectors: {name}: {error}", entry.name)
                    });
                }
                assert!(full.checkpoints().is_empty());
                // Names may have left the entries so much that these fill it alone.
                for key in 0..300_u32 {
                    full.update(&[Update::Delete { key: &key.to_be_bytes() }]).unwrap();
                }
                let put = Update::Put { key: b"there is room", value: b"again" };
                full.update(&[put]).unwrap();
            }
        }
    }
}

#[test]
fn a_key_that_no_entry_can_have_is_refused_and_the_index_opens_again() {
    let long = vec![b'k'; 70_000];
    for entry in trees() {
        for durability in Durability::ALL {
            for bytes in [SECTOR_BYTES as usize, 65_535, 65_536, 70_000] {
                let mut disk = disk(2000);
                let mut fresh = index(entry, &mut disk, durability, 4, true);
                fresh.update(&[Update::Put { key: b"a", value: b"1" }]).unwrap();
                let key = &long[..bytes];
                for update in [Update::Put { key, value: b"" }, Update::Delete { key }] {
                    let batch = [Update::Put { key: b"a", value: b"2" }, update];
                    let refused = fresh.update(&batch);
                    assert!(matches!(refused, Err(Error::KeyTooLong { .. })), "{refused:?}");
                }
                fresh.close().unwrap();
                drop(fresh);
                let mut again = index(entry, &mut disk, durability, 4, false);
                let mut into = [0; 1];
                assert_eq!(again.get(b"a", 0, &mut into), Ok(Some(1)));
                assert_eq!(&into, b"1", "half a batch was taken");
            }
        }
    }
}

/// The sectors of a disk on which `entry` can be made, as it says of one of so many.
fn sectors_that_suffice(entry: &TreeDescriptor, durability: Durability, sectors: u64) -> u64 {
    match try_index(entry, &mut disk(sectors), durability, 1, true).map(drop) {
        Ok(()) => sectors,
        Err(Error::Store(store::Error::Device(device::Error::TooSmall { have, need }))) => {
            assert!(have == sectors && need > have, "{}, {durability}: {need}", entry.name);
            need
        }
        Err(error) => panic!("{}, {durability}, {sectors} sectors: {error}", entry.name),
    }
}

#[test]
fn a_disk_too_small_for_a_tree_is_refused_with_the_sectors_that_suffice() {
    for entry in trees() {
        for durability in Durability::ALL {
            for first in [4, 24, 40, 100, 140, 200] {
                let sectors = sectors_that_suffice(entry, durability, first);
                assert!(sectors <= 400, "{}, {durability}: {sectors} sectors", entry.name);
                let mut disk = disk(sectors);
                let mut index = index(entry, &mut disk, durability, 1, true);
                let put = [Update::Put { key: b"key", value: b"value" }];
                let delete = [Update::Delete { key: b"key" }];
                for batch in [&put, &delete, &put] {
                    index.update(batch).unwrap();
                    if durability != Durability::None {
                        index.checkpoint(None).unwrap();
                    }
                }
                index.close().unwrap();
            }
        }
    }
}

/// A refusal, or an index that has no use for so much; never the end of the program.
#[test]
fn a_budget_that_the_system_does_not_have_is_refused() {
    let chip = Geometry::new(2048, 64, 256).unwrap().with_spare(64).unwrap();
    for entry in TREES {
        for share in ["fixed", "shared"] {
            let is_given = entry.parameters.iter().any(|parameter| parameter.name == "share");
            let given = is_given.then_some(("share", share));
            let settings = Settings::parse(entry.name, entry.parameters, given).unwrap();
            let options = Options::new(EntryShape::fixed(8, 8), 1 << 45, settings);
            let mut nand = SimulatedNand::new(chip, NandCosts::default());
            let mut disk = disk(20_000);
            let mut media = Vec::new();
            if entry.nand {
                media.push(Medium::Nand(Box::new(&mut nand)));
            }
            if entry.sectors && share == "fixed" {
                media.push(Medium::Sectors(Box::new(&mut disk)));
            }
            for medium in media {
                match (entry.create)(medium, &options) {
                    Ok(mut index) => {
                        index.update(&[Update::Put { key: &[1; 8], value: &[2; 8] }]).unwrap();
                    }
                    Err(Error::Store(store::Error::NoMemory { bytes })) => assert!(bytes > 1 << 40),
                    Err(error) => panic!("{}: {error}", entry.name),
                }
            }
        }
    }
}
