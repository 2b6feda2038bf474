//! What each store offers: one test a row of docs/rivals.md, which has to say what was found.
//!
//! `OFFERS=write cargo test --manifest-path bench/Cargo.toml --test offers` writes the rows anew.
//! Without the feature `rocksdb` its column is passed over.

#![allow(clippy::unwrap_used, clippy::panic, reason = "helpers of tests may panic as tests do")]

use std::fs;
use std::path::Path;
use std::sync::Mutex;

use flashtree_bench::Outcome;

mod common;
mod processes;
#[cfg(feature = "rocksdb")]
mod rocksdb;
mod stores;

/// The columns, and the engines that stand for them.
const STORES: [(&str, &str); 6] = [
    ("flashtree", "flat-tree"),
    ("redb", "redb"),
    ("fjall", "fjall"),
    ("SQLite", "sqlite"),
    ("LMDB", "lmdb"),
    ("RocksDB", "rocksdb"),
];

static DOCUMENT: Mutex<()> = Mutex::new(());

/// Tries `ask` on each store that is there, in a folder of its own, and compares the answers with
/// the row of the document that starts with `what`.
fn row(what: &str, ask: impl Fn(&str, &Path) -> Outcome<String>) {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/rivals.md");
    let start = format!("| {what} |");
    let found = STORES.map(|(_, engine)| {
        flashtree_bench::engine::find(engine).ok()?;
        let folder = tempfile::tempdir().unwrap();
        let answer = ask(engine, folder.path());
        Some(answer.unwrap_or_else(|error| panic!("{engine}, {what}: {error}")))
    });
    let _alone = DOCUMENT.lock().unwrap();
    let document = fs::read_to_string(path).unwrap();
    let line = document.lines().find(|line| line.starts_with(&start));
    let line = line.unwrap_or_else(|| panic!("docs/rivals.md has no row {what}"));
    let said: Vec<&str> = line[start.len()..].split('|').map(str::trim).collect();
    let cells = STORES.iter().zip(&found).enumerate().map(|(at, ((store, _), found))| {
        let said = said.get(at).copied().unwrap_or_default();
        (*store, said.to_owned(), found.clone().unwrap_or_else(|| said.to_owned()))
    });
    let cells: Vec<_> = cells.collect();
    if std::env::var("OFFERS").is_ok_and(|text| text == "write") {
        let found: Vec<_> = cells.iter().map(|(_, _, found)| found.as_str()).collect();
        let row = format!("{start} {} |", found.join(" | "));
        fs::write(path, document.replace(line, &row)).unwrap();
        return;
    }
    for (store, said, found) in cells {
        assert_eq!(said, found, "{store}, {what}");
    }
}

/// An answer in one word.
fn word(yes: bool) -> String {
    if yes { "yes" } else { "no" }.to_owned()
}
