//! The B+-tree, written once, whatever its nodes stand on.
//!
//! To be read, a tree is a [`NodeSource`] and a root: `descend` and `read` find a key, `scan`
//! reads a range, `resume` goes on after damage, `check` verifies. To be changed it is a [`BTree`]
//! over a [`NodeStore`]: `change` puts, deletes and splits, `rebalance` borrows and merges, `group`
//! changes a leaf by many updates, `load` fills an empty tree, `room` counts what puts need.
//! [`PageStore`] has nodes as pages of a page file; in [`Sorted`] updates wait for their leaves.
//!
//! Invariants
//! - Positions are plain data: a node is borrowed from its source last, and only for as long as
//!   nothing else is asked of it.
//! - A child's level is its parent's minus one, so no damage makes a descent run in a circle; and a
//!   walk over leaves ends after as many as there can be.

mod change;
mod check;
mod codecs;
mod descend;
mod group;
mod load;
mod nodes;
mod page_store;
mod position;
mod prefetch;
mod rebalance;
mod resume;
mod room;
mod scan;
mod sorted;

pub(crate) use change::BTree;
pub(crate) use check::{Inspector, KeyBounds, Rules, check};
pub(crate) use codecs::{CHILD_BYTES, Codecs};
pub(crate) use descend::{HEIGHT_MOST, Path, Toward, descend, read, read_stored};
pub(crate) use group::Reshaped;
pub(crate) use load::copy_long;
pub(crate) use nodes::{At, Edit, Node, NodeId, NodeSource, NodeStore};
pub(crate) use page_store::PageStore;
pub(crate) use position::Position;
pub(crate) use rebalance::are_in_order;
pub(crate) use resume::resume_after;
pub(crate) use room::{Extent, Puts};
pub(crate) use scan::{Overlay, Scan};
pub(crate) use sorted::{NODE_BYTES_BESIDE, Place, Sorted, Spare, set_update, update_codec};
