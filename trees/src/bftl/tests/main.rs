//! What bftl does by itself.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test fails by panicking"
)]

use contract::RamDisk;
use contract::tree::{figure, findings};
use device::{Medium, SectorGeometry};
use flashtree_trees::find;
use index::parameters::Settings;
use index::{Durability, EntryShape, Error, Index, KeyRange, Options, Update};

const SECTOR: usize = 512;

fn options(given: &[(&str, &str)], durability: Durability) -> Options {
    let entry = find("bftl").unwrap();
    let settings = Settings::parse(entry.name, entry.parameters, given.iter().copied()).unwrap();
    let options = Options::new(EntryShape::fixed(4, 4), 64 << 10, settings);
    Options { durability: Some(durability), ..options }
}

fn disk(sectors: u64) -> RamDisk {
    RamDisk::new(SectorGeometry::new(SECTOR as u32, sectors).unwrap())
}

fn make<'d>(disk: &'d mut RamDisk, options: &Options) -> Box<dyn Index + 'd> {
    (find("bftl").unwrap().create)(Medium::Sectors(Box::new(disk)), options).unwrap()
}

fn open<'d>(disk: &'d mut RamDisk, options: &Options) -> Box<dyn Index + 'd> {
    (find("bftl").unwrap().open)(Medium::Sectors(Box::new(disk)), options).unwrap()
}

fn key(number: u32) -> [u8; 4] {
    number.wrapping_mul(0x9E37_79B1).to_be_bytes()
}

fn put(index: &mut dyn Index, number: u32, value: u32) -> index::Result<()> {
    index.update(&[Update::Put { key: &key(number), value: &value.to_le_bytes() }])
}

fn nodes(index: &dyn Index) -> u64 {
    figure(index, index::LEAVES) + figure(index, index::INNER_NODES)
}

#[test]
fn sixty_units_wait_and_are_packed_by_node_into_few_sectors() {
    let (mut disk, options) = (disk(8192), options(&[], Durability::None));
    let mut index = make(&mut disk, &options);
    for number in 0..2400 {
        put(&mut *index, number, 0).unwrap();
    }
    let of = |index: &dyn Index| {
        ["commits", "sectors written", "nodes compacted"].map(|name| figure(index, name))
    };
    let before = of(&*index);
    for number in 0..600 {
        put(&mut *index, number * 3, 1).unwrap();
    }
    let [commits, sectors, compacted] = [0, 1, 2].map(|at| of(&*index)[at] - before[at]);
    assert_eq!(commits, 10);
    // Units of 60 nodes take 60 times 15 bytes: two sectors of 512.
    assert!(sectors <= 3 * commits + compacted, "{sectors} sectors, {compacted} compacted");
}

#[test]
fn a_node_whose_list_is_full_is_compacted_to_one_sector() {
    for list in [1, 2, 3, 16] {
        let given = [("list", list.to_string())];
        let given = given.each_ref().map(|(name, value)| (*name, value.as_str()));
        let (mut disk, options) = (disk(20_000), options(&given, Durability::None));
        let mut index = make(&mut disk, &options);
        for number in 0..20_000 {
            put(&mut *index, number % 5000, number).unwrap();
        }
        let (listed, nodes) = (figure(&*index, "sectors in lists"), nodes(&*index));
        assert!(listed <= list * nodes, "{listed} in lists of {nodes} nodes");
        assert!(figure(&*index, "nodes compacted") > 100);
        assert!(list == 1 || listed > nodes);
        assert_eq!(findings(&mut *index), Vec::<String>::new());
    }
}

fn each_durability(sectors: u64) -> impl Iterator<Item = (u64, Durability)> {
    Durability::ALL.into_iter().map(move |durability| (sectors, durability))
}

#[test]
fn where_room_gets_rare_lists_get_shorter_until_nodes_fill_it() {
    for (sectors, durability) in [450, 1000, 3000].into_iter().flat_map(each_durability) {
        let (mut disk, options) = (disk(sectors), options(&[], durability));
        let name = format!("{sectors} sectors, {durability}");
        let mut index = make(&mut disk, &options);
        let mut taken = 0;
        let refused = loop {
            match put(&mut *index, taken, taken) {
                Ok(()) => taken += 1,
                Err(refused) => break refused,
            }
        };
        assert!(matches!(refused, Error::Store(store::Error::Full { .. })), "{name}: {refused}");
        let (listed, nodes) = (figure(&*index, "sectors in lists"), nodes(&*index));
        assert!(nodes > sectors / 4 && listed < 2 * nodes, "{name}: {nodes} nodes, {listed}");
        for number in (0..taken).rev() {
            assert_eq!(index.get(&key(number), 0, &mut [0; 4]), Ok(Some(4)));
        }
        assert_eq!(findings(&mut *index), Vec::<String>::new());
        for number in 0..taken {
            let deleted = index.update(&[Update::Delete { key: &key(number) }]);
            assert_eq!(deleted, Ok(()), "{name}: {number} of {taken}");
        }
        index.close().unwrap();
    }
}

#[test]
fn what_waits_is_in_the_state_of_every_checkpoint() {
    let (mut disk, options) = (disk(4000), options(&[], Durability::Checkpoint));
    let mut index = make(&mut disk, &options);
    for number in 0..1000 {
        put(&mut *index, number, 1).unwrap();
    }
    index.checkpoint(Some("before")).unwrap();
    for number in 0..1000 {
        put(&mut *index, number, 2).unwrap();
    }
    index.close().unwrap();
    drop(index);
    let mut index = open(&mut disk, &options);
    let read = |index: &mut dyn Index| {
        let mut value = [0; 4];
        assert_eq!(index.get(&key(7), 0, &mut value), Ok(Some(4)));
        u32::from_le_bytes(value)
    };
    assert_eq!(read(&mut *index), 2);
    index.roll_back("before").unwrap();
    assert_eq!(read(&mut *index), 1);
    assert_eq!(findings(&mut *index), Vec::<String>::new());
}

/// Where the child at `place` of a whole inner node in `sector` stands.
fn child_at(sector: &[u8], place: usize) -> Option<usize> {
    let head_at = |at: usize| u32::from_le_bytes(sector[at..at + 4].try_into().unwrap());
    if sector[7] == 10 && head_at(10) >> 27 & 15 == 1 {
        return Some(14 + 2 + 8 * place + 4);
    }
    let mut at = 12;
    while sector[7] == 9 && at + 6 <= sector.len() {
        let head = head_at(at);
        let bytes = usize::from(u16::from_le_bytes([sector[at + 4], sector[at + 5]]));
        if head >> 31 == 1 && head >> 27 & 15 == 1 {
            return Some(at + 6 + 2 + 8 * place + 4);
        }
        at += 6 + bytes.max(1);
    }
    None
}

#[test]
fn a_child_pointer_that_leads_elsewhere_is_found() {
    let (mut disk, options) = (disk(2000), options(&[("list", "1")], Durability::None));
    let mut index = make(&mut disk, &options);
    for number in 0..2000 {
        put(&mut *index, number, 0).unwrap();
    }
    index.close().unwrap();
    drop(index);
    let whole = disk.bytes_mut().to_vec();
    let sectors = || whole.chunks(SECTOR).enumerate().skip(2);
    let mut found = 0;
    for target in 0..60_u32 {
        for (number, sector) in sectors() {
            let Some(at) = child_at(sector, target as usize % 3) else { continue };
            let mut damaged = sector.to_vec();
            damaged[at..at + 4].copy_from_slice(&target.to_le_bytes());
            if damaged == sector {
                continue;
            }
            let address = (number as u64 - 2).to_le_bytes();
            let checksum = device::checksum(&[&address, &damaged[4..]]);
            damaged[..4].copy_from_slice(&checksum.to_le_bytes());
            disk.bytes_mut()[number * SECTOR..][..SECTOR].copy_from_slice(&damaged);
            let mut index = open(&mut disk, &options);
            found += usize::from(!findings(&mut *index).is_empty());
            if let Ok(mut cursor) = index.range(KeyRange::ALL) {
                while let Ok(Some(_)) = cursor.next() {}
            }
            drop(index);
            disk.bytes_mut().copy_from_slice(&whole);
        }
    }
    assert!(found >= 50, "{found} were found");
}

/// Each of these puts may split a leaf in three; together they have the bytes of few leaves.
#[test]
fn a_batch_of_thousands_of_short_entries_needs_the_room_of_its_bytes() {
    for name in ["bftl", "flashdb"] {
        let entry = find(name).unwrap();
        let settings = Settings::parse(name, entry.parameters, []).unwrap();
        let options = Options::new(EntryShape::VARIABLE, 256 << 10, settings);
        let options = Options {
            durability: Some(Durability::Batch),
            journal_bytes: Some(256 << 10),
            ..options
        };
        let mut disk = RamDisk::new(SectorGeometry::new(2048, 2000).unwrap());
        let medium = Medium::Sectors(Box::new(&mut disk));
        let mut index = (entry.create)(medium, &options).unwrap();
        let batch = |from: u32| (from..from + 3000).map(|number| key(number).to_vec());
        for from in [0, 1500, 3000] {
            let keys: Vec<_> = batch(from).collect();
            let puts: Vec<_> =
                keys.iter().map(|key| Update::Put { key, value: &key[1..] }).collect();
            index.update(&puts).unwrap();
        }
        for number in 0..6000 {
            let found = index.get(&key(number), 0, &mut []).unwrap();
            assert_eq!(found, Some(3), "{name}, {number}");
        }
        assert_eq!(findings(&mut *index), Vec::<String>::new(), "{name}");
    }
}
