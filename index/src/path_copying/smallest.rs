//! The smallest chip: what a tree takes that was filled with entries one after the other.

use device::Geometry;
use store::PageLog;

use super::Durably;
use super::admission::{BLOCKS_BEGUN, held_pages, margin_part, moved_pages};
use super::make::{Choice, policy};
use super::plan::worst;
use super::policy::Policy;
use crate::Result;
use crate::registry::Options;
use crate::smallest_chip::{self, Grown};

/// Blocks that suffice for a block's worth of entries.
pub(super) fn fewest_blocks(choice: &Choice, chip: Geometry, options: &Options) -> Result<u32> {
    let policy = policy(choice.division, choice.bounds, (chip, options.shape))?;
    let durably = Durably::of(options.durability.unwrap_or_default());
    let entries = smallest_chip::entries_of_a_block(chip, options.shape);
    let own = PageLog::own_reserve_on(chip, &options.page_log(), 0);
    let pages = pages_for(&policy, durably, (entries, chip.pages_per_block().into()));
    let blocks = pages.div_ceil(chip.pages_per_block().into());
    let blocks = u32::try_from(blocks).unwrap_or(u32::MAX);
    Ok(blocks.saturating_add(own).saturating_add(BLOCKS_BEGUN))
}

/// Pages on which so many entries find room, one after the other, on a chip with blocks of `block`
/// pages.
fn pages_for(policy: &Policy, durably: Durably, (entries, block): (u64, u64)) -> u64 {
    let (division, most) = (policy.pages().division, policy.height_most());
    let grown = grown(policy, entries);
    let each = u64::from(worst::pages_most(policy, (grown.height + 1).min(most)));
    // No leaf of a tree that only grew stands alone, and no inner node falls apart: `debts.rs`.
    let held = held_pages(division, grown.height, grown.nodes() + each);
    let reserve = moved_pages(division, grown.height, block) + each + 2 * block;
    let part = margin_part(durably);
    (held + each + reserve) * part / (part - 1) + 1
}

/// The tree of so many entries, at its worst: of all ways to divide pages the one of which most are
/// needed.
fn grown(policy: &Policy, entries: u64) -> Grown {
    let at = |height: u8| {
        let capacity = |level| {
            let layouts = policy.extremes().filter(|layout| layout.height == height);
            layouts.map(|layout| policy.pages().capacity(&layout, level)).min().unwrap_or(0)
        };
        Grown::new(entries, &capacity, height)
    };
    let most = policy.height_most();
    let fits = |height: &u8| *height == most || at(*height).is_whole;
    at((1..=most).find(fits).unwrap_or(most))
}
