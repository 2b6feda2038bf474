//! Storms of power cuts for layers that map blocks.

use device::{Geometry, ProgramOrder};
use flashtree_contract::power_cuts::{Storage, Storm, Witness, check};

/// Plays 10,000 cuts on small chips with and without an order of programming, and checks that
/// enough went wrong. With `FLASHTREE_SEED` one life of each chip is played, and not counted.
pub(crate) fn storm(layer: &str, spare_bytes: u32, test: &'static str) -> Witness {
    let mut all = Witness::default();
    for (page_bytes, pages_per_block, order) in [
        (128, 8, ProgramOrder::Ascending),
        (64, 16, ProgramOrder::Any),
        (512, 16, ProgramOrder::Ascending),
    ] {
        let geometry = Geometry::new(page_bytes, pages_per_block, 36)
            .and_then(|geometry| geometry.with_spare(spare_bytes))
            .unwrap()
            .with_order(order);
        let longest_run = u64::from(pages_per_block) - if spare_bytes == 0 { 2 } else { 0 };
        let entry = ftl::find(layer).unwrap();
        let parameters = &[("logs", "3"), ("over-provision", "0.4")];
        let storage = Storage { entry, parameters, geometry, longest_run };
        all += check(&storage, Storm { cuts: 4000, cuts_per_life: 200, test });
    }
    if is_replay() {
        return all;
    }
    assert!(all.cuts >= 10_000 && all.cuts_while_opening >= 100, "{all}");
    assert!(all.flushes >= 10_000 && all.worn_out >= 1, "{all}");
    assert!(all.statistics.blocks_retired >= 100, "{all}");
    assert!(all.statistics.bits_corrected >= 100, "{all}");
    all
}

/// Checks that each kind of merge happened often enough.
pub(crate) fn assert_merges(all: &Witness) {
    let did = &all.statistics;
    if is_replay() {
        return;
    }
    assert!(did.switch_merges >= 100, "{all}");
    assert!(did.partial_merges >= 100, "{all}");
    assert!(did.full_merges >= 100, "{all}");
}

fn is_replay() -> bool {
    std::env::var_os("FLASHTREE_SEED").is_some()
}
