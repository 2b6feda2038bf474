//! Opening and making device files: what they are, whose they are, and the lock.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, ErrorKind, Seek, SeekFrom};
use std::os::unix::fs::{FileExt, FileTypeExt, OpenOptionsExt};
use std::path::Path;

use crate::{Error, Existing, Result, system};

/// How many bytes from the start of a file tell whose it is: the second sector of the largest
/// sectors is among them.
const HEAD_BYTES: usize = (1 << 20) + 4096;

/// What a device file is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Regular,
    BlockDevice,
}

/// A file that is open for reading and writing, and locked.
#[derive(Debug)]
pub(crate) struct Opened {
    pub(crate) file: File,
    pub(crate) kind: Kind,
    /// Its length.
    pub(crate) bytes: u64,
    /// True if it did not exist before.
    pub(crate) new: bool,
}

/// Opens and locks what exists.
pub(crate) fn open(path: &Path) -> Result<Opened> {
    // Asked before it is opened: opening a pipe or a terminal may have effects.
    let expected = kind(path, fs::metadata(path))?;
    let mut options = OpenOptions::new();
    options.read(true).write(true);
    if expected == Kind::BlockDevice {
        // The kernel then refuses a device that is mounted or otherwise taken.
        options.custom_flags(rustix::fs::OFlags::EXCL.bits().cast_signed());
    }
    let mut file = options.open(path).map_err(|error| match error.kind() {
        ErrorKind::ResourceBusy => Error::InUse { path: path.to_owned(), holder: None },
        _ => refused(path, error),
    })?;
    if kind(path, file.metadata())? != expected {
        return Err(Error::NotAFile { path: path.to_owned() });
    }
    lock(path, &file)?;
    let bytes = file.seek(SeekFrom::End(0)).map_err(Error::io("measure", path))?;
    Ok(Opened { file, kind: expected, bytes, new: false })
}

/// Makes and locks a file that does not exist, or opens one that may be replaced. Nothing was
/// written to it yet.
pub(crate) fn make(path: &Path, existing: Existing, ours: fn(&[u8]) -> bool) -> Result<Opened> {
    let file = match OpenOptions::new().read(true).write(true).create_new(true).open(path) {
        Err(error) if error.kind() == ErrorKind::AlreadyExists => {
            return replace(path, existing, ours);
        }
        other => other.map_err(|error| refused(path, error))?,
    };
    lock(path, &file)?;
    Ok(Opened { file, kind: Kind::Regular, bytes: 0, new: true })
}

fn replace(path: &Path, existing: Existing, ours: fn(&[u8]) -> bool) -> Result<Opened> {
    if existing == Existing::Keep {
        return Err(Error::Exists { path: path.to_owned() });
    }
    // What exists and leads nowhere is a link.
    let opened = open(path).map_err(|error| match error {
        Error::Missing { path } => Error::NotAFile { path },
        other => other,
    })?;
    if existing == Existing::ReplaceOurs {
        let head = head(&opened.file).map_err(Error::io("read", path))?;
        if !ours(&head) {
            return Err(Error::NotOurs { path: path.to_owned() });
        }
    }
    Ok(opened)
}

/// Fills a file that was made or may be replaced by means of `fill`; takes it away again if that
/// fails and it did not exist before.
pub(crate) fn filled(
    path: &Path,
    opened: &Opened,
    fill: impl FnOnce() -> Result<()>,
) -> Result<()> {
    let done = fill().and_then(|()| {
        opened.file.sync_all().map_err(Error::io("flush", path))?;
        match opened.new {
            true => system::flush_folder_of(path).map_err(Error::io("flush", path)),
            false => Ok(()),
        }
    });
    if done.is_err() && opened.new {
        // What is reported is why it could not be filled; that an empty file stays is less.
        let _ = fs::remove_file(path);
    }
    done
}

/// Gives a regular file the length `bytes` and zeros, with room for all of them where that can be
/// reserved. If there is no room, what it held before is still there.
pub(crate) fn fill_with_zeros(path: &Path, opened: &Opened, bytes: u64) -> Result<()> {
    let file = &opened.file;
    if let Err(error) = system::preallocate(file, bytes) {
        if !opened.new {
            // What is reported is why there is no room; a longer file would be refused later.
            let _ = file.set_len(opened.bytes);
        }
        return Err(Error::io("reserve room for", path)(error));
    }
    if !opened.new {
        file.set_len(0).map_err(Error::io("empty", path))?;
        system::preallocate(file, bytes).map_err(Error::io("reserve room for", path))?;
    }
    Ok(())
}

fn refused(path: &Path, error: io::Error) -> Error {
    match error.kind() {
        ErrorKind::NotFound => Error::Missing { path: path.to_owned() },
        _ => Error::io("open", path)(error),
    }
}

fn kind(path: &Path, about: io::Result<fs::Metadata>) -> Result<Kind> {
    let file_type = about.map_err(|error| refused(path, error))?.file_type();
    if file_type.is_file() {
        Ok(Kind::Regular)
    } else if file_type.is_block_device() {
        Ok(Kind::BlockDevice)
    } else {
        Err(Error::NotAFile { path: path.to_owned() })
    }
}

fn lock(path: &Path, file: &File) -> Result<()> {
    file.try_lock().map_err(|error| match error {
        TryLockError::WouldBlock => {
            Error::InUse { path: path.to_owned(), holder: system::holder(file) }
        }
        TryLockError::Error(source) => Error::io("lock", path)(source),
    })
}

fn head(file: &File) -> io::Result<Vec<u8>> {
    let mut head = vec![0; HEAD_BYTES];
    let mut read = 0;
    while read < head.len() {
        match file.read_at(&mut head[read..], read as u64) {
            Ok(0) => break,
            Ok(bytes) => read += bytes,
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    head.truncate(read);
    Ok(head)
}
