//! What goes down when a buffer is emptied, entry by entry (section 2.3).
//!
//! X, what fits memory, is sorted; Y, the batch that came last, is merged with it while it is read.
//! On a disk the chain that was read is let go when all went down, so its record is kept till then.
//!
//! What goes down comes to a lower level each time: its key lies in the bounds of the node whose
//! buffer it leaves, and the buffer that it comes to is none of those above. A damaged node may
//! name any buffer as its child's; without these two, entries would go round for ever.
//!
//! Invariant: the entry in flight, [`Flight::key`] and what belongs to it, is a copy. It stays
//! while the buffers and the nodes that it goes to change.

use alloc::vec::Vec;
use core::ops::Range;

use device::{Cause, Page};
use store::node::Stored;

use super::LaTree;
use super::buffer_pool::BufferId;
use super::descent::Bounds;
use super::emptying::{self, Next, Order};
use super::layout::{Link, NodeId, Owner};
use super::nodes::damaged;
use super::room::Part;
use super::stream::Pending;
use super::table::BufferRecord;
use index::Result;

/// That links lead round in a chain, or into another.
pub(super) const LONGER: &str = "a chain is longer than its buffer's record says";

/// Y, the batch that came last, read from its newest fragment on.
#[derive(Clone, Debug)]
struct Batch {
    owner: Owner,
    /// The next fragment, and the one behind the last.
    next: Option<Link>,
    until: Option<Link>,
    /// Fragments that there may be yet.
    fragments: u32,
    /// The stream in the buffer for reading, and how many of its entries are left.
    stream: Range<usize>,
    left: u32,
}

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
    order: Order,
    /// Entries of X that went down.
    pub(super) place: usize,
    batch: Option<Batch>,
    /// The chain that is read again for the keys above the last, as its X does not fit memory.
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
    /// The order in which entries go down.
    pub(super) const fn order(&self) -> Order {
        self.order
    }

    pub(super) fn new(key_bytes: usize, value_bytes: usize) -> Self {
        Flight {
            key: Vec::with_capacity(key_bytes),
            value: Vec::with_capacity(value_bytes),
            is_delete: false,
            is_long: false,
            is_single: false,
            order: Order::Ascending,
            place: 0,
            batch: None,
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
        (self.flight.batch, self.flight.again) = (None, None);
        self.flight.is_filtered = record.shared;
        self.flight.filter.copy_from(&self.bounds);
        self.flight.order = Order::Ascending;
        if record.bytes <= self.sorter_bytes {
            let sorter = &mut self.sorter;
            let held = self.buffers.pool.held(BufferId(number)).entries;
            let fits = self.buffers.load_held(number, held, sorter)?
                && self.buffers.take_chain(&mut self.log, &record, sorter, cause)?;
            if !fits {
                return Err(damaged(self.nodes.page_of(NodeId::of_buffer(number)), emptying::FULL));
            }
            self.sorter.sort(self.flight.order);
        } else {
            self.flight.owed = Some(self.take_off_large(number, cause)?);
        }
        self.buffers.begin_anew(&self.log, number)
    }

    /// As [`LaTree::take_off`], of a buffer that does not fit memory; returns what it was. What is
    /// in the pool is taken from there, but for what of Y does not fit the buffer for reading.
    fn take_off_large(&mut self, number: u32, cause: Cause) -> Result<BufferRecord> {
        self.buffers.evict_beyond_read(&mut self.log, number, cause)?;
        let record = self.buffers.record(number);
        let (owner, below) = (record.owner, record.below_batch);
        let (of_x, sorter) = (self.buffers.held_of_x(number), &mut self.sorter);
        let fits = self.buffers.load_held(number, of_x, sorter)?
            && self.buffers.load_chain(&mut self.log, owner, below, sorter, cause)?;
        if !fits {
            self.counters.emptied_in_parts += 1;
            self.buffers.evict(&mut self.log, number, cause)?;
            let (record, sorter) = (self.buffers.record(number), &mut self.sorter);
            self.buffers.select_chain(&mut self.log, &record, None, sorter, cause)?;
            self.flight.again = Some(record);
            return Ok(record);
        }
        self.counters.emptied_in_two += 1;
        if !record.batch_ascends {
            self.flight.order = Order::Descending;
        }
        self.flight.order = self.flight.order.reversed();
        let (stream, left) = self.buffers.read_held_of_y(number)?;
        let (next, fragments) = (record.newest, record.fragments);
        self.flight.batch = Some(Batch { owner, next, until: below, fragments, stream, left });
        self.sorter.sort(self.flight.order);
        Ok(record)
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
        (self.flight.batch, self.flight.again) = (None, None);
        self.flight.is_filtered = false;
        self.flight.order = Order::Ascending;
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
            self.fill_batch(cause)?;
            let older = self.sorter.get(self.flight.place);
            let newer = match &self.flight.batch {
                Some(batch) if batch.left > 0 => {
                    let mut reader =
                        self.buffers.form.reader(&self.buffers.read[batch.stream.clone()]);
                    let mut entry = None;
                    for _ in 0..batch.left {
                        entry = reader.next().map_err(|what| damaged(Page(0), what))?;
                    }
                    entry.map(|(entry, _)| entry)
                }
                _ => None,
            };
            let keys = (older.map(|entry| entry.key), newer.map(|entry| entry.key));
            let Some(next) = emptying::next(keys.0, keys.1, self.flight.order) else {
                if self.read_again(cause)? {
                    continue;
                }
                return Ok(false);
            };
            let entry = if next == Next::Older { older } else { newer };
            if let Some(entry) = entry {
                self.flight.take(&entry);
            }
            self.flight.place += usize::from(next != Next::Newer);
            if let Some(batch) = self.flight.batch.as_mut().filter(|_| next != Next::Older) {
                batch.left -= 1;
            }
            if self.flight.filter.contains(&self.flight.key) {
                return Ok(true);
            }
            if !self.flight.is_filtered {
                return Err(damaged(Page(0), "a buffer has entries of another node"));
            }
        }
    }

    /// Reads the next fragment of Y, if the one before is at its end.
    fn fill_batch(&mut self, cause: Cause) -> Result<()> {
        let Some(batch) = self.flight.batch.as_mut() else {
            return Ok(());
        };
        while batch.left == 0 && batch.next != batch.until {
            let Some(link) = batch.next else {
                return Err(damaged(Page(0), "a chain ends above its batch"));
            };
            let fragments = batch.fragments.checked_sub(1);
            batch.fragments = fragments.ok_or(damaged(link.page, LONGER))?;
            let (stream, before) =
                self.buffers.read_fragment(&mut self.log, batch.owner, link, cause)?;
            let mut reader = self.buffers.form.reader(&self.buffers.read[stream.clone()]);
            while reader.next().map_err(|what| damaged(link.page, what))?.is_some() {
                batch.left += 1;
            }
            batch.stream = stream;
            batch.next = before;
        }
        Ok(())
    }
}
