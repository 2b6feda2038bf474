//! Damaged chips under every translation layer.

use flashtree_fuzz::expected;
use flashtree_fuzz::outcome::Outcomes;
use flashtree_fuzz::reach::Reach;
use flashtree_fuzz::runner::Target;
use flashtree_fuzz::targets::chips::{cases, play, seeds};

#[test]
fn damaged_chips_are_refused_or_right() {
    let target = Target { name: "damaged_chips_are_refused_or_right", inputs: 1500 };
    let (reach, outcomes) = (Reach::default(), Outcomes::default());
    target.fuzz_with(
        |runner| seeds(runner, 32),
        cases(),
        |seeds, case| outcomes.book(play(seeds, &case, &reach)),
    );
    outcomes.print(target.name);
    reach.check(target.name, expected::CHIPS);
}
