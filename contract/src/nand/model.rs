//! The contract on [`device::Nand`], written as plainly as possible.
//!
//! Where a fault leaves something open, the model keeps the least that is certain: how far a page
//! was programmed at least, and that nobody knows what it holds.

use device::{Block, Error, Geometry, Page, ProgramOrder};

/// What a page reads as.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Content {
    /// Exactly its bytes.
    Holds,
    /// Anything, or nothing that can be corrected, and something else each time: it was torn.
    Anything,
    /// Programmed over what a dropped erase had left: not what was to be written.
    Mixed,
}

#[derive(Clone)]
pub(super) struct PageModel {
    /// The data, then the spare area.
    pub(super) bytes: Vec<u8>,
    pub(super) content: Content,
    /// Bytes of data that are closed, at least.
    pub(super) filled: u32,
    /// Programs, at least.
    programs: u16,
    /// True if the spare area was certainly programmed.
    spare_done: bool,
}

impl PageModel {
    fn new(geometry: &Geometry) -> Self {
        PageModel {
            bytes: vec![0xFF; (geometry.page_bytes() + geometry.spare_bytes()) as usize],
            content: Content::Holds,
            filled: 0,
            programs: 0,
            spare_done: false,
        }
    }

    /// Forgets what was done since the last erase, but not what the page holds.
    fn forget_programs(&mut self) {
        (self.filled, self.programs, self.spare_done) = (0, 0, false);
    }

    fn is_torn(&self) -> bool {
        self.content == Content::Anything
    }
}

/// What was done to a block as a whole.
#[derive(Clone, Copy, Default)]
pub(super) struct BlockModel {
    pub(super) bad: bool,
    pub(super) erases: u32,
    pub(super) wear: Wear,
}

/// How a block is worn out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Wear {
    /// It is not.
    #[default]
    None,
    /// It refuses programs.
    Programs,
    /// It refuses erases.
    Erases,
}

/// A program as far as the rules go.
#[derive(Clone, Copy, Debug)]
pub(super) struct Part {
    pub(super) page: Page,
    pub(super) offset: u32,
    pub(super) data: usize,
    pub(super) spare: usize,
}

/// What the rules say to an operation.
#[derive(Debug, Default)]
pub(super) struct Verdict {
    /// Any of these errors may be returned.
    errors: Vec<Error>,
    /// So may this page's not being erased, from wherever on.
    torn: Option<Page>,
    /// True if one of them must be.
    pub(super) forbidden: bool,
}

impl Verdict {
    fn forbid(&mut self, error: Error) {
        self.errors.push(error);
        self.forbidden = true;
    }

    /// True if the operation must be done.
    pub(super) fn is_clear(&self) -> bool {
        self.errors.is_empty() && self.torn.is_none()
    }

    pub(super) fn allows(&self, error: Error) -> bool {
        let torn = match error {
            Error::NotErased { page, .. } => self.torn == Some(page),
            _ => false,
        };
        torn || self.errors.contains(&error)
    }
}

pub(super) struct Model {
    pub(super) geometry: Geometry,
    pub(super) pages: Vec<PageModel>,
    pub(super) blocks: Vec<BlockModel>,
}

impl Model {
    pub(super) fn new(geometry: Geometry) -> Self {
        Model {
            geometry,
            pages: vec![PageModel::new(&geometry); geometry.pages() as usize],
            blocks: vec![BlockModel::default(); geometry.blocks() as usize],
        }
    }

    pub(super) fn page(&self, page: Page) -> Option<&PageModel> {
        self.pages.get(page.0 as usize)
    }

    pub(super) fn block(&mut self, block: Block) -> &mut BlockModel {
        &mut self.blocks[block.0 as usize]
    }

    fn pages_of(&self, block: Block) -> std::ops::Range<u32> {
        let first = self.geometry.first_page(block).0;
        first..first + self.geometry.pages_per_block()
    }

    /// What the arguments alone say.
    fn of_arguments(&self, Part { page, offset, data, spare }: Part) -> Verdict {
        let mut verdict = Verdict::default();
        let geometry = &self.geometry;
        if page.0 >= geometry.pages() {
            verdict.forbid(Error::NoSuchPage { page, pages: geometry.pages() });
        }
        let limit = geometry.page_bytes();
        if offset as usize + data > limit as usize {
            verdict.forbid(Error::BadLength { offset, length: data as u32, limit });
        }
        let limit = geometry.spare_bytes();
        if spare > limit as usize {
            verdict.forbid(Error::BadLength { offset: 0, length: spare as u32, limit });
        }
        verdict
    }

    pub(super) fn of_read(&self, part: Part) -> Verdict {
        self.of_arguments(part)
    }

    pub(super) fn of_program(&self, part: Part) -> Verdict {
        let mut verdict = self.of_arguments(part);
        let Part { page, offset, data, spare } = part;
        if data == 0 && spare == 0 {
            let limit = self.geometry.page_bytes();
            verdict.forbid(Error::BadLength { offset, length: 0, limit });
        }
        let Some(state) = self.page(page) else { return verdict };
        let block = self.geometry.block_of(page);
        if self.blocks[block.0 as usize].bad {
            verdict.forbid(Error::BadBlock { block });
        }
        self.of_page(part, state, &mut verdict);
        self.of_order(page, &mut verdict);
        verdict
    }

    /// What was programmed in the page before.
    fn of_page(&self, part: Part, state: &PageModel, verdict: &mut Verdict) {
        let Part { page, offset, data, spare } = part;
        let over = data > 0 && offset < state.filled;
        if over || (spare > 0 && state.spare_done) {
            verdict.forbid(Error::NotErased { page, erased_from: state.filled });
        }
        let limit = self.geometry.programs_per_page();
        if state.programs >= limit {
            verdict.forbid(Error::TooManyPrograms { page, limit });
        }
        if state.is_torn() {
            verdict.torn = Some(page);
            verdict.errors.push(Error::TooManyPrograms { page, limit });
        }
    }

    /// What was programmed in the pages above.
    fn of_order(&self, page: Page, verdict: &mut Verdict) {
        if self.geometry.order() == ProgramOrder::Any {
            return;
        }
        let above = page.0 + 1..self.pages_of(self.geometry.block_of(page)).end;
        for lowest in above.rev().map(Page) {
            let state = &self.pages[lowest.0 as usize];
            if state.programs > 0 {
                verdict.forbid(Error::OutOfOrder { page, lowest });
                return;
            }
            if state.is_torn() {
                verdict.errors.push(Error::OutOfOrder { page, lowest });
            }
        }
    }

    pub(super) fn of_erase(&self, block: Block) -> Verdict {
        let mut verdict = Verdict::default();
        let blocks = self.geometry.blocks();
        match self.blocks.get(block.0 as usize) {
            None => verdict.forbid(Error::NoSuchBlock { block, blocks }),
            Some(state) if state.bad => verdict.forbid(Error::BadBlock { block }),
            Some(_) => {}
        }
        verdict
    }

    /// Programs what the rules allow. Bits only go from 1 to 0: that matters where an erase was
    /// dropped.
    pub(super) fn program(&mut self, page: Page, offset: u32, data: &[u8], spare: &[u8]) {
        let area = self.geometry.page_bytes() as usize;
        let state = &mut self.pages[page.0 as usize];
        let mut clean = true;
        for (start, given) in [(offset as usize, data), (area, spare)] {
            for (byte, new) in state.bytes[start..].iter_mut().zip(given) {
                *byte &= new;
                clean &= *byte == *new;
            }
        }
        if !clean && state.content == Content::Holds {
            state.content = Content::Mixed;
        }
        self.drop_program(page, offset, data, spare);
    }

    /// Takes a page as programmed, though it holds what it held.
    pub(super) fn drop_program(&mut self, page: Page, offset: u32, data: &[u8], spare: &[u8]) {
        let state = &mut self.pages[page.0 as usize];
        state.programs += 1;
        state.spare_done |= !spare.is_empty();
        if !data.is_empty() {
            state.filled = offset + data.len() as u32;
        }
    }

    /// A program that was begun leaves anything in its page and changes nothing else.
    pub(super) fn tear_program(&mut self, page: Page) {
        self.pages[page.0 as usize].content = Content::Anything;
    }

    pub(super) fn erase(&mut self, block: Block) {
        self.block(block).erases += 1;
        for page in self.pages_of(block) {
            self.pages[page as usize] = PageModel::new(&self.geometry);
        }
    }

    /// Takes a block as erased, though its pages hold what they held.
    pub(super) fn drop_erase(&mut self, block: Block) {
        self.block(block).erases += 1;
        for page in self.pages_of(block) {
            self.pages[page as usize].forget_programs();
        }
    }

    /// An erase that was begun leaves anything in the pages of its block and changes nothing else.
    pub(super) fn tear_erase(&mut self, block: Block) {
        self.block(block).erases += 1;
        for page in self.pages_of(block) {
            self.pages[page as usize].content = Content::Anything;
            self.pages[page as usize].forget_programs();
        }
    }
}
