//! Updates in memory, in the order of their keys, in a fixed number of bytes.
//!
//! Leaves of one size hold them packed, as pages of a B+-tree do; above them is one list of leaves
//! in the order of their keys. There are two heads over the same leaves: one takes updates, the
//! other is frozen and becomes a run, while it is still read; then its leaves are free again.
//!
//! Invariant: all memory is taken when it is made; an update that finds no leaf changes nothing.

use alloc::boxed::Box;
use alloc::vec;
use alloc::vec::Vec;

use super::entry::{Entry, Kind};
use super::merged::{Source, Way};
use super::space::Space;
use crate::node::{self, Codec, Stored};
use crate::{EntryShape, Error, Result, Width};

/// The largest leaf, in bytes; a memory of few bytes has smaller ones.
const LEAF_BYTES_MOST: u32 = 2048;

/// The fewest leaves that a memory is cut into.
const LEAVES_LEAST: u64 = 8;

/// Which of the two heads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Which {
    /// The one that takes updates.
    Active,
    /// The one that becomes a run.
    Frozen,
}

/// Leaves in their order.
#[derive(Debug)]
struct Head {
    leaves: Vec<u32>,
    entries: u64,
    bytes: u64,
}

/// Updates that wait in memory.
pub struct Memtable {
    codec: Codec,
    /// Bytes of a value, if all have as many.
    value: Option<usize>,
    leaf_bytes: usize,
    slab: Box<[u8]>,
    free: Vec<u32>,
    active: Head,
    frozen: Head,
    scratch: Box<[u8]>,
    /// A value, and its kind behind it.
    stored: Vec<u8>,
}

impl Memtable {
    /// An empty one in `memory_bytes` bytes, for entries of `shape` of up to `entry_bytes` bytes.
    ///
    /// # Errors
    /// [`Error::LittleMemory`].
    pub fn new(memory_bytes: u64, shape: EntryShape, entry_bytes: usize) -> Result<Self> {
        let least = Self::leaf_bytes(shape, entry_bytes, 0)?;
        let need = Self::least_memory(shape, entry_bytes)?;
        if memory_bytes < need {
            return Err(Error::LittleMemory { have: memory_bytes, need });
        }
        let wanted = (memory_bytes / 64).min(LEAF_BYTES_MOST.into()) as u32;
        let bytes = Self::leaf_bytes(shape, entry_bytes, wanted)?;
        let leaves = Self::leaves_in(memory_bytes, bytes, entry_bytes);
        let (bytes, leaves) = match leaves >= LEAVES_LEAST {
            true => (bytes, leaves),
            false => (least, Self::leaves_in(memory_bytes, least, entry_bytes)),
        };
        let leaves = u32::try_from(leaves).unwrap_or(u32::MAX);
        let codec =
            Self::codec(shape, bytes).ok_or(Error::LittleMemory { have: memory_bytes, need })?;
        let head = || Head { leaves: Vec::with_capacity(leaves as usize), entries: 0, bytes: 0 };
        Ok(Memtable {
            codec,
            value: if let Width::Fixed(bytes) = shape.value { Some(bytes.into()) } else { None },
            leaf_bytes: bytes as usize,
            slab: vec![0; leaves as usize * bytes as usize].into_boxed_slice(),
            free: (0..leaves).rev().collect(),
            active: head(),
            frozen: head(),
            scratch: vec![0; bytes as usize].into_boxed_slice(),
            stored: Vec::with_capacity(entry_bytes + 1),
        })
    }

    fn codec(shape: EntryShape, bytes: u32) -> Option<Codec> {
        let value = match shape.value {
            Width::Fixed(bytes) => Width::Fixed(bytes.checked_add(1)?),
            Width::Variable => Width::Variable,
        };
        // An entry that comes never lengthens others, so it never splits more than its leaf.
        Codec::new(bytes, shape.key, value).map(Codec::without_prefixes)
    }

    /// The size of leaves that hold four entries, at least `wanted` bytes.
    fn leaf_bytes(shape: EntryShape, entry_bytes: usize, wanted: u32) -> Result<u32> {
        let mut bytes = wanted.next_power_of_two().max(node::NODE_BYTES_LEAST);
        loop {
            if bytes > node::NODE_BYTES_MOST {
                let what = "four of the longest entries have to fit";
                return Err(Error::NodeSize { bytes, what });
            }
            let is_packed =
                matches!(shape, EntryShape { key: Width::Fixed(_), value: Width::Fixed(_) });
            let fits = |codec: Codec| is_packed || codec.entry_bytes_most() > entry_bytes;
            if Self::codec(shape, bytes).is_some_and(fits) {
                return Ok(bytes);
            }
            bytes *= 2;
        }
    }

    /// Leaves in so many bytes, each with its place in three lists.
    fn leaves_in(memory_bytes: u64, leaf_bytes: u32, entry_bytes: usize) -> u64 {
        let beside = u64::from(leaf_bytes) + entry_bytes as u64 + 1;
        memory_bytes.saturating_sub(beside) / (u64::from(leaf_bytes) + 12)
    }

    /// The least memory for such entries, in bytes.
    ///
    /// # Errors
    /// No leaf takes four of them.
    pub fn least_memory(shape: EntryShape, entry_bytes: usize) -> Result<u64> {
        let least = u64::from(Self::leaf_bytes(shape, entry_bytes, 0)?);
        Ok(LEAVES_LEAST * (least + 12) + least + entry_bytes as u64 + 1)
    }

    /// Nothing is in it any more.
    pub fn clear(&mut self) {
        self.drain(Which::Active, None);
        self.drain(Which::Frozen, None);
    }

    /// Bytes of memory that it takes.
    #[must_use]
    pub fn memory(&self) -> u64 {
        let lists = [&self.free, &self.active.leaves, &self.frozen.leaves];
        let lists: usize = lists.iter().map(|list| list.capacity() * 4).sum();
        (self.slab.len() + self.scratch.len() + self.stored.capacity() + lists) as u64
    }

    const fn head(&self, which: Which) -> &Head {
        match which {
            Which::Active => &self.active,
            Which::Frozen => &self.frozen,
        }
    }

    /// Entries of a head, and bytes of their keys and values.
    #[must_use]
    pub const fn held(&self, which: Which) -> (u64, u64) {
        let head = self.head(which);
        (head.entries, head.bytes)
    }

    /// The part of the memory that is in use, in hundredths.
    #[must_use]
    pub fn percent_used(&self) -> u32 {
        let used = self.active.leaves.len() + self.frozen.leaves.len();
        let all = used + self.free.len();
        (used * 100).checked_div(all).unwrap_or(100) as u32
    }

    /// True if so many updates, of so many bytes in all, find room whatever their keys are.
    #[must_use]
    pub fn takes(&self, updates: u64, bytes: u64) -> bool {
        // Each leaf may be full, and fall apart; what fell apart takes half a leaf before it does
        // again. One that varies may fall into three.
        let again = bytes / (self.leaf_bytes as u64 / 4).max(1);
        let splits = updates.min(self.active.leaves.len() as u64 + 1 + again);
        let each = if self.value.is_some() { 1 } else { 2 };
        splits * each <= self.free.len() as u64
    }

    /// True if updates of so many bytes are likely to find room: leaves are half full or more.
    #[must_use]
    pub const fn has_room(&self, bytes: u64) -> bool {
        2 * bytes <= self.free.len() as u64 * self.leaf_bytes as u64
    }

    fn leaf(&self, leaf: u32) -> &[u8] {
        let at = leaf as usize * self.leaf_bytes;
        self.slab.get(at..at + self.leaf_bytes).unwrap_or_default()
    }

    /// The place in a head of the leaf in which `key` stands or belongs.
    fn find(&self, which: Which, key: &[u8]) -> usize {
        let is_before = |leaf: &u32| self.codec.key(self.leaf(*leaf), 0).compare(key).is_le();
        self.head(which).leaves.partition_point(is_before).saturating_sub(1)
    }

    fn entry_of<'m>(&'m self, leaf: &'m [u8], place: usize) -> (Kind, &'m [u8]) {
        let stored = self.codec.value(leaf, place).bytes();
        match stored.split_last() {
            Some((kind, value)) => {
                let kind = Kind::from_number(*kind);
                (kind, if kind == Kind::Delete { &[] } else { value })
            }
            None => (Kind::Put, &[]),
        }
    }

    /// What a head says of `key`.
    #[must_use]
    pub fn get(&self, which: Which, key: &[u8]) -> Option<(Kind, &[u8])> {
        let leaf = *self.head(which).leaves.get(self.find(which, key))?;
        let place = self.codec.search(self.leaf(leaf), key).ok()?;
        Some(self.entry_of(self.leaf(leaf), place))
    }

    /// Puts a key with its value, or its delete, into the active head; false, with nothing changed,
    /// if there is no room.
    #[must_use]
    pub fn put(&mut self, key: &[u8], kind: Kind, value: &[u8]) -> bool {
        self.stored.clear();
        self.stored.extend_from_slice(value);
        if let Some(bytes) = self.value {
            self.stored.resize(bytes, 0);
        }
        self.stored.push(kind.number());
        let stored = core::mem::take(&mut self.stored);
        let is_in = self.put_stored(key, &stored, value.len());
        self.stored = stored;
        is_in
    }

    fn put_stored(&mut self, key: &[u8], stored: &[u8], value_bytes: usize) -> bool {
        if self.active.leaves.is_empty() {
            let Some(leaf) = self.free.pop() else {
                return false;
            };
            let at = leaf as usize * self.leaf_bytes;
            self.codec.initialise(&mut self.slab[at..at + self.leaf_bytes], 0);
            self.active.leaves.push(leaf);
        }
        loop {
            let at = self.find(Which::Active, key);
            let Some(leaf) = self.active.leaves.get(at).copied() else {
                return false;
            };
            let found = self.codec.search(self.leaf(leaf), key);
            let before = found.ok().map(|place| self.entry_of(self.leaf(leaf), place).1.len());
            let start = leaf as usize * self.leaf_bytes;
            let bytes = &mut self.slab[start..start + self.leaf_bytes];
            let value = Stored::inline(stored);
            let is_in = match found {
                Ok(place) => self.codec.replace(bytes, place, value, &mut self.scratch),
                Err(place) => self.codec.insert(bytes, place, key, value, &mut self.scratch),
            };
            if is_in {
                let head = &mut self.active;
                head.entries += u64::from(before.is_none());
                head.bytes -= before.map_or(0, |before| (key.len() + before) as u64);
                head.bytes += (key.len() + value_bytes) as u64;
                return true;
            }
            if !self.split(at, found.err()) {
                return false;
            }
        }
    }

    /// Splits the leaf at `at` of the active head, at whose place an entry has no room; the last
    /// leaf only loses what is behind that, since keys that ascend leave full leaves then.
    fn split(&mut self, at: usize, place: Option<usize>) -> bool {
        let Some(fresh) = self.free.pop() else {
            return false;
        };
        let leaf = self.active.leaves[at];
        let count = node::count(self.leaf(leaf));
        let is_last = at + 1 == self.active.leaves.len() && place == Some(count);
        let middle =
            if is_last && count > 1 { count - 1 } else { self.codec.middle(self.leaf(leaf)) };
        let [low, high] =
            [leaf.min(fresh), leaf.max(fresh)].map(|it| it as usize * self.leaf_bytes);
        let (front, back) = self.slab.split_at_mut(high);
        let (low, high) = (&mut front[low..low + self.leaf_bytes], &mut back[..self.leaf_bytes]);
        let (node, new) = if leaf < fresh { (low, high) } else { (high, low) };
        self.codec.initialise(new, 0);
        self.codec.split_off(node, middle, new, &mut self.scratch);
        self.active.leaves.insert(at + 1, fresh);
        true
    }

    /// Freezes what is active, so that it can become a run; false if another still is.
    #[must_use]
    pub const fn freeze(&mut self) -> bool {
        let is_free = self.frozen.leaves.is_empty();
        if is_free {
            core::mem::swap(&mut self.active, &mut self.frozen);
        }
        is_free
    }

    /// Takes out of a head what stands in a run from now on: all entries up to `last`, or all of
    /// them.
    pub fn drain(&mut self, which: Which, last: Option<&[u8]>) {
        while let Some(leaf) = self.head(which).leaves.first().copied() {
            let bytes = self.leaf(leaf);
            let count = node::count(bytes);
            let gone = match last.map(|last| self.codec.search(bytes, last)) {
                None => count,
                Some(Ok(place)) => place + 1,
                Some(Err(place)) => place,
            };
            self.remove(which, leaf, 0..gone);
            if gone < count {
                return;
            }
            let head = if which == Which::Active { &mut self.active } else { &mut self.frozen };
            head.leaves.remove(0);
            self.free.push(leaf);
        }
    }

    /// Takes out of the active head what stands in a run from now on: all entries from `from` on
    /// that are below `to`.
    pub fn drain_range(&mut self, from: &[u8], to: Option<&[u8]>) {
        let first = self.find(Which::Active, from);
        let mut at = first;
        while let Some(leaf) = self.active.leaves.get(at).copied() {
            let bytes = self.leaf(leaf);
            let count = node::count(bytes);
            let place = |key: &[u8]| self.codec.search(bytes, key).unwrap_or_else(|place| place);
            let start = if at == first { place(from) } else { 0 };
            let end = to.map_or(count, place);
            let is_last = end < count;
            if start < end {
                self.remove(Which::Active, leaf, start..end);
            }
            if start == 0 && end == count {
                self.active.leaves.remove(at);
                self.free.push(leaf);
            } else if is_last {
                break;
            } else {
                at += 1;
            }
        }
        // What is left of both ends may share a leaf.
        for at in [at, first] {
            self.join(at);
            if let Some(before) = at.checked_sub(1) {
                self.join(before);
            }
        }
    }

    /// Joins the leaf at `at` of the active head and the next one, if both fit one.
    fn join(&mut self, at: usize) {
        let (Some(left), Some(right)) =
            (self.active.leaves.get(at).copied(), self.active.leaves.get(at + 1).copied())
        else {
            return;
        };
        let joint = self.codec.joint_bytes(self.leaf(left), self.leaf(right));
        if joint > self.leaf_bytes * 7 / 8 {
            return;
        }
        let [low, high] =
            [left.min(right), left.max(right)].map(|it| it as usize * self.leaf_bytes);
        let (front, back) = self.slab.split_at_mut(high);
        let (low, high) = (&mut front[low..low + self.leaf_bytes], &mut back[..self.leaf_bytes]);
        let (left, from) = if left < right { (low, high) } else { (high, low) };
        self.codec.join(left, from, &mut self.scratch);
        self.active.leaves.remove(at + 1);
        self.free.push(right);
    }

    /// Removes the entries at `gone` of a leaf.
    fn remove(&mut self, which: Which, leaf: u32, gone: core::ops::Range<usize>) {
        let mut bytes = 0;
        for place in gone.clone() {
            let key = self.codec.key(self.leaf(leaf), place).len();
            bytes += (key + self.entry_of(self.leaf(leaf), place).1.len()) as u64;
        }
        let start = leaf as usize * self.leaf_bytes;
        let node = &mut self.slab[start..start + self.leaf_bytes];
        if gone.len() < node::count(node) {
            for place in gone.clone().rev() {
                self.codec.remove(node, place);
            }
        }
        let head = if which == Which::Active { &mut self.active } else { &mut self.frozen };
        head.entries -= gone.len() as u64;
        head.bytes -= bytes;
    }

    /// A cursor before the first entry of a head; `keys` are buffers for a key each way.
    #[must_use]
    pub const fn cursor(&self, which: Which, keys: [Vec<u8>; 2]) -> MemtableCursor<'_> {
        MemtableCursor { table: self, which, leaf: 0, place: 0, keys }
    }
}

/// A cursor over one head of a memtable.
pub struct MemtableCursor<'m> {
    table: &'m Memtable,
    which: Which,
    /// The place of the leaf that it stands in.
    leaf: usize,
    place: usize,
    /// The keys of the next entry up, and down.
    keys: [Vec<u8>; 2],
}

impl MemtableCursor<'_> {
    /// Goes before the first entry whose key is not below `key`; or, with `is_behind`, behind the
    /// last whose key is not above.
    pub fn seek(&mut self, key: &[u8], is_behind: bool) {
        self.leaf = self.table.find(self.which, key);
        self.place = match self.node() {
            Some(node) => match self.table.codec.search(node, key) {
                Ok(place) => place + usize::from(is_behind),
                Err(place) => place,
            },
            None => 0,
        };
    }

    /// Goes behind the last entry.
    pub fn to_end(&mut self) {
        self.leaf = self.table.head(self.which).leaves.len().saturating_sub(1);
        self.place = self.node().map_or(0, node::count);
    }

    /// Where it stands, as long as nothing is put into its head or drained from it.
    #[must_use]
    pub const fn position(&self) -> (usize, usize) {
        (self.leaf, self.place)
    }

    /// Goes where another cursor stood.
    pub const fn resume(&mut self, (leaf, place): (usize, usize)) {
        (self.leaf, self.place) = (leaf, place);
    }

    /// The buffers for keys, to be used by another cursor.
    #[must_use]
    pub fn into_keys(self) -> [Vec<u8>; 2] {
        self.keys
    }

    /// Sees to it that the next entry on this way is at hand; false if there is none.
    pub fn advance(&mut self, way: Way) -> bool {
        if self.next(way).is_none() {
            let leaf = match way {
                Way::Up => Some(self.leaf + 1),
                Way::Down => self.leaf.checked_sub(1),
            };
            let leaves = self.table.head(self.which).leaves.len();
            let Some(leaf) = leaf.filter(|leaf| *leaf < leaves) else {
                return false;
            };
            self.leaf = leaf;
            self.place = match way {
                Way::Up => 0,
                Way::Down => self.node().map_or(0, node::count),
            };
        }
        let Some(place) = self.next(way) else {
            return false;
        };
        let mut key = core::mem::take(&mut self.keys[way as usize]);
        if let Some(node) = self.node() {
            self.table.codec.key(node, place).copy_to(&mut key);
        }
        self.keys[way as usize] = key;
        true
    }

    fn node(&self) -> Option<&[u8]> {
        let leaf = self.table.head(self.which).leaves.get(self.leaf)?;
        Some(self.table.leaf(*leaf))
    }

    /// The place of the next entry on this way in its leaf.
    fn next(&self, way: Way) -> Option<usize> {
        match way {
            Way::Up => Some(self.place).filter(|place| *place < self.node().map_or(0, node::count)),
            Way::Down => self.place.checked_sub(1),
        }
    }
}

impl Source for MemtableCursor<'_> {
    fn load(&mut self, _: &mut dyn Space, way: Way) -> Result<bool> {
        Ok(self.advance(way))
    }

    fn head(&self, way: Way) -> Option<Entry<'_>> {
        let place = self.next(way)?;
        let (kind, value) = self.table.entry_of(self.node()?, place);
        Some(Entry { key: &self.keys[way as usize], kind, value })
    }

    fn step(&mut self, way: Way) {
        match way {
            Way::Up => self.place += 1,
            Way::Down => self.place = self.place.saturating_sub(1),
        }
        // What was ahead is behind now.
        self.keys.swap(0, 1);
    }
}
