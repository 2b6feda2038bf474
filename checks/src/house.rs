//! All checks of the project's own rules.

use std::path::Path;

use crate::functions::Inventory;
use crate::project::Project;
use crate::report::Report;
use crate::{Result, layers, links, numbers, rules, sources, words};

/// Runs every checker over the project whose root is `root`.
///
/// # Errors
/// The project can't be read.
pub fn run(root: &Path) -> Result<Report> {
    Ok(check(&Project::read(root)?))
}

/// Runs every checker over `project`.
#[must_use]
pub fn check(project: &Project) -> Report {
    let mut report = Report::default();
    layers::check(project, &mut report);
    let sources = sources::read(project, &mut report);
    layers::check_trees(&sources, &mut report);
    let inventory = Inventory::of(&sources);
    numbers::check(&sources, &inventory, &mut report);
    sources.iter().for_each(|source| rules::check(source, &mut report));
    links::check(project, &inventory, &mut report);
    words::check(project, &mut report);
    report.faults.sort();
    report.warnings.sort();
    report
}
