//! What is no database, is in use, or is not in the grammar.

use std::fs;
use std::os::unix::ffi::OsStrExt;

use db::{Database, OpenOptions};

use crate::bench::{Bench, complaint, rows};

/// Every command on a database, with what it needs beside the file.
const COMMANDS: [&str; 15] = [
    "put FILE k v",
    "get FILE k",
    "delete FILE k",
    "scan FILE",
    "import FILE rows.csv",
    "export FILE out.csv",
    "export FILE out.csv --skip-damaged",
    "stat FILE",
    "check FILE",
    "compact FILE",
    "convert FILE new.db",
    "checkpoint FILE one",
    "checkpoints FILE",
    "rollback FILE one",
    "forget FILE one",
];

#[test]
fn what_is_no_database_is_never_changed() {
    let bench = Bench::new();
    bench.write("rows.csv", rows(3));
    bench.write("text", "not a database\n".repeat(10_000));
    bench.write("zeros", vec![0; 1 << 20]);
    bench.write("empty", "");
    fs::create_dir(bench.path("folder")).unwrap();
    for name in ["text", "zeros", "empty", "folder", "missing", "/dev/null", "missing/a.db"] {
        for command in COMMANDS {
            let error = bench.failed(&command.replace("FILE", name));
            assert!(error.contains(name), "{command} of {name}: {error}");
            // It says what to do, and of no other file than the one that was named.
            let is_advice = ["create", "name a", "folder", "in a folder"];
            assert!(is_advice.iter().any(|word| error.contains(word)), "{command}: {error}");
            let folder = bench.path(name).parent().unwrap().display().to_string();
            assert!(name.starts_with('/') || !error.contains(&folder), "{command}: {error}");
            assert!(!error.contains(".new"), "{command}: {error}");
        }
    }
    assert_eq!(bench.read("text"), "not a database\n".repeat(10_000));
    assert_eq!(fs::read(bench.path("zeros")).unwrap(), vec![0; 1 << 20]);
    assert_eq!(bench.names(), ["empty", "folder", "rows.csv", "text", "zeros"]);
}

#[test]
fn nothing_is_overwritten_without_being_asked_for() {
    let bench = Bench::with_database("");
    bench.done("put a.db k v");
    bench.write("text", "precious");
    for name in ["a.db", "text"] {
        assert!(bench.failed(&format!("create {name}")).contains("--overwrite"));
        assert!(bench.failed(&format!("create nand-file:{name}")).contains("--overwrite"));
    }
    assert_eq!(bench.read("text"), "precious");
    assert_eq!(bench.done("get a.db k"), "v\n");
    bench.done("create text --overwrite");
    assert_eq!(bench.done("scan text"), "");
    fs::create_dir(bench.path("folder")).unwrap();
    bench.failed("create folder --overwrite");
    bench.failed("create missing/a.db");
    assert_eq!(bench.names(), ["a.db", "folder", "text"]);
}

#[test]
fn a_database_in_use_is_left_alone() {
    let bench = Bench::with_database("");
    bench.done("put a.db k v");
    bench.write("rows.csv", rows(3));
    let held = Database::open(bench.path("a.db"), &OpenOptions::new()).unwrap();
    for command in COMMANDS {
        let error = bench.failed(&format!("{} --wait 0", command.replace("FILE", "a.db")));
        let holder = match cfg!(target_os = "linux") {
            true => format!("in use by process {} (", std::process::id()),
            false => "in use by another process".to_owned(),
        };
        assert!(error.contains(&holder), "{command}: {error}");
    }
    assert!(bench.failed("create a.db --overwrite --wait 0").contains("in use"));
    held.close().unwrap();
    assert_eq!(bench.done("get a.db k"), "v\n");
    assert_eq!(bench.names(), ["a.db", "rows.csv"]);
}

#[test]
fn readers_do_not_disturb_each_other() {
    let bench = Bench::with_database("");
    bench.done("put a.db k v");
    let held = Database::open_read_only(bench.path("a.db"), &OpenOptions::new()).unwrap();
    for line in ["get a.db k", "scan a.db", "stat a.db", "check a.db", "checkpoints a.db"] {
        bench.done(line);
    }
    assert!(bench.failed("put a.db k w --wait 0").contains("in use"));
    drop(held);
}

#[test]
fn a_command_waits_for_who_has_the_database() {
    let bench = Bench::with_database("");
    bench.done("put a.db k v");
    let held = Database::open(bench.path("a.db"), &OpenOptions::new()).unwrap();
    let waiting = bench.command(&["put", "a.db", "k", "w", "--wait", "600"]).spawn().unwrap();
    // However long it takes to get there: it is not done while the database is held.
    held.close().unwrap();
    assert!(waiting.wait_with_output().unwrap().status.success());
    assert_eq!(bench.done("get a.db k"), "w\n");
    assert!(bench.wrong("get a.db k --wait -1").contains("seconds"));
}

#[test]
fn options_that_cannot_be_used_are_wrong_usage() {
    let bench = Bench::new();
    for (line, word) in [
        ("create a.db --tree b-pls", "did you mean b-plus?"),
        ("create a.db --tree b-plus:nodes=1", "node"),
        ("create a.db --key txt", "tuple(TYPE,...)"),
        ("create a.db --value tuple(text", "tuple(TYPE,...)"),
        ("create a.db --page 3000", "multiple"),
        ("create a.db --page 0", "nodes of 0 bytes"),
        ("create a.db --page 99999999999", "--page"),
        ("create a.db --memory-total 4KiB", "--memory-total"),
        ("create a.db --memory-total 0", "--memory-total"),
        ("stat a.db --memory-total 0", "--memory-total"),
        ("create a.db --size 0", "--size"),
        ("create a.db --size 100", "--size"),
        ("create a.db --size 10000000000GiB", "--size"),
        ("create file:", "FILE"),
        ("create a.db --durability always", "every"),
        ("create a.db --chip winbond-w25n01gv", "nand-file:PATH"),
        ("create a.db --ftl page-map", "nand-file:PATH"),
        ("create nand-file:a.db --chip winbond-w25n01g", "winbond-w25n01gv"),
        ("create nand-file:a.db --chip winbond-w25n01gv:block=3", "blocks"),
        ("create nand-file:a.db --ftl page-mop", "page-map"),
        ("create", "FILE"),
        ("put a.db k", "VALUE"),
        ("get a.db", "KEY"),
        ("scan a.db --limit many", "--limit"),
        ("rollback a.db", "NAME"),
        ("checkpoints a.db --format csv", "table"),
        ("puts a.db k v", "put"),
    ] {
        let error = bench.wrong(line);
        assert!(error.contains(word), "{line}: {error}");
    }
    assert!(bench.wrong("create a.db --size 4KiB").contains("--size 1MiB"));
    assert!(bench.names().is_empty());
}

#[test]
fn arguments_that_are_no_text_are_refused() {
    let bench = Bench::with_database("");
    let mut command = bench.command(&["get", "a.db"]);
    command.arg(std::ffi::OsStr::from_bytes(b"\xFF"));
    assert!(complaint(&command.output().unwrap(), 2).contains("UTF-8"));
}

#[test]
fn a_limit_on_the_length_of_files_is_an_error_and_does_not_end_the_program() {
    let bench = Bench::new();
    let program = bench.command(&[]).get_program().to_owned();
    let mut limited = std::process::Command::new("sh");
    limited.current_dir(bench.path(".")).args(["-c", "ulimit -f 8; exec \"$0\" create a.db"]);
    let output = limited.arg(program).output().unwrap();
    let error = complaint(&output, 1);
    assert!(error.contains("File too large"), "{error}");
}

#[test]
fn what_is_wrong_is_said_as_it_is() {
    let bench = Bench::new();
    std::os::unix::fs::symlink("nowhere", bench.path("link.db")).unwrap();
    for line in ["create link.db", "create link.db --overwrite"] {
        assert!(bench.failed(line).contains("a link to a file that does not exist"), "{line}");
    }
    for (line, said) in [
        ("create x.db --page 64KiB", "they must have 128 to 32768 bytes"),
        ("create x.db --tree la-tree --page 64KiB", "they must have 128 to 32768 bytes"),
        ("create nand-file:x.db --ftl x:", "a parameter is missing in \"x:\""),
        ("create nand-file:x.db --ftl x", "x"),
        ("compare --ftl x:", "a parameter is missing in \"x:\""),
        ("compare --trees b-plus:", "a parameter is missing in \"b-plus:\""),
        ("create x.db --tree b-plus:fill=99.5", "a whole percentage from 50 to 100"),
        ("torture --tree b-plus/x", "did you mean b-plus/"),
        ("compare --device toshiba-tc58dvg02a1ft00 --size 100GiB", "it has 134217728"),
        ("compare --workload uniform:updates=0 --ops 100", "contradict each other"),
    ] {
        let error = bench.wrong(line);
        assert!(error.contains(said), "{line}: {error}");
        let named: Vec<&str> = error.split("b-plus/dac").collect();
        assert!(named.len() <= 2, "{line}: {error}");
    }
    bench.done("create a.db");
    let whole = fs::read(bench.path("a.db")).unwrap();
    bench.write("cut.db", &whole[..5001]);
    for line in ["stat cut.db", "get cut.db k"] {
        let error = bench.failed(line);
        assert!(error.contains("it was cut off") && error.contains("5001"), "{error}");
    }
    let error = Database::open(bench.path("cut.db"), &OpenOptions::new()).err().unwrap();
    assert!(error.to_string().contains("cut.db: this flashtree database"), "{error}");
    bench.write("other.db", "something else".repeat(1000));
    let error = Database::open(bench.path("other.db"), &OpenOptions::new()).err().unwrap();
    assert!(error.to_string().contains("other.db: this is no flashtree database"), "{error}");
}
