//! Backups: the bytes of a database's file, copied while nobody changes them.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::Path;

use super::Access;
use crate::files::{self, Site, Temporary};
use crate::{Database, Error, Result};

/// Bytes copied between two questions whether to go on. Where all of them are zeros, the copy has a
/// hole.
const PIECE_BYTES: usize = 256 << 10;

impl Database<'_> {
    /// Copies the database as it is now, named checkpoints included, into a new file that opens as
    /// this one does. Everything is written back first. Returns the length of the copy in bytes.
    /// The new file has its name only when it is whole and durable.
    ///
    /// # Errors
    /// Something exists at `path`; the database is in no file; the device failed, or the system
    /// refuses.
    ///
    /// ```
    /// # use flashtree::{Database, OpenOptions, Options};
    /// # fn main() -> flashtree::Result<()> {
    /// # let folder = tempfile::tempdir().unwrap();
    /// # let fruit = Database::create(folder.path().join("fruit.db"), &Options::new())?;
    /// fruit.put("apple", "red")?;
    /// fruit.backup(folder.path().join("monday.db"))?;
    /// fruit.put("apple", "green")?;
    /// let monday = Database::open(folder.path().join("monday.db"), &OpenOptions::new())?;
    /// assert_eq!(monday.get("apple")?, Some(b"red".to_vec()));
    /// # Ok(()) }
    /// ```
    pub fn backup(&self, path: impl AsRef<Path>) -> Result<u64> {
        self.backup_while(path, &mut |_| true)
    }

    /// As [`backup`](Database::backup), but stops when `go_on` returns false. It is called again
    /// and again with the number of bytes that were looked at.
    ///
    /// # Errors
    /// As [`backup`](Database::backup), or [`Error::Ended`].
    ///
    /// ```
    /// # use flashtree::{Database, Error, Options};
    /// # fn main() -> flashtree::Result<()> {
    /// # let folder = tempfile::tempdir().unwrap();
    /// # let fruit = Database::create(folder.path().join("fruit.db"), &Options::new())?;
    /// let path = folder.path().join("monday.db");
    /// let ended = fruit.backup_while(&path, &mut |_| false);
    /// assert!(matches!(ended, Err(Error::Ended)) && !path.exists());
    /// # Ok(()) }
    /// ```
    pub fn backup_while(
        &self,
        path: impl AsRef<Path>,
        go_on: &mut dyn FnMut(u64) -> bool,
    ) -> Result<u64> {
        let path = files::absolute(path.as_ref())?;
        Site::look(&path, false)?;
        let mut core = self.core.lock()?;
        if self.access == Access::Writing {
            self.settle(&mut core)?;
        }
        let Some(from) = &self.path else { return Err(Error::NotAPlainFile) };
        let mut original = File::open(from).map_err(Error::io("open", from))?;
        let temporary = Temporary::beside(&path)?;
        let copy = File::options().write(true).open(temporary.path());
        let mut copy = copy.map_err(Error::io("open", &path))?;
        // The lock tells that somebody is still writing it; not every file system has locks.
        let _ = copy.try_lock();
        let bytes = copy_bytes(&mut original, &mut copy, go_on);
        let bytes = bytes.map_err(Error::io("copy to", &path))?;
        let bytes = bytes.ok_or(Error::Ended)?;
        copy.sync_all().map_err(Error::io("flush", &path))?;
        temporary.publish(&path, false)?;
        Ok(bytes)
    }
}

/// Copies all bytes, but leaves holes where there are zeros. None if `go_on` said no.
fn copy_bytes(
    from: &mut File,
    to: &mut File,
    go_on: &mut dyn FnMut(u64) -> bool,
) -> io::Result<Option<u64>> {
    let mut piece = Vec::with_capacity(PIECE_BYTES);
    let mut copied = 0;
    while go_on(copied) {
        piece.clear();
        let read = Read::by_ref(from).take(PIECE_BYTES as u64).read_to_end(&mut piece)?;
        if read == 0 {
            to.set_len(copied)?;
            return Ok(Some(copied));
        }
        copied += read as u64;
        if piece.iter().any(|byte| *byte != 0) {
            to.write_all(&piece)?;
        } else {
            to.seek(SeekFrom::Start(copied))?;
        }
    }
    Ok(None)
}
