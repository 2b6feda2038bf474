//! `fd-tree`: a small B+-tree above sorted runs that lead into each other by fences.
//!
//! Li, He, Yang, Luo, Yi: Tree Indexing on Solid State Drives (VLDB 2010).

use index::TreeDescriptor;

use crate::levels;

/// The registry's line.
pub(crate) const ENTRY: TreeDescriptor = levels::descriptor::<true>(
    "a small B+-tree in place above sorted runs that fences lead through",
    "Li, He, Yang, Luo and Yi: Tree Indexing on Solid State Drives (VLDB 2010)",
);
