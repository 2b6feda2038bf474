use std::println;
use std::vec::Vec;

use super::{Setting, halved_records, inner_share, least_height, limit, records, wandering_height};
use crate::path_copying::layout::Division;

/// Figures 7 and 8.
const PAPER: Setting =
    Setting { fanout: 512.0, pages: 8192.0, updates: 1e6, read_us: 165.6, write_us: 905.8 };

fn print(what: &str, published: f64, computed: f64) {
    println!("{what}: published {published}, computed {computed:.4}");
}

/// mu-7: the average cost of an update over the leaf's share, one million records.
#[test]
fn figure_7_has_its_least_and_its_jumps_where_they_are_published() {
    let best = PAPER.best(1e6, 0.5).unwrap();
    print("mu-7, p1 of the least cost", 0.81, best.leaf);
    assert!((best.leaf - 0.81).abs() < 0.01);
    assert_eq!(best.height, 3);

    let heights = (5_000..10_000).map(|tick| f64::from(tick) / 10_000.0);
    let jumps: Vec<f64> = heights
        .clone()
        .zip(heights.skip(1))
        .filter(|(leaf, next)| {
            let height = |leaf| least_height(512.0, leaf, 1e6);
            height(*next) > height(*leaf)
        })
        .map(|(_, next)| next)
        .take(3)
        .collect();
    for (published, computed) in [0.82, 0.93, 0.95].into_iter().zip(&jumps) {
        print("mu-7, p1 at a jump", published, *computed);
        // The figure's grid is 0.01, so its jump is one step after the largest leaf that fits.
        assert!((computed - published).abs() < 0.0125, "{computed}");
    }
    assert_eq!(jumps.len(), 3);
}

/// The same on the grid of the figure, where the published values stand.
#[test]
fn figure_7_on_a_grid_of_a_hundredth_is_within_a_hundredth() {
    let cost = |percent: u32| PAPER.average_us(1e6, f64::from(percent) / 100.0);
    let least = (50..100).min_by(|one, other| cost(*one).total_cmp(&cost(*other))).unwrap();
    print("mu-7, p1 of the least cost on the grid", 0.81, f64::from(least) / 100.0);
    assert!(least.abs_diff(81) <= 1);
    let jumps: Vec<u32> = (51..100).filter(|percent| cost(*percent) > cost(percent - 1)).collect();
    for (published, computed) in [82, 93, 95].into_iter().zip(&jumps) {
        print("mu-7, jump on the grid", f64::from(published) / 100.0, f64::from(*computed) / 100.0);
        assert!(computed.abs_diff(published) <= 1, "{computed}");
    }
}

#[test]
fn at_one_height_an_update_costs_less_the_larger_the_leaf() {
    for (from, to) in [(0.50, 0.80), (0.83, 0.92)] {
        let mut before = f64::INFINITY;
        let mut leaf = from;
        while leaf < to {
            let cost = PAPER.average_us(1e6, leaf);
            assert!(cost < before, "{leaf}");
            before = cost;
            leaf += 0.01;
        }
    }
}

/// mu-8: the best leaf and height over the number of records.
#[test]
fn figure_8_jumps_where_it_is_published() {
    let mut jumps = Vec::new();
    let mut before = PAPER.best(1e4, 0.5).unwrap();
    println!("mu-8, 10^4 records: p1 {:.3}, height {}", before.leaf, before.height);
    for step in 2_001..=5_000 {
        let wanted = libm::pow(10.0, f64::from(step) / 500.0);
        let best = PAPER.best(wanted, 0.5).unwrap();
        if best.height > before.height {
            println!(
                "mu-8, {wanted:.3e} records: p1 {:.3} to {:.3}, height {}",
                before.leaf, best.leaf, best.height
            );
            assert!(best.leaf > before.leaf, "it jumps up");
            jumps.push(wanted);
        } else {
            assert!(best.leaf <= before.leaf, "between jumps it falls");
            assert_eq!(best.height, before.height);
        }
        before = best;
    }
    for (published, computed) in [6.6e4, 2.3e6].into_iter().zip(&jumps) {
        print("mu-8, records at a jump", published, *computed);
        assert!((computed / published - 1.0).abs() < 0.01, "{computed}");
    }
    assert!(jumps.len() >= 4, "{jumps:?}");
}

/// mu-limit: 4 KiB pages with entries of 8 bytes.
#[test]
fn the_limits_are_those_of_4_1_3() {
    let (height, most) = limit(Division::Halves, 512);
    println!("mu-limit, mu: published height 9 and 1.6e11, computed {height} and {most:.3e}");
    // Equation 1 gives 2^37, which is 1.37e11; the paper prints 1.6e11.
    assert_eq!((height, most), (9, 137_438_953_472.0));
    let (height, most) = limit(Division::Even, 512);
    println!("mu-limit, mu*: published height 256 and 1.2e77, computed {height} and {most:.2e}");
    assert_eq!(height, 256);
    assert!((most / 1.2e77 - 1.0).abs() < 0.05);
}

/// `W_-1`, the lower branch of the Lambert W function, by Newton's method (the paper's 13).
fn lambert_lower(x: f64) -> f64 {
    let mut w = libm::log(-x) - libm::log(-libm::log(-x));
    for _ in 0..100 {
        let power = libm::exp(w);
        w -= (w * power - x) / (power * (w + 1.0));
    }
    w
}

/// Equation 5 with `f (1 - p1)` in place of the printed `e f p1`.
fn closed_height(fanout: f64, leaf: f64, wanted: f64) -> u32 {
    let inner = fanout * (1.0 - leaf);
    let w = lambert_lower((libm::log(leaf) + libm::log(fanout) - libm::log(wanted)) / inner);
    libm::ceil(libm::exp(w + libm::log(1.0 - leaf) + libm::log(fanout))) as u32 + 1
}

#[test]
fn equation_5_put_right_gives_the_least_height_of_equation_4() {
    for leaf in [0.5, 0.6, 0.7, 0.8, 0.9] {
        for exponent in 32..=96 {
            let wanted = libm::pow(10.0, f64::from(exponent) / 8.0);
            let Some(least) = least_height(512.0, leaf, wanted) else {
                // More than a tree of any height holds, 6.9e10 with this leaf.
                assert!(leaf > 0.85 && wanted > 6.8e10, "{leaf} {wanted:e}");
                continue;
            };
            assert_eq!(closed_height(512.0, leaf, wanted), least, "{leaf} {wanted:e}");
        }
    }
}

#[test]
fn equal_inner_nodes_hold_the_most_records() {
    for height in 3..6 {
        let share = inner_share(0.7, height);
        let even = records(512.0, 0.7, height);
        // Moving a tenth from one inner node to another.
        let uneven = even / (share * share) * (share * 1.1) * (share * 0.9);
        assert!(uneven < even);
    }
}

#[test]
fn mu_star_holds_more_than_mu_at_the_same_leaf_from_height_four_on() {
    // Up to height 3, halving and dividing evenly give the same nodes.
    for height in 1..=9 {
        let (mu, star) = (halved_records(512.0, height), records(512.0, 0.5, height));
        assert!(if height <= 3 { (mu - star).abs() < 1.0 } else { star > mu }, "{height}");
    }
}

#[test]
fn the_parts_of_equation_10_add_up() {
    let leaf = 0.75;
    assert!((PAPER.update_us(3) - 1_402.6).abs() < 1e-9);
    assert!((PAPER.reclaimed() - 991_808.0).abs() < 1e-9);
    let live = PAPER.live(1e6, leaf);
    assert!((live - 1e6 / (8192.0 * 384.0)).abs() < 1e-12);
    let sum = (1e6 + PAPER.moved(1e6, leaf)) * PAPER.update_us(3) / 1e6;
    assert!((PAPER.average_us(1e6, leaf) - sum).abs() < 1e-9);
    let few = Setting { updates: 100.0, ..PAPER };
    assert_eq!(few.moved(1e6, leaf), 0.0);
}

#[test]
fn no_height_holds_what_is_too_much() {
    assert_eq!(least_height(8.0, 0.9, 1e9), None);
    assert!(PAPER.average_us(1e300, 0.9).is_infinite());
    assert_eq!(PAPER.best(1e300, 0.5), None);
    assert_eq!(least_height(512.0, 0.5, 512.0), Some(1));
}

#[test]
fn the_wandering_tree_is_lower_and_costs_more() {
    assert_eq!(wandering_height(512.0, 512.0), 1);
    assert_eq!(wandering_height(512.0, 262_144.0), 2);
    for wanted in [1e5, 1e6, 2e6] {
        let best = PAPER.best(wanted, 0.5).unwrap();
        let wandering = PAPER.wandering_average_us(wanted);
        println!("{wanted:e}: mu* {:.0} us, wandering B+-tree {wandering:.0} us", best.update_us);
        assert!(wandering_height(512.0, wanted) <= best.height);
        assert!(wandering > best.update_us);
    }
}
