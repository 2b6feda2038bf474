//! The node cache (section 4.2): nodes in memory, the one used longest ago leaves first.
//!
//! Invariant: a frame is in the list of uses exactly once, whether it holds a node or not; a node
//! is in at most one frame.

use alloc::boxed::Box;
use alloc::vec;

use super::layout::NodeId;

/// No frame, at the end of a list.
const NONE: u32 = u32::MAX;

/// What a frame holds, and its neighbours.
#[derive(Clone, Copy, Debug)]
struct Frame {
    id: Option<NodeId>,
    is_dirty: bool,
    /// The frames that were used next later and next earlier.
    newer: u32,
    older: u32,
    /// The next frame whose node has the same bucket.
    next: u32,
}

/// The cache.
#[derive(Debug)]
pub(super) struct NodeCache {
    node_bytes: usize,
    bytes: Box<[u8]>,
    frames: Box<[Frame]>,
    /// The first frame of each bucket; their number is a power of two.
    buckets: Box<[u32]>,
    newest: u32,
    oldest: u32,
}

impl NodeCache {
    /// Bytes of memory that a node takes in the cache.
    pub(super) const fn bytes_a_node(node_bytes: usize) -> u64 {
        (node_bytes + size_of::<Frame>() + 2 * size_of::<u32>()) as u64
    }

    /// A cache of `frames` nodes of `node_bytes` bytes.
    pub(super) fn new(frames: u32, node_bytes: usize) -> Self {
        let frame = |at: u32| Frame {
            id: None,
            is_dirty: false,
            newer: if at == 0 { NONE } else { at - 1 },
            older: if at + 1 == frames { NONE } else { at + 1 },
            next: NONE,
        };
        NodeCache {
            node_bytes,
            bytes: vec![0; frames as usize * node_bytes].into_boxed_slice(),
            frames: (0..frames).map(frame).collect(),
            buckets: vec![NONE; (frames.max(1) as usize).next_power_of_two()].into_boxed_slice(),
            newest: 0,
            oldest: frames.saturating_sub(1),
        }
    }

    /// Bytes of memory that it takes.
    pub(super) fn memory_bytes(&self) -> u64 {
        (self.bytes.len() + size_of_val(&*self.frames) + size_of_val(&*self.buckets)) as u64
    }

    /// Frames that there are.
    pub(super) fn frames(&self) -> usize {
        self.frames.len()
    }

    /// The frame of node `id`, which is used now.
    #[inline]
    pub(super) fn find(&mut self, id: NodeId) -> Option<usize> {
        let mut at = self.buckets[self.bucket(id)];
        while at != NONE {
            let frame = &self.frames[at as usize];
            if frame.id == Some(id) {
                self.touch(at);
                return Some(at as usize);
            }
            at = frame.next;
        }
        None
    }

    /// The frame that was used longest ago, and the node in it if that was changed.
    pub(super) fn oldest(&self) -> (usize, Option<NodeId>) {
        let frame = &self.frames[self.oldest as usize];
        (self.oldest as usize, frame.id.filter(|_| frame.is_dirty))
    }

    /// The node in `frame`, if it was changed.
    pub(super) fn dirty(&self, frame: usize) -> Option<NodeId> {
        self.frames[frame].id.filter(|_| self.frames[frame].is_dirty)
    }

    /// Lets `frame` hold node `id` from now on; what it held is forgotten.
    pub(super) fn assign(&mut self, frame: usize, id: NodeId) {
        self.clear(frame);
        let bucket = self.bucket(id);
        self.frames[frame].id = Some(id);
        self.frames[frame].next = self.buckets[bucket];
        self.buckets[bucket] = frame as u32;
        self.touch(frame as u32);
    }

    /// Lets `frame` hold nothing; it is the next to be used for another node.
    pub(super) fn clear(&mut self, frame: usize) {
        let Some(id) = self.frames[frame].id.take() else {
            return;
        };
        self.frames[frame].is_dirty = false;
        let next = self.frames[frame].next;
        let bucket = self.bucket(id);
        if self.buckets[bucket] == frame as u32 {
            self.buckets[bucket] = next;
        } else {
            let mut at = self.buckets[bucket];
            while at != NONE {
                if self.frames[at as usize].next == frame as u32 {
                    self.frames[at as usize].next = next;
                    break;
                }
                at = self.frames[at as usize].next;
            }
        }
        self.unlink(frame as u32);
        let (oldest, frame) = (self.oldest, frame as u32);
        self.frames[frame as usize].newer = oldest;
        self.frames[frame as usize].older = NONE;
        match self.frames.get_mut(oldest as usize) {
            Some(oldest) => oldest.older = frame,
            None => self.newest = frame,
        }
        self.oldest = frame;
    }

    /// Forgets every node.
    pub(super) fn clear_all(&mut self) {
        for frame in 0..self.frames.len() {
            self.clear(frame);
        }
    }

    /// The node in `frame` has the number `id` from now on, and was changed by that.
    pub(super) fn rename(&mut self, frame: usize, id: NodeId) {
        self.assign(frame, id);
        self.set_dirty(frame, true);
    }

    pub(super) fn set_dirty(&mut self, frame: usize, is_dirty: bool) {
        self.frames[frame].is_dirty = is_dirty;
    }

    #[inline]
    pub(super) fn node(&self, frame: usize) -> &[u8] {
        &self.bytes[frame * self.node_bytes..(frame + 1) * self.node_bytes]
    }

    #[inline]
    pub(super) fn node_mut(&mut self, frame: usize) -> &mut [u8] {
        &mut self.bytes[frame * self.node_bytes..(frame + 1) * self.node_bytes]
    }

    /// Two nodes at once; they are in different frames.
    pub(super) fn two_mut(&mut self, one: usize, other: usize) -> (&mut [u8], &mut [u8]) {
        debug_assert_ne!(one, other, "a node is no neighbour of its own");
        let (low, high) = (one.min(other), one.max(other));
        let (head, tail) = self.bytes.split_at_mut(high * self.node_bytes);
        let low = &mut head[low * self.node_bytes..][..self.node_bytes];
        let high = &mut tail[..self.node_bytes];
        if one < other { (low, high) } else { (high, low) }
    }

    fn bucket(&self, id: NodeId) -> usize {
        (id.0.wrapping_mul(0x9E37_79B9) >> 7) as usize & (self.buckets.len() - 1)
    }

    /// Makes `frame` the one used last.
    fn touch(&mut self, frame: u32) {
        if self.newest == frame {
            return;
        }
        self.unlink(frame);
        let newest = self.newest;
        self.frames[frame as usize].newer = NONE;
        self.frames[frame as usize].older = newest;
        match self.frames.get_mut(newest as usize) {
            Some(newest) => newest.newer = frame,
            None => self.oldest = frame,
        }
        self.newest = frame;
    }

    fn unlink(&mut self, frame: u32) {
        let Frame { newer, older, .. } = self.frames[frame as usize];
        match self.frames.get_mut(newer as usize) {
            Some(neighbour) => neighbour.older = older,
            None => self.newest = older,
        }
        match self.frames.get_mut(older as usize) {
            Some(neighbour) => neighbour.newer = newer,
            None => self.oldest = newer,
        }
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec::Vec;

    use super::NodeCache;
    use crate::la_tree::layout::NodeId;

    /// Uses node `id` as a tree does: loads it if it is not there.
    fn using(cache: &mut NodeCache, id: u32) -> bool {
        if let Some(frame) = cache.find(NodeId(id)) {
            assert_eq!(cache.node(frame)[0], id as u8, "the frame holds node {id}");
            return true;
        }
        let (frame, _) = cache.oldest();
        cache.assign(frame, NodeId(id));
        cache.node_mut(frame)[0] = id as u8;
        false
    }

    #[test]
    fn the_cache_holds_the_nodes_that_were_used_last() {
        let mut cache = NodeCache::new(4, 16);
        let mut recent: Vec<u32> = Vec::new();
        let mut random: u32 = 1;
        for _ in 0..5000 {
            random = random.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            let id = random >> 8 & 7;
            if random >> 20 & 15 == 0 {
                if let Some(frame) = cache.find(NodeId(id)) {
                    cache.clear(frame);
                }
                recent.retain(|known| *known != id);
                continue;
            }
            assert_eq!(using(&mut cache, id), recent.contains(&id), "node {id} of {recent:?}");
            recent.retain(|known| *known != id);
            recent.push(id);
            if recent.len() > 4 {
                recent.remove(0);
            }
        }
    }

    #[test]
    fn two_nodes_are_handed_out_at_once_in_the_order_asked_for() {
        let mut cache = NodeCache::new(3, 4);
        for id in [1, 2] {
            using(&mut cache, id);
        }
        let (one, two) = (cache.find(NodeId(1)).unwrap(), cache.find(NodeId(2)).unwrap());
        let (first, second) = cache.two_mut(two, one);
        assert_eq!((first[0], second[0]), (2, 1));
    }
}
