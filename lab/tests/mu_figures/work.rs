//! Records that are put in, what is done with them then, and what that takes.

use device::Cause;
use index::{Index, Update};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use super::stage::{Stage, key};

/// What a run measured, the records' putting in left out.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Taken {
    /// Seconds of the chip.
    pub(crate) seconds: f64,
    /// Seconds that putting the records in took before.
    pub(crate) growing: f64,
    /// Pages read an operation.
    pub(crate) reads: f64,
    /// Pages programmed an operation.
    pub(crate) programs: f64,
    /// Of these, what collection did.
    pub(crate) moved: f64,
    /// Pages that live at the end.
    pub(crate) live: u64,
    /// Levels.
    pub(crate) height: u32,
}

/// Which keys operations are about.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Keys {
    /// Any that is there, one as likely as the other; an update deletes one, the next one puts a
    /// new one in, so that the tree keeps its size.
    Random,
    /// By Zipf's law of exponent 1, the likeliest ones strewn over all; an update overwrites.
    Zipf,
}

/// What is done with records once they are in, evenly mixed.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Work {
    pub(crate) records: u32,
    pub(crate) lookups: u32,
    pub(crate) updates: u32,
    pub(crate) keys: Keys,
}

impl Work {
    /// Lookups and updates.
    pub(crate) fn operations(&self) -> u32 {
        self.lookups + self.updates
    }
}

/// A tree whose records are in.
struct Player<'i> {
    index: &'i mut dyn Index,
    /// The numbers of the keys that are there.
    present: Vec<u32>,
    next: u32,
    random: ChaCha8Rng,
    keys: Keys,
    updates: u32,
}

impl Player<'_> {
    fn place(&mut self) -> usize {
        let count = self.present.len();
        match self.keys {
            Keys::Random => self.random.random_range(0..count),
            // Its rank is below r with a chance of ln r / ln n.
            Keys::Zipf => {
                let part: f64 = self.random.random();
                ((count as f64).powf(part) as usize).saturating_sub(1).min(count - 1)
            }
        }
    }

    /// False if the device is too small for it.
    fn put(&mut self, number: u32) -> bool {
        let (key, value) = (key(number), number.to_le_bytes());
        match self.index.update(&[Update::Put { key: &key, value: &value }]) {
            Err(index::Error::Store(store::Error::Full { .. })) => false,
            other => {
                other.unwrap();
                true
            }
        }
    }

    fn look_up(&mut self) {
        let place = self.place();
        let found = self.index.get(&key(self.present[place]), 0, &mut [0; 4]).unwrap();
        assert_eq!(found, Some(4));
    }

    /// False if the device is too small for it.
    fn update(&mut self) -> bool {
        self.updates += 1;
        match self.keys {
            Keys::Zipf => {
                let place = self.place();
                self.put(self.present[place])
            }
            Keys::Random if self.updates % 2 == 1 => {
                let place = self.place();
                let key = key(self.present.swap_remove(place));
                self.index.update(&[Update::Delete { key: &key }]).unwrap();
                true
            }
            Keys::Random => {
                self.present.push(self.next);
                self.next += 1;
                self.put(self.next - 1)
            }
        }
    }

    fn put_all(&mut self) -> bool {
        (0..self.present.len()).all(|place| self.put(self.present[place]))
    }

    fn play(&mut self, work: &Work) -> bool {
        let (all, lookups) = (u64::from(work.operations()), u64::from(work.lookups));
        (0..all).all(|number| {
            let is_lookup = (number + 1) * lookups / all > number * lookups / all;
            if is_lookup {
                self.look_up();
            }
            is_lookup || self.update()
        })
    }
}

/// Does the work on an empty tree; `None` if its device is too small.
pub(crate) fn run_on(index: &mut dyn Index, work: &Work, seed: u64) -> Option<Taken> {
    // Other keys for every seed.
    let first = (seed as u32).wrapping_mul(100_000_000);
    let present = (first..first + work.records).collect();
    let random = ChaCha8Rng::seed_from_u64(seed);
    let next = first + work.records;
    let mut player = Player { index, present, next, random, keys: work.keys, updates: 0 };
    if !player.put_all() {
        return None;
    }
    let tally = |index: &dyn Index| {
        let meter = index.meter().unwrap();
        let total = meter.total();
        let moved = meter.tally(Cause::Reclamation).page_programs;
        (meter.time_ns(), [total.page_reads, total.page_programs, moved])
    };
    let before = tally(player.index);
    if !player.play(work) {
        return None;
    }
    let after = tally(player.index);
    let each = [0, 1, 2].map(|it| (after.1[it] - before.1[it]) as f64);
    let [reads, programs, moved] = each.map(|count| count / f64::from(work.operations()));
    let statistics = player.index.statistics();
    Some(Taken {
        growing: before.0 as f64 / 1e9,
        seconds: (after.0 - before.0) as f64 / 1e9,
        reads,
        programs,
        moved,
        live: statistics.live_pages,
        height: statistics.height,
    })
}

/// The same on a stage's tree.
pub(crate) fn run_work(stage: &Stage, work: &Work, seed: u64) -> Option<Taken> {
    run_on(&mut *stage.make().0, work, seed)
}

/// Does all of `tasks` with as many threads as there are processors; outcomes are in their order.
pub(crate) fn each<T: Sync, R: Send>(tasks: &[T], work: impl Fn(&T) -> R + Sync) -> Vec<R> {
    let left = std::sync::Mutex::new(tasks.iter().enumerate());
    let done = std::sync::Mutex::new(Vec::new());
    let processors = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| {
        for _ in 0..processors.min(tasks.len()) {
            scope.spawn(|| {
                loop {
                    let next = left.lock().unwrap().next();
                    let Some((place, task)) = next else { break };
                    let outcome = work(task);
                    done.lock().unwrap().push((place, outcome));
                }
            });
        }
    });
    let mut done = done.into_inner().unwrap();
    done.sort_by_key(|(place, _)| *place);
    done.into_iter().map(|(_, outcome)| outcome).collect()
}
