//! The page cache: frames of one size, found by page, given up in the order of their last use.
//!
//! All memory is taken when the cache is made, so that a budget holds from the first page on:
//! see [`Cache::bytes_for`]. Nothing is allocated later.
//!
//! Invariant: the last `n` different pages that were touched are all in the cache, as long as it
//! has `n` frames or more. So an operation that holds three pages at once needs three frames and
//! no pins.

use alloc::boxed::Box;
use alloc::vec;
use alloc::vec::Vec;

use crate::LogicalPage;

/// No frame, or no page.
const NONE: u32 = u32::MAX;

/// One frame's place in the table.
#[derive(Clone, Copy, Debug)]
struct Frame {
    page: u32,
    newer: u32,
    older: u32,
    chain: u32,
    /// The checksum of the page on the device, if that is known and counts.
    on_device: u32,
    is_on_device: bool,
    dirty: bool,
}

const EMPTY: Frame = Frame {
    page: NONE,
    newer: NONE,
    older: NONE,
    chain: NONE,
    on_device: 0,
    is_on_device: false,
    dirty: false,
};

/// A cache of pages with their last-use order.
pub(crate) struct Cache {
    page_bytes: usize,
    /// Frame 0 begins at this byte of the slab, for the alignment that the disk wants.
    start: usize,
    slab: Vec<u8>,
    frames: Box<[Frame]>,
    used: u32,
    heads: Box<[u32]>,
    newest: u32,
    oldest: u32,
    /// Frames of dirty pages in the order of their pages, while all are written back.
    order: Vec<u32>,
}

/// What the tables take for each frame, in bytes: the frame, its place in `order`, and at most two
/// heads of chains.
const TABLE_BYTES_PER_FRAME: usize = size_of::<Frame>() + 4 + 8;

impl Cache {
    /// The bytes that a cache of `frames` frames takes.
    pub(crate) fn bytes_for(frames: u32, page_bytes: u32, alignment: u32) -> u64 {
        let frame = u64::from(page_bytes) + TABLE_BYTES_PER_FRAME as u64;
        u64::from(frames) * frame + u64::from(alignment - 1)
    }

    /// The most frames that fit `bytes` bytes.
    pub(crate) fn frames_in(bytes: u64, page_bytes: u32, alignment: u32) -> u32 {
        let frame = u64::from(page_bytes) + TABLE_BYTES_PER_FRAME as u64;
        let frames = bytes.saturating_sub(u64::from(alignment - 1)) / frame;
        u32::try_from(frames).unwrap_or(NONE - 1).min(NONE - 1)
    }

    /// An empty cache of `frames` frames, the first of which is aligned to `alignment` bytes.
    pub(crate) fn new(frames: u32, page_bytes: u32, alignment: u32) -> Self {
        let count = frames as usize;
        let slab = vec![0; count * page_bytes as usize + alignment as usize - 1];
        let start = slab.as_ptr().align_offset(alignment as usize).min(alignment as usize - 1);
        let heads = count.next_power_of_two();
        Cache {
            page_bytes: page_bytes as usize,
            start,
            slab,
            frames: vec![EMPTY; count].into_boxed_slice(),
            used: 0,
            heads: vec![NONE; heads].into_boxed_slice(),
            newest: NONE,
            oldest: NONE,
            order: Vec::with_capacity(count),
        }
    }

    #[inline]
    fn chain_of(&self, page: u32) -> usize {
        // Multiplying by the golden ratio spreads neighbouring pages over the chains.
        (page.wrapping_mul(0x9E37_79B9) >> 7) as usize & (self.heads.len() - 1)
    }

    /// The frame that holds `page`, without touching it.
    #[inline]
    pub(crate) fn peek(&self, page: LogicalPage) -> Option<u32> {
        let mut frame = self.heads[self.chain_of(page.0)];
        while frame != NONE {
            let entry = &self.frames[frame as usize];
            if entry.page == page.0 {
                return Some(frame);
            }
            frame = entry.chain;
        }
        None
    }

    /// The frame that holds `page`, which becomes the newest.
    #[inline]
    pub(crate) fn touch(&mut self, page: LogicalPage) -> Option<u32> {
        let frame = self.peek(page)?;
        if self.newest != frame {
            self.unlink(frame);
            self.link_newest(frame);
        }
        Some(frame)
    }

    fn unlink(&mut self, frame: u32) {
        let Frame { newer, older, .. } = self.frames[frame as usize];
        match newer {
            NONE => self.newest = older,
            newer => self.frames[newer as usize].older = older,
        }
        match older {
            NONE => self.oldest = newer,
            older => self.frames[older as usize].newer = newer,
        }
    }

    fn link_newest(&mut self, frame: u32) {
        let older = self.newest;
        self.frames[frame as usize].newer = NONE;
        self.frames[frame as usize].older = older;
        match older {
            NONE => self.oldest = frame,
            older => self.frames[older as usize].newer = frame,
        }
        self.newest = frame;
    }

    /// The page that must leave before another can enter, if the cache is full, and whether it is
    /// dirty.
    pub(crate) fn victim(&self) -> Option<(LogicalPage, bool)> {
        if (self.used as usize) < self.frames.len() {
            return None;
        }
        let frame = self.frames.get(self.oldest as usize)?;
        (frame.page != NONE).then_some((LogicalPage(frame.page), frame.dirty))
    }

    /// Makes the oldest clean page the next to leave; false if there is none but the two newest,
    /// which an operation may hold.
    pub(crate) fn let_clean_leave(&mut self) -> bool {
        let second = self.frames.get(self.newest as usize).map_or(NONE, |newest| newest.older);
        let mut frame = self.oldest;
        while frame != self.newest && frame != second && frame != NONE {
            let Frame { newer, dirty, .. } = self.frames[frame as usize];
            if !dirty {
                self.unlink(frame);
                self.link_oldest(frame);
                return true;
            }
            frame = newer;
        }
        false
    }

    fn link_oldest(&mut self, frame: u32) {
        let newer = self.oldest;
        self.frames[frame as usize].newer = newer;
        self.frames[frame as usize].older = NONE;
        match newer {
            NONE => self.newest = frame,
            newer => self.frames[newer as usize].older = frame,
        }
        self.oldest = frame;
    }

    /// Gives a frame to `page`, which is not in the cache; the oldest page leaves if it is full.
    /// The frame's bytes are whatever they were.
    pub(crate) fn enter(&mut self, page: LogicalPage) -> u32 {
        let frame = if (self.used as usize) < self.frames.len() {
            self.used += 1;
            self.used - 1
        } else {
            let frame = self.oldest;
            self.unlink(frame);
            self.unchain(frame);
            frame
        };
        let chain = self.chain_of(page.0);
        let entry = &mut self.frames[frame as usize];
        entry.page = page.0;
        (entry.dirty, entry.is_on_device) = (false, false);
        entry.chain = self.heads[chain];
        self.heads[chain] = frame;
        self.link_newest(frame);
        frame
    }

    fn unchain(&mut self, frame: u32) {
        let Frame { page, chain: next, .. } = self.frames[frame as usize];
        if page == NONE {
            return;
        }
        let chain = self.chain_of(page);
        if self.heads[chain] == frame {
            self.heads[chain] = next;
            return;
        }
        let mut at = self.heads[chain];
        while at != NONE {
            let following = self.frames[at as usize].chain;
            if following == frame {
                self.frames[at as usize].chain = next;
                return;
            }
            at = following;
        }
    }

    /// Forgets `page` without writing it; its frame is the next to be given up.
    pub(crate) fn forget(&mut self, page: LogicalPage) {
        let Some(frame) = self.peek(page) else {
            return;
        };
        self.unchain(frame);
        self.unlink(frame);
        let entry = &mut self.frames[frame as usize];
        entry.page = NONE;
        entry.dirty = false;
        self.link_oldest(frame);
    }

    /// Forgets every page without writing it.
    pub(crate) fn forget_all(&mut self) {
        self.frames.fill(EMPTY);
        self.heads.fill(NONE);
        self.used = 0;
        self.newest = NONE;
        self.oldest = NONE;
        self.order.clear();
    }

    /// The bytes of all frames, one behind the other, of an empty cache.
    pub(crate) fn spare_frames(&mut self) -> &mut [u8] {
        debug_assert_eq!(self.used, 0, "only an empty cache has spare frames for certain");
        &mut self.slab[self.start..self.start + self.frames.len() * self.page_bytes]
    }

    /// True if the page in `frame` has to be written back.
    #[inline]
    pub(crate) fn is_dirty(&self, frame: u32) -> bool {
        self.frames[frame as usize].dirty
    }

    #[inline]
    fn range(&self, frame: u32) -> core::ops::Range<usize> {
        let start = self.start + frame as usize * self.page_bytes;
        start..start + self.page_bytes
    }

    /// The bytes of a frame.
    #[inline]
    pub(crate) fn bytes(&self, frame: u32) -> &[u8] {
        &self.slab[self.range(frame)]
    }

    /// The bytes of a frame, to be changed.
    #[inline]
    pub(crate) fn bytes_mut(&mut self, frame: u32) -> &mut [u8] {
        let range = self.range(frame);
        &mut self.slab[range]
    }

    /// The bytes of two different frames, to be changed; `None` if they are the same.
    pub(crate) fn two_mut(&mut self, one: u32, other: u32) -> Option<(&mut [u8], &mut [u8])> {
        let ranges = [self.range(one), self.range(other)];
        let [one, other] = self.slab.get_disjoint_mut(ranges).ok()?;
        Some((one, other))
    }

    /// Says whether the page in `frame` has to be written back.
    #[inline]
    pub(crate) fn set_dirty(&mut self, frame: u32, dirty: bool) {
        self.frames[frame as usize].dirty = dirty;
    }

    /// The checksum that the page in `frame` has on the device, as far as that was said.
    pub(crate) fn on_device(&self, frame: u32) -> Option<u32> {
        let Frame { on_device, is_on_device, .. } = self.frames[frame as usize];
        is_on_device.then_some(on_device)
    }

    /// Says what checksum the page in `frame` has on the device.
    pub(crate) fn set_on_device(&mut self, frame: u32, checksum: Option<u32>) {
        let entry = &mut self.frames[frame as usize];
        (entry.on_device, entry.is_on_device) = (checksum.unwrap_or(0), checksum.is_some());
    }

    /// Sorts the dirty pages; [`Cache::dirty_page`] then gives them one by one.
    pub(crate) fn sort_dirty(&mut self) {
        self.order.clear();
        let frames = &self.frames;
        let dirty = (0..self.used).filter(|frame| frames[*frame as usize].dirty);
        self.order.extend(dirty);
        self.order.sort_unstable_by_key(|frame| frames[*frame as usize].page);
    }

    /// The dirty page at `place` of those sorted last, if it still is dirty; `None` at the end.
    pub(crate) fn dirty_page(&self, place: usize) -> Option<Option<LogicalPage>> {
        let frame = &self.frames[*self.order.get(place)? as usize];
        Some(frame.dirty.then_some(LogicalPage(frame.page)))
    }

    /// The bytes that the cache takes.
    pub(crate) fn memory(&self) -> u64 {
        let tables = self.frames.len() * size_of::<Frame>()
            + self.heads.len() * 4
            + self.order.capacity() * 4;
        (self.slab.len() + tables) as u64
    }

    /// How many frames there are.
    pub(crate) fn frames(&self) -> u32 {
        self.frames.len() as u32
    }
}

#[cfg(test)]
mod tests {
    use super::Cache;
    use crate::LogicalPage;
    use alloc::vec::Vec;

    #[test]
    fn the_page_used_longest_ago_leaves_first() {
        let mut cache = Cache::new(3, 64, 1);
        for page in [1, 2, 3] {
            assert_eq!(cache.victim(), None);
            cache.enter(LogicalPage(page));
        }
        cache.touch(LogicalPage(1)).unwrap();
        assert_eq!(cache.victim(), Some((LogicalPage(2), false)));
        cache.enter(LogicalPage(4));
        assert!(cache.peek(LogicalPage(2)).is_none());
        assert_eq!(cache.victim(), Some((LogicalPage(3), false)));
    }

    #[test]
    fn the_cache_agrees_with_a_plain_list() {
        let mut cache = Cache::new(7, 64, 1);
        let mut model: Vec<u32> = Vec::new();
        let mut random = 1u32;
        for _ in 0..100_000 {
            random = random.wrapping_mul(1_103_515_245).wrapping_add(12_345);
            let page = (random >> 16) % 20;
            let present = model.iter().position(|known| *known == page);
            if random.is_multiple_of(11) {
                cache.forget(LogicalPage(page));
                model.retain(|known| *known != page);
                continue;
            }
            assert_eq!(cache.touch(LogicalPage(page)).is_some(), present.is_some());
            match present {
                Some(place) => {
                    model.remove(place);
                }
                None => {
                    if model.len() == 7 {
                        let (victim, _) = cache.victim().unwrap();
                        assert_eq!(victim.0, model[0]);
                        model.remove(0);
                    }
                    let frame = cache.enter(LogicalPage(page));
                    cache.bytes_mut(frame)[0] = page as u8;
                }
            }
            model.push(page);
            let frame = cache.peek(LogicalPage(page)).unwrap();
            assert_eq!(cache.bytes(frame)[0], page as u8);
        }
    }

    #[test]
    fn the_memory_taken_is_at_most_what_was_promised() {
        for frames in [1, 3, 4, 5, 31, 64, 1000] {
            for alignment in [1, 4096] {
                let cache = Cache::new(frames, 512, alignment);
                let promised = Cache::bytes_for(frames, 512, alignment);
                assert!(cache.memory() <= promised, "{frames} frames");
                assert_eq!(Cache::frames_in(promised, 512, alignment), frames);
            }
        }
    }
}
