//! `fd-tree`: a small B+-tree above sorted runs that lead into each other by fences.
//!
//! Li, He, Yang, Luo, Yi: Tree Indexing on Solid State Drives (VLDB 2010).

use alloc::boxed::Box;

use device::Medium;
use index::{
    DeletePolicy, Footprint, Index, MediumShape, Options, Prediction, Profile, Result,
    TreeDescriptor,
};

use crate::levels::{self, Form, Kindred};

/// The registry's line.
pub(crate) const ENTRY: TreeDescriptor = TreeDescriptor {
    name: "fd-tree",
    about: "a small B+-tree in place above sorted runs that fences lead through",
    paper: "Li, He, Yang, Luo and Yi: Tree Indexing on Solid State Drives (VLDB 2010)",
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

const KINDRED: Kindred = Kindred { name: "fd-tree", form: Form::Cascading };

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
