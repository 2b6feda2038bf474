//! The commands on databases in files: `create`, `put`, `scan`, `import`, `check` and the others.

mod backup;
mod check;
mod checkpoints;
mod chip;
mod columns;
mod compact;
mod convert;
mod create;
mod entries;
mod export;
mod import;
mod opening;
mod packed;
mod part_file;
mod salvage;
mod scan;
mod stat;

use crate::arguments::files::{Command, Request};
use crate::failure::{self, Failure, FileFailure};
use crate::interrupts;

/// Does what the command says.
///
/// # Errors
/// What the command needs is not there or can't be done, something is damaged, or Ctrl-C.
pub(crate) fn run(request: &Request) -> Result<(), Failure> {
    let quiet = request.quiet;
    if matches!(request.command, Command::Check(_) | Command::Scan(_)) {
        interrupts::end_at_interrupts(|| {
            failure::report(FileFailure::Interrupted.into());
        });
    }
    match &request.command {
        Command::Create(arguments) => create::run(arguments),
        Command::Put(arguments) => entries::put(arguments, quiet),
        Command::Get(arguments) => entries::get(arguments, quiet),
        Command::Delete(arguments) => entries::delete(arguments, quiet),
        Command::Scan(arguments) => scan::run(arguments, quiet),
        Command::Import(arguments) => import::run(arguments, quiet),
        Command::Export(arguments) => export::run(arguments, quiet),
        Command::Stat(arguments) => stat::run(arguments, quiet),
        Command::Check(arguments) => check::run(arguments, quiet),
        Command::Backup(arguments) => backup::run(arguments, quiet),
        Command::Compact(arguments) => compact::run(arguments, quiet),
        Command::Convert(arguments) => convert::run(arguments, quiet),
        Command::Checkpoint(arguments) => checkpoints::keep(arguments, quiet),
        Command::Checkpoints(arguments) => checkpoints::list(arguments, quiet),
        Command::Rollback(arguments) => checkpoints::roll_back(arguments, quiet),
        Command::Forget(arguments) => checkpoints::forget(arguments, quiet),
    }
}
