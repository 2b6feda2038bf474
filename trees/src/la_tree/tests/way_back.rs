//! The lazy-adaptive tree on a disk where the way back to the last checkpoint has little room.

use contract::RamDisk;
use contract::tree::{Model, figure, findings};
use device::{Medium, SectorGeometry};
use index::parameters::Settings;
use index::{Durability, EntryShape, Error, Index, KeyRange, Update};
use index::{MediumShape, Options, TreeDescriptor};

fn entry() -> &'static TreeDescriptor {
    flashtree_trees::find("la-tree").unwrap_or_else(|| panic!("there is no la-tree"))
}

/// Keys of `number`, in no order.
fn key(number: u32) -> [u8; 4] {
    number.wrapping_mul(0x9E37_79B9).to_be_bytes()
}

struct Storage {
    disk: RamDisk,
    geometry: SectorGeometry,
}

impl Storage {
    fn new(sectors: u64) -> Self {
        let geometry = SectorGeometry::new(512, sectors).unwrap();
        Storage { disk: RamDisk::new(geometry), geometry }
    }

    fn index(&mut self, is_new: bool, times: u64, buffer: &str) -> Box<dyn Index + '_> {
        let settings = Settings::parse("la-tree", entry().parameters, [("buffer", buffer)]);
        let mut options = Options {
            durability: Some(Durability::Batch),
            ..Options::new(EntryShape::fixed(4, 4), 0, settings.unwrap())
        };
        let medium = MediumShape::Sectors(self.geometry);
        options.memory_bytes = times * entry().least_memory(&options, medium).unwrap();
        let make = if is_new { entry().create } else { entry().open };
        make(Medium::Sectors(Box::new(&mut self.disk)), &options).unwrap()
    }
}

fn put(index: &mut dyn Index, model: &mut Model, number: u32, value: u8) {
    index.update(&[Update::Put { key: &key(number), value: &[value; 4] }]).unwrap();
    model.entries.insert(key(number).to_vec(), vec![value; 4]);
}

fn pending(index: &dyn Index) -> u64 {
    figure(index, "pending inner") + figure(index, "pending leaf")
}

/// What waits in buffers stands above what is put later, whatever the tree is opened with.
#[test]
fn a_tree_that_is_opened_without_buffers_keeps_the_newest_value_of_each_key() {
    let mut storage = Storage::new(4000);
    let mut model = Model::default();
    for number in 0..30_000 {
        model.entries.insert(key(number).to_vec(), vec![0; 4]);
    }
    let mut index = storage.index(true, 16, "adaptive");
    index.load(&mut model.cursor(), 90).unwrap();
    for number in 0..3000 {
        put(&mut *index, &mut model, number, 1);
    }
    index.close().unwrap();
    drop(index);

    let mut index = storage.index(false, 16, "none");
    assert!(pending(&*index) > 1000, "{} entries wait", pending(&*index));
    for number in (2950..3000).rev() {
        put(&mut *index, &mut model, number, 2);
    }
    model.compare_all(&mut *index);
    for number in 0..3000 {
        put(&mut *index, &mut model, number, 3);
    }
    model.compare_all(&mut *index);
    assert_eq!(findings(&mut *index), Vec::<String>::new());
    index.close().unwrap();
    drop(index);
    let mut index = storage.index(false, 16, "none");
    model.compare_all(&mut *index);
}

/// A journal that buffers made long is replayed by a tree without them.
#[test]
fn a_journal_is_replayed_without_buffers_though_there_is_no_room_for_all_leaves_that_it_changes() {
    let mut storage = Storage::new(4000);
    let mut model = Model::default();
    for number in 0..72_000 {
        model.entries.insert(key(number).to_vec(), vec![0; 4]);
    }
    let mut index = storage.index(true, 64, "adaptive");
    index.load(&mut model.cursor(), 67).unwrap();
    println!("{} sectors used of 4000", index.statistics().live_pages);
    for number in 0..1000 {
        put(&mut *index, &mut model, number, 1);
    }
    assert!(pending(&*index) > 500, "{} entries wait", pending(&*index));
    index.sync().unwrap();
    drop(index);
    for buffer in ["none", "128", "none"] {
        let mut index = storage.index(false, 1, buffer);
        model.compare_all(&mut *index);
        assert_eq!(findings(&mut *index), Vec::<String>::new());
        for number in 0..200 {
            put(&mut *index, &mut model, number * 7, 2);
        }
        model.compare_all(&mut *index);
        index.sync().unwrap();
    }
}

/// One batch may change more leaves than the way back has room for.
#[test]
fn a_large_batch_is_made_as_a_whole_or_refused_as_a_whole() {
    let mut made = 0;
    for (times, buffer, percent) in [
        (2, "none", 75),
        (2, "none", 80),
        (2, "none", 85),
        (2, "none", 90),
        (2, "none", 93),
        (2, "128", 85),
        (16, "adaptive", 85),
    ] {
        let mut storage = Storage::new(4000);
        let mut index = storage.index(true, times, buffer);
        let mut model = Model::default();
        let most: u32 = 230_000 * percent / 100;
        for number in 0..most {
            model.entries.insert(number.to_be_bytes().to_vec(), vec![0; 4]);
        }
        let loaded = index.load(&mut model.cursor(), 100);
        if let Err(error) = loaded {
            assert!(matches!(error, Error::Store(store::Error::Full { .. })), "{error}");
        }
        let mut kept = Model::default();
        let mut cursor = index.range(KeyRange::ALL).unwrap();
        while let Some((key, _)) = cursor.next().unwrap() {
            kept.entries.insert(key.to_vec(), vec![0; 4]);
        }
        drop(cursor);
        for (round, length) in [1000, 500, 100, 20, 1000, 300, 50].into_iter().enumerate() {
            let keys: Vec<_> =
                kept.entries.keys().skip(round).step_by(61).take(length).cloned().collect();
            let batch: Vec<_> = keys.iter().map(|key| Update::Delete { key }).collect();
            match index.update(&batch) {
                Ok(()) => {
                    keys.iter().for_each(|key| drop(kept.entries.remove(key)));
                    made += 1;
                }
                Err(Error::Store(store::Error::Full { .. })) => {}
                Err(error) => panic!("{length} deletes, {buffer}: {error}"),
            }
            if round % 2 == 1 {
                index.sync().unwrap();
                drop(index);
                index = storage.index(false, times, buffer);
            }
        }
        let used = index.statistics().live_pages;
        println!("{used} used, {buffer}, {percent} %: {made} batches");
        kept.compare_all(&mut *index);
        assert_eq!(findings(&mut *index), Vec::<String>::new());
    }
    assert!(made >= 10, "{made} batches were made");
}

/// What is put back into its buffer was not emptied.
#[test]
fn entries_that_are_put_back_into_their_buffer_are_not_counted_as_emptied() {
    let mut storage = Storage::new(4000);
    let mut model = Model::default();
    for number in 0..60_000 {
        model.entries.insert(key(number).to_vec(), vec![0; 4]);
    }
    let mut index = storage.index(true, 16, "adaptive");
    index.load(&mut model.cursor(), 67).unwrap();
    for number in 0..20_000 {
        put(&mut *index, &mut model, number, 1);
    }
    let [inner, leaf] =
        ["emptied entries inner", "emptied entries leaf"].map(|name| figure(&*index, name));
    println!("20000 puts, {leaf} entries emptied to leaves, {inner} to buffers");
    assert!(leaf <= 20_000, "{leaf} entries emptied, of 20000 that were put");
}
