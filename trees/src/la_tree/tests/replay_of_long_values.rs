//! A journal with long values, written by a lazy-adaptive tree on a disk with much memory, is
//! replayed with the least: other entries go to buffers and leaves at other times then, and must
//! not use up the way back to the last checkpoint.

use contract::tree::{Model, findings};
use contract::{RamDisk, on_all_cores};
use device::{Medium, SectorGeometry};
use index::parameters::Settings;
use index::{Durability, EntryShape, Index, Update};
use index::{MediumShape, Options, TreeDescriptor};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

fn entry() -> &'static TreeDescriptor {
    flashtree_trees::find("la-tree").unwrap()
}

/// Keys of `number`, in no order.
fn key(number: u32) -> [u8; 4] {
    number.wrapping_mul(0x9E37_79B9).to_be_bytes()
}

/// A disk with a tree, and what the tree holds.
#[derive(Clone)]
struct Storage {
    disk: RamDisk,
    geometry: SectorGeometry,
    keys: std::ops::Range<u32>,
}

/// An update of the history: whether its value is long.
type Choose = fn(place: u32, from: u32) -> bool;

/// Long values alone behind some others, every twentieth update, and long ones nearly alone.
const CHOICES: [Choose; 3] = [
    |place, from| place >= from,
    |place, from| place.is_multiple_of(20) || place > from,
    |place, _| place >= 10,
];

impl Storage {
    fn index(
        &mut self,
        is_new: bool,
        times: u64,
        buffer: &str,
    ) -> index::Result<Box<dyn Index + '_>> {
        let settings = Settings::parse("la-tree", entry().parameters, [("buffer", buffer)]);
        let mut options = Options {
            durability: Some(Durability::Batch),
            journal_bytes: Some(256 << 10),
            ..Options::new(EntryShape::VARIABLE, 0, settings.unwrap())
        };
        let medium = MediumShape::Sectors(self.geometry);
        options.memory_bytes = times * entry().least_memory(&options, medium).unwrap();
        let make = if is_new { entry().create } else { entry().open };
        make(Medium::Sectors(Box::new(&mut self.disk)), &options)
    }

    /// A disk that was full, from which some was deleted.
    fn filled(sectors: u64, times: u64, random: &mut ChaCha8Rng) -> Self {
        let geometry = SectorGeometry::new(512, sectors).unwrap();
        let mut storage = Storage { disk: RamDisk::new(geometry), geometry, keys: 0..0 };
        let mut index = storage.index(true, times, "adaptive").unwrap();
        let mut count = 0;
        while index.update(&[Update::Put { key: &key(count), value: &[1; 20] }]).is_ok() {
            count += 1;
        }
        let gone = random.random_range(0..count / 3);
        for number in 0..gone {
            index.update(&[Update::Delete { key: &key(number) }]).unwrap();
        }
        index.close().unwrap();
        drop(index);
        storage.keys = gone..count;
        storage
    }

    /// Makes so many updates, or fewer, as long as none is refused and no checkpoint is made;
    /// returns how many there were, how many of them long, and what the tree holds.
    fn play(
        &mut self,
        times: u64,
        (most, from): (u32, u32),
        (choose, mut random): (Choose, ChaCha8Rng),
    ) -> ([u32; 2], Model) {
        let keys = self.keys.clone();
        let mut model = Model::default();
        for number in keys.clone() {
            model.entries.insert(key(number).to_vec(), vec![1; 20]);
        }
        let mut index = self.index(false, times, "adaptive").unwrap();
        let (mut made, mut checkpoint) = ([0; 2], None);
        for place in 0..most {
            let number = random.random_range(keys.clone());
            let is_long = choose(place, from);
            let bytes = if is_long { random.random_range(200..700) } else { 20 };
            let update = Update::Put { key: &key(number), value: &vec![2; bytes] };
            let refused = index.update(&[update]).is_err();
            let now = index.recovery().checkpoint;
            if refused || *checkpoint.get_or_insert(now) != now {
                break;
            }
            made[0] += 1;
            made[1] += u32::from(is_long);
            model.entries.insert(key(number).to_vec(), vec![2; bytes]);
        }
        if made[0] == most {
            index.sync().unwrap();
        }
        (made, model)
    }
}

/// Makes as many updates as there can be before a checkpoint; returns how many of them were long.
fn replay(seed: u64) -> u32 {
    let mut random = ChaCha8Rng::seed_from_u64(seed);
    let times = random.random_range(8..100);
    let sectors = [1500, 3000, 6000][seed as usize % 3];
    let storage = Storage::filled(sectors, times, &mut random);
    let from = random.random_range(0..3000);
    let choose = CHOICES[random.random_range(0..CHOICES.len())];
    let (made, _) = storage.clone().play(times, (u32::MAX, from), (choose, random.clone()));
    let mut left = storage;
    let (again, model) = left.play(times, (made[0], from), (choose, random));
    assert_eq!(made, again);
    for buffer in ["none", "128", "adaptive"] {
        let mut storage = left.clone();
        let mut index = storage.index(false, 1, buffer).unwrap_or_else(|error| {
            panic!("seed {seed}, {made:?} updates in the journal, buffer {buffer}: {error}")
        });
        assert_eq!(index.recovery().replayed, u64::from(made[0]));
        model.compare_all(&mut *index);
        assert_eq!(findings(&mut *index), Vec::<String>::new());
    }
    made[1]
}

#[test]
fn a_journal_with_long_values_is_replayed_with_less_memory_on_a_disk_that_is_nearly_full() {
    // Those at which the way back was used up, and others.
    let known = contract::sample(3, [1, 29, 35, 59, 77, 119, 136, 179, 185, 193]);
    let seeds: Vec<u64> = known.chain(contract::sample(7, 300..370)).collect();
    let long: u32 = on_all_cores(&seeds, |seed| replay(*seed)).into_iter().sum();
    println!("{long} long values replayed");
    assert!(long * contract::share(5) as u32 > 500, "{long}");
}
