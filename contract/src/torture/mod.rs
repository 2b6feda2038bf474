//! Torture: the power is cut at every operation, and nothing that was acknowledged may be lost.
//!
//! A [`Cell`] is a tree with its parameters, what it stands on, the durability, the size of pages
//! and the shape of entries; [`cells`] makes them all from the registries. [`torture`] plays two
//! kinds of histories on each:
//!
//! - **short ones**, cut at every operation in turn (`each.rs`), then at every operation of the
//!   recovery, and some of these recoveries' recoveries too; what a cut tears is decided by the
//!   seed. Some of these histories are complete: they contain a split, a merge (or an
//!   emptied node, where the tree says that its nodes are not merged), a reclamation, a
//!   checkpoint, a delete and a batch;
//! - **lives** (`life.rs`): many sessions on one device, each cut at a random operation, be it in
//!   the middle of a recovery, while blocks of the chip go bad, requests of a disk fail, memory
//!   is now more and now less, and on some devices there is hardly room.
//!
//! After each cut the index is opened and compared with every state that it may have: [`truth`].
//! A failure has a [`ReplayId`], which plays it again.

mod actions;
mod cell;
mod device;
mod each;
mod failure;
mod found;
mod held_back;
mod id;
mod life;
mod run;
mod script;
mod seeds;
mod session;
pub mod truth;
mod witness;

pub use cell::{Cell, Loss, Stand, cells, cells_of, find_cell};
pub use id::ReplayId;
pub use run::{Plan, Row, Watcher, assert_clean, replay, torture};
pub use witness::Witness;
