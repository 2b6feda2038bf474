//! Damaged disks: the pieces that recovery stands on, each for itself, and all together.

use flashtree_fuzz::expected;
use flashtree_fuzz::image::images;
use flashtree_fuzz::outcome::Outcomes;
use flashtree_fuzz::reach::Reach;
use flashtree_fuzz::runner::Target;
use flashtree_fuzz::structure::Kind;
use flashtree_fuzz::targets::disks::{cases, play};

fn fuzz(name: &'static str, kinds: &[Kind], wanted: &[&str]) {
    let target = Target { name, inputs: 12_000 };
    let (reach, outcomes) = (Reach::default(), Outcomes::default());
    target.fuzz_with(
        |runner| images(runner, 120, kinds),
        cases(3, 0.7),
        |images, case| outcomes.book(play(images, &case, kinds, &reach)),
    );
    outcomes.print(target.name);
    reach.check(target.name, wanted);
}

#[test]
fn damaged_superblocks_and_checkpoints_are_refused_or_right() {
    let name = "damaged_superblocks_and_checkpoints_are_refused_or_right";
    fuzz(name, &[Kind::Superblock], expected::SUPERBLOCKS);
}

#[test]
fn damaged_journals_are_refused_or_right() {
    let name = "damaged_journals_are_refused_or_right";
    fuzz(name, &[Kind::Journal], expected::JOURNALS);
}

#[test]
fn damaged_undo_logs_are_refused_or_right() {
    let name = "damaged_undo_logs_are_refused_or_right";
    fuzz(name, &[Kind::Undo, Kind::Image], expected::UNDO_LOGS);
}

#[test]
fn damaged_nodes_are_refused_or_right() {
    let name = "damaged_nodes_are_refused_or_right";
    fuzz(name, &[Kind::Packed, Kind::Slotted, Kind::Dense], expected::TREES);
}

#[test]
fn damaged_lists_and_long_values_are_refused_or_right() {
    let name = "damaged_lists_and_long_values_are_refused_or_right";
    fuzz(name, &[Kind::Free, Kind::Index, Kind::Data], expected::LONG_VALUES);
}
