//! Rows of operations with cuts, under every durability: what comes back is what a map says.

use flashtree_fuzz::cell::cells;
use flashtree_fuzz::history::sessions;
use flashtree_fuzz::play::Player;
use flashtree_fuzz::runner::Target;
use proptest::prelude::*;

#[test]
fn histories_end_as_an_ordered_map_says() {
    let strategy = (prop::sample::select(cells()), sessions(1..6, 40));
    Target { name: "histories_end_as_an_ordered_map_says", inputs: 200 }.fuzz(
        strategy,
        |(cell, sessions)| {
            Player::new(cell).play(&sessions);
        },
    );
}
