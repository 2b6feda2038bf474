use std::collections::BTreeMap;
use std::vec::Vec;

use super::{Cache, Unsaved};
use crate::ipl::layout::split_record;
use crate::ipl::table::NodeId;
use crate::path_copying::model::Dice;

/// What a node in the cache is: the time of its last use, what flash lacks, and its deltas.
type Plain = BTreeMap<u32, (u32, Unsaved, Vec<u8>)>;

fn compare(cache: &Cache, plain: &Plain) {
    for id in 0..60 {
        let found = cache.find(NodeId(id)).map(|frame| {
            let deltas = split_record(cache.record(frame)).map_or(&[][..], |(_, deltas)| deltas);
            (cache.unsaved(frame), deltas.to_vec())
        });
        assert_eq!(found, plain.get(&id).map(|(_, unsaved, deltas)| (*unsaved, deltas.clone())));
    }
    let dirty = plain.values().filter(|it| it.1 != Unsaved::Nothing).count();
    assert_eq!(cache.dirty() as usize, dirty);
    let unwritten = plain.values().filter(|it| it.1 == Unsaved::All).count();
    assert_eq!(cache.unwritten() as usize, unwritten);
    let oldest = plain.iter().min_by_key(|(_, it)| it.0).map(|(id, _)| NodeId(*id));
    let is_full = plain.len() == cache.len() as usize;
    assert_eq!(cache.victim().and_then(|frame| cache.id(frame)), oldest.filter(|_| is_full));
}

#[test]
fn it_counts_and_finds_what_a_plain_map_with_times_of_use_does() {
    let (mut dice, mut cache, mut plain) = (Dice(1), Cache::new(7, 16, 64), Plain::new());
    for now in 1..20_000 {
        let id = dice.roll(60) as u32;
        match (cache.touch(NodeId(id)), dice.roll(6)) {
            (None, _) => {
                if let Some(gone) = cache.victim().and_then(|frame| cache.id(frame)) {
                    plain.remove(&gone.0);
                }
                let unsaved = [Unsaved::Nothing, Unsaved::All][dice.roll(2) as usize];
                cache.enter(NodeId(id), unsaved);
                plain.insert(id, (now, unsaved, Vec::new()));
            }
            (Some(frame), 0) => {
                cache.forget(frame);
                plain.remove(&id);
            }
            (Some(frame), what) => {
                let held = plain.get_mut(&id).unwrap();
                held.0 = now;
                match what {
                    1 => {
                        cache.renewed(frame, Unsaved::Nothing);
                        *held = (now, Unsaved::Nothing, Vec::new());
                    }
                    2 => {
                        cache.renewed(frame, Unsaved::All);
                        *held = (now, Unsaved::All, Vec::new());
                    }
                    3 => {
                        cache.saved(frame);
                        held.1 = Unsaved::Nothing;
                    }
                    _ if held.2.len() < 50 => {
                        cache.add_delta(frame, 3, |bytes| bytes.fill(now as u8));
                        if held.1 != Unsaved::All {
                            held.1 = Unsaved::Deltas;
                            held.2.extend([now as u8; 3]);
                        }
                    }
                    _ => {}
                }
            }
        }
        compare(&cache, &plain);
    }
    cache.clear();
    compare(&cache, &Plain::new());
}
