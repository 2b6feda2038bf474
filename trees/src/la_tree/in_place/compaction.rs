//! Merging leaves where a disk is full.
//!
//! Deletes leave leaves as they are until they are less than a quarter full, so they may give back
//! no page at all; but a put is admitted only if there are pages for the worst that it may split.
//! So before a put is refused after many deletes, a walk over all leaves merges neighbours that fit
//! one leaf. It goes on as far as the way back has room, and after the next checkpoint from where
//! it was; nothing waits in buffers then.

use alloc::vec::Vec;

use device::Cause;

use super::super::LaTree;
use index::Result;

/// A walk is worth its reads after one delete for so many leaves.
const LEAVES_A_DELETE: u64 = 4;

/// What is known of leaves that may have room for each other.
#[derive(Debug, Default)]
pub(in super::super) struct Compaction {
    /// Deletes since the last walk; `None` if they are not known, for the tree was just opened.
    deletes: Option<u64>,
    /// Where the walk goes on, if it is on its way.
    next: Vec<u8>,
    is_walking: bool,
}

impl Compaction {
    pub(in super::super) fn note_delete(&mut self) {
        self.deletes = self.deletes.map(|deletes| deletes.saturating_add(1));
    }

    /// The tree is one that was just opened.
    pub(super) fn forget(&mut self) {
        (self.deletes, self.is_walking) = (None, false);
    }
}

impl LaTree<'_> {
    /// True if a walk may find leaves to be merged.
    pub(in super::super) fn may_compact(&self) -> bool {
        let enough = |deletes: u64| deletes.saturating_mul(LEAVES_A_DELETE) >= self.leaves();
        self.height > 1
            && self.log.disk().is_some_and(|disk| {
                let Compaction { deletes, is_walking, .. } = disk.compaction;
                is_walking || deletes.is_none_or(enough)
            })
    }

    /// Merges leaves with their left neighbours where both fit one, as far as there is room.
    pub(super) fn compact_some(&mut self, cause: Cause) -> Result<()> {
        if !self.may_compact() {
            return Ok(());
        }
        let Some(disk) = self.log.disk_mut() else {
            return Ok(());
        };
        let mut key = core::mem::take(&mut disk.compaction.next);
        if !disk.compaction.is_walking {
            key.clear();
            key.extend_from_slice(&self.lowest_key());
        }
        let walked = self.walk_and_merge(&mut key, cause);
        if let Some(disk) = self.log.disk_mut() {
            disk.compaction.next = key;
            disk.compaction.is_walking = !walked?;
            if !disk.compaction.is_walking {
                disk.compaction.deletes = Some(0);
            }
        }
        Ok(())
    }

    /// True if the walk came to its end.
    fn walk_and_merge(&mut self, key: &mut Vec<u8>, cause: Cause) -> Result<bool> {
        while self.may_step() {
            self.descend(0, key, cause)?;
            if self.join_with_left(cause)? {
                self.note_lean(1);
                self.rebalance_lean(cause)?;
                continue;
            }
            if !self.pass_leaf(key)? {
                self.lower_root(cause)?;
                return Ok(true);
            }
        }
        Ok(false)
    }
}
