//! What keeps a check from running at all. What a check finds is a [`Finding`](crate::report).

use std::path::PathBuf;

/// A result of this crate.
pub type Result<T> = std::result::Result<T, Error>;

/// Why a check could not run.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A file could not be read.
    #[error("{file}: {source}")]
    Read {
        /// The file.
        file: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// The project's folders could not be listed.
    #[error(transparent)]
    Walk(#[from] ignore::Error),
    /// `cargo metadata` failed.
    #[error(transparent)]
    Metadata(#[from] cargo_metadata::Error),
    /// The tests could not be built.
    #[error("the tests can't be built: {0}")]
    Tests(String),
    /// A promise's file is not what `checks/promises/README.md` says.
    #[error("{file}: {what}")]
    Promise {
        /// The file.
        file: PathBuf,
        /// What is wrong with it.
        what: String,
    },
    /// No promise, or no figure of claims, has this name.
    #[error("none is called '{name}'; there are: {known}")]
    NoSuchPromise {
        /// The name asked for.
        name: String,
        /// The names that exist.
        known: String,
    },
}
