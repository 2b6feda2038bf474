//! Every tree, in one sorted list: one more tree is one folder and one line.

use index::TreeDescriptor;

use crate::{b_plus, bftl, fd_tree, flashdb, flat_tree, ipl, la_tree, lazy_update, list, lsm, mu};

/// All trees, sorted by name.
pub const TREES: &[&TreeDescriptor] = &[
    &b_plus::ENTRY,
    &bftl::ENTRY,
    &fd_tree::ENTRY,
    &flashdb::ENTRY,
    &flat_tree::ENTRY,
    &ipl::ENTRY,
    &la_tree::ENTRY,
    &lazy_update::ENTRY,
    &list::ENTRY,
    &lsm::ENTRY,
    &mu::MU,
    &mu::MU_STAR,
];

/// The tree called `name`.
#[must_use]
pub fn find(name: &str) -> Option<&'static TreeDescriptor> {
    TREES.iter().copied().find(|entry| entry.name == name)
}
