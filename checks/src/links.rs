//! What documents point at: links, anchors, and the files and functions that they name.

use std::collections::{BTreeMap, BTreeSet};

use pulldown_cmark::{BrokenLink, CowStr, Event, LinkType, Options, Parser, Tag, TagEnd};

use crate::functions::Inventory;
use crate::project::Project;
use crate::report::Report;

/// What one document holds.
#[derive(Debug, Default)]
struct Document {
    /// Where its links lead, each with its line.
    links: Vec<(usize, String)>,
    /// References to nowhere: `[text][name]` without a `[name]: ...`.
    broken: Vec<(usize, String)>,
    /// Anchors of its headings.
    anchors: BTreeSet<String>,
    /// Words in backticks, each with its line and whether it stands in a table.
    code: Vec<(usize, String, bool)>,
}

/// Checks every Markdown file of the project.
pub fn check(project: &Project, inventory: &Inventory, report: &mut Report) {
    let read = |(file, text)| (file, Document::read(text));
    let documents: BTreeMap<&str, Document> = project.texts(".md").map(read).collect();
    for (file, document) in &documents {
        for (line, target) in &document.links {
            if let Some(what) = dead_link(project, &documents, file, target) {
                report.fault(file, *line, what);
            }
        }
        for (line, name) in &document.broken {
            report.fault(file, *line, format!("the reference [{name}] leads nowhere"));
        }
    }
    let named = check_named_files(project, &documents, report);
    let functions = check_named_functions(project, &documents, inventory, report);
    let links: usize = documents.values().map(|document| document.links.len()).sum();
    report.note(format!(
        "links          {links} links in {} documents, {named} files named, {functions} functions",
        documents.len()
    ));
}

/// Files in backticks in ARCHITECTURE.md must exist; returns how many there are.
fn check_named_files(
    project: &Project,
    documents: &BTreeMap<&str, Document>,
    report: &mut Report,
) -> usize {
    let file = "ARCHITECTURE.md";
    let mut named = 0;
    for (line, path, _) in documents.get(file).into_iter().flat_map(|document| &document.code) {
        if names_a_file(project, path) {
            named += 1;
            if !project.has(path) {
                report.fault(file, *line, format!("there is no file or folder {path}"));
            }
        }
    }
    named
}

/// Functions, tests and examples in the tables of `docs/fidelity` must exist; returns their number.
fn check_named_functions(
    project: &Project,
    documents: &BTreeMap<&str, Document>,
    inventory: &Inventory,
    report: &mut Report,
) -> usize {
    let mut named = 0;
    let tables = documents.iter().filter(|(file, _)| file.starts_with("docs/fidelity/"));
    for (file, document) in tables {
        for (line, code, _) in document.code.iter().filter(|(_, _, in_table)| *in_table) {
            let name = code.trim_end_matches("()");
            if names_a_function(name) {
                named += 1;
                let example = format!("lab/examples/{name}.rs");
                if !inventory.has(name) && !project.has(&example) {
                    report.fault(file, *line, format!("nothing in the sources is called {name}"));
                }
            }
        }
    }
    named
}

impl Document {
    fn read(text: &str) -> Self {
        let mut document = Document::default();
        let mut broken = Vec::new();
        let note_broken = |link: BrokenLink<'_>| -> Option<(CowStr<'_>, CowStr<'_>)> {
            let full = matches!(link.link_type, LinkType::Reference | LinkType::Collapsed);
            if full {
                broken.push((line_of(text, link.span.start), link.reference.to_string()));
            }
            None
        };
        let options =
            Options::ENABLE_TABLES | Options::ENABLE_FOOTNOTES | Options::ENABLE_STRIKETHROUGH;
        let parser = Parser::new_with_broken_link_callback(text, options, Some(note_broken));
        let mut heading: Option<String> = None;
        let mut in_table = false;
        for (event, span) in parser.into_offset_iter() {
            let line = line_of(text, span.start);
            match event {
                Event::Start(Tag::Link { dest_url, .. } | Tag::Image { dest_url, .. }) => {
                    document.links.push((line, dest_url.to_string()));
                }
                Event::Start(Tag::Table(_)) => in_table = true,
                Event::End(TagEnd::Table) => in_table = false,
                Event::Start(Tag::Heading { .. }) => heading = Some(String::new()),
                Event::End(TagEnd::Heading(_)) => document.anchor(heading.take()),
                Event::Text(words) => push(&mut heading, &words),
                Event::Code(words) => {
                    push(&mut heading, &words);
                    document.code.push((line, words.to_string(), in_table));
                }
                Event::Html(html) | Event::InlineHtml(html) => document.html(line, &html),
                _ => {}
            }
        }
        document.broken = broken;
        document
    }

    /// Adds a heading's anchor: small letters, hyphens for blanks, a number from the second on.
    fn anchor(&mut self, heading: Option<String>) {
        let anchor: String = heading
            .unwrap_or_default()
            .to_lowercase()
            .chars()
            .filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'))
            .map(|c| if c == ' ' { '-' } else { c })
            .collect();
        let mut numbered = anchor.clone();
        let mut number = 1;
        while !self.anchors.insert(numbered) {
            numbered = format!("{anchor}-{number}");
            number += 1;
        }
    }

    /// Takes anchors and links from a piece of HTML.
    fn html(&mut self, line: usize, html: &str) {
        for value in attributes(html, &["id", "name"]) {
            self.anchors.insert(value.to_owned());
        }
        for value in attributes(html, &["href", "src"]) {
            self.links.push((line, value.to_owned()));
        }
    }
}

fn push(heading: &mut Option<String>, words: &str) {
    if let Some(heading) = heading {
        heading.push_str(words);
    }
}

/// The values of these attributes in a piece of HTML.
fn attributes<'h>(html: &'h str, names: &[&str]) -> Vec<&'h str> {
    let mut values = Vec::new();
    for name in names {
        let mark = format!(" {name}=\"");
        let pieces = html.split(mark.as_str()).skip(1);
        values.extend(pieces.filter_map(|piece| piece.split('"').next()));
    }
    values
}

fn line_of(text: &str, offset: usize) -> usize {
    text.as_bytes()[..offset].iter().filter(|byte| **byte == b'\n').count() + 1
}

/// What is wrong with a link from `file` to `target`, if anything. The network is not asked.
fn dead_link(
    project: &Project,
    documents: &BTreeMap<&str, Document>,
    file: &str,
    target: &str,
) -> Option<String> {
    if target.contains("://") || target.starts_with("mailto:") {
        return None;
    }
    let (path, anchor) = target.split_once('#').unwrap_or((target, ""));
    let path = if path.is_empty() { file.to_owned() } else { resolve(file, path)? };
    if !project.has(&path) {
        return Some(format!("the link to {target} is dead: there is no {path}"));
    }
    let document = documents.get(path.as_str());
    let known = |document: &Document| document.anchors.contains(anchor);
    match document {
        Some(document) if !anchor.is_empty() && !known(document) => {
            Some(format!("the link to {target} is dead: no heading of {path} is called that"))
        }
        _ => None,
    }
}

/// `path` as seen from the folder of `file`; a path that leaves the project is given back as it is.
fn resolve(file: &str, path: &str) -> Option<String> {
    let folder = file.rsplit_once('/').map_or("", |(folder, _)| folder);
    let mut parts: Vec<&str> = folder.split('/').filter(|part| !part.is_empty()).collect();
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." if parts.is_empty() => return Some(path.to_owned()),
            ".." => drop(parts.pop()),
            part => parts.push(part),
        }
    }
    Some(parts.join("/"))
}

/// Whether words in backticks mean a file: a path whose last part has a dot or whose first part is
/// a folder of the project.
fn names_a_file(project: &Project, code: &str) -> bool {
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '/' | '.' | '_' | '-');
    if !code.contains('/') || code.starts_with(['/', '-']) || !code.chars().all(plain) {
        return false;
    }
    let first = code.split('/').next().unwrap_or_default();
    let last = code.rsplit('/').next().unwrap_or_default();
    last.is_empty() || last.contains('.') || (first != "." && project.has(first))
}

/// Whether words in backticks have the form of a path to a function, `Type::method`, or of a test's
/// name, which is a sentence.
fn names_a_function(code: &str) -> bool {
    let part = |part: &str| {
        part.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
            && part.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
    };
    let is_sentence = code.matches('_').count() >= 3;
    (code.contains("::") || is_sentence) && code.split("::").all(part)
}

#[cfg(test)]
mod tests;
