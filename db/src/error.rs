//! What can go wrong with a database.

use std::io;
use std::path::{Path, PathBuf};

use crate::encoding;

/// A result of this crate.
///
/// ```
/// use flashtree::{Database, Options, Result};
///
/// fn make(path: &std::path::Path) -> Result<()> {
///     Database::create(path, &Options::new())?.close()
/// }
/// # let folder = tempfile::tempdir().unwrap();
/// make(&folder.path().join("fruit.db")).unwrap();
/// ```
pub type Result<T> = std::result::Result<T, Error>;

/// What went wrong. The facts are in the fields and in the [`source`](std::error::Error::source).
///
/// ```
/// use flashtree::{Database, Error, OpenOptions};
///
/// let folder = tempfile::tempdir().unwrap();
/// let missing = Database::open(folder.path().join("no.db"), &OpenOptions::new());
/// assert!(matches!(missing, Err(Error::Missing { .. })));
/// ```
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// There is no such file.
    #[error("{}: there is no such file", path.display())]
    Missing {
        /// The file.
        path: PathBuf,
    },
    /// Something exists where a database was to be made.
    #[error("{}: it exists already", path.display())]
    Exists {
        /// The file or block device.
        path: PathBuf,
    },
    /// Another process, or another handle of this one, has the database open.
    #[error("{}: the database is in use by {}", path.display(), holder_name(*holder))]
    InUse {
        /// The file or block device.
        path: PathBuf,
        /// The process that has it, where the system tells.
        holder: Option<u32>,
    },
    /// The file to be made has the name of a link to a file that does not exist.
    #[error("{}: this is a link to a file that does not exist", path.display())]
    DanglingLink {
        /// The link.
        path: PathBuf,
    },
    /// The file or device holds something else, or a damaged database.
    #[error("{}", no_database(path.as_deref(), *is_ours, what))]
    NotADatabase {
        /// The file or block device, if there is one.
        path: Option<PathBuf>,
        /// True if there is a database, but what tells where it stands is damaged.
        is_ours: bool,
        /// What was expected and not found.
        what: String,
    },
    /// The database has another version of the format.
    #[error(
        "this database has format version {found} of {}; this program reads version {expected}",
        writer(*found, *expected)
    )]
    OtherVersion {
        /// The version that this program reads.
        expected: u32,
        /// The version of the database.
        found: u32,
    },
    /// The file or device is not as long as when the database was made.
    #[error(
        "the length of the database has changed: it had room for {expected} pages, and has room \
         for {found} now"
    )]
    OtherLength {
        /// Pages that there was room for.
        expected: u64,
        /// Pages that there is room for now.
        found: u64,
    },
    /// The database was made with durability none and was not closed.
    #[error(
        "the database was made with durability none and was not closed, so its content can't be \
         trusted"
    )]
    NotClosed,
    /// The database must be recovered, which a handle that only reads can't do. Opening it for
    /// writing recovers it.
    #[error(
        "the database has to be recovered, which writes: it was not closed, or one of its two \
         superblocks is damaged"
    )]
    NeedsRecovery,
    /// Another thread had a transaction, or read a state that stays, for longer than a thread
    /// waits: see [`Options::turn_wait`](crate::Options::turn_wait).
    #[error("no turn in {seconds} s: another thread has the database")]
    Waited {
        /// How long it was waited for, in seconds.
        seconds: f64,
    },
    /// A call from inside of another one of the same thread, which would wait for itself: from a
    /// transaction past it, or from what a call asked back.
    #[error("this thread has the database already, in a call that is not over")]
    WithinItself,
    /// A thread panicked in the midst of a call. What the database holds in memory may be half
    /// changed: nothing is read or written until it is opened again.
    #[error("a thread panicked while it had the database, which has to be opened again")]
    Panicked,
    /// There is no keyspace of this name, or the handle is of one that was dropped, that a rollback
    /// may have taken away, or that belongs to another database.
    #[error("there is no keyspace \"{name}\"")]
    NoKeyspace {
        /// Its name.
        name: String,
    },
    /// The entry was deleted since the range came to it.
    #[error("the entry was deleted since it was read")]
    Deleted,
    /// More was changed since a snapshot was taken than snapshots may keep, or everything was: see
    /// [`Snapshot`](crate::Snapshot).
    #[error("the snapshot is over: too much was changed since, more than {limit} bytes or all")]
    SnapshotOver {
        /// Bytes that all snapshots may keep.
        limit: u64,
    },
    /// A handle that only reads was asked to change something.
    #[error("the database is open for reading only")]
    ReadOnly,
    /// What was read is not what was written.
    #[error("the database is damaged: {source}")]
    Damaged {
        /// What was found, and where.
        source: index::Error,
    },
    /// There is no room.
    #[error("{source}")]
    Full {
        /// What is full.
        source: index::Error,
    },
    /// There is no room, because named checkpoints keep pages, or may come to need them. Forgetting
    /// one gives them back.
    #[error("full: {}", keeping(names, *pages))]
    Kept {
        /// The names of the checkpoints that are kept.
        names: Vec<String>,
        /// Pages that they keep now.
        pages: u64,
        /// Bytes of these.
        bytes: u64,
    },
    /// Tables that grow with the entries need more memory. Nothing changed, and what went before
    /// is there.
    #[error(
        "{have} bytes of memory in all are too few for the tables, which grow with the entries: \
         {need} are needed"
    )]
    LittleTables {
        /// Bytes of memory in all.
        have: u64,
        /// Bytes that suffice for what was to be put.
        need: u64,
    },
    /// A database that was to be made could not hold a single entry.
    #[error(
        "{bytes} bytes are too few for a database of this tree and durability{}",
        room(*need, *blocks)
    )]
    LittleRoom {
        /// Bytes of the file or device.
        bytes: u64,
        /// Bytes that suffice, if that is known.
        need: Option<u64>,
        /// Blocks that suffice, on a chip.
        blocks: Option<u32>,
    },
    /// The caller stopped copying or compacting. Nothing was changed.
    #[error("stopped before it was done; nothing was changed")]
    Ended,
    /// The system gives no random number, which a new database needs for its identity.
    #[error("the system gives no random number for the identity of a new database: {0}")]
    NoRandomNumber(getrandom::Error),
    /// The memory budget is too small.
    #[error("{have} bytes of memory are too few for this database: {need} are needed")]
    LittleMemory {
        /// Bytes given.
        have: u64,
        /// The least that works, in bytes.
        need: u64,
    },
    /// A tree, a translation layer or a parameter that does not exist.
    #[error("there is no {thing} \"{name}\"")]
    Unknown {
        /// What kind of thing: "tree", ...
        thing: &'static str,
        /// The name given.
        name: String,
        /// The known name that is most like it.
        near: Option<String>,
        /// All names that exist.
        known: Vec<String>,
    },
    /// A copy can't have a parameter that the tree of the original has.
    #[error("{source}; the original has it: {tree}")]
    NotHere {
        /// The tree of the original with its parameters, as an option names it.
        tree: String,
        /// What is possible.
        source: Box<index::Error>,
    },
    /// An option that can't be used.
    #[error("{option}: {what}")]
    BadOption {
        /// The option.
        option: &'static str,
        /// What is possible.
        what: String,
    },
    /// An option that means nothing for this tree on this device.
    #[error("{option}: {what}")]
    Misplaced {
        /// The option.
        option: &'static str,
        /// How it is without it.
        what: String,
    },
    /// A key, a value or a type is malformed.
    #[error(transparent)]
    Encoding(#[from] encoding::Error),
    /// The database keeps named checkpoints, and what was asked for would lose them.
    #[error("the database keeps {count} named checkpoints, which this would lose")]
    CheckpointsKept {
        /// How many.
        count: usize,
    },
    /// Something that only a database in a plain file can do.
    #[error("this database is not in a plain file")]
    NotAPlainFile,
    /// The device, or the system below it, failed with a code of its own. Acknowledged changes are
    /// there when the database is opened again, as far as its durability promises.
    #[error("the device failed with error {code}{}", in_words(*code))]
    Driver {
        /// The driver's code; that of the system for files and block devices.
        code: i32,
        /// What the index says.
        source: index::Error,
    },
    /// The index refused or failed in another way.
    #[error("{0}")]
    Index(#[source] index::Error),
    /// A device file could not be made or opened.
    #[error("{0}{because}", because = because(.0))]
    File(#[source] file::Error),
    /// The operating system refused.
    #[error("{}: can't {action} it: {source}", path.display())]
    Io {
        /// What was tried: "open", "rename", ...
        action: &'static str,
        /// The file.
        path: PathBuf,
        /// What the system says.
        source: io::Error,
    },
}

/// The code that a device which is only read gives for a write (`EROFS`).
pub(crate) const WRITE_REFUSED: device::Error = device::Error::Driver { code: 30 };

impl Error {
    /// Says what was tried with `path` when the system refused.
    pub(crate) fn io(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Error {
        move |source| Error::Io { action, path: path.to_owned(), source }
    }

    /// Says that what the system refused was about `path`, whatever file stood for it then.
    pub(crate) fn about(self, path: &Path) -> Error {
        match self {
            Error::Io { action, source, .. } => Error::Io { action, path: path.to_owned(), source },
            Error::File(file::Error::Io { action, source, .. }) => {
                Error::Io { action, path: path.to_owned(), source }
            }
            other => other,
        }
    }

    /// The name nearest to `name` of those that are known is suggested.
    pub(crate) fn unknown<'k>(
        thing: &'static str,
        name: &str,
        known: impl Iterator<Item = &'k str>,
    ) -> Error {
        let known: Vec<String> = known.map(String::from).collect();
        let near = spec::near(name, known.iter().map(String::as_str)).into_iter().next();
        Error::Unknown { thing, name: name.to_owned(), near, known }
    }

    /// True if what was read is not what was written.
    ///
    /// ```
    /// # fn main() -> flashtree::Result<()> {
    /// # let folder = tempfile::tempdir().unwrap();
    /// # let path = folder.path().join("fruit.db");
    /// # let fruit = flashtree::Database::create(path, &flashtree::Options::new())?;
    /// if let Err(error) = fruit.get("apple") {
    ///     println!("{error}; from a copy: {}", error.is_damage());
    /// }
    /// # Ok(()) }
    /// ```
    #[must_use]
    pub const fn is_damage(&self) -> bool {
        matches!(self, Error::Damaged { .. } | Error::NotADatabase { .. })
    }
}

impl Error {
    /// Says of what is no database where it is.
    pub(crate) fn at(mut self, place: &Path) -> Self {
        if let Error::NotADatabase { path, .. } = &mut self {
            *path = Some(place.to_owned());
        }
        self
    }
}

fn holder_name(holder: Option<u32>) -> String {
    match holder {
        Some(process) if process == std::process::id() => "another handle of this process".into(),
        Some(process) => format!("process {process}"),
        None => "another process or handle".to_owned(),
    }
}

fn no_database(path: Option<&Path>, is_ours: bool, what: &str) -> String {
    let path = path.map_or_else(String::new, |path| format!("{}: ", path.display()));
    match is_ours {
        true => format!("{path}this flashtree database can't be used: {what}"),
        false => format!("{path}this is no flashtree database: {what}"),
    }
}

/// Which checkpoints keep so many pages, or may come to need some.
fn keeping(names: &[String], pages: u64) -> String {
    match (names, pages) {
        ([], _) => format!("named checkpoints keep {pages} pages"),
        ([name], 0) => format!("there is no room for that beside the checkpoint {name}"),
        (names, 0) => {
            format!("there is no room for that beside the checkpoints {}", names.join(", "))
        }
        ([name], _) => format!("the checkpoint {name} keeps {pages} pages"),
        (names, _) => format!("the checkpoints {} keep {pages} pages", names.join(", ")),
    }
}

/// What is wrong with a file of so many bytes that has to consist of units of so many.
pub(crate) fn wrong_length(bytes: u64, unit: u64) -> String {
    match bytes {
        0 => "it is empty".to_owned(),
        bytes => format!("its length, {bytes} bytes, is no multiple of {unit}"),
    }
}

/// The room that suffices.
fn room(need: Option<u64>, blocks: Option<u32>) -> String {
    match (need, blocks) {
        (_, Some(blocks)) => format!(": {blocks} blocks suffice"),
        (Some(need), None) => format!(": {need} suffice"),
        (None, None) => String::new(),
    }
}

/// The system's words for `code`, where it has any.
fn in_words(code: i32) -> String {
    let text = io::Error::from_raw_os_error(code).to_string();
    let words = text.split(" (os error").next().unwrap_or_default();
    match words {
        "" => String::new(),
        words if code <= 0 || words.starts_with("Unknown") => String::new(),
        words => format!(" ({words})"),
    }
}

/// The system's reason, if there is one.
fn because(error: &file::Error) -> String {
    std::error::Error::source(error).map_or_else(String::new, |source| format!(": {source}"))
}

/// The program that reads a database of format version `found`, which is not `expected`. All
/// versions before those that this one reads are of one program.
const fn writer(found: u32, expected: u32) -> &'static str {
    if found < expected { "flashtree 0.1" } else { "a later flashtree" }
}

impl From<index::Error> for Error {
    fn from(error: index::Error) -> Self {
        use device::Error as Device;
        use store::Error as Store;
        let index::Error::Store(inner) = &error else {
            return Error::Index(error);
        };
        match *inner {
            Store::Device(refused) if refused == WRITE_REFUSED => Error::NeedsRecovery,
            Store::Device(Device::Driver { code }) => Error::Driver { code, source: error },
            Store::DamagedJournal { .. }
            | Store::DamagedUndo { .. }
            | Store::Device(Device::Checksum { .. }) => Error::Damaged { source: error },
            inner if inner.is_damage() => Error::Damaged { source: error },
            Store::NotAnIndex { is_ours, what } => {
                Error::NotADatabase { path: None, is_ours, what: what.to_owned() }
            }
            Store::OtherVersion { expected, found } => Error::OtherVersion { expected, found },
            Store::OtherLength { expected, found } => Error::OtherLength { expected, found },
            Store::NotClosed => Error::NotClosed,
            Store::LittleMemory { have, need } => Error::LittleMemory { have, need },
            Store::Full { .. } | Store::Device(Device::Full { .. }) => {
                Error::Full { source: error }
            }
            _ => Error::Index(error),
        }
    }
}

impl From<device::Error> for Error {
    fn from(error: device::Error) -> Self {
        index::Error::from(error).into()
    }
}

impl From<file::Error> for Error {
    fn from(error: file::Error) -> Self {
        use file::Error as File;
        match error {
            File::Missing { path } => Error::Missing { path },
            File::InUse { path, holder } => Error::InUse { path, holder },
            File::Exists { path } | File::NotOurs { path } => Error::Exists { path },
            File::Header { fault: file::HeaderFault::Version { expected, found }, .. } => {
                Error::OtherVersion { expected, found }
            }
            File::Header { fault: file::HeaderFault::Memory { have, need }, .. } => {
                // What else there is was not looked at: it gets as much, and what is usual.
                let need = need.saturating_mul(2).saturating_add(crate::MEMORY_TOTAL);
                Error::LittleMemory { have, need }
            }
            File::Header { fault, .. } => {
                let is_ours = !matches!(fault, file::HeaderFault::Magic);
                let what = format!("as an imitated chip, {fault}");
                Error::NotADatabase { path: None, is_ours, what }
            }
            File::Device(error) => error.into(),
            File::Length { bytes, unit } => Error::NotADatabase {
                path: None,
                is_ours: false,
                what: wrong_length(bytes, unit.into()),
            },
            other => Error::File(other),
        }
    }
}
