use std::rc::Rc;

use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use super::{Change, Entries, Event, Found, Mismatch, Truth, World};

fn put(key: u8, value: u8) -> Change {
    Change { key: [key].into(), value: Some([value; 3].into()) }
}

fn delete(key: u8) -> Change {
    Change { key: [key].into(), value: None }
}

fn batch(changes: &[Change]) -> Event {
    Event::Batch(changes.to_vec())
}

fn found(pairs: &[(u8, u8)], names: &[&str]) -> Found {
    Found {
        entries: pairs.iter().map(|(key, value)| (vec![*key], vec![*value; 3])).collect(),
        names: names.iter().map(ToString::to_string).collect(),
    }
}

fn find(truth: &Truth, pairs: &[(u8, u8)], names: &[&str]) -> Option<usize> {
    truth.clone().learn(&found(pairs, names)).ok()
}

/// One entry acknowledged; then three batches that are not.
fn three_batches() -> Truth {
    let mut truth = Truth::default();
    truth.begin(batch(&[put(1, 1)]));
    truth.acknowledge();
    truth.begin(batch(&[put(2, 1), put(3, 1)]));
    truth.begin(batch(&[delete(1), put(2, 2)]));
    truth.begin(batch(&[put(4, 1)]));
    truth
}

#[test]
fn every_prefix_behind_what_was_acknowledged_is_accepted() {
    let truth = three_batches();
    assert_eq!(find(&truth, &[(1, 1)], &[]), Some(0));
    assert_eq!(find(&truth, &[(1, 1), (2, 1), (3, 1)], &[]), Some(1));
    assert_eq!(find(&truth, &[(2, 2), (3, 1)], &[]), Some(2));
    assert_eq!(find(&truth, &[(2, 2), (3, 1), (4, 1)], &[]), Some(3));
}

#[test]
fn what_was_acknowledged_must_be_there() {
    let mut truth = three_batches();
    assert_eq!(find(&truth, &[], &[]), None);
    truth.acknowledge();
    assert_eq!(truth.open_events(), 0);
    assert_eq!(find(&truth, &[(2, 2), (3, 1)], &[]), None);
    assert_eq!(find(&truth, &[(2, 2), (3, 1), (4, 1)], &[]), Some(0));
}

#[test]
fn half_a_batch_is_refused() {
    let truth = three_batches();
    assert_eq!(find(&truth, &[(1, 1), (2, 1)], &[]), None);
    assert_eq!(find(&truth, &[(1, 1), (2, 2), (3, 1)], &[]), None);
    assert_eq!(find(&truth, &[(2, 1), (3, 1)], &[]), None);
}

#[test]
fn a_hole_a_torn_value_and_a_key_from_nowhere_are_refused() {
    let truth = three_batches();
    assert_eq!(find(&truth, &[(1, 1), (4, 1)], &[]), None);
    assert_eq!(find(&truth, &[(1, 1), (9, 9)], &[]), None);
    let mut torn = found(&[(1, 1)], &[]);
    torn.entries[0].1[2] = 7;
    assert!(truth.clone().learn(&torn).is_err());
    torn.entries[0].1.truncate(2);
    assert!(truth.clone().learn(&torn).is_err());
}

#[test]
fn entries_that_come_twice_or_out_of_order_are_refused() {
    let mut truth = three_batches();
    let twice = found(&[(1, 1), (1, 1)], &[]);
    assert_eq!(truth.learn(&twice), Err(Mismatch::Order { place: 1 }));
    assert_eq!(truth.compare(&twice), Err(Mismatch::Order { place: 1 }));
    let mixed = found(&[(1, 1), (3, 1), (2, 1)], &[]);
    assert_eq!(truth.learn(&mixed), Err(Mismatch::Order { place: 2 }));
}

#[test]
fn what_was_found_is_acknowledged_and_the_rest_never_comes_back() {
    let mut truth = three_batches();
    assert_eq!(truth.learn(&found(&[(1, 1), (2, 1), (3, 1)], &[])), Ok(1));
    assert_eq!(truth.latest().entries.len(), 3);
    assert_eq!(find(&truth, &[(1, 1)], &[]), None);
    assert_eq!(find(&truth, &[(2, 2), (3, 1)], &[]), None);
    assert_eq!(find(&truth, &[(1, 1), (2, 1), (3, 1)], &[]), Some(0));
}

#[test]
fn a_refused_event_never_happened() {
    let mut truth = three_batches();
    truth.refuse();
    assert_eq!(find(&truth, &[(2, 2), (3, 1), (4, 1)], &[]), None);
    assert_eq!(truth.latest().entries.len(), 2);
    assert_eq!(find(&truth, &[(2, 2), (3, 1)], &[]), Some(2));
}

/// A checkpoint "a" that keeps key 1, "b" that keeps 1 and 2; then key 3.
fn two_names() -> Truth {
    let mut truth = Truth::default();
    truth.begin(batch(&[put(1, 1)]));
    truth.begin(Event::Keep("a".into()));
    truth.begin(batch(&[put(2, 1)]));
    truth.begin(Event::Keep("b".into()));
    truth.acknowledge();
    truth.begin(batch(&[put(3, 1)]));
    truth
}

#[test]
fn names_that_were_acknowledged_are_listed_oldest_first_and_no_others() {
    let truth = two_names();
    let pairs = [(1, 1), (2, 1), (3, 1)];
    assert_eq!(find(&truth, &pairs, &["a", "b"]), Some(1));
    for names in [&[][..], &["a"], &["b"], &["b", "a"], &["a", "b", "c"], &["a", "x"]] {
        assert_eq!(find(&truth, &pairs, names), None, "{names:?}");
    }
}

#[test]
fn a_name_being_made_or_forgotten_at_the_cut_may_be_listed_or_not() {
    let mut truth = two_names();
    let pairs = [(1, 1), (2, 1), (3, 1)];
    truth.begin(Event::Keep("c".into()));
    assert_eq!(find(&truth, &pairs, &["a", "b"]), Some(1));
    assert_eq!(find(&truth, &pairs, &["a", "b", "c"]), Some(2));
    // A named checkpoint without the updates before it is no prefix.
    assert_eq!(find(&truth, &[(1, 1), (2, 1)], &["a", "b", "c"]), None);
    truth.begin(Event::Forget("a".into()));
    assert_eq!(find(&truth, &pairs, &["b", "c"]), Some(3));
    truth.acknowledge();
    assert_eq!(find(&truth, &pairs, &["a", "b", "c"]), None);
}

#[test]
fn a_rollback_brings_back_exactly_what_was_kept_and_ends_later_checkpoints() {
    let mut truth = two_names();
    truth.begin(Event::RollBack("a".into()));
    truth.begin(batch(&[put(5, 1)]));
    assert_eq!(find(&truth, &[(1, 1), (2, 1), (3, 1)], &["a", "b"]), Some(1));
    assert_eq!(find(&truth, &[(1, 1)], &["a"]), Some(2));
    assert_eq!(find(&truth, &[(1, 1), (5, 1)], &["a"]), Some(3));
    assert_eq!(find(&truth, &[(1, 1)], &["a", "b"]), None);
    assert_eq!(find(&truth, &[(1, 1), (3, 1)], &["a"]), None);
}

#[test]
fn a_rollback_to_a_checkpoint_made_since_the_acknowledged_state_is_found() {
    let mut truth = two_names();
    truth.begin(Event::Keep("c".into()));
    truth.begin(batch(&[delete(1), delete(2), delete(3)]));
    truth.begin(Event::RollBack("c".into()));
    let pairs = [(1, 1), (2, 1), (3, 1)];
    // Before the deletes and after the rollback the index holds the same.
    assert_eq!(find(&truth, &pairs, &["a", "b", "c"]), Some(4));
    assert_eq!(find(&truth, &[], &["a", "b", "c"]), Some(3));
}

#[test]
fn a_rollback_does_not_bring_back_checkpoints_that_were_forgotten_since() {
    let mut truth = two_names();
    truth.begin(Event::Forget("a".into()));
    truth.acknowledge();
    assert_eq!(find(&truth, &[(1, 1), (2, 1), (3, 1)], &["b"]), Some(0));
    truth.begin(Event::RollBack("b".into()));
    assert_eq!(find(&truth, &[(1, 1), (2, 1)], &["b"]), Some(1));
    assert_eq!(find(&truth, &[(1, 1), (2, 1)], &["a", "b"]), None);
}

#[test]
fn without_a_cut_only_the_latest_world_is_right() {
    let truth = three_batches();
    assert_eq!(truth.compare(&found(&[(2, 2), (3, 1), (4, 1)], &[])), Ok(()));
    assert!(truth.compare(&found(&[(2, 2), (3, 1)], &[])).is_err());
    assert!(truth.compare(&found(&[(2, 2), (3, 1), (4, 1)], &["x"])).is_err());
}

#[test]
fn a_mismatch_names_the_closest_state_and_the_keys() {
    let mut truth = three_batches();
    let Err(Mismatch::World(world)) = truth.learn(&found(&[(2, 2), (3, 1), (4, 9)], &["x"])) else {
        panic!("it was accepted");
    };
    assert_eq!((world.events, world.all, world.differing), (2, 3, 1));
    assert_eq!(world.first[0].key, [4]);
    let text = world.to_string();
    assert!(text.contains("04 (1 bytes) has 090909 (3 bytes), not nothing"), "{text}");
    assert!(text.contains("keeps the checkpoints \"x\" instead of \"\""), "{text}");
}

/// The plain way: every world in full.
fn find_plainly(truth: &Truth, found: &Found) -> Option<usize> {
    let mut world: World = truth.settled.clone();
    let is = |world: &World| {
        let pairs: Entries = found
            .entries
            .iter()
            .map(|(key, value)| (key.as_slice().into(), value.as_slice().into()))
            .collect();
        let names: Vec<Rc<str>> = found.names.iter().map(|name| name.as_str().into()).collect();
        let kept: Vec<_> = world.kept.iter().map(|kept| kept.name.clone()).collect();
        pairs == world.entries && names == kept
    };
    let mut last = is(&world).then_some(0);
    for (place, event) in truth.events.iter().enumerate() {
        world.apply(event);
        last = if is(&world) { Some(place + 1) } else { last };
    }
    last
}

fn as_found(world: &World) -> Found {
    let entries = world.entries.iter().map(|(key, value)| (key.to_vec(), value.to_vec()));
    let names = world.kept.iter().map(|kept| kept.name.to_string());
    Found { entries: entries.collect(), names: names.collect() }
}

fn random_event(random: &mut ChaCha8Rng, truth: &Truth, place: usize) -> Event {
    let kept = &truth.latest().kept;
    let any = |random: &mut ChaCha8Rng| kept[random.random_range(0..kept.len())].name.clone();
    match random.random_range(0..10) {
        0 => Event::Keep(format!("name {place}").into()),
        1 if !kept.is_empty() => Event::RollBack(any(random)),
        2 if !kept.is_empty() => Event::Forget(any(random)),
        _ => {
            let change = |_| match random.random_range(0..3) {
                0 => delete(random.random_range(0..8)),
                _ => put(random.random_range(0..8), random.random_range(0..3)),
            };
            batch(&(0..3).map(change).collect::<Vec<_>>())
        }
    }
}

#[test]
fn the_search_finds_what_comparing_every_world_in_full_finds() {
    let mut accepted = 0;
    for seed in 0..500 {
        let mut random = ChaCha8Rng::seed_from_u64(seed);
        let mut truth = Truth::default();
        let mut seen = vec![Found::default()];
        for place in 0..20 {
            let event = random_event(&mut random, &truth, place);
            truth.begin(event);
            seen.push(as_found(truth.latest()));
            if random.random_range(0..8) == 0 {
                truth.acknowledge();
            }
        }
        for mut found in seen {
            if random.random_range(0..4) == 0 {
                found.entries.pop();
            }
            let plainly = find_plainly(&truth, &found);
            assert_eq!(truth.clone().learn(&found).ok(), plainly, "seed {seed}, {found:?}");
            accepted += usize::from(plainly.is_some());
        }
    }
    assert!(accepted > 2000, "{accepted}");
}
