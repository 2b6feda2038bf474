use device::Geometry;
use store::EntryShape;

use super::{Admission, Now};
use crate::path_copying::census::{Census, Nodes};
use crate::path_copying::model::mu;
use crate::path_copying::policy::Policy;
use crate::path_copying::room::Room;

fn now<'n>(policy: &'n Policy, census: &'n Census, is_replayed: bool) -> Now<'n> {
    let chip = Geometry::new(2048, 16, 64).unwrap();
    Now { census, room: Room::of(policy, 2, chip, (64, 3)), waiting: 0, is_replayed }
}

fn census(policy: &Policy, leaves: u32) -> Census {
    let mut nodes = Nodes::default();
    nodes[..2].copy_from_slice(&[leaves, 1]);
    let mut census = Census::new(policy);
    census.demand.levels = nodes;
    census
}

#[test]
fn what_a_replay_makes_again_is_let_in_as_far_as_the_last_checkpoint_had_room_for_it() {
    let policy = mu(2048, EntryShape::fixed(4, 4));
    let census = census(&policy, 700);
    let now = now(&policy, &census, true);
    let mut admission = Admission::default();
    assert!(!admission.admit(1, &now), "no replay begins anywhere");
    admission.begin_replay(&now);
    let most = (0..100_000).take_while(|_| admission.admit(1, &now)).count() as u64;
    assert!(most > 0 && admission.puts == 0);
    assert!(admission.has_room_after_checkpoint(1));
    admission.begin_replay(&now);
    assert!(!admission.admit(most + 1, &now) && admission.admit(most, &now));
    admission.count_made(true);
    admission.count_made(false);
    assert_eq!(admission.puts, most - 1);
    admission.begin_replay(&now);
    admission.note_longer_keys(true);
    assert!(admission.lacks_base && !admission.admit(1, &now));
}

#[test]
fn what_was_counted_ahead_is_over_when_the_tree_has_grown() {
    let policy = mu(2048, EntryShape::fixed(4, 4));
    let mut census = census(&policy, 700);
    let mut admission = Admission::default();
    assert!(admission.admit(1, &now(&policy, &census, false)));
    let mut added = [0; 16];
    added[0] = 300;
    census.count(&added);
    assert!(!admission.admit(1, &now(&policy, &census, false)));
    added[0] = -300;
    census.count(&added);
    assert!(admission.admit(1, &now(&policy, &census, false)));
}
