//! The paths of an operation at which something may go wrong.

use device::{Block, Cause, Error, Operation, Page, Result};
use rand::RngExt;

use super::faulty::Faulty;
use super::{Part, Place, SimulatedNand};
use crate::faults::condition::{BlockCondition, Habit, PageImage, Reading};
use crate::faults::injector::{Verdict, counts};
use crate::faults::{FaultKind, FaultPlan, TornErase, TornProgram, torn};

impl SimulatedNand {
    /// Refuses a page that takes no program, whatever it looks like.
    #[cold]
    pub(super) fn check_closed(&self, at: Place) -> Result<()> {
        let image = self.faulty.as_deref().and_then(|faulty| faulty.image(at));
        if image.is_some_and(PageImage::is_closed) {
            let erased_from = self.geometry.page_bytes();
            return Err(Error::NotErased { page: at.page, erased_from });
        }
        Ok(())
    }

    #[cold]
    pub(super) fn read_closely(
        &mut self,
        at: Place,
        offset: u32,
        into: &mut [u8],
        spare: &mut [u8],
        cause: Cause,
    ) -> Result<u16> {
        let verdict = self.verdict(at.block, Operation::Read)?;
        if verdict == Verdict::Cut {
            self.book_read(into.len() + spare.len(), cause);
            return Err(self.power_cut());
        }
        self.read_contents(at, offset, into, spare);
        self.book_read(into.len() + spare.len(), cause);
        let Some(faulty) = self.faulty.as_deref_mut() else { return Ok(0) };
        if let Some(reads) = faulty.reads.get_mut(at.block.0 as usize) {
            *reads = reads.saturating_add(1);
        }
        let mut reading = Reading::Stable;
        if let Some(image) = faulty.image(at) {
            image.read(offset as usize, into);
            image.read(self.geometry.page_bytes() as usize, spare);
            reading = image.reading();
        }
        let bits = faulty.weak_bits(at).saturating_add(faulty.injector.bits(verdict));
        match reading {
            Reading::Stable => self.correct(bits, at.page, into),
            Reading::Unreadable => self.give_up(bits, at.page, into),
            Reading::Unstable => match faulty.injector.random.random_range(0..4) {
                0 => self.give_up(bits, at.page, into),
                1 => Ok(self.flip_unseen(bits.max(1), into)),
                _ => self.correct(bits, at.page, into),
            },
        }
    }

    /// Reads a page in which `bits` bits flipped.
    fn correct(&mut self, bits: u16, page: Page, into: &mut [u8]) -> Result<u16> {
        let Some(faulty) = self.faulty.as_deref_mut().filter(|_| bits > 0) else { return Ok(0) };
        match faulty.injector.plan.flips.ecc_bits {
            None => Ok(self.flip_unseen(bits, into)),
            Some(most) if bits <= most => {
                faulty.log.note(FaultKind::CorrectedRead);
                self.meter.corrected(u64::from(bits));
                Ok(bits)
            }
            Some(_) => self.give_up(bits, page, into),
        }
    }

    fn give_up(&mut self, bits: u16, page: Page, into: &mut [u8]) -> Result<u16> {
        if let Some(faulty) = self.faulty.as_deref_mut() {
            faulty.log.note(FaultKind::UncorrectableRead);
            torn::flip(into, bits, &mut faulty.injector.random);
        }
        Err(Error::Uncorrectable { page })
    }

    fn flip_unseen(&mut self, bits: u16, into: &mut [u8]) -> u16 {
        if let Some(faulty) = self.faulty.as_deref_mut() {
            faulty.log.note(FaultKind::UnseenFlips);
            torn::flip(into, bits, &mut faulty.injector.random);
        }
        0
    }

    #[cold]
    pub(super) fn program_closely(
        &mut self,
        at: Place,
        part: Part<'_>,
        cause: Cause,
    ) -> Result<()> {
        let verdict = self.verdict(at.block, Operation::Program)?;
        self.book_program(part.bytes(), cause);
        match verdict {
            Verdict::Cut => {
                let torn = self.plan().torn_program;
                let left = self.tear_program(at, part, torn);
                self.note(left.kind());
                Err(self.power_cut())
            }
            Verdict::Refuse => {
                self.condition(at.block).program = Habit::Refuses;
                self.tear_program(at, part, TornProgram::Any);
                self.note(FaultKind::RefusedProgram);
                Err(Error::ProgramRefused { page: at.page })
            }
            Verdict::Drop => {
                let old = self.image(at);
                self.write(at, part);
                self.put_image(at, old.open());
                self.note(FaultKind::SilentProgram);
                Ok(())
            }
            _ => {
                self.program_over(at, part);
                Ok(())
            }
        }
    }

    fn write(&mut self, at: Place, part: Part<'_>) {
        self.contents_for(at.block).program(at.place, part.offset, part.data, part.spare);
    }

    /// Programs a page; where something is left that a dropped erase should have removed, the two
    /// mix.
    fn program_over(&mut self, at: Place, part: Part<'_>) {
        self.write(at, part);
        let page_bytes = self.geometry.page_bytes() as usize;
        let stride = self.stride();
        let Some(faulty) = self.faulty.as_deref_mut() else { return };
        let has_code = faulty.injector.plan.flips.ecc_bits.is_some();
        let condition = faulty.conditions.get_mut(&at.block);
        let Some(image) = condition.and_then(|found| found.pages.get_mut(&at.place)) else {
            return;
        };
        let data = image.program(part.offset as usize, part.data, stride);
        let spare = image.program(page_bytes, part.spare, stride);
        if has_code && !(data && spare) {
            image.spoil();
        }
    }

    /// Leaves of a program what `torn` says; returns what that was.
    fn tear_program(&mut self, at: Place, part: Part<'_>, torn: TornProgram) -> TornProgram {
        let page_bytes = self.geometry.page_bytes() as usize;
        let before = self.image(at);
        let old = before.bytes(self.stride());
        let mut new = old.clone();
        let offset = part.offset as usize;
        new[offset..offset + part.data.len()].copy_from_slice(part.data);
        new[page_bytes..page_bytes + part.spare.len()].copy_from_slice(part.spare);
        let start = if part.data.is_empty() { page_bytes } else { offset };
        let end = match part.spare.len() {
            0 => offset + part.data.len(),
            spare => page_bytes + spare,
        };
        self.write(at, part);
        let random = &mut self.faulty.get_or_insert_default().injector.random;
        let torn = torn.settle(random);
        let image = match torn {
            TornProgram::Untouched => before,
            _ => torn::page_after_program(torn, (old, new), start..end, page_bytes, random),
        };
        self.put_image(at, image);
        torn
    }

    #[cold]
    pub(super) fn erase_closely(&mut self, block: Block, cause: Cause) -> Result<()> {
        let verdict = self.verdict(block, Operation::Erase)?;
        self.book_erase(block, cause);
        match verdict {
            Verdict::Cut => {
                let torn = self.plan().torn_erase;
                let left = self.tear_erase(block, torn);
                self.note(left.kind());
                Err(self.power_cut())
            }
            Verdict::Refuse => {
                self.condition(block).erase = Habit::Refuses;
                self.tear_erase(block, TornErase::Any);
                self.note(FaultKind::RefusedErase);
                Err(Error::EraseRefused { block })
            }
            Verdict::Drop => {
                self.keep_all(block);
                self.note(FaultKind::SilentErase);
                Ok(())
            }
            _ => {
                self.erase_all(block);
                Ok(())
            }
        }
    }

    /// Erases a block as it should be; what is wrong with the block itself stays.
    fn erase_all(&mut self, block: Block) {
        self.release(block);
        if let Some(faulty) = self.faulty.as_deref_mut() {
            if let Some(condition) = faulty.conditions.get_mut(&block) {
                condition.pages.clear();
            }
            if let Some(reads) = faulty.reads.get_mut(block.0 as usize) {
                *reads = 0;
            }
        }
        self.watch(block);
    }

    /// Leaves of an erase what `torn` says; returns what that was.
    fn tear_erase(&mut self, block: Block, torn: TornErase) -> TornErase {
        let torn = torn.settle(&mut self.faulty.get_or_insert_default().injector.random);
        let bytes = (self.stride(), self.geometry.page_bytes() as usize);
        self.replace_pages(block, |old, faulty| {
            torn::page_after_erase(torn, old, bytes, &mut faulty.injector.random)
        });
        torn
    }

    /// Keeps what `block` holds, though the chip takes it as erased.
    fn keep_all(&mut self, block: Block) {
        self.replace_pages(block, |old, _| old.open());
    }

    /// Erases `block` by its rules, and puts in each page what `image` makes of its content.
    fn replace_pages(&mut self, block: Block, image: impl Fn(PageImage, &mut Faulty) -> PageImage) {
        let first = self.geometry.first_page(block).0;
        let pages: Vec<PageImage> = (0..self.geometry.pages_per_block())
            .map(|place| self.image(Place { page: Page(first + place), block, place }))
            .collect();
        self.erase_all(block);
        let faulty = self.faulty.get_or_insert_default();
        for (place, old) in (0..).zip(pages) {
            let image = image(old, faulty);
            if !image.is_erased() {
                faulty.conditions.entry(block).or_default().pages.insert(place, image);
            }
        }
        self.watch(block);
    }

    /// What happens to an operation on `block`, by the plan, then by the block's habits and wear.
    fn verdict(&mut self, block: Block, operation: Operation) -> Result<Verdict> {
        let erases = self.meter.erases()[block.0 as usize];
        let Some(faulty) = self.faulty.as_deref_mut() else { return Ok(Verdict::Proceed) };
        if faulty.is_without_power() {
            self.clock.take_back(counts(operation));
            return Err(Error::PowerCut);
        }
        let reads = faulty.reads.get(block.0 as usize).copied().unwrap_or(0);
        let stress = faulty.injector.stress(reads, erases);
        let mut verdict = faulty.injector.verdict(operation, &self.clock, stress);
        if verdict == Verdict::Proceed || verdict == Verdict::Drop {
            let habit = faulty.habit(block, operation);
            verdict = if habit == Verdict::Proceed { verdict } else { habit };
        }
        self.look_ahead();
        if operation == Operation::Erase && verdict == Verdict::Proceed {
            return Ok(self.wear_out(block, erases.saturating_add(1)));
        }
        Ok(verdict)
    }

    /// Whether a block bears its `erases`th erase; if not, it refuses this one, or the programs
    /// that follow.
    fn wear_out(&mut self, block: Block, erases: u32) -> Verdict {
        let Some(faulty) = self.faulty.as_deref_mut() else { return Verdict::Proceed };
        if self.worn_from >= erases || !faulty.injector.wears_out(erases) {
            return Verdict::Proceed;
        }
        let condition = faulty.conditions.entry(block).or_default();
        if condition.program == Habit::Refuses {
            return Verdict::Proceed;
        }
        faulty.log.note(FaultKind::WornOut);
        if faulty.injector.random.random() {
            return Verdict::Refuse;
        }
        condition.program = Habit::Refuses;
        Verdict::Proceed
    }

    fn power_cut(&mut self) -> Error {
        self.lose_power();
        Error::PowerCut
    }

    /// A page as it reads now; it takes no program.
    fn image(&self, at: Place) -> PageImage {
        let image = self.faulty.as_deref().and_then(|faulty| faulty.image(at));
        match (image, self.contents_of(at.block)) {
            (Some(image), _) => image.clone().close(),
            (None, Some(contents)) => PageImage::new(contents.whole(at.place), Reading::Stable),
            (None, None) => PageImage::blank(Reading::Stable),
        }
    }

    fn put_image(&mut self, at: Place, image: PageImage) {
        self.condition(at.block).pages.insert(at.place, image);
    }

    /// What is wrong with `block`, which is watched from now on.
    fn condition(&mut self, block: Block) -> &mut BlockCondition {
        self.blocks[block.0 as usize].watched = true;
        self.faulty.get_or_insert_default().conditions.entry(block).or_default()
    }

    fn note(&mut self, kind: FaultKind) {
        self.faulty.get_or_insert_default().log.note(kind);
    }

    fn plan(&mut self) -> &FaultPlan {
        &self.faulty.get_or_insert_default().injector.plan
    }

    /// Bytes of a page, its spare area included.
    const fn stride(&self) -> usize {
        (self.geometry.page_bytes() + self.geometry.spare_bytes()) as usize
    }
}
