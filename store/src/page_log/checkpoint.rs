//! Checkpoints of a page log, and those that are kept by a name.

use alloc::vec::Vec;

use device::{Cause, Page};

use super::PageLogOptions;
use super::own_pages::OwnPages;
use super::record::{self, Epoch, Piece, Record};
use super::stale::Stale;
use crate::recovery::check_checkpoint_name;
use crate::{CheckpointId, Error, Result, Savepoint};

/// The most checkpoints that are kept at a time: their memory is bounded, and so is what they pin.
pub(super) const NAMES_MOST: usize = 8;

/// The number of the last checkpoint, and those that are kept by a name.
#[derive(Clone, Debug, Default)]
pub(super) struct Checkpoints {
    id: CheckpointId,
    names: Vec<Savepoint>,
    /// The last pages of the records of `names`.
    pages: Vec<Page>,
}

impl Checkpoints {
    pub(super) fn of(record: &Record) -> Self {
        let (names, pages) = record.names.iter().cloned().unzip();
        Checkpoints { id: record.id, names, pages }
    }

    pub(super) const fn id(&self) -> CheckpointId {
        self.id
    }

    pub(super) fn names(&self) -> &[Savepoint] {
        &self.names
    }

    /// The last pages of the records of those that are kept by a name.
    pub(super) fn named_pages(&self) -> &[Page] {
        &self.pages
    }

    /// Writes a record, which is the last from then on; returns its last page.
    pub(super) fn write(
        &mut self,
        own: &mut OwnPages<'_>,
        (options, journal_pages): (&PageLogOptions, u32),
        (root, is_closed): (&[u8], bool),
        journal: Option<Epoch>,
    ) -> Result<Page> {
        let id = CheckpointId(self.id.0 + 1);
        let names = self.names.iter().cloned();
        let record = Record {
            id,
            durability: options.durability,
            is_closed,
            journal_pages,
            label: options.label.clone(),
            names: names.zip(self.pages.iter().copied()).collect(),
            sequence: own.pages.sequence,
            journal,
            stale: Stale::of(&own.pages.blocks),
            root: Vec::new(),
        };
        let head = record.encode_head(root.len());
        drop(record);
        let page = record::write(own, id, (&head, root))?;
        drop(head);
        #[cfg(feature = "canaries")]
        own.pages.write_held()?;
        self.id = id;
        own.pages.checkpoint = Some(page);
        own.pages.blocks.keep_for_last(None);
        Ok(page)
    }

    /// Refuses a name that no checkpoint can get.
    pub(super) fn check_name(&self, name: &str) -> Result<()> {
        let too_many = "8 checkpoints are kept, the most on raw flash";
        check_checkpoint_name(name, &self.names, (NAMES_MOST, too_many))
    }

    /// Keeps the last checkpoint, whose record ends in `page`, by a name.
    pub(super) fn keep(&mut self, own: &mut OwnPages<'_>, name: &str, page: Page) -> Result<()> {
        self.names.push(Savepoint { name: name.into(), id: self.id });
        self.pages.push(page);
        pin_record(own, page)
    }

    /// Pins the blocks of all records of named checkpoints.
    pub(super) fn pin(&self, own: &mut OwnPages<'_>) -> Result<()> {
        self.pages.iter().try_for_each(|page| pin_record(own, *page))
    }

    /// The record of the checkpoint called `name`.
    pub(super) fn read(&self, own: &mut OwnPages<'_>, name: &str) -> Result<Record> {
        Record::read(own, self.pages[self.find(name)?], Cause::Recovery)
    }

    /// Of those that are kept, only the one called `name`, of which `record` is, and those that
    /// were kept then stay: what was forgotten since is not on the chip any more.
    pub(super) fn go_back(&mut self, name: &str, record: &Record) {
        let is_older = |kept: &Savepoint| {
            kept.name == name || record.names.iter().any(|(older, _)| older.id == kept.id)
        };
        let (names, pages) = (core::mem::take(&mut self.names), core::mem::take(&mut self.pages));
        (self.names, self.pages) =
            names.into_iter().zip(pages).filter(|(kept, _)| is_older(kept)).unzip();
    }

    pub(super) fn forget(&mut self, name: &str) -> Result<()> {
        let place = self.find(name)?;
        self.names.remove(place);
        self.pages.remove(place);
        Ok(())
    }

    fn find(&self, name: &str) -> Result<usize> {
        self.names.iter().position(|kept| kept.name == name).ok_or(Error::NoCheckpoint)
    }
}

/// Pins the blocks of the record whose last piece stands in `last`.
fn pin_record(own: &mut OwnPages<'_>, last: Page) -> Result<()> {
    Piece::each(own, last, |own, piece| {
        let block = own.pages.geometry.block_of(piece);
        own.pages.blocks.set_pinned(block);
    })
}
