//! What the file commands understand.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Subcommand, ValueEnum};
use db::encoding::{Time, Type};

pub(crate) use super::place::Place;
use super::{DurabilityWord, ListFormat};
use crate::numbers;

/// A file command, and how it is done.
#[derive(Debug)]
pub(crate) struct Request {
    /// What the user wants.
    pub(crate) command: Command,
    /// True if only results and errors are wanted.
    pub(crate) quiet: bool,
}

/// The file commands.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Make a database in a file
    #[command(after_help = TYPES)]
    Create(Create),
    /// Let a key have a value
    #[command(after_help = TYPES)]
    Put(Put),
    /// Print the value of a key; if it is absent, nothing, with exit code 1
    Get(Get),
    /// Let a key be absent
    Delete(Delete),
    /// Print entries in the order of their keys
    #[command(after_help = SCAN)]
    Scan(Scan),
    /// Put the rows of a file, CSV or JSON lines, into a database
    #[command(after_help = IMPORT)]
    Import(Import),
    /// Write all entries to a file, CSV or JSON lines
    Export(Export),
    /// Show how a database stands: its size, its recovery, the health of its chip
    Stat(Stat),
    /// Verify every page and invariant, and say what is wrong and where
    Check(Report),
    /// Copy a database as it is, with its checkpoints, into a new file
    Backup(Backup),
    /// Rewrite a database without gaps
    Compact(Bare),
    /// Copy a database into a new one, of another tree or on another device
    #[command(after_help = CONVERT)]
    Convert(Convert),
    /// Keep the present state under a name, to go back to
    Checkpoint(Named),
    /// List the checkpoints that are kept
    Checkpoints(Report),
    /// Go back to a checkpoint; what came after it is gone
    Rollback(Named),
    /// Keep a checkpoint no longer
    Forget(Named),
}

const TYPES: &str = "TYPE is one of\n  \
    bytes  any bytes; \\xHH stands for the byte HH, \\\\ for a backslash, but in CSV\n         \
           bytes stand as they are\n  \
    hex    any bytes, as two hexadecimal digits each\n  \
    text   UTF-8\n  \
    i64, u64  whole numbers of 64 bits\n  \
    f64    the nearest float of 64 bits; -0 is 0\n  \
    time   such as 2013-01-01T10:00:00Z, with up to nine digits of a second\n  \
    tuple(TYPE,...)  several of them, written as a JSON array: [\"LGA\",7]\n\
    What a type can't represent is refused: a number that does not fit, or would become 0 or\n\
    infinity, a leap second.";

const SCAN: &str = "A line has key and value, with a tab between them. In texts \\\\ is a \
    backslash, \\t a tab, \\n and \\r are line breaks, and \\u{...} is any other control \
    character. For other programs take --format json, or flashtree export.";

const CONVERT: &str = "What is not named is taken from FILE: the tree, the durability, and in a \
    plain file the size of pages and of the file. Checkpoints stay behind.";

const IMPORT: &str = "A row is put under its key, whatever was there before. Rows are sorted in \
    memory and put in batches; the position up to which all rows are safe is kept in FILE.import. \
    After Ctrl-C, a bad row or a power cut, the same command with --resume goes on there. It makes \
    sure that the rows before are those that were imported. To begin anew does no harm. Of several \
    rows with one key the last counts.";

/// A database.
#[derive(Args, Debug)]
pub(crate) struct Home {
    /// The database: PATH, file:PATH, or nand-file:PATH for a chip imitated in a file
    #[arg(value_name = "FILE", value_parser = Place::parser())]
    pub(crate) file: Place,
    /// Memory for everything [default: 16MiB, or what the database needs]
    #[arg(long, value_name = "SIZE")]
    #[arg(value_parser = numbers::parse_size_not_0, allow_negative_numbers = true)]
    pub(crate) memory_total: Option<u64>,
    /// How long to wait while another process has the database
    #[arg(long, value_name = "SECONDS", default_value = "5", allow_negative_numbers = true)]
    #[arg(value_parser = numbers::parse_seconds)]
    pub(crate) wait: Duration,
}

/// What `create` understands.
#[derive(Args, Debug)]
pub(crate) struct Create {
    #[command(flatten)]
    pub(crate) home: Home,
    /// What the keys are [default: bytes]
    #[arg(long, value_name = "TYPE")]
    pub(crate) key: Option<Type>,
    /// What the values are [default: bytes]
    #[arg(long, value_name = "TYPE")]
    pub(crate) value: Option<Type>,
    #[command(flatten)]
    pub(crate) making: Making,
}

/// What `convert` understands.
#[derive(Args, Debug)]
pub(crate) struct Convert {
    #[command(flatten)]
    pub(crate) home: Home,
    /// The new database: PATH, file:PATH, or nand-file:PATH for a chip imitated in a file
    #[arg(value_name = "NEW", value_parser = Place::parser())]
    pub(crate) new: Place,
    #[command(flatten)]
    pub(crate) making: Making,
}

/// What `backup` understands.
#[derive(Args, Debug)]
pub(crate) struct Backup {
    #[command(flatten)]
    pub(crate) home: Home,
    /// The new file
    #[arg(value_name = "NEW", value_parser = Place::parser())]
    pub(crate) new: Place,
}

/// How a database is made.
#[derive(Args, Debug)]
pub(crate) struct Making {
    /// The tree, such as b-plus or b-plus:fill=90 [default of create: flat-tree in a file; b-plus
    /// with --page, or on a chip]
    #[arg(long, value_name = "SPEC")]
    pub(crate) tree: Option<String>,
    /// Bytes in a page of the tree [default of create: 4KiB; on a chip, its page]
    #[arg(long, value_name = "SIZE")]
    #[arg(value_parser = parse_page, allow_negative_numbers = true)]
    pub(crate) page: Option<u32>,
    /// What has to survive a power cut [default of create: batch]
    #[arg(long, value_enum)]
    pub(crate) durability: Option<DurabilityWord>,
    /// How far the file can grow; of a chip, use at most so much [default of create: 4096 times
    /// the memory, 256 times for la-tree and flat-tree, at most 4GiB; all of the chip]
    #[arg(long, value_name = "SIZE")]
    #[arg(value_parser = numbers::parse_size_not_0, allow_negative_numbers = true)]
    pub(crate) size: Option<u64>,
    /// The chip that nand-file: imitates [default: winbond-w25n01gv]
    #[arg(long, value_name = "SPEC")]
    pub(crate) chip: Option<String>,
    /// The translation layer on the chip [default: page-map]
    #[arg(long, value_name = "SPEC")]
    pub(crate) ftl: Option<String>,
    /// Replace what exists under that name, whatever it is
    #[arg(long)]
    pub(crate) overwrite: bool,
}

/// What `put` understands.
#[derive(Args, Debug)]
pub(crate) struct Put {
    #[command(flatten)]
    pub(crate) home: Home,
    /// The key
    #[arg(allow_negative_numbers = true)]
    pub(crate) key: String,
    /// The value
    #[arg(allow_negative_numbers = true, required_unless_present = "input")]
    pub(crate) value: Option<String>,
    /// Take the value from this file, "-" for standard input; bytes and texts are taken as they
    /// are
    #[arg(long, value_name = "PATH", conflicts_with = "value")]
    pub(crate) input: Option<PathBuf>,
}

/// What `get` understands.
#[derive(Args, Debug)]
pub(crate) struct Get {
    #[command(flatten)]
    pub(crate) home: Home,
    /// The key
    #[arg(allow_negative_numbers = true)]
    pub(crate) key: String,
    /// Print the bytes of the value as they are stored
    #[arg(long)]
    pub(crate) raw: bool,
}

/// What `delete` understands.
#[derive(Args, Debug)]
pub(crate) struct Delete {
    #[command(flatten)]
    pub(crate) home: Home,
    /// The key
    #[arg(allow_negative_numbers = true)]
    pub(crate) key: String,
}

/// What `scan` understands.
#[derive(Args, Debug)]
pub(crate) struct Scan {
    #[command(flatten)]
    pub(crate) home: Home,
    /// The lowest key; of a tuple, the first components are enough
    #[arg(long, value_name = "K", allow_negative_numbers = true)]
    pub(crate) from: Option<String>,
    /// The key before which it ends
    #[arg(long, value_name = "K", allow_negative_numbers = true)]
    pub(crate) to: Option<String>,
    /// Only keys that begin so; of a tuple, its first components
    #[arg(long, value_name = "K", allow_negative_numbers = true)]
    #[arg(conflicts_with_all = ["from", "to"])]
    pub(crate) prefix: Option<String>,
    /// From the highest key to the lowest
    #[arg(long)]
    pub(crate) reverse: bool,
    /// At most N entries
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    #[arg(value_parser = numbers::parse_count)]
    pub(crate) limit: Option<u64>,
    /// How to print
    #[arg(long, value_enum, default_value_t)]
    pub(crate) format: ListFormat,
}

/// How rows stand in a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum RowFormat {
    /// Comma-separated values
    Csv,
    /// A JSON object a line
    Jsonl,
}

/// What `import` understands.
#[derive(Args, Debug)]
pub(crate) struct Import {
    #[command(flatten)]
    pub(crate) home: Home,
    /// The rows: a file, which may be compressed with gzip or zstd, or "-" for standard input
    pub(crate) input: PathBuf,
    #[command(flatten)]
    pub(crate) rows: RowOptions,
    /// Leave out rows in which a key or value is TEXT, such as NA; in JSON, also null
    #[arg(long, value_name = "TEXT")]
    pub(crate) null: Option<String>,
    /// The file has no heading: COL are numbers from 1
    #[arg(long)]
    pub(crate) no_header: bool,
    /// Go on with an import that was broken off
    #[arg(long)]
    pub(crate) resume: bool,
    /// Memory in which rows are sorted before they are put
    #[arg(long, value_name = "SIZE", default_value = "32MiB")]
    #[arg(value_parser = numbers::parse_size, allow_negative_numbers = true)]
    pub(crate) buffer: u64,
}

/// What `export` understands.
#[derive(Args, Debug)]
pub(crate) struct Export {
    #[command(flatten)]
    pub(crate) home: Home,
    /// The file to write, or "-" for standard output
    pub(crate) output: PathBuf,
    #[command(flatten)]
    pub(crate) rows: RowOptions,
    /// Write what can still be read of a damaged database, and tell what is lost
    #[arg(long)]
    pub(crate) skip_damaged: bool,
}

/// What rows look like, in `import` and `export`.
#[derive(Args, Debug)]
pub(crate) struct RowOptions {
    /// How the rows stand there [default: by the name's ending; csv]
    #[arg(long, value_enum)]
    pub(crate) format: Option<RowFormat>,
    /// The column of the keys; of tuples, one a component: a,b,@row. @row is the row's number,
    /// from 0, in an import [default: key; in an import, else the first]
    #[arg(long, value_name = "COL")]
    pub(crate) key: Option<String>,
    /// The column of the values [default: value; in an import, else the only one that is left]; ""
    /// in an import: there is none, and values are empty
    #[arg(long, value_name = "COL")]
    pub(crate) value: Option<String>,
    /// What stands between two fields of CSV: one character, or "tab" [default: a tab where the
    /// name ends in .tsv; a comma]
    #[arg(long, value_name = "CHAR", value_parser = parse_delimiter)]
    pub(crate) delimiter: Option<u8>,
    /// How times in columns of their own are written: "sqlite", or a format as strftime's, such as
    /// "%d.%m.%Y %H:%M"; UTC, if it has no offset [default: as 2013-01-01T10:00:00Z]
    #[arg(long, value_name = "FORMAT", value_parser = parse_time_format)]
    pub(crate) time_format: Option<String>,
}

/// What `stat` understands.
#[derive(Args, Debug)]
pub(crate) struct Stat {
    #[command(flatten)]
    pub(crate) home: Home,
    /// Don't count the entries, which reads them all
    #[arg(long)]
    pub(crate) no_count: bool,
    /// The chip, for the life that is left of it
    #[arg(long, value_name = "SPEC")]
    pub(crate) chip: Option<String>,
    /// How to print
    #[arg(long, value_enum, default_value_t)]
    pub(crate) format: ListFormat,
}

/// What `check` and `checkpoints` understand.
#[derive(Args, Debug)]
pub(crate) struct Report {
    #[command(flatten)]
    pub(crate) home: Home,
    /// How to print
    #[arg(long, value_enum, default_value_t)]
    pub(crate) format: ListFormat,
}

/// What `compact` understands.
#[derive(Args, Debug)]
pub(crate) struct Bare {
    #[command(flatten)]
    pub(crate) home: Home,
}

/// What `checkpoint`, `rollback` and `forget` understand.
#[derive(Args, Debug)]
pub(crate) struct Named {
    #[command(flatten)]
    pub(crate) home: Home,
    /// The checkpoint, 1 to 64 bytes
    #[arg(value_parser = parse_name)]
    pub(crate) name: String,
}

/// Reads the name of a checkpoint.
fn parse_name(text: &str) -> Result<String, String> {
    match text.len() {
        1..=64 => Ok(text.to_owned()),
        bytes => Err(format!("it has {bytes} bytes, and must have 1 to 64")),
    }
}

/// Reads the size of a page.
fn parse_page(text: &str) -> Result<u32, String> {
    let bytes = numbers::parse_size(text)?;
    u32::try_from(bytes).map_err(|_| "expected a size in bytes, such as 4096 or 4KiB".to_owned())
}

/// What SQLite's functions write.
const SQLITE_TIME: &str = "%Y-%m-%d %H:%M:%S%.f";

fn parse_time_format(text: &str) -> Result<String, String> {
    let format = if text.eq_ignore_ascii_case("sqlite") { SQLITE_TIME } else { text };
    match Time(0).strftime(format) {
        Ok(written) if written == format => Err("it has no conversion, such as %Y".to_owned()),
        Ok(_) => Ok(format.to_owned()),
        Err(error) => Err(error.to_string()),
    }
}

fn parse_delimiter(text: &str) -> Result<u8, String> {
    match text.as_bytes() {
        _ if text.eq_ignore_ascii_case("tab") || text == "\\t" => Ok(b'\t'),
        [byte] if byte.is_ascii() && !byte.is_ascii_alphanumeric() && !b"\"\r\n".contains(byte) => {
            Ok(*byte)
        }
        _ => Err("it must be one character, neither letter nor digit nor quote, or \"tab\"".into()),
    }
}
