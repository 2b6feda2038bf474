//! The program on devices in real files.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]
#![cfg(unix)]

use std::fs;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use assert_cmd::cargo::cargo_bin;
use tempfile::TempDir;

/// A comparison that takes a moment, and whose tree is larger than its memory.
const SMALL: &str = "compare --tree b-plus --workload uniform:preload=20000,updates=1000,ltu=100 \
                     --size 8MiB --memory 128KiB";

/// A folder on the disk that the project is built on: one in memory may lack direct transfers.
fn tempdir() -> std::io::Result<TempDir> {
    tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR"))
}

/// Runs the program with the words of `line` in `folder`.
fn run_in(folder: &Path, line: &str) -> Output {
    let mut command = Command::new(cargo_bin!("flashtree"));
    command.current_dir(folder).args(line.split_whitespace());
    command.stdin(Stdio::null()).output().unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

fn row(output: &Output) -> serde_json::Value {
    assert!(output.status.success(), "{}", text(&output.stderr));
    let rows: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    rows[0].clone()
}

/// What a line that fails says, which is one line.
fn complaint(output: &Output, code: i32) -> String {
    let error = text(&output.stderr);
    assert_eq!(output.status.code(), Some(code), "{error}");
    assert_eq!(error.lines().count(), 1, "{error}");
    assert!(error.starts_with("error: ") && output.stdout.is_empty(), "{error}");
    error
}

/// The fields of a row that have no value.
fn nulls(row: &serde_json::Value) -> Vec<&str> {
    let fields = row.as_object().unwrap();
    fields.iter().filter(|(_, value)| value.is_null()).map(|(name, _)| name.as_str()).collect()
}

#[test]
fn what_a_device_does_not_have_is_null() {
    let folder = tempdir().unwrap();
    let unseen = ["block_erases", "energy_uj_per_op", "erases_mean", "erases_most", "ftl"];
    let flash = ["flash_bytes_programmed", "flash_write_amplification"];
    let system = ["system_bytes_read", "system_bytes_written"];
    for (device, without) in [
        ("file:disk", &unseen[..]),
        ("mtron-msp-sata7525", &unseen),
        ("mtron-msd-sata3035", &["energy_uj_per_op", "ftl"]),
        ("kingston-minisd-512", &["block_erases", "erases_mean", "erases_most", "ftl"]),
        ("nand-file:chip", &["energy_uj_per_op", "ftl"]),
        ("winbond-w25n01gv", &["energy_uj_per_op", "ftl"]),
        ("toshiba-tc58dvg02a1ft00", &["ftl"]),
        ("toshiba-tc58dvg02a1ft00 over a layer", &[]),
    ] {
        let small = match device.ends_with("layer") {
            true => SMALL.replace("b-plus", "b-plus:over=ftl"),
            false => SMALL.to_owned(),
        };
        let device = device.trim_end_matches(" over a layer");
        let line = format!("{small} --device {device} --format json");
        let row = row(&run_in(folder.path(), &line));
        let mut found = nulls(&row);
        found.sort_unstable();
        let mut without = without.to_vec();
        without.extend(flash.iter().filter(|_| device != "mtron-msd-sata3035"));
        without.extend(system.iter().filter(|_| device != "file:disk"));
        // Caches and buffers are bounded here.
        without.push("memory_total_bytes");
        without.sort_unstable();
        assert_eq!(found, without, "{device}");
        assert_eq!(row["memory"]["ftl"].is_null(), row["ftl"].is_null(), "{device}");
        assert_eq!(row["device"], device);
        assert_eq!(row["verified"], true);
    }
}

#[test]
fn the_path_is_all_that_follows_the_first_colon() {
    let folder = tempdir().unwrap();
    for name in ["a:b", "a,size=3", "chip.toml", "nand-file:x"] {
        let line = format!("{SMALL} --device file:{name} --format json --quiet");
        let output = run_in(folder.path(), &line);
        assert!(output.stderr.is_empty(), "{}", text(&output.stderr));
        assert_eq!(row(&output)["device"], format!("file:{name}"));
        assert_eq!(fs::metadata(folder.path().join(name)).unwrap().len(), 8 << 20);
    }
}

#[test]
fn tables_and_report_name_the_clock() {
    let folder = tempdir().unwrap();
    let read = || fs::read_to_string(folder.path().join("r.html")).unwrap().to_lowercase();
    let line = format!("{SMALL} --report r.html --device");
    let wall = text(&run_in(folder.path(), &format!("{line} file:disk")).stdout);
    assert!(
        wall.contains("Wall-clock time of an") && wall.contains("Wall-clock time by"),
        "{wall}"
    );
    assert!(wall.contains("99.99 %") && wall.contains("slowest"), "{wall}");
    assert!(!wall.contains("Device time") && read().contains("wall-clock time an operation"));
    assert!(!read().contains("device time"));
    let model = text(&run_in(folder.path(), &format!("{line} nand-file:chip")).stdout);
    assert!(model.contains("Device time by cause") && read().contains("device time an operation"));
}

#[test]
fn a_file_that_stays_is_told_once() {
    let folder = tempdir().unwrap();
    let line = format!("{SMALL} --device file:disk --tree b-plus:fill=80");
    let error = text(&run_in(folder.path(), &line).stderr);
    assert_eq!(error.matches("disk stays").count(), 1, "{error}");
    let quiet = run_in(folder.path(), &format!("{line} --quiet"));
    assert!(quiet.stderr.is_empty() && quiet.status.success());
}

#[test]
fn a_foreign_file_is_refused_and_stays_as_it_is() {
    let folder = tempdir().unwrap();
    let path = folder.path().join("thesis");
    let content: Vec<u8> = (0..3_000_000_u32).map(|number| (number % 251) as u8).collect();
    fs::write(&path, &content).unwrap();
    for device in ["file:thesis", "nand-file:thesis"] {
        let line = format!("{SMALL} --device {device} --report r.html --save s.json");
        let error = complaint(&run_in(folder.path(), &line), 1);
        assert!(error.contains("thesis") && error.contains("--overwrite"), "{error}");
        assert!(fs::read(&path).unwrap() == content, "it was changed");
    }
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    let line = format!("{SMALL} --device file:thesis --overwrite --format json");
    assert_eq!(row(&run_in(folder.path(), &line))["verified"], true);
}

#[test]
fn a_locked_file_and_a_folder_are_refused() {
    let folder = tempdir().unwrap();
    let line = format!("{SMALL} --device file:disk");
    assert!(run_in(folder.path(), &line).status.success());
    let lock = fs::File::open(folder.path().join("disk")).unwrap();
    lock.lock().unwrap();
    assert!(complaint(&run_in(folder.path(), &line), 1).contains("in use"));
    drop(lock);
    for device in ["file:.", "nand-file:.", "file:/dev/null"] {
        let output = run_in(folder.path(), &format!("{SMALL} --device {device} --overwrite"));
        assert!(complaint(&output, 1).contains("neither"), "{device}");
    }
}

#[test]
fn a_file_system_without_room_is_told_and_nothing_is_left() {
    let folder = tempdir().unwrap();
    // A shell that allows files of 1 MiB stands for a file system that is full.
    let limits = "trap '' XFSZ; ulimit -f 2048; exec \"$@\"";
    for device in ["file:disk", "nand-file:chip"] {
        let mut command = Command::new("sh");
        command.args(["-c", limits, "sh"]).arg(cargo_bin!("flashtree")).current_dir(folder.path());
        command.args(SMALL.split_whitespace()).args(["--device", device]).stdin(Stdio::null());
        let error = complaint(&command.output().unwrap(), 1);
        assert!(error.contains("can't reserve room") && error.contains("File too"), "{error}");
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0, "{device}");
    }
}

#[test]
fn an_interrupt_takes_away_the_file_that_was_made() {
    let folder = tempdir().unwrap();
    let line =
        "compare --tree b-plus --workload zipf:preload=1000,ltu=100 --ops 1000000000 --size 8MiB";
    let mut command = Command::new(cargo_bin!("flashtree"));
    command.current_dir(folder.path()).args(line.split_whitespace());
    command.args(["--device", "file:disk"]).stdin(Stdio::null());
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    // From the moment on at which the file is there, the program minds interrupts.
    while !folder.path().join("disk").exists() {
        assert!(child.try_wait().unwrap().is_none(), "it ended by itself");
        std::thread::yield_now();
    }
    let id = child.id().to_string();
    assert!(Command::new("kill").args(["-INT", &id]).status().unwrap().success());
    complaint(&child.wait_with_output().unwrap(), 130);
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
}

#[test]
fn the_help_of_compare_lists_the_translation_layers_with_their_parameters() {
    // Where lines break depends on the terminal.
    let help = text(&run_in(Path::new("."), "compare --help").stdout);
    let help = help.split_whitespace().collect::<Vec<_>>().join(" ");
    for layer in ftl::FTLS {
        assert!(help.contains(layer.name) && help.contains(layer.about), "{}: {help}", layer.name);
        for parameter in layer.parameters {
            assert!(help.contains(parameter.about), "{}: {help}", parameter.name);
        }
    }
}
