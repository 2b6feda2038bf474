//! Every error that the sources know stands in a list: it must be reached, or can't be.

#![allow(clippy::expect_used, clippy::panic, reason = "a test fails by panicking")]

use std::fs;
use std::path::{Path, PathBuf};

use flashtree_fuzz::expected::{ALL, OUT_OF_REACH};

fn source(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(path)
}

/// The variants of the enumeration that begins with `start`, each behind `layer`.
fn variants(path: &str, start: &str, layer: &str) -> Vec<String> {
    let text = fs::read_to_string(source(path)).expect("the source is there");
    let (_, rest) = text.split_once(start).expect("the enumeration is there");
    let (body, _) = rest.split_once("\n}").expect("it has an end");
    let names = body.lines().filter_map(|line| {
        let name = line.strip_prefix("    ")?;
        let end = name.find(|c: char| !c.is_ascii_alphanumeric()).unwrap_or(name.len());
        name.starts_with(|c: char| c.is_ascii_uppercase())
            .then(|| format!("{layer} {}", &name[..end]))
    });
    names.collect()
}

/// The reasons that errors give in the sources below `path`.
fn reasons(path: &Path, found: &mut Vec<String>) {
    for entry in fs::read_dir(path).expect("the folder is there") {
        let path = entry.expect("it can be read").path();
        if path.is_dir() {
            reasons(&path, found);
        } else if !path.ends_with("tests.rs") {
            let text = fs::read_to_string(&path).expect("the source is there");
            let text = text.split("#[cfg(test)]").next().unwrap_or_default();
            for start in ["what: \"", "what = \"", "Err(\"", "damaged(\"", "fault(\""] {
                let behind = text.split(start).skip(1);
                found.extend(behind.filter_map(|rest| Some(rest.split_once('"')?.0.to_owned())));
            }
            // A store of nodes is told which one it is first.
            let calls = text.split(".damaged(").skip(1).filter_map(|rest| rest.split_once(')'));
            let reason = |call: &str| Some(call.split_once('"')?.1.split_once('"')?.0.to_owned());
            found.extend(calls.filter_map(|(call, _)| reason(call)));
        }
    }
}

/// Reasons of errors that nobody gets who only reads.
fn is_of_writing(reason: &str) -> bool {
    reason.starts_with("this index was made with durability none")
        || reason.starts_with("an earlier update failed midway")
}

#[test]
fn every_error_of_the_sources_is_expected_or_out_of_reach() {
    let mut names = variants("device/src/error.rs", "pub enum Error {", "device");
    names.extend(variants("store/src/error.rs", "pub enum Error {", "store"));
    names.extend(variants("index/src/error.rs", "pub enum Error {", "index"));
    names.extend(variants("db/src/error.rs", "pub enum Error {", "db"));
    names.extend(variants("file/src/error.rs", "pub enum HeaderFault {", "header"));
    assert!(names.len() > 70, "the enumerations were not found");
    let before = names.len();
    for path in ["store/src", "trees/src/b_plus", "trees/src/btree"] {
        reasons(&source(path), &mut names);
    }
    for path in ["index/src/durable.rs", "index/src/root_record.rs"] {
        assert!(source(path).exists(), "{path} has gone");
    }
    assert!(names.len() > before + 40, "the reasons were not found");
    let is_known = |name: &String| {
        ALL.iter().any(|list| list.contains(&name.as_str()))
            || OUT_OF_REACH.iter().any(|(known, _)| known == name)
            || is_of_writing(name)
    };
    let unknown: Vec<_> = names.iter().filter(|name| !is_known(name)).collect();
    assert!(unknown.is_empty(), "nobody says whether reading gives these: {unknown:#?}");
}

#[test]
fn what_is_out_of_reach_is_not_expected() {
    for (name, reason) in OUT_OF_REACH {
        assert!(!ALL.iter().any(|list| list.contains(name)), "{name}: {reason}");
    }
}
