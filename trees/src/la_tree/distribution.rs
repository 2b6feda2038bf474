//! The entries of a buffer on their way down (figure 3(c)): to the buffers at the next buffered
//! level, or to the leaves, path by path in the order of their keys.
//!
//! The way to the subtree's root is walked once, and again only after nodes there were split or
//! merged. A leaf that is full is split, and the way to it is walked again.

use device::{Cause, Page};
use store::node;

use super::LaTree;
use super::descent::{Bounds, Toward};
use super::growth::{last_filled, split_middle};
use super::layout::NodeId;
use super::nodes::damaged;
use super::policy::Decision;
use super::shrinking::QUARTER;
use index::Result;

/// The root of the subtree that is being emptied.
#[derive(Debug)]
pub(super) struct Top {
    pub(super) level: u8,
    /// True if nodes at its level, or above, were split or merged since the way to it was walked.
    pub(super) restructured: bool,
    pub(super) bounds: Bounds,
}

impl Top {
    pub(super) fn new(key_bytes: usize) -> Self {
        Top { level: 0, restructured: true, bounds: Bounds::with_capacity(key_bytes) }
    }
}

impl LaTree<'_> {
    /// Goes to the node at `level` where the next entry belongs.
    pub(super) fn go_down(&mut self, level: u8, cause: Cause) -> Result<NodeId> {
        let key = core::mem::take(&mut self.flight.key);
        let mut outcome = Ok(NodeId(0));
        if self.top.restructured || !self.top.bounds.contains(&key) {
            self.top.level = self.top.level.min(self.height - 1);
            outcome = self.descend(self.top.level, &key, cause);
            self.top.bounds.copy_from(&self.bounds);
            self.top.restructured = false;
        } else {
            self.bounds.copy_from(&self.top.bounds);
        }
        if outcome.is_ok() {
            outcome = self.walk(self.top.level, level, Toward::Key(&key), cause);
        }
        self.flight.key = key;
        outcome
    }

    /// Hands what goes down to the buffers at level `below`.
    pub(super) fn distribute_to_buffers(&mut self, below: u8, cause: Cause) -> Result<()> {
        let mut child = None;
        while self.next_in_flight(cause)? {
            child = Some(self.hand_to_buffer(child, below, cause)?);
        }
        self.batch_came(child);
        Ok(())
    }

    /// Appends the entry in flight to the buffer at `level` where it belongs: to that of `child`,
    /// if the entry before it went there and it does, too. Returns the buffer.
    pub(super) fn hand_to_buffer(
        &mut self,
        child: Option<u32>,
        level: u8,
        cause: Cause,
    ) -> Result<u32> {
        let number = match child.filter(|_| self.bounds.contains(&self.flight.key)) {
            Some(number) => number,
            None => {
                self.batch_came(child);
                let number = self.go_down(level, cause)?.buffer();
                let number = number.ok_or(damaged(Page(0), "a node has no buffer"))?;
                if self.is_above(level, number) {
                    let page = self.nodes.page_of(NodeId::of_buffer(number));
                    return Err(damaged(page, "a node is below itself"));
                }
                number
            }
        };
        self.buffers.append(&mut self.log, number, &self.flight.entry(), cause)?;
        Ok(number)
    }

    /// Lists a buffer that is too large after its batch came.
    pub(super) fn batch_came(&mut self, child: Option<u32>) {
        let policy = self.policy;
        let Some(number) = child else {
            return;
        };
        if self.buffers.at_update(&policy, number) == Decision::Empty {
            self.buffers.list(number);
        }
    }

    /// Hands what goes down to the leaves; returns how many were changed.
    pub(super) fn distribute_to_leaves(&mut self, cause: Cause) -> Result<u32> {
        let (mut changed, mut at_leaf, mut is_first) = (0, false, true);
        while self.next_in_flight(cause)? {
            loop {
                if !at_leaf || !self.bounds.contains(&self.flight.key) {
                    if at_leaf {
                        self.rebalance(0, cause)?;
                    }
                    let stops = !is_first && !self.has_room_for_leaf();
                    if stops || changed > 0 && !self.may_step() {
                        self.put_back(cause)?;
                        return Ok(changed);
                    }
                    self.go_down(0, cause)?;
                    (at_leaf, changed) = (true, changed + 1);
                }
                if self.apply_to_leaf(cause)? {
                    is_first = false;
                    break;
                }
                // It was split: the way is to be walked again.
                (at_leaf, changed) = (false, changed - 1);
            }
        }
        if at_leaf {
            self.rebalance(0, cause)?;
        }
        Ok(changed)
    }

    /// Makes the next entry's change in the leaf of the way; false if the leaf was full, and room
    /// was made.
    fn apply_to_leaf(&mut self, cause: Cause) -> Result<bool> {
        let leaf = self.path.at(0).id;
        let codec = self.nodes.leaf;
        let node = self.nodes.node(&mut self.log, leaf, 0, cause)?;
        let found = codec.search(node, &self.flight.key);
        let place = match (found, self.flight.is_delete) {
            (Ok(place), true) => {
                let before = codec.value(node, place).as_long();
                self.nodes.remove(&mut self.log, (leaf, 0), place)?;
                if let Some(disk) = self.log.disk_mut() {
                    disk.compaction.note_delete();
                }
                let what = "the root counts fewer entries than there are";
                let entries = self.entries.checked_sub(1);
                self.entries = entries.ok_or(damaged(self.nodes.page_of(leaf), what))?;
                self.drop_value(before, cause)?;
                return Ok(true);
            }
            (Err(_), true) => return Ok(true),
            (Ok(place), false) => {
                let (known, value) = (codec.value(node, place), self.flight.stored());
                let before = known.as_long();
                if before.is_none() && !self.flight.is_long && known.bytes() == value.bytes() {
                    return Ok(true);
                }
                if self.nodes.replace(&mut self.log, leaf, place, value)? {
                    self.drop_value(before, cause)?;
                    return Ok(true);
                }
                place
            }
            (Err(place), false) => {
                let entry = (self.flight.key.as_slice(), self.flight.stored());
                if self.nodes.insert(&mut self.log, (leaf, 0), place, entry)? {
                    self.entries = self.entries.saturating_add(1);
                    return Ok(true);
                }
                place
            }
        };
        let at = self.split_place(leaf, place, cause)?;
        self.split(0, at, cause)?;
        Ok(false)
    }

    /// Where a full leaf is split that takes an entry at `place`. If many more entries follow, what
    /// they have passed is not divided again, so that leaves get full.
    fn split_place(&mut self, leaf: NodeId, place: usize, cause: Cause) -> Result<usize> {
        let codec = self.nodes.leaf;
        let node = self.nodes.node(&mut self.log, leaf, 0, cause)?;
        let count = node::count(node);
        if count < 2 {
            return Err(damaged(self.nodes.page_of(leaf), "it is full with one entry"));
        }
        let middle = split_middle(&codec, node);
        let ahead = self.flight.place + count * usize::from(100 - 2 * QUARTER) / 100;
        let follow = ahead.checked_sub(1).and_then(|ahead| self.sorter.get(ahead));
        let Some(follow) = follow.filter(|entry| self.bounds.contains(entry.key)) else {
            return Ok(middle);
        };
        let next = (place < count).then(|| codec.key(node, place));
        Ok(match next.is_some_and(|next| next.compare(follow.key).is_gt()) {
            true => last_filled(&codec, node, place.clamp(middle, count - 1)).max(middle),
            false => place.max(middle),
        })
    }
}
