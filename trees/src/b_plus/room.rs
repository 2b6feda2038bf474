//! Room: pages that puts may need, before they are let in.
//!
//! Each put is counted as if it met full nodes only, in any order; so what is let in finds room,
//! and a replay does, which makes all puts since the last checkpoint again.

use store::Update;

use super::BPlus;
use crate::btree::Puts;

impl BPlus<'_> {
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
