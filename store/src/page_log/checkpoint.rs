//! Checkpoints of a page log, and those that are kept by a name.

use alloc::vec::Vec;

use device::{Block, Cause, Page};

use super::PageLog;
use super::record::{Epoch, Record};
use super::stale::Stale;
use crate::recovery::check_checkpoint_name;
use crate::{CheckpointId, Error, Result, Savepoint};

/// The most checkpoints that are kept at a time: their memory is bounded, and so is what they pin.
pub(super) const NAMES_MOST: usize = 8;

/// The checkpoints that an opening would find.
#[derive(Clone, Debug, Default)]
pub(super) struct Checkpoints {
    id: CheckpointId,
    /// The last page of the last checkpoint's record.
    page: Option<Page>,
    names: Vec<Savepoint>,
    /// The last pages of the records of `names`.
    pages: Vec<Page>,
}

impl Checkpoints {
    pub(super) fn of(record: &Record, page: Page) -> Self {
        let (names, pages) = record.names.iter().cloned().unzip();
        Checkpoints { id: record.id, page: Some(page), names, pages }
    }

    pub(super) const fn id(&self) -> CheckpointId {
        self.id
    }

    pub(super) const fn page(&self) -> Option<Page> {
        self.page
    }

    pub(super) fn names(&self) -> &[Savepoint] {
        &self.names
    }

    /// The last pages of the records of those that are kept by a name.
    pub(super) fn named_pages(&self) -> &[Page] {
        &self.pages
    }

    fn find(&self, name: &str) -> Result<usize> {
        self.names.iter().position(|kept| kept.name == name).ok_or(Error::NoCheckpoint)
    }
}

impl PageLog<'_> {
    /// Writes the record of a checkpoint, whose root record is `root`.
    pub(super) fn make_checkpoint(
        &mut self,
        root: &[u8],
        name: Option<&str>,
        is_closed: bool,
    ) -> Result<CheckpointId> {
        if let Some(name) = name {
            check_checkpoint_name(name, &self.checkpoints.names, NAMES_MOST)?;
        }
        // Own pages are needed from the block on in which the record begins. Nothing is erased
        // before it stands.
        self.blocks.release_own(self.own.present());
        let (id, page) = self.write_checkpoint(root, is_closed, None)?;
        if let Some(name) = name {
            self.checkpoints.names.push(Savepoint { name: name.into(), id });
            self.checkpoints.pages.push(page);
            self.pin_record(page)?;
            // The name is in the next record only: so that is made at once.
            return self.make_checkpoint(root, None, is_closed).map(|_| id);
        }
        self.journal.begin(Epoch { id: id.0, since: self.sequence - 1 });
        self.erase_released(Cause::Checkpoint)?;
        Ok(id)
    }

    /// Writes the record of a checkpoint behind which the journal stays, and erases what was
    /// released: all that was recorded since the journal began is replayed over the tree as it is
    /// now, which comes to the same.
    pub(super) fn make_checkpoint_within(&mut self, root: &[u8]) -> Result<()> {
        let is_replayed = self.journal.is_replayed();
        if !is_replayed {
            self.sync_journal()?;
        }
        self.release_records()?;
        let before = self.sequence;
        let epoch = self.journal.epoch;
        self.write_checkpoint(root, false, Some(epoch))?;
        self.journal.note_record((self.sequence - before) as u32);
        if is_replayed {
            self.read_journal_again()?;
        }
        self.erase_released(Cause::Checkpoint)?;
        Ok(())
    }

    /// Releases the log's own blocks that were begun behind the journal: records stand in them that
    /// the next one takes the place of.
    fn release_records(&mut self) -> Result<()> {
        let (present, end) = (self.own.present(), self.journal.end);
        for block in (0..self.blocks.count()).map(Block) {
            if self.blocks.is_own(block)
                && !self.blocks.is_free(block)
                && Some(block) != present
                && self.first_tag(block)?.is_some_and(|tag| tag.sequence > end)
            {
                self.blocks.set_released(block);
            }
        }
        Ok(())
    }

    /// Writes a record, which is the last from then on.
    fn write_checkpoint(
        &mut self,
        root: &[u8],
        is_closed: bool,
        journal: Option<Epoch>,
    ) -> Result<(CheckpointId, Page)> {
        let id = CheckpointId(self.checkpoints.id.0 + 1);
        let names = self.checkpoints.names.iter().cloned();
        let record = Record {
            id,
            durability: self.options.durability,
            is_closed,
            journal_pages: self.journal.pages_most(),
            label: self.options.label.clone(),
            names: names.zip(self.checkpoints.pages.iter().copied()).collect(),
            sequence: self.sequence,
            journal,
            stale: Stale::of(&self.blocks),
            root: Vec::new(),
        };
        let head = record.encode_head(root.len());
        drop(record);
        let page = self.write_record(id, (&head, root))?;
        drop(head);
        #[cfg(feature = "canaries")]
        self.write_held()?;
        self.checkpoints.id = id;
        self.checkpoints.page = Some(page);
        self.blocks.keep_for_last(None);
        Ok((id, page))
    }

    /// Pins the blocks of all records of named checkpoints.
    pub(super) fn pin_records(&mut self) -> Result<()> {
        for place in 0..self.checkpoints.pages.len() {
            self.pin_record(self.checkpoints.pages[place])?;
        }
        Ok(())
    }

    fn pin_record(&mut self, last: Page) -> Result<()> {
        let mut page = Some(last);
        let mut pages_left = self.geometry.pages();
        while let Some(piece) = page {
            self.pin(piece);
            pages_left = pages_left.checked_sub(1).ok_or(Error::NoCheckpoint)?;
            page = self.piece_before(piece)?;
        }
        Ok(())
    }

    /// The root record of the checkpoint called `name`; the log's own page is overwritten, so no
    /// journal may be open.
    ///
    /// # Errors
    /// There is no such checkpoint, its record is damaged, or the chip failed.
    pub fn kept_root(&mut self, name: &str) -> Result<Vec<u8>> {
        let place = self.checkpoints.find(name)?;
        let record = self.read_record(self.checkpoints.pages[place], Cause::Recovery)?;
        Ok(record.root)
    }

    /// Goes back to a named checkpoint: its state becomes that of a new checkpoint.
    pub(super) fn go_back(&mut self, name: &str) -> Result<Vec<u8>> {
        let place = self.checkpoints.find(name)?;
        let (here, page) = (self.checkpoints.names[place].id, self.checkpoints.pages[place]);
        let record = self.read_record(page, Cause::Recovery)?;
        // Those that were kept then and still are, and the one that is gone back to: what was
        // forgotten since is not on the chip any more.
        let is_older = |kept: &Savepoint| {
            kept.id == here || record.names.iter().any(|(older, _)| older.id == kept.id)
        };
        let present = core::mem::take(&mut self.checkpoints.names);
        let pages = core::mem::take(&mut self.checkpoints.pages);
        let older = present.into_iter().zip(pages).filter(|(kept, _)| is_older(kept));
        (self.checkpoints.names, self.checkpoints.pages) = older.unzip();
        // What lived then lives again.
        self.blocks.take_back_pinned();
        if self.gives_back {
            self.tree = super::Stream::default();
            self.blocks.release_unpinned();
        }
        self.make_checkpoint(&record.root, None, true)?;
        Ok(record.root)
    }

    pub(super) fn forget_name(&mut self, name: &str) -> Result<()> {
        let place = self.checkpoints.find(name)?;
        self.checkpoints.names.remove(place);
        self.checkpoints.pages.remove(place);
        Ok(())
    }
}
