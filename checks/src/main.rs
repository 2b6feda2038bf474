//! `flashtree-checks house`, `tests`, `promises` and `claims`; the script `check` calls them.

use std::num::NonZero;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::thread::available_parallelism;
use std::time::Instant;

use clap::{Parser, Subcommand};
use flashtree_checks::promises::run::Verdict;
use flashtree_checks::promises::{self, Form};
use flashtree_checks::{Result, claims, house, suites};

/// Checks of the flashtree project.
#[derive(Parser)]
#[command(version, about)]
struct Arguments {
    /// The project's root.
    #[arg(long, default_value = ".")]
    root: PathBuf,
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Layers, house numbers, links and words.
    House,
    /// Builds the tests of the workspace and runs them, as many programs at a time as there are
    /// processors.
    Tests,
    /// Runs the promises, all or those that are named, and compares each figure with its bound.
    Promises {
        /// Names of promises: files in checks/promises, without their ending.
        names: Vec<String>,
        /// Take the short command of slow promises; so does the variable CI=true.
        #[arg(long)]
        short: bool,
        /// Only list them.
        #[arg(long)]
        list: bool,
    },
    /// Measures what the papers claim, all or the figures that are named, and prints a row a claim.
    Claims {
        /// Names of figures: files in checks/claims, without their ending.
        names: Vec<String>,
        /// Take the short command where there is one; its rows are printed, and not compared.
        #[arg(long)]
        short: bool,
        /// Write the verdicts that are seen into the files, in place of comparing with them.
        #[arg(long, conflicts_with = "short")]
        record: bool,
    },
}

fn main() -> ExitCode {
    let Arguments { root, command } = Arguments::parse();
    let clean = match command {
        Command::House => check_house(&root),
        Command::Tests => check_tests(&root),
        Command::Promises { names, short, list } => {
            let short = short || std::env::var("CI").is_ok_and(|value| value == "true");
            let form = if short { Form::Short } else { Form::Full };
            check_promises(&root, &names, form, list)
        }
        Command::Claims { names, short, record } => {
            let form = if short { Form::Short } else { Form::Full };
            check_claims(&root, &names, form, record)
        }
    };
    match clean {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("flashtree-checks: {error}");
            ExitCode::FAILURE
        }
    }
}

fn check_house(root: &Path) -> Result<bool> {
    let report = house::run(root)?;
    for line in &report.summary {
        println!("  {line}");
    }
    for warning in &report.warnings {
        println!("warning: {warning}");
    }
    for fault in &report.faults {
        println!("fault: {fault}");
    }
    let (faults, warnings) = (report.faults.len(), report.warnings.len());
    println!("house: {faults} faults, {warnings} warnings");
    Ok(faults == 0)
}

fn check_tests(root: &Path) -> Result<bool> {
    let suites = suites::build(root)?;
    let (start, jobs) = (Instant::now(), available_parallelism().map_or(1, NonZero::get));
    let outcomes = suites::play(&suites, jobs, |outcome| {
        println!("  {outcome}");
        if outcome.failed > 0 {
            println!("{}", outcome.output);
        }
    });
    for outcome in outcomes.iter().filter(|outcome| outcome.failed > 0) {
        println!("{outcome}; `{}` runs it alone", outcome.suite.again);
    }
    let passed: u64 = outcomes.iter().map(|outcome| outcome.passed).sum();
    let failed: u64 = outcomes.iter().map(|outcome| outcome.failed).sum();
    let (count, seconds) = (suites.len(), start.elapsed().as_secs());
    println!("tests: {passed} passed, {failed} failed in {count} programs, {seconds} s");
    Ok(failed == 0)
}

fn check_promises(root: &Path, names: &[String], form: Form, list: bool) -> Result<bool> {
    let promises = promises::read(root, names)?;
    if list {
        print!("{}", promises::table::of_promises(&promises));
        return Ok(true);
    }
    let start = Instant::now();
    let mut outcomes = Vec::new();
    for promise in promises {
        eprintln!("promise {}: {}", promise.name, promise.command_line(form));
        outcomes.push(promises::run::run(root, promise, form));
    }
    print!("{}", promises::table::of_outcomes(&outcomes));
    let kept = outcomes.iter().filter(|outcome| outcome.holds()).count();
    let (all, seconds) = (outcomes.len(), start.elapsed().as_secs());
    let skipped = outcomes.iter().filter(|outcome| outcome.verdict() == Verdict::Skipped).count();
    let skipped = if skipped > 0 { format!(", {skipped} skipped") } else { String::new() };
    println!("promises: {kept} of {all} hold{skipped}, {seconds} s");
    Ok(outcomes.iter().all(|outcome| outcome.verdict() != Verdict::Broken))
}

fn check_claims(root: &Path, names: &[String], form: Form, record: bool) -> Result<bool> {
    let (start, mut all, mut faults) = (Instant::now(), Vec::new(), 0);
    let folder = std::env::var_os(claims::DATA).map(PathBuf::from);
    for figure in claims::read(root, names)? {
        if let Some(missing) = figure.missing(folder.as_deref()) {
            println!("{}: skipped: {missing}", figure.name);
            continue;
        }
        eprintln!("claims {}: {}", figure.name, figure.command(form).join(" "));
        let rows = match figure.measure(root, form) {
            Ok(rows) => rows,
            Err(what) => {
                println!("{}: {what}", figure.name);
                faults += 1;
                continue;
            }
        };
        println!("{}", claims::table(&figure, &rows));
        if record {
            claims::record(root, &figure, &rows)?;
        } else if form == Form::Full {
            let changes = figure.changes(&rows);
            faults += changes.len();
            changes.iter().for_each(|change| println!("changed: {}: {change}", figure.name));
        }
        all.extend(rows);
    }
    let (count, seconds) = (claims::count(&all), start.elapsed().as_secs());
    let compared = match (record, form, faults) {
        (true, ..) => "recorded",
        (_, Form::Short, _) => "the short form is not compared",
        (.., 0) => "as recorded",
        _ => "NOT as recorded",
    };
    println!("claims: {count}; {compared}; {seconds} s");
    Ok(faults == 0)
}
