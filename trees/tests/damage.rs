//! Damaged contents under good checksums: an error or a finding, never a panic.
//!
//! A page whose checksum is wrong is refused as soon as it is read. These tests go further: they
//! damage pages and superblocks and give them good checksums again, as a fault in a program would.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test fails by panicking"
)]

use contract::tree::{Case, MemoryLevel, Stand, Storage, cases, findings};
use contract::{sample, share};
use flashtree_trees::TREES;
use index::MediumShape;
use index::{Error, Index, KeyRange, Update};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

const PAGE_BYTES: usize = 512;

/// Where the root record begins in a superblock without a label.
const ROOT: usize = 145;

/// Sectors before logical page 0.
const BASE: usize = 2;

fn wanted() -> impl Iterator<Item = Case> {
    TREES.iter().filter(|entry| entry.sectors).flat_map(|entry| cases(entry)).filter(|case| {
        matches!(case.stand, Stand::Ram)
            && case.page_bytes as usize == PAGE_BYTES
            && case.parameters.is_empty()
            && case.memory == MemoryLevel::Sixteenfold
    })
}

/// True if most of what it holds stands in runs behind the page file.
fn has_runs(case: &Case) -> bool {
    matches!(case.entry.name, "fd-tree" | "lsm")
}

/// True if a table says which sectors hold a node.
fn has_table(case: &Case) -> bool {
    matches!(case.entry.name, "bftl" | "flashdb")
}

/// True if updates wait in pages of their own, which are read when it is opened.
fn has_pool(case: &Case) -> bool {
    case.entry.name == "lazy-update"
}

fn key(case: &Case, number: u32) -> Vec<u8> {
    let scattered = u64::from(number).wrapping_mul(0x9E37_79B9_7F4A_7C15).to_be_bytes();
    match case.shape.shape.key {
        index::Width::Fixed(bytes) => scattered[..bytes as usize].to_vec(),
        index::Width::Variable => [&b"prefix/"[..number as usize % 8], &scattered[..4]].concat(),
    }
}

fn value(case: &Case) -> &'static [u8] {
    match case.shape.shape.value {
        index::Width::Fixed(bytes) => &b"12345678"[..bytes as usize],
        index::Width::Variable => b"a value",
    }
}

/// A closed index of 2000 entries, with some pages on the free list.
fn closed_index(case: &Case) -> Storage {
    let mut storage = case.storage(256 << 10);
    let mut index = case.index(&mut storage, false);
    for number in 0..3000 {
        let key = key(case, number);
        index.update(&[Update::Put { key: &key, value: value(case) }]).unwrap();
    }
    for number in 2000..3000 {
        index.update(&[Update::Delete { key: &key(case, number) }]).unwrap();
    }
    index.close().unwrap();
    drop(index);
    storage
}

fn bytes(storage: &mut Storage) -> &mut [u8] {
    let Storage::Ram(disk) = storage else { panic!("it stands on a disk in memory") };
    disk.bytes_mut()
}

/// Gives a page or a superblock a good checksum.
fn seal(address: u64, sector: &mut [u8]) {
    let checksum = device::checksum(&[&address.to_le_bytes(), &sector[4..]]);
    sector[..4].copy_from_slice(&checksum.to_le_bytes());
}

/// Does a little of everything; errors are fine.
fn use_everything(case: &Case, index: &mut dyn Index) {
    for number in (0..2500).step_by(7) {
        let key = key(case, number);
        let _ = index.get(&key, 0, &mut [0; 8]);
        let _ = match number % 3 {
            0 => index.update(&[Update::Delete { key: &key }]),
            1 => index.update(&[Update::Put { key: &key, value: value(case) }]),
            _ => Ok(()),
        };
    }
    for range in [KeyRange::ALL, KeyRange::ALL.reversed()] {
        if let Ok(mut cursor) = index.range(range) {
            while let Ok(Some(_)) = cursor.next() {}
        }
    }
}

#[test]
fn damaged_pages_with_good_checksums_never_panic() {
    let mut found = 0;
    let mut damaged = 0;
    for case in wanted() {
        let mut storage = closed_index(&case);
        let whole = bytes(&mut storage).to_vec();
        let mut random = ChaCha8Rng::seed_from_u64(case.seed);
        let reads_to_open = matches!(case.entry.name, "flat-tree" | "la-tree");
        for _ in 0..250 / share(5) {
            let page = random.random_range(0..60);
            let start = (BASE + page) * PAGE_BYTES;
            let sector = &mut bytes(&mut storage)[start..start + PAGE_BYTES];
            for _ in 0..random.random_range(1..4) {
                // The header and the first entries are what steers a tree.
                let end = if random.random_ratio(2, 3) { 40 } else { PAGE_BYTES };
                let byte = random.random_range(4..end);
                sector[byte] = random.random_range(0..70);
            }
            seal(page as u64, sector);
            let run = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
                let mut index = match case.try_index_over(&mut storage, true, |disk| disk) {
                    // What waits in buffers is read when the index is opened, and a directory.
                    Err(Error::Store(damage)) if reads_to_open && damage.is_damage() => return 1,
                    // So is a root record that tells of runs, or has a table of nodes, name of the
                    // tree and all.
                    Err(Error::Store(_))
                        if reads_to_open
                            || has_runs(&case)
                            || has_table(&case)
                            || has_pool(&case) =>
                    {
                        return 1;
                    }
                    opened => opened.unwrap(),
                };
                let findings = findings(&mut *index);
                use_everything(&case, &mut *index);
                findings.len()
            }));
            let findings = run.unwrap_or_else(|_| panic!("{}: page {page} panics", case.name()));
            found += usize::from(findings > 0);
            damaged += 1;
            bytes(&mut storage).copy_from_slice(&whole);
        }
    }
    // A changed value is no damage that a tree can see; most other changes are.
    assert!(found * 3 > damaged, "{found} of {damaged} damages were found");
}

/// True if damage to `page` is found.
fn is_missed(case: &Case, storage: &mut Storage, page: usize) -> bool {
    let byte = (BASE + page) * PAGE_BYTES;
    bytes(storage)[byte] ^= 1;
    let is_missed = !findings(&mut *case.index(storage, true)).is_empty();
    bytes(storage)[byte] ^= 1;
    is_missed
}

#[test]
fn a_child_pointer_that_leads_elsewhere_is_found() {
    // What looks like an inner node may be a page of a run, or one of a head that was merged; and
    // nodes that are lists of sectors have a test of their own.
    let has_pages = |case: &Case| !has_runs(case) && !has_table(case);
    for case in wanted().filter(has_pages) {
        let mut storage = closed_index(&case);
        let whole = bytes(&mut storage).to_vec();
        let mut inner = (0..200).filter(|page| whole[(BASE + page) * PAGE_BYTES + 6] == 1);
        // Pages that were given back look as they did.
        let inner = inner.find(|page| is_missed(&case, &mut storage, *page));
        let inner = inner.expect("there is an inner node");
        let (first, width) = match case.shape.shape.key {
            index::Width::Fixed(bytes) => (8 + bytes as usize, bytes as usize + 4),
            index::Width::Variable => continue,
        };
        for target in sample(7, 0..150u32) {
            let start = (BASE + inner) * PAGE_BYTES;
            let sector = &mut bytes(&mut storage)[start..start + PAGE_BYTES];
            let at = first + width * (target as usize % 3);
            if sector[at..at + 4] == target.to_le_bytes() {
                continue;
            }
            sector[at..at + 4].copy_from_slice(&target.to_le_bytes());
            seal(inner as u64, sector);
            let mut index = case.index(&mut storage, true);
            assert!(!findings(&mut *index).is_empty(), "{}: child {target}", case.name());
            use_everything(&case, &mut *index);
            drop(index);
            bytes(&mut storage).copy_from_slice(&whole);
        }
    }
}

#[test]
fn damaged_superblocks_with_good_checksums_are_refused() {
    for case in wanted() {
        let mut storage = closed_index(&case);
        let whole = bytes(&mut storage).to_vec();
        let name = case.entry.name.len();
        let open = |storage: &mut Storage| {
            let Storage::Ram(disk) = storage else { panic!("it stands on a disk in memory") };
            let shape = MediumShape::Sectors(device::Sectors::geometry(disk));
            let options = case.options(shape);
            (case.entry.open)(device::Medium::Sectors(Box::new(disk)), &options).err()
        };
        assert_eq!(open(&mut storage), None);
        // Bytes in a page, sectors of the disk, pages that there is room for, sectors of the
        // journal, high water, bytes of the root record, the tree's name, its root page and its
        // height.
        for at in [25, 33, 45, 49, 102, 125, ROOT + 2, ROOT + 5 + name + 2, ROOT + 5 + name + 4] {
            for slot in 0..BASE {
                let sector = &mut bytes(&mut storage)[slot * PAGE_BYTES..(slot + 1) * PAGE_BYTES];
                sector[at] ^= 0x7F;
                if at == ROOT + 5 + name + 4 {
                    sector[at] = 0;
                }
                seal(u64::MAX, sector);
            }
            assert!(open(&mut storage).is_some(), "{}: byte {at} of the superblocks", case.name());
            bytes(&mut storage).copy_from_slice(&whole);
        }
    }
}
