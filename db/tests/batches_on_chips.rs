//! Batches on raw flash: a chip that holds little takes large ones, whatever the lengths are.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

use device::NandCosts;
use flashtree::{Batch, Database, Geometry, Medium, Options};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use sim::SimulatedNand;

/// Puts of random keys among 9000, of up to 40 bytes, on a chip of 8 MiB, so many in a batch.
fn fill(tree: &str, puts: usize, batches: usize) {
    let geometry = Geometry::new(2048, 64, 64).unwrap().with_spare(64).unwrap();
    let mut chip = SimulatedNand::new(geometry, NandCosts::default());
    let medium = Medium::Nand(Box::new(&mut chip));
    let database = Database::create_on(medium, &Options::new().tree(tree)).unwrap();
    let mut random = ChaCha8Rng::seed_from_u64(6);
    for round in 0..batches {
        let mut batch = Batch::new();
        for _ in 0..puts {
            let key = random.random_range(0..9000_u32).to_be_bytes();
            batch.put(key, vec![round as u8; random.random_range(0..40)]);
        }
        let made = database.write_batch(&batch);
        assert!(made.is_ok(), "{tree}, batch {round}: {made:?}");
    }
    assert!(database.count().unwrap() > 5000);
    assert!(database.check().unwrap().is_empty());
}

#[test]
fn a_chip_that_is_nearly_empty_takes_batches_of_entries_of_any_length() {
    for tree in ["b-plus", "flat-tree", "la-tree"] {
        fill(tree, 200, 100);
    }
    // Every put of a batch may take a page of its own here, and changes of others as many.
    fill("ipl", 50, 400);
}
