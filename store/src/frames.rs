//! Equal frames of memory, found by a key, given up in the order of their last use.
//!
//! ```text
//!  slab:     the bytes of each frame, one behind the other
//!  slots:    its key, a state of its user's, the next slot of its chain, neighbours in the order
//!  heads:    by the key, the first slot of a chain
//! ```
//!
//! All memory is taken when they are made, so that a budget holds from the first key on: see
//! [`Frames::TABLE_BYTES`]. Nothing is allocated later.
//!
//! Invariant: the last `n` different keys that were touched are all there, as long as there are
//! `n` frames or more. So who holds three of them at once needs three frames and no pins.

use alloc::boxed::Box;
use alloc::vec;
use alloc::vec::Vec;

use crate::lru::{Lru, Neighbours, SlotNumber};

/// No slot, or no key.
const NONE: u32 = <u32 as SlotNumber>::NONE;

#[derive(Clone, Copy, Debug)]
struct Slot<S> {
    key: u32,
    chain: u32,
    uses: Neighbours<u32>,
    state: S,
}

impl<S: Default> Slot<S> {
    fn empty() -> Self {
        Slot { key: NONE, chain: NONE, uses: Neighbours::NONE, state: S::default() }
    }
}

impl<S> AsMut<Neighbours<u32>> for Slot<S> {
    #[inline]
    fn as_mut(&mut self) -> &mut Neighbours<u32> {
        &mut self.uses
    }
}

/// Frames, each with a state `S` beside its bytes. Keys are all numbers but the highest.
#[derive(Debug)]
pub struct Frames<S> {
    frame_bytes: usize,
    /// Frame 0 begins at this byte of the slab, for the alignment that was wanted.
    start: usize,
    slab: Vec<u8>,
    slots: Box<[Slot<S>]>,
    /// Frames that were given a key yet, the first ones: those are in the order.
    used: u32,
    heads: Box<[u32]>,
    order: Lru<u32>,
}

impl<S: Copy + Default> Frames<S> {
    /// What the tables take for each frame, in bytes, at most: its slot and two heads of chains.
    pub const TABLE_BYTES: usize = size_of::<Slot<S>>() + 2 * size_of::<u32>();

    /// So many frames without a key, the first of which is aligned to `alignment` bytes.
    #[must_use]
    pub fn new(frames: u32, frame_bytes: usize, alignment: usize) -> Self {
        let count = frames as usize;
        let slab = vec![0; count * frame_bytes + alignment - 1];
        let start = slab.as_ptr().align_offset(alignment).min(alignment - 1);
        Frames {
            frame_bytes,
            start,
            slab,
            slots: vec![Slot::empty(); count].into_boxed_slice(),
            used: 0,
            heads: vec![NONE; count.next_power_of_two()].into_boxed_slice(),
            order: Lru::EMPTY,
        }
    }

    /// The bytes that they take.
    #[must_use]
    pub fn memory(&self) -> u64 {
        let tables = size_of_val(&*self.slots) + size_of_val(&*self.heads);
        (self.slab.len() + tables) as u64
    }

    /// How many there are.
    #[must_use]
    pub fn len(&self) -> u32 {
        self.slots.len() as u32
    }

    /// True if there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.slots.is_empty()
    }

    /// How many were given a key since all were forgotten: the first ones.
    #[must_use]
    pub const fn used(&self) -> u32 {
        self.used
    }

    #[inline]
    fn chain_of(&self, key: u32) -> usize {
        // Multiplying by the golden ratio spreads neighbouring keys over the chains.
        (key.wrapping_mul(0x9E37_79B9) >> 7) as usize & (self.heads.len() - 1)
    }

    /// The frame of `key`, without touching it.
    #[inline]
    #[must_use]
    pub fn find(&self, key: u32) -> Option<u32> {
        let mut frame = self.heads[self.chain_of(key)];
        while frame != NONE {
            let slot = &self.slots[frame as usize];
            if slot.key == key {
                return Some(frame);
            }
            frame = slot.chain;
        }
        None
    }

    /// The frame of `key`, which becomes the newest.
    #[inline]
    pub fn touch(&mut self, key: u32) -> Option<u32> {
        let frame = self.find(key)?;
        self.order.touch(&mut self.slots, frame);
        Some(frame)
    }

    /// The frame whose key must leave before another can enter, if none is free.
    #[must_use]
    pub fn victim(&self) -> Option<u32> {
        if self.used < self.len() {
            return None;
        }
        self.order.oldest().filter(|frame| self.slots[frame.place()].key != NONE)
    }

    /// The frames that were given a key, the one that was used longest ago first.
    pub fn oldest_first(&self) -> impl Iterator<Item = u32> {
        let newer = |frame: &u32| {
            let newer = self.slots[frame.place()].uses.newer();
            (newer != NONE).then_some(newer)
        };
        core::iter::successors(self.order.oldest(), newer)
    }

    /// Makes `frame` the next to be given up.
    pub fn make_oldest(&mut self, frame: u32) {
        self.order.unlink(&mut self.slots, frame);
        self.order.link_oldest(&mut self.slots, frame);
    }

    /// Gives a frame to `key`, which has none; the oldest key leaves if none is free. The frame's
    /// bytes are whatever they were.
    pub fn enter(&mut self, key: u32) -> u32 {
        let frame = if self.used < self.len() {
            self.used += 1;
            self.used - 1
        } else {
            let frame = self.order.oldest().unwrap_or(0);
            self.order.unlink(&mut self.slots, frame);
            self.unchain(frame);
            frame
        };
        let chain = self.chain_of(key);
        let slot = &mut self.slots[frame as usize];
        (slot.key, slot.state) = (key, S::default());
        slot.chain = self.heads[chain];
        self.heads[chain] = frame;
        self.order.link_newest(&mut self.slots, frame);
        frame
    }

    fn unchain(&mut self, frame: u32) {
        let Slot { key, chain: next, .. } = self.slots[frame as usize];
        if key == NONE {
            return;
        }
        let chain = self.chain_of(key);
        if self.heads[chain] == frame {
            self.heads[chain] = next;
            return;
        }
        let mut at = self.heads[chain];
        while at != NONE {
            let following = self.slots[at as usize].chain;
            if following == frame {
                self.slots[at as usize].chain = next;
                return;
            }
            at = following;
        }
    }

    /// Takes its key from `frame`, which is the next to be given another.
    pub fn forget(&mut self, frame: u32) {
        self.unchain(frame);
        let slot = &mut self.slots[frame as usize];
        (slot.key, slot.state) = (NONE, S::default());
        self.make_oldest(frame);
    }

    /// Takes their keys from all frames.
    pub fn forget_all(&mut self) {
        self.slots.fill(Slot::empty());
        self.heads.fill(NONE);
        self.used = 0;
        self.order = Lru::EMPTY;
    }

    /// The key of `frame`, if it has one.
    #[inline]
    #[must_use]
    pub fn key(&self, frame: u32) -> Option<u32> {
        let key = self.slots[frame as usize].key;
        (key != NONE).then_some(key)
    }

    /// The state of `frame`: the default one when it is given a key.
    #[inline]
    #[must_use]
    pub fn state(&self, frame: u32) -> &S {
        &self.slots[frame as usize].state
    }

    /// The state of `frame`, to be changed.
    #[inline]
    pub fn state_mut(&mut self, frame: u32) -> &mut S {
        &mut self.slots[frame as usize].state
    }

    #[inline]
    fn range(&self, frame: u32) -> core::ops::Range<usize> {
        let start = self.start + frame as usize * self.frame_bytes;
        start..start + self.frame_bytes
    }

    /// The bytes of `frame`.
    #[inline]
    #[must_use]
    pub fn bytes(&self, frame: u32) -> &[u8] {
        &self.slab[self.range(frame)]
    }

    /// The bytes of `frame`, to be changed.
    #[inline]
    pub fn bytes_mut(&mut self, frame: u32) -> &mut [u8] {
        let range = self.range(frame);
        &mut self.slab[range]
    }

    /// The bytes and the state of `frame`, to be changed.
    pub fn both_mut(&mut self, frame: u32) -> (&mut [u8], &mut S) {
        let range = self.range(frame);
        (&mut self.slab[range], &mut self.slots[frame as usize].state)
    }

    /// The bytes of two different frames, to be changed; `None` if they are the same.
    pub fn two_mut(&mut self, one: u32, other: u32) -> Option<(&mut [u8], &mut [u8])> {
        let ranges = [self.range(one), self.range(other)];
        let [one, other] = self.slab.get_disjoint_mut(ranges).ok()?;
        Some((one, other))
    }

    /// The bytes of several frames, in ascending order, to be changed. It ends at the first that
    /// is not behind the one before it.
    pub fn several_mut(
        &mut self,
        frames: impl Iterator<Item = u32>,
    ) -> impl Iterator<Item = &mut [u8]> {
        let (bytes, mut rest, mut next) = (self.frame_bytes, self.all_bytes(), 0);
        frames.map_while(move |frame| {
            let skipped = frame.checked_sub(next)? as usize * bytes;
            let (_, behind) = core::mem::take(&mut rest).split_at_mut_checked(skipped)?;
            let (this, behind) = behind.split_at_mut_checked(bytes)?;
            (rest, next) = (behind, frame + 1);
            Some(this)
        })
    }

    /// The bytes of all frames, one behind the other.
    pub fn all_bytes(&mut self) -> &mut [u8] {
        &mut self.slab[self.start..self.start + self.slots.len() * self.frame_bytes]
    }
}

#[cfg(test)]
mod tests;
