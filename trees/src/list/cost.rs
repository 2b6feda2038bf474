//! The list's cost model, as FlashDB 6.1 has it: appending is O(1), a query reads the list.

use device::Geometry;
use store::{EntryShape, PageLog};

use super::NAME;
use super::archive::Archive;
use super::page::Form;
use index::Result;
use index::random_keys::average_bytes;
use index::{MediumShape, Options, Prediction, Profile};

/// What `profile` costs the list on `medium`. A lookup of a present key ends where it is met, which
/// is half of the list on average.
pub(super) fn predict(
    profile: &Profile,
    options: &Options,
    medium: MediumShape,
) -> Result<Prediction> {
    let chip = medium.chip(NAME)?;
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
    let (key, value) = (average_bytes(shape.key).into(), average_bytes(shape.value).into());
    let form = Form::on(chip, shape)?;
    let entry = form.bytes(key, Some(value));
    Ok(Archive::capacity(PageLog::content_bytes_on(chip), entry).max(1.0))
}
