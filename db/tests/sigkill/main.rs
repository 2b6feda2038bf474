//! A process that writes is killed with SIGKILL at random moments; what it was told is there.
//!
//! The long form: `cargo test --release -p flashtree --test sigkill -- --ignored --nocapture
//! in_five_hundred`. `FLASHTREE_KILLS` asks for another number, and `FLASHTREE_SEED` begins with
//! another history.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test fails by panicking"
)]

mod history;
mod writer;

use std::collections::BTreeSet;
use std::fmt;
use std::path::PathBuf;
use std::thread::sleep;
use std::time::Duration;

use flashtree::Durability;
use history::{Entries, History, apply};
use rand::RngExt;
use rand_chacha::ChaCha8Rng;
use tempfile::TempDir;
use writer::{Orders, Writer};

/// Kills that a database goes through before the next one is made.
const KILLS_A_DATABASE: u64 = 20;

/// What happened.
#[derive(Clone, Copy, Debug, Default)]
struct Tally {
    kills: u64,
    kills_while_opening: u64,
    kills_while_making: u64,
    /// Steps that had to be there, the changes in them, and steps beyond.
    steps: u64,
    changes: u64,
    beyond: u64,
    recoveries: u64,
    replayed: u64,
    restored: u64,
}

impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "kills of the writing process: {}", self.kills)?;
        writeln!(f, "  of them while it made the database: {}", self.kills_while_making)?;
        writeln!(f, "  of them while it opened the database: {}", self.kills_while_opening)?;
        writeln!(f, "openings that were verified: {}", self.recoveries)?;
        writeln!(f, "  updates replayed: {}, pages put back: {}", self.replayed, self.restored)?;
        writeln!(f, "updates that had to be there: {} in {} batches", self.changes, self.steps)?;
        writeln!(f, "batches beyond those: {}", self.beyond)
    }
}

/// A database whose writers are killed.
struct Victim {
    history: History,
    path: PathBuf,
    _folder: TempDir,
    random: ChaCha8Rng,
    /// What the database holds after `steps` steps.
    entries: Entries,
    steps: u64,
    /// How long an opening took.
    opening: Duration,
}

impl Victim {
    fn new(seed: u64) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let history = History { seed };
        Victim {
            history,
            path: folder.path().join("victim.db"),
            _folder: folder,
            random: history.random(u64::MAX - 2),
            entries: Entries::new(),
            steps: 0,
            opening: Duration::from_millis(20),
        }
    }

    fn orders(&self, writes: bool) -> Orders {
        let (seed, from) = (self.history.seed, self.steps);
        Orders { seed, from, writes, path: self.path.clone() }
    }

    /// What a failure says, and how it is played again. The moments of the kills are the system's.
    fn what(&self) -> String {
        format!(
            "{:?}, {} steps; play its history again with\n  FLASHTREE_SEED={} cargo test -p \
             flashtree --test sigkill after_sixty_kills",
            self.history.durability(),
            self.steps,
            self.history.seed
        )
    }

    /// Starts a writer and kills it at some moment; judges what it leaves.
    fn round(&mut self, tally: &mut Tally) {
        let existed = self.path.exists();
        let mut writer = Writer::start(&self.orders(true));
        if self.random.random_ratio(1, 6) {
            // At a moment while it starts, makes or opens.
            sleep(self.opening.mul_f64(self.random.random_range(0.0..1.2)));
        } else {
            // After a number of updates, somewhere in the next.
            let most = if self.history.durability() == Durability::Every { 40 } else { 600 };
            let wanted = self.steps + self.random.random_range(0..most);
            while writer.acknowledged < wanted || writer.opened_after.is_none() {
                assert!(writer.listen(), "{}: the process ended by itself", self.what());
            }
            sleep(Duration::from_micros(self.random.random_range(0..4000)));
        }
        self.kill(&mut writer, existed, tally);
        while self.random.random_ratio(1, 3) && self.path.exists() {
            let mut opener = Writer::start(&self.orders(false));
            sleep(self.opening.mul_f64(self.random.random_range(0.2..1.2)));
            self.kill(&mut opener, true, tally);
        }
        self.judge(&writer, tally);
    }

    fn kill(&mut self, writer: &mut Writer, existed: bool, tally: &mut Tally) {
        writer.kill(&self.what());
        tally.kills += 1;
        match writer.opened_after {
            Some(after) => self.opening = after,
            None if existed => tally.kills_while_opening += 1,
            None => tally.kills_while_making += 1,
        }
    }

    /// Opens what was left, and compares it with the history.
    fn judge(&mut self, writer: &Writer, tally: &mut Tally) {
        let lasts = match self.history.durability() {
            Durability::Every => writer.acknowledged,
            _ => writer.synced,
        };
        if !self.path.exists() {
            assert_eq!(writer.opened_after, None, "{}: the database is gone", self.what());
            return;
        }
        let mut database = writer::open(&self.path, self.history);
        assert_eq!(database.check().unwrap(), Vec::<String>::new(), "{}", self.what());
        let found: Entries = database.all().unwrap().into_iter().map(Result::unwrap).collect();
        let recovery = database.stats().unwrap().recovery;
        tally.recoveries += 1;
        tally.replayed += recovery.replayed;
        tally.restored += recovery.restored;
        while self.steps < lasts {
            let changes = self.history.step(self.steps);
            tally.steps += 1;
            tally.changes += changes.len() as u64;
            apply(&mut self.entries, changes);
            self.steps += 1;
        }
        // The one that was under way may be there as well.
        tally.beyond += self.find(&found, writer.acknowledged + 1);
        database.close().unwrap();
    }

    /// Goes on in the history to the step after which it holds what was found, step `last` at most;
    /// returns how many steps that are.
    fn find(&mut self, found: &Entries, last: u64) -> u64 {
        let before = self.steps;
        let differs = |entries: &Entries, key: &Vec<u8>| entries.get(key) != found.get(key);
        let keys = self.entries.keys().chain(found.keys());
        let mut different: BTreeSet<Vec<u8>> =
            keys.filter(|key| differs(&self.entries, key)).cloned().collect();
        while !different.is_empty() {
            assert!(
                self.steps < last,
                "what was found is no state from step {before} to {last}: {} keys differ, \
                 the first is {}\n{}",
                different.len(),
                different.first().unwrap().escape_ascii(),
                self.what()
            );
            let changes = self.history.step(self.steps);
            let keys: Vec<_> = changes.iter().map(|(key, _)| key.clone()).collect();
            apply(&mut self.entries, changes);
            self.steps += 1;
            for key in keys {
                match differs(&self.entries, &key) {
                    true => different.insert(key),
                    false => different.remove(&key),
                };
            }
        }
        self.steps - before
    }
}

/// Kills writers of one database after the other until there were `kills` kills.
fn storm(kills: u64) -> Tally {
    let number = |name| std::env::var(name).ok().map(|text| text.parse::<u64>().unwrap());
    let kills = number("FLASHTREE_KILLS").unwrap_or(kills);
    let first = number("FLASHTREE_SEED").unwrap_or(1);
    let mut tally = Tally::default();
    for seed in first.. {
        let mut victim = Victim::new(seed);
        let end = kills.min(tally.kills + KILLS_A_DATABASE);
        while tally.kills < end {
            victim.round(&mut tally);
        }
        if tally.kills >= kills {
            break;
        }
    }
    println!("{tally}");
    assert!(tally.kills >= kills && tally.steps > tally.kills && tally.recoveries > kills / 3);
    tally
}

#[test]
#[ignore = "it is the process that the others kill"]
fn the_process_that_is_killed() {
    let orders = Orders::given().expect("a test that kills starts this");
    writer::obey(&orders);
}

#[test]
fn what_was_acknowledged_is_there_after_sixty_kills() {
    storm(60);
}

#[test]
#[ignore = "the long form"]
fn what_was_acknowledged_is_there_in_five_hundred_kills() {
    let tally = storm(520);
    assert!(tally.replayed > 0 && tally.restored > 0 && tally.kills_while_opening > 0);
}
