//! The list's cost model, as FlashDB 6.1 has it: appending is O(1), a query reads the list.

use device::Geometry;
use store::{EntryShape, PageLog, Width};

use super::NAME;
use super::archive::Archive;
use super::page::Form;
use crate::registry::{MediumShape, Options, Prediction, Profile};
use crate::{Error, Result};

/// What a key or a value of variable length is taken to have, in bytes.
const VARIABLE_BYTES: usize = 16;

/// What `profile` costs the list on `medium`. A lookup of a present key ends where it is met, which
/// is half of the list on average.
pub(super) fn predict(
    profile: &Profile,
    options: &Options,
    medium: MediumShape,
) -> Result<Prediction> {
    let MediumShape::Nand(chip) = medium else {
        return Err(Error::WrongMedium { tree: NAME, medium: "a disk" });
    };
    let entries = entries_per_page(chip, options.shape)?;
    let updates = profile.inserts + profile.overwrites + profile.deletes;
    let pages = profile.entries as f64 / entries;
    Ok(Prediction {
        page_reads: profile.lookups * pages / 2.0,
        page_writes: updates / entries,
        height: 0,
    })
}

fn entries_per_page(chip: Geometry, shape: EntryShape) -> Result<f64> {
    let bytes = |width| match width {
        Width::Fixed(bytes) => usize::from(bytes),
        Width::Variable => VARIABLE_BYTES,
    };
    let form = Form::on(chip, shape)?;
    let entry = form.bytes(bytes(shape.key), Some(bytes(shape.value)));
    Ok(Archive::capacity(PageLog::content_bytes_on(chip), entry).max(1.0))
}
