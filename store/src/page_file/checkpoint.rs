//! Checkpoints of a page file, and the way back to them.
//!
//! A checkpoint writes back every page, and then a superblock that says how things stand. From then
//! on, the first change of a unit sends what it held to the undo log ([`super::undo`]), updates go
//! to the journal ([`super::journal`]), and pages that are given back wait for the next checkpoint
//! if this one needs them. Opening puts the images back and hands out the journal's updates.
//!
//! A checkpoint with a name is a superblock that later checkpoints remember in their directory, and
//! whose images stay in the undo log. Going back is atomic: a superblock says so first, and opening
//! goes on with it.

use alloc::vec;
use alloc::vec::Vec;

use device::Cause;

use super::PageFile;
use super::journal::Journal;
use super::layout::Layout;
use super::read_ahead::ReadAhead;
use super::state::{CheckpointState, ROOT_INLINE_MOST};
use super::superblock::{Place, State, Superblock};
use super::undo::{End, Undo};
use crate::canary::Canary;
use crate::journal_record::{self, Kind};
use crate::{
    CheckpointId, Durability, Error, LogicalPage, OverflowValue, Recovery, RecoveryStatistics,
    Replayed, Result, Savepoint, Update,
};

/// Bytes of the journal that go to a long value's pages at a time.
const PIECE_BYTES: usize = 64;

/// Units that long values take for which a checkpoint, with its images, is cheaper than to write
/// them to the journal as well, where each update has to be durable.
const LONG_UNITS: u64 = 64;

/// The same where the journal would need no flush for them.
const LONG_UNITS_UNFLUSHED: u64 = 192;

/// The part of the journal of which as many long values leave no room for more anyway.
const LONG_PART: u64 = 2;

/// Images that a checkpoint makes beside those of its own pages: of pages of the free lists.
const CHECKPOINT_IMAGES: u32 = 8;

/// When a checkpoint is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Occasion {
    /// Between two batches.
    Between,
    /// Inside a batch, whose rest is replayed from this place on.
    Within(Place),
    /// At closing.
    Last,
}

impl PageFile<'_> {
    /// Brings the pages back to the last checkpoint and finds the journal.
    pub(super) fn recover(&mut self) -> Result<()> {
        match self.superblock.state {
            State::RollingBack { undo_end } => self.finish_roll_back(undo_end)?,
            State::Open | State::Whole => {
                self.begin_epoch();
                let (epoch, start) =
                    (self.superblock.undo_epoch, self.superblock.checkpoint.undo_start);
                if self.put_back(start, End::OfEpoch(epoch))? {
                    // The run begins anew, so that nothing that was torn is ever in it.
                    self.begin_next_epoch(false)?;
                }
                let mut is_torn = false;
                if let Some(journal) = &mut self.journal {
                    // Nothing is in the cache yet: its memory is free for reading ahead.
                    let window = self.cache.spare_frames();
                    let end = self.layout.end();
                    let mut disk = ReadAhead::new(&mut self.disk, window, end);
                    journal.scan(&mut disk, self.superblock.journal_epoch)?;
                    is_torn = journal.is_torn();
                    journal.stand_at(&mut disk, self.superblock.replay)?;
                    self.checkpoints.resumed = u64::from(self.superblock.replay.updates);
                }
                if is_torn {
                    self.begin_next_epoch(true)?;
                }
            }
        }
        self.read_directory()
    }

    /// Finds out which images there are for the newest checkpoint that is kept.
    pub(super) fn recall_images(&mut self) {
        let last = &self.superblock.checkpoint;
        let Some(undo) = &mut self.undo else {
            return;
        };
        undo.begin_name(self.checkpoints.pages_most(last));
        if let Some(newest) = self.checkpoints.kept.last().filter(|_| last.name.is_none()) {
            undo.recall(&mut self.disk, newest.undo_start, last.undo_start);
        }
    }

    /// Begins a new epoch at the same checkpoint, with the same journal unless that is empty.
    pub(super) fn begin_next_epoch(&mut self, is_journal_empty: bool) -> Result<()> {
        let mut next = self.superblock.clone();
        next.sequence += 1;
        next.undo_epoch = next.sequence;
        if is_journal_empty {
            next.journal_epoch = next.sequence;
        }
        next.state = State::Whole;
        next.write(&mut self.disk, &mut self.sector)?;
        self.superblock = next;
        self.begin_epoch();
        Ok(())
    }

    /// Puts images back, through the memory of the cache or, where that is shorter than a sector,
    /// of a sector; false if there were none.
    pub(super) fn put_back(&mut self, start: u32, end: End) -> Result<bool> {
        let Some(undo) = &mut self.undo else {
            return Ok(false);
        };
        self.cache.forget_all();
        let mut buffer = self.cache.spare_frames();
        if buffer.len() < self.layout.unit_bytes() {
            buffer = &mut self.sector;
        }
        let restored = undo.put_back(&mut self.disk, start, end, buffer)?;
        self.checkpoints.restored += restored.unwrap_or(0);
        Ok(restored.is_some())
    }

    /// Starts anew from the present superblock's checkpoint.
    pub(super) fn begin_epoch(&mut self) {
        let state = &self.superblock.checkpoint;
        self.high_water = state.high_water;
        self.free = state.free;
        self.digest = state.digest;
        self.freed = super::FreeList::EMPTY;
        self.freed_tail = None;
        if let Some(undo) = &mut self.undo {
            undo.set_base(self.superblock.undo_base);
            undo.begin(self.superblock.undo_epoch, state.high_water, state.undo_start);
        }
        if let Some(journal) = &mut self.journal {
            journal.begin(self.superblock.journal_epoch);
        }
    }

    /// What holds after a checkpoint: the next epoch, and its layout.
    fn take_checkpoint(&mut self, next: Superblock, layout: Layout) -> Result<CheckpointId> {
        self.superblock = next;
        self.take_layout(layout)?;
        self.checkpoints.stand_at(&self.superblock.checkpoint);
        self.begin_epoch();
        let last = &self.superblock.checkpoint;
        if let Some(undo) = &mut self.undo
            && (last.name.is_some() || self.checkpoints.kept.is_empty())
        {
            undo.begin_name(self.checkpoints.pages_most(last));
        }
        Ok(self.superblock.checkpoint.id)
    }

    /// The root record of the last checkpoint.
    ///
    /// # Errors
    /// It is damaged, or the disk failed.
    pub fn root_record(&mut self) -> Result<Vec<u8>> {
        let state = &self.superblock.checkpoint;
        match state.root {
            None => Ok(state.root_head.clone()),
            Some(root) => self.read_record(root, u64::from(self.high_water)),
        }
    }

    /// Reads a record that stands in at most `pages_most` pages.
    fn read_record(&mut self, record: OverflowValue, pages_most: u64) -> Result<Vec<u8>> {
        if u64::from(record.bytes) > pages_most * u64::from(self.layout.page_bytes) {
            return Err(Error::NotAnIndex {
                is_ours: true,
                what: "a record is longer than its device",
            });
        }
        let mut bytes = vec![0; record.bytes as usize];
        self.read_long(record, 0, &mut bytes, Cause::Recovery)?;
        Ok(bytes)
    }

    fn write_record(&mut self, bytes: &[u8]) -> Result<OverflowValue> {
        let mut writer = self.start_long(bytes.len() as u32, Cause::Checkpoint)?;
        self.append_long(&mut writer, bytes, Cause::Checkpoint)?;
        self.finish_long(writer)
    }

    /// Pages in use that hold long root records and the directory, and nothing of a tree's.
    #[must_use]
    pub fn record_pages(&self) -> u32 {
        let last = &self.superblock.checkpoint;
        let roots = self.checkpoints.kept.iter().chain([last]).filter_map(|state| state.root);
        let records = roots.chain(last.directory);
        records.map(|record| self.pages_for_long(record.bytes)).sum()
    }

    /// Pages that the last root record takes, and that are kept for the next: those that come back
    /// if a shorter one follows.
    #[must_use]
    pub fn root_record_pages(&self) -> u32 {
        let last = &self.superblock.checkpoint;
        let Some(root) = last.root else { return 0 };
        let stands = if last.name.is_some() { 0 } else { self.pages_for_long(root.bytes) };
        stands + root.bytes / (self.layout.page_bytes - 64)
    }

    /// Gives back `pages`, those of a root record that can't be read, before the checkpoint that
    /// follows it.
    ///
    /// # Errors
    /// As [`PageFile::free`].
    pub fn free_root(&mut self, pages: Vec<LogicalPage>) -> Result<()> {
        self.superblock.checkpoint.root = None;
        pages.into_iter().try_for_each(|page| self.free(page, Cause::Checkpoint))
    }

    /// Lets go of the last checkpoint, which is kept if it has a name.
    fn supersede(&mut self) -> Result<()> {
        let last = self.superblock.checkpoint.clone();
        if last.name.is_some() {
            self.checkpoints.kept.push(last);
            self.checkpoints.is_directory_old = true;
        } else if let Some(root) = last.root {
            self.free_long(root, Cause::Checkpoint)?;
        }
        Ok(())
    }

    fn make_checkpoint(
        &mut self,
        root: &[u8],
        name: Option<&str>,
        occasion: Occasion,
    ) -> Result<CheckpointId> {
        self.supersede()?;
        let directory = self.write_directory()?;
        let head = &root[..root.len().min(ROOT_INLINE_MOST)];
        let long = if root.len() > head.len() { Some(self.write_record(root)?) } else { None };
        let high_water = self.shorten(name.is_none() && occasion == Occasion::Between)?;
        self.join_freed()?;
        let mut next = self.superblock.clone();
        next.sequence += 1;
        next.undo_epoch = next.sequence;
        (next.journal_epoch, next.replay) = match occasion {
            Occasion::Within(replay) => (next.journal_epoch, replay),
            Occasion::Between | Occasion::Last => (next.sequence, Place::default()),
        };
        next.state = State::Whole;
        next.checkpoint = CheckpointState {
            id: CheckpointId(next.sequence),
            high_water,
            free: self.free,
            undo_start: 0,
            digest: 0,
            directory,
            root: long,
            root_head: head.to_vec(),
            name: name.map(Into::into),
            slot: self.checkpoints.free_slot(),
        };
        next.forgotten = 0;
        if self.mistake.is(Canary::WrongRootRecord) {
            next.checkpoint.root_head.clone_from(&self.superblock.checkpoint.root_head);
        }
        if self.mistake.is(Canary::RecordBeforePages) {
            next.write(&mut self.disk, &mut self.sector)?;
        }
        self.write_back_all()?;
        next.checkpoint.digest = self.digest;
        next.undo_base = 0;
        if !self.checkpoints.kept.is_empty()
            && let Some(undo) = &mut self.undo
        {
            // What is kept ends with a whole group.
            undo.flush(&mut self.disk)?;
            next.checkpoint.undo_start = undo.next_kept();
            next.undo_base = undo.base_before(self.checkpoints.oldest);
        }
        let start = next.checkpoint.undo_start;
        let layout = match occasion {
            // The journal stays where it is.
            Occasion::Within(_) => self.layout,
            // So do pages, if the images move.
            Occasion::Between if next.undo_base > self.superblock.undo_base => self.layout,
            Occasion::Between if high_water < self.high_water => self.shorter_layout(high_water),
            Occasion::Between => self.choose_layout(start, false),
            Occasion::Last => self.choose_layout(start, true),
        };
        (next.pages, next.journal_sectors) = (layout.pages, layout.journal_sectors);
        self.move_images(layout, &next)?;
        next.write(&mut self.disk, &mut self.sector)?;
        self.take_checkpoint(next, layout)
    }

    /// Copies the next `bytes` bytes of the journal to pages of their own.
    fn adopt(&mut self, mut bytes: u32) -> Result<OverflowValue> {
        let mut writer = self.start_long(bytes, Cause::Recovery)?;
        let mut buffer = [0; PIECE_BYTES];
        while bytes > 0 {
            let piece = &mut buffer[..PIECE_BYTES.min(bytes as usize)];
            if let Some(journal) = &mut self.journal {
                journal.take(&mut self.disk, piece)?;
            }
            self.append_long(&mut writer, piece, Cause::Recovery)?;
            bytes -= piece.len() as u32;
        }
        self.finish_long(writer)
    }

    /// Pages in use that a checkpoint changes at most.
    pub(super) fn checkpoint_changes(&self) -> u32 {
        self.checkpoint_changes_with(self.checkpoints.count())
    }

    /// The same where `names` are kept.
    pub(super) fn checkpoint_changes_with(&self, names: usize) -> u32 {
        self.checkpoint_pages(names) + CHECKPOINT_IMAGES
    }

    /// The most pages that an update may change which a checkpoint may come before, inside a batch:
    /// there is always room for so many images, and for the checkpoint's. 0 while checkpoints are
    /// kept by name, whose images each checkpoint would add to.
    fn changes_within(&self) -> u32 {
        match &self.undo {
            Some(undo) if !self.checkpoints.are_kept() => {
                undo.images_always().saturating_sub(self.checkpoint_changes())
            }
            _ => 0,
        }
    }

    /// True if a checkpoint has to be made before `pages` pages are changed and `names`
    /// checkpoints are kept: the undo log must have room for the images of these pages, beside the
    /// `promised` pages that may be allocated, of the checkpoint after them, and of those that
    /// forget, one by one, all that is kept then. So forgetting is never refused.
    fn needs_room(&self, undo: &Undo, (pages, promised): (u32, u32), names: usize) -> Result<bool> {
        let own = self.checkpoint_pages(names);
        let each = self.checkpoint_changes_with(names);
        let pages = pages.saturating_add(each);
        // While names are kept those that are allocated are among `pages`: each takes its own room,
        // or that of an image.
        let fresh = match self.checkpoints.are_kept() {
            true => promised.min(pages.saturating_sub(undo.images_for(pages))),
            false => promised.saturating_sub(self.free.pages),
        };
        let in_use = self.high_water.saturating_add(own).saturating_add(fresh);
        if undo.has_room_for(pages, (names as u32, each), in_use) {
            return Ok(false);
        }
        match self.checkpoints.are_kept() {
            true => Err(Error::Kept { kept: undo.bytes().2 }),
            false if undo.bytes().0 > 0 => Ok(true),
            false => Err(Error::Full { pages: u64::from(self.layout.pages) }),
        }
    }

    /// Refuses a batch that could not be taken even right after a checkpoint.
    fn check_batch(&self, journal: Option<&Journal>, batch: &[Update<'_>]) -> Result<()> {
        let Some(journal) = journal else {
            return Ok(());
        };
        let bytes = journal_record::bytes(batch);
        let limit = journal.record_bytes_most();
        if bytes > limit {
            return Err(Error::LongBatch { bytes, limit });
        }
        if !journal.takes(bytes) {
            // It got shorter, for pages, in a file that can't grow.
            return Err(Error::Full { pages: u64::from(self.layout.pages) });
        }
        if batch.iter().any(|update| matches!(update, Update::PutStored { .. })) {
            return Err(Error::AdoptedTwice);
        }
        Ok(())
    }
}

impl Recovery for PageFile<'_> {
    fn durability(&self) -> Durability {
        self.superblock.durability
    }

    fn needs_checkpoint(&self, batch: &[Update<'_>], pages: u32) -> Result<bool> {
        let Some(undo) = &self.undo else {
            return Ok(false);
        };
        // Changes that belong to no batch have no record. A closed file has no journal for one.
        let journal = self.journal.as_ref().filter(|_| !batch.is_empty());
        self.check_batch(journal, batch)?;
        let bytes = journal_record::bytes(batch);
        // While names keep images no checkpoint gives any back, and each adds a header and images
        // of the same pages. So none is made for what a batch may change at the most.
        let is_due = match self.checkpoints.are_kept() {
            true => undo.is_due(),
            false => undo.is_full_for(pages),
        };
        if is_due || journal.is_some_and(|journal| !journal.has_room(bytes)) {
            return Ok(true);
        }
        self.needs_room(undo, (pages, self.promised), self.checkpoints.count())
    }

    fn needs_checkpoint_before(&self, name: &str) -> Result<bool> {
        self.checkpoints.check_name(name)?;
        match &self.undo {
            Some(undo) => self.needs_room(undo, (0, 0), self.checkpoints.count() + 1),
            None => Ok(false),
        }
    }

    fn record(&mut self, batch: &[Update<'_>]) -> Result<()> {
        let Some(journal) = &mut self.journal else {
            return Ok(());
        };
        journal.append(&mut self.disk, batch)?;
        if self.superblock.durability == Durability::Every { self.sync() } else { Ok(()) }
    }

    fn delta(&mut self, delta: &[u8]) -> Result<bool> {
        match &mut self.journal {
            Some(journal) if !journal.is_replayed() => journal.append_delta(&mut self.disk, delta),
            _ => Ok(true),
        }
    }

    fn sync(&mut self) -> Result<()> {
        match &mut self.journal {
            Some(journal) => journal.flush(&mut self.disk),
            None => Ok(()),
        }
    }

    fn checkpoint(&mut self, root: &[u8], name: Option<&str>) -> Result<CheckpointId> {
        if let Some(name) = name {
            self.checkpoints.check_name(name)?;
        }
        self.make_checkpoint(root, name, Occasion::Between)
    }

    fn takes_within(&self, pages: u32) -> bool {
        self.journal.is_some() && pages <= self.changes_within()
    }

    fn is_due_within(&self, pages: Option<u32>) -> bool {
        let most = self.changes_within();
        match &self.undo {
            Some(undo) if self.journal.is_some() && most > 0 && undo.bytes().0 > 0 => {
                let is_full = pages.map_or(undo.is_due(), |pages| undo.is_full_for(pages));
                let has_room = self.needs_room(undo, (pages.unwrap_or(most), self.promised), 0);
                is_full || !matches!(has_room, Ok(false))
            }
            _ => false,
        }
    }

    fn checkpoint_within(&mut self, root: &[u8], made: Option<u32>) -> Result<()> {
        let Some(journal) = &mut self.journal else {
            return Ok(());
        };
        // Once this checkpoint stands, the rest of the batch has to be found.
        journal.flush(&mut self.disk)?;
        let mut replay = match made {
            Some(_) => journal.place(),
            None => self.superblock.replay,
        };
        replay.updates += made.unwrap_or(0);
        if self.mistake.is(Canary::UpdateSkipped) {
            replay.updates += 1;
        }
        self.checkpoints.within += 1;
        self.make_checkpoint(root, None, Occasion::Within(replay)).map(drop)
    }

    fn close(&mut self, root: &[u8]) -> Result<()> {
        self.make_checkpoint(root, None, Occasion::Last).map(drop)
    }

    fn extend(&mut self) -> Result<bool> {
        PageFile::extend(self)
    }

    fn lasts_by_checkpoint(&self, batch: &[Update<'_>], is_drained: bool) -> bool {
        let Some(journal) = &self.journal else {
            return false;
        };
        if !journal.takes(journal_record::bytes(batch)) {
            return true;
        }
        // What names keep grows with every checkpoint.
        if !is_drained || self.checkpoints.are_kept() {
            return false;
        }
        let units = match self.superblock.durability {
            Durability::Every => LONG_UNITS,
            _ => LONG_UNITS_UNFLUSHED,
        };
        let least = units * self.layout.unit_bytes() as u64;
        let bytes = journal_record::long_bytes(batch, self.layout.page_bytes as usize);
        bytes >= least.min(journal.record_bytes_most() / LONG_PART)
    }

    fn is_closed(&self) -> bool {
        self.is_shut()
    }

    fn shut(&mut self) -> Result<()> {
        PageFile::shut(self)
    }

    fn is_long(&self) -> bool {
        self.may_shorten()
    }

    fn gives_room_then(&self) -> bool {
        let names = self.checkpoints.count();
        self.undo.as_ref().is_some_and(|undo| {
            undo.base_before(self.checkpoints.oldest) > undo.base()
                && matches!(self.needs_room(undo, (0, 0), names), Ok(false))
        })
    }

    fn shorten(&mut self, promised: u64) -> bool {
        self.ask_to_shorten(promised)
    }

    fn reopen(&mut self) -> Result<()> {
        if self.superblock.durability == Durability::None && self.superblock.state == State::Whole {
            let mut next = self.superblock.clone();
            next.sequence += 1;
            next.state = State::Open;
            next.write(&mut self.disk, &mut self.sector)?;
            self.superblock = next;
        }
        Ok(())
    }

    fn roll_back(&mut self, name: &str) -> Result<Vec<u8>> {
        let last = &self.superblock.checkpoint;
        let is_it = |state: &&CheckpointState| state.name.as_deref() == Some(name);
        let target = self.checkpoints.kept.iter().chain([last]).find(is_it);
        let target = target.ok_or(Error::NoCheckpoint)?.clone();
        let Some(undo) = &mut self.undo else {
            return Err(Error::NoCheckpoint);
        };
        undo.flush(&mut self.disk)?;
        let undo_end = undo.next();
        self.rehearse_roll_back(&target, undo_end)?;
        let mut next = self.superblock.clone();
        next.sequence += 1;
        (next.journal_epoch, next.undo_epoch) = (next.sequence, next.sequence);
        next.replay = Place::default();
        next.state = State::RollingBack { undo_end };
        next.forgotten = self.slots_forgotten(&target);
        next.checkpoint = target;
        next.write(&mut self.disk, &mut self.sector)?;
        self.superblock = next;
        self.finish_roll_back(undo_end)?;
        self.read_directory()?;
        self.root_record()
    }

    fn forget(&mut self, name: &str) -> Result<()> {
        let last = &mut self.superblock.checkpoint;
        if last.name.as_deref() == Some(name) {
            last.name = None;
        } else {
            let is_it = |state: &CheckpointState| state.name.as_deref() == Some(name);
            let place = self.checkpoints.kept.iter().position(is_it);
            self.remove_kept(place.ok_or(Error::NoCheckpoint)?)?;
        }
        self.checkpoints.list_names(&self.superblock.checkpoint);
        Ok(())
    }

    fn checkpoints(&self) -> &[Savepoint] {
        &self.checkpoints.names
    }

    fn failure(&self) -> Option<device::Error> {
        self.disk.failure()
    }

    fn next_replayed<'b>(&mut self, buffer: &'b mut [u8]) -> Result<Option<Replayed<'b>>> {
        let Some(journal) = &mut self.journal else {
            return Ok(None);
        };
        let Some(update) = journal.next_update(&mut self.disk, buffer)? else {
            return Ok(None);
        };
        self.checkpoints.replayed += 1;
        let fits = update.key_bytes + update.value_bytes as usize <= buffer.len();
        let (key, rest) = buffer.split_at_mut(update.key_bytes);
        if !fits && update.kind == Kind::Put {
            let value = self.adopt(update.value_bytes)?;
            return Ok(Some(Replayed::Update(Update::PutStored { key, value })));
        }
        let damaged = Error::DamagedJournal { page: journal.page_index() };
        let value = rest.get_mut(..update.value_bytes as usize).ok_or(damaged)?;
        journal.take(&mut self.disk, value)?;
        Ok(Some(update.kind.replayed(key, value)))
    }

    fn statistics(&self) -> RecoveryStatistics {
        let undo = self.undo.as_ref().map_or((0, 0, 0), Undo::bytes);
        let journal = self.journal.as_ref().map_or((0, 0), Journal::bytes);
        RecoveryStatistics {
            durability: self.superblock.durability,
            checkpoint: self.superblock.checkpoint.id,
            journal_bytes: journal.0,
            journal_bytes_most: journal.1,
            undo_bytes: undo.0,
            undo_bytes_most: undo.1,
            kept_bytes: if self.checkpoints.count() > 0 { undo.2 } else { 0 },
            restored: self.checkpoints.restored,
            replayed: self.checkpoints.replayed,
            resumed: self.checkpoints.resumed,
            within: self.checkpoints.within,
        }
    }
}
