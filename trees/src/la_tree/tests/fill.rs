//! How full nodes of the lazy-adaptive tree are: after a load, and where entries vary in length.

use contract::RamDisk;
use contract::tree::{Model, figure, findings};
use device::{Geometry, Medium, NandCosts, SectorGeometry};
use index::parameters::Settings;
use index::{EntryShape, Index, Update};
use index::{MediumShape, Options, TreeDescriptor};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use sim::SimulatedNand;

fn entry() -> &'static TreeDescriptor {
    flashtree_trees::find("la-tree").unwrap_or_else(|| panic!("there is no la-tree"))
}

/// The nodes less than a quarter full; nothing else may be wrong.
fn lean(index: &mut dyn Index) -> u64 {
    assert_eq!(findings(index), Vec::<String>::new());
    figure(index, "nodes less than a quarter full at the last check")
}

/// Hands `work` an empty tree of `shape` on a chip, and one on a disk; nodes have 128 bytes on both
/// if they are `small`.
fn on_both(
    shape: EntryShape,
    given: &[(&str, &str)],
    small: bool,
    work: &mut dyn FnMut(&mut dyn Index, &str),
) {
    let options = |more: &[(&str, &str)], medium| {
        let given: Vec<_> = given.iter().chain(more).copied().collect();
        let settings = Settings::parse("la-tree", entry().parameters, given).unwrap();
        let mut options = Options::new(shape, 0, settings);
        options.memory_bytes = 4 * entry().least_memory(&options, medium).unwrap();
        options
    };
    let chip = Geometry::new(512, 16, 1200).unwrap().with_spare(16).unwrap();
    let node: &[_] = if small { &[("fanout", "16")] } else { &[] };
    let options_of_chip = options(node, MediumShape::Nand(chip));
    let mut chip = SimulatedNand::new(chip, NandCosts::default());
    let medium = Medium::Nand(Box::new(&mut chip));
    work(&mut *(entry().create)(medium, &options_of_chip).unwrap(), "raw flash");

    let disk = SectorGeometry::new(512, 20_000).unwrap();
    let node: &[_] = if small { &[("node", "128")] } else { &[("node", "512")] };
    let options_of_disk = options(node, MediumShape::Sectors(disk));
    let mut disk = RamDisk::new(disk);
    let medium = Medium::Sectors(Box::new(&mut disk));
    work(&mut *(entry().create)(medium, &options_of_disk).unwrap(), "in place");
}

#[test]
fn a_load_leaves_no_node_of_any_level_less_than_a_quarter_full() {
    for levels in ["1", "2", "3"] {
        for entries in [1_u32, 16, 31, 15 * 16 + 1, 15 * 100 + 1, 15 * 180 + 1, 5001, 5002, 5010] {
            on_both(EntryShape::fixed(4, 4), &[("k", levels)], true, &mut |index, medium| {
                let mut model = Model::default();
                for number in 0..entries {
                    model.entries.insert(number.to_be_bytes().to_vec(), vec![1; 4]);
                }
                index.load(&mut model.cursor(), 100).unwrap();
                model.compare_all(index);
                let found = lean(index);
                let nodes = figure(index, "nodes");
                assert_eq!(found, 0, "of {nodes}, {entries} entries, k {levels}, {medium}");
                for changed in ["nodes merged", "nodes filled up by a neighbour"] {
                    assert_eq!(figure(index, changed), 0, "loading is no change of the tree");
                }
            });
        }
    }
}

/// Keys side by side come in both orders, to places between entries of other lengths.
#[test]
fn leaves_of_entries_of_varying_length_are_at_least_a_quarter_full() {
    for (seed, buffer) in [(1, "adaptive"), (2, "2048"), (3, "512"), (4, "none")] {
        let given = [("k", "2"), ("buffer", buffer)];
        on_both(EntryShape::VARIABLE, &given, false, &mut |index, medium| {
            let mut random = ChaCha8Rng::seed_from_u64(seed);
            let mut model = Model::default();
            let mut all = 0;
            for round in 0..60_u32 {
                // A run of keys with values of one length, scattered over the keys there are.
                let first = random.random_range(0..1_u32 << 20).wrapping_mul(4096);
                let step = [1, 64, 4096, 1 << 16][random.random_range(0..4)];
                let bytes = [0, 3, 20, 90][random.random_range(0..4)];
                let is_delete = round % 5 == 4;
                for turn in 0..150_u32 {
                    let number = first.wrapping_add(turn * step);
                    let key = number.to_be_bytes();
                    if is_delete {
                        let from = model.entries.range(key.to_vec()..).next();
                        let Some((key, _)) = from.map(|(key, value)| (key.clone(), value)) else {
                            break;
                        };
                        index.update(&[Update::Delete { key: &key }]).unwrap();
                        model.entries.remove(&key);
                    } else {
                        let value = vec![7; bytes];
                        index.update(&[Update::Put { key: &key, value: &value }]).unwrap();
                        model.entries.insert(key.to_vec(), value);
                    }
                }
                all += lean(index);
            }
            model.compare_all(index);
            let nodes = figure(index, "nodes");
            assert_eq!(all, 0, "in 60 checks of up to {nodes} nodes, {buffer}, {medium}");
        });
    }
}
