//! Random histories on every kind of device, compared with an ordered map in memory.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test fails by panicking"
)]

mod storage;

use std::ops::Bound;
use std::path::PathBuf;

use contract::sample;
use flashtree::{
    Batch, Database, Direction, Durability, Error, Geometry, KeyRange, Medium, OpenOptions, Options,
};
use index::TreeDescriptor;
use index::parameters::Kind;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use storage::{Model, SharedDisk, compare};

/// What a database stands on.
enum Place {
    File { folder: tempfile::TempDir, chip: Option<&'static str> },
    Disk(SharedDisk),
}

impl Place {
    /// In a plain file, or on an imitated chip with this translation layer, "" for none.
    fn file(chip: Option<&'static str>) -> Self {
        Place::File { folder: tempfile::tempdir().unwrap(), chip }
    }

    fn path(folder: &tempfile::TempDir) -> PathBuf {
        folder.path().join("history.db")
    }

    fn create(&self, options: &Options) -> Database<'static> {
        match self {
            Place::File { folder, chip } => {
                let on_chip = || options.clone().chip(Geometry::new(2048, 32, 128).unwrap());
                let options = match *chip {
                    Some("") => on_chip(),
                    Some(layer) => on_chip().ftl(layer),
                    None => options.clone(),
                };
                Database::create(Place::path(folder), &options).unwrap()
            }
            Place::Disk(disk) => Database::create_on(disk.medium(), options).unwrap(),
        }
    }

    fn open(&self) -> Database<'static> {
        match self {
            Place::File { folder, .. } => {
                Database::open(Place::path(folder), &OpenOptions::new()).unwrap()
            }
            Place::Disk(disk) => Database::open_on(disk.medium(), &OpenOptions::new()).unwrap(),
        }
    }
}

/// A history under way.
struct History {
    random: ChaCha8Rng,
    model: Model,
    kept: Vec<Kept>,
    durable: bool,
}

/// A checkpoint with a name.
#[derive(Clone)]
struct Kept {
    name: String,
    model: Model,
}

impl History {
    fn key(&mut self) -> Vec<u8> {
        let number = self.random.random_range(0..400_u32);
        [&b"shared/prefix/"[..number as usize % 15], &number.to_be_bytes()].concat()
    }

    fn value(&mut self) -> Vec<u8> {
        let length = match self.random.random_range(0..40) {
            0 => self.random.random_range(2000..20_000),
            1..10 => 0,
            _ => self.random.random_range(0..60),
        };
        (0..length).map(|_| self.random.random()).collect()
    }

    fn step(&mut self, database: &mut Database<'_>) {
        match self.random.random_range(0..100) {
            0..50 => {
                let (key, value) = (self.key(), self.value());
                database.put(&key, &value).unwrap();
                self.model.insert(key, value);
            }
            50..70 => {
                let key = self.key();
                database.delete(&key).unwrap();
                self.model.remove(&key);
            }
            70..80 => self.batch(database),
            80..90 => self.get(database),
            90..97 => self.range(database),
            97 if self.durable => self.checkpoint(database),
            98 if self.durable => database.sync().unwrap(),
            _ => self.count(database),
        }
    }

    fn batch(&mut self, database: &mut Database<'_>) {
        let mut batch = Batch::new();
        for _ in 0..self.random.random_range(0..10) {
            let key = self.key();
            if self.random.random_bool(0.7) {
                let value = self.value();
                batch.put(&key, &value);
                self.model.insert(key, value);
            } else {
                batch.delete(&key);
                self.model.remove(&key);
            }
        }
        database.write_batch(&batch).unwrap();
    }

    fn get(&mut self, database: &mut Database<'_>) {
        let key = self.key();
        let expected = self.model.get(&key);
        assert_eq!(database.get(&key).unwrap().as_ref(), expected);
        assert_eq!(database.contains(&key).unwrap(), expected.is_some());
        let offset = self.random.random_range(0..100);
        let mut piece = [0xEE; 50];
        let length = database.get_into(&key, offset, &mut piece).unwrap();
        assert_eq!(length, expected.map(|value| value.len() as u32));
        if let Some(wanted) = expected.and_then(|value| value.get(offset as usize..)) {
            let wanted = &wanted[..wanted.len().min(50)];
            assert_eq!(&piece[..wanted.len()], wanted);
        }
    }

    fn range(&mut self, database: &mut Database<'_>) {
        let (one, two) = (self.key(), self.key());
        let (low, high) = (one.clone().min(two.clone()), one.max(two));
        let bound = |key: &[u8], kind: u32| match kind {
            0 => Bound::Unbounded,
            1 => Bound::Excluded(key.to_vec()),
            _ => Bound::Included(key.to_vec()),
        };
        let from = bound(&low, self.random.random_range(0..3));
        let to = bound(&high, self.random.random_range(0..3));
        if low == high && matches!((&from, &to), (Bound::Excluded(_), Bound::Excluded(_))) {
            return;
        }
        let expected: Vec<_> = self.model.range((from.clone(), to.clone())).collect();
        let ends = (from.as_ref().map(Vec::as_slice), to.as_ref().map(Vec::as_slice));
        for direction in [Direction::Ascending, Direction::Descending] {
            let range = KeyRange { from: ends.0, to: ends.1, direction };
            let found = database.scan(range).unwrap().into_iter().map(Result::unwrap);
            let mut found: Vec<_> = found.collect();
            if direction == Direction::Descending {
                found.reverse();
            }
            assert!(found.iter().map(|(key, value)| (key, value)).eq(expected.iter().copied()));
        }
        let prefix = &low[..low.len().min(7)];
        let expected = self.model.keys().filter(|key| key.starts_with(prefix)).count();
        assert_eq!(database.prefix(prefix).unwrap().into_iter().count(), expected);
    }

    fn count(&mut self, database: &mut Database<'_>) {
        assert_eq!(database.count().unwrap(), self.model.len() as u64);
        let pair = |(key, value): (&Vec<u8>, &Vec<u8>)| (key.clone(), value.clone());
        assert_eq!(database.first().unwrap(), self.model.first_key_value().map(pair));
        assert_eq!(database.last().unwrap(), self.model.last_key_value().map(pair));
    }

    /// Makes a named checkpoint, goes back to one, or forgets one.
    fn checkpoint(&mut self, database: &mut Database<'_>) {
        match self.random.random_range(0..3) {
            0 if self.kept.len() < 3 => {
                let name = format!("checkpoint {}", self.random.random::<u32>());
                database.checkpoint(&name).unwrap();
                self.kept.push(Kept { name, model: self.model.clone() });
            }
            1 if !self.kept.is_empty() => {
                let place = self.random.random_range(0..self.kept.len());
                let kept = self.kept[place].clone();
                database.rollback(&kept.name).unwrap();
                self.model = kept.model;
                self.kept.truncate(place + 1);
            }
            _ if !self.kept.is_empty() => {
                let place = self.random.random_range(0..self.kept.len());
                let name = self.kept.remove(place).name;
                database.forget(&name).unwrap();
            }
            _ => {}
        }
        let kept = database.checkpoints().unwrap();
        let names = kept.iter().map(|kept| kept.name.as_str());
        let expected: Vec<_> = self.kept.iter().map(|kept| kept.name.as_str()).collect();
        assert_eq!(names.collect::<Vec<_>>(), expected);
    }
}

/// The seeds to play: these, or the one in the environment variable FLASHTREE_SEED.
fn seeds(usual: std::ops::Range<u64>) -> std::ops::Range<u64> {
    match std::env::var("FLASHTREE_SEED").map(|seed| seed.parse::<u64>().unwrap()) {
        Ok(seed) => seed..seed + 1,
        Err(_) => usual,
    }
}

/// Plays a history of `steps` steps, with a reopening now and then.
fn play(place: &Place, durability: Durability, steps: u32, seed: u64) {
    println!("to play it again: FLASHTREE_SEED={seed} cargo test -p flashtree --test histories");
    let options = Options::new().durability(durability).capacity(32 << 20);
    play_with(place, &options, steps, seed);
}

fn play_with(place: &Place, options: &Options, steps: u32, seed: u64) {
    let mut database = place.create(options);
    let durability = database.stats().unwrap().recovery.durability;
    let mut history = History {
        random: ChaCha8Rng::seed_from_u64(seed),
        model: Model::new(),
        kept: Vec::new(),
        durable: durability != Durability::None,
    };
    for step in 0..steps {
        history.step(&mut database);
        if history.random.random_bool(0.01) {
            match history.random.random_bool(0.5) {
                true => database.close().unwrap(),
                false => drop(database),
            }
            database = place.open();
            compare(&mut database, &history.model, &format!("seed {seed}, step {step}"));
        }
    }
    compare(&mut database, &history.model, &format!("seed {seed}, at the end"));
}

/// Each tree of the registry as it is, and with each end of what its parameters can be.
/// Raw flash leaves the size of a node no choice: it is a page.
fn specs(on_raw_flash: bool) -> Vec<String> {
    let mut specs = Vec::new();
    let stands = |entry: &&&TreeDescriptor| if on_raw_flash { entry.nand } else { entry.sectors };
    for entry in trees::TREES.iter().filter(stands) {
        specs.push(entry.name.to_owned());
        for parameter in entry.parameters {
            let values = match parameter.kind {
                // Nodes that are logged are whole sectors, of 4096 bytes here.
                Kind::Bytes if parameter.name == "node" && entry.name == "flashdb" => {
                    vec!["4096".into(), "8192".into()]
                }
                Kind::Bytes if parameter.name == "node" && !on_raw_flash => {
                    vec!["512".into(), "8192".into()]
                }
                Kind::Percent(least) => vec![least.to_string(), "100".into()],
                // Where nodes are follows from what a tree stands on, and only raw flash has
                // memory to share.
                Kind::Word(["log", "in-place"]) => {
                    vec![if on_raw_flash { "log" } else { "in-place" }.to_owned()]
                }
                Kind::Word(_) if parameter.name == "share" && !on_raw_flash => {
                    vec!["fixed".to_owned()]
                }
                Kind::Word(words) => words.iter().map(ToString::to_string).collect(),
                _ => Vec::new(),
            };
            let spec = |value| format!("{}:{}={value}", entry.name, parameter.name);
            specs.extend(values.into_iter().map(spec));
        }
    }
    specs
}

/// In the least memory, so that pages come and go.
#[test]
fn histories_of_every_tree_under_every_durability_are_those_of_an_ordered_map() {
    let specs = specs(false);
    assert!(specs.len() >= 5, "{specs:?}");
    let count = specs.len() as u64 * 4;
    for seed in sample(3, seeds(1000..1000 + count)) {
        let (spec, durability) = (seed as usize / 4 % specs.len(), seed as usize % 4);
        let options = Options::new()
            .tree(specs[spec].as_str())
            .durability(Durability::ALL[durability])
            .memory(0);
        let disk = SharedDisk::new(4096, 2048);
        let needed = Database::create_on(disk.medium(), &options);
        let Err(Error::LittleMemory { need, .. }) = needed else {
            panic!("{}: no memory is too little", specs[spec]);
        };
        println!("{}, {}", specs[spec], Durability::ALL[durability]);
        println!(
            "to play it again: FLASHTREE_SEED={seed} cargo test -p flashtree --test histories"
        );
        play_with(&Place::Disk(disk), &options.memory(need), 1500, seed);
    }
}

#[test]
fn histories_on_raw_flash_are_those_of_an_ordered_map() {
    let specs = specs(true);
    let count = specs.len() as u64 * 4;
    for seed in sample(3, seeds(2000..2000 + count)) {
        let (spec, durability) = (seed as usize / 4 % specs.len(), seed as usize % 4);
        println!("{}, {}", specs[spec], Durability::ALL[durability]);
        println!(
            "to play it again: FLASHTREE_SEED={seed} cargo test -p flashtree --test histories"
        );
        let options =
            Options::new().tree(specs[spec].as_str()).durability(Durability::ALL[durability]);
        play_with(&Place::file(Some("")), &options, 300, seed);
    }
}

#[test]
fn histories_in_a_file_are_those_of_an_ordered_map() {
    for seed in seeds(0..4) {
        play(&Place::file(None), Durability::ALL[seed as usize % 4], 1000, seed);
    }
}

#[test]
fn histories_on_an_imitated_chip_are_those_of_an_ordered_map() {
    for seed in seeds(10..12) {
        let (durability, steps) = match seed % 2 {
            0 => (Durability::None, 600),
            _ => (Durability::Batch, 200),
        };
        play(&Place::file(Some("page-map")), durability, steps, seed);
    }
}

#[test]
fn histories_on_a_disk_are_those_of_an_ordered_map() {
    for seed in seeds(100..124) {
        let sector_bytes = [512, 1024, 4096][seed as usize % 3];
        let disk = SharedDisk::new(sector_bytes, (16 << 20) / u64::from(sector_bytes));
        play(&Place::Disk(disk), Durability::ALL[seed as usize % 4], 2000, seed);
    }
}

#[test]
fn a_database_on_a_simulated_chip_is_there_when_it_is_opened_again() {
    for ftl in ["page-map", "dac", "fast", "block-map"] {
        for spare in [0, 64] {
            let geometry = Geometry::new(2048, 32, 128).unwrap().with_spare(spare).unwrap();
            let mut chip = sim::SimulatedNand::new(geometry, device::NandCosts::default());
            let medium = Medium::Nand(Box::new(&mut chip));
            let made = Database::create_on(medium, &Options::new().ftl(ftl)).unwrap();
            for number in 0..500_u32 {
                made.put(number.to_be_bytes(), ftl).unwrap();
            }
            made.close().unwrap();
            // The layer is found on the chip.
            let medium = Medium::Nand(Box::new(&mut chip));
            let found = Database::open_on(medium, &OpenOptions::new()).unwrap();
            assert_eq!(found.count().unwrap(), 500, "{ftl}, {spare} spare bytes");
            assert_eq!(found.get(7_u32.to_be_bytes()).unwrap().unwrap(), ftl.as_bytes());
            let health = found.stats().unwrap().health.unwrap();
            assert_eq!((health.blocks, health.bad_blocks), (128, 0));
        }
    }
}

/// What a killed process leaves holds every update that was acknowledged under the durability:
/// all under every, all up to the last sync under batch, up to the last checkpoint otherwise; and
/// beyond those a beginning of the rest.
#[test]
fn what_a_killed_process_leaves_is_what_its_durability_says() {
    for seed in seeds(1..4) {
        let durability = Durability::ALL[1 + seed as usize % 3];
        let disk = SharedDisk::new(512, 8192);
        let options = Options::new().durability(durability);
        let database = Database::create_on(disk.medium(), &options).unwrap();
        let mut random = ChaCha8Rng::seed_from_u64(seed);
        let mut states = vec![Model::new()];
        let mut sure = 0;
        for step in 0..400_u32 {
            let key = random.random_range(0..100_u32).to_be_bytes();
            let mut model = states.last().unwrap().clone();
            let mut batch = Batch::new();
            batch.put(key, step.to_be_bytes()).put(b"step", step.to_be_bytes());
            model.insert(key.to_vec(), step.to_be_bytes().to_vec());
            model.insert(b"step".to_vec(), step.to_be_bytes().to_vec());
            database.write_batch(&batch).unwrap();
            states.push(model);
            if durability == Durability::Every {
                sure = states.len() - 1;
            } else if random.random_bool(0.1) {
                database.sync().unwrap();
                sure = states.len() - 1;
            }
            let mut left = Database::open_on(disk.copy().medium(), &OpenOptions::new()).unwrap();
            let found = storage::content(&mut left).unwrap();
            let place = states.iter().position(|state| *state == found);
            let place = place.unwrap_or_else(|| panic!("seed {seed}, step {step}: no such state"));
            assert!(place >= sure, "{durability}, seed {seed}: {sure} were acknowledged, {place}");
            assert_eq!(left.check().unwrap(), [""; 0]);
        }
    }
}
