//! Merging leaves where a chip or a disk is full.
//!
//! Deletes leave leaves as they are until they are less than a quarter full, so they may give back
//! no page at all; but a put is admitted only if there are pages for the worst that it may split.
//! So before a put is refused after many deletes, a walk over all leaves merges neighbours that fit
//! one leaf. It goes on as far as the way back, or on raw flash the chip, has room, and after the
//! next checkpoint from where it was; nothing waits in buffers then.

use alloc::vec::Vec;

use device::Cause;

use super::LaTree;
use index::Result;

/// A walk is worth its reads after one delete for so many leaves.
const LEAVES_A_DELETE: u64 = 4;

/// What is known of leaves that may have room for each other.
#[derive(Debug, Default)]
pub(super) struct Compaction {
    /// Deletes since the last walk; `None` if they are not known, for the tree was just opened.
    deletes: Option<u64>,
    /// Where the walk goes on, if it is on its way.
    next: Vec<u8>,
    is_walking: bool,
}

impl Compaction {
    pub(super) fn note_delete(&mut self) {
        self.deletes = self.deletes.map(|deletes| deletes.saturating_add(1));
    }
}

impl LaTree<'_> {
    /// True if a walk may find leaves to be merged.
    pub(super) fn may_compact(&self) -> bool {
        let Compaction { deletes, is_walking, .. } = self.room.compaction;
        let enough = |deletes: u64| deletes.saturating_mul(LEAVES_A_DELETE) >= self.bare.leaves();
        self.bare.height > 1 && (is_walking || deletes.is_none_or(enough))
    }

    /// Merges leaves with their left neighbours where both fit one, as far as there is room; false
    /// if there was none.
    pub(super) fn compact_some(&mut self, cause: Cause) -> Result<bool> {
        if !self.may_compact() {
            return Ok(false);
        }
        let mut key = core::mem::take(&mut self.room.compaction.next);
        if !self.room.compaction.is_walking {
            key = self.bare.lowest_key();
        }
        let mut leaves = 0;
        let walked = self.walk_and_merge(&mut key, &mut leaves, cause);
        let compaction = &mut self.room.compaction;
        compaction.next = key;
        compaction.is_walking = !walked?;
        if !compaction.is_walking {
            compaction.deletes = Some(0);
        }
        Ok(leaves > 0)
    }

    /// True if the walk came to its end; counts the `leaves` that it passed.
    fn walk_and_merge(
        &mut self,
        key: &mut Vec<u8>,
        leaves: &mut u64,
        cause: Cause,
    ) -> Result<bool> {
        while self.make_room_to_merge()? {
            *leaves += 1;
            self.bare.descend(0, key, cause)?;
            if self.join_with_left(cause)? {
                self.generation.is_vain = false;
                self.note_lean(1);
                self.rebalance_lean(cause)?;
                continue;
            }
            if !self.bare.pass_leaf(key)? {
                self.lower_root(cause)?;
                return Ok(true);
            }
        }
        Ok(false)
    }
}
