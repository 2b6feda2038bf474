//! Arrows point down only: the crates that each crate may name, against what its manifest says; and
//! in the crate of the trees, no tree names another.

use std::collections::BTreeSet;

use crate::project::{Crate, Project};
use crate::report::Report;
use crate::sources::Source;

/// One crate of the picture in ARCHITECTURE.md.
#[derive(Clone, Copy, Debug)]
pub struct Layer {
    /// Its folder.
    pub folder: &'static str,
    /// The folders of the crates that it may name (its tests may name any).
    pub below: &'static [&'static str],
    /// Whether the folder has to exist: false for a crate that is planned.
    pub exists: bool,
    /// Whether it must build without the standard library and without unsafe code.
    pub bare: bool,
}

impl Layer {
    const fn new(folder: &'static str, below: &'static [&'static str]) -> Self {
        Layer { folder, below, exists: true, bare: false }
    }

    const fn bare(folder: &'static str, below: &'static [&'static str]) -> Self {
        Layer { bare: true, ..Layer::new(folder, below) }
    }

    /// A crate of the picture that is still to be written.
    #[allow(dead_code, reason = "at times all crates of the picture exist")]
    const fn planned(folder: &'static str, below: &'static [&'static str]) -> Self {
        Layer { exists: false, ..Layer::new(folder, below) }
    }
}

/// The picture, from the bottom up.
pub const LAYERS: &[Layer] = &[
    Layer::bare("device", &[]),
    Layer::bare("ftl", &["device"]),
    // The page file stands on sectors, whoever makes them: store and ftl do not know each other.
    Layer::bare("store", &["device"]),
    Layer::bare("index", &["device", "store"]),
    Layer::bare("trees", &["device", "store", "index"]),
    Layer::new("spec", &[]),
    Layer::new("chips", &["device", "spec"]),
    Layer::new("sim", &["device"]),
    Layer::new("file", &["device"]),
    Layer::new("contract", &["device", "chips", "sim", "ftl", "store", "index", "file"]),
    Layer::new(
        "lab",
        &["device", "spec", "chips", "sim", "ftl", "store", "index", "trees", "file"],
    ),
    Layer::new("db", &["device", "spec", "ftl", "store", "index", "trees", "file"]),
    Layer::new(
        "cli",
        &[
            "device", "spec", "chips", "sim", "ftl", "store", "index", "trees", "file", "lab",
            "db", "contract",
        ],
    ),
    Layer::new("checks", &[]),
    Layer::new(
        "fuzz",
        &["device", "sim", "ftl", "store", "index", "trees", "file", "db", "contract"],
    ),
    Layer::new("bench", &["db"]),
];

/// Checks the crates of `project` against [`LAYERS`].
pub fn check(project: &Project, report: &mut Report) {
    check_against(LAYERS, project, report);
}

/// Checks the crates of `project` against `layers`.
pub fn check_against(layers: &[Layer], project: &Project, report: &mut Report) {
    for member in &project.crates {
        let manifest = format!("{}/Cargo.toml", member.folder);
        match layers.iter().find(|layer| layer.folder == member.folder) {
            None => report.fault(&manifest, 0, "not in the table of checks/src/layers.rs"),
            Some(layer) => check_crate(layer, member, project, report),
        }
    }
    for layer in layers.iter().filter(|layer| layer.exists) {
        if !project.crates.iter().any(|member| member.folder == layer.folder) {
            let what = format!("names the crate {}, which does not exist", layer.folder);
            report.fault("checks/src/layers.rs", 0, what);
        }
    }
    let arrows: usize = project.crates.iter().map(|member| member.names.len()).sum();
    report.note(format!("layers         {} crates, {arrows} arrows", project.crates.len()));
}

fn check_crate(layer: &Layer, member: &Crate, project: &Project, report: &mut Report) {
    let manifest = format!("{}/Cargo.toml", member.folder);
    for name in &member.names {
        if !layer.below.contains(&name.as_str()) {
            let below = layer.below.join(", ");
            let what = format!("{} must not name {name}, only: {below}", member.folder);
            report.fault(&manifest, 0, what);
        }
    }
    if layer.bare {
        let file = format!("{}/src/lib.rs", member.folder);
        let text = project.text(&file).unwrap_or_default();
        for attribute in ["#![no_std]", "#![forbid(unsafe_code)]"] {
            if !text.lines().any(|line| line.trim() == attribute) {
                report.fault(&file, 0, format!("{attribute} is missing"));
            }
        }
    }
}

/// The crate of the trees, and the modules of it that several trees stand on, or that list them.
const TREES: &str = "trees";
const SHARED: [&str; 5] = ["btree", "levels", "path_copying", "registry", "sector_lists"];

/// Checks that no tree names another, nor what is shared by them a tree; tests may.
pub fn check_trees(sources: &[Source], report: &mut Report) {
    let inside = |source: &&Source| source.module.len() > 1 && source.module[0] == TREES;
    let all = sources.iter().filter(inside).filter(|source| !source.test);
    let trees: BTreeSet<&str> = all
        .clone()
        .map(|source| source.module[1].as_str())
        .filter(|module| !SHARED.contains(module))
        .collect();
    for source in all.filter(|source| source.module[1] != "registry") {
        for (number, tree) in trees_named(&source.text, &trees) {
            if tree != source.module[1] {
                let what = format!("{} must not name the tree {tree}", source.module[1]);
                report.fault(&source.file, number, what);
            }
        }
    }
    report.note(format!("trees          {}, of which none names another", trees.len()));
}

/// The trees that a source names by their paths in the crate, with the lines, comments aside.
fn trees_named<'t>(text: &'t str, trees: &BTreeSet<&str>) -> Vec<(usize, &'t str)> {
    let code = |line: &'t str| line.split("//").next().unwrap_or_default();
    let names = |line: &'t str| {
        code(line).split("crate::").skip(1).map(|path| {
            let end = path.find(|letter: char| !letter.is_alphanumeric() && letter != '_');
            &path[..end.unwrap_or(path.len())]
        })
    };
    let lines = (1..).zip(text.lines());
    let all = lines.flat_map(|(number, line)| names(line).map(move |name| (number, name)));
    all.filter(|(_, name)| trees.contains(name)).collect()
}

#[cfg(test)]
mod tests {
    use super::{Layer, check_against, trees_named};
    use crate::project::Project;
    use crate::report::Report;

    const PICTURE: &[Layer] =
        &[Layer::bare("low", &[]), Layer::new("high", &["low"]), Layer::planned("later", &["low"])];

    fn good() -> Project {
        let files = [("low/src/lib.rs", "#![no_std]\n#![forbid(unsafe_code)]\n")];
        Project::of(&files).with_crate("low", &[])
    }

    fn faults(project: &Project) -> Vec<String> {
        let mut report = Report::default();
        check_against(PICTURE, project, &mut report);
        report.faults.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn arrows_that_point_down_pass() {
        assert!(faults(&good().with_crate("high", &["low"])).is_empty());
    }

    #[test]
    fn an_arrow_that_points_up_is_found() {
        let mut project = good().with_crate("high", &["low"]);
        project.crates[0].names.push("high".to_owned());
        assert_eq!(faults(&project), ["low/Cargo.toml: low must not name high, only: "]);
    }

    #[test]
    fn a_crate_outside_the_picture_is_found() {
        let project = good().with_crate("high", &[]).with_crate("extra", &[]);
        assert_eq!(
            faults(&project),
            ["extra/Cargo.toml: not in the table of checks/src/layers.rs"]
        );
    }

    #[test]
    fn a_row_of_the_picture_without_a_crate_is_found() {
        assert_eq!(
            faults(&good()),
            ["checks/src/layers.rs: names the crate high, which does not exist"]
        );
    }

    #[test]
    fn a_bare_crate_that_allows_unsafe_code_or_std_is_found() {
        let mut project = good().with_crate("high", &[]);
        project.files.insert("low/src/lib.rs".to_owned(), Some("//! Low.\n".to_owned()));
        assert_eq!(
            faults(&project),
            [
                "low/src/lib.rs: #![no_std] is missing",
                "low/src/lib.rs: #![forbid(unsafe_code)] is missing"
            ]
        );
    }

    #[test]
    fn a_tree_that_another_names_is_found() {
        let text =
            "//! As crate::oak.\nuse crate::oak::Leaf;\nuse crate::oakum;\nfn f() -> crate::elm {}";
        let named = trees_named(text, &["elm", "oak"].into());
        assert_eq!(named, [(2, "oak"), (4, "elm")]);
    }
}
