//! The page cache: frames for the pages of a page file, and which of them are to be written back.
//!
//! Invariant: all memory is taken when the cache is made: see [`Cache::bytes_for`].

use alloc::vec::Vec;

use crate::LogicalPage;
use crate::frames::Frames;

/// What there is to know about the page in a frame.
#[derive(Clone, Copy, Debug, Default)]
struct State {
    /// The checksum of the page on the device, if that is known and counts.
    on_device: u32,
    is_on_device: bool,
    is_dirty: bool,
}

/// A cache of pages with their last-use order.
pub(crate) struct Cache {
    frames: Frames<State>,
    /// Frames of dirty pages in the order of their pages, while all are written back.
    order: Vec<u32>,
}

/// What the tables take for each frame, in bytes: also its place in `order`.
const TABLE_BYTES_PER_FRAME: usize = Frames::<State>::TABLE_BYTES + 4;

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
        u32::try_from(frames).unwrap_or(u32::MAX - 1).min(u32::MAX - 1)
    }

    /// An empty cache of `frames` frames, the first of which is aligned to `alignment` bytes.
    pub(crate) fn new(frames: u32, page_bytes: u32, alignment: u32) -> Self {
        Cache {
            frames: Frames::new(frames, page_bytes as usize, alignment as usize),
            order: Vec::with_capacity(frames as usize),
        }
    }

    /// The frame that holds `page`, without touching it.
    #[inline]
    pub(crate) fn peek(&self, page: LogicalPage) -> Option<u32> {
        self.frames.find(page.0)
    }

    /// The frame that holds `page`, which becomes the newest.
    #[inline]
    pub(crate) fn touch(&mut self, page: LogicalPage) -> Option<u32> {
        self.frames.touch(page.0)
    }

    /// The page that must leave before another can enter, if the cache is full, and whether it is
    /// dirty.
    pub(crate) fn victim(&self) -> Option<(LogicalPage, bool)> {
        let frame = self.frames.victim()?;
        Some((LogicalPage(self.frames.key(frame)?), self.is_dirty(frame)))
    }

    /// Makes `page`, if it is here, the next to leave.
    pub(crate) fn let_leave(&mut self, page: LogicalPage) {
        if let Some(frame) = self.peek(page) {
            self.frames.make_oldest(frame);
        }
    }

    /// Makes the page in `frame` the next to leave.
    pub(crate) fn make_oldest(&mut self, frame: u32) {
        self.frames.make_oldest(frame);
    }

    /// Of the `most` pages that must leave next, if the cache is full, those that are dirty.
    pub(crate) fn leaving(&self, most: usize) -> impl Iterator<Item = (LogicalPage, &[u8])> {
        let most = if self.frames.victim().is_some() { most } else { 0 };
        let dirty = |frame: &u32| self.is_dirty(*frame);
        let next = self.frames.oldest_first().take(most).filter(dirty);
        next.filter_map(|frame| {
            Some((LogicalPage(self.frames.key(frame)?), self.frames.bytes(frame)))
        })
    }

    /// Makes the oldest clean page the next to leave; false if there is none but the two newest,
    /// which an operation may hold.
    pub(crate) fn let_clean_leave(&mut self) -> bool {
        let older = self.frames.used().saturating_sub(2) as usize;
        let clean = self.frames.oldest_first().take(older).find(|frame| !self.is_dirty(*frame));
        if let Some(frame) = clean {
            self.frames.make_oldest(frame);
        }
        clean.is_some()
    }

    /// Gives a frame to `page`, which is not in the cache; the oldest page leaves if it is full.
    /// The frame's bytes are whatever they were.
    pub(crate) fn enter(&mut self, page: LogicalPage) -> u32 {
        self.frames.enter(page.0)
    }

    /// Forgets `page` without writing it; its frame is the next to be given up.
    pub(crate) fn forget(&mut self, page: LogicalPage) {
        if let Some(frame) = self.peek(page) {
            self.frames.forget(frame);
        }
    }

    /// Forgets every page without writing it.
    pub(crate) fn forget_all(&mut self) {
        self.frames.forget_all();
        self.order.clear();
    }

    /// The bytes of all frames, one behind the other, of an empty cache.
    pub(crate) fn spare_frames(&mut self) -> &mut [u8] {
        debug_assert_eq!(self.frames.used(), 0, "only an empty cache has spare frames for certain");
        self.frames.all_bytes()
    }

    /// True if the page in `frame` has to be written back.
    #[inline]
    pub(crate) fn is_dirty(&self, frame: u32) -> bool {
        self.frames.state(frame).is_dirty
    }

    /// The bytes of a frame.
    #[inline]
    pub(crate) fn bytes(&self, frame: u32) -> &[u8] {
        self.frames.bytes(frame)
    }

    /// The bytes of a frame, to be changed.
    #[inline]
    pub(crate) fn bytes_mut(&mut self, frame: u32) -> &mut [u8] {
        self.frames.bytes_mut(frame)
    }

    /// The bytes of two different frames, to be changed; `None` if they are the same.
    pub(crate) fn two_mut(&mut self, one: u32, other: u32) -> Option<(&mut [u8], &mut [u8])> {
        self.frames.two_mut(one, other)
    }

    /// The bytes of several frames, in ascending order, to be changed.
    pub(crate) fn several_mut(
        &mut self,
        frames: impl Iterator<Item = u32>,
    ) -> impl Iterator<Item = &mut [u8]> {
        self.frames.several_mut(frames)
    }

    /// Says whether the page in `frame` has to be written back.
    #[inline]
    pub(crate) fn set_dirty(&mut self, frame: u32, is_dirty: bool) {
        self.frames.state_mut(frame).is_dirty = is_dirty;
    }

    /// The checksum that the page in `frame` has on the device, as far as that was said.
    pub(crate) fn on_device(&self, frame: u32) -> Option<u32> {
        let State { on_device, is_on_device, .. } = *self.frames.state(frame);
        is_on_device.then_some(on_device)
    }

    /// Says what checksum the page in `frame` has on the device.
    pub(crate) fn set_on_device(&mut self, frame: u32, checksum: Option<u32>) {
        let state = self.frames.state_mut(frame);
        (state.on_device, state.is_on_device) = (checksum.unwrap_or(0), checksum.is_some());
    }

    /// Sorts the dirty pages; [`Cache::dirty_page`] then gives them one by one.
    pub(crate) fn sort_dirty(&mut self) {
        self.order.clear();
        let frames = &self.frames;
        let dirty = (0..frames.used()).filter(|frame| frames.state(*frame).is_dirty);
        self.order.extend(dirty);
        self.order.sort_unstable_by_key(|frame| frames.key(*frame));
    }

    /// The dirty page at `place` of those sorted last, if it still is dirty; `None` at the end.
    pub(crate) fn dirty_page(&self, place: usize) -> Option<Option<LogicalPage>> {
        let frame = *self.order.get(place)?;
        Some(self.frames.key(frame).filter(|_| self.is_dirty(frame)).map(LogicalPage))
    }

    /// The bytes that the cache takes.
    pub(crate) fn memory(&self) -> u64 {
        self.frames.memory() + 4 * self.order.capacity() as u64
    }

    /// How many frames there are.
    pub(crate) fn frames(&self) -> u32 {
        self.frames.len()
    }
}

#[cfg(test)]
mod tests {
    use super::Cache;
    use crate::LogicalPage;

    #[test]
    fn a_clean_page_leaves_before_dirty_ones_but_for_the_two_newest() {
        let mut cache = Cache::new(4, 64, 1);
        for page in [1, 2, 3, 4] {
            let frame = cache.enter(LogicalPage(page));
            cache.set_dirty(frame, page == 1);
        }
        assert!(cache.let_clean_leave());
        assert_eq!(cache.victim(), Some((LogicalPage(2), false)));
        let frame = cache.peek(LogicalPage(2)).unwrap();
        cache.set_dirty(frame, true);
        assert!(!cache.let_clean_leave(), "an operation may hold the two newest");
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
