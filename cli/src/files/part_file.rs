//! A file that has its name only when it is whole.

use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use file::Rights;

/// Bytes that are gathered before they are written.
const BUFFER_BYTES: usize = 256 << 10;

/// Where rows go: standard output, or a file that has another name until it is whole. What is not
/// a regular file, such as a pipe, is written as it is.
pub(super) enum Output {
    Standard(BufWriter<io::Stdout>),
    Special(BufWriter<File>),
    Part(Part),
}

/// A file that is not whole yet. Invariant: unless it gets its name, it is removed.
pub(super) struct Part {
    file: BufWriter<File>,
    temporary: PathBuf,
    path: PathBuf,
    /// Of the file that it replaces. Until it has them, only its owner can read it.
    rights: Option<Rights>,
}

impl Output {
    /// Opens `path`, or standard output for `-`.
    ///
    /// # Errors
    /// The file can't be made.
    pub(super) fn open(path: &Path) -> io::Result<Self> {
        if path == Path::new("-") {
            return Ok(Output::Standard(BufWriter::with_capacity(BUFFER_BYTES, io::stdout())));
        }
        // Links are followed, so that what is replaced is the file itself.
        let path = path.canonicalize().unwrap_or_else(|_| path.to_owned());
        if fs::metadata(&path).is_ok_and(|about| !about.is_file()) {
            let file = File::options().write(true).open(&path)?;
            return Ok(Output::Special(BufWriter::with_capacity(BUFFER_BYTES, file)));
        }
        let Some(name) = path.file_name() else {
            return Err(io::Error::new(io::ErrorKind::IsADirectory, "it is a folder"));
        };
        let mut temporary = OsString::from(name);
        temporary.push(format!(".{}.part", std::process::id()));
        let temporary = path.with_file_name(temporary);
        // A process of the same number may have been killed and have left one.
        drop(fs::remove_file(&temporary));
        let rights = Rights::of(&path);
        let file = Rights::make_file(&temporary, rights)?;
        // The lock tells that somebody is still writing it; not every file system has locks.
        drop(file.try_lock());
        let file = BufWriter::with_capacity(BUFFER_BYTES, file);
        Ok(Output::Part(Part { file, temporary, path, rights }))
    }

    /// True for standard output, whose reader may go away.
    pub(super) const fn is_standard(&self) -> bool {
        matches!(self, Output::Standard(_))
    }

    /// Ends the file, which has its name from now on.
    ///
    /// # Errors
    /// What is left can't be written.
    pub(super) fn finish(mut self) -> io::Result<()> {
        self.flush()?;
        match self {
            Output::Standard(_) | Output::Special(_) => Ok(()),
            Output::Part(part) => {
                if let Some(rights) = part.rights {
                    rights.give(&part.temporary)?;
                }
                part.file.get_ref().sync_all()?;
                fs::rename(&part.temporary, &part.path)
            }
        }
    }

    fn writer(&mut self) -> &mut dyn Write {
        match self {
            Output::Standard(out) => out,
            Output::Special(file) => file,
            Output::Part(part) => &mut part.file,
        }
    }
}

impl Write for Output {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.writer().write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.writer().flush()
    }
}

impl Drop for Part {
    fn drop(&mut self) {
        // After the renaming there is none under that name.
        drop(fs::remove_file(&self.temporary));
    }
}

/// Tells of files beside `path` that were to get its name and end in `ending`, where a process that
/// was killed has left them. They may be somebody else's, so they stay.
pub(super) fn tell_leftovers(path: &Path, ending: &str) {
    for left in leftovers(path, ending).unwrap_or_default() {
        crate::output::remark(&format!(
            "{} seems to be left of a process that was killed; remove it, if it is not yours",
            left.display()
        ));
    }
}

fn leftovers(path: &Path, ending: &str) -> Option<Vec<PathBuf>> {
    let path = path.canonicalize().unwrap_or_else(|_| path.to_owned());
    let name = path.file_name()?.to_str()?.to_owned() + ".";
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    let is_left = |path: &PathBuf| {
        let other = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        let middle = other.strip_prefix(&name).and_then(|rest| rest.strip_suffix(ending));
        let is_numbers = |middle: &str| {
            middle
                .split('-')
                .all(|part| !part.is_empty() && part.bytes().all(|letter| letter.is_ascii_digit()))
        };
        // Who still writes it has locked it.
        middle.is_some_and(is_numbers)
            && File::open(path).is_ok_and(|file| file.try_lock_shared().is_ok())
    };
    let entries = fs::read_dir(folder.unwrap_or(Path::new("."))).ok()?;
    let mut left: Vec<_> = entries.flatten().map(|entry| entry.path()).filter(is_left).collect();
    left.sort();
    Some(left)
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::io::Write;
    use std::os::unix::fs::PermissionsExt;

    use super::Output;

    #[test]
    fn a_file_is_replaced_only_when_the_new_one_is_whole() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("rows.csv");
        fs::write(&path, "old").unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).unwrap();
        let mut broken = Output::open(&path).unwrap();
        broken.write_all(b"half").unwrap();
        drop(broken);
        assert_eq!(fs::read_to_string(&path).unwrap(), "old");
        let mut whole = Output::open(&path).unwrap();
        whole.write_all(b"new").unwrap();
        whole.finish().unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "new");
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o640);
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
        assert!(Output::open(folder.path()).is_err());
        assert!(Output::open(&folder.path().join("no/rows.csv")).is_err());
    }
}
