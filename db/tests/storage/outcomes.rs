//! What comes of using a damaged database: right data, or a typed error that says where.

use std::collections::BTreeMap;
use std::fmt;

use flashtree::{Database, Error};

use super::Model;

/// What came of the flips so far.
#[derive(Clone, Debug, Default)]
pub struct Outcomes {
    /// All data were right, and the check found nothing: nobody needs that byte.
    pub right: u64,
    /// All data were right, and the check found the damage.
    pub found: u64,
    /// Some data could not be read, and the error said where.
    pub errors: u64,
    /// Data that were never there.
    pub wrong: Vec<String>,
    /// The errors, without their numbers.
    pub kinds: BTreeMap<String, u64>,
}

impl Outcomes {
    pub fn flips(&self) -> u64 {
        self.right + self.found + self.errors + self.wrong.len() as u64
    }

    pub fn add(&mut self, other: Outcomes) {
        self.right += other.right;
        self.found += other.found;
        self.errors += other.errors;
        self.wrong.extend(other.wrong);
        for (kind, count) in other.kinds {
            *self.kinds.entry(kind).or_default() += count;
        }
    }

    /// Books what came of opening and using a database with damage at byte `place`; right is what
    /// agrees with one of `states`.
    pub fn book(
        &mut self,
        opened: flashtree::Result<Database<'_>>,
        states: &[Model],
        place: usize,
    ) {
        let mut database = match opened {
            Ok(database) => database,
            Err(error) => return self.error(&error, place),
        };
        let mut reading = Reading { possible: states.iter().collect(), errors: Vec::new() };
        let keys: Vec<_> = states.iter().flat_map(Model::keys).cloned().collect();
        reading.all(&mut database, &keys);
        let findings = database.check();
        if reading.possible.is_empty() {
            return self.wrong.push(format!("byte {place}: wrong data"));
        }
        match (reading.errors.first(), findings) {
            (Some(error), Ok(findings)) if findings.is_empty() => {
                self.wrong.push(format!("byte {place}: the check does not find: {error}"));
            }
            (Some(error), _) => self.error(error, place),
            (None, Err(error)) => self.error(&error, place),
            (None, Ok(findings)) if findings.is_empty() => self.right += 1,
            (None, Ok(_)) => self.found += 1,
        }
    }

    fn error(&mut self, error: &Error, place: usize) {
        let text = error.to_string();
        let says_where = match error {
            Error::Damaged { .. } => text.contains("page ") || text.contains("position "),
            // Both are the superblock's.
            Error::NotADatabase { .. } => text.contains("superblock"),
            Error::OtherVersion { .. } => true,
            // A copy of the superblock is missing, and reading only can't mend that.
            Error::NeedsRecovery => true,
            _ => false,
        };
        if !says_where {
            return self.wrong.push(format!("byte {place}: the error says no place: {error:?}"));
        }
        let beginning = text.split(": ").next().unwrap_or_default();
        let kind = beginning.chars().filter(|letter| !letter.is_ascii_digit()).collect();
        *self.kinds.entry(kind).or_default() += 1;
        self.errors += 1;
    }

    /// Fails if anything was wrong.
    pub fn assert_right(&self) {
        assert!(self.wrong.is_empty(), "{} flips: {:#?}", self.wrong.len(), &self.wrong);
        assert!(self.right > 0 && self.errors > 0, "{self:?}");
    }
}

impl fmt::Display for Outcomes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Outcomes { right, found, errors, wrong, .. } = self;
        write!(
            f,
            "flips: {}, right data: {right}, right data and found by check: {found}, \
             typed errors: {errors}, wrong data: {}",
            self.flips(),
            wrong.len()
        )
    }
}

/// What was read so far, and which states it can be.
struct Reading<'s> {
    possible: Vec<&'s Model>,
    errors: Vec<Error>,
}

impl Reading<'_> {
    fn all(&mut self, database: &mut Database<'_>, keys: &[Vec<u8>]) {
        self.scan(database.all(), |state, place| state.iter().nth(place));
        self.scan(database.all_descending(), |state, place| state.iter().rev().nth(place));
        for key in keys.iter().map(Vec::as_slice).chain([&b""[..], b"key 5x", b"none", b"z"]) {
            match database.get(key) {
                Ok(value) => {
                    self.possible.retain(|state| state.get(key) == value.as_ref());
                }
                Err(error) => self.errors.push(error),
            }
        }
    }

    /// Reads a range up to its end or the first error.
    fn scan(
        &mut self,
        range: flashtree::Result<flashtree::Range<'_>>,
        nth: impl Fn(&Model, usize) -> Option<(&Vec<u8>, &Vec<u8>)>,
    ) {
        let mut read = Vec::new();
        let entries = match range {
            Ok(range) => range.into_iter(),
            Err(error) => return self.errors.push(error),
        };
        let mut is_whole = true;
        for entry in entries {
            match entry {
                Ok(entry) => read.push(entry),
                Err(error) => {
                    is_whole = false;
                    self.errors.push(error);
                }
            }
        }
        self.possible.retain(|state| {
            (!is_whole || state.len() == read.len())
                && read
                    .iter()
                    .enumerate()
                    .all(|(place, (key, value))| nth(state, place) == Some((key, value)))
        });
    }
}
