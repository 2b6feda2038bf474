//! The path down the tree: to read, and to rewrite all that is on it.

use alloc::vec;
use alloc::vec::Vec;
use core::cmp::Ordering;

use device::Page;
use store::node::{self, Codec, Stored};

use super::layout::Pages;
use super::page::{Brief, child, damage};
use super::plan::Step;
use index::Result;

/// A node on the path.
#[derive(Clone, Copy, Debug)]
pub(super) struct Spot {
    pub(super) page: Page,
    pub(super) brief: Brief,
    /// Of the node; `None` before there is one.
    pub(super) codec: Option<Codec>,
    start: u32,
    end: u32,
    /// The child that the path goes on with; in the lowest node, where the key is or belongs.
    place: u32,
    /// The sequence of its page, while the copy is as it was checked; [`UNKNOWN`] if that is not
    /// known.
    sequence: u64,
}

/// No page has this sequence.
const UNKNOWN: u64 = u64::MAX;

impl Spot {
    /// Where the copy of the node ends.
    pub(super) fn end(&self) -> usize {
        self.end as usize
    }

    /// The child that the path goes on with; in the lowest node, where the key is or belongs.
    pub(super) fn place(&self) -> usize {
        self.place as usize
    }

    fn range(&self) -> core::ops::Range<usize> {
        self.start as usize..self.end as usize
    }
}

/// The nodes on the path, copied.
pub(super) struct CopiedPath {
    bytes: Vec<u8>,
    /// By level, as many as the tree can have; those from the base to the root mean something.
    spots: Vec<Spot>,
}

impl CopiedPath {
    /// A path of up to `height` nodes, which take so many bytes.
    pub(super) fn new(pages: &Pages, height: u8, bytes: u64) -> Self {
        let brief = Brief { layout: pages.lone_leaf(), lowest: 0 };
        let (page, sequence) = (Page(0), UNKNOWN);
        let spot = Spot { page, brief, codec: None, start: 0, end: 0, place: 0, sequence };
        CopiedPath { bytes: vec![0; bytes as usize], spots: vec![spot; height.into()] }
    }

    /// Room for so many bytes, where nodes of the path were.
    pub(super) fn room(&mut self, bytes: usize) -> Option<&mut [u8]> {
        self.spots.iter_mut().for_each(|spot| spot.sequence = UNKNOWN);
        self.bytes.get_mut(..bytes)
    }

    /// Copies a node, behind what stands up to `start`; false if there is no room for it. Behind
    /// what the codec keeps of it stand bytes of other nodes.
    pub(super) fn copy(
        &mut self,
        (page, level): (Page, u8),
        (brief, start): (&Brief, usize),
        codec: &Codec,
        node: &[u8],
    ) -> bool {
        let end = start + codec.node_bytes();
        let Some(bytes) = self.bytes.get_mut(start..end) else {
            return false;
        };
        if usize::from(level) >= self.spots.len() {
            return false;
        }
        let kept = codec.kept_bytes(node).min(node.len()).min(bytes.len());
        device::copy(&mut bytes[..kept], &node[..kept]);
        let (start, end) = (start as u32, end as u32);
        for spot in &mut self.spots {
            if spot.start < end && start < spot.end {
                spot.sequence = UNKNOWN;
            }
        }
        let (brief, codec, sequence) = (*brief, Some(*codec), UNKNOWN);
        let spot = Spot { page, brief, codec, start, end, place: 0, sequence };
        self.spots[usize::from(level)] = spot;
        true
    }

    /// The copy of the node of `level` that was made last is as it was checked when it was read
    /// from its page, which had this sequence.
    pub(super) fn know(&mut self, level: u8, sequence: u64) {
        self.spots[usize::from(level)].sequence = sequence;
    }

    /// True if the node of `level` stands behind `start` as it was checked when it was read from
    /// `page` of this sequence, and `node`, read again, is the same in every byte that is kept: so
    /// it need neither be checked nor copied.
    pub(super) fn holds(
        &self,
        (page, level): (Page, u8),
        (brief, start, sequence): (&Brief, usize, u64),
        codec: &Codec,
        node: &[u8],
    ) -> bool {
        let Some(spot) = self.spots.get(usize::from(level)) else {
            return false;
        };
        let is_same = (spot.page, spot.sequence, spot.start as usize) == (page, sequence, start)
            && sequence != UNKNOWN
            && spot.brief.layout == brief.layout
            && spot.brief.lowest == brief.lowest;
        if !is_same {
            return false;
        }
        let held = &self.bytes[spot.range()];
        let kept = codec.kept_bytes(held);
        node.get(..kept).is_some_and(|node| *node == held[..kept])
    }

    /// Sets with which child the path goes on.
    pub(super) fn go_on(&mut self, level: u8, place: usize) {
        self.spots[usize::from(level)].place = place as u32;
    }

    pub(super) fn spot(&self, level: u8) -> &Spot {
        &self.spots[usize::from(level)]
    }

    pub(super) fn node(&self, level: u8) -> &[u8] {
        let spot = self.spot(level);
        &self.bytes[spot.range()]
    }

    /// The codec of the node of `level`.
    pub(super) fn codec(&self, level: u8) -> Result<Codec> {
        let spot = self.spot(level);
        spot.codec.ok_or(damage(spot.page, "a node that is none"))
    }

    /// The page of the child with which the path goes on below `level`.
    pub(super) fn child(&self, level: u8) -> Result<Page> {
        Ok(child(&self.codec(level)?, self.node(level), self.spot(level).place()))
    }

    /// Lets the node of `level` point to `page` where the path goes on; false if it can't. Where
    /// lengths vary, `scratch` is as long as the node.
    pub(super) fn point(&mut self, level: u8, page: Page, scratch: &mut [u8]) -> bool {
        let spot = &mut self.spots[usize::from(level)];
        spot.sequence = UNKNOWN;
        let (range, place) = (spot.range(), spot.place());
        let child = page.0.to_le_bytes();
        spot.codec.is_some_and(|codec| {
            let scratch = scratch.get_mut(..codec.node_bytes()).unwrap_or_default();
            codec.replace(&mut self.bytes[range], place, Stored::inline(&child), scratch)
        })
    }

    /// True if `key` is or belongs in the leaf of the path through a tree of `height` levels: it is
    /// not below the nearest separator to the left of the path, and below the nearest to the right.
    pub(super) fn leads_to(&self, key: &[u8], height: u8) -> bool {
        let separates = |spot: &Spot, place: usize, so: fn(Ordering) -> bool| {
            let node = &self.bytes[spot.range()];
            spot.codec.is_some_and(|codec| so(codec.key(node, place).compare(key)))
        };
        let mut above = self.spots.iter().take(height.into()).skip(1);
        let left = above.clone().find(|spot| spot.place() > 0);
        let right = above.find(|spot| spot.place() + 1 < node::count(&self.bytes[spot.range()]));
        left.is_none_or(|spot| separates(spot, spot.place(), Ordering::is_le))
            && right.is_none_or(|spot| separates(spot, spot.place() + 1, Ordering::is_gt))
    }

    /// Puts `value` under `key` in the copy of the leaf, or takes the key away; false, and nothing
    /// changed, if there is no room for it, or no entry would be left. Where lengths vary,
    /// `scratch` is as long as the node.
    pub(super) fn amend(&mut self, key: &[u8], value: Option<&[u8]>, scratch: &mut [u8]) -> bool {
        let leaf = &mut self.spots[0];
        leaf.sequence = UNKNOWN;
        let Some(codec) = leaf.codec else {
            return false;
        };
        let node = &mut self.bytes[leaf.range()];
        let scratch = scratch.get_mut(..codec.node_bytes()).unwrap_or_default();
        match (codec.search(node, key), value.map(Stored::inline)) {
            (Ok(place), Some(value)) => codec.replace(node, place, value, scratch),
            (Err(place), Some(value)) => codec.insert(node, place, key, value, scratch),
            (Ok(place), None) => {
                let is_kept = node::count(node) > 1;
                if is_kept {
                    codec.remove(node, place);
                }
                is_kept
            }
            (Err(_), None) => true,
        }
    }

    /// Lets the path go on to where `key` is or belongs in the copy of the leaf.
    pub(super) fn seek(&mut self, key: &[u8]) {
        if let Some(codec) = self.spots[0].codec {
            let (Ok(place) | Err(place)) = codec.search(self.node(0), key);
            self.go_on(0, place);
        }
    }

    /// The step of a rewrite that the node of `level` is.
    #[inline]
    pub(super) fn step(&self, level: u8) -> Option<Step<'_>> {
        let spot = self.spot(level);
        Some(Step {
            codec: spot.codec?,
            node: self.node(level),
            place: spot.place(),
            is_lowest_of_page: spot.brief.lowest == level,
        })
    }
}

#[cfg(test)]
mod tests;
