//! Files and disks of another length than they were made with: cut off, lengthened, copied in part.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test fails by panicking"
)]

mod storage;

use flashtree::{Database, Durability, Error, OpenOptions, Options};
use storage::{Model, SharedDisk, content};

/// A database that was killed after pages were overwritten in place: their old content stands at
/// the end of the disk.
fn killed(durability: Durability) -> (SharedDisk, Model) {
    let disk = SharedDisk::new(512, 1024);
    let options = Options::new().tree("b-plus").durability(durability).journal_bytes(8 << 10);
    let database = Database::create_on(disk.medium(), &options.memory(6 << 10)).unwrap();
    for number in 0..200_u32 {
        database.put(number.to_be_bytes(), [1; 20]).unwrap();
    }
    database.checkpoint("kept").unwrap();
    for number in 0..20_u32 {
        database.put((number * 9).to_be_bytes(), [2; 20]).unwrap();
    }
    database.sync().unwrap();
    let left = disk.copy();
    let mut model = Model::new();
    for number in 0..200_u32 {
        let value = if number % 9 == 0 && number < 180 { 2 } else { 1 };
        model.insert(number.to_be_bytes().to_vec(), vec![value; 20]);
    }
    (left, model)
}

#[test]
fn a_disk_of_another_length_is_refused_and_not_changed() {
    for durability in [Durability::Checkpoint, Durability::Batch, Durability::Every] {
        let (left, model) = killed(durability);
        let whole = left.bytes.lock().unwrap().clone();
        for sectors in [1, 2, 10, 60, 512, 960, 1000, 1023, 1025, 1100, 2048] {
            let mut bytes = whole.clone();
            bytes.resize(sectors * 512, 0);
            let disk = SharedDisk::of(512, bytes.clone());
            let error = Database::open_on(disk.medium(), &OpenOptions::new()).err();
            let is_told =
                matches!(error, Some(Error::OtherLength { .. } | Error::NotADatabase { .. }));
            assert!(is_told, "{durability}, {sectors} sectors: {error:?}");
            assert_eq!(*disk.bytes.lock().unwrap(), bytes, "{sectors} sectors");
        }
        let mut database = Database::open_on(left.medium(), &OpenOptions::new()).unwrap();
        assert_eq!(content(&mut database).unwrap(), model);
    }
}
