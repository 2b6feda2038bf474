//! Victims beside those that are found by visiting every request and every leaf.

use alloc::boxed::Box;
use alloc::vec::Vec;
use std::collections::{BTreeMap, BTreeSet};

use contract::RamDisk;
use device::{Cause, Medium, SectorGeometry};
use index::parameters::Settings;
use index::{Durability, EntryShape, Options, Tree, Update};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use store::LogicalPage;

use super::super::blocks::Block;
use super::super::forming::room_of;
use super::super::{LazyUpdate, PARAMETERS, make};
use crate::btree::{At, NodeSource};

/// A group of all requests of each leaf that has some, with what the leaf has room for.
fn groups(tree: &mut LazyUpdate<'_>) -> BTreeMap<LogicalPage, Block> {
    let (mut requests, mut next) = (Vec::new(), tree.waiting.pool.from(&[]));
    while let Some(place) = next {
        let (key, kind, _) = tree.waiting.pool.request(place).unwrap();
        requests.push((key.bytes().collect::<Vec<u8>>(), kind.is_put()));
        next = tree.waiting.pool.requests.next(place);
    }
    let mut groups = BTreeMap::new();
    for (key, is_put) in requests {
        let mut at = tree.btree.root;
        while at.level > 0 {
            let node = tree.store.node(at, Cause::Lookup).unwrap();
            at = At { id: node.child(node.search_child(&key)), level: at.level - 1 };
        }
        let room = room_of(&tree.store.node(at, Cause::Lookup).unwrap(), false);
        let group = groups.entry(at.id).or_insert(Block { page: at.id, room, ..Block::FREE });
        group.change((1, if is_put { 1 } else { -1 }));
    }
    groups
}

/// What is chosen under a policy is as good by `worth`, of which less is better, as the best.
fn compare(policy: &str, worth: fn(&Block) -> f64) {
    let mut disk = RamDisk::new(SectorGeometry::new(512, 20_000).unwrap());
    let settings = Settings::parse("lazy-update", PARAMETERS, [("policy", policy)]).unwrap();
    let options = Options {
        durability: Some(Durability::None),
        ..Options::new(EntryShape::fixed(4, 4), 64 << 10, settings)
    };
    let mut tree = make::begin(Medium::Sectors(Box::new(&mut disk)), &options).unwrap();
    let mut random = ChaCha8Rng::seed_from_u64(1);
    let (mut victims, mut choices) = ([0; 2], 0);
    for number in 0..20_000_u32 {
        // Some leaves get more than others, and some get shorter.
        let range: u32 = if random.random_range(0..3) > 0 { 1000 } else { 60_000 };
        let key = random.random_range(0..range).to_be_bytes();
        let update = match random.random_range(0..5) {
            0 => Update::Delete { key: &key },
            _ => Update::Put { key: &key, value: &number.to_be_bytes() },
        };
        while !tree.apply_step(&update).unwrap() {}
        if number < 10_000 || number % 40 > 0 {
            continue;
        }
        let groups = groups(&mut tree);
        let victim = tree.victim().unwrap().unwrap();
        let list = &tree.waiting.list;
        let chosen = *list.block(victim);
        let group = &groups[&chosen.page];
        assert_eq!((chosen.count, chosen.growth), (group.count, group.growth));
        // Where there is no room for further groups, the best of those goes that there are.
        let formed: BTreeSet<_> = list.live().map(|(_, block)| block.page).collect();
        let may_go = |group: &&Block| !list.is_full() || formed.contains(&group.page);
        let best = groups.values().filter(may_go).map(worth).fold(f64::INFINITY, f64::min);
        assert!((worth(group) - best).abs() < 1e-9, "{policy}: {} of {best}", worth(group));
        victims[usize::from(list.is_full())] += 1;
        choices += groups.values().filter(|other| worth(other) > best + 1e-9).count();
    }
    let [all, of_formed] = victims;
    assert!(all >= 100 && of_formed >= 100, "{victims:?} victims");
    assert!(choices > 2000, "only {choices} groups were worse");
}

#[test]
fn the_biggest_group_is_that_of_all_leaves() {
    compare("biggest-size", |group| -f64::from(group.count));
}

#[test]
fn the_group_of_least_cost_is_that_of_all_leaves() {
    compare("cost-based", |group| f64::from(group.gain()) / f64::from(group.count));
}
