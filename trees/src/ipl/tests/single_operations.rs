//! What in-page logging promises beside what every tree does.

use device::{Geometry, Medium, NandCosts, ProgramOrder};
use index::parameters::Settings;
use index::{Cursor, Durability, EntryShape, Index, KeyRange, Update, Value};
use index::{Options, TreeDescriptor};
use sim::SimulatedNand;

const MEMORY: u64 = 64 << 10;

fn entry() -> &'static TreeDescriptor {
    flashtree_trees::find("ipl").unwrap()
}

fn chip((page_bytes, blocks): (u32, u32), programs: u16, order: ProgramOrder) -> SimulatedNand {
    let geometry = Geometry::new(page_bytes, 16, blocks).unwrap().with_order(order);
    let geometry = geometry.with_spare(page_bytes / 32).unwrap().with_programs(programs).unwrap();
    SimulatedNand::new(geometry, NandCosts::default())
}

fn options(durability: Durability) -> Options {
    let settings = Settings::parse("ipl", entry().parameters, []).unwrap();
    let shape = EntryShape::fixed(4, 4);
    Options { durability: Some(durability), ..Options::new(shape, MEMORY, settings) }
}

fn create(chip: &mut SimulatedNand, durability: Durability) -> Box<dyn Index + '_> {
    (entry().create)(Medium::Nand(Box::new(chip)), &options(durability)).unwrap()
}

fn open(chip: &mut SimulatedNand, durability: Durability) -> Box<dyn Index + '_> {
    (entry().open)(Medium::Nand(Box::new(chip)), &options(durability)).unwrap()
}

fn put(index: &mut dyn Index, number: u32, value: u32) {
    index
        .update(&[Update::Put { key: &number.to_be_bytes(), value: &value.to_be_bytes() }])
        .unwrap();
}

fn delete(index: &mut dyn Index, number: u32) {
    index.update(&[Update::Delete { key: &number.to_be_bytes() }]).unwrap();
}

fn get(index: &mut dyn Index, number: u32) -> Option<u32> {
    let mut value = [0; 4];
    index.get(&number.to_be_bytes(), 0, &mut value).unwrap().map(|_| u32::from_be_bytes(value))
}

fn assert_sound(index: &mut dyn Index) {
    let mut findings = Vec::new();
    index.check(&mut |finding| findings.push(finding.to_string())).unwrap();
    assert!(findings.is_empty(), "{findings:?}");
}

/// The numbers below `end` that `step` divides, as keys and values.
struct Sorted {
    next: u32,
    end: u32,
    step: u32,
    bytes: [u8; 4],
}

impl Cursor for Sorted {
    fn next(&mut self) -> index::Result<Option<(&[u8], Value<'_>)>> {
        if self.next >= self.end {
            return Ok(None);
        }
        self.bytes = self.next.to_be_bytes();
        self.next += self.step;
        Ok(Some((&self.bytes, Value::Inline(&self.bytes))))
    }

    fn read_value(&mut self, _offset: u32, _into: &mut [u8]) -> index::Result<u32> {
        Ok(4)
    }
}

fn load(index: &mut dyn Index, end: u32, step: u32) {
    let mut sorted = Sorted { next: 0, end, step, bytes: [0; 4] };
    assert_eq!(index.load(&mut sorted, 100).unwrap(), u64::from(end.div_ceil(step)));
}

fn entries(index: &mut dyn Index) -> u32 {
    let mut cursor = index.range(KeyRange::ALL).unwrap();
    let mut entries = 0;
    while cursor.next().unwrap().is_some() {
        entries += 1;
    }
    entries
}

/// A table of 12 bytes a node that is longer than two erase blocks comes back: after a close, after
/// a power cut, and by a rollback.
#[test]
fn a_table_of_several_erase_blocks_comes_back() {
    const ENTRIES: u32 = 90_000;
    let mut chip = chip((512, 700), 1, ProgramOrder::Ascending);
    let mut index = create(&mut chip, Durability::Batch);
    load(&mut *index, ENTRIES, 1);
    let nodes = index.statistics().live_pages;
    assert!(nodes * 12 > 2 * 512 * 16, "{nodes} nodes fit two blocks");
    index.checkpoint(Some("loaded")).unwrap();
    for number in 0..500 {
        put(&mut *index, number * 150, 7);
    }
    index.sync().unwrap();
    drop(index);
    chip.cut_power();
    chip.restore_power();

    let mut index = open(&mut chip, Durability::Batch);
    assert_eq!((get(&mut *index, 150), get(&mut *index, 151)), (Some(7), Some(151)));
    index.roll_back("loaded").unwrap();
    assert_eq!(get(&mut *index, 150), Some(150));
    put(&mut *index, 150, 9);
    index.close().unwrap();
    drop(index);

    let mut index = open(&mut chip, Durability::Batch);
    assert_eq!((get(&mut *index, 150), entries(&mut *index)), (Some(9), ENTRIES));
    assert_sound(&mut *index);
}

/// What `updates` random puts program and erase on a chip that takes so many programs a page.
fn written(programs: u16, order: ProgramOrder) -> (u64, u64) {
    let mut chip = chip((2048, 120), programs, order);
    let mut index = create(&mut chip, Durability::None);
    load(&mut *index, 40_000, 2);
    let before = index.meter().unwrap().total();
    for number in 0..6000_u32 {
        put(&mut *index, number.wrapping_mul(0x9E37_79B1) % 40_000, number);
    }
    let after = index.meter().unwrap().total();
    assert_sound(&mut *index);
    index.close().unwrap();
    drop(index);
    let mut index = open(&mut chip, Durability::None);
    assert_eq!(get(&mut *index, 5999_u32.wrapping_mul(0x9E37_79B1) % 40_000), Some(5999));
    let programmed = after.bytes_programmed - before.bytes_programmed;
    (programmed, after.block_erases - before.block_erases)
}

#[test]
fn a_chip_that_takes_parts_of_a_page_is_programmed_and_erased_less() {
    for order in [ProgramOrder::Any, ProgramOrder::Ascending] {
        let ((whole, often), (parts, rarely)) = (written(1, order), written(4, order));
        println!("{order:?}: {whole} bytes and {often} erases, in parts {parts} and {rarely}");
        assert!(parts * 2 < whole && rarely * 2 < often);
    }
}

/// A leaf that is less than half full takes entries of a full neighbour, so that this has room
/// again.
#[test]
fn a_leaf_below_half_borrows_from_its_neighbour() {
    let mut chip = chip((512, 64), 1, ProgramOrder::Ascending);
    let mut index = create(&mut chip, Durability::None);
    load(&mut *index, 252, 2);
    let pages = index.statistics().live_pages;
    assert_eq!(pages, 3, "two full leaves of 63 entries and a root");
    (0..33).for_each(|number| delete(&mut *index, number * 2));
    (60..70).for_each(|number| put(&mut *index, number * 2 + 1, 0));
    assert_eq!(index.statistics().live_pages, pages, "the full one has room");
    assert_sound(&mut *index);
    assert_eq!(entries(&mut *index), 126 - 33 + 10);
    (33..120).for_each(|number| delete(&mut *index, number * 2));
    assert_eq!(index.statistics().live_pages, 1, "joined, and the root with them");
    assert_sound(&mut *index);
}

/// With room to spare a block is merged when all its log pages are full, and not before: so many
/// programs an erase as it has log pages and nodes.
#[test]
fn a_block_is_merged_when_its_log_pages_are_full_and_not_before() {
    let mut chip = chip((2048, 160), 1, ProgramOrder::Any);
    let mut index = create(&mut chip, Durability::None);
    // Leaves that are full, so that blocks are full of nodes, and none is split.
    load(&mut *index, 80_000, 1);
    let before = (index.meter().unwrap().total(), index.statistics().live_pages);
    for number in 0..20_000_u32 {
        put(&mut *index, number.wrapping_mul(0x9E37_79B1) % 80_000, number);
    }
    let after = (index.meter().unwrap().total(), index.statistics().live_pages);
    assert_eq!(before.1, after.1, "nodes");
    let programs = after.0.page_programs - before.0.page_programs;
    let erases = after.0.block_erases - before.0.block_erases;
    let each = programs as f64 / erases as f64;
    println!("{programs} programs, {erases} erases: {each:.2} programs an erase");
    // Eight log pages, and the nodes that live in a block, which are eight at the most.
    assert!(erases > 100 && (14.5..17.0).contains(&each), "{each} programs an erase");
}
