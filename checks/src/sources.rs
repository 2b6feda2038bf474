//! The Rust sources that cargo builds, reached from each crate's first files along their `mod`s.

use std::collections::BTreeSet;

use proc_macro2::TokenStream;

use crate::project::{Project, TargetKind};
use crate::report::Report;

/// One source file, parsed.
pub struct Source {
    /// Its path from the root.
    pub file: String,
    /// The module that it is: the crate's folder first.
    pub module: Vec<String>,
    /// Whether it is built for tests only.
    pub test: bool,
    /// Its text.
    pub text: String,
    /// Its tokens, those inside macros too.
    pub tokens: TokenStream,
    /// Its items.
    pub syntax: syn::File,
}

/// Reads every source that some `mod` reaches; files that none reaches are faults, and so are
/// those that can't be parsed.
pub fn read(project: &Project, report: &mut Report) -> Vec<Source> {
    let mut reader = Reader { project, report, seen: BTreeSet::new(), sources: Vec::new() };
    for member in &project.crates {
        for target in &member.targets {
            let mut module = vec![member.folder.clone()];
            if target.kind == TargetKind::Test {
                module.push(target.name.replace('-', "_"));
            }
            let place = Place { module, test: target.kind == TargetKind::Test, root: true };
            reader.reach(&target.file, place);
        }
    }
    let Reader { seen, sources, .. } = reader;
    for (file, _) in project.texts(".rs").filter(|(file, _)| !seen.contains(*file)) {
        report.fault(file, 0, "no mod reaches this file: it is dead");
    }
    sources
}

/// Whether these attributes keep an item out of ordinary builds.
#[must_use]
pub fn only_in_tests(attributes: &[syn::Attribute]) -> bool {
    attributes.iter().any(|attribute| match &attribute.meta {
        syn::Meta::Path(path) => path.is_ident("test"),
        syn::Meta::List(list) if list.path.is_ident("cfg") => {
            let condition = list.tokens.to_string();
            condition == "test" || condition.starts_with("all (test")
        }
        _ => false,
    })
}

struct Reader<'p> {
    project: &'p Project,
    report: &'p mut Report,
    seen: BTreeSet<String>,
    sources: Vec<Source>,
}

/// Where a file stands: its module, and what follows from how it was reached.
struct Place {
    module: Vec<String>,
    test: bool,
    /// Whether its own modules stand beside it, as those of `lib.rs` and `mod.rs` do.
    root: bool,
}

impl Reader<'_> {
    fn reach(&mut self, file: &str, place: Place) {
        let Some(text) = self.project.text(file) else {
            return self.report.fault(file, 0, "the project has no such file");
        };
        if !self.seen.insert(file.to_owned()) {
            return;
        }
        match parse(text) {
            Ok((tokens, syntax)) => {
                let folder = folder_of_modules(file, place.root);
                let inside = Place { module: place.module.clone(), ..place };
                self.modules(&syntax.items, file, &folder, &inside);
                let Place { module, test, .. } = place;
                let (file, text) = (file.to_owned(), text.to_owned());
                self.sources.push(Source { file, module, test, text, tokens, syntax });
            }
            Err(error) => {
                let line = error.span().start().line;
                self.report.fault(file, line, format!("can't be parsed: {error}"));
            }
        }
    }

    fn modules(&mut self, items: &[syn::Item], file: &str, folder: &str, place: &Place) {
        for item in items {
            let syn::Item::Mod(item) = item else { continue };
            let name = item.ident.to_string();
            let mut module = place.module.clone();
            module.push(name.clone());
            let test = place.test || only_in_tests(&item.attrs);
            let inside = Place { module, test, root: false };
            if let Some((_, items)) = &item.content {
                self.modules(items, file, &format!("{folder}/{name}"), &inside);
            } else {
                self.module_file(item, file, folder, inside);
            }
        }
    }

    fn module_file(&mut self, item: &syn::ItemMod, file: &str, folder: &str, mut place: Place) {
        let name = &item.ident;
        if let Some(path) = path_attribute(&item.attrs) {
            place.root = true;
            return self.reach(&joined(parent(file), &path), place);
        }
        let beside = format!("{folder}/{name}.rs");
        let within = format!("{folder}/{name}/mod.rs");
        place.root = !self.project.has(&beside);
        let found = if place.root { within } else { beside };
        if self.project.has(&found) {
            self.reach(&found, place);
        } else {
            let line = name.span().start().line;
            self.report.fault(file, line, format!("no file for mod {name}: {found}"));
        }
    }
}

fn parse(text: &str) -> syn::Result<(TokenStream, syn::File)> {
    let tokens: TokenStream = text.parse()?;
    Ok((tokens.clone(), syn::parse2(tokens)?))
}

fn parent(file: &str) -> &str {
    file.rsplit_once('/').map_or("", |(folder, _)| folder)
}

/// `path` as seen from `folder`, without the steps upwards.
fn joined(folder: &str, path: &str) -> String {
    let mut parts: Vec<&str> = folder.split('/').collect();
    for part in path.split('/') {
        match part {
            ".." => drop(parts.pop()),
            _ => parts.push(part),
        }
    }
    parts.join("/")
}

fn folder_of_modules(file: &str, root: bool) -> String {
    if root { parent(file).to_owned() } else { file.trim_end_matches(".rs").to_owned() }
}

fn path_attribute(attributes: &[syn::Attribute]) -> Option<String> {
    attributes.iter().find_map(|attribute| match &attribute.meta {
        syn::Meta::NameValue(pair) if pair.path.is_ident("path") => match &pair.value {
            syn::Expr::Lit(syn::ExprLit { lit: syn::Lit::Str(path), .. }) => Some(path.value()),
            _ => None,
        },
        _ => None,
    })
}

#[cfg(test)]
mod tests {
    use super::read;
    use crate::project::Project;
    use crate::report::Report;

    fn read_files(files: &[(&str, &str)]) -> (Vec<(String, bool)>, Vec<String>) {
        let mut report = Report::default();
        let sources = read(&Project::of(files).with_crate("a", &[]), &mut report);
        let mut modules: Vec<_> =
            sources.iter().map(|source| (source.module.join("::"), source.test)).collect();
        modules.sort();
        (modules, report.faults.iter().map(ToString::to_string).collect())
    }

    #[test]
    fn modules_are_reached_beside_below_and_inside_others() {
        let (modules, faults) = read_files(&[
            ("a/src/lib.rs", "mod b; mod c; mod d { mod e; }\n#[cfg(test)] mod tests;"),
            ("a/src/b.rs", "mod f;"),
            ("a/src/b/f.rs", ""),
            ("a/src/c/mod.rs", "mod g;"),
            ("a/src/c/g.rs", ""),
            ("a/src/d/e.rs", ""),
            ("a/src/tests.rs", ""),
        ]);
        assert!(faults.is_empty(), "{faults:?}");
        let names: Vec<_> = modules.iter().map(|(module, _)| module.as_str()).collect();
        assert_eq!(names, ["a", "a::b", "a::b::f", "a::c", "a::c::g", "a::d::e", "a::tests"]);
        let tests: Vec<_> = modules.iter().filter(|(_, test)| *test).collect();
        assert_eq!(tests, [&("a::tests".to_owned(), true)]);
    }

    #[test]
    fn a_path_may_lead_to_a_folder_above() {
        let (modules, faults) = read_files(&[
            ("a/src/lib.rs", "#[path = \"../common/b.rs\"] mod b;"),
            ("a/common/b.rs", ""),
        ]);
        assert!(faults.is_empty(), "{faults:?}");
        assert_eq!(modules.len(), 2);
    }

    #[test]
    fn a_file_that_no_mod_reaches_is_found() {
        let (_, faults) = read_files(&[("a/src/lib.rs", ""), ("a/src/old.rs", "")]);
        assert_eq!(faults, ["a/src/old.rs: no mod reaches this file: it is dead"]);
    }

    #[test]
    fn a_mod_without_a_file_and_a_file_that_does_not_parse_are_found() {
        let (_, faults) = read_files(&[("a/src/lib.rs", "\nmod b;")]);
        assert_eq!(faults, ["a/src/lib.rs:2: no file for mod b: a/src/b/mod.rs"]);
        let (_, faults) = read_files(&[("a/src/lib.rs", "\nfn f() {{}")]);
        assert_eq!(faults.len(), 1);
        assert!(faults[0].contains("can't be parsed"), "{faults:?}");
    }
}
