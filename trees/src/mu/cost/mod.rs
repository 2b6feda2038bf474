//! The cost models: the paper's analysis ([`equations`]), and what a workload of random keys costs
//! the tree as it is built ([`path_copying::cost`](crate::path_copying::cost)).

pub mod equations;

use super::choice;
use crate::path_copying::cost;
use crate::path_copying::layout::Division;
use index::Result;
use index::{MediumShape, Options, Prediction, Profile};

/// What `profile` costs mu-Tree.
pub(super) fn predict_mu(
    profile: &Profile,
    options: &Options,
    medium: MediumShape,
) -> Result<Prediction> {
    predict(Division::Halves, profile, options, medium)
}

/// What `profile` costs mu*-Tree.
pub(super) fn predict_mu_star(
    profile: &Profile,
    options: &Options,
    medium: MediumShape,
) -> Result<Prediction> {
    predict(Division::Even, profile, options, medium)
}

fn predict(
    division: Division,
    profile: &Profile,
    options: &Options,
    medium: MediumShape,
) -> Result<Prediction> {
    let chip = medium.chip(super::name(division))?;
    cost::predict(&choice(division, options)?, profile, options, chip)
}

#[cfg(test)]
mod tests;
