//! How much of a chip trees on raw flash fill, and whether that stays so.
//!
//! ```text
//! cargo run --release -p flashtree-lab --example capacity_of_chips --
//!     [--rounds N] [--blocks N] [--seed S] [--tree T]
//! ```
//!
//! Each tree that stands on raw flash and takes its room back, on three chips, with entries of
//! 8 + 8 bytes and with keys of 8 to 24 and values of 0 to 40: entries are put one by one until the
//! first is refused, then all are deleted and a checkpoint is made, N (10) times, in changing
//! orders of puts and deletes. The last round puts what the first did. A row tells
//!
//! - `share`: percent of the pages in use at the first refusal of the first round, and the `least`
//!   of all rounds, of those that may hold nodes: half of the chip's in ipl, for the others are for
//!   logs, and in la-tree, which works by halves;
//! - `entries` that the first round held; the others in parts of that, `least` and `last`; the
//!   least of those that put in a `like` order, in parts of the first such round;
//! - `fanout`: children of an inner node on average, in the first round.
//!
//! After each round's puts, half of its deletes and all of them, the contents are compared with an
//! ordered map, and the index checks itself. It fails if a delete is refused, and if the first
//! share is smaller than the one wanted where nodes have 30 children or more. `--blocks` leaves out
//! chips that have more, `--tree` all other trees.
//!
//! Before that, of `b-plus` and `mu-star` on a chip of 16 MB: at which fill the operation buffer
//! first shrinks for lack of room, and the device time of 100,000 operations, as
//!
//! ```text
//! flashtree compare --device samsung-k9gag08u0m:blocks=32 --memory 128KiB --trees TREE
//!     --workload uniform:mix=50/0/0/50,entry=8+4
//! ```
//!
//! has it, and that of as many where random keys were put until the tree was 90 % full. The first
//! must not be above 120 and 70 s.

use std::collections::BTreeMap;
use std::error::Error;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc;
use std::thread;
use std::time::Instant;

use device::Medium;
use flashtree_lab::{MemoryLimit, Plan, Unwatched, Verify, compare};
use index::Options;
use index::parameters::Settings;
use index::{
    Durability, EntryShape, INNER_NODES, Index, KeyRange, LEAVES, UPDATES_WAITING, Update, Value,
};
use sim::SimulatedNand;

type Outcome<T> = Result<T, Box<dyn Error>>;

const TREES: [&str; 5] = ["b-plus", "mu", "mu-star", "ipl", "la-tree"];

/// Chips: name, blocks, and percent of the pages that are wanted to be filled.
const CHIPS: [(&str, u32, u32); 3] = [
    ("samsung-k9wag08u1a", 256, 80),
    ("samsung-k9gag08u0m", 64, 60),
    ("samsung-k9wag08u1a", 32, 60),
];

/// Children of an inner node on average, from which on the share is what is wanted: below it inner
/// nodes take too much.
const WIDE: f64 = 30.0;

const MEMORY_BYTES: u64 = 256 << 10;

/// Trees whose nodes stand in half of the pages.
const BY_HALVES: [&str; 2] = ["ipl", "la-tree"];

/// Trees with an operation buffer: name, and the most seconds of device time.
const BUFFERED: [(&str, f64); 2] = [("b-plus", 120.0), ("mu-star", 70.0)];

/// Their chip: name, and blocks.
const SMALL: (&str, u32) = ("samsung-k9gag08u0m", 32);

const SMALL_MEMORY_BYTES: u64 = 128 << 10;

/// Keys that are looked up one by one when contents are compared, beside reading all.
const LOOKED_UP: usize = 500;

/// In which order keys come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Puts {
    Random(u64),
    Ascending,
    Descending,
    /// Runs of ascending keys that begin anywhere.
    Runs,
    /// From both ends.
    Inwards,
}

const PUTS: [Puts; 9] = [
    Puts::Random(0),
    Puts::Ascending,
    Puts::Descending,
    Puts::Runs,
    Puts::Random(1),
    Puts::Inwards,
    Puts::Descending,
    Puts::Runs,
    Puts::Ascending,
];

impl Puts {
    fn of_round(round: u64, rounds: u64) -> Self {
        if round + 1 == rounds { PUTS[0] } else { PUTS[round as usize % PUTS.len()] }
    }

    /// Where the entry with this number stands among all.
    fn key(self, number: u64, seed: u64) -> u64 {
        match self {
            Puts::Random(more) => mixed(number, seed + more),
            Puts::Ascending => number << 32,
            Puts::Descending => !(number << 32),
            Puts::Runs => mixed(number / 64, seed) & !63 | (number % 64),
            Puts::Inwards => {
                let from_end = (number / 2) << 32;
                if number.is_multiple_of(2) { from_end } else { !from_end }
            }
        }
    }

    /// True if both put in the same order, whatever the keys are.
    fn is_like(self, other: Self) -> bool {
        core::mem::discriminant(&self) == core::mem::discriminant(&other)
    }
}

/// A bijection that leaves nothing of the order, another one for each seed.
fn mixed(number: u64, seed: u64) -> u64 {
    let mut word = number.wrapping_add(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15));
    word = (word ^ (word >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    word = (word ^ (word >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    word ^ (word >> 31)
}

/// In which order keys go.
#[derive(Clone, Copy, Debug)]
enum DeletePolicy {
    AsPut,
    Descending,
    Random,
    /// Every other key, then those between.
    EveryOther,
    Ascending,
    LastPutFirst,
}

const DELETES: [DeletePolicy; 6] = [
    DeletePolicy::AsPut,
    DeletePolicy::EveryOther,
    DeletePolicy::Random,
    DeletePolicy::Descending,
    DeletePolicy::LastPutFirst,
    DeletePolicy::Ascending,
];

impl DeletePolicy {
    /// The keys of `held`, which has them with their numbers.
    fn order(self, held: &BTreeMap<u64, u64>, seed: u64) -> Vec<u64> {
        let mut entries: Vec<_> = held.iter().map(|(key, number)| (*key, *number)).collect();
        match self {
            DeletePolicy::Ascending => {}
            DeletePolicy::Descending => entries.reverse(),
            DeletePolicy::AsPut => entries.sort_unstable_by_key(|(_, number)| *number),
            DeletePolicy::LastPutFirst => entries.sort_unstable_by_key(|(_, number)| !*number),
            DeletePolicy::Random => entries.sort_unstable_by_key(|(key, _)| mixed(*key, seed)),
            DeletePolicy::EveryOther => {
                let each = |first| entries.iter().skip(first).step_by(2).copied();
                entries = each(0).chain(each(1)).collect();
            }
        }
        entries.into_iter().map(|(key, _)| key).collect()
    }
}

/// A tree on a chip.
#[derive(Clone, Copy)]
struct Case {
    tree: &'static str,
    chip: (&'static str, u32, u32),
    is_varied: bool,
    rounds: u64,
    seed: u64,
}

/// What a round came to.
#[derive(Clone, Copy)]
struct Round {
    puts: Puts,
    held: u64,
    /// Live pages when the first put was refused.
    pages: u64,
    /// Children of an inner node, on average; none without such nodes.
    children: Option<f64>,
    deletes_refused: u64,
}

impl Case {
    fn name(&self) -> String {
        let (chip, blocks, _) = self.chip;
        let entries = if self.is_varied { "varied" } else { "8+8" };
        format!("{:8} {:26} {entries:6}", self.tree, format!("{chip}:blocks={blocks}"))
    }

    const fn shape(&self) -> EntryShape {
        if self.is_varied { EntryShape::VARIABLE } else { EntryShape::fixed(8, 8) }
    }

    /// The entry that stands at `key`.
    fn entry(&self, key: u64) -> (Vec<u8>, Vec<u8>) {
        let lengths = mixed(key, !self.seed);
        let (more, value) =
            if self.is_varied { (lengths % 17, (lengths >> 32) % 41) } else { (0, 8) };
        let mut bytes = key.to_be_bytes().to_vec();
        bytes.resize(8 + more as usize, b'k');
        (bytes, (0..value).map(|at| (lengths >> (at % 8)) as u8).collect())
    }

    /// Plays all rounds; returns what each came to, and the pages that may hold nodes.
    fn play(&self) -> Outcome<(Vec<Round>, u64)> {
        let (name, blocks, _) = self.chip;
        let overrides = chips::Overrides { blocks: Some(blocks.into()), ..Default::default() };
        let chip = chips::find(name).ok_or("no such chip")?.nand(&overrides)?;
        let mut nand = SimulatedNand::new(chip.geometry, chip.costs);
        let entry = trees::find(self.tree).ok_or("no such tree")?;
        let settings = Settings::parse(entry.name, entry.parameters, [])?;
        let options = Options::new(self.shape(), MEMORY_BYTES, settings);
        let options = Options { durability: Some(Durability::Batch), ..options };
        let mut index = (entry.create)(Medium::Nand(Box::new(&mut nand)), &options)?;
        let mut rounds = Vec::new();
        for round in 0..self.rounds {
            let puts = Puts::of_round(round, self.rounds);
            let deletes = DELETES[round as usize % DELETES.len()];
            let played = self.round(&mut *index, puts, deletes).map_err(|error| {
                format!("round {}, puts {puts:?}, deletes {deletes:?}: {error}", round + 1)
            })?;
            if played.deletes_refused > 0 {
                let Round { deletes_refused, held, .. } = played;
                println!(
                    "{} seed {} round {}, puts {puts:?}, deletes {deletes:?}: \
                     {deletes_refused} of {held} deletes refused",
                    self.name(),
                    self.seed,
                    round + 1,
                );
            }
            rounds.push(played);
        }
        let parts = if BY_HALVES.contains(&self.tree) { 2 } else { 1 };
        Ok((rounds, u64::from(chip.geometry.pages()) / parts))
    }

    fn round(&self, index: &mut dyn Index, puts: Puts, deletes: DeletePolicy) -> Outcome<Round> {
        let mut held = BTreeMap::new();
        for number in 0.. {
            let at = puts.key(number, self.seed);
            let (key, value) = self.entry(at);
            match index.update(&[Update::Put { key: &key, value: &value }]) {
                Ok(()) => held.insert(at, number),
                Err(error) if is_full(&error) => break,
                Err(error) => return Err(format!("put {number}: {error}").into()),
            };
        }
        let mut round = Round {
            puts,
            held: held.len() as u64,
            pages: index.statistics().live_pages,
            children: children(index),
            deletes_refused: 0,
        };
        self.compare(index, &held)?;
        let order = deletes.order(&held, self.seed);
        for (place, at) in order.iter().enumerate() {
            if place == order.len() / 2 {
                self.compare(index, &held)?;
            }
            let (key, _) = self.entry(*at);
            match index.update(&[Update::Delete { key: &key }]) {
                Ok(()) => drop(held.remove(at)),
                Err(error) if is_full(&error) => round.deletes_refused += 1,
                Err(error) => return Err(format!("delete {place}: {error}").into()),
            }
        }
        index.checkpoint(None)?;
        self.compare(index, &held)?;
        // What was not deleted when it was to be would be counted again.
        for at in held.keys() {
            index.update(&[Update::Delete { key: &self.entry(*at).0 }])?;
        }
        Ok(round)
    }

    /// Compares the contents with what is `held`, and checks the index.
    fn compare(&self, index: &mut dyn Index, held: &BTreeMap<u64, u64>) -> Outcome<()> {
        let mut cursor = index.range(KeyRange::ALL)?;
        for at in held.keys() {
            let (key, value) = self.entry(*at);
            let wanted = Some((&key[..], Value::Inline(&value)));
            let found = cursor.next()?;
            if found != wanted {
                return Err(format!("{found:?} is there instead of {wanted:?}").into());
            }
        }
        if let Some(found) = cursor.next()? {
            return Err(format!("{found:?} is there behind all entries").into());
        }
        drop(cursor);
        let mut into = [0; 64];
        for at in held.keys().step_by((held.len() / LOOKED_UP).max(1)) {
            let (key, value) = self.entry(*at);
            let found = index.get(&key, 0, &mut into)?;
            if found.is_none_or(|bytes| into[..bytes as usize] != value) {
                return Err(format!("a lookup of {key:?} finds {found:?} bytes").into());
            }
        }
        let mut findings = Vec::new();
        index.check(&mut |finding| findings.push(finding.to_string()))?;
        if findings.is_empty() { Ok(()) } else { Err(findings.join("; ").into()) }
    }
}

const fn is_full(error: &index::Error) -> bool {
    use index::Error::{Store, TreeFull};
    matches!(error, TreeFull { .. } | Store(store::Error::Full { .. }))
}

fn children(index: &dyn Index) -> Option<f64> {
    let (mut leaves, mut inner) = (0, 0);
    index.metrics(&mut |name, number| match name {
        LEAVES => leaves = number,
        INNER_NODES => inner = number,
        _ => {}
    });
    (inner > 0).then(|| (leaves + inner - 1) as f64 / inner as f64)
}

/// What is told of a case.
struct Row {
    text: String,
    /// Entries of the last round in parts of the first; none if it was broken off.
    last: Option<f64>,
    deletes_refused: u64,
    /// True if less of the chip was filled than is wanted.
    is_short: bool,
}

fn row(case: &Case) -> Row {
    let begun = Instant::now();
    let (rounds, pages) = match case.play() {
        Ok(played) => played,
        Err(error) => {
            let text = format!("{} seed {}: {error}", case.name(), case.seed);
            return Row { text, last: None, deletes_refused: 0, is_short: false };
        }
    };
    let (first, last) = (rounds[0], rounds[rounds.len() - 1]);
    let part = |round: &Round, of: &Round| round.held as f64 / of.held as f64;
    let least = |of: &dyn Fn(&Round) -> f64| rounds.iter().map(of).fold(f64::INFINITY, f64::min);
    let alike = |round: &Round| {
        let earliest = rounds.iter().find(|other| other.puts.is_like(round.puts));
        earliest.map_or(1.0, |earliest| part(round, earliest))
    };
    let deletes_refused = rounds.iter().map(|round| round.deletes_refused).sum();
    let kept = part(&last, &first);
    let share = |round: &Round| 100.0 * round.pages as f64 / pages as f64;
    let held: Vec<_> = rounds.iter().map(|round| format!("{:.2}", part(round, &first))).collect();
    let text = format!(
        "{} {:6.1} {:6} {:7.1} {:8} {:6.3} {:6.3} {:6.3} {deletes_refused:8} {:6.0} {:5.0}  {}",
        case.name(),
        share(&first),
        case.chip.2,
        least(&share),
        first.held,
        least(&|round| part(round, &first)),
        least(&alike),
        kept,
        first.children.unwrap_or(0.0),
        begun.elapsed().as_secs_f64(),
        held.join(" "),
    );
    let is_wide = first.children.is_none_or(|children| children >= WIDE);
    let is_short = is_wide && share(&first) < f64::from(case.chip.2);
    Row { text, last: Some(kept), deletes_refused, is_short }
}

/// How far a tree was filled.
#[derive(Clone, Copy)]
struct Fill {
    entries: u64,
    /// Percent of the chip's pages that are in use.
    share: f64,
}

/// The key of random ones that has this number.
fn random_key(number: u64) -> [u8; 8] {
    mixed(number, 1).to_be_bytes()
}

/// Does `play` with an index of a tree with an operation buffer, on its chip, which has so many
/// pages.
fn on_small_chip<R>(
    tree: &str,
    play: impl FnOnce(&mut dyn Index, u32) -> Outcome<R>,
) -> Outcome<R> {
    let overrides = chips::Overrides { blocks: Some(SMALL.1.into()), ..Default::default() };
    let chip = chips::find(SMALL.0).ok_or("no such chip")?.nand(&overrides)?;
    let mut nand = SimulatedNand::new(chip.geometry, chip.costs);
    let entry = trees::find(tree).ok_or("no such tree")?;
    let settings = Settings::parse(entry.name, entry.parameters, [])?;
    let options = Options::new(EntryShape::fixed(8, 4), SMALL_MEMORY_BYTES, settings);
    let mut index = (entry.create)(Medium::Nand(Box::new(&mut nand)), &options)?;
    play(&mut *index, chip.geometry.pages())
}

/// Puts random keys until the first is refused; returns how far that went, and how far it was when
/// the operation buffer first shrank.
fn fill_buffered(index: &mut dyn Index, pages: u32) -> Outcome<(Fill, Option<Fill>)> {
    let (mut most, mut shrank) = (0, None);
    for number in 0.. {
        let refused =
            match index.update(&[Update::Put { key: &random_key(number), value: &[7; 4] }]) {
                Ok(()) => false,
                Err(error) if is_full(&error) => true,
                Err(error) => return Err(format!("put {number}: {error}").into()),
            };
        let share = 100.0 * index.statistics().live_pages as f64 / f64::from(pages);
        let fill = Fill { entries: number, share };
        let mut waiting = 0;
        index.metrics(&mut |name, number| {
            if name == UPDATES_WAITING {
                waiting = number;
            }
        });
        most = most.max(waiting);
        // What waits for one leaf is a small part of all.
        if waiting < most / 4 * 3 && shrank.is_none() {
            shrank = Some(fill);
        }
        if refused {
            return Ok((fill, shrank));
        }
    }
    Err("no put was refused".into())
}

/// Seconds of device time that 50,000 lookups and as many overwrites of random keys take once so
/// many were put.
fn device_seconds_after(index: &mut dyn Index, entries: u64) -> Outcome<f64> {
    for number in 0..entries {
        index.update(&[Update::Put { key: &random_key(number), value: &[7; 4] }])?;
    }
    let time_ns = |index: &dyn Index| index.meter().map_or(0, |meter| meter.time_ns());
    let before = time_ns(index);
    for number in 0..50_000 {
        let [get, put] = [2, 3].map(|seed| random_key(mixed(number, seed) % entries));
        index.get(&get, 0, &mut [0; 4])?;
        index.update(&[Update::Put { key: &put, value: &[8; 4] }])?;
    }
    Ok((time_ns(index) - before) as f64 / 1e9)
}

/// Seconds of device time that 100,000 operations take on a tree as the program has it.
fn device_seconds(tree: &str) -> Outcome<f64> {
    let plan = Plan {
        device: format!("{}:blocks={}", SMALL.0, SMALL.1),
        chip: None,
        overwrite: false,
        workload: "uniform:mix=50/0/0/50,entry=8+4".to_string(),
        trees: vec![tree.to_string()],
        ftl: None,
        memory: MemoryLimit::CachesAndBuffers(SMALL_MEMORY_BYTES),
        size_bytes: None,
        operations: None,
        seed: 1,
        durability: Durability::None,
        verify: Verify::Full,
        input: None,
        jobs: 1,
    };
    let comparison = compare(&plan, &Unwatched)?;
    let row = &comparison.measured.first().ok_or("nothing was measured")?.row;
    match &row.error {
        Some(error) => Err(error.clone().into()),
        None => Ok(row.device_us_per_op * row.operations as f64 / 1e6),
    }
}

/// Tells of the trees with an operation buffer how it fares on a chip of 16 MB.
fn tell_buffered() -> Outcome<()> {
    for (tree, most) in BUFFERED {
        let (full, shrank) = on_small_chip(tree, fill_buffered)?;
        let shrank = shrank.unwrap_or(full);
        let usual = device_seconds(tree)?;
        let near_full =
            |index: &mut dyn Index, _| device_seconds_after(index, full.entries * 9 / 10);
        let near_full = on_small_chip(tree, near_full)?;
        println!(
            "{tree:8} {}:blocks={}: full with {} entries of 8+4, {:.1} % of the pages; the buffer \
             first shrinks at {:.1} % of the entries, {:.1} % of the pages; device time {usual:.1} \
             s, at 90 % of the entries {near_full:.1} s",
            SMALL.0,
            SMALL.1,
            full.entries,
            full.share,
            100.0 * shrank.entries as f64 / full.entries as f64,
            shrank.share,
        );
        if usual > most {
            return Err(format!("{tree}: {usual:.1} s of device time are above {most} s").into());
        }
    }
    Ok(())
}

/// Plays the cases on all processors, and prints their rows as they end.
fn play_all(cases: &[Case]) -> Outcome<()> {
    println!(
        "tree     chip                       bytes   share wanted   least  entries  least   like   \
         last  refused fanout  secs  entries of each round in parts of the first"
    );
    let next = AtomicUsize::new(0);
    let (sender, receiver) = mpsc::channel();
    let (mut least, mut refused, mut broken, mut short) = (f64::INFINITY, 0, 0, 0);
    thread::scope(|scope| {
        for _ in 0..thread::available_parallelism().map_or(1, usize::from) {
            let (next, sender) = (&next, sender.clone());
            scope.spawn(move || {
                while let Some(case) = cases.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let _ = sender.send(row(case));
                }
            });
        }
        drop(sender);
        for row in receiver {
            println!("{}", row.text);
            least = row.last.map_or(least, |last| least.min(last));
            broken += u32::from(row.last.is_none());
            refused += row.deletes_refused;
            short += u32::from(row.is_short);
        }
    });
    println!("deletes refused: {refused}");
    if refused > 0 || broken > 0 {
        return Err(format!("{refused} deletes were refused, {broken} rows broken off").into());
    }
    if short > 0 {
        return Err(format!("{short} rows have a smaller share than is wanted").into());
    }
    println!("least part of the first round's entries that the last held: {least:.3}");
    Ok(())
}

fn main() -> Outcome<()> {
    let (mut rounds, mut most, mut seed, mut tree) = (10, u32::MAX, 1, None);
    let mut arguments = std::env::args().skip(1);
    while let Some(name) = arguments.next() {
        let value = arguments.next().ok_or("an argument has no value")?;
        match name.as_str() {
            "--rounds" => rounds = value.parse()?,
            "--blocks" => most = value.parse()?,
            "--seed" => seed = value.parse()?,
            "--tree" => tree = Some(value),
            _ => return Err(format!("{name} is no argument").into()),
        }
    }
    if tree.is_none() {
        tell_buffered()?;
    }
    let mut cases = Vec::new();
    for chip in CHIPS.into_iter().filter(|(_, blocks, _)| *blocks <= most) {
        for name in TREES.into_iter().filter(|name| tree.as_deref().is_none_or(|one| one == *name))
        {
            for is_varied in [false, true] {
                cases.push(Case { tree: name, chip, is_varied, rounds, seed });
            }
        }
    }
    play_all(&cases)
}
