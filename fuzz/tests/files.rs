//! Damaged files: plain ones, and chips imitated in files.

use flashtree_fuzz::expected;
use flashtree_fuzz::outcome::Outcomes;
use flashtree_fuzz::reach::Reach;
use flashtree_fuzz::runner::Target;
use flashtree_fuzz::targets::files::{cases, folder, play, seeds};

#[test]
fn damaged_files_are_refused_or_right() {
    let target = Target { name: "damaged_files_are_refused_or_right", inputs: 1500 };
    let (reach, outcomes) = (Reach::default(), Outcomes::default());
    let folder = folder();
    let path = folder.path().join("damaged.db");
    target.fuzz_with(
        |runner| seeds(runner, 16),
        cases(),
        |seeds, case| outcomes.book(play(seeds, &path, &case, &reach)),
    );
    outcomes.print(target.name);
    reach.check(target.name, expected::FILES);
}
