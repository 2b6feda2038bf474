//! Damaged chips under every tree that stands on raw flash.

use flashtree_fuzz::expected;
use flashtree_fuzz::outcome::Outcomes;
use flashtree_fuzz::reach::Reach;
use flashtree_fuzz::runner::Target;
use flashtree_fuzz::targets::raw::{cases, play, seeds};

#[test]
fn damaged_raw_flash_is_refused_or_right() {
    let target = Target { name: "damaged_raw_flash_is_refused_or_right", inputs: 3000 };
    let (reach, outcomes) = (Reach::default(), Outcomes::default());
    target.fuzz_with(
        |runner| seeds(runner, 48),
        cases(),
        |seeds, case| outcomes.book(play(seeds, &case, &reach)),
    );
    outcomes.print(target.name);
    reach.check(target.name, expected::RAW_FLASH);
}
