//! Nodes that puts may add, in the worst case: so what is let in finds room, in any order.

use store::node::Codec;
use store::{Demand, Growth, Update, Width};

use super::{CHILD_BYTES, Codecs};

/// Bytes that an entry takes in a node beside its key and value, or more.
const ENTRY_BYTES_BESIDE: usize = 16;

/// Puts, and bytes that they may take in leaves.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Puts {
    pub(crate) count: u64,
    pub(crate) bytes: u64,
}

impl Puts {
    /// One put of a key and a value of so many bytes together.
    pub(crate) const fn one(entry: usize) -> Self {
        Puts { count: 1, bytes: (entry + ENTRY_BYTES_BESIDE) as u64 }
    }

    /// Those of a batch whose values all stand in leaves.
    pub(crate) fn of(batch: &[Update<'_>]) -> Self {
        let puts = batch.iter().filter(|update| !matches!(update, Update::Delete { .. }));
        puts.fold(Puts::default(), |all, put| {
            let value = if let Update::Put { value, .. } = put { value.len() } else { 0 };
            all.and(Puts::one(put.key().len() + value))
        })
    }

    pub(crate) const fn and(self, other: Puts) -> Self {
        Puts { count: self.count + other.count, bytes: self.bytes + other.bytes }
    }

    /// Without some that were among them.
    pub(crate) const fn less(self, other: Puts) -> Self {
        Puts {
            count: self.count.saturating_sub(other.count),
            bytes: self.bytes.saturating_sub(other.bytes),
        }
    }
}

/// How large a tree is.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Extent {
    /// Nodes, or more.
    pub(crate) nodes: u64,
    pub(crate) height: u8,
    pub(crate) entries: u64,
}

impl Codecs {
    /// Nodes that these puts may need in the worst case.
    pub(crate) fn nodes_needed(&self, puts: &Puts, extent: Extent) -> u64 {
        match puts.count {
            0 => 0,
            count if !self.is_variable() => self.nodes_split(count, extent),
            count => {
                let by_bytes = self.nodes_split_by_bytes(puts.bytes, extent);
                self.nodes_split(count, extent).min(by_bytes)
            }
        }
    }

    /// What puts may add to a tree of such a `demand` with so many entries. Where lengths vary that
    /// follows from their bytes, if these are few for so many puts.
    pub(crate) fn growth(&self, demand: &Demand, puts: &Puts, entries: u64) -> Growth {
        let by_count = demand.growth(puts.count);
        if puts.count == 0 || !self.is_variable() {
            return by_count;
        }
        let height = demand.levels.iter().filter(|nodes| **nodes > 0).count() as u8;
        let extent = Extent { nodes: demand.nodes(), height, entries };
        let nodes = self.nodes_needed(puts, extent);
        match nodes < by_count.leaves.saturating_add(by_count.inner) {
            true => Growth { leaves: nodes, inner: 0, levels: by_count.levels },
            false => by_count,
        }
    }

    /// Nodes that come when leaves split so often, in any order: a node of a level may be full, and
    /// what it fell into splits again when it has taken half of what it holds. Where lengths vary
    /// nodes may hold little and take little: each split goes up to the root then.
    fn nodes_split(&self, splits: u64, extent: Extent) -> u64 {
        let half = |codec: &Codec, value: u16| match (self.shape.key, self.shape.value) {
            (Width::Fixed(key), Width::Fixed(_)) => {
                (codec.capacity(key.into(), value.into()) as u64 / 2).max(2)
            }
            _ => 1,
        };
        let value = if let Width::Fixed(bytes) = self.shape.value { bytes } else { 0 };
        let (leaf, inner) = (half(&self.leaf, value), half(&self.inner, CHILD_BYTES));
        let mut nodes = extent.nodes;
        let mut splits = splits.min(nodes.saturating_add(splits / leaf));
        let mut all = splits;
        for _ in 1..extent.height {
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

    /// As [`Codecs::nodes_split`], of puts with so many bytes.
    ///
    /// A split in the middle leaves five eighths of a node or less on each side, so a half takes
    /// three eighths until it splits again; what is left behind at the right edge of the tree may
    /// be full, and splits once more. That makes `16/3` splits for each node of bytes, and one for
    /// each leaf that was there. A key that would lengthen all keys of a half until it does not
    /// fit splits the leaf on its side: behind it keys on that side begin as the rest does, and
    /// what lengthens these less has room, for they all had it before. Leaves that were there may
    /// split so for nothing; a side that a split made takes three eighths first, and a byte counts
    /// for the two sides of its leaf: `16/3` again. Inner nodes are no more than leaves, since each
    /// has two children or more. For splits on a side this is reasoned and played, not proved.
    fn nodes_split_by_bytes(&self, bytes: u64, extent: Extent) -> u64 {
        let leaves = extent.entries.min(extent.nodes);
        let splits =
            leaves.saturating_mul(3).saturating_add(12 * bytes / self.leaf.node_bytes() as u64);
        let nodes = splits.saturating_mul(2).saturating_add(leaves);
        nodes.saturating_add(2 * u64::from(extent.height) + 2)
    }
}
