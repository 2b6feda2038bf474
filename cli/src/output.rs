//! Standard output, tables and files of results.

use std::fs::{self, File, OpenOptions};
use std::io::{self, IsTerminal, Read, Write};
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};

use comfy_table::{
    Attribute, Cell, CellAlignment, ContentArrangement, ContentLineStyle, LineStyle, Row, Table,
    TableStyle,
};
use serde::Serialize;

use crate::failure::{Failure, colours_wanted};

/// Prints `text` on standard output.
///
/// # Errors
/// [`Failure::Print`], with a broken pipe where nobody reads on.
pub(crate) fn print(text: &str) -> Result<(), Failure> {
    let mut out = io::stdout().lock();
    out.write_all(text.as_bytes()).and_then(|()| out.flush()).map_err(Failure::Print)
}

/// The JSON of `value`, as a text of several lines.
///
/// # Errors
/// As [`print`].
pub(crate) fn json<T: Serialize + ?Sized>(value: &T) -> Result<String, Failure> {
    serde_json::to_string_pretty(value)
        .map(|text| text + "\n")
        .map_err(|error| Failure::Print(error.into()))
}

/// Tells a remark on standard error.
pub(crate) fn remark(text: &str) {
    // A remark that nobody can hear is no failure.
    drop(writeln!(io::stderr(), "{text}"));
}

/// What an option of the command line writes to a file.
#[derive(Clone, Copy)]
pub(crate) struct Written {
    /// The option.
    pub(crate) option: &'static str,
    /// True if a file that begins so was written by it.
    pub(crate) is_in: fn(&[u8]) -> bool,
}

/// Bytes that tell what a file is.
const HEAD_BYTES: u64 = 4096;

/// A file that will be written: checked before a long run, not after it.
///
/// Invariant: a file that was made by the check and never written is removed again.
#[derive(Debug)]
pub(crate) struct Target {
    path: PathBuf,
    empty: bool,
}

impl Target {
    /// Makes sure that `path` can be written and holds nothing else than an earlier `written`,
    /// without changing what is there.
    ///
    /// # Errors
    /// [`Failure::Write`], [`Failure::NotOurs`], or `path` is standard output.
    pub(crate) fn check(path: &Path, written: Written) -> Result<Self, Failure> {
        if path == Path::new("-") {
            return Err(Failure::NoFile { option: written.option });
        }
        let unwritten = |source| Failure::Write { path: path.to_owned(), source };
        let head = head(path).map_err(unwritten)?;
        if !head.is_empty() && !(written.is_in)(&head) {
            let is_database = file::is_page_file(&head) || file::is_nand_file(&head);
            let (path, option) = (path.to_owned(), written.option);
            return Err(Failure::NotOurs { path, is_database, option });
        }
        let empty = !path.exists();
        OpenOptions::new().append(true).create(true).open(path).map_err(unwritten)?;
        Ok(Target { path: path.to_owned(), empty })
    }

    /// Refuses to be the same file as `other`, of which one would write over the other.
    ///
    /// # Errors
    /// [`Failure::SameFile`].
    pub(crate) fn check_other(&self, other: &Target) -> Result<(), Failure> {
        let is_file = fs::metadata(&self.path).is_ok_and(|about| about.is_file());
        match (self.path.canonicalize(), other.path.canonicalize()) {
            (Ok(one), Ok(two)) if is_file && one == two => {
                Err(Failure::SameFile { path: self.path.clone() })
            }
            _ => Ok(()),
        }
    }

    /// Replaces the content of the file.
    ///
    /// # Errors
    /// [`Failure::Write`].
    pub(crate) fn write(mut self, text: &str) -> Result<(), Failure> {
        File::create(&self.path)
            .and_then(|mut file| file.write_all(text.as_bytes()))
            .map_err(|source| Failure::Write { path: self.path.clone(), source })?;
        self.empty = false;
        Ok(())
    }
}

/// What the file at `path` begins with; nothing where there is none, or a pipe or a terminal, which
/// keeps nothing.
fn head(path: &Path) -> io::Result<Vec<u8>> {
    let mut head = Vec::new();
    match fs::metadata(path) {
        Ok(about) if about.is_file() || about.file_type().is_block_device() => {
            File::open(path)?.take(HEAD_BYTES).read_to_end(&mut head)?;
        }
        // What is wrong with the path is told when it is opened.
        _ => {}
    }
    Ok(head)
}

impl Drop for Target {
    fn drop(&mut self) {
        if self.empty {
            // The run failed already, and says why; an empty file left behind does no harm.
            drop(std::fs::remove_file(&self.path));
        }
    }
}

/// A table for people: a heading, rows, and which of the columns hold text.
#[derive(Clone, Debug, Default)]
pub(crate) struct Sheet {
    /// What stands above the columns.
    pub(crate) heading: Vec<String>,
    /// The cells.
    pub(crate) rows: Vec<Vec<String>>,
    /// Columns with text, which begin at the left; numbers end at the right.
    pub(crate) text_columns: Vec<usize>,
}

impl Sheet {
    /// A sheet of text under `heading`.
    pub(crate) fn of_text(heading: &[&str]) -> Self {
        Sheet {
            heading: heading.iter().map(ToString::to_string).collect(),
            rows: Vec::new(),
            text_columns: (0..heading.len()).collect(),
        }
    }

    /// The sheet as text. Text too wide for the terminal wraps; what goes elsewhere has the width
    /// that is usual for text.
    pub(crate) fn to_text(&self) -> String {
        const PIPE_WIDTH: u16 = 80;
        let mut table = self.table();
        // Numbers can't wrap.
        let is_text = self.text_columns.len() * 2 > self.heading.len();
        if table.width().is_none() && is_text {
            table.set_width(PIPE_WIDTH);
        }
        table.set_content_arrangement(ContentArrangement::Dynamic);
        finish(&table)
    }

    /// The sheet as text; turned on its side where it is too wide for the terminal.
    pub(crate) fn to_text_or_turned(&self) -> String {
        let table = self.table();
        let widths = table.column_max_content_widths();
        let width = widths.iter().map(|width| usize::from(*width) + 2).sum::<usize>();
        match table.width() {
            Some(terminal) if width > usize::from(terminal) => finish(&self.turned().table()),
            _ => finish(&table),
        }
    }

    /// Columns as rows.
    fn turned(&self) -> Sheet {
        let column = |place: usize| {
            let cells = self.rows.iter().map(move |row| row.get(place).cloned());
            std::iter::once(self.heading.get(place).map(|cell| cell.replace('\n', " ")))
                .chain(cells)
                .map(Option::unwrap_or_default)
                .collect::<Vec<_>>()
        };
        Sheet {
            heading: column(0),
            rows: (1..self.heading.len()).map(column).collect(),
            text_columns: vec![0],
        }
    }

    fn table(&self) -> Table {
        let mut table = Table::new();
        table.load_style(STYLE);
        if !(colours_wanted() && io::stdout().is_terminal()) {
            table.force_no_tty();
        }
        table.set_header(self.heading.iter().map(|text| Cell::new(text).add_attribute(BOLD)));
        for row in &self.rows {
            table.add_row(Row::from(row.iter().map(cell).collect::<Vec<_>>()));
        }
        for (place, column) in table.column_iter_mut().enumerate() {
            if !self.text_columns.contains(&place) {
                column.set_cell_alignment(CellAlignment::Right);
            }
        }
        table
    }
}

const BOLD: Attribute = Attribute::Bold;

/// A line under the heading, and nothing else.
const STYLE: TableStyle = TableStyle::new()
    .header_lines(ContentLineStyle::none().junction(' '))
    .header_separator(LineStyle::none().fill('─').junction('─'))
    .content_lines(ContentLineStyle::none().junction(' '));

fn cell(text: &String) -> Cell {
    match text.as_str() {
        "failed" => Cell::new(text).fg(comfy_table::Color::Red),
        "in full" => Cell::new(text).fg(comfy_table::Color::Green),
        _ => Cell::new(text),
    }
}

fn finish(table: &Table) -> String {
    table.lines().map(|line| line.trim_end().to_owned() + "\n").collect()
}

#[cfg(test)]
mod tests {
    use super::{Sheet, Target, Written};

    fn sheet() -> Sheet {
        Sheet {
            heading: vec!["tree".into(), "device\nµs/op".into(), "reads".into()],
            rows: vec![
                vec!["b-plus".into(), "1.5".into(), "10".into()],
                vec!["mu".into(), "200".into(), "9".into()],
            ],
            text_columns: vec![0],
        }
    }

    #[test]
    fn text_begins_at_the_left_and_numbers_end_at_the_right() {
        let text = sheet().to_text();
        let lines: Vec<_> = text.lines().collect();
        assert_eq!(lines.len(), 5, "{text}");
        assert!(lines[3].starts_with(" b-plus"), "{text}");
        assert!(lines[3].ends_with("10") && lines[4].ends_with(" 9"), "{text}");
    }

    #[test]
    fn a_turned_sheet_has_a_column_a_row() {
        let turned = sheet().turned();
        assert_eq!(turned.heading, ["tree", "b-plus", "mu"]);
        assert_eq!(turned.rows, [["device µs/op", "1.5", "200"], ["reads", "10", "9"]]);
    }

    #[test]
    fn a_file_that_was_only_checked_is_as_before() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("report.html");
        let written = Written { option: "--save", is_in: |head| head.starts_with(b"old") };
        drop(Target::check(&path, written).unwrap());
        assert!(!path.exists());
        std::fs::write(&path, "old").unwrap();
        drop(Target::check(&path, written).unwrap());
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "old");
        Target::check(&path, written).unwrap().write("new").unwrap();
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "new");
    }
}
