use alloc::vec::Vec;

use super::{CacheSize, NodeCache};
use crate::la_tree::layout::NodeId;

/// Uses node `id` as a tree does: loads it if it is not there.
fn using(cache: &mut NodeCache, id: u32) -> bool {
    if let Some(frame) = cache.find(NodeId(id)) {
        assert_eq!(cache.node(frame)[0], id as u8, "the frame holds node {id}");
        return true;
    }
    let (frame, _) = cache.oldest();
    cache.assign(frame, NodeId(id));
    cache.node_mut(frame)[0] = id as u8;
    false
}

#[test]
fn the_cache_holds_the_nodes_that_were_used_last() {
    let mut cache = NodeCache::new(CacheSize::Fixed(4), 16);
    let mut recent: Vec<u32> = Vec::new();
    let mut random: u32 = 1;
    for _ in 0..5000 {
        random = random.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        let id = random >> 8 & 7;
        if random >> 20 & 15 == 0 {
            if let Some(frame) = cache.find(NodeId(id)) {
                cache.clear(frame);
            }
            recent.retain(|known| *known != id);
            continue;
        }
        assert_eq!(using(&mut cache, id), recent.contains(&id), "node {id} of {recent:?}");
        recent.retain(|known| *known != id);
        recent.push(id);
        if recent.len() > 4 {
            recent.remove(0);
        }
    }
}

#[test]
fn two_nodes_are_handed_out_at_once_in_the_order_asked_for() {
    let mut cache = NodeCache::new(CacheSize::Fixed(3), 4);
    for id in [1, 2] {
        using(&mut cache, id);
    }
    let (one, two) = (cache.find(NodeId(1)).unwrap(), cache.find(NodeId(2)).unwrap());
    let (first, second) = cache.two_mut(two, one);
    assert_eq!((first[0], second[0]), (2, 1));
}

#[test]
fn chunks_of_frames_come_and_go_with_the_nodes_used_longest_ago() {
    let size = CacheSize::Shared { shift: 2, chunks: 3, most: 5 };
    let mut cache = NodeCache::new(size, 16);
    let most = cache.memory_bytes() + 2 * cache.chunk_bytes();
    let mut random: u32 = 7;
    for _ in 0..400 {
        random = random.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        let chunks = cache.frames() / 4;
        if random >> 30 == 0 && chunks < 5 {
            cache.grow();
        } else if random >> 30 == 1 && chunks > 1 {
            let kept: Vec<_> = (0..64).filter(|id| peek(&cache, *id)).collect();
            while let Some((frame, _)) = cache.oldest_to_stay() {
                cache.take_from_last(frame);
            }
            cache.shrink();
            let left = kept.iter().filter(|id| peek(&cache, **id)).count();
            assert_eq!(left, kept.len().min((chunks - 1) * 4), "no more leave than have to");
        }
        for id in 0..random >> 20 & 15 {
            using(&mut cache, (id * 7 + (random >> 8)) & 63);
        }
        assert_eq!(cache.tail_frames(), (cache.frames() / 8).max(1));
        assert!(cache.memory_bytes() <= most, "{} of {most}", cache.memory_bytes());
    }
}

/// True if node `id` is in the cache; it is not used by that.
fn peek(cache: &NodeCache, id: u32) -> bool {
    (0..cache.frames()).any(|frame| cache.at(frame as u32).id == id)
}

#[test]
fn what_is_found_in_the_tail_is_what_fewer_frames_would_miss() {
    let sized = |chunks| NodeCache::new(CacheSize::Shared { shift: 3, chunks, most: 9 }, 4);
    let (mut large, mut small) = (sized(8), sized(7));
    let (mut random, mut hits) = (3_u32, [0, 0]);
    for _ in 0..20_000 {
        random = random.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        // Low numbers are used more often.
        let id = (((random >> 9) & 127) * ((random >> 21) & 127)) >> 7;
        hits[0] += u64::from(using(&mut large, id));
        hits[1] += u64::from(using(&mut small, id));
    }
    assert_eq!(hits[0] - hits[1], large.tail_hits);
    assert!(large.tail_hits > 100);
}
