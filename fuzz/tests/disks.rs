//! Damaged disks: the pieces that recovery stands on, each for itself, and all together.

use flashtree_fuzz::image::images;
use flashtree_fuzz::outcome::Outcomes;
use flashtree_fuzz::reach::Reach;
use flashtree_fuzz::runner::Target;
use flashtree_fuzz::structure::Kind;
use flashtree_fuzz::targets::disks::{cases, play};

fn fuzz(target: Target, kinds: &[Kind], wanted: &[&str]) {
    let (reach, outcomes) = (Reach::default(), Outcomes::default());
    target.fuzz_with(
        |runner| images(runner, 60),
        cases(3, 0.7),
        |images, case| outcomes.book(play(images, &case, kinds, &reach)),
    );
    outcomes.print(target.name);
    for (name, count) in reach.counts() {
        println!("{count:8} {name}");
    }
    reach.check(target.name, wanted);
}

#[test]
fn damaged_anchors_and_checkpoints_are_refused_or_right() {
    let target =
        Target { name: "damaged_anchors_and_checkpoints_are_refused_or_right", inputs: 2000 };
    fuzz(target, &[Kind::Anchor], &[]);
}

#[test]
fn damaged_journals_are_refused_or_right() {
    let target = Target { name: "damaged_journals_are_refused_or_right", inputs: 2000 };
    fuzz(target, &[Kind::Journal], &[]);
}

#[test]
fn damaged_undo_runs_are_refused_or_right() {
    let target = Target { name: "damaged_undo_runs_are_refused_or_right", inputs: 2000 };
    fuzz(target, &[Kind::Undo, Kind::Image], &[]);
}

#[test]
fn damaged_pages_are_refused_or_right() {
    let target = Target { name: "damaged_pages_are_refused_or_right", inputs: 3000 };
    let pages = [Kind::Packed, Kind::Slotted, Kind::Free, Kind::Index, Kind::Data];
    fuzz(target, &pages, &[]);
}
