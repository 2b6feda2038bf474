//! `lsm`: a small B+-tree in place above a forest of B+-trees of growing sizes.
//!
//! O'Neil and others: The Log-Structured Merge-Tree (Acta Informatica 33, 1996), in the form in
//! which the FD-Tree paper measures it: components of the same sizes as that tree's levels, merged
//! in the same units, each a B+-tree of its own that a search goes down. A component is a run, its
//! inner nodes are runs of fences above it.

use index::TreeDescriptor;

use crate::levels;

/// The registry's line.
pub(crate) const ENTRY: TreeDescriptor = levels::descriptor::<false>(
    "a small B+-tree in place above a forest of B+-trees, written by merging",
    "O'Neil, Cheng, Gawlick and O'Neil: The Log-Structured Merge-Tree (1996)",
);
