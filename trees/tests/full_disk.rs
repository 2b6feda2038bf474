//! A disk in a file gets full: what is refused changes nothing, and an opening needs no room.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test fails by panicking"
)]

use contract::tree::{Model, findings};
use contract::{RamDisk, sample, share};
use device::{Cause, Medium, Request, Sector, SectorGeometry, Sectors};
use flashtree_trees::{TREES, find};
use index::parameters::Settings;
use index::{Durability, EntryShape, Options, Update};

fn key(number: u32) -> [u8; 4] {
    number.wrapping_mul(0x9E37_79B1).to_be_bytes()
}

/// A disk that gets no longer than so many sectors.
struct Short<'d> {
    below: &'d mut RamDisk,
    most: u64,
}

impl Sectors for Short<'_> {
    fn geometry(&self) -> SectorGeometry {
        self.below.geometry()
    }

    fn read(&mut self, requests: &mut [Request<'_>], cause: Cause) -> device::Result<()> {
        self.below.read(requests, cause)
    }

    fn write(&mut self, first: Sector, from: &[u8], cause: Cause) -> device::Result<()> {
        self.below.write(first, from, cause)
    }

    fn trim(&mut self, first: Sector, count: u64, cause: Cause) -> device::Result<()> {
        self.below.trim(first, count, cause)
    }

    fn flush(&mut self, cause: Cause) -> device::Result<()> {
        self.below.flush(cause)
    }

    fn sectors_held(&self) -> Option<u64> {
        self.below.sectors_held()
    }

    fn resize(&mut self, sectors: u64, cause: Cause) -> device::Result<()> {
        match sectors <= self.most {
            true => self.below.resize(sectors, cause),
            false => Err(device::Error::Driver { code: 28 }),
        }
    }
}

#[test]
fn a_load_that_a_full_disk_stops_is_refused_and_leaves_an_empty_tree() {
    for name in ["fd-tree", "lsm"] {
        let entry = find(name).unwrap();
        let mut disk = RamDisk::growing(SectorGeometry::new(4096, 20_000).unwrap());
        let settings = Settings::parse(entry.name, entry.parameters, [("head", "65536")]).unwrap();
        let options = Options {
            durability: Some(Durability::Batch),
            ..Options::new(EntryShape::fixed(4, 4), 4 << 20, settings)
        };
        drop((entry.create)(Medium::Sectors(Box::new(&mut disk)), &options).unwrap());
        let held = disk.sectors_held().unwrap();
        let mut model = Model::default();
        for number in 0..300_000_u32 {
            model.entries.insert(key(number).to_vec(), key(number).to_vec());
        }
        for more in [0, 1, 100, 200, 300] {
            let short = Short { below: &mut disk, most: held + more };
            let mut index = (entry.open)(Medium::Sectors(Box::new(short)), &options).unwrap();
            let loaded = index.load(&mut model.cursor(), 100);
            let full = device::Error::Driver { code: 28 };
            assert_eq!(loaded, Err(store::Error::Device(full).into()), "{name}, {more}");
            drop(index);
            let disk = Medium::Sectors(Box::new(&mut disk));
            let mut index = (entry.open)(disk, &options).unwrap();
            assert_eq!(findings(&mut *index), Vec::<String>::new(), "{name}, {more}");
            assert_eq!(index.get(&key(1), 0, &mut [0; 4]), Ok(None), "{name}, {more}");
        }
        let mut index = (entry.open)(Medium::Sectors(Box::new(&mut disk)), &options).unwrap();
        assert_eq!(index.load(&mut model.cursor(), 100), Ok(300_000));
    }
}

/// What a batch may write has room before the batch is recorded: else no opening could make it
/// again while the disk is full.
#[test]
fn an_opening_needs_no_room_where_a_full_disk_refused_a_batch() {
    let mut refused = 0;
    let stepped = [("deamortized", "on")];
    let trees = TREES.iter().filter(|tree| tree.sectors).map(|tree| (tree, &[][..]));
    let stepped = TREES.iter().filter(|tree| tree.name == "fd-tree").map(|it| (it, &stepped[..]));
    for (entry, given) in trees.chain(stepped) {
        let lengths = (0..12).flat_map(|more| [(more * 29, 70), (more * 29, 700)]);
        for (more, batch) in sample(5, lengths) {
            let mut disk = RamDisk::growing(SectorGeometry::new(4096, 20_000).unwrap());
            let head = entry.parameters.iter().any(|parameter| parameter.name == "head");
            let small = [("head", "65536"), ("ratio", "4")];
            let all = small.into_iter().filter(|_| head).chain(given.iter().copied());
            let settings = Settings::parse(entry.name, entry.parameters, all).unwrap();
            let options = Options {
                durability: Some(Durability::Batch),
                journal_through: true,
                ..Options::new(EntryShape::fixed(4, 4), 4 << 20, settings)
            };
            drop((entry.create)(Medium::Sectors(Box::new(&mut disk)), &options).unwrap());
            let most = disk.sectors_held().unwrap() + more;
            let what = format!("{}, {given:?}, {more} more, batches of {batch}", entry.name);
            let mut model = Model::default();
            let short = Medium::Sectors(Box::new(Short { below: &mut disk, most }));
            let mut index = (entry.open)(short, &options).expect(&what);
            for first in (0..200_000).step_by(batch) {
                let keys: Vec<_> = (first..first + batch as u32).map(key).collect();
                let puts: Vec<_> = keys.iter().map(|key| Update::Put { key, value: key }).collect();
                if index.update(&puts).is_err() {
                    refused += 1;
                    break;
                }
                index.sync().expect(&what);
                let entries = keys.iter().map(|key| (key.to_vec(), key.to_vec()));
                model.entries.extend(entries);
            }
            drop(index);
            let short = Medium::Sectors(Box::new(Short { below: &mut disk, most }));
            let mut index = (entry.open)(short, &options).expect(&what);
            assert_eq!(findings(&mut *index), Vec::<String>::new(), "{what}");
            for key in model.entries.keys() {
                assert_eq!(index.get(key, 0, &mut [0; 4]), Ok(Some(4)), "{what}");
            }
        }
    }
    assert!(refused * share(5) > 60, "{refused}");
}
