//! The cells: every tree of the registry, on everything that it can stand on.

use std::fmt;

use index::parameters::Settings;
use index::{DeletePolicy, Options, TreeDescriptor};
use index::{Durability, Width};
use sim::Unflushed;

use super::witness::{EMPTIED, GENERATIONS, MERGES};
use crate::tree::{SHAPES, Shape, other_waiting, parameter_sets};

/// What a tree stands on.
#[derive(Clone, Copy)]
pub enum Stand {
    /// A simulated chip.
    Nand {
        /// True if its pages have a spare area.
        spare: bool,
        /// True if it takes parts of a page, one after the other.
        parts: bool,
    },
    /// A translation layer over a simulated chip.
    Ftl {
        /// The layer.
        entry: &'static ftl::Entry,
        /// True if the chip's pages have a spare area.
        spare: bool,
    },
    /// A simulated disk.
    Disk(Loss),
    /// A real file. What was not flushed is kept back, so that a cut can lose it.
    File,
}

/// What a disk does at a cut with what was not flushed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Loss {
    /// It loses everything.
    Lost,
    /// It keeps everything.
    Kept,
    /// It keeps some sectors, whole.
    Mixed,
    /// It keeps some sectors and tears some.
    Torn,
}

impl Loss {
    const ALL: [Loss; 4] = [Loss::Lost, Loss::Kept, Loss::Mixed, Loss::Torn];

    const fn name(self) -> &'static str {
        match self {
            Loss::Lost => "disk-lost",
            Loss::Kept => "disk-kept",
            Loss::Mixed => "disk-mixed",
            Loss::Torn => "disk-torn",
        }
    }

    /// What becomes of unflushed sectors, and whether they stay whole. A sector that is being
    /// written at the cut may be torn in any case, unless all stay whole.
    pub(super) const fn fates(self) -> (Unflushed, bool) {
        match self {
            Loss::Lost => (Unflushed::Lost, false),
            Loss::Kept => (Unflushed::Kept, false),
            Loss::Mixed => (Unflushed::Mixed, true),
            Loss::Torn => (Unflushed::Mixed, false),
        }
    }
}

impl Stand {
    /// Everything that a tree can stand on.
    fn all() -> Vec<Stand> {
        let mut all = Vec::new();
        for spare in [true, false] {
            all.extend([false, true].map(|parts| Stand::Nand { spare, parts }));
            all.extend(ftl::FTLS.iter().map(|entry| Stand::Ftl { entry, spare }));
        }
        all.extend(Loss::ALL.map(Stand::Disk));
        all.push(Stand::File);
        all
    }

    fn carries(&self, entry: &TreeDescriptor) -> bool {
        match self {
            // Only this one programs parts of pages.
            Stand::Nand { parts, .. } => entry.nand && (!parts || entry.name == "ipl"),
            _ => entry.sectors,
        }
    }

    /// True if blocks are erased below.
    pub(super) const fn is_chip(&self) -> bool {
        matches!(self, Stand::Nand { .. } | Stand::Ftl { .. })
    }
}

impl fmt::Display for Stand {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (name, spare) = match self {
            Stand::Nand { spare, parts: false } => ("nand", *spare),
            Stand::Nand { spare, parts: true } => ("nand-parts", *spare),
            Stand::Ftl { entry, spare } => (entry.name, *spare),
            Stand::Disk(loss) => (loss.name(), false),
            Stand::File => ("file", false),
        };
        write!(f, "{name}{}", if spare { "+spare" } else { "" })
    }
}

/// A tree with its parameters, what it stands on, how much of it lasts, and the shapes of its
/// pages and entries.
#[derive(Clone)]
pub struct Cell {
    /// The tree.
    pub entry: &'static TreeDescriptor,
    /// Parameters of the tree, as text.
    pub parameters: Vec<(&'static str, String)>,
    /// What the tree stands on.
    pub stand: Stand,
    /// Bytes in a page of the chip, or in a sector of the disk.
    pub page_bytes: u32,
    /// The shape of the entries.
    pub shape: Shape,
    /// How much lasts.
    pub durability: Durability,
    /// A deliberate mistake, which has to be found. No part of the cell's name.
    #[cfg(feature = "canaries")]
    pub canary: Option<store::Canary>,
}

/// The sizes of pages that cells have.
const PAGE_BYTES: [u32; 3] = [512, 2048, 4096];

/// All cells of `entry`.
#[must_use]
pub fn cells_of(entry: &'static TreeDescriptor) -> Vec<Cell> {
    let mut cells = Vec::new();
    for stand in Stand::all().into_iter().filter(|stand| stand.carries(entry)) {
        for page_bytes in PAGE_BYTES {
            let on_nand = matches!(stand, Stand::Nand { .. });
            let mut sets = parameter_sets(entry, page_bytes, on_nand);
            sets.extend(other_waiting(entry, on_nand).map(|waiting| vec![waiting]));
            for parameters in sets {
                for shape in SHAPES {
                    for durability in &Durability::ALL[1..] {
                        cells.push(Cell {
                            entry,
                            parameters: parameters.clone(),
                            stand,
                            page_bytes,
                            shape,
                            durability: *durability,
                            #[cfg(feature = "canaries")]
                            canary: None,
                        });
                    }
                }
            }
        }
    }
    cells
}

/// All cells of `trees`.
#[must_use]
pub fn cells(trees: &[&'static TreeDescriptor]) -> Vec<Cell> {
    trees.iter().flat_map(|entry| cells_of(entry)).collect()
}

/// The cell of one of `trees` that is called `name`.
#[must_use]
pub fn find_cell(trees: &[&'static TreeDescriptor], name: &str) -> Option<Cell> {
    let tree = name.split([':', '/']).next()?;
    let entry = trees.iter().copied().find(|entry| entry.name == tree)?;
    cells_of(entry).into_iter().find(|cell| cell.to_string() == name)
}

impl fmt::Display for Cell {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Cell { entry, parameters, stand, page_bytes, shape, durability, .. } = self;
        f.write_str(entry.name)?;
        for (place, (name, value)) in parameters.iter().enumerate() {
            write!(f, "{}{name}={value}", if place == 0 { ':' } else { ',' })?;
        }
        write!(f, "/{stand}/{page_bytes}/{}/{durability}", shape.name)
    }
}

impl Cell {
    /// Bytes in a node, or in a page if the tree does not say.
    pub(super) fn node_bytes(&self) -> u32 {
        let node = self.parameters.iter().find(|(name, _)| *name == "node");
        node.and_then(|(_, bytes)| bytes.parse().ok()).unwrap_or(self.page_bytes)
    }

    /// Bytes of a usual entry.
    pub(super) fn entry_bytes(&self) -> u32 {
        match (self.shape.shape.key, self.shape.shape.value) {
            (Width::Fixed(key), Width::Fixed(value)) => u32::from(key) + u32::from(value),
            // With a short value, most times.
            _ => (self.node_bytes() / 12).clamp(16, 48),
        }
    }

    /// Bytes of the smallest node: on raw flash the nodes of a whole path may share a page.
    pub(super) fn least_node_bytes(&self) -> u32 {
        match self.stand {
            Stand::Nand { .. } => self.node_bytes() / 2 - 32,
            Stand::Ftl { .. } | Stand::Disk(_) | Stand::File => self.node_bytes(),
        }
    }

    /// Keys that the histories of this cell use: enough for a few nodes.
    pub(super) fn keys(&self) -> u32 {
        // A path of keys of any length that shares a page of 512 bytes leads to few leaves.
        if matches!(self.stand, Stand::Nand { .. })
            && self.page_bytes < 2048
            && self.shape.shape.key == Width::Variable
        {
            return 24;
        }
        (self.node_bytes() / self.entry_bytes() * 3).clamp(120, 1500)
    }

    /// Keys side by side that a batch changes at most.
    pub(super) fn neighbours_most(&self) -> u32 {
        (self.node_bytes() / self.entry_bytes() * 3 / 2).clamp(4, 96)
    }

    /// Bytes of a value for which a tree needs more than one page that names others, where nodes
    /// are so small that such a value fits into the journal.
    pub(super) fn longest_value(&self) -> u32 {
        let bytes = u64::from(self.node_bytes());
        let names = bytes / 4;
        (names * bytes * 5 / 4).min(self.journal_bytes() * 3 / 4) as u32
    }

    /// Bytes of the journal.
    pub(super) fn journal_bytes(&self) -> u64 {
        u64::from(self.page_bytes).max(1024) * 8
    }

    /// What histories of this cell can't contain: see [`Witness::lacks`](super::Witness::lacks).
    pub(super) fn impossible(&self) -> Vec<&'static str> {
        let mut impossible = match self.deletes() {
            DeletePolicy::Merge => vec![EMPTIED],
            DeletePolicy::Empty => vec![MERGES],
            DeletePolicy::Append => vec![MERGES, EMPTIED],
        };
        if !self.stand.is_chip() {
            impossible.push("blocks reclaimed");
        }
        if self.entry.name != "la-tree" || !self.is_raw() {
            impossible.push(GENERATIONS);
        }
        impossible
    }

    /// True if the tree is none, but a list in the order of the updates.
    pub(super) fn is_list(&self) -> bool {
        self.entry.name == "list"
    }

    /// The memory of scripts, if updates wait in memory longer than a script lasts where there is
    /// much of it: nodes are split and merged only when they leave it.
    pub(super) fn script_memory(&self) -> Option<u64> {
        match self.entry.name {
            "flat-tree" | "la-tree" => Some(1),
            // With the least nothing waits; keys of any length all wait with more.
            "lazy-update" if self.shape.shape.key == Width::Variable => Some(1),
            "lazy-update" => Some(2),
            _ => None,
        }
    }

    /// What deletes do to the nodes of the tree, as it says itself.
    pub(super) fn deletes(&self) -> DeletePolicy {
        (self.entry.deletes)(self.is_raw())
    }

    fn is_raw(&self) -> bool {
        matches!(self.stand, Stand::Nand { .. })
    }

    /// The options of an index, without its memory.
    pub(super) fn options(&self) -> index::Result<Options> {
        let mut given: Vec<_> =
            self.parameters.iter().map(|(name, value)| (*name, value.as_str())).collect();
        // Histories have keys for a few nodes: its partitions are to be cut and joined by them.
        let page = self.page_bytes.to_string();
        if self.entry.name == "flat-tree" && self.is_raw() {
            given.push(("partition", &page));
        }
        let settings = Settings::parse(self.entry.name, self.entry.parameters, given)?;
        let mut options = Options::new(self.shape.shape, 0, settings);
        options.durability = Some(self.durability);
        options.journal_bytes = Some(self.journal_bytes());
        if self.entry.name == "flat-tree" && self.is_raw() {
            // As a database has it: what its tables do not need holds units that lookups read.
            options.tables_bytes = Some(1 << 20);
        }
        // As a database in a file has it: about half of the cells.
        options.journal_through = self.shape.shape.value == Width::Variable;
        #[cfg(feature = "canaries")]
        {
            options.canary = self.canary;
        }
        Ok(options)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use trees::TREES;

    use super::{cells, find_cell};

    #[test]
    fn every_cell_is_found_by_its_name() {
        let mut names = BTreeSet::new();
        for cell in cells(TREES) {
            let name = cell.to_string();
            assert_eq!(find_cell(TREES, &name).map(|found| found.to_string()), Some(name.clone()));
            assert!(names.insert(name));
        }
        assert!(find_cell(TREES, "b-plus").is_none() && find_cell(TREES, "").is_none());
    }

    #[test]
    fn every_tree_has_cells_on_chips_disks_and_files_under_every_durability() {
        for wanted in ["page-map+spare", "page-map", "disk-lost", "disk-torn", "file"] {
            for durability in ["checkpoint", "batch", "every"] {
                let name = format!("b-plus/{wanted}/512/variable/{durability}");
                assert!(find_cell(TREES, &name).is_some(), "{name}");
            }
        }
        assert!(find_cell(TREES, "b-plus/file/512/variable/none").is_none());
    }
}
