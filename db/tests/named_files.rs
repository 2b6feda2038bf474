//! Random histories in small files under names: long values, rollbacks, forgetting and kills. What
//! is refused changes nothing, nothing is lost, and forgetting is never refused.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test fails by panicking"
)]

mod storage;

use flashtree::{Batch, Database, Durability, Error, OpenOptions, Options};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use storage::{Model, SharedDisk, compare};

const SECTOR: u32 = 4096;
const STEPS: u32 = 300;
const NAMES: [&str; 3] = ["one", "two", "three"];

/// Sectors of the longest file, bytes of memory, bytes of the longest value.
const CASES: [(u64, u64, usize); 5] = [
    (256, 1 << 20, 800),
    (256, 1 << 20, 30_000),
    (1024, 1 << 20, 200_000),
    (1024, 4 << 20, 60_000),
    (4096, 2 << 20, 200_000),
];

/// How often something happened.
#[derive(Default)]
struct Counts {
    /// Batches.
    taken: u32,
    refused: u32,
    names: u32,
    forgotten: u32,
    killed: u32,
}

struct History {
    random: ChaCha8Rng,
    database: Database<'static>,
    disk: SharedDisk,
    sectors: u64,
    memory: u64,
    longest: usize,
    /// True if the tree itself takes short values only.
    has_pieces: bool,
    model: Model,
    /// What each name keeps, the oldest first.
    kept: Vec<(&'static str, Model)>,
    counts: Counts,
    when: String,
}

impl History {
    fn new(tree: &str, (sectors, memory, longest): (u64, u64, usize), seed: u64) -> History {
        let mut random = ChaCha8Rng::seed_from_u64(seed);
        let disk = SharedDisk::growing(SECTOR, sectors);
        let durability =
            [Durability::Batch, Durability::Checkpoint][usize::from(random.random_ratio(1, 3))];
        let options = Options::new().tree(tree).memory(memory).durability(durability);
        let database = Database::create_on(disk.medium(), &options).unwrap();
        let when = format!(
            "{tree}, {sectors} sectors, {memory} bytes, values to {longest}, {durability:?}, seed \
             {seed}"
        );
        let has_pieces = matches!(tree, "fd-tree" | "lsm" | "bftl" | "flashdb");
        let (model, kept, counts) = (Model::new(), Vec::new(), Counts::default());
        History {
            random,
            database,
            disk,
            sectors,
            memory,
            longest,
            has_pieces,
            model,
            kept,
            counts,
            when,
        }
    }

    fn value(&mut self) -> Vec<u8> {
        let short = self.random.random_ratio(9, 10);
        let longest = if short { self.longest.min(300) } else { self.longest };
        vec![self.random.random(); self.random.random_range(0..longest)]
    }

    fn key(&mut self) -> Vec<u8> {
        // One in eight is long.
        let number = self.random.random_range(0..4000_usize);
        let more = if number.is_multiple_of(8) { number % 500 } else { 0 };
        format!("key {number:04}{}", "+".repeat(more)).into_bytes()
    }

    /// True if it was done, false if it was refused for want of room; anything else is a fault.
    fn taken(&self, what: &str, outcome: flashtree::Result<()>) -> bool {
        match outcome {
            Ok(()) => true,
            Err(Error::Kept { names, .. }) => {
                assert!(names.iter().eq(self.kept.iter().map(|kept| kept.0)), "{}", self.when);
                false
            }
            Err(Error::Full { .. }) => {
                assert!(self.kept.is_empty(), "{}: {what}: it names no checkpoint", self.when);
                false
            }
            Err(error) => panic!("{}: {what}: {error}", self.when),
        }
    }

    fn put(&mut self) {
        let (mut batch, mut entries) = (Batch::new(), Vec::new());
        for _ in 0..self.random.random_range(1..40) {
            let (key, value) = (self.key(), self.value());
            batch.put(&key, &value);
            entries.push((key, value));
        }
        let is_taken = self.taken("put", self.database.write_batch(&batch));
        if is_taken {
            self.model.extend(entries);
            self.counts.taken += 1;
        } else {
            self.counts.refused += 1;
        }
    }

    /// Deletes this share of all, one by one. Nothing is refused but where a name is kept, and
    /// where a value stands in pieces, of which a mark has to be put.
    fn delete(&mut self, share: f64) {
        let mut keys: Vec<_> =
            self.model.keys().filter(|_| self.random.random_bool(share)).cloned().collect();
        // Some of these are absent.
        keys.extend((0..50).map(|_| self.key()));
        for key in keys {
            let outcome = self.database.delete(&key).map(drop);
            let bytes = self.model.get(&key).map_or(0, Vec::len);
            let has_pieces = self.has_pieces && bytes > SECTOR as usize / 8;
            if self.kept.is_empty() && !has_pieces {
                let deleted = outcome.as_ref();
                deleted.unwrap_or_else(|error| panic!("{}: delete: {error}", self.when));
            }
            let is_taken = self.taken("delete", outcome);
            if is_taken {
                self.model.remove(&key);
            }
        }
    }

    fn name(&mut self) {
        let free = NAMES.iter().find(|name| self.kept.iter().all(|(kept, _)| kept != *name));
        let Some(&name) = free else { return };
        let outcome = self.database.checkpoint(name).map(drop);
        let is_taken = match outcome {
            Err(Error::Index(_)) => false,
            outcome => self.taken("name", outcome),
        };
        if is_taken {
            self.kept.push((name, self.model.clone()));
            self.counts.names += 1;
        }
    }

    fn rollback(&mut self) {
        if self.kept.is_empty() {
            return;
        }
        let place = self.random.random_range(0..self.kept.len());
        let outcome = self.database.rollback(self.kept[place].0);
        let is_taken = self.taken("rollback", outcome);
        if is_taken {
            self.model = self.kept[place].1.clone();
            self.kept.truncate(place + 1);
        }
        let names = self.database.checkpoints().unwrap();
        assert!(names.iter().map(|kept| &*kept.name).eq(self.kept.iter().map(|kept| kept.0)));
    }

    fn forget(&mut self) {
        if self.kept.is_empty() {
            return;
        }
        let place = self.random.random_range(0..self.kept.len());
        let (name, _) = self.kept.remove(place);
        let forgotten = self.database.forget(name);
        forgotten.unwrap_or_else(|error| panic!("{}: forget {name}: {error}", self.when));
        self.counts.forgotten += 1;
    }

    /// Reopens what a kill leaves.
    fn kill(&mut self) {
        self.database.sync().unwrap();
        let disk = self.disk.killed(self.sectors);
        let options = OpenOptions::new().memory(self.memory);
        let opened = Database::open_on(disk.medium(), &options);
        self.database = opened.unwrap_or_else(|error| panic!("{}: opening: {error}", self.when));
        self.disk = disk;
        self.counts.killed += 1;
    }

    fn compare(&mut self, step: u32) {
        compare(&mut self.database, &self.model, &format!("{}, step {step}", self.when));
    }

    fn play(mut self, all: &mut Counts) {
        for step in 0..STEPS {
            match self.random.random_range(0..100) {
                0..62 => self.put(),
                62..76 => self.delete(0.02),
                76..79 => self.delete(0.5),
                79..84 => self.name(),
                84..87 => self.rollback(),
                87..92 => self.forget(),
                92..98 => self.kill(),
                _ => self.compare(step),
            }
        }
        self.compare(STEPS);
        while !self.kept.is_empty() {
            self.forget();
        }
        // What is refused in the first round has room in the second.
        self.delete(1.0);
        self.delete(1.0);
        assert!(self.model.is_empty(), "{}: {} entries are left", self.when, self.model.len());
        self.compare(STEPS);
        let Self { database, counts, .. } = self;
        database.close().unwrap();
        all.taken += counts.taken;
        all.refused += counts.refused;
        all.names += counts.names;
        all.forgotten += counts.forgotten;
        all.killed += counts.killed;
    }
}

/// `FLASHTREE_SEED` plays one seed, `FLASHTREE_SEEDS` so many; `FLASHTREE_TREE` one tree only.
#[test]
fn nothing_is_lost_under_names_and_forgetting_is_never_refused() {
    let number = |name| std::env::var(name).ok().map(|text| text.parse::<u64>().unwrap());
    let seeds = match number("FLASHTREE_SEED") {
        Some(seed) => seed..seed + 1,
        None => 0..number("FLASHTREE_SEEDS").unwrap_or(1),
    };
    let chosen = std::env::var("FLASHTREE_TREE").ok();
    for tree in ["b-plus", "flat-tree", "la-tree", "fd-tree", "lsm", "bftl", "flashdb"] {
        if chosen.as_deref().is_some_and(|chosen| chosen != tree) {
            continue;
        }
        let mut all = Counts::default();
        for case in CASES {
            seeds.clone().for_each(|seed| History::new(tree, case, seed).play(&mut all));
        }
        let happened = [all.taken, all.refused, all.names, all.forgotten, all.killed];
        assert!(happened.iter().all(|&count| count > 3), "{tree}: {happened:?}");
    }
}

/// Where names are kept, a page that is given out again takes the room of an image, and another its
/// own: both are counted before a long value is written.
#[test]
fn a_long_value_without_room_beside_names_is_refused_before_anything_is_changed() {
    let (mut taken, mut refused) = (0, 0);
    for pages in 1..300 {
        let disk = SharedDisk::growing(SECTOR, 300);
        let options = Options::new().tree("b-plus").memory(1 << 20);
        let mut database = Database::create_on(disk.medium(), &options).unwrap();
        database.put("long", [1; 200_000]).unwrap();
        database.checkpoint("one").unwrap();
        // Its pages are free behind the second name, and the first needs what they hold.
        database.delete("long").unwrap();
        database.put("short", "value").unwrap();
        database.checkpoint("two").unwrap();
        let mut model = Model::from([(b"short".to_vec(), b"value".to_vec())]);
        let value = vec![2; pages * 4000];
        match database.put("long", &value) {
            Ok(()) => {
                taken += 1;
                model.insert(b"long".to_vec(), value);
            }
            Err(Error::Full { .. } | Error::Kept { .. }) => refused += 1,
            Err(error) => panic!("{pages} pages: {error}"),
        }
        match database.delete("short") {
            Ok(()) => drop(model.remove(&b"short"[..])),
            Err(error) => assert!(matches!(error, Error::Kept { .. }), "{pages} pages: {error}"),
        }
        compare(&mut database, &model, &format!("{pages} pages"));
        ["one", "two"].iter().for_each(|name| database.forget(name).unwrap());
    }
    assert!(taken > 20 && refused > 20, "{taken} taken, {refused} refused");
}
