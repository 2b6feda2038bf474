//! The node cache (section 4.2): nodes in memory, the one used longest ago leaves first.
//!
//! Where memory is shared with the buffer pool, frames come and go in chunks, and the cache counts
//! how often a node is found in its tail: the frames used longest ago, which it would miss if it
//! had less memory.
//!
//! Invariant: a frame is in the list of uses exactly once, whether it holds a node or not; a node
//! is in at most one frame. The tail is the old end of that list.

use alloc::boxed::Box;
use alloc::vec;

use super::chunks::{CHUNK_OVERHEAD, Chunks};
use super::layout::NodeId;

/// The fewest nodes that the cache holds: a node, its neighbours, and those above them.
pub(super) const FRAMES_LEAST: u32 = 12;

/// No frame, at the end of a list.
const NONE: u32 = u32::MAX;

/// The part of the frames that is the tail.
const TAIL: usize = 8;

/// No node.
const NO_NODE: u32 = u32::MAX;

/// In the number of the next frame of a bucket: marks a node that was changed, and a frame of the
/// tail. Frames have lower numbers.
const DIRTY: u32 = 1 << 31;
const IN_TAIL: u32 = 1 << 30;
const NO_NEXT: u32 = IN_TAIL - 1;

/// What a frame holds, and its neighbours.
#[derive(Clone, Copy, Debug)]
struct Frame {
    id: u32,
    /// The frames that were used next later and next earlier.
    newer: u32,
    older: u32,
    /// The next frame whose node has the same bucket, and the marks.
    chained: u32,
}

const EMPTY: Frame = Frame { id: NO_NODE, newer: NONE, older: NONE, chained: NO_NEXT };

impl Frame {
    #[inline]
    fn id(&self) -> Option<NodeId> {
        (self.id != NO_NODE).then_some(NodeId(self.id))
    }

    const fn is_dirty(&self) -> bool {
        self.chained & DIRTY != 0
    }

    const fn in_tail(&self) -> bool {
        self.chained & IN_TAIL != 0
    }

    const fn mark(&mut self, mark: u32, is_set: bool) {
        self.chained = self.chained & !mark | if is_set { mark } else { 0 };
    }

    /// The next frame whose node has the same bucket.
    #[inline]
    const fn next(&self) -> u32 {
        let next = self.chained & NO_NEXT;
        if next == NO_NEXT { NONE } else { next }
    }

    const fn set_next(&mut self, next: u32) {
        self.chained = self.chained & !NO_NEXT | next & NO_NEXT;
    }
}

/// The most that a chunk has, as a power of two.
const CHUNK_SHIFT_MOST: u32 = 16;

/// How many frames there are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CacheSize {
    /// So many, always.
    Fixed(u32),
    /// Chunks of two to the power of `shift` frames: so many now, and so many at most.
    Shared { shift: u32, chunks: u32, most: u32 },
}

impl CacheSize {
    /// As many chunks of about `unit` bytes as `bytes` have room for, where there may be `most`
    /// bytes; `None` if there is no room for one.
    pub(super) fn shared(node_bytes: usize, bytes: u64, most: u64, unit: u64) -> Option<Self> {
        let each = (node_bytes + size_of::<Frame>()) as u64;
        let shift = (unit / each).max(1).ilog2().min(CHUNK_SHIFT_MOST);
        let chunk = each << shift;
        // Frames have numbers of 32 bits.
        let most = u32::try_from(most / chunk).unwrap_or(u32::MAX).min(u32::MAX >> shift);
        let size = CacheSize::Shared { shift, chunks: 0, most };
        let rest = bytes.checked_sub(size.fixed_bytes())?;
        let chunks = u32::try_from(rest / chunk).unwrap_or(most).min(most);
        (chunks > 0).then_some(CacheSize::Shared { shift, chunks, most })
    }

    /// Frames at the start.
    pub(super) const fn frames(&self) -> u32 {
        match *self {
            CacheSize::Fixed(frames) => frames,
            CacheSize::Shared { shift, chunks, .. } => chunks << shift,
        }
    }

    /// Frames that there can be.
    pub(super) const fn frames_most(&self) -> u32 {
        match *self {
            CacheSize::Fixed(frames) => frames,
            CacheSize::Shared { shift, most, .. } => most << shift,
        }
    }

    fn buckets(&self) -> usize {
        let part = if let CacheSize::Shared { .. } = *self { 4 } else { 1 };
        (self.frames_most().div_ceil(part).max(1) as usize).next_power_of_two()
    }

    /// Bytes that are taken whatever frames there are.
    fn fixed_bytes(&self) -> u64 {
        let most = if let CacheSize::Shared { most, .. } = *self { u64::from(most) } else { 1 };
        2 * most * CHUNK_OVERHEAD + 4 * self.buckets() as u64
    }
}

/// The cache.
#[derive(Debug)]
pub(super) struct NodeCache {
    bytes: Chunks<u8>,
    frames: Chunks<Frame>,
    /// The first frame of each bucket; their number is a power of two.
    buckets: Box<[u32]>,
    newest: u32,
    oldest: u32,
    /// The frame of the tail that was used last, how many it has, and how many it should have.
    border: u32,
    tail: usize,
    tail_wanted: usize,
    /// How often a node was found in the tail.
    pub(super) tail_hits: u64,
    is_shared: bool,
    chunk_frames: usize,
    /// Frames whose nodes were changed.
    dirty_frames: u32,
}

impl NodeCache {
    /// Bytes of memory that a node takes in a cache of fixed size.
    pub(super) const fn bytes_a_node(node_bytes: usize) -> u64 {
        (node_bytes + size_of::<Frame>() + 2 * size_of::<u32>()) as u64
    }

    /// A cache of nodes of `node_bytes` bytes.
    pub(super) fn new(size: CacheSize, node_bytes: usize) -> Self {
        let (shift, chunks, most) = match size {
            CacheSize::Fixed(frames) => {
                ((frames.max(1) as usize).next_power_of_two().ilog2(), 1, 1)
            }
            CacheSize::Shared { shift, chunks, most } => (shift, chunks, most as usize),
        };
        let mut cache = NodeCache {
            bytes: Chunks::new(shift, node_bytes, most),
            frames: Chunks::new(shift, 1, most),
            buckets: vec![NONE; size.buckets()].into_boxed_slice(),
            newest: NONE,
            oldest: NONE,
            border: NONE,
            tail: 0,
            tail_wanted: 0,
            tail_hits: 0,
            is_shared: matches!(size, CacheSize::Shared { .. }),
            chunk_frames: (size.frames() / chunks.max(1)) as usize,
            dirty_frames: 0,
        };
        for _ in 0..chunks {
            cache.grow();
        }
        cache
    }

    /// Bytes of memory that it takes.
    pub(super) fn memory_bytes(&self) -> u64 {
        self.bytes.memory_bytes() + self.frames.memory_bytes() + size_of_val(&*self.buckets) as u64
    }

    /// Frames that there are.
    pub(super) fn frames(&self) -> usize {
        self.frames.len()
    }

    /// Frames in the tail.
    pub(super) const fn tail_frames(&self) -> usize {
        self.tail
    }

    /// The frames of the last chunk.
    pub(super) fn last_chunk(&self) -> core::ops::Range<usize> {
        self.frames.last_chunk()..self.frames.len()
    }

    /// Bytes of a chunk.
    pub(super) fn chunk_bytes(&self) -> u64 {
        let node = self.bytes.get(0).map_or(0, <[u8]>::len);
        (self.chunk_frames * (node + size_of::<Frame>())) as u64
    }

    /// Chunks that can be given back while `least` frames stay.
    pub(super) fn chunks_beyond(&self, least: usize) -> usize {
        self.frames.len().saturating_sub(least) / self.chunk_frames.max(1)
    }

    /// Adds a chunk of frames without nodes.
    pub(super) fn grow(&mut self) {
        let first = self.frames.len();
        self.bytes.add(self.chunk_frames, 0);
        self.frames.add(self.chunk_frames, EMPTY);
        for frame in first..self.frames.len() {
            self.link_oldest(frame as u32);
        }
        self.size_tail();
    }

    /// The frame, not of the last chunk, that was used longest ago, and the node in it if that was
    /// changed: it has to be empty, or written, for a node of the last chunk. `None` when that
    /// chunk has no nodes.
    pub(super) fn oldest_to_stay(&self) -> Option<(usize, Option<NodeId>)> {
        let last = self.last_chunk();
        last.clone().find(|frame| self.at(*frame as u32).id().is_some())?;
        let mut frame = self.oldest;
        while frame != NONE && last.contains(&(frame as usize)) {
            frame = self.at(frame).newer;
        }
        (frame != NONE).then(|| (frame as usize, self.dirty(frame as usize)))
    }

    /// Lets `frame` hold a node of the last chunk; what it held is forgotten.
    pub(super) fn take_from_last(&mut self, frame: usize) {
        let held = self.last_chunk().find_map(|at| {
            let held = self.at(at as u32);
            held.id().map(|id| (at, id, held.is_dirty()))
        });
        if let Some((from, id, is_dirty)) = held {
            let (from_bytes, to_bytes) = self.two_mut(from, frame);
            to_bytes.copy_from_slice(from_bytes);
            self.clear(from);
            self.assign(frame, id);
            self.set_dirty(frame, is_dirty);
        }
    }

    /// Gives the last chunk, whose nodes have left it, back.
    pub(super) fn shrink(&mut self) {
        for frame in self.last_chunk() {
            debug_assert!(self.at(frame as u32).id().is_none(), "its nodes have left");
            self.unlink(frame as u32);
        }
        self.bytes.remove();
        self.frames.remove();
        self.size_tail();
    }

    #[inline]
    fn at(&self, frame: u32) -> &Frame {
        match self.frames.get(frame as usize) {
            Some([frame]) => frame,
            _ => &EMPTY,
        }
    }

    #[inline]
    fn change(&mut self, frame: u32, change: impl FnOnce(&mut Frame)) {
        if let Some([frame]) = self.frames.get_mut(frame as usize) {
            change(frame);
        }
    }

    /// The frame of node `id`, which is used now.
    #[inline]
    pub(super) fn find(&mut self, id: NodeId) -> Option<usize> {
        let mut at = self.buckets[self.bucket(id)];
        while at != NONE {
            let frame = self.at(at);
            if frame.id == id.0 {
                self.tail_hits += u64::from(frame.in_tail());
                self.touch(at);
                return Some(at as usize);
            }
            at = frame.next();
        }
        None
    }

    /// The frame that was used longest ago, and the node in it if that was changed.
    pub(super) fn oldest(&self) -> (usize, Option<NodeId>) {
        (self.oldest as usize, self.dirty(self.oldest as usize))
    }

    /// The node in `frame`, if it was changed.
    pub(super) fn dirty(&self, frame: usize) -> Option<NodeId> {
        let frame = self.at(frame as u32);
        frame.id().filter(|_| frame.is_dirty())
    }

    /// Lets `frame` hold node `id` from now on; what it held is forgotten.
    pub(super) fn assign(&mut self, frame: usize, id: NodeId) {
        self.clear(frame);
        let bucket = self.bucket(id);
        let next = self.buckets[bucket];
        self.change(frame as u32, |frame| {
            frame.id = id.0;
            frame.set_next(next);
        });
        self.buckets[bucket] = frame as u32;
        self.touch(frame as u32);
    }

    /// Lets `frame` hold nothing; it is the next to be used for another node.
    pub(super) fn clear(&mut self, frame: usize) {
        let frame = frame as u32;
        let held = *self.at(frame);
        let (Some(id), next) = (held.id(), held.next()) else {
            return;
        };
        self.set_dirty(frame as usize, false);
        self.change(frame, |frame| frame.id = NO_NODE);
        let bucket = self.bucket(id);
        if self.buckets[bucket] == frame {
            self.buckets[bucket] = next;
        } else {
            let mut at = self.buckets[bucket];
            while at != NONE {
                if self.at(at).next() == frame {
                    self.change(at, |frame| frame.set_next(next));
                    break;
                }
                at = self.at(at).next();
            }
        }
        self.unlink(frame);
        self.link_oldest(frame);
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
        if let Some([frame]) = self.frames.get_mut(frame) {
            let was_dirty = frame.is_dirty();
            frame.mark(DIRTY, is_dirty);
            self.dirty_frames = self.dirty_frames + u32::from(is_dirty) - u32::from(was_dirty);
        }
    }

    /// Nodes that were changed.
    pub(super) const fn dirty_frames(&self) -> u32 {
        self.dirty_frames
    }

    #[inline]
    pub(super) fn node(&self, frame: usize) -> &[u8] {
        self.bytes.get(frame).unwrap_or_default()
    }

    #[inline]
    pub(super) fn node_mut(&mut self, frame: usize) -> &mut [u8] {
        self.bytes.get_mut(frame).unwrap_or_default()
    }

    /// Two nodes at once; they are in different frames.
    pub(super) fn two_mut(&mut self, one: usize, other: usize) -> (&mut [u8], &mut [u8]) {
        debug_assert_ne!(one, other, "a node is no neighbour of its own");
        self.bytes.two_mut(one, other).unwrap_or_default()
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
        self.change(frame, |frame| (frame.newer, frame.older) = (NONE, newest));
        match newest {
            NONE => self.oldest = frame,
            newest => self.change(newest, |newest| newest.newer = frame),
        }
        self.newest = frame;
        self.fit_tail();
    }

    /// Makes `frame`, which is in no list, the one used longest ago.
    fn link_oldest(&mut self, frame: u32) {
        let (oldest, in_tail) = (self.oldest, self.tail_wanted > 0);
        self.change(frame, |frame| {
            (frame.newer, frame.older) = (oldest, NONE);
            frame.mark(IN_TAIL, in_tail);
        });
        match oldest {
            NONE => self.newest = frame,
            oldest => self.change(oldest, |oldest| oldest.older = frame),
        }
        self.oldest = frame;
        self.tail += usize::from(in_tail);
        if in_tail && self.border == NONE {
            self.border = frame;
        }
        self.fit_tail();
    }

    fn unlink(&mut self, frame: u32) {
        let Frame { newer, older, .. } = *self.at(frame);
        let in_tail = self.at(frame).in_tail();
        match newer {
            NONE => self.newest = older,
            newer => self.change(newer, |newer| newer.older = older),
        }
        match older {
            NONE => self.oldest = newer,
            older => self.change(older, |older| older.newer = newer),
        }
        if in_tail {
            self.change(frame, |frame| frame.mark(IN_TAIL, false));
            self.tail -= 1;
            if self.border == frame {
                self.border = older;
            }
        }
    }

    /// Gives the tail its part of the frames that there are.
    fn size_tail(&mut self) {
        self.tail_wanted = if self.is_shared { (self.frames.len() / TAIL).max(1) } else { 0 };
        self.fit_tail();
    }

    fn fit_tail(&mut self) {
        while self.tail > self.tail_wanted {
            let border = self.border;
            self.border = self.at(border).older;
            self.change(border, |frame| frame.mark(IN_TAIL, false));
            self.tail -= 1;
        }
        while self.tail < self.tail_wanted {
            let next = if self.border == NONE { self.oldest } else { self.at(self.border).newer };
            if next == NONE {
                break;
            }
            self.change(next, |frame| frame.mark(IN_TAIL, true));
            self.border = next;
            self.tail += 1;
        }
    }
}

#[cfg(test)]
mod tests;
