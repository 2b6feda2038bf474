//! The grammar of the command line.

use std::ffi::OsString;
use std::num::NonZeroU64;
use std::path::PathBuf;

use clap::parser::ValueSource;
use clap::{Args, CommandFactory, FromArgMatches, Parser, Subcommand, ValueEnum};
use lab::{Durability, MemoryLimit, Plan, Verify};
use spec::split_list;

use crate::failure::Failure;
use crate::{layers, numbers};

pub(crate) mod files;
mod place;
#[cfg(feature = "torture")]
pub(crate) mod torture;

/// 32 MiB of a chip that can be bought.
const DEVICE: &str = "winbond-w25n01gv:blocks=256";
const WORKLOAD: &str = "weather";
const MEMORY_TOTAL: u64 = 384 << 10;

/// Ordered indexes for flash: databases in files, and comparisons on exact models of devices.
#[derive(Debug, Parser)]
#[command(name = "flashtree", version, propagate_version = true, arg_required_else_help = true)]
#[command(after_help = "A new user starts with: flashtree compare")]
struct Arguments {
    #[command(flatten)]
    common: Common,
    #[command(subcommand)]
    command: Command,
}

/// What every command understands.
#[derive(Args, Clone, Copy, Debug)]
pub(crate) struct Common {
    /// Print results and errors, but no progress and no remarks
    #[arg(long, global = true)]
    pub(crate) quiet: bool,
    /// Work on at most N trees or cells at the same time [default: one for each processor]
    #[arg(long, global = true, value_name = "N", allow_negative_numbers = true)]
    #[arg(value_parser = numbers::parse_positive)]
    jobs: Option<NonZeroU64>,
}

impl Common {
    fn jobs(self) -> usize {
        self.jobs.map_or_else(
            || std::thread::available_parallelism().map_or(1, usize::from),
            |jobs| usize::try_from(jobs.get()).unwrap_or(usize::MAX),
        )
    }
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Run a workload through trees on a model of a flash device, and show what it cost
    #[command(after_help = layers::help())]
    Compare(Box<CompareArguments>),
    /// Print a script that completes commands and options in a shell
    #[command(after_help = COMPLETIONS)]
    Completions {
        /// The shell
        shell: Shell,
    },
    /// List the devices, or show all figures of one with their sources
    Devices(ListArguments),
    #[command(flatten)]
    File(files::Command),
    /// Print the manual page: flashtree man | man -l -
    Man,
    /// Cut the power at every moment, on every tree and device, and see whether anything is lost
    #[cfg(feature = "torture")]
    Torture(torture::Arguments),
    /// List the trees, or show one with its paper and parameters
    Trees(ListArguments),
    /// List the workloads, or show one with its parameters
    Workloads(ListArguments),
}

const COMPLETIONS: &str = "bash: source <(flashtree completions bash)\n\
    zsh:  flashtree completions zsh > \"${fpath[1]}/_flashtree\"\n\
    fish: flashtree completions fish > ~/.config/fish/completions/flashtree.fish";

/// A shell that completes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Shell {
    Bash,
    Zsh,
    Fish,
}

/// What `compare` understands.
#[derive(Args, Debug)]
struct CompareArguments {
    /// The device: a name that `flashtree devices` lists, a .toml file, file:PATH (a disk in a real
    /// file or block device) or nand-file:PATH (a chip imitated in a file)
    #[arg(long, value_name = "SPEC", default_value = DEVICE)]
    device: String,
    /// The chip that nand-file: imitates [default: winbond-w25n01gv]
    #[arg(long, value_name = "SPEC")]
    chip: Option<String>,
    /// Let a device's file be replaced even if flashtree did not make it
    #[arg(long)]
    overwrite: bool,
    /// The workload: a name that `flashtree workloads` lists, with parameters
    #[arg(long, value_name = "SPEC", default_value = WORKLOAD)]
    workload: String,
    /// Trees, such as la-tree,la-tree:buffer=8192,k=3 [default: all that fit but list, and on a
    /// chip b-plus:over=ftl as well]
    #[arg(long, value_name = "SPEC,SPEC")]
    trees: Option<String>,
    /// One more tree; may be given repeatedly
    #[arg(long, value_name = "SPEC")]
    tree: Vec<String>,
    /// The translation layer for trees that stand on sectors; see below [default: page-map]
    #[arg(long, value_name = "SPEC")]
    ftl: Option<String>,
    /// Memory for caches and buffers, with tables beside
    #[arg(long, value_name = "SIZE", conflicts_with = "memory_total")]
    #[arg(value_parser = numbers::parse_size, allow_negative_numbers = true)]
    memory: Option<u64>,
    /// Memory for everything: caches, buffers, tables and the mapping of the translation layer
    /// [default: 384KiB]
    #[arg(long, value_name = "SIZE")]
    #[arg(value_parser = numbers::parse_size, allow_negative_numbers = true)]
    memory_total: Option<u64>,
    /// Use at most so much of the device [default: all; 256MiB of file:]
    #[arg(long, value_name = "SIZE")]
    #[arg(value_parser = numbers::parse_size, allow_negative_numbers = true)]
    size: Option<u64>,
    /// How many operations are measured [default: what the workload says]
    #[arg(long, value_name = "N")]
    #[arg(value_parser = numbers::parse_positive, allow_negative_numbers = true)]
    ops: Option<NonZeroU64>,
    /// The seed of everything random
    #[arg(long, value_name = "N", default_value_t = 1)]
    #[arg(value_parser = numbers::parse_count, allow_negative_numbers = true)]
    seed: u64,
    /// What has to survive a power cut
    #[arg(long, value_enum, default_value_t)]
    durability: DurabilityWord,
    /// How much is compared with an ordered map in memory
    #[arg(long, value_enum, default_value_t)]
    verify: VerifyWord,
    /// The file that the workload csv reads
    #[arg(long, value_name = "FILE")]
    input: Option<PathBuf>,
    /// How to print the figures
    #[arg(long, value_enum, default_value_t)]
    format: CompareFormat,
    /// Write a report with plots, one HTML page; without any option flashtree-report.html
    #[arg(long, value_name = "FILE.html")]
    report: Option<PathBuf>,
    /// Write the rows as JSON
    #[arg(long, value_name = "FILE")]
    save: Option<PathBuf>,
}

/// What the lists understand.
#[derive(Args, Debug)]
pub(crate) struct ListArguments {
    /// Show all about this one
    pub(crate) name: Option<String>,
    /// How to print
    #[arg(long, value_enum, default_value_t)]
    pub(crate) format: ListFormat,
}

/// The report that a comparison without any option writes.
pub(crate) const REPORT: &str = "flashtree-report.html";

/// A comparison, and where its results go.
#[derive(Debug)]
pub(crate) struct CompareRequest {
    /// What to compare.
    pub(crate) plan: Plan,
    /// How to print the rows.
    pub(crate) format: CompareFormat,
    /// The page to write.
    pub(crate) report: Option<PathBuf>,
    /// True if the page was not asked for, so that the user has to hear of it.
    pub(crate) announce: bool,
    /// The file to which the rows go as JSON.
    pub(crate) save: Option<PathBuf>,
    /// True if only results and errors are wanted.
    pub(crate) quiet: bool,
}

/// How a comparison is printed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum CompareFormat {
    /// For people
    #[default]
    Table,
    /// An array, an element a tree
    Json,
    /// A line a tree
    Csv,
}

/// How a list is printed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum ListFormat {
    /// For people
    #[default]
    Table,
    /// An array, or an object where there is one
    Json,
}

#[derive(Clone, Copy, Debug, Default, ValueEnum)]
pub(crate) enum DurabilityWord {
    /// Nothing, as the papers measured
    #[default]
    None,
    /// The last checkpoint
    Checkpoint,
    /// Every synced batch
    Batch,
    /// Every acknowledged update
    Every,
}

impl From<DurabilityWord> for Durability {
    fn from(word: DurabilityWord) -> Self {
        match word {
            DurabilityWord::None => Durability::None,
            DurabilityWord::Checkpoint => Durability::Checkpoint,
            DurabilityWord::Batch => Durability::Batch,
            DurabilityWord::Every => Durability::Every,
        }
    }
}

#[derive(Clone, Copy, Debug, Default, ValueEnum)]
enum VerifyWord {
    /// Every lookup and range on the way, and all contents at the end
    #[default]
    Full,
    /// Some of them
    Sampled,
    /// Nothing
    Off,
}

impl From<VerifyWord> for Verify {
    fn from(word: VerifyWord) -> Self {
        match word {
            VerifyWord::Full => Verify::Full,
            VerifyWord::Sampled => Verify::Sampled,
            VerifyWord::Off => Verify::Off,
        }
    }
}

impl CompareArguments {
    fn plan(self, common: Common, bare: bool) -> Result<CompareRequest, Failure> {
        let mut trees = self.trees.as_deref().map(split_list).transpose()?.unwrap_or_default();
        for tree in &self.tree {
            trees.push(single(tree)?);
        }
        let total = MemoryLimit::Total(self.memory_total.unwrap_or(MEMORY_TOTAL));
        let plan = Plan {
            device: self.device,
            chip: self.chip,
            overwrite: self.overwrite,
            workload: self.workload,
            trees,
            ftl: self.ftl,
            memory: self.memory.map_or(total, MemoryLimit::CachesAndBuffers),
            size_bytes: self.size,
            operations: self.ops.map(NonZeroU64::get),
            seed: self.seed,
            durability: self.durability.into(),
            verify: self.verify.into(),
            input: self.input,
            jobs: common.jobs(),
        };
        let report = self.report.or_else(|| bare.then(|| REPORT.into()));
        let announce = bare && !common.quiet;
        Ok(CompareRequest {
            plan,
            format: self.format,
            report,
            announce,
            save: self.save,
            quiet: common.quiet,
        })
    }
}

/// One spec out of text that must not be a list.
fn single(text: &str) -> Result<String, Failure> {
    match <[String; 1]>::try_from(split_list(text)?) {
        Ok([spec]) => Ok(spec),
        Err(_) => Err(Failure::ListForOne { list: text.to_owned() }),
    }
}

/// A command that is understood and can be run.
#[derive(Debug)]
pub(crate) enum Invocation {
    Compare(Box<CompareRequest>),
    Completions(Shell),
    Devices(ListArguments),
    File(Box<files::Request>),
    Man,
    #[cfg(feature = "torture")]
    Torture(Box<torture::Request>),
    Trees(ListArguments),
    Workloads(ListArguments),
}

/// The grammar, to be written down.
pub(crate) fn grammar() -> clap::Command {
    Arguments::command()
}

/// Reads the command line of this process.
pub(crate) fn parse() -> Result<Invocation, Failure> {
    parse_from(std::env::args_os())
}

fn parse_from(words: impl IntoIterator<Item = impl Into<OsString> + Clone>) -> Parsed {
    let mut matches = Arguments::command().try_get_matches_from(words)?;
    let bare = matches.subcommand().is_some_and(|(_, matches)| !has_options(matches));
    let arguments = Arguments::from_arg_matches_mut(&mut matches)?;
    Ok(match arguments.command {
        Command::Compare(compare) => {
            Invocation::Compare(Box::new(compare.plan(arguments.common, bare)?))
        }
        Command::Completions { shell } => Invocation::Completions(shell),
        Command::Devices(list) => Invocation::Devices(list),
        Command::File(command) => {
            let quiet = arguments.common.quiet;
            Invocation::File(Box::new(files::Request { command, quiet }))
        }
        Command::Man => Invocation::Man,
        #[cfg(feature = "torture")]
        Command::Torture(torture) => Invocation::Torture(Box::new(torture::Request {
            arguments: torture,
            jobs: arguments.common.jobs(),
            quiet: arguments.common.quiet,
        })),
        Command::Trees(list) => Invocation::Trees(list),
        Command::Workloads(list) => Invocation::Workloads(list),
    })
}

type Parsed = Result<Invocation, Failure>;

/// True if the user gave anything that is not a default.
fn has_options(matches: &clap::ArgMatches) -> bool {
    matches.ids().any(|id| matches.value_source(id.as_str()) == Some(ValueSource::CommandLine))
}

#[cfg(test)]
mod tests;
