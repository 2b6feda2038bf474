//! What can go wrong in the laboratory.

use std::fmt;
use std::path::PathBuf;

use spec::{SpecError, shown};

/// A result of this crate.
pub type Result<T> = std::result::Result<T, Error>;

/// Something that is named in a spec.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Thing {
    /// A tree.
    Tree,
    /// A workload.
    Workload,
    /// A device.
    Device,
    /// A translation layer.
    Ftl,
    /// A parameter.
    Parameter,
}

impl fmt::Display for Thing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Thing::Tree => "tree",
            Thing::Workload => "workload",
            Thing::Device => "device",
            Thing::Ftl => "translation layer",
            Thing::Parameter => "parameter",
        })
    }
}

/// Why a comparison could not be made. Trees that fail on the way are rows with an error instead.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A text that is no spec.
    #[error("{0}")]
    Spec(#[from] SpecError),
    /// A name that nobody knows.
    #[error("no {thing} is called \"{}\"", shown(name))]
    Unknown {
        /// What was looked for.
        thing: Thing,
        /// The name.
        name: String,
        /// Names that are near to it.
        near: Vec<String>,
        /// All names; empty for devices, which are too many.
        known: Vec<String>,
    },
    /// A parameter whose value does not fit.
    #[error("{owner}: {name}={} is not {expected}", shown(value))]
    BadValue {
        /// What the parameter belongs to.
        owner: String,
        /// The parameter.
        name: String,
        /// The value given.
        value: String,
        /// What is possible.
        expected: String,
    },
    /// Parameters that exclude each other.
    #[error("{owner}: {first} and {second} exclude each other")]
    Exclusive {
        /// What the parameters belong to.
        owner: String,
        /// One parameter.
        first: String,
        /// Another.
        second: String,
    },
    /// Zero operations.
    #[error("there is no operation to measure: {why}")]
    NoOperations {
        /// Why there is none.
        why: &'static str,
    },
    /// More operations than can be counted.
    #[error("{operations} operations are too many: the most is {most}")]
    TooManyOperations {
        /// Operations asked for.
        operations: u64,
        /// The most there may be.
        most: u64,
    },
    /// A chip that takes too much memory to simulate.
    #[error("{pages} pages are too many to simulate: the most is {most}")]
    TooManyPages {
        /// Pages of the chip.
        pages: u64,
        /// The most there may be.
        most: u64,
    },
    /// More deletes than there are entries.
    #[error("{deletes} deletes are more than the {entries} entries")]
    TooManyDeletes {
        /// Deletes.
        deletes: u64,
        /// Entries loaded and inserted.
        entries: u64,
    },
    /// A preload that can't fit the device.
    #[error("{entries} entries of at least {entry_bytes} bytes do not fit the device's {bytes}")]
    PreloadTooLarge {
        /// Entries to load.
        entries: u64,
        /// The least that an entry takes, in bytes.
        entry_bytes: u64,
        /// The device's bytes.
        bytes: u64,
    },
    /// A workload needs an input file, or can't have one.
    #[error("{0}")]
    InputOption(&'static str),
    /// A file that can't be read as it should.
    #[error("{}: {fault}", path.display())]
    Input {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        fault: InputFault,
    },
    /// A data set of the project itself can't be read: the program was not built well.
    #[error("the built-in data set {name} is damaged: {fault}")]
    BuiltIn {
        /// The data set.
        name: &'static str,
        /// What is wrong with it.
        fault: InputFault,
    },
    /// The chip's entry does not tell what is needed, or the parameters do not fit it.
    #[error("{0}")]
    Catalogue(#[from] chips::CatalogueError),
    /// A device of a file can't be used.
    #[error("{}: {source}", path.display())]
    DeviceFile {
        /// The file.
        path: PathBuf,
        /// Why.
        source: chips::CatalogueError,
    },
    /// A device's file can't be made or used.
    #[error("{}", file_line(.0))]
    DeviceInFile(#[from] file::Error),
    /// A device in a file without the file.
    #[error("a path is missing: the form is {kind}:PATH")]
    NoPath {
        /// The kind of device.
        kind: &'static str,
    },
    /// A chip to imitate, for a device that imitates none.
    #[error("--chip says which chip nand-file: imitates, and means nothing for {}", shown(device))]
    ChipNotWanted {
        /// The device's spec.
        device: String,
    },
    /// A fault that a chip in a file does not have.
    #[error("{name}= means nothing for a chip in a file: nothing goes wrong there")]
    NoFaultsInFile {
        /// The parameter.
        name: &'static str,
    },
    /// A named tree does not fit.
    #[error("{}: {reason}", shown(tree))]
    DoesNotFit {
        /// The tree's spec.
        tree: String,
        /// Why.
        reason: Misfit,
    },
    /// No tree fits.
    #[error("no tree fits: {}", list(.0))]
    NothingFits(Vec<(String, Misfit)>),
}

impl Error {
    /// Of a name that does not exist, the names that are near to it, and all names (none for
    /// devices, which are too many).
    #[must_use]
    pub fn meant(&self) -> Option<(&[String], &[String])> {
        match self {
            Error::Unknown { near, known, .. }
            | Error::DoesNotFit { reason: Misfit::UnknownParameter { near, known, .. }, .. } => {
                Some((near, known))
            }
            _ => None,
        }
    }

    /// True if what was asked for makes no sense; false if it failed.
    #[must_use]
    pub fn is_usage(&self) -> bool {
        match self {
            Error::Input { fault, .. } => matches!(fault, InputFault::NoColumn { .. }),
            Error::BuiltIn { .. } | Error::DeviceInFile(_) => false,
            _ => true,
        }
    }
}

/// What is wrong with a device's file.
pub(crate) fn file_line(fault: &file::Error) -> String {
    use file::Error::{Io, Missing};
    match fault {
        Missing { path } => {
            format!("{}: its folder does not exist", shown(&path.to_string_lossy()))
        }
        Io { source, .. } => format!("{fault}: {source}"),
        _ => fault.to_string(),
    }
}

fn list(trees: &[(String, Misfit)]) -> String {
    let lines: Vec<String> =
        trees.iter().map(|(tree, misfit)| format!("{}: {misfit}", shown(tree))).collect();
    lines.join("; ")
}

/// Why a tree can't take part.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum Misfit {
    /// The budget is too small.
    #[error("{have} bytes of memory are too few: it needs {need}")]
    LittleMemory {
        /// Bytes that there are.
        have: u64,
        /// The least that works.
        need: u64,
    },
    /// The bound on all memory is too small.
    #[error("{have} bytes of memory in all are too few: it needs {need}")]
    LittleTotal {
        /// Bytes that there are.
        have: u64,
        /// The least that works: budget, tables and the translation layer's mapping.
        need: u64,
    },
    /// The tree stands on the other view of a device.
    #[error("it can't stand on {medium}")]
    WrongMedium {
        /// The view.
        medium: &'static str,
    },
    /// The tree refuses its parameters, the entries or the medium.
    #[error("{0}")]
    Refused(#[from] index::Error),
    /// A parameter that the tree does not have.
    #[error("it has no parameter \"{}\"", shown(name))]
    UnknownParameter {
        /// The parameter.
        name: String,
        /// Parameters that are near to it.
        near: Vec<String>,
        /// All parameters.
        known: Vec<String>,
    },
    /// A view to stand on that there is none of.
    #[error("over={} is not \"ftl\"", shown(.0))]
    Over(String),
    /// A translation layer on what is a disk already.
    #[error("over=ftl is for chips, and the device is a disk already")]
    OverDisk,
    /// The device can't be made as the tree needs it.
    #[error("{0}")]
    Device(#[from] device::Error),
}

impl Misfit {
    /// True if the spec itself makes no sense, whatever the device, the memory and the workload.
    pub(crate) fn is_of_spec(&self) -> bool {
        use index::Error::{BadParameter, UnknownParameter};
        matches!(
            self,
            Misfit::UnknownParameter { .. }
                | Misfit::Over(_)
                | Misfit::Refused(BadParameter { .. } | UnknownParameter { .. })
        )
    }
}

/// What is wrong with an input file.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum InputFault {
    /// It can't be opened or read.
    #[error("{0}")]
    Unreadable(std::io::Error),
    /// It has no line, or no line below the names of its columns.
    #[error("it has no rows; the first line names the columns, the others are rows")]
    Empty,
    /// It lacks a column.
    #[error("it has no column \"{}\"; its columns are {}", shown(column), shown_list(found))]
    NoColumn {
        /// The column.
        column: String,
        /// The columns that it has.
        found: Vec<String>,
    },
    /// Two columns of one name, of which one would hide the other.
    #[error("two columns are called \"{}\"", shown(column))]
    ColumnTwice {
        /// The name.
        column: String,
    },
    /// What is no row.
    #[error("line {line}: {what}")]
    BadRow {
        /// The line, from 1.
        line: u64,
        /// What is wrong.
        what: String,
    },
    /// A row with another number of fields than the first line.
    #[error("line {line} has {found} fields, the first line has {expected}")]
    Ragged {
        /// The line, from 1.
        line: u64,
        /// Fields in the first line.
        expected: u64,
        /// Fields in this line.
        found: u64,
    },
    /// Bytes that are no UTF-8.
    #[error("line {line} is not UTF-8 text")]
    NotUtf8 {
        /// The line, from 1.
        line: u64,
    },
    /// A field that does not hold what belongs there.
    #[error("line {line}, column {}: \"{}\" is not {expected}", shown(column), shown(value))]
    BadField {
        /// The line, from 1.
        line: u64,
        /// The column.
        column: String,
        /// The field.
        value: String,
        /// What belongs there.
        expected: &'static str,
    },
    /// Too many rows to be counted.
    #[error("it has more than {most} rows")]
    TooLong {
        /// The most that can be.
        most: u64,
    },
}

fn shown_list(names: &[String]) -> String {
    const MOST: usize = 20;
    let mut all: Vec<String> = names.iter().take(MOST).map(|name| shown(name)).collect();
    if names.len() > MOST {
        all.push("...".to_string());
    }
    all.join(", ")
}
