//! Rows of operations with cuts, under every durability: what comes back is what a map says.

use flashtree_fuzz::cell::cells;
use flashtree_fuzz::history::sessions;
use flashtree_fuzz::play::Player;
use flashtree_fuzz::runner::fuzz;
use proptest::prelude::*;

#[test]
fn histories_end_as_an_ordered_map_says() {
    let strategy = (prop::sample::select(cells()), sessions(1..6, 40));
    fuzz("histories_end_as_an_ordered_map_says", 600, strategy, |(cell, sessions)| {
        Player::new(cell).play(&sessions);
    });
}
