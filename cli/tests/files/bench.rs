//! A folder with databases, and the program at work in it.

use std::fs;
use std::io::Write;
use std::path::PathBuf;
use std::process::{Child, Command, Output, Stdio};

use assert_cmd::cargo::cargo_bin;
use tempfile::{TempDir, tempdir};

/// A folder, which goes away with it.
pub(crate) struct Bench {
    folder: TempDir,
}

impl Bench {
    /// An empty folder.
    pub(crate) fn new() -> Self {
        Bench { folder: tempdir().unwrap() }
    }

    /// A folder with the database `a.db`, made with the options in `words`.
    pub(crate) fn with_database(words: &str) -> Self {
        let bench = Bench::new();
        bench.done(&format!("create a.db {words}"));
        bench
    }

    /// The path of a file in the folder.
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Writes a file.
    pub(crate) fn write(&self, name: &str, content: impl AsRef<[u8]>) {
        fs::write(self.path(name), content).unwrap();
    }

    /// What stands in a file.
    pub(crate) fn read(&self, name: &str) -> String {
        fs::read_to_string(self.path(name)).unwrap()
    }

    /// The program, to be run in the folder.
    pub(crate) fn command(&self, words: &[&str]) -> Command {
        let mut command = Command::new(cargo_bin!("flashtree"));
        command.current_dir(self.folder.path()).args(words).env_remove("NO_COLOR");
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    /// Starts the program with a pipe to its standard input.
    pub(crate) fn start(&self, words: &[&str]) -> Child {
        self.command(words).stdin(Stdio::piped()).spawn().unwrap()
    }

    /// Runs the program with `input` on its standard input.
    pub(crate) fn fed(&self, words: &[&str], input: &[u8]) -> Output {
        let mut child = self.start(words);
        let mut pipe = child.stdin.take().unwrap();
        // It may end before it has read all: what it then says is what counts.
        let _ = pipe.write_all(input);
        drop(pipe);
        child.wait_with_output().unwrap()
    }

    /// Runs the program, which has to succeed; returns its standard output.
    pub(crate) fn output(&self, words: &[&str]) -> String {
        let output = self.command(words).output().unwrap();
        let error = text(&output.stderr);
        assert!(output.status.success(), "{words:?}: {error}");
        assert!(!error.contains("error"), "{words:?}: {error}");
        text(&output.stdout)
    }

    /// As [`output`](Bench::output), of a line without blanks in its words.
    pub(crate) fn done(&self, line: &str) -> String {
        self.output(&words(line))
    }

    /// As [`done`](Bench::done), of a command that prints JSON.
    pub(crate) fn json(&self, line: &str) -> serde_json::Value {
        serde_json::from_str(&self.done(&format!("{line} --format json"))).unwrap()
    }

    /// Runs a line that has to fail; returns what it says.
    pub(crate) fn failed(&self, line: &str) -> String {
        let output = self.command(&words(line)).output().unwrap();
        complaint(&output, 1)
    }

    /// Runs a line that is wrong usage; returns what it says.
    pub(crate) fn wrong(&self, line: &str) -> String {
        let output = self.command(&words(line)).output().unwrap();
        complaint(&output, 2)
    }

    /// The names of the files in the folder, in order.
    pub(crate) fn names(&self) -> Vec<String> {
        let entries = fs::read_dir(self.folder.path()).unwrap();
        let mut names: Vec<_> =
            entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }
}

/// The words of a line.
pub(crate) fn words(line: &str) -> Vec<&str> {
    line.split_whitespace().collect()
}

/// Bytes that are UTF-8.
pub(crate) fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

/// The one line of a failure with this exit code.
pub(crate) fn complaint(output: &Output, code: i32) -> String {
    let error = text(&output.stderr);
    assert_eq!(output.status.code(), Some(code), "{error}");
    assert_eq!(error.lines().count(), 1, "{error}");
    assert!(error.starts_with("error: "), "{error}");
    error
}

/// Rows of CSV under the headings `key` and `value`, in the order of their keys.
pub(crate) fn rows(count: usize) -> String {
    let row = |number: usize| format!("key{number:06},value of {number}\n");
    std::iter::once("key,value\n".to_owned()).chain((0..count).map(row)).collect()
}
