//! The tree's cost model: what a workload of random keys costs.
//!
//! With `c` entries a page, a flush writes `1 / c` pages an update, and a merge reads and writes the
//! bottom's entries beside the pending ones: where `P` entries wait in fragments of `N`, that are
//! `(1 + N / P) / c` pages an update. The policy lets `P / N` come to what the space allows. A
//! lookup reads the page of a bottom that is not in the cache.

use store::PageFile;

use super::make::{Plan, page_bytes};
use super::runs::Form;
use super::{NAME, SPACE};
use index::random_keys::average_bytes;
use index::{Error, MediumShape, Options, Prediction, Profile, Result};

/// See `policy`.
const GARBAGE_SHARE: f64 = 0.8;
const PENDING_MOST: f64 = 0.9;

pub(super) fn predict(
    profile: &Profile,
    options: &Options,
    medium: MediumShape,
) -> Result<Prediction> {
    let MediumShape::Sectors(disk) = medium else {
        return Err(Error::WrongMedium { tree: NAME, medium: "raw flash" });
    };
    let durability = options.durability.unwrap_or_default();
    let page_bytes = page_bytes(options, disk);
    let plan = Plan::new(options, disk, (page_bytes, options.shape, durability))?;
    let (key, value) = (average_bytes(options.shape.key), average_bytes(options.shape.value));
    let of = |form: Form, beside: usize| {
        let codec = plan.forms.of(form).leaf;
        codec.capacity(key.into(), usize::from(value) + beside).max(1) as f64
    };
    let (bottom, fragment) = (of(Form::Bottom, 0), of(Form::Fragment, 1));
    let entries = profile.entries.max(1) as f64;
    let leaves = (entries / bottom).max(1.0);
    let frames = f64::from(PageFile::frames(disk, &options.page_file(page_bytes, plan.file))?);
    let missing = (1.0 - frames / leaves).max(0.0);

    let updates = profile.inserts + profile.overwrites + profile.deletes;
    let hiding = (profile.overwrites + profile.deletes) / updates.max(f64::MIN_POSITIVE);
    let space = options.settings.ratio(SPACE.name).unwrap_or(1.25);
    let flushed = plan.memtable as f64 / f64::from(key + value + 1);
    let pending = ((space - 1.0) * GARBAGE_SHARE / hiding.max(0.01)).min(PENDING_MOST) * entries;
    let merged = (1.0 + entries / pending.max(flushed)) / bottom;
    let pages = f64::from(page_bytes.div_ceil(disk.sector_bytes()));
    Ok(Prediction {
        page_reads: (profile.lookups * missing + updates * merged * missing) * pages,
        page_writes: updates * (1.0 / fragment + merged) * pages,
        height: 2,
    })
}
