//! `flashtree convert`.

use db::{Database, Error, MEMORY_TOTAL, Options};

use super::arguments::Convert;
use super::{FileFailure, create, import, opening};
use crate::failure::Failure;
use crate::numbers::{count, rounded_size};
use crate::output;
use crate::progress::{self, Counter};

/// Copies all entries of a database into a new one, which may have another tree, other pages or
/// stand on a chip. Named checkpoints stay behind.
///
/// # Errors
/// The old one can't be read, the new one can't be made, or the entries do not fit there; or
/// Ctrl-C.
pub(super) fn run(arguments: &Convert, quiet: bool) -> Result<(), Failure> {
    let (path, new) = (arguments.home.file.path(), arguments.new.path());
    import::check_foreign(path, new)?;
    let options = create::options(&arguments.new, &arguments.making)?;
    let mut old = opening::to_read(&arguments.home, quiet)?;
    let kept = old.checkpoints().len() as u64;
    progress::catch_interrupts();
    let bar = Counter::new(quiet, "copying", None);
    let memory = arguments.home.memory_total;
    let made = copy(&mut old, new, &options, memory, &bar).map_err(|source| match source {
        // Damage is in what is read; all else is about what is written.
        Error::Damaged { .. } => FileFailure::of(path)(source),
        source => FileFailure::of(new)(source),
    })?;
    bar.finish();
    import::forget(new);
    let stats = made.stats().map_err(FileFailure::of(new))?;
    opening::close(made, new)?;
    opening::close(old, path)?;
    if !quiet {
        let size = stats.file.map_or(0, |file| file.taken);
        output::remark(&format!("{}: {}", new.display(), rounded_size(size)));
        if kept > 0 {
            let kept = count(kept, "named checkpoint");
            output::remark(&format!("{kept} of {} left behind", path.display()));
        }
    }
    Ok(())
}

/// Copies with the memory that the user gave, or else with what the new database needs.
fn copy(
    old: &mut Database<'_>,
    new: &std::path::Path,
    options: &Options,
    memory: Option<u64>,
    bar: &Counter,
) -> Result<Database<'static>, Error> {
    let mut copy = |bytes| {
        let options = options.clone().memory_total(bytes);
        old.copy_to_while(new, &options, &mut |entries| bar.goes_on(entries))
    };
    let bytes = memory.unwrap_or(MEMORY_TOTAL);
    match copy(bytes) {
        Err(Error::LittleMemory { need, .. }) if memory.is_none() && need > bytes => copy(need),
        other => other,
    }
}
