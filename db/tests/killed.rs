//! A process that writes is killed at random moments: every update that it was told is durable is
//! there afterwards, and of the rest a beginning.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test fails by panicking"
)]

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use flashtree::{Batch, Database, Durability, OpenOptions, Options};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

/// How often a process is killed, unless the environment variable FLASHTREE_KILLS says otherwise.
const KILLS: u32 = 20;

/// The environment variable by which the writing process is told its file.
const PATH: &str = "FLASHTREE_TEST_PATH";

/// Updates in a batch, and batches to a sync under durability batch.
const UPDATES: u32 = 3;
const BATCHES: u32 = 7;

fn key(number: u32) -> [u8; 4] {
    number.wrapping_mul(0x9E37_79B9).to_be_bytes()
}

/// Mostly short values, and now and then one that takes pages of its own.
fn value(number: u32) -> Vec<u8> {
    let length = if number.is_multiple_of(50) { 9000 } else { number % 90 };
    vec![number as u8; length as usize]
}

/// Writes until it is killed, and tells what is durable.
#[test]
#[ignore = "the process that is killed"]
fn writes_until_it_is_killed() {
    let path = std::env::var_os(PATH).expect("the test of killed processes starts this");
    let options = OpenOptions::new().memory_total(200 << 10);
    let mut database = Database::open(path, &options).unwrap();
    let every = database.stats().unwrap().recovery.durability == Durability::Every;
    let mut told = std::io::stdout();
    let mut next = database.count().unwrap() as u32;
    assert!(next.is_multiple_of(UPDATES), "half a batch is there");
    for batches in 1.. {
        let mut batch = Batch::new();
        for number in next..next + UPDATES {
            batch.put(key(number), value(number));
        }
        database.write(&batch).unwrap();
        next += UPDATES;
        if !every && batches % BATCHES == 0 {
            database.sync().unwrap();
        }
        if every || batches % BATCHES == 0 {
            told.write_all(format!("durable {next}\n").as_bytes()).unwrap();
        }
    }
}

fn start(path: &Path) -> Child {
    Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "writes_until_it_is_killed", "--ignored", "--nocapture"])
        .env(PATH, path)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap()
}

/// Kills the process after a time; returns what it said is durable.
fn kill(mut writer: Child, after: Duration) -> u32 {
    std::thread::sleep(after);
    writer.kill().unwrap();
    let said = BufReader::new(writer.stdout.take().unwrap()).lines().map_while(Result::ok);
    // The last line may be cut off.
    let durable = said.filter_map(|line| line.strip_prefix("durable ")?.parse().ok()).max();
    writer.wait().unwrap();
    durable.unwrap_or(0)
}

/// Opens what is left and compares it; returns how many updates there are.
fn verify(path: &Path, durable: u32) -> u32 {
    let mut left = Database::open(path, &OpenOptions::new()).unwrap();
    assert_eq!(left.check().unwrap(), [""; 0]);
    let count = left.count().unwrap() as u32;
    assert!(count >= durable, "{durable} were durable, {count} are there");
    assert!(count.is_multiple_of(UPDATES), "half a batch is there: {count}");
    for number in 0..count {
        let found = left.get(key(number)).unwrap();
        assert!(found.as_ref() == Some(&value(number)), "update {number} of {count}: {found:?}");
    }
    left.close().unwrap();
    count
}

#[test]
fn what_was_durable_is_there_after_a_kill() {
    let kills = std::env::var("FLASHTREE_KILLS").map_or(KILLS, |kills| kills.parse().unwrap());
    let mut random = ChaCha8Rng::seed_from_u64(1);
    for durability in [Durability::Batch, Durability::Every] {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("killed.db");
        let options = Options::new().durability(durability).journal_bytes(256 << 10);
        Database::create(&path, &options).unwrap().close().unwrap();
        let (mut count, mut replayed) = (0, 0);
        for _ in 0..kills / 2 {
            let after = Duration::from_millis(random.random_range(30..150));
            let durable = kill(start(&path), after);
            let options = OpenOptions::new().memory_total(200 << 10);
            let opened = Database::open(&path, &options).unwrap();
            replayed += opened.stats().unwrap().recovery.replayed;
            opened.close().unwrap();
            count = verify(&path, durable.max(count));
        }
        println!("{durability}: {} kills, {count} updates, {replayed} replayed", kills / 2);
        assert!(count > 0 && replayed > 0, "nothing was written, or nothing was to recover");
    }
}
