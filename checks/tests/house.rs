//! The program's check of the house rules on whole projects in a folder of their own.

#![allow(clippy::unwrap_used, reason = "helpers of tests may unwrap as tests do")]

use std::path::Path;
use std::process::Command;

use flashtree_checks::layers::LAYERS;

/// Writes a file and the folders above it.
fn write(root: &Path, file: &str, text: &str) {
    let file = root.join(file);
    std::fs::create_dir_all(file.parent().unwrap()).unwrap();
    std::fs::write(file, text).unwrap();
}

/// Writes a project that has every crate of the picture and keeps every rule.
fn write_good_project(root: &Path) {
    let crates: Vec<&str> =
        LAYERS.iter().filter(|layer| layer.exists).map(|layer| layer.folder).collect();
    let manifest = format!("[workspace]\nresolver = \"3\"\nmembers = {crates:?}\n");
    write(root, "Cargo.toml", &manifest);
    for name in crates {
        let manifest = format!("[package]\nname = \"flashtree-{name}\"\nedition = \"2024\"\n");
        write(root, &format!("{name}/Cargo.toml"), &manifest);
        let library = "#![no_std]\n#![forbid(unsafe_code)]\n";
        write(root, &format!("{name}/src/lib.rs"), library);
    }
    write(root, ".gitignore", "/target\n");
    write(root, "target/left.rs", "todo!() \n");
    write(root, "README.md", "# Good\n\n[itself](#good)\n");
}

/// Runs the check on the project in `root`; gives back its exit code and what it printed.
fn check_house(root: &Path) -> (Option<i32>, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_flashtree-checks"));
    let output = command.arg("--root").arg(root).arg("house").output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    (output.status.code(), text + &String::from_utf8(output.stderr).unwrap())
}

#[test]
fn a_project_that_keeps_the_rules_passes_and_files_that_git_ignores_do_not_count() {
    let root = tempfile::tempdir().unwrap();
    write_good_project(root.path());
    let (code, text) = check_house(root.path());
    assert!(text.ends_with("house: 0 faults, 0 warnings\n"), "{text}");
    assert_eq!(code, Some(0));
}

#[test]
fn each_checker_fails_the_program() {
    let arrow = "[package]\nname = \"flashtree-device\"\nedition = \"2024\"\n\
        [dependencies]\nflashtree-sim = { path = \"../sim\" }\n";
    let forbidden = flashtree_checks::words::FORBIDDEN[0];
    let library = "#![no_std]\n#![forbid(unsafe_code)]\n";
    let cases = [
        ("device/Cargo.toml", arrow, "device must not name sim"),
        ("device/src/old.rs", "", "it is dead"),
        ("sim/src/lib.rs", "fn f() { todo!() }\n", "todo! is for unfinished code"),
        ("sim/src/lib.rs", &"\n".repeat(801), "801 lines"),
        ("store/src/lib.rs", "#![no_std]\n", "#![forbid(unsafe_code)] is missing"),
        ("index/src/lib.rs", &format!("{library}mod none;\n"), "no file for mod none"),
        ("README.md", "[x](none.md)\n", "is dead"),
        ("ARCHITECTURE.md", "`sim/src/none.rs`\n", "no file or folder"),
        ("docs/fidelity/b-plus.md", "| a |\n|---|\n| `A::b` |\n", "is called A::b"),
        ("notes.txt", forbidden, "means nothing on other machines"),
    ];
    for (file, text, finding) in cases {
        let root = tempfile::tempdir().unwrap();
        write_good_project(root.path());
        write(root.path(), file, text);
        let (code, printed) = check_house(root.path());
        assert!(printed.contains(&format!("fault: {file}")), "{file}: {printed}");
        assert!(printed.contains(finding), "{file}: {printed}");
        assert!(printed.ends_with("house: 1 faults, 0 warnings\n"), "{file}: {printed}");
        assert_eq!(code, Some(1), "{file}");
    }
}

#[test]
fn a_folder_that_is_no_project_is_an_error() {
    let root = tempfile::tempdir().unwrap();
    let (code, printed) = check_house(root.path());
    assert!(printed.starts_with("flashtree-checks: "), "{printed}");
    assert_eq!(code, Some(1));
}
