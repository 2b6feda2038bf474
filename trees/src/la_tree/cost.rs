//! What scanning and emptying a buffer cost (section 3), in nanoseconds: ADAPT decides by it.
//!
//! For a subtree of S nodes, L of them leaves, and a buffer of B entries, which take `w` bytes:
//!
//! ```text
//! scan            b_r B                              b_r = R_b + f
//! empty, inner    a_r S + (b_r + b_w) B
//! empty, leaves   a_r S + a_w (L + H + 8 B / F) + b_r B
//! ```
//!
//! `a_r`, `a_w` are reading and writing a node, `b_r`, `b_w` an entry of a buffer, H the height and
//! F the fanout. The fragmentation overhead f is what the fragments' fixed access costs add to
//! each entry: here it is not estimated but known, for every buffer's fragments are counted. So
//! `b_r B` is the fixed cost of the fragments and that of their bytes.
//!
//! B counts the entries in the pool as well, of which a scan reads nothing: where they are, others
//! have no room, and those are on flash. So ADAPT can be told what they will cost as a fragment
//! ([`scan_of_held`]), while anything leaves the pool. What is compared with the chip's meter
//! leaves them out.
//!
//! A lookup passes them one after the other, or the tags of some at a time, and with memory a
//! thousand times that of the paper that is what it spends its time on. So ADAPT is told what the
//! processor takes, too ([`search_of_held`]), where it is more than some microseconds: in the
//! paper's 128 KiB it never is.
//!
//! The rest is an upper bound: a node may be in the cache, a leaf may get no entry, and rebalancing
//! at `8 B / F` is the worst case of all a-b trees. [`Rates`] measures, as buffers are emptied, by
//! how much the bound is missed, and [`Basis::Measured`] applies that; [`Basis::Printed`] gives the
//! equations as they stand.

use device::{Cost, DiskCosts, Linear, NandCosts};

use super::layout::{FRAGMENT_HEADER_BYTES, PageShape};
use super::policy::Estimate;

pub(super) mod predict;

/// The pool is short of room if more than one in so many of the bytes that come leaves it.
pub(super) const SHORT_ABOVE: u64 = 64;

/// Observations after which older ones count half.
const WINDOW: u64 = 1 << 20;

/// Picoseconds in a nanosecond.
const PICO: u64 = 1000;

/// Entries in the pool that are searched in a few microseconds.
const SEARCHED_AT_ONCE: u32 = 1000;

/// What the processor takes for each entry beyond these, in nanoseconds: of its share of a piece
/// whose tags are compared, and where it is looked at by itself.
const TAG_SEARCH: u64 = 2;
const ENTRY_SEARCH: u64 = 4;

/// What the accesses of section 3 cost on a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct UnitCosts {
    /// Reading a node, in nanoseconds: `a_r`.
    pub(super) node_read: u64,
    /// Writing a node, in nanoseconds: `a_w`, its share of a page of nodes.
    pub(super) node_write: u64,
    /// The fixed part of reading a fragment, in nanoseconds.
    pub(super) fragment_read: u64,
    /// Reading a byte of a fragment, in picoseconds.
    pub(super) byte_read: u64,
    /// Writing a byte of a fragment, in picoseconds: its share of a full page.
    pub(super) byte_write: u64,
}

impl UnitCosts {
    /// Costs on raw flash (table 2 and the text below it).
    pub(super) fn on_nand(costs: &NandCosts, shape: &PageShape) -> Self {
        let page = costs.program.time.at(u64::from(shape.program_bytes()), 1);
        let read: Linear = costs.read.time;
        UnitCosts {
            node_read: read.at(u64::from(shape.node_bytes()), 1),
            node_write: page / u64::from(shape.nodes_per_page()),
            fragment_read: read.fixed + read.per_page,
            byte_read: read.per_byte_thousandths,
            byte_write: page * PICO / u64::from(shape.room()),
        }
    }

    /// Costs on a chip that does not tell them, in a ratio that is usual: reading 60 us and 10 ns a
    /// byte, programming 250 us and 10 ns a byte.
    pub(super) fn usual(shape: &PageShape) -> Self {
        let linear = |fixed| Cost {
            time: Linear { fixed, per_byte_thousandths: 10_000, per_page: 0 },
            energy: None,
        };
        let costs =
            NandCosts { read: linear(60_000), program: linear(250_000), erase: Cost::default() };
        Self::on_nand(&costs, shape)
    }

    /// The same where nodes have `used` bytes in use, and no others are read and written.
    pub(super) fn of_nodes(self, shape: &PageShape, used: u32) -> Self {
        let each = u64::from(used.min(shape.node_bytes()));
        UnitCosts {
            node_read: self.fragment_read + each * self.byte_read / PICO,
            node_write: self.node_write * each / u64::from(shape.node_bytes()),
            ..self
        }
    }

    /// What reading `nodes` nodes costs of which `saved` bytes are not read, in sixteenths of
    /// reading a whole one.
    pub(super) fn sixteenths(&self, nodes: u64, saved: u64) -> u32 {
        let cost = (nodes * self.node_read).saturating_sub(saved * self.byte_read / PICO);
        u32::try_from(16 * cost / self.node_read.max(1)).unwrap_or(u32::MAX)
    }

    /// Costs on a disk, whose nodes have the size of a page (section 6.4): nodes are read and
    /// written at random, pages of fragments count as written in sequence, as
    /// section 4.3 has them, and are read at random.
    pub(super) fn on_disk(costs: &DiskCosts, page_bytes: u32) -> Self {
        let bytes = u64::from(page_bytes);
        let read = costs.read.random.time.at(bytes, 1);
        UnitCosts {
            node_read: read,
            node_write: costs.write.random.time.at(bytes, 1),
            fragment_read: read,
            byte_read: 0,
            byte_write: costs.write.sequential.time.at(bytes, 1) * PICO / bytes,
        }
    }

    /// Costs on a disk that does not tell them, in ratios as SSDs have them: reading a page at
    /// random 100 us, writing one at random 300 us, in sequence 70 us.
    pub(super) fn usual_on_disk(page_bytes: u32) -> Self {
        UnitCosts {
            node_read: 100_000,
            node_write: 300_000,
            fragment_read: 100_000,
            byte_read: 0,
            byte_write: 70_000 * PICO / u64::from(page_bytes.max(1)),
        }
    }
}

/// The statistics of a buffer and the subtree below it (section 3, online statistics).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Subtree {
    /// S.
    pub(super) nodes: u32,
    /// L; 0 where the lowest nodes are no leaves.
    pub(super) leaves: u32,
    /// B, entries in the pool included.
    pub(super) entries: u32,
    /// Bytes of these entries.
    pub(super) bytes: u32,
    /// Fragments on flash.
    pub(super) fragments: u32,
    /// Bytes of the fragments, headers included.
    pub(super) stored_bytes: u32,
}

/// What equations and bounds need to know of the whole tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct TreeShape {
    /// H.
    pub(super) height: u32,
    /// F: entries that a leaf holds; where they vary in length, the shortest possible ones.
    pub(super) fanout: u32,
}

/// Which estimate of emptying is wanted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Basis {
    /// The equations as printed.
    Printed,
    /// What was measured since the tree was opened, in the form of the equations.
    #[default]
    Measured,
}

/// What emptying a buffer did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Emptied {
    /// The subtree as it was before.
    pub(super) before: Subtree,
    /// Nodes that were read from flash, not from the cache, in sixteenths: only what is in use of
    /// one is read.
    pub(super) nodes_read: u32,
    /// Leaves of those before that were changed.
    pub(super) leaves_changed: u32,
    /// Further nodes that were changed or made: by splits, merges and redistributions.
    pub(super) rebalanced: u32,
}

/// A ratio that is measured online; what is long ago counts less.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Ratio {
    sum: u64,
    of: u64,
}

impl Ratio {
    /// Adds `sum` among `of` to what was measured.
    pub(super) fn add(&mut self, sum: u64, of: u64) {
        self.sum = self.sum.saturating_add(sum);
        self.of = self.of.saturating_add(of);
        while self.of > WINDOW {
            self.sum = self.sum.div_ceil(2);
            self.of /= 2;
        }
    }

    /// `number` times the ratio; `number` itself if nothing was measured yet.
    pub(super) fn times(&self, number: u64) -> u64 {
        self.measured(number).unwrap_or(number)
    }

    fn measured(&self, number: u64) -> Option<u64> {
        let product = u128::from(number) * u128::from(self.sum);
        u64::try_from(product.checked_div(u128::from(self.of))?).ok()
    }
}

/// How far emptying stays below the equations.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Rates {
    /// Nodes read from flash, of the S of inner subtrees.
    inner_reads: Ratio,
    /// Nodes read from flash, of the S of leaf subtrees.
    leaf_reads: Ratio,
    /// Leaves changed, of the L.
    leaves_changed: Ratio,
    /// Nodes rebalanced, of the entries B: the printed bound is 8 / F, and H besides.
    rebalanced: Ratio,
    /// Nodes written, of those changed: several changes may meet in the cache.
    pub(super) written: Ratio,
    /// Bytes of pages of fragments, of the bytes of entries that came: some are emptied before they
    /// leave the pool.
    pub(super) stored: Ratio,
}

impl Rates {
    /// Learns from a buffer that was emptied.
    pub(super) fn observe(&mut self, emptied: &Emptied) {
        let before = &emptied.before;
        let reads = if before.leaves > 0 { &mut self.leaf_reads } else { &mut self.inner_reads };
        reads.add(u64::from(emptied.nodes_read), 16 * u64::from(before.nodes));
        if before.leaves > 0 {
            self.leaves_changed.add(u64::from(emptied.leaves_changed), u64::from(before.leaves));
            self.rebalanced.add(u64::from(emptied.rebalanced), u64::from(before.entries));
        }
    }

    /// What rebalanced nodes cost for `entries` entries, at `each` a node: as measured, or the
    /// printed bound before that.
    fn rebalanced(&self, entries: u32, tree: TreeShape, each: u64) -> u64 {
        let measured = self.rebalanced.measured(u64::from(entries) * each);
        measured.unwrap_or_else(|| rebalanced_most(entries, tree) * each)
    }
}

/// The printed bound on node rebalancing operations: `H + 8 B / F`.
pub(super) fn rebalanced_most(entries: u32, tree: TreeShape) -> u64 {
    let each = (8 * u64::from(entries)).div_ceil(u64::from(tree.fanout.max(1)));
    u64::from(tree.height) + each
}

/// Scanning the buffer: `b_r B`. Nothing else is estimated, so this is exact.
pub(super) fn scan(units: &UnitCosts, subtree: &Subtree) -> u64 {
    let fixed = u64::from(subtree.fragments) * units.fragment_read;
    fixed + u64::from(subtree.stored_bytes) * units.byte_read / PICO
}

/// Scanning what a buffer has in the pool, `bytes` bytes as a stream, once it is a fragment on
/// flash.
pub(super) fn scan_of_held(units: &UnitCosts, bytes: usize) -> u64 {
    let bytes = (FRAGMENT_HEADER_BYTES + bytes) as u64;
    units.fragment_read + bytes * units.byte_read / PICO
}

/// What the processor takes to pass so many entries in the pool, by their tags or each by itself:
/// nothing where that is little beside any access to flash.
pub(super) fn search_of_held(entries: u32, by_tags: bool) -> u64 {
    let each = if by_tags { TAG_SEARCH } else { ENTRY_SEARCH };
    u64::from(entries.saturating_sub(SEARCHED_AT_ONCE)) * each
}

/// The estimator of a tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Estimator {
    pub(super) units: UnitCosts,
    pub(super) basis: Basis,
    pub(super) rates: Rates,
}

impl Estimator {
    pub(super) fn new(units: UnitCosts, basis: Basis) -> Self {
        Estimator { units, basis, rates: Rates::default() }
    }

    /// Both costs of a buffer, for ADAPT.
    pub(super) fn estimate(&self, subtree: &Subtree, tree: TreeShape) -> Estimate {
        let scan = scan(&self.units, subtree);
        Estimate { scan, emptying: scan + self.below(subtree, tree) }
    }

    /// Both costs as the printed equations have them.
    pub(super) fn printed(&self, subtree: &Subtree, tree: TreeShape) -> Estimate {
        Estimator { basis: Basis::Printed, ..*self }.estimate(subtree, tree)
    }

    /// Writing entries of `bytes` bytes in a buffer: `b_w`.
    pub(super) fn entries(&self, bytes: u32) -> u64 {
        self.entry_writes(&Subtree { bytes, ..Subtree::default() })
    }

    /// What emptying costs besides the scan.
    fn below(&self, subtree: &Subtree, tree: TreeShape) -> u64 {
        let leaf = subtree.leaves > 0;
        // Ratios are applied to costs, not to small counts, which would be cut to whole numbers.
        let nodes = u64::from(subtree.nodes) * self.units.node_read;
        let reads = match (self.basis, leaf) {
            (Basis::Printed, _) => nodes,
            (Basis::Measured, true) => self.rates.leaf_reads.times(nodes),
            (Basis::Measured, false) => self.rates.inner_reads.times(nodes),
        };
        let writes =
            if leaf { self.leaf_writes(subtree, tree) } else { self.entry_writes(subtree) };
        reads + writes
    }

    /// `a_w (L + H + 8 B / F)`.
    fn leaf_writes(&self, subtree: &Subtree, tree: TreeShape) -> u64 {
        let each = self.units.node_write;
        let leaves = u64::from(subtree.leaves) * each;
        match self.basis {
            Basis::Printed => leaves + rebalanced_most(subtree.entries, tree) * each,
            Basis::Measured => {
                let changed = self.rates.leaves_changed.times(leaves);
                let rebalanced = self.rates.rebalanced(subtree.entries, tree, each);
                self.rates.written.times(changed + rebalanced)
            }
        }
    }

    /// `b_w B`.
    fn entry_writes(&self, subtree: &Subtree) -> u64 {
        let bytes = match self.basis {
            Basis::Printed => u64::from(subtree.bytes),
            Basis::Measured => self.rates.stored.times(u64::from(subtree.bytes)),
        };
        bytes * self.units.byte_write / PICO
    }
}

#[cfg(test)]
mod tests;
