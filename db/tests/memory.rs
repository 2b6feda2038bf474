//! The memory budget, by a counting allocator.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test fails by panicking"
)]

use flashtree::{Database, Durability, Error, OpenOptions, Options};

/// What may come beside the budget: paths, options, the parts of a handle.
const BESIDE: u64 = 4 << 10;

/// The most memory that was in use while `work` was done.
fn peak(work: impl FnOnce()) -> u64 {
    allocation_counter::measure(work).bytes_max
}

#[test]
fn everything_together_stays_inside_the_total() {
    for durability in Durability::ALL {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("budget.db");
        let options = Options::new().capacity(16 << 20).durability(durability);
        let Err(Error::LittleMemory { need, .. }) =
            Database::create(&path, &options.clone().memory_total(0))
        else {
            panic!("no memory is too little");
        };
        for total in [need, 2 * need, 16 * need, 1 << 20] {
            let options = options.clone().memory_total(total).overwrite(true);
            let long = vec![7; 100_000];
            let making = peak(|| {
                let mut database = Database::create(&path, &options).unwrap();
                let entries = if durability == Durability::Every { 200 } else { 3000 };
                for number in 0..entries {
                    database
                        .put(u32::wrapping_mul(number, 0x9E37_79B9).to_be_bytes(), [1; 40])
                        .unwrap();
                }
                database.put("long", &long).unwrap();
                database.close().unwrap();
            });
            assert!(making <= total + BESIDE, "{durability}: {making} of {total} bytes");
            let mut piece = vec![0; 1000];
            let opening = peak(|| {
                let options = OpenOptions::new().memory_total(total);
                let mut database = Database::open(&path, &options).unwrap();
                let mut range = database.all().unwrap();
                while range.next().unwrap().is_some() {
                    range.read_value(50, &mut piece).unwrap();
                }
            });
            assert!(opening <= total + BESIDE, "{durability}: {opening} of {total} bytes");
        }
    }
}
