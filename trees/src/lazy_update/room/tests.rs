use alloc::boxed::Box;

use contract::RamDisk;
use device::{Medium, SectorGeometry};
use index::parameters::Settings;
use index::{Durability, EntryShape, Options, Tree};

use crate::lazy_update::root::Root;
use crate::lazy_update::{PARAMETERS, make};

#[test]
fn a_replay_gets_no_more_nodes_than_are_allowed_behind_its_checkpoint() {
    let mut disk = RamDisk::new(SectorGeometry::new(512, 4000).unwrap());
    let settings = Settings::parse("lazy-update", PARAMETERS, core::iter::empty()).unwrap();
    let options = Options {
        durability: Some(Durability::Batch),
        ..Options::new(EntryShape::fixed(4, 4), 48 << 10, settings)
    };
    let mut tree = make::begin(Medium::Sectors(Box::new(&mut disk)), &options).unwrap();
    let nodes = |tree: &super::LazyUpdate<'_>| tree.waiting.pool.requests.nodes_most;
    let all = nodes(&tree);
    assert!(all > 0);
    // An update was refused: the pool may have no more nodes than it has, which is none.
    tree.is_tight = true;
    for expected in [0, all] {
        let before = nodes(&tree);
        let record = Root::decode(&tree.root_record().unwrap()).unwrap();
        tree.rebase();
        assert_eq!(nodes(&tree), expected);
        assert_eq!(record.nodes_most as usize, before.min(expected));
    }
}
