//! What is left of a database, read by whoever opens it.

use contract::torture::truth::Found;
use db::{Database, OpenOptions};
use device::Medium;
use proptest::sample::Index as Choice;

use crate::memory::memory_of;
use crate::reading::held_bytes;

/// What reading takes beside the memory budget, the tables of a translation layer and what is read.
const BESIDE: u64 = 96 << 10;

/// Opens a database by `open` and reads all of it, in no more memory than it may take; that
/// is `memory` for caches and buffers, and what the device takes.
///
/// # Errors
/// As the database.
///
/// # Panics
/// It took more memory, or holds more than `most` entries.
pub fn read_measured<'d>(
    open: impl FnOnce() -> db::Result<Database<'d>>,
    memory: u64,
    most: usize,
) -> db::Result<Found> {
    // What is found before an error takes memory, too.
    let mut found = Found::default();
    let (peak, outcome) = memory_of(|| read(&mut open()?, most, &mut found));
    let held = held_bytes(&found);
    let limit = memory + BESIDE + 4 * held;
    assert!(peak <= limit, "{peak} bytes of memory, and {held} were read");
    outcome.map(|()| found)
}

fn read(database: &mut Database<'_>, most: usize, found: &mut Found) -> db::Result<()> {
    let mut findings = 0_u32;
    database.check_with(&mut |_| findings += 1)?;
    found.names.extend(database.checkpoints()?.into_iter().map(|kept| kept.name));
    for entry in database.all()? {
        found.entries.push(entry?);
        assert!(found.entries.len() <= most, "there are more than {most} entries");
    }
    for (key, _) in found.entries.iter().take(20) {
        database.get(key)?;
    }
    Ok(())
}

/// Opens what is on a medium, changes it, and closes it.
///
/// # Errors
/// As the database.
pub fn change(medium: Medium<'_>, memory: u64, after: &[Choice]) -> db::Result<()> {
    let database = Database::open_on(medium, &OpenOptions::new().memory(memory))?;
    let mut failed = Ok(());
    for choice in after {
        let number = choice.index(1 << 16) as u32;
        let key = [&b"k"[..], &number.to_be_bytes()].concat();
        let done = match number % 7 {
            0..3 => database.put(&key, vec![7; number as usize % 3000]),
            3 => database.delete(&key),
            4 => database.checkpoint("fuzz").map(drop),
            5 => database.sync(),
            _ => database.rollback("fuzz"),
        };
        // A database that failed is asked on: it must refuse, not panic.
        failed = failed.and(done);
    }
    failed.and(database.close())
}
