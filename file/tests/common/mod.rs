//! What the tests of this crate share.

#![allow(dead_code, reason = "each test uses a part of it")]

use std::ffi::OsStr;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use flashtree_file::{Direct, DiskOptions, EngineChoice};

/// A folder on the disk that the project is built on; it goes with its content.
pub(crate) struct Scratch(tempfile::TempDir);

impl Scratch {
    pub(crate) fn new() -> Self {
        Scratch(tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap())
    }

    pub(crate) fn folder(&self) -> &Path {
        self.0.path()
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }
}

/// Both engines, with direct I/O and without, and one of them with writes gathered.
pub(crate) fn ways() -> [DiskOptions; 6] {
    let way = |engine, direct| DiskOptions { engine, direct, ..DiskOptions::default() };
    [
        way(first_engine(), Direct::IfPossible),
        way(first_engine(), Direct::Never),
        way(EngineChoice::Threads, Direct::IfPossible),
        way(EngineChoice::Threads, Direct::Never),
        DiskOptions { gathers: true, ..way(first_engine(), Direct::IfPossible) },
        DiskOptions { gathers: true, ..way(EngineChoice::Threads, Direct::Never) },
    ]
}

/// io_uring, or what stands in for it on a system that forbids it.
fn first_engine() -> EngineChoice {
    let file = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let options = DiskOptions { engine: EngineChoice::IoUring, ..DiskOptions::default() };
    match flashtree_file::FileDisk::create(&file.path().join("probe"), 4096, &options) {
        Ok(_) => EngineChoice::IoUring,
        Err(error) => {
            println!("not tested: {error}");
            EngineChoice::Any
        }
    }
}

/// Plays one case, and says how to play it again if it fails.
pub(crate) fn play<T>(case: &str, test: &str, run: impl FnOnce() -> T) -> T {
    catch_unwind(AssertUnwindSafe(run)).unwrap_or_else(|_| {
        panic!(
            "{case} failed; play it again with\n  \
             FLASHTREE_CASE='{case}' cargo test -p flashtree-file --test {test}"
        )
    })
}

/// True if this case is to be played.
pub(crate) fn is_wanted(case: &str) -> bool {
    std::env::var("FLASHTREE_CASE").map_or(true, |wanted| wanted == case)
}

/// The variable that tells a test that it was started by itself, and on which file.
const PART: &str = "FLASHTREE_TEST_FILE";

/// The file that this test was started on by itself.
pub(crate) fn other_part() -> Option<PathBuf> {
    std::env::var_os(PART).map(PathBuf::from)
}

/// The same test in another process, which then takes its other part, on `file`.
pub(crate) fn other_process(test: &str, file: impl AsRef<OsStr>) -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", test, "--nocapture", "--test-threads=1"]);
    command.env(PART, file).stdout(Stdio::piped()).stderr(Stdio::inherit());
    command
}
