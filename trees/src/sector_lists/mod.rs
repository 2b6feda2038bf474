//! Nodes as lists of sectors: what `bftl` stands on, and any tree that logs changes of nodes.
//!
//! A node is not rewritten when it changes. What changed of it is an **index unit**, which waits in
//! the reservation buffer. A commit packs the units of all nodes into as few sectors as they fill,
//! those of one node together, and the **node translation table** says, for each node, the sectors
//! that hold its units, oldest first. A node is read from all of them, and from the buffer. A node
//! whose list is full, or that was split or joined, is written anew as a whole: its list becomes
//! one sector.
//!
//! `table` is the node translation table, `packed` the numbers in it, `layout` the bytes of a
//! sector, `buffer` what waits; `store` reads nodes and caches them, `commit` writes, `collect`
//! chooses what gets shorter, `scan` makes the table from the sectors, and `nodes` makes units of
//! what the B+-tree over them changes.
//!
//! # Invariants
//! - A sector is written once. It is given back when no list names it any more.
//! - A cached node is what its list and the buffer say, unless it is to be written anew; then the
//!   buffer has nothing of it, and it leaves the cache by a commit only.
//! - A unit is applied to a node as it was when the change was made, so it becomes the same bytes.
//! - A list begins with the newest whole of its node and has all that is newer, by the sequences of
//!   the sectors. So it is found by reading all sectors in use.
//! - All lists together name no more sectors than there is room for ([`Store::room`]); so, as each
//!   sector in use is in a list, a commit finds room whatever shares sectors with what.

mod buffer;
mod choices;
mod collect;
mod commit;
mod layout;
mod nodes;
mod packed;
mod pages;
mod scan;
mod store;
mod switching;
mod table;
pub(crate) mod tree;

pub(crate) use choices::{Choices, LOG_SECTORS_MOST, Mode, UNITS_MOST, Waits};
pub(crate) use layout::{FRONT_BYTES, Sector};
pub(crate) use scan::Scanned;
pub(crate) use store::{Shape, Store};
pub(crate) use table::{NodeId, Table};
