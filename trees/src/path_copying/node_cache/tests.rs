use std::vec;
use std::vec::Vec;

use device::Page;

use super::{BRIEF_BYTES, KEPT, NONE, NodeCache, ROOM_BYTES, TABLES_BYTES};
use crate::path_copying::model::Dice;

type Node = (u32, u8, [u8; BRIEF_BYTES], Vec<u8>);

/// The rooms follow each other, no two free ones beside each other, and all nodes have one. What
/// is kept and the free rooms that are known are rooms.
fn check_rooms(cache: &NodeCache) {
    let (mut at, mut before, mut was_free, mut owners) = (0, 0, false, 0);
    while at < cache.arena.len() {
        assert_eq!(cache.word(at + 4), before);
        let is_free = cache.owner(at) == NONE;
        assert!(!(is_free && was_free));
        if !is_free && cache.owner(at) != KEPT {
            assert_eq!(cache.slots[usize::from(cache.owner(at))].start as usize, at);
            owners += 1;
        }
        (before, was_free) = (cache.word(at), is_free);
        at += before;
    }
    assert_eq!((at, owners), (cache.arena.len(), cache.len()));
    for (known, owner) in [(&cache.holes, NONE), (&cache.kept, KEPT)] {
        for hole in known.iter().filter(|hole| hole.bytes > 0) {
            let found = (cache.word(hole.start()), cache.owner(hole.start()));
            assert_eq!(found, (hole.bytes(), owner));
        }
    }
}

/// A cache with places for nodes of about `node` bytes.
fn cache_of(bytes: usize, node: usize) -> NodeCache {
    NodeCache::new(bytes, bytes / (TABLES_BYTES + ROOM_BYTES + node))
}

/// Beside it a plain list, the newest at the end.
#[test]
fn it_holds_the_nodes_that_were_used_last_as_they_were_put_in() {
    for (seed, bytes) in [(1, 2_000), (2, 9_000), (3, 100_000)] {
        let (mut dice, mut cache) = (Dice(seed), cache_of(bytes, 300));
        let (mut plain, mut gone) = (Vec::<Node>::new(), 0);
        for round in 0..20_000 {
            let (page, level) = (dice.roll(120) as u32, dice.roll(3) as u8);
            let known = plain.iter().position(|it| (it.0, it.1) == (page, level));
            let known = known.map(|place| (place, plain[place].clone()));
            match dice.roll(6) {
                0 => {
                    cache.remove(Page(page), level);
                    plain.retain(|it| (it.0, it.1) != (page, level));
                }
                1 if dice.roll(4) == 0 => {
                    cache.remove_page(Page(page));
                    plain.retain(|it| it.0 != page);
                }
                1 | 2 => {
                    assert_eq!(cache.find(Page(page), level).is_some(), known.is_some());
                    let number = cache.locate(Page(page), level);
                    let found = number.map(|number| cache.used(number));
                    let found = found.map(|(brief, node)| (*brief, node.to_vec()));
                    assert_eq!(found, known.as_ref().map(|(_, it)| (it.2, it.3.clone())));
                    if let Some((place, node)) = known {
                        plain.remove(place);
                        plain.push(node);
                    }
                }
                _ => {
                    let node = vec![dice.roll(256) as u8; 50 + dice.roll(500) as usize];
                    let brief = [dice.roll(256) as u8; BRIEF_BYTES];
                    cache.insert((Page(page), level), brief, &node);
                    plain.retain(|it| (it.0, it.1) != (page, level));
                    plain.push((page, level, brief, node));
                    // What went are the leaves that were used longest ago, and then inner nodes.
                    let count = plain.len() - cache.len();
                    gone += count;
                    for _ in 0..count {
                        let oldest = plain.iter().position(|it| it.1 == 0).unwrap_or(0);
                        plain.remove(oldest);
                    }
                }
            }
            assert_eq!(cache.len(), plain.len());
            assert!(cache.memory_bytes() <= bytes);
            if round % 100 == 0 {
                check_rooms(&cache);
            }
        }
        let held = |it: &Node| cache.find(Page(it.0), it.1).is_some();
        assert!(plain.iter().all(held) && gone > 100, "{gone}");
        while cache.remove_oldest() {}
        cache.give_kept();
        check_rooms(&cache);
        assert_eq!(cache.holes.iter().filter(|hole| hole.bytes > 0).count(), 1);
    }
}

#[test]
fn nodes_that_grow_a_little_push_no_other_out_while_a_third_is_free() {
    let (mut dice, mut cache) = (Dice(5), cache_of(100_000, 1_000));
    let (mut bytes, mut next) = ([700; 80], 80);
    let mut pages = core::array::from_fn::<u32, 80, _>(|place| place as u32);
    for page in pages {
        cache.insert((Page(page), 1), [0; BRIEF_BYTES], &[1; 700]);
    }
    for _ in 0..1_000 {
        let place = dice.roll(80) as usize;
        cache.remove(Page(pages[place]), 1);
        bytes[place] += 8;
        cache.insert((Page(next), 1), [0; BRIEF_BYTES], &vec![1; bytes[place]]);
        (pages[place], next) = (next, next + 1);
    }
    assert_eq!(cache.len(), 80);
}

#[test]
fn a_node_that_never_fits_leaves_the_others() {
    let mut cache = cache_of(2_000, 500);
    cache.insert((Page(1), 0), [1; BRIEF_BYTES], &[7; 400]);
    cache.insert((Page(2), 0), [1; BRIEF_BYTES], &[7; 2_000]);
    cache.insert((Page(2), 0), [1; BRIEF_BYTES], &[7; 70_000]);
    assert!(cache.find(Page(1), 0).is_some() && cache.find(Page(2), 0).is_none());
    let mut none = cache_of(100, 500);
    none.insert((Page(1), 0), [1; BRIEF_BYTES], &[7; 40]);
    none.remove_page(Page(1));
    assert!(none.locate(Page(1), 0).is_none() && none.memory_bytes() == 0 && none.len() == 0);
}
