//! A page log comes back to its last checkpoint, its journal and its named checkpoints, wherever
//! the power is cut, and whatever the chip refuses.
#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

use std::collections::BTreeMap;

use device::{Cause, Geometry, NandCosts, Page, ProgramOrder};
use flashtree_store::{
    Durability, Error, PageKind, PageLog, PageLogOptions, Recovery, Replayed, Result, Update,
};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use sim::{Cut, Failure, FaultPlan, SimulatedNand};

const CAUSE: Cause = Cause::Update;
const SLOTS: u64 = 10;

/// What each slot holds.
type Marks = BTreeMap<u64, u64>;

/// A tree as plain as can be: slots, each with a mark in a page of its own, and a table in memory
/// that goes into the root record.
struct Slots<'d> {
    log: PageLog<'d>,
    pages: BTreeMap<u64, Page>,
    buffer: Vec<u8>,
}

impl<'d> Slots<'d> {
    fn new(log: PageLog<'d>, root: &[u8]) -> Self {
        let entries = root.get(8..).unwrap_or_default().chunks_exact(12);
        let pages =
            entries.map(|entry| (number(entry), Page(number(&entry[8..]) as u32))).collect();
        let buffer = vec![0xFF; log.geometry().page_bytes() as usize];
        Slots { log, pages, buffer }
    }

    /// The table behind a number that tells checkpoints apart, as long as three pages of 512 bytes
    /// in some of them.
    fn root(&self, id: u64) -> Vec<u8> {
        let mut root = id.to_le_bytes().to_vec();
        for (slot, page) in &self.pages {
            root.extend_from_slice(&slot.to_le_bytes());
            root.extend_from_slice(&page.0.to_le_bytes());
        }
        root.resize(root.len() + id as usize % 3 * 600 / 12 * 12, 0xEE);
        root
    }

    fn write(&mut self, slot: u64, mark: u64) -> Result<()> {
        let mut next = Vec::new();
        let start = self.log.content_start();
        // Some go to blocks apart, of which another is begun now and then.
        let is_apart = slot.is_multiple_of(3);
        let kind = PageKind::Tree(if is_apart { 7 } else { 3 });
        if mark.is_multiple_of(16) {
            self.log.end_apart();
        }
        self.log.write_apart(is_apart);
        loop {
            let sequence = self.log.reserve(1, &mut next, CAUSE)?;
            self.buffer[start..start + 8].copy_from_slice(&slot.to_le_bytes());
            self.buffer[start + 8..start + 16].copy_from_slice(&mark.to_le_bytes());
            match self.log.program(next[0], &mut self.buffer, PageKind::Tree(3), CAUSE) {
                Err(error) if error.is_refusal() => continue,
                programmed => programmed?,
            }
            let tag = self.log.tag(next[0], CAUSE)?.unwrap();
            assert_eq!((tag.sequence, tag.kind), (sequence, kind));
            let block = self.log.geometry().block_of(next[0]);
            assert_eq!(self.log.holds_apart(block), is_apart);
            self.pages.insert(slot, next[0]);
            return Ok(());
        }
    }

    fn read(&mut self, slot: u64) -> Result<Option<u64>> {
        let Some(page) = self.pages.get(&slot).copied() else {
            return Ok(None);
        };
        let mut bytes = [0; 16];
        self.log.read(page, 0, &mut bytes, CAUSE)?;
        assert_eq!(number(&bytes), slot, "{page} holds another slot");
        Ok(Some(number(&bytes[8..])))
    }

    fn marks(&mut self) -> Result<Marks> {
        let slots: Vec<u64> = self.pages.keys().copied().filter(|slot| *slot < SLOTS).collect();
        slots.into_iter().map(|slot| Ok((slot, self.read(slot)?.unwrap()))).collect()
    }

    /// Moves what lives in one block.
    fn collect(&mut self) -> Result<()> {
        let victim = self.log.victim().ok_or(Error::Full { pages: 0 })?;
        let range = self.log.pages_of(victim);
        let live: Vec<u64> = self
            .pages
            .iter()
            .filter(|(_, page)| range.contains(&page.0))
            .map(|(slot, _)| *slot)
            .collect();
        for slot in live {
            let mark = self.read(slot)?.unwrap();
            self.write(slot, mark)?;
        }
        self.log.release(victim);
        Ok(())
    }
}

fn number(bytes: &[u8]) -> u64 {
    let length = bytes.len().min(8);
    let length = if bytes.len() == 4 { 4 } else { length };
    let mut number = [0; 8];
    number[..length].copy_from_slice(&bytes[..length]);
    u64::from_le_bytes(number)
}

#[derive(Clone, Default)]
struct Model {
    now: Marks,
    last: Option<(u64, Marks)>,
    next: Option<(u64, Marks)>,
    /// Of every name that was ever given: going back brings forgotten ones back.
    named: BTreeMap<String, Marks>,
    recorded: Vec<(u64, u64)>,
    synced: usize,
    made: u64,
}

#[derive(Clone, Debug)]
struct Case {
    page_bytes: u32,
    spare: u32,
    durability: Durability,
    refusals: f64,
    seed: u64,
}

impl Case {
    fn chip(&self) -> SimulatedNand {
        let geometry = Geometry::new(self.page_bytes, 8, 70).unwrap();
        let geometry = geometry.with_spare(self.spare).unwrap();
        let geometry = geometry.with_order(ProgramOrder::Ascending);
        SimulatedNand::new(geometry, NandCosts::default())
    }

    #[allow(clippy::needless_update, reason = "with canaries there is one field more")]
    fn options(&self) -> PageLogOptions {
        PageLogOptions {
            durability: self.durability,
            journal_bytes: Some(u64::from(self.page_bytes) * 6),
            label: b"mine".to_vec(),
            ..PageLogOptions::default()
        }
    }
}

struct Run<'c> {
    case: &'c Case,
    random: ChaCha8Rng,
    model: Model,
    witness: Witness,
}

#[derive(Default)]
struct Witness {
    cuts: u32,
    replayed: u64,
    collected: u32,
    rolled_back: u32,
    refused: u64,
}

impl Run<'_> {
    fn play(&mut self, chip: &mut SimulatedNand, is_new: bool, steps: u32) -> Result<()> {
        let mut slots = if is_new {
            Slots::new(PageLog::create(Box::new(chip), &self.case.options())?, &[])
        } else {
            self.reopen(chip)?
        };
        self.checkpoint(&mut slots, None)?;
        for _ in 0..steps {
            self.step(&mut slots)?;
        }
        Ok(())
    }

    fn reopen<'d>(&mut self, chip: &'d mut SimulatedNand) -> Result<Slots<'d>> {
        let (log, root) = match PageLog::open(Box::new(chip)) {
            // Not even the first checkpoint was made.
            Err(Error::NotAnIndex { .. }) if self.model.last.is_none() => {
                return Err(Error::NotClosed);
            }
            other => other?,
        };
        let mut slots = Slots::new(log, &root);
        slots.pages.retain(|slot, _| *slot < SLOTS);
        let id = number(&root[..8]);
        let last = self.model.last.clone().filter(|(made, _)| *made == id);
        let is_last = last.is_some();
        let expected = (&self.model.last, &self.model.next);
        let found = last.or(self.model.next.clone());
        let (made, marks) = found.unwrap_or_else(|| panic!("checkpoint {id}, not {expected:?}"));
        assert_eq!(made, id, "the root record is of no checkpoint that may be there");
        assert_eq!(slots.marks()?, marks, "what the checkpoint holds");
        self.compare_named(&mut slots)?;
        self.keep(&mut slots)?;
        let mut buffer = [0; 64];
        let mut replayed = Vec::new();
        while let Some(next) = slots.log.next_replayed(&mut buffer)? {
            let Replayed::Update(Update::Put { key, value }) = next else { panic!("{next:?}") };
            replayed.push((number(key), number(value)));
        }
        // Going back to the last checkpoint of all makes another one with the same root record.
        let went_back = self.model.next.as_ref().is_some_and(|(next, _)| *next == id);
        let (recorded, synced) = if is_last && !(went_back && replayed.is_empty()) {
            (self.model.recorded.clone(), self.model.synced)
        } else {
            (Vec::new(), 0)
        };
        assert!(replayed.len() >= synced, "{} of {synced} are there", replayed.len());
        assert_eq!(replayed, recorded[..replayed.len()], "what was replayed");
        assert!(replayed.len().is_multiple_of(2), "half a batch was replayed");
        self.witness.replayed += replayed.len() as u64;
        self.model.now = marks.clone();
        self.model.last = Some((id, marks));
        self.model.next = None;
        // What is replayed stands in the journal, until the next checkpoint.
        self.model.synced = replayed.len();
        self.model.recorded = replayed;
        for (slot, mark) in self.model.recorded.clone() {
            slots.write(slot, mark)?;
            self.model.now.insert(slot, mark);
        }
        Ok(slots)
    }

    /// Every checkpoint that is kept can still be read, from its own record.
    fn compare_named(&mut self, slots: &mut Slots<'_>) -> Result<()> {
        let names: Vec<String> =
            slots.log.checkpoints().iter().map(|kept| kept.name.clone()).collect();
        for name in names {
            let root = slots.log.kept_root(&name)?;
            let table = Slots::new_table(&root);
            let present = std::mem::replace(&mut slots.pages, table);
            let marks = slots.marks();
            slots.pages = present;
            let marks = marks?;
            let expected = self.model.named.entry(name.clone()).or_insert_with(|| marks.clone());
            assert_eq!(&marks, expected, "{name}");
        }
        Ok(())
    }

    /// Pins what the kept checkpoints reach.
    fn keep(&self, slots: &mut Slots<'_>) -> Result<()> {
        slots.log.unpin_all()?;
        let names: Vec<String> =
            slots.log.checkpoints().iter().map(|kept| kept.name.clone()).collect();
        for name in names {
            let root = slots.log.kept_root(&name)?;
            for page in Slots::new_table(&root).values() {
                slots.log.pin(*page);
            }
        }
        Ok(())
    }

    fn checkpoint(&mut self, slots: &mut Slots<'_>, name: Option<&str>) -> Result<()> {
        self.model.made += 1;
        let id = self.model.made;
        self.model.next = Some((id, self.model.now.clone()));
        if let Some(name) = name {
            self.model.named.insert(name.into(), self.model.now.clone());
        }
        slots.log.checkpoint(&slots.root(id), name)?;
        self.model.last = self.model.next.take();
        self.model.recorded.clear();
        self.model.synced = 0;
        self.keep(slots)
    }

    fn step(&mut self, slots: &mut Slots<'_>) -> Result<()> {
        // A block for the moves of a collection, one that an opening left half full, and one more.
        let (low, batch) = (8 * 4, self.batch());
        let updates: Vec<([u8; 8], [u8; 8])> =
            batch.iter().map(|(slot, mark)| (slot.to_le_bytes(), mark.to_le_bytes())).collect();
        let updates: Vec<Update<'_>> =
            updates.iter().map(|(key, value)| Update::Put { key, value }).collect();
        if slots.log.needs_checkpoint(&updates, low)? {
            self.checkpoint(slots, None)?;
        }
        while slots.log.free_pages() < low {
            slots.collect()?;
            self.witness.collected += 1;
            if slots.log.free_pages() < low / 2 || self.random.random_bool(0.3) {
                self.checkpoint(slots, None)?;
            }
        }
        self.model.recorded.extend_from_slice(&batch);
        slots.log.record(&updates)?;
        if self.case.durability == Durability::Every {
            self.model.synced = self.model.recorded.len();
        }
        for (slot, mark) in batch {
            slots.write(slot, mark)?;
            self.model.now.insert(slot, mark);
        }
        match self.random.random_range(0..40) {
            0 => self.checkpoint(slots, None)?,
            1 if slots.log.checkpoints().len() < 2 => {
                let name = format!("kept {}", self.model.made);
                self.checkpoint(slots, Some(&name))?;
            }
            2 => self.forget(slots)?,
            3 => self.roll_back(slots)?,
            4..10 => {
                slots.log.sync()?;
                self.model.synced = self.model.recorded.len();
            }
            _ => {}
        }
        if !self.case.durability.has_journal() {
            self.model.recorded.clear();
            self.model.synced = 0;
        }
        assert_eq!(slots.marks()?, self.model.now);
        Ok(())
    }

    fn batch(&mut self) -> Vec<(u64, u64)> {
        (0..2).map(|_| (self.random.random_range(0..SLOTS), self.random.random())).collect()
    }

    fn forget(&mut self, slots: &mut Slots<'_>) -> Result<()> {
        let Some(kept) = slots.log.checkpoints().first() else {
            return Ok(());
        };
        let name = kept.name.clone();
        slots.log.forget(&name)?;
        self.checkpoint(slots, None)
    }

    fn roll_back(&mut self, slots: &mut Slots<'_>) -> Result<()> {
        let Some(kept) = slots.log.checkpoints().last() else {
            return Ok(());
        };
        let name = kept.name.clone();
        let marks = self.model.named[&name].clone();
        // Its root record, and so its number, comes back.
        let root = slots.log.kept_root(&name)?;
        self.model.next = Some((number(&root), marks.clone()));
        let root = slots.log.roll_back(&name)?;
        slots.pages = Slots::new_table(&root);
        self.model.last = self.model.next.take();
        self.model.now = marks;
        self.model.recorded.clear();
        self.model.synced = 0;
        self.witness.rolled_back += 1;
        self.keep(slots)?;
        self.checkpoint(slots, None)
    }
}

impl Slots<'_> {
    fn new_table(root: &[u8]) -> BTreeMap<u64, Page> {
        let entries = root[8..].chunks_exact(12);
        let pages = entries.map(|entry| (number(&entry[..8]), Page(number(&entry[8..]) as u32)));
        pages.filter(|(slot, _)| *slot < SLOTS).collect()
    }
}

fn run(case: &Case, cuts: u32) -> Witness {
    let mut chip = case.chip();
    let random = ChaCha8Rng::seed_from_u64(case.seed);
    let model = Model::default();
    let mut run = Run { case, random, model, witness: Witness::default() };
    let mut is_new = true;
    for cut in 0..cuts {
        let seed = case.seed * 100_000 + u64::from(cut);
        let at = run.random.random_range(0..if cut.is_multiple_of(3) { 30 } else { 600 });
        let refused = Failure { rate: case.refusals, ..Failure::default() };
        let plan = FaultPlan {
            refused_program: refused.clone(),
            refused_erase: refused,
            ..FaultPlan::cut(seed, Cut::Operation(at))
        };
        chip.arm(plan);
        let steps = 400;
        match run.play(&mut chip, is_new, steps) {
            Err(Error::Device(device::Error::PowerCut)) => run.witness.cuts += 1,
            Err(Error::NotClosed) if run.model.last.is_none() && !is_new => {
                is_new = true;
                run.model = Model::default();
                continue;
            }
            Err(Error::Full { .. }) if case.refusals > 0.0 => break,
            Err(error) => panic!("{case:?}, cut {cut} at {at}: {error}"),
            Ok(()) => {}
        }
        is_new = false;
        chip.restore_power();
    }
    run.witness.refused = chip
        .faults()
        .iter()
        .filter(|(kind, _)| kind.name().contains("refused"))
        .map(|it| it.1)
        .sum();
    run.witness
}

fn cases() -> Vec<Case> {
    let mut cases = Vec::new();
    for (page_bytes, spare) in [(512, 16), (512, 0), (2048, 64)] {
        for durability in [Durability::Checkpoint, Durability::Batch, Durability::Every] {
            for refusals in [0.0, 0.002] {
                let seed = cases.len() as u64;
                cases.push(Case { page_bytes, spare, durability, refusals, seed });
            }
        }
    }
    cases
}

#[test]
fn nothing_is_lost_wherever_the_power_is_cut_and_whatever_is_refused() {
    let cuts = std::env::var("CUTS").ok().and_then(|cuts| cuts.parse().ok()).unwrap_or(500);
    for case in cases() {
        let witness = run(&case, cuts);
        println!(
            "{case:?}: {} cuts, {} replayed, {} collected, {} rolled back, {} refused",
            witness.cuts, witness.replayed, witness.collected, witness.rolled_back, witness.refused
        );
        if case.refusals == 0.0 {
            assert!(witness.cuts > cuts / 4, "{case:?}: {} cuts", witness.cuts);
            assert!(witness.collected > 20, "{case:?}: {} collected", witness.collected);
            assert!(witness.rolled_back > 2, "{case:?}: {} rolled back", witness.rolled_back);
            assert_eq!(witness.replayed > 0, case.durability.has_journal(), "{case:?}");
        } else {
            assert!(witness.refused > 0, "{case:?}");
        }
    }
}
