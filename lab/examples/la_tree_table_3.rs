//! The uniform cells of table 3 of the LA-Tree's paper (VLDB 2009), run on the chip of its table 2.
//!
//! 200,000 keys are loaded; then updates, two thirds of them insertions and the others deletions,
//! are mixed with lookups: 10, 200 and 1000 for a hundred updates. All keys are drawn uniformly.
//! What is printed is the chip's time an operation, without reclamation, beside what was published.
//!
//! ```text
//! cargo run --release -p flashtree-lab --example la_tree_table_3 -- \
//!     [--short] [--settings] [--claims] [--tree NAME]
//! ```
//!
//! ipl and b-plus stand on the chip itself, where every update of b-plus rewrites its path: it has
//! `flush=entry`, and the figures with `flush=leaf` are in docs/fidelity/la-tree.md. Over a
//! translation layer b-plus writes a page where it is; that is printed, too, and judged as well.
//! flashdb and bftl stand over that layer, and are printed beside the published times.
//!
//! `--claims` judges the cells of flashdb and bftl in place of all that (`./check claims la-t3`),
//! and runs what may be the cause where one fails: the other modes, no buffer, shorter lists, and a
//! tree that neither grows nor has record ids.
//!
//! `--short` runs fewer updates. `--settings` also runs what the paper leaves open, fewer updates
//! each: how full the loaded tree is, whether entries have their record ids, whether the tree
//! grows, and whether memory is divided for good or shared. Beside them stands what lookups cost at
//! least, whatever a tree with such nodes does: see [`least`].

#[path = "../tests/mu_figures/claims.rs"]
#[allow(dead_code, reason = "figures use the rest")]
mod claims;

use std::error::Error;

use claims::Claims;
use device::{Cause, Medium};
use index::Options;
use index::parameters::Settings;
use index::{Cursor, EntryShape, KeyValue, Update, Value, read_piece};
use rand::{Rng, RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use sim::SimulatedNand;

type Outcome<T> = Result<T, Box<dyn Error>>;

const CHIP: &str = "toshiba-tc58dvg02a1ft00";
const LOADED: usize = 200_000;
const MEMORY_BYTES: u64 = 128 << 10;

/// Lookups for a hundred updates, and what was published of the trees: table 3 has no B+-tree.
const CELLS: [(u32, [Option<u32>; 6]); 3] = [
    (10, [Some(113), Some(2489), None, None, Some(1270), Some(1322)]),
    (200, [Some(254), Some(1702), None, None, Some(844), Some(2073)]),
    (1000, [Some(253), Some(1342), None, None, Some(581), Some(2386)]),
];
/// The trees, and what they stand on. Those behind [`JUDGED`] stand beside them.
const TREES: [(&str, Option<&str>); 6] = [
    ("la-tree", None),
    ("ipl", None),
    ("b-plus", None),
    ("b-plus", Some("page-map")),
    ("flashdb", Some("page-map")),
    ("bftl", Some("page-map")),
];
const JUDGED: usize = 4;

/// A time of at most so many times the published one is near it.
const NEAR: f64 = 1.3;

/// What is run.
#[derive(Clone, Copy, Debug)]
struct Setting {
    tree: &'static str,
    /// The translation layer under it, if any.
    layer: Option<&'static str>,
    given: &'static [(&'static str, &'static str)],
    lookups: u32,
    updates: u32,
    /// Percent of a node that loading fills.
    fill: u8,
    /// Bytes of a record id.
    value_bytes: u16,
    /// Keys are drawn from so many, two thirds of which are in the tree; without, from 2^32, and
    /// the tree grows.
    keys: Option<u32>,
}

/// True for b-plus on the chip itself.
const fn is_plain(tree: &str, layer: Option<&str>) -> bool {
    matches!(tree.as_bytes(), b"b-plus") && layer.is_none()
}

impl Setting {
    const fn usual(tree: (&'static str, Option<&'static str>), lookups: u32, updates: u32) -> Self {
        let (tree, layer) = tree;
        let given: &[_] = if is_plain(tree, layer) { &[("flush", "entry")] } else { &[] };
        Setting { tree, layer, given, lookups, updates, fill: 67, value_bytes: 4, keys: None }
    }

    fn draw(&self, random: &mut ChaCha8Rng) -> u32 {
        match self.keys {
            Some(keys) => random.random_range(0..keys).wrapping_mul(0x9E37_79B9),
            None => random.next_u32(),
        }
    }
}

/// The keys that are loaded.
struct Sorted<'k> {
    keys: std::slice::Iter<'k, u32>,
    key: [u8; 4],
    value: Vec<u8>,
}

impl Cursor for Sorted<'_> {
    fn next(&mut self) -> index::Result<Option<KeyValue<'_>>> {
        let Some(key) = self.keys.next() else {
            return Ok(None);
        };
        self.key = key.to_be_bytes();
        Ok(Some((&self.key, Value::Inline(&self.value))))
    }

    fn read_value(&mut self, offset: u32, into: &mut [u8]) -> index::Result<u32> {
        Ok(read_piece(&self.value, offset, into))
    }
}

/// What a run cost, an operation.
struct Measured {
    micros: f64,
    /// By cause: its name, microseconds, pages read and programmed.
    causes: Vec<(String, f64, f64, f64)>,
}

fn play(setting: &Setting) -> Outcome<Measured> {
    let chip = chips::find(CHIP).ok_or("no such chip")?.nand(&chips::Overrides::default())?;
    let mut nand = SimulatedNand::new(chip.geometry, chip.costs);
    let entry = trees::find(setting.tree).ok_or("no such tree")?;
    let settings = Settings::parse(entry.name, entry.parameters, setting.given.iter().copied())?;
    let shape = EntryShape::fixed(4, setting.value_bytes);
    let options = Options::new(shape, MEMORY_BYTES, settings);
    let medium = match setting.layer.map(|layer| ftl::find(layer).ok_or("no such layer")) {
        None => Medium::Nand(Box::new(&mut nand)),
        Some(layer) => {
            Medium::Sectors((layer?.create)(Box::new(&mut nand), &ftl::Options::default())?)
        }
    };
    let mut index = (entry.create)(medium, &options)?;
    let value = vec![7; usize::from(setting.value_bytes)];
    let mut random = ChaCha8Rng::seed_from_u64(1);
    let mut keys: Vec<u32> = (0..LOADED).map(|_| setting.draw(&mut random)).collect();
    let mut sorted = keys.clone();
    sorted.sort_unstable();
    sorted.dedup();
    let mut cursor = Sorted { keys: sorted.iter(), key: [0; 4], value: value.clone() };
    index.load(&mut cursor, setting.fill)?;
    let tally = |index: &dyn index::Index| {
        Cause::ALL.map(|cause| index.meter().map(|meter| *meter.tally(cause)).unwrap_or_default())
    };
    let before = tally(&*index);
    let (mut operations, mut owed, mut into) = (0_u32, 0, [0; 4]);
    for _ in 0..setting.updates {
        owed += setting.lookups;
        while owed >= 100 {
            owed -= 100;
            operations += 1;
            index.get(&setting.draw(&mut random).to_be_bytes(), 0, &mut into)?;
        }
        operations += 1;
        if random.random_range(0..100) < 66 {
            let key = setting.draw(&mut random);
            index.update(&[Update::Put { key: &key.to_be_bytes(), value: &value }])?;
            keys.push(key);
        } else {
            let at = random.random_range(0..keys.len());
            let key = match setting.keys {
                Some(_) => setting.draw(&mut random),
                None => keys.swap_remove(at),
            };
            index.update(&[Update::Delete { key: &key.to_be_bytes() }])?;
        }
    }
    let each = |number: u64| number as f64 / f64::from(operations);
    let mut measured = Measured { micros: 0.0, causes: Vec::new() };
    for ((cause, after), before) in Cause::ALL.into_iter().zip(tally(&*index)).zip(before) {
        let tally = after - before;
        let micros = each(tally.time_ns) / 1000.0;
        if cause != Cause::Reclamation {
            measured.micros += micros;
        }
        if tally.time_ns > 0 {
            let (reads, programs) = (each(tally.page_reads), each(tally.page_programs));
            measured.causes.push((cause.to_string(), micros, reads, programs));
        }
    }
    Ok(measured)
}

/// What lookups cost at least, in microseconds an operation: each reads its way of nodes of 128
/// bytes (table 2's cost) through the tree as it was loaded, where all memory holds the nodes that
/// most lookups meet. Buffers and updates come on top, and a tree that grows has more nodes.
fn least(setting: &Setting) -> f64 {
    const NODE_BYTES: f64 = 128.0;
    const NODE_READ: f64 = 69.0 + 1.7 * NODE_BYTES;
    let entries =
        |bytes: u16| (NODE_BYTES - 8.0) / f64::from(bytes) * f64::from(setting.fill) / 100.0;
    let mut levels = vec![LOADED as f64 / entries(4 + setting.value_bytes)];
    while levels[levels.len() - 1] > 1.0 {
        levels.push(levels[levels.len() - 1] / entries(8));
    }
    let (mut room, mut reads) = (MEMORY_BYTES as f64 / NODE_BYTES, 0.0);
    for nodes in levels.into_iter().rev().map(f64::ceil) {
        let cached = nodes.min(room);
        room -= cached;
        reads += 1.0 - cached / nodes;
    }
    let lookups = f64::from(setting.lookups);
    reads * NODE_READ * lookups / (lookups + 100.0)
}

/// Runs the cells of the trees of that name, or of all; returns in how many of three la-tree is
/// ahead of all others, and in how many the times of those that ran are near the published ones.
fn cells(updates: [u32; 3], wanted: Option<&str>) -> Outcome<(u32, u32)> {
    let (mut ahead, mut near) = (0, 0);
    for ((lookups, published), updates) in CELLS.into_iter().zip(updates) {
        let mut micros = [0.0; TREES.len()];
        for ((tree, published), micros) in TREES.into_iter().zip(published).zip(&mut micros) {
            if wanted.is_some_and(|wanted| wanted != tree.0) {
                continue;
            }
            let setting = Setting::usual(tree, lookups, updates);
            let name = match tree.1 {
                None => tree.0.to_string(),
                Some(layer) => format!("{} over {layer}", tree.0),
            };
            let measured = match play(&setting) {
                Ok(measured) => measured,
                Err(error) => {
                    println!("{lookups:4} % {name:20} not run: {error}");
                    continue;
                }
            };
            *micros = measured.micros;
            let published = published.map_or("-".to_string(), |number| number.to_string());
            print!("{lookups:4} % {name:20} measured {:7.1} us, published {published}", *micros);
            match tree.0 {
                "la-tree" => println!("; its lookups cost {:.0} us at least", least(&setting)),
                _ => println!(),
            }
            for (cause, micros, reads, programs) in measured.causes {
                println!(
                    "         {cause:12} {micros:7.1} us {reads:8.4} reads {programs:8.4} programs"
                );
            }
        }
        for place in (JUDGED..TREES.len()).filter(|_| micros[0] > 0.0) {
            let gain = micros[place] / micros[0];
            let [ours, theirs] = [0, place].map(|it| published[it].map_or(f64::NAN, f64::from));
            println!(
                "{lookups:4} % la-tree gains {gain:.2} times over {}, published {:.2}",
                TREES[place].0,
                theirs / ours
            );
        }
        ahead += u32::from(micros[1..JUDGED].iter().all(|other| micros[0] < *other));
        let mut both = micros.iter().zip(published).filter(|(micros, _)| **micros > 0.0);
        let is_near = |(micros, published): (&f64, Option<u32>)| {
            published.is_some_and(|published| *micros <= NEAR * f64::from(published))
        };
        near += u32::from(both.next().is_some_and(is_near) && both.all(is_near));
    }
    Ok((ahead, near))
}

/// By how much of what is published a gain may be smaller.
const MARGIN: f64 = 0.15;

/// Updates of a run that looks for a cause.
const UPDATES_FOR_A_CAUSE: u32 = 200_000;

/// What may be the cause where a tree's cell fails: what it is given.
const CAUSES: [(&str, &[(&str, &str)]); 5] = [
    ("flashdb", &[("mode", "log")]),
    ("flashdb", &[("mode", "disk")]),
    ("bftl", &[("reservation", "1")]),
    ("bftl", &[("list", "1")]),
    ("bftl", &[("reservation", "600")]),
];

/// Judges the cells of the trees behind [`JUDGED`], and la-tree's gains over them.
fn claims(updates: [u32; 3]) -> Outcome<()> {
    let mut claims = Claims::of("la-t3");
    for ((lookups, published), updates) in CELLS.into_iter().zip(updates) {
        let of = |place: usize| play(&Setting::usual(TREES[place], lookups, updates));
        let ours = of(0)?.micros;
        let [la_tree, others @ ..] = published.map(|micros| micros.map_or(f64::NAN, f64::from));
        for (place, other) in others.into_iter().enumerate().skip(JUDGED - 1) {
            let (tree, micros) = (TREES[place + 1].0, of(place + 1)?.micros);
            let what = format!("{lookups} %: {tree} takes at most {NEAR} times as long");
            let told = format!("{micros:.1} us, la-tree {ours:.1}");
            let is_near = claims.told(
                &what,
                &format!("{other} us, {la_tree}"),
                &told,
                micros <= NEAR * other,
            );
            let what = format!("{lookups} %: la-tree gains so many times over {tree}");
            let gain = (other / la_tree * 100.0).round() / 100.0;
            if !(claims.gain(&what, (gain, micros / ours), MARGIN * gain) && is_near) {
                causes(TREES[place + 1], lookups)?;
            }
        }
    }
    claims.end();
    Ok(())
}

/// What a tree takes with other settings, beside the usual ones, and la-tree with it.
fn causes(tree: (&'static str, Option<&'static str>), lookups: u32) -> Outcome<()> {
    let usual = |tree| Setting::usual(tree, lookups, UPDATES_FOR_A_CAUSE);
    let bare = |setting| Setting { keys: Some(303_000), value_bytes: 0, ..setting };
    let [ours, ours_bare] = [usual(TREES[0]), bare(usual(TREES[0]))].map(|it| play(&it));
    let [ours, ours_bare] = [ours?.micros, ours_bare?.micros];
    let tell = |what: &str, setting: &Setting, ours: f64| -> Outcome<()> {
        let micros = play(setting)?.micros;
        println!("  cause? {what}: {micros:.1} us, la-tree gains {:.2} times", micros / ours);
        Ok(())
    };
    tell("as usual, fewer updates", &usual(tree), ours)?;
    tell("no growth, no record ids", &bare(usual(tree)), ours_bare)?;
    for (_, given) in CAUSES.into_iter().filter(|(name, _)| *name == tree.0) {
        let [(name, word)] = given else { continue };
        tell(&format!("{name}={word}"), &Setting { given, ..usual(tree) }, ours)?;
    }
    Ok(())
}

/// Runs what the paper leaves open, and says what comes nearest to the published times.
fn settings(operations: u32) -> Outcome<()> {
    const DIVISIONS: [(&str, &[(&str, &str)]); 2] =
        [("fixed", &[("share", "fixed")]), ("shared", &[("share", "shared")])];
    println!("\n memory loaded record id grows     10 %    200 %   1000 %   lookups at least");
    let mut nearest = CELLS.map(|_| (f64::INFINITY, String::new()));
    for (division, given) in DIVISIONS {
        for fill in [67, 100] {
            for value_bytes in [4, 0] {
                for keys in [None, Some(303_000)] {
                    let grows = if keys.is_none() { "yes" } else { "no" };
                    let name = format!("{division:6} {fill:6} {value_bytes:9} {grows:5}");
                    print!(" {name}");
                    let mut least_of = Vec::new();
                    for ((lookups, published), nearest) in CELLS.into_iter().zip(&mut nearest) {
                        let updates = operations / (100 + lookups) * 100;
                        let usual = Setting::usual(TREES[0], lookups, updates);
                        let setting = Setting { given, fill, value_bytes, keys, ..usual };
                        least_of.push(format!("{:.0}", least(&setting)));
                        let micros = play(&setting)?.micros;
                        print!(" {micros:8.1}");
                        let published = published[0].map_or(0.0, f64::from);
                        let off = (micros / published).ln().abs();
                        if off < nearest.0 {
                            *nearest = (off, format!("{micros:.1} us: {name}"));
                        }
                    }
                    println!("   {}", least_of.join(", "));
                }
            }
        }
    }
    for ((lookups, published), (_, nearest)) in CELLS.into_iter().zip(nearest) {
        let published = published[0].unwrap_or_default();
        println!("nearest to the published {published} us at {lookups} %: {nearest}");
    }
    Ok(())
}

fn main() -> Outcome<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let has = |wanted: &str| arguments.iter().any(|argument| argument == wanted);
    let is_short = has("--short");
    let updates = if is_short { [60_000, 20_000, 6_000] } else { [1_000_000; 3] };
    if has("--claims") {
        return claims(updates);
    }
    let mut names = arguments.iter().skip_while(|argument| *argument != "--tree").skip(1);
    let wanted = names.next().map(String::as_str);
    let (ahead, near) = cells(updates, wanted)?;
    match wanted {
        None => println!("la-tree is ahead of ipl and b-plus in {ahead} of 3 cells"),
        Some(tree) => println!("{tree} is within {NEAR} times the published in {near} of 3 cells"),
    }
    if has("--settings") {
        settings(if is_short { 60_000 } else { 600_000 })?;
    }
    Ok(())
}
