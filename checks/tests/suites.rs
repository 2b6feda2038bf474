//! The program's run of all tests, on a small workspace in a folder of its own.

#![allow(clippy::unwrap_used, reason = "helpers of tests may unwrap as tests do")]

use std::fs::{create_dir_all, write};
use std::path::Path;
use std::process::Command;

/// A workspace of one crate with a test in its library, beside it, and in its documentation.
fn write_workspace(root: &Path, beside: &str) {
    let manifest = "[workspace]\nmembers = [\"one\"]\nresolver = \"3\"\n";
    write(root.join("Cargo.toml"), manifest).unwrap();
    let package = root.join("one");
    create_dir_all(package.join("src")).unwrap();
    create_dir_all(package.join("tests")).unwrap();
    let manifest = "[package]\nname = \"one\"\nedition = \"2024\"\n";
    write(package.join("Cargo.toml"), manifest).unwrap();
    let library = "//! ```\n//! assert_eq!(one::one(), 1);\n//! ```\n\
        pub fn one() -> u32 { 1 }\n\
        #[test]\nfn it_is_one() { assert_eq!(one(), 1); }\n";
    write(package.join("src/lib.rs"), library).unwrap();
    write(package.join("tests/beside.rs"), beside).unwrap();
}

/// Runs the tests in `root`; gives back the exit code and what was printed.
fn run_tests(root: &Path) -> (Option<i32>, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_flashtree-checks"));
    command.env("CARGO_TARGET_DIR", root.join("target"));
    let output = command.arg("--root").arg(root).arg("tests").output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    (output.status.code(), text + &String::from_utf8(output.stderr).unwrap())
}

#[test]
fn all_kinds_of_tests_run_in_the_folder_of_their_package() {
    let root = tempfile::tempdir().unwrap();
    let beside = "#[test]\nfn here() { assert!(std::fs::exists(\"src/lib.rs\").unwrap()); }\n\
        #[test]\n#[ignore]\nfn later() { panic!() }\n";
    write_workspace(root.path(), beside);
    let (code, text) = run_tests(root.path());
    assert!(text.contains("tests: 3 passed, 0 failed in 3 programs"), "{text}");
    for name in ["one/src/lib.rs", "one/tests/beside.rs", "doc tests"] {
        assert!(text.contains(&format!("  {name}: 1 passed, ")), "{name}: {text}");
    }
    assert_eq!(code, Some(0));
}

#[test]
fn a_test_that_fails_is_shown_whole_and_fails_the_program() {
    let root = tempfile::tempdir().unwrap();
    let beside = "#[test]\nfn good() {}\n#[test]\nfn bad() { panic!(\"what is wrong\") }\n";
    write_workspace(root.path(), beside);
    let (code, text) = run_tests(root.path());
    assert!(text.contains("  one/tests/beside.rs: 1 passed, 1 FAILED, "), "{text}");
    assert!(text.contains("what is wrong") && text.contains("test bad ... FAILED"), "{text}");
    assert!(text.contains("; `cargo test --workspace --test beside` runs it alone"), "{text}");
    assert!(text.contains("tests: 3 passed, 1 failed in 3 programs"), "{text}");
    assert_eq!(code, Some(1));
}

#[test]
fn a_workspace_that_does_not_build_is_an_error() {
    let root = tempfile::tempdir().unwrap();
    write_workspace(root.path(), "fn");
    let (code, text) = run_tests(root.path());
    assert!(text.contains("the tests can't be built"), "{text}");
    assert_eq!(code, Some(1));
}
