//! `flashtree backup`.

use std::fs;

use super::part_file::tell_leftovers;
use super::{import, opening};
use crate::arguments::files::Backup;
use crate::failure::{Failure, FileFailure};
use crate::interrupts;
use crate::numbers::rounded_size;
use crate::output;
use crate::progress::Counter;

/// Copies a database, its named checkpoints included, into a new file.
///
/// # Errors
/// The database can't be read, the new file exists or can't be written; or Ctrl-C.
pub(super) fn run(arguments: &Backup, quiet: bool) -> Result<(), Failure> {
    let (path, new) = (arguments.home.file.path(), arguments.new.path());
    import::check_foreign(path, new)?;
    if fs::symlink_metadata(new).is_ok() {
        return Err(FileFailure::Exists { path: new.to_owned() }.into());
    }
    interrupts::catch_interrupts();
    let database = opening::to_read(&arguments.home, quiet)?;
    let length = fs::metadata(path).ok().map(|about| about.len()).filter(|bytes| *bytes > 0);
    let bar = Counter::new(quiet, "copying", length);
    let copied = database.backup_while(new, &mut |bytes| bar.goes_on(bytes));
    bar.finish();
    let bytes = copied.map_err(|source| FileFailure::Copy {
        path: new.to_owned(),
        old: path.to_owned(),
        source: Box::new(source),
    })?;
    opening::close(database, path)?;
    if !quiet {
        tell_leftovers(new, ".new");
        output::remark(&format!("{}: {}", new.display(), rounded_size(bytes)));
    }
    Ok(())
}
