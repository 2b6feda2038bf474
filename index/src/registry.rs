//! Every tree, in one sorted list: one more tree is one folder and one line.

use alloc::boxed::Box;
use alloc::string::String;
use alloc::vec::Vec;

use device::{Medium, Nand, Sectors};
use store::{
    Durability, EntryShape, PageFile, PageFileOptions, PageLog, PageLogDescription, PageLogOptions,
};

pub use crate::footprint::{Footprint, MediumShape};
use crate::parameters::{Parameter, Settings};
use crate::{Index, Result, b_plus, ipl, la_tree, list, mu, root_record};

/// All trees, sorted by name.
pub const TREES: &[&Entry] =
    &[&b_plus::ENTRY, &ipl::ENTRY, &la_tree::ENTRY, &list::ENTRY, &mu::MU, &mu::MU_STAR];

/// What a user chooses when an index is made.
#[derive(Clone, Debug)]
pub struct Options {
    /// The shape of the entries.
    pub shape: EntryShape,
    /// The memory budget for caches and buffers, in bytes.
    pub memory_bytes: u64,
    /// The tree's parameters.
    pub settings: Settings,
    /// How much lasts through a power cut; when an index is opened, `None` leaves it as it was
    /// made, and when it is made, `None` is [`Durability::None`].
    pub durability: Option<Durability>,
    /// Bytes of the journal, for durabilities that have one; `None` leaves the choice to the
    /// store. Its length bounds the time that opening takes, and the longest batch.
    pub journal_bytes: Option<u64>,
    /// Bytes of the user's own, at most 64, that are kept with the index from its making on.
    pub label: Vec<u8>,
    /// The most bytes of tables that grow with the entries, beside the budget; `None` if they may
    /// take what they need. See [`Entry::tables_grow`].
    pub tables_bytes: Option<u64>,
    /// A number that other indexes don't have, where pages of theirs could get among its own.
    pub identity: u64,
    /// The beginning of the root record of an index that exists, as [`Description::root`] has it:
    /// what the tree keeps there of its choices counts, whatever the settings say.
    pub made: Option<Vec<u8>>,
    /// A mistake to be made.
    #[cfg(feature = "canaries")]
    pub canary: Option<store::Canary>,
}

impl Options {
    /// Without a journal, as the papers measure.
    #[must_use]
    pub const fn new(shape: EntryShape, memory_bytes: u64, settings: Settings) -> Self {
        Options {
            shape,
            memory_bytes,
            settings,
            durability: None,
            journal_bytes: None,
            label: Vec::new(),
            tables_bytes: None,
            identity: 0,
            made: None,
            #[cfg(feature = "canaries")]
            canary: None,
        }
    }
}

impl Options {
    /// What these options say of a page file with pages of `page_bytes` bytes.
    pub(crate) fn page_file(&self, page_bytes: u32, memory_bytes: u64) -> PageFileOptions {
        PageFileOptions {
            durability: self.durability.unwrap_or_default(),
            journal_bytes: self.journal_bytes,
            label: self.label.clone(),
            identity: self.identity,
            #[cfg(feature = "canaries")]
            canary: self.canary,
            ..PageFileOptions::new(page_bytes, memory_bytes)
        }
    }
}

impl Options {
    /// What these options say of a page log.
    pub(crate) fn page_log(&self) -> PageLogOptions {
        PageLogOptions {
            durability: self.durability.unwrap_or_default(),
            journal_bytes: self.journal_bytes,
            label: self.label.clone(),
            #[cfg(feature = "canaries")]
            canary: self.canary,
        }
    }
}

/// What is known of the index on a disk before it is opened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Description {
    /// Its tree, by name: that of an entry of [`TREES`], unless a later program made it.
    pub tree: String,
    /// The shape of its entries.
    pub shape: EntryShape,
    /// Bytes in a page of its file.
    pub page_bytes: u32,
    /// How much of it lasts through a power cut.
    pub durability: Durability,
    /// Bytes of its journal, where the memory that it needs depends on them.
    pub journal_bytes: Option<u64>,
    /// The label it was made with.
    pub label: Vec<u8>,
    /// The beginning of its root record, where the tree keeps the choices it was made with.
    pub root: Vec<u8>,
}

/// Bytes of a root record in which all choices of a tree stand.
const ROOT_HEAD: usize = 128;

fn root_head(mut record: Vec<u8>) -> Vec<u8> {
    record.truncate(ROOT_HEAD);
    record.shrink_to_fit();
    record
}

/// Reads what the index on `disk` says of itself; changes nothing.
///
/// # Errors
/// There is none, or the disk failed.
pub fn describe(disk: &mut dyn Sectors) -> Result<Description> {
    let found = PageFile::describe(disk)?;
    let (tree, shape) = root_record::describe(&found.root_head)?;
    Ok(Description {
        tree,
        shape,
        page_bytes: found.page_bytes,
        durability: found.durability,
        journal_bytes: None,
        label: found.label,
        root: root_head(found.root_head),
    })
}

/// Reads what the index on the raw flash of `chip` says of itself; changes nothing.
///
/// # Errors
/// There is none, or the chip failed.
pub fn describe_chip(chip: &mut dyn Nand) -> Result<Description> {
    let page_bytes = chip.geometry().page_bytes();
    let found = PageLog::describe(Box::new(chip))?;
    let (tree, shape) = root_record::describe(&found.root)?;
    let PageLogDescription { durability, journal_bytes, label, root } = found;
    let (journal_bytes, root) = (Some(journal_bytes), root_head(root));
    Ok(Description { tree, shape, page_bytes, durability, journal_bytes, label, root })
}

/// Makes or opens an index on a medium.
pub type Open = for<'d> fn(Medium<'d>, &Options) -> Result<Box<dyn Index + 'd>>;

/// What deletes do to the nodes of a tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Deletes {
    /// A node that is left less than half full is merged with a neighbour, where both fit one.
    Merge,
    /// A node stays until nothing is left in it; how many went so is told as [`NODES_EMPTIED`].
    ///
    /// [`NODES_EMPTIED`]: crate::NODES_EMPTIED
    Empty,
    /// Nothing: what is deleted takes room as what is put does.
    Append,
}

/// What there is to know about a tree without making one.
pub struct Entry {
    /// Its name.
    pub name: &'static str,
    /// What it is, in a line.
    pub about: &'static str,
    /// The paper that describes it.
    pub paper: &'static str,
    /// True if it stands on raw flash.
    pub nand: bool,
    /// True if it stands on sectors.
    pub sectors: bool,
    /// What deletes do to its nodes, on raw flash (true) or on sectors.
    pub deletes: fn(on_nand: bool) -> Deletes,
    /// True if its tables grow with its entries; otherwise they stay as they were made.
    pub tables_grow: bool,
    /// Its parameters.
    pub parameters: &'static [Parameter],
    /// Makes an empty index.
    pub create: Open,
    /// Opens an index that was closed.
    pub open: Open,
    /// What an index needs as long as there is nothing in it.
    pub footprint: fn(&Options, MediumShape) -> Result<Footprint>,
    /// What a workload would cost, by the tree's cost model.
    pub predict: fn(&Profile, &Options, MediumShape) -> Result<Prediction>,
}

impl Entry {
    /// True if the tree can stand on raw flash and on sectors: `over=ftl` chooses the latter.
    #[must_use]
    pub const fn has_choice(&self) -> bool {
        self.nand && self.sectors
    }

    /// The least memory budget that works, in bytes.
    ///
    /// # Errors
    /// The tree can't stand there as `options` say.
    pub fn least_memory(&self, options: &Options, medium: MediumShape) -> Result<u64> {
        (self.footprint)(options, medium).map(|footprint| footprint.memory_least)
    }
}

/// A workload in numbers, for the cost models.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Profile {
    /// Entries in the index.
    pub entries: u64,
    /// Share of the operations that are lookups, 0 to 1.
    pub lookups: f64,
    /// Share of the operations that are puts of keys that are absent, 0 to 1.
    pub inserts: f64,
    /// Share of the operations that are puts of keys that are present, 0 to 1.
    pub overwrites: f64,
    /// Share of the operations that are deletes, 0 to 1.
    pub deletes: f64,
}

/// What an operation of a workload costs on average, by a tree's cost model.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Prediction {
    /// Pages read an operation.
    pub page_reads: f64,
    /// Pages written an operation, before any translation layer.
    pub page_writes: f64,
    /// Nodes on the way from the root to a leaf.
    pub height: u32,
}

/// The tree called `name`.
#[must_use]
pub fn find(name: &str) -> Option<&'static Entry> {
    TREES.iter().copied().find(|entry| entry.name == name)
}
