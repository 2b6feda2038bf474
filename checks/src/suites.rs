//! Every test of the workspace, several programs of tests at a time.
//!
//! `cargo test` runs one program after another, and most of them keep a single processor busy or
//! wait for a disk. Here as many run side by side as are asked for, each in the folder of its
//! package, as under cargo. The doc tests of all crates count as one program more.

use std::fmt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc;
use std::thread;
use std::time::Instant;

use cargo_metadata::{Artifact, Message};

use crate::promises::run;
use crate::{Error, Result};

/// A program that runs tests.
#[derive(Clone, Debug)]
pub struct Suite {
    /// Its first file, from the root.
    pub name: String,
    /// The command that builds it and runs it alone.
    pub again: String,
    /// The program and its arguments.
    pub line: Vec<String>,
    /// Where it runs.
    pub folder: PathBuf,
}

/// What came of a suite.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// The suite.
    pub suite: Suite,
    /// How many of its tests passed.
    pub passed: u64,
    /// How many failed: at least 1 if the program itself did.
    pub failed: u64,
    /// How long it ran.
    pub seconds: f64,
    /// All that it printed.
    pub output: String,
}

impl fmt::Display for Outcome {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Outcome { suite, passed, failed, seconds, .. } = self;
        let failed = if *failed > 0 { format!(", {failed} FAILED") } else { String::new() };
        write!(formatter, "{}: {passed} passed{failed}, {seconds:.1} s", suite.name)
    }
}

/// Builds the tests of the workspace in `root`. The doc tests come first: they are compiled while
/// others run.
///
/// # Errors
/// Cargo can't be run, or the workspace does not build; cargo has then said why.
pub fn build(root: &Path) -> Result<Vec<Suite>> {
    let failed = |error: std::io::Error| Error::Tests(error.to_string());
    let root = root.canonicalize().map_err(failed)?;
    let built = Command::new("cargo")
        .args(["test", "--workspace", "--quiet", "--no-run"])
        .arg("--message-format=json-render-diagnostics")
        .current_dir(&root)
        .stderr(Stdio::inherit())
        .output()
        .map_err(failed)?;
    if !built.status.success() {
        return Err(Error::Tests(format!("cargo: {}", built.status)));
    }
    let mut suites = vec![doc_tests(&root)];
    for message in Message::parse_stream(&built.stdout[..]) {
        if let Message::CompilerArtifact(artifact) = message.map_err(failed)? {
            suites.extend(suite_of(&root, &artifact));
        }
    }
    Ok(suites)
}

fn doc_tests(root: &Path) -> Suite {
    let line = ["cargo", "test", "--workspace", "--doc", "--no-fail-fast"].map(str::to_owned);
    Suite {
        name: "doc tests".to_owned(),
        again: line[..4].join(" "),
        line: line.into(),
        folder: root.to_owned(),
    }
}

/// The suite that was built here, if it is one.
fn suite_of(root: &Path, artifact: &Artifact) -> Option<Suite> {
    let program = artifact.executable.as_ref().filter(|_| artifact.profile.test)?;
    let (target, folder) = (&artifact.target, artifact.manifest_path.parent()?.as_std_path());
    let file = target.src_path.as_std_path();
    Some(Suite {
        name: file.strip_prefix(root).unwrap_or(file).display().to_string(),
        // Whole: with -p the crates would have other features, and all be built again.
        again: match target.is_test() {
            true => format!("cargo test --workspace --test {}", target.name),
            false if target.is_lib() => "cargo test --workspace --lib".to_owned(),
            false => format!("cargo test --workspace --bin {}", target.name),
        },
        line: vec![program.to_string()],
        folder: folder.to_owned(),
    })
}

/// Runs `suites`, as many as `jobs` at a time, and tells of each as it ends.
pub fn play(suites: &[Suite], jobs: usize, mut tell: impl FnMut(&Outcome)) -> Vec<Outcome> {
    let next = AtomicUsize::new(0);
    let (ended, outcomes) = mpsc::channel();
    thread::scope(|scope| {
        for _ in 0..jobs {
            let (next, ended) = (&next, ended.clone());
            scope.spawn(move || {
                while let Some(suite) = suites.get(next.fetch_add(1, Ordering::Relaxed)) {
                    // Nobody listens any more only if the caller has panicked.
                    let _ = ended.send(play_one(suite));
                }
            });
        }
        drop(ended);
        outcomes.iter().inspect(|outcome| tell(outcome)).collect()
    })
}

fn play_one(suite: &Suite) -> Outcome {
    let start = Instant::now();
    let (succeeded, output) = output_of(suite);
    let results = output.lines().filter_map(|line| line.strip_prefix("test result: "));
    let (mut passed, mut failed) = (0, 0);
    for result in results {
        // ok. 12 passed; 0 failed; 1 ignored; ...
        let mut words = result.split(' ').map(|word| word.parse().unwrap_or(0));
        passed += words.nth(1).unwrap_or(0);
        failed += words.nth(1).unwrap_or(0);
    }
    // A program that was killed tells of no failure.
    let failed = if succeeded { failed } else { failed.max(1) };
    Outcome { suite: suite.clone(), passed, failed, seconds: start.elapsed().as_secs_f64(), output }
}

/// Whether the program succeeded, and what it printed.
fn output_of(suite: &Suite) -> (bool, String) {
    let run = || {
        let mut command = run::command(&suite.line)?;
        command.current_dir(&suite.folder).env("CARGO_MANIFEST_DIR", &suite.folder);
        command.stdin(Stdio::null()).output().map_err(|error| format!("can't be run: {error}"))
    };
    match run() {
        Ok(output) => {
            let text = [output.stdout, output.stderr].concat();
            let text = String::from_utf8_lossy(&text);
            (output.status.success(), format!("{text}{}\n", output.status))
        }
        Err(what) => (false, what + "\n"),
    }
}

#[cfg(test)]
mod tests {
    use super::{Outcome, Suite, play};

    /// A suite that prints `text` and ends with `exit`.
    fn suite(name: &str, text: &str, exit: u8) -> Suite {
        let script = format!("echo '{text}'; exit {exit}");
        Suite {
            name: name.to_owned(),
            again: format!("run {name}"),
            line: ["bash", "-c", &script].map(str::to_owned).into(),
            folder: ".".into(),
        }
    }

    fn counts(outcome: &Outcome) -> (&str, u64, u64) {
        (&outcome.suite.name, outcome.passed, outcome.failed)
    }

    #[test]
    fn every_suite_is_played_once_and_its_results_are_added_up() {
        let good = "test result: ok. 12 passed; 0 failed; 3 ignored\n\
            test result: ok. 5 passed; 0 failed; 0 ignored";
        let bad = "test result: FAILED. 7 passed; 2 failed; 0 ignored";
        let suites: Vec<_> = (0..20)
            .map(|number| match number % 2 {
                0 => suite(&format!("{number:02}"), good, 0),
                _ => suite(&format!("{number:02}"), bad, 101),
            })
            .collect();
        for jobs in [1, 4, 40] {
            let mut told = Vec::new();
            let mut outcomes = play(&suites, jobs, |outcome| told.push(outcome.suite.name.clone()));
            outcomes.sort_by(|a, b| a.suite.name.cmp(&b.suite.name));
            assert_eq!((told.len(), outcomes.len()), (20, 20));
            assert_eq!(counts(&outcomes[0]), ("00", 17, 0));
            assert_eq!(counts(&outcomes[1]), ("01", 7, 2));
            assert!(outcomes[1].to_string().starts_with("01: 7 passed, 2 FAILED, "));
        }
    }

    #[test]
    fn a_program_that_dies_or_is_missing_has_failed() {
        let killed = suite("killed", "test a ... ok", 0);
        let killed =
            Suite { line: ["bash", "-c", "kill -9 $$"].map(str::to_owned).into(), ..killed };
        let missing = Suite { line: vec!["no-such-program-here".to_owned()], ..killed.clone() };
        let outcomes = play(&[killed, missing], 1, |_| ());
        assert_eq!(counts(&outcomes[0]), ("killed", 0, 1));
        assert!(outcomes[0].output.contains("signal"), "{}", outcomes[0].output);
        assert_eq!(outcomes[1].failed, 1);
        assert!(outcomes[1].output.contains("can't be run"), "{}", outcomes[1].output);
    }
}
