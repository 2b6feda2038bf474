//! The lazy-adaptive tree on disks that are full with what named checkpoints keep: closing finds
//! room however often it is opened and refused, and so does forgetting.

use std::collections::BTreeSet;

use contract::RamDisk;
use device::{Medium, SectorGeometry};
use index::parameters::Settings;
use index::{Durability, EntryShape, Error, Index, KeyRange, Update};
use index::{MediumShape, Options, TreeDescriptor};

/// How often the tree is opened while names are kept, and puts and deletes that are tried then.
const SESSIONS: u32 = 40;
const TRIED: u32 = 3;

fn entry() -> &'static TreeDescriptor {
    flashtree_trees::find("la-tree").unwrap()
}

/// A tree of short entries in pages of a sector, with the least memory.
struct Case {
    disk: RamDisk,
    durability: Durability,
    held: BTreeSet<[u8; 4]>,
    next: u32,
}

fn make(disk: &mut RamDisk, (durability, is_new): (Durability, bool)) -> Box<dyn Index + '_> {
    let pairs = [("node", "512")];
    let settings = Settings::parse("la-tree", entry().parameters, pairs).unwrap();
    let options = Options::new(EntryShape::fixed(4, 4), 0, settings);
    let mut options = Options { durability: Some(durability), ..options };
    let shape = MediumShape::Sectors(device::Sectors::geometry(disk));
    options.memory_bytes = entry().least_memory(&options, shape).unwrap();
    let make = if is_new { entry().create } else { entry().open };
    make(Medium::Sectors(Box::new(disk)), &options).unwrap()
}

/// True if it is refused for lack of room.
fn is_refused(done: index::Result<()>) -> bool {
    match done {
        Ok(()) => false,
        Err(Error::Store(store::Error::Full { .. } | store::Error::Kept { .. })) => true,
        Err(error) => panic!("{error}"),
    }
}

impl Case {
    /// Puts and deletes until some of both are refused, or so many were taken; names what there is,
    /// if there is a name and room for it, and closes.
    fn session(&mut self, is_new: bool, (most, name): (u32, Option<&str>)) -> bool {
        let mut index = make(&mut self.disk, (self.durability, is_new));
        let (mut refused, mut taken) = (0, 0);
        while refused < TRIED && taken < most {
            let key = self.next.wrapping_mul(0x9E37_79B9).to_be_bytes();
            self.next += 1;
            let is_delete = self.next.is_multiple_of(3);
            let old = self.held.first().copied().filter(|_| is_delete);
            let update = match &old {
                Some(key) => Update::Delete { key },
                None => Update::Put { key: &key, value: &key },
            };
            match is_refused(index.update(&[update])) {
                true => refused += 1,
                false if old.is_some() => drop(self.held.pop_first()),
                false => drop(self.held.insert(key)),
            }
            taken += 1;
        }
        let named = name.is_none_or(|name| !is_refused(index.checkpoint(Some(name)).map(drop)));
        index.close().unwrap();
        named
    }

    fn play(mut self, names: usize) {
        let mut is_new = true;
        let mut kept = Vec::new();
        for name in (0..names).map(|name| name.to_string()) {
            match self.session(is_new, (40, Some(&name))) {
                true => kept.push(name),
                false => break,
            }
            is_new = false;
        }
        assert!(!kept.is_empty());
        for _ in 0..SESSIONS {
            self.session(false, (7, None));
        }
        let mut index = make(&mut self.disk, (self.durability, false));
        for name in &kept {
            index.forget(name).unwrap();
        }
        index.close().unwrap();
        drop(index);
        let mut index = make(&mut self.disk, (self.durability, false));
        for key in &self.held {
            let mut value = [0; 4];
            assert_eq!(index.get(key, 0, &mut value).unwrap(), Some(4));
            assert_eq!(value, *key);
        }
        let (mut entries, mut cursor) = (0, index.range(KeyRange::ALL).unwrap());
        while cursor.next().unwrap().is_some() {
            entries += 1;
        }
        drop(cursor);
        assert_eq!(entries, self.held.len());
        index.check(&mut |finding| panic!("{finding}")).unwrap();
    }
}

#[test]
fn closing_and_forgetting_find_room_beside_what_names_keep() {
    for sectors in [180, 230, 400] {
        for durability in [Durability::Checkpoint, Durability::Batch, Durability::Every] {
            for names in [1, 2, 4] {
                let geometry = SectorGeometry::new(512, sectors).unwrap();
                for disk in [RamDisk::growing(geometry), RamDisk::new(geometry)] {
                    let held = BTreeSet::new();
                    Case { disk, durability, held, next: 0 }.play(names);
                }
            }
        }
    }
}
