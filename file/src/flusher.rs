//! Flushing, and what a flush that failed means.

use std::fs::File;

use device::{Error, Result};

use crate::system;

/// Flushes a file, and remembers if that failed.
///
/// After a flush that failed nobody knows what is on the disk: the system drops what it could not
/// write, and a second flush would report success. So nothing is written or flushed after it.
#[derive(Debug, Default)]
pub(crate) struct Flusher {
    failed: Option<Error>,
}

impl Flusher {
    /// Refuses, if a flush has failed.
    pub(crate) fn check(&self) -> Result<()> {
        self.failed.map_or(Ok(()), Err)
    }

    /// Makes all that was written durable.
    pub(crate) fn flush(&mut self, file: &File) -> Result<()> {
        self.check()?;
        self.note(system::flush(file).map_err(system::driver))
    }

    fn note(&mut self, flushed: Result<()>) -> Result<()> {
        self.failed = flushed.err();
        flushed
    }
}

#[cfg(test)]
mod tests {
    use super::Flusher;
    use device::Error;

    #[test]
    fn after_a_flush_that_failed_every_other_is_refused() {
        let mut flusher = Flusher::default();
        assert_eq!(flusher.note(Ok(())), Ok(()));
        assert_eq!(flusher.check(), Ok(()));
        let failure = Err(Error::Driver { code: 5 });
        assert_eq!(flusher.note(failure), failure);
        assert_eq!(flusher.check(), failure);
        let file = tempfile::tempfile().unwrap();
        assert_eq!(flusher.flush(&file), failure);
    }
}
