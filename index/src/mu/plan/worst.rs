//! The worst that an update can write, for admission and for what collection keeps back.

use super::super::policy::Policy;

/// The most pages that one update writes, of a tree that has `height` levels after it or less:
/// every level falls from its largest node into its smallest ones.
pub(in crate::mu) fn pages_most(policy: &Policy, height: u8) -> u32 {
    let pages = policy.pages();
    let mut below = 1;
    let mut written = 1;
    for level in 0..height {
        let layouts =
            policy.extremes().filter(|layout| (level + 1..=height).contains(&layout.height));
        let (mut least, mut most) = (usize::MAX, 0);
        for layout in layouts {
            let room = if pages.is_variable() {
                layout.part(pages.area(), level).map_or(0, |part| part.bytes as usize)
            } else {
                pages.capacity(&layout, level)
            };
            least = least.min(room);
            most = most.max(room);
        }
        let parts = if pages.is_variable() {
            // A node that is full but for one entry, a quarter, may have another quarter of prefix,
            // so at least half of each part was in the old node; a new key among others that share
            // a prefix stands alone, between two parts.
            let new = below * policy.child_bytes_most();
            (2 * (most + new)).div_ceil(least.max(1)) + 2
        } else {
            (most + below).div_ceil(least.max(1))
        };
        written += parts.max(1) - 1;
        below = parts;
    }
    u32::try_from(written).unwrap_or(u32::MAX)
}

/// The most bytes that the nodes of a way have together. They stand in pages of different layouts,
/// so it is more than a page. The root is rewritten whenever the height changes, so only the root
/// has a root's room.
pub(in crate::mu) fn way_bytes(policy: &Policy) -> u64 {
    let area = policy.pages().area();
    let most = |level: u8, is_possible: &dyn Fn(u8) -> bool| {
        let layouts = policy.extremes().filter(|layout| is_possible(layout.height));
        let parts = layouts.filter_map(|layout| layout.part(area, level));
        parts.map(|part| u64::from(part.bytes)).max().unwrap_or(0)
    };
    let way = |height: u8| -> u64 {
        let root = most(height - 1, &|other| other == height);
        root + (0..height - 1).map(|level| most(level, &|other| other > level + 1)).sum::<u64>()
    };
    (1..=policy.height_most()).map(way).max().unwrap_or_default()
}
