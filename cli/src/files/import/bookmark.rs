//! How far an import came: the file `FILE.import` beside the database.

use std::ffi::OsString;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use db::{Database, Error};
use serde::{Deserialize, Serialize};

/// So many rows are safe in the database, this is the checksum of their keys and values, and an
/// older state of the database than this does not hold them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Bookmark {
    /// Rows.
    pub(super) rows: u64,
    /// CRC-32C of the lengths, keys and values, one behind the other.
    pub(super) checksum: u32,
    /// The number that the last checkpoint has at least when the database is opened again.
    pub(super) checkpoint: u64,
}

/// What [`Bookmark::checkpoint`] is for the present state of `database`, which was synced. An
/// opening that replays a journal makes a checkpoint.
///
/// # Errors
/// The database can't be read.
pub(super) fn checkpoint(database: &Database<'_>) -> Result<u64, Error> {
    let recovery = database.stats()?.recovery;
    Ok(recovery.checkpoint.0 + u64::from(recovery.journal_bytes > 0))
}

impl Bookmark {
    /// The file of the database at `path`: beside the database itself, whatever link leads there.
    pub(super) fn path(path: &Path) -> PathBuf {
        let path = path.canonicalize().unwrap_or_else(|_| path.to_owned());
        let mut name = OsString::from(path);
        name.push(".import");
        PathBuf::from(name)
    }

    /// The file that gets the name of the bookmark when it is whole.
    fn new_path(path: &Path) -> PathBuf {
        let mut name = OsString::from(Self::path(path));
        name.push(".new");
        PathBuf::from(name)
    }

    /// True if something else has the name of the bookmark, or of the one to come.
    pub(super) fn is_taken(path: &Path) -> bool {
        [Self::path(path), Self::new_path(path)].iter().any(|path| path.exists() && !is_ours(path))
    }

    /// The bookmark of the database at `path`. One that is damaged is none: to begin anew is
    /// always right.
    pub(super) fn read(path: &Path) -> Option<Self> {
        serde_json::from_slice(&fs::read(Self::path(path)).ok()?).ok()
    }

    /// Replaces the bookmark.
    ///
    /// # Errors
    /// It can't be written.
    pub(super) fn write(&self, path: &Path) -> io::Result<()> {
        let new = Self::new_path(path);
        let bytes = serde_json::to_vec(self)?;
        fs::write(&new, bytes).and_then(|()| fs::rename(&new, Self::path(path))).inspect_err(|_| {
            // A part of it is of no use to anybody; if it can't be removed either, a later import
            // knows it as its own.
            drop(fs::remove_file(&new));
        })
    }

    /// Takes the bookmark away, if there is one; a file of something else stays.
    pub(super) fn remove(path: &Path) {
        for path in [Self::path(path), Self::new_path(path)] {
            if is_ours(&path) {
                // Where there is none, none is to be removed; one that stays only says less than
                // is true.
                drop(fs::remove_file(path));
            }
        }
    }

    /// Moves on behind a row.
    pub(super) fn add(&mut self, key: &[u8], value: &[u8]) {
        self.rows += 1;
        let mut lengths = [0; 16];
        lengths[..8].copy_from_slice(&(key.len() as u64).to_le_bytes());
        lengths[8..].copy_from_slice(&(value.len() as u64).to_le_bytes());
        for part in [&lengths[..], key, value] {
            self.checksum = crc32c::crc32c_append(self.checksum, part);
        }
    }
}

/// The longest bookmark, in bytes.
const BYTES_MOST: u64 = 96;

/// What a bookmark begins with.
const BEGINNING: &[u8] = b"{\"rows\":";

/// What stands in one.
const LETTERS: &[u8] = b"{}\":,rowschecksumpoint0123456789";

/// True if what is at `path` is a bookmark, if a damaged one: after a power cut it may be cut off
/// or consist of zeros.
fn is_ours(path: &Path) -> bool {
    // Not all of it is read before its length is known.
    if !fs::metadata(path).is_ok_and(|about| about.is_file() && about.len() <= BYTES_MOST) {
        return false;
    }
    fs::read(path).is_ok_and(|bytes| {
        (bytes.starts_with(BEGINNING) && bytes.iter().all(|byte| LETTERS.contains(byte)))
            || BEGINNING.starts_with(&bytes)
            || bytes.iter().all(|byte| *byte == 0)
    })
}

#[cfg(test)]
mod tests {
    use super::Bookmark;

    #[test]
    fn a_bookmark_is_read_as_it_was_written_and_damage_is_none() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.db");
        assert_eq!(Bookmark::read(&path), None);
        let mut bookmark = Bookmark::default();
        bookmark.add(b"key", b"value");
        bookmark.write(&path).unwrap();
        assert_eq!(Bookmark::read(&path), Some(bookmark));
        assert!(!Bookmark::is_taken(&path));
        std::fs::write(Bookmark::path(&path), "{\"rows\":").unwrap();
        assert_eq!(Bookmark::read(&path), None);
        Bookmark::remove(&path);
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
    }

    #[test]
    fn of_a_bookmark_that_can_t_be_written_nothing_stays() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.db");
        // Where it is to be is a folder.
        std::fs::create_dir(Bookmark::path(&path)).unwrap();
        Bookmark::default().write(&path).unwrap_err();
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
    }

    #[test]
    fn a_file_of_something_else_stays() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.db");
        for content in
            ["my notes", "{\"rows\":1}, and what I think of each of them, in many words."]
        {
            std::fs::write(Bookmark::path(&path), content).unwrap();
            assert!(Bookmark::is_taken(&path));
            Bookmark::remove(&path);
            assert_eq!(std::fs::read_to_string(Bookmark::path(&path)).unwrap(), content);
        }
        for content in ["", "{\"row", "\0\0\0"] {
            std::fs::write(Bookmark::path(&path), content).unwrap();
            assert!(!Bookmark::is_taken(&path), "{content:?}");
            Bookmark::remove(&path);
            assert!(!Bookmark::path(&path).exists(), "{content:?}");
        }
    }

    #[test]
    fn other_rows_have_another_checksum() {
        let after = |rows: &[(&str, &str)]| {
            let mut bookmark = Bookmark::default();
            rows.iter().for_each(|(key, value)| bookmark.add(key.as_bytes(), value.as_bytes()));
            bookmark
        };
        let one = after(&[("a", "bc"), ("d", "e")]);
        assert_ne!(one, after(&[("ab", "c"), ("d", "e")]));
        assert_ne!(one, after(&[("d", "e"), ("a", "bc")]));
        assert_eq!(one, after(&[("a", "bc"), ("d", "e")]));
    }
}
