use crate::functions::Inventory;
use crate::project::Project;
use crate::report::Report;
use crate::sources;

fn faults(files: &[(&str, &str)]) -> Vec<String> {
    let mut files = files.to_vec();
    files.push(("a/src/lib.rs", "pub struct Cache; impl Cache { pub fn get() {} }"));
    let project = Project::of(&files).with_crate("a", &[]);
    let mut report = Report::default();
    let inventory = Inventory::of(&sources::read(&project, &mut report));
    super::check(&project, &inventory, &mut report);
    report.faults.iter().map(ToString::to_string).collect()
}

#[test]
fn links_to_files_folders_headings_and_the_network_pass() {
    let readme = "# The `put` way, once\n\n## Limits\n\n## Limits\n\n<a id=\"here\"></a>\n\n\
        [a](docs/b.md) [b](docs/b.md#of-its-own) [c](a/src) [d](#the-put-way-once) \
        [e](#limits-1) [f](#here) [g](https://example.org/none) ![h](./a/src/lib.rs) [i][name]\n\n\
        [name]: docs/b.md\n";
    let other = "# Of its own\n\n[up](../README.md#limits)\n";
    assert_eq!(faults(&[("README.md", readme), ("docs/b.md", other)]), [""; 0]);
}

#[test]
fn a_link_to_a_missing_file_is_found() {
    assert_eq!(
        faults(&[("docs/b.md", "one\n\n[x](none.md)\n")]),
        ["docs/b.md:3: the link to none.md is dead: there is no docs/none.md"]
    );
    assert_eq!(faults(&[("README.md", "![x](p.png)")]).len(), 1);
    assert_eq!(faults(&[("README.md", "<img alt=\"\" src=\"p.png\">")]).len(), 1);
    assert_eq!(faults(&[("README.md", "[x](../outside.md)")]).len(), 1);
}

#[test]
fn a_link_to_a_missing_heading_is_found() {
    assert_eq!(
        faults(&[("README.md", "# One\n\n[x](#two)\n")]),
        ["README.md:3: the link to #two is dead: no heading of README.md is called that"]
    );
    let files = [("README.md", "[x](B.md#two)"), ("B.md", "# One")];
    assert_eq!(faults(&files).len(), 1);
}

#[test]
fn a_reference_without_its_definition_is_found() {
    assert_eq!(
        faults(&[("README.md", "see [the log][log] and [one] more")]),
        ["README.md:1: the reference [log] leads nowhere"]
    );
}

#[test]
fn files_named_in_the_architecture_must_exist() {
    let text = "`a/src/lib.rs` `a/` `a/src` `I/O` `--x a/b` `4/5` `mod.rs`\n\n`a/src/none.rs`";
    assert_eq!(
        faults(&[("ARCHITECTURE.md", text)]),
        ["ARCHITECTURE.md:3: there is no file or folder a/src/none.rs"]
    );
    assert_eq!(faults(&[("ARCHITECTURE.md", "`a/none` `none/`")]).len(), 2);
    assert_eq!(faults(&[("README.md", "`a/src/none.rs`")]), [""; 0]);
}

#[test]
fn functions_named_in_tables_of_fidelity_must_exist() {
    let table = "Not `Cache::put` here.\n\n| what | where |\n|---|---|\n\
        | one | `a::Cache::get()` |\n| two | `Cache::put` |\n| three | not done |\n\
        | four | `a_test_that_is_gone` |\n";
    assert_eq!(
        faults(&[("docs/fidelity/b-plus.md", table)]),
        [
            "docs/fidelity/b-plus.md:6: nothing in the sources is called Cache::put",
            "docs/fidelity/b-plus.md:8: nothing in the sources is called a_test_that_is_gone",
        ]
    );
    assert_eq!(faults(&[("docs/other.md", table)]), [""; 0]);
}
