//! `flashtree create`.

use db::{Database, MEMORY_TOTAL, Options};

use super::{chip, import, opening};
use crate::arguments::files::Place;
use crate::arguments::files::{Create, Making};
use crate::failure::Failure;
use crate::failure::FileFailure;

/// Makes a database.
///
/// # Errors
/// Something exists there, the options can't be used, or the system refuses.
pub(super) fn run(arguments: &Create) -> Result<(), Failure> {
    let place = &arguments.home.file;
    let memory = arguments.home.memory_total.unwrap_or(MEMORY_TOTAL);
    let mut options =
        options(place, &arguments.making)?.memory_total(memory).wait(arguments.home.wait);
    if let Some(key) = &arguments.key {
        options = options.key(key.clone());
    }
    if let Some(value) = &arguments.value {
        options = options.value(value.clone());
    }
    let made = Database::create(place.path(), &options).map_err(FileFailure::of(place.path()))?;
    // What was begun belonged to a database that is gone.
    import::forget(place.path());
    opening::close(made, place.path())
}

/// The library's options for a new database at `place`.
///
/// # Errors
/// There is no such chip, or an option is for chips and this is none.
pub(super) fn options(place: &Place, making: &Making) -> Result<Options, FileFailure> {
    let mut options = Options::new().overwrite(making.overwrite);
    if let Some(durability) = making.durability {
        options = options.durability(durability.into());
    }
    if let Some(tree) = &making.tree {
        if tree.is_empty() {
            let what = "--tree is empty: name one of flashtree trees, or leave it away";
            return Err(FileFailure::Option(what));
        }
        options = options.tree(tree);
    }
    if let Some(page) = making.page {
        options = options.page_bytes(page);
    }
    if place.is_chip() {
        return on_chip(making, options);
    }
    if making.chip.is_some() {
        return Err(FileFailure::Option("--chip needs a chip: name the file nand-file:PATH"));
    }
    if making.ftl.is_some() {
        return Err(FileFailure::Option("--ftl needs a chip: name the file nand-file:PATH"));
    }
    Ok(match making.size {
        Some(bytes) => options.capacity(bytes),
        None => options,
    })
}

fn on_chip(making: &Making, options: Options) -> Result<Options, FileFailure> {
    let chip = chip::find(making.chip.as_deref(), making.size)?;
    let options = options.chip(chip.geometry);
    Ok(match &making.ftl {
        Some(ftl) => options.ftl(ftl),
        None => options,
    })
}
