//! A disk that says a write is durable which is not there, or stands elsewhere: what the journal,
//! the images and the superblocks hold comes back, or an error says that it does not.
//!
//! One write of a history is lost, goes to another place, or gives way to what was there before;
//! and in the end the power is cut, or the index closed, if nothing else makes it last. The last
//! page of the journal is exempt, and what is written over it: nothing comes after it that could
//! tell. How often such a write shows is printed; that it happens breaks the contract of
//! [`Sectors`]. Pages of the tree are overwritten in place, so an older one has a good checksum:
//! where no reading tells, the check does.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test fails by panicking"
)]

mod lies;

use contract::share;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use contract::tree::{Case, MemoryLevel, Stand, Storage, cases};
use device::{Cause, Request, Result, Sector, SectorGeometry, Sectors};
use flashtree_trees::TREES;
use index::Durability;
use lies::{History, Model, Outcome, judge};

const STEPS: u32 = 900;
const KEYS: u32 = 500;

/// What happens to a write.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Lie {
    /// It is not done.
    Lost,
    /// It goes so many sectors further.
    Elsewhere(u64),
    /// It is done, and later what was there before is there again.
    Stale,
}

impl Lie {
    fn name(self) -> &'static str {
        match self {
            Lie::Lost => "lost",
            Lie::Elsewhere(_) => "elsewhere",
            Lie::Stale => "stale",
        }
    }
}

/// A write: what for, and where.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Write {
    cause: Cause,
    first: Sector,
    /// Where it stands instead, if elsewhere.
    stands_at: Option<Sector>,
}

#[derive(Default)]
struct Plan {
    writes: Vec<Write>,
    /// The write that is not what it is said to be, counted from 0.
    lies: Option<(usize, Lie)>,
    /// What sectors held that are to become stale, if they were not written since.
    before: BTreeMap<u64, Vec<u8>>,
    /// True if they are to become so now.
    is_time: bool,
}

struct Lying<S> {
    below: S,
    plan: Arc<Mutex<Plan>>,
}

impl<S: Sectors> Lying<S> {
    /// Keeps what `count` sectors from `first` on hold.
    fn keep(&mut self, first: Sector, count: u64) -> Result<()> {
        for sector in first.0..first.0 + count {
            let mut old = vec![0; self.below.geometry().sector_bytes() as usize];
            let read = Request { first: Sector(sector), offset: 0, into: &mut old };
            self.below.read(&mut [read], Cause::Recovery)?;
            self.plan.lock().unwrap().before.insert(sector, old);
        }
        Ok(())
    }

    /// Brings back what is stale, if it is time.
    fn become_stale(&mut self) -> Result<()> {
        let before = {
            let mut plan = self.plan.lock().unwrap();
            if plan.is_time { core::mem::take(&mut plan.before) } else { BTreeMap::new() }
        };
        before
            .iter()
            .try_for_each(|(sector, old)| self.below.write(Sector(*sector), old, Cause::Recovery))
    }
}

impl<S: Sectors> Sectors for Lying<S> {
    fn geometry(&self) -> SectorGeometry {
        self.below.geometry()
    }

    fn read(&mut self, requests: &mut [Request<'_>], cause: Cause) -> Result<()> {
        self.become_stale()?;
        self.below.read(requests, cause)
    }

    fn write(&mut self, first: Sector, from: &[u8], cause: Cause) -> Result<()> {
        self.become_stale()?;
        let geometry = self.below.geometry();
        let length = from.len() as u64 / u64::from(geometry.sector_bytes());
        let (lie, stands_at) = {
            let mut plan = self.plan.lock().unwrap();
            let number = plan.writes.len();
            let lie = plan.lies.filter(|(lying, _)| *lying == number).map(|(_, lie)| lie);
            let stands_at = match lie {
                Some(Lie::Elsewhere(by)) => {
                    let sectors = self.below.sectors_held().unwrap_or(geometry.sectors());
                    Some(Sector((first.0 + by) % (sectors - length)))
                }
                _ => None,
            };
            plan.writes.push(Write { cause, first, stands_at });
            plan.before.retain(|sector, _| !(first.0..first.0 + length).contains(sector));
            (lie, stands_at)
        };
        match lie {
            Some(Lie::Lost) => return Ok(()),
            Some(Lie::Stale) => self.keep(first, length)?,
            Some(Lie::Elsewhere(_)) | None => {}
        }
        self.below.write(stands_at.unwrap_or(first), from, cause)
    }

    fn trim(&mut self, first: Sector, count: u64, cause: Cause) -> Result<()> {
        self.below.trim(first, count, cause)
    }

    fn flush(&mut self, cause: Cause) -> Result<()> {
        self.below.flush(cause)
    }

    fn sectors_held(&self) -> Option<u64> {
        self.below.sectors_held()
    }

    fn resize(&mut self, sectors: u64, cause: Cause) -> Result<()> {
        self.plan.lock().unwrap().before.retain(|sector, _| *sector < sectors);
        self.below.resize(sectors, cause)
    }
}

/// Plays the history until so many steps after a lie; then, with `None`, goes on to its end, and
/// looks at what there is, else cuts the power and opens again. What came of it, and the writes
/// there were.
fn play(case: &Case, lies: Option<(usize, Lie)>, steps_left: Option<u32>) -> (Outcome, Vec<Write>) {
    // Without durability a case has a quarter of the room.
    let bytes = if case.durability == Durability::None { 256 << 10 } else { 64 << 10 };
    let mut storage = case.storage(bytes);
    let plan = Arc::new(Mutex::new(Plan::default()));
    let mine = plan.clone();
    let wrap = |below| Box::new(Lying { below, plan: mine }) as Box<dyn Sectors + '_>;
    let mut index = case.index_over(&mut storage, false, wrap);
    *plan.lock().unwrap() = Plan { lies, ..Plan::default() };
    let history = History { keys: KEYS, durability: case.durability };
    let mut model = Model::new();
    let mut is_told = false;
    let mut left = steps_left.unwrap_or(STEPS);
    for number in 1..STEPS {
        is_told |= history.step(&mut *index, &mut model, number).is_err();
        let has_lied = lies.is_some_and(|(lie, _)| plan.lock().unwrap().writes.len() > lie);
        if has_lied && left == 0 {
            break;
        }
        left -= u32::from(has_lied);
        plan.lock().unwrap().is_time |= steps_left.is_none() && left + 25 < STEPS;
    }
    let is_open = steps_left.is_none() && case.durability != Durability::None;
    is_told |= history.make_last(&mut *index).is_err();
    let made = plan.lock().unwrap().writes.len();
    let open = is_open.then(|| judge(&mut *index));
    drop(index);
    let Plan { mut writes, before, .. } = core::mem::take(&mut *plan.lock().unwrap());
    if lies.is_none() {
        // What was changed may leave a cache while it is read: a history with a lie need not get
        // so far.
        writes.truncate(made);
    }
    let Storage::Ram(disk) = &mut storage else { panic!("it stands on a disk in memory") };
    for (sector, old) in before {
        disk.write(Sector(sector), &old, Cause::Recovery).unwrap();
    }
    let reopened = || {
        let index = case.try_index_over(&mut storage, true, |below| below);
        index.and_then(|mut index| judge(&mut *index))
    };
    (Outcome::of(open.unwrap_or_else(reopened), &model, is_told), writes)
}

fn wanted() -> impl Iterator<Item = Case> {
    let is_wanted = |case: &Case| {
        matches!(case.stand, Stand::Ram | Stand::Growing)
            && case.shape.name == "4+4"
            && case.page_bytes == 512
            && case.parameters.is_empty()
            && case.memory == MemoryLevel::Least
    };
    let all = TREES.iter().flat_map(|entry| cases(entry)).filter(is_wanted);
    all.flat_map(|case| Durability::ALL.map(|durability| Case { durability, ..case.clone() }))
}

const LAST_PAGE: &str = "the journal's last page";
const TREE: &str = "page of the tree";

/// What write `number` of `writes` was for.
fn part_of(writes: &[Write], number: usize) -> &'static str {
    let last = writes.iter().rposition(|write| write.cause == Cause::Journal);
    let hit = writes[number].stands_at;
    match writes[number] {
        // A write of this case is a sector.
        _ if hit.is_some() && hit == last.map(|last| writes[last].first) => LAST_PAGE,
        Write { cause: Cause::Journal, .. } if last == Some(number) => LAST_PAGE,
        Write { cause: Cause::Journal, .. } => "journal",
        Write { cause: Cause::Checkpoint, first, .. } if first.0 < 2 => "superblock",
        Write { cause: Cause::Checkpoint, .. } => "image",
        Write { .. } => TREE,
    }
}

#[test]
fn a_write_that_is_not_there_or_stands_elsewhere_is_told_by_what_recovers() {
    let mut outcomes = BTreeMap::new();
    let mut wrong = Vec::new();
    for case in wanted() {
        let (outcome, writes) = play(&case, None, None);
        assert_eq!(outcome, Outcome::Right, "{}", case.name());
        for number in (0..writes.len()).step_by(writes.len().div_ceil(150) * share(13)) {
            let far = Lie::Elsewhere(number as u64 * 37 + 5);
            let lies = [Lie::Lost, Lie::Elsewhere(1), far, Lie::Stale];
            for (lie, steps_left) in lies
                .into_iter()
                .flat_map(|lie| [Some(0), Some(4), Some(25), None].map(|left| (lie, left)))
            {
                let (outcome, writes) = play(&case, Some((number, lie)), steps_left);
                let what = part_of(&writes, number);
                *outcomes.entry((what, lie.name(), outcome)).or_insert(0) += 1;
                if outcome == Outcome::Wrong && what != LAST_PAGE {
                    let name = case.name();
                    wrong.push(format!("{name}: write {number}, {what}: {lie:?}, {steps_left:?}"));
                }
            }
        }
    }
    for ((what, lie, outcome), times) in &outcomes {
        println!("{what}, {lie}: {outcome:?} {times}");
    }
    assert!(wrong.is_empty(), "{} of {outcomes:?}\n{}", wrong.len(), wrong.join("\n"));
    let times = |wanted| -> i32 {
        let those = outcomes.iter().filter(|((.., outcome), _)| *outcome == wanted);
        those.map(|(_, times)| times).sum()
    };
    let told = (times(Outcome::Error), times(Outcome::Checked));
    assert!(told.0 > 100 && told.1 > 100, "{outcomes:?}");
}
