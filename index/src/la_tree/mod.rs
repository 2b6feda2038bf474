//! `la-tree`: the lazy-adaptive tree of Agrawal, Ganesan, Sitaraman, Diao and Singh (VLDB 2009).
//!
//! A B+-tree whose updates wait in buffers on flash, at every K-th level, and go down in batches.
//! ADAPT ([`policy`]) decides for each buffer when it is emptied: large buffers where updates
//! dominate, small ones where lookups do.
//!
//! These are the parts that need no device: the policy, the cost model that it decides by, the
//! bytes on flash, the buffer pool in memory, and the order in which a buffer is emptied. The tree
//! puts them together over the page log; `docs/fidelity/la-tree.md` says how far that is.
//!
//! # Words
//! - A **subtree** is a node with a buffer, and the K levels from it down to the next buffers.
//! - A **buffer** is a chain of fragments on flash, each linked to the one before it, and the
//!   entries in the pool that are not on flash yet.
//! - A **leaf subtree** is one whose lowest level are leaves.
//!
//! # Choices that the paper leaves open
//! - Levels are counted from the leaves, so a buffered level stays one when the tree grows: levels
//!   K - 1, 2K - 1 and so on, and the root always. Only the top subtree may have fewer levels.
//! - Sizes are bytes, not entries, because keys and values may vary in length.
//! - A delete in a buffer carries its key only.

pub mod policy;

// The tree over the page log calls what is below; until it does, tests are the only caller.
#[cfg_attr(not(test), expect(dead_code, reason = "the tree over the page log comes next"))]
mod buffer_pool;
#[cfg_attr(not(test), expect(dead_code, reason = "the tree over the page log comes next"))]
mod cost;
#[cfg_attr(not(test), expect(dead_code, reason = "the tree over the page log comes next"))]
mod emptying;
#[cfg_attr(not(test), expect(dead_code, reason = "the tree over the page log comes next"))]
mod layout;
#[cfg_attr(not(test), expect(dead_code, reason = "the tree over the page log comes next"))]
mod stream;
#[cfg_attr(not(test), expect(dead_code, reason = "the tree over the page log comes next"))]
mod table;
