//! `flashtree torture` from outside: its grammar, what it prints, and that it plays again what it
//! played.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::process::{Command, Output, Stdio};

use assert_cmd::cargo::cargo_bin;
use contract::torture::{ReplayId, cells};
use serde_json::Value;

fn torture(line: &str) -> Output {
    let mut command = Command::new(cargo_bin!("flashtree"));
    command.arg("torture").args(line.split_whitespace()).stdin(Stdio::null()).output().unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

fn printed(line: &str) -> String {
    let output = torture(line);
    assert!(output.status.success(), "{}", text(&output.stderr));
    assert!(output.stderr.is_empty(), "{}", text(&output.stderr));
    text(&output.stdout)
}

fn rows(line: &str) -> Vec<Value> {
    serde_json::from_str(&printed(&format!("{line} --format json"))).unwrap()
}

fn wrong(line: &str) -> String {
    let output = torture(line);
    let error = text(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{line}: {error}");
    assert!(error.starts_with("error: ") && error.lines().count() == 1, "{error}");
    assert!(output.stdout.is_empty(), "{line}");
    error
}

#[test]
fn the_list_names_every_cell_once() {
    let wanted: Vec<String> = cells(trees::TREES).iter().map(ToString::to_string).collect();
    assert_eq!(printed("--list").lines().collect::<Vec<_>>(), wanted);
    let listed: Vec<String> = serde_json::from_str(&printed("--list --format json")).unwrap();
    assert_eq!(listed, wanted);
}

#[test]
fn a_tree_names_all_its_cells_or_those_with_its_parameters() {
    let all = printed("--list --tree b-plus");
    let every = printed("--list");
    let is_b_plus = |cell: &&str| cell.starts_with("b-plus/") || cell.starts_with("b-plus:");
    let wanted: Vec<_> = every.lines().filter(is_b_plus).collect();
    assert_eq!(all.lines().collect::<Vec<_>>(), wanted);
    let on_flash = printed("--list --tree b-plus/nand");
    assert_eq!(on_flash.lines().count(), 72);
    assert!(on_flash.lines().all(|cell| cell.starts_with("b-plus/nand")));
    assert_eq!(printed("--list --tree b-plus/nand+spare").lines().count(), 36);
    let one = "b-plus/nand+spare/512/4+4/batch\n";
    assert_eq!(printed(&format!("--list --tree {one}")), one);
    let some = printed("--list --tree b-plus:node=1024");
    assert!(!some.is_empty() && some.len() < all.len());
    assert!(some.lines().all(|cell| cell.starts_with("b-plus:node=1024/")));
}

#[test]
fn json_has_a_row_a_cell_with_the_fields_of_the_interface() {
    let rows = rows("--tree b-plus:node=1024 --cuts 300");
    assert_eq!(rows.len(), printed("--list --tree b-plus:node=1024").lines().count());
    let fields = ["cell", "cuts", "failures", "recoveries", "recovery_cuts", "replay"];
    let mut sums = [0; 3];
    for row in &rows {
        let mut names: Vec<_> = row.as_object().unwrap().keys().map(String::as_str).collect();
        names.sort_unstable();
        assert_eq!(names, fields);
        assert!(row["failures"] == 0 && row["replay"].is_null(), "{row}");
        for (sum, name) in sums.iter_mut().zip(["cuts", "recoveries", "recovery_cuts"]) {
            *sum += row[name].as_u64().unwrap();
        }
    }
    let [cuts, recoveries, recovery_cuts] = sums;
    assert!(cuts >= 300 && recoveries > 0 && recovery_cuts < cuts, "{sums:?}");
}

#[test]
fn the_table_tells_cuts_recoveries_and_what_the_histories_contain() {
    let table = printed("--tree b-plus --cuts 1000");
    for words in ["cuts", "recoveries", "cuts during", "failures", "power cut", "torn program"] {
        assert!(table.contains(words), "{words} is missing:\n{table}");
    }
    for words in ["splits", "merges", "blocks reclaimed", "checkpoints", "deletes", "batches"] {
        let is_counted = |line: &str| {
            let count = line.trim_start().split(' ').next().unwrap_or_default();
            line.ends_with(words)
                && count.replace(',', "").parse().is_ok_and(|count: u64| count > 0)
        };
        assert!(
            table.lines().any(|line| is_counted(line) || line.contains(&format!("  {words} "))),
            "no {words}:\n{table}"
        );
    }
}

#[test]
fn a_seed_and_any_number_of_jobs_give_the_same_rows() {
    let line = "--tree b-plus:node=128 --cuts 200";
    let one = rows(&format!("{line} --seed 7 --jobs 1"));
    assert_eq!(one, rows(&format!("{line} --seed 7 --jobs 2")));
    assert_ne!(one, rows(&format!("{line} --seed 8")));
}

#[test]
fn an_id_is_played_up_to_its_cut() {
    for id in [
        "b-plus/file/512/4+4/every@life:7:3",
        "b-plus/page-map+spare/512/variable/batch@each:7:5",
        "b-plus:node=128/disk-torn/512/8+8/checkpoint@each:7:5:2",
    ] {
        assert!(ReplayId::parse(trees::TREES, id).is_some());
        let rows = rows(&format!("--replay {id}"));
        assert_eq!(rows.len(), 1);
        assert_eq!(rows[0]["cell"].as_str(), id.split('@').next());
        assert!(rows[0]["cuts"].as_u64().unwrap() > 0, "{id}: {}", rows[0]);
    }
}

#[test]
fn wrong_usage_says_in_one_line_what_is_wrong() {
    assert!(wrong("--tree b-puls").contains("did you mean b-plus?"));
    assert!(wrong("--tree b-plus:node=77").contains("--list --tree b-plus"));
    assert!(wrong("--tree b-plus/nnad").contains("did you mean b-plus/nand"));
    assert!(wrong("--tree list/nand+spare/512/8+9").contains("list/nand+spare/512/8+8"));
    assert!(wrong("--tree b-puls/nand").contains("did you mean b-plus?"));
    assert!(wrong("--tree list/").contains("list/nand"));
    assert!(wrong("--replay b-plus/file/512/4+4/every").contains("can't be played again"));
    assert!(wrong("--replay no-tree/file/512/4+4/every@life:1:1").contains("can't be played"));
    for line in [
        "--cuts 0",
        "--cuts -1",
        "--cuts many",
        "--seed -1",
        "--format csv",
        "--list --replay b-plus/file/512/4+4/every@life:1:1",
        "--cuts 5 --replay b-plus/file/512/4+4/every@life:1:1",
        "--jobs 0",
        "cells",
    ] {
        wrong(line);
    }
}
