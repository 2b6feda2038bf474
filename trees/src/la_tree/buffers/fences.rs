//! What is known of fragments on a disk without reading them: the keys between which they lie, and
//! the fragment before each. So a lookup reads those that may have its key, and no others.
//!
//! It is bounded memory: of fragments that find no place here, or stand from before the tree was
//! opened, nothing is known until they are read.
//!
//! Invariant: what is known of a link is of the fragment that was written there last.

use alloc::boxed::Box;
use alloc::vec;
use core::ops::RangeInclusive;

use super::super::layout::Link;

/// Memory of which no part is for this: with less, fragments are few.
const MEMORY_WITHOUT: u64 = 256 << 10;

/// Places at which a fragment may be found.
const PROBES: usize = 8;

/// What is known of a fragment.
#[derive(Clone, Copy, Debug)]
struct Fence {
    link: Link,
    before: Link,
    /// Prefixes of its least and greatest key.
    low: u64,
    high: u64,
}

const NONE: Fence = Fence { link: Link::NONE, before: Link::NONE, low: 0, high: 0 };

/// What is known of fragments.
#[derive(Debug)]
pub(in super::super) struct Fences {
    fences: Box<[Fence]>,
}

impl Fences {
    /// Fragments that may be known of in a budget of `memory_bytes`: as many as there are pages of
    /// `page_bytes` bytes, or 512, in further memory.
    pub(in super::super) fn most(memory_bytes: u64, page_bytes: u32) -> usize {
        let further = memory_bytes.saturating_sub(MEMORY_WITHOUT);
        let most = (further / u64::from(page_bytes.max(512))) as usize;
        if most < PROBES { 0 } else { most }
    }

    /// Bytes of the memory budget for so many.
    pub(in super::super) const fn bytes_of(most: usize) -> usize {
        most * size_of::<Fence>()
    }

    pub(super) fn new(most: usize) -> Self {
        Fences { fences: vec![NONE; most].into_boxed_slice() }
    }

    /// True if anything is ever known.
    pub(super) const fn is_used(&self) -> bool {
        !self.fences.is_empty()
    }

    /// Forgets everything.
    pub(super) fn clear(&mut self) {
        self.fences.fill(NONE);
    }

    /// The places where the fragment at `link` may be found.
    fn places(&self, link: Link) -> impl Iterator<Item = usize> + use<> {
        let number = u64::from(link.page.0) << 16 | u64::from(link.offset);
        let hash = number.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 32;
        let length = self.fences.len();
        (0..PROBES.min(length)).map(move |probe| (hash as usize + probe) % length)
    }

    fn get(&self, link: Link) -> Option<&Fence> {
        self.places(link).map(|place| &self.fences[place]).find(|fence| fence.link == link)
    }

    /// Notes what a fragment has; older knowledge may have to give way.
    pub(super) fn note(&mut self, link: Link, before: Option<Link>, keys: RangeInclusive<u64>) {
        let is_there =
            |fence: &Fence| (fence.link.page, fence.link.offset) == (link.page, link.offset);
        let found = self.places(link).find(|place| is_there(&self.fences[*place]));
        let free = || self.places(link).find(|place| self.fences[*place].link == Link::NONE);
        let place = found.or_else(free).or_else(|| self.places(link).next());
        if let Some(place) = place {
            let before = before.unwrap_or(Link::NONE);
            let (low, high) = keys.into_inner();
            self.fences[place] = Fence { link, before, low, high };
        }
    }

    /// True if something is known of the fragment at `link`.
    pub(super) fn is_known(&self, link: Link) -> bool {
        self.get(link).is_some()
    }

    /// The fragment before the one at `link`, if that is known to have none of `keys`.
    pub(super) fn passed(&self, link: Link, keys: &RangeInclusive<u64>) -> Option<Option<Link>> {
        let fence = self.get(link)?;
        let is_passed = fence.high < *keys.start() || *keys.end() < fence.low;
        is_passed.then_some(fence.before.known())
    }

    /// The greatest key of the fragment at `link`, and the fragment before it, if they are known.
    pub(super) fn end(&self, link: Link) -> Option<(u64, Option<Link>)> {
        self.get(link).map(|fence| (fence.high, fence.before.known()))
    }
}

/// The first bytes of a key, in the same order.
pub(in super::super) fn prefix(key: &[u8]) -> u64 {
    if let Some(first) = key.first_chunk() {
        return u64::from_be_bytes(*first);
    }
    let mut bytes = [0; 8];
    bytes[..key.len()].copy_from_slice(key);
    u64::from_be_bytes(bytes)
}

#[cfg(test)]
mod tests {
    use device::Page;

    use super::*;

    const fn link(page: u32) -> Link {
        Link { page: Page(page), offset: 8, bytes: 100 }
    }

    #[test]
    fn a_fragment_is_passed_by_if_its_keys_are_others() {
        let mut fences = Fences::new(64);
        fences.note(link(3), Some(link(2)), 10..=20);
        assert_eq!(fences.passed(link(3), &(21..=30)), Some(Some(link(2))));
        assert_eq!(fences.passed(link(3), &(0..=9)), Some(Some(link(2))));
        assert_eq!(fences.passed(link(3), &(20..=30)), None);
        assert_eq!(fences.passed(link(2), &(0..=9)), None);
    }

    #[test]
    fn what_was_written_last_at_a_link_is_what_is_known() {
        let mut fences = Fences::new(8);
        for page in 0..100 {
            fences.note(link(page % 10), None, 0..=u64::from(page));
            assert_eq!(fences.end(link(page % 10)), Some((u64::from(page), None)));
        }
        let shorter = Link { bytes: 50, ..link(9) };
        fences.note(shorter, None, 5..=5);
        assert!(!fences.is_known(link(9)) && fences.is_known(shorter));
        fences.clear();
        assert!(!fences.is_known(shorter));
    }
}
