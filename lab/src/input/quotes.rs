//! What the reader of CSV would take for something else: a quote that is never closed swallows all
//! that follows, what stands behind a closed one becomes part of the field, and a NUL outside of
//! quotes tells of UTF-16. And the lines in which rows begin: the reader of CSV counts a line break
//! that ends a row, and empty lines, to the row behind them.

use std::collections::VecDeque;
use std::io::{self, Read};

/// Where the bytes stand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// Before a row, at or behind line breaks.
    Row,
    /// At the beginning of a field.
    Start,
    /// In a field without quotes.
    Plain,
    /// Between quotes.
    Quoted,
    /// Behind a quote that closes, or is the first of two.
    Closed,
}

/// What is said of a NUL, which stands in texts in UTF-16 without a mark, and in no field that was
/// exported without quotes.
pub const NUL: &str = "a NUL byte: if it is UTF-16, make it UTF-8 first, as by iconv -f \
                       UTF-16LE, or UTF-16BE, -t UTF-8; in CSV a NUL that is meant stands in \
                       quotes";

/// What is wrong in a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct TextFault {
    /// The line, from 1; of a quote, the one in which it opened.
    pub(super) line: u64,
    /// What is wrong.
    pub(super) what: &'static str,
}

impl std::fmt::Display for TextFault {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.what)
    }
}

impl std::error::Error for TextFault {}

/// Bytes of CSV, up to the first that is wrong. Invariant: the rows before it come out whole, and
/// then the [`TextFault`], as the inner error.
pub(super) struct Quotes<R> {
    below: R,
    /// What stands between two fields.
    delimiter: u8,
    state: State,
    line: u64,
    /// The line in which the last quote opened.
    opened: u64,
    /// The lines of the rows that began and were not asked for yet.
    rows: VecDeque<u64>,
    fault: Option<TextFault>,
}

impl<R: Read> Quotes<R> {
    /// Watches the quotes of `below`.
    pub(super) const fn new(below: R, delimiter: u8) -> Self {
        let rows = VecDeque::new();
        Quotes { below, delimiter, state: State::Row, line: 1, opened: 1, rows, fault: None }
    }

    /// The line in which the next row begins, of those that came out.
    pub(super) fn next_row(&mut self) -> Option<u64> {
        self.rows.pop_front()
    }

    fn unclosed(&self, what: &'static str) -> Option<TextFault> {
        (self.state == State::Quoted).then_some(TextFault { line: self.opened, what })
    }

    /// Looks at some more bytes; returns how many of them are right.
    fn pass(&mut self, bytes: &[u8]) -> usize {
        for (place, byte) in bytes.iter().enumerate() {
            if *byte == 0 && self.state != State::Quoted {
                self.fault = Some(TextFault { line: self.line, what: NUL });
                return place;
            }
            if self.state == State::Row && !b"\r\n".contains(byte) {
                self.rows.push_back(self.line);
                self.state = State::Start;
            }
            self.state = match (self.state, byte) {
                (State::Start, b'"') => {
                    self.opened = self.line;
                    State::Quoted
                }
                (State::Quoted, b'"') => State::Closed,
                (State::Closed, b'"') | (State::Quoted, _) => State::Quoted,
                (_, b'\r' | b'\n') => State::Row,
                (_, byte) if *byte == self.delimiter => State::Start,
                (State::Closed, _) => {
                    let what = "something stands behind a closing quote: double quotes in a field";
                    self.fault = Some(TextFault { line: self.opened, what });
                    return place;
                }
                _ => State::Plain,
            };
            self.line += u64::from(*byte == b'\n');
        }
        bytes.len()
    }
}

impl<R: Read> Read for Quotes<R> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        if let Some(fault) = self.fault {
            return Err(io::Error::new(io::ErrorKind::InvalidData, fault));
        }
        let count = match self.below.read(into) {
            // A row that is longer than any: the reason may be the quote.
            Err(error) if error.kind() == io::ErrorKind::FileTooLarge => {
                self.fault = self.unclosed(
                    "a quote opens here and is not closed within 64 MiB, the most that a row takes",
                );
                return Err(self
                    .fault
                    .map_or(error, |fault| io::Error::new(io::ErrorKind::InvalidData, fault)));
            }
            other => other?,
        };
        if count == 0 && !into.is_empty() {
            self.fault = self.unclosed("a quote opens here and is never closed");
        }
        let right = self.pass(&into[..count]);
        match self.fault {
            Some(fault) if right == 0 => Err(io::Error::new(io::ErrorKind::InvalidData, fault)),
            _ => Ok(right),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read;

    use super::{Quotes, TextFault};

    /// What comes out, and the line of what is wrong, with so many bytes at a time.
    fn read(text: &str, at_a_time: usize) -> (String, Option<u64>) {
        let mut quotes = Quotes::new(text.as_bytes(), b',');
        let (mut all, mut piece) = (Vec::new(), vec![0; at_a_time]);
        let fault = loop {
            match quotes.read(&mut piece) {
                Ok(0) => break None,
                Ok(count) => all.extend_from_slice(&piece[..count]),
                Err(error) => {
                    let fault = error.get_ref().and_then(|inner| inner.downcast_ref());
                    break fault.map(|fault: &TextFault| fault.line);
                }
            }
        };
        (String::from_utf8_lossy(&all).into_owned(), fault)
    }

    #[test]
    fn right_quotes_pass_and_wrong_ones_are_named_by_the_line_in_which_they_open() {
        for at_a_time in [1, 2, 3, 7, 100] {
            for right in [
                "",
                "a,b\n",
                "\"a\",\"b\"\n",
                "\"a\"\"b\",\"\"\r\n\"\"\"\"\n",
                "a\"b,c\"\n",
                "\"two\nlines\",x",
                " \"a\"b\n",
                "\"end\"",
            ] {
                assert_eq!(read(right, at_a_time), (right.to_owned(), None), "{right}");
            }
            for (wrong, line) in [
                ("1,\"a\n2,b\n3,c\n", 1),
                ("k,v\n\"a\nb\",c\nd,\"e", 4),
                ("k,v\n\"x\"y,z\n", 2),
                ("\"x\" ,z\n", 1),
                ("k\0,\0v\0\n\0", 1),
                ("k,v\n\"a\0\",b\n\0c,d\n", 3),
            ] {
                assert_eq!(read(wrong, at_a_time).1, Some(line), "{wrong}");
            }
        }
    }

    #[test]
    fn rows_begin_behind_line_breaks_and_empty_lines() {
        for (text, lines) in [
            ("a\nb\n", &[1, 2][..]),
            ("a\r\nb\r\n\r\nc", &[1, 2, 4]),
            ("\n\n\"a\n\nb\",c\n\n\"\"\n", &[3, 7]),
            (",\n,", &[1, 2]),
            ("\n", &[]),
        ] {
            let mut quotes = Quotes::new(text.as_bytes(), b',');
            quotes.read_to_end(&mut Vec::new()).unwrap();
            let found: Vec<u64> = std::iter::from_fn(|| quotes.next_row()).collect();
            assert_eq!(found, lines, "{text:?}");
        }
    }

    #[test]
    fn the_rows_before_a_wrong_quote_come_out_whole() {
        assert_eq!(read("k,v\na,b\n\"x\"y,z\nc,d\n", 100).0, "k,v\na,b\n\"x\"");
    }
}
