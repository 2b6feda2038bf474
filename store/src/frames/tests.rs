use alloc::vec::Vec;

use super::Frames;

#[test]
fn the_key_used_longest_ago_leaves_first() {
    let mut frames = Frames::<()>::new(3, 64, 1);
    for key in [1, 2, 3] {
        assert_eq!(frames.victim(), None);
        frames.enter(key);
    }
    frames.touch(1).unwrap();
    let victim = frames.victim().unwrap();
    assert_eq!(frames.key(victim), Some(2));
    assert_eq!(frames.enter(4), victim);
    assert!(frames.find(2).is_none());
    assert_eq!(frames.victim().and_then(|frame| frames.key(frame)), Some(3));
}

#[test]
fn frames_agree_with_a_plain_list() {
    let mut frames = Frames::<u32>::new(7, 64, 1);
    let mut model: Vec<u32> = Vec::new();
    let mut random = 1u32;
    for _ in 0..100_000 {
        random = random.wrapping_mul(1_103_515_245).wrapping_add(12_345);
        let key = (random >> 16) % 20;
        let present = model.iter().position(|known| *known == key);
        if random.is_multiple_of(11) {
            if let Some(frame) = frames.find(key) {
                frames.forget(frame);
            }
            model.retain(|known| *known != key);
            continue;
        }
        assert_eq!(frames.touch(key).is_some(), present.is_some());
        match present {
            Some(place) => {
                model.remove(place);
            }
            None => {
                if model.len() == 7 {
                    let victim = frames.victim().unwrap();
                    assert_eq!(frames.key(victim), Some(model[0]));
                    model.remove(0);
                }
                let frame = frames.enter(key);
                assert_eq!(*frames.state(frame), 0, "a frame begins with the default state");
                *frames.state_mut(frame) = key;
                frames.bytes_mut(frame)[0] = key as u8;
            }
        }
        model.push(key);
        let frame = frames.find(key).unwrap();
        assert_eq!((frames.bytes(frame)[0], *frames.state(frame)), (key as u8, key));
        let order: Vec<u32> = frames.oldest_first().filter_map(|frame| frames.key(frame)).collect();
        assert_eq!(order, model);
    }
}

#[test]
fn the_memory_taken_is_at_most_what_the_tables_promise() {
    for count in [1, 3, 4, 5, 31, 64, 1000] {
        for alignment in [1, 4096] {
            let frames = Frames::<u64>::new(count, 512, alignment);
            let promised = count as usize * (512 + Frames::<u64>::TABLE_BYTES) + alignment - 1;
            assert!(frames.memory() <= promised as u64, "{count} frames");
        }
    }
}
