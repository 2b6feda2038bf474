//! `lsm`: a small B+-tree in place above a forest of B+-trees of growing sizes.
//!
//! O'Neil and others: The Log-Structured Merge-Tree (Acta Informatica 33, 1996), in the form in
//! which the FD-Tree paper measures it: components of the same sizes as that tree's levels, merged
//! in the same units, each a B+-tree of its own that a search goes down. A component is a run, its
//! inner nodes are runs of fences above it.

use alloc::boxed::Box;

use device::Medium;
use index::{
    DeletePolicy, Footprint, Index, MediumShape, Options, Prediction, Profile, Result,
    TreeDescriptor,
};

use crate::levels::{self, Form, Kindred};

/// The registry's line.
pub(crate) const ENTRY: TreeDescriptor = TreeDescriptor {
    name: "lsm",
    about: "a small B+-tree in place above a forest of B+-trees, written by merging",
    paper: "O'Neil, Cheng, Gawlick and O'Neil: The Log-Structured Merge-Tree (1996)",
    nand: false,
    sectors: true,
    deletes: |_| DeletePolicy::Append,
    tables_grow: false,
    long_values: false,
    parameters: levels::PARAMETERS,
    create,
    open,
    footprint,
    predict,
};

const KINDRED: Kindred = Kindred { name: "lsm", form: Form::Forest };

fn create<'d>(medium: Medium<'d>, options: &Options) -> Result<Box<dyn Index + 'd>> {
    levels::create(KINDRED, medium, options)
}

fn open<'d>(medium: Medium<'d>, options: &Options) -> Result<Box<dyn Index + 'd>> {
    levels::open(KINDRED, medium, options)
}

fn footprint(options: &Options, medium: MediumShape) -> Result<Footprint> {
    levels::footprint(&KINDRED, options, medium)
}

fn predict(profile: &Profile, options: &Options, medium: MediumShape) -> Result<Prediction> {
    levels::predict(&KINDRED, profile, options, medium)
}
