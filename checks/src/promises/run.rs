//! Running promises.

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Instant;

use super::figure::Output;
use super::{Form, Promise};

/// A promise and what came of it.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// The promise.
    pub promise: Promise,
    /// Which of its commands ran.
    pub form: Form,
    /// The best figure that was read, or why there is none.
    pub figure: Result<String, String>,
    /// Seconds that all runs took together.
    pub seconds: f64,
    /// How many runs there were.
    pub runs: u32,
}

impl Outcome {
    /// Whether there is a figure and it is what it must be.
    #[must_use]
    pub fn holds(&self) -> bool {
        self.figure.as_ref().is_ok_and(|figure| self.promise.bound.holds(figure))
    }

    /// What is said of it.
    #[must_use]
    pub fn verdict(&self) -> Verdict {
        let is_timed = self.promise.repeat.0 > 1;
        match self.holds() {
            true => Verdict::Holds,
            false if self.runs == 0 => Verdict::Skipped,
            false if self.form == Form::Short && is_timed && self.figure.is_ok() => Verdict::Slow,
            false => Verdict::Broken,
        }
    }
}

/// What is said of a promise.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The figure is what it must be.
    Holds,
    /// A time or a rate in the short form: on a busy or slow machine it says nothing of the
    /// project, so it is only told.
    Slow,
    /// A program that it needs is not here, so it was not looked at.
    Skipped,
    /// The figure is not what it must be, or there is none.
    Broken,
}

/// Runs a promise's command in `root` until its figure holds, as often as it allows.
#[must_use]
pub fn run(root: &Path, promise: Promise, form: Form) -> Outcome {
    let promise = promise.bounded_for(form);
    let missing = promise.needs.clone().filter(|program| !is_here(program));
    let none = missing.as_ref().map_or("not run".to_owned(), |it| format!("there is no {it} here"));
    let mut outcome = Outcome { promise, form, figure: Err(none), seconds: 0.0, runs: 0 };
    if missing.is_some() {
        return outcome;
    }
    while outcome.runs < outcome.promise.repeat.0 && !outcome.holds() {
        let start = Instant::now();
        let figure = run_once(root, &outcome.promise, form);
        outcome.seconds += start.elapsed().as_secs_f64();
        outcome.runs += 1;
        let better = match (&figure, &outcome.figure) {
            (Ok(new), Ok(old)) => outcome.promise.bound.prefers(new, old),
            (Err(_), Ok(_)) => false,
            _ => true,
        };
        if better {
            outcome.figure = figure;
        }
    }
    outcome
}

/// Whether a program can be run.
#[must_use]
pub fn is_here(program: &str) -> bool {
    Command::new(program).arg("--version").output().is_ok_and(|output| output.status.success())
}

fn run_once(root: &Path, promise: &Promise, form: Form) -> Result<String, String> {
    promise.figure.read(&output_of(root, promise.command(form), promise.exit)?)
}

/// Runs a command in `root`, which has to end with this exit code.
///
/// # Errors
/// It could not be run, or ended with another code.
pub fn output_of(root: &Path, line: &[String], exit: i32) -> Result<Output, String> {
    let mut command = command(line)?;
    let start = Instant::now();
    let output = command
        .current_dir(root)
        .stdin(Stdio::null())
        .output()
        .map_err(|error| format!("can't be run: {error}"))?;
    let seconds = start.elapsed().as_secs_f64();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let (stdout, stderr) = (text(&output.stdout), text(&output.stderr));
    if output.status.code() != Some(exit) {
        let last = stderr.lines().last().unwrap_or("it says nothing");
        return Err(format!("{}, not {exit}: {last}", output.status));
    }
    Ok(Output { stdout, stderr, seconds })
}

/// The command of `line`, without what cargo set for this program.
pub(crate) fn command(line: &[String]) -> Result<Command, String> {
    let (program, arguments) = line.split_first().ok_or("the command is empty")?;
    let mut command = Command::new(program);
    command.args(arguments);
    for (name, _) in std::env::vars_os() {
        let of_package = name.to_str().is_some_and(|name| {
            name.starts_with("CARGO_PKG_") || name.starts_with("CARGO_MANIFEST_")
        });
        if of_package {
            command.env_remove(name);
        }
    }
    Ok(command)
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::{Outcome, Verdict, run};
    use crate::promises::{Form, Promise};

    /// Runs a promise of `rustc --version`, which every machine that builds this has.
    fn outcome(rest: &str) -> Outcome {
        outcome_of(Form::Full, rest)
    }

    fn outcome_of(form: Form, rest: &str) -> Outcome {
        let text = format!("promise = 'It is new.'\ncommand = ['rustc', '--version']\n{rest}");
        run(Path::new("."), Promise::parse("new", &text).unwrap(), form)
    }

    const MINOR: &str = "figure = { regex = '^rustc 1\\.(\\d+)' }\n";

    #[test]
    fn a_figure_within_its_bound_holds() {
        assert!(outcome(&format!("{MINOR}bound = '>= 95'")).holds());
    }

    #[test]
    fn a_figure_beyond_its_bound_fails_after_as_many_runs_as_allowed() {
        let outcome = outcome(&format!("{MINOR}bound = '<= 1'\nrepeat = 'best of 3'"));
        assert!(!outcome.holds());
        assert!(outcome.figure.is_ok());
        assert_eq!(outcome.runs, 3);
    }

    #[test]
    fn in_the_short_form_a_time_is_told_and_nothing_else_is_forgiven() {
        let beyond = format!("{MINOR}bound = '<= 1'\n");
        let timed = format!("{beyond}repeat = 'best of 2'");
        assert_eq!(outcome_of(Form::Short, &timed).verdict(), Verdict::Slow);
        assert_eq!(outcome_of(Form::Full, &timed).verdict(), Verdict::Broken);
        assert_eq!(outcome_of(Form::Short, &beyond).verdict(), Verdict::Broken);
        let missing = "figure = { regex = 'no (figure)' }\nbound = '>= 0'\nrepeat = 'best of 2'";
        assert_eq!(outcome_of(Form::Short, missing).verdict(), Verdict::Broken);
        let kept = format!("{MINOR}bound = '>= 95'\nrepeat = 'best of 2'");
        assert_eq!(outcome_of(Form::Short, &kept).verdict(), Verdict::Holds);
    }

    #[test]
    fn a_figure_that_is_missing_fails() {
        let outcome = outcome("figure = { regex = 'no such (figure)' }\nbound = '>= 0'");
        assert!(!outcome.holds());
        assert!(outcome.figure.unwrap_err().contains("nothing matches"));
    }

    #[test]
    fn an_unexpected_exit_code_fails_whatever_is_printed() {
        let outcome = outcome(&format!("{MINOR}bound = '>= 0'\nexit = 2"));
        assert!(!outcome.holds());
        assert!(outcome.figure.unwrap_err().contains("not 2"));
    }

    #[test]
    fn where_a_program_is_missing_a_promise_is_skipped_and_not_kept() {
        let skipped = outcome(&format!("{MINOR}bound = '>= 0'\nneeds = 'no-such-program-here'"));
        assert!(!skipped.holds());
        assert_eq!(skipped.verdict(), Verdict::Skipped);
        assert!(skipped.figure.unwrap_err().contains("no no-such-program-here"));
        let kept = outcome(&format!("{MINOR}bound = '>= 95'\nneeds = 'rustc'"));
        assert_eq!(kept.verdict(), Verdict::Holds);
    }

    #[test]
    fn a_command_that_does_not_exist_fails() {
        let text = "promise = 'x'\ncommand = ['no-such-program-here']\n\
            figure = 'seconds'\nbound = '>= 0'";
        let outcome = run(Path::new("."), Promise::parse("x", text).unwrap(), Form::Full);
        assert!(!outcome.holds());
        assert!(outcome.figure.unwrap_err().contains("can't be run"));
    }
}
