//! Figure 19: mu*-Tree on raw flash beside trees over a translation layer: BFTL, and the B+-tree
//! that rewrites its nodes in place.
//!
//! BFTL has the reservation buffer and the lists of the paper, by default: 60 units, 3 sectors. It
//! is measured twice: with as much memory as mu*'s cache, its own buffers included and its table
//! and the layer's beside; and with the least, as the paper's, which caches no nodes.

use device::Medium;
use index::EntryShape;
use index::parameters::Settings;
use index::{MediumShape, Options};
use sim::SimulatedNand;
use store::Memory;
use trees::find;

use super::claims::Claims;
use super::stage::Stage;
use super::work::{Keys, Taken, Work, each, run_on, run_work};

const CHIP: u64 = 16 << 20;

/// Bytes of cache.
const CACHE: u64 = 128 << 10;

/// A tree over a layer, with memory beside the least.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Over {
    /// The B+-tree, with as much beside the least as mu* has.
    BPlus,
    /// BFTL, with as much in all.
    Bftl,
    /// BFTL with the least.
    BftlLeast,
    /// That, with each unit written at once: an ablation.
    BftlUnbuffered,
}

impl Over {
    const fn name(self) -> &'static str {
        match self {
            Over::BPlus => "the B+-tree",
            Over::Bftl => "BFTL",
            Over::BftlLeast => "BFTL, least memory,",
            Over::BftlUnbuffered => "BFTL, least memory, each unit written at once,",
        }
    }
}

/// What mu* is measured beside, and how often as fast it is published to be at most.
const BESIDE: [(Over, &str, Option<f64>); 8] = [
    (Over::BPlus, "dac", None),
    (Over::BPlus, "fast", None),
    (Over::Bftl, "dac", Some(3.2)),
    (Over::Bftl, "fast", Some(4.0)),
    (Over::BftlLeast, "dac", Some(3.2)),
    (Over::BftlLeast, "fast", Some(4.0)),
    (Over::BftlUnbuffered, "dac", None),
    (Over::BftlUnbuffered, "fast", None),
];

/// By which part a gain may be below what is published.
const MARGIN: f64 = 0.1;

/// A tree over a layer as that comes, on the same chip.
fn over(tree: Over, layer: &str, work: &Work) -> Option<Taken> {
    let chip = Stage::paper("b-plus", CHIP).chip();
    let nand = SimulatedNand::new(chip.geometry, chip.costs);
    let layer = ftl::find(layer).unwrap();
    let disk = (layer.create)(Box::new(nand), &ftl::Options::default()).unwrap();
    let entry = find(if tree == Over::BPlus { "b-plus" } else { "bftl" }).unwrap();
    let given = (tree == Over::BftlUnbuffered).then_some(("reservation", "1"));
    let settings = Settings::parse(entry.name, entry.parameters, given).unwrap();
    let mut options = Options::new(EntryShape::fixed(4, 4), 0, settings);
    let shape = MediumShape::Sectors(disk.geometry());
    let least = entry.least_memory(&options, shape).unwrap();
    options.memory_bytes = match tree {
        Over::BPlus => least + CACHE,
        Over::Bftl => CACHE.max(least),
        Over::BftlLeast | Over::BftlUnbuffered => least,
    };
    let mut index = (entry.create)(Medium::Sectors(Box::new(disk)), &options).unwrap();
    let taken = run_on(&mut *index, work, 1);
    if work.records == 100_000 {
        let Memory { cache, buffers, tables, ftl } = index.statistics().memory;
        println!(
            "  {} over {}: {cache} bytes of caches, {buffers} of buffers, {tables} of tables, and \
             {ftl} of the layer's",
            tree.name(),
            layer.name
        );
    }
    taken
}

fn on_raw_flash(work: &Work) -> Option<Taken> {
    let mut stage = Stage::paper("mu-star", CHIP);
    stage.given = vec![("cache", "0.5")];
    stage.cache_bytes = CACHE;
    run_work(&stage, work, 1)
}

/// Figure 19 with so many updates.
pub(crate) fn figure_19(sizes: &[u32], updates: u32) {
    let mut claims = Claims::of("mu-19");
    let beside = BESIDE.iter().map(|(tree, layer, _)| Some((*tree, *layer)));
    let trees: Vec<_> = beside.chain([None]).collect();
    let tasks: Vec<_> =
        sizes.iter().flat_map(|size| trees.iter().map(|tree| (*size, *tree))).collect();
    let taken = each(&tasks, |(records, tree)| {
        let work = Work { records: *records, lookups: 0, updates, keys: Keys::Random };
        match tree {
            Some((tree, layer)) => over(*tree, layer, &work),
            None => on_raw_flash(&work),
        }
    });
    let mut gains = [const { Vec::new() }; BESIDE.len()];
    for (records, taken) in sizes.iter().zip(taken.chunks(trees.len())) {
        for (tree, taken) in trees.iter().zip(taken) {
            let it = taken.unwrap_or_default();
            let name = tree
                .map_or("mu-star".into(), |(tree, layer)| format!("{} over {layer}", tree.name()));
            println!(
                "  {records} records, {name}: {:.1} s, {:.2} reads and {:.2} programs an update, \
                 {:.2} of them moves; height {}",
                it.seconds, it.reads, it.programs, it.moved, it.height
            );
        }
        let seconds = |it: usize| taken[it].map_or(f64::NAN, |it| it.seconds);
        for (place, gains) in gains.iter_mut().enumerate() {
            gains.push(seconds(place) / seconds(BESIDE.len()));
        }
    }
    for ((tree, layer, published), gains) in BESIDE.iter().zip(&gains) {
        tell(&mut claims, (*tree, layer), *published, gains);
    }
    claims.end();
}

/// Tells of what mu* is measured beside how often as fast mu* is.
fn tell(claims: &mut Claims, (tree, layer): (Over, &str), published: Option<f64>, gains: &[f64]) {
    let name = tree.name();
    let most = gains.iter().copied().fold(0.0, f64::max);
    println!("  mu* is up to {most:.1} times as fast as {name} over {layer}");
    if let Some(published) = published {
        let what = format!("times as fast as {name} over {layer}, at most");
        if !claims.gain(&what, (published, most), published * MARGIN) {
            println!(
                "  cause: the units of a flush, of 60 nodes, share a page of 4 KiB; the gain is"
            );
            println!("  near what is published where each unit is written at once");
        }
    }
    if tree == Over::BftlUnbuffered {
        return;
    }
    let what = format!("mu* is ahead of {name} over {layer} at every size");
    let is_ahead = gains.iter().all(|gain| *gain > 1.0);
    if !claims.holds(&what, is_ahead) && tree == Over::BPlus {
        println!("  cause: the layer's table in memory says where pages are, beside the cache; so");
        println!("  an update writes its leaf alone there, and often not at once");
    }
}
