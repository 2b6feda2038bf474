//! The lazy-adaptive tree in place with a pool of thousands of entries: buffers leave it whole and
//! in the order of their keys.

use contract::RamDisk;
use contract::tree::{Model, figure, findings};
use device::{Medium, SectorGeometry};
use index::Options;
use index::parameters::Settings;
use index::{Durability, EntryShape, Index, Update};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

const ENTRIES: u64 = 100_000;
const UPDATES: u64 = 150_000;
const GETS: u64 = 2000;

/// Puts and deletes of random keys, in batches.
fn change(index: &mut dyn Index, model: &mut Model, random: &mut ChaCha8Rng, updates: u64) {
    for number in 0..updates {
        let key = random.random_range(0..ENTRIES).to_be_bytes();
        if number % 16 == 0 {
            index.update(&[Update::Delete { key: &key }]).unwrap();
            model.entries.remove(key.as_slice());
        } else {
            let value = number.to_be_bytes();
            index.update(&[Update::Put { key: &key, value: &value }]).unwrap();
            model.entries.insert(key.to_vec(), value.to_vec());
        }
    }
}

#[test]
fn what_leaves_a_large_pool_is_found_where_its_keys_lie() {
    let entry = flashtree_trees::find("la-tree").unwrap();
    let settings = Settings::parse("la-tree", entry.parameters, [("buffer", "65536")]).unwrap();
    let mut options = Options::new(EntryShape::fixed(8, 8), 2 << 20, settings);
    options.durability = Some(Durability::Checkpoint);
    let mut disk = RamDisk::new(SectorGeometry::new(512, 60_000).unwrap());
    let medium = Medium::Sectors(Box::new(&mut disk));
    let mut index = (entry.create)(medium, &options).unwrap();
    let mut model = Model::default();
    for number in 0..ENTRIES {
        model.entries.insert(number.to_be_bytes().to_vec(), vec![1; 8]);
    }
    index.load(&mut model.cursor(), 100).unwrap();
    let mut random = ChaCha8Rng::seed_from_u64(1);
    change(&mut *index, &mut model, &mut random, UPDATES);

    let written = figure(&*index, "fragments written leaf");
    let read = figure(&*index, "fragments read leaf");
    for _ in 0..GETS {
        let key = random.random_range(0..ENTRIES).to_be_bytes();
        let found = index.get(&key, 0, &mut [0; 8]).unwrap().is_some();
        assert_eq!(found, model.entries.contains_key(key.as_slice()));
    }
    let read = figure(&*index, "fragments read leaf") - read;
    let buffers = figure(&*index, "buffers of leaf subtrees");
    println!("{written} fragments of {buffers} buffers, {read} read in {GETS} gets");
    assert!(written > 10 * buffers, "{written} fragments of {buffers} buffers");
    assert!(read < 4 * GETS, "{read} fragments are read in {GETS} gets");
    model.compare_all(&mut *index);
    assert_eq!(findings(&mut *index), Vec::<String>::new());

    // Nothing is known of the fragments then.
    index.checkpoint(None).unwrap();
    drop(index);
    let mut index = (entry.open)(Medium::Sectors(Box::new(&mut disk)), &options).unwrap();
    model.compare_all(&mut *index);
    change(&mut *index, &mut model, &mut random, UPDATES / 4);
    model.compare_all(&mut *index);
    assert_eq!(findings(&mut *index), Vec::<String>::new());
}
