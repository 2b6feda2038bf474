//! The heap that the trees take which copy their paths, on raw flash. Every allocation is counted,
//! except those of the chip below.

use crate::heap::uncounted;
use allocation_counter::measure;
use device::{Geometry, NandCosts};
use flashtree_trees::find;
use index::parameters::Settings;
use index::{Durability, EntryShape, Index, KeyRange, Update};
use index::{MediumShape, Options, TreeDescriptor};
use sim::SimulatedNand;

/// Some work of every kind; `value` bytes a value.
fn work(index: &mut dyn Index, records: u32, (key_bytes, value): (usize, usize)) {
    let mut key = vec![0; key_bytes];
    let value = vec![7; value];
    let mut set = |number: u32| {
        key[..4].copy_from_slice(&number.wrapping_mul(0x9E37_79B9).to_be_bytes());
        key.clone()
    };
    for number in 0..records {
        let key = uncounted(|| set(number));
        index.update(&[Update::Put { key: &key, value: &value }]).unwrap();
        let mut into = [0; 8];
        assert!(index.get(&key, 0, &mut into).unwrap().is_some());
        uncounted(|| drop(key));
    }
    let mut cursor = index.range(KeyRange::ALL.reversed()).unwrap();
    let mut entries = 0;
    let mut before: Option<Vec<u8>> = None;
    while let Some((key, _)) = cursor.next().unwrap() {
        entries += 1;
        uncounted(|| {
            assert!(
                before.as_deref().is_none_or(|before| before > key),
                "{key:?} after {before:?}"
            );
            let number = u32::from_be_bytes(*key.first_chunk().unwrap());
            let number = number.wrapping_mul(0x144C_BC89);
            assert!(number < records && key[4..].iter().all(|byte| *byte == 0), "{key:?} {number}");
            before = Some(key.to_vec());
        });
    }
    drop(cursor);
    assert_eq!(entries, records);
    index.check(&mut |finding| panic!("{finding}")).unwrap();
    for number in (0..records).step_by(2) {
        let key = uncounted(|| set(number));
        index.update(&[Update::Delete { key: &key }]).unwrap();
        uncounted(|| drop(key));
    }
    index.close().unwrap();
}

/// The most bytes that the tree takes while it is made and used, and while it is opened and used.
fn peaks(
    (entry, options): (&TreeDescriptor, &Options),
    chip: Geometry,
    records: u32,
    entry_bytes: (usize, usize),
) -> [u64; 2] {
    let mut nand = SimulatedNand::new(chip, NandCosts::default());
    [entry.create, entry.open].map(|make| {
        let taken = measure(|| {
            let mut index = make(crate::chip::uncounted_chip(&mut nand), options).unwrap();
            work(&mut *index, records, entry_bytes);
        });
        taken.bytes_max
    })
}

#[test]
fn mu_star_runs_in_16_kib_in_all_with_pages_of_2_kib() {
    const ALL: u64 = 16 << 10;
    let entry = find("mu-star").unwrap();
    let mut most = 0;
    // 128 MiB, as small SPI NAND chips have: 4 KiB of the memory are the table of blocks.
    let chip = Geometry::new(2048, 64, 1024).unwrap().with_spare(64).unwrap();
    for (key, value) in [(4, 4), (8, 8)] {
        for durability in Durability::ALL {
            let settings = Settings::parse(entry.name, entry.parameters, []).unwrap();
            let shape = EntryShape::fixed(key, value);
            let mut options = Options::new(shape, 0, settings);
            options.durability = Some(durability);
            options.journal_bytes = Some(16 << 10);
            let least = entry.least_memory(&options, MediumShape::Nand(chip)).unwrap();
            // What the tree itself and a cursor take, and a checkpoint's record, are not in it.
            options.memory_bytes = least;
            let bytes = (usize::from(key), usize::from(value));
            let peaks = peaks((entry, &options), chip, 12_000, bytes);
            println!("{shape}, {durability}: {peaks:?} bytes, with a budget of {least}");
            assert!(peaks.iter().all(|peak| *peak <= ALL), "{shape}, {durability}: {peaks:?}");
            most = peaks.into_iter().chain([most]).max().unwrap_or(most);
        }
    }
    println!("mu-star took at most {most} bytes");
}

#[test]
fn the_heap_taken_on_raw_flash_never_exceeds_the_budget_and_the_stated_tables() {
    let mut tried = 0;
    for tree in ["b-plus", "mu", "mu-star"] {
        for page_bytes in [2048, 4096] {
            for (spare, factor) in [(0, 1), (64, 2), (0, 16)] {
                for durability in Durability::ALL {
                    let entry = find(tree).unwrap();
                    let chip = Geometry::new(page_bytes, 16, 256).unwrap();
                    let chip = chip.with_spare(spare).unwrap();
                    let settings = Settings::parse(entry.name, entry.parameters, []).unwrap();
                    let shape =
                        if factor == 2 { EntryShape::VARIABLE } else { EntryShape::fixed(8, 4) };
                    let mut options = Options::new(shape, 0, settings);
                    options.durability = Some(durability);
                    let medium = MediumShape::Nand(chip);
                    let least = entry.least_memory(&options, medium).unwrap();
                    options.memory_bytes = least * factor;
                    println!("{tree}, {page_bytes}, {spare}, {factor}, {durability}");
                    let peaks = peaks((entry, &options), chip, 3_000, (8, 4));
                    // Tables: four bytes a block.
                    let limit = options.memory_bytes + 4 * 256 + 4096;
                    let name = format!("{tree}, {page_bytes} B, {durability}, {factor} x least");
                    assert!(peaks.iter().all(|it| *it <= limit), "{name}: {peaks:?} of {limit}");
                    tried += 1;
                }
            }
        }
    }
    assert_eq!(tried, 72);
}
