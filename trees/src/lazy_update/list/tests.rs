use store::node::Codec;
use store::{LogicalPage, Width};

use super::List;
use crate::btree::{At, Spare};
use crate::lazy_update::blocks::{BlockId, ROOT, Room};
use crate::lazy_update::order::Policy;

/// A list of the groups 1, 2, 3 below the root, with the keys 10 to 19, 20 to 29, 30 to 39.
fn list(policy: Policy) -> (List, Spare) {
    let codec = Codec::new(256, Width::Fixed(1), Width::Fixed(2)).unwrap();
    let mut spare = Spare::new(8, 256);
    let mut list = List::new(policy, codec, (8, 8));
    let root = At { id: LogicalPage(9), level: 1 };
    assert!(list.reset(&mut spare, (&[0], root), (3, 3)));
    for group in 1..=3_u8 {
        let range = (&[10 * group][..], Some(&[10 * group + 10][..]));
        let page = LogicalPage(u32::from(group));
        assert!(list.divide(&mut spare, (ROOT, page), range, (1, 1)));
    }
    (list, spare)
}

fn first(list: &List) -> u32 {
    list.block(list.first().unwrap()).page.0
}

#[test]
fn a_key_belongs_to_the_lowest_block_whose_range_holds_it() {
    let (list, _) = list(Policy::Lru);
    for key in 0..=255_u8 {
        let page = if (10..40).contains(&key) { u32::from(key / 10) } else { 9 };
        let (id, _) = list.find(&[key]).unwrap();
        assert_eq!(list.block(id).page.0, page, "{key}");
    }
}

#[test]
fn the_least_recently_hit_the_first_the_biggest_and_the_cheapest_come_first() {
    let hits = |policy| {
        let (mut list, spare) = list(policy);
        for key in [25, 35, 15, 36, 26, 27] {
            list.hit(&[key], (1, 1));
        }
        (list, spare)
    };
    assert_eq!(first(&hits(Policy::Lru).0), 1);
    assert_eq!(first(&hits(Policy::BiggestSize).0), 2);
    // Groups that began together, in the order in which they did.
    assert_eq!(first(&hits(Policy::Fifo).0), 1);
    let (mut list, mut spare) = hits(Policy::Fifo);
    for _ in 0..2 {
        list.forget(&mut spare, &[15], (-1, -1));
    }
    assert_eq!(first(&list), 2);

    // Four requests that split their leaf cost two pages, three that don't one.
    let (mut list, _) = hits(Policy::CostBased);
    assert_eq!(first(&list), 2);
    let (id, _) = list.find(&[25]).unwrap();
    list.know(id, Room { more: 3, less: 9 });
    assert_eq!(first(&list), 3);
    list.know(id, Room { more: 4, less: 9 });
    assert_eq!(first(&list), 2);
}

#[test]
fn ties_go_to_the_group_that_was_hit_longest_ago() {
    let (mut list, _) = list(Policy::BiggestSize);
    for (key, expected) in [(15, 1), (25, 1), (35, 1), (16, 1), (26, 1), (36, 1)] {
        list.hit(&[key], (1, 1));
        assert_eq!(first(&list), expected, "{key}");
    }
    list.hit(&[17], (0, 0));
    assert_eq!(first(&list), 2);
}

#[test]
fn a_group_without_requests_is_gone_and_its_range_is_the_parents() {
    let (mut list, mut spare) = list(Policy::BiggestSize);
    list.forget(&mut spare, &[25], (-1, -1));
    assert_eq!(list.find(&[25]).unwrap().0, ROOT);
    assert_eq!(list.live().count(), 3);
    // From 10, 20, 30 and 40 on.
    assert_eq!(list.ranges.len(), 5);
    list.forget(&mut spare, &[35], (-1, -1));
    assert_eq!(list.ranges.len(), 3);
    assert!(list.dissolve(&mut spare, At { id: LogicalPage(1), level: 0 }));
    assert_eq!((list.ranges.len(), list.live().count()), (1, 1));
    assert_eq!(list.block(ROOT).count, 1);
    assert!(!list.dissolve(&mut spare, At { id: LogicalPage(9), level: 1 }));
    assert_eq!(list.first(), Some(BlockId(0)));
}
