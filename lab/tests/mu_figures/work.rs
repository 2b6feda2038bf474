//! Records that are put in, what is done with them then, and what that takes.

use device::Cause;
use index::{Index, Update};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use super::files::{self, Files};
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
    /// Pages that live at the end; of files, where most were.
    pub(crate) live: u64,
    /// Levels then.
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
    /// Those of files that are created, used and deleted. `records` is how many there are at the
    /// most: the tree is empty before and after, and all of it is measured.
    Files(Files),
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
        if self.keys != Keys::Zipf {
            return self.random.random_range(0..count);
        }
        // Its rank is below r with a chance of ln r / ln n.
        let part: f64 = self.random.random();
        ((count as f64).powf(part) as usize).saturating_sub(1).min(count - 1)
    }

    fn put(&mut self, number: u32) -> bool {
        put(self.index, key(number), number)
    }

    fn look_up(&mut self) {
        let place = self.place();
        let found = self.index.get(&key(self.present[place]), 0, &mut [0; 4]).unwrap();
        assert_eq!(found, Some(4));
    }

    /// False if the device is too small for it.
    fn update(&mut self) -> bool {
        self.updates += 1;
        if self.keys == Keys::Zipf {
            let place = self.place();
            return self.put(self.present[place]);
        }
        if self.updates % 2 == 1 {
            let place = self.place();
            let key = key(self.present.swap_remove(place));
            self.index.update(&[Update::Delete { key: &key }]).unwrap();
            return true;
        }
        self.present.push(self.next);
        self.next += 1;
        self.put(self.next - 1)
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

/// False if the device is too small for it.
pub(crate) fn put(index: &mut dyn Index, key: [u8; 4], value: u32) -> bool {
    match index.update(&[Update::Put { key: &key, value: &value.to_le_bytes() }]) {
        Err(index::Error::Store(store::Error::Full { .. })) => false,
        other => {
            other.unwrap();
            true
        }
    }
}

/// What the device did until now.
#[derive(Clone, Copy, Default)]
struct Done {
    seconds: f64,
    reads: f64,
    programs: f64,
    moved: f64,
}

impl Done {
    /// Each lookup counts `lookup` times.
    fn by(index: &dyn Index, lookup: u32) -> Done {
        let meter = index.meter().unwrap();
        let (total, looked) = (meter.total(), meter.tally(Cause::Lookup));
        let again = f64::from(lookup - 1);
        let moved = meter.tally(Cause::Reclamation).page_programs;
        Done {
            seconds: meter.time_ns() as f64 / 1e9 + again * looked.time_ns as f64 / 1e9,
            reads: total.page_reads as f64 + again * looked.page_reads as f64,
            programs: total.page_programs as f64,
            moved: moved as f64,
        }
    }
}

/// Does the work on an empty tree; `None` if its device is too small.
pub(crate) fn run_on(index: &mut dyn Index, work: &Work, seed: u64) -> Option<Taken> {
    if let Keys::Files(files) = work.keys {
        let (live, height) = files::play(index, work, &files, seed)?;
        let after = Done::by(index, files.lookup);
        return Some(Taken { live, height, ..taken(work, Done::default(), after) });
    }
    // Other keys for every seed.
    let first = (seed as u32).wrapping_mul(100_000_000);
    let present = (first..first + work.records).collect();
    let random = ChaCha8Rng::seed_from_u64(seed);
    let next = first + work.records;
    let mut player = Player { index, present, next, random, keys: work.keys, updates: 0 };
    if !player.put_all() {
        return None;
    }
    let before = Done::by(player.index, 1);
    if !player.play(work) {
        return None;
    }
    let after = Done::by(player.index, 1);
    let statistics = player.index.statistics();
    let (live, height) = (statistics.live_pages, statistics.height);
    Some(Taken { live, height, ..taken(work, before, after) })
}

fn taken(work: &Work, before: Done, after: Done) -> Taken {
    let each = |of: fn(&Done) -> f64| (of(&after) - of(&before)) / f64::from(work.operations());
    Taken {
        growing: before.seconds,
        seconds: after.seconds - before.seconds,
        reads: each(|it| it.reads),
        programs: each(|it| it.programs),
        moved: each(|it| it.moved),
        ..Taken::default()
    }
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
