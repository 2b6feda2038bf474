//! Where rows come from: a file, plain or compressed, or standard input.

use std::cell::Cell;
use std::fs::File;
use std::io::{self, BufReader, Cursor, Read};
use std::path::Path;
use std::rc::Rc;

use super::FileFailure;
use super::frames::Frames;

/// The longest row, in bytes: a file without lines must not fill the memory.
const ROW_BYTES_MOST: u64 = 64 << 20;

/// Bytes that tell whether a file is compressed.
const HEAD_BYTES: u64 = 4;

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
            return Source::over(io::stdin(), None);
        }
        let file = File::open(path)?;
        let about = file.metadata()?;
        if about.is_dir() {
            return Err(io::Error::new(io::ErrorKind::IsADirectory, "it is a folder"));
        }
        Source::over(file, about.is_file().then_some(about.len()))
    }

    fn over(below: impl Read + 'static, bytes: Option<u64>) -> io::Result<Self> {
        let meter = Meter { bytes, ..Meter::default() };
        let counted = Counted { below, count: Rc::clone(&meter.read) };
        let mut buffered = BufReader::with_capacity(BUFFER_BYTES, counted);
        let mut head = Vec::new();
        (&mut buffered).take(HEAD_BYTES).read_to_end(&mut head)?;
        let is_zstd = Frames::<&[u8]>::are_in(&head);
        let whole = Cursor::new(head).chain(buffered);
        let below: Box<dyn Read> = match is_zstd {
            true => Box::new(Frames::new(whole)?),
            false => Box::new(whole),
        };
        Ok(Source { below, meter })
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
