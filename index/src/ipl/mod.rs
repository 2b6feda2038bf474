//! `ipl`: in-page logging, as the LA-Tree paper builds it (section 5) after Lee and Moon (SIGMOD
//! 2007).
//!
//! An erase block holds node pages and, at its end, log pages for the changes of these nodes. A
//! node that was changed is not written again when it leaves the cache: its changes, the deltas, go
//! to a log page of its own block. Reading a node is reading its page and every log page of the
//! block that has deltas of it. When the log pages are full, nodes and deltas are merged into a
//! fresh block, and the old one can be erased.
//!
//! These are the parts that need no device: what goes where in a block (`block.rs`), the bytes of a
//! log page (`layout.rs`), and how deltas change a node (`merge.rs`). The tree over the page log is
//! not done yet: `docs/fidelity/ipl.md` says how far it is.
//!
//! # Choices that the paper leaves open
//! - Log pages are the block's last ones, so that a chip that orders its programs takes all node
//!   pages first. Where it does, a node that is born after the first log page was written goes to
//!   a fresh block.
//! - Where the chip allows parts of a page to be programmed, each write of deltas takes only its
//!   bytes of a log page; otherwise it takes a whole page.

mod block;
mod layout;
mod merge;
