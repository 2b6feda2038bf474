//! `flashtree compact`.

use db::Database;

use super::opening;
use super::part_file::tell_leftovers;
use crate::arguments::files::Bare;
use crate::failure::Failure;
use crate::failure::FileFailure;
use crate::interrupts;
use crate::numbers::{rounded_size, thousands};
use crate::output;
use crate::progress::Counter;

/// Rewrites a database without gaps.
///
/// # Errors
/// It is in use or can't be read, keeps checkpoints, or there is no room; or Ctrl-C.
pub(super) fn run(arguments: &Bare, quiet: bool) -> Result<(), Failure> {
    let path = arguments.home.file.path();
    interrupts::catch_interrupts();
    let bar = Counter::new(quiet, "compacting", None);
    let compacted = opening::with_memory(&arguments.home, |options| {
        Database::compact_while(path, options, &mut |entries| bar.goes_on(entries))
    });
    bar.finish();
    let done = compacted.map_err(FileFailure::of(path))?;
    if !quiet {
        tell_leftovers(path, ".new");
        output::remark(&format!(
            "{}: {}, {} before, {} now",
            path.display(),
            if done.entries == 1 {
                "1 entry".to_owned()
            } else {
                format!("{} entries", thousands(done.entries))
            },
            rounded_size(done.bytes_before),
            rounded_size(done.bytes_after)
        ));
    }
    Ok(())
}
