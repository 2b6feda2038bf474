//! The way down the tree: to read, and to rewrite all that is on it.

use alloc::vec;
use alloc::vec::Vec;

use device::{Cause, Page};
use store::node;

use super::PathTree;
use super::ground::{Brief, child};
use super::layout::{HEIGHT_MOST, Pages};
use super::plan::Step;
use crate::Result;

/// A node on the way.
#[derive(Clone, Copy, Debug)]
pub(super) struct Spot {
    pub(super) page: Page,
    pub(super) brief: Brief,
    start: usize,
    end: usize,
    /// The child that the way goes on with; in the lowest node, where the key is or belongs.
    pub(super) place: usize,
}

/// The nodes on the way, copied.
pub(super) struct Way {
    bytes: Vec<u8>,
    /// By level; those from the base to the root mean something.
    spots: [Spot; HEIGHT_MOST as usize],
}

impl Way {
    pub(super) fn new(pages: &Pages, bytes: u64) -> Self {
        let brief = Brief { layout: pages.lone_leaf(), lowest: 0 };
        let spot = Spot { page: Page(0), brief, start: 0, end: 0, place: 0 };
        Way { bytes: vec![0; bytes as usize], spots: [spot; HEIGHT_MOST as usize] }
    }

    /// Room for so many bytes, where nodes of the way were.
    pub(super) fn room(&mut self, bytes: usize) -> Option<&mut [u8]> {
        self.bytes.get_mut(..bytes)
    }

    pub(super) fn spot(&self, level: u8) -> &Spot {
        &self.spots[usize::from(level)]
    }

    pub(super) fn spot_mut(&mut self, level: u8) -> &mut Spot {
        &mut self.spots[usize::from(level)]
    }

    pub(super) fn node(&self, level: u8) -> &[u8] {
        let spot = self.spot(level);
        &self.bytes[spot.start..spot.end]
    }

    /// The steps of a rewrite from `base` up to the root of a tree of `height` levels.
    pub(super) fn steps<'w>(
        &'w self,
        pages: &Pages,
        base: u8,
        height: u8,
        into: &mut [Option<Step<'w>>; HEIGHT_MOST as usize],
    ) -> usize {
        let mut count = 0;
        for level in base..height {
            let spot = self.spot(level);
            let Some(codec) = pages.codec(&spot.brief.layout, level) else {
                break;
            };
            into[count] = Some(Step {
                codec,
                node: self.node(level),
                place: spot.place,
                is_lowest_of_page: spot.brief.lowest == level,
            });
            count += 1;
        }
        count
    }
}

impl PathTree<'_> {
    /// Goes down to the node of level `base` where `key` is or belongs, copying all nodes on the
    /// way; true if the key stands there.
    pub(super) fn descend(&mut self, key: &[u8], base: u8, cause: Cause) -> Result<bool> {
        let (mut page, mut start) = (self.root, 0);
        for level in (base..self.standing.layout.height).rev() {
            let bytes = &mut self.way.bytes[start..];
            let (spot, next, is_found) =
                self.ground.visit((page, level), cause, |brief, codec, node| {
                    let found = codec.search(node, key);
                    let place = match found {
                        Err(place) if level > 0 => place.saturating_sub(1),
                        Ok(place) | Err(place) => place,
                    };
                    let whole = codec.node_bytes();
                    let kept = node.len().min(whole).min(bytes.len());
                    bytes[..kept].copy_from_slice(&node[..kept]);
                    if let Some(rest) = bytes.get_mut(kept..whole) {
                        rest.fill(0xFF);
                    }
                    let next = (level > 0).then(|| child(codec, node, place));
                    let spot = Spot { page, brief: *brief, start, end: start + whole, place };
                    (spot, next, found.is_ok())
                })?;
            if spot.end > self.way.bytes.len() {
                let what = "the nodes on its way are larger than they can be";
                return Err(super::damage(page, what));
            }
            start = spot.end;
            self.way.spots[usize::from(level)] = spot;
            if level == base {
                return Ok(is_found);
            }
            page = next.unwrap_or(page);
        }
        Ok(false)
    }

    /// Copies the leaf in `page` to where the way keeps its nodes; returns how many entries it has.
    pub(super) fn copy_leaf(&mut self, page: Page, cause: Cause) -> Result<usize> {
        let bytes = &mut self.way.bytes[..];
        let spot = self.ground.visit((page, 0), cause, |brief, codec, node| {
            let end = codec.node_bytes();
            let kept = node.len().min(end).min(bytes.len());
            bytes[..kept].copy_from_slice(&node[..kept]);
            (Spot { page, brief: *brief, start: 0, end, place: 0 }, node::count(node))
        })?;
        if spot.0.end > self.way.bytes.len() {
            return Err(super::damage(page, "its leaf is larger than it can be"));
        }
        self.way.spots[0] = spot.0;
        Ok(spot.1)
    }

    /// The page of the node of level `base` where `key` is or belongs.
    pub(super) fn find_page(&mut self, key: &[u8], base: u8, cause: Cause) -> Result<Page> {
        let mut page = self.root;
        for level in (base + 1..self.standing.layout.height).rev() {
            page = self.ground.visit((page, level), cause, |_, codec, node| {
                let place = codec.search(node, key).unwrap_or_else(|place| place.saturating_sub(1));
                child(codec, node, place)
            })?;
        }
        Ok(page)
    }

    /// Hands the value of `key`, if it has one, to `visit`.
    pub(super) fn find_value<R>(
        &mut self,
        key: &[u8],
        cause: Cause,
        visit: impl FnOnce(&[u8]) -> R,
    ) -> Result<Option<R>> {
        let leaf = self.find_page(key, 0, cause)?;
        self.ground.visit((leaf, 0), cause, |_, codec, node| {
            let place = codec.search(node, key).ok()?;
            Some(visit(codec.value(node, place).bytes()))
        })
    }

    /// The children of the root.
    pub(super) fn count_root(&mut self, cause: Cause) -> Result<u64> {
        let root = (self.root, self.standing.layout.height - 1);
        self.ground.visit(root, cause, |_, _, node| node::count(node) as u64)
    }
}
