//! Imports that go on, or are told that they can't.

use std::fs;
use std::process::Command;

use crate::bench::{Bench, complaint, rows, text};

const TEXTS: &str = "--key text --value text";

/// Breaks an import of `count` rows off behind the last, in a database made with `words`, after
/// `between` took place behind an earlier import.
fn broken_off(words: &str, count: usize) -> Bench {
    let bench = Bench::with_database(words);
    bench.write("before.csv", "key,value\nkey000000,first\nkey999999,last\n");
    bench.done("import a.db before.csv");
    fs::copy(bench.path("a.db"), bench.path("copy.db")).unwrap();
    bench.write("rows.csv", rows(count) + "key999999,x\nbad\n");
    bench.failed("import a.db rows.csv --buffer 64KiB");
    bench.write("rows.csv", rows(count) + "key999999,x\nkeyz,y\n");
    bench
}

#[test]
fn an_older_copy_is_nothing_that_an_import_goes_on_from() {
    for words in [
        TEXTS.to_owned(),
        format!("{TEXTS} --durability every"),
        format!("{TEXTS} --durability checkpoint"),
        format!("{TEXTS} --tree la-tree"),
    ] {
        for count in [3, 3000] {
            let bench = broken_off(&words, count);
            // Its last key is in the copy, too.
            fs::copy(bench.path("copy.db"), bench.path("a.db")).unwrap();
            let error = bench.failed("import a.db rows.csv --resume");
            assert!(error.contains("begin anew without --resume"), "{words}: {error}");
            bench.done("import a.db rows.csv --quiet");
            assert_eq!(bench.json("stat a.db")["entries"], count + 2);
        }
    }
}

#[test]
fn what_came_later_does_not_hinder_an_import_from_going_on() {
    for words in [
        TEXTS.to_owned(),
        format!("{TEXTS} --durability checkpoint"),
        format!("{TEXTS} --tree la-tree"),
    ] {
        let bench = broken_off(&words, 3000);
        bench.done("put a.db other x");
        bench.done("delete a.db other");
        let line = ["import", "a.db", "rows.csv", "--resume"];
        let output = bench.command(&line).output().unwrap();
        assert!(text(&output.stderr).contains("behind row 3,001"), "{}", text(&output.stderr));
        assert_eq!(bench.json("stat a.db")["entries"], 3002);
    }
    let chip = Bench::new();
    chip.done(&format!("create nand-file:a.db {TEXTS} --chip winbond-w25n01gv:blocks=64"));
    chip.write("rows.csv", "key,value\na,1\nb,2\nbad\n");
    chip.failed("import nand-file:a.db rows.csv");
    chip.write("rows.csv", "key,value\na,1\nb,2\nc,3\n");
    let line = ["import", "nand-file:a.db", "rows.csv", "--resume"];
    let output = chip.command(&line).output().unwrap();
    assert!(text(&output.stderr).contains("behind row 2"), "{}", text(&output.stderr));
}

#[test]
fn a_failing_disk_is_told_by_its_cause() {
    for durability in ["none", "checkpoint", "batch", "every"] {
        let bench = Bench::with_database(&format!("{TEXTS} --durability {durability}"));
        bench.write("rows.csv", rows(60_000));
        // A shell that allows short files stands for a disk that fails.
        let program = bench.command(&[]).get_program().to_owned();
        let script = "trap '' XFSZ; ulimit -f 200; exec \"$0\" import a.db rows.csv --buffer 64KiB";
        let mut shell = Command::new("bash");
        shell.args(["-c", script]).arg(program).current_dir(bench.path(""));
        let error = complaint(&shell.output().unwrap(), 1);
        assert!(!error.contains("an earlier"), "{durability}: {error}");
    }
}

#[test]
fn what_a_killed_process_left_is_told_and_stays() {
    let bench = Bench::with_database(TEXTS);
    bench.done("put a.db k v");
    bench.write("rows.csv.77.part", "half");
    bench.write("a.db.77-0.new", "half");
    for name in ["rows.csv.old.part", "rows.csv..part", "a.db.new", "a.db.77.part"] {
        bench.write(name, "mine");
    }
    let before = bench.names();
    for (line, left) in
        [("export a.db rows.csv", "rows.csv.77.part"), ("compact a.db", "a.db.77-0.new")]
    {
        let words: Vec<_> = line.split(' ').collect();
        let output = bench.command(&words).output().unwrap();
        let told = text(&output.stderr);
        assert!(output.status.success(), "{told}");
        assert_eq!(told.matches("killed").count(), 1, "{told}");
        assert!(told.contains(left) && told.contains("remove it"), "{told}");
    }
    let mut after = bench.names();
    after.retain(|name| name != "rows.csv");
    assert_eq!(after, before);
}
