//! The lazy-adaptive tree alone: small chips, settings, and power cuts.

use crate::raw_flash_cuts::survives_on_raw_flash;
use contract::tree::{Model, figure, findings};
use contract::{RamDisk, sample};
use device::{Cost, Geometry, Linear, Medium, Nand, NandCosts, SectorGeometry};
use index::parameters::Settings;
use index::{Durability, EntryShape, Error, Index, Update};
use index::{MediumShape, Options, TreeDescriptor};
use rand::{Rng, RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use sim::SimulatedNand;

fn entry() -> &'static TreeDescriptor {
    flashtree_trees::find("la-tree").unwrap_or_else(|| panic!("there is no la-tree"))
}

/// A chip with a tree that is made with `given`.
struct Storage {
    chip: SimulatedNand,
    options: Options,
}

impl Storage {
    fn new(chip: Geometry, given: &[(&str, &str)], durability: Durability) -> Self {
        let settings = Settings::parse("la-tree", entry().parameters, given.iter().copied());
        let mut options = Options {
            durability: Some(durability),
            ..Options::new(EntryShape::fixed(4, 4), 0, settings.unwrap())
        };
        let least = entry().least_memory(&options, MediumShape::Nand(chip)).unwrap();
        options.memory_bytes = least * 5 / 4;
        Storage { chip: SimulatedNand::new(chip, NandCosts::default()), options }
    }

    fn index(&mut self, is_new: bool) -> Box<dyn Index + '_> {
        let make = if is_new { entry().create } else { entry().open };
        make(Medium::Nand(Box::new(&mut self.chip)), &self.options).unwrap()
    }
}

/// Random changes and lookups of keys below `keys`, compared with the model.
fn play(
    index: &mut dyn Index,
    model: &mut Model,
    random: &mut ChaCha8Rng,
    (operations, keys, deletes): (u32, u32, u32),
) -> u32 {
    let mut refused = 0;
    for _ in 0..operations {
        let key = random.random_range(0..keys).wrapping_mul(0x9E37_79B9).to_be_bytes().to_vec();
        if random.random_range(0..100) < 30 {
            model.compare_get(index, &key, 0);
            continue;
        }
        let value = random.next_u32().to_be_bytes().to_vec();
        let is_delete = random.random_range(0..100) < deletes;
        let update = match is_delete {
            true => Update::Delete { key: &key },
            false => Update::Put { key: &key, value: &value },
        };
        match index.update(&[update]) {
            Ok(()) if is_delete => drop(model.entries.remove(&key)),
            Ok(()) => drop(model.entries.insert(key, value)),
            Err(Error::Store(store::Error::Full { .. })) if !is_delete => refused += 1,
            Err(error) => panic!("{update:?}: {error}"),
        }
    }
    model.compare_all(index);
    assert_eq!(findings(index), Vec::<String>::new());
    let lean = figure(index, "nodes less than a quarter full at the last check");
    assert_eq!(lean, 0, "of {} nodes", figure(index, "nodes"));
    refused
}

const SETTINGS: [&[(&str, &str)]; 8] = [
    &[],
    &[("k", "1")],
    &[("k", "3")],
    &[("buffer", "none")],
    &[("buffer", "128")],
    &[("buffer", "2048"), ("estimate", "printed")],
    &[("rule", "inclusive"), ("k", "4")],
    &[("fanout", "8"), ("k", "3")],
];

/// Plays on chips of `blocks` blocks in every setting and durability.
fn play_all(blocks: u32, keys: u32, rounds: u32) -> u32 {
    let mut refused = 0;
    let on_chip = |chip| SETTINGS.iter().enumerate().map(move |(place, it)| (chip, place, it));
    let cases = [(512, 16), (512, 0), (2048, 0)].into_iter().flat_map(on_chip);
    for ((page, spare), place, given) in sample(3, cases) {
        let durability = Durability::ALL[(place + spare as usize / 8 + page as usize) % 4];
        let chip = Geometry::new(page, 16, blocks).unwrap().with_spare(spare).unwrap();
        println!("{given:?}, {durability}, {page} + {spare}");
        let mut storage = Storage::new(chip, given, durability);
        let mut random = ChaCha8Rng::seed_from_u64(place as u64);
        let mut model = Model::default();
        for round in 0..rounds {
            let mut index = storage.index(round == 0);
            let deletes = [10, 40, 80][round as usize % 3];
            let work = (4000, keys, deletes);
            refused += play(&mut *index, &mut model, &mut random, work);
            index.close().unwrap();
        }
    }
    refused
}

#[test]
fn every_setting_agrees_with_an_ordered_map_while_the_chip_is_reclaimed() {
    assert_eq!(play_all(200, 2000, 3), 0, "there is room for all");
}

/// Deletes keys of the first two of many leaves, without buffers; tells the figures "nodes filled
/// up by a neighbour" and "nodes merged" when the first leaf had too few and its neighbour enough,
/// and when both had too few.
fn fill_up_and_merge(medium: Medium<'_>, shape: MediumShape, given: &[(&str, &str)]) -> [u64; 4] {
    let settings = Settings::parse("la-tree", entry().parameters, given.iter().copied());
    let mut options = Options::new(EntryShape::fixed(4, 4), 0, settings.unwrap());
    options.memory_bytes = 4 * entry().least_memory(&options, shape).unwrap();
    let mut index = (entry().create)(medium, &options).unwrap();
    let mut model = Model::default();
    for number in 0..400_u32 {
        model.entries.insert(number.to_be_bytes().to_vec(), vec![1; 4]);
    }
    // Ten or eleven entries a leaf, of fifteen that it has room for; four are a quarter.
    index.load(&mut model.cursor(), 67).unwrap();
    let mut figures = |keys: std::ops::Range<u32>, figures: &mut [u64]| {
        for number in keys {
            index.update(&[Update::Delete { key: &number.to_be_bytes() }]).unwrap();
            model.entries.remove(&number.to_be_bytes()[..]);
        }
        figures[0] = figure(&*index, "nodes filled up by a neighbour");
        figures[1] = figure(&*index, "nodes merged");
        model.compare_all(&mut *index);
        assert_eq!(findings(&mut *index), Vec::<String>::new());
    };
    let mut all = [0; 4];
    figures(0..8, &mut all[..2]);
    figures(8..15, &mut all[2..]);
    all
}

#[test]
fn an_underfull_node_borrows_from_its_neighbour_and_is_merged_only_if_that_has_too_little() {
    let chip = Geometry::new(512, 16, 64).unwrap().with_spare(16).unwrap();
    let mut chip = SimulatedNand::new(chip, NandCosts::default());
    let shape = MediumShape::Nand(chip.geometry());
    let on_flash = [("buffer", "none"), ("fanout", "16")];
    let found = fill_up_and_merge(Medium::Nand(Box::new(&mut chip)), shape, &on_flash);
    assert_eq!(found, [1, 0, 1, 1], "on raw flash");

    let disk = SectorGeometry::new(512, 1000).unwrap();
    let (shape, mut disk) = (MediumShape::Sectors(disk), RamDisk::new(disk));
    let in_place = [("buffer", "none"), ("node", "128")];
    let found = fill_up_and_merge(Medium::Sectors(Box::new(&mut disk)), shape, &in_place);
    assert_eq!(found, [1, 0, 1, 1], "in place");
}

/// Deletes of keys side by side leave few entries in nodes with buffers; what is put meanwhile
/// waits in the buffers of all of them.
#[test]
fn nodes_are_split_and_merged_though_their_buffers_hold_entries() {
    let (mut merged, mut split) = (0, 0);
    for (place, (levels, page, spare)) in
        [("1", 512, 16), ("1", 2048, 0), ("2", 512, 0), ("2", 2048, 64)].into_iter().enumerate()
    {
        let given = [("k", levels), ("fanout", "16")];
        let chip = Geometry::new(page, 16, 4_000_000 / page / 16).unwrap();
        let chip = chip.with_spare(spare).unwrap();
        let mut storage = Storage::new(chip, &given, Durability::ALL[place]);
        storage.options.memory_bytes *= 4;
        let mut index = storage.index(true);
        let mut model = Model::default();
        let mut random = ChaCha8Rng::seed_from_u64(place as u64);
        for round in 0..8_u32 {
            for turn in 0..6000_u32 {
                // Most puts of a round hit what its deletes leave.
                let is_delete = round % 2 == 1 && !turn.is_multiple_of(8);
                let number = if is_delete { turn / 2 } else { random.random_range(0..3000) };
                let key = number.to_be_bytes().to_vec();
                if is_delete {
                    index.update(&[Update::Delete { key: &key }]).unwrap();
                    model.entries.remove(&key);
                } else {
                    let value = random.next_u32().to_be_bytes().to_vec();
                    index.update(&[Update::Put { key: &key, value: &value }]).unwrap();
                    model.entries.insert(key, value);
                }
            }
            model.compare_all(&mut *index);
            assert_eq!(findings(&mut *index), Vec::<String>::new());
        }
        merged += figure(&*index, "buffers merged");
        split += figure(&*index, "buffers split");
        println!("{levels} levels, {page} + {spare}: in all {merged} merged, {split} split");
    }
    assert!(merged >= 20 && split >= 10, "{merged} and {split}");
}

/// An opened tree writes nothing before it is changed: ADAPT's emptying at lookups waits for that.
#[test]
fn lookups_empty_buffers_but_in_a_tree_that_was_not_changed_since_it_was_opened() {
    let chip = Geometry::new(512, 16, 800).unwrap().with_spare(16).unwrap();
    let mut storage = Storage::new(chip, &[], Durability::None);
    // Without costs there is nothing to save.
    let fixed = |ns| Cost { time: Linear::fixed(ns), energy: None };
    let costs = NandCosts { read: fixed(25_000), program: fixed(200_000), erase: fixed(0) };
    storage.chip = SimulatedNand::new(chip, costs);
    let mut model = Model::default();
    let mut random = ChaCha8Rng::seed_from_u64(1);
    let mut index = storage.index(true);
    play(&mut *index, &mut model, &mut random, (20_000, 20_000, 20));
    index.close().unwrap();
    drop(index);

    let mut index = storage.index(false);
    let look_up_all = |index: &mut dyn Index, model: &Model| {
        for key in (0..9).flat_map(|_| model.entries.keys()) {
            model.compare_get(index, key, 0);
        }
        ["leaf", "inner"]
            .map(|part| figure(index, &format!("emptied for lookups {part}")))
            .iter()
            .sum()
    };
    let before: u64 = look_up_all(&mut *index, &model);
    assert!(figure(&*index, "searched leaf") > 1000, "buffers were searched");
    let key = [7; 4];
    index.update(&[Update::Put { key: &key, value: &key }]).unwrap();
    model.entries.insert(key.to_vec(), key.to_vec());
    let after = look_up_all(&mut *index, &model);
    assert!(before == 0 && after > 0, "{before} emptied before a change, {after} after it");
}

/// Where all entries have room in memory no scan costs the chip anything, yet a lookup would pass
/// tens of thousands of them.
#[test]
fn much_memory_does_not_let_lookups_search_ever_larger_buffers() {
    let chip = Geometry::new(2048, 64, 512).unwrap().with_spare(64).unwrap();
    let mut storage = Storage::new(chip, &[], Durability::None);
    storage.options.memory_bytes = 16 << 20;
    let fixed = |ns| Cost { time: Linear::fixed(ns), energy: None };
    let costs = NandCosts { read: fixed(60_000), program: fixed(250_000), erase: fixed(0) };
    storage.chip = SimulatedNand::new(chip, costs);
    let mut index = storage.index(true);
    let lookups = 60_000;
    for number in 0..lookups {
        let key = (number as u32).wrapping_mul(0x9E37_79B9).to_be_bytes();
        index.update(&[Update::Put { key: &key, value: &key }]).unwrap();
        index.get(&key, 0, &mut [0; 4]).unwrap();
    }
    let both = |name: &str| -> u64 {
        ["inner", "leaf"].map(|part| figure(&*index, &format!("{name} {part}"))).iter().sum()
    };
    assert_eq!(both("fragments read"), 0, "all buffers are in memory");
    let passed = both("entries passed in memory") / lookups;
    assert!(passed < 2000, "a lookup passed {passed} entries");
}

/// Each life has another memory, or another kind of buffers; half of them end without closing.
#[test]
fn whatever_memory_a_tree_had_it_opens_with_the_least() {
    let mut in_parts = 0;
    for (page, spare) in [(512, 16), (512, 0), (4096, 0)] {
        let chip = Geometry::new(page, 16, 3_276_800 / page).unwrap().with_spare(spare).unwrap();
        let mut storage = Storage::new(chip, &[], Durability::Every);
        let shape = MediumShape::Nand(chip);
        let least = entry().least_memory(&storage.options, shape).unwrap();
        let mut random = ChaCha8Rng::seed_from_u64(u64::from(page));
        let mut model = Model::default();
        for (round, times) in [16, 1, 1, 4, 2, 1, 16, 16, 1, 8, 1].into_iter().enumerate() {
            storage.options.memory_bytes = least * times;
            let given: &[_] = if round == 7 { &[("buffer", "none")] } else { &[] };
            storage.options.settings =
                Settings::parse("la-tree", entry().parameters, given.iter().copied()).unwrap();
            let mut index = storage.index(round == 0);
            if round > 0 {
                model.compare_all(&mut *index);
                assert_eq!(findings(&mut *index), Vec::<String>::new(), "{times} times");
            }
            assert_eq!(play(&mut *index, &mut model, &mut random, (2500, 2500, 30)), 0);
            index.metrics(&mut |name, number| {
                in_parts += number * u64::from(name == "buffers emptied in parts");
            });
            if round % 2 == 0 {
                index.close().unwrap();
            }
        }
    }
    assert!(in_parts > 0, "no buffer was too large for the memory");
}

/// What much memory held back comes to flash when it is replayed with little: the present half may
/// get full, and no checkpoint can be made before the replay is over.
#[test]
fn a_long_journal_is_replayed_with_the_least_memory_while_a_half_gets_full() {
    let (mut replayed, mut reclaimed, mut refused) = (0, 0, 0);
    for (page, spare, blocks, keys) in [(512, 16, 44, 2000), (2048, 0, 40, 12_000)] {
        let chip = Geometry::new(page, 16, blocks).unwrap().with_spare(spare).unwrap();
        for seed in 0..3 {
            let mut storage = Storage::new(chip, &[], Durability::Batch);
            storage.options.journal_bytes = Some(u64::from(page) * 128);
            let shape = MediumShape::Nand(chip);
            let least = entry().least_memory(&storage.options, shape).unwrap();
            let mut random = ChaCha8Rng::seed_from_u64(seed);
            let mut model = Model::default();
            for life in 0..8 {
                storage.options.memory_bytes = 16 * least;
                let mut index = storage.index(life == 0);
                let operations = if life == 0 { 6000 } else { random.random_range(500..5000) };
                refused += play(&mut *index, &mut model, &mut random, (operations, keys, 5));
                index.sync().unwrap();
                drop(index);
                storage.options.memory_bytes = least;
                let mut index = storage.index(false);
                model.compare_all(&mut *index);
                replayed += index.recovery().replayed;
                index.metrics(&mut |name, number| {
                    reclaimed += number * u64::from(name == index::GENERATIONS_RECLAIMED);
                });
            }
        }
    }
    println!("{reclaimed} generations reclaimed in {replayed} replayed updates, {refused} refused");
    assert!(reclaimed > 0, "no replay was long enough");
}

#[test]
fn a_full_chip_refuses_puts_and_keeps_what_it_has() {
    assert!(play_all(64, 40_000, 7) > 0, "it never was full");
}

/// The smallest chip on which a tree of `shape` can be made.
fn smallest(page: u32, spare: u32, shape: EntryShape, durability: Durability) -> Storage {
    let mut blocks = 8;
    loop {
        let chip = Geometry::new(page, 16, blocks).unwrap().with_spare(spare).unwrap();
        let mut storage = Storage::new(chip, &[], durability);
        storage.options.shape = shape;
        let least = entry().least_memory(&storage.options, MediumShape::Nand(chip)).unwrap();
        storage.options.memory_bytes = least;
        let make = entry().create;
        let made = make(Medium::Nand(Box::new(&mut storage.chip)), &storage.options).map(drop);
        match made {
            Ok(()) => return storage,
            Err(Error::Store(store::Error::Device(device::Error::TooFewBlocks { .. }))) => {}
            Err(error) => panic!("{page} + {spare}, {blocks} blocks: {error}"),
        }
        blocks += 1;
    }
}

#[test]
fn the_smallest_chip_that_is_taken_can_be_worked_with() {
    for (place, durability) in Durability::ALL.into_iter().enumerate() {
        for (page, spare) in [(512, 16), (512, 0), (2048, 64), (4096, 0)] {
            let mut storage = smallest(page, spare, EntryShape::fixed(4, 4), durability);
            let blocks = storage.chip.geometry().blocks();
            println!("{page} + {spare}, {durability}: {blocks} blocks");
            let mut random = ChaCha8Rng::seed_from_u64(place as u64);
            let mut model = Model::default();
            for round in 0..4 {
                let mut index = storage.index(round == 0);
                play(&mut *index, &mut model, &mut random, (1500, 200_000, [10, 50][round % 2]));
                assert!(model.entries.len() >= 8, "{} entries", model.entries.len());
                index.close().unwrap();
            }
            // Entries of the greatest length, each put and deleted many times.
            let mut storage = smallest(page, spare, EntryShape::VARIABLE, durability);
            let blocks = storage.chip.geometry().blocks();
            println!("{page} + {spare}, {durability}, variable: {blocks} blocks");
            let mut index = storage.index(true);
            for turn in 0..400_u32 {
                let key = [(turn % 6) as u8; 4];
                let value = vec![turn as u8; if page == 512 { 60 } else { 200 }];
                index.update(&[Update::Put { key: &key, value: &value }]).unwrap();
                let mut into = [0; 1];
                assert_eq!(index.get(&key, 0, &mut into).unwrap(), Some(value.len() as u32));
                if turn % 5 == 0 {
                    index.update(&[Update::Delete { key: &key }]).unwrap();
                }
            }
            assert_eq!(findings(&mut *index), Vec::<String>::new());
        }
    }
}

#[test]
fn blocks_that_are_bad_or_refuse_programs_and_erases_lose_nothing() {
    let mut refused = 0;
    for (place, durability) in Durability::ALL.into_iter().enumerate() {
        let chip = Geometry::new(512, 16, 240).unwrap().with_spare(16).unwrap();
        let mut storage = Storage::new(chip, &[], durability);
        storage.chip.arm(sim::FaultPlan {
            refused_program: sim::Failure::with_rate(0.002),
            refused_erase: sim::Failure::with_rate(0.01),
            random_bad_blocks: 6,
            ..sim::FaultPlan::seeded(place as u64)
        });
        let mut random = ChaCha8Rng::seed_from_u64(place as u64);
        let mut model = Model::default();
        for round in 0..3 {
            let mut index = storage.index(round == 0);
            play(&mut *index, &mut model, &mut random, (3000, 1500, 30));
            index.close().unwrap();
        }
        refused += storage.chip.faults().total();
    }
    assert!(refused > 20, "{refused} faults");
}

#[test]
fn la_tree_keeps_what_it_acknowledged_when_the_power_is_cut() {
    let all = survives_on_raw_flash("la-tree", 72, 3_000);
    assert!(all.reclamations > 0, "{all}");
}
