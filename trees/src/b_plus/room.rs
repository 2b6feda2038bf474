//! Room: pages that puts may need, before they are let in.
//!
//! Each put is counted as if it met full nodes only, in any order; so what is let in finds room,
//! and a replay does, which makes all puts since the last checkpoint again.

use store::Update;

use super::BPlus;
use crate::btree::{Extent, Puts};
use index::Result;

impl BPlus<'_> {
    /// Refuses what needs more pages than are free.
    pub(super) fn check_free(&self, pages: u64) -> Result<()> {
        match pages <= u64::from(self.store.file.pages_free()) {
            true => Ok(()),
            false => {
                Err(store::Error::Full { pages: u64::from(self.store.file.pages_most()) }.into())
            }
        }
    }

    /// Pages that these puts may need in the worst case.
    pub(super) fn pages_needed(&self, puts: &Puts) -> u64 {
        let extent = Extent {
            nodes: self.store.file.pages_used().0.into(),
            height: self.btree.height(),
            entries: self.btree.entries,
        };
        self.store.codecs.nodes_needed(puts, extent)
    }

    /// The puts of a batch.
    pub(super) fn puts_of(&self, batch: &[Update<'_>]) -> Puts {
        let codecs = &self.store.codecs;
        let mut puts = Puts::default();
        for update in batch {
            puts = puts.and(match update {
                Update::Delete { .. } => continue,
                Update::Put { key, value } if !codecs.is_long(key.len(), value.len() as u32) => {
                    Puts::one(key.len() + value.len())
                }
                _ => Puts { count: 1, bytes: codecs.leaf.entry_bytes_most() as u64 },
            });
        }
        puts
    }
}
