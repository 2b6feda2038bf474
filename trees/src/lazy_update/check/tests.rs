use alloc::boxed::Box;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use contract::RamDisk;
use device::{Medium, SectorGeometry};
use index::parameters::Settings;
use index::{Durability, EntryShape, Options, Read, Tree, Update};

use super::super::blocks::{BlockId, NONE};
use super::super::{LazyUpdate, PARAMETERS, make};

/// What is found once something in the list was made false.
fn found_after(make_false: impl FnOnce(&mut LazyUpdate<'_>)) -> Vec<String> {
    let mut disk = RamDisk::new(SectorGeometry::new(512, 20_000).unwrap());
    let settings = Settings::parse("lazy-update", PARAMETERS, []).unwrap();
    let options = Options {
        durability: Some(Durability::None),
        ..Options::new(EntryShape::fixed(4, 4), 64 << 10, settings)
    };
    let mut tree = make::begin(Medium::Sectors(Box::new(&mut disk)), &options).unwrap();
    for number in 0..6000_u32 {
        let key = (number.wrapping_mul(0x9E37_79B1) % 60_000).to_be_bytes();
        let update = Update::Put { key: &key, value: &key };
        while !tree.apply_step(&update).unwrap() {}
    }
    let mut findings = Vec::new();
    tree.check(&mut |finding| findings.push(finding.to_string())).unwrap();
    assert_eq!(findings, Vec::<String>::new());
    make_false(&mut tree);
    tree.check(&mut |finding| findings.push(finding.to_string())).unwrap();
    findings
}

/// A group with requests.
fn group(tree: &LazyUpdate<'_>) -> BlockId {
    let mut groups = tree.waiting.list.live().filter(|(_, block)| block.is_group());
    groups.find(|(_, block)| block.count > 1).map_or(NONE, |(id, _)| id)
}

#[test]
fn a_group_that_counts_a_request_too_many_is_told() {
    let findings = found_after(|tree| {
        let id = group(tree);
        tree.waiting.list.blocks[id.place()].count += 1;
    });
    assert!(matches!(&findings[..], [one] if one.contains("requests, not")), "{findings:?}");
}

#[test]
fn a_group_that_stands_for_another_leaf_is_told() {
    let findings = found_after(|tree| {
        let id = group(tree);
        tree.waiting.list.blocks[id.place()].page = tree.btree.root.id;
    });
    assert!(findings.iter().any(|one| one.contains("another node than its range")), "{findings:?}");
}

#[test]
fn a_request_that_no_block_counts_is_told() {
    let findings = found_after(|tree| {
        let place = tree.waiting.pool.requests.first().unwrap();
        let LazyUpdate { waiting, .. } = tree;
        waiting.pool.remove(&mut waiting.spare, place);
    });
    assert!(findings.iter().any(|one| one.contains("requests, not")), "{findings:?}");
}
