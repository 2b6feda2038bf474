//! What a file system does with its tree: files are created, used and deleted.
//!
//! Of its two traces of ReiserFS the paper tells the counts of lookups, updates and records, and
//! what ran: a kernel's source that is unpacked, compiled, cleaned and removed, and Postmark. So
//! the tree is empty before and after. ReiserFS has about three items a file side by side: stat
//! data and two of the body, which for Postmark's records is its 100,000 files, as published. An
//! item that is in use is overwritten: that takes what is left of the updates.
//!
//! As in ReiserFS a new file gets the lowest number that is free, and keys follow the numbers; what
//! is compiled stands beside its source. The paper doesn't say how many files are sources: here two
//! of three are. Lookups are spread evenly, over all that is there.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use index::{Index, Update};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use super::stage;
use super::work::{Work, put};

/// Items of a file.
const ITEMS: u32 = 3;

/// What becomes of files.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Life {
    /// Sources are unpacked and compiled; what was compiled is deleted, and then the sources are.
    Kernel,
    /// Files are created, then some are created, appended to and deleted in turn, at random; then
    /// all are deleted.
    Postmark,
}

/// Files, and how their lookups are counted.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Files {
    pub(crate) life: Life,
    /// True to give each item a key at random, and not one behind the other.
    pub(crate) scattered: bool,
    /// One lookup is made for so many, and counts for them: without a cache, lookups cost by the
    /// tree's height alone, and change nothing.
    pub(crate) lookup: u32,
}

#[derive(Clone, Copy, Debug)]
enum Step {
    Create(u32),
    /// Overwrites so many items of a file.
    Use(u32, u32),
    Delete(u32),
}

impl Step {
    fn updates(self) -> u32 {
        match self {
            Step::Create(_) | Step::Delete(_) => ITEMS,
            Step::Use(_, items) => items,
        }
    }
}

/// The steps of a kernel's `files` with `uses` overwrites, spread evenly over the file at hand.
fn kernel(files: u32, uses: u32) -> Vec<Step> {
    let sources = files - files / 3;
    let created = (0..files).map(Step::Create);
    let deleted = (sources..files).chain(0..sources).map(Step::Delete);
    let all = u64::from(2 * files);
    let until = |number: u64| (number * u64::from(uses) / all) as u32;
    let mut steps = Vec::new();
    for (step, number) in created.chain(deleted).zip(0..) {
        let uses = until(number + 1) - until(number);
        match step {
            Step::Delete(file) => steps.extend([Step::Use(file, uses), step]),
            Step::Create(file) | Step::Use(file, _) => {
                steps.extend([step, Step::Use(file, uses)]);
            }
        }
    }
    steps
}

/// The steps of Postmark over `files` with so many updates between the first and the last. By its
/// default as many files are created as deleted, and as many appended to as read: that is two items
/// for each of the two.
fn postmark(files: u32, updates: u32, random: &mut ChaCha8Rng) -> Vec<Step> {
    const TURN: u32 = 2 * ITEMS + 2;
    let mut steps: Vec<_> = (0..files).map(Step::Create).collect();
    let mut present: Vec<_> = (0..files).collect();
    let mut free = BinaryHeap::from([Reverse(files)]);
    for _ in 0..updates / TURN {
        let Some(Reverse(new)) = free.pop() else { break };
        present.push(new);
        let appended = present[random.random_range(0..present.len())];
        let deleted = present.swap_remove(random.random_range(0..present.len()));
        free.push(Reverse(deleted));
        steps.extend([Step::Create(new), Step::Use(appended, 2), Step::Delete(deleted)]);
    }
    steps.extend((0..updates % TURN).map(|_| Step::Use(present[0], 1)));
    steps.extend(present.into_iter().map(Step::Delete));
    steps
}

/// Files in a tree.
struct Player<'i> {
    index: &'i mut dyn Index,
    files: Files,
    sources: u32,
    /// Files that are there, and at which place of this list each is.
    present: Vec<u32>,
    places: Vec<usize>,
    random: ChaCha8Rng,
}

impl Player<'_> {
    fn key(&self, file: u32, item: u32) -> [u8; 4] {
        let place = match self.files.life {
            Life::Kernel if !self.files.scattered && file < self.sources => 2 * file,
            // Beside every other source.
            Life::Kernel if !self.files.scattered => 4 * (file - self.sources) + 1,
            Life::Kernel | Life::Postmark => file,
        };
        let number = 4 * place + item;
        if self.files.scattered { stage::key(number) } else { number.to_be_bytes() }
    }

    fn put(&mut self, file: u32, item: u32, value: u32) -> bool {
        let key = self.key(file, item);
        put(self.index, key, value)
    }

    /// False if the device is too small for it.
    fn make(&mut self, step: Step) -> bool {
        match step {
            Step::Create(file) => {
                self.places.resize(self.places.len().max(file as usize + 1), 0);
                self.places[file as usize] = self.present.len();
                self.present.push(file);
                (0..ITEMS).all(|item| self.put(file, item, 0))
            }
            Step::Use(file, items) => {
                (0..items).all(|number| self.put(file, number % ITEMS, number + 1))
            }
            Step::Delete(file) => {
                let place = self.places[file as usize];
                self.present.swap_remove(place);
                if let Some(moved) = self.present.get(place) {
                    self.places[*moved as usize] = place;
                }
                for item in 0..ITEMS {
                    let key = self.key(file, item);
                    self.index.update(&[Update::Delete { key: &key }]).unwrap();
                }
                true
            }
        }
    }

    fn look_up(&mut self) {
        let file = self.present[self.random.random_range(0..self.present.len())];
        let item = self.random.random_range(0..ITEMS);
        let key = self.key(file, item);
        assert_eq!(self.index.get(&key, 0, &mut [0; 4]).unwrap(), Some(4));
    }
}

/// Does the work on an empty tree; returns pages that live and levels where files were most, or
/// `None` if its device is too small.
pub(crate) fn play(
    index: &mut dyn Index,
    work: &Work,
    files: &Files,
    seed: u64,
) -> Option<(u64, u32)> {
    let mut random = ChaCha8Rng::seed_from_u64(seed);
    let count = work.records / ITEMS;
    let between = work.updates - 2 * ITEMS * count;
    let steps = match files.life {
        Life::Kernel => kernel(count, between),
        Life::Postmark => postmark(count, between, &mut random),
    };
    let all: u64 = steps.iter().map(|step| u64::from(step.updates())).sum();
    assert_eq!(all, u64::from(work.updates));
    let (present, places, sources) = (Vec::new(), Vec::new(), count - count / 3);
    let mut player = Player { index, files: *files, sources, present, places, random };
    let lookups = u64::from(work.lookups / files.lookup);
    let (mut made, mut looked_up, mut most) = (0, 0, (0, 0));
    for step in steps {
        made += u64::from(step.updates());
        let is_delete = matches!(step, Step::Delete(_));
        if !is_delete && !player.make(step) {
            return None;
        }
        // Before the last file is gone.
        while looked_up < lookups * made / all {
            player.look_up();
            looked_up += 1;
        }
        if is_delete {
            player.make(step);
        }
        if most == (0, 0) && player.present.len() == count as usize {
            let statistics = player.index.statistics();
            most = (statistics.live_pages, statistics.height);
        }
    }
    assert!(player.present.is_empty());
    Some(most)
}
