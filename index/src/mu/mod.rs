//! `mu` and `mu-star`: the whole way from the leaf to the root in one page of raw flash.
//!
//! mu-Tree is mu*-Tree with another rule for dividing a page and without an adaptive layout, so
//! both are this one tree with two values of [`layout::Division`].
//!
//! So far there is everything of them that needs no chip: how pages are divided ([`layout`]), what
//! stands in them ([`page`]), the adaptive layout ([`policy`]), what an update writes ([`plan`])
//! and its bytes ([`assembly`]), what the operation buffer and the node cache are made of
//! ([`recent`]), and the cost model ([`cost`]).

use device::Geometry;

use crate::Result;
use crate::parameters::{Kind, Parameter};
use crate::registry::Options;
use layout::{Division, Pages, share};
use policy::{Bounds, Policy};

mod assembly;
mod cost;
mod layout;
mod page;
mod plan;
mod policy;
mod recent;

#[cfg(test)]
mod model;

/// The name of the tree that divides its pages so.
const fn name(division: Division) -> &'static str {
    match division {
        Division::Halves => "mu",
        Division::Even => "mu-star",
    }
}

const ALPHA: Parameter = Parameter {
    name: "alpha",
    about: "largest share of a page that is its leaf",
    kind: Kind::Ratio(0.05, 0.99),
    default: "0.9",
};

const BETA: Parameter = Parameter {
    name: "beta",
    about: "smallest share of a page that is its leaf; equal to alpha, the layout is static",
    kind: Kind::Ratio(0.05, 0.99),
    default: "0.5",
};

const DELTA: Parameter = Parameter {
    name: "delta",
    about: "what the leaf's share changes by at a time",
    kind: Kind::Ratio(0.0001, 0.5),
    default: "0.00390625",
};

const FREE: Parameter = Parameter {
    name: "free",
    about: "percent of the blocks below which free ones are made by collection",
    kind: Kind::Percent(1),
    default: "10",
};

/// The parameters of mu-Tree.
const MU_PARAMETERS: &[Parameter] = &[FREE];

/// The parameters of mu*-Tree.
const MU_STAR_PARAMETERS: &[Parameter] = &[ALPHA, BETA, DELTA, FREE];

/// The policy that `options` ask for on `chip`.
fn policy(division: Division, options: &Options, chip: Geometry) -> Result<Policy> {
    let pages = Pages::new(chip.page_bytes(), options.shape, division)?;
    if division == Division::Halves {
        return Ok(Policy::halves(pages));
    }
    let ratio = |parameter: &Parameter| {
        // Settings that were parsed have every parameter; those made in code may be empty.
        let default = parameter.default.parse().unwrap_or(0.5);
        share(parameter.name, options.settings.ratio(parameter.name).unwrap_or(default))
    };
    let bounds = Bounds { alpha: ratio(&ALPHA)?, beta: ratio(&BETA)?, delta: ratio(&DELTA)? };
    Policy::adaptive(pages, bounds)
}

/// Bytes of memory that an update works in: the nodes of a way, and the page that is made of them;
/// where lengths vary, two more nodes.
fn working_bytes(policy: &Policy) -> u64 {
    let pages = if policy.pages().is_variable() { 3 } else { 1 };
    let keys = policy.limits().key as u64;
    plan::worst::way_bytes(policy) + pages * u64::from(policy.pages().page_bytes()) + keys
}
