//! What a workload of random keys costs the trees that copy their paths, as they are built.
//!
//! The analysis of the mu*-Tree paper takes nodes to be full and victims to be drawn at random. A
//! prediction has to be nearer to the tree:
//!
//! - Nodes are about 69 % full (ln 2, where random inserts settle), and the leaf's share is the
//!   largest with which the root is not full, as the adaptive layout leaves it.
//! - Blocks are reclaimed in turn, so a page is reclaimed when all of the others have been written
//!   since. Of `e` pages, `L` of them live, with `w` updates between, a page still lives with
//!   the chance `(1 - 1/L)^w`; each one that lives is one write more, so `w = e (1 - P)` and
//!
//!   ```text
//!   P = exp(-e (1 - P) / L)
//!   ```
//!
//!   where equation 8 has `P = L / e`. A leaf for which updates wait is rewritten more regularly,
//!   so fewer of them live when their turn comes ([`waiting`]). Where a node has a page to itself,
//!   each level has its own `L` and `P`. A node is rewritten with each update below it, and once a
//!   victim with all that is moved below it: of `n` nodes, `n (1 - (1 - 1/n)^m)` with `m` moves at
//!   random.
//! - What is not known to be dead is read, with the path to where it would be: where there is no
//!   memory for the table of live pages, each page that is reclaimed costs that.
//! - For a node cache of `c` bytes, the approximation of Che, Tung and Wang (Hierarchical web
//!   caching systems, 2002) over nodes of different sizes: with `n_l` nodes of `b_l` bytes on level
//!   `l`, each used alike, a node stays `t` operations after its last use, where
//!
//!   ```text
//!   c = sum over l of n_l b_l (1 - m_l)        a node is missing with m_l = (1 - 1 / n_l)^t
//!   ```
//!
//!   over the inner nodes alone, and where all of them fit, over the leaves in what they leave.
//!
//! - The operation buffer absorbs what hits one of its keys, and the path of what goes to the tree
//!   together is read and written once ([`waiting`]).
//!
//! Journals and checkpoints are not in it.

use device::Geometry;
use store::Width;
use store::node::HEADER_BYTES as NODE_HEADER_BYTES;

use super::layout::{CHILD_BYTES, Division, HEIGHT_MOST, Layout, Pages};
use super::make::{Choice, Shares, policy};
use super::node_cache::{ROOM_BYTES, TABLES_BYTES};
use super::path_nodes::places;
use super::policy::Policy;
use super::room::Room;
use index::Result;
use index::random_keys::{OCCUPANCY, last_that_holds, missing, touched};
use index::{Options, Prediction, Profile};
use waiting::Waiting;

mod waiting;

/// Blocks that the page log keeps back for records of checkpoints.
const RECORD_BLOCKS: f64 = 2.0;

/// By level, the leaves first.
type ByLevel = [f64; HEIGHT_MOST as usize];

/// What `profile` costs the tree that `choice` and `options` describe.
pub(crate) fn predict(
    choice: &Choice,
    profile: &Profile,
    options: &Options,
    chip: Geometry,
) -> Result<Prediction> {
    let policy = policy(choice.division, choice.bounds, (chip, options.shape))?;
    let levels = levels(&policy, profile.entries)?;
    levels.check_room(&policy, chip)?;
    let shares = Shares::on(chip, choice, &policy, options);
    let missing = levels.missing(shares.cache as f64, chip);
    let missing_from = |level: usize| -> f64 { missing.iter().skip(level).sum() };

    let waiting = Waiting::of(choice, &policy, &levels, (shares.buffer, chip));
    let passed = 1.0 - waiting.absorbed(profile.entries);
    let updates = passed * (profile.inserts + profile.overwrites + profile.deletes)
        / waiting.together(levels.nodes[0]);
    let splits = passed * profile.inserts / levels.entries_per_leaf();
    let circling = circling_pages(&policy, &levels, (chip, choice.collect));
    let regular = waiting.regular(levels.nodes[0]);
    let round = Round::of(&levels, regular, (circling, chip.pages_per_block().into()));
    let rounds = (updates + splits) / round.updates;
    let is_walk = levels.layout.division == Division::Whole && shares.live > 0;
    let (mut reads, mut writes) = (0.0, 0.0);
    for (level, missed) in missing.iter().enumerate().take(levels.layout.height.into()) {
        let moved = rounds * round.moved[level];
        let looked_at = if shares.live > 0 { moved } else { rounds * round.written[level] };
        // What is moved is read from its page, which nobody used for long.
        reads += looked_at;
        reads += match is_walk {
            true => rounds * round.shared[level] * missed,
            false => looked_at * missing_from(level + 1),
        };
        writes += moved + rounds * round.shared[level];
    }
    Ok(Prediction {
        page_reads: (passed * profile.lookups + updates) * missing_from(0) + reads,
        page_writes: updates * levels.pages_from(0) + splits + writes,
        height: u32::from(levels.layout.height),
    })
}

/// Nodes of each level.
struct Levels {
    layout: Layout,
    nodes: ByLevel,
    /// What a node takes in the cache beside its tables.
    bytes: ByLevel,
    entries: f64,
}

impl Levels {
    /// Nodes of each level and the bytes of one.
    fn iter(&self) -> impl Iterator<Item = (f64, f64)> {
        let height = usize::from(self.layout.height);
        self.nodes.iter().copied().zip(self.bytes.iter().copied()).take(height)
    }

    /// Refuses a tree for which `chip` has no room.
    fn check_room(&self, policy: &Policy, chip: Geometry) -> Result<()> {
        let room = room_on(policy, self.layout.height, chip);
        let (leaves, inner) = (self.nodes[0] as u64, self.inner() as u64);
        match room.fits(leaves.saturating_add(inner), inner) {
            true => Ok(()),
            false => Err(store::Error::Full { pages: room.pages() }.into()),
        }
    }

    fn entries_per_leaf(&self) -> f64 {
        self.entries / self.nodes[0]
    }

    /// Nodes above the leaves.
    fn inner(&self) -> f64 {
        self.iter().skip(1).map(|(nodes, _)| nodes).sum()
    }

    /// Pages that live.
    fn live(&self) -> f64 {
        match self.layout.division {
            Division::Whole => self.iter().map(|(nodes, _)| nodes).sum(),
            Division::Halves | Division::Even => self.nodes[0],
        }
    }

    /// Pages that are written when a node of `level` is.
    fn pages_from(&self, level: usize) -> f64 {
        match self.layout.division {
            Division::Whole => f64::from(self.layout.height) - level as f64,
            Division::Halves | Division::Even => 1.0,
        }
    }

    /// The chance for each level that its node is not in a cache of `bytes` bytes, which is full
    /// when its arena is, or its tables.
    fn missing(&self, bytes: f64, chip: Geometry) -> ByLevel {
        let page_bytes = chip.page_bytes() as usize;
        let most = places(bytes as usize, page_bytes, self.layout.division) as f64;
        let arena = bytes - most * TABLES_BYTES as f64;
        let missing_after = |leaves: f64, inner: f64| -> ByLevel {
            let mut all = [0.0; HEIGHT_MOST as usize];
            for (level, (nodes, _)) in self.iter().enumerate() {
                all[level] = missing(if level == 0 { leaves } else { inner }, nodes);
            }
            all
        };
        let fits = |leaves: f64, inner: f64| -> bool {
            let absent = missing_after(leaves, inner);
            let held = self.iter().zip(absent).fold((0.0, 0.0), |all, ((nodes, bytes), absent)| {
                let held = nodes * (1.0 - absent);
                (all.0 + held, all.1 + held * bytes)
            });
            held.0 < most && held.1 < arena
        };
        let long = 64.0 * self.iter().map(|(nodes, _)| nodes).sum::<f64>();
        if !fits(0.0, f64::INFINITY) {
            return missing_after(0.0, last_that_holds(0.0, long, |inner| fits(0.0, inner)));
        }
        if fits(f64::INFINITY, f64::INFINITY) {
            return missing_after(f64::INFINITY, f64::INFINITY);
        }
        let leaves = last_that_holds(0.0, long, |leaves| fits(leaves, f64::INFINITY));
        missing_after(leaves, f64::INFINITY)
    }
}

/// The tree that holds `entries` entries, put in random order.
fn levels(policy: &Policy, entries: u64) -> Result<Levels> {
    let heights = 1..=policy.height_most();
    let mut fitting = heights.filter_map(|height| largest_fitting(policy, entries as f64, height));
    fitting.next().ok_or_else(|| policy.tree_full())
}

/// The tree of this height with the largest leaves, if one holds so many entries.
fn largest_fitting(policy: &Policy, entries: f64, height: u8) -> Option<Levels> {
    policy.leaves(height).find_map(|leaf| {
        let layout = policy.pages().layout(leaf, height);
        tree(policy.pages(), layout, entries)
    })
}

/// The tree of this layout, if it holds so many entries.
fn tree(pages: &Pages, layout: Layout, entries: f64) -> Option<Levels> {
    let all = [1.0; HEIGHT_MOST as usize];
    let mut levels = Levels { layout, nodes: all, bytes: all, entries };
    let mut below = entries;
    for level in 0..layout.height {
        let place = usize::from(level);
        let capacity = pages.capacity(&layout, level) as f64;
        let is_root = level + 1 == layout.height;
        if is_root && below > capacity {
            return None;
        }
        let held = if is_root { below } else { capacity * OCCUPANCY };
        levels.bytes[place] = cached_bytes(pages, &layout, level, held)?;
        if !is_root {
            below = (below / held).max(1.0);
            levels.nodes[place] = below;
        }
    }
    Some(levels)
}

/// What a node of so many entries takes in the cache beside its tables: what is kept of it.
fn cached_bytes(pages: &Pages, layout: &Layout, level: u8, entries: f64) -> Option<f64> {
    let value = if level == 0 { pages.shape.value } else { Width::Fixed(CHILD_BYTES) };
    let kept = match (pages.shape.key, value) {
        (Width::Fixed(key), Width::Fixed(value)) => {
            NODE_HEADER_BYTES as f64 + entries * (f64::from(key) + f64::from(value))
        }
        _ => f64::from(pages.part(layout, level)?.bytes),
    };
    Some(kept + ROOM_BYTES as f64)
}

/// What a tree of so many levels takes on `chip`, if no block of it is bad.
fn room_on<'p>(policy: &'p Policy, height: u8, chip: Geometry) -> Room<'p> {
    Room::of(policy, height, chip, (chip.blocks(), RECORD_BLOCKS as u32))
}

/// Pages that hold something, be it dead, once collection has begun: all but those of the page
/// log, and those that collection keeps free. Where it has no room to go in turn, it empties the
/// emptiest blocks, which is taken for the same.
fn circling_pages(policy: &Policy, levels: &Levels, (chip, collect): (Geometry, f64)) -> f64 {
    let room = room_on(policy, levels.layout.height, chip);
    let needed = room.reserve_pages(levels.inner() as u64);
    let wanted = room.free_wanted(collect, (levels.live() as u64, needed));
    let free = if wanted < needed + room.pages_to_collect() { needed } else { wanted };
    let block = f64::from(chip.pages_per_block());
    f64::from(chip.pages()) - RECORD_BLOCKS * block - free as f64 - block / 2.0
}

/// What is written while every page of the chip is reclaimed once.
struct Round {
    /// Updates.
    updates: f64,
    /// Pages by the level of their lowest node.
    written: ByLevel,
    /// Those of them that lived when their turn came.
    moved: ByLevel,
    /// Those that were written for what was moved below them.
    shared: ByLevel,
}

impl Round {
    /// A round over `pages` pages, in blocks of `block`. Of the time between two changes of a leaf
    /// the part `regular` always passes.
    fn of(levels: &Levels, regular: f64, (pages, block): (f64, f64)) -> Self {
        // A tree that fills the chip would move for ever; it refuses puts before.
        const LEAST: f64 = 0.02;
        let with = |updates| Round::with(levels, regular, (updates, pages / block));
        let written = |updates| with(updates).written.iter().sum::<f64>();
        with(last_that_holds(LEAST * pages, pages, |updates| written(updates) < pages))
    }

    /// A round of so many updates and victims.
    fn with(levels: &Levels, regular: f64, (updates, victims): (f64, f64)) -> Self {
        let nothing = [0.0; HEIGHT_MOST as usize];
        let mut round = Round { updates, written: nothing, moved: nothing, shared: nothing };
        // Nodes of the level below that were written to free victims.
        let mut below = 0.0;
        for (level, (nodes, _)) in levels.iter().enumerate() {
            if level > 0 && levels.layout.division != Division::Whole {
                // They stand in the leaves' pages.
                break;
            }
            round.shared[level] = victims * touched(nodes, below / victims);
            let rewritten = updates + round.shared[level];
            let regular = if level == 0 { regular } else { 0.0 };
            // In a round a node is rewritten so many times. One that was moved lives on at random.
            let times = rewritten / nodes;
            let lives = |times: f64| libm::exp(-times.max(0.0) / (1.0 - regular));
            round.moved[level] = rewritten * lives(times - regular) / (1.0 - lives(times));
            below = round.shared[level] + round.moved[level];
            round.written[level] = updates + below;
        }
        round
    }
}

#[cfg(test)]
mod tests;
