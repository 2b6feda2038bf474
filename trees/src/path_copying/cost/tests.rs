use std::println;
use std::vec;

use super::{Levels, Round};
use crate::path_copying::layout::{Division, HEIGHT_MOST, Layout, Share};
use crate::path_copying::model::Dice;

/// A tree of so many leaves below a root.
fn of_leaves(leaves: f64, division: Division) -> Levels {
    let layout = Layout { division, leaf: Share::HALF, height: 2 };
    let mut nodes = [1.0; HEIGHT_MOST as usize];
    nodes[0] = leaves;
    Levels { layout, nodes, bytes: nodes, entries: leaves }
}

/// Leaves that are updated at random, in a log whose oldest pages are reclaimed first.
fn moved_per_update(pages: usize, leaves: usize) -> f64 {
    let mut log = std::collections::VecDeque::new();
    let mut newest = vec![0usize; leaves];
    let mut written = 0;
    let mut dice = Dice(1);
    let (mut updates, mut moved) = (0, 0);
    while written < 60 * pages {
        if log.len() >= pages {
            let (leaf, version) = log.pop_front().unwrap();
            if newest[leaf] != version {
                continue;
            }
            written += 1;
            newest[leaf] = written;
            log.push_back((leaf, written));
            moved += usize::from(written > 20 * pages);
            continue;
        }
        let leaf = dice.roll(leaves as u64) as usize;
        written += 1;
        newest[leaf] = written;
        log.push_back((leaf, written));
        updates += usize::from(written > 20 * pages);
    }
    moved as f64 / updates as f64
}

#[test]
fn pages_that_live_when_their_turn_comes_are_as_many_as_a_log_has() {
    for (pages, leaves) in [(2_000, 400), (2_000, 1_000), (2_000, 1_500)] {
        let tree = of_leaves(leaves as f64, Division::Even);
        let round = Round::of(&tree, 0.0, (pages as f64, 64.0));
        let predicted = round.moved[0] / round.updates;
        let measured = moved_per_update(pages, leaves);
        println!("{leaves} of {pages}: {predicted:.3} moved an update, a log moves {measured:.3}");
        println!("   equation 8: {:.3}", leaves as f64 / pages as f64);
        assert!((predicted - measured).abs() < 0.03 * measured.max(0.1), "{predicted} {measured}");
    }
}

#[test]
fn a_full_chip_moves_much_and_never_without_end() {
    for division in [Division::Even, Division::Whole] {
        let round = Round::of(&of_leaves(1_000.0, division), 0.0, (900.0, 64.0));
        assert!((10.0..1_000.0).contains(&round.updates), "{division:?}: {}", round.updates);
        assert!(round.moved[0].is_finite());
    }
}
