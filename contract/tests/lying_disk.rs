//! A disk that says a write is durable which is not there, or stands elsewhere: what the journal,
//! the images and the anchors hold comes back, or an error says that it does not.
//!
//! One write of a history is lost, or goes to another place, and in the end the power is cut. The
//! last page of the journal is exempt, and what is written over it: nothing comes after it that
//! could tell. How often such a write shows is printed; that it happens breaks the contract of
//! [`Sectors`]. Pages of the tree are overwritten in place, so an older one has a good checksum:
//! where no reading tells, the check does.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test fails by panicking"
)]

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use device::{Cause, Request, Result, Sector, SectorGeometry, Sectors};
use flashtree_contract::tree::{Case, MemoryLevel, Stand, cases};
use index::registry::TREES;
use index::{Durability, Index, KeyRange, Update, Value};

const STEPS: u32 = 900;
const KEYS: u32 = 500;

/// What happens to a write.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Lie {
    /// It is not done.
    Lost,
    /// It goes so many sectors further.
    Elsewhere(u64),
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
}

struct Lying<S> {
    below: S,
    plan: Arc<Mutex<Plan>>,
}

impl<S: Sectors> Sectors for Lying<S> {
    fn geometry(&self) -> SectorGeometry {
        self.below.geometry()
    }

    fn read(&mut self, requests: &mut [Request<'_>], cause: Cause) -> Result<()> {
        self.below.read(requests, cause)
    }

    fn write(&mut self, first: Sector, from: &[u8], cause: Cause) -> Result<()> {
        let geometry = self.below.geometry();
        let (lie, stands_at) = {
            let mut plan = self.plan.lock().unwrap();
            let number = plan.writes.len();
            let lie = plan.lies.filter(|(lying, _)| *lying == number).map(|(_, lie)| lie);
            let length = from.len() as u64 / u64::from(geometry.sector_bytes());
            let stands_at = match lie {
                Some(Lie::Elsewhere(by)) => {
                    Some(Sector((first.0 + by) % (geometry.sectors() - length)))
                }
                _ => None,
            };
            plan.writes.push(Write { cause, first, stands_at });
            (lie, stands_at)
        };
        match lie {
            Some(Lie::Lost) => Ok(()),
            _ => self.below.write(stands_at.unwrap_or(first), from, cause),
        }
    }

    fn trim(&mut self, first: Sector, count: u64, cause: Cause) -> Result<()> {
        self.below.trim(first, count, cause)
    }

    fn flush(&mut self, cause: Cause) -> Result<()> {
        self.below.flush(cause)
    }
}

type Model = BTreeMap<Vec<u8>, Vec<u8>>;

fn step(index: &mut dyn Index, model: &mut Model, step: u32) -> index::Result<()> {
    let key = (step.wrapping_mul(31) % KEYS).wrapping_mul(0x9E37_79B9).to_be_bytes();
    let value = step.to_le_bytes();
    if step.is_multiple_of(5) {
        index.update(&[Update::Delete { key: &key }])?;
        model.remove(&key[..]);
    } else {
        index.update(&[Update::Put { key: &key, value: &value }])?;
        model.insert(key.to_vec(), value.to_vec());
    }
    if step.is_multiple_of(11) { index.sync() } else { Ok(()) }
}

fn read_all(index: &mut dyn Index) -> index::Result<Model> {
    let mut model = Model::new();
    let mut cursor = index.range(KeyRange::ALL)?;
    while let Some((key, value)) = cursor.next()? {
        let Value::Whole(value) = value else { panic!("no value is long") };
        model.insert(key.to_vec(), value.to_vec());
    }
    Ok(model)
}

/// What came of a lie.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Outcome {
    Right,
    Error,
    /// The check tells, whatever is read.
    Checked,
    Wrong,
}

/// What an index holds, and how many findings its check has.
fn judge(index: &mut dyn Index) -> index::Result<(Model, u32)> {
    let mut findings = 0;
    let found = read_all(index)?;
    index.check(&mut |_| findings += 1)?;
    Ok((found, findings))
}

/// Plays the history until so many steps after a lie; then, with `None`, goes on to its end, and
/// looks at what there is, else cuts the power and opens again. What came of it, and the writes
/// there were.
fn play(case: &Case, lies: Option<(usize, Lie)>, steps_left: Option<u32>) -> (Outcome, Vec<Write>) {
    let mut ground = case.ground(64 << 10);
    let plan = Arc::new(Mutex::new(Plan::default()));
    let mine = plan.clone();
    let wrap = |below| Box::new(Lying { below, plan: mine }) as Box<dyn Sectors + '_>;
    let mut index = case.index_over(&mut ground, false, wrap);
    {
        let mut plan = plan.lock().unwrap();
        plan.writes.clear();
        plan.lies = lies;
    }
    let mut model = Model::new();
    let mut is_told = false;
    let mut left = steps_left.unwrap_or(STEPS);
    for number in 1..STEPS {
        is_told |= step(&mut *index, &mut model, number).is_err();
        let has_lied = lies.is_some_and(|(lie, _)| plan.lock().unwrap().writes.len() > lie);
        if has_lied && left == 0 {
            break;
        }
        left -= u32::from(has_lied);
    }
    is_told |= index.sync().is_err();
    let open = steps_left.is_none().then(|| judge(&mut *index));
    drop(index);
    let writes = core::mem::take(&mut plan.lock().unwrap().writes);
    let reopened = || {
        let index = case.try_index_over(&mut ground, true, |below| below);
        index.and_then(|mut index| judge(&mut *index))
    };
    let found = open.unwrap_or_else(reopened);
    let outcome = match found {
        _ if is_told => Outcome::Error,
        Ok((_, findings)) if findings > 0 => Outcome::Checked,
        Ok((found, _)) if found == model => Outcome::Right,
        Ok(_) => Outcome::Wrong,
        Err(_) => Outcome::Error,
    };
    (outcome, writes)
}

fn wanted() -> impl Iterator<Item = Case> {
    let is_wanted = |case: &Case| {
        matches!(case.stand, Stand::Ram)
            && case.shape.name == "4+4"
            && case.page_bytes == 512
            && case.parameters.is_empty()
            && case.memory == MemoryLevel::Least
    };
    let all = TREES.iter().flat_map(|entry| cases(entry)).filter(is_wanted);
    all.flat_map(|case| {
        [Durability::Checkpoint, Durability::Batch, Durability::Every]
            .map(|durability| Case { durability, ..case.clone() })
    })
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
        Write { cause: Cause::Checkpoint, first, .. } if first.0 < 2 => "anchor",
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
        for number in (0..writes.len()).step_by(writes.len().div_ceil(150)) {
            let lies = [Lie::Lost, Lie::Elsewhere(1), Lie::Elsewhere(number as u64 * 37 + 5)];
            for (lie, steps_left) in lies
                .into_iter()
                .flat_map(|lie| [Some(0), Some(4), Some(25), None].map(|left| (lie, left)))
            {
                let (outcome, writes) = play(&case, Some((number, lie)), steps_left);
                let what = part_of(&writes, number);
                *outcomes.entry((what, lie == Lie::Lost, outcome)).or_insert(0) += 1;
                if outcome == Outcome::Wrong && what != LAST_PAGE {
                    let name = case.name();
                    wrong.push(format!("{name}: write {number}, {what}: {lie:?}, {steps_left:?}"));
                }
            }
        }
    }
    for ((what, is_lost, outcome), times) in &outcomes {
        let lie = if *is_lost { "lost" } else { "elsewhere" };
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
