//! What the tree is made of, as far as its room depends on it: the nodes of each level, and how
//! they grow, which keys decide by the longest of them.

use store::Demand;

use super::layout::{CHILD_BYTES, HEIGHT_MOST};
use super::plan::Added;
use super::policy::Policy;

/// Nodes of each level, leaves first.
pub(super) type Nodes = [u32; HEIGHT_MOST as usize];

/// The longest key is counted in steps of so many bytes: a longer one costs a checkpoint.
const KEY_STEP: usize = 16;

/// What there is.
#[derive(Clone, Copy, Debug)]
pub(super) struct Census {
    /// Nodes of each level, and how they grow with keys as long as the longest.
    pub(super) demand: Demand,
    /// The longest key that was put since the tree was made, or a little more, where they vary.
    pub(super) longest_key: usize,
    key_bytes_most: usize,
    /// How often nodes were added: what was counted ahead before the last time is over.
    pub(super) growths: u64,
}

impl Census {
    /// Of no node, in trees that `policy` shapes.
    pub(super) fn new(policy: &Policy) -> Self {
        let key_bytes_most = policy.limits().key;
        Census { demand: growth_of(policy, 0), longest_key: 0, key_bytes_most, growths: 0 }
    }

    /// No key has more than so many bytes; `None` if any may be as long as can be.
    pub(super) fn set_longest_key(&mut self, bytes: Option<usize>, policy: &Policy) {
        self.longest_key = bytes.unwrap_or(usize::MAX).min(self.key_bytes_most);
        self.demand = Demand { levels: self.demand.levels, ..growth_of(policy, self.longest_key) };
    }

    /// Notes that keys have so many bytes; true if all were shorter.
    pub(super) fn note_key(&mut self, bytes: usize, policy: &Policy) -> bool {
        let is_longer = bytes > self.longest_key && policy.pages().counts_keys();
        if is_longer {
            self.set_longest_key(Some(bytes.next_multiple_of(KEY_STEP)), policy);
        }
        is_longer
    }

    /// What it is when these nodes came and went.
    pub(super) fn demand_after(&self, added: &Added) -> Demand {
        let levels = core::array::from_fn(|level| {
            u32::try_from(i64::from(self.demand.levels[level]) + added[level]).unwrap_or_default()
        });
        Demand { levels, ..self.demand }
    }

    /// These nodes came and went.
    pub(super) fn count(&mut self, added: &Added) {
        if added.iter().any(|nodes| *nodes != 0) {
            self.demand = self.demand_after(added);
            self.growths += u64::from(!adds_none(added));
        }
    }
}

/// True if no level gets a node more.
pub(super) fn adds_none(added: &Added) -> bool {
    added.iter().all(|nodes| *nodes <= 0)
}

/// How nodes of trees that `policy` shapes grow, whose keys have `longest` bytes at the most. What
/// falls apart is larger than it can be anywhere: so it takes half of that before it does again.
/// Where lengths vary and keys are counted, it is cut in the middle but for one entry; and a leaf,
/// whose keys share what they have in common, may fall apart at every put.
pub(super) fn growth_of(policy: &Policy, longest: usize) -> Demand {
    let pages = policy.pages();
    let is_variable = pages.is_variable();
    if is_variable && !pages.counts_keys() {
        return Demand { puts_a_leaf: 1, children_a_node: 1, leaves_a_put: 2, ..Demand::default() };
    }
    let children = |level: u8| {
        let layout = policy.roomiest(level);
        let codec = pages.codec(&layout, level);
        let most = codec.map_or(0, |codec| codec.capacity(longest, CHILD_BYTES.into()) as u32);
        (most / 2).saturating_sub(is_variable.into()).max(1)
    };
    let smallest = pages.layout(policy.bounds().beta, 2);
    let puts_a_leaf = match is_variable {
        true => 1,
        false => (pages.capacity(&smallest, 0) as u32 / 2).max(1),
    };
    Demand {
        puts_a_leaf,
        children_a_node: (1..HEIGHT_MOST - 1).map(children).min().unwrap_or(1),
        leaves_a_put: if is_variable { 2 } else { 1 },
        ..Demand::default()
    }
}

#[cfg(test)]
mod tests;
