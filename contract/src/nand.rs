//! The suite that every chip passes: random operations, allowed and forbidden, compared with a
//! plain model of the rules on [`device::Nand`].

use std::fmt;

use device::{Block, Cause, Error, Geometry, Nand, Page, ProgramOrder};
use rand::{Rng, RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

/// One history: a shape of a chip and a seed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Case {
    /// The shape.
    pub geometry: Geometry,
    /// What the random numbers start from.
    pub seed: u64,
}

impl fmt::Display for Case {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shape = &self.geometry;
        let order = match shape.order() {
            ProgramOrder::Any => "any",
            ProgramOrder::Ascending => "ascending",
        };
        write!(
            f,
            "{}+{}/{}x{}/programs{}/{order}/seed{}",
            shape.page_bytes(),
            shape.spare_bytes(),
            shape.pages_per_block(),
            shape.blocks(),
            shape.programs_per_page(),
            self.seed
        )
    }
}

/// All histories of the suite.
///
/// # Panics
/// Never: the shapes are possible ones.
#[must_use]
pub fn cases() -> Vec<Case> {
    let mut cases = Vec::new();
    for (page_bytes, spare_bytes) in [(64, 0), (512, 16), (2048, 64), (4096, 0)] {
        for (programs, order) in [
            (1, ProgramOrder::Ascending),
            (4, ProgramOrder::Ascending),
            (1, ProgramOrder::Any),
            (4, ProgramOrder::Any),
        ] {
            let geometry = Geometry::new(page_bytes, 8, 5)
                .and_then(|shape| shape.with_spare(spare_bytes))
                .and_then(|shape| shape.with_programs(programs))
                .expect("the shape is possible")
                .with_order(order);
            cases.extend((1..=3).map(|seed| Case { geometry, seed }));
        }
    }
    cases
}

/// What a history was made of, so that a test can see that it was not empty.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Witness {
    /// Programs that the rules allow.
    pub programs: u64,
    /// Reads.
    pub reads: u64,
    /// Erases that the rules allow.
    pub erases: u64,
    /// Operations that a rule forbids.
    pub refusals: u64,
}

/// Plays the history of `case` on the chip that `make` makes, which holds nothing.
///
/// # Panics
/// The chip differs from the model.
pub fn check<N: Nand>(case: &Case, make: impl FnOnce(Geometry) -> N) -> Witness {
    let mut run = Run {
        nand: make(case.geometry),
        model: Model::new(case.geometry),
        random: ChaCha8Rng::seed_from_u64(case.seed),
        witness: Witness::default(),
    };
    assert_eq!(run.nand.geometry(), case.geometry, "the chip has another shape");
    for block in (0..case.geometry.blocks()).map(Block) {
        run.model.bad[block.0 as usize] = run.nand.is_bad(block).expect("the block exists");
    }
    for _ in 0..4000 {
        match run.random.random_range(0..100) {
            0..60 => run.program(),
            60..90 => run.read(),
            90..97 => run.erase(),
            _ => run.bad(),
        }
    }
    run.read_all();
    run.witness
}

struct PageModel {
    bytes: Vec<u8>,
    spare: Vec<u8>,
    filled: usize,
    programs: u16,
    spare_done: bool,
}

impl PageModel {
    fn new(geometry: &Geometry) -> Self {
        PageModel {
            bytes: vec![0xFF; geometry.page_bytes() as usize],
            spare: vec![0xFF; geometry.spare_bytes() as usize],
            filled: 0,
            programs: 0,
            spare_done: false,
        }
    }
}

/// The rules, written as plainly as possible.
struct Model {
    geometry: Geometry,
    pages: Vec<PageModel>,
    bad: Vec<bool>,
}

impl Model {
    fn new(geometry: Geometry) -> Self {
        Model {
            geometry,
            pages: (0..geometry.pages()).map(|_| PageModel::new(&geometry)).collect(),
            bad: vec![false; geometry.blocks() as usize],
        }
    }

    /// Every error that a program deserves; none if the rules allow it.
    fn program_errors(&self, page: Page, offset: u32, data: usize, spare: usize) -> Vec<Error> {
        let geometry = &self.geometry;
        if page.0 >= geometry.pages() {
            return vec![Error::NoSuchPage { page, pages: geometry.pages() }];
        }
        let mut errors = Vec::new();
        let limit = geometry.page_bytes();
        if offset as usize + data > limit as usize || (data == 0 && spare == 0) {
            errors.push(Error::BadLength { offset, length: data as u32, limit });
        }
        let limit = geometry.spare_bytes();
        if spare > limit as usize {
            errors.push(Error::BadLength { offset: 0, length: spare as u32, limit });
        }
        let block = geometry.block_of(page);
        if self.bad[block.0 as usize] {
            errors.push(Error::BadBlock { block });
        }
        let state = &self.pages[page.0 as usize];
        let over = data > 0 && (offset as usize) < state.filled;
        if over || (spare > 0 && state.spare_done) {
            errors.push(Error::NotErased { page, erased_from: state.filled as u32 });
        }
        if state.programs >= geometry.programs_per_page() {
            errors.push(Error::TooManyPrograms { page, limit: geometry.programs_per_page() });
        }
        let first = geometry.first_page(block).0;
        let highest = (first..first + geometry.pages_per_block())
            .rev()
            .find(|other| self.pages[*other as usize].programs > 0);
        if let Some(highest) = highest.filter(|highest| page.0 < *highest)
            && geometry.order() == ProgramOrder::Ascending
        {
            errors.push(Error::OutOfOrder { page, lowest: Page(highest) });
        }
        errors
    }

    fn program(&mut self, page: Page, offset: u32, data: &[u8], spare: &[u8]) {
        let state = &mut self.pages[page.0 as usize];
        let end = offset as usize + data.len();
        state.bytes[offset as usize..end].copy_from_slice(data);
        state.spare[..spare.len()].copy_from_slice(spare);
        state.programs += 1;
        state.spare_done |= !spare.is_empty();
        if !data.is_empty() {
            state.filled = end;
        }
    }

    fn erase(&mut self, block: Block) {
        let first = self.geometry.first_page(block).0;
        for page in first..first + self.geometry.pages_per_block() {
            self.pages[page as usize] = PageModel::new(&self.geometry);
        }
    }
}

struct Run<N> {
    nand: N,
    model: Model,
    random: ChaCha8Rng,
    witness: Witness,
}

impl<N: Nand> Run<N> {
    /// A page: mostly one that exists.
    fn page(&mut self) -> Page {
        let pages = self.model.geometry.pages();
        match self.random.random_range(0..200) {
            0 => Page(pages + self.random.random_range(0..1000)),
            _ => Page(self.random.random_range(0..pages)),
        }
    }

    fn block(&mut self) -> Block {
        let blocks = self.model.geometry.blocks();
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
        let page_bytes = self.model.geometry.page_bytes();
        let filled = self.model.pages.get(page.0 as usize).map_or(0, |page| page.filled as u32);
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
        let spare = self.bytes(self.model.geometry.spare_bytes());
        let errors = self.model.program_errors(page, offset, data.len(), spare.len());
        let meter = self.nand.meter().cloned();
        match self.nand.program(page, offset, &data, &spare, Cause::Update) {
            Ok(()) => {
                assert!(errors.is_empty(), "{page} was programmed in spite of {errors:?}");
                self.model.program(page, offset, &data, &spare);
                self.witness.programs += 1;
            }
            Err(error) => self.refused(error, &errors, meter.as_ref()),
        }
    }

    fn erase(&mut self) {
        let block = self.block();
        let blocks = self.model.geometry.blocks();
        let errors = match self.model.bad.get(block.0 as usize) {
            None => vec![Error::NoSuchBlock { block, blocks }],
            Some(true) => vec![Error::BadBlock { block }],
            Some(false) => vec![],
        };
        let meter = self.nand.meter().cloned();
        match self.nand.erase(block, Cause::Reclamation) {
            Ok(()) => {
                assert!(errors.is_empty(), "{block} was erased in spite of {errors:?}");
                self.model.erase(block);
                self.witness.erases += 1;
            }
            Err(error) => self.refused(error, &errors, meter.as_ref()),
        }
    }

    fn refused(&mut self, error: Error, expected: &[Error], before: Option<&device::Meter>) {
        assert!(expected.contains(&error), "{error:?} where the rules say {expected:?}");
        assert_eq!(self.nand.meter(), before, "a refused operation was booked");
        self.witness.refusals += 1;
    }

    /// Marks a block bad, rarely, and asks for one.
    fn bad(&mut self) {
        let block = self.block();
        let Some(bad) = self.model.bad.get(block.0 as usize).copied() else {
            assert!(self.nand.is_bad(block).is_err());
            assert!(self.nand.mark_bad(block).is_err());
            return;
        };
        assert_eq!(self.nand.is_bad(block), Ok(bad));
        let left = self.model.bad.iter().filter(|bad| !**bad).count();
        if left > 2 && self.random.random_range(0..50) == 0 {
            self.nand.mark_bad(block).expect("the block exists");
            self.model.bad[block.0 as usize] = true;
        }
    }

    fn read(&mut self) {
        let page = self.page();
        let geometry = self.model.geometry;
        let offset = self.random.random_range(0..=geometry.page_bytes());
        let mut data = self.bytes(geometry.page_bytes() - offset + 1);
        let mut spare = self.bytes(geometry.spare_bytes());
        let read = self.nand.read(page, offset, &mut data, &mut spare, Cause::Lookup);
        let fits = offset as usize + data.len() <= geometry.page_bytes() as usize;
        match self.model.pages.get(page.0 as usize).filter(|_| fits) {
            None => assert!(read.is_err(), "{page} was read beyond its end"),
            Some(state) => {
                assert_eq!(read, Ok(0));
                let from = offset as usize;
                assert_eq!(data, state.bytes[from..from + data.len()], "{page} at {offset}");
                assert_eq!(spare, state.spare[..spare.len()], "the spare area of {page}");
                self.witness.reads += 1;
            }
        }
    }

    fn read_all(&mut self) {
        for (page, state) in (0..).map(Page).zip(&self.model.pages) {
            let (mut data, mut spare) = (state.bytes.clone(), state.spare.clone());
            data.fill(0);
            spare.fill(0);
            let read = self.nand.read(page, 0, &mut data, &mut spare, Cause::Lookup);
            assert_eq!(read, Ok(0));
            assert!(data == state.bytes && spare == state.spare, "{page} at the end");
        }
    }
}
