//! Damaged pages of raw flash, one at a time: every answer is right or an error that tells of
//! damage, never wrong, and nothing panics.
//!
//! An index is used, synced and left open. Then it is opened once for each of many pages with this
//! page alone damaged: more bits flipped than can be corrected, or some that nobody noticed, in its
//! data or its spare area. It is read, changed, and read again.
//!
//! The newest page of the tree, and that of the log's own, look as if a cut had torn them where
//! nothing of them can be read. What they alone told of may be gone then, but as after a cut: what
//! is found is what stood there after some first part of the updates. A flipped bit costs nothing.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

use std::collections::{BTreeMap, BTreeSet};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex};

use contract::nand::{Hook, Hooked, Program, Read};
use contract::torture::truth::{Bytes, Change, Event, Found, Truth};
use contract::tree::{Case, MemoryLevel, Stand, Storage, cases};
use contract::{sample, share};
use device::{Cause, Error as Refused, Medium, Page, Result};
use flashtree_trees::TREES;
use index::MediumShape;
use index::{Durability, Error, Index, KeyRange, Update, Value, Width};
use sim::SimulatedNand;

/// Keys of the index: few enough for every tree on small pages.
const KEYS: u32 = 150;

/// Updates before the checkpoint, and behind it.
const UPDATES: [u32; 2] = [400, 60];

/// Pages that are damaged in each index, at most, and ways in which each is.
const PAGES: usize = 40;
const WAYS: [Way; 4] = [Way::Unreadable, Way::Start, Way::Anywhere, Way::Spare];

/// What happens to a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    /// More of its bits flip than can be corrected.
    Unreadable,
    /// A bit of its first bytes flips unnoticed, where headers stand.
    Start,
    /// A bit of its data flips unnoticed.
    Anywhere,
    /// A bit of its spare area flips unnoticed.
    Spare,
}

/// A damaged page.
struct Damage {
    page: Page,
    way: Way,
    /// The bit that flips, wherever that is.
    bit: usize,
}

impl Hook<&mut SimulatedNand> for Damage {
    fn read(&mut self, chip: &mut &mut SimulatedNand, read: Read<'_>) -> Result<u16> {
        let Read { page, offset, into, spare, cause } = read;
        if page != self.page {
            return Read { page, offset, into, spare, cause }.on(chip);
        }
        let read = Read { page, offset, into: &mut *into, spare: &mut *spare, cause }.on(chip)?;
        let page_bytes = device::Nand::geometry(*chip).page_bytes() as usize;
        match self.way {
            Way::Unreadable => return Err(Refused::Uncorrectable { page }),
            Way::Start => flip(into, self.bit % (64 * 8), offset),
            Way::Anywhere => flip(into, self.bit % (page_bytes * 8), offset),
            Way::Spare => flip(spare, self.bit % (16 * 8), 0),
        }
        Ok(read)
    }

    fn erase(
        &mut self,
        chip: &mut &mut SimulatedNand,
        block: device::Block,
        cause: Cause,
    ) -> Result<()> {
        if device::Nand::geometry(*chip).block_of(self.page) == block {
            // It holds something else from now on.
            self.page = Page(u32::MAX);
        }
        device::Nand::erase(*chip, block, cause)
    }
}

/// Flips a bit of a page, if it is among the bytes that were read from `offset` on.
fn flip(bytes: &mut [u8], bit: usize, offset: u32) {
    let at = (bit / 8).checked_sub(offset as usize);
    if let Some(byte) = at.and_then(|at| bytes.get_mut(at)) {
        *byte ^= 1 << (bit % 8);
    }
}

/// The pages of a chip in the order in which they were programmed last, with the cause.
#[derive(Clone, Default)]
struct Programmed(Arc<Mutex<Vec<(Page, Cause)>>>);

impl Hook<&mut SimulatedNand> for Programmed {
    fn program(&mut self, chip: &mut &mut SimulatedNand, program: Program<'_>) -> Result<()> {
        let mut pages = self.0.lock().unwrap();
        pages.retain(|(page, _)| *page != program.page);
        pages.push((program.page, program.cause));
        drop(pages);
        program.on(chip)
    }

    fn erase(
        &mut self,
        chip: &mut &mut SimulatedNand,
        block: device::Block,
        cause: Cause,
    ) -> Result<()> {
        let geometry = device::Nand::geometry(*chip);
        self.0.lock().unwrap().retain(|(page, _)| geometry.block_of(*page) != block);
        device::Nand::erase(*chip, block, cause)
    }
}

/// The pages that are read by a lookup.
#[derive(Clone, Default)]
struct Needed(Arc<Mutex<BTreeSet<Page>>>);

impl Hook<&mut SimulatedNand> for Needed {
    fn read(&mut self, chip: &mut &mut SimulatedNand, read: Read<'_>) -> Result<u16> {
        if read.cause == Cause::Lookup {
            self.0.lock().unwrap().insert(read.page);
        }
        read.on(chip)
    }
}

/// An index that was left open, and what is known of it.
struct Left {
    case: Case,
    chip: SimulatedNand,
    /// All updates, none of them acknowledged: what a cut may leave.
    history: Truth,
    /// Pages that are in use, oldest first.
    pages: Vec<Page>,
    /// Pages that look torn where they are damaged.
    newest: BTreeSet<Page>,
    /// Pages without which not all entries can be read.
    needed: BTreeSet<Page>,
}

fn key(case: &Case, number: u32) -> Bytes {
    let scattered = u64::from(number).wrapping_mul(0x9E37_79B9_7F4A_7C15).to_be_bytes();
    match case.shape.shape.key {
        Width::Fixed(bytes) => scattered[..usize::from(bytes)].into(),
        Width::Variable => [&b"prefix/"[..number as usize % 8], &scattered[..3]].concat().into(),
    }
}

fn value(case: &Case, mark: u32) -> Bytes {
    let bytes = match case.shape.shape.value {
        Width::Fixed(bytes) => usize::from(bytes),
        Width::Variable => mark as usize % 14,
    };
    mark.to_le_bytes().into_iter().cycle().take(bytes).collect()
}

/// The change with this number: one in five is a delete.
fn change(case: &Case, number: u32) -> Change {
    let which = number.wrapping_mul(0x85EB_CA6B) >> 7;
    let value = (!which.is_multiple_of(5)).then(|| value(case, number));
    Change { key: key(case, which % keys(case)), value }
}

fn keys(case: &Case) -> u32 {
    // A path of keys of any length that shares a page of 512 bytes leads to few leaves.
    if case.page_bytes < 2048 && case.shape.shape.key == Width::Variable { 20 } else { KEYS }
}

fn update(index: &mut dyn Index, Change { key, value }: &Change) -> index::Result<()> {
    index.update(&[match value {
        Some(value) => Update::Put { key, value },
        None => Update::Delete { key },
    }])
}

fn open<'n>(
    case: &Case,
    chip: &'n mut SimulatedNand,
    hook: impl Hook<&'n mut SimulatedNand> + 'n,
    is_new: bool,
) -> index::Result<Box<dyn Index + 'n>> {
    let options = case.options(MediumShape::Nand(device::Nand::geometry(chip)));
    let make = if is_new { case.entry.create } else { case.entry.open };
    make(Medium::Nand(Box::new(Hooked { chip, hook })), &options)
}

impl Left {
    fn new(case: Case) -> Self {
        let Storage::Nand(mut chip) = case.storage(512 << 10) else { panic!("it is on a chip") };
        let programmed = Programmed::default();
        let mut history = Truth::default();
        let mut index = open(&case, &mut chip, programmed.clone(), true).unwrap();
        for number in 0..UPDATES[0] + UPDATES[1] {
            if number == UPDATES[0] {
                index.checkpoint(None).unwrap();
            }
            let change = change(&case, number);
            let updated = update(&mut *index, &change);
            assert_eq!(updated, Ok(()), "{}, update {number}", case.name());
            history.begin(Event::Batch(vec![change]));
        }
        index.sync().unwrap();
        drop(index);
        let all = programmed.0.lock().unwrap().clone();
        let is_own = |cause| matches!(cause, Cause::Journal | Cause::Checkpoint);
        let last = |own: bool| all.iter().rev().find(|(_, cause)| is_own(*cause) == own);
        let newest = [last(true), last(false)].into_iter().flatten().map(|(page, _)| *page);
        let newest = newest.collect();
        let pages = all.into_iter().map(|(page, _)| page).collect();
        let needed = Needed::default();
        let mut copy = chip.clone();
        read_all(&mut *open(&case, &mut copy, needed.clone(), false).unwrap()).unwrap();
        let needed = needed.0.lock().unwrap().clone();
        Left { case, chip: *chip, history, pages, newest, needed }
    }

    /// The pages that are damaged: each that is needed, each of the newest, and some of all others.
    fn sampled(&self) -> impl Iterator<Item = (usize, Page)> {
        let step = self.pages.len().div_ceil(PAGES).max(1);
        let places = self.pages.iter().enumerate().filter(move |(place, page)| {
            place.is_multiple_of(step)
                || self.pages.len() - place <= PAGES / 4
                || self.needed.contains(page)
        });
        places.map(|(place, page)| (place, *page))
    }

    /// True if this damage makes a page unreadable that is needed.
    fn is_needed(&self, damage: &Damage) -> bool {
        let is_needed = self.needed.contains(&damage.page) && !self.newest.contains(&damage.page);
        is_needed && damage.way == Way::Unreadable
    }

    fn name(&self, damage: &Damage) -> String {
        let Damage { page, way, bit } = damage;
        format!("{}: page {} {way:?} bit {bit}", self.case.name(), page.0)
    }

    /// Opens the index with this damage, and uses it; true if an error told of it.
    fn play(&self, damage: Damage) -> bool {
        let name = self.name(&damage);
        let looks_torn = damage.way == Way::Unreadable;
        let may_be_older = looks_torn && self.newest.contains(&damage.page);
        let mut chip = self.chip.clone();
        let mut index = match open(&self.case, &mut chip, damage, false) {
            Ok(index) => index,
            Err(error) => {
                assert!(is_damage(&error), "{name}: opening: {error:?}");
                return true;
            }
        };
        let mut truth = self.history.clone();
        let mut told = false;
        match read_all(&mut *index) {
            Ok(found) => {
                let events = truth.open_events();
                let learned = truth.learn(&found);
                let learned = learned.unwrap_or_else(|mismatch| panic!("{name}: {mismatch}"));
                assert!(learned == events || may_be_older, "{name}: {learned} of {events}");
            }
            Err(error) => {
                assert!(is_damage(&error), "{name}: a range: {error:?}");
                told = true;
            }
        }
        // Where not all could be read it is not known which first part it is.
        let is_known = !told || !may_be_older;
        told |= self.compare_gets(&mut *index, &truth, is_known, &name);
        for number in 1000..1000 + 40 {
            let change = change(&self.case, number);
            truth.begin(Event::Batch(vec![change.clone()]));
            if let Err(error) = update(&mut *index, &change) {
                let refused = matches!(error, Error::Store(store::Error::Full { .. }));
                assert!(is_damage(&error) || refused, "{name}: an update: {error:?}");
                return true;
            }
        }
        told |= self.compare_gets(&mut *index, &truth, is_known, &name);
        let mut findings = 0;
        let checked = index.check(&mut |_| findings += 1);
        assert!(checked.is_ok() || checked.is_err_and(|error| is_damage(&error)), "{name}");
        if let Err(error) = index.close() {
            assert!(is_damage(&error), "{name}: closing: {error:?}");
            told = true;
        }
        told || findings > 0
    }

    /// Compares every key with the latest world; true if an error told of damage.
    fn compare_gets(&self, index: &mut dyn Index, truth: &Truth, known: bool, name: &str) -> bool {
        let mut told = false;
        for number in 0..keys(&self.case) {
            let key = key(&self.case, number);
            let mut into = [0; 16];
            let wanted = truth.latest().entries.get(&key);
            match index.get(&key, 0, &mut into) {
                Ok(found) => {
                    let value = found.map(|bytes| &into[..bytes as usize]);
                    assert!(!known || value == wanted.map(|value| &value[..]), "{name}: {number}");
                }
                Err(error) => {
                    assert!(is_damage(&error), "{name}: a get: {error:?}");
                    told = true;
                }
            }
        }
        told
    }
}

/// The errors by which damage shows.
fn is_damage(error: &Error) -> bool {
    use store::Error as Store;
    match error {
        Error::Store(error) => {
            error.is_damage()
                || matches!(
                    error,
                    Store::NotAnIndex { .. }
                        | Store::OtherVersion { .. }
                        | Store::DamagedJournal { .. }
                )
        }
        // The index is read-only after one of those.
        Error::Unsupported { .. } => true,
        _ => false,
    }
}

/// Everything, upwards; and downwards it must be the same.
fn read_all(index: &mut dyn Index) -> index::Result<Found> {
    let mut both = [Vec::new(), Vec::new()];
    for (range, entries) in [KeyRange::ALL, KeyRange::ALL.reversed()].into_iter().zip(&mut both) {
        let mut cursor = index.range(range)?;
        while let Some((key, value)) = cursor.next()? {
            let Value::Inline(value) = value else { panic!("no value is long") };
            entries.push((key.to_vec(), value.to_vec()));
        }
    }
    let [entries, mut reversed] = both;
    reversed.reverse();
    assert!(entries == reversed, "upwards and downwards it is something else");
    Ok(Found { entries, names: Vec::new() })
}

/// Two shapes of entries on pages of each size, with a spare area and without, of every tree.
fn wanted() -> impl Iterator<Item = Case> {
    let is_wanted = |case: &Case| {
        let shape = ["4+4", "variable"].contains(&case.shape.name);
        matches!(case.stand, Stand::Nand) && case.memory == MemoryLevel::Double && shape
    };
    let all = TREES.iter().flat_map(|entry| cases(entry)).filter(is_wanted);
    all.flat_map(|case| {
        [Durability::Batch, Durability::Every, Durability::Checkpoint].into_iter().flat_map(
            move |durability| {
                // The seed decides whether there is a spare area.
                let seeds = [case.seed / 6 * 6 + 1, case.seed / 6 * 6 + 3];
                let case = case.clone();
                seeds.map(move |seed| Case { durability, seed, ..case.clone() })
            },
        )
    })
}

#[test]
fn with_each_page_damaged_in_turn_answers_are_right_or_errors() {
    let (mut tried, mut trees, mut failed) = (0, BTreeMap::new(), Vec::new());
    for case in sample(5, wanted()) {
        let has_spare = !case.seed.is_multiple_of(3);
        let left = Left::new(case);
        for (place, page) in left.sampled() {
            for (number, way) in WAYS.into_iter().enumerate() {
                if way == Way::Spare && !has_spare {
                    continue;
                }
                let bit = (place * WAYS.len() + number).wrapping_mul(7919);
                tried += 1;
                let damage = Damage { page, way, bit };
                let (name, is_needed) = (left.name(&damage), left.is_needed(&damage));
                match catch_unwind(AssertUnwindSafe(|| left.play(damage))) {
                    Ok(was_told) => {
                        *trees.entry(left.case.entry.name).or_insert(0) +=
                            i32::from(was_told && is_needed);
                    }
                    Err(_) => failed.push(name),
                }
            }
        }
    }
    assert!(failed.is_empty(), "{} of {tried} failed\n{}", failed.len(), failed.join("\n"));
    println!("damaged pages of raw flash that were told or did no harm: {tried}");
    println!("unreadable pages that were needed, and were told: {trees:?}");
    let on_flash: BTreeSet<_> =
        TREES.iter().filter(|entry| entry.nand).map(|entry| entry.name).collect();
    assert!(trees.keys().eq(&on_flash), "{trees:?}");
    // Most pages of a tree that copies its paths hold what was replaced since: damage of those does
    // no harm, and can't be told. So what counts is damage of pages that are needed, for each tree;
    // the paths of one with few entries stand in a few pages.
    let told_most = trees.values().all(|told| *told * share(5) as i32 >= 5);
    assert!(tried * share(5) > 4000 && told_most, "{tried}, {trees:?}");
}
