//! Entries of several sorted sources as one: the newest of each key.
//!
//! A source stands between two entries, and what was just passed is on its other side: so going
//! back at any step takes no more than asking for the other side.

use core::cmp::Ordering;

use super::entry::Entry;
use super::space::Space;
use crate::Result;

/// Which way entries are read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Way {
    /// From low keys to high ones.
    #[default]
    Up,
    /// From high keys to low ones.
    Down,
}

impl Way {
    /// The other way.
    #[must_use]
    pub const fn turned(self) -> Self {
        match self {
            Way::Up => Way::Down,
            Way::Down => Way::Up,
        }
    }

    /// How `one` stands to `other` on this way.
    fn order(self, one: &Entry<'_>, other: &Entry<'_>) -> Ordering {
        match self {
            Way::Up => one.order(other),
            Way::Down => other.order(one),
        }
    }
}

/// Sorted entries that are gone through both ways.
pub trait Source {
    /// Sees to it that the next entry on this way is in memory; false if there is none.
    ///
    /// # Errors
    /// What is read is damaged, or the device failed.
    fn load(&mut self, space: &mut dyn Space, way: Way) -> Result<bool>;

    /// The next entry on this way, which was loaded or just passed.
    fn head(&self, way: Way) -> Option<Entry<'_>>;

    /// Passes the entry that was loaded on this way.
    fn step(&mut self, way: Way);
}

impl<S: Source + ?Sized> Source for &mut S {
    fn load(&mut self, space: &mut dyn Space, way: Way) -> Result<bool> {
        (**self).load(space, way)
    }

    fn head(&self, way: Way) -> Option<Entry<'_>> {
        (**self).head(way)
    }

    fn step(&mut self, way: Way) {
        (**self).step(way);
    }
}

/// The most sources that are merged at once.
pub(super) const SOURCES_MOST: usize = 64;

/// The first of `sources` whose next entry comes before those of all others on this way, and a bit
/// for each that has an entry there.
pub(super) fn select<S: Source>(sources: &[S], way: Way) -> Option<(usize, u64)> {
    let mut best: Option<(usize, u64, Entry<'_>)> = None;
    for (place, source) in sources.iter().enumerate().take(SOURCES_MOST) {
        let Some(entry) = source.head(way) else {
            continue;
        };
        match &mut best {
            Some((_, all, first)) => match way.order(&entry, first) {
                Ordering::Less => best = Some((place, 1 << place, entry)),
                Ordering::Equal => *all |= 1 << place,
                Ordering::Greater => {}
            },
            None => best = Some((place, 1 << place, entry)),
        }
    }
    best.map(|(place, all, _)| (place, all))
}

/// The places of the bits that are set.
pub(super) fn places(all: u64) -> impl Iterator<Item = usize> {
    (0..SOURCES_MOST).filter(move |place| all >> place & 1 == 1)
}

/// Entries of several sources, newest first, as one.
#[derive(Clone, Copy, Debug, Default)]
pub struct Merged;

impl Merged {
    /// The next entry that is no fence, and the source that it comes from: of each key the one of
    /// the first source. Deletes are told like puts. Sources may be turned at any time, all of them
    /// together.
    ///
    /// # Errors
    /// As [`Source::load`].
    pub fn next<'s>(
        space: &mut dyn Space,
        sources: &'s mut [impl Source],
        way: Way,
    ) -> Result<Option<(usize, Entry<'s>)>> {
        let found = loop {
            for source in &mut *sources {
                source.load(space, way)?;
            }
            let Some((first, all)) = select(sources, way) else {
                return Ok(None);
            };
            for place in places(all) {
                sources[place].step(way);
            }
            let passed = sources[first].head(way.turned());
            if passed.is_some_and(|entry| !entry.kind.is_fence()) {
                break first;
            }
        };
        Ok(sources[found].head(way.turned()).map(|entry| (found, entry)))
    }
}
