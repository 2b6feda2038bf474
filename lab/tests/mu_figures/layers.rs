//! Figure 19: mu*-Tree on raw flash beside a tree over a translation layer.
//!
//! BFTL is not built. In its place stands the B+-tree that rewrites its nodes in place, with a
//! cache of the same size; so what is published of BFTL is no claim that could hold or fail here.

use device::Medium;
use index::EntryShape;
use index::parameters::Settings;
use index::{MediumShape, Options};
use sim::SimulatedNand;
use trees::find;

use super::claims::Claims;
use super::stage::Stage;
use super::work::{Keys, Taken, Work, each, run_on, run_work};

const CHIP: u64 = 16 << 20;

/// Bytes of cache.
const CACHE: u64 = 128 << 10;

const TREES: [&str; 3] = ["dac", "fast", "mu-star"];

/// The B+-tree over a layer as it comes, on the same chip.
fn over(layer: &str, work: &Work) -> Option<Taken> {
    let chip = Stage::paper("b-plus", CHIP).chip();
    let nand = SimulatedNand::new(chip.geometry, chip.costs);
    let layer = ftl::find(layer).unwrap();
    let disk = (layer.create)(Box::new(nand), &ftl::Options::default()).unwrap();
    let entry = find("b-plus").unwrap();
    let settings = Settings::parse(entry.name, entry.parameters, []).unwrap();
    let mut options = Options::new(EntryShape::fixed(4, 4), 0, settings);
    let shape = MediumShape::Sectors(disk.geometry());
    options.memory_bytes = entry.least_memory(&options, shape).unwrap() + CACHE;
    let mut index = (entry.create)(Medium::Sectors(Box::new(disk)), &options).unwrap();
    run_on(&mut *index, work, 1)
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
    let tasks: Vec<_> = sizes.iter().flat_map(|size| TREES.map(|tree| (*size, tree))).collect();
    let taken = each(&tasks, |(records, tree)| {
        let work = Work { records: *records, lookups: 0, updates, keys: Keys::Random };
        if *tree == "mu-star" { on_raw_flash(&work) } else { over(tree, &work) }
    });
    let mut ahead = [Vec::new(), Vec::new()];
    for (records, taken) in sizes.iter().zip(taken.chunks(TREES.len())) {
        let seconds = |it: usize| taken[it].map_or(f64::NAN, |it| it.seconds);
        for (place, tree) in TREES.iter().enumerate() {
            let it = taken[place].unwrap_or_default();
            let name = if place < 2 { "b-plus over " } else { "" };
            println!(
                "  {records} records, {name}{tree}: {:.1} s, {:.2} reads and {:.2} programs an \
                 update; height {}",
                seconds(place),
                it.reads,
                it.programs,
                it.height
            );
        }
        for (place, all) in ahead.iter_mut().enumerate() {
            all.push(seconds(place) / seconds(2));
        }
    }
    for (layer, all) in TREES.iter().zip(&ahead) {
        let most = all.iter().copied().fold(0.0, f64::max);
        println!("  mu* is up to {most:.1} times as fast as the B+-tree over {layer}");
        let what = format!("mu* is ahead of the B+-tree over {layer} at every size");
        if !claims.holds(&what, all.iter().all(|it| *it > 1.0)) {
            println!(
                "  cause: the layer's table in memory says where pages are, beside the cache; so"
            );
            println!("  an update writes its leaf alone there, and often not at once");
        }
    }
    claims.end();
}
