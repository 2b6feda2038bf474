//! `flashtree workloads`: the workloads that the laboratory knows.

use lab::{WORKLOADS, WorkloadEntry, WorkloadParameter};
use serde::Serialize;

use crate::arguments::{ListArguments, ListFormat};
use crate::failure::Failure;
use crate::output::{self, Sheet};

/// Prints all workloads, or one with its parameters.
///
/// # Errors
/// There is no such workload, or standard output can't be written.
pub(crate) fn run(arguments: &ListArguments) -> Result<(), Failure> {
    let named = arguments.name.as_deref().map(find).transpose()?;
    let text = match (arguments.format, named) {
        (ListFormat::Json, None) => {
            output::json(&WORKLOADS.iter().map(|entry| workload(entry)).collect::<Vec<_>>())?
        }
        (ListFormat::Json, Some(entry)) => output::json(&[workload(entry)])?,
        (ListFormat::Table, None) => list(),
        (ListFormat::Table, Some(entry)) => describe(entry),
    };
    output::print(&text)
}

fn find(name: &str) -> Result<&'static WorkloadEntry, Failure> {
    let found = WORKLOADS.iter().find(|entry| entry.name == name);
    let names = || WORKLOADS.iter().map(|entry| entry.name);
    found.copied().ok_or_else(|| Failure::unknown("workload", name, names()))
}

/// A workload as JSON has it.
#[derive(Serialize)]
struct Workload {
    name: &'static str,
    about: &'static str,
    parameters: Vec<Setting>,
}

/// A parameter as JSON has it.
#[derive(Serialize)]
struct Setting {
    name: &'static str,
    about: &'static str,
    default: Option<&'static str>,
}

fn workload(entry: &WorkloadEntry) -> Workload {
    let setting = |parameter: &WorkloadParameter| Setting {
        name: parameter.name,
        about: parameter.about,
        default: Some(parameter.default).filter(|default| !default.is_empty()),
    };
    Workload {
        name: entry.name,
        about: entry.about,
        parameters: entry.parameters.iter().map(setting).collect(),
    }
}

fn list() -> String {
    let mut sheet = Sheet::of_text(&["name", "about"]);
    for entry in WORKLOADS {
        sheet.rows.push(vec![entry.name.to_owned(), entry.about.to_owned()]);
    }
    format!("{}\nParameters of one: flashtree workloads NAME\n", sheet.to_text())
}

fn describe(entry: &WorkloadEntry) -> String {
    let mut sheet = Sheet::of_text(&["parameter", "default", "meaning"]);
    for parameter in entry.parameters {
        let default = Some(parameter.default).filter(|default| !default.is_empty());
        sheet.rows.push(vec![
            parameter.name.to_owned(),
            default.unwrap_or("-").to_owned(),
            parameter.about.to_owned(),
        ]);
    }
    let example = entry
        .parameters
        .first()
        .map(|first| format!("\nWrite them as {}:{}=VALUE,...\n", entry.name, first.name));
    format!("{}: {}\n\n{}{}", entry.name, entry.about, sheet.to_text(), example.unwrap_or_default())
}
