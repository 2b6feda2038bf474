//! Making and opening a page log.
//!
//! Opening reads the first tag of each block, which tells its stream and its place among the blocks
//! of that stream; the tags of the pages in the newest block of each stream, and of those that the
//! tree wrote apart; the record of the last checkpoint, which every page names; and, where there is
//! a journal, the tags of the log's own pages behind that checkpoint. Where a tag is missing or
//! damaged, the middle of its page is read, for there it may stand again.

use alloc::boxed::Box;
use alloc::vec;
use alloc::vec::Vec;

use device::{Block, Cause, Nand, Page, Watched};

use super::blocks::Blocks;
use super::checkpoint::Checkpoints;
use super::journal::Journal;
use super::record::{Epoch, LABEL_BYTES_MOST, Record};
use super::stream::Stream;
use super::tag::APART_KIND;
use super::{PageKind, PageLog, Tag, tag};
use crate::canary::{Canary, Mistake};
use crate::{Durability, Error, Result};

/// What is chosen when a page log is made.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PageLogOptions {
    /// How much lasts through a power cut.
    pub durability: Durability,
    /// Bytes of the journal; `None` for one that suits the chip.
    pub journal_bytes: Option<u64>,
    /// Bytes of the user's own, at most 64.
    pub label: Vec<u8>,
    /// A mistake to be made.
    #[cfg(feature = "canaries")]
    pub canary: Option<crate::Canary>,
}

impl PageLogOptions {
    fn mistake(&self) -> Mistake {
        #[cfg(feature = "canaries")]
        return Mistake::new(self.canary);
        #[cfg(not(feature = "canaries"))]
        Mistake::default()
    }

    pub(super) fn is_durable(&self) -> bool {
        self.durability != Durability::None
    }

    pub(super) fn has_journal(&self) -> bool {
        self.durability.has_journal()
    }
}

/// What a page log says of itself before it is opened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PageLogDescription {
    /// How much lasts through a power cut.
    pub durability: Durability,
    /// Bytes of the journal; 0 if there is none.
    pub journal_bytes: u64,
    /// Bytes of the user's own.
    pub label: Vec<u8>,
    /// The root record.
    pub root: Vec<u8>,
}

/// The newest page of a stream.
#[derive(Clone, Copy)]
struct Newest {
    page: Page,
    tag: Tag,
    /// True if something that is no whole page stands behind it.
    is_torn: bool,
}

/// The newest pages of both streams.
#[derive(Clone, Copy, Default)]
struct Ends {
    tree: Option<Newest>,
    own: Option<Newest>,
}

impl Ends {
    /// The sequence behind all.
    fn next_sequence(&self) -> u64 {
        let next = |end: Option<Newest>| end.map_or(0, |newest| newest.tag.sequence + 1);
        next(self.tree).max(next(self.own))
    }
}

impl<'d> PageLog<'d> {
    /// A log without any page. What stands on the chip is forgotten with its first checkpoint.
    ///
    /// # Errors
    /// The label is too long, the chip has too few good blocks, or it failed.
    pub fn create(nand: Box<dyn Nand + 'd>, options: &PageLogOptions) -> Result<Self> {
        let limit = LABEL_BYTES_MOST as u64;
        if options.label.len() as u64 > limit {
            return Err(Error::Label { bytes: options.label.len() as u64, limit });
        }
        let pages_most = Journal::pages_for(nand.geometry(), options);
        let mut log = PageLog::bare(nand, options.clone(), pages_most);
        log.sequence = log.survey()?.next_sequence();
        let (have, need) = (log.blocks.good(), log.own_reserve() + 1);
        if have < need {
            return Err(device::Error::TooFewBlocks { have, need }.into());
        }
        // What stood here must not be found any more once a block of it is erased: so, if there is
        // a free block, this goes first.
        if log.blocks.free() == 0 {
            log.free_all();
        }
        log.make_checkpoint(&[], None, false)?;
        log.free_all();
        Ok(log)
    }

    /// Nothing but the log's own present block is in use.
    fn free_all(&mut self) {
        for block in (0..self.blocks.count()).map(Block) {
            if !self.blocks.is_bad(block) && !self.own.holds(block) {
                self.blocks.set_free(block);
            }
        }
    }

    /// The log on a chip as its last checkpoint left it, and the root record of that. What the
    /// journal holds is to be replayed.
    ///
    /// # Errors
    /// There is none, it is of another version, it was not closed where nothing else lasts, it is
    /// damaged, or the chip failed.
    pub fn open(nand: Box<dyn Nand + 'd>) -> Result<(Self, Vec<u8>)> {
        PageLog::open_with(nand, &PageLogOptions::default())
    }

    /// As [`PageLog::open`]; what `options` say is taken from the chip, but for the mistakes that
    /// tests make on purpose.
    ///
    /// # Errors
    /// As [`PageLog::open`].
    pub fn open_with(
        nand: Box<dyn Nand + 'd>,
        options: &PageLogOptions,
    ) -> Result<(Self, Vec<u8>)> {
        let (mut log, record, ends) = PageLog::find(nand, options.mistake())?;
        let since = log.since()?;
        log.sequence = ends.next_sequence();
        log.refuse_gaps(since, ends.own.map(|newest| log.geometry.block_of(newest.page)))?;
        let is_torn = ends.own.is_some_and(|newest| newest.is_torn);
        let is_last = since + 1 == log.sequence && !is_torn;
        let is_closed = is_last && record.is_closed;
        if !log.options.is_durable() && !is_closed {
            return Err(Error::NotClosed);
        }
        if record.root.is_empty() {
            return Err(Error::NotAnIndex { is_ours: true, what: "its making was broken off" });
        }
        if log.options.is_durable() && (!is_last || record.journal.is_some()) {
            log.find_rest(since, record.journal.is_some())?;
        }
        if log.options.is_durable() {
            log.keep_damaged(&record)?;
        }
        log.free_stale(&record)?;
        log.may_be_untold = log.options.is_durable() && log.blocks.free() <= 1;
        log.pin_records()?;
        Ok((log, record.root))
    }

    /// Reads what the log on a chip says of itself; changes nothing.
    ///
    /// # Errors
    /// There is none, or the chip failed.
    pub fn describe(nand: Box<dyn Nand + 'd>) -> Result<PageLogDescription> {
        let (log, record, _) = PageLog::find(nand, Mistake::default())?;
        let page_bytes = u64::from(log.geometry.page_bytes());
        Ok(PageLogDescription {
            durability: record.durability,
            journal_bytes: u64::from(record.journal_pages) * page_bytes,
            label: record.label,
            root: record.root,
        })
    }

    fn bare(nand: Box<dyn Nand + 'd>, options: PageLogOptions, journal_pages: u32) -> Self {
        let geometry = nand.geometry();
        PageLog {
            nand: Watched::new(nand),
            geometry,
            blocks: Blocks::new(geometry.blocks()),
            tree: Stream::default(),
            apart: Stream::default(),
            is_apart: false,
            own: Stream::default(),
            sequence: 0,
            page: vec![0xFF; geometry.page_bytes() as usize],
            journal: Journal::new(journal_pages),
            checkpoints: Checkpoints::default(),
            root_bytes: 0,
            record_blocks: super::record_blocks(geometry, 0),
            gives_back: false,
            may_be_untold: false,
            mistake: options.mistake(),
            #[cfg(feature = "canaries")]
            held: None,
            #[cfg(feature = "canaries")]
            root_before: Vec::new(),
            options,
        }
    }

    /// Finds the last checkpoint.
    fn find(nand: Box<dyn Nand + 'd>, mistake: Mistake) -> Result<(Self, Record, Ends)> {
        let mut log = PageLog::bare(nand, PageLogOptions::default(), 0);
        log.mistake = mistake;
        let what = "it holds no checkpoint";
        let ends = log.survey()?;
        let newest = ends.own.ok_or(Error::NotAnIndex { is_ours: false, what })?;
        let (record, page) = log.last_checkpoint(&newest)?;
        let pages_most = log.geometry.pages() / 4 + super::journal::PAGES_LEAST;
        if record.journal_pages > pages_most {
            return Err(Error::NotAnIndex {
                is_ours: true,
                what: "its journal is longer than the chip",
            });
        }
        log.journal = Journal::new(record.journal_pages);
        log.checkpoints = Checkpoints::of(&record, page);
        log.journal.epoch = match record.journal {
            Some(epoch) => epoch,
            None => Epoch { id: record.id.0, since: log.since()? },
        };
        log.check_is_last(&ends)?;
        log.options = PageLogOptions {
            durability: record.durability,
            journal_bytes: None,
            label: record.label.clone(),
            #[cfg(feature = "canaries")]
            canary: None,
        };
        Ok((log, record, ends))
    }

    fn last_checkpoint(&mut self, newest: &Newest) -> Result<(Record, Page)> {
        if newest.tag.kind == PageKind::Checkpoint {
            // Its last piece is written last: where only that is not whole it may be torn, and the
            // one before stands.
            let is_torn = self.read_piece(newest.page, Cause::Recovery)?.is_none();
            if !is_torn || newest.tag.checkpoint.is_none() {
                return Ok((self.read_record(newest.page, Cause::Recovery)?, newest.page));
            }
        }
        let what = "its first checkpoint is damaged";
        let page = newest.tag.checkpoint.ok_or(Error::NotAnIndex { is_ours: true, what })?;
        Ok((self.read_record(page, Cause::Recovery)?, page))
    }

    /// Refuses a checkpoint that is not the last one, where a page of the tree names a later one:
    /// that is damaged, and what this one needs may be overwritten. One that was torn is named by
    /// no page.
    fn check_is_last(&mut self, ends: &Ends) -> Result<()> {
        let since = self.since()?;
        let names_another = |newest: Newest| {
            newest.tag.sequence > since && newest.tag.checkpoint != self.checkpoints.page()
        };
        if ends.tree.is_some_and(names_another) {
            return Err(Error::NotAnIndex {
                is_ours: true,
                what: "its last checkpoint is damaged",
            });
        }
        Ok(())
    }

    /// The sequence of the last checkpoint.
    fn since(&mut self) -> Result<u64> {
        let damaged = Error::NotAnIndex { is_ours: true, what: "its checkpoint is damaged" };
        let page = self.checkpoints.page().ok_or(damaged)?;
        Ok(self.tag(page, Cause::Recovery)?.ok_or(damaged)?.sequence)
    }

    /// Finds out which blocks hold pages, and the newest pages.
    fn survey(&mut self) -> Result<Ends> {
        let (mut tree, mut apart, mut own) = (None, None, None);
        let (mut known, mut erases) = (0u64, 0u64);
        for block in (0..self.blocks.count()).map(Block) {
            if self.nand.is_bad(block)? {
                self.blocks.set_bad(block);
                continue;
            }
            let Some(tag) = self.first_tag(block)? else {
                self.blocks.set_free(block);
                continue;
            };
            self.blocks.set_erases(block, tag.erases);
            known += 1;
            erases += u64::from(tag.erases);
            let newest = match tag.kind {
                PageKind::Tree(APART_KIND) => {
                    self.blocks.set_apart(block);
                    &mut apart
                }
                PageKind::Tree(_) => &mut tree,
                _ => {
                    self.blocks.set_own(block);
                    &mut own
                }
            };
            *newest = (*newest).max(Some((tag.sequence, block)));
        }
        // How often a blank block was erased is nowhere told; the mean does it no wrong.
        let mean =
            u32::try_from(erases.checked_div(known).unwrap_or(0)).unwrap_or(tag::ERASES_MOST);
        for block in (0..self.blocks.count()).map(Block) {
            if self.blocks.is_free(block) {
                self.blocks.set_erases(block, mean);
            }
        }
        let mut end = |newest: Option<(u64, Block)>| {
            newest.map_or(Ok(None), |(_, block)| self.newest_of(block))
        };
        let tree = [end(tree)?, end(apart)?].into_iter().flatten();
        Ok(Ends { tree: tree.max_by_key(|newest| newest.tag.sequence), own: end(own)? })
    }

    /// The first tag in `block` that can be read; `None` if the block is blank from its first page
    /// on, or no page of it is whole.
    pub(super) fn first_tag(&mut self, block: Block) -> Result<Option<Tag>> {
        for page in self.pages_of(block).map(Page) {
            match self.find_tag(page, Cause::Recovery)? {
                tag::Found::Tag(tag) => return Ok(Some(tag)),
                tag::Found::Blank => return Ok(None),
                tag::Found::Damaged => {}
            }
        }
        Ok(None)
    }

    /// True if the tag of the first page of `block` is whole. No torn page has others behind it: so
    /// where it is not, and others are, it is damaged, and may be older than the last checkpoint.
    fn has_first_tag(&mut self, block: Block) -> Result<bool> {
        let first = self.geometry.first_page(block);
        Ok(matches!(self.find_tag(first, Cause::Recovery)?, tag::Found::Tag(_)))
    }

    fn newest_of(&mut self, block: Block) -> Result<Option<Newest>> {
        let mut newest = None;
        let mut is_torn = false;
        for page in self.pages_of(block).map(Page) {
            match self.find_tag(page, Cause::Recovery)? {
                tag::Found::Tag(tag) => {
                    newest = Some((page, tag));
                    is_torn = false;
                }
                tag::Found::Damaged => is_torn = true,
                tag::Found::Blank => break,
            }
        }
        Ok(newest.map(|(page, tag)| Newest { page, tag, is_torn }))
    }

    /// Keeps the blocks that were in use with the last checkpoint, though no tag in them can be
    /// read: these are damaged, not torn, and what points to them must not find something else.
    fn keep_damaged(&mut self, record: &Record) -> Result<()> {
        let count = self.blocks.count();
        let mut next = 0;
        for stale in record.stale.ranges(count).chain(core::iter::once(count..count)) {
            for block in (next..stale.start).map(Block) {
                let first = self.geometry.first_page(block);
                if self.blocks.is_free(block)
                    && self.find_tag(first, Cause::Recovery)? == tag::Found::Damaged
                {
                    self.blocks.set_used(block);
                }
            }
            next = next.max(stale.end);
        }
        Ok(())
    }

    /// Frees the blocks that nothing needed any more with the last checkpoint, unless they were
    /// used since.
    fn free_stale(&mut self, record: &Record) -> Result<()> {
        for block in record.stale.ranges(self.blocks.count()).flatten().map(Block) {
            if self.blocks.is_bad(block) {
                continue;
            }
            if self.first_tag(block)?.is_some_and(|tag| tag.sequence < record.sequence) {
                self.blocks.set_free(block);
            }
        }
        Ok(())
    }

    /// Finds the journal behind the last checkpoint, which has the sequence `since`, or, if that
    /// `stays`, behind an earlier one; and frees the blocks that hold nothing of it: no state needs
    /// them.
    fn find_rest(&mut self, since: u64, stays: bool) -> Result<()> {
        let checkpoint = self.checkpoints.page().map(|page| self.geometry.block_of(page));
        let records = if stays { self.blocks_of_records()? } else { Vec::new() };
        let mut own = Vec::new();
        for block in (0..self.blocks.count()).map(Block) {
            if self.blocks.is_free(block) || self.blocks.is_bad(block) {
                continue;
            }
            let first = self.first_tag(block)?.map_or(0, |tag| tag.sequence);
            let is_behind = first > since || stays || Some(block) == checkpoint;
            if self.blocks.is_own(block) && is_behind {
                own.push((first, block));
            } else if first > since && self.has_first_tag(block)? {
                self.blocks.set_free(block);
            }
        }
        own.sort_unstable();
        let mut pages = Vec::new();
        for (first, block) in own {
            let found = pages.len();
            self.find_journal_pages(block, self.journal.epoch.since, &mut pages)?;
            if pages.len() > found {
                continue;
            }
            if first > since {
                self.blocks.set_free(block);
                // It tells that something came after the checkpoint: if it were erased, and the
                // power failed before that is told anew, nothing would.
                self.blocks.keep_for_last(Some(block));
            } else if stays && !records.contains(&block) {
                self.blocks.set_free(block);
            }
        }
        self.find_journal(&pages)?;
        self.journal.has_rest = true;
        Ok(())
    }

    /// The blocks in which records of checkpoints stand that are kept.
    fn blocks_of_records(&mut self) -> Result<Vec<Block>> {
        let mut blocks = Vec::new();
        let mut pages_left = self.geometry.pages();
        let last = self.checkpoints.page();
        let named: Vec<Page> = self.checkpoints.named_pages().to_vec();
        for end in last.into_iter().chain(named) {
            let mut page = Some(end);
            while let Some(piece) = page.filter(|_| pages_left > 0) {
                let block = self.geometry.block_of(piece);
                if blocks.last() != Some(&block) {
                    blocks.push(block);
                }
                pages_left -= 1;
                page = self.piece_before(piece)?;
            }
        }
        Ok(blocks)
    }

    fn find_journal_pages(&mut self, block: Block, since: u64, to: &mut Vec<Page>) -> Result<()> {
        for page in self.pages_of(block).map(Page) {
            match self.find_tag(page, Cause::Recovery)? {
                tag::Found::Tag(tag) if tag.kind == PageKind::Journal => {
                    if tag.sequence > since || self.mistake.is(Canary::StaleJournalReplayed) {
                        to.push(page);
                    }
                }
                tag::Found::Tag(_) | tag::Found::Damaged => {}
                tag::Found::Blank => break,
            }
        }
        Ok(())
    }
}
