//! Opening a database for a command.

use std::path::Path;

use db::{Database, Error, MEMORY_TOTAL, OpenOptions};

use crate::arguments::files::Home;
use crate::failure::Failure;
use crate::failure::FileFailure;
use crate::numbers::count;
use crate::output;

/// Opens `home` for reading. A database that was not closed is recovered first, which needs to
/// write to it.
///
/// # Errors
/// It can't be opened, or has to be recovered and can't be written.
pub(super) fn to_read(home: &Home, quiet: bool) -> Result<Database<'static>, Failure> {
    let path = home.file.path();
    match with_memory(home, |options| Database::open_read_only(path, options)) {
        Err(Error::NeedsRecovery) => {}
        other => return Ok(other.map_err(FileFailure::of(path))?),
    }
    let database = open(home).map_err(|source| match source {
        Error::Io { .. } | Error::File(_) => {
            FileFailure::Unrecoverable { path: path.to_owned(), source }
        }
        source => FileFailure::Database { path: path.to_owned(), source },
    })?;
    tell_recovery(&database, path, quiet);
    Ok(database)
}

/// Opens `home` for writing.
///
/// # Errors
/// It can't be opened.
pub(super) fn to_write(home: &Home, quiet: bool) -> Result<Database<'static>, Failure> {
    let path = home.file.path();
    let database = open(home).map_err(FileFailure::of(path))?;
    tell_recovery(&database, path, quiet);
    Ok(database)
}

/// Pages that could not be read when its translation layer was opened.
///
/// # Errors
/// The device failed.
pub(super) fn unread_pages(database: &Database<'_>, path: &Path) -> Result<u64, Failure> {
    let stats = database.stats().map_err(FileFailure::of(path))?;
    Ok(stats.health.map_or(0, |health| health.layer.pages_damaged))
}

/// Closes a database that was changed, or was recovered to be read.
///
/// # Errors
/// The device failed.
pub(super) fn close(database: Database<'_>, path: &Path) -> Result<(), Failure> {
    Ok(database.close().map_err(FileFailure::of(path))?)
}

fn open(home: &Home) -> Result<Database<'static>, Error> {
    with_memory(home, |options| Database::open(home.file.path(), options))
}

/// Opens with the memory that the user gave, or else with the usual amount; if that is too little
/// for the database, with what it needs.
pub(super) fn with_memory<T>(
    home: &Home,
    open: impl Fn(&OpenOptions) -> Result<T, Error>,
) -> Result<T, Error> {
    let options = |bytes| OpenOptions::new().memory_total(bytes).wait(home.wait);
    if let Some(bytes) = home.memory_total {
        return open(&options(bytes));
    }
    match open(&options(MEMORY_TOTAL)) {
        Err(Error::LittleMemory { need, .. }) => open(&options(need)),
        other => other,
    }
}

fn tell_recovery(database: &Database<'_>, path: &Path, quiet: bool) {
    let Ok(stats) = database.stats() else { return };
    let (restored, replayed) = (stats.recovery.restored, stats.recovery.replayed);
    if !quiet && restored + replayed > 0 {
        output::remark(&format!(
            "{} was not closed; it was recovered: {} put back, {} replayed",
            path.display(),
            count(restored, "page"),
            count(replayed, "update")
        ));
    }
}
