//! The cache of nodes: which are there, which was used longest ago, and how many of them are to be
//! written, without a look at each.
//!
//! ```text
//!  frames:   node, its deltas, the next frame of its bucket, neighbours in the order of use
//!  buckets:  by the node's number, the first frame
//! ```
//!
//! Invariants: `dirty` and `unwritten` count the frames that are. A frame without a node is in the
//! order of use before all that have one.

use alloc::vec;
use alloc::vec::Vec;

use super::layout::HEADER_BYTES;
use super::table::NodeId;
use crate::use_order::{Neighbours, SlotNumber, UseOrder};

const NONE: u32 = <u32 as SlotNumber>::NONE;

/// A node in the cache.
pub(super) struct Frame {
    pub(super) id: Option<NodeId>,
    pub(super) node: Vec<u8>,
    /// What changed since it was read, behind room for a header. It is empty where no page holds
    /// the node yet.
    deltas: Vec<u8>,
    /// True if no page holds the node yet.
    is_unwritten: bool,
    next: u32,
    uses: Neighbours<u32>,
}

impl Frame {
    pub(super) fn deltas(&self) -> &[u8] {
        &self.deltas
    }

    fn is_dirty(&self) -> bool {
        self.is_unwritten || self.deltas.len() > HEADER_BYTES
    }
}

impl AsMut<Neighbours<u32>> for Frame {
    fn as_mut(&mut self) -> &mut Neighbours<u32> {
        &mut self.uses
    }
}

/// The cache.
pub(super) struct Cache {
    frames: Vec<Frame>,
    buckets: Vec<u32>,
    uses: UseOrder<u32>,
    dirty: u32,
    unwritten: u32,
}

impl Cache {
    /// A cache of `frames` nodes of `node_bytes` bytes, with room for so many bytes of deltas each.
    pub(super) fn new(frames: usize, node_bytes: usize, delta_bytes: usize) -> Self {
        let frame = || Frame {
            id: None,
            node: vec![0; node_bytes],
            deltas: Vec::with_capacity(delta_bytes),
            is_unwritten: false,
            next: NONE,
            uses: Neighbours::NONE,
        };
        let mut cache = Cache {
            frames: (0..frames).map(|_| frame()).collect(),
            buckets: vec![NONE; frames],
            uses: UseOrder::EMPTY,
            dirty: 0,
            unwritten: 0,
        };
        for frame in 0..frames {
            cache.uses.link_newest(&mut cache.frames, frame as u32);
        }
        cache
    }

    /// Bytes of memory of a node in a cache.
    pub(super) const fn frame_bytes(node_bytes: usize, delta_bytes: usize) -> u64 {
        (size_of::<Frame>() + size_of::<u32>() + node_bytes + delta_bytes) as u64
    }

    /// Nodes that it can hold.
    pub(super) fn len(&self) -> usize {
        self.frames.len()
    }

    /// Nodes in it that have to be written.
    pub(super) const fn dirty(&self) -> u32 {
        self.dirty
    }

    /// Nodes in it that no page holds yet.
    pub(super) const fn unwritten(&self) -> u32 {
        self.unwritten
    }

    pub(super) fn frame(&self, frame: usize) -> &Frame {
        &self.frames[frame]
    }

    /// The bytes of the node in `frame`.
    pub(super) fn node_mut(&mut self, frame: usize) -> &mut [u8] {
        &mut self.frames[frame].node
    }

    /// The bytes of two nodes; `None` if they are the same.
    pub(super) fn two_mut(&mut self, frames: [usize; 2]) -> Option<(&mut [u8], &mut [u8])> {
        let [one, other] = self.frames.get_disjoint_mut(frames).ok()?;
        Some((&mut one.node, &mut other.node))
    }

    /// The frame of node `id`.
    pub(super) fn find(&self, id: NodeId) -> Option<usize> {
        let frames = core::iter::successors(Some(self.buckets[self.bucket(id)]), |frame| {
            self.frames.get(frame.place()).map(|frame| frame.next)
        });
        frames
            .map(SlotNumber::place)
            .take_while(|frame| *frame < self.frames.len())
            .find(|frame| self.frames[*frame].id == Some(id))
    }

    /// Makes the node in `frame` the one used last.
    pub(super) fn touch(&mut self, frame: usize) {
        self.uses.touch(&mut self.frames, frame as u32);
    }

    /// A frame without a node, or the one whose node was used longest ago.
    pub(super) fn oldest(&self) -> usize {
        self.uses.oldest().map_or(0, SlotNumber::place)
    }

    /// Lets `frame`, which has no node, hold node `id`, whose bytes are there; `is_unwritten` if no
    /// page holds it.
    pub(super) fn assign(&mut self, frame: usize, id: NodeId, is_unwritten: bool) {
        let bucket = self.bucket(id);
        let next = core::mem::replace(&mut self.buckets[bucket], frame as u32);
        let held = &mut self.frames[frame];
        (held.id, held.next) = (Some(id), next);
        self.count(frame, |frame| frame.is_unwritten = is_unwritten);
        self.touch(frame);
    }

    /// Lets `frame` hold nothing.
    pub(super) fn clear(&mut self, frame: usize) {
        let Frame { id: Some(id), next, .. } = self.frames[frame] else {
            return;
        };
        let (bucket, number) = (self.bucket(id), frame as u32);
        if self.buckets[bucket] == number {
            self.buckets[bucket] = next;
        } else {
            let mut before = self.buckets[bucket];
            while let Some(held) = self.frames.get_mut(before.place()) {
                if held.next == number {
                    held.next = next;
                    break;
                }
                before = held.next;
            }
        }
        self.written(frame);
        self.frames[frame].id = None;
        self.uses.unlink(&mut self.frames, number);
        self.uses.link_oldest(&mut self.frames, number);
    }

    /// Nothing is in the cache.
    pub(super) fn clear_all(&mut self) {
        (0..self.frames.len()).for_each(|frame| self.clear(frame));
    }

    /// Flash has the node in `frame` as it is.
    pub(super) fn written(&mut self, frame: usize) {
        self.count(frame, |frame| {
            frame.deltas.clear();
            frame.is_unwritten = false;
        });
    }

    /// No page holds the node in `frame` any more.
    pub(super) fn taken_up(&mut self, frame: usize) {
        self.count(frame, |frame| {
            frame.deltas.clear();
            frame.is_unwritten = true;
        });
    }

    /// Adds a delta of `bytes` bytes, which `write` writes, to the node in `frame`; a node that no
    /// page holds is written as a whole.
    pub(super) fn add_delta(&mut self, frame: usize, bytes: usize, write: impl FnOnce(&mut [u8])) {
        if self.frames[frame].is_unwritten {
            return;
        }
        self.count(frame, |frame| {
            let at = frame.deltas.len().max(HEADER_BYTES);
            frame.deltas.resize(at + bytes, 0);
            write(&mut frame.deltas[at..]);
        });
    }

    /// The deltas of the node in `frame`, whose header may be written.
    pub(super) fn deltas_mut(&mut self, frame: usize) -> &mut [u8] {
        &mut self.frames[frame].deltas
    }

    fn count(&mut self, frame: usize, change: impl FnOnce(&mut Frame)) {
        let frame = &mut self.frames[frame];
        let before = (frame.is_dirty(), frame.is_unwritten);
        change(frame);
        self.dirty = self.dirty + u32::from(frame.is_dirty()) - u32::from(before.0);
        self.unwritten = self.unwritten + u32::from(frame.is_unwritten) - u32::from(before.1);
    }

    fn bucket(&self, id: NodeId) -> usize {
        id.0 as usize % self.buckets.len()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::vec::Vec;

    use super::Cache;
    use crate::ipl::layout::HEADER_BYTES;
    use crate::ipl::table::NodeId;
    use crate::path_copying::model::Dice;

    /// What a node in the cache is: the time of its last use, unwritten or not, bytes of deltas.
    type Plain = BTreeMap<u32, (u32, bool, usize)>;

    fn compare(cache: &Cache, plain: &Plain) {
        for id in 0..60 {
            let found = cache.find(NodeId(id)).map(|frame| cache.frame(frame));
            let found = found.map(|frame| (frame.is_unwritten, frame.deltas().len()));
            assert_eq!(found, plain.get(&id).map(|(_, unwritten, deltas)| (*unwritten, *deltas)));
        }
        let dirty = plain.values().filter(|it| it.1 || it.2 > HEADER_BYTES).count();
        assert_eq!(cache.dirty() as usize, dirty);
        assert_eq!(cache.unwritten() as usize, plain.values().filter(|it| it.1).count());
        if plain.len() == cache.len() {
            let oldest = plain.iter().min_by_key(|(_, it)| it.0).map(|(id, _)| NodeId(*id));
            assert_eq!(cache.frame(cache.oldest()).id, oldest);
        } else {
            assert_eq!(cache.frame(cache.oldest()).id, None);
        }
    }

    #[test]
    fn it_counts_and_finds_what_a_plain_map_with_times_of_use_does() {
        let (mut dice, mut cache, mut plain) = (Dice(1), Cache::new(7, 16, 64), Plain::new());
        for now in 1..20_000 {
            let id = dice.roll(60) as u32;
            match (cache.find(NodeId(id)), dice.roll(6)) {
                (None, _) => {
                    let frame = cache.oldest();
                    if let Some(gone) = cache.frame(frame).id {
                        plain.remove(&gone.0);
                    }
                    cache.clear(frame);
                    let is_unwritten = dice.roll(2) == 0;
                    cache.assign(frame, NodeId(id), is_unwritten);
                    plain.insert(id, (now, is_unwritten, 0));
                }
                (Some(frame), 0) => {
                    cache.clear(frame);
                    plain.remove(&id);
                }
                (Some(frame), what) => {
                    cache.touch(frame);
                    let held = plain.get_mut(&id).unwrap();
                    held.0 = now;
                    match what {
                        1 => {
                            cache.written(frame);
                            *held = (now, false, 0);
                        }
                        2 => {
                            cache.taken_up(frame);
                            *held = (now, true, 0);
                        }
                        _ => {
                            cache.add_delta(frame, 3, |bytes| bytes.fill(1));
                            if !held.1 {
                                held.2 = held.2.max(HEADER_BYTES) + 3;
                            }
                        }
                    }
                }
            }
            compare(&cache, &plain);
        }
        cache.clear_all();
        compare(&cache, &Plain::new());
        let frames: Vec<_> = (0..cache.len()).map(|frame| cache.frame(frame).id).collect();
        assert!(frames.iter().all(Option::is_none));
    }
}
