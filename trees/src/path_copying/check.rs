//! Verifying every invariant of the tree.

use core::fmt::Display;

use device::Page;

use super::bare_tree::BareTree;
use super::layout::HEIGHT_MOST;
use super::path_nodes::PathNodes;
use crate::btree::{self, At, Inspector, KeyBounds, Rules};
use index::Result;

/// Pages whose lowest node was met.
struct Pages(u64);

impl Inspector<PathNodes<'_>> for Pages {
    fn inspect(
        &mut self,
        store: &mut PathNodes<'_>,
        at: At<Page>,
        _: &KeyBounds<'_>,
        _: &mut dyn FnMut(&dyn Display),
    ) -> Result<()> {
        self.0 += u64::from(store.is_lowest_of_page(at)?);
        Ok(())
    }
}

pub(super) fn check(tree: &mut BareTree<'_>, finding: &mut dyn FnMut(&dyn Display)) -> Result<()> {
    // What is checked is what stands on flash.
    tree.nodes.forget_all();
    // What is below the first separator is in the first child, and nodes go when they are empty.
    let rules =
        Rules { has_exact_separators: false, is_half_full: false, has_branching_root: false };
    let mut lowest = Pages(0);
    let root = tree.root();
    let checked = btree::check((&mut tree.nodes, root), &[], rules, &mut lowest, &mut *finding)?;
    let (by_level, pages) = (&checked.levels[..usize::from(HEIGHT_MOST)], lowest.0);
    let live = u64::from(tree.standing().live_pages);
    if pages != live {
        finding(&format_args!("the root counts {live} live pages, but {pages} are"));
    }
    let counted = &tree.census.demand.levels;
    if by_level != counted {
        finding(&format_args!("it counts {counted:?} nodes a level, but {by_level:?} are"));
    }
    if let Some(known) = tree.live.count().filter(|known| *known != pages) {
        finding(&format_args!("the table of live pages has {known}, but {pages} are"));
    }
    Ok(())
}
