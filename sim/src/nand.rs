//! The simulated chip.

use device::{
    Block, Cause, Error, Geometry, Meter, Nand, NandCosts, Operation, Page, ProgramOrder, Result,
};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use crate::block::Contents;
use crate::faults::schedule::Clock;
use crate::faults::{FaultLog, FaultPlan};
use faulty::Faulty;

mod closely;
mod faulty;

/// A NAND chip in memory, with the rules, the costs and the books of a real one.
///
/// It takes memory only for blocks that hold data: a block gets its memory at the first program
/// and gives it back at the erase, for the next block that is programmed.
///
/// What it enforces, and the error that names the page or block:
///
/// - the page, block and bytes exist, a program programs something: `NoSuchPage`, `NoSuchBlock`,
///   `BadLength`;
/// - no program or erase of a bad block (reading is possible): `BadBlock`;
/// - on an ascending chip no page below one that was programmed: `OutOfOrder`;
/// - at most as many programs a page as the geometry says: `TooManyPrograms`;
/// - a part starts where the one before ended, or later; the spare area once: `NotErased`.
///
/// Bytes that a part leaves out stay `0xFF` and closed, as are pages that an ascending order
/// leaves out.
///
/// # Faults
///
/// A [`FaultPlan`] says what goes wrong, and when. What a fault did to the medium stays when the
/// plan is spent or another one is armed. After a power cut every operation returns
/// [`Error::PowerCut`] until the [power is back](SimulatedNand::restore_power):
///
/// ```
/// use device::{Cause, Error, Geometry, Nand, NandCosts, Page};
/// use flashtree_sim::{Cut, FaultKind, FaultPlan, SimulatedNand};
///
/// # fn main() -> device::Result<()> {
/// let geometry = Geometry::new(512, 32, 8)?;
/// let mut chip = SimulatedNand::new(geometry, NandCosts::default())
///     .with_faults(FaultPlan::cut(1, Cut::Change(2)));
/// chip.program(Page(0), 0, &[1; 512], &[], Cause::Update)?;
/// let torn = chip.program(Page(1), 0, &[2; 512], &[], Cause::Update);
/// assert_eq!(torn, Err(Error::PowerCut));
/// chip.restore_power();
/// let mut page = [0; 512];
/// chip.read(Page(0), 0, &mut page, &mut [], Cause::Recovery)?;
/// assert_eq!(page, [1; 512]);
/// assert_eq!(chip.faults().count(FaultKind::PowerCut), 1);
/// # Ok(())
/// # }
/// ```
///
/// An operation that fails or is torn takes its time and is booked, one without power is not.
///
/// A copy of a chip, faults and all, behaves as the chip does: so a test can go on from one state
/// in several ways. It costs memory for what the chip holds.
#[derive(Clone)]
pub struct SimulatedNand {
    geometry: Geometry,
    costs: NandCosts,
    blocks: Vec<BlockState>,
    contents: Vec<Contents>,
    /// Places in `contents` that no block holds.
    unused: Vec<u32>,
    meter: Meter,
    clock: Clock,
    /// Erases from which on a block may wear out.
    worn_from: u32,
    faulty: Option<Box<Faulty>>,
}

/// What there is to know about a block that holds nothing.
#[derive(Clone, Copy, Default)]
struct BlockState {
    /// Its place in `contents`; a block that is erased has none.
    contents: Option<u32>,
    bad: bool,
    /// True if something is wrong with it, or may be: a closer look is needed.
    watched: bool,
}

impl SimulatedNand {
    /// A chip fresh from the factory, without a bad block.
    #[must_use]
    pub fn new(geometry: Geometry, costs: NandCosts) -> Self {
        SimulatedNand {
            geometry,
            costs,
            blocks: vec![BlockState::default(); geometry.blocks() as usize],
            contents: Vec::new(),
            unused: Vec::new(),
            meter: Meter::new(geometry.blocks(), costs.energy_known()),
            clock: Clock::idle(),
            worn_from: u32::MAX,
            faulty: None,
        }
    }

    /// The same chip, where `bad` blocks are bad from the factory; blocks that it does not have
    /// are passed over.
    #[must_use]
    pub fn with_bad_blocks(mut self, bad: &[Block]) -> Self {
        for block in bad {
            if let Some(state) = self.blocks.get_mut(block.0 as usize) {
                state.bad = true;
            }
        }
        self
    }

    /// The same chip, where `count` blocks (all, if it has no more) are bad from the factory; the
    /// seed decides which.
    #[must_use]
    pub fn with_random_bad_blocks(self, seed: u64, count: u32) -> Self {
        let blocks = (0..self.geometry.blocks()).map(Block).collect();
        let chosen = choose(blocks, count, &mut ChaCha8Rng::seed_from_u64(seed));
        self.with_bad_blocks(&chosen)
    }

    /// The same chip with a plan of faults.
    #[must_use]
    pub fn with_faults(mut self, plan: FaultPlan) -> Self {
        self.arm(plan);
        self
    }

    /// Takes `plan` in place of the one before and counts operations from 0 again. What earlier
    /// faults did to the medium stays, and so does the state of the power.
    ///
    /// [`FaultPlan::default`] ends all faults to come.
    pub fn arm(&mut self, plan: FaultPlan) {
        self.take_plan(plan);
    }

    /// Cuts the power now, between two operations.
    pub fn cut_power(&mut self) {
        self.lose_power();
    }

    /// Gives the power back; the plan goes on.
    pub fn restore_power(&mut self) {
        self.regain_power();
    }

    /// True if the power was cut and is not back.
    #[must_use]
    pub fn is_without_power(&self) -> bool {
        self.faulty.as_ref().is_some_and(|faulty| faulty.is_without_power())
    }

    /// The faults that happened so far, under all plans.
    #[must_use]
    pub fn faults(&self) -> FaultLog {
        self.faulty.as_ref().map_or_else(FaultLog::default, |faulty| faulty.log())
    }

    /// Operations that reached the chip since the plan was armed, or since the chip was made.
    #[must_use]
    pub const fn operations(&self) -> u64 {
        self.clock.operations()
    }

    /// Programs and erases among them.
    #[must_use]
    pub const fn changes(&self) -> u64 {
        self.clock.changes()
    }

    /// What the operations cost.
    #[must_use]
    pub const fn costs(&self) -> &NandCosts {
        &self.costs
    }

    /// Bytes of memory for pages, those of erased blocks that wait for reuse included.
    #[must_use]
    pub fn resident_bytes(&self) -> u64 {
        self.contents.iter().map(Contents::memory).sum()
    }

    /// The contents of `block`, if anything was programmed in it since its last erase.
    fn contents_of(&self, block: Block) -> Option<&Contents> {
        let place = self.blocks[block.0 as usize].contents?;
        Some(&self.contents[place as usize])
    }

    /// Memory for `block`, given to it with the first program after an erase.
    fn contents_for(&mut self, block: Block) -> &mut Contents {
        let state = &mut self.blocks[block.0 as usize];
        let place = state.contents.or_else(|| self.unused.pop()).unwrap_or_else(|| {
            self.contents.push(Contents::new(&self.geometry));
            self.contents.len() as u32 - 1
        });
        state.contents = Some(place);
        &mut self.contents[place as usize]
    }

    /// Erases what `block` holds; its memory is free for another one.
    fn release(&mut self, block: Block) {
        if let Some(place) = self.blocks[block.0 as usize].contents.take() {
            self.contents[place as usize].erase();
            self.unused.push(place);
        }
    }

    /// Refuses a block in which nothing can be programmed or erased.
    fn check_usable(&self, block: Block) -> Result<BlockState> {
        let state = self.blocks[block.0 as usize];
        if state.bad { Err(Error::BadBlock { block }) } else { Ok(state) }
    }

    /// Refuses a read outside the page.
    fn check_read(&self, page: Page, offset: u32, bytes: usize, spare: usize) -> Result<Place> {
        let at = self.place(page)?;
        self.geometry.check_bytes(offset, bytes, spare)?;
        Ok(at)
    }

    /// Refuses an erase that a rule of the chip forbids.
    fn check_erase(&self, block: Block) -> Result<BlockState> {
        self.geometry.check_block(block)?;
        self.check_usable(block)
    }

    /// Refuses a program that a rule of the chip forbids.
    fn check_program(&self, page: Page, part: Part<'_>) -> Result<Place> {
        let at = self.place(page)?;
        let Part { offset, data, spare } = part;
        self.geometry.check_bytes(offset, data.len(), spare.len())?;
        if data.is_empty() && spare.is_empty() {
            let limit = self.geometry.page_bytes();
            return Err(Error::BadLength { offset, length: 0, limit });
        }
        if self.check_usable(at.block)?.watched {
            self.check_closed(at)?;
        }
        self.check_rules(at, part)?;
        Ok(at)
    }

    /// Refuses a program that what was programmed since the last erase forbids.
    fn check_rules(&self, at: Place, Part { offset, data, spare }: Part<'_>) -> Result<()> {
        let Some(contents) = self.contents_of(at.block) else {
            return Ok(());
        };
        if self.geometry.order() == ProgramOrder::Ascending && at.place + 1 < contents.next() {
            let lowest = Page(at.page.0 - at.place + contents.next() - 1);
            return Err(Error::OutOfOrder { page: at.page, lowest });
        }
        let state = contents.state(at.place);
        let over = !data.is_empty() && offset < state.filled();
        if over || (!spare.is_empty() && state.spare()) {
            return Err(Error::NotErased { page: at.page, erased_from: state.filled() });
        }
        let limit = self.geometry.programs_per_page();
        if state.programs() >= limit {
            return Err(Error::TooManyPrograms { page: at.page, limit });
        }
        Ok(())
    }

    /// Where `page` is.
    fn place(&self, page: Page) -> Result<Place> {
        self.geometry.check_page(page)?;
        let block = self.geometry.block_of(page);
        Ok(Place { page, block, place: page.0 - self.geometry.first_page(block).0 })
    }

    /// Reads what was programmed.
    fn read_contents(&self, at: Place, offset: u32, into: &mut [u8], spare: &mut [u8]) {
        match self.contents_of(at.block) {
            Some(contents) => contents.read(at.place, offset, into, spare),
            None => {
                into.fill(0xFF);
                spare.fill(0xFF);
            }
        }
    }

    fn book_read(&mut self, bytes: usize, cause: Cause) {
        let charge = self.costs.read.charge(bytes as u64, 1);
        self.meter.book(Operation::Read, cause, 1, bytes as u64, charge);
    }

    fn book_program(&mut self, bytes: usize, cause: Cause) {
        let charge = self.costs.program.charge(bytes as u64, 1);
        self.meter.book(Operation::Program, cause, 1, bytes as u64, charge);
    }

    fn book_erase(&mut self, block: Block, cause: Cause) {
        let charge = self.costs.erase.charge(0, 1);
        self.meter.book(Operation::Erase, cause, 1, 0, charge);
        self.meter.wear(block);
        if self.meter.erases()[block.0 as usize] >= self.worn_from {
            self.blocks[block.0 as usize].watched = true;
        }
    }
}

/// A page of the chip, with its block and its place in it.
#[derive(Clone, Copy)]
struct Place {
    page: Page,
    block: Block,
    place: u32,
}

/// What a program is to write.
#[derive(Clone, Copy)]
struct Part<'p> {
    offset: u32,
    data: &'p [u8],
    spare: &'p [u8],
}

impl Part<'_> {
    const fn bytes(&self) -> usize {
        self.data.len() + self.spare.len()
    }
}

/// Any `count` of `blocks`.
fn choose(mut blocks: Vec<Block>, count: u32, random: &mut ChaCha8Rng) -> Vec<Block> {
    let count = blocks.len().min(count as usize);
    for place in 0..count {
        let other = random.random_range(place..blocks.len());
        blocks.swap(place, other);
    }
    blocks.truncate(count);
    blocks
}

// Each operation has the same steps: check (nothing changes), count, act, book. Between counting
// and acting the plan of faults has its say: only an operation that the rules allow can be torn,
// refused or silently dropped. That is asked only if the countdown to the next event has run out
// or the block is watched: so a plan that does nothing costs one comparison.
impl Nand for SimulatedNand {
    fn geometry(&self) -> Geometry {
        self.geometry
    }

    fn read(
        &mut self,
        page: Page,
        offset: u32,
        into: &mut [u8],
        spare: &mut [u8],
        cause: Cause,
    ) -> Result<u16> {
        let at = match self.check_read(page, offset, into.len(), spare.len()) {
            Ok(at) => at,
            Err(error) => return Err(self.unless_without_power(error)),
        };
        if self.clock.read() || self.blocks[at.block.0 as usize].watched {
            return self.read_closely(at, offset, into, spare, cause);
        }
        self.read_contents(at, offset, into, spare);
        self.book_read(into.len() + spare.len(), cause);
        Ok(0)
    }

    fn program(
        &mut self,
        page: Page,
        offset: u32,
        data: &[u8],
        spare: &[u8],
        cause: Cause,
    ) -> Result<()> {
        let part = Part { offset, data, spare };
        let at = match self.check_program(page, part) {
            Ok(at) => at,
            Err(error) => return Err(self.unless_without_power(error)),
        };
        if self.clock.change() || self.blocks[at.block.0 as usize].watched {
            return self.program_closely(at, part, cause);
        }
        self.contents_for(at.block).program(at.place, offset, data, spare);
        self.book_program(part.bytes(), cause);
        Ok(())
    }

    fn erase(&mut self, block: Block, cause: Cause) -> Result<()> {
        let state = match self.check_erase(block) {
            Ok(state) => state,
            Err(error) => return Err(self.unless_without_power(error)),
        };
        if self.clock.change() || state.watched {
            return self.erase_closely(block, cause);
        }
        self.release(block);
        self.book_erase(block, cause);
        Ok(())
    }

    fn is_bad(&mut self, block: Block) -> Result<bool> {
        self.check_power()?;
        self.geometry.check_block(block)?;
        Ok(self.blocks[block.0 as usize].bad)
    }

    fn mark_bad(&mut self, block: Block) -> Result<()> {
        self.check_power()?;
        self.geometry.check_block(block)?;
        self.blocks[block.0 as usize].bad = true;
        Ok(())
    }

    fn costs(&self) -> Option<&NandCosts> {
        Some(&self.costs)
    }

    fn meter(&self) -> Option<&Meter> {
        Some(&self.meter)
    }
}
