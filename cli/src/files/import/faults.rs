//! Why an import ends before its last row, and what is said of that: which row it was, how many
//! rows are safe, and how it goes on.

use db::Error;
use lab::input::RowFault;

use super::chunk::Chunk;
use super::{Job, pace};
use crate::failure::Failure;
use crate::failure::FileFailure;

impl Job<'_> {
    /// What is said of a batch that was refused: which row it is, where one is to blame.
    pub(super) fn refused(
        &mut self,
        error: Error,
        chunk: &Chunk,
        first: usize,
        end: usize,
    ) -> Failure {
        if !is_about_entry(&error) {
            return self.stopped(error);
        }
        for place in first..end {
            let (key, value, line) = chunk.entry(place);
            match self.database.put(key, value) {
                Err(error) if is_about_entry(&error) => {
                    let what = error.to_string();
                    return self.broken_off(RowFault::Bad { line, what });
                }
                Err(error) => return self.stopped(error),
                Ok(()) => self.put += 1,
            }
        }
        self.stopped(error)
    }

    /// What is said where the database takes no more: with what is safe, and how it goes on.
    pub(super) fn stopped(&self, error: Error) -> Failure {
        // What a failing device has of what is not safe yet, nobody knows.
        let is_refusal =
            matches!(error, Error::Full { .. } | Error::Kept { .. } | Error::LittleTables { .. });
        let put = if is_refusal { self.put } else { 0 };
        let error = match error {
            Error::LittleTables { have, need } => {
                Error::LittleTables { have, need: self.memory_for_all(need) }
            }
            other => other,
        };
        let failure = Box::new(self.failed()(error));
        FileFailure::ImportStopped { failure, safe: self.done.rows, put }.into()
    }

    /// Memory that suffices for all rows, as far as can be told, where `need` bytes do for those
    /// that are in and the next batch: tables grow with the rows, but not all of `need` is for
    /// rows. So after a few of them it is no more than four times that.
    fn memory_for_all(&self, need: u64) -> u64 {
        let done = (self.skipped + self.put).max(pace::MOST as u64);
        let all = u128::from(need) * u128::from(self.expected.max(done)) / u128::from(done);
        u64::try_from(all).unwrap_or(u64::MAX).min(need.saturating_mul(4))
    }

    pub(super) fn failed(&self) -> impl FnOnce(Error) -> FileFailure + use<> {
        let path = self.path.to_owned();
        move |source| FileFailure::Database { path, source }
    }

    pub(super) fn broken_off(&self, fault: RowFault) -> Failure {
        let path = self.input.to_owned();
        match fault {
            RowFault::Unreadable(source) if self.read.rows == 0 => {
                FileFailure::Read { path, source }
            }
            RowFault::Unreadable(source) => {
                FileFailure::BrokenInput { path, source, safe: self.done.rows }
            }
            RowFault::Bad { line, what: fault } => {
                FileFailure::Row { path, line, fault, safe: self.done.rows }
            }
        }
        .into()
    }

    pub(super) fn interrupted(&self) -> Failure {
        FileFailure::ImportInterrupted { safe: self.done.rows }.into()
    }
}

/// True if less at a time may be possible.
pub(super) fn is_about_length(error: &Error) -> bool {
    use index::Error as Index;
    matches!(
        error,
        Error::Full { .. }
            | Error::Kept { .. }
            | Error::Index(Index::Store(store::Error::LongBatch { .. }))
    )
}

/// True if the entry itself is what can't be put.
pub(super) fn is_about_entry(error: &Error) -> bool {
    use index::Error as Index;
    matches!(
        error,
        Error::Index(
            Index::KeyLength { .. }
                | Index::ValueLength { .. }
                | Index::EntryTooLong { .. }
                | Index::KeyTooLong { .. }
                | Index::ValueTooLong { .. }
        )
    )
}
