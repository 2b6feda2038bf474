//! The last page of what is acknowledged, which stands twice, wiped in one half and in both, after
//! the power was cut: in a file that of the journal, on raw flash that of a checkpoint, too.
//!
//! With one half of it all that was acknowledged comes back. A page that is wiped in both can't be
//! told from one that the cut tore, for a torn write leaves anything there. What comes back then is
//! what there was at the flush before, or after a later step, and nothing else; where the page is
//! that of a checkpoint, it may be an error. Either way the index goes on from there, and what it
//! takes lasts.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test fails by panicking"
)]

mod lies;

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::{Arc, Mutex};

use contract::nand::{Hook, Hooked, Program, Read};
use contract::tree::{Case, MemoryLevel, Stand, Storage, cases};
use contract::{on_all_cores, sample};
use device::{Block, Cause, Medium, Nand, Page, Request, Result, Sector, SectorGeometry, Sectors};
use flashtree_trees::TREES;
use index::MediumShape;
use index::{Durability, Index, Update};
use lies::{History, Model, Outcome, judge};
use sim::SimulatedNand;

/// Steps of the longest history; there is one of each length.
const STEPS: u32 = 40;
const KEYS: u32 = 60;

/// One step in so many is a batch that takes several pages.
const STEPS_A_LONG_BATCH: u32 = 9;

const PAGE: usize = 512;
const HALF: usize = PAGE / 2;

/// Bytes of the tag of a page on a chip.
const TAG: usize = 16;

/// The page of the journal, or of a checkpoint's record, that was written last.
type Last = Arc<Mutex<Option<u64>>>;

/// A disk that notes where the journal's last page stands.
struct NotingDisk<S> {
    below: S,
    last: Last,
}

impl<S: Sectors> Sectors for NotingDisk<S> {
    fn geometry(&self) -> SectorGeometry {
        self.below.geometry()
    }

    fn read(&mut self, requests: &mut [Request<'_>], cause: Cause) -> Result<()> {
        self.below.read(requests, cause)
    }

    fn write(&mut self, first: Sector, from: &[u8], cause: Cause) -> Result<()> {
        if cause == Cause::Journal {
            assert_eq!(from.len(), PAGE);
            *self.last.lock().unwrap() = Some(first.0);
        }
        self.below.write(first, from, cause)
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
        self.below.resize(sectors, cause)
    }
}

/// Notes where the last page stands that the log wrote for itself.
struct NotingChip(Last);

impl Hook<&mut SimulatedNand> for NotingChip {
    fn program(&mut self, chip: &mut &mut SimulatedNand, program: Program<'_>) -> Result<()> {
        if matches!(program.cause, Cause::Journal | Cause::Checkpoint) {
            *self.0.lock().unwrap() = Some(u64::from(program.page.0));
        }
        program.on(chip)
    }
}

/// What stands where something was wiped.
#[derive(Clone, Copy, Debug)]
enum Content {
    Alike(u8),
    Random,
    /// Nothing that the chip's code could correct.
    Unreadable,
}

impl Content {
    const READABLE: [Content; 3] = [Content::Alike(0xFF), Content::Alike(0), Content::Random];

    /// Wipes the bytes at `wiped` of those in `bytes`, of which the first is byte `start`.
    fn wipe(self, start: usize, bytes: &mut [u8], wiped: &Range<usize>) {
        for (place, byte) in (start..).zip(bytes).filter(|(place, _)| wiped.contains(place)) {
            *byte = match self {
                Content::Alike(alike) => alike,
                Content::Random | Content::Unreadable => {
                    ((place as u32 + 1).wrapping_mul(0x9E37_79B9) >> 21) as u8
                }
            };
        }
    }
}

/// What is wiped.
#[derive(Clone, Debug)]
struct Wipe {
    bytes: Range<usize>,
    has_spare: bool,
    content: Content,
}

impl Wipe {
    /// Each half and both, and of a chip the spare area with what stands at its side.
    fn all(stand: Stand) -> Vec<Wipe> {
        let on_disk = [(0..HALF, false), (HALF..PAGE, false), (0..PAGE, false)].to_vec();
        let (mut parts, mut contents) = (on_disk, Content::READABLE.to_vec());
        if matches!(stand, Stand::Nand) {
            parts.extend([(0..HALF, true), (0..PAGE, true)]);
            contents.push(Content::Unreadable);
        }
        let of = |(bytes, has_spare): (Range<usize>, bool)| {
            contents.clone().into_iter().map(move |content| {
                let bytes = bytes.clone();
                Wipe { bytes, has_spare, content }
            })
        };
        parts.into_iter().flat_map(of).collect()
    }

    fn is_of_both(&self) -> bool {
        self.bytes.len() == PAGE
    }
}

/// A page that is wiped until its block is erased.
#[derive(Clone)]
struct Wiped {
    page: Arc<Mutex<Option<Page>>>,
    wipe: Wipe,
}

impl Hook<&mut SimulatedNand> for Wiped {
    fn read(&mut self, chip: &mut &mut SimulatedNand, read: Read<'_>) -> Result<u16> {
        let Read { page, offset, into, spare, cause } = read;
        let corrected =
            Read { page, offset, into: &mut *into, spare: &mut *spare, cause }.on(chip)?;
        if *self.page.lock().unwrap() != Some(page) {
            return Ok(corrected);
        }
        let Wipe { bytes, has_spare, content } = &self.wipe;
        let read = offset as usize..offset as usize + into.len();
        let is_hit = read.start < bytes.end && bytes.start < read.end && !into.is_empty();
        if matches!(content, Content::Unreadable) && (is_hit || *has_spare && !spare.is_empty()) {
            into.fill(0xA5);
            spare.fill(0xA5);
            return Err(device::Error::Uncorrectable { page });
        }
        content.wipe(read.start, into, bytes);
        if *has_spare {
            content.wipe(PAGE, spare, &(PAGE..usize::MAX));
        }
        Ok(corrected)
    }

    fn erase(&mut self, chip: &mut &mut SimulatedNand, block: Block, cause: Cause) -> Result<()> {
        let geometry = chip.geometry();
        self.page.lock().unwrap().take_if(|page| geometry.block_of(*page) == block);
        chip.erase(block, cause)
    }
}

/// A device with an index that was left when all it holds was acknowledged.
struct Left {
    storage: Storage,
    /// What it held after each step, from the flush before the last one on.
    since: Vec<Model>,
    /// The page that was written last for what is acknowledged.
    last: u64,
}

fn on_chip<'n>(
    case: &Case,
    chip: &'n mut SimulatedNand,
    hook: impl Hook<&'n mut SimulatedNand> + 'n,
    is_new: bool,
) -> index::Result<Box<dyn Index + 'n>> {
    let options = case.options(MediumShape::Nand(chip.geometry()));
    let make = if is_new { case.entry.create } else { case.entry.open };
    make(Medium::Nand(Box::new(Hooked { chip, hook })), &options)
}

fn create<'g>(case: &Case, storage: &'g mut Storage, last: &Last) -> Box<dyn Index + 'g> {
    let last = last.clone();
    let made = match storage {
        Storage::Nand(chip) => on_chip(case, chip, NotingChip(last), true),
        Storage::Ram(_) => {
            case.try_index_over(storage, false, |below| Box::new(NotingDisk { below, last }))
        }
    };
    made.unwrap()
}

fn step(history: &History, index: &mut dyn Index, model: &mut Model, number: u32) {
    if !number.is_multiple_of(STEPS_A_LONG_BATCH) {
        return history.step(index, model, number).unwrap();
    }
    let value = number.to_le_bytes();
    let keys: Vec<_> = (0..KEYS).map(|key| key.wrapping_mul(0x9E37_79B9).to_be_bytes()).collect();
    let puts: Vec<_> = keys.iter().map(|key| Update::Put { key, value: &value }).collect();
    index.update(&puts).unwrap();
    model.extend(keys.iter().map(|key| (key.to_vec(), value.to_vec())));
}

fn left(case: &Case, steps: u32) -> Left {
    let mut storage = case.storage(48 << 10);
    let last = Last::default();
    let mut index = create(case, &mut storage, &last);
    let history = History { keys: KEYS, durability: case.durability };
    let mut states = vec![Model::new()];
    let mut flushed = 0;
    for number in 1..=steps {
        let mut model = states[states.len() - 1].clone();
        step(&history, &mut *index, &mut model, number);
        states.push(model);
        let is_flushed = number % 11 == 0 || case.durability == Durability::Every;
        if is_flushed && number < steps {
            flushed = number as usize;
        }
    }
    history.make_last(&mut *index).unwrap();
    drop(index);
    let last = last.lock().unwrap().unwrap();
    assert_stands_twice(&mut storage, last);
    Left { storage, since: states.split_off(flushed), last }
}

fn assert_stands_twice(storage: &mut Storage, last: u64) {
    let mut page = [0; PAGE];
    // On a chip each half has a tag of its own; the first one's may be in the spare area.
    let (start, tag) = match storage {
        Storage::Ram(disk) => {
            let read = Request { first: Sector(last), offset: 0, into: &mut page };
            disk.read(&mut [read], Cause::Recovery).unwrap();
            (0, 0)
        }
        Storage::Nand(chip) => {
            chip.read(Page(last as u32), 0, &mut page, &mut [], Cause::Recovery).unwrap();
            (if chip.geometry().spare_bytes() < TAG as u32 { TAG } else { 0 }, TAG)
        }
    };
    let content = HALF - tag;
    assert_eq!(page[start..start + content], page[HALF + tag..], "page {last}");
}

fn open<'g>(
    case: &Case,
    storage: &'g mut Storage,
    wiped: &Wiped,
) -> index::Result<Box<dyn Index + 'g>> {
    match storage {
        Storage::Nand(chip) => on_chip(case, chip, wiped.clone(), false),
        Storage::Ram(_) => case.try_index_over(storage, true, |below| below),
    }
}

/// What is found where `wipe` came over the last page; the index goes on from there, and what
/// comes of that has to last.
fn found_after(case: &Case, left: &Left, wipe: &Wipe) -> index::Result<(Model, u32)> {
    let page = Page(left.last as u32);
    let wiped = Wiped { page: Arc::new(Mutex::new(Some(page))), wipe: wipe.clone() };
    let mut storage = match &left.storage {
        Storage::Nand(chip) => Storage::Nand(chip.clone()),
        Storage::Ram(disk) => {
            let mut disk = disk.clone();
            let mut bytes = [0; PAGE];
            let read = Request { first: Sector(left.last), offset: 0, into: &mut bytes };
            disk.read(&mut [read], Cause::Recovery).unwrap();
            wipe.content.wipe(0, &mut bytes, &wipe.bytes);
            disk.write(Sector(left.last), &bytes, Cause::Recovery).unwrap();
            Storage::Ram(disk)
        }
    };
    let mut index = open(case, &mut storage, &wiped)?;
    let found = judge(&mut *index)?;
    let (key, value) = ([0xFF; 4], [7; 4]);
    index.update(&[Update::Put { key: &key, value: &value }])?;
    index.sync()?;
    drop(index);
    let mut model = found.0.clone();
    model.insert(key.to_vec(), value.to_vec());
    let again = open(case, &mut storage, &wiped).and_then(|mut index| judge(&mut *index));
    assert!(again == Ok((model, found.1)), "{}: {wipe:?}: {again:?}", case.name());
    Ok(found)
}

/// What came of wiping, and how often.
type Outcomes = BTreeMap<(&'static str, &'static str), u32>;

fn wipe_all(case: &Case) -> (Outcomes, Vec<String>) {
    let (mut outcomes, mut wrong) = (Outcomes::new(), Vec::new());
    let has_journal = case.durability.has_journal();
    for steps in 1..=STEPS {
        let left = left(case, steps);
        let model = &left.since[left.since.len() - 1];
        for wipe in Wipe::all(case.stand) {
            let found = found_after(case, &left, &wipe);
            let part = if wipe.is_of_both() { "both" } else { "half" };
            let is_before = |found: &Model| wipe.is_of_both() && left.since.contains(found);
            let outcome = match (&found, Outcome::of(found.clone(), model, false)) {
                (_, Outcome::Right) => "all comes back",
                (Ok((found, 0)), Outcome::Wrong) if is_before(found) => "a start comes back",
                // A page of the tree behind a checkpoint names it.
                (_, Outcome::Error) if wipe.is_of_both() && !has_journal => "an error",
                _ => "wrong",
            };
            if outcome == "wrong" {
                wrong.push(format!("{}, {steps} steps: {wipe:?}: {found:?}", case.name()));
            }
            *outcomes.entry((part, outcome)).or_insert(0) += 1;
        }
    }
    (outcomes, wrong)
}

/// Every tree on disks with each durability that has a journal, and on chips, with a spare area and
/// without, with those that have checkpoints, too.
fn wanted() -> Vec<Case> {
    let is_wanted = |case: &Case| {
        let memory = match case.stand {
            Stand::Nand => MemoryLevel::Double,
            Stand::Ram | Stand::Growing => MemoryLevel::Least,
            Stand::Ftl(_) => return false,
        };
        case.shape.name == "4+4"
            && case.page_bytes == PAGE as u32
            && case.parameters.is_empty()
            && case.memory == memory
    };
    let all = TREES.iter().flat_map(|entry| cases(entry)).filter(is_wanted);
    let of_durability = |case: Case| {
        let is_on_chip = matches!(case.stand, Stand::Nand);
        // The seed decides whether there is a spare area.
        let first = case.seed / 6 * 6;
        let seeds = if is_on_chip { vec![first + 1, first + 3] } else { vec![case.seed] };
        let lasting = move |durability: &Durability| {
            durability.has_journal() || is_on_chip && *durability != Durability::None
        };
        Durability::ALL.into_iter().filter(lasting).flat_map(move |durability| {
            let case = case.clone();
            seeds.clone().into_iter().map(move |seed| Case { durability, seed, ..case.clone() })
        })
    };
    all.flat_map(of_durability).collect()
}

#[test]
fn half_of_the_last_page_wiped_costs_nothing_and_both_no_more_than_its_flush() {
    let cases: Vec<_> = sample(3, wanted()).collect();
    let mut wrong = Vec::new();
    for (case, (outcomes, of_case)) in cases.iter().zip(on_all_cores(&cases, wipe_all)) {
        println!("{}: {outcomes:?}", case.name());
        let started = outcomes.get(&("both", "a start comes back")).unwrap_or(&0);
        let told = outcomes.get(&("both", "an error")).unwrap_or(&0);
        assert!(started + told > STEPS, "{}: {outcomes:?}", case.name());
        wrong.extend(of_case);
    }
    assert!(wrong.is_empty(), "{}\n{}", wrong.len(), wrong.join("\n"));
}
