//! Commands that are asked to end, by Ctrl-C and by SIGTERM, and the rights of what they replace.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::process::{Command, Output};
use std::thread;
use std::time::Duration;

use db::{Database, Options};

use crate::bench::{Bench, complaint, rows, text};

const ENTRIES: u64 = 400_000;

/// A database on which every command takes a while.
fn long() -> Bench {
    let bench = Bench::new();
    let options = Options::new().key("u64".parse().unwrap()).value("text".parse().unwrap());
    let database = Database::create(bench.path("a.db"), &options).unwrap();
    let entry = |number: u64| (number.to_be_bytes(), "x".repeat(60));
    assert_eq!(database.load((0..ENTRIES).map(entry)).unwrap(), ENTRIES);
    database.close().unwrap();
    bench
}

/// Runs a line, and sends it the signal as soon as `is_at_work`.
fn ended(bench: &Bench, line: &[&str], signal: &str, is_at_work: impl Fn() -> bool) -> Output {
    let mut child = bench.start(line);
    while !is_at_work() && child.try_wait().unwrap().is_none() {
        thread::sleep(Duration::from_millis(1));
    }
    let sent = Command::new("kill").args([signal, &child.id().to_string()]).status();
    assert!(sent.unwrap().success(), "{line:?}");
    child.wait_with_output().unwrap()
}

/// The exit code of what this signal ended.
fn code_of(signal: &str) -> i32 {
    if signal == "-INT" { 130 } else { 143 }
}

#[test]
fn what_is_ended_says_so_and_leaves_nothing_behind() {
    let bench = long();
    let is_copying = || bench.names().iter().any(|name| name.contains(".new"));
    for signal in ["-INT", "-TERM"] {
        for line in [&["compact", "a.db"][..], &["convert", "a.db", "b.db"]] {
            let output = ended(&bench, line, signal, is_copying);
            let error = complaint(&output, code_of(signal));
            assert!(error.contains("interrupted; run it again"), "{line:?} {signal}: {error}");
            assert_eq!(bench.names(), ["a.db"], "{line:?} {signal}");
        }
    }
    assert_eq!(bench.json("stat a.db")["entries"], ENTRIES);
}

#[test]
fn what_only_reads_ends_with_a_word() {
    let bench = long();
    let line = |words: &'static [&'static str]| bench.start(words);
    for signal in ["-INT", "-TERM"] {
        // Nobody reads what it prints, so it waits for that, and is at work when it has begun.
        let mut scan = line(&["scan", "a.db"]);
        let mut out = scan.stdout.take().unwrap();
        std::io::Read::read_exact(&mut out, &mut [0]).unwrap();
        let sent = Command::new("kill").args([signal, &scan.id().to_string()]).status();
        assert!(sent.unwrap().success());
        let output = scan.wait_with_output().unwrap();
        assert!(complaint(&output, code_of(signal)).contains("interrupted; run it again"));
    }
    let check = line(&["check", "a.db"]);
    thread::sleep(Duration::from_millis(300));
    // It may have come to its end on a fast machine, or not to its beginning on a slow one.
    let sent = Command::new("kill").args(["-INT", &check.id().to_string()]).output().unwrap();
    let output = check.wait_with_output().unwrap();
    match output.status.code() {
        Some(0) => assert!(text(&output.stdout).contains("all is well")),
        Some(_) => assert!(complaint(&output, 130).contains("interrupted; run it again")),
        None => assert!(sent.status.success()),
    }
}

#[test]
fn what_is_replaced_keeps_its_rights() {
    let bench = Bench::with_database("--key text --value text");
    bench.write("rows.csv", rows(1000));
    bench.done("import a.db rows.csv");
    bench.write("out.csv", "old");
    for name in ["a.db", "out.csv"] {
        fs::set_permissions(bench.path(name), fs::Permissions::from_mode(0o600)).unwrap();
    }
    for line in [
        "compact a.db",
        "export a.db out.csv",
        "convert a.db out.csv --overwrite",
        "create a.db --overwrite",
        "create nand-file:a.db --overwrite --chip winbond-w25n01gv:blocks=64",
    ] {
        bench.done(line);
        for name in ["a.db", "out.csv"] {
            let mode = fs::metadata(bench.path(name)).unwrap().permissions().mode();
            assert_eq!(mode & 0o777, 0o600, "{line}: {name}");
        }
    }
}
