//! Where a database is, as the command line says it.

use std::ffi::{OsStr, OsString};
use std::fmt;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use clap::builder::{OsStringValueParser, TypedValueParser};

/// A file, and what its user takes it for. The path is all that follows the first colon. One that
/// exists is taken for what it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    path: PathBuf,
    chip: bool,
}

impl Place {
    /// What clap calls to read one.
    pub(crate) fn parser() -> impl TypedValueParser<Value = Place> {
        OsStringValueParser::new().try_map(|text: OsString| {
            let place = Place::of(&text);
            match place.path.as_os_str().is_empty() {
                true => Err("expected the path of a file"),
                false => Ok(place),
            }
        })
    }

    fn of(text: &OsStr) -> Self {
        let behind = |word: &[u8]| {
            text.as_bytes().strip_prefix(word).map(|rest| PathBuf::from(OsStr::from_bytes(rest)))
        };
        if let Some(path) = behind(b"nand-file:") {
            return Place { path, chip: true };
        }
        let path = behind(b"file:").unwrap_or_else(|| PathBuf::from(text));
        Place { path, chip: false }
    }

    /// The path of the file.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// True for a chip that is imitated in a file.
    pub(crate) const fn is_chip(&self) -> bool {
        self.chip
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.path.display().fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use std::ffi::OsStr;
    use std::path::Path;

    use super::Place;

    #[test]
    fn the_path_is_all_that_follows_the_first_colon() {
        for (text, path, chip) in [
            ("a.db", "a.db", false),
            ("file:a:b", "a:b", false),
            ("nand-file:file:x", "file:x", true),
            ("c:file:x", "c:file:x", false),
            ("nand-file", "nand-file", false),
        ] {
            let place = Place::of(OsStr::new(text));
            assert_eq!((place.path(), place.is_chip()), (Path::new(path), chip), "{text}");
        }
    }
}
