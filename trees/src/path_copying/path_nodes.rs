//! What the tree stands on: the page log, with a cache of nodes and room for one page.

use alloc::vec;
use alloc::vec::Vec;

use device::{Cause, Page};
use store::node::{self, Codec};
use store::{Durability, PageKind, PageLog, Recovery};

use super::layout::{Division, HEADER_BYTES, HEIGHT_MOST, Layout, Pages};
use super::node_cache::{NodeCache, ROOM_BYTES, TABLES_BYTES};
use super::page::{Brief, Header, check_node, child, damage, damaged};
use super::path::CopiedPath;
use crate::btree::{At, Node, NodeSource};
use index::Result;

/// How often a page is read that looks damaged: flips come and go.
const READS_MOST: u32 = 3;

const NO_NODE: &str = "it does not hold the node that is looked for in it";
const TOO_LARGE: &str = "the nodes on its way are larger than they can be";

/// That damaged nodes share children, and these theirs: a walk would have no end.
const SHARED: &str = "it and those before it have more children than there are pages";

/// What a node takes in the cache on average, as a part of a page; and what inner nodes of the
/// mu*-Tree do, of which so many have places beside those.
const NODE_PARTS: usize = 4;
const INNER_PARTS: usize = 16;
const INNER_PLACES: usize = 64;

/// Nodes that a cache of so many bytes has places for.
pub(super) fn places(bytes: usize, page_bytes: usize, division: Division) -> usize {
    let of_size = |node: usize| bytes / (TABLES_BYTES + ROOM_BYTES + node);
    let inner = match division {
        Division::Even => of_size(page_bytes / INNER_PARTS).min(INNER_PLACES),
        Division::Halves | Division::Whole => 0,
    };
    of_size(page_bytes / NODE_PARTS) + inner
}

/// A node in the page that was read last.
#[derive(Clone, Copy)]
struct Held {
    at: At<Page>,
    brief: Brief,
    codec: Codec,
}

/// Pages and the nodes in them.
pub(super) struct PathNodes<'d> {
    pub(super) log: PageLog<'d>,
    pub(super) pages: Pages,
    cache: NodeCache,
    /// A whole page: the one that was read last, or the one that is made.
    page: Vec<u8>,
    /// The node in it that was asked for last.
    held: Option<Held>,
    /// How the next page is divided: so are most that are read.
    pub(super) usual: Layout,
}

impl<'d> PathNodes<'d> {
    pub(super) fn new(log: PageLog<'d>, pages: Pages, cache_bytes: usize) -> Self {
        let page_bytes = log.geometry().page_bytes() as usize;
        PathNodes {
            log,
            pages,
            cache: NodeCache::new(cache_bytes, places(cache_bytes, page_bytes, pages.division)),
            page: vec![0xFF; page_bytes],
            held: None,
            usual: pages.lone_leaf(),
        }
    }

    /// The cache has `bytes` bytes from now on, and nothing in it.
    pub(super) fn shrink_cache(&mut self, bytes: usize) {
        let page_bytes = self.log.geometry().page_bytes() as usize;
        // Before the new one is made, for there is no memory for both.
        self.cache = NodeCache::new(0, 0);
        self.cache = NodeCache::new(bytes, places(bytes, page_bytes, self.pages.division));
    }

    /// The chip has no room, or has none beside what named checkpoints keep.
    pub(super) fn no_room(&self) -> index::Error {
        self.log.no_room(self.log.pinned_blocks() > 0).into()
    }

    /// True if anything lasts that is not closed: by checkpoints, and a journal if there is one.
    pub(super) fn lasts(&self) -> bool {
        self.log.durability() != Durability::None
    }

    /// Pages of a block.
    pub(super) fn block_pages(&self) -> u64 {
        self.log.geometry().pages_per_block().into()
    }

    /// Pages that are free, or will be after the next checkpoint.
    pub(super) fn free_soon(&self) -> u64 {
        let log = &self.log;
        u64::from(log.free_pages()) + u64::from(log.blocks_to_erase()) * self.block_pages()
    }

    pub(super) fn cache_bytes(&self) -> u64 {
        self.cache.memory_bytes() as u64
    }

    /// True if there is memory for any node beside the page.
    fn has_cache(&self) -> bool {
        self.cache.memory_bytes() > 0
    }

    /// Nothing is in the cache.
    pub(super) fn forget_all(&mut self) {
        self.held = None;
        while self.cache.remove_oldest() {}
    }

    /// Hands the node of `level` in `page` to `visit`. The bytes of a node may end where nothing
    /// behind them means anything.
    pub(super) fn visit<R>(
        &mut self,
        (page, level): (Page, u8),
        cause: Cause,
        visit: impl FnOnce(&Brief, &Codec, &[u8]) -> R,
    ) -> Result<R> {
        if let Some(number) = self.cached(page, level) {
            let (brief, node) = self.cache.used(number);
            let brief = Brief::decode(&self.pages, *brief);
            let codec = self.pages.codec(&brief.layout, level);
            return Ok(visit(&brief, &codec.ok_or_else(|| damage(page, NO_NODE))?, node));
        }
        let (brief, codec) = self.fetch((page, level), cause)?;
        let node = node_in(&self.pages, &self.log, &self.page, &brief.layout, level);
        Ok(visit(&brief, &codec, node))
    }

    /// Where the node of `level` in `page` stands in the cache.
    #[inline]
    fn cached(&mut self, page: Page, level: u8) -> Option<u16> {
        if self.cache.len() > 0 { self.cache.locate(page, level) } else { None }
    }

    /// Reads the node of `level` in `page`, and puts it into the cache.
    fn fetch(&mut self, (page, level): (Page, u8), cause: Cause) -> Result<(Brief, Codec)> {
        let (header, codec) = self.read_again((page, level), cause, |_, _, _| false)?;
        let brief = Brief::of(&header);
        if self.has_cache() {
            let node = node_in(&self.pages, &self.log, &self.page, &brief.layout, level);
            let node = &node[..codec.kept_bytes(node)];
            self.cache.insert((page, level), brief.encode(), node);
        }
        Ok((brief, codec))
    }

    /// Copies the node of `level` in `page` to the path, behind what stands there up to `start`;
    /// returns its codec.
    pub(super) fn copy_node(
        &mut self,
        (page, level): (Page, u8),
        cause: Cause,
        (path, start): (&mut CopiedPath, usize),
    ) -> Result<Codec> {
        // A leaf that is not there is not put there: the change that it is on the path of writes it
        // again, and that one is.
        if self.has_cache() && (level > 0 || self.cache.find(page, level).is_some()) {
            let copied = self.visit((page, level), cause, |brief, codec, node| {
                path.copy((page, level), (brief, start), codec, node).then_some(*codec)
            })?;
            return copied.ok_or(damage(page, TOO_LARGE));
        }
        // Collection reads the root once for every page that it looks at: mostly the same.
        let mut is_held = false;
        let (header, codec) = self.read_again((page, level), cause, |header, codec, node| {
            let known = (&Brief::of(header), start, header.sequence);
            is_held = path.holds((page, level), known, codec, node);
            is_held
        })?;
        if !is_held {
            let node = node_in(&self.pages, &self.log, &self.page, &header.layout, level);
            if !path.copy((page, level), (&Brief::of(&header), start), &codec, node) {
                return Err(damage(page, TOO_LARGE));
            }
            path.know(level, header.sequence);
        }
        Ok(codec)
    }

    /// Reads the node of `level` in `page`; again where it looks damaged.
    fn read_again(
        &mut self,
        (page, level): (Page, u8),
        cause: Cause,
        mut is_known: impl FnMut(&Header, &Codec, &[u8]) -> bool,
    ) -> Result<(Header, Codec)> {
        again(|| self.read_checked(page, Some(level), cause, &mut is_known))
    }

    /// Reads the node of `level` in `page`, or the lowest that is there, and checks it, unless it
    /// is known that these bytes were checked before.
    #[inline]
    fn read_checked(
        &mut self,
        page: Page,
        level: Option<u8>,
        cause: Cause,
        is_known: impl FnOnce(&Header, &Codec, &[u8]) -> bool,
    ) -> Result<(Header, Codec)> {
        let usual = self.pages.bytes_of(&self.usual, level.unwrap_or(0)).map(|range| range.end);
        let end = usual.unwrap_or(self.pages.page_bytes() as usize);
        self.read_part(page, 0..end, cause)?;
        let start = self.log.content_start();
        let header = Header::decode(&self.pages, page, &self.page[start..])
            .map_err(|damage| damaged(page, damage))?;
        let level = level.unwrap_or(header.lowest);
        let place = self.pages.place_of(&header.layout, level).filter(|_| header.holds(level));
        let (range, codec) = place.ok_or_else(|| damage(page, NO_NODE))?;
        if range.end > end {
            self.read_part(page, end..range.end, cause)?;
        }
        let node = &self.page[start + range.start..start + range.end];
        if !is_known(&header, &codec, node) {
            check_node(&codec, page, &header, (level, node))
                .map_err(|damage| damaged(page, damage))?;
        }
        Ok((header, codec))
    }

    fn read_part(
        &mut self,
        page: Page,
        range: core::ops::Range<usize>,
        cause: Cause,
    ) -> Result<()> {
        self.held = None;
        let start = self.log.content_start();
        let into = &mut self.page[start + range.start..start + range.end];
        Ok(self.log.read(page, range.start as u32, into, cause)?)
    }

    /// Reads the header of `page`; again where it looks damaged.
    pub(super) fn read_header(&mut self, page: Page, cause: Cause) -> Result<Header> {
        let mut bytes = [0; HEADER_BYTES];
        again(|| {
            self.log.read(page, 0, &mut bytes, cause)?;
            Ok(Header::decode(&self.pages, page, &bytes).map_err(|what| damaged(page, what))?)
        })
    }

    /// Hands the lowest node of `page` to `visit`; `None` if there is none that is whole, which is
    /// damage if it is known to live.
    pub(super) fn visit_lowest<R>(
        &mut self,
        page: Page,
        is_live: bool,
        cause: Cause,
        visit: impl FnOnce(&Brief, &Codec, &[u8]) -> R,
    ) -> Result<Option<R>> {
        if self.cache.len() > 0 && self.cache.find(page, 0).is_some() {
            return self.visit((page, 0), cause, visit).map(Some);
        }
        for left in (0..READS_MOST).rev() {
            match self.read_checked(page, None, cause, |_, _, _| false) {
                Ok((header, codec)) => {
                    let layout = &header.layout;
                    let node = node_in(&self.pages, &self.log, &self.page, layout, header.lowest);
                    return Ok(Some(visit(&Brief::of(&header), &codec, node)));
                }
                Err(index::Error::Store(error)) if error.is_damage() => {
                    if !is_live && self.is_erased() {
                        return Ok(None);
                    }
                    if is_live && left == 0 {
                        return Err(error.into());
                    }
                }
                Err(other) => return Err(other),
            }
        }
        Ok(None)
    }

    /// True if the page that was read last was not programmed.
    fn is_erased(&self) -> bool {
        let header = self.page.get(self.log.content_start()..).unwrap_or_default();
        header.iter().take(HEADER_BYTES).all(|byte| *byte == 0xFF)
    }

    /// Hands the page of each node of the tree below `root` to `visit`, with the log. No leaf is
    /// read: its page is known from its parent.
    pub(super) fn walk(
        &mut self,
        root: At<Page>,
        cause: Cause,
        mut visit: impl FnMut(&mut PageLog<'_>, Page),
    ) -> Result<()> {
        let At { id: root, level: top } = root;
        let mut path = [(root, 0usize); HEIGHT_MOST as usize];
        visit(&mut self.log, root);
        let mut left = self.nodes_most();
        let mut level = top;
        while level > 0 {
            let (page, place) = path[usize::from(level)];
            let next = self.visit((page, level), cause, |_, codec, node| {
                (place < node::count(node)).then(|| child(codec, node, place))
            })?;
            let Some(child) = next else {
                level += 1;
                if level > top {
                    break;
                }
                continue;
            };
            path[usize::from(level)].1 += 1;
            left = left.checked_sub(1).ok_or(damage(page, SHARED))?;
            self.log.geometry().check_page(child)?;
            visit(&mut self.log, child);
            if level > 1 {
                level -= 1;
                path[usize::from(level)] = (child, 0);
            }
        }
        Ok(())
    }

    /// The content of the page that is made.
    pub(super) fn content(&mut self) -> &mut [u8] {
        self.held = None;
        let start = self.log.content_start();
        &mut self.page[start..]
    }

    /// Programs the page that was made, and remembers its nodes.
    pub(super) fn program(&mut self, page: Page, header: &Header, cause: Cause) -> Result<()> {
        if self.cache.len() > 0 {
            // Its nodes are not those that were read there.
            self.cache.remove_page(page);
        }
        self.log.program(page, &mut self.page, PageKind::Tree(0), cause)?;
        if !self.has_cache() {
            return Ok(());
        }
        let brief = Brief::of(header);
        // A leaf that is moved was not asked for.
        let least = u8::from(cause == Cause::Reclamation);
        for level in header.lowest.max(least)..=header.highest {
            if let Some((range, codec)) = self.pages.place_of(&header.layout, level) {
                let node = &self.page[self.log.content_start()..][range];
                let node = &node[..codec.kept_bytes(node)];
                self.cache.insert((page, level), brief.encode(), node);
            }
        }
        Ok(())
    }

    /// A node is used no more.
    pub(super) fn forget_node(&mut self, page: Page, level: u8) {
        if self.cache.len() > 0 {
            self.cache.remove(page, level);
        }
    }
}

impl PathNodes<'_> {
    /// Reads a node into the page, if it is not there.
    fn hold(&mut self, at: At<Page>, cause: Cause) -> Result<Held> {
        if let Some(held) = self.held.filter(|held| held.at == at) {
            return Ok(held);
        }
        self.log.geometry().check_page(at.id)?;
        let (brief, codec) = self.fetch((at.id, at.level), cause)?;
        let held = Held { at, brief, codec };
        self.held = Some(held);
        Ok(held)
    }

    /// True if no node of the page stands below the node.
    pub(super) fn is_lowest_of_page(&mut self, at: At<Page>) -> Result<bool> {
        let brief = match self.cached(at.id, at.level) {
            Some(number) => Brief::decode(&self.pages, *self.cache.used(number).0),
            None => self.hold(at, Cause::Lookup)?.brief,
        };
        Ok(brief.lowest == at.level)
    }
}

impl NodeSource for PathNodes<'_> {
    type Id = Page;

    /// The bytes of the node may end where nothing behind them means anything.
    fn node(&mut self, at: At<Page>, cause: Cause) -> Result<Node<'_>> {
        if let Some(number) = self.cached(at.id, at.level) {
            let (brief, bytes) = self.cache.used(number);
            let brief = Brief::decode(&self.pages, *brief);
            let codec = self.pages.codec(&brief.layout, at.level);
            return Ok(Node { codec: codec.ok_or_else(|| damage(at.id, NO_NODE))?, bytes });
        }
        let Held { brief, codec, .. } = self.hold(at, cause)?;
        let bytes = node_in(&self.pages, &self.log, &self.page, &brief.layout, at.level);
        Ok(Node { codec, bytes })
    }

    /// A page may hold a node of each level.
    fn nodes_most(&self) -> u64 {
        u64::from(self.log.geometry().pages()) * u64::from(HEIGHT_MOST)
    }
}

/// The node of `level` in a whole page that was checked.
fn node_in<'p>(
    pages: &Pages,
    log: &PageLog<'_>,
    page: &'p [u8],
    layout: &Layout,
    level: u8,
) -> &'p [u8] {
    let start = log.content_start();
    let range = pages.bytes_of(layout, level).unwrap_or_default();
    &page[start + range.start..start + range.end]
}

/// Reads again what looks damaged.
#[inline]
fn again<R>(mut read: impl FnMut() -> Result<R>) -> Result<R> {
    let mut reads_left = READS_MOST;
    loop {
        reads_left -= 1;
        match read() {
            Err(index::Error::Store(error)) if error.is_damage() && reads_left > 0 => {}
            other => return other,
        }
    }
}
