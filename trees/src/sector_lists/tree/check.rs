//! Verifying every invariant of the tree.

use core::fmt::Display;

use device::Cause;

use super::ListTree;
use crate::btree::{self, Rules};
use crate::sector_lists::Sector;
use index::{Error, Result};

pub(super) fn check(tree: &mut ListTree<'_>, finding: &mut dyn FnMut(&dyn Display)) -> Result<()> {
    let mut lowest = alloc::vec::Vec::new();
    tree.store.shape.codecs.lowest(&mut lowest);
    let rules = Rules {
        has_exact_separators: true,
        is_half_full: !tree.store.shape.codecs.is_variable(),
        has_branching_root: true,
    };
    let root = (&mut tree.store, tree.btree.root);
    let counted = btree::check(root, &lowest, rules, &mut (), &mut *finding)?;
    let live = u64::from(tree.store.table.nodes());
    counted.compare((live, &tree.store.levels, tree.btree.entries), finding);
    check_sectors(tree, finding)
}

/// Every sector that a list names can be read, and no other is in use.
fn check_sectors(tree: &mut ListTree<'_>, finding: &mut dyn FnMut(&dyn Display)) -> Result<()> {
    let store = &mut tree.store;
    // A page that was never written is none.
    store.write_pages()?;
    for node in store.table.numbers() {
        for place in 0..store.table.list(node).len() {
            let Some(sector) = store.table.list(node).nth(place) else {
                break;
            };
            if let Err(error) = store.file.page(sector, Cause::Lookup, &Sector) {
                Error::from(error).report_damage(finding)?;
            }
        }
    }
    let own = store.file.pages_used().0.saturating_sub(store.file.record_pages());
    let listed = store.table.sectors();
    if own != listed {
        finding(&format_args!("{own} sectors are in use, but lists name {listed}"));
    }
    store.check_scan(finding)?;
    match store.file.check_pages(finding) {
        Ok(()) => Ok(()),
        Err(error) => Error::from(error).report_damage(finding),
    }
}
