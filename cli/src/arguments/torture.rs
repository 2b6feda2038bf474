//! What `flashtree torture` understands.

use clap::Args;

use super::ListFormat;
use crate::numbers;

/// What `torture` understands.
#[derive(Args, Debug)]
pub(crate) struct Arguments {
    /// List the cells: what is tortured
    #[arg(long, conflicts_with = "replay")]
    pub(crate) list: bool,
    /// Torture the cells of this tree only, with or without its parameters; with what it stands
    /// on behind a slash, only those
    #[arg(long, value_name = "SPEC", conflicts_with = "replay")]
    pub(crate) tree: Option<String>,
    /// Cuts in all cells together
    #[arg(long, value_name = "N", default_value = "10000", conflicts_with = "replay")]
    #[arg(value_parser = numbers::parse_positive, allow_negative_numbers = true)]
    pub(crate) cuts: std::num::NonZeroU64,
    /// The seed of everything random
    #[arg(long, value_name = "N", default_value_t = 1, conflicts_with = "replay")]
    #[arg(value_parser = numbers::parse_count, allow_negative_numbers = true)]
    pub(crate) seed: u64,
    /// Play a failure again, as its message says
    #[arg(long, value_name = "ID")]
    pub(crate) replay: Option<String>,
    /// How to print
    #[arg(long, value_enum, default_value_t)]
    pub(crate) format: ListFormat,
}

/// What to do, and how.
#[derive(Debug)]
pub(crate) struct Request {
    /// What the user wants.
    pub(crate) arguments: Arguments,
    /// Cells at the same time.
    pub(crate) jobs: usize,
    /// True if only results and errors are wanted.
    pub(crate) quiet: bool,
}
