//! What trees read: nodes, by an id of the source's own.

use device::{Cause, Page};
use index::{Error, OverflowValue, Result};
use store::LogicalPage;
use store::node::{self, Codec, NodeKey, Shift, Stored};

/// What an inner node names a child by: a logical page, a node's number, a page of a chip.
pub(crate) trait NodeId: Copy + Eq {
    fn from_bytes(bytes: [u8; 4]) -> Self;
    fn to_bytes(self) -> [u8; 4];
}

impl NodeId for LogicalPage {
    fn from_bytes(bytes: [u8; 4]) -> Self {
        LogicalPage(u32::from_le_bytes(bytes))
    }

    fn to_bytes(self) -> [u8; 4] {
        self.0.to_le_bytes()
    }
}

impl NodeId for Page {
    fn from_bytes(bytes: [u8; 4]) -> Self {
        Page(u32::from_le_bytes(bytes))
    }

    fn to_bytes(self) -> [u8; 4] {
        self.0.to_le_bytes()
    }
}

/// A node, and how many levels it is above the leaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct At<I> {
    pub(crate) id: I,
    pub(crate) level: u8,
}

impl<I> At<I> {
    pub(crate) const fn leaf(id: I) -> Self {
        At { id, level: 0 }
    }
}

/// A well-formed node, and the codec that it is written in.
#[derive(Clone, Copy)]
pub(crate) struct Node<'n> {
    pub(crate) codec: Codec,
    pub(crate) bytes: &'n [u8],
}

impl<'n> Node<'n> {
    #[inline]
    pub(crate) fn count(&self) -> usize {
        node::count(self.bytes)
    }

    #[inline]
    pub(crate) fn key(&self, place: usize) -> NodeKey<'n> {
        self.codec.key(self.bytes, place)
    }

    #[inline]
    pub(crate) fn value(&self, place: usize) -> Stored<'n> {
        self.codec.value(self.bytes, place)
    }

    #[inline]
    pub(crate) fn search(&self, key: &[u8]) -> core::result::Result<usize, usize> {
        self.codec.search(self.bytes, key)
    }

    /// The place of the child where `key` is or belongs.
    #[inline]
    pub(crate) fn search_child(&self, key: &[u8]) -> usize {
        self.search(key).unwrap_or_else(|place| place.saturating_sub(1))
    }

    /// The child at `place` of an inner node.
    #[inline]
    pub(crate) fn child<I: NodeId>(&self, place: usize) -> I {
        I::from_bytes(self.value(place).bytes().first_chunk().copied().unwrap_or([0xFF; 4]))
    }
}

/// Where nodes are read. The node that was asked for last costs no operation of the device when it
/// is asked for again.
pub(crate) trait NodeSource {
    type Id: NodeId;

    /// The node, well-formed and at that level.
    ///
    /// # Errors
    /// It is damaged, or the device failed.
    fn node(&mut self, at: At<Self::Id>, cause: Cause) -> Result<Node<'_>>;

    /// Nodes that there can be: no walk meets more without damage.
    fn nodes_most(&self) -> u64;

    /// Reads a piece of a value that stands outside of its leaf.
    ///
    /// # Errors
    /// There are none, it is damaged, or the device failed.
    fn read_long(&mut self, value: OverflowValue, offset: u32, into: &mut [u8]) -> Result<()> {
        let _ = (value, offset, into);
        Err(store::Error::AdoptedTwice.into())
    }

    /// That the node makes no sense.
    fn damaged(&self, id: Self::Id, what: &'static str) -> Error {
        let page = LogicalPage(u32::from_le_bytes(id.to_bytes()));
        store::Error::DamagedPage { page, what }.into()
    }
}

/// One change of one node: what a node in place does at once, and what a log of changes records.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Edit<'e> {
    Insert { place: usize, key: &'e [u8], value: Stored<'e> },
    Replace { place: usize, value: Stored<'e> },
    Remove { place: usize },
}

impl Edit<'_> {
    /// Makes the change in the bytes of a node; false, and nothing changed, if there is no room.
    #[inline]
    pub(crate) fn apply(&self, codec: &Codec, node: &mut [u8], scratch: &mut [u8]) -> bool {
        match *self {
            Edit::Insert { place, key, value } => codec.insert(node, place, key, value, scratch),
            Edit::Replace { place, value } => codec.replace(node, place, value, scratch),
            Edit::Remove { place } => {
                codec.remove(node, place);
                true
            }
        }
    }
}

/// Where nodes are changed. An id stays what it is while its node lives.
///
/// The errors of all calls: a node is damaged, there is no room, or the device failed.
pub(crate) trait NodeStore: NodeSource {
    /// Changes a node; false, and nothing changed, if it has no room.
    fn edit(&mut self, at: At<Self::Id>, edit: Edit<'_>, cause: Cause) -> Result<bool>;

    /// A new node, empty.
    fn create(&mut self, level: u8, cause: Cause) -> Result<Self::Id>;

    /// The node is no more.
    fn free(&mut self, at: At<Self::Id>, cause: Cause) -> Result<()>;

    /// Two neighbours at one level, which are about to change.
    fn pair(
        &mut self,
        left: At<Self::Id>,
        right: Self::Id,
        cause: Cause,
    ) -> Result<(Node<'_>, Node<'_>)>;

    /// The entries from `place` on go to a new node.
    fn split(&mut self, at: At<Self::Id>, place: usize, cause: Cause) -> Result<Self::Id>;

    /// All entries of `right` go behind those of `left`.
    fn join(&mut self, left: At<Self::Id>, right: Self::Id, cause: Cause) -> Result<()>;

    /// Entries go from one neighbour to the other.
    fn shift(
        &mut self,
        left: At<Self::Id>,
        right: Self::Id,
        shift: Shift,
        cause: Cause,
    ) -> Result<()>;
}
