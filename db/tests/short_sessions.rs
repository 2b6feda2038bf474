//! What is put in many short sessions takes hardly more room than what is put in one.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test fails by panicking"
)]

mod storage;

use std::path::Path;

use flashtree::{Batch, Database, Error, OpenOptions, Options};
use storage::{Model, compare, place};

const FILE_BYTES: u64 = 1 << 20;

/// Puts `session` entries with values of `value` bytes in each session, until they are refused;
/// returns the bytes that were taken.
fn fill(path: &Path, session: u32, value: usize) -> usize {
    let mut model = Model::new();
    let options = Options::new().tree("flat-tree").capacity(FILE_BYTES);
    drop(Database::create(path, &options).unwrap());
    for first in (0..).step_by(session as usize) {
        let database = Database::open(path, &OpenOptions::new()).unwrap();
        let mut batch = Batch::new();
        let mut entries = Vec::new();
        for number in first..first + session {
            let key = number.wrapping_mul(0x9E37_79B9).to_be_bytes().to_vec();
            batch.put(&key, vec![number as u8; value]);
            entries.push((key, vec![number as u8; value]));
        }
        match database.write_batch(&batch) {
            Ok(()) => model.extend(entries),
            Err(Error::Full { .. }) => break,
            Err(error) => panic!("{error}"),
        }
        database.close().unwrap();
    }
    let mut database = Database::open(path, &OpenOptions::new()).unwrap();
    compare(&mut database, &model, "when it is full");
    assert_eq!(database.check().unwrap(), Vec::<String>::new());
    model.len() * (4 + value)
}

#[test]
fn a_file_that_is_opened_for_every_few_puts_is_filled() {
    for (session, value) in [(3, 200), (20, 50), (100, 8)] {
        let (_folder, path) = place();
        let bytes = fill(&path, session, value) as u64;
        let share = bytes as f64 / FILE_BYTES as f64;
        println!(
            "{session} puts of {value} bytes in a session: {:.1} % of the file",
            100.0 * share
        );
        assert!(share > 0.25, "{session} puts in a session, {value} bytes: {share}");
    }
}
