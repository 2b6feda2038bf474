//! Checkpoints that are kept by name, and the directory in which they stand on the device.

use alloc::vec::Vec;

use device::Cause;

use super::PageFile;
use super::state::{CheckpointState, ROOT_INLINE_MOST, STATE_BYTES_MOST};
use super::superblock::Superblock;
use crate::bytes::{Reader, Writer};
use crate::recovery::{NAME_BYTES_MOST, NAMES_MOST, check_checkpoint_name};
use crate::{Error, OverflowValue, Result, Savepoint};

/// Checkpoints that can be kept in any memory: theirs is not counted.
const NAMES_LEAST: usize = 4;

/// The share of the memory beyond the least that checkpoints that are kept may take.
const NAMES_SHARE: u64 = 8;

/// Bytes of memory that a checkpoint takes that is kept, at most.
const KEPT_BYTES: usize =
    size_of::<CheckpointState>() + size_of::<Savepoint>() + 2 * NAME_BYTES_MOST + ROOT_INLINE_MOST;

/// What a page file knows of its checkpoints.
pub(super) struct Checkpoints {
    /// Checkpoints that there is memory for.
    names_most: usize,
    /// Those that are kept, but for the last checkpoint itself, oldest first.
    pub(super) kept: Vec<CheckpointState>,
    /// The names of all that are kept.
    pub(super) names: Vec<Savepoint>,
    /// True if the last checkpoint, as it stands on the device, keeps any by name, itself
    /// included: what was forgotten since may come back.
    pub(super) is_keeping: bool,
    /// Where the images begin that the last checkpoint, as it stands on the device, keeps.
    pub(super) oldest: u32,
    /// True if the directory on the device says something else.
    pub(super) is_directory_old: bool,
    pub(super) restored: u64,
    pub(super) replayed: u64,
    pub(super) resumed: u64,
    pub(super) within: u64,
}

impl Checkpoints {
    /// Takes the memory that checkpoints may take where there are so many bytes beyond the least.
    pub(super) fn new(bytes_beyond_least: u64) -> Self {
        let names_most = NAMES_LEAST + Self::names_beyond_least(bytes_beyond_least);
        Checkpoints {
            names_most,
            kept: Vec::with_capacity(names_most),
            names: Vec::with_capacity(names_most),
            is_keeping: false,
            oldest: 0,
            is_directory_old: false,
            restored: 0,
            replayed: 0,
            resumed: 0,
            within: 0,
        }
    }

    fn names_beyond_least(bytes: u64) -> usize {
        let names = bytes / NAMES_SHARE / KEPT_BYTES as u64;
        names.min((NAMES_MOST - NAMES_LEAST) as u64) as usize
    }

    /// Bytes of memory that checkpoints may take where there are so many bytes beyond the least.
    pub(super) fn bytes_for(bytes_beyond_least: u64) -> u64 {
        (Self::names_beyond_least(bytes_beyond_least) * KEPT_BYTES) as u64
    }

    /// Bytes of memory that checkpoints may take.
    pub(super) fn memory(&self) -> u64 {
        ((self.names_most - NAMES_LEAST) * KEPT_BYTES) as u64
    }

    /// Refuses a name that no checkpoint can get.
    pub(super) fn check_name(&self, name: &str) -> Result<()> {
        let too_many = "the memory has no room for another checkpoint";
        check_checkpoint_name(name, &self.names, (self.names_most, too_many))
    }

    /// True if a page that is free may be one that a checkpoint with a name needs.
    pub(super) fn are_kept(&self) -> bool {
        self.is_keeping
    }

    /// The most pages that were in use at a checkpoint that is kept by name; `last` is the last.
    pub(super) fn pages_most(&self, last: &CheckpointState) -> u32 {
        let named = self.kept.iter().chain([last]).filter(|state| state.name.is_some());
        named.map(|state| state.high_water).max().unwrap_or(0)
    }

    /// How many checkpoints are kept by name.
    pub(super) fn count(&self) -> usize {
        self.names.len()
    }

    /// Takes note of what `last` keeps, the last checkpoint as it stands on the device.
    pub(super) fn stand_at(&mut self, last: &CheckpointState) {
        self.list_names(last);
        self.is_keeping = self.count() > 0;
        let starts = self.kept.iter().chain([last]).map(|state| state.undo_start);
        self.oldest = starts.min().unwrap_or(0);
    }

    /// A slot that none of those has that are kept.
    pub(super) fn free_slot(&self) -> u8 {
        let slots = self.kept.iter().fold(0_u64, |slots, state| slots | 1 << state.slot);
        slots.trailing_ones().min(NAMES_MOST as u32 - 1) as u8
    }

    /// Lists the names of all that are kept; `last` is the last checkpoint.
    pub(super) fn list_names(&mut self, last: &CheckpointState) {
        self.names.clear();
        for state in self.kept.iter().chain([last]) {
            if let Some(name) = &state.name {
                self.names.push(Savepoint { name: name.clone(), id: state.id });
            }
        }
    }
}

impl PageFile<'_> {
    /// Reads what is kept beside the last checkpoint.
    pub(super) fn read_directory(&mut self) -> Result<()> {
        self.checkpoints.kept.clear();
        self.checkpoints.is_directory_old = false;
        if let Some(directory) = self.superblock.checkpoint.directory {
            let mut at = 0;
            while at < directory.bytes {
                at += self.read_kept(directory, at)?;
            }
        }
        self.recall_images();
        self.forget_again()?;
        self.checkpoints.stand_at(&self.superblock.checkpoint);
        Ok(())
    }

    /// The slots of checkpoints which are older than `target` and were forgotten: those that no
    /// older one that is kept has.
    pub(super) fn slots_forgotten(&self, target: &CheckpointState) -> u64 {
        let older = self.checkpoints.kept.iter().filter(|state| state.id < target.id);
        !older.fold(0, |slots, state| slots | 1 << state.slot)
    }

    /// Forgets again what was forgotten before a rollback brought it back.
    fn forget_again(&mut self) -> Result<()> {
        let Superblock { forgotten, undo_base, .. } = self.superblock;
        let is_gone = |state: &CheckpointState| {
            forgotten >> state.slot & 1 == 1 || state.undo_start < undo_base
        };
        while let Some(place) = self.checkpoints.kept.iter().position(is_gone) {
            self.remove_kept(place)?;
        }
        Ok(())
    }

    /// Forgets the checkpoint that is kept at `place`.
    pub(super) fn remove_kept(&mut self, place: usize) -> Result<()> {
        let state = self.checkpoints.kept.remove(place);
        self.checkpoints.is_directory_old = true;
        match state.root {
            Some(root) => self.free_long(root, Cause::Checkpoint),
            None => Ok(()),
        }
    }

    /// Reads the checkpoint that stands at byte `at` of the directory; the bytes that it takes.
    fn read_kept(&mut self, directory: OverflowValue, at: u32) -> Result<u32> {
        let mut bytes = [0; STATE_BYTES_MOST];
        let most = (directory.bytes - at).min(STATE_BYTES_MOST as u32);
        let bytes = &mut bytes[..most as usize];
        self.read_long(directory, at, bytes, Cause::Recovery)?;
        let mut from = Reader::new(bytes);
        let state = CheckpointState::decode(&mut from)
            .filter(|state| state.is_possible(&self.layout, self.superblock.undo_base))
            .filter(|_| self.checkpoints.kept.len() < NAMES_MOST)
            .ok_or(Error::NotAnIndex {
                is_ours: true,
                what: "its directory of checkpoints is damaged",
            })?;
        // The last checkpoint may have a name, too.
        let last = usize::from(self.superblock.checkpoint.name.is_some());
        if self.checkpoints.kept.len() + last >= self.checkpoints.names_most {
            let have = self.memory().cache + self.memory().buffers;
            return Err(Error::LittleMemory { have, need: have + KEPT_BYTES as u64 * NAMES_SHARE });
        }
        self.checkpoints.kept.push(state);
        Ok(most - from.left() as u32)
    }

    /// The directory of what is kept now, written if it changed.
    pub(super) fn write_directory(&mut self) -> Result<Option<OverflowValue>> {
        let old = self.superblock.checkpoint.directory;
        if !self.checkpoints.is_directory_old {
            return Ok(old);
        }
        self.checkpoints.is_directory_old = false;
        if let Some(old) = old {
            self.free_long(old, Cause::Checkpoint)?;
        }
        if self.checkpoints.kept.is_empty() {
            return Ok(None);
        }
        let bytes: usize = self.checkpoints.kept.iter().map(CheckpointState::encoded_bytes).sum();
        let mut writer = self.start_long(bytes as u32, Cause::Checkpoint)?;
        for place in 0..self.checkpoints.kept.len() {
            let mut bytes = [0; STATE_BYTES_MOST];
            let state = &self.checkpoints.kept[place];
            state.encode(&mut Writer::new(&mut bytes));
            let bytes = &bytes[..state.encoded_bytes()];
            self.append_long(&mut writer, bytes, Cause::Checkpoint)?;
        }
        self.finish_long(writer).map(Some)
    }
}
