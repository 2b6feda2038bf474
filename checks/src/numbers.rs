//! House numbers: the sizes of files and functions, and how many parameters those take.

use crate::functions::{Function, Inventory};
use crate::report::Report;
use crate::sources::Source;

/// Lines of a file from which on it is worth a look.
pub const FILE_WANTED: usize = 500;
/// The most lines of a file.
pub const FILE_MOST: usize = 800;
/// The most lines of a function.
pub const FUNCTION_MOST: usize = 70;
/// The most that half of all functions may be long, in lines.
pub const FUNCTION_MEDIAN: usize = 10;
/// The most parameters of a function besides self.
pub const PARAMETERS_MOST: usize = 5;

/// Checks the sizes of `sources`, and notes the figures of the whole.
pub fn check(sources: &[Source], inventory: &Inventory, report: &mut Report) {
    for source in sources {
        check_file(source, report);
    }
    for function in &inventory.functions {
        check_function(function, report);
    }
    let (code, tests): (Vec<&Source>, Vec<&Source>) =
        sources.iter().partition(|source| !source.test);
    let code_lines = lines(&code) - inventory.inline_test_lines;
    let test_lines = lines(&tests) + inventory.inline_test_lines;
    report.note(format!("source         {code_lines} lines in {} files", code.len()));
    report.note(format!("largest file   {}", largest(&code)));
    let figures = Figures::of(&inventory.functions, false);
    if figures.median > FUNCTION_MEDIAN {
        let what = format!(
            "the median function has {} lines: at most {FUNCTION_MEDIAN} are wanted",
            figures.median
        );
        report.fault("the sources", 0, what);
    }
    report.note(format!("functions      {}", figures.line()));
    let figures = Figures::of(&inventory.functions, true).line();
    report.note(format!("tests apart    {test_lines} lines; functions {figures}"));
}

fn check_file(source: &Source, report: &mut Report) {
    let lines = source.text.lines().count();
    if lines > FILE_MOST {
        report.fault(&source.file, 0, format!("{lines} lines: at most {FILE_MOST}"));
    } else if lines > FILE_WANTED {
        report.warn(&source.file, 0, format!("{lines} lines: {FILE_WANTED} are wanted"));
    }
}

fn check_function(function: &Function, report: &mut Report) {
    let Function { file, line, name, lines, parameters, .. } = function;
    if *lines > FUNCTION_MOST {
        report.fault(file, *line, format!("{name} has {lines} lines: at most {FUNCTION_MOST}"));
    }
    if *parameters > PARAMETERS_MOST {
        let what =
            format!("{name} has {parameters} parameters: at most {PARAMETERS_MOST} and self");
        report.fault(file, *line, what);
    }
}

fn lines(sources: &[&Source]) -> usize {
    sources.iter().map(|source| source.text.lines().count()).sum()
}

fn largest(sources: &[&Source]) -> String {
    let largest = sources.iter().max_by_key(|source| source.text.lines().count());
    largest.map_or_else(String::new, |source| {
        format!("{} lines ({})", source.text.lines().count(), source.file)
    })
}

/// How long functions are.
#[derive(Debug, PartialEq, Eq)]
struct Figures {
    count: usize,
    median: usize,
    p90: usize,
    long: usize,
}

impl Figures {
    fn of(functions: &[Function], test: bool) -> Self {
        let of_kind = functions.iter().filter(|function| function.test == test);
        let mut lines: Vec<usize> = of_kind.map(|function| function.lines).collect();
        lines.sort_unstable();
        let at = |percent: usize| {
            let rank = (lines.len() * percent).div_ceil(100).max(1);
            lines.get(rank - 1).copied().unwrap_or(0)
        };
        Figures {
            count: lines.len(),
            median: at(50),
            p90: at(90),
            long: lines.iter().filter(|lines| **lines > FUNCTION_MOST).count(),
        }
    }

    fn line(&self) -> String {
        let Figures { count, median, p90, long } = self;
        let permille = long * 1000 / count.max(&1);
        format!(
            "{count}, median {median} / p90 {p90} lines, {}.{} % > {FUNCTION_MOST}",
            permille / 10,
            permille % 10
        )
    }
}

#[cfg(test)]
mod tests {
    use crate::functions::Inventory;
    use crate::project::Project;
    use crate::report::Report;
    use crate::sources;

    fn report(text: &str) -> Report {
        let project = Project::of(&[("a/src/lib.rs", text)]).with_crate("a", &[]);
        let mut report = Report::default();
        let sources = sources::read(&project, &mut report);
        super::check(&sources, &Inventory::of(&sources), &mut report);
        report
    }

    fn faults(text: &str) -> Vec<String> {
        report(text).faults.iter().map(ToString::to_string).collect()
    }

    /// A function of this many lines, and two short ones that keep the median down.
    fn function(lines: usize) -> String {
        format!("fn f() {{\n{}}}\nfn g() {{}}\nfn h() {{}}\n", "    g();\n".repeat(lines - 2))
    }

    #[test]
    fn a_function_of_seventy_lines_passes_and_a_longer_one_is_found() {
        assert!(faults(&function(70)).is_empty());
        assert_eq!(faults(&function(71)), ["a/src/lib.rs:1: f has 71 lines: at most 70"]);
    }

    #[test]
    fn six_parameters_are_found_and_five_with_self_pass() {
        assert_eq!(
            faults("fn f(a: u8, b: u8, c: u8, d: u8, e: u8, f: u8) {}"),
            ["a/src/lib.rs:1: f has 6 parameters: at most 5 and self"]
        );
        let method = "struct S; impl S { fn f(&self, a: u8, b: u8, c: u8, d: u8, e: u8) {} }";
        assert!(faults(method).is_empty());
    }

    #[test]
    fn a_long_median_is_found() {
        let long = format!("fn f() {{\n{}}}\n", "    f();\n".repeat(9));
        assert_eq!(
            faults(&long),
            ["the sources: the median function has 11 lines: at most 10 are wanted"]
        );
    }

    #[test]
    fn files_above_the_wanted_size_are_warned_of_and_above_the_most_found() {
        assert!(report(&"\n".repeat(500)).warnings.is_empty());
        let watched = report(&"\n".repeat(501));
        assert_eq!((watched.warnings.len(), watched.faults.len()), (1, 0));
        assert_eq!(faults(&"\n".repeat(801)), ["a/src/lib.rs: 801 lines: at most 800"]);
    }

    #[test]
    fn tests_are_counted_apart() {
        let text = "fn f() {}\n#[cfg(test)]\nmod tests {\n    fn g() {\n    }\n}\n";
        let summary = report(text).summary.join("\n");
        assert!(summary.contains("source         1 lines in 1 files"), "{summary}");
        assert!(summary.contains("functions      1, median 1 / p90 1 lines, 0.0 %"), "{summary}");
        assert!(summary.contains("tests apart    5 lines; functions 1, median 2"), "{summary}");
    }
}
