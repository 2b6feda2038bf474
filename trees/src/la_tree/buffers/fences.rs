//! What is known of fragments on a disk without reading them: the keys between which they lie, a
//! filter of these keys, and the fragment before each. So a lookup reads those that may have its
//! key, and hardly any others.
//!
//! It is bounded memory: of fragments that find no place here, or stand from before the tree was
//! opened, nothing is known until they are read.
//!
//! Invariant: what is known of a link is of the fragment that was written there last.

use alloc::boxed::Box;
use alloc::vec;
use core::ops::RangeInclusive;

use super::super::layout::Link;
use super::super::stream::{Damage, Form, hash, prefix};

/// Memory of which no part is for this: with less, fragments are few.
const MEMORY_WITHOUT: u64 = 256 << 10;

/// Places at which a fragment may be found.
const PROBES: usize = 8;

/// The filter of a fragment takes one byte for so many of its page: some nine bits an entry where
/// these are short.
const BYTES_A_FILTER_BYTE: u32 = 16;

/// Bits of a filter that a key sets.
const KEY_BITS: u32 = 4;

/// What is known of a fragment, its filter aside.
#[derive(Clone, Copy, Debug)]
struct Fence {
    link: Link,
    before: Link,
    /// Prefixes of its least and greatest key.
    low: u64,
    high: u64,
}

const NONE: Fence = Fence { link: Link::NONE, before: Link::NONE, low: 0, high: 0 };

/// The keys that are wanted of fragments.
#[derive(Clone, Debug)]
pub(in super::super) struct Wanted {
    /// Their prefixes.
    pub(in super::super) prefixes: RangeInclusive<u64>,
    /// The hash of the only one.
    hash: Option<u64>,
}

impl Wanted {
    /// Only `key`.
    pub(super) fn one(key: &[u8]) -> Self {
        Wanted { prefixes: prefix(key)..=prefix(key), hash: Some(hash(key)) }
    }

    /// All keys with such prefixes.
    pub(in super::super) const fn all(prefixes: RangeInclusive<u64>) -> Self {
        Wanted { prefixes, hash: None }
    }

    /// True if more keys than one may be wanted.
    pub(super) const fn is_range(&self) -> bool {
        self.hash.is_none()
    }
}

/// What is known of fragments.
#[derive(Debug)]
pub(in super::super) struct Fences {
    fences: Box<[Fence]>,
    /// Of each fence, `filter_words` words.
    filters: Box<[u64]>,
    filter_words: usize,
}

impl Fences {
    /// Fragments that may be known of in a budget of `memory_bytes`: as many as there are pages of
    /// `page_bytes` bytes, or 512, in further memory.
    pub(in super::super) fn most(memory_bytes: u64, page_bytes: u32) -> usize {
        let further = memory_bytes.saturating_sub(MEMORY_WITHOUT);
        let most = (further / u64::from(page_bytes.max(512))) as usize;
        if most < PROBES { 0 } else { most }
    }

    /// Words of a filter of a fragment in `page_bytes` bytes.
    const fn filter_words(page_bytes: u32) -> usize {
        page_bytes.div_ceil(8 * BYTES_A_FILTER_BYTE) as usize
    }

    /// Bytes of the memory budget for so many in pages of `page_bytes` bytes.
    pub(in super::super) const fn bytes_of(most: usize, page_bytes: u32) -> usize {
        most * (size_of::<Fence>() + 8 * Self::filter_words(page_bytes))
    }

    pub(super) fn new(most: usize, page_bytes: u32) -> Self {
        let filter_words = Self::filter_words(page_bytes);
        Fences {
            fences: vec![NONE; most].into_boxed_slice(),
            filters: vec![0; most * filter_words].into_boxed_slice(),
            filter_words,
        }
    }

    /// True if anything is ever known.
    pub(super) const fn is_used(&self) -> bool {
        !self.fences.is_empty()
    }

    /// Forgets everything.
    pub(super) fn clear(&mut self) {
        self.fences.fill(NONE);
    }

    /// Forgets the fragment at `link`, which is no buffer's any more.
    pub(super) fn forget(&mut self, link: Link) {
        if let Some(place) = self.place(link) {
            self.fences[place] = NONE;
        }
    }

    /// The places where the fragment at `link` may be found.
    fn places(&self, link: Link) -> impl Iterator<Item = usize> + use<> {
        let number = u64::from(link.page.0) << 16 | u64::from(link.offset);
        let hash = number.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 32;
        let length = self.fences.len();
        (0..PROBES.min(length)).map(move |probe| (hash as usize + probe) % length)
    }

    fn place(&self, link: Link) -> Option<usize> {
        self.places(link).find(|place| self.fences[*place].link == link)
    }

    fn get(&self, link: Link) -> Option<&Fence> {
        self.place(link).map(|place| &self.fences[place])
    }

    /// Notes what a fragment, the entries of which are `stream`, has; older knowledge may have to
    /// give way.
    pub(super) fn note(
        &mut self,
        (link, before): (Link, Option<Link>),
        form: Form,
        stream: &[u8],
    ) -> Result<(), Damage> {
        let is_there =
            |fence: &Fence| (fence.link.page, fence.link.offset) == (link.page, link.offset);
        let found = self.places(link).find(|place| is_there(&self.fences[*place]));
        let free = || self.places(link).find(|place| self.fences[*place].link == Link::NONE);
        let Some(place) = found.or_else(free).or_else(|| self.places(link).next()) else {
            return Ok(());
        };
        self.fences[place] = NONE;
        let words = place * self.filter_words..(place + 1) * self.filter_words;
        let filter = self.filters.get_mut(words).unwrap_or_default();
        filter.fill(0);
        let (mut reader, mut low, mut high) = (form.reader(stream), u64::MAX, 0);
        while let Some((entry, _)) = reader.next()? {
            let key = prefix(entry.key);
            (low, high) = (low.min(key), high.max(key));
            bits(filter.len(), hash(entry.key)).for_each(|(word, bit)| filter[word] |= bit);
        }
        let before = before.unwrap_or(Link::NONE);
        self.fences[place] = Fence { link, before, low, high };
        Ok(())
    }

    /// True if something is known of the fragment at `link`.
    pub(super) fn is_known(&self, link: Link) -> bool {
        self.get(link).is_some()
    }

    /// The fragment before the one at `link`, if that is known to have none of the keys `wanted`.
    pub(super) fn passed(&self, link: Link, wanted: &Wanted) -> Option<Option<Link>> {
        let place = self.place(link)?;
        let (fence, keys) = (&self.fences[place], &wanted.prefixes);
        let is_passed = fence.high < *keys.start()
            || *keys.end() < fence.low
            || wanted.hash.is_some_and(|hash| !self.may_have(place, hash));
        is_passed.then_some(fence.before.known())
    }

    /// False if the fragment at `place` is known to have no key with this hash.
    fn may_have(&self, place: usize, hash: u64) -> bool {
        let words = place * self.filter_words..(place + 1) * self.filter_words;
        let filter = self.filters.get(words).unwrap_or_default();
        bits(filter.len(), hash).all(|(word, bit)| filter[word] & bit != 0)
    }

    /// The greatest key of the fragment at `link`, and the fragment before it, if they are known.
    pub(super) fn end(&self, link: Link) -> Option<(u64, Option<Link>)> {
        self.get(link).map(|fence| (fence.high, fence.before.known()))
    }
}

/// The bits of a key with this hash in a filter of so many words.
fn bits(words: usize, hash: u64) -> impl Iterator<Item = (usize, u64)> {
    (0..KEY_BITS).map(move |number| {
        let part = hash >> (16 * number) & 0xFFFF;
        let bit = (part * (64 * words as u64)) >> 16;
        ((bit / 64) as usize, 1 << (bit % 64))
    })
}

#[cfg(test)]
mod tests;
