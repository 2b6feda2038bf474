use std::println;
use std::vec::Vec;

use store::EntryShape;

use super::{Capacity, Top};
use crate::path_copying::model::{Dice, Model, mu, star};
use crate::path_copying::policy::Policy;

/// The next key of an order: random, ascending, or where nodes are fullest.
fn next_key(model: &Model, dice: &mut Dice, order: u64, number: u64) -> [u8; 8] {
    match order {
        0 => (dice.roll(1 << 31) << 32 | dice.roll(1 << 31)).to_be_bytes(),
        1 => (number << 20).to_be_bytes(),
        _ => model.key_where_fullest().unwrap_or_else(|| (dice.roll(1 << 31) << 32).to_be_bytes()),
    }
}

/// Puts keys until the tree is full, and sees that it took all that was said to fit.
fn takes_what_fits(policy: &Policy, seed: u64, orders: [u64; 2]) -> (u64, u64) {
    let (mut model, mut dice) = (Model::new(policy.clone()), Dice(seed));
    let capacity = Capacity::new(policy, 0);
    let (mut promised, mut first) = (0, 0);
    let turn = 100 * dice.roll(12);
    for number in 0.. {
        if number % 16 == 0 {
            let live = u64::from(model.root.live_pages);
            let fits = capacity.units_that_fit(model.layout().height, model.top(), live);
            promised = promised.max(number + fits);
            first = if number == 0 { fits } else { first };
        }
        let order = orders[usize::from(number >= turn)];
        let key = next_key(&model, &mut dice, order, number);
        if !model.put(&key, b"eightbyt") {
            assert!(number >= promised, "full after {number}, and {promised} were to fit");
            return (number, first);
        }
        if dice.roll(4) == 0 {
            let page = dice.roll(model.pages.len() as u64) as usize;
            model.move_page(page);
        }
    }
    (0, 0)
}

#[test]
fn what_fits_for_certain_fits_in_the_worst_order() {
    let shape = EntryShape::fixed(8, 8);
    let policies: Vec<(&str, Policy)> =
        [("mu", mu(496, shape)), ("mu-star", star(496, shape)), ("mu", mu(752, shape))].into();
    for (name, policy) in &policies {
        for orders in [[0, 0], [1, 1], [0, 2], [1, 2], [2, 2], [1, 0]] {
            let mut least = (u64::MAX, 0);
            for seed in 0..6 {
                least = least.min(takes_what_fits(policy, seed, orders));
            }
            let bytes = policy.pages().page_bytes();
            println!("{name}, {bytes}, {orders:?}: {} entries, {} for certain", least.0, least.1);
            assert!(least.1 > 20, "{name}: {}", least.1);
        }
    }
}

/// What fits for certain trees of each height whose root has two children, half of its room in use,
/// and all of it, in 20,000 live pages.
fn fits_by_height(policy: &Policy) -> Vec<[u64; 3]> {
    let capacity = Capacity::new(policy, 0);
    let of_height = |height| {
        let layouts = policy.extremes().filter(|layout| layout.height == height);
        let room = layouts.map(|layout| policy.pages().capacity(&layout, height - 1)).max();
        let most = room.unwrap_or(0) as u16;
        [2, most / 2, most].map(|entries| {
            let top = Top { entries, bytes: 0 };
            capacity.units_that_fit(height, top, 20_000)
        })
    };
    (1..=policy.height_most()).map(of_height).collect()
}

/// The operation buffer of 4.3.3 may hold so many updates: in higher trees of mu-Tree some levels
/// below the greatest height, in those of mu*-Tree from the fourth on far fewer.
#[test]
fn trees_of_three_levels_in_4_kib_take_more_for_certain_than_memory_holds() {
    let small = EntryShape::fixed(4, 4);
    let large = EntryShape::fixed(8, 8);
    for (shape, page_bytes) in [(small, 4096), (large, 4096), (small, 2048), (large, 2048)] {
        for (name, policy) in [("mu", mu(page_bytes, shape)), ("mu-star", star(page_bytes, shape))]
        {
            let fits = fits_by_height(&policy);
            println!("{name}, {shape}, {page_bytes}: {fits:?}");
            if (shape, page_bytes) == (small, 4096) {
                assert!(fits[..3].as_flattened().iter().all(|fit| *fit > 1_000_000), "{name}");
            }
        }
    }
}
