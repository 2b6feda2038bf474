//! The way down the tree: to read, and to rewrite all that is on it.

use alloc::vec;
use alloc::vec::Vec;

use device::{Cause, Page};
use store::node::{self, Codec};

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

impl Spot {
    /// Where the copy of the node ends.
    pub(super) fn end(&self) -> usize {
        self.end
    }
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
        let kept = codec.kept_bytes(node).min(node.len()).min(bytes.len());
        device::copy(&mut bytes[..kept], &node[..kept]);
        self.spots[usize::from(level)] = Spot { page, brief: *brief, start, end, place: 0 };
        true
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
        self.descend_behind(0, (key, base), cause)
    }

    /// The same, with the copies behind what stands up to `start`.
    pub(super) fn descend_behind(
        &mut self,
        mut start: usize,
        (key, base): (&[u8], u8),
        cause: Cause,
    ) -> Result<bool> {
        let mut page = self.root;
        for level in (base..self.standing.layout.height).rev() {
            let way = &mut self.way;
            let (next, is_found) = self
                .ground
                .visit((page, level), cause, |brief, codec, node| {
                    let found = codec.search(node, key);
                    let place = match found {
                        Err(place) if level > 0 => place.saturating_sub(1),
                        Ok(place) | Err(place) => place,
                    };
                    if !way.copy((page, level), (brief, start), codec, node) {
                        return None;
                    }
                    way.spot_mut(level).place = place;
                    let next = (level > 0).then(|| child(codec, node, place));
                    Some((next, found.is_ok()))
                })?
                .ok_or(super::damage(page, "the nodes on its way are larger than they can be"))?;
            start = self.way.spot(level).end;
            if level == base {
                return Ok(is_found);
            }
            page = next.unwrap_or(page);
        }
        Ok(false)
    }

    /// Copies the leaf in `page` to where the way keeps its nodes; returns how many entries it has.
    pub(super) fn copy_leaf(&mut self, page: Page, cause: Cause) -> Result<usize> {
        let way = &mut self.way;
        let count = self.ground.visit((page, 0), cause, |brief, codec, node| {
            way.copy((page, 0), (brief, 0), codec, node).then(|| node::count(node))
        })?;
        count.ok_or(super::damage(page, "its leaf is larger than it can be"))
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
