//! Room: pages that puts may need, before they are let in.
//!
//! Each put is counted as if it met full nodes only, in any order; so what is let in finds room,
//! and a replay does, which makes all puts since the last checkpoint again.

use store::node::Codec;
use store::{Update, Width};

use super::BPlus;
use crate::btree::CHILD_BYTES;
use index::Result;

/// Bytes that an entry takes in a node beside its key and value, or more.
const ENTRY_BYTES_BESIDE: usize = 16;

/// Puts, and bytes that they may take in leaves.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Puts {
    pub(super) count: u64,
    pub(super) bytes: u64,
}

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
        match puts.count {
            0 => 0,
            count if !self.store.codecs.is_variable() => self.nodes_split(count),
            count => self.nodes_split(2 * count).min(self.nodes_split_by_bytes(puts.bytes)),
        }
    }

    /// Nodes that come when leaves split so often, in any order: a node of a level may be full, and
    /// what it fell into splits again when it has taken half of what it holds. Where lengths vary
    /// nodes may hold little and take little: each split goes up to the root then.
    fn nodes_split(&self, splits: u64) -> u64 {
        let half = |codec: &Codec, value: u16| match (
            self.store.codecs.shape.key,
            self.store.codecs.shape.value,
        ) {
            (Width::Fixed(key), Width::Fixed(_)) => {
                (codec.capacity(key.into(), value.into()) as u64 / 2).max(2)
            }
            _ => 1,
        };
        let value = if let Width::Fixed(bytes) = self.store.codecs.shape.value { bytes } else { 0 };
        let (leaf, inner) =
            (half(&self.store.codecs.leaf, value), half(&self.store.codecs.inner, CHILD_BYTES));
        let mut nodes = u64::from(self.store.file.pages_used().0);
        let mut splits = splits.min(nodes.saturating_add(splits / leaf));
        let mut all = splits;
        for _ in 1..self.btree.height() {
            nodes = nodes / inner + 1;
            splits = splits.min(nodes.saturating_add(splits / inner));
            all = all.saturating_add(splits);
        }
        // New roots, and what they fall into.
        while splits > 0 {
            splits /= inner.max(2);
            all = all.saturating_add(1 + splits);
        }
        all
    }

    /// As [`BPlus::nodes_split`], of puts with so many bytes. A half has three eighths of a node or
    /// more, and so has what it takes until it is split again, less what its prefix saves; an entry
    /// has a quarter at most. Inner nodes are no more than leaves.
    fn nodes_split_by_bytes(&self, bytes: u64) -> u64 {
        let leaves = self.btree.entries.min(self.store.file.pages_used().0.into());
        let splits = leaves
            .saturating_mul(2)
            .saturating_add(6 * bytes / self.store.codecs.leaf.node_bytes() as u64);
        splits.saturating_mul(2).saturating_add(2 * u64::from(self.btree.height()) + 2)
    }

    /// The puts of a batch.
    pub(super) fn puts_of(&self, batch: &[Update<'_>]) -> Puts {
        let mut puts = Puts::default();
        for update in batch {
            puts.count += u64::from(!matches!(update, Update::Delete { .. }));
            puts.bytes += match update {
                Update::Put { key, value }
                    if !self.store.codecs.is_long(key.len(), value.len() as u32) =>
                {
                    (key.len() + value.len() + ENTRY_BYTES_BESIDE) as u64
                }
                Update::Delete { .. } => 0,
                _ => self.store.codecs.leaf.entry_bytes_most() as u64,
            };
        }
        puts
    }
}
