use alloc::boxed::Box;

use device::{Geometry, NandCosts};
use index::parameters::Settings;
use index::{Error, Options};
use sim::SimulatedNand;
use store::{EntryShape, PageLog, PageLogOptions};

use super::{FRAMES_LEAST, Sharing, WINDOW};
use crate::la_tree::bare_tree::BareTree;
use crate::la_tree::buffers::Buffers;
use crate::la_tree::cost::UnitCosts;
use crate::la_tree::nodes::Nodes;
use crate::la_tree::plan::{PARAMETERS, Plan, choices};
use crate::la_tree::storage::Storage;
use crate::la_tree::stream::Form;

/// What shares memory, on a chip.
struct Parts {
    bare: BareTree<'static>,
    buffers: Buffers,
    sharing: Sharing,
    units: UnitCosts,
    shared: u64,
}

fn parts(share: &str) -> Parts {
    let geometry = Geometry::new(2048, 64, 64).unwrap();
    let settings = Settings::parse("la-tree", PARAMETERS, [("share", share)]).unwrap();
    let options = Options::new(EntryShape::fixed(4, 4), 96 << 10, settings);
    let chosen = choices(&options, geometry).unwrap();
    let plan = Plan::new(&options, options.shape, chosen, geometry).unwrap();
    let chip = Box::new(SimulatedNand::new(geometry, NandCosts::default()));
    let log = Storage::Chip(PageLog::create(chip, &PageLogOptions::default()).unwrap());
    let units = UnitCosts::usual(&plan.pages);
    let nodes = Nodes::new(plan.shape, plan.pages, plan.cache, plan.chunks).unwrap();
    let buffers = Buffers::new(Form::new(plan.shape), plan.pages, &plan.sizes);
    let mut bare = BareTree::new(log, nodes, plan.levels_a_buffer, plan.entry_most);
    bare.plant().unwrap();
    let shared = plan.shared_bytes.unwrap_or(0);
    Parts { bare, buffers, sharing: Sharing::new(&plan), units, shared }
}

impl Parts {
    fn taken(&self) -> u64 {
        self.buffers.pool.memory_bytes() + self.bare.nodes.cache.memory_bytes()
    }

    /// A window in which so many nodes were found in the tail, and so many fragments read.
    fn window(&mut self, tail_hits: u64, fragments: u64) {
        assert!(!self.sharing.is_due(&self.bare.nodes, &self.buffers), "the window begins");
        self.bare.nodes.cache.tail_hits += tail_hits;
        self.buffers.counters.fetched += fragments;
        self.bare.nodes.reads.lookup[0] += WINDOW - fragments;
        assert!(self.sharing.is_due(&self.bare.nodes, &self.buffers), "the window is over");
        self.sharing.share(&self.units, &mut self.bare, &mut self.buffers).unwrap();
        assert!(self.taken() <= self.shared, "{} bytes of {}", self.taken(), self.shared);
    }
}

#[test]
fn memory_goes_to_what_saves_more_and_both_keep_what_they_work_with() {
    let mut parts = parts("shared");
    let (pool, frames) = (parts.buffers.pool.memory_bytes(), parts.bare.nodes.cache.frames());
    parts.sharing.pool_least = pool / 2;
    for _ in 0..200 {
        parts.window(400, 0);
    }
    assert!(parts.bare.nodes.cache.frames() > frames && parts.buffers.pool.memory_bytes() < pool);
    assert!(parts.buffers.pool.memory_bytes() >= parts.sharing.pool_least);
    let moved = parts.sharing.moved;
    assert!(moved[0] > 0 && moved[1] == 0, "{moved:?}");
    for _ in 0..200 {
        parts.window(0, 400);
    }
    assert!(parts.buffers.pool.memory_bytes() > pool, "it gets back what it lent, and more");
    assert!(parts.bare.nodes.cache.frames() >= FRAMES_LEAST as usize);
    assert!(parts.sharing.moved[1] > 0 && parts.sharing.moved[0] == moved[0]);
}

#[test]
fn memory_that_saves_about_the_same_stays_where_it_is() {
    let mut parts = parts("shared");
    // No fragment and nothing in the tail: neither would save anything.
    for _ in 0..20 {
        parts.window(0, 0);
    }
    assert_eq!(parts.sharing.moved, [0; 2]);
}

#[test]
fn memory_that_is_not_shared_never_moves() {
    let mut parts = parts("fixed");
    parts.bare.nodes.cache.tail_hits += 400;
    parts.bare.nodes.reads.lookup[0] += 10 * WINDOW;
    assert!(!parts.sharing.is_due(&parts.bare.nodes, &parts.buffers));
}

#[test]
fn tables_get_what_pool_and_cache_can_spare_and_no_more() {
    let mut parts = parts("shared");
    let Parts { bare, buffers, sharing, .. } = &mut parts;
    sharing.tables = Some(1000);
    let mut most = 1000;
    while sharing.check_tables(most + 1, &bare.nodes, buffers).is_ok() {
        most += 1;
    }
    assert!(most > 20_000, "{most} bytes for tables, of 96 KiB in all");
    let refused = sharing.check_tables(most + 1, &bare.nodes, buffers);
    let Err(Error::Store(store::Error::LittleTables { have, need })) = refused else {
        panic!("{refused:?}");
    };
    assert_eq!((have, need), (most, most + 1));

    sharing.lend_to_tables(most, bare, buffers).unwrap();
    assert_eq!(sharing.tables, Some(most));
    let left = sharing.shared.unwrap();
    assert_eq!(left, parts.shared - (most - 1000), "what tables have is shared no more");
    assert!(parts.taken() <= left);
    assert!(parts.bare.nodes.cache.frames() >= FRAMES_LEAST as usize);
    assert!(parts.buffers.pool.memory_bytes() >= parts.sharing.pool_least);
}
