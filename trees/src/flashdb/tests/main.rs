//! What flashdb does by itself.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test fails by panicking"
)]

use contract::RamDisk;
use contract::tree::{figure, findings};
use device::{Access, Cause, DiskCosts, Linear, Medium, Request, Sector, SectorGeometry, Sectors};
use flashtree_trees::find;
use index::parameters::Settings;
use index::{Durability, EntryShape, Index, MediumShape, Options, Update};

const SECTOR: usize = 512;

fn options(given: &[(&str, &str)], durability: Durability) -> Options {
    let entry = find("flashdb").unwrap();
    let settings = Settings::parse(entry.name, entry.parameters, given.iter().copied()).unwrap();
    let mut options = Options::new(EntryShape::fixed(4, 4), 0, settings);
    options.durability = Some(durability);
    let disk = disk(20_000).geometry();
    let least = (entry.footprint)(&options, MediumShape::Sectors(disk)).unwrap();
    Options { memory_bytes: least.memory_least, ..options }
}

fn disk(sectors: u64) -> RamDisk {
    RamDisk::new(SectorGeometry::new(SECTOR as u32, sectors).unwrap())
}

fn make<'d>(disk: &'d mut RamDisk, options: &Options) -> Box<dyn Index + 'd> {
    (find("flashdb").unwrap().create)(Medium::Sectors(Box::new(disk)), options).unwrap()
}

fn open<'d>(disk: &'d mut RamDisk, options: &Options) -> Box<dyn Index + 'd> {
    (find("flashdb").unwrap().open)(Medium::Sectors(Box::new(disk)), options).unwrap()
}

fn key(number: u32) -> [u8; 4] {
    number.wrapping_mul(0x9E37_79B1).to_be_bytes()
}

fn put(index: &mut dyn Index, number: u32, value: u32) -> index::Result<()> {
    index.update(&[Update::Put { key: &key(number), value: &value.to_le_bytes() }])
}

fn get(index: &mut dyn Index, number: u32) -> Option<u32> {
    let mut value = [0; 4];
    index.get(&key(number), 0, &mut value).unwrap().map(|_| u32::from_le_bytes(value))
}

fn nodes(index: &dyn Index) -> u64 {
    figure(index, index::LEAVES) + figure(index, index::INNER_NODES)
}

#[test]
fn in_disk_mode_each_node_is_a_sector_and_each_update_writes_one() {
    let (mut disk, options) = (disk(20_000), options(&[("mode", "disk")], Durability::None));
    let mut index = make(&mut disk, &options);
    for number in 0..5000 {
        put(&mut *index, number, number).unwrap();
    }
    let before = figure(&*index, "nodes written in disk mode");
    for number in 0..1000 {
        put(&mut *index, number, 1).unwrap();
    }
    let written = figure(&*index, "nodes written in disk mode") - before;
    assert!((990..=1000).contains(&written), "{written} written");
    assert_eq!(figure(&*index, "nodes in disk mode"), nodes(&*index));
    assert_eq!(figure(&*index, "sectors in lists"), nodes(&*index));
    assert_eq!(figure(&*index, "commits"), 0);
    assert_eq!(findings(&mut *index), Vec::<String>::new());
}

#[test]
fn in_log_mode_a_full_buffer_is_one_sector() {
    let (mut disk, options) = (disk(20_000), options(&[("mode", "log")], Durability::None));
    let mut index = make(&mut disk, &options);
    for number in 0..5000 {
        put(&mut *index, number, number).unwrap();
    }
    let figures = |index: &dyn Index| {
        ["commits", "sectors written", "nodes compacted"].map(|name| figure(index, name))
    };
    let before = figures(&*index);
    for number in 0..3300 {
        put(&mut *index, number, 1).unwrap();
    }
    let [commits, sectors, compacted] = [0, 1, 2].map(|at| figures(&*index)[at] - before[at]);
    // 33 entries of 15 bytes fill a sector.
    assert_eq!(commits, 100);
    assert!(sectors <= commits + compacted + 100, "{sectors} sectors, {compacted} compacted");
    assert!(figure(&*index, "sectors in lists") > nodes(&*index));
    assert_eq!(findings(&mut *index), Vec::<String>::new());
}

#[test]
fn a_log_buffer_of_four_sectors_is_written_when_it_is_full_and_packs_by_node() {
    let figures = |index: &dyn Index| {
        ["commits", "groups written", "entries logged"].map(|name| figure(index, name))
    };
    let played = ["512", "2048"].map(|bytes| {
        let given = [("mode", "log"), ("log-buffer", bytes)];
        let (mut disk, options) = (disk(20_000), options(&given, Durability::None));
        let mut index = make(&mut disk, &options);
        for number in 0..1000 {
            put(&mut *index, number, number).unwrap();
        }
        let before = figures(&*index);
        for round in 0..10 {
            for number in 0..990 {
                put(&mut *index, number, round).unwrap();
            }
        }
        let after = figures(&*index);
        assert_eq!(findings(&mut *index), Vec::<String>::new());
        assert!((0..990).all(|number| get(&mut *index, number) == Some(9)));
        [0, 1, 2].map(|at| after[at] - before[at])
    });
    // 33 entries of 15 bytes fill a sector.
    let [[one, groups_of_one, _], [four, groups_of_four, logged]] = played;
    assert!((299..=301).contains(&one) && (74..=76).contains(&four), "{one} and {four} commits");
    assert!(groups_of_four < groups_of_one, "{groups_of_four} and {groups_of_one} groups");
    assert!(logged <= 9900, "{logged} entries");
}

#[test]
fn the_printed_counter_leaves_nodes_in_log_mode_that_were_written_for_long() {
    let in_disk_mode = ["clamped", "printed"].map(|counter| {
        let (mut disk, options) =
            (disk(20_000), options(&[("counter", counter)], Durability::None));
        let mut index = make(&mut disk, &options);
        for round in 0..10 {
            for number in 0..3000 {
                put(&mut *index, number, round).unwrap();
            }
        }
        for round in 0..30_000 {
            get(&mut *index, round % 3000).unwrap();
            if round % 8 == 0 {
                put(&mut *index, 1, round).unwrap();
            }
        }
        assert_eq!(findings(&mut *index), Vec::<String>::new());
        (figure(&*index, "nodes in disk mode"), nodes(&*index))
    });
    let [(clamped, all), (printed, _)] = in_disk_mode;
    assert!(clamped > all * 9 / 10 && printed < all / 10, "{clamped}, {printed} of {all} nodes");
}

#[test]
fn a_node_that_stays_in_memory_goes_to_disk_mode_when_it_is_changed_often() {
    let (mut disk, options) = (disk(20_000), options(&[], Durability::None));
    let mut index = make(&mut disk, &options);
    for round in 0..10_000 {
        put(&mut *index, 1, round).unwrap();
    }
    // Each change was logged; as a page the node is written once, when it leaves the memory.
    assert_eq!((figure(&*index, "nodes in disk mode"), nodes(&*index)), (1, 1));
    assert!(figure(&*index, "sectors written") < 100);
    assert_eq!(get(&mut *index, 1), Some(9999));
}

#[test]
fn a_node_that_is_due_with_the_next_read_is_that_after_opening_and_rollback() {
    let changed = |is_opened: bool, is_rolled_back: bool| {
        let (mut disk, options) = (disk(20_000), options(&[], Durability::Batch));
        let mut index = make(&mut disk, &options);
        for number in 0..5000 {
            put(&mut *index, number, number).unwrap();
        }
        // Reads bring leaves near to where they change, and no update comes that lets them.
        for number in 0..20_000 {
            get(&mut *index, number % 5000).unwrap();
        }
        index.checkpoint(Some("read")).unwrap();
        if is_rolled_back {
            for number in 0..5000 {
                put(&mut *index, number, 1).unwrap();
            }
            index.roll_back("read").unwrap();
        }
        let mut index = if is_opened {
            drop(index);
            open(&mut disk, &options)
        } else {
            index
        };
        let before = figure(&*index, "nodes in disk mode");
        for round in 0..6000 {
            get(&mut *index, round % 5000).unwrap();
            if round % 8 == 0 {
                put(&mut *index, 1, round).unwrap();
            }
        }
        figure(&*index, "nodes in disk mode") - before
    };
    let (open, opened, back) = (changed(false, false), changed(true, false), changed(false, true));
    assert!(open >= 100, "{open}");
    let is_like = |other: u64| other * 10 >= open * 9 && other * 10 <= open * 11;
    assert!(is_like(opened) && is_like(back), "{open}, {opened}, {back}");
}

#[test]
fn nodes_that_are_read_go_to_disk_mode_and_back_when_they_are_written() {
    for durability in [Durability::None, Durability::Batch] {
        let (mut disk, options) = (disk(20_000), options(&[], durability));
        let mut index = make(&mut disk, &options);
        for number in 0..5000 {
            put(&mut *index, number, number).unwrap();
        }
        let in_disk_mode = |index: &dyn Index| figure(index, "nodes in disk mode");
        assert!(in_disk_mode(&*index) < nodes(&*index) / 4, "{}", in_disk_mode(&*index));
        // A read changes nothing by itself.
        let (before, mut value) = (in_disk_mode(&*index), 0);
        for number in 0..5000 {
            assert_eq!(get(&mut *index, number), Some(number));
        }
        assert_eq!(in_disk_mode(&*index), before);
        for round in 0..40_000 {
            get(&mut *index, round % 5000).unwrap();
            if round % 8 == 0 {
                value += 1;
                put(&mut *index, 1, value).unwrap();
            }
        }
        let read = in_disk_mode(&*index);
        assert!(read > nodes(&*index) * 9 / 10, "{read} of {} nodes", nodes(&*index));
        assert!(figure(&*index, "nodes switched to disk mode") >= 100);
        for round in 0..8 {
            for number in 0..5000 {
                put(&mut *index, number, round).unwrap();
            }
        }
        let written = in_disk_mode(&*index);
        assert!(written < read / 4, "{written} of {} nodes", nodes(&*index));
        assert!(figure(&*index, "nodes switched to log mode") >= 100);
        assert_eq!(findings(&mut *index), Vec::<String>::new());
        index.close().unwrap();
        drop(index);
        let mut index = open(&mut disk, &options);
        assert_eq!(in_disk_mode(&*index), written);
        assert!((0..5000).all(|number| get(&mut *index, number) == Some(7)));
    }
}

#[test]
fn a_full_disk_takes_deletes_in_every_mode() {
    for mode in ["self-tuning", "log", "disk"] {
        for durability in Durability::ALL {
            let (mut disk, options) = (disk(1000), options(&[("mode", mode)], durability));
            let mut index = make(&mut disk, &options);
            let taken = (0..).find(|number| put(&mut *index, *number, *number).is_err()).unwrap();
            assert!(nodes(&*index) > 350, "{mode}, {durability}: {} nodes", nodes(&*index));
            assert_eq!(findings(&mut *index), Vec::<String>::new());
            for number in 0..taken {
                let deleted = index.update(&[Update::Delete { key: &key(number) }]);
                assert_eq!(deleted, Ok(()), "{mode}, {durability}: {number} of {taken}");
            }
            index.close().unwrap();
        }
    }
}

/// Fills the disk, and deletes all but so many tenths of the entries; how many are left.
fn fill_to_tenths(index: &mut dyn Index, tenths: u32) -> u32 {
    let taken = (0..).find(|number| put(index, *number, 0).is_err()).unwrap();
    let left = taken * tenths / 10;
    for number in left..taken {
        index.update(&[Update::Delete { key: &key(number) }]).unwrap();
    }
    left
}

#[test]
fn where_room_gets_rare_sectors_that_are_mostly_stale_are_collected() {
    for mode in ["self-tuning", "log"] {
        let (mut disk, options) = (disk(1100), options(&[("mode", mode)], Durability::Batch));
        let mut index = make(&mut disk, &options);
        // Then lists have room to be of two sectors or three, of which not all are of use.
        let left = fill_to_tenths(&mut *index, 6);
        for round in 0..40_000_u32 {
            let number = round.wrapping_mul(0x85EB_CA6B) % left;
            put(&mut *index, number, round).unwrap();
        }
        let collected = figure(&*index, "sectors collected");
        assert!(collected >= 100, "{mode}: {collected}, {left} entries");
        assert_eq!(findings(&mut *index), Vec::<String>::new());
    }
}

#[test]
fn entries_that_cancel_each_other_are_left_out_when_a_list_is_full() {
    let (mut disk, options) = (disk(20_000), options(&[("mode", "log")], Durability::None));
    let mut index = make(&mut disk, &options);
    for number in 50..2000 {
        put(&mut *index, number, 0).unwrap();
    }
    for round in 0..20_000_u32 {
        put(&mut *index, round % 50, round).unwrap();
        if round % 3 > 0 {
            index.update(&[Update::Delete { key: &key(round % 50) }]).unwrap();
        }
    }
    assert!(figure(&*index, "nodes compacted") >= 100);
    // 33 entries of 15 bytes fill a sector: no more than that are left of what was logged.
    let left = 33 * figure(&*index, "sectors in lists");
    let logged = figure(&*index, "entries logged");
    assert!(logged > left + 20_000, "{logged} were logged, at most {left} are left");
    for number in 0..50_u32 {
        let is_left = (19_950 + number).is_multiple_of(3);
        assert_eq!(get(&mut *index, number).is_some(), is_left);
    }
    assert_eq!(findings(&mut *index), Vec::<String>::new());
}

#[test]
fn the_file_grows_with_its_data_and_gets_shorter_when_it_is_closed() {
    let geometry = SectorGeometry::new(SECTOR as u32, 100_000).unwrap();
    let (mut disk, options) = (RamDisk::growing(geometry), options(&[], Durability::Batch));
    let held = |disk: &RamDisk| disk.sectors_held().unwrap();
    make(&mut disk, &options).close().unwrap();
    let (mut grown, mut shorter) = (0, 0);
    for round in 0..120 {
        let before = held(&disk);
        let mut index = open(&mut disk, &options);
        for number in 0..300 {
            put(&mut *index, 300 * round + number, round).unwrap();
        }
        drop(index);
        let open_file = held(&disk);
        let mut index = open(&mut disk, &options);
        assert_eq!(get(&mut *index, 300 * round), Some(round));
        index.close().unwrap();
        drop(index);
        grown += u32::from(open_file > before);
        shorter += u32::from(held(&disk) < open_file);
    }
    assert!(grown >= 100 && shorter >= 100, "{grown} times longer, {shorter} times shorter");
}

#[test]
fn an_index_is_rolled_back_to_each_of_its_checkpoints() {
    let (mut disk, options) = (disk(20_000), options(&[], Durability::Batch));
    let mut index = make(&mut disk, &options);
    for number in 0..1000 {
        put(&mut *index, number, 0).unwrap();
    }
    for round in 1..=120 {
        index.checkpoint(Some("before")).unwrap();
        let in_disk_mode = figure(&*index, "nodes in disk mode");
        for number in 0..200 {
            put(&mut *index, number * round % 1500, round).unwrap();
            get(&mut *index, number);
        }
        index.roll_back("before").unwrap();
        assert_eq!(figure(&*index, "nodes in disk mode"), in_disk_mode);
        assert!((0..1000).step_by(7).all(|number| get(&mut *index, number) == Some(0)));
        assert_eq!(get(&mut *index, 1200), None);
        index.forget("before").unwrap();
    }
    assert_eq!(findings(&mut *index), Vec::<String>::new());
}

/// Overwrites a quarter of the entries that an index holds behind a checkpoint that is kept, until
/// `is_enough`, and comes back to it.
fn outlives(index: &mut dyn Index, held: u32, is_enough: impl Fn(&dyn Index) -> bool) -> bool {
    index.checkpoint(Some("kept")).unwrap();
    let mut enough = false;
    for round in 1..200_000_u32 {
        let number = round.wrapping_mul(0x85EB_CA6B) % (held / 4);
        put(index, number, round).unwrap();
        enough = round % 64 == 0 && is_enough(index);
        if enough {
            break;
        }
    }
    index.roll_back("kept").unwrap();
    assert_eq!(findings(index), Vec::<String>::new());
    assert!((0..held).all(|number| get(index, number) == Some(0)));
    enough
}

#[test]
fn a_kept_checkpoint_outlives_the_collection_of_the_log() {
    for mode in ["self-tuning", "log"] {
        let (mut disk, options) = (disk(1100), options(&[("mode", mode)], Durability::Batch));
        let mut index = make(&mut disk, &options);
        let held = fill_to_tenths(&mut *index, 3);
        let enough = |index: &dyn Index| figure(index, "sectors collected") >= 100;
        let is_enough = outlives(&mut *index, held, enough);
        assert!(is_enough, "{mode}: {}", figure(&*index, "sectors collected"));
    }
}

#[test]
fn a_kept_checkpoint_outlives_the_collection_of_the_layer_below() {
    for mode in ["self-tuning", "log", "disk"] {
        let chip = chips::find("samsung-k9k1g08r0b").unwrap();
        let chip = chip.nand(&chips::Overrides::default()).unwrap();
        let mut nand = sim::SimulatedNand::new(chip.geometry.with_blocks(64).unwrap(), chip.costs);
        let layer = ftl::find("page-map").unwrap();
        let below = (layer.create)(Box::new(&mut nand), &ftl::Options::default()).unwrap();
        let options =
            Options { memory_bytes: 64 << 10, ..options(&[("mode", mode)], Durability::Batch) };
        let entry = find("flashdb").unwrap();
        let mut index = (entry.create)(Medium::Sectors(below), &options).unwrap();
        let erased = |index: &dyn Index| index.meter().unwrap().total().block_erases;
        let before = erased(&*index);
        let enough = |index: &dyn Index| erased(index) >= before + 100;
        (0..4000).for_each(|number| put(&mut *index, number, 0).unwrap());
        assert!(outlives(&mut *index, 4000, enough), "{mode}");
    }
}

/// Damages all pages that hold records, or held some.
fn damage_records(disk: &mut RamDisk) -> usize {
    let records = disk.bytes_mut().chunks_mut(SECTOR).filter(|page| matches!(page[7], 4 | 5));
    records.map(|page| page[20] ^= 1).count()
}

#[test]
fn where_the_root_record_is_damaged_a_scan_finds_the_table() {
    for durability in Durability::ALL {
        let (mut disk, least) = (disk(20_000), options(&[], durability));
        let more = Options { memory_bytes: least.memory_bytes + (1 << 20), ..least.clone() };
        let mut index = make(&mut disk, &least);
        for number in 0..5000 {
            put(&mut *index, number, number).unwrap();
            get(&mut *index, number % 16);
        }
        for number in 1000..2500 {
            index.update(&[Update::Delete { key: &key(number) }]).unwrap();
        }
        index.close().unwrap();
        let figures = |index: &dyn Index| {
            ["sectors in lists", "nodes in disk mode"].map(|name| figure(index, name))
        };
        let (before, nodes_before) = (figures(&*index), nodes(&*index));
        drop(index);
        assert!(damage_records(&mut disk) > 0 && before[1] > 0);
        let opened = (find("flashdb").unwrap().open)(Medium::Sectors(Box::new(&mut disk)), &least);
        let refused = opened.err();
        assert!(refused.unwrap().to_string().contains("memory"));
        for is_first in [true, false] {
            let mut index = open(&mut disk, if is_first { &more } else { &least });
            assert_eq!(findings(&mut *index), Vec::<String>::new());
            if is_first {
                assert_eq!((figures(&*index), nodes(&*index)), (before, nodes_before));
            }
            for number in 0..5000 {
                let left = (!(1000..2500).contains(&number)).then_some(number);
                assert_eq!(get(&mut *index, number), left.or((!is_first).then_some(1)));
            }
            for number in 1000..2500 {
                put(&mut *index, number, 1).unwrap();
            }
            index.close().unwrap();
            assert_eq!(findings(&mut *index), Vec::<String>::new());
        }
    }
}

#[test]
fn a_scan_that_misses_a_sector_or_may_give_back_too_much_is_refused() {
    let (mut disk, options) = (disk(20_000), options(&[], Durability::Batch));
    let options = Options { memory_bytes: options.memory_bytes + (1 << 20), ..options };
    let mut index = make(&mut disk, &options);
    for number in 0..5000 {
        put(&mut *index, number, number).unwrap();
    }
    index.close().unwrap();
    drop(index);
    let mut other = disk.clone();
    let mut index = open(&mut other, &options);
    index.checkpoint(Some("kept")).unwrap();
    index.close().unwrap();
    drop(index);
    damage_records(&mut other);
    damage_records(&mut disk);
    assert!(open_refused(&mut other, &options));
    assert!(!open_refused(&mut disk.clone(), &options));
    // Of any sector in use but those of the record, one that can't be read is one too many.
    let whole = disk.bytes_mut().to_vec();
    let nodes = |page: &[u8]| matches!(page[7], 9 | 10);
    let (mut refused, mut taken) = (0, 0);
    for number in (2..2000).filter(|number| nodes(&whole[number * SECTOR..][..SECTOR])) {
        disk.bytes_mut()[number * SECTOR + 20] ^= 1;
        match open_refused(&mut disk, &options) {
            true => refused += 1,
            false => taken += 1,
        }
        disk.bytes_mut().copy_from_slice(&whole);
    }
    // Those that were given back are not read.
    assert!(refused >= 100, "{refused} refused, {taken} taken");
}

fn open_refused(disk: &mut RamDisk, options: &Options) -> bool {
    let opened = (find("flashdb").unwrap().open)(Medium::Sectors(Box::new(disk)), options);
    match opened.err() {
        None => false,
        Some(index::Error::Store(error)) => error.is_damage(),
        Some(error) => panic!("{error}"),
    }
}

/// What a kept checkpoint needs of a sector is kept once between two checkpoints, however often the
/// node in it changes.
#[test]
fn a_kept_checkpoint_leaves_room_for_nodes_that_change_again_and_again() {
    for mode in ["self-tuning", "log", "disk"] {
        let (mut disk, options) = (disk(2000), options(&[("mode", mode)], Durability::Batch));
        let mut index = make(&mut disk, &options);
        for number in 0..300 {
            put(&mut *index, number, 0).unwrap();
        }
        index.checkpoint(Some("kept")).unwrap();
        for round in 0..10_000 {
            let taken = put(&mut *index, round % 300, round);
            assert_eq!(taken, Ok(()), "{mode}: {round}");
        }
        index.roll_back("kept").unwrap();
        assert!((0..300).all(|number| get(&mut *index, number) == Some(0)));
        assert_eq!(findings(&mut *index), Vec::<String>::new());
    }
}

/// A disk that says what it costs.
struct Priced {
    below: RamDisk,
    costs: DiskCosts,
}

impl Sectors for Priced {
    fn geometry(&self) -> SectorGeometry {
        self.below.geometry()
    }

    fn read(&mut self, requests: &mut [Request<'_>], cause: Cause) -> device::Result<()> {
        self.below.read(requests, cause)
    }

    fn write(&mut self, first: Sector, from: &[u8], cause: Cause) -> device::Result<()> {
        self.below.write(first, from, cause)
    }

    fn trim(&mut self, first: Sector, count: u64, cause: Cause) -> device::Result<()> {
        self.below.trim(first, count, cause)
    }

    fn flush(&mut self, cause: Cause) -> device::Result<()> {
        self.below.flush(cause)
    }

    fn costs(&self) -> Option<DiskCosts> {
        Some(self.costs)
    }
}

/// A disk of such costs: microseconds of a page, and of each behind it.
fn priced(read: [u64; 2], write: [u64; 2]) -> Priced {
    let access = |[first, next]: [u64; 2]| {
        let time = Linear { per_page: next * 1000, ..Linear::fixed((first - next) * 1000) };
        let cost = device::Cost { time, energy: None };
        Access { random: cost, sequential: cost }
    };
    let costs = DiskCosts { read: access(read), write: access(write) };
    Priced { below: disk(20_000), costs }
}

/// Nodes of 2000 entries on a disk of such costs.
fn nodes_on(read: [u64; 2], write: [u64; 2], memory_bytes: Option<u64>) -> u64 {
    let mut below = priced(read, write);
    let mut given = options(&[("mode", "disk")], Durability::None);
    given.memory_bytes = memory_bytes.unwrap_or(given.memory_bytes);
    let medium = Medium::Sectors(Box::new(&mut below));
    let mut index = (find("flashdb").unwrap().create)(medium, &given).unwrap();
    for number in 0..2000 {
        put(&mut *index, number, number).unwrap();
    }
    index.close().unwrap();
    drop(index);
    let mut index = open(&mut below.below, &given);
    assert!((0..2000).all(|number| get(&mut *index, number) == Some(number)));
    assert_eq!(findings(&mut *index), Vec::<String>::new());
    nodes(&*index)
}

#[test]
fn a_node_is_as_long_as_is_best_on_the_device_if_the_memory_is_enough() {
    let (read, write) = ([18_000, 559], [29_000, 564]);
    let (short, long) = (40..60, 5..9);
    assert!(short.contains(&nodes_on([15; 2], [200; 2], Some(1 << 20))));
    assert!(long.contains(&nodes_on(read, write, Some(1 << 20))));
    assert!(short.contains(&nodes_on(read, write, None)));
}

#[test]
fn a_node_that_is_split_off_begins_in_log_mode_or_in_that_of_the_other_half() {
    let in_disk_mode = ["log", "alike"].map(|given| {
        let mut below = priced([100; 2], [100; 2]);
        let given = options(&[("split-off", given)], Durability::None);
        let medium = Medium::Sectors(Box::new(&mut below));
        let mut index = (find("flashdb").unwrap().create)(medium, &given).unwrap();
        let random = |number: u32| number * 7919 % 3000;
        for number in 0..3000 {
            put(&mut *index, 2 * random(number), number).unwrap();
        }
        // Reads take all nodes to disk mode, and then each is split.
        for number in 0..30_000 {
            get(&mut *index, 2 * random(number)).unwrap();
            if number % 8 == 0 {
                put(&mut *index, 0, number).unwrap();
            }
        }
        let before = (figure(&*index, "nodes in disk mode"), nodes(&*index));
        assert!(before.0 * 10 > before.1 * 9, "{before:?}");
        for number in 0..3000 {
            put(&mut *index, 2 * random(number) + 1, number).unwrap();
        }
        assert!(nodes(&*index) * 2 > before.1 * 3);
        assert_eq!(findings(&mut *index), Vec::<String>::new());
        let share = figure(&*index, "nodes in disk mode") * 100 / nodes(&*index);
        index.close().unwrap();
        drop(index);
        let mut index = open(&mut below.below, &given);
        assert!((0..3000).all(|it| get(&mut *index, 2 * random(it) + 1) == Some(it)));
        share
    });
    let [log, alike] = in_disk_mode;
    assert!(log < 80 && alike > 90, "{log} and {alike} % are in disk mode");
}
