//! `flashtree checkpoint`, `checkpoints`, `rollback` and `forget`.

use db::{Database, Error};
use serde::Serialize;

use super::scan::visible;
use super::{import, opening};
use crate::arguments::ListFormat;
use crate::arguments::files::{Named, Report};
use crate::failure::Failure;
use crate::failure::FileFailure;
use crate::output::{self, Sheet};

/// Keeps the present state under a name.
///
/// # Errors
/// The name is taken or impossible, or the database can't be written.
pub(super) fn keep(arguments: &Named, quiet: bool) -> Result<(), Failure> {
    let path = arguments.home.file.path();
    let database = opening::to_write(&arguments.home, quiet)?;
    database.checkpoint(&arguments.name).map_err(FileFailure::of(path))?;
    opening::close(database, path)
}

/// A checkpoint as JSON has it.
#[derive(Serialize)]
pub(super) struct Row {
    name: String,
    id: u64,
}

/// The checkpoints that `database` keeps.
///
/// # Errors
/// The database can't be read.
pub(super) fn rows(database: &Database<'_>) -> Result<Vec<Row>, Error> {
    let kept = database.checkpoints()?.into_iter();
    Ok(kept.map(|kept| Row { name: kept.name, id: kept.id.0 }).collect())
}

/// Lists the checkpoints, the oldest first.
///
/// # Errors
/// The database can't be read.
pub(super) fn list(arguments: &Report, quiet: bool) -> Result<(), Failure> {
    let path = arguments.home.file.path();
    let database = opening::to_read(&arguments.home, quiet)?;
    let rows = rows(&database).map_err(FileFailure::of(path))?;
    let text = match arguments.format {
        ListFormat::Json => output::json(&rows)?,
        ListFormat::Table if rows.is_empty() => String::new(),
        ListFormat::Table => {
            let mut sheet = Sheet { text_columns: vec![0], ..Sheet::of_text(&["name", "number"]) };
            sheet.rows =
                rows.into_iter().map(|row| vec![visible(row.name), row.id.to_string()]).collect();
            sheet.to_text()
        }
    };
    output::print(&text)?;
    opening::close(database, path)
}

/// Goes back to a checkpoint.
///
/// # Errors
/// There is no such checkpoint, or the database can't be written.
pub(super) fn roll_back(arguments: &Named, quiet: bool) -> Result<(), Failure> {
    let path = arguments.home.file.path();
    let database = opening::to_write(&arguments.home, quiet)?;
    check_name(&database, arguments)?;
    // What was imported since then is gone, so no import can go on.
    import::forget(path);
    database.rollback(&arguments.name).map_err(FileFailure::of(path))?;
    opening::close(database, path)
}

/// Keeps a checkpoint no longer.
///
/// # Errors
/// There is no such checkpoint, or the database can't be written.
pub(super) fn forget(arguments: &Named, quiet: bool) -> Result<(), Failure> {
    let path = arguments.home.file.path();
    let database = opening::to_write(&arguments.home, quiet)?;
    check_name(&database, arguments)?;
    let forgotten: Result<(), Error> = database.forget(&arguments.name);
    forgotten.map_err(FileFailure::of(path))?;
    opening::close(database, path)
}

/// Refuses a name that no checkpoint has, and suggests one that is like it.
fn check_name(database: &Database<'_>, arguments: &Named) -> Result<(), FileFailure> {
    let path = arguments.home.file.path();
    let kept = database.checkpoints().map_err(FileFailure::of(path))?;
    let name = &arguments.name;
    if kept.iter().any(|kept| kept.name == *name) {
        return Ok(());
    }
    Err(FileFailure::NoCheckpoint {
        path: arguments.home.file.path().to_owned(),
        name: name.clone(),
        near: spec::near(name, kept.iter().map(|kept| kept.name.as_str())),
        all: kept.len(),
    })
}
