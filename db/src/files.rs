//! Databases in files: how they are made, found, locked and replaced.
//!
//! A new file is made under another name and gets its own when it is whole; so whatever happens
//! meanwhile, under that name there is no database, or the old one, or the new one.

use std::ffi::OsString;
use std::fs::{self, File, Metadata, TryLockError};
use std::io::{self, ErrorKind, Read};
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::process;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use device::Medium;
use file::{DiskOptions, Existing, FileDisk, NandFile, NandOptions, Rights};
use index::Durability;

use crate::backend::Backend;
use crate::driver::{Driver, in_flight};
use crate::options::{MemoryLimit, SECTOR_BYTES};
use crate::read_only::FileReader;
use crate::{Error, OpenOptions, Options, Result};

/// Bytes of the sectors from which a database in a plain file is opened.
const SUPERBLOCKS: u64 = 2 * SECTOR_BYTES as u64;

/// How often a file is looked at again that was replaced while it was being opened.
const TRIES: u32 = 100;

/// A file under a name that it does not keep; if it gets no other, it is taken away.
pub(crate) struct Temporary {
    path: PathBuf,
    kept: bool,
    /// Of the file that it replaces.
    rights: Option<Rights>,
}

impl Temporary {
    /// An empty file beside `path` under a name that nobody uses. If it is to replace what is at
    /// `path`, nobody but its owner can read it until it is published.
    pub(crate) fn beside(path: &Path) -> Result<Self> {
        static NUMBER: AtomicU64 = AtomicU64::new(0);
        let Some(name) = path.file_name() else {
            return Err(Error::File(file::Error::NotAFile { path: path.to_owned() }));
        };
        let rights = Rights::of(path);
        loop {
            let number = NUMBER.fetch_add(1, Ordering::Relaxed);
            let mut temporary = OsString::from(name);
            temporary.push(format!(".{}-{number}.new", process::id()));
            let temporary = path.with_file_name(temporary);
            match Rights::make_file(&temporary, rights) {
                Ok(_) => return Ok(Temporary { path: temporary, kept: false, rights }),
                // A process of the same number may have been killed and have left one.
                Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
                Err(error) => return Err(Error::io("make", path)(error)),
            }
        }
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Gives the file its name, where there must be none yet unless it replaces that.
    pub(crate) fn publish(mut self, path: &Path, replace: bool) -> Result<()> {
        if let Some(rights) = self.rights.filter(|_| replace) {
            rights.give(&self.path).map_err(Error::io("give its rights to", path))?;
        }
        let renamed = match replace {
            true => fs::rename(&self.path, path),
            false => rename_new(&self.path, path),
        };
        renamed.map_err(|error| match error.kind() {
            ErrorKind::AlreadyExists => Error::Exists { path: path.to_owned() },
            _ => Error::io("rename", path)(error),
        })?;
        self.kept = true;
        flush_folder_of(path).map_err(Error::io("flush the folder of", path))
    }
}

impl Drop for Temporary {
    fn drop(&mut self) {
        if !self.kept {
            // What is reported is why it was given up; that the file stays is less.
            let _ = fs::remove_file(&self.path);
        }
    }
}

/// Renames to a name that must be free.
fn rename_new(from: &Path, to: &Path) -> io::Result<()> {
    #[cfg(target_os = "linux")]
    {
        use rustix::fs::{CWD, RenameFlags, renameat_with};
        use rustix::io::Errno;
        match renameat_with(CWD, from, CWD, to, RenameFlags::NOREPLACE) {
            // Not every file system has it.
            Err(Errno::INVAL | Errno::NOSYS | Errno::OPNOTSUPP) => {}
            other => return Ok(other?),
        }
    }
    fs::hard_link(from, to)?;
    fs::remove_file(from)
}

fn flush_folder_of(path: &Path) -> io::Result<()> {
    let folder = match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    };
    File::open(folder)?.sync_all()
}

/// The path that stays right wherever the program goes. Links are followed, so that what is
/// replaced is the file itself.
pub(crate) fn absolute(path: &Path) -> Result<PathBuf> {
    if path.as_os_str().is_empty() {
        let what = "it is empty".to_owned();
        return Err(Error::BadOption { option: "path", what });
    }
    path.canonicalize()
        .or_else(|_| std::path::absolute(path))
        .map_err(Error::io("find the folder of", path))
}

/// True if a block device is at `path`.
pub(crate) fn is_block_device(path: &Path) -> bool {
    fs::metadata(path).is_ok_and(|about| about.file_type().is_block_device())
}

/// The longest pause between two attempts to lock what somebody else has.
const PAUSE_MOST: Duration = Duration::from_millis(50);

/// Attempts until it is not in use any more, or `wait` is over.
pub(crate) fn patiently<T>(wait: Duration, mut attempt: impl FnMut() -> Result<T>) -> Result<T> {
    let begin = Instant::now();
    let mut pause = Duration::from_millis(1);
    loop {
        match attempt() {
            Err(Error::InUse { .. }) if begin.elapsed() < wait => {
                thread::sleep(pause.min(wait.saturating_sub(begin.elapsed())));
                pause = (pause * 2).min(PAUSE_MOST);
            }
            other => return other,
        }
    }
}

/// What exists where a database is to be made.
pub(crate) enum Site {
    /// Nothing.
    Free,
    /// A file, locked, that may be replaced.
    Taken(#[allow(dead_code, reason = "it is held for its lock")] File),
    /// A block device that may be overwritten, with its length in bytes.
    BlockDevice(u64),
}

impl Site {
    /// Looks at `path`.
    pub(crate) fn look(path: &Path, overwrite: bool) -> Result<Self> {
        let about = match fs::metadata(path) {
            Err(error) if error.kind() == ErrorKind::NotFound => {
                if fs::symlink_metadata(path).is_ok() {
                    return Err(Error::DanglingLink { path: path.to_owned() });
                }
                let folder = path.parent().unwrap_or(path);
                fs::metadata(folder).map_err(Error::io("find the folder of", path))?;
                return Ok(Site::Free);
            }
            other => other.map_err(Error::io("look at", path))?,
        };
        if !overwrite {
            return Err(Error::Exists { path: path.to_owned() });
        }
        let kind = about.file_type();
        if kind.is_block_device() {
            return Ok(Site::BlockDevice(block_device_bytes(path)?));
        }
        if !kind.is_file() {
            return Err(Error::File(file::Error::NotAFile { path: path.to_owned() }));
        }
        let taken = File::open(path).map_err(Error::io("open", path))?;
        lock(path, &taken, taken.try_lock())?;
        Ok(Site::Taken(taken))
    }
}

fn block_device_bytes(path: &Path) -> Result<u64> {
    use std::io::{Seek, SeekFrom};
    let open = || File::open(path)?.seek(SeekFrom::End(0));
    open().map_err(Error::io("measure", path))
}

fn lock(path: &Path, file: &File, locked: std::result::Result<(), TryLockError>) -> Result<()> {
    locked.map_err(|error| match error {
        TryLockError::WouldBlock => {
            Error::InUse { path: path.to_owned(), holder: file::holder(file) }
        }
        TryLockError::Error(source) => Error::io("lock", path)(source),
    })
}

fn disk_options(memory: MemoryLimit, grows_to: Option<u64>) -> DiskOptions {
    let in_flight = in_flight(memory);
    let usual = DiskOptions::default();
    DiskOptions {
        sector_bytes: SECTOR_BYTES,
        in_flight,
        gathers: true,
        journal_cached: true,
        grows_to,
        ..usual
    }
}

/// How many bytes the database in a plain file can grow to, which begins with `head`.
fn capacity(head: &[u8]) -> Option<u64> {
    let sectors = head.chunks_exact(SECTOR_BYTES as usize).find_map(store::sectors_most);
    sectors.and_then(|sectors| sectors.checked_mul(u64::from(SECTOR_BYTES)))
}

fn on_disk(disk: FileDisk, is_new: bool) -> Backend<'static> {
    Backend::new(Medium::Sectors(Box::new(disk)), Driver::File { is_new })
}

/// Makes a device in the empty file at `path`.
pub(crate) fn make(path: &Path, options: &Options) -> Result<Backend<'static>> {
    if let Some(geometry) = options.chip {
        // The chip is the user's choice; what it takes is told with what the tree takes.
        let any = MemoryLimit::CachesAndBuffers(0);
        let choices = nand_options(options.durability, Existing::Overwrite, any);
        let chip = NandFile::create(path, geometry, &choices)?;
        return Ok(on_chip(chip));
    }
    let capacity = options.checked_capacity()?;
    // The superblocks; there is no disk without any room.
    let superblocks = [0; SUPERBLOCKS as usize];
    fs::write(path, &superblocks[..superblocks.len().min(capacity as usize)])
        .map_err(Error::io("make", path))?;
    let disk = FileDisk::open(path, &disk_options(options.memory, Some(capacity)))?;
    Ok(on_disk(disk, true))
}

fn nand_options(durability: Durability, existing: Existing, memory: MemoryLimit) -> NandOptions {
    let durability = match durability {
        Durability::None => file::Durability::Process,
        _ => file::Durability::Power,
    };
    let memory_most = match memory {
        MemoryLimit::Total(bytes) => bytes,
        MemoryLimit::CachesAndBuffers(_) => u64::MAX,
    };
    NandOptions { durability, existing, memory_most, ..NandOptions::default() }
}

fn on_chip(chip: NandFile) -> Backend<'static> {
    use device::Nand;
    let driver = Driver::Fixed(NandFile::memory_bytes(chip.geometry()));
    Backend::new(Medium::Nand(Box::new(chip)), driver)
}

/// Takes a block device as it is.
pub(crate) fn make_on_block_device(
    path: &Path,
    bytes: u64,
    options: &Options,
) -> Result<Backend<'static>> {
    if options.chip.is_some() {
        return Err(Error::File(file::Error::NotRegular { path: path.to_owned() }));
    }
    let unit = u64::from(SECTOR_BYTES);
    let bytes = options.capacity.unwrap_or(bytes);
    let mut choices = disk_options(options.memory, None);
    choices.existing = Existing::Overwrite;
    let disk = FileDisk::create(path, bytes - bytes % unit, &choices)?;
    Ok(on_disk(disk, false))
}

/// Opens and locks the device in the file at `path`.
pub(crate) fn open(path: &Path, options: &OpenOptions) -> Result<Backend<'static>> {
    let open = |head: &[u8]| match file::is_nand_file(head) {
        true => {
            // As safe as a real chip: what it is made for is not known yet.
            let choices = nand_options(Durability::Every, Existing::Keep, options.memory);
            Ok(on_chip(NandFile::open(path, &choices)?))
        }
        false => {
            let disk = FileDisk::open(path, &disk_options(options.memory, capacity(head)))?;
            Ok(on_disk(disk, false))
        }
    };
    patiently(options.wait, || settled(path, open))
}

/// Opens the device in the file at `path` for reading, beside others who read.
pub(crate) fn open_read_only(path: &Path, options: &OpenOptions) -> Result<Backend<'static>> {
    let open = |head: &[u8]| {
        if file::is_nand_file(head) {
            let choices = nand_options(Durability::None, Existing::Keep, options.memory);
            return Ok(on_chip(NandFile::open(path, &choices)?).read_only());
        }
        let file = File::open(path).map_err(Error::io("open", path))?;
        lock(path, &file, file.try_lock_shared())?;
        let about = file.metadata().map_err(Error::io("look at", path))?;
        let unit = u64::from(SECTOR_BYTES);
        let (bytes, most) = match about.file_type().is_block_device() {
            true => {
                let bytes = block_device_bytes(path)?;
                (bytes - bytes % unit, None)
            }
            false => (about.len(), capacity(head).map(|bytes| bytes / unit)),
        };
        let disk = FileReader::new(file, bytes, SECTOR_BYTES, most)?;
        Ok(Backend::new(Medium::Sectors(Box::new(disk)), Driver::Fixed(0)))
    };
    patiently(options.wait, || settled(path, open))
}

/// Opens what is at `path`, of which `open` is given the first bytes. A file can be
/// replaced between its opening and its locking; then it is opened anew.
fn settled<T>(path: &Path, open: impl Fn(&[u8]) -> Result<T>) -> Result<T> {
    for _ in 0..TRIES {
        let about = look_at(path)?;
        if !about.file_type().is_file() && !about.file_type().is_block_device() {
            return Err(Error::File(file::Error::NotAFile { path: path.to_owned() }));
        }
        let head = head(path)?;
        let opened = open(&head).map_err(|error| match error {
            // What begins as a database does, and has an odd length, was one.
            Error::NotADatabase { what, path, .. } if head.get(4..12) == Some(b"flshtree") => {
                Error::NotADatabase {
                    path,
                    is_ours: true,
                    what: format!("it was cut off, or is no whole copy: {what}"),
                }
            }
            other => other,
        })?;
        let now = look_at(path)?;
        if (about.dev(), about.ino()) == (now.dev(), now.ino()) {
            return Ok(opened);
        }
    }
    Err(Error::InUse { path: path.to_owned(), holder: None })
}

fn look_at(path: &Path) -> Result<Metadata> {
    fs::metadata(path).map_err(|error| match error.kind() {
        ErrorKind::NotFound => Error::Missing { path: path.to_owned() },
        _ => Error::io("look at", path)(error),
    })
}

fn head(path: &Path) -> Result<Vec<u8>> {
    let mut head = Vec::new();
    let mut read = || File::open(path)?.take(SUPERBLOCKS).read_to_end(&mut head);
    read().map_err(Error::io("read", path))?;
    Ok(head)
}

/// Makes what was written to the file durable.
pub(crate) fn flush(path: &Path) -> Result<()> {
    let flush = || File::open(path)?.sync_all();
    flush().map_err(Error::io("flush", path))
}

/// Bytes of the file that have room on its disk, and its length.
pub(crate) fn sizes(path: &Path) -> Result<(u64, u64)> {
    let about = look_at(path)?;
    // The system counts in units of 512 bytes, whatever the file system's own, and counts what the
    // file system notes of the file.
    Ok(((about.blocks() * 512).min(about.len()), about.len()))
}
