//! The entries of a buffer on their way down (figure 3(c)): to the buffers at the next buffered
//! level, or to the leaves, path by path in the order of their keys.
//!
//! The way to the subtree's root is walked once, and again only after nodes there were split or
//! merged. A leaf that is full is split, and the way to it is walked again.
//!
//! Nodes split and merge with empty buffers: what is in a buffer is taken into memory before, and
//! appended to the buffers of the nodes that come of it ([`LaTree::take_aside`]). Memory holds one
//! buffer; so what is going down is put back before, and is emptied again behind that.
//!
//! What goes down comes to a lower level each time: its key lies in the bounds of the node whose
//! buffer it leaves, and the buffer that it comes to is none of those above. A damaged node may
//! name any buffer as its child's; without these two, entries would go round for ever.
//!
//! Invariant: the entry in flight, [`InFlight::key`] and what belongs to it, is a copy. It stays
//! while the buffers and the nodes that it goes to change.

use alloc::vec::Vec;

use device::{Cause, Page};
use store::node::{self, Stored};

use super::LaTree;
use super::buffers::Chain;
use super::descent::{Bounds, Toward};
use super::growth::{Halves, last_filled, split_middle};
use super::layout::NodeId;
use super::nodes::damaged;
use super::policy::Decision;
use super::room::Part;
use super::shrinking::QUARTER;
use super::stream::Pending;
use crate::btree::Edit;
use index::Result;

/// What is going down, and the entry of it that is next.
#[derive(Clone, Debug)]
pub(super) struct InFlight {
    pub(super) key: Vec<u8>,
    pub(super) value: Vec<u8>,
    pub(super) is_delete: bool,
    /// True if the value tells where the entry's long value stands.
    pub(super) is_long: bool,
    /// True if one entry is all there is: it comes from no buffer.
    is_single: bool,
    /// Sorted entries that went down.
    pub(super) place: usize,
    /// Of a buffer that does not fit memory, what is newer than all that is there.
    newer: Option<Chain>,
    /// All keys lie in these.
    bounds: Bounds,
    /// What of the buffer that is being emptied went back.
    pub(super) put_back: PutBack,
    /// What has to stay free while a buffer is emptied leaf by leaf.
    pub(super) part: Option<Part>,
}

/// Entries that went back into buffers.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct PutBack {
    pub(super) entries: u32,
    pub(super) bytes: u32,
}

impl InFlight {
    pub(super) fn new(key_bytes: usize, value_bytes: usize) -> Self {
        InFlight {
            key: Vec::with_capacity(key_bytes),
            value: Vec::with_capacity(value_bytes),
            is_delete: false,
            is_long: false,
            is_single: false,
            place: 0,
            newer: None,
            bounds: Bounds::with_capacity(key_bytes),
            put_back: PutBack::default(),
            part: None,
        }
    }

    fn take(&mut self, entry: &Pending<'_>) {
        self.key.clear();
        self.key.extend_from_slice(entry.key);
        self.value.clear();
        self.value.extend_from_slice(entry.value.unwrap_or_default());
        self.is_delete = entry.value.is_none();
        self.is_long = false;
    }

    /// The entry that is all there is, if so it is, to go on with it later.
    pub(super) fn single(&self) -> Option<Self> {
        self.is_single.then(|| self.clone())
    }

    /// The entry, as it stands in a buffer.
    pub(super) fn entry(&self) -> Pending<'_> {
        let value = (!self.is_delete).then_some(self.value.as_slice());
        Pending { key: &self.key, value }
    }

    /// The value, as it stands in a leaf.
    fn stored(&self) -> Stored<'_> {
        match self.value.first_chunk() {
            Some(long) if self.is_long => Stored::long(long),
            _ => Stored::inline(&self.value),
        }
    }
}

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
    /// Makes the entries of buffer `number`, which the way leads to, those that go down, and the
    /// buffer empty.
    pub(super) fn take_off(&mut self, number: u32, cause: Cause) -> Result<()> {
        self.sorter.clear();
        self.in_flight.is_single = false;
        self.in_flight.place = 0;
        self.in_flight.bounds.copy_from(&self.bounds);
        let fits = self.buffers.record(number).bytes as usize <= self.sorter.bytes();
        if !fits {
            self.counters.emptied_in_parts += 1;
            self.buffers.evict(&mut self.log, number, cause)?;
        }
        self.buffers.load_held(number, &mut self.sorter)?;
        let mut chain = Chain::of(&self.buffers.record(number));
        let into = (&mut self.sorter, fits);
        self.buffers.load_chain(&mut self.log, &mut chain, into, cause)?;
        self.in_flight.newer = Some(chain).filter(|chain| chain.newest().is_some());
        self.sorter.sort();
        self.buffers.begin_anew(&self.log, number)
    }

    /// Loads the next part of what goes down; false if there is none.
    fn load_newer(&mut self, cause: Cause) -> Result<bool> {
        let Some(mut chain) = self.in_flight.newer.take() else {
            return Ok(false);
        };
        self.sorter.clear();
        let into = (&mut self.sorter, false);
        self.buffers.load_chain(&mut self.log, &mut chain, into, cause)?;
        self.in_flight.newer = Some(chain).filter(|chain| chain.newest().is_some());
        self.sorter.sort();
        self.in_flight.place = 0;
        Ok(true)
    }

    /// Lets `key` have `value`, or none, in its leaf, with nothing else that goes down.
    pub(super) fn put_down(
        &mut self,
        key: &[u8],
        value: Option<&[u8]>,
        is_long: bool,
    ) -> Result<()> {
        self.sorter.clear();
        self.in_flight.take(&Pending { key, value });
        self.in_flight.is_long = is_long;
        self.in_flight.is_single = true;
        self.in_flight.place = 0;
        self.in_flight.newer = None;
        self.top.restructured = true;
        self.top.level = self.leaf_subtree_level();
        self.distribute_to_leaves(Cause::Update)?;
        self.rebalance_lean(Cause::Update)?;
        self.lower_root(Cause::Update)
    }

    /// Goes on to the next entry that goes down; false after the last.
    pub(super) fn next_in_flight(&mut self, cause: Cause) -> Result<bool> {
        if self.in_flight.is_single {
            self.in_flight.place += 1;
            return Ok(self.in_flight.place == 1);
        }
        loop {
            let Some(entry) = self.sorter.get(self.in_flight.place) else {
                if self.load_newer(cause)? {
                    continue;
                }
                return Ok(false);
            };
            self.in_flight.take(&entry);
            self.in_flight.place += 1;
            if !self.in_flight.bounds.contains(&self.in_flight.key) {
                return Err(damaged(Page(0), "a buffer has entries of another node"));
            }
            return Ok(true);
        }
    }

    /// Takes what the buffer of node `id` holds, if it has one, into memory, before the node is
    /// split, or merged with a neighbour; false if it holds nothing.
    pub(super) fn take_aside(&mut self, id: NodeId, cause: Cause) -> Result<bool> {
        let Some(number) = id.buffer().filter(|number| self.buffers.record(*number).entries() > 0)
        else {
            return Ok(false);
        };
        let before = self.time_ns();
        self.find_buffer(id, cause)?;
        self.take_off(number, cause)?;
        self.counters.buffers_rebalanced_ns += self.time_ns() - before;
        Ok(true)
    }

    /// Appends what was taken aside to the buffers at `level` where it belongs now, but for the
    /// entry of the key `without`.
    pub(super) fn hand_back(
        &mut self,
        level: u8,
        without: Option<&[u8]>,
        cause: Cause,
    ) -> Result<()> {
        let before = self.time_ns();
        self.top.level = level;
        self.top.restructured = true;
        self.distribute_to_buffers(level, without, cause)?;
        self.top.restructured = true;
        self.counters.buffers_rebalanced_ns += self.time_ns() - before;
        Ok(())
    }

    /// Puts what has not gone down yet, the entry in flight first, back into the buffers of leaf
    /// subtrees, which are listed to be emptied again if this `is_short`.
    pub(super) fn put_back(&mut self, is_short: bool, cause: Cause) -> Result<()> {
        let level = self.leaf_subtree_level();
        self.top.level = level;
        self.top.restructured = true;
        let before = (self.buffers.pending, self.buffers.pending_bytes);
        let mut child = None;
        loop {
            child = Some(self.hand_to_buffer(child, level, cause)?);
            if let Some(number) = child.filter(|_| is_short) {
                self.buffers.list(number);
            }
            if !self.next_in_flight(cause)? {
                break;
            }
        }
        self.batch_came(child);
        let entries: u64 = self.buffers.pending.iter().sum();
        self.in_flight.put_back = PutBack {
            entries: entries.saturating_sub(before.0.iter().sum()) as u32,
            bytes: self.buffers.pending_bytes.saturating_sub(before.1) as u32,
        };
        Ok(())
    }

    /// Goes to the node at `level` where the next entry belongs.
    pub(super) fn go_down(&mut self, level: u8, cause: Cause) -> Result<NodeId> {
        let key = core::mem::take(&mut self.in_flight.key);
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
        self.in_flight.key = key;
        outcome
    }

    /// Hands what goes down to the buffers at `level`, but for the entry of the key `without`.
    pub(super) fn distribute_to_buffers(
        &mut self,
        level: u8,
        without: Option<&[u8]>,
        cause: Cause,
    ) -> Result<()> {
        let mut child = None;
        while self.next_in_flight(cause)? {
            if without != Some(self.in_flight.key.as_slice()) {
                child = Some(self.hand_to_buffer(child, level, cause)?);
            }
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
        let number = match child.filter(|_| self.bounds.contains(&self.in_flight.key)) {
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
        self.buffers.append(&mut self.log, number, &self.in_flight.entry(), cause)?;
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
        let (mut changed, mut at_leaf) = (0, false);
        while self.next_in_flight(cause)? {
            loop {
                if !at_leaf || !self.bounds.contains(&self.in_flight.key) {
                    if at_leaf {
                        self.rebalance_leaf(cause)?;
                    }
                    let is_lean = self.is_lean_behind();
                    let is_full = changed > 0 && !(self.may_step() && self.has_room_for_leaf());
                    if is_lean || is_full {
                        self.put_back(is_lean, cause)?;
                        return Ok(changed);
                    }
                    self.go_down(0, cause)?;
                    (at_leaf, changed) = (true, changed + 1);
                }
                if self.apply_to_leaf(cause)? {
                    break;
                }
                // It was split: the way is to be walked again, if anything is left to go it.
                (at_leaf, changed) = (false, changed - 1);
                if self.in_flight.put_back.entries > 0 {
                    return Ok(changed);
                }
            }
        }
        if at_leaf {
            self.rebalance_leaf(cause)?;
        }
        Ok(changed)
    }

    /// Makes the next entry's change in the leaf of the way; false if the leaf was full, and room
    /// was made.
    fn apply_to_leaf(&mut self, cause: Cause) -> Result<bool> {
        let leaf = self.path.at(0).id;
        let codec = self.nodes.codecs.leaf;
        let node = self.nodes.node(&mut self.log, leaf, 0, cause)?;
        let (found, value) = (codec.search(node, &self.in_flight.key), self.in_flight.stored());
        let known = found.ok().map(|place| codec.value(node, place));
        let before = known.and_then(|known| known.as_long());
        let edit = match (found, self.in_flight.is_delete) {
            (Err(_), true) => return Ok(true),
            (Ok(place), true) => Edit::Remove { place },
            (Ok(place), false) => {
                let is_inline = before.is_none() && !self.in_flight.is_long;
                if is_inline && known.is_some_and(|known| known.bytes() == value.bytes()) {
                    return Ok(true);
                }
                Edit::Replace { place, value }
            }
            (Err(place), false) => Edit::Insert { place, key: &self.in_flight.key, value },
        };
        if self.nodes.edit(&mut self.log, (leaf, 0), edit)? {
            match edit {
                Edit::Insert { .. } => self.entries = self.entries.saturating_add(1),
                Edit::Replace { .. } => {}
                Edit::Remove { .. } => self.note_removed(leaf)?,
            }
            self.drop_value(before, cause)?;
            return Ok(true);
        }
        let (Ok(place) | Err(place)) = found;
        let halves = self.split_place(leaf, place, cause)?;
        self.lend_for_put()?;
        self.split(0, halves, cause)?;
        Ok(false)
    }

    fn note_removed(&mut self, leaf: NodeId) -> Result<()> {
        self.room.compaction.note_delete();
        let what = "the root counts fewer entries than there are";
        let entries = self.entries.checked_sub(1);
        self.entries = entries.ok_or(damaged(self.nodes.page_of(leaf), what))?;
        Ok(())
    }

    /// Where a full leaf is split that takes an entry at `place`. If many more entries follow, what
    /// they have passed is not divided again, so that leaves get full.
    fn split_place(&mut self, leaf: NodeId, place: usize, cause: Cause) -> Result<Halves> {
        let codec = self.nodes.codecs.leaf;
        let node = self.nodes.node(&mut self.log, leaf, 0, cause)?;
        let count = node::count(node);
        if count < 2 {
            return Err(damaged(self.nodes.page_of(leaf), "it is full with one entry"));
        }
        let left = |at| Halves { at, next_is_right: at == count };
        let middle = split_middle(&codec, node);
        let ahead = self.in_flight.place + count * usize::from(100 - 2 * QUARTER) / 100;
        let follow = ahead.checked_sub(1).and_then(|ahead| self.sorter.get(ahead));
        let Some(follow) = follow.filter(|entry| self.bounds.contains(entry.key)) else {
            return Ok(left(middle));
        };
        // What follows fills the left one; it has a quarter from the start.
        let least = match self.buffers.form.fixed_bytes() {
            Some(_) => count.div_ceil(4),
            None => middle,
        };
        let next = (place < count).then(|| codec.key(node, place));
        if next.is_none_or(|next| next.compare(follow.key).is_le()) {
            return Ok(left(place.max(middle)));
        }
        let at = last_filled(&codec, node, place.clamp(least, count - 1)).max(least);
        // Where too little of it would be left on the right, what follows fills that one.
        Ok(if at < place { Halves { at: place, next_is_right: true } } else { left(at) })
    }
}
