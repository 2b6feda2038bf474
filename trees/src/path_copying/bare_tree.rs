//! The tree on flash, without what waits for it: the root, the path to what changes, and what is
//! counted. A path is written as a whole ([`rewrite`]), or a node of it alone, for who moves pages.
//!
//! # Invariants
//! - Only the last page of a change has a root: until it stands, the tree is as it was.
//! - What is copied to the path is as it stands on flash, until who copied it changes it there.

use alloc::vec::Vec;

use device::{Block, Cause, Page};
use store::PageLog;
use store::node;

use super::census::Census;
use super::layout::HEIGHT_MOST;
use super::live::LivePages;
use super::page::{Header, child, damage, seal_node};
use super::path::CopiedPath;
use super::path_nodes::PathNodes;
use super::plan::worst::{leaf_bytes, path_bytes};
use super::plan::{Plan, Scratch};
use super::policy::Policy;
use super::room::Room;
use super::root::Root;
use crate::btree::At;
use index::{Error, Result};

mod height;
pub(super) mod rewrite;

pub(super) use height::working_bytes;

/// Room for cuts of a plan, and for the pages of a change, at first.
const CUTS: usize = 64;

/// The tree on flash.
pub(super) struct BareTree<'d> {
    pub(super) nodes: PathNodes<'d>,
    pub(super) policy: Policy,
    /// The page of the root, and what it says.
    root: Page,
    standing: Header,
    pub(super) path: CopiedPath,
    plan: Plan,
    pub(super) scratch: Scratch,
    /// The pages of a change.
    addresses: Vec<Page>,
    pub(super) live: LivePages,
    pub(super) census: Census,
    /// The most bytes of a leaf below a root.
    leaf_bytes: usize,
    /// Puts that were let in and are not in the tree: no change takes their room.
    pub(super) promised: u64,
    /// Nodes that went since nothing was left in them.
    pub(super) emptied: u64,
    /// True if inner nodes stand apart from leaves, all of them.
    pub(super) is_parted: bool,
}

/// The header of a page that is the whole tree.
pub(super) fn lone_header(policy: &Policy) -> Header {
    let next = policy.first();
    let layout = next.layout;
    Header { sequence: 0, live_pages: 1, layout, lowest: 0, highest: 0, has_root: true, next }
}

impl<'d> BareTree<'d> {
    /// A tree without a root, with so many bytes for a node cache and a table of live pages.
    pub(super) fn new(log: PageLog<'d>, policy: Policy, (cache, live): (usize, u64)) -> Self {
        let pages = *policy.pages();
        BareTree {
            nodes: PathNodes::new(log, pages, cache),
            root: Page(0),
            standing: lone_header(&policy),
            path: CopiedPath::new(&pages, policy.height_most(), path_bytes(&policy)),
            plan: Plan::new(&policy),
            scratch: Scratch::new(&policy),
            addresses: Vec::with_capacity(CUTS),
            live: LivePages::new(live),
            census: Census::new(&policy),
            leaf_bytes: leaf_bytes(&policy) as usize,
            promised: 0,
            emptied: 0,
            is_parted: false,
            policy,
        }
    }

    pub(super) fn root(&self) -> At<Page> {
        At { id: self.root, level: self.height() - 1 }
    }

    pub(super) fn height(&self) -> u8 {
        self.standing.layout.height
    }

    /// What the page of the root says.
    pub(super) fn standing(&self) -> &Header {
        &self.standing
    }

    pub(super) fn lowest_key(&self) -> &[u8] {
        &self.plan.lowest_key
    }

    /// That something is wrong with the tree.
    pub(super) fn damage(&self, what: &'static str) -> Error {
        damage(self.root, what)
    }

    fn stand_on(&mut self, page: Page, header: Header) {
        self.root = page;
        self.standing = header;
        self.nodes.usual = header.next.layout;
    }

    /// Stands on the root that was written in `page`, of a tree of so many nodes a level.
    pub(super) fn begin(&mut self, (page, header): (Page, Header), nodes: &[u32]) {
        self.live.forget();
        let mut levels = [0; HEIGHT_MOST as usize];
        levels[..nodes.len()].copy_from_slice(nodes);
        self.census.demand.levels = levels;
        self.stand_on(page, header);
    }

    /// Writes a tree without entries.
    pub(super) fn write_empty(&mut self) -> Result<()> {
        let header = lone_header(&self.policy);
        let place = self.nodes.pages.place_of(&header.layout, 0);
        let (range, codec) = place.ok_or(self.damage("a leaf that is none"))?;
        self.nodes.content().fill(0xFF);
        codec.initialise(&mut self.nodes.content()[range], 0);
        let written = self.write_made(header, Cause::Load, &mut |_, _| {})?;
        self.begin(written, &[1]);
        Ok(())
    }

    /// What an opening needs to know of the tree.
    pub(super) fn record(&self) -> Root {
        let counts_keys = self.nodes.pages.counts_keys();
        Root {
            shape: self.nodes.pages.shape,
            page: self.root,
            bounds: self.policy.bounds(),
            nodes: self.census.demand.levels,
            height: self.height().into(),
            longest_key: counts_keys.then_some(self.census.longest_key),
        }
    }

    /// Stands on another root, beside so many bytes for updates that wait.
    pub(super) fn restore(&mut self, root: &Root, waiting: u64) -> Result<()> {
        self.nodes.forget_all();
        self.live.forget();
        self.is_parted = false;
        let header = self.nodes.read_header(root.page, Cause::Recovery)?;
        let pages = self.nodes.log.geometry().pages();
        let is_fit = header.has_root
            && header.live_pages <= pages
            && usize::from(header.layout.height) == root.height
            && root.nodes.iter().all(|nodes| *nodes <= pages);
        if !is_fit {
            return Err(damage(root.page, "it has no root of this tree"));
        }
        self.check_height(header.layout.height.max(header.next.layout.height), waiting)?;
        // The one page of a block may have a damaged tag.
        let block = self.nodes.log.geometry().block_of(root.page);
        self.nodes.log.claim_block(block)?;
        self.census.demand.levels = root.nodes;
        self.census.set_longest_key(root.longest_key, &self.policy);
        self.stand_on(root.page, header);
        Ok(())
    }

    /// What the tree takes.
    pub(super) fn room(&self) -> Room<'_> {
        let log = &self.nodes.log;
        let blocks = log.good_blocks().saturating_sub(log.pinned_blocks());
        let blocks = (blocks, log.own_reserve());
        let mut room = Room::of(&self.policy, self.height(), log.geometry(), blocks);
        room.apart = log.apart_blocks().into();
        room.height_most = self.height_possible();
        room
    }

    /// Blocks that are to be free before a change.
    pub(super) fn reserve_blocks(&self) -> u64 {
        self.room().reserve_blocks(self.census.demand.inner())
    }

    /// Pages of them.
    pub(super) fn reserve_pages(&self) -> u64 {
        self.room().reserve_pages(self.census.demand.inner())
    }

    /// Goes down to the node of level `base` where `key` is or belongs, copying all nodes on the
    /// path behind what stands there up to `start`; true if the key stands in the node.
    pub(super) fn descend(
        &mut self,
        mut start: usize,
        (key, base): (&[u8], u8),
        cause: Cause,
    ) -> Result<bool> {
        let mut page = self.root;
        for level in (base..self.height()).rev() {
            let path = &mut self.path;
            let codec = self.nodes.copy_node((page, level), cause, (path, start))?;
            let node = path.node(level);
            let found = codec.search(node, key);
            let place = match found {
                Err(place) if level > 0 => place.saturating_sub(1),
                Ok(place) | Err(place) => place,
            };
            start = path.spot(level).end();
            if level > 0 {
                page = child(&codec, node, place);
            }
            path.go_on(level, place);
            if level == base {
                return Ok(found.is_ok());
            }
        }
        Ok(false)
    }

    /// Makes an update in the copy of the leaf, if it belongs there and has room.
    pub(super) fn joins(&mut self, (key, value): (&[u8], Option<&[u8]>)) -> bool {
        let height = self.height();
        self.path.leads_to(key, height) && self.path.amend(key, value, &mut self.scratch.other)
    }

    /// Copies the lowest node of `page` and all above it; returns its level if it lives. `key` is
    /// its first one then.
    pub(super) fn path_to(&mut self, page: Page, key: &mut Vec<u8>) -> Result<Option<u8>> {
        let Some(base) = self.copy_lowest(page, HEIGHT_MOST, key)? else {
            return Ok(None);
        };
        if base + 1 == self.height() {
            return Ok((page == self.root).then_some(base));
        }
        let start = self.path.spot(base).end();
        self.descend(start, (key, base + 1), Cause::Reclamation)?;
        Ok((self.path.child(base + 1)? == page).then_some(base))
    }

    /// Copies the first key of the lowest node of `page` to `key`, and the node to the path if its
    /// level is `most` or lower, if the tree can have such a node, and it is not known that nothing
    /// lives there; returns its level. What is damaged does not live, unless it is known to.
    pub(super) fn copy_lowest(
        &mut self,
        page: Page,
        most: u8,
        key: &mut Vec<u8>,
    ) -> Result<Option<u8>> {
        let (path, is_live) = (&mut self.path, self.live.is_live(page));
        if is_live == Some(false) {
            return Ok(None);
        }
        let (is_live, cause) = (is_live == Some(true), Cause::Reclamation);
        let copied = self.nodes.visit_lowest(page, is_live, cause, |brief, codec, node| {
            let has_key = node::count(node) > 0;
            if has_key {
                codec.key(node, 0).copy_to(key);
            }
            let is_copied =
                brief.lowest > most || path.copy((page, brief.lowest), (brief, 0), codec, node);
            (brief.lowest, has_key, is_copied)
        })?;
        Ok(copied.and_then(|(base, has_key, is_copied)| {
            let is_possible = base < self.height() && is_copied && (has_key || page == self.root);
            is_possible.then_some(base)
        }))
    }

    /// Copies the node of `level` in `page` to the path, behind the one above it, and all of them
    /// behind a leaf.
    pub(super) fn copy_below(&mut self, (page, level): (Page, u8)) -> Result<()> {
        let start = match level + 1 == self.height() {
            true => self.leaf_bytes,
            false => self.path.spot(level + 1).end(),
        };
        let target = (&mut self.path, start);
        self.nodes.copy_node((page, level), Cause::Reclamation, target).map(|_| ())
    }

    /// Copies the leaf in `page` to where the path keeps its nodes.
    pub(super) fn copy_leaf(&mut self, page: Page) -> Result<()> {
        let path = &mut self.path;
        let is_copied = self.nodes.visit((page, 0), Cause::Reclamation, |brief, codec, node| {
            path.copy((page, 0), (brief, 0), codec, node)
        })?;
        if is_copied { Ok(()) } else { Err(damage(page, "its leaf is larger than it can be")) }
    }

    /// True if there is no entry.
    pub(super) fn is_empty(&mut self) -> Result<bool> {
        let root = (self.root, 0);
        Ok(self.height() == 1
            && self.nodes.visit(root, Cause::Load, |_, _, node| node::count(node) == 0)?)
    }

    /// Fills the table of live pages if it is not known.
    pub(super) fn learn_live(&mut self) -> Result<()> {
        let root = self.root();
        self.live.learn(|live| self.nodes.walk(root, Cause::Reclamation, |_, page| live.add(page)))
    }

    /// Counts what lives in the blocks from `first` on: pages, or, where there is no table of them,
    /// nodes, which are no fewer.
    pub(super) fn count_lives(&mut self, first: u32, into: &mut [u16]) -> Result<()> {
        let geometry = self.nodes.log.geometry();
        if self.live.is_known() {
            for (block, lives) in (first..geometry.blocks()).map(Block).zip(into) {
                *lives = self.live.count_in(self.nodes.log.pages_of(block));
            }
            return Ok(());
        }
        self.nodes.walk(self.root(), Cause::Reclamation, |_, page| {
            let place = geometry.block_of(page).0.checked_sub(first);
            if let Some(lives) = place.and_then(|place| into.get_mut(place as usize)) {
                *lives = lives.saturating_add(1);
            }
        })
    }

    /// Writes the node of the path of `level` as it is there, alone in a page that is divided like
    /// the one it stands in, and lets the one above point to it. The root is to be written last.
    pub(super) fn write_alone(&mut self, level: u8) -> Result<()> {
        let spot = *self.path.spot(level);
        let place = self.nodes.pages.place_of(&spot.brief.layout, level);
        let (range, codec) = place.ok_or(damage(spot.page, "a node that is none"))?;
        let node = self.path.node(level);
        let kept = codec.kept_bytes(node);
        let content = self.nodes.content();
        content.fill(0xFF);
        device::copy(&mut content[range][..kept], &node[..kept]);
        let (layout, lowest, highest) = (spot.brief.layout, level, level);
        let header = Header { layout, lowest, highest, has_root: false, ..self.standing };
        let (page, _) = self.write_made(header, Cause::Reclamation, &mut |_, _| {})?;
        if !self.path.point(level + 1, page, &mut self.scratch.other) {
            return Err(damage(page, "a node without its child"));
        }
        self.nodes.forget_node(spot.page, level);
        match spot.brief.lowest == level {
            true => self.live.remove(spot.page),
            false => self.standing.live_pages += 1,
        }
        self.live.add(page);
        Ok(())
    }

    /// No root was written above what was written alone since there were so many live pages: the
    /// tree is as it was, but pages are counted as moved.
    pub(super) fn take_back(&mut self, live_pages: u32) {
        self.standing.live_pages = live_pages;
        self.live.forget();
    }

    /// Seals the page that was made, with `header`, and programs it; where the chip refuses,
    /// elsewhere. `finish` completes it when its address is known.
    pub(super) fn write_made(
        &mut self,
        mut header: Header,
        cause: Cause,
        finish: &mut dyn FnMut(Page, &mut [u8]),
    ) -> Result<(Page, Header)> {
        loop {
            header.sequence = self.nodes.log.reserve(1, &mut self.addresses, cause)?;
            let page = self.addresses.first().copied();
            let page = page.ok_or_else(|| self.damage("a page has no address"))?;
            let pages = self.nodes.pages;
            finish(page, self.nodes.content());
            for level in header.lowest..=header.highest {
                let made = pages.place_of(&header.layout, level);
                let (range, codec) = made.ok_or(damage(page, "no page is divided so"))?;
                seal_node(&codec, page, header.sequence, &mut self.nodes.content()[range]);
            }
            header.encode(page, self.nodes.content());
            match self.nodes.program(page, &header, cause) {
                Err(Error::Store(error)) if error.is_refusal() => {}
                other => return other.map(|()| (page, header)),
            }
        }
    }
}

#[cfg(test)]
pub(super) mod tests;
