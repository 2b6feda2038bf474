use std::collections::BTreeMap;
use std::vec;
use std::vec::Vec;

use super::{ENTRY_BYTES, Recent};
use crate::path_copying::model::Dice;

/// The same, slow and plain: entries with the time of their last use.
#[derive(Default)]
struct Plain {
    entries: BTreeMap<Vec<u8>, (Option<Vec<u8>>, u64)>,
    now: u64,
}

impl Plain {
    fn oldest(&self) -> Option<(&[u8], Option<&[u8]>)> {
        let oldest = self.entries.iter().min_by_key(|(_, (_, used))| *used);
        oldest.map(|(key, (value, _))| (key.as_slice(), value.as_deref()))
    }

    fn insert(&mut self, key: &[u8], value: Option<&[u8]>) {
        self.now += 1;
        self.entries.insert(key.to_vec(), (value.map(<[u8]>::to_vec), self.now));
    }

    fn get(&mut self, key: &[u8]) -> Option<(Vec<u8>, Option<Vec<u8>>)> {
        self.now += 1;
        let entry = self.entries.get_mut(key)?;
        entry.1 = self.now;
        Some((key.to_vec(), entry.0.clone()))
    }
}

fn compare(recent: &Recent, plain: &Plain) {
    let entries: Vec<_> = (0..recent.len()).map(|place| recent.at(place).unwrap()).collect();
    let expected = plain.entries.iter().map(|(key, it)| (key.as_slice(), it.0.as_deref()));
    assert_eq!(entries, expected.collect::<Vec<_>>());
    assert_eq!(recent.oldest_place().and_then(|place| recent.at(place)), plain.oldest());
    assert_eq!(recent.at(recent.len()), None);
}

#[test]
fn it_holds_what_a_plain_map_with_times_of_use_holds() {
    for (seed, bytes) in [(1, 600), (2, 2_000), (3, 9_000)] {
        let mut dice = Dice(seed);
        let mut recent = Recent::new(bytes, 24);
        let mut plain = Plain::default();
        let mut refused = 0;
        for _ in 0..20_000 {
            let key = vec![b'k'; 1 + dice.roll(5) as usize];
            let key = [&key[..], &dice.roll(60).to_be_bytes()[6..]].concat();
            match dice.roll(4) {
                0 => {
                    let found = recent
                        .get(&key)
                        .map(|(key, value)| (key.to_vec(), value.map(<[u8]>::to_vec)));
                    assert_eq!(found, plain.get(&key));
                }
                1 if dice.roll(3) == 0 => {
                    let places = recent.search(&key).map_or(0..0, |place| place..place + 2);
                    let places = places.start..places.end.min(recent.len());
                    for place in places.clone() {
                        plain.entries.remove(recent.at(place).unwrap().0);
                    }
                    recent.remove(places);
                }
                _ => {
                    let value = vec![dice.roll(256) as u8; dice.roll(40) as usize];
                    let value = (dice.roll(5) > 0).then_some(value.as_slice());
                    while !recent.insert(&key, value) {
                        compare(&recent, &plain);
                        let oldest = plain.oldest().unwrap().0.to_vec();
                        plain.entries.remove(&oldest);
                        let place = recent.oldest_place().unwrap();
                        recent.remove(place..place + 1);
                        refused += 1;
                    }
                    plain.insert(&key, value);
                }
            }
        }
        compare(&recent, &plain);
        assert!(refused > 100, "{refused}");
    }
}

#[test]
fn entries_of_the_expected_size_fill_the_memory() {
    for bytes in [500, 4_096, 65_536] {
        let mut recent = Recent::new(bytes, 12);
        assert!(recent.memory_bytes() <= bytes);
        let mut held = 0u64;
        while recent.insert(&held.to_be_bytes(), Some(b"four")) {
            held += 1;
        }
        assert_eq!(held as usize, bytes / (ENTRY_BYTES + 12));
    }
}

#[test]
fn what_was_taken_away_together_is_room_for_as_many_at_once() {
    let mut recent = Recent::new(65_536, 12);
    let mut next = 0u64;
    let mut fill = |recent: &mut Recent| {
        let before = next;
        while recent.insert(&next.to_be_bytes(), Some(b"four")) {
            next += 1;
        }
        next - before
    };
    let all = fill(&mut recent);
    for count in [1, 9, 40, 300] {
        recent.remove(100..100 + count);
        assert_eq!(fill(&mut recent), count as u64, "of {all}");
    }
}

#[test]
fn an_entry_that_never_fits_is_refused_and_changes_nothing() {
    let mut recent = Recent::new(400, 20);
    assert!(recent.insert(b"key", Some(b"value")));
    assert!(!recent.insert(b"key", Some(&[0; 500])));
    assert!(!recent.insert(b"other", Some(&[0; 70_000])));
    assert_eq!(recent.get(b"key"), Some((&b"key"[..], Some(&b"value"[..]))));
    let mut none = Recent::new(0, 20);
    assert!(!none.insert(b"key", None));
    assert!(none.oldest_place().is_none());
    assert_eq!(none.get(b"key"), None);
}
