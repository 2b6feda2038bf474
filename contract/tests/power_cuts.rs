//! Every translation layer of the registry, with and without a spare area, keeps what was flushed
//! when the power is cut.
//!
//! The long form, with 10,000 cuts for each layer with and without a spare area:
//! `cargo test --release -p flashtree-contract --test power_cuts -- --ignored --nocapture`.
//! `FLASHTREE_CUTS` asks for another number; `FLASHTREE_SEED` and `FLASHTREE_GROUND` (a line of
//! the output) play one life again.

#![allow(clippy::panic, clippy::unwrap_used, reason = "a test fails by panicking")]

use device::{Geometry, ProgramOrder};
use flashtree_contract::power_cuts::{Storage, Storm, Witness, check, check_each};
use ftl::{Entry, FTLS};

type Parameters = &'static [(&'static str, &'static str)];

/// What a layer is tried with, one after the other.
fn parameters(entry: &Entry) -> [Parameters; 3] {
    match entry.name {
        "page-map" => [
            &[("over-provision", "0.3")],
            &[("over-provision", "0.3"), ("victim", "cost-benefit"), ("scrub", "0")],
            &[("over-provision", "0.3"), ("victim", "round-robin"), ("frontiers", "1")],
        ],
        "dac" => [
            &[("over-provision", "0.3")],
            &[("over-provision", "0.3"), ("victim", "greedy"), ("regions", "3")],
            &[("over-provision", "0.3"), ("levelling", "dynamic"), ("regions", "2")],
        ],
        _ => [&[("over-provision", "0.4"), ("logs", "3")]; 3],
    }
}

/// The chips on which a layer is tried.
fn storages(entry: &'static Entry, spare_bytes: u32) -> Vec<Storage> {
    let shapes = [
        (512, 16, ProgramOrder::Ascending),
        (2048, 16, ProgramOrder::Any),
        (512, 32, ProgramOrder::Any),
    ];
    let storage = |((page_bytes, pages, order), parameters): ((u32, u32, _), Parameters)| {
        let geometry = Geometry::new(page_bytes, pages, 40)
            .and_then(|geometry| geometry.with_spare(spare_bytes))
            .unwrap()
            .with_order(order);
        let longest_run = u64::from(pages) - if spare_bytes == 0 { 2 } else { 0 };
        Storage { entry, parameters, geometry, longest_run }
    };
    let wanted = std::env::var("FLASHTREE_GROUND").ok();
    let storages = shapes.into_iter().zip(parameters(entry)).map(storage);
    storages
        .filter(|storage| wanted.as_ref().is_none_or(|name| *name == storage.to_string()))
        .collect()
}

/// Cuts the power `cuts` times in all on the storages of a layer.
fn storm(entry: &'static Entry, spare_bytes: u32, cuts: u64, test: &'static str) -> Witness {
    let storages = storages(entry, spare_bytes);
    let mut all = Witness::default();
    for storage in &storages {
        let cuts = cuts.div_ceil(storages.len() as u64);
        all += check(storage, Storm { cuts, cuts_per_life: 250.min(cuts), test });
    }
    all
}

/// What must have happened, so often, on a layer in a storm.
fn assert_happened(name: &str, all: &Witness, least: u64) {
    let did = &all.statistics;
    let own: [u64; 3] = match name {
        "page-map" | "dac" => [did.collections, did.static_moves, did.pages_scrubbed],
        _ => [did.switch_merges, did.partial_merges, did.full_merges],
    };
    assert!(own.into_iter().all(|count| count >= least), "{name}: {own:?}\n{all}");
    assert!(did.blocks_retired >= least && did.bits_corrected >= least, "{name}\n{all}");
}

/// Storms of at least `cuts` cuts for every layer, with and without a spare area.
fn storm_all(cuts: u64, least: u64, test: &'static str) {
    let is_replay =
        ["FLASHTREE_SEED", "FLASHTREE_GROUND"].iter().any(|it| std::env::var(it).is_ok());
    let mut passed = 0;
    for entry in FTLS {
        let mut all = Witness::default();
        for spare_bytes in [32, 16, 0] {
            let witness = storm(entry, spare_bytes, cuts, test);
            println!("{}, {spare_bytes} spare bytes, in all\n{witness}", entry.name);
            if !is_replay {
                assert!(witness.cuts >= cuts, "too few cuts\n{witness}");
            }
            all += witness;
            passed += 1;
        }
        if !is_replay {
            assert_happened(entry.name, &all, least);
        }
    }
    println!("layers that lost nothing in {cuts} cuts, with and without a spare area: {passed}");
}

#[test]
fn nothing_flushed_is_lost_in_a_storm_of_power_cuts() {
    storm_all(750, 10, "--test power_cuts in_a_storm");
}

#[test]
#[ignore = "takes a minute when it is optimised"]
fn nothing_flushed_is_lost_in_ten_thousand_power_cuts() {
    let cuts = std::env::var("FLASHTREE_CUTS").map_or(10_000, |cuts| cuts.parse().unwrap());
    storm_all(cuts, 100, "--release --test power_cuts in_ten_thousand -- --ignored");
}

#[test]
fn nothing_flushed_is_lost_by_a_cut_at_any_operation() {
    for entry in FTLS {
        for spare_bytes in [32, 16, 0] {
            for storage in storages(entry, spare_bytes) {
                let all = check_each(&storage, 20, 200);
                assert!(all.cuts >= 400, "{storage}\n{all}");
            }
        }
    }
}
