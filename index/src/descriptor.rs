//! What there is to know about a tree without making one.

use alloc::boxed::Box;

use device::Medium;

use crate::model::{Prediction, Profile};
use crate::parameters::Parameter;
use crate::{Footprint, Index, MediumShape, Options, Result};

/// Makes or opens an index on a medium.
pub type Open = for<'d> fn(Medium<'d>, &Options) -> Result<Box<dyn Index + 'd>>;

/// What deletes do to the nodes of a tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DeletePolicy {
    /// A node that is left less than half full is merged with a neighbour, where both fit one.
    Merge,
    /// A node is freed once it is empty. [`NODES_EMPTIED`] counts these nodes.
    ///
    /// [`NODES_EMPTIED`]: crate::NODES_EMPTIED
    Empty,
    /// No node changes: a delete is appended and takes room, as a put does.
    Append,
}

/// What there is to know about a tree without making one.
pub struct TreeDescriptor {
    /// Its name.
    pub name: &'static str,
    /// What it is, in a line.
    pub about: &'static str,
    /// The paper that describes it.
    pub paper: &'static str,
    /// True if the tree can stand on raw flash.
    pub nand: bool,
    /// True if the tree can stand on sectors.
    pub sectors: bool,
    /// What deletes do to its nodes, on raw flash (true) or on sectors.
    pub deletes: fn(on_nand: bool) -> DeletePolicy,
    /// Tables that grow with its entries may take one part in so many of the memory that is left
    /// over, on raw flash (true) or on sectors; 0 if they stay as they were made.
    pub tables_part: fn(on_nand: bool) -> u64,
    /// True if a value may be longer than a node, on sectors: on raw flash it never may.
    pub long_values: bool,
    /// Its parameters.
    pub parameters: &'static [Parameter],
    /// Makes an empty index.
    pub create: Open,
    /// Opens an index that was closed.
    pub open: Open,
    /// What an empty index needs.
    pub footprint: fn(&Options, MediumShape) -> Result<Footprint>,
    /// What a workload would cost, by the tree's cost model.
    pub predict: fn(&Profile, &Options, MediumShape) -> Result<Prediction>,
}

impl TreeDescriptor {
    /// True if its tables grow with its entries.
    #[must_use]
    pub fn tables_grow(&self) -> bool {
        (self.tables_part)(self.nand) > 0
    }

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
