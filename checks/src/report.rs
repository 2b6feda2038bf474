//! What checkers find.

use std::fmt;

/// One thing that breaks a rule.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Finding {
    /// The file, from the project's root.
    pub file: String,
    /// The line, counted from 1; 0 for the file as a whole.
    pub line: usize,
    /// What is wrong, in words that say what would be right.
    pub what: String,
}

impl fmt::Display for Finding {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            0 => write!(formatter, "{}: {}", self.file, self.what),
            line => write!(formatter, "{}:{line}: {}", self.file, self.what),
        }
    }
}

/// Everything that the checkers found.
#[derive(Debug, Default)]
pub struct Report {
    /// What must be mended.
    pub faults: Vec<Finding>,
    /// What should be watched.
    pub warnings: Vec<Finding>,
    /// One line a checker: what it looked at. A checker that saw nothing shows it here.
    pub summary: Vec<String>,
}

impl Report {
    /// Notes something that must be mended.
    pub fn fault(&mut self, file: &str, line: usize, what: impl Into<String>) {
        self.faults.push(Finding { file: file.to_owned(), line, what: what.into() });
    }

    /// Notes something that should be watched.
    pub fn warn(&mut self, file: &str, line: usize, what: impl Into<String>) {
        self.warnings.push(Finding { file: file.to_owned(), line, what: what.into() });
    }

    /// Notes what a checker looked at.
    pub fn note(&mut self, line: impl Into<String>) {
        self.summary.push(line.into());
    }
}
