//! What the tables say of a run.

#![allow(clippy::unwrap_used, reason = "helpers of tests may unwrap as tests do")]

use flashtree_bench::tables;
use serde_json::{Value, json};

/// A line of `engine`'s run.
fn line(engine: &str, mut figures: Value) -> String {
    figures["engine"] = json!(engine);
    figures["durability"] = json!("none");
    figures["shape"] = json!("8+8");
    format!("{figures}\n")
}

fn run(engine: &str, (load, is_cut): (f64, bool), gets: f64) -> String {
    [
        json!({ "phase": "settings", "package": "p", "version": "1", "settings": "a | b" }),
        json!({ "phase": "load", "entries": 5000, "per_second": load, "is_cut": is_cut }),
        json!({ "phase": "fill", "entries": 5000 }),
        json!({ "phase": "gets", "per_second": gets, "reads_each": 1.25 }),
        json!({ "phase": "end", "status": 0 }),
    ]
    .into_iter()
    .map(|figures| line(engine, figures))
    .collect()
}

#[test]
fn cells_say_what_was_measured_and_what_the_clock_ended() {
    let lines = run("flat-tree", (1234.5, true), 900.0) + &run("other", (99.0, false), 1800.0);
    let text = tables::tables(&lines).unwrap();
    assert!(text.contains("### 5,000 entries of 8+8 bytes"), "{text}");
    let row = text.lines().find(|line| line.starts_with("| flat-tree | 1,234\\* | - |")).unwrap();
    assert!(row.contains("| 1.25 | 900 |"), "{row}");
    assert!(text.contains("| other | 99 | - |"), "{text}");
    assert!(text.contains("| gets /s | 900 | other | 1,800 | 2.00 |"), "{text}");
    assert!(!text.contains("| load /s | 1,234"), "ours is the best there: {text}");
    assert!(text.contains("| flat-tree, other | none | p 1 | a \\| b |"), "{text}");
}

#[test]
fn what_ended_early_is_told() {
    let load = json!({ "phase": "load", "entries": 5000, "per_second": 1.0 });
    let killed = line("a", load) + &line("a", json!({ "phase": "end", "status": 137 }));
    let refused = line("b", json!({ "phase": "settings" }))
        + &line("b", json!({ "phase": "error", "what": "no commits" }))
        + &line("b", json!({ "phase": "end", "status": 1 }));
    let text = tables::tables(&(killed + &refused)).unwrap();
    assert!(text.contains("- a: killed after load: it needs more than the group's"), "{text}");
    assert!(text.contains("- b: not run: no commits."), "{text}");
}

#[test]
fn a_document_keeps_what_stands_around_the_tables() {
    let document =
        "before\n<!-- made by bench/run -->\nold\n<!-- end of what bench/run made -->\nlast";
    let whole = tables::put_into(document, "new\n").unwrap();
    assert_eq!(whole, document.replace("old", "new"));
    assert_eq!(tables::put_into(&whole, "new\n").unwrap(), whole);
    assert!(tables::put_into("none", "new\n").is_err());
}
