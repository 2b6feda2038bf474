//! Statements of sections 2 to 4 that are no figures, each with what shows it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};

use contract::nand::{Hook, Hooked, Program, Read};
use contract::sample;
use device::{Cause, Medium, Nand, Result};
use index::Index;
use sim::SimulatedNand;

use super::stage::{
    Cell, FIXED_PARTS, Stand, USUAL, chip, contents, figures, load, measure, medium, operate,
    options,
};

/// What a chip has seen.
#[derive(Default)]
struct Seen {
    /// Kinds of the pages, by their tags.
    kinds: BTreeMap<u32, u8>,
    /// Programs that neither came next to the one before nor began a block.
    out_of_order: u64,
    programmed: Option<u32>,
    programs: u64,
    /// Parts of pages that were read since it was asked last.
    read: Vec<Part>,
}

/// A part of a page that was read.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Part {
    page: u32,
    offset: u32,
    bytes: u32,
    /// The page that its link leads to, if it is a fragment.
    before: Option<u32>,
    cause: Cause,
}

#[derive(Clone, Default)]
struct Witness(Arc<Mutex<Seen>>);

/// Kinds of pages in their tags.
const NODES: u8 = 0;
const FRAGMENTS: u8 = 1;

impl Hook<SimulatedNand> for Witness {
    fn read(&mut self, chip: &mut SimulatedNand, read: Read<'_>) -> Result<u16> {
        let Read { page, offset, into, spare, cause } = read;
        let outcome = Read { page, offset, into, spare, cause }.on(chip)?;
        let mut seen = self.0.lock().unwrap();
        let link = into.get(4..8).and_then(|link| Some(u32::from_le_bytes(link.try_into().ok()?)));
        let is_fragment = seen.kinds.get(&page.0) == Some(&FRAGMENTS);
        let before = link.filter(|_| is_fragment);
        seen.read.push(Part { page: page.0, offset, bytes: into.len() as u32, before, cause });
        Ok(outcome)
    }

    fn program(&mut self, chip: &mut SimulatedNand, program: Program<'_>) -> Result<()> {
        let mut seen = self.0.lock().unwrap();
        let page = program.page.0;
        let follows = seen.programmed.is_some_and(|before| page == before + 1);
        let begins = page.is_multiple_of(chip.geometry().pages_per_block());
        seen.out_of_order += u64::from(!follows && !begins);
        seen.programs += 1;
        seen.programmed = Some(page);
        seen.kinds.insert(page, program.spare[11] >> 4);
        drop(seen);
        program.on(chip)
    }
}

impl Witness {
    /// A chip that it watches.
    fn chip(&self, size_bytes: Option<u64>) -> Medium<'static> {
        Medium::Nand(Box::new(Hooked { chip: chip(size_bytes), hook: self.clone() }))
    }

    /// What was read since it was asked last, of pages of a kind.
    fn take(&self) -> [Vec<Part>; 2] {
        let mut seen = self.0.lock().unwrap();
        let read = std::mem::take(&mut seen.read);
        let is_of = |part: &Part, kind| seen.kinds.get(&part.page) == Some(&kind);
        let of = |kind| read.iter().copied().filter(|part| is_of(part, kind)).collect();
        [of(NODES), of(FRAGMENTS)]
    }
}

/// Buffers emptied so far.
fn emptied(index: &dyn Index) -> u64 {
    let figures = figures(index);
    figures["emptied inner"] + figures["emptied leaf"]
}

/// The parts that are among these more than once.
fn repeated(parts: &[Part]) -> u64 {
    let mut known = BTreeSet::new();
    parts.iter().filter(|part| !known.insert((part.page, part.offset))).count() as u64
}

/// Section 2.3: while a buffer is emptied, each of its fragments is read once, and each node of its
/// subtree, whatever the memory.
#[test]
fn an_emptying_reads_no_node_and_no_fragment_twice() {
    for memory_bytes in [24 << 10, 128 << 10] {
        let (mut emptyings, mut nodes, mut fragments, mut twice) = (0, 0, 0, [0; 2]);
        let witness = Witness::default();
        let usual = Cell { given: FIXED_PARTS, ..USUAL };
        let cell = Cell { memory_bytes, loaded: 50_000, updates: 1, lookups: 100, ..usual };
        let (mut index, mut keys) = load(&cell, witness.chip(None));
        for turn in 0..60_000 {
            let before = emptied(&*index);
            witness.take();
            operate(&mut *index, &cell, &mut keys, turn);
            if emptied(&*index) != before + 1 {
                continue;
            }
            let mut read = witness.take();
            read.iter_mut().for_each(|parts| parts.retain(|part| part.cause == Cause::Flush));
            emptyings += 1;
            nodes += read[0].len();
            fragments += read[1].len();
            twice[0] += repeated(&read[0]);
            twice[1] += repeated(&read[1]);
        }
        println!(
            "{memory_bytes} bytes: {emptyings} emptyings read {nodes} nodes and {fragments} \
             fragments, {twice:?} twice"
        );
        assert!(emptyings > 500 && nodes > 1000 && fragments > 1000);
        assert_eq!(twice, [0, 0]);
    }
}

/// Section 2.1: a range visits each buffer once. That is so while what it holds of a buffer fits,
/// and unless ADAPT has one emptied on its way: then all of the way is scanned again.
#[test]
fn a_range_over_everything_reads_each_fragment_once() {
    let witness = Witness::default();
    let usual = Cell { given: FIXED_PARTS, ..USUAL };
    let cell = Cell { updates: 60_000, memory_bytes: 256 << 10, ..usual };
    let (mut index, mut keys) = load(&cell, witness.chip(None));
    operate(&mut *index, &cell, &mut keys, 2);
    for turn in 0..20 {
        let before = emptied(&*index);
        witness.take();
        let (entries, _) = contents(&mut *index);
        let [_, fragments] = witness.take();
        let (count, twice) = (fragments.len(), repeated(&fragments));
        let emptied = emptied(&*index) - before;
        println!(
            "range {turn}: {entries} entries, {count} fragments, {twice} of them twice, {emptied} \
             buffers emptied"
        );
        if emptied == 0 {
            assert!(count > 500 && twice == 0);
            return;
        }
    }
    panic!("a buffer was emptied in each range");
}

/// Section 7 says of the LA-Tree on SSDs that a node table would spare random writes: that is not
/// built, and refused.
#[test]
fn a_node_table_on_a_disk_is_refused() {
    let stand = Stand::Disk { size_bytes: 1 << 20, random_write_us: None };
    let cell = Cell { given: &[("place", "log")], stand, ..USUAL };
    let (entry, options) = options(&cell);
    let Err(error) = (entry.create)(medium(stand), &options) else {
        panic!("it is made");
    };
    assert!(error.to_string().contains("there is no node table"), "{error}");
}

/// Sections 3 and 4.3: a page has fragments of several buffers. A fragment of a buffer that has one
/// more in the page links to that one: so the others are of as many buffers.
#[test]
fn a_page_of_fragments_has_those_of_several_buffers() {
    let witness = Witness::default();
    let cell = Cell { updates: 60_000, lookups: 100, ..USUAL };
    let (mut index, mut keys) = load(&cell, witness.chip(None));
    operate(&mut *index, &cell, &mut keys, 2);
    let [_, fragments] = witness.take();
    // When the log is made it looks for tags, in the middle of pages, too.
    let read = fragments.into_iter().filter(|part| part.cause != Cause::Recovery);
    let known: BTreeSet<Part> = read.map(|part| Part { cause: Cause::Lookup, ..part }).collect();
    let mut buffers = BTreeMap::<u32, u32>::new();
    let mut end = (0, 0);
    for part in &known {
        assert!(end.0 < part.page || end.1 <= part.offset, "fragments of a page overlap");
        end = (part.page, part.offset + part.bytes);
        *buffers.entry(part.page).or_default() += u32::from(part.before != Some(part.page));
    }
    let of_several = buffers.values().filter(|buffers| **buffers > 1).count();
    let mean = f64::from(buffers.values().sum::<u32>()) / buffers.len() as f64;
    println!("{} pages, of {mean:.1} buffers each; {of_several} of several", buffers.len());
    assert!(buffers.len() > 500 && of_several * 2 > buffers.len());
}

/// Section 4.3: pages are written one after the other, block after block, and so wear is even.
#[test]
fn pages_are_written_in_sequence_and_blocks_wear_evenly() {
    let witness = Witness::default();
    let cell = Cell { loaded: 20_000, updates: 150_000, memory_bytes: 32 << 10, ..USUAL };
    let cell = Cell { insertions: 50, ..cell };
    let (mut index, mut keys) = load(&cell, witness.chip(Some(2 << 20)));
    operate(&mut *index, &cell, &mut keys, 2);
    let generations = figures(&*index)["generations reclaimed"];
    let erases = index.meter().unwrap().erases();
    // In the first block the beginning of the log's own stays.
    let ours = &erases[1..];
    let (least, most) = (ours.iter().min().unwrap(), ours.iter().max().unwrap());
    let seen = witness.0.lock().unwrap();
    println!(
        "{generations} generations, {} programs, {} out of order; {least} to {most} erases a block",
        seen.programs, seen.out_of_order
    );
    assert!(generations >= 8 && seen.out_of_order == 0);
    assert!(most - least <= 1, "{erases:?}");
}

/// Section 3 leaves buffer rebalancing out of the costs: it is less than 1 % in practice. Here
/// it is what splitting and merging buffers makes to be written, beside all that the tree takes.
#[test]
fn buffer_rebalancing_costs_less_than_one_percent() {
    let mut all = 0.0;
    for (lookups, kib) in sample(3, [(10, 128), (10, 24), (200, 128), (200, 24)]) {
        let usual = Cell { given: FIXED_PARTS, ..USUAL };
        let cell = Cell { loaded: 20_000, updates: 200_000, lookups, ..usual };
        let cell = Cell { memory_bytes: kib << 10, ..cell };
        let measured = measure(&cell);
        let rebalancing = measured.figure("buffers rebalanced ns") / 1000.0;
        let buffers = measured.figure("buffers split") + measured.figure("buffers merged");
        let percent = 100.0 * rebalancing / measured.micros;
        println!(
            "{lookups} %, {kib} KiB: {percent:.3} % of the time; {:.5} nodes and {buffers:.7} \
             buffers rebalanced an operation",
            measured.figure("nodes rebalanced")
        );
        assert!(percent < 1.0);
        assert!(buffers < 0.01 * measured.figure("nodes rebalanced"));
        all += buffers;
    }
    // In little memory buffers are emptied before the nodes above them split.
    assert!(all > 0.0, "no buffer was split or merged");
}
