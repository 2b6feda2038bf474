//! How fast the trees on raw flash are: a million updates each, pages of 4 KiB, one core. They
//! report; the promise `million-updates-on-raw-flash` has the bound.

use device::{Geometry, Medium, NandCosts};
use flashtree_trees::find;
use index::parameters::Settings;
use index::{Durability, EntryShape, Update};
use index::{MediumShape, Options};
use sim::SimulatedNand;

/// Wall seconds for `updates` updates of `records` records under `durability`.
fn seconds(tree: &str, (records, updates): (u32, u32), memory: u64, durability: Durability) -> f64 {
    let entry = find(tree).unwrap();
    let chip = Geometry::new(4096, 64, 1024).unwrap().with_spare(128).unwrap();
    let settings = Settings::parse(entry.name, entry.parameters, []).unwrap();
    let mut options = Options::new(EntryShape::fixed(4, 4), memory, settings);
    options.durability = Some(durability);
    let least = entry.least_memory(&options, MediumShape::Nand(chip)).unwrap();
    options.memory_bytes = memory.max(least);
    let mut nand = SimulatedNand::new(chip, NandCosts::default());
    let mut index = (entry.create)(Medium::Nand(Box::new(&mut nand)), &options).unwrap();
    let begin = std::time::Instant::now();
    for number in 0..updates {
        let key = (number % records).wrapping_mul(0x9E37_79B9).to_be_bytes();
        let value = number.to_be_bytes();
        index.update(&[Update::Put { key: &key, value: &value }]).unwrap();
    }
    let seconds = begin.elapsed().as_secs_f64();
    println!(
        "{tree}, {durability}, {records} records, {updates} updates: {seconds:.2} s, {:?}",
        index.statistics()
    );
    seconds
}

/// What an issue promises of every tree on raw flash, with its usual durability.
#[test]
#[ignore = "it measures time: --release --test path_copying_speed -- --ignored"]
fn a_million_updates_of_each_tree_on_raw_flash() {
    let mut slowest = (0.0, "");
    for entry in flashtree_trees::TREES.iter().filter(|entry| entry.nand) {
        // An archive has room for what was put once.
        let took = seconds(entry.name, (1_000_000, 1_000_000), 1 << 18, Durability::default());
        slowest = if took > slowest.0 { (took, entry.name) } else { slowest };
    }
    println!("the slowest of all, {}, took {:.2} s", slowest.1, slowest.0);
}

/// What a lookup takes for each entry of a buffer in memory, that ADAPT reckons with.
#[test]
#[ignore = "it measures time: --release --test path_copying_speed -- --ignored"]
fn a_lookup_in_a_buffer_in_memory_by_its_entries() {
    let entry = find("la-tree").unwrap();
    let chip = Geometry::new(4096, 64, 1024).unwrap().with_spare(128).unwrap();
    let mut before = (0, 0.0);
    for entries in [0, 1000, 4000, 16_000, 64_000] {
        let settings = Settings::parse("la-tree", entry.parameters, [("buffer", "1MiB")]).unwrap();
        let options = Options::new(EntryShape::fixed(4, 4), 64 << 20, settings);
        let mut nand = SimulatedNand::new(chip, NandCosts::default());
        let mut index = (entry.create)(Medium::Nand(Box::new(&mut nand)), &options).unwrap();
        for number in 0..entries {
            let key = u32::wrapping_mul(number, 0x9E37_79B9).to_be_bytes();
            index.update(&[Update::Put { key: &key, value: &key }]).unwrap();
        }
        let begin = std::time::Instant::now();
        let lookups = 2000_u32;
        for number in 0..lookups {
            let key = number.wrapping_mul(0x85EB_CA6B).to_be_bytes();
            index.get(&key, 0, &mut [0; 4]).unwrap();
        }
        let nanos = begin.elapsed().as_secs_f64() * 1e9 / f64::from(lookups);
        let more = (nanos - before.1) / f64::from((entries - before.0).max(1));
        println!("{entries} entries: {nanos:.0} ns a lookup, {more:.2} ns an entry more");
        before = (entries, nanos);
    }
}
