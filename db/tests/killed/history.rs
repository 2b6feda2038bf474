//! What the process that is killed writes: a history that a seed and a number alone decide, so that
//! the process and who judges it agree about every step without a word.

use std::collections::BTreeMap;

use flashtree::{Durability, OpenOptions, Options};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

/// Keys that there can be.
const KEYS: u32 = 1500;

/// Bytes that a file can grow to: enough for the images that checkpoints with names keep, and few
/// enough to be copied after every kill.
const CAPACITY: u64 = 64 << 20;

/// What a database holds.
pub(crate) type Entries = BTreeMap<Vec<u8>, Vec<u8>>;

/// A change of one entry: its key, and its new value, if it is to have one.
pub(crate) type Change = (Vec<u8>, Option<Vec<u8>>);

/// What a process does beside the updates, once one of them is acknowledged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Beside {
    Nothing,
    /// `sync`.
    Sync,
    /// A named checkpoint is made, or forgotten if it is there.
    Checkpoint(&'static str),
}

/// A history on a database of its own.
#[derive(Clone, Copy, Debug)]
pub(crate) struct History {
    pub(crate) seed: u64,
}

impl History {
    pub(crate) fn random(self, purpose: u64) -> ChaCha8Rng {
        ChaCha8Rng::seed_from_u64(self.seed ^ purpose.wrapping_mul(0x9E37_79B9_7F4A_7C15))
    }

    /// The command that kills writers of this history.
    pub(crate) fn command(self) -> String {
        format!(
            "FLASHTREE_SEED={} cargo test -p flashtree --test killed after_sixty_kills",
            self.seed
        )
    }

    /// What is acknowledged as lasting.
    pub(crate) fn durability(self) -> Durability {
        use Durability::{Batch, Checkpoint, Every};
        [Every, Batch, Every, Batch, Checkpoint][self.seed as usize % 5]
    }

    /// Small enough for many checkpoints, for pages that leave the cache between them, and for
    /// nodes that share sectors or take several.
    pub(crate) fn options(self) -> Options {
        let mut random = self.random(u64::MAX);
        Options::new()
            .tree("b-plus")
            .page_bytes(4096 << random.random_range(0..3) >> random.random_range(0..3))
            .memory_total(self.memory_total())
            .capacity(CAPACITY)
            .journal_bytes(256 << 10 << random.random_range(0..3))
            .durability(self.durability())
    }

    pub(crate) fn open_options(self) -> OpenOptions {
        OpenOptions::new().memory_total(self.memory_total())
    }

    fn memory_total(self) -> u64 {
        192 << 10 << self.random(u64::MAX - 1).random_range(0..3)
    }

    /// The changes of step `number`, which are one batch.
    pub(crate) fn step(self, number: u64) -> Vec<Change> {
        let mut random = self.random(number);
        let changes = if random.random_ratio(1, 4) { random.random_range(2..12) } else { 1 };
        (0..changes).map(|_| change(&mut random)).collect()
    }

    /// What follows step `number`.
    pub(crate) fn beside(self, number: u64) -> Beside {
        let mut random = self.random(!number);
        match random.random_range(0..120) {
            0..6 => Beside::Sync,
            6 => Beside::Checkpoint("noon"),
            7 => Beside::Checkpoint("midnight"),
            _ => Beside::Nothing,
        }
    }
}

fn change(random: &mut ChaCha8Rng) -> Change {
    let number = random.random_range(0..KEYS);
    let key = format!("{}/{number}", &"a prefix of some length"[..number as usize % 20]);
    let value = match random.random_range(0..100) {
        0..20 => None,
        20 => Some(random.random_range(2_000..30_000)),
        _ => Some(random.random_range(0..200)),
    };
    let value = value.map(|bytes| {
        let mut value = vec![0; bytes];
        random.fill(&mut value[..]);
        value
    });
    (key.into_bytes(), value)
}

/// Makes the changes of a step.
pub(crate) fn apply(entries: &mut Entries, changes: Vec<Change>) {
    for (key, value) in changes {
        match value {
            Some(value) => entries.insert(key, value),
            None => entries.remove(&key),
        };
    }
}
