//! How an index comes back: after it was closed, and after the power was cut.

use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;

use crate::{Error, Result, Update, Wear};

/// How much of what an index acknowledged lasts through a power cut.
///
/// Whatever the setting, after a cut the index holds every update that was acknowledged under it,
/// and beyond those a prefix of the rest: never a hole, never half a batch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Durability {
    /// Nothing, unless the index was closed: as the papers measured.
    #[default]
    None,
    /// What the last checkpoint holds.
    Checkpoint,
    /// What the last sync or checkpoint holds; later updates last as soon as the page of the
    /// journal that they are in is full and the device made it durable.
    Batch,
    /// Every update that returned.
    Every,
}

impl Durability {
    /// All settings, from the weakest to the strongest.
    pub const ALL: [Durability; 4] =
        [Durability::None, Durability::Checkpoint, Durability::Batch, Durability::Every];

    /// The word by which users name this setting.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Durability::None => "none",
            Durability::Checkpoint => "checkpoint",
            Durability::Batch => "batch",
            Durability::Every => "every",
        }
    }

    /// True if updates go through a journal.
    #[must_use]
    pub const fn has_journal(self) -> bool {
        matches!(self, Durability::Batch | Durability::Every)
    }
}

impl fmt::Display for Durability {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.pad(self.name())
    }
}

/// The number of a checkpoint; later ones have higher numbers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CheckpointId(pub u64);

impl fmt::Display for CheckpointId {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "checkpoint {}", self.0)
    }
}

/// A checkpoint that is kept until it is forgotten.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Savepoint {
    /// Its name: 1 to 64 bytes.
    pub name: String,
    /// Its number.
    pub id: CheckpointId,
}

/// The most bytes in a checkpoint's name.
pub(crate) const NAME_BYTES_MOST: usize = 64;

/// The most checkpoints that are kept at a time.
pub(crate) const NAMES_MOST: usize = 64;

/// Refuses a name that no further checkpoint can have beside those of `kept`, where no more than
/// so many are kept, and why.
pub(crate) fn check_checkpoint_name(
    name: &str,
    kept: &[Savepoint],
    (most, too_many): (usize, &'static str),
) -> Result<()> {
    let what = if name.is_empty() || name.len() > NAME_BYTES_MOST {
        "it must have 1 to 64 bytes"
    } else if kept.iter().any(|other| other.name == name) {
        "it is taken"
    } else if kept.len() >= NAMES_MOST {
        "64 checkpoints are kept, the most there can be"
    } else if kept.len() >= most {
        too_many
    } else {
        return Ok(());
    };
    Err(Error::CheckpointName { what })
}

/// What the device holds for recovery, and what the last recovery did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RecoveryStatistics {
    /// How much lasts.
    pub durability: Durability,
    /// The last checkpoint.
    pub checkpoint: CheckpointId,
    /// Bytes of the journal that an opening would replay.
    pub journal_bytes: u64,
    /// The most that the journal takes, in bytes; 0 if there is none.
    pub journal_bytes_most: u64,
    /// Bytes of page images that an opening would put back.
    pub undo_bytes: u64,
    /// Bytes of images at which a checkpoint is made.
    pub undo_bytes_most: u64,
    /// Bytes that named checkpoints keep: of images in a page file, of whole blocks in a page log.
    /// Such blocks may also hold pages of the present state.
    pub kept_bytes: u64,
    /// Images that were put back when the index was opened.
    pub restored: u64,
    /// Updates that were replayed when the index was opened.
    pub replayed: u64,
    /// Updates of a batch that were already in the checkpoint from which the index was opened.
    pub resumed: u64,
    /// Checkpoints that were made inside a batch, or in a replay, since the index was opened.
    pub within: u64,
}

/// An item of a replay.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Replayed<'b> {
    /// An update of a batch.
    Update(Update<'b>),
    /// A change that the tree made by itself and recorded: see [`Recovery::delta`].
    Delta(&'b [u8]),
}

/// What a tree's pages stand on keeps the tree's root record, the way back to it, and a journal of
/// what came after it. The page file and the page log implement it.
///
/// Only [`Durable`](../index/struct.Durable.html) makes checkpoints and records batches, and it
/// restores trees and replays what came later. Trees ask, at most, whether a checkpoint is due.
pub trait Recovery: Send {
    /// How much lasts through a power cut.
    fn durability(&self) -> Durability;

    /// True if a checkpoint must be made before `batch`, which may change up to `pages` pages,
    /// because the journal or the undo log has no room for it.
    ///
    /// # Errors
    /// [`Error::LongBatch`](crate::Error::LongBatch) if even an empty journal is too short.
    fn needs_checkpoint(&self, batch: &[Update<'_>], pages: u32) -> Result<bool>;

    /// True if a checkpoint without a name must be made before one called `name`, because otherwise
    /// there would be no room to forget what is kept.
    ///
    /// # Errors
    /// The name is taken or has a bad length, or there is no room. Nothing changed.
    fn needs_checkpoint_before(&self, name: &str) -> Result<bool>;

    /// Writes `batch` to the journal as one atomic record, if there is a journal. Under
    /// [`Durability::Every`] the batch is durable when this returns.
    ///
    /// # Errors
    /// The device failed.
    fn record(&mut self, batch: &[Update<'_>]) -> Result<()>;

    /// Records a change that the tree made by itself, in one order with the batches: a replay hands
    /// it out behind all that was recorded before, whole or not at all. Returns whether there is
    /// room for that; if not, the tree leaves its change until the next checkpoint. Where there is
    /// no journal nothing has to be recorded, nor in a replay, behind which a checkpoint is made.
    ///
    /// It lasts with what is recorded, or synced, behind it. After a checkpoint inside a batch it
    /// may be handed out though the root record holds it: it has to say which it is.
    ///
    /// # Errors
    /// The device failed.
    fn delta(&mut self, delta: &[u8]) -> Result<bool>;

    /// Makes everything that was recorded durable.
    ///
    /// # Errors
    /// The device failed.
    fn sync(&mut self) -> Result<()>;

    /// Makes all that was written the state to come back to, atomically, with `root` as the root
    /// record; with a `name`, that state is kept until it is forgotten.
    ///
    /// # Errors
    /// The name is taken or of no possible length, there is no room, or the device failed.
    fn checkpoint(&mut self, root: &[u8], name: Option<&str>) -> Result<CheckpointId>;

    /// True if a checkpoint can fall inside a batch whose updates each change up to `pages` pages.
    /// The journal holds the rest of the batch.
    fn takes_within(&self, pages: u32) -> bool {
        let _ = pages;
        false
    }

    /// True if a checkpoint is due inside a batch, before an update that changes up to `pages`
    /// pages; or, with `None`, inside a replay.
    fn is_due_within(&self, pages: Option<u32>) -> bool {
        let _ = pages;
        false
    }

    /// As [`checkpoint`](Recovery::checkpoint), inside the batch that was recorded last, of which
    /// `made` updates were made; or in the midst of a replay, where `made` is 0. The journal stays,
    /// and an opening replays the rest of it; or as much as before, if `made` is `None`, for some
    /// of it is in no page. Does nothing where none is ever due.
    ///
    /// # Errors
    /// There is no room, or the device failed.
    fn checkpoint_within(&mut self, root: &[u8], made: Option<u32>) -> Result<()> {
        let _ = (root, made);
        Ok(())
    }

    /// Makes a checkpoint after which nothing is only in memory.
    ///
    /// # Errors
    /// There is no room, or the device failed.
    fn close(&mut self, root: &[u8]) -> Result<()>;

    /// Gets more room. Returns false if the medium has no more.
    ///
    /// # Errors
    /// There is no room beyond the medium (nothing changed), or the device failed.
    fn extend(&mut self) -> Result<bool> {
        Ok(false)
    }

    /// True if `batch` lasts by a checkpoint instead of the journal: whatever it changes has its
    /// image until then. It is longer than the journal; or a checkpoint is cheaper than to write
    /// its long values twice, if the tree `is_drained` and has nothing else to write.
    fn lasts_by_checkpoint(&self, batch: &[Update<'_>], is_drained: bool) -> bool {
        let _ = (batch, is_drained);
        false
    }

    /// True if closing has nothing left to give back.
    fn is_closed(&self) -> bool {
        true
    }

    /// Gives back the room that is not needed while the index is closed. The last checkpoint must
    /// hold everything.
    ///
    /// # Errors
    /// The device failed.
    fn shut(&mut self) -> Result<()> {
        Ok(())
    }

    /// True if a checkpoint gives back what only forgotten checkpoints needed, and has room itself.
    fn gives_room_then(&self) -> bool {
        false
    }

    /// True if the medium may be so much longer than it has to be that it is worth asking what is
    /// promised.
    fn is_long(&self) -> bool {
        false
    }

    /// Asks that the next checkpoint, before which nothing more is let in, gives back room that is
    /// free, but for what `promised` pages take; false if that is not worth a checkpoint.
    fn shorten(&mut self, promised: u64) -> bool {
        let _ = promised;
        false
    }

    /// Tells the medium, before the first change, that it is not closed any more.
    ///
    /// # Errors
    /// The device failed.
    fn reopen(&mut self) -> Result<()>;

    /// A number that grows with each page that the tree writes, if it may write without a
    /// [`reopen`](Recovery::reopen); 0 otherwise.
    fn position(&self) -> u64 {
        0
    }

    /// Goes back to the checkpoint called `name`, atomically, and returns its root record. Later
    /// checkpoints and the journal are lost.
    ///
    /// # Errors
    /// There is no such checkpoint, or the device failed.
    fn roll_back(&mut self, name: &str) -> Result<Vec<u8>>;

    /// Forgets the checkpoint called `name`. The next checkpoint makes that durable.
    ///
    /// # Errors
    /// There is no such checkpoint, or the device failed.
    fn forget(&mut self, name: &str) -> Result<()>;

    /// The checkpoints that are kept, oldest first.
    fn checkpoints(&self) -> &[Savepoint];

    /// The next item to be replayed after an opening, or `None` after the last. The key stands in
    /// `buffer`, and so does the value if both fit. A longer value comes as a stored one; a longer
    /// delta is damage. Only whole batches are replayed.
    ///
    /// # Errors
    /// The device failed, or a record of the journal makes no sense.
    fn next_replayed<'b>(&mut self, buffer: &'b mut [u8]) -> Result<Option<Replayed<'b>>>;

    /// What the device holds for recovery.
    fn statistics(&self) -> RecoveryStatistics;

    /// Why nothing more is written, if the device failed. After a failed flush nothing may be read
    /// either.
    fn failure(&self) -> Option<device::Error> {
        None
    }

    /// How worn the chip is, if there is one and its erases are counted.
    fn wear(&self) -> Option<Wear> {
        None
    }
}

#[cfg(test)]
mod tests {
    use alloc::string::String;

    use super::{NAME_BYTES_MOST, check_checkpoint_name};
    use crate::{CheckpointId, Savepoint};

    #[test]
    fn a_name_is_short_and_new_and_others_are_refused_for_their_number() {
        let kept = [Savepoint { name: String::from("old"), id: CheckpointId(3) }];
        let is_refused = |name: &str| check_checkpoint_name(name, &kept, (8, "")).is_err();
        let long = "n".repeat(NAME_BYTES_MOST);
        assert!(["new", "nach der Ernte", "été", &long].iter().all(|name| !is_refused(name)));
        assert!(["", "old"].iter().all(|name| is_refused(name)));
        assert!(is_refused(&(long + "n")));
        let what = "one is enough";
        let found = check_checkpoint_name("new", &kept, (1, what));
        assert_eq!(found, Err(crate::Error::CheckpointName { what }));
    }
}
