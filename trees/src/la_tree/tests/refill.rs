//! The lazy-adaptive tree on a chip that was full and is empty again: it takes what a new one
//! takes.

use device::{Geometry, Medium, NandCosts};
use index::parameters::Settings;
use index::{Durability, EntryShape, Error, Index, Update};
use index::{MediumShape, Options, TreeDescriptor};
use sim::SimulatedNand;

fn entry() -> &'static TreeDescriptor {
    flashtree_trees::find("la-tree").unwrap()
}

struct Storage {
    chip: SimulatedNand,
    options: Options,
    least: u64,
}

impl Storage {
    fn new((page, spare, blocks): (u32, u32, u32), durability: Durability) -> Self {
        let chip = Geometry::new(page, 16, blocks).unwrap().with_spare(spare).unwrap();
        let settings = Settings::parse("la-tree", entry().parameters, []).unwrap();
        let options = Options {
            durability: Some(durability),
            journal_bytes: Some(u64::from(page) * 64),
            ..Options::new(EntryShape::fixed(4, 4), 0, settings)
        };
        let least = entry().least_memory(&options, MediumShape::Nand(chip)).unwrap();
        Storage { chip: SimulatedNand::new(chip, NandCosts::default()), options, least }
    }

    fn index(&mut self, is_new: bool, times: u64) -> Box<dyn Index + '_> {
        self.options.memory_bytes = times * self.least;
        let make = if is_new { entry().create } else { entry().open };
        make(Medium::Nand(Box::new(&mut self.chip)), &self.options).unwrap()
    }
}

/// Puts scattered keys from number `from` on until one is refused; returns how many went in.
fn fill(index: &mut dyn Index, from: u32) -> u32 {
    for number in 0.. {
        let key = (from + number).wrapping_mul(0x9E37_79B9).to_be_bytes();
        match index.update(&[Update::Put { key: &key, value: &key }]) {
            Ok(()) => {}
            Err(Error::Store(store::Error::Full { .. })) => return number,
            Err(error) => panic!("{error}"),
        }
    }
    0
}

fn empty(index: &mut dyn Index, (from, count): (u32, u32)) {
    for number in 0..count {
        let key = (from + number).wrapping_mul(0x9E37_79B9).to_be_bytes();
        index.update(&[Update::Delete { key: &key }]).unwrap();
    }
}

/// Fills a chip with `filled_with` times the least memory and deletes all of it again; then puts
/// other keys with `times` the least memory until the chip is full, and deletes them, too.
fn fill_empty_and_fill(
    chip: (u32, u32, u32),
    durability: Durability,
    (filled_with, times): (u64, u64),
) {
    let others = 1_000_000;
    let new = fill(&mut *Storage::new(chip, durability).index(true, times), others);
    let mut storage = Storage::new(chip, durability);
    let mut index = storage.index(true, filled_with);
    let first = fill(&mut *index, 0);
    empty(&mut *index, (0, first));
    index.close().unwrap();
    drop(index);
    let mut index = storage.index(false, times);
    let again = fill(&mut *index, others);
    empty(&mut *index, (others, again));
    let third = fill(&mut *index, 0);
    empty(&mut *index, (0, third));
    let name = format!("{chip:?}, {durability}, {filled_with} and {times} times the least memory");
    // How full leaves are where the chip is full depends on when they were split.
    for taken in [again, third] {
        assert!(
            taken * 100 >= new * 85,
            "{name}: {taken} after {first} were deleted, {new} if new"
        );
    }
    index.check(&mut |finding| panic!("{name}: {finding}")).unwrap();
    index.close().unwrap();
}

#[test]
fn a_chip_that_was_full_and_is_empty_takes_what_a_new_one_takes() {
    let mut cases = Vec::new();
    for chip in [(512, 16, 42), (512, 0, 44), (512, 16, 56), (2048, 0, 40)] {
        for durability in Durability::ALL {
            let memories = [(1, 1), (1, 40), (16, 40), (40, 4)];
            cases.extend(memories.map(|memories| (chip, durability, memories)));
        }
    }
    for (chip, durability, memories) in contract::sample(9, cases) {
        fill_empty_and_fill(chip, durability, memories);
    }
}

/// Changed nodes that stand in a large cache alone take pages at the next checkpoint.
#[test]
fn a_checkpoint_of_many_changed_nodes_leaves_a_full_chip_room_for_deletes() {
    fill_empty_and_fill((512, 16, 56), Durability::Checkpoint, (16, 40));
}

/// Three of five keys are deleted, so hardly a leaf is less than a quarter full; what comes then
/// lies side by side, and finds room in none of them.
#[test]
fn a_full_chip_takes_as_much_as_was_deleted_from_it() {
    let mut cases = Vec::new();
    for chip in [(512, 16, 56), (512, 0, 56), (2048, 0, 40)] {
        cases.extend(Durability::ALL.map(|durability| (chip, durability)));
    }
    for (chip, durability) in contract::sample(5, cases) {
        let mut storage = Storage::new(chip, durability);
        let mut index = storage.index(true, 4);
        let first = fill(&mut *index, 0);
        let mut deleted = 0;
        for number in (0..first).filter(|number| number % 5 < 3) {
            empty(&mut *index, (number, 1));
            deleted += 1;
        }
        let put = (0..).position(|number| {
            let key = (u32::MAX / 3 + number).to_be_bytes();
            index.update(&[Update::Put { key: &key, value: &key }]).is_err()
        });
        let put = put.unwrap_or_default();
        println!("{chip:?}, {durability}: of {first} {deleted} deleted, {put} put");
        assert!(put * 100 > deleted * 90, "{chip:?}, {durability}: {put} of {deleted}");
        index.check(&mut |finding| panic!("{chip:?}, {durability}: {finding}")).unwrap();
        for number in (0..first).filter(|number| number % 5 >= 3) {
            let key = number.wrapping_mul(0x9E37_79B9).to_be_bytes();
            assert_eq!(index.get(&key, 0, &mut [0; 4]).unwrap(), Some(4), "{number}");
        }
        index.close().unwrap();
    }
}

/// Half of all keys are deleted, so hardly a leaf is less than a quarter full. The others are put
/// again and again. Were leaves not merged first, there would be room for few entries that wait,
/// and buffers would be emptied for nearly every put.
#[test]
fn a_full_chip_that_half_was_deleted_from_lets_updates_wait() {
    let mut storage = Storage::new((512, 16, 56), Durability::Batch);
    let mut index = storage.index(true, 4);
    let first = fill(&mut *index, 0);
    (0..first).step_by(2).for_each(|number| empty(&mut *index, (number, 1)));
    let programs = |index: &dyn Index| index.meter().unwrap().total().page_programs;
    let (before, updates) = (programs(&*index), 8 * u64::from(first));
    for step in 0..8 * first {
        let number = step.wrapping_mul(7919) % (first / 2) * 2 + 1;
        let key = number.wrapping_mul(0x9E37_79B9).to_be_bytes();
        index.update(&[Update::Put { key: &key, value: &key }]).unwrap();
    }
    let programs = programs(&*index) - before;
    println!("{first} keys, half of them deleted: {programs} pages programmed by {updates} puts");
    assert!(programs * 4 < updates, "{programs} of {updates}");
}
