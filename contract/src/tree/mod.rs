//! The suite that every tree of the registry passes, on every view of a device it can stand on.
//!
//! A [`Case`] is a tree, a page size, a shape of entries, a memory budget, what the tree stands on
//! and a seed. [`run`] plays a random history on it and compares every answer with an in-memory
//! ordered map. A case has a name, and a failure prints the command that plays it again.
//!
//! `trees/src/example.rs` shows what a new tree takes: a whole one in 300 lines, built for tests
//! only, which passes this suite.

mod case;
mod history;
mod model;
mod saved;

pub use case::{Case, MemoryLevel, Shape, Stand, Storage, cases, cases_on_small_chips, find};
pub(crate) use case::{SHAPES, other_waiting, parameter_sets};
pub use history::run;
pub use model::Model;
pub use saved::{Saved, saved};

use index::{Index, Read};

/// Every finding of the index's own check, as text.
///
/// # Panics
/// The check itself failed.
pub fn findings(index: &mut dyn Index) -> Vec<String> {
    let mut findings = Vec::new();
    let outcome = Read::check(index, &mut |finding| findings.push(finding.to_string()));
    outcome.expect("the check runs to its end");
    findings
}

/// What the index counts by the `name`.
///
/// # Panics
/// It counts nothing by that name.
pub fn figure(index: &dyn Index, name: &str) -> u64 {
    let mut found = None;
    index.metrics(&mut |other, number| {
        if name == other {
            found = Some(number);
        }
    });
    found.unwrap_or_else(|| panic!("the index counts no {name}"))
}
