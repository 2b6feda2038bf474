//! The program `flashtree`: keeps databases in files, compares indexes on models of flash devices,
//! and lists what there is.

#![forbid(unsafe_code)]

mod arguments;
mod compare;
mod devices;
mod failure;
mod files;
mod interrupts;
mod layers;
mod manual;
mod numbers;
mod output;
mod progress;
mod report;
mod rows;
#[cfg(feature = "torture")]
mod torture;
mod trees;
mod workloads;

use std::process::ExitCode;

use arguments::Invocation;
use failure::Failure;

fn main() -> ExitCode {
    interrupts::fail_beyond_file_limits();
    arguments::parse().and_then(run).map_or_else(failure::report, |()| ExitCode::SUCCESS)
}

fn run(invocation: Invocation) -> Result<(), Failure> {
    match invocation {
        Invocation::Compare(request) => compare::run(&request),
        Invocation::Completions(shell) => manual::print_completions(shell),
        Invocation::Devices(arguments) => devices::run(&arguments),
        Invocation::File(request) => files::run(&request),
        Invocation::Man => manual::print_page(),
        #[cfg(feature = "torture")]
        Invocation::Torture(request) => torture::run(&request),
        Invocation::Trees(arguments) => trees::run(&arguments),
        Invocation::Workloads(arguments) => workloads::run(&arguments),
    }
}
