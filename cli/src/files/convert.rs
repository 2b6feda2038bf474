//! `flashtree convert`.

use db::{Database, Error, MEMORY_TOTAL, OpenOptions, Options};

use super::part_file::tell_leftovers;
use super::{create, import, opening};
use crate::arguments::files::Convert;
use crate::failure::Failure;
use crate::failure::FileFailure;
use crate::interrupts;
use crate::numbers::{count, rounded_size};
use crate::output;
use crate::progress::Counter;

/// Copies all entries of a database into a new one, which may have another tree, other pages or
/// stand on a chip. Named checkpoints stay behind.
///
/// # Errors
/// The old one can't be read, the new one can't be made, or the entries do not fit there; or
/// Ctrl-C.
pub(super) fn run(arguments: &Convert, quiet: bool) -> Result<(), Failure> {
    let (path, new) = (arguments.home.file.path(), arguments.new.path());
    import::check_foreign(path, new)?;
    let options = create::options(&arguments.new, &arguments.making)?.wait(arguments.home.wait);
    // From here on: opening may have to recover the database, which takes a moment.
    interrupts::catch_interrupts();
    let mut old = match opening::to_read(&arguments.home, quiet) {
        Err(Failure::File(FileFailure::Database {
            source: Error::LittleMemory { have, need },
            ..
        })) => return Err(little_memory(arguments, &options, (have, need))?.into()),
        other => other?,
    };
    let kept = old.checkpoints().map_err(FileFailure::of(path))?.len() as u64;
    let bar = Counter::new(quiet, "copying", None);
    let memory = arguments.home.memory_total;
    let (made, taken) =
        copy(&mut old, new, &options, memory, &bar).map_err(|source| match source {
            // Damage is in what is read; all else is about what is written.
            Error::Damaged { .. } => FileFailure::of(path)(source),
            source => FileFailure::Copy {
                path: new.to_owned(),
                old: path.to_owned(),
                source: Box::new(source),
            },
        })?;
    bar.finish();
    import::forget(new);
    let stats = made.stats().map_err(FileFailure::of(new))?;
    opening::close(made, new)?;
    opening::close(old, path)?;
    if !quiet {
        tell_leftovers(new, ".new");
        let size = stats.file.map_or(0, |file| file.taken);
        output::remark(&format!("{}: {}", new.display(), rounded_size(size)));
        if taken > MEMORY_TOTAL {
            let new = new.display();
            output::remark(&format!("{new} takes {taken} bytes of memory: --memory-total {taken}"));
        }
        if kept > 0 {
            let kept = count(kept, "named checkpoint");
            output::remark(&format!("{kept} of {} left behind", path.display()));
        }
    }
    Ok(())
}

/// What to say where the memory that was given is too little for the old database: what suffices
/// for both, so that it is said once.
fn little_memory(
    arguments: &Convert,
    options: &Options,
    (have, need): (u64, u64),
) -> Result<FileFailure, Failure> {
    let (path, new) = (arguments.home.file.path(), arguments.new.path());
    let of_old = OpenOptions::new().memory_total(need).wait(arguments.home.wait);
    let old = Database::open_read_only(path, &of_old).map_err(FileFailure::of(path))?;
    // Nothing is copied: it ends before the first entry.
    let options = options.clone().memory_total(have);
    let need = match old.copy_to_while(new, &options, &mut |_| false) {
        Err(Error::LittleMemory { need: of_new, .. }) => need.max(of_new),
        _ => need,
    };
    Ok(FileFailure::of(path)(Error::LittleMemory { have, need }))
}

/// Copies with the memory that the user gave, or else with what the new database needs; returns
/// how much that was.
fn copy(
    old: &mut Database<'_>,
    new: &std::path::Path,
    options: &Options,
    memory: Option<u64>,
    bar: &Counter,
) -> Result<(Database<'static>, u64), Error> {
    let copy = |bytes| {
        let options = options.clone().memory_total(bytes);
        old.copy_to_while(new, &options, &mut |entries| bar.goes_on(entries))
    };
    let mut bytes = memory.unwrap_or(MEMORY_TOTAL);
    loop {
        match copy(bytes).map_err(|error| in_all(error, bytes)) {
            Err(Error::LittleMemory { need, .. }) if memory.is_none() && need > bytes => {
                bytes = need;
            }
            other => return Ok((other?, bytes)),
        }
    }
}

/// Tables that grow get half of what is added to all memory; as there are more entries to come, a
/// quarter more of it is added at once.
fn in_all(error: Error, bytes: u64) -> Error {
    match error {
        Error::Index(index::Error::Store(store::Error::LittleTables { have, need })) => {
            let more = need.saturating_sub(have).saturating_mul(2).max(bytes / 4);
            Error::LittleMemory { have: bytes, need: bytes.saturating_add(more) }
        }
        other => other,
    }
}
