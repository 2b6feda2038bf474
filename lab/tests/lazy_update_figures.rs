//! The figures of the lazy-update B+-tree's paper (On, Hu, Li, Xu, JCST 2010): pages that the index
//! reads and writes on its disk, of all that it does.
//!
//! The index has 540,936 entries of 12 bytes when it is made, and the other authors of 610,907 come
//! one by one; all memory is 73,309 bytes, 1 % of the index. Names are numbers, as in the paper;
//! here random ones, of which the tree sees nothing but the order. In "mix" two entries are deleted
//! for three that come. How many operations the paper has is not published: here all the other
//! authors come.
//!
//! ```text
//! cargo test --release -p flashtree-lab --test lazy_update_figures -- \
//!     --ignored --nocapture lu_4567
//! FLASHTREE_DATA=FOLDER cargo test --release -p flashtree-lab --test lazy_update_figures -- \
//!     --ignored --nocapture dblp_real
//! ```

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "a test that reports"
)]

#[path = "mu_figures/claims.rs"]
#[allow(dead_code, reason = "other figures use the rest")]
mod claims;

use std::collections::{BTreeMap, HashSet};
use std::fs::File;
use std::io::Read as _;
use std::path::PathBuf;
use std::process::Command;

use claims::Claims;
use device::{Cause, DiskCosts, Medium, SectorGeometry};
use index::parameters::Settings;
use index::{EntryShape, Index, Options, Update};
use rand::seq::SliceRandom;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use ruzstd::decoding::StreamingDecoder;
use sim::SimulatedDisk;

/// Authors before the first year that is measured, and all.
const BEFORE: usize = 540_936;
const ALL: usize = 610_907;

/// 1 % of the index.
const MEMORY_BYTES: u64 = 73_309;

const PAGE_BYTES: u32 = 2048;

/// What is published of reading and writing a page, in microseconds.
const READ_US: f64 = 80.0;
const WRITE_US: f64 = 200.0;

/// A workload: the share of queries in percent, and whether entries are deleted as well.
#[derive(Clone, Copy, Debug)]
struct Workload {
    name: &'static str,
    queries: u32,
    deletes: bool,
}

const WORKLOADS: [Workload; 4] = [
    Workload { name: "W-Query(Insert)", queries: 80, deletes: false },
    Workload { name: "W-Update(Insert)", queries: 20, deletes: false },
    Workload { name: "W-Query(Mix)", queries: 80, deletes: true },
    Workload { name: "W-Update(Mix)", queries: 20, deletes: true },
];

const QUERY_MIX: Workload = WORKLOADS[2];

/// The last year whose authors are there when the index of the real ones is made.
const LAST_YEAR: u32 = 2011;

/// A folder with `dblp_author_occurrences.tsv.zst`.
const FOLDER: &str = "FLASHTREE_DATA";

/// Authors by name, in the order in which they come.
struct Authors {
    keys: Vec<u64>,
    before: usize,
}

impl Authors {
    fn generated() -> Self {
        Authors { keys: Authors::random(ALL), before: BEFORE }
    }

    /// The first part of these is there when the index is made, as in the paper.
    fn of(keys: Vec<u64>) -> Self {
        let before = keys.len() * BEFORE / ALL;
        Authors { keys, before }
    }

    /// Those of DBLP's journals in `folder`, by the year in which they are first named there, each
    /// as its place among all names in order. Conferences have no years. Those of up to 2011 are
    /// there when the index is made, about the paper's share.
    fn of_dblp(folder: PathBuf) -> Self {
        let file = File::open(folder.join("dblp_author_occurrences.tsv.zst")).unwrap();
        let mut text = String::new();
        StreamingDecoder::new(file).unwrap().read_to_string(&mut text).unwrap();
        let mut first = BTreeMap::<&str, (u32, usize)>::new();
        for (place, line) in text.lines().enumerate() {
            let mut parts = line.split('\t').skip(1);
            let (Some(year), Some(name)) = (parts.next(), parts.next()) else { continue };
            let Ok(year) = year.parse() else { continue };
            let when = first.entry(name).or_insert((year, place));
            *when = (*when).min((year, place));
        }
        let mut keys: Vec<_> = first.into_values().zip(0..).collect();
        keys.sort_unstable();
        let before = keys.iter().filter(|((year, _), _)| *year <= LAST_YEAR).count();
        Authors { keys: keys.into_iter().map(|(_, key)| key).collect(), before }
    }

    fn random(authors: usize) -> Vec<u64> {
        let mut dice = ChaCha8Rng::seed_from_u64(1);
        let (mut seen, mut keys) = (HashSet::new(), Vec::new());
        while keys.len() < authors {
            let key: u64 = dice.random();
            if seen.insert(key) {
                keys.push(key);
            }
        }
        keys
    }
}

/// What a run took, and what of it counters say.
#[derive(Clone, Copy, Debug)]
struct Cost {
    reads: f64,
    writes: f64,
    /// Of the reads, those of lookups.
    looked_up: f64,
    waiting: u64,
    commits: u64,
    /// Leaves split, merged and evened out.
    rebalanced: u64,
}

impl Cost {
    /// Device time for a page read and a page written.
    fn time(&self, write_us: f64) -> f64 {
        self.reads * READ_US + self.writes * write_us
    }

    fn tell_rebalancing(&self) {
        println!(
            "  cause: {} of {} commits split, merge or even out a leaf, {:.1} %: only they may \
             cost more than a page, and save one",
            self.rebalanced,
            self.commits,
            100.0 * self.rebalanced as f64 / self.commits.max(1) as f64
        );
    }
}

/// How a tree is run.
#[derive(Clone, Copy, Debug)]
struct Run<'r> {
    tree: &'r str,
    given: &'r [(&'r str, &'r str)],
    page_bytes: u32,
    memory_bytes: u64,
}

const BASIC: Run<'_> =
    Run { tree: "b-plus", given: &[], page_bytes: PAGE_BYTES, memory_bytes: MEMORY_BYTES };

const fn lazy<'r>(given: &'r [(&'r str, &'r str)]) -> Run<'r> {
    Run { tree: "lazy-update", given, ..BASIC }
}

/// How the pool's memory is counted.
#[derive(Clone, Copy, Debug)]
enum Reading {
    /// All of it, with the list that groups requests.
    Whole,
    /// As the paper counts: 12 bytes a request, and the list takes none.
    Requests,
}

const READINGS: [Reading; 2] = [Reading::Whole, Reading::Requests];

/// What a waiting request takes here, the list included, and in the paper.
const OUR_REQUEST: f64 = 50.7;
const PAPERS_REQUEST: f64 = 12.0;

impl Reading {
    const fn name(self) -> &'static str {
        match self {
            Reading::Whole => "",
            Reading::Requests => "3,054 requests, ",
        }
    }

    /// Memory, and the share of the pool in it, where the paper's pool has this share.
    fn memory(self, pool: f64) -> (u64, f64) {
        let all = MEMORY_BYTES as f64;
        match self {
            Reading::Whole => (MEMORY_BYTES, pool),
            Reading::Requests => {
                let waiting = all * pool / PAPERS_REQUEST * OUR_REQUEST;
                let together = all * (1.0 - pool) + waiting;
                (together as u64, waiting / together)
            }
        }
    }

    /// What a run with these parameters takes, half of the memory being the pool.
    fn cost(self, given: &[(&str, &str)], authors: &Authors, workload: Workload) -> Cost {
        self.with_pool(0.5, given, authors, workload)
    }

    /// The same on pages of so many bytes, where queries and deletes are many.
    fn on_pages(self, page_bytes: u32, given: &[(&str, &str)], authors: &Authors) -> Cost {
        let (memory_bytes, pool) = self.memory(0.5);
        let pool = format!("{pool:.4}");
        let mut all = vec![("pool", pool.as_str())];
        all.extend(given);
        Run { memory_bytes, page_bytes, ..lazy(&all) }.cost(authors, QUERY_MIX)
    }

    fn with_pool(
        self,
        pool: f64,
        given: &[(&str, &str)],
        authors: &Authors,
        workload: Workload,
    ) -> Cost {
        let (memory_bytes, pool) = self.memory(pool);
        let pool = format!("{pool:.4}");
        let mut all = vec![("pool", pool.as_str())];
        all.extend(given);
        Run { memory_bytes, ..lazy(&all) }.cost(authors, workload)
    }
}

const BIG: &[(&str, &str)] = &[("policy", "biggest-size")];
const COST: &[(&str, &str)] = &[("policy", "cost-based")];

impl Run<'_> {
    fn disk(&self) -> SimulatedDisk {
        let sectors = u64::from((64 << 20) / self.page_bytes);
        let disk = SectorGeometry::new(self.page_bytes, sectors).unwrap();
        SimulatedDisk::new(disk, DiskCosts::default())
    }

    /// Makes the index of the authors that came before, one by one, with as much memory as it
    /// takes, and opens it with what it is measured with.
    fn make<'d>(&self, disk: &'d mut SimulatedDisk, authors: &[u64]) -> Box<dyn Index + 'd> {
        let entry = trees::find(self.tree).unwrap();
        let with = |given: &[(&str, &str)], bytes| {
            let given = given.iter().copied();
            let settings = Settings::parse(entry.name, entry.parameters, given).unwrap();
            Options::new(EntryShape::fixed(8, 4), bytes, settings)
        };
        let at_once = if self.tree == "lazy-update" { [("pool", "0")].as_slice() } else { &[] };
        let medium = Medium::Sectors(Box::new(&mut *disk));
        let mut index = (entry.create)(medium, &with(at_once, 64 << 20)).unwrap();
        for key in authors {
            let key = key.to_be_bytes();
            index.update(&[Update::Put { key: &key, value: &[0; 4] }]).unwrap();
        }
        index.close().unwrap();
        drop(index);
        let options = with(self.given, self.memory_bytes);
        (entry.open)(Medium::Sectors(Box::new(disk)), &options).unwrap()
    }

    fn cost(&self, authors: &Authors, workload: Workload) -> Cost {
        let (before, after) = authors.keys.split_at(authors.before);
        let mut disk = self.disk();
        let mut index = self.make(&mut disk, before);
        let mut play = Play::new(before, after);
        let total = |index: &dyn Index| index.meter().unwrap().total();
        let looked_up = |index: &dyn Index| index.meter().unwrap().tally(Cause::Lookup).page_reads;
        let before = looked_up(&*index);
        let start = total(&*index);
        play.operate(&mut *index, workload);
        let (mut figures, mut waiting) = (Vec::new(), 0);
        index.metrics(&mut |name, figure| {
            figures.push((name, figure));
            waiting = if name == index::UPDATES_WAITING { figure } else { waiting };
        });
        // What waits at the end is not written.
        let spent = total(&*index) - start;
        let mut cost = Cost {
            reads: spent.page_reads as f64,
            writes: spent.page_programs as f64,
            looked_up: (looked_up(&*index) - before) as f64,
            waiting,
            commits: 0,
            rebalanced: 0,
        };
        println!(
            "  {} {:?}, {} bytes, {}: {} reads, {} writes",
            self.tree, self.given, self.memory_bytes, workload.name, cost.reads, cost.writes
        );
        let mut told = format!("reads of lookups {}, ", cost.looked_up);
        for (name, figure) in figures {
            told += &format!("{name} {figure}, ");
            match name {
                "groups committed" => cost.commits = figure,
                index::NODES_SPLIT | index::NODES_MERGED | "nodes evened out" => {
                    cost.rebalanced += figure;
                }
                _ => {}
            }
        }
        println!("    {told}");
        cost
    }
}

/// The authors that operations are about.
struct Play<'a> {
    dice: ChaCha8Rng,
    new: std::slice::Iter<'a, u64>,
    /// Those that are deleted, the last one first, and those that are looked for.
    gone: Vec<u64>,
    live: Vec<u64>,
}

impl<'a> Play<'a> {
    fn new(before: &[u64], after: &'a [u64]) -> Self {
        let mut dice = ChaCha8Rng::seed_from_u64(2);
        let mut gone = before.to_vec();
        gone.shuffle(&mut dice);
        Play { dice, new: after.iter(), gone, live: before.to_vec() }
    }

    /// Plays until no new author is left; how many operations that took. Its name is what
    /// instructions are counted in.
    #[inline(never)]
    fn operate(&mut self, index: &mut dyn Index, workload: Workload) -> u32 {
        let Play { dice, new, gone, live } = self;
        let mut operations = 0;
        loop {
            operations += 1;
            if dice.random_range(0..100) < workload.queries {
                let key = live[dice.random_range(0..live.len())];
                index.get(&key.to_be_bytes(), 0, &mut [0; 4]).unwrap();
            } else if workload.deletes && dice.random_range(0..5) < 2 {
                let key = gone.pop().unwrap().to_be_bytes();
                index.update(&[Update::Delete { key: &key }]).unwrap();
            } else {
                let Some(key) = new.next() else { return operations };
                live.push(*key);
                let key = key.to_be_bytes();
                index.update(&[Update::Put { key: &key, value: &[1; 4] }]).unwrap();
            }
        }
    }
}

/// The variable that says which tree's instructions are counted.
const COUNTED: &str = "FLASHTREE_COUNTED";

/// New authors while they are.
const AUTHORS_COUNTED: usize = 10_000;

#[test]
#[ignore = "takes minutes, and valgrind: lu_processor"]
fn lu_processor_instructions_an_operation() {
    let mut claims = Claims::of("lu-processor");
    for workload in &WORKLOADS[2..] {
        let of = |counted: &str| instructions(&format!("{counted}/{}", workload.name));
        let basic = of("b-plus");
        for reading in READINGS {
            let lazy = of(reading.name());
            let what = "Cost takes fewer instructions an operation than the B+-tree";
            let what = format!("{}{}: {what}", reading.name(), workload.name);
            claims.told(&what, "yes", &format!("{lazy:.0} and {basic:.0}"), lazy < basic);
        }
    }
    claims.end();
}

/// Instructions of an operation, those of the model included, of a run in another process.
fn instructions(counted: &str) -> f64 {
    let mut valgrind = Command::new("valgrind");
    valgrind.args(["--tool=callgrind", "--callgrind-out-file=/dev/null"]);
    valgrind.arg("--toggle-collect=*operate*").arg(std::env::current_exe().unwrap());
    valgrind.args(["--ignored", "--exact", "what_is_counted", "--nocapture"]);
    let output = valgrind.env(COUNTED, counted).output().expect("valgrind runs");
    let number = |text: &[u8], behind: &str| {
        let text = String::from_utf8_lossy(text).into_owned();
        let found = text.split(behind).nth(1).and_then(|rest| rest.split_whitespace().next());
        found.and_then(|word| word.parse::<f64>().ok()).expect("valgrind counts")
    };
    number(&output.stderr, "Collected :") / number(&output.stdout, "operations counted:")
}

#[test]
#[ignore = "lu_processor runs it"]
fn what_is_counted() {
    let Ok(counted) = std::env::var(COUNTED) else { return };
    let (name, workload) = counted.split_once('/').unwrap();
    let workload = WORKLOADS.into_iter().find(|it| it.name == workload).unwrap();
    let authors = Authors::generated();
    let (before, after) = authors.keys.split_at(authors.before);
    let reading = READINGS.into_iter().find(|reading| reading.name() == name);
    let pool;
    let mut given = COST.to_vec();
    let run = match reading {
        None => BASIC,
        Some(reading) => {
            let (memory_bytes, share) = reading.memory(0.5);
            pool = format!("{share:.4}");
            given.push(("pool", &pool));
            Run { memory_bytes, ..lazy(&given) }
        }
    };
    let mut disk = run.disk();
    let mut index = run.make(&mut disk, before);
    let operations = Play::new(before, &after[..AUTHORS_COUNTED]).operate(&mut *index, workload);
    println!("operations counted: {operations}");
}

fn percent_less(less: f64, more: f64) -> f64 {
    100.0 * (1.0 - less / more)
}

/// Figures 4 to 7.
fn overall(claims: &mut Claims, authors: &Authors, reading: Reading) {
    for workload in &WORKLOADS {
        let what = |what: &str| format!("{}{}: {what}", reading.name(), workload.name);
        let basic = BASIC.cost(authors, *workload);
        let of = |given: &[(&str, &str)]| reading.cost(given, authors, *workload);
        // The paper prunes for Big and Cost alone (section 4.4.2.1).
        let full = |policy| of(&[("policy", policy), ("pruning", "off")]);
        let (lru, fifo) = (full("lru"), full("fifo"));
        let (big, cost) = (of(BIG), of(COST));
        for (name, lazy) in [("Big", big), ("Cost", cost)] {
            let share = lazy.writes / basic.writes;
            let told = format!("{share:.3}");
            let claim = what(&format!("{name} writes at most 55 % of the B+-tree's pages"));
            if !claims.told(&claim, "0.5", &told, share <= 0.55) {
                let waiting = lazy.waiting;
                println!("  cause: {waiting} requests wait, not 3,054: see their rows");
            }
            let ahead = lazy.writes < lru.writes.min(fifo.writes);
            claims.holds(&what(&format!("{name} writes less than LRU and FIFO")), ahead);
            let ahead = lazy.reads < lru.reads.min(fifo.reads);
            claims.holds(&what(&format!("{name} reads less than LRU and FIFO")), ahead);
        }
        let saved = percent_less(big.reads, basic.reads);
        let published = if workload.queries > 50 { 16.0 } else { 33.0 };
        claims.gain(&what("percent of reads that Big saves"), (published, saved), 2.0);
        claims.holds(&what("Cost writes less than Big"), cost.writes < big.writes);
        claims.holds(&what("Big reads less than Cost"), big.reads < cost.reads);
    }
}

#[test]
#[ignore = "takes minutes: lu_4567"]
fn lu_4567_the_policies_beside_the_b_plus_tree() {
    let mut claims = Claims::of("lu-4567");
    let authors = Authors::generated();
    for reading in READINGS {
        overall(&mut claims, &authors, reading);
    }
    claims.end();
}

/// Figures 4 to 7, 9 and 10 with the authors of DBLP, and with as many random names: so the names'
/// order is all that differs. The memory is the paper's, of a smaller index.
#[test]
#[ignore = "takes minutes, and authors: dblp_real"]
fn dblp_real_authors_beside_random_names() {
    let folder = std::env::var_os(FOLDER).expect("FLASHTREE_DATA names a folder with authors");
    let real = Authors::of_dblp(folder.into());
    let random = Authors::of(Authors::random(real.keys.len()));
    for (what, authors) in [("lu-dblp-random", random), ("lu-dblp", real)] {
        println!("{what}: {} of {} when the index is made", authors.before, authors.keys.len());
        let mut claims = Claims::of(what);
        for reading in READINGS {
            overall(&mut claims, &authors, reading);
            order(&mut claims, &authors, reading);
        }
        pruning(&mut claims, &authors);
        claims.end();
    }
}

#[test]
#[ignore = "takes a minute: lu_8"]
fn lu_8_the_share_of_the_pool() {
    let mut claims = Claims::of("lu-8");
    let authors = Authors::generated();
    // By the paper's count more is a larger share than the parameter takes.
    let all = [0.1, 0.3, 0.5, 0.7, 0.8, 0.85, 0.9, 0.94];
    for (reading, pools) in READINGS.into_iter().zip([&all[..], &all[..4]]) {
        let of = |pool: &f64| reading.with_pool(*pool, COST, &authors, QUERY_MIX);
        let costs: Vec<_> = pools.iter().map(of).collect();
        let name = if matches!(reading, Reading::Whole) { "" } else { "as many requests, " };
        let most = pools[pools.len().min(7) - 1];
        let rising = &costs[..pools.len().min(7)];
        let falls = rising.windows(2).all(|it| it[1].writes < it[0].writes);
        let mut holds =
            claims.holds(&format!("{name}writes fall as the pool grows to {most}"), falls);
        let falls = rising.windows(2).all(|it| it[1].reads < it[0].reads);
        holds &= claims.holds(&format!("{name}reads fall as the pool grows to {most}"), falls);
        if let Some(last) = costs.get(7) {
            holds &= claims.holds("beyond 0.9 reads rise", last.reads > costs[6].reads);
        }
        if !holds {
            let waiting: Vec<_> = costs.iter().map(|it| it.waiting).collect();
            println!("  cause? so many requests wait: {waiting:?}");
        }
    }
    claims.end();
}

#[test]
#[ignore = "takes minutes: lu_9"]
fn lu_9_the_order_of_the_tree() {
    let mut claims = Claims::of("lu-9");
    let authors = Authors::generated();
    for reading in READINGS {
        order(&mut claims, &authors, reading);
    }
    claims.end();
}

fn order(claims: &mut Claims, authors: &Authors, reading: Reading) {
    let what = |what: &str| format!("{}{what}", reading.name());
    // Half of the entries of a node: as many as pages of these sizes hold.
    let of = |page_bytes, given| reading.on_pages(page_bytes, given, authors);
    let sizes = [512, 1024, 2048];
    let pairs: Vec<_> = sizes.iter().map(|bytes| (of(*bytes, BIG), of(*bytes, COST))).collect();
    let falls = |of: fn(&Cost) -> f64| {
        pairs.windows(2).all(|it| of(&it[1].0) < of(&it[0].0) && of(&it[1].1) < of(&it[0].1))
    };
    claims.holds(&what("writes fall as the order rises"), falls(|cost| cost.writes));
    claims.holds(&what("reads fall as the order rises"), falls(|cost| cost.reads));
    let gaps = pairs.iter().map(|(big, cost)| percent_less(cost.writes, big.writes));
    let gaps: Vec<f64> = gaps.collect();
    println!("  percent of writes that Cost saves over Big at 21, 42 and 85: {gaps:.2?}");
    let grows = gaps.windows(2).all(|it| it[0] > it[1]);
    claims.holds(&what("what Cost saves over Big grows as the order falls"), grows);
    let claim = what("percent of writes that Cost saves over Big at 85");
    if !claims.gain(&claim, (4.3, gaps[2]), 1.0) {
        pairs[2].1.tell_rebalancing();
    }
}

#[test]
#[ignore = "takes minutes: lu_10"]
fn lu_10_pruning() {
    let mut claims = Claims::of("lu-10");
    pruning(&mut claims, &Authors::generated());
    claims.end();
}

fn pruning(claims: &mut Claims, authors: &Authors) {
    for (reading, workload) in of_updates() {
        for (name, given) in [("Big", BIG), ("Cost", COST)] {
            let on = reading.cost(given, authors, workload);
            let off: Vec<_> = given.iter().copied().chain([("pruning", "off")]).collect();
            let off = reading.cost(&off, authors, workload);
            let saved = percent_less(on.reads, off.reads);
            let (least, most) = if name == "Big" { (4.5, 15.0) } else { (9.8, 33.0) };
            let what = format!("{}{}", reading.name(), workload.name);
            let claim = format!("{what}: percent of reads that pruning saves {name}");
            let margin = (most - least) / 2.0;
            if !claims.gain(&claim, (f64::midpoint(least, most), saved), margin) {
                let beside = percent_less(on.reads - on.looked_up, off.reads - off.looked_up);
                println!("  cause? of the reads that are not lookups' it saves {beside:.1} %");
            }
        }
    }
}

/// All workloads, by both counts of memory.
fn both() -> impl Iterator<Item = (Reading, Workload)> {
    READINGS.into_iter().flat_map(|reading| WORKLOADS.map(|workload| (reading, workload)))
}

/// The same, by the paper's count only those of updates.
fn of_updates() -> impl Iterator<Item = (Reading, Workload)> {
    both().filter(|(reading, it)| matches!(reading, Reading::Whole) || it.queries < 50)
}

#[test]
#[ignore = "takes minutes: lu_11"]
fn lu_11_super_groups() {
    let mut claims = Claims::of("lu-11");
    let authors = Authors::generated();
    let mut is_best = true;
    for (reading, workload) in of_updates() {
        let what = |what: &str| format!("{}{}: {what}", reading.name(), workload.name);
        let of = |way| reading.cost(&[("super-groups", way)], &authors, workload);
        let (none, first, second) = (of("none"), of("first"), of("second"));
        let saved = |cost: Cost| percent_less(cost.writes, none.writes);
        let claim = what("percent of writes saved, first");
        let mut holds = claims.gain(&claim, (6.45, saved(first)), 3.95);
        let claim = what("percent of writes saved, second");
        holds &= claims.gain(&claim, (9.75, saved(second)), 2.95);
        if !holds {
            none.tell_rebalancing();
        }
        let more = 100.0 * (second.reads / none.reads - 1.0);
        let told = format!("{more:.1}");
        claims.told(
            &what("second reads more, percent"),
            "11 to 48",
            &told,
            (11.0..=48.0).contains(&more),
        );
        let least = none.time(WRITE_US).min(second.time(WRITE_US));
        is_best &= first.time(WRITE_US) < least;
    }
    claims.holds("the first approach costs the least time", is_best);
    claims.end();
}

#[test]
#[ignore = "takes a minute: lu_12"]
fn lu_12_the_cost_of_writing() {
    let mut claims = Claims::of("lu-12");
    let authors = Authors::generated();
    for (reading, workload) in both() {
        let what = |what: &str| format!("{}{}: {what}", reading.name(), workload.name);
        let of = |given| reading.cost(given, &authors, workload);
        let (big, cost) = (of(BIG), of(COST));
        let gap = |ratio: f64| big.time(READ_US * ratio) - cost.time(READ_US * ratio);
        if !claims.holds(&what("Big is ahead where a write costs a read"), gap(1.0) < 0.0) {
            println!("  Big reads {}, Cost {}: cause unknown", big.reads, cost.reads);
        }
        claims.holds(&what("Cost is ahead where it costs twenty"), gap(20.0) > 0.0);
        claims.holds(&what("the gap grows"), gap(20.0) > gap(10.0) && gap(10.0) > gap(1.0));
    }
    claims.end();
}
