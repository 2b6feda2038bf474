//! What the tree stands on: the page log, with a cache of nodes and room for one page.

use alloc::vec;
use alloc::vec::Vec;

use device::{Cause, Page};
use store::node::Codec;
use store::{LogicalPage, PageKind, PageLog};

use super::descent::CopiedPath;
use super::layout::{CHILD_BYTES, Division, HEIGHT_MOST, Layout, Pages, Share};
use super::node_cache::{NodeCache, ROOM_BYTES, TABLES_BYTES};
use super::page::{Damage, HEADER_BYTES, Header, check_node};
use crate::btree::{At, Node, NodeSource};
use index::Result;

/// What of a page's header matters to who has one of its nodes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Brief {
    pub(super) layout: Layout,
    /// The lowest level of a node in the page.
    pub(super) lowest: u8,
}

pub(super) const BRIEF_BYTES: usize = 4;

/// How often a page is read that looks damaged: flips come and go.
const READS_MOST: u32 = 3;

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

impl Brief {
    fn of(header: &Header) -> Self {
        Brief { layout: header.layout, lowest: header.lowest }
    }

    fn encode(&self) -> [u8; BRIEF_BYTES] {
        let [low, high] = self.layout.leaf.bits().to_le_bytes();
        [low, high, self.layout.height, self.lowest]
    }

    fn decode(pages: &Pages, bytes: [u8; BRIEF_BYTES]) -> Self {
        let [low, high, height, lowest] = bytes;
        let leaf = Share::from_bits(u16::from_le_bytes([low, high])).unwrap_or(Share::HALF);
        Brief { layout: pages.layout(leaf, height), lowest }
    }
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

fn cache_of(bytes: usize, page_bytes: usize, division: Division) -> NodeCache {
    NodeCache::new(bytes, places(bytes, page_bytes, division))
}

impl<'d> PathNodes<'d> {
    pub(super) fn new(log: PageLog<'d>, pages: Pages, cache_bytes: usize) -> Self {
        let page_bytes = log.geometry().page_bytes() as usize;
        PathNodes {
            log,
            pages,
            cache: cache_of(cache_bytes, page_bytes, pages.division),
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
        self.cache = cache_of(bytes, page_bytes, self.pages.division);
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
        if self.cache.len() > 0
            && let Some((brief, node)) = self.cache.get(page, level)
        {
            let brief = Brief::decode(&self.pages, *brief);
            let codec = self.pages.codec(&brief.layout, level).ok_or(no_node(page))?;
            return Ok(visit(&brief, &codec, node));
        }
        let (header, codec) = self.read_again((page, level), cause, |_, _, _| false)?;
        let brief = Brief::of(&header);
        let node = node_in(&self.pages, &self.log, &self.page, &header.layout, level);
        if self.has_cache() {
            remember(&mut self.cache, (page, level), &brief, &node[..codec.kept_bytes(node)]);
        }
        Ok(visit(&brief, &codec, node))
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
        if self.has_cache() && (level > 0 || self.cache.holds(page, level)) {
            let copied = self.visit((page, level), cause, |brief, codec, node| {
                path.copy((page, level), (brief, start), codec, node).then_some(*codec)
            })?;
            return Ok(copied.ok_or(too_large(page))?);
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
                return Err(too_large(page).into());
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
        let mut reads_left = READS_MOST;
        loop {
            reads_left -= 1;
            match self.read_checked(page, Some(level), cause, &mut is_known) {
                Err(index::Error::Store(error)) if error.is_damage() && reads_left > 0 => {}
                other => return other,
            }
        }
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
        let (range, codec) = place.ok_or(no_node(page))?;
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
        let mut reads_left = READS_MOST;
        loop {
            reads_left -= 1;
            let read = self.log.read(page, 0, &mut bytes, cause).and_then(|_| {
                Header::decode(&self.pages, page, &bytes).map_err(|damage| damaged(page, damage))
            });
            match read {
                Err(error) if error.is_damage() && reads_left > 0 => {}
                other => return Ok(other?),
            }
        }
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
        if self.cache.len() > 0 && self.cache.holds(page, 0) {
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

    /// The content of the page that is made.
    pub(super) fn content(&mut self) -> &mut [u8] {
        self.held = None;
        let start = self.log.content_start();
        &mut self.page[start..]
    }

    /// Programs the page that was made, and remembers its nodes.
    pub(super) fn program(&mut self, page: Page, header: &Header, cause: Cause) -> Result<()> {
        self.forget_page(page);
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
                remember(&mut self.cache, (page, level), &brief, &node[..codec.kept_bytes(node)]);
            }
        }
        Ok(())
    }

    /// The nodes of `page` are not those that were read there.
    fn forget_page(&mut self, page: Page) {
        if self.cache.len() > 0 {
            self.cache.remove_page(page);
        }
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
        let (header, codec) = self.read_again((at.id, at.level), cause, |_, _, _| false)?;
        let brief = Brief::of(&header);
        if self.has_cache() {
            let node = node_in(&self.pages, &self.log, &self.page, &header.layout, at.level);
            let kept = codec.kept_bytes(node);
            remember(&mut self.cache, (at.id, at.level), &brief, &node[..kept]);
        }
        let held = Held { at, brief, codec };
        self.held = Some(held);
        Ok(held)
    }

    /// True if no node of the page stands below the node.
    pub(super) fn is_lowest_of_page(&mut self, at: At<Page>) -> Result<bool> {
        let brief = match self.cached(at) {
            Some(number) => Brief::decode(&self.pages, *self.cache.used(number).0),
            None => self.hold(at, Cause::Lookup)?.brief,
        };
        Ok(brief.lowest == at.level)
    }

    /// Where the node stands in the cache.
    fn cached(&mut self, at: At<Page>) -> Option<u16> {
        if self.cache.len() > 0 { self.cache.locate(at.id, at.level) } else { None }
    }
}

impl NodeSource for PathNodes<'_> {
    type Id = Page;

    /// The bytes of the node may end where nothing behind them means anything.
    fn node(&mut self, at: At<Page>, cause: Cause) -> Result<Node<'_>> {
        if let Some(number) = self.cached(at) {
            let (brief, bytes) = self.cache.used(number);
            let brief = Brief::decode(&self.pages, *brief);
            let codec = self.pages.codec(&brief.layout, at.level).ok_or(no_node(at.id))?;
            return Ok(Node { codec, bytes });
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

/// Puts a node into the cache, for which the oldest ones go.
fn remember(cache: &mut NodeCache, at: (Page, u8), brief: &Brief, node: &[u8]) {
    cache.insert(at, brief.encode(), node);
}

fn too_large(page: Page) -> store::Error {
    store::Error::DamagedPage {
        page: LogicalPage(page.0),
        what: "the nodes on its way are larger than they can be",
    }
}

fn no_node(page: Page) -> store::Error {
    store::Error::DamagedPage {
        page: LogicalPage(page.0),
        what: "it does not hold the node that is looked for in it",
    }
}

/// The page at which an inner node points.
pub(super) fn child(codec: &Codec, node: &[u8], place: usize) -> Page {
    let bytes = codec.value(node, place).bytes().first_chunk::<{ CHILD_BYTES as usize }>();
    Page(u32::from_le_bytes(bytes.copied().unwrap_or([0xFF; CHILD_BYTES as usize])))
}

pub(super) fn damaged(page: Page, damage: Damage) -> store::Error {
    let page = LogicalPage(page.0);
    match damage {
        Damage::Erased => store::Error::DamagedPage { page, what: "nothing stands in it" },
        Damage::Checksum { expected, found } => store::Error::CorruptPage { page, expected, found },
        Damage::Nonsense(what) => store::Error::DamagedPage { page, what },
    }
}
