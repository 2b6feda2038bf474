//! What the cases of a target reached: each error that reading can give, and each reason for it.
//!
//! A fuzzer that is refused at the first checksum finds nothing. So every target counts the errors
//! that its cases ended with, and must have seen those that [`crate::expected`] names.

use std::cell::RefCell;
use std::collections::BTreeMap;

/// Counts what was reached.
#[derive(Default)]
pub struct Reach {
    seen: RefCell<BTreeMap<String, u64>>,
}

impl Reach {
    /// Counts `name`.
    pub fn note(&self, name: impl Into<String>) {
        *self.seen.borrow_mut().entry(name.into()).or_default() += 1;
    }

    /// Counts an error of an index, and its reason.
    pub fn note_index(&self, error: &index::Error) {
        match error {
            index::Error::Store(error) => self.note_store(error),
            other => self.note(format!("index {}", variant(other))),
        }
    }

    /// Counts an error of the store, and its reason.
    pub fn note_store(&self, error: &store::Error) {
        use store::Error::{DamagedPage, Device, NodeSize, NotAnIndex};
        match error {
            Device(error) => self.note(format!("device {}", variant(error))),
            DamagedPage { what, .. } | NotAnIndex { what, .. } | NodeSize { what, .. } => {
                self.note(format!("store {}", variant(error)));
                self.note(*what);
            }
            other => self.note(format!("store {}", variant(other))),
        }
    }

    /// Counts an error of a database, and what is below it.
    pub fn note_database(&self, error: &db::Error) {
        self.note(format!("db {}", variant(error)));
        match error {
            db::Error::Damaged { source } | db::Error::Full { source } => self.note_index(source),
            db::Error::Index(error) => self.note_index(error),
            db::Error::File(file::Error::Header { fault, .. }) => {
                self.note(format!("header {}", variant(fault)));
            }
            db::Error::Encoding(error) => self.note(format!("encoding {}", variant(error))),
            db::Error::NotADatabase { what, .. } => self.note(without_numbers(what)),
            _ => {}
        }
    }

    /// Counts what a check of an index found: the reason behind the last colon.
    pub fn note_finding(&self, finding: &dyn std::fmt::Display) {
        let text = finding.to_string();
        if let Some((_, reason)) = text.rsplit_once(": ") {
            self.note(without_numbers(reason));
        }
        self.note("finding");
    }

    /// Fails if one of `wanted` was never seen: then the fuzzer has become blind there. Does
    /// not fail where rounds were asked for by their number.
    ///
    /// # Panics
    /// One was not.
    pub fn check(&self, target: &str, wanted: &[&str]) {
        let seen = self.seen.borrow();
        for (name, count) in &*seen {
            println!("{count:9} {name}");
        }
        let missing: Vec<_> = wanted.iter().filter(|name| !seen.contains_key(**name)).collect();
        println!(
            "fuzz {target}: reached {} of {} errors and reasons that it must, {} in all",
            wanted.len() - missing.len(),
            wanted.len(),
            seen.len()
        );
        // A round that is played again, alone, need not reach all.
        if std::env::var_os("FLASHTREE_FUZZ_SEED").is_some() {
            return;
        }
        assert!(missing.is_empty(), "{target} never reached {missing:?}");
    }
}

/// The name of an error's variant, from how it is printed for debugging.
fn variant(error: &impl std::fmt::Debug) -> String {
    let text = format!("{error:?}");
    let end = text.find(|c: char| !c.is_ascii_alphanumeric()).unwrap_or(text.len());
    text[..end].to_owned()
}

/// The text with `#` for each number in it, and no path.
fn without_numbers(text: &str) -> String {
    let mut words = text.split(' ').map(|word| {
        let end = word.trim_end_matches([',', ':']).len();
        let (word, rest) = word.split_at(end);
        let is_number = word.starts_with(|c: char| c.is_ascii_digit());
        let is_path = word.starts_with('/');
        let word = if is_number {
            "#"
        } else if is_path {
            "it"
        } else {
            word
        };
        [word, rest].concat()
    });
    let first = words.next().unwrap_or_default();
    words.fold(first, |text, word| text + " " + &word)
}
