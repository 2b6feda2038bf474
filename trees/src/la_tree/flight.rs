//! What goes down when a buffer is emptied, entry by entry (section 2.3).
//!
//! What fits memory is read once and sorted. What does not is read again for each part of its keys;
//! on a disk its chain is let go when all went down, so its record is kept till then.
//!
//! What goes down comes to a lower level each time: its key lies in the bounds of the node whose
//! buffer it leaves, and the buffer that it comes to is none of those above. A damaged node may
//! name any buffer as its child's; without these two, entries would go round for ever.
//!
//! Invariant: the entry in flight, [`Flight::key`] and what belongs to it, is a copy. It stays
//! while the buffers and the nodes that it goes to change.

use alloc::vec::Vec;
use device::{Cause, Page};
use store::node::Stored;

use super::LaTree;
use super::descent::Bounds;
use super::emptying;
use super::layout::NodeId;
use super::nodes::damaged;
use super::room::Part;
use super::stream::Pending;
use super::table::BufferRecord;
use index::Result;

/// That links lead round in a chain, or into another.
pub(super) const LONGER: &str = "a chain is longer than its buffer's record says";

/// What is going down, and the entry of it that is next.
#[derive(Debug)]
pub(super) struct Flight {
    pub(super) key: Vec<u8>,
    pub(super) value: Vec<u8>,
    pub(super) is_delete: bool,
    /// True if the value tells where the entry's long value stands.
    pub(super) is_long: bool,
    /// True if the entry is all there is: it comes from no buffer.
    is_single: bool,
    /// Sorted entries that went down.
    pub(super) place: usize,
    /// The chain that is read again for the keys above the last, as it does not fit memory.
    again: Option<BufferRecord>,
    /// The chain that is let go when all went down.
    pub(super) owed: Option<BufferRecord>,
    /// Entries beyond this are not the buffer's own.
    filter: Bounds,
    is_filtered: bool,
    /// What of the buffer that is being emptied went back, as there was no room for more steps.
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

impl Flight {
    pub(super) fn new(key_bytes: usize, value_bytes: usize) -> Self {
        Flight {
            key: Vec::with_capacity(key_bytes),
            value: Vec::with_capacity(value_bytes),
            is_delete: false,
            is_long: false,
            is_single: false,
            place: 0,
            again: None,
            owed: None,
            filter: Bounds::with_capacity(key_bytes),
            is_filtered: false,
            put_back: PutBack::default(),
            part: None,
        }
    }

    pub(super) fn take(&mut self, entry: &Pending<'_>) {
        self.key.clear();
        self.key.extend_from_slice(entry.key);
        self.value.clear();
        self.value.extend_from_slice(entry.value.unwrap_or_default());
        self.is_delete = entry.value.is_none();
        self.is_long = false;
    }

    /// The entry, as it stands in a buffer.
    pub(super) fn entry(&self) -> Pending<'_> {
        let value = (!self.is_delete).then_some(self.value.as_slice());
        Pending { key: &self.key, value }
    }

    /// The value, as it stands in a leaf.
    pub(super) fn stored(&self) -> Stored<'_> {
        match self.value.first_chunk() {
            Some(long) if self.is_long => Stored::long(long),
            _ => Stored::inline(&self.value),
        }
    }
}

impl LaTree<'_> {
    /// Makes the entries of buffer `number`, which the way leads to, those that go down, and the
    /// buffer empty.
    pub(super) fn take_off(&mut self, number: u32, cause: Cause) -> Result<()> {
        let record = self.buffers.record(number);
        self.sorter.clear();
        self.flight.is_single = false;
        self.flight.place = 0;
        self.flight.again = None;
        self.flight.is_filtered = record.is_shared();
        self.flight.filter.copy_from(&self.bounds);
        let sorter = &mut self.sorter;
        if record.bytes <= self.sorter_bytes {
            let fits = self.buffers.load_held(number, sorter)?
                && self.buffers.take_chain(&mut self.log, &record, sorter, cause)?;
            if !fits {
                return Err(damaged(self.nodes.page_of(NodeId::of_buffer(number)), emptying::FULL));
            }
            sorter.sort();
        } else {
            self.counters.emptied_in_parts += 1;
            self.buffers.evict(&mut self.log, number, cause)?;
            let record = self.buffers.record(number);
            self.buffers.select_chain(&mut self.log, &record, None, sorter, cause)?;
            (self.flight.again, self.flight.owed) = (Some(record), Some(record));
        }
        self.buffers.begin_anew(&self.log, number)
    }

    /// Reads what goes down again, for the keys above the last one; false if there are none.
    fn read_again(&mut self, cause: Cause) -> Result<bool> {
        let Some(record) = self.flight.again.filter(|_| self.sorter.is_cut()) else {
            return Ok(false);
        };
        let (after, sorter) = (Some(self.flight.key.as_slice()), &mut self.sorter);
        self.buffers.select_chain(&mut self.log, &record, after, sorter, cause)?;
        self.flight.place = 0;
        Ok(true)
    }

    /// Makes `key` with `value`, or its delete, all that goes down.
    pub(super) fn take_single(&mut self, key: &[u8], value: Option<&[u8]>) {
        self.sorter.clear();
        self.flight.take(&Pending { key, value });
        self.flight.is_single = true;
        self.flight.place = 0;
        self.flight.again = None;
        self.flight.is_filtered = false;
        self.top.restructured = true;
        self.top.level = self.leaf_subtree_level();
    }

    /// Goes on to the next entry that goes down; false after the last.
    pub(super) fn next_in_flight(&mut self, cause: Cause) -> Result<bool> {
        if self.flight.is_single {
            self.flight.is_single = false;
            return Ok(true);
        }
        loop {
            let Some(entry) = self.sorter.get(self.flight.place) else {
                if self.read_again(cause)? {
                    continue;
                }
                return Ok(false);
            };
            self.flight.take(&entry);
            self.flight.place += 1;
            if self.flight.filter.contains(&self.flight.key) {
                return Ok(true);
            }
            if !self.flight.is_filtered {
                return Err(damaged(Page(0), "a buffer has entries of another node"));
            }
        }
    }
}
