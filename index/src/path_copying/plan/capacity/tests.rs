use std::println;
use std::vec;
use std::vec::Vec;

use store::EntryShape;

use super::{Capacity, Smallest, Top};
use crate::path_copying::model::{Dice, Model, mu, star};
use crate::path_copying::policy::Policy;

/// Where keys come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Order {
    Random,
    Ascending,
    Descending,
    /// Where nodes are fullest.
    Fullest,
}

use Order::{Ascending, Descending, Fullest, Random};

/// The next key of an order.
fn next_key(model: &Model, dice: &mut Dice, order: Order, number: u64) -> [u8; 8] {
    let random = |dice: &mut Dice| (dice.roll(1 << 31) << 32 | dice.roll(1 << 31)).to_be_bytes();
    match order {
        Random => random(dice),
        Ascending => (number << 20).to_be_bytes(),
        Descending => (u64::MAX - (number << 20)).to_be_bytes(),
        Fullest => model.key_where_fullest().unwrap_or_else(|| random(dice)),
    }
}

fn fits(model: &Model) -> u64 {
    let live = u64::from(model.root.live_pages);
    model.capacity().units_that_fit(model.layout().height, model.top(), live)
}

/// True if the nodes as they are leave room for so many updates, by what the module says: no
/// sparing change may take more of it than one update.
fn has_room(model: &Model, updates: u64) -> bool {
    let height = model.policy.height_most();
    let smallest = Smallest::up_to(&model.policy, height, 0);
    let levels = model.nodes_entries();
    let sum = |level: u8, of: &dyn Fn(u64) -> u64| -> u64 {
        levels.get(usize::from(level)).into_iter().flatten().map(|entries| of(*entries)).sum()
    };
    let above = |level: u8| sum(level, &|entries| entries.saturating_sub(smallest.part(level)));
    let fills = |entries: u64| entries.div_ceil(smallest.holds(0)).saturating_sub(1);
    let by_entries = (above(0) + updates) / smallest.part(0);
    let mut made = (sum(0, &fills) + updates).min(by_entries);
    for level in 1..height - 1 {
        made = (above(level) + made) / smallest.part(level);
    }
    let root = levels.get(usize::from(height) - 1).map_or(1, |root| root[0]);
    root + made <= Capacity::new(&model.policy, 0).root_room() * 3 / 4
}

/// Moves a page in one of four turns, as collection would.
fn move_some(model: &mut Model, dice: &mut Dice) {
    if dice.roll(4) == 0 {
        let page = dice.roll(model.pages.len() as u64) as usize;
        model.move_page(page);
    }
}

/// Puts keys until the tree is full, and sees that it took all that was promised each time that
/// what was promised before was used up.
fn takes_what_fits(policy: &Policy, seed: u64, orders: [Order; 2]) -> (u64, u64) {
    let (mut model, mut dice) = (Model::new(policy.clone()), Dice(seed));
    let turn = 100 * dice.roll(12);
    let first = fits(&model);
    for number in 0.. {
        if model.promised == 0 {
            model.promised = fits(&model);
        }
        let order = orders[usize::from(number >= turn)];
        let key = next_key(&model, &mut dice, order, number);
        if !model.put(&key, b"eightbyt") {
            assert_eq!(model.promised, 0, "full after {number}");
            return (number, first);
        }
        model.promised = model.promised.saturating_sub(1);
        move_some(&mut model, &mut dice);
    }
    (0, 0)
}

#[test]
fn what_fits_for_certain_fits_in_the_worst_order() {
    let shape = EntryShape::fixed(8, 8);
    let policies: Vec<(&str, Policy)> = [
        ("mu", mu(496, shape)),
        ("mu-star", star(496, shape)),
        ("mu", mu(752, shape)),
        ("mu-star", star(752, shape)),
    ]
    .into();
    for (name, policy) in &policies {
        for orders in [
            [Random, Random],
            [Ascending, Ascending],
            [Descending, Descending],
            [Random, Fullest],
            [Ascending, Fullest],
            [Fullest, Fullest],
            [Ascending, Random],
        ] {
            let mut least = (u64::MAX, 0);
            for seed in 0..4 {
                least = least.min(takes_what_fits(policy, seed, orders));
            }
            let bytes = policy.pages().page_bytes();
            println!("{name}, {bytes}, {orders:?}: {} entries, {} for certain", least.0, least.1);
            assert!(least.1 > 20, "{name}: {}", least.1);
        }
    }
}

/// Grows a tree, deletes much of it so that its pages are divided otherwise, and then puts what is
/// promised, among deletes and moves, where nodes are fullest.
fn takes_what_fits_after_deletes(policy: &Policy, seed: u64, entries: u64) -> (u32, u64) {
    let (mut model, mut dice) = (Model::new(policy.clone()), Dice(seed));
    let mut taken = 0;
    for round in 0..6 {
        let order = [Random, Ascending, Fullest][((seed + round) % 3) as usize];
        let mut number = (round + 1) << 12;
        let most = number + 1 + dice.roll(entries);
        while number < most {
            let key = next_key(&model, &mut dice, order, number);
            if !model.put(&key, b"eightbyt") {
                break;
            }
            number += 1;
        }
        // The last keys go, and with them the last children of the root: below that, pages come to
        // be divided otherwise, and the first nodes are as they were.
        let keys: Vec<_> = model.entries().into_keys().collect();
        let kept = keys.len() * (1 + dice.roll(8) as usize) / 10;
        assert!(keys[kept..].iter().all(|key| model.delete(key)), "a delete was refused");
        // More than is known to fit without a look at all nodes: so nothing is left over.
        model.promised = (0..2_000).rev().find(|updates| has_room(&model, *updates)).unwrap_or(0);
        assert!(model.promised >= fits(&model).min(1_999), "less than is said to fit");
        taken += model.promised;
        while model.promised > 0 {
            let key = next_key(&model, &mut dice, Fullest, 0);
            assert!(model.put(&key, b"eightbyt"), "{} were promised", model.promised);
            model.promised -= 1;
            (0..8).for_each(|_| move_some(&mut model, &mut dice));
            if model.promised.is_multiple_of(4) {
                assert!(has_room(&model, model.promised), "{} were promised", model.promised);
            }
            if dice.roll(8) == 0 {
                let key = &keys[dice.roll(keys.len() as u64) as usize];
                assert!(model.delete(key), "a delete was refused");
            }
        }
    }
    model.entries();
    (model.spared, taken)
}

#[test]
fn what_is_promised_is_taken_after_deletes_that_moved_the_layout() {
    // Of few levels, so that nodes are large, and split where they need not be.
    for (page_bytes, height, entries) in [(496, 6, 300), (1008, 3, 2_000), (2032, 3, 6_000)] {
        let policy = star(page_bytes, EntryShape::fixed(8, 8)).up_to(height);
        let (mut spared, mut taken) = (0, 0);
        for seed in 0..4 {
            let (more, promised) = takes_what_fits_after_deletes(&policy, seed, entries);
            (spared, taken) = (spared + more, taken + promised);
        }
        println!("{page_bytes}: {taken} promised and taken, {spared} changes made sparingly");
        assert!(taken > 0 && (spared > 0) == (page_bytes > 496));
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

/// The operation buffer of 4.3.3 may hold so many updates: but for the highest levels of mu-Tree,
/// and the two highest of mu*-Tree, more than it has memory for.
#[test]
fn trees_take_more_for_certain_than_memory_holds_but_for_their_highest_levels() {
    let small = EntryShape::fixed(4, 4);
    let large = EntryShape::fixed(8, 8);
    for (shape, page_bytes) in [(small, 4096), (large, 4096), (small, 2048), (large, 2048)] {
        for (name, policy, left) in
            [("mu", mu(page_bytes, shape), 3), ("mu-star", star(page_bytes, shape), 2)]
        {
            let fits = fits_by_height(&policy);
            println!("{name}, {shape}, {page_bytes}: {fits:?}");
            let low = &fits[..fits.len() - left];
            assert!(low.as_flattened().iter().all(|fit| *fit > 100_000), "{name}, {fits:?}");
        }
    }
}

/// Puts keys of up to 16 bytes and values of up to 40, that are promised when what was promised
/// before is used up, among deletes and moves; returns how many were promised.
fn takes_what_fits_of_any_length(page_bytes: u32, seed: u64, orders: [Order; 2]) -> (u64, u32) {
    let mut model = Model::new(star(page_bytes, EntryShape::VARIABLE));
    model.key_bytes = 16;
    model.is_thrifty = !seed.is_multiple_of(2);
    let (mut dice, mut taken) = (Dice(seed), 0);
    let turn = 50 * dice.roll(40);
    for number in 0..6_000 {
        if model.promised == 0 {
            model.promised = fits(&model);
            taken += model.promised;
        }
        let order = orders[usize::from(number >= turn)];
        let mut key = match order {
            // Near to each other in the middle of all: with long separators among short ones.
            Ascending => (1 << 62 | number).to_be_bytes(),
            _ => next_key(&model, &mut dice, order, number),
        }
        .to_vec();
        key.splice(4..4, [7; 8]);
        key.truncate(if order == Ascending { 16 } else { 8 + dice.roll(9) as usize });
        let value = vec![7; dice.roll(41) as usize];
        if !model.put(&key, &value) {
            assert_eq!(model.promised, 0, "full after {number}");
            break;
        }
        model.promised = model.promised.saturating_sub(1);
        move_some(&mut model, &mut dice);
        if model.promised > 0 && dice.roll(8) == 0 {
            assert!(model.delete(&key), "a delete was refused");
            model.promised -= 1;
        }
    }
    model.entries();
    (taken, model.spared)
}

#[test]
fn what_fits_for_certain_fits_in_the_worst_order_where_lengths_vary() {
    for page_bytes in [1008, 2032, 4080] {
        let (mut taken, mut spared) = (0, 0);
        for orders in [[Random, Ascending], [Random, Fullest], [Ascending, Fullest]] {
            for seed in 0..4 {
                let (more, made) = takes_what_fits_of_any_length(page_bytes, seed, orders);
                (taken, spared) = (taken + more, spared + made);
            }
        }
        println!("{page_bytes}: {taken} promised and taken, {spared} changes made sparingly");
        assert!(taken > 0 && (spared > 0) == (page_bytes == 2032), "{page_bytes}");
    }
}
