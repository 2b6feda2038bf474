//! What can end a file command.

use std::borrow::Cow;
use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use db::{Error, encoding};

use super::advice;
use crate::numbers::{count, rounded_size, thousands};

/// Why a file command ends before or after its work.
#[derive(Debug, thiserror::Error)]
pub(crate) enum FileFailure {
    /// The database refused or failed.
    #[error("{}", line(.path, .path, .source))]
    Database { path: PathBuf, source: Error },
    /// A database could not be made of another, `old`: of that there can be more copies.
    #[error("{}", line(.path, .old, .source))]
    Copy { path: PathBuf, old: PathBuf, source: Box<Error> },
    /// A database that must be recovered, and can't be written.
    #[error(
        "{}: it was not closed and has to be recovered, which needs to write: {}",
        path.display(),
        refused(.source)
    )]
    Unrecoverable { path: PathBuf, source: Error },
    /// A key or a value on the command line that is none.
    #[error("{argument}: {source}; {argument} is of type {kind}")]
    Argument { argument: &'static str, kind: String, source: encoding::Error },
    /// Keys that have no beginnings.
    #[error("--prefix means nothing for keys of type {kind}; give --from and --to")]
    NoPrefix { kind: String },
    /// An option that does not go with the rest.
    #[error("{0}")]
    Option(&'static str),
    /// The chip to imitate can't be used.
    #[error("--chip: {0}")]
    Chip(String),
    /// What stands in a database is not of the type that it says.
    #[error("{}: a {what} is not of type {kind}: {source}; see flashtree check", path.display())]
    Stored { path: PathBuf, what: &'static str, kind: String, source: encoding::Error },
    /// A get of a key that is absent; nothing is said.
    #[error("the key is absent")]
    Absent,
    /// A checkpoint that does not exist.
    #[error("{}: no checkpoint \"{name}\" is kept{}", path.display(), kept(.near, *.all))]
    NoCheckpoint { path: PathBuf, name: String, near: Vec<String>, all: usize },
    /// A check that found something.
    #[error(
        "{}: {findings}; flashtree export --skip-damaged saves what can still be read, the rest \
         has to come from a copy",
        path.display()
    )]
    Findings { path: PathBuf, findings: String },
    /// Rows were exported, and some could not be read.
    #[error("{}: {what}", path.display())]
    Lost { path: PathBuf, what: String, source: Box<Error> },
    /// Rows were exported, and some may be older ones.
    #[error(
        "{}: {} of its chip can't be read: what stood there may be missing, or as it was earlier; \
         use a copy of the database",
        path.display(),
        count(*.pages, "page")
    )]
    UnreadPages { path: PathBuf, pages: u64 },
    /// The rows can't be read.
    #[error(
        "can't read {}: {source}; name a file that can be read, or - for standard input",
        shown(.path)
    )]
    Read { path: PathBuf, source: io::Error },
    /// A value that does not end where every value of the database would.
    #[error(
        "{} has more than {most} bytes, and {path} takes no value as long as that: split it",
        shown(.input),
        path = path.display()
    )]
    LongInput { path: PathBuf, input: PathBuf, most: u64 },
    /// A column that the input does not have.
    #[error("{}: there is no column \"{column}\"{}", shown(.path), columns(.near, .found))]
    NoColumn { path: PathBuf, column: String, near: Vec<String>, found: Vec<String> },
    /// Nothing says which columns are meant.
    #[error(
        "{}: which column holds the {what}? Give --{what}; there are {}",
        shown(.path),
        list(.found)
    )]
    WhichColumn { path: PathBuf, what: &'static str, found: Vec<String> },
    /// Columns that do not fit a type.
    #[error("--{what} names {given} columns, and the {what}s are of type {kind}: name {wanted}")]
    Columns { what: &'static str, given: usize, kind: String, wanted: String },
    /// A row that can't be put.
    #[error("{}, line {line}: {fault}; {}", shown(.path), imported(*.safe))]
    Row { path: PathBuf, line: u64, fault: String, safe: u64 },
    /// An input that is not the one that was begun with.
    #[error(
        "{}: its first {rows} rows are not those that were imported; give the same rows, or begin \
         anew without --resume",
        shown(.path)
    )]
    OtherRows { path: PathBuf, rows: u64 },
    /// A database that does not hold what its bookmark says.
    #[error(
        "{}: it does not hold the rows that were imported: it is an older copy, or was compacted \
         since; begin anew without --resume", path.display()
    )]
    OtherState { path: PathBuf },
    /// A file without rows and heading.
    #[error("{}: it is empty; a file of CSV begins with the names of its columns", shown(.path))]
    Empty { path: PathBuf },
    /// What is read or written would be the database itself.
    #[error("{}: this is the database itself; name another file", path.display())]
    Itself { path: PathBuf },
    /// What would be written over is a database.
    #[error(
        "{}: this is a flashtree database, which would be lost; name another file, or remove that \
         one first",
        path.display()
    )]
    OtherDatabase { path: PathBuf },
    /// Nothing is replaced, not even if asked for.
    #[error("{}: it exists already; name another file, or remove that one first", path.display())]
    Exists { path: PathBuf },
    /// A heading with two columns of one name.
    #[error(
        "{}: two columns are called \"{column}\"; give one of them another name",
        shown(.path)
    )]
    HeadingTwice { path: PathBuf, column: String },
    /// A single column that may be several.
    #[error(
        "{}: it has one column, \"{column}\"; give --delimiter '{delimiter}' if that stands \
         between columns, or --value \"\" if there are keys only",
        shown(.path)
    )]
    OneColumn { path: PathBuf, column: String, delimiter: String },
    /// Columns of one name, of which one would hide the other.
    #[error("two columns are called \"{column}\"; give --key and --value different names")]
    SameColumns { column: String },
    /// A file of the user has the name of the bookmark.
    #[error(
        "{}: this is no file of flashtree, and an import keeps there how far it came; give it \
         another name",
        path.display()
    )]
    BookmarkTaken { path: PathBuf },
    /// The database took no more rows.
    #[error("{failure}; {}", stopped(*.safe, *.put))]
    ImportStopped { failure: Box<FileFailure>, safe: u64, put: u64 },
    /// The rows could be read up to here only.
    #[error("can't read {} any further: {source}; {}", shown(.path), imported(*.safe))]
    BrokenInput { path: PathBuf, source: io::Error, safe: u64 },
    /// Ctrl-C in an import.
    #[error("interrupted; {}", goes_on(*.safe))]
    ImportInterrupted { safe: u64 },
    /// Ctrl-C in something that leaves no trace.
    #[error("interrupted; run it again")]
    Interrupted,
}

impl FileFailure {
    /// Says which database `source` is about.
    pub(crate) fn of(path: &Path) -> impl FnOnce(Error) -> FileFailure + '_ {
        move |source| FileFailure::Database { path: path.to_owned(), source }
    }

    /// True if Ctrl-C ended it.
    pub(crate) fn is_interrupted(&self) -> bool {
        match self {
            FileFailure::Interrupted
            | FileFailure::ImportInterrupted { .. }
            | FileFailure::Database { source: Error::Ended, .. } => true,
            FileFailure::Copy { source, .. } => matches!(**source, Error::Ended),
            _ => false,
        }
    }

    /// True for wrong usage.
    pub(crate) fn is_usage(&self) -> bool {
        match self {
            FileFailure::Database { source, .. } => is_choice(source),
            FileFailure::Copy { source, .. } => is_choice(source),
            FileFailure::Argument { .. }
            | FileFailure::NoPrefix { .. }
            | FileFailure::Option(_)
            | FileFailure::Chip(_)
            | FileFailure::NoColumn { .. }
            | FileFailure::WhichColumn { .. }
            | FileFailure::Columns { .. }
            | FileFailure::SameColumns { .. }
            | FileFailure::HeadingTwice { .. }
            | FileFailure::OneColumn { .. }
            | FileFailure::OtherDatabase { .. }
            | FileFailure::Itself { .. } => true,
            _ => false,
        }
    }
}

/// True if an option of the user is what is wrong.
fn is_choice(error: &Error) -> bool {
    use index::Error as Index;
    match error {
        Error::Unknown { .. }
        | Error::BadOption { .. }
        | Error::Misplaced { .. }
        | Error::NotHere { .. }
        | Error::LittleMemory { .. }
        | Error::LittleRoom { .. }
        | Error::Encoding(_) => true,
        Error::Index(inner) => matches!(
            inner,
            Index::UnknownParameter { .. }
                | Index::BadParameter { .. }
                | Index::WrongMedium { .. }
                | Index::Store(store::Error::NodeSize { .. } | store::Error::Superblock { .. })
        ),
        _ => false,
    }
}

/// What is said of the error of the database at `whole`: the words of the library, where the
/// program has none of its own. A copy can be made of the one at `whence`.
fn line(whole: &Path, whence: &Path, error: &Error) -> String {
    let (path, named) = (whole.display(), argument(whole));
    match error {
        Error::Missing { .. } => {
            format!("{path}: there is no such file; make it with flashtree create {named}")
        }
        Error::Exists { .. } => {
            format!("{path}: it exists already; name another file, or give --overwrite")
        }
        Error::InUse { holder, .. } => format!(
            "{path}: it is in use by {}; end that first, or wait longer with --wait SECONDS",
            holder.map_or_else(|| "another process".to_owned(), process)
        ),
        Error::LittleMemory { have, need } => format!(
            "{path}: {have} bytes of memory are too few; give --memory-total {need} or more"
        ),
        Error::LittleTables { have, need } => format!(
            "{path}: {have} bytes of memory are too few for its tables, which grow with the \
             entries; give --memory-total {} or more",
            need.saturating_add(need / 4)
        ),
        Error::LittleRoom { bytes, need, blocks } => format!(
            "{path}: {bytes} bytes are too few for a database of this tree and durability; give {}",
            room(*need, *blocks)
        ),
        Error::Kept { names, pages, bytes, .. } => kept_room(whole, names, (*pages, *bytes)),
        Error::Index(inner) if is_too_long(inner) => larger_pages((whole, whence), inner),
        Error::Full { source: index::Error::Store(store::Error::Full { pages }) } => {
            no_room((whole, whence), *pages)
        }
        Error::NotAPlainFile => format!(
            "{path}: only a database in a plain file can be compacted; copy it to a new chip with \
             flashtree convert {old} nand-file:NEW, or into a plain file with flashtree convert \
             {old} NEW --tree b-plus",
            old = argument(whole)
        ),
        Error::Index(index::Error::WrongMedium { tree, medium: "a disk" }) => format!(
            "{path}: {tree} stands on raw flash, and can't in a plain file; name nand-file:{path} \
             for an imitated chip, or give --tree {}",
            on_sectors()
        ),
        Error::NotADatabase { is_ours: true, what, .. } => {
            format!("{path}: this flashtree database can't be used: {what}; take a copy of it")
        }
        Error::NotADatabase { is_ours: false, what, .. } => format!(
            "{path}: this is no flashtree database: {what}; name another file, or make a database \
             with flashtree create NEW"
        ),
        Error::NotHere { tree, source } => {
            let old = whence.display();
            format!("{path}: {source}; {old} has that: give --tree {tree} with another value there")
        }
        Error::BadOption { option, what } | Error::Misplaced { option, what } => {
            format!("{path}: {}: {what}{}", flag(option), advice::about(error))
        }
        Error::Ended => FileFailure::Interrupted.to_string(),
        Error::CheckpointsKept { count: kept } => format!(
            "{path}: it keeps {}, which compacting would lose; see flashtree checkpoints {named}, \
             and forget them",
            count(*kept as u64, "named checkpoint"),
        ),
        Error::Io { .. } | Error::File(file::Error::Io { .. } | file::Error::NotAFile { .. }) => {
            format!("{path}: {}", refused(error))
        }
        // These name the path themselves.
        Error::File(_) | Error::DanglingLink { .. } => format!("{error}{}", advice::about(error)),
        _ => format!("{path}: {error}{}", advice::about(error)),
    }
}

/// What names a file in a command, for a shell: what begins with a dash would be an option.
fn argument(path: &Path) -> String {
    let name = path.to_string_lossy();
    if name.starts_with('-') { quoted(&format!("./{name}")) } else { quoted(&name) }
}

/// A word of a command, for a shell.
fn quoted(word: &str) -> String {
    shlex::try_quote(word).map_or_else(|_| word.to_owned(), Cow::into_owned)
}

/// A process, by its number and, where the system tells, its name.
fn process(number: u32) -> String {
    match fs::read_to_string(format!("/proc/{number}/comm")) {
        Ok(name) => format!("process {number} ({})", name.trim_end()),
        Err(_) => format!("process {number}"),
    }
}

/// What the program calls an option of the library.
fn flag(option: &'static str) -> &'static str {
    match option {
        "capacity" => "--size",
        "ftl" => "--ftl",
        "page bytes" => "--page",
        other => other,
    }
}

/// The room that suffices, as options.
fn room(need: Option<u64>, blocks: Option<u32>) -> String {
    const MIB: u64 = 1 << 20;
    match (need, blocks) {
        (Some(bytes), Some(blocks)) => {
            let kib = bytes.div_ceil(1 << 10);
            format!("--size {kib}KiB or more, or a --chip with blocks={blocks} or more")
        }
        (Some(bytes), None) => format!("--size {}MiB or more", bytes.div_ceil(MIB)),
        (None, _) => "more with --size".to_owned(),
    }
}

/// What named checkpoints keep, and how it comes back.
fn kept_room(path: &Path, names: &[String], (pages, bytes): (u64, u64)) -> String {
    let none = "there is no room for that beside the checkpoint";
    let (kept, size) = (count(pages, "page"), rounded_size(bytes));
    let forget = format!("flashtree forget {}", argument(path));
    let path = path.display();
    match (names, pages) {
        ([name], 0) => format!("{path}: full: {none} {name}; {forget} {}", quoted(name)),
        (names, 0) => format!("{path}: full: {none}s {}; {forget} NAME", list(names)),
        ([name], _) => format!(
            "{path}: full: the checkpoint {name} keeps {kept}, {size}; {forget} {} gives them back",
            quoted(name)
        ),
        (names, _) => format!(
            "{path}: full: the checkpoints {} keep {kept}, {size}; {forget} NAME gives those of \
             one back",
            list(names)
        ),
    }
}

/// Bytes that a key may have in pages of 32 KiB, the largest, but for a few more or less.
const LONG_KEY: u64 = 8160;

const fn is_too_long(error: &index::Error) -> bool {
    use index::Error::{EntryTooLong, KeyTooLong, TreeFull};
    matches!(error, EntryTooLong { .. } | KeyTooLong { .. } | TreeFull { .. })
}

/// That there is no room. A part of the free pages is kept back: for recovery, deletes and the
/// worst of a batch.
fn no_room((path, old): (&Path, &Path), pages: u64) -> String {
    format!(
        "{}: full: there is no room for that within its {}; delete something, or give it more room \
         with flashtree convert {} {} --size SIZE",
        path.display(),
        count(pages, "page"),
        argument(old),
        new_like(old)
    )
}

/// What stands for a copy on a medium like that of `path`: a tree may be for one only.
fn new_like(path: &Path) -> &'static str {
    let mut head = [0; 8];
    match File::open(path).and_then(|mut file| file.read_exact(&mut head)) {
        Ok(()) if file::is_nand_file(&head) => "nand-file:NEW",
        _ => "NEW",
    }
}

/// What can be done where entries, or all of them, are too much for pages of this size.
fn larger_pages((path, old): (&Path, &Path), what: &index::Error) -> String {
    use index::Error as Index;
    let (path, old) = (path.display(), argument(old));
    match what {
        // On raw flash, where keys are too short to name the pieces of a value.
        Index::EntryTooLong { .. } => format!(
            "{path}: {what}; shorten it, or copy the database onto a translation layer, where \
             values have any length: flashtree convert {old} nand-file:NEW --tree b-plus:over=ftl"
        ),
        Index::TreeFull { .. } => format!(
            "{path}: {what}; delete something, give it more --memory, or copy the database to a \
             chip with larger pages, of flashtree devices: flashtree convert {old} nand-file:NEW \
             --chip NAME; or to another tree with --tree"
        ),
        Index::KeyTooLong { limit: LONG_KEY.., .. } => format!("{path}: {what}; shorten it"),
        Index::KeyTooLong { found: LONG_KEY.., .. } => {
            format!("{path}: {what}, and about {LONG_KEY} with pages of 32 KiB; shorten it")
        }
        _ => format!(
            "{path}: {what}; shorten it, or copy the database to one with larger pages: flashtree \
             convert {old} NEW --tree b-plus --page 32KiB"
        ),
    }
}

/// The trees that a plain file can have.
fn on_sectors() -> String {
    let trees = trees::TREES.iter().filter(|entry| entry.sectors);
    trees.map(|entry| entry.name).collect::<Vec<_>>().join(" or ")
}

/// What the system refused, and what can be done about it. The path is the user's, who does not
/// know what stands for it meanwhile.
fn refused(error: &Error) -> String {
    let (action, source) = match error {
        Error::Io { action, source, .. } | Error::File(file::Error::Io { action, source, .. }) => {
            (action, source)
        }
        Error::File(file::Error::NotAFile { .. }) => {
            return "it is no file; name a file".to_owned();
        }
        other => return other.to_string(),
    };
    let advice = match source.kind() {
        io::ErrorKind::PermissionDenied => {
            "ask its owner for the right to that, or take it with chmod or chown"
        }
        io::ErrorKind::NotFound => "make the folder first, or name another",
        io::ErrorKind::NotADirectory => "name a file in a folder",
        io::ErrorKind::StorageFull => "make room on the disk, and try again",
        io::ErrorKind::ReadOnlyFilesystem => "copy it to where it can be written",
        io::ErrorKind::FileTooLarge => "give less with --size",
        _ => "put that right, and try again",
    };
    format!("can't {action} it: {source}; {advice}")
}

fn kept(near: &[String], all: usize) -> String {
    match (near, all) {
        ([], 0) => "; there is none at all".to_owned(),
        ([], _) => "; see flashtree checkpoints".to_owned(),
        (near, _) => format!("; {}", spec::did_you_mean(near)),
    }
}

fn columns(near: &[String], found: &[String]) -> String {
    match near {
        [] => format!("; there are {}", list(found)),
        near => format!("; {}", spec::did_you_mean(near)),
    }
}

/// Some names, or the first of many.
fn list(names: &[String]) -> String {
    const MOST: usize = 20;
    let shown = names.iter().take(MOST).map(String::as_str).collect::<Vec<_>>().join(", ");
    if names.len() > MOST { format!("{shown} and others") } else { shown }
}

/// What an input is called.
fn shown(path: &Path) -> String {
    if path == Path::new("-") { "standard input".to_owned() } else { path.display().to_string() }
}

fn imported(rows: u64) -> String {
    match rows {
        0 => "mend it, and import again".to_owned(),
        _ => format!(
            "{} imported for good; mend it, and --resume goes on behind that",
            the_first(rows)
        ),
    }
}

fn goes_on(rows: u64) -> String {
    match rows {
        0 => "import again".to_owned(),
        _ => format!(
            "{} imported for good, and the same command with --resume goes on",
            the_first(rows)
        ),
    }
}

fn stopped(safe: u64, put: u64) -> String {
    match (safe, put) {
        (0, 0) => "none of the rows is safe yet; then import again, from the first row".to_owned(),
        (0, put) => format!(
            "{} of the rows that were read went in, those with the lowest keys; then import again",
            thousands(put)
        ),
        (safe, _) => format!(
            "{} imported for good; then the same command with --resume goes on",
            the_first(safe)
        ),
    }
}

fn the_first(rows: u64) -> String {
    match rows {
        1 => "the first row is".to_owned(),
        _ => format!("the first {} are", count(rows, "row")),
    }
}

#[cfg(test)]
mod tests {
    use std::io;
    use std::path::{Path, PathBuf};

    use db::Error;

    use super::{argument, kept_room, line};

    #[test]
    fn what_the_system_refuses_is_told_of_the_users_path_with_what_to_do() {
        for (kind, advice) in [
            (io::ErrorKind::PermissionDenied, "chmod"),
            (io::ErrorKind::StorageFull, "make room"),
            (io::ErrorKind::Other, "try again"),
        ] {
            let path = PathBuf::from("/folder/a.db.77-0.new");
            let error = Error::Io { action: "make", path, source: kind.into() };
            let line = line(Path::new("a.db"), Path::new("a.db"), &error);
            assert!(line.starts_with("a.db: can't make it: ") && line.contains(advice), "{line}");
        }
    }

    #[test]
    fn a_proposed_command_can_be_given_to_a_shell() {
        let path = Path::new("my data.db");
        let missing = line(path, path, &Error::Missing { path: path.into() });
        assert!(missing.ends_with("flashtree create 'my data.db'"), "{missing}");
        let forget = kept_room(path, &["it's old".to_owned()], (3, 12_288));
        assert!(forget.contains("flashtree forget 'my data.db' \"it's old\" "), "{forget}");
        assert_eq!(argument(Path::new("plain-name_1.db")), "plain-name_1.db");
        assert_eq!(argument(Path::new("-dash.db")), "./-dash.db");
    }
}
