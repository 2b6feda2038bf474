//! What can end the program, and how it says so: one line on standard error and an exit code.

mod advice;
mod file;

use std::io::{self, IsTerminal, Write};
use std::path::PathBuf;
use std::process::ExitCode;

use crate::interrupts;
pub(crate) use file::FileFailure;

const FAILED: u8 = 1;
const USAGE: u8 = 2;

/// Why the program ends before or after its work.
#[derive(Debug, thiserror::Error)]
#[cfg_attr(not(feature = "torture"), expect(dead_code, reason = "some are of torture alone"))]
pub(crate) enum Failure {
    /// The command line is not in the grammar, or asks for help.
    #[error("{}", one_line(.0))]
    Arguments(#[from] clap::Error),
    /// A text that is no list of specs.
    #[error(transparent)]
    Spec(#[from] spec::SpecError),
    /// Several specs where one is expected.
    #[error("--tree takes one tree, not \"{list}\"; use --trees for a list, or --tree repeatedly")]
    ListForOne { list: String },
    /// No thing of this kind has this name.
    #[error("no {kind} is called \"{name}\"{}", suggestion(.near, .kind))]
    Unknown { kind: &'static str, name: String, near: Vec<String> },
    /// The comparison could not be made.
    #[error("{0}{advice}", advice = advice::about_comparison(.0))]
    Lab(#[from] lab::Error),
    /// A comparison would replace a database.
    #[error("{path}: it holds a database; name another path, or give --overwrite")]
    HoldsDatabase { path: String },
    /// A file command could not be done.
    #[error(transparent)]
    File(#[from] FileFailure),
    /// A file could not be written.
    #[error("can't write {}: {source}; name a file that can be written", path.display())]
    Write { path: PathBuf, source: io::Error },
    /// A file of something else would be lost.
    #[error(
        "{}: this is {}, which {option} would write over; name another file, or remove that one \
         first",
        path.display(),
        if *is_database { "a flashtree database" } else { "a file of something else" }
    )]
    NotOurs { path: PathBuf, is_database: bool, option: &'static str },
    /// One file for two outputs.
    #[error("{}: --report and --save name the same file; name two", path.display())]
    SameFile { path: PathBuf },
    /// Standard output where a file is wanted.
    #[error("{option} writes a file: name one; standard output has what --format says")]
    NoFile { option: &'static str },
    /// Standard output could not be written.
    #[error("can't print the results: {0}")]
    Print(io::Error),
    /// A result could not be turned into text.
    #[error("can't make the report: {0}")]
    Report(Box<dyn std::error::Error + Send + Sync>),
    /// Ctrl-C.
    #[error("interrupted when {finished} of {all} trees were done; run again for the others")]
    Interrupted { finished: usize, all: usize },
    /// Ctrl-C while the power was being cut.
    #[error(
        "interrupted after {made} cuts; go on with --cuts {} --seed {}",
        .wanted.saturating_sub(*.made).max(1),
        .seed.wrapping_add(1)
    )]
    TortureInterrupted { made: u64, wanted: u64, seed: u64 },
    /// Something was lost.
    #[error("{failed} of {cells} cells failed; play the first failure again with {command}")]
    Torture { failed: usize, cells: usize, command: String },
    /// A text that names no failure.
    #[error("\"{id}\" can't be played again; take what a failure of flashtree torture prints")]
    Replay { id: String },
    /// No cell of the tree has these parameters.
    #[error("no cell of {tree} has \"{parameters}\"; see flashtree torture --list --tree {tree}")]
    NoCell { tree: String, parameters: String },
    /// Some trees failed midway.
    #[error("{}", trees_failed(.failed, *.all))]
    Trees {
        failed: Vec<(String, String)>,
        all: usize,
        /// True if one of them does not fit, though it was named.
        is_usage: bool,
    },
}

impl Failure {
    /// An unknown `name`, with those of `known` that are like it.
    pub(crate) fn unknown<'k>(
        kind: &'static str,
        name: &str,
        known: impl IntoIterator<Item = &'k str>,
    ) -> Self {
        Failure::Unknown { kind, name: name.to_owned(), near: spec::near(name, known) }
    }

    /// The exit code: 1 for a failure, 2 for wrong usage.
    pub(crate) fn exit_code(&self) -> u8 {
        match self {
            Failure::Arguments(error) => u8::try_from(error.exit_code()).unwrap_or(USAGE),
            Failure::Spec(_)
            | Failure::ListForOne { .. }
            | Failure::Replay { .. }
            | Failure::NoCell { .. }
            | Failure::NotOurs { .. }
            | Failure::NoFile { .. }
            | Failure::SameFile { .. }
            | Failure::Trees { is_usage: true, .. }
            | Failure::Unknown { .. } => USAGE,
            Failure::Lab(error) if error.is_usage() => USAGE,
            Failure::File(failure) if failure.is_usage() => USAGE,
            Failure::Interrupted { .. } | Failure::TortureInterrupted { .. } => {
                interrupts::interrupted_code()
            }
            Failure::File(failure) if failure.is_interrupted() => interrupts::interrupted_code(),
            _ => FAILED,
        }
    }
}

/// Says what happened, and returns the exit code.
pub(crate) fn report(failure: Failure) -> ExitCode {
    match &failure {
        // Nobody reads on: that is no failure.
        Failure::Print(error) if error.kind() == io::ErrorKind::BrokenPipe => {
            return ExitCode::SUCCESS;
        }
        // A key that is absent has no value to print, and that is all there is to say.
        Failure::File(FileFailure::Absent) => {}
        // Help and version, on standard output, and help where the command is missing.
        Failure::Arguments(error) if is_help(error) => {
            if let Err(unwritten) = error.print() {
                return report(Failure::Print(unwritten));
            }
        }
        failure => complain(failure),
    }
    ExitCode::from(failure.exit_code())
}

fn is_help(error: &clap::Error) -> bool {
    use clap::error::ErrorKind;
    matches!(
        error.kind(),
        ErrorKind::DisplayHelp
            | ErrorKind::DisplayVersion
            | ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand
    )
}

/// False if the environment asks for no colours (<https://no-color.org>).
pub(crate) fn colours_wanted() -> bool {
    std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty())
}

fn complain(failure: &Failure) {
    let colour = io::stderr().is_terminal() && colours_wanted();
    let word = if colour { "\u{1b}[1;31merror\u{1b}[0m" } else { "error" };
    let line = printable(&failure.to_string());
    // There is nobody left to tell if this fails.
    drop(writeln!(io::stderr(), "{word}: {line}"));
}

/// Text in one line, without what would change a terminal.
fn printable(text: &str) -> String {
    let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
    words.chars().map(|letter| if letter.is_control() { '?' } else { letter }).collect()
}

/// The message of clap in one line, without the usage.
fn one_line(error: &clap::Error) -> String {
    let text = error.render().to_string();
    let text = text.strip_prefix("error: ").unwrap_or(&text);
    let mut line = String::new();
    let of_interest = |line: &&str| !line.starts_with("Usage:") && !line.starts_with("For more");
    for piece in text.lines().map(str::trim).take_while(of_interest) {
        if piece.is_empty() {
            continue;
        }
        if !line.is_empty() {
            line.push_str(if line.ends_with(':') { " " } else { "; " });
        }
        line.push_str(piece);
    }
    line + "; see --help"
}

fn suggestion(near: &[String], kind: &str) -> String {
    match near {
        [] if kind == "cell" => "; see flashtree torture --list".to_owned(),
        [] => format!("; see flashtree {kind}s"),
        near => format!("; {}", spec::did_you_mean(near)),
    }
}

fn trees_failed(failed: &[(String, String)], all: usize) -> String {
    let reasons: Vec<_> =
        failed.iter().map(|(tree, reason)| format!("{tree} failed: {reason}")).collect();
    match all {
        1 => reasons.join("; "),
        _ => format!("{} of {all} trees failed; {}", failed.len(), reasons.join("; ")),
    }
}

#[cfg(test)]
mod tests {
    use super::{Failure, printable, suggestion};

    #[test]
    fn a_complaint_is_one_line_that_leaves_the_terminal_alone() {
        assert_eq!(printable("no \u{1b}[31mtree\n is  \u{7}called"), "no ?[31mtree is ?called");
    }

    #[test]
    fn near_names_are_suggested() {
        let near = |names: &[&str]| names.iter().map(ToString::to_string).collect::<Vec<_>>();
        assert_eq!(suggestion(&near(&[]), "tree"), "; see flashtree trees");
        assert_eq!(suggestion(&near(&["mu"]), "tree"), "; did you mean mu?");
        assert_eq!(suggestion(&near(&["mu", "lsm"]), "tree"), "; did you mean mu or lsm?");
    }

    #[test]
    fn wrong_usage_and_failure_have_their_own_codes() {
        let unknown = Failure::Unknown { kind: "tree", name: "x".into(), near: Vec::new() };
        assert_eq!(unknown.exit_code(), 2);
        assert_eq!(Failure::Interrupted { finished: 0, all: 1 }.exit_code(), 130);
        let failed = vec![("b-plus".to_owned(), "the device is full".to_owned())];
        let failed = Failure::Trees { failed, all: 2, is_usage: false };
        assert_eq!(failed.exit_code(), 1);
        assert_eq!(failed.to_string(), "1 of 2 trees failed; b-plus failed: the device is full");
    }
}
