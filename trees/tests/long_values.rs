//! Values far longer than a node, up to 1 MiB: written, overwritten, read in pieces, deleted, moved
//! to another index, and refused where there is no room.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test fails by panicking"
)]

use contract::RamDisk;
use contract::tree::{Case, MemoryLevel, Model, Stand, Storage, cases, findings};
use device::{Medium, SectorGeometry, Sectors};
use flashtree_trees::TREES;
use index::parameters::Settings;
use index::{Durability, EntryShape, Error, Index, KeyRange, OverflowValue, Update};
use index::{MediumShape, Options};
use rand::{Rng, RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

const MEBIBYTE: usize = 1 << 20;

fn has_long_values(case: &Case) -> bool {
    case.has_long_values()
}

/// Every node size at the least memory; and each translation layer once. How long values come back
/// has a test of its own.
fn wanted() -> impl Iterator<Item = Case> {
    let all = TREES.iter().flat_map(|entry| cases(entry)).filter(|case| {
        let is_plain = case.page_bytes == 2048 && case.parameters.is_empty();
        // On raw flash there are no long values.
        let is_on_sectors = !matches!(case.stand, Stand::Nand);
        let stands = matches!(case.stand, Stand::Ram) || is_plain && is_on_sectors;
        stands && has_long_values(case) && case.memory == MemoryLevel::Least
    });
    all.map(|case| Case { durability: Durability::None, ..case })
}

/// True if updates wait before they come to the leaves.
fn is_lazy(case: &Case) -> bool {
    matches!(case.entry.name, "flat-tree" | "la-tree")
}

fn value(random: &mut ChaCha8Rng, bytes_most: usize) -> Vec<u8> {
    // All orders of magnitude alike, so that some have 1 MiB.
    let magnitude = random.random_range(0..=bytes_most.ilog2());
    let bytes = random.random_range(0..=bytes_most >> magnitude);
    let mut value = vec![0; bytes];
    random.fill_bytes(&mut value);
    value
}

/// Plays so many updates of ten keys, whose values have up to `bytes_most` bytes.
fn play(index: &mut dyn Index, model: &mut Model, random: &mut ChaCha8Rng, bytes_most: usize) {
    for step in 0..60 {
        let key = [b'k', random.random_range(b'0'..=b'9')];
        if random.random_ratio(1, 5) {
            index.update(&[Update::Delete { key: &key }]).unwrap();
            model.entries.remove(&key[..]);
        } else {
            let value = value(random, bytes_most);
            index.update(&[Update::Put { key: &key, value: &value }]).unwrap();
            model.entries.insert(key.to_vec(), value);
        }
        model.compare_value(index, &key);
        if step % 20 == 0 {
            assert_eq!(findings(index), Vec::<String>::new());
        }
    }
}

#[test]
fn values_of_up_to_a_mebibyte_are_kept_through_everything() {
    let mut longest = 0;
    for case in wanted() {
        let mut random = ChaCha8Rng::seed_from_u64(case.seed);
        let mut storage = case.storage(16 << 20);
        let mut index = case.index(&mut storage, false);
        let mut model = Model::default();
        play(&mut *index, &mut model, &mut random, MEBIBYTE);
        let mut whole = vec![0; MEBIBYTE];
        random.fill_bytes(&mut whole);
        index.update(&[Update::Put { key: b"whole", value: &whole }]).unwrap();
        model.entries.insert(b"whole".to_vec(), whole);
        model.compare_all(&mut *index);
        index.close().unwrap();
        drop(index);
        let mut index = case.index(&mut storage, true);
        assert_eq!(findings(&mut *index), Vec::<String>::new(), "{}", case.name());
        model.compare_all(&mut *index);
        play(&mut *index, &mut model, &mut random, MEBIBYTE);
        model.compare_all(&mut *index);
        longest = longest.max(model.entries.values().map(Vec::len).max().unwrap_or(0));
        while let Some((key, _)) = model.entries.pop_first() {
            index.update(&[Update::Delete { key: &key }]).unwrap();
        }
        assert_eq!(findings(&mut *index), Vec::<String>::new(), "{}", case.name());
        // Where deletes wait, loading nothing lets go of what they deleted.
        assert_eq!(index.load(&mut Model::default().cursor(), 100), Ok(0));
        // A root record that a superblock has no room for has two pages of its own.
        let node: Option<u32> = case.parameters.iter().find_map(|(_, bytes)| bytes.parse().ok());
        let sectors = u64::from(node.unwrap_or(0).div_ceil(case.page_bytes).max(1));
        let most = if is_lazy(&case) { 3 * sectors } else { 2 };
        assert!(index.statistics().live_pages <= most, "{}: pages are lost", case.name());
    }
    assert!(longest >= MEBIBYTE);
}

#[test]
fn an_index_is_loaded_from_the_scan_of_another_with_other_nodes() {
    let all: Vec<Case> = wanted().filter(|case| matches!(case.stand, Stand::Ram)).collect();
    assert!(all.len() > 4);
    for (from, to) in all.iter().zip(all.iter().rev()) {
        let mut random = ChaCha8Rng::seed_from_u64(from.seed);
        let (mut old_storage, mut new_storage) = (from.storage(8 << 20), to.storage(8 << 20));
        let mut old = from.index(&mut old_storage, false);
        let mut new = to.index(&mut new_storage, false);
        let mut model = Model::default();
        play(&mut *old, &mut model, &mut random, 100_000);
        for number in 0..400_u32 {
            let key = number.to_be_bytes();
            let value = value(&mut random, 3000);
            old.update(&[Update::Put { key: &key, value: &value }]).unwrap();
            model.entries.insert(key.to_vec(), value);
        }
        let loaded = new.load(&mut *old.range(KeyRange::ALL).unwrap(), 70);
        assert_eq!(loaded, Ok(model.entries.len() as u64), "{} to {}", from.name(), to.name());
        model.compare_all(&mut *new);
        assert_eq!(findings(&mut *new), Vec::<String>::new());
    }
}

#[test]
fn a_long_value_that_finds_no_room_changes_nothing() {
    for case in wanted() {
        let mut random = ChaCha8Rng::seed_from_u64(case.seed);
        let mut storage = case.storage(256 << 10);
        let mut index = case.index(&mut storage, false);
        let mut model = Model::default();
        let mut refused = 0;
        for number in 0..200_u32 {
            let key = (number % 40).to_be_bytes();
            let value = value(&mut random, 200_000);
            let update = if random.random_ratio(1, 6) {
                Update::Delete { key: &key }
            } else {
                Update::Put { key: &key, value: &value }
            };
            let pages = index.statistics().live_pages;
            match (index.update(&[update]), update) {
                (Ok(()), Update::Delete { .. }) => drop(model.entries.remove(&key[..])),
                (Ok(()), _) => drop(model.entries.insert(key.to_vec(), value)),
                (Err(Error::Store(store::Error::Full { .. })), Update::Put { .. }) => {
                    let left = index.statistics().live_pages;
                    // Where updates wait, they were settled to find room.
                    assert!(left == pages || is_lazy(&case), "{}", case.name());
                    let put = Update::Put { key: &key, value: &value };
                    assert!(index.update(&[put]).is_err(), "{}: it is refused again", case.name());
                    assert_eq!(index.statistics().live_pages, left, "{}", case.name());
                    refused += 1;
                }
                (Err(error), _) => panic!("{}: {error}", case.name()),
            }
            model.compare_value(&mut *index, &key);
        }
        assert!(refused > 5, "{}: {refused} were refused", case.name());
        assert_eq!(findings(&mut *index), Vec::<String>::new(), "{}", case.name());
        model.compare_all(&mut *index);
    }
}

#[test]
fn keys_leave_room_for_the_place_of_a_long_value() {
    for case in wanted().filter(|case| matches!(case.stand, Stand::Ram)) {
        let mut storage = case.storage(1 << 20);
        let mut index = case.index(&mut storage, false);
        let put = |index: &mut dyn Index, bytes: usize| {
            index.update(&[Update::Put { key: &vec![b'k'; bytes], value: b"" }])
        };
        let Err(Error::KeyTooLong { found, limit }) = put(&mut *index, 40_000) else {
            panic!("{}: a key longer than a node is refused", case.name());
        };
        assert_eq!(found, 40_000);
        assert!(limit > 8, "{limit}");
        assert!(matches!(put(&mut *index, limit as usize + 1), Err(Error::KeyTooLong { .. })));
        // Whatever the value: the edge of what stands in the node is eight bytes further.
        let key = vec![b'k'; limit as usize];
        for bytes in [0, 7, 8, 9, 5000, 9, 8, 5000, 0] {
            let value = vec![7; bytes];
            index.update(&[Update::Put { key: &key, value: &value }]).unwrap();
            let mut model = Model::default();
            model.entries.insert(key.clone(), value);
            model.compare_all(&mut *index);
            assert_eq!(findings(&mut *index), Vec::<String>::new(), "{}", case.name());
        }
    }
}

/// Long values go through the journal, whatever they are to a node; an index that is not closed
/// finds them there.
#[test]
fn long_values_come_back_from_the_journal_and_the_last_checkpoint() {
    let entry = flashtree_trees::find("b-plus").unwrap();
    for (page_bytes, node, seed) in [(512, "512", 1), (2048, "2048", 2), (2048, "512", 3)] {
        let settings = Settings::parse(entry.name, entry.parameters, [("node", node)]).unwrap();
        let mut options = Options::new(EntryShape::VARIABLE, 0, settings);
        options.durability = Some(Durability::Every);
        options.journal_bytes = Some(4 << 20);
        let mut disk = RamDisk::new(
            SectorGeometry::new(page_bytes, (48 << 20) / u64::from(page_bytes)).unwrap(),
        );
        let shape = MediumShape::Sectors(disk.geometry());
        options.memory_bytes = entry.least_memory(&options, shape).unwrap();
        let mut random = ChaCha8Rng::seed_from_u64(seed);
        let mut model = Model::default();
        drop((entry.create)(Medium::Sectors(Box::new(&mut disk)), &options).unwrap());
        let mut replayed = 0;
        for _ in 0..6 {
            let mut index = (entry.open)(Medium::Sectors(Box::new(&mut disk)), &options).unwrap();
            assert_eq!(findings(&mut *index), Vec::<String>::new(), "nodes of {node}");
            model.compare_all(&mut *index);
            replayed += index.recovery().replayed;
            play(&mut *index, &mut model, &mut random, MEBIBYTE);
        }
        assert!(replayed > 10, "nodes of {node}: {replayed} updates were replayed");
    }
}

/// Under durability every a long value is written once where that costs a checkpoint and no more:
/// while nothing else waits to be written, and no name would keep what each checkpoint changed.
#[test]
fn a_value_that_a_checkpoint_is_cheaper_for_is_written_once() {
    for (name, setting) in [("b-plus", ("waiting", "0.5")), ("la-tree", ("node", "512"))] {
        let entry = flashtree_trees::find(name).unwrap();
        let settings = Settings::parse(entry.name, entry.parameters, [setting]).unwrap();
        let mut options = Options::new(EntryShape::VARIABLE, 256 << 10, settings);
        options.durability = Some(Durability::Every);
        options.journal_bytes = Some(1 << 20);
        let mut disk = RamDisk::new(SectorGeometry::new(512, 40_000).unwrap());
        drop((entry.create)(Medium::Sectors(Box::new(&mut disk)), &options).unwrap());
        let mut model = Model::default();
        let long = |byte| vec![byte; 64 * 512];
        let (mut checkpoints, mut journal) = (Vec::new(), Vec::new());
        for (round, value) in [long(0), vec![1; 16 << 10], long(2), vec![3; 8], long(4), long(5)]
            .into_iter()
            .enumerate()
        {
            let mut index = (entry.open)(Medium::Sectors(Box::new(&mut disk)), &options).unwrap();
            model.compare_all(&mut *index);
            assert_eq!(findings(&mut *index), Vec::<String>::new(), "{name}");
            if round == 4 {
                index.update(&[Update::Put { key: b"waits", value: b"long" }]).unwrap();
                model.entries.insert(b"waits".to_vec(), b"long".to_vec());
            }
            if round == 5 {
                index.checkpoint(Some("kept")).unwrap();
            }
            let before = index.recovery();
            index.update(&[Update::Put { key: &[round as u8], value: &value }]).unwrap();
            model.entries.insert(vec![round as u8], value);
            model.compare_all(&mut *index);
            let after = index.recovery();
            checkpoints.push(after.checkpoint > before.checkpoint);
            journal.push(after.journal_bytes > before.journal_bytes);
        }
        let by_checkpoint = [true, false, true, false, false, false];
        assert_eq!(checkpoints, by_checkpoint, "{name}");
        assert_eq!(journal, by_checkpoint.map(|it| !it), "{name}");
    }
}

/// Only what keeps long values makes one; an update that adopts a made-up one is damage, or takes
/// what stands there, but never a panic.
#[test]
fn a_made_up_long_value_is_an_error_when_it_is_read() {
    for case in wanted().filter(|case| matches!(case.stand, Stand::Ram)) {
        let mut storage = case.storage(1 << 20);
        let mut index = case.index(&mut storage, false);
        index.update(&[Update::Put { key: b"long", value: &[7; 20_000] }]).unwrap();
        let value = OverflowValue::from_bytes([3, 0, 0, 0, 0xFF, 0xFF, 0xFF, 0x7F]);
        index.update(&[Update::PutStored { key: b"made up", value }]).unwrap();
        assert!(index.get(b"made up", 0, &mut [0; 100]).is_err(), "{}", case.name());
        assert!(!findings(&mut *index).is_empty(), "{}", case.name());
        assert_eq!(index.get(b"long", 19_990, &mut [0; 100]), Ok(Some(20_000)));
        // Where a delete waits, it does not yet find what is wrong.
        let deleted = index.update(&[Update::Delete { key: b"made up" }]);
        assert!(deleted.is_err() || is_lazy(&case), "{}", case.name());
    }
}

/// Pages of a long value under good checksums, damaged: an error or a finding, never a panic.
#[test]
fn damaged_pages_of_a_long_value_with_good_checksums_never_panic() {
    let mut found = 0;
    let mut damaged = 0;
    for case in wanted().filter(|case| matches!(case.stand, Stand::Ram)) {
        let mut storage = case.storage(256 << 10);
        let mut index = case.index(&mut storage, false);
        for key in 0..4_u8 {
            let value = vec![key; 30_000];
            index.update(&[Update::Put { key: &[key], value: &value }]).unwrap();
        }
        index.close().unwrap();
        drop(index);
        let Storage::Ram(disk) = &mut storage else { panic!("it stands on a disk in memory") };
        let whole = disk.bytes_mut().to_vec();
        let mut random = ChaCha8Rng::seed_from_u64(case.seed);
        for _ in 0..100 {
            let Storage::Ram(disk) = &mut storage else { panic!("it stands on a disk in memory") };
            spoil(&mut random, &case, disk.bytes_mut());
            let run = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
                let mut index = case.index(&mut storage, true);
                let findings = findings(&mut *index);
                for key in 0..4_u8 {
                    let mut into = [0xEE; 30_000];
                    let got = index.get(&[key], 0, &mut into);
                    // What is read without an error was written, or changed where it stands.
                    let wrong = into.iter().filter(|byte| **byte != key).count();
                    assert!(got.is_err() || got == Ok(None) || wrong <= 8, "{wrong} wrong bytes");
                    let _ = index.update(&[Update::Put { key: &[key], value: b"short" }]);
                }
                findings.len()
            }));
            found += usize::from(run.unwrap_or_else(|_| panic!("{} panics", case.name())) > 0);
            damaged += 1;
            let Storage::Ram(disk) = &mut storage else { panic!("it stands on a disk in memory") };
            disk.bytes_mut().copy_from_slice(&whole);
        }
    }
    assert!(found * 3 > damaged, "{found} of {damaged} damages were found");
}

/// Changes the head of a page and gives it a good checksum.
fn spoil(random: &mut ChaCha8Rng, case: &Case, disk: &mut [u8]) {
    let node = case.parameters.iter().find(|(name, _)| *name == "node");
    let node_bytes: usize =
        node.map_or(case.page_bytes as usize, |(_, bytes)| bytes.parse().unwrap());
    let sector = case.page_bytes as usize;
    let base = (2 * sector).next_multiple_of(node_bytes);
    let page = random.random_range(0..90_000 / node_bytes);
    let page_bytes = &mut disk[base + page * node_bytes..][..node_bytes];
    let byte = random.random_range(4..28);
    page_bytes[byte] = random.random_range(0..70);
    let checksum = device::checksum(&[&(page as u64).to_le_bytes(), &page_bytes[4..]]);
    page_bytes[..4].copy_from_slice(&checksum.to_le_bytes());
}
