//! On raw flash, where nothing is overwritten: every update rewrites its path, a page a node, and
//! the tree wanders, as the B+-tree of the mu*-Tree paper does. It is the engine
//! [`path_copying`](crate::path_copying) with [`Division::Whole`].
//!
//! Deletes don't balance yet: a node goes when it is empty.

use alloc::boxed::Box;

use device::{Geometry, Nand};

use super::NAME;
use crate::path_copying::cost;
use crate::path_copying::layout::Division;
use crate::path_copying::make::{self, Choice};
use crate::path_copying::policy::HALVES;
use index::{Error, Index, Result};
use index::{Footprint, MediumShape, Options, Prediction, Profile};

/// A node is a page.
fn choice(chip: Geometry, options: &Options) -> Result<Choice> {
    match options.settings.number("node") {
        Some(bytes) if bytes != u64::from(chip.page_bytes()) => Err(Error::BadParameter {
            name: "node",
            value: alloc::format!("{bytes}"),
            expected: "on raw flash a node is a page of the chip: leave it out".into(),
        }),
        _ => Ok(Choice::new(NAME, Division::Whole, HALVES, options)),
    }
}

pub(super) fn create<'d>(
    nand: Box<dyn Nand + 'd>,
    options: &Options,
) -> Result<Box<dyn Index + 'd>> {
    let choice = choice(nand.geometry(), options)?;
    make::create(nand, &choice, options)
}

pub(super) fn open<'d>(nand: Box<dyn Nand + 'd>, options: &Options) -> Result<Box<dyn Index + 'd>> {
    // The chip knows how large its nodes are.
    let choice = Choice::new(NAME, Division::Whole, HALVES, options);
    make::open(nand, &choice, options)
}

pub(super) fn footprint(options: &Options, chip: Geometry) -> Result<Footprint> {
    make::footprint(&choice(chip, options)?, MediumShape::Nand(chip), options)
}

/// Every update writes a page a level, and moves what lives in the blocks that it uses up.
pub(super) fn predict(profile: &Profile, options: &Options, chip: Geometry) -> Result<Prediction> {
    cost::predict(&choice(chip, options)?, profile, options, chip)
}
