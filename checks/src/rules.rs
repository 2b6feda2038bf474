//! Rules for the words of a source file: what it must not call, and what needs a reason.

use proc_macro2::{Delimiter, Group, TokenStream, TokenTree};

use crate::report::Report;
use crate::sources::Source;

/// The longest line, in columns.
pub const COLUMNS: usize = 100;

/// The fewest letters that pass for a reason.
const REASON: usize = 10;

const UNFINISHED: [&str; 3] = ["todo", "unimplemented", "dbg"];
const HOST_ENDIAN: [&str; 2] = ["to_ne_bytes", "from_ne_bytes"];
const HOST_WIDTH: [&str; 4] = ["to_le_bytes", "from_le_bytes", "to_be_bytes", "from_be_bytes"];

/// Checks one file.
pub fn check(source: &Source, report: &mut Report) {
    check_lines(source, report);
    let lines: Vec<&str> = source.text.lines().collect();
    let mut scan = Scan { file: &source.file, lines: &lines, report };
    scan.tokens(source.tokens.clone());
}

fn check_lines(source: &Source, report: &mut Report) {
    for (number, line) in (1..).zip(source.text.lines()) {
        let columns = line.chars().count();
        if columns > COLUMNS {
            report.fault(&source.file, number, format!("{columns} columns: at most {COLUMNS}"));
        }
        if line.ends_with([' ', '\t', '\r']) {
            report.fault(&source.file, number, "blanks at the end of the line");
        }
        if let Some(mark) = unexplained_mark(line) {
            report.fault(&source.file, number, format!("{mark} without a reason"));
        }
    }
}

/// A mark for unfinished work in the line's comment that is not followed by its reason.
fn unexplained_mark(line: &str) -> Option<&'static str> {
    let (code, comment) = line.split_once("//")?;
    if code.matches('"').count() % 2 == 1 {
        return None;
    }
    ["TODO", "FIXME", "XXX"].into_iter().find(|mark| {
        let after = comment.split(mark).nth(1);
        after.is_some_and(|reason| {
            reason.chars().filter(|letter| letter.is_alphabetic()).count() < REASON
        })
    })
}

struct Scan<'a> {
    file: &'a str,
    lines: &'a [&'a str],
    report: &'a mut Report,
}

impl Scan<'_> {
    fn tokens(&mut self, tokens: TokenStream) {
        let trees: Vec<TokenTree> = tokens.into_iter().collect();
        for (at, tree) in trees.iter().enumerate() {
            let rest = &trees[at + 1..];
            match tree {
                TokenTree::Ident(word) => self.word(&word.to_string(), line(tree), rest),
                TokenTree::Punct(mark) if mark.as_char() == '#' => self.attribute(rest),
                TokenTree::Group(group) => self.tokens(group.stream()),
                _ => {}
            }
        }
    }

    fn word(&mut self, word: &str, line: usize, rest: &[TokenTree]) {
        let macro_call = matches!(rest, [TokenTree::Punct(mark), TokenTree::Group(_), ..]
            if mark.as_char() == '!');
        if macro_call && UNFINISHED.contains(&word) {
            self.report.fault(self.file, line, format!("{word}! is for unfinished code"));
        }
        if HOST_ENDIAN.contains(&word) {
            let what = format!("{word} depends on the host: use the little-endian form");
            self.report.fault(self.file, line, what);
        }
        if ["usize", "isize"].contains(&word) && is_path_to(rest, &HOST_WIDTH) {
            let what = format!("bytes of {word} depend on the host: use a type of fixed width");
            self.report.fault(self.file, line, what);
        }
    }

    /// Looks at what follows a `#`.
    fn attribute(&mut self, rest: &[TokenTree]) {
        let group = match rest {
            [TokenTree::Group(group), ..] => group,
            [TokenTree::Punct(mark), TokenTree::Group(group), ..] if mark.as_char() == '!' => group,
            _ => return,
        };
        if group.delimiter() == Delimiter::Bracket {
            self.inside_attribute(group);
        }
    }

    fn inside_attribute(&mut self, group: &Group) {
        let trees: Vec<TokenTree> = group.stream().into_iter().collect();
        for (at, tree) in trees.iter().enumerate() {
            let next = trees.get(at + 1);
            match (tree, next) {
                (TokenTree::Ident(word), Some(TokenTree::Group(lints)))
                    if word == "allow" || word == "expect" =>
                {
                    let given = lints.stream().to_string().contains("reason");
                    if !given && !self.comment_at(line(tree)) {
                        let what = format!("#[{word}] without a reason in a comment above it");
                        self.report.fault(self.file, line(tree), what);
                    }
                }
                (TokenTree::Ident(word), Some(TokenTree::Group(inner))) if word == "cfg_attr" => {
                    self.inside_attribute(inner);
                }
                (TokenTree::Ident(word), None) if word == "ignore" => {
                    let what = "#[ignore] without a reason: write #[ignore = \"reason\"]";
                    self.report.fault(self.file, line(tree), what);
                }
                _ => {}
            }
        }
    }

    /// Whether a comment (of code, not of documentation) stands at the end of a line or above it.
    fn comment_at(&self, line: usize) -> bool {
        let here = line.checked_sub(1).and_then(|at| self.lines.get(at)).copied();
        let above = line.checked_sub(2).and_then(|at| self.lines.get(at)).map(|text| text.trim());
        let comment = |text: &str| {
            text.starts_with("//") && !text.starts_with("///") && !text.starts_with("//!")
        };
        here.is_some_and(|text| text.contains("] //")) || above.is_some_and(comment)
    }
}

fn line(tree: &TokenTree) -> usize {
    tree.span().start().line
}

/// Whether `rest` begins with `::` and one of `names`.
fn is_path_to(rest: &[TokenTree], names: &[&str]) -> bool {
    match rest {
        [TokenTree::Punct(first), TokenTree::Punct(second), TokenTree::Ident(name), ..] => {
            let colons = first.as_char() == ':' && second.as_char() == ':';
            colons && names.iter().any(|known| name == known)
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use crate::project::Project;
    use crate::report::Report;
    use crate::sources;

    fn faults(text: &str) -> Vec<String> {
        let project = Project::of(&[("a/src/lib.rs", text)]).with_crate("a", &[]);
        let mut report = Report::default();
        for source in sources::read(&project, &mut report) {
            super::check(&source, &mut report);
        }
        report.faults.iter().map(|fault| format!("{}: {}", fault.line, fault.what)).collect()
    }

    fn finds(text: &str, line: usize, what: &str) {
        let found = faults(text);
        assert_eq!(found.len(), 1, "{text}: {found:?}");
        assert!(found[0].starts_with(&format!("{line}: ")), "{found:?}");
        assert!(found[0].contains(what), "{found:?}");
    }

    #[test]
    fn unfinished_code_is_found_also_inside_macros() {
        finds("fn f() {\n    todo!()\n}", 2, "todo!");
        finds("fn f() { unimplemented!(\"later\") }", 1, "unimplemented!");
        finds("macro_rules! m {\n    () => { dbg!(1) };\n}", 2, "dbg!");
        assert!(faults("fn f(todo: bool) -> bool { todo != true }").is_empty());
    }

    #[test]
    fn bytes_in_the_order_or_width_of_the_host_are_found() {
        finds("fn f(a: u32) -> [u8; 4] { a.to_ne_bytes() }", 1, "to_ne_bytes");
        finds("fn f(a: usize) { usize::to_le_bytes(a); }", 1, "usize");
        assert!(faults("fn f(a: u32) { u32::to_le_bytes(a); a.to_le_bytes(); }").is_empty());
    }

    #[test]
    fn a_lint_is_allowed_only_with_a_reason() {
        finds("#[allow(dead_code)]\nfn f() {}", 1, "#[allow]");
        finds("/// What it does.\n#[allow(dead_code)]\nfn f() {}", 2, "#[allow]");
        finds("#[cfg_attr(test, expect(dead_code))]\nfn f() {}", 1, "#[expect]");
        finds("#![allow(dead_code)]", 1, "#[allow]");
        assert!(faults("// Called from assembly.\n#[allow(dead_code)]\nfn f() {}").is_empty());
        assert!(faults("#[allow(dead_code)] // Called from assembly.\nfn f() {}").is_empty());
        assert!(faults("#[expect(dead_code, reason = \"called later\")]\nfn f() {}").is_empty());
    }

    #[test]
    fn a_test_is_ignored_only_with_a_reason() {
        finds("#[test]\n#[ignore]\nfn f() {}", 2, "#[ignore]");
        assert!(faults("#[test]\n#[ignore = \"takes an hour\"]\nfn f() {}").is_empty());
    }

    #[test]
    fn a_mark_for_unfinished_work_needs_a_reason() {
        let mark = concat!("TO", "DO");
        finds(&format!("// {mark}"), 1, mark);
        finds(&format!("fn f() {{}} // {mark}: later"), 1, mark);
        assert!(faults(&format!("// {mark}: trim needs the FTL's help first")).is_empty());
        assert!(faults(&format!("const A: &str = \"http://{mark}\";")).is_empty());
    }

    #[test]
    fn long_lines_and_blanks_at_their_ends_are_found() {
        finds(&format!("// {}", "é".repeat(98)), 1, "101 columns");
        assert!(faults(&format!("// {}", "é".repeat(97))).is_empty());
        finds("fn f() {} ", 1, "blanks");
    }
}
