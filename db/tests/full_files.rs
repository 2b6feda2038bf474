//! Full files with values of all lengths, and names: what is refused changes nothing, forgetting a
//! name and deleting are never refused, and every file opens again.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test fails by panicking"
)]

mod storage;

use flashtree::{Batch, Database, Error, OpenOptions, Options};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use storage::{Model, SharedDisk, compare};

const SECTOR: u32 = 4096;
const SEEDS: u64 = 2;
const NAME: &str = "before";

/// Sectors of the longest file, bytes of memory, and bytes of the longest value.
const CASES: [(u64, u64, usize); 4] =
    [(256, 256 << 10, 800), (256, 1 << 20, 100), (1024, 320 << 10, 2000), (512, 16 << 20, 300)];

struct Play {
    random: ChaCha8Rng,
    model: Model,
    longest: usize,
    when: String,
}

impl Play {
    /// Puts some entries, all or none of them; false if they are refused.
    fn put(&mut self, database: &Database<'_>) -> bool {
        let (mut batch, mut entries) = (Batch::new(), Vec::new());
        for _ in 0..self.random.random_range(1..40) {
            let key = format!("key {:07}", self.random.random_range(0..10_000_000)).into_bytes();
            let value = vec![self.random.random(); self.random.random_range(0..self.longest)];
            batch.put(&key, &value);
            entries.push((key, value));
        }
        match database.write_batch(&batch) {
            Ok(()) => self.model.extend(entries),
            Err(Error::Full { .. } | Error::Kept { .. }) => return false,
            Err(error) => panic!("{}: {error}", self.when),
        }
        true
    }

    /// Deletes about half of all.
    fn delete(&mut self, database: &Database<'_>) {
        let keys: Vec<_> = self.model.keys().filter(|_| self.random.random()).cloned().collect();
        for key in keys {
            let deleted = database.delete(&key);
            deleted.unwrap_or_else(|error| panic!("{}: a delete is refused: {error}", self.when));
            self.model.remove(&key);
        }
    }
}

fn play(tree: &str, (sectors, memory, longest): (u64, u64, usize), seed: u64) -> u32 {
    let when = format!("{tree}, {sectors} sectors, {memory} bytes, seed {seed}");
    let (random, model) = (ChaCha8Rng::seed_from_u64(seed), Model::new());
    let mut play = Play { random, model, longest, when };
    let mut disk = SharedDisk::growing(SECTOR, sectors);
    let options = Options::new().tree(tree).memory(memory);
    let mut database = Database::create_on(disk.medium(), &options).unwrap();
    let mut named = 0;
    for round in 0..4 {
        while play.put(&database) {
            let has_name = !database.checkpoints().unwrap().is_empty();
            if !has_name && play.random.random_ratio(1, 8) {
                named += u32::from(database.checkpoint(NAME).is_ok());
            }
        }
        compare(&mut database, &play.model, &play.when);
        if round % 2 == 0 {
            drop(database);
            disk = disk.killed(sectors);
            let opened = Database::open_on(disk.medium(), &OpenOptions::new().memory(memory));
            database = opened.unwrap_or_else(|error| panic!("{}: {error}", play.when));
            compare(&mut database, &play.model, &play.when);
        }
        if !database.checkpoints().unwrap().is_empty() {
            let forgotten = database.forget(NAME);
            forgotten.unwrap_or_else(|error| panic!("{}: forget: {error}", play.when));
        }
        while play.put(&database) {}
        play.delete(&database);
        compare(&mut database, &play.model, &play.when);
    }
    database.close().unwrap();
    named
}

#[test]
fn deletes_and_forgetting_are_never_refused_whatever_the_lengths() {
    for tree in ["fd-tree", "lsm", "b-plus", "flat-tree", "la-tree"] {
        let plays = CASES.into_iter().flat_map(|case| (0..SEEDS).map(move |seed| (case, seed)));
        let named: u32 = plays.map(|(case, seed)| play(tree, case, seed)).sum();
        assert!(named > 12, "{tree}: {named} names");
    }
}
