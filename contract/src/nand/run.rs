//! A history on a chip: every answer is compared with the model.

mod reading;

use std::collections::BTreeMap;

use device::{Block, Cause, Error, Meter, Nand, Page};
use rand::{Rng, RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use sim::{Cut, FaultKind, FaultPlan, Flips, TornErase, TornProgram};

use super::fault::{TORN_ERASES, TORN_PROGRAMS, WEAR_OUT, kind_in};
use super::model::{BlockModel, Model, Part, Verdict, Wear};
use super::{Case, Fault, Subject, Witness};

/// A plan that is armed, and the operations since then that reached the chip.
#[derive(Default)]
struct Armed {
    plan: FaultPlan,
    operations: u64,
    changes: u64,
}

impl Armed {
    /// Counts an operation; true if the power is to be cut at it.
    fn count(&mut self, is_change: bool) -> bool {
        self.operations += 1;
        self.changes += u64::from(is_change);
        match self.plan.power_cut {
            Some(Cut::Operation(at)) => self.operations == at,
            Some(Cut::Change(at)) => is_change && self.changes == at,
            None => false,
        }
    }
}

pub(super) struct Run<S> {
    subject: S,
    case: Case,
    model: Model,
    random: ChaCha8Rng,
    armed: Armed,
    /// Operations that reached the chip, those aside that only compare.
    steps: u64,
    cuts: u64,
    /// How many bits flip at every read of a page.
    weak: BTreeMap<Page, u16>,
    bits_corrected: u64,
    witness: Witness,
}

impl<S: Subject> Run<S> {
    pub(super) fn new(case: &Case, subject: S) -> Self {
        Run {
            subject,
            case: *case,
            model: Model::new(case.geometry),
            random: ChaCha8Rng::seed_from_u64(case.seed),
            armed: Armed::default(),
            steps: 0,
            cuts: 0,
            weak: BTreeMap::new(),
            bits_corrected: 0,
            witness: Witness::default(),
        }
    }

    /// Plays the whole history.
    pub(super) fn play(mut self) -> Witness {
        assert_eq!(self.subject.chip().geometry(), self.case.geometry, "another shape");
        let (sessions, steps) = self.case.fault.length();
        for _ in 0..sessions {
            self.session(steps);
        }
        self.quiet();
        self.compare_all();
        self.use_again();
        self.compare_books();
        self.witness
    }

    /// Arms a plan and does operations.
    fn session(&mut self, steps: u32) {
        let plan = self.case.fault.plan(&self.case.geometry, &mut self.random);
        self.arm(plan);
        self.learn_bad_blocks();
        let (end, cuts) = (self.steps + u64::from(steps), self.cuts);
        let erases = self.case.fault.erases();
        let ends_with_cut = self.case.fault == Fault::PowerCut;
        while self.steps < end && !(ends_with_cut && self.cuts > cuts) {
            match self.random.random_range(0..100) {
                0..3 => self.bad(),
                3..33 => self.read(),
                share if share < 33 + erases => self.erase(),
                _ => self.program(),
            }
        }
        self.compare_all();
    }

    fn arm(&mut self, plan: FaultPlan) {
        self.subject.arm(&plan);
        for weak in &plan.flips.weak_pages {
            self.weak.insert(weak.page, weak.bits);
        }
        self.armed = Armed { plan, ..Armed::default() };
    }

    /// Ends all faults to come; the chip's code stays.
    fn quiet(&mut self) {
        let ecc_bits = self.armed.plan.flips.ecc_bits;
        let flips = Flips { ecc_bits, ..Flips::default() };
        self.arm(FaultPlan { flips, ..FaultPlan::default() });
    }

    /// Blocks that were bad before or are since the plan was armed.
    fn learn_bad_blocks(&mut self) {
        let mut found = 0;
        for block in (0..self.case.geometry.blocks()).map(Block) {
            let bad = self.subject.chip().is_bad(block).expect("the block exists");
            let state = self.model.block(block);
            assert!(bad || !state.bad, "{block} was marked bad for good");
            found += u32::from(bad && !state.bad);
            state.bad = bad;
        }
        if self.case.fault == Fault::FactoryBad {
            let plan = &self.armed.plan;
            assert_eq!(found, 1 + plan.random_bad_blocks, "blocks that are bad from the factory");
            assert!(self.model.blocks[plan.bad_blocks[0].0 as usize].bad);
            self.see(FaultKind::FactoryBad, u64::from(found));
        }
    }

    /// A page: mostly one that exists.
    fn page(&mut self) -> Page {
        let pages = self.case.geometry.pages();
        match self.random.random_range(0..200) {
            0 => Page(pages + self.random.random_range(0..1000)),
            _ => Page(self.random.random_range(0..pages)),
        }
    }

    fn block(&mut self) -> Block {
        let blocks = self.case.geometry.blocks();
        match self.random.random_range(0..50) {
            0 => Block(blocks + self.random.random_range(0..1000)),
            _ => Block(self.random.random_range(0..blocks)),
        }
    }

    fn bytes(&mut self, most: u32) -> Vec<u8> {
        let mut bytes = vec![0; self.random.random_range(0..=most as usize)];
        self.random.fill_bytes(&mut bytes);
        bytes
    }

    /// Where a part may go: mostly where the one before ended.
    fn part(&mut self, page: Page) -> (u32, Vec<u8>) {
        let page_bytes = self.case.geometry.page_bytes();
        let filled = self.model.page(page).map_or(0, |page| page.filled);
        let offset = match self.random.random_range(0..10) {
            0 => self.random.random_range(0..=page_bytes),
            _ => filled,
        };
        let room = page_bytes.saturating_sub(offset);
        let most = match self.random.random_range(0..20) {
            0 => page_bytes + 1,
            1..10 => room / 2,
            _ => room,
        };
        (offset, self.bytes(most))
    }

    fn program(&mut self) {
        let page = self.page();
        let (offset, data) = self.part(page);
        let spare_bytes = self.case.geometry.spare_bytes();
        let most = if self.random.random_range(0..50) == 0 { spare_bytes + 1 } else { spare_bytes };
        let spare = self.bytes(most);
        self.program_at(page, offset, &data, &spare);
    }

    fn program_at(&mut self, page: Page, offset: u32, data: &[u8], spare: &[u8]) {
        let part = Part { page, offset, data: data.len(), spare: spare.len() };
        let verdict = self.model.of_program(part);
        self.maybe_cut(&verdict, self.armed.plan.torn_program != TornProgram::Any);
        let meter = self.subject.chip().meter().cloned();
        let answer = self.subject.chip().program(page, offset, data, spare, Cause::Update);
        if self.is_refused(&verdict, answer.err(), meter.as_ref()) {
            return;
        }
        self.witness.programs += 1;
        let cut = self.reach(true);
        match answer {
            Ok(()) if !cut => self.programmed(page, offset, data, spare),
            Err(Error::PowerCut) if cut => {
                self.model.tear_program(page);
                let torn = kind_in(&TORN_PROGRAMS, self.armed.plan.torn_program);
                self.power_was_cut(&TORN_PROGRAMS.map(|(_, kind)| kind), torn);
            }
            Err(Error::ProgramRefused { page: named }) if !cut && named == page => {
                self.see(FaultKind::RefusedProgram, 1);
                self.model.tear_program(page);
                let block = self.case.geometry.block_of(page);
                let wear = self.model.block(block).wear;
                let may = self.case.fault == Fault::RefusedProgram || wear == Wear::Programs;
                assert!(may, "{page} was refused, though its block is sound");
                self.retire(block);
            }
            other => panic!("programming {page}: {other:?}{}", at_cut(cut)),
        }
    }

    fn programmed(&mut self, page: Page, offset: u32, data: &[u8], spare: &[u8]) {
        let block = self.case.geometry.block_of(page);
        assert!(self.model.block(block).wear != Wear::Programs, "{page} is of a block worn out");
        if self.has_happened(FaultKind::SilentProgram) {
            self.model.drop_program(page, offset, data, spare);
        } else {
            self.model.program(page, offset, data, spare);
        }
    }

    fn erase(&mut self) {
        let block = self.block();
        self.erase_at(block);
    }

    fn erase_at(&mut self, block: Block) {
        let verdict = self.model.of_erase(block);
        self.maybe_cut(&verdict, self.armed.plan.torn_erase != TornErase::Any);
        let meter = self.subject.chip().meter().cloned();
        let answer = self.subject.chip().erase(block, Cause::Reclamation);
        if self.is_refused(&verdict, answer.err(), meter.as_ref()) {
            return;
        }
        self.witness.erases += 1;
        let cut = self.reach(true);
        self.wear(block, answer.is_ok());
        match answer {
            Ok(()) if !cut && self.has_happened(FaultKind::SilentErase) => {
                self.model.drop_erase(block);
            }
            Ok(()) if !cut => self.model.erase(block),
            Err(Error::PowerCut) if cut => {
                self.model.tear_erase(block);
                let torn = kind_in(&TORN_ERASES, self.armed.plan.torn_erase);
                self.power_was_cut(&TORN_ERASES.map(|(_, kind)| kind), torn);
            }
            Err(Error::EraseRefused { block: named }) if !cut && named == block => {
                self.see(FaultKind::RefusedErase, 1);
                self.model.tear_erase(block);
                let wear = self.model.block(block).wear;
                let may = self.case.fault == Fault::RefusedErase || wear == Wear::Erases;
                assert!(may, "{block} was refused, though it is sound");
                self.retire(block);
            }
            other => panic!("erasing {block}: {other:?}{}", at_cut(cut)),
        }
    }

    /// Cuts the power at the next operation, sometimes, if that is one to be torn.
    fn maybe_cut(&mut self, verdict: &Verdict, torn: bool) {
        if torn && verdict.is_clear() && self.random.random_range(0..10) == 0 {
            let plan = self.armed.plan.clone();
            let seed = self.random.random();
            self.arm(FaultPlan { seed, power_cut: Some(Cut::Operation(1)), ..plan });
        }
    }

    /// True if a rule forbids the operation: then nothing happened.
    fn is_refused(
        &mut self,
        verdict: &Verdict,
        error: Option<Error>,
        before: Option<&Meter>,
    ) -> bool {
        match error {
            Some(error) if verdict.allows(error) => {
                let chip = self.subject.chip();
                assert_eq!(chip.meter(), before, "an operation that is not allowed was booked");
                self.witness.refusals += 1;
                true
            }
            answer => {
                assert!(!verdict.forbidden, "{answer:?} where the rules say {verdict:?}");
                false
            }
        }
    }

    /// Counts an operation that reached the chip; true if the power is to be cut at it.
    fn reach(&mut self, is_change: bool) -> bool {
        self.steps += 1;
        self.armed.count(is_change)
    }

    /// Whether an erase, which was done or refused, wore its block out.
    fn wear(&mut self, block: Block, done: bool) {
        if self.has_happened(FaultKind::WornOut) {
            let erases = self.model.block(block).erases + 1;
            assert!(erases > WEAR_OUT.endurance, "{block} was worn out by {erases} erases");
            self.model.block(block).wear = if done { Wear::Programs } else { Wear::Erases };
        }
        let BlockModel { erases, wear, .. } = *self.model.block(block);
        let worn = self.armed.plan.wear_out.is_some() && erases >= WEAR_OUT.certain;
        assert!(!worn || wear != Wear::None, "{block} bore {erases} erases");
    }

    /// A block that failed: half of them are not used any more.
    fn retire(&mut self, block: Block) {
        if self.random.random() {
            self.mark_bad(block);
        }
    }

    fn mark_bad(&mut self, block: Block) {
        let good = self.model.blocks.iter().filter(|block| !block.bad).count();
        if good > 2 {
            self.subject.chip().mark_bad(block).expect("the block exists");
            self.model.block(block).bad = true;
        }
    }

    /// Marks a block bad, rarely, and asks for one.
    fn bad(&mut self) {
        let block = self.block();
        let blocks = self.case.geometry.blocks();
        let chip = self.subject.chip();
        let Some(state) = self.model.blocks.get(block.0 as usize) else {
            let missing = Error::NoSuchBlock { block, blocks };
            assert_eq!(chip.is_bad(block), Err(missing));
            assert_eq!(chip.mark_bad(block), Err(missing));
            return;
        };
        assert_eq!(chip.is_bad(block), Ok(state.bad));
        if self.random.random_range(0..50) == 0 {
            self.mark_bad(block);
        }
    }

    /// Nothing works without power; then it comes back, and all that was not under way is there.
    /// One of `kinds` happened; if it is known which, then `torn`.
    fn power_was_cut(&mut self, kinds: &[FaultKind], torn: Option<FaultKind>) {
        self.see(FaultKind::PowerCut, 1);
        let happened: Vec<FaultKind> =
            kinds.iter().copied().filter(|kind| self.has_happened(*kind)).collect();
        assert_eq!(happened.len(), kinds.len().min(1), "what the cut left: {happened:?}");
        assert!(torn.is_none_or(|torn| happened == [torn]), "{happened:?} in place of {torn:?}");
        self.armed.plan.power_cut = None;
        self.cuts += 1;
        let (page, block) = (self.page(), self.block());
        let chip = self.subject.chip();
        let cut = Err(Error::PowerCut);
        assert_eq!(chip.read(page, 0, &mut [0; 8], &mut [], Cause::Lookup).map(|_| ()), cut);
        assert_eq!(chip.program(page, 0, &[0; 8], &[], Cause::Update), cut);
        assert_eq!(chip.erase(block, Cause::Reclamation), cut);
        assert_eq!(chip.mark_bad(block), cut);
        assert_eq!(chip.is_bad(block).map(|_| ()), cut);
        self.subject.restore_power();
        self.compare_bad_blocks();
        self.compare_all();
    }

    /// No mark came or went.
    fn compare_bad_blocks(&mut self) {
        for (block, state) in (0..).map(Block).zip(&self.model.blocks) {
            assert_eq!(self.subject.chip().is_bad(block), Ok(state.bad), "the mark of {block}");
        }
    }

    /// Whatever happened: a block that is erased is as good as new, unless it fails.
    fn use_again(&mut self) {
        for block in (0..self.case.geometry.blocks()).map(Block) {
            self.erase_at(block);
        }
        self.compare_all();
        for page in (0..self.case.geometry.pages()).map(Page) {
            let mut data = vec![0; self.case.geometry.page_bytes() as usize];
            self.random.fill_bytes(&mut data);
            self.program_at(page, 0, &data, &[]);
        }
        self.compare_all();
    }

    /// All that happened was seen, and is in the chip's books, if it keeps any.
    fn compare_books(&mut self) {
        for kind in FaultKind::ALL {
            let seen = self.witness.faults.get(&kind).copied().unwrap_or(0);
            assert_eq!(self.subject.count(kind), seen, "faults of the kind \"{kind}\"");
        }
        let chip = self.subject.chip();
        let Some(meter) = chip.meter() else { return };
        let total = meter.total();
        let Witness { reads, programs, erases, .. } = self.witness;
        let booked = (total.page_reads, total.page_programs, total.block_erases);
        assert_eq!(
            booked,
            (reads, programs, erases),
            "reads, programs and erases that were booked"
        );
        assert!(meter.erases().iter().eq(self.model.blocks.iter().map(|block| &block.erases)));
        assert_eq!(meter.bits_corrected(), self.bits_corrected);
    }

    /// Notes `count` faults that were seen; the chip has counted as many.
    fn see(&mut self, kind: FaultKind, count: u64) {
        if count > 0 {
            let seen = self.witness.faults.entry(kind).or_default();
            *seen += count;
            assert_eq!(self.subject.count(kind), *seen, "faults of the kind \"{kind}\"");
        }
    }

    /// True if one more fault happened that can't be seen from outside.
    fn has_happened(&mut self, kind: FaultKind) -> bool {
        let seen = self.witness.faults.get(&kind).copied().unwrap_or(0);
        let happened = self.subject.count(kind) > seen;
        if happened {
            self.see(kind, 1);
        }
        happened
    }
}

const fn at_cut(cut: bool) -> &'static str {
    if cut { ", where the power is to be cut" } else { "" }
}
