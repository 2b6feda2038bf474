//! What the mu*-Tree's paper says of single operations, which no map and no power cut would show.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

#[allow(dead_code, reason = "the figures use more of it")]
#[path = "mu_figures/stage.rs"]
mod stage;

use device::{Cause, Geometry, Medium, NandCosts, Tally};
use index::parameters::Settings;
use index::{Durability, EntryShape, Index, KeyRange, Update};
use index::{MediumShape, Options};
use sim::SimulatedNand;
use stage::{Stage, TREES, key};
use trees::find;

fn tally(index: &dyn Index, cause: Cause) -> Tally {
    *index.meter().unwrap().tally(cause)
}

/// Pages that updates wrote, at once or from the operation buffer.
fn written(index: &dyn Index) -> u64 {
    [Cause::Update, Cause::Flush].map(|cause| tally(index, cause).page_programs).iter().sum()
}

fn put(index: &mut dyn Index, key: [u8; 4]) {
    index.update(&[Update::Put { key: &key, value: &[7; 4] }]).unwrap();
}

/// Section 5.1: alpha 0.9, beta 0.5, delta 1/256, and collection at 10 % of free blocks.
#[test]
fn the_defaults_of_mu_star_are_those_of_the_paper() {
    let parameters = find("mu-star").unwrap().parameters;
    let default = |name| {
        let parameter = parameters.iter().find(|it| it.name == name).unwrap();
        parameter.default.parse::<f64>().unwrap()
    };
    let found = ["alpha", "beta", "delta", "collect"].map(default);
    assert_eq!(found, [0.9, 0.5, 1.0 / 256.0, 0.1]);
}

/// Section 5.1: nothing is collected before less than a tenth of the blocks is free.
#[test]
fn collection_begins_when_a_tenth_of_the_chip_is_free() {
    for tree in TREES {
        let (mut index, _) = Stage::paper(tree, 64 << 20).make();
        let pages = (64 << 20) / 4096;
        let mut number = 0;
        while tally(&*index, Cause::Reclamation) == Tally::default() {
            put(&mut *index, key(number % 10_000));
            number += 1;
            assert!(number < pages as u32, "{tree}: nothing was collected");
        }
        let used = index.meter().unwrap().total().page_programs as f64 / f64::from(pages);
        println!("{tree}: collection begins with {:.1} % used", used * 100.0);
        // Four of the 128 blocks are the log's.
        assert!((0.83..=0.91).contains(&used), "{tree}: {used}");
    }
}

/// Pages that puts of keys that are there read and write, on average, in a tree of so many entries,
/// and its height.
fn cost_of_overwrites(stage: &Stage, entries: u32, value: &[u8]) -> (f64, f64, f64) {
    const PUTS: u32 = 200;
    let (mut index, _) = stage.make();
    let put = |index: &mut dyn Index, number| {
        index.update(&[Update::Put { key: &key(number), value }]).unwrap();
    };
    (0..entries).for_each(|number| put(&mut *index, number));
    let count = |index: &dyn Index| [tally(index, Cause::Update).page_reads, written(index)];
    let before = count(&*index);
    (0..PUTS).for_each(|number| put(&mut *index, number));
    let after = count(&*index);
    let [reads, writes] = [0, 1].map(|it| (after[it] - before[it]) as f64 / f64::from(PUTS));
    (reads, writes, f64::from(index.statistics().height))
}

/// Equation 6 and section 2.3: without a cache, an update reads the nodes on its way, and writes
/// them to one page, or to a page each in a B+-tree.
#[test]
fn an_update_reads_its_way_and_writes_one_page_or_in_a_b_plus_tree_one_a_node() {
    let cases = [(EntryShape::fixed(4, 4), 10_000, 4), (EntryShape::VARIABLE, 3_000, 400)];
    for durability in Durability::ALL.map(Some) {
        for (shape, entries, value) in cases {
            for tree in TREES {
                let stage = Stage { shape, durability, ..Stage::paper(tree, 32 << 20) };
                let (reads, writes, height) =
                    cost_of_overwrites(&stage, entries, &[7; 400][..value]);
                let name = format!("{tree}, {durability:?}, {shape}, height {height}");
                println!("{name}: {reads} pages read, {writes} written");
                let nodes = if tree == "b-plus" { height } else { 1.0 };
                assert_eq!(writes, nodes, "{name}");
                assert_eq!(reads, height, "{name}");
            }
        }
    }
}

/// Section 4.3.3: an update of a key that waits in the operation buffer changes what waits, a
/// lookup is answered by it, and the tree is not touched.
#[test]
fn operations_on_what_waits_in_the_operation_buffer_end_there() {
    let cases = [(EntryShape::fixed(4, 4), 10_000, 4), (EntryShape::VARIABLE, 3_000, 400)];
    // With a journal, a checkpoint may come between.
    for durability in [Durability::None, Durability::Checkpoint] {
        for (shape, entries, value) in cases {
            for tree in TREES {
                let stage = Stage::paper(tree, 32 << 20).caching(64 << 10);
                let given = vec![("cache", "0.5")];
                let stage = Stage { given, shape, durability: Some(durability), ..stage };
                let (mut index, _) = stage.make();
                let put = |index: &mut dyn Index, numbers: std::ops::Range<u32>| {
                    for number in numbers {
                        let value = &[7; 400][..value];
                        index.update(&[Update::Put { key: &key(number), value }]).unwrap();
                    }
                };
                let touched =
                    |index: &dyn Index| (written(index), tally(index, Cause::Lookup).page_reads);
                put(&mut *index, 0..entries);
                put(&mut *index, 0..16);
                let before = touched(&*index);
                (0..5).for_each(|_| put(&mut *index, 0..16));
                for number in 0..16 {
                    assert!(index.get(&key(number), 0, &mut [0; 4]).unwrap().is_some());
                }
                let after = touched(&*index);
                let height = index.statistics().height;
                let name = format!("{tree}, {durability:?}, {shape}, height {height}");
                println!("{name}: {before:?}, {after:?}");
                assert_eq!(after, before, "{name}");
            }
        }
    }
}

/// Equation 6: a page that lives is moved by reading a path and writing a page.
#[test]
fn moving_a_page_reads_one_path_and_writes_one_page() {
    for tree in TREES {
        let (mut index, _) = Stage::paper(tree, 16 << 20).make();
        (0..100_000).for_each(|number| put(&mut *index, key(number)));
        // All in one leaf, or a few, so that the others live on in most blocks.
        (0..30_000).for_each(|number| put(&mut *index, [0, 0, 0, number as u8]));
        let moves = tally(&*index, Cause::Reclamation);
        let height = u64::from(index.statistics().height);
        let nodes = if tree == "b-plus" { height } else { 1 };
        println!("{tree}, height {height}: {moves:?}");
        assert!(moves.block_erases > 10 && moves.page_programs > 100, "{tree}: {moves:?}");
        let reads = moves.page_programs as f64 / nodes as f64 * height as f64;
        let ratio = moves.page_reads as f64 / reads;
        assert!((0.99..1.01).contains(&ratio), "{tree}: {ratio} times as many reads: {moves:?}");
    }
}

/// Section 4.3.2: a delete can split nodes, for they are rewritten by a layout with smaller leaves.
#[test]
fn a_delete_splits_a_leaf_that_is_larger_than_leaves_are_now() {
    let (mut index, witness) = Stage::paper("mu-star", 16 << 20).make();
    let low = |number| [key(number)[0] & 0x7F, key(number)[1], key(number)[2], key(number)[3]];
    let high = |number| [key(number)[0] | 0x80, key(number)[1], key(number)[2], key(number)[3]];
    // Their leaves are nine tenths full.
    (0..6_500).for_each(|number| put(&mut *index, low(number)));
    let wide = witness.layout().unwrap();
    // They make the leaves smaller, but do not come to those of the low keys.
    (6_500..35_000).for_each(|number| put(&mut *index, high(number)));
    let narrow = witness.layout().unwrap();
    assert!(narrow.height == wide.height && narrow.leaf < 0.85 * wide.leaf, "{narrow:?}");
    let mut splits = 0;
    for number in 0..500 {
        let before = written(&*index);
        index.update(&[Update::Delete { key: &low(number) }]).unwrap();
        splits += u64::from(written(&*index) - before > 1);
    }
    println!("{splits} of 500 deletes split a leaf");
    assert!(splits > 0);
}

/// Nodes are split in halves where entries vary in length, too, and keys have a beginning in common
/// which a node keeps once.
#[test]
fn leaves_of_entries_of_many_lengths_are_half_full_and_more() {
    for tree in TREES {
        let stage = Stage { shape: EntryShape::VARIABLE, ..Stage::paper(tree, 16 << 20) };
        let (mut index, witness) = stage.make();
        let mut bytes = 0;
        for number in 0..20_000 {
            let bits = u32::from_be_bytes(key(number));
            let month = 1 + bits % 12;
            let key = format!("2013-{month:02} {:02} {}", bits / 12 % 28, bits / 336 % 5_000);
            let value = &[9; 60][..30 + bits as usize % 30];
            index.update(&[Update::Put { key: key.as_bytes(), value }]).unwrap();
            bytes += key.len() + value.len();
        }
        let leaf = if tree == "b-plus" { 1.0 } else { witness.layout().unwrap().leaf };
        let fill = bytes as f64 / (index.statistics().live_pages as f64 * 4096.0 * leaf);
        println!("{tree}: {:.0} % full", 100.0 * fill);
        assert!(fill > 0.5, "{tree}: {fill}");
    }
}

/// True if an empty tree on 1,280 pages of 4 KiB takes a batch of so many short puts.
fn takes_batch(tree: &str, durability: Durability, puts: u32) -> bool {
    let entry = find(tree).unwrap();
    let chip = Geometry::new(4096, 16, 80).unwrap();
    let settings = Settings::parse(entry.name, entry.parameters, []).unwrap();
    let options = Options::new(EntryShape::VARIABLE, 256 << 10, settings);
    let options = Options { durability: Some(durability), ..options };
    let nand = SimulatedNand::new(chip, NandCosts::default());
    let mut index = (entry.create)(Medium::Nand(Box::new(nand)), &options).unwrap();
    let keys: Vec<[u8; 4]> = (0..puts).map(key).collect();
    let batch: Vec<_> = keys.iter().map(|key| Update::Put { key, value: &[7; 8] }).collect();
    index.update(&batch).is_ok()
}

/// What a batch may write in the worst case has room beforehand, or it is refused: where lengths
/// vary, that is a loose bound.
#[test]
fn where_lengths_vary_an_empty_tree_takes_a_batch_of_dozens_of_puts() {
    for tree in TREES {
        let most = Durability::ALL.map(|durability| {
            let taken = |puts: &u32| takes_batch(tree, durability, *puts);
            (1..64).map(|eighth| 8 * eighth).take_while(taken).last().unwrap_or(0)
        });
        println!("{tree}: {most:?} puts, {:?}", Durability::ALL);
        assert!(most.iter().all(|most| *most >= 64), "{tree}: {most:?}");
    }
}

/// Looks a random key of so many up after every update; tells the reads a level, over 100 of them
/// at the most, and on average.
struct Reads {
    windows: Vec<f64>,
    levels: u32,
    before: u64,
}

impl Reads {
    fn none(index: &dyn Index) -> Self {
        let before = tally(index, Cause::Lookup).page_reads;
        Reads { windows: Vec::new(), levels: 0, before }
    }

    fn look_up(&mut self, index: &mut dyn Index, entries: u32) {
        let number = u32::from_be_bytes(key(!entries)) % entries;
        assert!(index.get(&key(number), 0, &mut [0; 4]).unwrap().is_some());
        self.levels += index.statistics().height;
        if entries.is_multiple_of(100) {
            let reads = tally(index, Cause::Lookup).page_reads - self.before;
            self.windows.push(reads as f64 / f64::from(self.levels));
            *self = Reads { windows: std::mem::take(&mut self.windows), ..Reads::none(index) };
        }
    }

    fn most_and_mean(&self) -> (f64, f64) {
        let most = self.windows.iter().copied().fold(0.0, f64::max);
        (most, self.windows.iter().sum::<f64>() / self.windows.len() as f64)
    }
}

/// How many reads a level takes while 100,000 entries go into pages of 1 KiB, and while all but
/// 10,000 are deleted.
fn reads_while_it_grows_and_shrinks(tree: &str) -> [(f64, f64); 2] {
    const MOST: u32 = 100_000;
    let entry = find(tree).unwrap();
    let chip = Geometry::new(1024, 64, 512).unwrap();
    let settings = Settings::parse(entry.name, entry.parameters, [("cache", "1")]).unwrap();
    let mut options = Options::new(EntryShape::fixed(4, 4), 0, settings);
    options.memory_bytes = entry.least_memory(&options, MediumShape::Nand(chip)).unwrap();
    let nand = SimulatedNand::new(chip, NandCosts::default());
    let mut index = (entry.create)(Medium::Nand(Box::new(nand)), &options).unwrap();
    let mut grows = Reads::none(&*index);
    for number in 0..MOST {
        put(&mut *index, key(number));
        grows.look_up(&mut *index, number + 1);
    }
    let mut shrinks = Reads::none(&*index);
    for number in (10_000..MOST).rev() {
        index.update(&[Update::Delete { key: &key(number) }]).unwrap();
        shrinks.look_up(&mut *index, number);
    }
    [grows, shrinks].map(|it| it.most_and_mean())
}

/// Section 4.3.2: a retrieval reads the header and the node. Both are one read, unless the node
/// ends further back than in the present layout.
#[test]
fn a_retrieval_seldom_reads_a_page_twice() {
    for tree in ["mu", "mu-star"] {
        let [grows, shrinks] = reads_while_it_grows_and_shrinks(tree);
        println!("{tree}: reads a level, most and mean: growing {grows:?}, shrinking {shrinks:?}");
        for (most, mean) in [grows, shrinks] {
            assert!((1.0..1.1).contains(&mean) && most < 1.5, "{tree}: {most}, {mean}");
        }
    }
}

/// Section 3.2: leaves are not chained, for the next one is found by its parent, which a small
/// cache holds.
#[test]
fn a_range_reads_each_leaf_once_where_a_small_cache_holds_its_parents() {
    for tree in TREES {
        let reads = [0, 16 << 10].map(|cache_bytes| {
            let stage = Stage { cache_bytes, ..Stage::paper(tree, 32 << 20) };
            let (mut index, _) = stage.make();
            (0..100_000).for_each(|number| put(&mut *index, key(number)));
            let before = tally(&*index, Cause::Lookup).page_reads;
            let mut cursor = index.range(KeyRange::ALL).unwrap();
            while cursor.next().unwrap().is_some() {}
            drop(cursor);
            let reads = (tally(&*index, Cause::Lookup).page_reads - before) as f64;
            (reads / index.statistics().live_pages as f64, index.statistics().height)
        });
        println!("{tree}: reads a page of the tree, and height: {reads:?}");
        let [(without, height), (with, _)] = reads;
        // Each leaf once, and each node above it.
        assert!(with < 1.2, "{tree}: {with}");
        assert!(without > f64::from(height) - 1.0, "{tree}: {without}");
    }
}

/// A chip of 512 pages of 2 KiB is filled, and the lower half of its keys deleted: the pages before
/// and after, and how many more entries go in then, as a part of those that were deleted.
fn emptied_by_half(tree: &str) -> ([u64; 2], f64) {
    let entry = find(tree).unwrap();
    let chip = Geometry::new(2048, 16, 32).unwrap();
    let settings = Settings::parse(entry.name, entry.parameters, []).unwrap();
    let options = Options::new(EntryShape::fixed(4, 4), 64 << 10, settings);
    let options = Options { durability: Some(Durability::Checkpoint), ..options };
    let nand = SimulatedNand::new(chip, NandCosts::default());
    let mut index = (entry.create)(Medium::Nand(Box::new(nand)), &options).unwrap();
    let fill = |index: &mut dyn Index, from: u32| {
        let takes = |number: &u32| {
            index.update(&[Update::Put { key: &key(*number), value: &[7; 4] }]).is_ok()
        };
        (from..).take_while(takes).count() as u32
    };
    let filled = fill(&mut *index, 0);
    index.checkpoint(None).unwrap();
    let full = index.statistics().live_pages;
    let mut keys: Vec<_> = (0..filled).map(key).collect();
    keys.sort_unstable();
    keys.truncate(keys.len() / 2);
    for key in &keys {
        index.update(&[Update::Delete { key }]).unwrap();
    }
    index.checkpoint(None).unwrap();
    let left = index.statistics().live_pages;
    // The one that was refused may have room now, too.
    let again = fill(&mut *index, filled);
    ([full, left], f64::from(again) / keys.len() as f64)
}

/// Deletes do not balance: what gives room back on a full chip is a leaf that was emptied.
#[test]
fn emptied_leaves_give_half_of_a_full_chip_back() {
    for tree in TREES {
        let ([full, left], again) = emptied_by_half(tree);
        println!("{tree}: {full} live pages, {left} after; {again:.2} of the deleted go in again");
        assert!(left * 100 <= full * 56, "{tree}: {left} of {full}");
        assert!(again > 0.15, "{tree}: {again}");
    }
}
