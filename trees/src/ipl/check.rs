//! Verifying every invariant of the tree.

use core::fmt::Display;

use super::Ipl;
use crate::btree::{self, Rules};
use index::Result;

pub(super) fn check(tree: &mut Ipl<'_>, finding: &mut dyn FnMut(&dyn Display)) -> Result<()> {
    let rules =
        Rules { has_exact_separators: false, is_half_full: false, has_branching_root: true };
    let counted =
        btree::check((&mut tree.store, tree.btree.root), &[], rules, &mut (), &mut *finding)?;
    let (nodes, live) = (counted.nodes, u64::from(tree.store.table.live()));
    if nodes != live {
        finding(&format_args!("the table has {live} nodes, but the tree {nodes}"));
    }
    for (level, (known, found)) in tree.store.levels.iter().zip(&counted.levels).enumerate() {
        if known != found {
            finding(&format_args!(
                "the root counts {known} nodes at level {level}, but the tree has {found}"
            ));
        }
    }
    let (known, found) = (tree.btree.entries, counted.entries);
    if known != found {
        finding(&format_args!("the root counts {known} entries, but the leaves hold {found}"));
    }
    Ok(())
}
