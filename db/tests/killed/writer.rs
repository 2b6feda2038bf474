//! The process that is killed, and how another one starts it, listens to it and kills it.

use std::io::{BufRead, BufReader};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use flashtree::{Batch, Database, Error};

use crate::history::{Beside, Change, History};

/// The environment variable by which the process is told what to do.
const ORDERS: &str = "FLASHTREE_TEST_WRITER";

const SIGKILL: i32 = 9;

/// How long a killed process may hold the file: the system closes what it had open when it finds
/// the time.
const PATIENCE: Duration = Duration::from_secs(30);

/// What a process is to do.
#[derive(Clone, Debug)]
pub(crate) struct Orders {
    pub(crate) seed: u64,
    /// The first step.
    pub(crate) from: u64,
    /// False if it is only to open the database.
    pub(crate) writes: bool,
    pub(crate) path: PathBuf,
}

impl Orders {
    fn text(&self) -> String {
        format!("{} {} {} {}", self.seed, self.from, self.writes, self.path.display())
    }

    fn parse(text: &str) -> Option<Self> {
        let mut words = text.splitn(4, ' ');
        let seed = words.next()?.parse().ok()?;
        let from = words.next()?.parse().ok()?;
        let writes = words.next()?.parse().ok()?;
        Some(Orders { seed, from, writes, path: words.next()?.into() })
    }

    /// What this process was told.
    pub(crate) fn given() -> Option<Self> {
        Orders::parse(&std::env::var(ORDERS).ok()?)
    }
}

/// What the process says, a line each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Said {
    /// It opened or made the database.
    Opened,
    /// So many steps returned.
    Acknowledged(u64),
    /// So many steps came before a sync or a checkpoint that returned.
    Synced(u64),
}

impl Said {
    fn parse(line: &str) -> Option<Self> {
        let mut words = line.trim().split(' ');
        let word = words.next()?;
        let mut number = || words.next()?.parse().ok();
        match word {
            "opened" => Some(Said::Opened),
            "acknowledged" => Some(Said::Acknowledged(number()?)),
            "synced" => Some(Said::Synced(number()?)),
            _ => None,
        }
    }
}

/// Does what it is told, until it is killed.
pub(crate) fn obey(orders: &Orders) {
    // The line that the harness began ends here.
    println!();
    let history = History { seed: orders.seed };
    let mut database = if orders.path.exists() {
        open(&orders.path, history)
    } else {
        Database::create(&orders.path, &history.options()).unwrap()
    };
    println!("opened");
    if !orders.writes {
        std::thread::sleep(PATIENCE);
        return;
    }
    for number in orders.from.. {
        step(&mut database, history, number);
    }
}

fn step(database: &mut Database<'_>, history: History, number: u64) {
    write(database, &history.step(number));
    println!("acknowledged {}", number + 1);
    match history.beside(number) {
        Beside::Nothing => return,
        Beside::Sync => database.sync().unwrap(),
        Beside::Checkpoint(name) => {
            if database.checkpoints().unwrap().iter().any(|kept| kept.name == name) {
                database.forget(name).unwrap();
            } else {
                database.checkpoint(name).unwrap();
            }
        }
    }
    println!("synced {}", number + 1);
}

/// Makes the changes of a step.
pub(crate) fn write(database: &mut Database<'_>, changes: &[Change]) {
    match changes {
        [(key, Some(value))] => database.put(key, value).unwrap(),
        [(key, None)] => database.delete(key).unwrap(),
        changes => {
            let mut batch = Batch::new();
            for (key, value) in changes {
                match value {
                    Some(value) => batch.put(key, value),
                    None => batch.delete(key),
                };
            }
            database.write_batch(&batch).unwrap();
        }
    }
}

/// Opens a database that a process had open which was killed.
pub(crate) fn open(path: &Path, history: History) -> Database<'static> {
    let start = Instant::now();
    loop {
        match Database::open(path, &history.open_options()) {
            Err(Error::InUse { .. }) if start.elapsed() < PATIENCE => {
                std::thread::sleep(Duration::from_millis(1));
            }
            other => return other.unwrap_or_else(|error| panic!("{}: {error}", path.display())),
        }
    }
}

/// A process that obeys.
pub(crate) struct Writer {
    child: Child,
    lines: BufReader<ChildStdout>,
    started: Instant,
    /// False if it only opens the database.
    pub(crate) writes: bool,
    pub(crate) opened_after: Option<Duration>,
    pub(crate) acknowledged: u64,
    pub(crate) synced: u64,
}

impl Writer {
    pub(crate) fn start(orders: &Orders) -> Self {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "the_process_that_is_killed", "--ignored", "--nocapture"])
            .env(ORDERS, orders.text())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap());
        let (acknowledged, synced) = (orders.from, orders.from);
        let started = Instant::now();
        let writes = orders.writes;
        Writer { child, lines, started, writes, opened_after: None, acknowledged, synced }
    }

    /// Waits for the next thing that the process says; false once there is no more to come.
    pub(crate) fn listen(&mut self) -> bool {
        let mut line = String::new();
        while self.lines.read_line(&mut line).unwrap() > 0 {
            // A line that was broken off says nothing.
            if let Some(said) = Said::parse(&line).filter(|_| line.ends_with('\n')) {
                match said {
                    Said::Opened => self.opened_after = Some(self.started.elapsed()),
                    Said::Acknowledged(steps) => self.acknowledged = steps,
                    Said::Synced(steps) => self.synced = steps,
                }
                return true;
            }
            line.clear();
        }
        false
    }

    /// Kills the process, and hears what it had said before.
    pub(crate) fn kill(&mut self) {
        self.child.kill().unwrap();
        while self.listen() {}
        let status = self.child.wait().unwrap();
        assert_eq!(status.signal(), Some(SIGKILL), "the process ended by itself: {status}");
    }
}
