//! A process that writes is killed with SIGKILL at random moments. After every kill a copy of what
//! it left is opened, checked and compared: each update that returned is there, under `checkpoint`
//! each one before the last sync; and of what came later a beginning, batch by batch.
//!
//! The long form: `cargo test -p flashtree --test killed -- --ignored --nocapture
//! in_five_hundred_kills`. `FLASHTREE_KILLS` asks for another number, and `FLASHTREE_SEED` begins
//! with another history. The moments of the kills are the system's: so a failure keeps the file
//! that was left, and prints the command that judges it again.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test fails by panicking"
)]

mod history;
mod left;
mod writer;

use std::fmt;
use std::path::PathBuf;
use std::thread::sleep;
use std::time::Duration;

use flashtree::{Database, Durability};
use history::History;
use left::Left;
use rand::RngExt;
use rand_chacha::ChaCha8Rng;
use tempfile::TempDir;
use writer::{Orders, Writer};

/// Kills that a database goes through before the next one is made.
const KILLS_A_DATABASE: u64 = 20;

/// What happened.
#[derive(Clone, Copy, Debug, Default)]
struct Tally {
    /// Kills after which what was left was right, by durability.
    every: u64,
    batch: u64,
    checkpoint: u64,
    while_making: u64,
    while_opening: u64,
    /// Steps that had to be there, and steps beyond.
    steps: u64,
    beyond: u64,
    /// Openings that put images back, and that replayed a journal; and how much.
    with_images: u64,
    with_journal: u64,
    restored: u64,
    replayed: u64,
}

impl Tally {
    /// Kills survived under the durabilities that promise something for updates.
    fn survived(&self) -> u64 {
        self.every + self.batch
    }
}

impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Tally { every, batch, checkpoint, .. } = self;
        writeln!(f, "kills survived: {}, {every} under every, {batch} under batch", every + batch)?;
        writeln!(f, "  and under checkpoint: {checkpoint}")?;
        writeln!(f, "  while the database was made: {}", self.while_making)?;
        writeln!(f, "  while it was opened: {}", self.while_opening)?;
        writeln!(f, "batches that had to be there: {}, beyond: {}", self.steps, self.beyond)?;
        writeln!(f, "openings that put pages back: {}, {}", self.with_images, self.restored)?;
        writeln!(f, "openings that replayed updates: {}, {}", self.with_journal, self.replayed)
    }
}

/// A database whose writers are killed.
struct Victim {
    left: Left,
    folder: TempDir,
    random: ChaCha8Rng,
    /// How long an opening took.
    opening: Duration,
}

impl Drop for Victim {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.folder.disable_cleanup(true);
            let (history, left) = (self.left.history, &self.left);
            let durability = history.durability();
            eprintln!("under {durability}; judge what was left again with\n  {}", left.command());
            eprintln!("and kill writers of its history with\n  {}", history.command());
        }
    }
}

impl Victim {
    fn new(seed: u64) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let history = History { seed };
        let path = folder.path().join("victim.db");
        Victim {
            left: Left { history, least: 0, most: 0, path },
            folder,
            random: history.random(u64::MAX - 2),
            opening: Duration::from_millis(20),
        }
    }

    fn start(&self, writes: bool) -> Writer {
        let Left { history, least, path, .. } = &self.left;
        let path = PathBuf::clone(path);
        Writer::start(&Orders { seed: history.seed, from: *least, writes, path })
    }

    /// Starts a writer and kills it at some moment; judges what it leaves.
    fn round(&mut self, tally: &mut Tally) {
        let mut writer = self.start(true);
        let early = if self.left.path.exists() { 6 } else { 2 };
        if self.random.random_ratio(1, early) {
            // At a moment while it starts, makes or opens.
            sleep(self.opening.mul_f64(self.random.random_range(0.0..1.2)));
        } else {
            // After a number of updates, somewhere in the next.
            let durability = self.left.history.durability();
            let most = if durability == Durability::Every { 40 } else { 600 };
            let wanted = self.left.least + self.random.random_range(0..most);
            while writer.acknowledged < wanted || writer.opened_after.is_none() {
                assert!(writer.listen(), "the process ended by itself");
            }
            sleep(Duration::from_micros(self.random.random_range(0..4000)));
        }
        self.kill(&mut writer, tally);
        while self.random.random_ratio(1, 3) && self.left.path.exists() {
            let mut opener = self.start(false);
            sleep(self.opening.mul_f64(self.random.random_range(0.2..1.2)));
            self.kill(&mut opener, tally);
        }
    }

    /// Kills a process, and judges what it left.
    fn kill(&mut self, writer: &mut Writer, tally: &mut Tally) {
        let existed = self.left.path.exists();
        writer.kill();
        match writer.opened_after {
            Some(after) => self.opening = after,
            None if existed => tally.while_opening += 1,
            None => tally.while_making += 1,
        }
        let before = self.left.least;
        (self.left.least, self.left.most) = match self.left.history.durability() {
            // What was acknowledged, and perhaps the one that was under way. Under batch the system
            // has it, which was not killed.
            Durability::Every | Durability::Batch => (writer.acknowledged, writer.acknowledged + 1),
            _ => (writer.synced, writer.acknowledged + 1),
        };
        if !writer.writes {
            self.left.most = self.left.least;
        }
        if self.left.path.exists() {
            self.judge(before, tally);
        } else {
            assert_eq!(writer.opened_after, None, "the database is gone");
        }
        match self.left.history.durability() {
            Durability::Every => tally.every += 1,
            Durability::Batch => tally.batch += 1,
            _ => tally.checkpoint += 1,
        }
    }

    fn judge(&mut self, before: u64, tally: &mut Tally) {
        let found = self.left.judge();
        tally.with_images += u64::from(found.recovery.restored > 0);
        tally.with_journal += u64::from(found.recovery.replayed > 0);
        tally.restored += found.recovery.restored;
        tally.replayed += found.recovery.replayed;
        tally.steps += self.left.least - before;
        tally.beyond += found.steps - self.left.least;
        // The next process goes on from there, and finds just that.
        self.left.least = found.steps;
    }
}

/// Kills writers of one database after the other until `kills` kills were survived.
fn storm(kills: u64) -> Tally {
    let number = |name| std::env::var(name).ok().map(|text| text.parse::<u64>().unwrap());
    let kills = number("FLASHTREE_KILLS").unwrap_or(kills);
    let first = number("FLASHTREE_SEED").unwrap_or(1);
    let mut tally = Tally::default();
    for seed in first.. {
        let mut victim = Victim::new(seed);
        let all = |tally: &Tally| tally.survived() + tally.checkpoint;
        let end = all(&tally) + KILLS_A_DATABASE;
        while all(&tally) < end && tally.survived() < kills {
            victim.round(&mut tally);
        }
        if tally.survived() >= kills {
            break;
        }
    }
    println!("{tally}");
    assert!(tally.survived() >= kills && tally.steps > kills, "{tally}");
    tally
}

#[test]
#[ignore = "it is the process that the others kill"]
fn the_process_that_is_killed() {
    let orders = Orders::given().expect("a test that kills starts this");
    writer::obey(&orders);
}

#[test]
#[ignore = "it judges what a failure left"]
fn what_was_left_is_judged_again() {
    let left = Left::given().expect("a failure prints what is to be given");
    let found = left.judge();
    println!("{} steps are there, of {} to {}", found.steps, left.least, left.most);
}

#[test]
fn what_is_lost_or_half_there_is_found() {
    let folder = tempfile::tempdir().unwrap();
    let (history, path) = (History { seed: 1 }, folder.path().join("left.db"));
    let mut database = Database::create(&path, &history.options()).unwrap();
    let mut steps = 0..;
    for step in steps.by_ref().take(200) {
        writer::write(&mut database, &history.step(step));
    }
    database.close().unwrap();
    let left = |least, most| Left { history, least, most, path: path.clone() };
    let is_found_wrong = |left: Left| std::panic::catch_unwind(|| left.judge().steps).is_err();
    assert_eq!(left(150, 250).judge().steps, 200);
    assert!(is_found_wrong(left(201, 250)), "an update is lost");
    assert!(is_found_wrong(left(150, 199)), "an update comes from nowhere");
    let batch = steps.map(|step| history.step(step)).find(|changes| changes.len() > 3).unwrap();
    let mut database = writer::open(&path, history);
    writer::write(&mut database, &batch[..2]);
    database.close().unwrap();
    assert!(is_found_wrong(left(150, 250)), "half a batch is there");
}

#[test]
fn what_was_acknowledged_is_there_after_sixty_kills() {
    storm(60);
}

#[test]
#[ignore = "the long form"]
fn what_was_acknowledged_is_there_in_five_hundred_kills() {
    let tally = storm(520);
    assert!(tally.with_images > 0 && tally.with_journal > 0, "{tally}");
    assert!(tally.while_opening > 0 && tally.while_making > 0 && tally.every > 0, "{tally}");
}
