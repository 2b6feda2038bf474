//! Where rows come from: a file, plain or compressed, or standard input.

use std::cell::Cell;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Cursor, Read};
use std::path::Path;
use std::rc::Rc;

use flate2::bufread::MultiGzDecoder;

use super::FileFailure;
use super::frames::Frames;
use crate::files::packed::Packing;

/// The longest row, in bytes: a file without lines must not fill the memory.
const ROW_BYTES_MOST: u64 = 64 << 20;

/// Bytes that tell whether a file is compressed.
const HEAD_BYTES: u64 = 4;

/// What a member of a gzip file begins with.
const GZIP: [u8; 2] = [0x1F, 0x8B];

/// What a text in UTF-8 may begin with; it stands for nothing.
const BYTE_ORDER_MARK: &[u8] = "\u{FEFF}".as_bytes();

/// What texts in UTF-16 begin with, as bytes stand in them.
const UTF_16: [[u8; 2]; 2] = [[0xFF, 0xFE], [0xFE, 0xFF]];

/// Bytes that are read at a time.
const BUFFER_BYTES: usize = 256 << 10;

/// Bytes to be read, and what is known of them.
pub(super) struct Source {
    below: Box<dyn Read>,
    meter: Meter,
}

/// How much was read.
#[derive(Clone, Debug, Default)]
pub(super) struct Meter {
    /// Bytes of the file; unknown for what is no file.
    bytes: Option<u64>,
    /// Bytes that were read from the file.
    read: Rc<Cell<u64>>,
    /// Bytes that came out since the last row.
    row: Rc<Cell<u64>>,
}

impl Meter {
    /// Bytes of the file; `None` for what is no file.
    pub(super) const fn bytes(&self) -> Option<u64> {
        self.bytes
    }

    /// Bytes that were read from it.
    pub(super) fn read(&self) -> u64 {
        self.read.get()
    }

    /// Tells that a row ended.
    pub(super) fn end_row(&self) {
        self.row.set(0);
    }
}

impl Source {
    /// Opens `path`, or standard input for `-`.
    ///
    /// # Errors
    /// [`FileFailure::Read`].
    pub(super) fn open(path: &Path) -> Result<Self, FileFailure> {
        Source::try_open(path).map_err(|source| FileFailure::Read { path: path.to_owned(), source })
    }

    fn try_open(path: &Path) -> io::Result<Self> {
        if path == Path::new("-") {
            return Source::over(io::stdin(), None, Packing::Plain);
        }
        let file = File::open(path)?;
        let about = file.metadata()?;
        if about.is_dir() {
            return Err(io::Error::new(io::ErrorKind::IsADirectory, "it is a folder"));
        }
        Source::over(file, about.is_file().then_some(about.len()), Packing::of(path)?)
    }

    /// What is compressed tells so itself; a name that says `named` must not say it in vain.
    fn over(below: impl Read + 'static, bytes: Option<u64>, named: Packing) -> io::Result<Self> {
        let meter = Meter { bytes, ..Meter::default() };
        let counted = Counted { below, count: Rc::clone(&meter.read) };
        let mut buffered = BufReader::with_capacity(BUFFER_BYTES, counted);
        let mut head = Vec::new();
        (&mut buffered).take(HEAD_BYTES).read_to_end(&mut head)?;
        let packing = match () {
            () if Frames::<&[u8]>::are_in(&head) => Packing::Zstd,
            () if head.starts_with(&GZIP) => Packing::Gzip,
            () => Packing::Plain,
        };
        let is_empty = head.is_empty();
        let whole = Cursor::new(head).chain(buffered);
        let mut below: Box<dyn Read> = match packing {
            Packing::Zstd => Box::new(Frames::new(whole)?),
            Packing::Gzip => Box::new(Members(MultiGzDecoder::new(whole))),
            Packing::Plain if named != Packing::Plain && !is_empty => {
                let what = "its name says that it is compressed, and it is not: rename it";
                return Err(io::Error::new(io::ErrorKind::InvalidData, what));
            }
            Packing::Plain => Box::new(whole),
        };
        let mut text = Vec::new();
        (&mut below).take(BYTE_ORDER_MARK.len() as u64).read_to_end(&mut text)?;
        if UTF_16.iter().any(|mark| text.starts_with(mark)) {
            let what = "it is UTF-16: make it UTF-8 first, as by iconv -f UTF-16 -t UTF-8";
            return Err(io::Error::new(io::ErrorKind::InvalidData, what));
        }
        if text == BYTE_ORDER_MARK {
            text.clear();
        }
        Ok(Source { below: Box::new(Cursor::new(text).chain(below)), meter })
    }

    /// How much was read.
    pub(super) fn meter(&self) -> Meter {
        self.meter.clone()
    }
}

impl Read for Source {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        if self.meter.row.get() > ROW_BYTES_MOST {
            let kind = io::ErrorKind::FileTooLarge;
            return Err(io::Error::new(kind, "a row of more than 64 MiB"));
        }
        let count = self.below.read(into)?;
        self.meter.row.set(self.meter.row.get() + count as u64);
        Ok(count)
    }
}

/// What is compressed with gzip, in one or more members.
struct Members<R>(MultiGzDecoder<R>);

impl<R: BufRead> Read for Members<R> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        self.0.read(into).map_err(|error| match error.kind() {
            kind @ io::ErrorKind::UnexpectedEof => {
                io::Error::new(kind, "its compressed data are cut off")
            }
            kind @ (io::ErrorKind::InvalidData | io::ErrorKind::InvalidInput) => {
                io::Error::new(kind, "its compressed data are damaged")
            }
            _ => error,
        })
    }
}

/// Counts what is read.
struct Counted<R> {
    below: R,
    count: Rc<Cell<u64>>,
}

impl<R: Read> Read for Counted<R> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let count = self.below.read(into)?;
        self.count.set(self.count.get() + count as u64);
        Ok(count)
    }
}
