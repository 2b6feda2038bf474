//! The free pages of a page file's runs: ranges in memory, in the order of their addresses.
//!
//! Invariant: no range is empty, and none ends where the next begins.

use alloc::vec;
use alloc::vec::Vec;

use super::{Extent, Reserved};
use crate::{Error, Result};

const IN_USE: Error =
    Error::NotAnIndex { is_ours: true, what: "its manifest names pages of a run twice, or none" };
const NOT_IN_USE: Error =
    Error::NotAnIndex { is_ours: true, what: "it gives back pages of a run that are free" };

/// Ranges of free pages, of so many in all.
pub(super) struct Extents {
    free: Vec<Extent>,
    most: u32,
    /// Pages in `free`.
    pages: u32,
}

impl Extents {
    /// `most` pages, all of them free.
    pub(super) fn new(most: u32) -> Self {
        let free = if most == 0 { vec![] } else { vec![Extent { first: 0, pages: most }] };
        Extents { free, most, pages: most }
    }

    pub(super) const fn pages(&self) -> u32 {
        self.pages
    }

    pub(super) const fn most(&self) -> u32 {
        self.most
    }

    /// How many ranges are free.
    pub(super) fn count(&self) -> usize {
        self.free.len()
    }

    /// The page behind the last one in use.
    pub(super) fn end(&self) -> u32 {
        match self.free.last() {
            Some(last) if last.end() == self.most => last.first,
            _ => self.most,
        }
    }

    /// Takes `pages` pages: one range where there is one, the lowest that is long enough; else the
    /// longest ones.
    pub(super) fn take(&mut self, pages: u32) -> Option<Reserved> {
        if pages > self.pages {
            return None;
        }
        let mut taken = Reserved { extents: Vec::new(), pages };
        let mut left = pages;
        while left > 0 {
            let fits = self.free.iter().position(|range| range.pages >= left);
            let longest = || (0..self.free.len()).max_by_key(|place| self.free[*place].pages);
            let part = self.take_from(fits.or_else(longest)?, left)?;
            taken.extents.push(part);
            left -= part.pages;
        }
        Some(taken)
    }

    /// Takes the first pages of the range at `place`, up to `pages`.
    fn take_from(&mut self, place: usize, pages: u32) -> Option<Extent> {
        let range = self.free.get_mut(place)?;
        let part = Extent { first: range.first, pages: range.pages.min(pages) };
        range.first += part.pages;
        range.pages -= part.pages;
        if range.pages == 0 {
            self.free.remove(place);
        }
        self.pages -= part.pages;
        Some(part)
    }

    /// Free pages below page `end`.
    pub(super) fn free_below(&self, end: u32) -> u32 {
        self.free.iter().map(|range| range.end().min(end).saturating_sub(range.first)).sum()
    }

    /// Takes `pages` pages below page `end`, the lowest ones.
    pub(super) fn take_below(&mut self, pages: u32, end: u32) -> Option<Reserved> {
        if pages > self.free_below(end) {
            return None;
        }
        let mut taken = Reserved { extents: Vec::new(), pages };
        let mut left = pages;
        while left > 0 {
            let part = self.take_from(0, left)?;
            taken.extents.push(part);
            left -= part.pages;
        }
        Some(taken)
    }

    /// Takes just these pages.
    pub(super) fn claim(&mut self, extent: Extent) -> Result<()> {
        let place = self.free.partition_point(|range| range.first <= extent.first);
        let place = place.checked_sub(1).ok_or(IN_USE)?;
        let range = self.free[place];
        let end = extent.first.checked_add(extent.pages).filter(|end| *end <= range.end());
        let end = end.filter(|_| extent.pages > 0).ok_or(IN_USE)?;
        let before = Extent { first: range.first, pages: extent.first - range.first };
        let behind = Extent { first: end, pages: range.end() - end };
        match (before.pages, behind.pages) {
            (0, 0) => drop(self.free.remove(place)),
            (0, _) => self.free[place] = behind,
            (_, 0) => self.free[place] = before,
            _ => {
                self.free[place] = before;
                self.free.insert(place + 1, behind);
            }
        }
        self.pages -= extent.pages;
        Ok(())
    }

    /// Gives these pages back.
    pub(super) fn free(&mut self, extent: Extent) -> Result<()> {
        if extent.pages == 0 {
            return Ok(());
        }
        let place = self.free.partition_point(|range| range.first <= extent.first);
        let end = extent.first.checked_add(extent.pages).filter(|end| *end <= self.most);
        let end = end.ok_or(NOT_IN_USE)?;
        let before = place.checked_sub(1).map(|place| self.free[place].end());
        let behind = self.free.get(place).map(|range| range.first);
        if before.is_some_and(|before| before > extent.first)
            || behind.is_some_and(|behind| behind < end)
        {
            return Err(NOT_IN_USE);
        }
        self.pages += extent.pages;
        match (before == Some(extent.first), behind == Some(end)) {
            (true, true) => {
                let behind = self.free.remove(place);
                self.free[place - 1].pages += extent.pages + behind.pages;
            }
            (true, false) => self.free[place - 1].pages += extent.pages,
            (false, true) => {
                let range = &mut self.free[place];
                (range.first, range.pages) = (extent.first, range.pages + extent.pages);
            }
            (false, false) => self.free.insert(place, extent),
        }
        Ok(())
    }

    pub(super) const fn memory(&self) -> u64 {
        (self.free.capacity() * size_of::<Extent>()) as u64
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec;
    use alloc::vec::Vec;

    use rand::{RngExt, SeedableRng};
    use rand_chacha::ChaCha8Rng;

    use super::{Extent, Extents};

    #[test]
    fn what_is_taken_claimed_and_given_back_is_what_a_plain_table_says() {
        for seed in 0..50 {
            let mut random = ChaCha8Rng::seed_from_u64(seed);
            let (mut extents, mut used) = (Extents::new(200), vec![false; 200]);
            let mut held: Vec<Extent> = Vec::new();
            for _ in 0..300 {
                let pages = random.random_range(1..40);
                match random.random_range(0..3) {
                    0 => match extents.take(pages) {
                        Some(taken) => {
                            assert_eq!(taken.extents.iter().map(|it| it.pages).sum::<u32>(), pages);
                            held.extend(taken.extents);
                        }
                        None => assert!(used.iter().filter(|it| !**it).count() < pages as usize),
                    },
                    1 => {
                        let first = random.random_range(0..210);
                        let extent = Extent { first, pages };
                        let range = first as usize..(first + pages) as usize;
                        let is_free = used.get(range).is_some_and(|it| !it.contains(&true));
                        assert_eq!(extents.claim(extent).is_ok(), is_free, "seed {seed}");
                        held.extend(is_free.then_some(extent));
                    }
                    _ if held.is_empty() => {}
                    _ => {
                        let extent = held.swap_remove(random.random_range(0..held.len()));
                        extents.free(extent).unwrap();
                        assert!(extents.free(extent).is_err(), "seed {seed}");
                    }
                }
                used.fill(false);
                for page in held.iter().flat_map(|it| it.first..it.end()) {
                    assert!(!core::mem::replace(&mut used[page as usize], true), "seed {seed}");
                }
                let free = used.iter().filter(|it| !**it).count();
                assert_eq!(extents.pages() as usize, free);
                let end = used.iter().rposition(|it| *it).map_or(0, |last| last + 1);
                assert_eq!(extents.end() as usize, end, "seed {seed}");
            }
        }
    }

    #[test]
    fn one_range_is_taken_where_there_is_one_that_is_long_enough() {
        let mut extents = Extents::new(100);
        extents.claim(Extent { first: 10, pages: 10 }).unwrap();
        let taken = extents.take(30).unwrap();
        assert_eq!(taken.extents, [Extent { first: 20, pages: 30 }]);
        assert_eq!(extents.take(10).unwrap().extents, [Extent { first: 0, pages: 10 }]);
        assert!(extents.take(51).is_none());
    }
}
