//! On raw flash, where nothing is overwritten: every update rewrites its path, a page a node, and
//! the tree wanders, as the B+-tree of the mu*-Tree paper does. It is the engine
//! [`path_copying`](crate::path_copying) with [`Division::Whole`].
//!
//! Deletes don't balance yet: a node goes when it is empty.

use alloc::boxed::Box;

use device::{Geometry, Nand};

use super::NAME;
use crate::path_copying::layout::Division;
use crate::path_copying::make::{self, Choice};
use crate::path_copying::policy::HALVES;
use crate::registry::{Options, Prediction, Profile};
use crate::{Error, Index, Result};

/// How full nodes are after many random inserts: the natural logarithm of 2.
const OCCUPANCY: f64 = core::f64::consts::LN_2;

/// A node is a page.
fn choice(chip: Geometry, options: &Options) -> Result<Choice> {
    match options.settings.number("node") {
        Some(bytes) if bytes != u64::from(chip.page_bytes()) => Err(Error::BadParameter {
            name: "node",
            value: alloc::format!("{bytes}"),
            expected: "on raw flash a node is a page of the chip".into(),
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

pub(super) fn least_memory(options: &Options, chip: Geometry) -> Result<u64> {
    make::least_memory(&choice(chip, options)?, chip, options)
}

/// Every update writes a page a level, and moves what lives in the blocks that it uses up; reads
/// are those of a tree without a cache.
pub(super) fn predict(profile: &Profile, options: &Options, chip: Geometry) -> Result<Prediction> {
    let choice = choice(chip, options)?;
    let policy = make::policy(choice.division, choice.bounds, (chip, options.shape))?;
    let layout = policy.pages().layout(choice.bounds.alpha, 2);
    let [leaf, inner] = [0, 1].map(|level| policy.pages().capacity(&layout, level) as f64);
    let (mut nodes, mut live, mut height) = (profile.entries as f64 / (leaf * OCCUPANCY), 1.0, 1);
    let splits = 1.0 / (leaf * OCCUPANCY);
    while nodes > 1.0 {
        live += nodes;
        nodes /= inner * OCCUPANCY;
        height += 1;
    }
    let levels = f64::from(height);
    let updates = profile.inserts + profile.overwrites + profile.deletes;
    let share = (live * levels / f64::from(chip.pages())).min(0.9);
    let written = (updates * levels + profile.inserts * splits) / (1.0 - share);
    Ok(Prediction {
        page_reads: (profile.lookups + updates) * levels + written * share,
        page_writes: written,
        height,
    })
}
