//! `flashtree trees`: the registry of trees.

use index::TreeDescriptor;
use index::parameters::{Kind, Parameter};
use serde::Serialize;
use trees::TREES;

use crate::arguments::{ListArguments, ListFormat};
use crate::failure::Failure;
use crate::numbers::rounded_size;
use crate::output::{self, Sheet};

/// Prints all trees, or one with its parameters.
///
/// # Errors
/// There is no such tree, or standard output can't be written.
pub(crate) fn run(arguments: &ListArguments) -> Result<(), Failure> {
    let named = arguments.name.as_deref().map(find).transpose()?;
    let text = match (arguments.format, named) {
        (ListFormat::Json, None) => {
            output::json(&TREES.iter().map(|entry| tree(entry)).collect::<Vec<_>>())?
        }
        (ListFormat::Json, Some(entry)) => output::json(&[tree(entry)])?,
        (ListFormat::Table, None) => list(),
        (ListFormat::Table, Some(entry)) => describe(entry),
    };
    output::print(&text)
}

fn find(name: &str) -> Result<&'static TreeDescriptor, Failure> {
    trees::find(name)
        .ok_or_else(|| Failure::unknown("tree", name, TREES.iter().map(|entry| entry.name)))
}

/// A tree as JSON has it.
#[derive(Serialize)]
struct Tree {
    name: &'static str,
    about: &'static str,
    paper: &'static str,
    stands_on: Vec<&'static str>,
    parameters: Vec<Setting>,
}

/// A parameter as JSON has it.
#[derive(Serialize)]
struct Setting {
    name: &'static str,
    about: &'static str,
    values: String,
    default: Option<&'static str>,
}

fn tree(entry: &TreeDescriptor) -> Tree {
    let setting = |parameter: &Parameter| Setting {
        name: parameter.name,
        about: parameter.about,
        values: values(parameter.kind),
        default: Some(parameter.default).filter(|default| !default.is_empty()),
    };
    Tree {
        name: entry.name,
        about: entry.about,
        paper: entry.paper,
        stands_on: stands_on(entry),
        parameters: parameters(entry).map(setting).collect(),
    }
}

/// What a tree that stands on both views of a chip can be told beside its own parameters.
const OVER: Parameter = Parameter {
    name: "over",
    about: "ftl: to stand on a translation layer, where raw flash is there as well",
    kind: Kind::Word(&["ftl"]),
    default: "",
};

/// The parameters that a spec of the tree can have.
fn parameters(entry: &TreeDescriptor) -> impl Iterator<Item = &'static Parameter> {
    let over = entry.has_choice().then_some(&OVER);
    entry.parameters.iter().chain(over)
}

fn stands_on(entry: &TreeDescriptor) -> Vec<&'static str> {
    let views = [(entry.nand, "nand"), (entry.sectors, "sectors")];
    views.into_iter().filter(|(can, _)| *can).map(|(_, view)| view).collect()
}

fn values(kind: Kind) -> String {
    match kind {
        Kind::Bytes => "a size in bytes".to_owned(),
        Kind::Count(0, u64::MAX) => "a whole number".to_owned(),
        Kind::Count(least, most) => format!("{least} to {most}"),
        Kind::Ratio(least, most) => format!("{least} to {most}"),
        Kind::Percent(least) => format!("{least} to 100 percent"),
        Kind::Word(words) => words.join(", "),
        Kind::WordOrBytes(words, most) => {
            format!("{}, or a size up to {}", words.join(", "), rounded_size(most))
        }
        Kind::WordOrCount(words, most) => format!("{}, or 1 to {most}", words.join(", ")),
    }
}

fn list() -> String {
    let mut sheet = Sheet::of_text(&["name", "stands on", "about"]);
    for entry in TREES {
        sheet.rows.push(vec![
            entry.name.to_owned(),
            stands_on(entry).join(" or "),
            entry.about.to_owned(),
        ]);
    }
    format!("{}\nParameters of one: flashtree trees NAME\n", sheet.to_text())
}

fn describe(entry: &TreeDescriptor) -> String {
    let mut sheet = Sheet::of_text(&["parameter", "default", "values", "meaning"]);
    for parameter in parameters(entry) {
        let default = match parameter.default {
            "" if parameter.name == OVER.name => "left away: raw flash",
            "" => "from the device",
            default => default,
        };
        sheet.rows.push(vec![
            parameter.name.to_owned(),
            default.to_owned(),
            values(parameter.kind),
            parameter.about.to_owned(),
        ]);
    }
    let parameters = match entry.parameters {
        [] => "It has no parameters.\n".to_owned(),
        [first, ..] => {
            format!("{}\nWrite them as {}:{}=VALUE,...\n", sheet.to_text(), entry.name, first.name)
        }
    };
    format!(
        "{}: {}\nStands on: {}\nPaper: {}\n\n{parameters}",
        entry.name,
        entry.about,
        stands_on(entry).join(" or "),
        entry.paper,
    )
}
