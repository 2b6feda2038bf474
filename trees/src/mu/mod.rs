//! `mu` and `mu-star`: the whole path from the leaf to the root in one page of raw flash.
//!
//! mu-Tree is mu*-Tree with another rule for dividing a page and without an adaptive layout, so
//! both are one engine, `path_copying`, with two values of [`Division`].
//! Here are their names, their parameters and their cost model.

use alloc::boxed::Box;

use device::Medium;

use crate::path_copying::flush;
use crate::path_copying::layout::share;
use crate::path_copying::make::{self, Choice};
use crate::path_copying::policy::{Bounds, HALVES};
use index::parameters::{Kind, Parameter};
use index::{DeletePolicy, Options, TreeDescriptor};
use index::{Index, Result, raw_flash};

mod cost;

pub use crate::path_copying::layout::Division;
pub use cost::equations;

/// The registry's line of mu-Tree.
pub(crate) const MU: TreeDescriptor = TreeDescriptor {
    name: name(Division::Halves),
    about: "the whole path of a B+-tree in one page, halved by level",
    paper: "Kang, Jung, Kang, Kim: mu-Tree, EMSOFT 2007",
    nand: true,
    sectors: false,
    deletes: |_| DeletePolicy::Empty,
    tables_part: |_| 0,
    long_values: false,
    parameters: MU_PARAMETERS,
    create: |medium, options| create(Division::Halves, medium, options),
    open: |medium, options| open(Division::Halves, medium, options),
    footprint: |options, medium| {
        make::footprint(&choice(Division::Halves, options)?, medium, options)
    },
    predict: cost::predict_mu,
};

/// The registry's line of mu*-Tree.
pub(crate) const MU_STAR: TreeDescriptor = TreeDescriptor {
    name: name(Division::Even),
    about: "the whole path of a B+-tree in one page, whose layout adapts",
    paper: "Ahn, Kang, Jung, Kim, Maeng: mu*-Tree, IEEE TC 2013",
    nand: true,
    sectors: false,
    deletes: |_| DeletePolicy::Empty,
    tables_part: |_| 0,
    long_values: false,
    parameters: MU_STAR_PARAMETERS,
    create: |medium, options| create(Division::Even, medium, options),
    open: |medium, options| open(Division::Even, medium, options),
    footprint: |options, medium| {
        make::footprint(&choice(Division::Even, options)?, medium, options)
    },
    predict: cost::predict_mu_star,
};

/// The name of the tree that divides its pages so.
const fn name(division: Division) -> &'static str {
    match division {
        Division::Halves => "mu",
        Division::Even => "mu-star",
        Division::Whole => "b-plus",
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

const COLLECT: Parameter = make::COLLECT;

/// The parameters of mu-Tree.
const MU_PARAMETERS: &[Parameter] = &[COLLECT, make::CACHE, flush::parameter(Division::Halves)];

/// The parameters of mu*-Tree.
const MU_STAR_PARAMETERS: &[Parameter] =
    &[ALPHA, BETA, DELTA, COLLECT, make::CACHE, flush::parameter(Division::Even)];

fn choice(division: Division, options: &Options) -> Result<Choice> {
    let bounds = match division {
        Division::Even => match make::made_bounds(name(division), options)? {
            Some(bounds) => bounds,
            None => bounds(options)?,
        },
        Division::Halves | Division::Whole => HALVES,
    };
    Ok(Choice::new(name(division), division, bounds, options))
}

fn bounds(options: &Options) -> Result<Bounds> {
    let ratio = |parameter: &Parameter| {
        // Settings that were parsed have every parameter; those made in code may be empty.
        let default = parameter.default.parse().unwrap_or(0.5);
        share(parameter.name, options.settings.ratio(parameter.name).unwrap_or(default))
    };
    Ok(Bounds { alpha: ratio(&ALPHA)?, beta: ratio(&BETA)?, delta: ratio(&DELTA)? })
}

fn create<'d>(
    division: Division,
    medium: Medium<'d>,
    options: &Options,
) -> Result<Box<dyn Index + 'd>> {
    make::create(raw_flash(medium, name(division))?, &choice(division, options)?, options)
}

fn open<'d>(
    division: Division,
    medium: Medium<'d>,
    options: &Options,
) -> Result<Box<dyn Index + 'd>> {
    make::open(raw_flash(medium, name(division))?, &choice(division, options)?, options)
}
