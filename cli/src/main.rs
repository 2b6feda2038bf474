//! The program `flashtree`: keeps databases in files, compares indexes on models of flash devices,
//! and lists what there is.

#![forbid(unsafe_code)]

mod arguments;
mod compare;
mod devices;
mod failure;
mod files;
mod layers;
mod numbers;
mod output;
mod progress;
mod report;
mod rows;
mod torture;
mod trees;
mod workloads;

use std::process::ExitCode;

fn main() -> ExitCode {
    progress::fail_beyond_file_limits();
    arguments::parse()
        .and_then(arguments::Invocation::run)
        .map_or_else(failure::report, |()| ExitCode::SUCCESS)
}
