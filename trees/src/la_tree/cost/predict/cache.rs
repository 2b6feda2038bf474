//! What is in the cache.
//!
//! The cache holds the pages used last. Between two lookups through a node that has n on its level,
//! t lookups go by with the chance of `(1 - 1/n)^(t - 1) / n`; the node stays if the pages they
//! touch, `n (1 - (1 - 1/n)^t)` of each level, fit the cache beside it. On a disk fragments are
//! pages in that cache, too.

use super::level::Buffers;
use super::plan::Plan;
use index::Profile;
use index::random_keys::{Levels, touched};

/// What the cache holds.
pub(super) struct Cache<'p> {
    nodes: &'p [f64],
    /// Nodes, or pages, that it has room for.
    room: f64,
    /// Pages of fragments that a lookup reads, and those that there are; none on raw flash, where
    /// fragments are not in the cache.
    read: f64,
    pages: f64,
}

impl<'p> Cache<'p> {
    pub(super) fn new(
        profile: &Profile,
        plan: &Plan,
        levels: &'p Levels,
        buffers: &[Buffers],
    ) -> Self {
        let in_page = f64::from(plan.shape.room()) / plan.entry_bytes();
        let (mut read, mut pages) = (0.0, 0.0);
        for buffer in buffers.iter().filter(|_| plan.shape.is_in_place()) {
            let (mean, _) = buffer.searched(profile.entries as f64 / buffer.count);
            read += mean;
            pages += buffer.count * mean * buffer.flash.each / in_page;
        }
        let nodes = levels.nodes();
        Cache { nodes, room: f64::from(plan.cache_nodes), read, pages: pages.max(read) }
    }

    pub(super) fn holds_all(&self) -> bool {
        self.nodes.iter().sum::<f64>() + self.pages <= self.room
    }

    /// The chance that a node of `level`, or a page of fragments, is read and not found.
    pub(super) fn missed(&self, level: Option<usize>) -> f64 {
        if level.is_none() && self.pages == 0.0 {
            return 1.0;
        }
        // A lookup reads so many pages of fragments, or one more.
        let (few, more) = (libm::floor(self.read), self.read - libm::floor(self.read));
        (1.0 - more) * self.missed_with(level, few) + more * self.missed_with(level, few + 1.0)
    }

    fn missed_with(&self, level: Option<usize>, fragments: f64) -> f64 {
        let (mut low, mut high) = (0.0, 1e9);
        // What is a whole number may come out a little above it.
        let room = self.room - 1.0 + 1e-6;
        if self.between(level, fragments, high) <= room {
            return 0.0;
        }
        while high - low > 1.0 {
            let middle = libm::floor(f64::midpoint(low, high));
            if self.between(level, fragments, middle) <= room {
                low = middle;
            } else {
                high = middle;
            }
        }
        let each = level.map_or(fragments / self.pages.max(1.0), |level| 1.0 / self.nodes[level]);
        libm::pow(1.0 - each.min(1.0), low)
    }

    /// Other pages that are touched between two uses of a page that are `lookups` lookups apart.
    fn between(&self, level: Option<usize>, fragments: f64, lookups: f64) -> f64 {
        let nodes = self.nodes.iter().enumerate().map(|(other, nodes)| {
            let is_its = level == Some(other);
            let less = f64::from(u8::from(is_its));
            touched((nodes - less).max(0.0), lookups - less)
        });
        nodes.sum::<f64>() + touched(self.pages, fragments * lookups)
    }
}
