//! The node cache of 4.3.3: a page and a level lead to a node. When there is no room for one more,
//! the leaf that was used longest ago goes. Inner nodes go for each other only: a leaf takes the
//! room of many, each of which leads to many leaves.
//!
//! ```text
//!  arena:    | room | room | free room | room | ...
//!  a room:   | its bytes u32, bytes of the room before it u32, slot u16, 0 | node | rest |
//!  slots:    page, level, where the room begins, and the neighbours in the order of use
//!  buckets:  by page, the first slot of a chain
//! ```
//!
//! A hit has to cost less than reading the page again and checking it, so nothing here grows with
//! the number of nodes: pages are found by a hash, and no node is ever moved. Every change writes
//! the nodes of its path again, a little longer: rooms are rounded up, so most of them fit where
//! they stood, and what was left last is kept as it is for them. When that does not help, what is
//! kept is given back: joined with the free rooms beside it. The largest free rooms are known; a
//! smaller one is found again when a room beside it is given back.
//!
//! Invariant: all memory is taken when it is made.

use alloc::vec;
use alloc::vec::Vec;

use device::Page;

use super::page::BRIEF_BYTES;
use store::lru::{Lru, Neighbours, SlotNumber};

/// No slot.
const NONE: u16 = <u16 as SlotNumber>::NONE;

/// The owner of a room that is kept for the next nodes.
const KEPT: u16 = u16::MAX - 1;

/// Bytes in front of a node in its room.
const HEAD_BYTES: usize = 12;

/// Rooms begin at multiples of this, in bytes.
pub(super) const GRAIN_BYTES: usize = 32;

/// What is left of a room stays with it unless it is as long as this, in bytes.
const REST_BYTES_LEAST: usize = 4 * GRAIN_BYTES;

/// Free rooms that are known, and as many that are kept.
const HOLES: usize = 6;

/// What the tables take for a node.
pub(super) const TABLES_BYTES: usize = size_of::<Slot>() + size_of::<u16>();

/// Bytes that a node takes on average beside its tables and its own bytes.
pub(super) const ROOM_BYTES: usize = HEAD_BYTES + GRAIN_BYTES / 2;

#[derive(Clone, Copy, Debug)]
struct Slot {
    page: u32,
    start: u32,
    brief: [u8; BRIEF_BYTES],
    bytes: u16,
    uses: Neighbours<u16>,
    /// The next one of its bucket; of a free slot, the next free one.
    next: u16,
    level: u8,
}

impl AsMut<Neighbours<u16>> for Slot {
    fn as_mut(&mut self) -> &mut Neighbours<u16> {
        &mut self.uses
    }
}

/// A room of the arena that no node stands in.
#[derive(Clone, Copy, Debug, Default)]
struct Hole {
    start: u32,
    /// 0 if there is none.
    bytes: u32,
}

impl Hole {
    /// All of the arena can be named by 32 bits.
    fn new(start: usize, bytes: usize) -> Self {
        Hole { start: start as u32, bytes: bytes as u32 }
    }

    fn start(&self) -> usize {
        self.start as usize
    }

    fn bytes(&self) -> usize {
        self.bytes as usize
    }
}

/// A node as it is held: what matters of its page, and its bytes.
pub(super) type Held<'c> = (&'c [u8; BRIEF_BYTES], &'c [u8]);

/// The cache.
#[derive(Debug)]
pub(super) struct NodeCache {
    arena: Vec<u8>,
    /// The largest free rooms, which have no free one beside them.
    holes: [Hole; HOLES],
    kept: [Hole; HOLES],
    slots: Vec<Slot>,
    buckets: Vec<u16>,
    free: u16,
    held: usize,
    /// The order of use of leaves, and of inner nodes.
    leaves: Lru<u16>,
    inner: Lru<u16>,
}

impl NodeCache {
    /// A cache that takes at most `bytes` bytes of memory, with so many places for nodes.
    pub(super) fn new(bytes: usize, places: usize) -> Self {
        let count = places.min(usize::from(KEPT));
        let arena = bytes.saturating_sub(count * TABLES_BYTES).min(u32::MAX as usize);
        let arena = if count > 0 { arena / GRAIN_BYTES * GRAIN_BYTES } else { 0 };
        let slots = (1..=count).map(|next| Slot {
            page: 0,
            start: 0,
            brief: [0; BRIEF_BYTES],
            bytes: 0,
            uses: Neighbours::NONE,
            next: if next < count { next as u16 } else { NONE },
            level: 0,
        });
        let mut cache = NodeCache {
            arena: vec![0; arena],
            holes: [Hole::default(); HOLES],
            kept: [Hole::default(); HOLES],
            slots: slots.collect(),
            buckets: vec![NONE; count],
            free: if count > 0 { 0 } else { NONE },
            held: 0,
            leaves: Lru::EMPTY,
            inner: Lru::EMPTY,
        };
        if arena > 0 {
            cache.write_free((0, arena), 0);
        }
        cache
    }

    /// Nodes in it.
    pub(super) fn len(&self) -> usize {
        self.held
    }

    /// Bytes of memory that it takes.
    pub(super) fn memory_bytes(&self) -> usize {
        self.arena.len() + self.slots.len() * TABLES_BYTES
    }

    /// Where the node of `level` in `page` stands, which becomes the newest.
    pub(super) fn locate(&mut self, page: Page, level: u8) -> Option<u16> {
        let number = self.find(page, level)?;
        let uses = if level == 0 { &mut self.leaves } else { &mut self.inner };
        uses.touch(&mut self.slots, number);
        Some(number)
    }

    /// The node that stands there.
    pub(super) fn used(&self, number: u16) -> Held<'_> {
        let slot = &self.slots[usize::from(number)];
        let start = slot.start as usize + HEAD_BYTES;
        (&slot.brief, &self.arena[start..start + usize::from(slot.bytes)])
    }

    /// Puts a node in, as the newest; a leaf only where it finds room beside the inner nodes.
    pub(super) fn insert(
        &mut self,
        (page, level): (Page, u8),
        brief: [u8; BRIEF_BYTES],
        node: &[u8],
    ) {
        self.remove(page, level);
        let room = (HEAD_BYTES + node.len()).next_multiple_of(GRAIN_BYTES);
        let Ok(bytes) = u16::try_from(node.len()) else {
            return;
        };
        if room > self.arena.len() {
            return;
        }
        let start = loop {
            let has_slot = self.free != NONE;
            if let Some(start) = has_slot.then(|| self.find_room(room)).flatten() {
                break start;
            }
            let is_kept_out = level == 0 && self.leaves.oldest().is_none();
            if is_kept_out || !self.remove_oldest() {
                return;
            }
        };
        let number = self.free;
        let bucket = self.bucket(page);
        let slot = &mut self.slots[usize::from(number)];
        self.free = slot.next;
        (slot.page, slot.level, slot.brief) = (page.0, level, brief);
        (slot.start, slot.bytes) = (start as u32, bytes);
        slot.next = core::mem::replace(&mut self.buckets[bucket], number);
        self.held += 1;
        let uses = if level == 0 { &mut self.leaves } else { &mut self.inner };
        uses.link_newest(&mut self.slots, number);
        self.set_owner(start, number);
        let at = start + HEAD_BYTES;
        device::copy(&mut self.arena[at..at + node.len()], node);
    }

    /// Takes the node of `level` in `page` away, if it is there.
    pub(super) fn remove(&mut self, page: Page, level: u8) {
        if let Some(number) = self.find(page, level) {
            self.drop_slot(number);
        }
    }

    /// Takes all nodes in `page` away.
    pub(super) fn remove_page(&mut self, page: Page) {
        loop {
            let is_of_page = |number: &u16| self.slots[usize::from(*number)].page == page.0;
            let Some(number) = self.chain(page).find(is_of_page) else {
                return;
            };
            self.drop_slot(number);
        }
    }

    /// Takes the leaf away that was used longest ago, or where there is none the inner node; false
    /// if there is no node.
    pub(super) fn remove_oldest(&mut self) -> bool {
        let oldest = self.leaves.oldest().or(self.inner.oldest());
        if let Some(oldest) = oldest {
            self.drop_slot(oldest);
        }
        oldest.is_some()
    }

    /// Pages that follow each other come to buckets that are far apart.
    fn bucket(&self, page: Page) -> usize {
        let hash = page.0.wrapping_mul(0x9E37_79B1);
        ((u64::from(hash) * self.buckets.len() as u64) >> 32) as usize
    }

    /// The slots of the bucket of `page`.
    fn chain(&self, page: Page) -> impl Iterator<Item = u16> + '_ {
        let first = self.buckets.get(self.bucket(page)).copied().filter(|it| *it != NONE);
        let next = |number: &u16| Some(self.slots[usize::from(*number)].next);
        core::iter::successors(first, move |number| next(number).filter(|it| *it != NONE))
    }

    /// Where the node of `level` in `page` stands, which is no use of it.
    pub(super) fn find(&self, page: Page, level: u8) -> Option<u16> {
        self.chain(page).find(|number| {
            let slot = &self.slots[usize::from(*number)];
            slot.page == page.0 && slot.level == level
        })
    }

    fn drop_slot(&mut self, number: u16) {
        let Slot { page, start, next, level, .. } = self.slots[usize::from(number)];
        let bucket = self.bucket(Page(page));
        let before = self.chain(Page(page)).find(|it| self.slots[usize::from(*it)].next == number);
        match before {
            Some(before) => self.slots[usize::from(before)].next = next,
            None => self.buckets[bucket] = next,
        }
        let uses = if level == 0 { &mut self.leaves } else { &mut self.inner };
        uses.unlink(&mut self.slots, number);
        self.slots[usize::from(number)].next = self.free;
        self.free = number;
        self.held -= 1;
        self.keep_room(start as usize);
    }

    /// A room of so many bytes, which are a multiple of [`GRAIN_BYTES`], or a little more.
    fn find_room(&mut self, bytes: usize) -> Option<usize> {
        let fits = |hole: &&mut Hole| (bytes..bytes + REST_BYTES_LEAST).contains(&hole.bytes());
        if let Some(kept) = self.kept.iter_mut().filter(fits).min_by_key(|hole| hole.bytes) {
            return Some(core::mem::take(kept).start());
        }
        self.take_room(bytes).or_else(|| {
            self.give_kept();
            self.take_room(bytes)
        })
    }

    /// Keeps a room for the next nodes; where all places are taken, they are given back.
    fn keep_room(&mut self, start: usize) {
        if self.kept.iter().all(|kept| kept.bytes > 0) {
            self.give_kept();
        }
        self.set_owner(start, KEPT);
        let bytes = self.word(start);
        if let Some(kept) = self.kept.iter_mut().find(|kept| kept.bytes == 0) {
            *kept = Hole::new(start, bytes);
        }
    }

    fn give_kept(&mut self) {
        for number in 0..HOLES {
            let kept = core::mem::take(&mut self.kept[number]);
            if kept.bytes > 0 {
                self.give_room(kept.start());
            }
        }
    }

    /// A room of so many bytes of the smallest that is known to be free.
    fn take_room(&mut self, bytes: usize) -> Option<usize> {
        let fitting = self.holes.iter_mut().filter(|hole| hole.bytes() >= bytes);
        let hole = core::mem::take(fitting.min_by_key(|hole| hole.bytes)?);
        let (start, rest) = (hole.start(), hole.bytes() - bytes);
        if rest >= REST_BYTES_LEAST {
            let before = self.word(start + 4);
            self.write_head((start, bytes), before, NONE);
            self.write_free((start + bytes, rest), bytes);
        }
        Some(start)
    }

    /// Gives a room back: with the free ones beside it, it is one.
    fn give_room(&mut self, mut start: usize) {
        let mut bytes = self.word(start);
        let next = start + bytes;
        if next < self.arena.len() && self.owner(next) == NONE {
            bytes += self.word(next);
            self.forget_hole(next);
        }
        let mut before = self.word(start + 4);
        if before > 0 && self.owner(start - before) == NONE {
            (start, bytes) = (start - before, bytes + before);
            self.forget_hole(start);
            before = self.word(start + 4);
        }
        self.write_free((start, bytes), before);
    }

    fn forget_hole(&mut self, start: usize) {
        let known = self.holes.iter_mut().filter(|hole| hole.bytes > 0 && hole.start() == start);
        known.for_each(|hole| *hole = Hole::default());
    }

    /// Knows a free room, in place of the smallest that is known.
    fn learn_hole(&mut self, hole: Hole) {
        if let Some(least) = self.holes.iter_mut().min_by_key(|known| known.bytes)
            && least.bytes < hole.bytes
        {
            *least = hole;
        }
    }

    /// Makes a free room, behind one of `before` bytes.
    fn write_free(&mut self, (start, bytes): (usize, usize), before: usize) {
        self.write_head((start, bytes), before, NONE);
        let next = start + bytes;
        if next < self.arena.len() {
            self.set_word(next + 4, bytes);
        }
        self.learn_hole(Hole::new(start, bytes));
    }

    fn write_head(&mut self, (start, bytes): (usize, usize), before: usize, owner: u16) {
        self.set_word(start, bytes);
        self.set_word(start + 4, before);
        self.set_owner(start, owner);
    }

    fn word(&self, at: usize) -> usize {
        let bytes = self.arena[at..].first_chunk().copied().unwrap_or_default();
        u32::from_le_bytes(bytes) as usize
    }

    fn set_word(&mut self, at: usize, word: usize) {
        self.arena[at..at + 4].copy_from_slice(&(word as u32).to_le_bytes());
    }

    /// The slot of the node in the room; [`NONE`] if the room is free, [`KEPT`] if it is kept.
    fn owner(&self, start: usize) -> u16 {
        u16::from_le_bytes([self.arena[start + 8], self.arena[start + 9]])
    }

    fn set_owner(&mut self, start: usize, owner: u16) {
        self.arena[start + 8..start + 10].copy_from_slice(&owner.to_le_bytes());
    }
}

#[cfg(test)]
mod tests;
