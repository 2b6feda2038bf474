//! Many values at once.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

mod storage;

use device::NandCosts;
use flashtree::encoding::Type;
use flashtree::{Database, Error, Geometry, Medium, Options, Readable};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use sim::SimulatedNand;
use storage::Model;

const TREES: [&str; 5] = ["b-plus", "la-tree", "flat-tree", "fd-tree", "lsm"];

/// Keys that are there and others, some of them twice, in any order.
fn compare(reader: &impl Readable, model: &Model, random: &mut ChaCha8Rng) {
    for count in [0, 1, 31, 500] {
        let keys: Vec<_> =
            (0..count).map(|_| random.random_range(0..9000_u32).to_be_bytes()).collect();
        let expected: Vec<_> = keys.iter().map(|key| model.get(&key[..]).cloned()).collect();
        assert_eq!(reader.get_many(&keys).unwrap(), expected);
    }
}

fn play(database: &Database<'_>) {
    let mut random = ChaCha8Rng::seed_from_u64(6);
    let mut model = Model::new();
    for round in 0..40_u8 {
        let mut batch = flashtree::Batch::new();
        for _ in 0..200 {
            let key = random.random_range(0..9000_u32).to_be_bytes();
            let longest = if random.random_bool(0.01) { 9000 } else { 40 };
            let value = vec![round; random.random_range(0..longest)];
            batch.put(key, &value);
            model.insert(key.to_vec(), value);
        }
        database.write_batch(&batch).unwrap();
    }
    compare(database, &model, &mut random);
    let snapshot = database.snapshot().unwrap();
    let mut transaction = database.begin().unwrap();
    let mut changed = model.clone();
    for key in (0..9000_u32).step_by(90).map(u32::to_be_bytes) {
        transaction.put(key, "changed").unwrap();
        changed.insert(key.to_vec(), b"changed".to_vec());
    }
    compare(&transaction, &changed, &mut random);
    transaction.commit().unwrap();
    compare(database, &changed, &mut random);
    compare(&snapshot, &model, &mut random);
}

#[test]
fn values_come_in_the_order_of_their_keys_on_every_tree() {
    for tree in TREES {
        let folder = tempfile::tempdir().unwrap();
        let options = Options::new().tree(tree).memory_total(1 << 20);
        play(&Database::create(folder.path().join("fruit.db"), &options).unwrap());
    }
    for tree in ["b-plus", "mu-star", "flat-tree"] {
        // Room for batches of 200 puts, each of which might split every node in `mu-star`.
        let geometry = Geometry::new(2048, 64, 256).unwrap().with_spare(64).unwrap();
        let mut chip = SimulatedNand::new(geometry, NandCosts::default());
        let medium = Medium::Nand(Box::new(&mut chip));
        play(&Database::create_on(medium, &Options::new().tree(tree)).unwrap());
    }
}

#[test]
fn a_key_that_can_not_be_there_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let options = Options::new().keyspaces(true);
    let shop = Database::create(folder.path().join("shop.db"), &options).unwrap();
    let prices = shop.create_keyspace("prices", Type::U64, Type::Bytes).unwrap();
    prices.put(7_u64.to_be_bytes(), "5").unwrap();
    let found = prices.get_many([8_u64.to_be_bytes(), 7_u64.to_be_bytes()]).unwrap();
    assert_eq!(found, [None, Some(b"5".to_vec())]);
    assert!(matches!(prices.get_many(["short"]), Err(Error::Index(_))));
}
