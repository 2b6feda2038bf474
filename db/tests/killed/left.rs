//! What a killed process left: it is copied, and the copy is opened and compared with the history.

use std::collections::BTreeSet;
use std::fmt;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use flashtree::RecoveryStatistics;

use crate::history::{Entries, History, apply};
use crate::writer;

/// The environment variable that names what is to be judged again.
const LEFT: &str = "FLASHTREE_LEFT";

/// A file that a killed process left, and which states it may hold: those after `least` to `most`
/// steps of the history.
#[derive(Clone, Debug)]
pub(crate) struct Left {
    pub(crate) history: History,
    pub(crate) least: u64,
    pub(crate) most: u64,
    pub(crate) path: PathBuf,
}

/// What was found.
pub(crate) struct Found {
    pub(crate) steps: u64,
    pub(crate) recovery: RecoveryStatistics,
}

impl fmt::Display for Left {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {} {} {}", self.history.seed, self.least, self.most, self.path.display())
    }
}

impl Left {
    /// What is to be judged again.
    pub(crate) fn given() -> Option<Self> {
        let text = std::env::var(LEFT).ok()?;
        let mut words = text.splitn(4, ' ');
        let mut number = || words.next()?.parse().ok();
        let (seed, least, most) = (number()?, number()?, number()?);
        let history = History { seed };
        Some(Left { history, least, most, path: words.next()?.into() })
    }

    /// The command that judges it again.
    pub(crate) fn command(&self) -> String {
        format!(
            "{LEFT}='{self}' cargo test -p flashtree --test killed -- --ignored \
             what_was_left_is_judged_again"
        )
    }

    /// Opens a copy, checks it, and finds the state of the history that it holds. Fails if there is
    /// none among those that there may be: then an update is lost, or half a batch is there.
    pub(crate) fn judge(&self) -> Found {
        let folder = tempfile::tempdir().unwrap();
        let copy = folder.path().join("copy.db");
        copy_file(&self.path, &copy);
        let database = writer::open(&copy, self.history);
        assert_eq!(database.check().unwrap(), Vec::<String>::new());
        let found: Entries = database.all().unwrap().into_iter().map(Result::unwrap).collect();
        let recovery = database.stats().unwrap().recovery;
        database.close().unwrap();
        Found { steps: self.find(&found), recovery }
    }

    /// How many steps it takes to come to what was found.
    fn find(&self, found: &Entries) -> u64 {
        let mut entries = Entries::new();
        for step in 0..self.least {
            apply(&mut entries, self.history.step(step));
        }
        let differs = |entries: &Entries, key: &Vec<u8>| entries.get(key) != found.get(key);
        let keys = entries.keys().chain(found.keys());
        let mut different: BTreeSet<Vec<u8>> =
            keys.filter(|key| differs(&entries, key)).cloned().collect();
        let mut steps = self.least;
        while !different.is_empty() {
            assert!(
                steps < self.most,
                "no state after {} to {} steps: {} keys differ from the last, the first is {}",
                self.least,
                self.most,
                different.len(),
                different.first().unwrap().escape_ascii(),
            );
            let changes = self.history.step(steps);
            let keys: Vec<_> = changes.iter().map(|(key, _)| key.clone()).collect();
            apply(&mut entries, changes);
            steps += 1;
            for key in keys {
                match differs(&entries, &key) {
                    true => different.insert(key),
                    false => different.remove(&key),
                };
            }
        }
        steps
    }
}

/// Copies a file, once its killed owner is gone for good; holes stay holes.
fn copy_file(from: &Path, to: &Path) {
    let from = File::open(from).unwrap();
    from.lock().unwrap();
    let to = File::create(to).unwrap();
    let length = from.metadata().unwrap().len();
    to.set_len(length).unwrap();
    let mut buffer = vec![0; 256 << 10];
    for at in (0..length).step_by(buffer.len()) {
        let most = buffer.len().min((length - at) as usize);
        let piece = &mut buffer[..most];
        from.read_exact_at(piece, at).unwrap();
        if piece.iter().any(|byte| *byte != 0) {
            to.write_all_at(piece, at).unwrap();
        }
    }
}
