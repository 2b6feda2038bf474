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
    let live = u64::from(tree.store.table.live());
    counted.compare((live, &tree.store.levels, tree.btree.entries), finding);
    Ok(())
}
