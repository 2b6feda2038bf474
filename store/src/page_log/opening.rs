//! Making and opening a page log.
//!
//! Opening reads the first tag of each block, which tells its stream and its place among the blocks
//! of that stream; the tags of the pages in the newest block of each stream, and of those that the
//! tree wrote apart; the record of the last checkpoint, which every page names; and, where there is
//! a journal, the tags of the log's own pages behind that checkpoint. Where a tag is missing or
//! damaged, the middle of its page is read, for there it may stand again.

use alloc::boxed::Box;
use alloc::vec::Vec;

use device::{Block, Cause, Nand, Page};

use super::checkpoint::Checkpoints;

use super::journal::{self, Journal};
use super::own_pages::OwnPages;
use super::pages::Pages;
use super::record::{Epoch, LABEL_BYTES_MOST, Piece, Record};
use super::stream::{Stream, StreamOf};
use super::survey::{self, Ends, Newest};
use super::{PageKind, PageLog, gaps, record_blocks};
use crate::canary::Mistake;
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

/// The last checkpoint, as an opening finds it.
struct Last<'d> {
    own: OwnPages<'d>,
    record: Record,
    /// The sequence of its last page.
    since: u64,
    ends: Ends,
}

impl<'d> Last<'d> {
    fn find(nand: Box<dyn Nand + 'd>, mistake: Mistake) -> Result<Self> {
        let damaged = |what| Error::NotAnIndex { is_ours: true, what };
        let mut own = OwnPages::new(Pages::new(nand, mistake));
        let ends = survey::survey(&mut own.pages)?;
        let what = "it holds no checkpoint";
        let newest = ends.own.ok_or(Error::NotAnIndex { is_ours: false, what })?;
        let (record, page) = last_record(&mut own, &newest)?;
        let pages_most = own.pages.geometry.pages() / 4 + journal::PAGES_LEAST;
        if record.journal_pages > pages_most {
            return Err(damaged("its journal is longer than the chip"));
        }
        let tag = own.pages.tag(page, Cause::Recovery)?;
        let since = tag.ok_or(damaged("its checkpoint is damaged"))?.sequence;
        // A page of the tree that names a later one: that is damaged, and what this one needs may
        // be overwritten. One that was torn is named by no page.
        let names_another =
            |newest: Newest| newest.tag.sequence > since && newest.tag.checkpoint != Some(page);
        if ends.tree.is_some_and(names_another) {
            return Err(damaged("its last checkpoint is damaged"));
        }
        own.pages.checkpoint = Some(page);
        own.pages.sequence = ends.next_sequence();
        Ok(Last { own, record, since, ends })
    }

    /// True if nothing came after it.
    fn is_last(&self) -> bool {
        let is_torn = self.ends.own.is_some_and(|newest| newest.is_torn);
        self.since + 1 == self.own.pages.sequence && !is_torn
    }
}

/// The last record that is whole, and its last page.
fn last_record(own: &mut OwnPages<'_>, newest: &Newest) -> Result<(Record, Page)> {
    if newest.tag.kind == PageKind::Checkpoint {
        // Its last piece is written last: where only that is not whole it may be torn, and the one
        // before stands.
        let is_torn = Piece::read(own, newest.page, Cause::Recovery)?.is_none();
        if !is_torn || newest.tag.checkpoint.is_none() {
            return Ok((Record::read(own, newest.page, Cause::Recovery)?, newest.page));
        }
    }
    let what = "its first checkpoint is damaged";
    let page = newest.tag.checkpoint.ok_or(Error::NotAnIndex { is_ours: true, what })?;
    Ok((Record::read(own, page, Cause::Recovery)?, page))
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
        let journal = Journal::new(Journal::pages_for(nand.geometry(), options));
        let mut own = OwnPages::new(Pages::new(nand, options.mistake()));
        own.pages.sequence = survey::survey(&mut own.pages)?.next_sequence();
        let mut log = PageLog::bare(own, options.clone(), journal);
        let (have, need) = (log.good_blocks(), log.own_reserve() + 1);
        if have < need {
            return Err(device::Error::TooFewBlocks { have, need }.into());
        }
        // What stood here must not be found any more once a block of it is erased: so, if there is
        // a free block, this goes first.
        if log.blocks().free() == 0 {
            log.free_all();
        }
        log.make_checkpoint(&[], None, false)?;
        log.free_all();
        Ok(log)
    }

    /// Nothing but the log's own present block is in use.
    fn free_all(&mut self) {
        let blocks = &mut self.own.pages.blocks;
        for block in (0..blocks.count()).map(Block) {
            if !blocks.is_bad(block) && !self.own.stream.holds(block) {
                blocks.set_free(block);
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
        let mut last = Last::find(nand, options.mistake())?;
        gaps::refuse(&mut last.own.pages, last.since, last.ends.own_block())?;
        let is_last = last.is_last();
        let Last { own, record, since, .. } = last;
        let is_durable = record.durability != Durability::None;
        let is_closed = is_last && record.is_closed;
        if !is_durable && !is_closed {
            return Err(Error::NotClosed);
        }
        if record.root.is_empty() {
            return Err(Error::NotAnIndex { is_ours: true, what: "its making was broken off" });
        }
        let options = PageLogOptions {
            durability: record.durability,
            label: record.label.clone(),
            ..PageLogOptions::default()
        };
        let mut journal = Journal::new(record.journal_pages);
        journal.epoch = record.journal.unwrap_or(Epoch { id: record.id.0, since });
        let mut log = PageLog::bare(own, options, journal);
        log.checkpoints = Checkpoints::of(&record);
        if is_durable && (!is_last || record.journal.is_some()) {
            log.find_rest(since, record.journal.is_some())?;
        }
        let pages = &mut log.own.pages;
        if is_durable {
            survey::keep_damaged(pages, &record)?;
        }
        survey::free_stale(pages, &record)?;
        log.may_be_untold = is_durable && pages.blocks.free() <= 1;
        log.checkpoints.pin(&mut log.own)?;
        Ok((log, record.root))
    }

    /// Reads what the log on a chip says of itself; changes nothing.
    ///
    /// # Errors
    /// There is none, or the chip failed.
    pub fn describe(nand: Box<dyn Nand + 'd>) -> Result<PageLogDescription> {
        let Last { own, record, .. } = Last::find(nand, Mistake::default())?;
        let page_bytes = u64::from(own.pages.geometry.page_bytes());
        Ok(PageLogDescription {
            durability: record.durability,
            journal_bytes: u64::from(record.journal_pages) * page_bytes,
            label: record.label,
            root: record.root,
        })
    }

    fn bare(own: OwnPages<'d>, options: PageLogOptions, journal: Journal) -> Self {
        PageLog {
            tree: Stream::new(StreamOf::Tree),
            apart: Stream::new(StreamOf::Apart),
            is_apart: false,
            journal,
            checkpoints: Checkpoints::default(),
            root_bytes: 0,
            record_blocks: record_blocks(own.pages.geometry, 0),
            gives_back: false,
            may_be_untold: false,
            #[cfg(feature = "canaries")]
            root_before: Vec::new(),
            options,
            own,
        }
    }

    /// Finds the journal behind the last checkpoint, which has the sequence `since`, or, if that
    /// `stays`, behind an earlier one; and frees the blocks that hold nothing of it: no state needs
    /// them.
    fn find_rest(&mut self, since: u64, stays: bool) -> Result<()> {
        let records = if stays { self.blocks_of_records()? } else { Vec::new() };
        let chip = &mut self.own.pages;
        let checkpoint = chip.checkpoint.map(|page| chip.geometry.block_of(page));
        let mut own = Vec::new();
        for block in (0..chip.blocks.count()).map(Block) {
            if chip.blocks.is_free(block) || chip.blocks.is_bad(block) {
                continue;
            }
            let first = chip.first_tag(block)?.map_or(0, |tag| tag.sequence);
            let is_behind = first > since || stays || Some(block) == checkpoint;
            if chip.blocks.is_own(block) && is_behind {
                own.push((first, block));
            } else if first > since && survey::has_first_tag(chip, block)? {
                chip.blocks.set_free(block);
            }
        }
        own.sort_unstable();
        let mut pages = Vec::new();
        for (first, block) in own {
            let found = pages.len();
            survey::journal_pages(chip, block, self.journal.epoch.since, &mut pages)?;
            if pages.len() > found {
                continue;
            }
            if first > since {
                chip.blocks.set_free(block);
                // It tells that something came after the checkpoint: if it were erased, and the
                // power failed before that is told anew, nothing would.
                chip.blocks.keep_for_last(Some(block));
            } else if stays && !records.contains(&block) {
                chip.blocks.set_free(block);
            }
        }
        self.journal.find(&mut self.own, &pages)?;
        self.journal.has_rest = true;
        Ok(())
    }

    /// The blocks in which records of checkpoints stand that are kept.
    fn blocks_of_records(&mut self) -> Result<Vec<Block>> {
        let mut blocks = Vec::new();
        let last = self.own.pages.checkpoint;
        for end in last.iter().chain(self.checkpoints.named_pages()) {
            Piece::each(&mut self.own, *end, |own, piece| {
                let block = own.pages.geometry.block_of(piece);
                if blocks.last() != Some(&block) {
                    blocks.push(block);
                }
            })?;
        }
        Ok(blocks)
    }
}
