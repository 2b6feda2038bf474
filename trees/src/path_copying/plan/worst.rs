//! What one change writes at the most, and what the nodes of a path take.

use super::super::layout::Division;
use super::super::policy::Policy;

/// So many parts more than two a root falls into, which is larger than any node below one.
pub(crate) const PARTS_MORE: u64 = 2;

/// Pages that a path of `height` levels takes, splits aside: where a page's division can change,
/// any node may have to stand alone.
pub(crate) fn path_pages(policy: &Policy, height: u8) -> u64 {
    let pages = policy.pages();
    match pages.division {
        Division::Halves => 1 + u64::from(height.saturating_sub(pages.together)),
        Division::Even | Division::Whole => height.into(),
    }
}

/// Pages that one change of a tree of `height` levels writes where it spares nodes: the path of a
/// tree that is one level higher, and a part more of every node on it, or two where lengths vary.
pub(crate) fn change_pages(policy: &Policy, height: u8) -> u64 {
    let after = (height + 1).min(policy.height_most());
    let parts = if policy.pages().is_variable() { 2 } else { 1 };
    path_pages(policy, after) + parts * u64::from(after) + PARTS_MORE
}

/// Nodes above the leaves that one change of a tree of `height` levels adds where it spares nodes:
/// a part more of every one on its way, or two where lengths vary, and a root.
pub(crate) fn inner_nodes_added(policy: &Policy, height: u8) -> u64 {
    let parts = if policy.pages().is_variable() { 2 } else { 1 };
    parts * u64::from(height.saturating_sub(1)) + 1 + PARTS_MORE
}

/// The most bytes that a leaf below a root has.
pub(crate) fn leaf_bytes(policy: &Policy) -> u64 {
    bytes_most(policy, 0, &|height| height > 1)
}

fn bytes_most(policy: &Policy, level: u8, is_possible: &dyn Fn(u8) -> bool) -> u64 {
    let layouts = policy.extremes().filter(|layout| is_possible(layout.height));
    let parts = layouts.filter_map(|layout| policy.pages().part(&layout, level));
    parts.map(|part| u64::from(part.bytes)).max().unwrap_or(0)
}

/// The most bytes that the nodes of a path have together. They stand in pages of different layouts,
/// so it is more than a page. The root is rewritten whenever the height changes, so only the root
/// has a root's room.
pub(crate) fn path_bytes(policy: &Policy) -> u64 {
    let (mut most, mut below) = (0, 0);
    for height in 1..=policy.height_most() {
        let level = height - 1;
        most = most.max(below + bytes_most(policy, level, &|other| other == height));
        below += bytes_most(policy, level, &|other| other > height);
    }
    most
}
