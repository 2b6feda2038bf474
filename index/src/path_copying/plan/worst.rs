//! The worst that updates can write, for admission and for what collection keeps back.

use super::super::layout::Division;
use super::super::policy::Policy;

/// What nodes of a level can hold, in entries, or in bytes where lengths vary.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Room {
    pub(crate) least: u64,
    pub(crate) most: u64,
}

/// The nodes of `level` in trees of at most `height` levels; those that are no root alone if
/// `is_below_root`, and never those of lone leaves.
pub(crate) fn room(policy: &Policy, height: u8, level: u8, is_below_root: bool) -> Room {
    let lowest = if is_below_root { level + 2 } else { (level + 1).max(2) };
    room_of(policy, lowest..=height, level)
}

/// The nodes of `level` in trees of these heights.
fn room_of(policy: &Policy, heights: core::ops::RangeInclusive<u8>, level: u8) -> Room {
    let pages = policy.pages();
    let layouts = policy.extremes().filter(|layout| heights.contains(&layout.height));
    let mut room = Room { least: u64::MAX, most: 1 };
    for layout in layouts {
        let holds = if pages.is_variable() {
            layout.part(pages.area(), level).map_or(0, |part| u64::from(part.bytes))
        } else {
            pages.capacity(&layout, level) as u64
        };
        room = Room { least: room.least.min(holds.max(1)), most: room.most.max(holds) };
    }
    Room { least: room.least.min(room.most), most: room.most }
}

/// The most parts into which one update cuts a node that takes `added` new entries.
fn parts_most(policy: &Policy, room: Room, added: u64) -> u64 {
    if policy.pages().is_variable() && room.most == room.least && added == 1 {
        // What is before the new key stays together, and what is behind it.
        3
    } else if policy.pages().is_variable() {
        // A node that is full but for one entry, a quarter, may have another quarter of prefix,
        // so at least half of each part was in the old node; a new key among others that share
        // a prefix stands alone, between two parts.
        let new = added * policy.child_bytes_most() as u64;
        (2 * (room.most + new)).div_ceil(room.least) + 2
    } else {
        (room.most + added).div_ceil(room.least)
    }
}

/// The most parts into which one update cuts a leaf, in trees of any height.
pub(crate) fn leaf_parts_most(policy: &Policy) -> u64 {
    let room = room_of(policy, 1..=policy.height_most(), 0);
    // Alone between two others, a new entry may have a node to itself.
    parts_most(policy, room, 1).max(3)
}

/// Pages that every update writes of a tree of `height` levels, splits aside.
fn pages_least(policy: &Policy, height: u8) -> u64 {
    if policy.pages().division == Division::Whole { u64::from(height) } else { 1 }
}

/// The most pages that one update writes, of a tree that has `height` levels after it or less:
/// every level falls from its largest node into its smallest ones.
pub(crate) fn pages_most(policy: &Policy, height: u8) -> u32 {
    let mut below = 1;
    let mut written = pages_least(policy, height);
    for level in 0..height {
        let parts = parts_most(policy, room_of(policy, level + 1..=height, level), below).max(1);
        written += parts - 1;
        below = parts;
    }
    u32::try_from(written).unwrap_or(u32::MAX)
}

/// The worst of some updates.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Worst {
    /// Pages that they write.
    pub(crate) written: u64,
    /// Pages that live afterwards and did not before.
    pub(crate) growth: u64,
    /// Children that the root gets more.
    pub(crate) root_children: u64,
}

/// The worst that `updates` updates of a tree of `height` levels in `live` pages do.
///
/// A node is resized once, when it is touched first; after that it is split by what it takes in,
/// and then has half of its room free.
pub(crate) fn worst(policy: &Policy, height: u8, live: u64, updates: u64) -> Worst {
    if updates == 0 {
        return Worst::default();
    }
    let height = height_after(policy, height, updates);
    let (mut growth, mut added) = (0, updates);
    let mut root_children = 0;
    for level in 0..height {
        let whole = room(policy, height, level, false);
        // Only a root has a root's room: it is rewritten when the height changes.
        let inner = level > 0 && level + 1 < height;
        let room = if inner { room(policy, height, level, true) } else { whole };
        let nodes = nodes_most(policy, height, level).min(live + growth).max(1);
        let touched = updates.min(nodes);
        let single = parts_most(policy, room, 1) - 1;
        let parts = if policy.pages().is_variable() && room.most == room.least {
            2 * added
        } else if policy.pages().is_variable() {
            single * added.min(touched.saturating_mul(2)) + 2 * added
        } else {
            let resized = touched * (room.most.div_ceil(room.least) - 1);
            let split =
                added.min(touched * room.most.div_ceil(room.least) + 2 * added / room.least);
            resized + split + if inner { whole.most.div_ceil(whole.least) } else { 0 }
        };
        // A lone leaf is larger than any other.
        added = if level == 0 { parts.min(added * single.max(1)) + 2 } else { parts };
        growth += added;
        if level + 2 == height {
            root_children = added;
        }
    }
    let whole = pages_least(policy, height);
    Worst { written: updates * whole + growth, growth: growth + whole, root_children }
}

/// The height that a tree of `height` levels has after so many updates, at the most.
fn height_after(policy: &Policy, height: u8, updates: u64) -> u8 {
    let mut after = height + 1;
    while after < policy.height_most() {
        let holds = policy.extremes().filter(|layout| layout.height == after);
        let least = holds.map(|layout| policy.pages().entries_most(&layout)).min().unwrap_or(1);
        if updates.saturating_mul(8) < least {
            break;
        }
        after += 1;
    }
    after.min(policy.height_most())
}

/// The most nodes that `level` of a tree of `height` levels has.
fn nodes_most(policy: &Policy, height: u8, level: u8) -> u64 {
    let pages = policy.pages();
    let children = |level: u8| {
        let layouts = policy.extremes().filter(|layout| layout.height > level);
        if pages.is_variable() {
            // An entry has a slot at the least.
            let bytes = layouts.filter_map(|layout| layout.part(pages.area(), level));
            return bytes.map(|part| u64::from(part.bytes) / 6).max().unwrap_or(1);
        }
        layouts.map(|layout| pages.capacity(&layout, level) as u64).max().unwrap_or(1)
    };
    (level + 1..height).map(children).fold(1, u64::saturating_mul)
}

/// The most bytes that the nodes of a way have together. They stand in pages of different layouts,
/// so it is more than a page. The root is rewritten whenever the height changes, so only the root
/// has a root's room.
pub(crate) fn way_bytes(policy: &Policy) -> u64 {
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
