//! The head: a small B+-tree in place, in which updates wait for the first merge.
//!
//! Its pages are few, so random writes stay in a small area. The last byte of a value says whether
//! it is a put or a delete.

use alloc::vec::Vec;
use core::ops::Bound;

use device::Cause;
use index::{Direction, Result};
use store::node::Stored;
use store::runs::{Entry, FileSpace, Kind, Source, Space, Way};
use store::{EntryShape, LogicalPage, Width};

use crate::btree::{At, BTree, Codecs, Node, NodeSource, NodeStore, PageStore, Position};

/// The last byte of a value.
const PUT: u8 = 0;
const DELETE: u8 = 1;

/// The head's nodes, in the page file in front of the runs.
pub(super) type HeadStore<'d> = PageStore<'d, FileSpace<'d>>;

/// The codecs of the head's nodes; `None` if four entries don't fit.
pub(super) fn codecs(page_bytes: u32, shape: EntryShape) -> Option<Codecs> {
    let value = match shape.value {
        Width::Fixed(bytes) => Width::Fixed(bytes.checked_add(1)?),
        Width::Variable => Width::Variable,
    };
    Codecs::new(page_bytes, EntryShape { key: shape.key, value })
}

/// Splits what stands in a node into the kind and the value.
fn split(stored: &[u8]) -> (Kind, &[u8]) {
    match stored.split_last() {
        Some((&DELETE, _)) => (Kind::Delete, &[]),
        Some((_, value)) => (Kind::Put, value),
        None => (Kind::Put, &[]),
    }
}

/// What a root record says of a head.
#[derive(Clone, Copy, Debug)]
pub(super) struct HeadState {
    pub(super) root: At<LogicalPage>,
    pub(super) entries: u64,
    pub(super) bytes: u64,
}

/// Bytes of a node that an entry takes beside key and value, where lengths vary; and of a node that
/// has none.
const BESIDE: u64 = 9;
const NODE_BESIDE: u64 = 32;

/// The head of a tree of runs.
pub(super) struct Head {
    pub(super) btree: BTree<LogicalPage>,
    /// Bytes of keys and values that were put into it, or more.
    pub(super) bytes: u64,
    /// A value with its last byte.
    stored: Vec<u8>,
    value: Option<usize>,
}

impl Head {
    pub(super) fn new(root: At<LogicalPage>, codecs: Codecs, longest: usize) -> Self {
        let mut btree = BTree::new(root.id, codecs, 100);
        btree.root = root;
        let value = match codecs.shape.value {
            Width::Fixed(bytes) => Some(usize::from(bytes) - 1),
            Width::Variable => None,
        };
        Head { btree, bytes: 0, stored: Vec::with_capacity(longest + 1), value }
    }

    pub(super) const fn state(&self) -> HeadState {
        HeadState { root: self.btree.root, entries: self.btree.entries, bytes: self.bytes }
    }

    /// Bytes of updates that it took, as [`Head::room`] counts them.
    pub(super) const fn used(&self) -> u64 {
        let beside = if self.value.is_some() { 0 } else { BESIDE * self.btree.entries };
        self.bytes + beside
    }

    /// Bytes of updates that an empty one takes at least, with keys of up to `key` bytes, until it
    /// may have no room for one more in `pages` pages: splits leave nodes half full.
    pub(super) fn room(&self, pages: u32, (page_bytes, key): (u32, usize)) -> u64 {
        let codecs = &self.btree.codecs;
        let leaf = match (codecs.shape.key, self.value) {
            (Width::Fixed(_), Some(value)) => {
                (codecs.leaf.capacity(key, value + 1) * (key + value)) as u64
            }
            _ => u64::from(page_bytes).saturating_sub(NODE_BESIDE),
        };
        let children = (codecs.inner.capacity(key, 4) as u32 / 2).max(2);
        let mut leaves = pages;
        loop {
            let (mut nodes, mut level, mut height) = (leaves, leaves, 1);
            while level > 1 {
                level = level.div_ceil(children);
                (nodes, height) = (nodes + level, height + 1);
            }
            if leaves <= 1 || nodes + self.pages_of_one_in(height) <= pages {
                return u64::from(leaves + 1) * leaf / 2;
            }
            leaves -= 1;
        }
    }

    /// Pages that one update may need: where lengths vary a node may split twice.
    pub(super) fn pages_of_one(&self) -> u32 {
        self.pages_of_one_in(self.btree.height().into())
    }

    const fn pages_of_one_in(&self, height: u32) -> u32 {
        let splits = if self.value.is_some() { 1 } else { 2 };
        splits * (1 + height) + 1
    }

    /// Pages in use that one update changes at most.
    pub(super) fn changes_of_one(&self) -> u32 {
        3 * u32::from(self.btree.height()) + 4
    }

    /// Puts a key with its value, or its delete.
    pub(super) fn put(
        &mut self,
        store: &mut HeadStore<'_>,
        key: &[u8],
        value: Option<&[u8]>,
    ) -> Result<()> {
        self.stored.clear();
        self.stored.extend_from_slice(value.unwrap_or_default());
        if let Some(bytes) = self.value {
            self.stored.resize(bytes, 0);
        }
        self.bytes += (key.len() + self.stored.len()) as u64;
        self.stored.push(if value.is_some() { PUT } else { DELETE });
        self.btree.put(store, key, Stored::inline(&self.stored)).map(drop)
    }

    /// What it says of `key`.
    pub(super) fn get<'s>(
        &self,
        store: &'s mut HeadStore<'_>,
        key: &[u8],
    ) -> Result<Option<(Kind, &'s [u8])>> {
        if self.btree.entries == 0 {
            return Ok(None);
        }
        let mut at = self.btree.root;
        while at.level > 0 {
            let node = store.node(at, Cause::Lookup)?;
            if node.count() == 0 {
                return Err(store.damaged(at.id, "it has no children"));
            }
            at = At { id: node.child(node.search_child(key)), level: at.level - 1 };
        }
        let node = store.node(at, Cause::Lookup)?;
        Ok(node.search(key).ok().map(|place| split(node.value(place).bytes())))
    }

    /// Empties it: all its pages are given back.
    pub(super) fn clear(&mut self, store: &mut HeadStore<'_>) -> Result<()> {
        self.btree.is_poisoned = true;
        self.give_back(store)?;
        let root = store.create(0, Cause::Merge)?;
        self.btree.root = At::leaf(root);
        self.btree.entries = 0;
        self.bytes = 0;
        self.btree.is_poisoned = false;
        Ok(())
    }

    /// Gives back all its pages.
    pub(super) fn give_back(&self, store: &mut HeadStore<'_>) -> Result<()> {
        free_below(store, self.btree.root)
    }
}

fn free_below(store: &mut HeadStore<'_>, at: At<LogicalPage>) -> Result<()> {
    if at.level > 0 {
        let children = store.node(at, Cause::Merge)?.count();
        for place in 0..children {
            let child = store.node(at, Cause::Merge)?.child(place);
            free_below(store, At { id: child, level: at.level - 1 })?;
        }
    }
    store.free(at, Cause::Merge)
}

/// The head's nodes, as whoever reads runs as well comes to them.
struct SpaceNodes<'s> {
    space: &'s mut dyn Space,
    codecs: &'s Codecs,
    nodes_most: u64,
}

impl NodeSource for SpaceNodes<'_> {
    type Id = LogicalPage;

    fn node(&mut self, at: At<LogicalPage>, cause: Cause) -> Result<Node<'_>> {
        let bytes = self.space.front_page(at.id, cause, self.codecs)?;
        if store::node::level(bytes) != at.level {
            let what = "it is at another level";
            return Err(store::Error::DamagedPage { page: at.id, what }.into());
        }
        Ok(Node { codec: *self.codecs.at(at.level), bytes })
    }

    fn nodes_most(&self) -> u64 {
        self.nodes_most
    }
}

/// An entry, copied.
#[derive(Default)]
struct Copied {
    key: Vec<u8>,
    kind: Kind,
    value: Vec<u8>,
    is_there: bool,
}

impl Copied {
    fn entry(&self) -> Option<Entry<'_>> {
        let entry = Entry { key: &self.key, kind: self.kind, value: &self.value };
        self.is_there.then_some(entry)
    }
}

/// The entries of a head, one way.
pub(super) struct HeadSource {
    codecs: Codecs,
    position: Option<Position<LogicalPage>>,
    nodes_most: u64,
    way: Way,
    next: Copied,
    passed: Copied,
}

impl HeadSource {
    /// Entries from `start` on.
    pub(super) fn new(
        store: &mut HeadStore<'_>,
        head: &Head,
        start: Bound<&[u8]>,
        direction: Direction,
    ) -> Result<Self> {
        let position = match head.btree.entries {
            0 => None,
            _ => Some(Position::seek(store, head.btree.root, (start, direction), Cause::Lookup)?),
        };
        let way = if direction == Direction::Ascending { Way::Up } else { Way::Down };
        let (next, passed) = (Copied::default(), Copied::default());
        let nodes_most = store.nodes_most();
        Ok(HeadSource { codecs: store.codecs, position, nodes_most, way, next, passed })
    }
}

/// What a tree tells of what runs say.
fn in_store(error: index::Error) -> store::Error {
    match error {
        index::Error::Store(error) => error,
        _ => store::Error::NotAnIndex { is_ours: true, what: "its head makes no sense" },
    }
}

impl Source for HeadSource {
    fn load(&mut self, space: &mut dyn Space, _: Way) -> store::Result<bool> {
        let Some(position) = self.position.as_mut().filter(|_| !self.next.is_there) else {
            return Ok(self.next.is_there);
        };
        let direction =
            if self.way == Way::Up { Direction::Ascending } else { Direction::Descending };
        let mut nodes = SpaceNodes { space, codecs: &self.codecs, nodes_most: self.nodes_most };
        let Some(place) = position.peek(&mut nodes, direction).map_err(in_store)? else {
            self.position = None;
            return Ok(false);
        };
        let leaf = At::leaf(position.leaf());
        let node = nodes.node(leaf, Cause::Lookup).map_err(in_store)?;
        node.key(place).copy_to(&mut self.next.key);
        let (kind, value) = split(node.value(place).bytes());
        self.next.kind = kind;
        self.next.value.clear();
        self.next.value.extend_from_slice(value);
        self.next.is_there = true;
        position.pass(direction);
        Ok(true)
    }

    fn head(&self, way: Way) -> Option<Entry<'_>> {
        if way == self.way { self.next.entry() } else { self.passed.entry() }
    }

    fn step(&mut self, _: Way) {
        core::mem::swap(&mut self.next, &mut self.passed);
        self.next.is_there = false;
    }
}
