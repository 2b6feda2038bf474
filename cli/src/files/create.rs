//! `flashtree create`.

use db::{Database, MEMORY_TOTAL, Options};

use super::arguments::Create;
use super::{FileFailure, chip, import};
use crate::failure::Failure;

/// Makes a database.
///
/// # Errors
/// Something exists there, the options can't be used, or the system refuses.
pub(super) fn run(arguments: &Create, _quiet: bool) -> Result<(), Failure> {
    let place = &arguments.home.file;
    let options = options(arguments)?;
    let made = Database::create(place.path(), &options).map_err(FileFailure::of(place.path()))?;
    // What was begun belonged to a database that is gone.
    import::forget(place.path());
    super::opening::close(made, place.path())
}

fn options(arguments: &Create) -> Result<Options, FileFailure> {
    let mut options = Options::new()
        .memory_total(arguments.home.memory_total.unwrap_or(MEMORY_TOTAL))
        .durability(arguments.durability())
        .overwrite(arguments.overwrite);
    if let Some(tree) = &arguments.tree {
        options = options.tree(tree);
    }
    if let Some(page) = arguments.page {
        options = options.page_bytes(page);
    }
    if let Some(key) = &arguments.key {
        options = options.key(key.clone());
    }
    if let Some(value) = &arguments.value {
        options = options.value(value.clone());
    }
    if arguments.home.file.is_chip() {
        return on_chip(arguments, options);
    }
    if arguments.chip.is_some() {
        return Err(FileFailure::Option("--chip needs a chip: name the file nand-file:PATH"));
    }
    if arguments.ftl.is_some() {
        return Err(FileFailure::Option("--ftl needs a chip: name the file nand-file:PATH"));
    }
    Ok(match arguments.size {
        Some(bytes) => options.capacity(bytes),
        None => options,
    })
}

fn on_chip(arguments: &Create, options: Options) -> Result<Options, FileFailure> {
    let chip = chip::find(arguments.chip.as_deref(), arguments.size)?;
    let options = options.chip(chip.geometry);
    Ok(match &arguments.ftl {
        Some(ftl) => options.ftl(ftl),
        None => options,
    })
}
