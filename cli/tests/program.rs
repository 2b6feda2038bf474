//! The program from outside: what it prints, where, and with which exit code.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::path::Path;
use std::process::{Command, Output, Stdio};

use assert_cmd::cargo::cargo_bin;
use tempfile::{TempDir, tempdir};

/// Runs the program with the words of `line` in `folder`.
fn run_in(folder: &Path, line: &str) -> Output {
    let mut command = Command::new(cargo_bin!("flashtree"));
    command.current_dir(folder).args(line.split_whitespace());
    command.stdin(Stdio::null()).env_remove("NO_COLOR").output().unwrap()
}

fn run(line: &str) -> Output {
    run_in(tempdir().unwrap().path(), line)
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

/// What a line that must fail says, which is one line.
fn complaint_of(output: &Output, code: i32) -> String {
    let error = text(&output.stderr);
    assert_eq!(output.status.code(), Some(code), "{error}");
    assert_eq!(error.lines().count(), 1, "{error}");
    assert!(error.starts_with("error: ") && error.is_ascii(), "{error}");
    assert!(output.stdout.is_empty(), "{}", text(&output.stdout));
    error
}

fn wrong(line: &str) -> String {
    complaint_of(&run(line), 2)
}

/// A comparison that takes a moment.
const SMALL: &str = "compare --device winbond-w25n01gv:blocks=64 --quiet \
                     --workload uniform:preload=2000 --ops 2000";

fn json(output: &Output) -> serde_json::Value {
    assert!(output.status.success(), "{}", text(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

#[test]
fn help_and_version_are_no_failure() {
    for line in ["--help", "--version", "compare --help", "devices --help", "trees --version"]
        .into_iter()
        .chain(["help", "help compare", "man", "completions bash", "completions fish"])
    {
        let output = run(line);
        assert_eq!(output.status.code(), Some(0), "{line}");
        assert!(output.stdout.ends_with(b"\n") && output.stderr.is_empty(), "{line}");
    }
    assert_eq!(text(&run("--version").stdout).trim(), "flashtree 0.3.0");
    assert_eq!(run("").status.code(), Some(2));
}

#[test]
fn unknown_names_are_refused_with_near_ones() {
    for (line, near) in [
        ("compare --device winbond-w25n01g", "winbond-w25n01gv"),
        ("compare --trees b-pluss", "b-plus"),
        ("compare --tree bplus:fill=80", "b-plus"),
        ("compare --workload wether", "weather"),
        ("devices winbond-w25n01g", "winbond-w25n01gv"),
        ("trees bplus", "b-plus"),
        ("workloads unifrom", "uniform"),
        ("compar", "compare"),
        ("compare --memry 1KiB", "--memory"),
    ] {
        let error = wrong(line);
        assert!(error.contains(near), "{line}: {error}");
    }
    assert!(wrong("trees zzzzzz").contains("flashtree trees"));
}

#[test]
fn parameters_that_are_refused_tell_what_is_permitted() {
    for (tree, permitted) in [
        ("la-tree:pool=2", "a ratio from 0.01 to 0.99"),
        ("la-tree:share=half", "fixed or shared"),
        ("la-tree:buffer=1TiB", "adaptive, none, or a size from 1 to 268435456 bytes"),
        ("la-tree:buffer=0", "adaptive, none, or a size from 1 to 268435456 bytes"),
        ("la-tree:k=9", "a whole number from 1 to 8"),
        ("la-tree:fanout=1", "a whole number from 4 to"),
        ("la-tree:fanout=1/3", "a whole number from 4 to"),
        ("la-tree:fanout=4096", "in pages of 2048 bytes it must be a whole number from"),
        ("ipl:log-pages=0", "a whole number from 1 to 65535"),
        ("ipl:log-pages=64", "a whole number from 1 to 63 on this chip"),
        ("list:x=1", "it has none at all"),
        ("b-plus:x=1", "node, fill, collect, cache, flush, waiting, over"),
    ] {
        let error = wrong(&format!("compare --tree {tree}"));
        assert!(error.contains(permitted), "{tree}: {error}");
    }
    // The largest buffer that is permitted only needs memory, of which enough is told at once.
    let error = wrong("compare --tree la-tree:buffer=256MiB");
    let least = error.split_whitespace().filter_map(|word| word.parse().ok()).next_back();
    let least: u64 = least.unwrap();
    assert!(least > 256 << 20 && least < 1 << 30, "{error}");
}

#[test]
fn beside_a_tree_that_is_refused_the_others_are_rows() {
    let line = "compare --device file:disk --size 16MiB --quiet --workload uniform --ops 500 \
                --trees mu,b-plus,list --format json";
    let output = run(line);
    let error = text(&output.stderr);
    assert_eq!((output.status.code(), error.lines().count()), (Some(2), 1), "{error}");
    let rows: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    for (row, tree) in ["mu", "b-plus", "list"].iter().enumerate() {
        assert_eq!(rows[row]["tree"], *tree);
        assert_eq!(rows[row]["verified"] == true, *tree == "b-plus", "{rows}");
        let refused = rows[row]["error"].as_str().is_some_and(|why| why.contains("a disk"));
        assert_eq!(refused, *tree != "b-plus", "{rows}");
    }
    // What no device could help is refused before anything runs.
    assert!(wrong("compare --trees b-plus,la-tree:k=9").contains("1 to 8"));
    assert!(wrong("compare --trees mu --device file:disk").contains("a disk"));
}

#[test]
fn a_translation_layer_that_serves_no_tree_is_told() {
    let line = SMALL.replace(" --quiet", "") + " --ftl dac --tree";
    let told = text(&run(&format!("{line} mu")).stderr);
    assert!(told.contains("--ftl dac means nothing for mu"), "{told}");
    let told = text(&run(&format!("{line} b-plus:over=ftl")).stderr);
    assert!(!told.contains("means nothing"), "{told}");
    let parameters = text(&run("trees b-plus").stdout);
    assert!(parameters.contains("over") && parameters.contains("translation layer"));
    assert!(!text(&run("trees mu").stdout).contains("translation layer"));
}

#[test]
fn numbers_that_are_none_are_refused_with_what_is_expected() {
    for (line, expected) in [
        ("compare --ops 0", "1 or more"),
        ("compare --ops ten", "whole number"),
        ("compare --memory much", "such as"),
        ("compare --memory-total -1", "such as"),
        ("compare --size 1.5GiB", "such as"),
        ("compare --seed x", "whole number"),
        ("compare --jobs 0", "1 or more"),
    ] {
        let error = wrong(line);
        assert!(error.contains(expected), "{line}: {error}");
    }
}

#[test]
fn too_little_memory_is_refused_with_the_least_that_works() {
    let error = wrong("compare --tree b-plus --memory 1KiB");
    let least = error.split("--memory ").nth(1).unwrap_or_else(|| panic!("{error}"));
    let least: String = least.chars().take_while(char::is_ascii_digit).collect();
    let works = run(&format!("{SMALL} --tree b-plus --memory {least} --format json"));
    assert_eq!(json(&works)[0]["memory_bytes"].to_string(), least);
}

#[test]
fn a_csv_file_is_refused_with_the_place_that_is_wrong() {
    let folder = tempdir().unwrap();
    std::fs::write(folder.path().join("in.csv"), "id,name\n1,a\nx,b\n").unwrap();
    let line = "compare --workload csv:key=id,value=id --input";
    for (line, code, facts) in [
        ("compare --workload csv:key=number --input in.csv", 2, ["in.csv", "number"]),
        (&format!("{line} in.csv"), 1, ["line 3", "\"x\""]),
        (&format!("{line} absent.csv"), 1, ["absent.csv", "No such file"]),
    ] {
        let error = complaint_of(&run_in(folder.path(), line), code);
        assert!(facts.iter().all(|fact| error.contains(fact)), "{line}: {error}");
    }
    wrong("compare --workload csv:key=id");
}

#[test]
fn a_file_that_cannot_be_written_is_told_before_the_run() {
    let folder = tempdir().unwrap();
    for line in ["compare --report absent/report.html", "compare --save .", "compare --report ."] {
        let error = complaint_of(&run_in(folder.path(), line), 1);
        assert!(error.contains("can't write"), "{line}: {error}");
    }
    assert_eq!(files(&folder), Vec::<String>::new());
}

#[test]
fn results_replace_nothing_but_earlier_results() {
    let folder = tempdir().unwrap();
    let path = |name| folder.path().join(name);
    let done = |line: &str| assert!(run_in(folder.path(), line).status.success(), "{line}");
    done("create a.db --key text --value text");
    done("create nand-file:chip.db --chip winbond-w25n01gv:blocks=64");
    std::fs::write(path("notes.txt"), "mine").unwrap();
    std::fs::write(path("mine.json"), "[1]").unwrap();
    let before = std::fs::read(path("a.db")).unwrap();
    for (name, what) in [
        ("a.db", "a flashtree database"),
        ("chip.db", "a flashtree database"),
        ("notes.txt", "something else"),
        ("mine.json", "something else"),
    ] {
        for option in ["--save", "--report"] {
            let error =
                complaint_of(&run_in(folder.path(), &format!("{SMALL} {option} {name}")), 2);
            assert!(error.contains(name) && error.contains(what), "{error}");
            assert!(error.contains("name another file, or remove"), "{error}");
        }
    }
    assert_eq!(std::fs::read(path("a.db")).unwrap(), before);
    // Results of the other option, and both in one file.
    let both = format!("{SMALL} --save rows.json --report r.html");
    done(&both);
    done(&both);
    for line in ["--save r.html", "--report rows.json", "--save x --report x"] {
        complaint_of(&run_in(folder.path(), &format!("{SMALL} {line}")), 2);
    }
    for option in ["--save", "--report"] {
        assert!(wrong(&format!("{SMALL} {option} -")).contains("--format"));
        done(&format!("{SMALL} {option} /dev/null"));
    }
    let names = ["a.db", "chip.db", "mine.json", "notes.txt", "r.html", "rows.json"];
    let mut found = files(&folder);
    found.sort();
    assert_eq!(found, names);
}

#[test]
fn a_run_that_is_refused_leaves_no_file() {
    let folder = tempdir().unwrap();
    let line = "compare --device absent --report report.html --save rows.json";
    complaint_of(&run_in(folder.path(), line), 2);
    assert_eq!(files(&folder), Vec::<String>::new());
}

fn files(folder: &TempDir) -> Vec<String> {
    let entries = std::fs::read_dir(folder.path()).unwrap();
    entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
}

#[test]
fn a_comparison_prints_the_same_rows_in_every_format() {
    let folder = tempdir().unwrap();
    let line = format!("{SMALL} --save rows.json --report report.html");
    let rows = json(&run_in(folder.path(), &format!("{line} --format json")));
    let saved = std::fs::read(folder.path().join("rows.json")).unwrap();
    assert_eq!(serde_json::from_slice::<serde_json::Value>(&saved).unwrap(), rows);
    let page = std::fs::read_to_string(folder.path().join("report.html")).unwrap();
    let csv = text(&run(&format!("{SMALL} --format csv")).stdout);
    let table = text(&run(SMALL).stdout);
    let first = rows[0].as_object().unwrap();
    assert_eq!(first["operations"], 2000);
    assert_eq!(first["verified"], true);
    for text in [&page, &csv, &table] {
        assert!(text.contains(first["tree"].as_str().unwrap()), "{text}");
    }
    assert_eq!(csv.lines().count(), 1 + rows.as_array().unwrap().len());
    assert_eq!(csv.lines().next().unwrap(), flattened(&rows[0]).join(","));
    assert!(!table.contains('\u{1b}') && !csv.contains('\u{1b}'), "no colours in a pipe");
}

#[test]
fn the_heading_of_a_comparison_tells_what_the_memory_is_for() {
    let heading = |options: &str| {
        let line = "compare --device kingston-minisd-512 --tree la-tree --quiet \
                    --workload uniform:preload=100 --ops 100";
        let output = run(&format!("{line} {options}"));
        assert!(output.status.success(), "{}", text(&output.stderr));
        text(&output.stdout).lines().next().unwrap().to_owned()
    };
    // Tables come beside the budget: on a card those of la-tree are larger than that.
    let told = heading("--memory 128KiB");
    assert!(told.contains("memory 128 KiB for caches and buffers"), "{told}");
    let told = heading("--memory-total 4MiB");
    assert!(told.contains("memory 4 MiB for everything"), "{told}");
}

fn flattened(value: &serde_json::Value) -> Vec<String> {
    let mut names = Vec::new();
    for (name, value) in value.as_object().unwrap() {
        match value {
            serde_json::Value::Object(_) => {
                names.extend(flattened(value).iter().map(|field| format!("{name}_{field}")));
            }
            _ => names.push(name.clone()),
        }
    }
    names
}

#[test]
fn lists_are_tables_or_json_with_the_same_names() {
    for (list, name) in [("devices", "winbond-w25n01gv"), ("trees", "b-plus")] {
        let all = json(&run(&format!("{list} --format json")));
        let table = text(&run(list).stdout);
        for entry in all.as_array().unwrap() {
            assert!(table.contains(entry["name"].as_str().unwrap()), "{list}: {entry}");
        }
        let one = json(&run(&format!("{list} {name} --format json")));
        assert_eq!(one.as_array().unwrap().len(), 1);
        assert_eq!(one[0]["name"], name);
        assert!(text(&run(&format!("{list} {name}")).stdout).starts_with(name));
    }
    let workloads = json(&run("workloads --format json"));
    let names: Vec<_> =
        workloads.as_array().unwrap().iter().map(|w| w["name"].as_str().unwrap()).collect();
    assert!(names.is_sorted() && names.contains(&"weather"), "{names:?}");
    assert!(text(&run("workloads weather").stdout).contains("ltu"));
}

#[test]
fn every_figure_of_a_device_has_a_source() {
    let devices = json(&run("devices --format json"));
    for device in devices.as_array().unwrap() {
        for figure in device["figures"].as_array().unwrap() {
            assert!(figure["source"].as_str().is_some_and(|s| !s.is_empty()), "{figure}");
            assert!(figure["kind"].is_string(), "{figure}");
        }
    }
}

#[cfg(unix)]
#[test]
fn nobody_reading_on_is_no_failure() {
    for line in ["devices", "devices --format json", "--help", SMALL] {
        let mut command = Command::new(cargo_bin!("flashtree"));
        command.args(line.split_whitespace()).stdin(Stdio::null());
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        drop(child.stdout.take());
        let output = child.wait_with_output().unwrap();
        assert_eq!(text(&output.stderr), "", "{line}");
        assert_eq!(output.status.code(), Some(0), "{line}");
    }
}

#[cfg(unix)]
#[test]
fn an_interrupt_ends_a_run_cleanly() {
    let folder = tempdir().unwrap();
    let line = "compare --tree b-plus --workload zipf:preload=1000,ltu=100 --ops 1000000000 \
                --report r.html";
    let mut command = Command::new(cargo_bin!("flashtree"));
    command.current_dir(folder.path()).args(line.split_whitespace()).stdin(Stdio::null());
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    // From the moment on at which the file is there, the program minds interrupts.
    while files(&folder).is_empty() {
        assert!(child.try_wait().unwrap().is_none(), "it ended by itself");
        std::thread::yield_now();
    }
    let id = child.id().to_string();
    assert!(Command::new("kill").args(["-INT", &id]).status().unwrap().success());
    let output = child.wait_with_output().unwrap();
    assert!(complaint_of(&output, 130).contains("0 of 1 trees were done"));
    assert_eq!(files(&folder), Vec::<String>::new());
}
