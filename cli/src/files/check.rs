//! `flashtree check`.

use std::io::{self, BufWriter, Write};
use std::path::Path;

use db::{Database, Error};
use serde::Serialize;

use super::opening;
use crate::arguments::ListFormat;
use crate::arguments::files::Report;
use crate::failure::Failure;
use crate::failure::FileFailure;
use crate::numbers::count as counted;
use crate::output;
use crate::progress::Counter;

/// The most findings in JSON; all of them are counted.
const FINDINGS_MOST: u64 = 1000;

/// What a check found, as JSON has it.
#[derive(Serialize)]
struct Verdict {
    file: String,
    ok: bool,
    live_pages: Option<u64>,
    finding_count: u64,
    findings: Vec<String>,
}

/// Verifies a database.
///
/// # Errors
/// Something is wrong with it, or it can't be read at all.
pub(super) fn run(arguments: &Report, quiet: bool) -> Result<(), Failure> {
    let path = arguments.home.file.path();
    let mut found = Found::new(arguments.format);
    let live_pages = match opening::to_read(&arguments.home, quiet) {
        Ok(mut database) => Some(check(&mut database, &mut found, path, quiet)?),
        // Damage that is met on the way is a finding as well.
        Err(Failure::File(FileFailure::Database { source, .. })) if is_damage(&source) => {
            found.add(&source);
            None
        }
        Err(other) => return Err(other),
    };
    found.finish(path, live_pages)
}

fn is_damage(error: &Error) -> bool {
    matches!(error, Error::Damaged { .. })
}

/// Verifies an open database; returns how many pages it has.
fn check(
    database: &mut Database<'_>,
    found: &mut Found,
    path: &Path,
    quiet: bool,
) -> Result<u64, Failure> {
    let bar = Counter::new(quiet, "checking", None);
    let checked = database.check_with(&mut |finding| found.add(finding));
    bar.finish();
    match checked {
        Err(error) if is_damage(&error) => found.add(&error),
        other => other.map_err(FileFailure::of(path))?,
    }
    let unread = opening::unread_pages(database, path)?;
    if unread > 0 {
        let pages = counted(unread, "page");
        found.add(&format_args!("{pages} of the chip can't be read: what stood there may be lost"));
    }
    let stats = database.stats().map_err(FileFailure::of(path))?;
    Ok(stats.live_pages)
}

/// Findings as they come: lines are printed at once, JSON at the end.
struct Found {
    format: ListFormat,
    count: u64,
    kept: Vec<String>,
    out: BufWriter<io::Stdout>,
    printed: io::Result<()>,
}

impl Found {
    fn new(format: ListFormat) -> Self {
        let out = BufWriter::new(io::stdout());
        Found { format, count: 0, kept: Vec::new(), out, printed: Ok(()) }
    }

    fn add(&mut self, finding: &dyn std::fmt::Display) {
        self.count += 1;
        match self.format {
            ListFormat::Table if self.printed.is_ok() => {
                self.printed = writeln!(self.out, "{finding}");
            }
            ListFormat::Json if self.count <= FINDINGS_MOST => self.kept.push(finding.to_string()),
            _ => {}
        }
    }

    fn finish(mut self, path: &Path, live_pages: Option<u64>) -> Result<(), Failure> {
        let count = self.count;
        self.printed.and_then(|()| self.out.flush()).map_err(Failure::Print)?;
        match self.format {
            ListFormat::Json => output::print(&output::json(&Verdict {
                file: path.display().to_string(),
                ok: count == 0,
                live_pages,
                finding_count: count,
                findings: self.kept,
            })?)?,
            ListFormat::Table if count == 0 => {
                let pages = counted(live_pages.unwrap_or(0), "page");
                let path = path.display();
                output::print(&format!("{path}: all is well: {pages} verified\n"))?;
            }
            ListFormat::Table => {}
        }
        match count {
            0 => Ok(()),
            _ => Err(findings(path, counted(count, "finding"))),
        }
    }
}

fn findings(path: &Path, findings: String) -> Failure {
    FileFailure::Findings { path: path.to_owned(), findings }.into()
}
