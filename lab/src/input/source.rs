//! Where rows come from: a file, plain or compressed, or standard input.

use std::cell::Cell;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Cursor, Read, Seek};
use std::path::Path;
use std::rc::Rc;

use flate2::bufread::MultiGzDecoder;

use super::Packing;
use super::frames::Frames;

/// The longest row, in bytes: a file without lines must not fill the memory.
const ROW_BYTES_MOST: u64 = 64 << 20;

/// What a text in UTF-8 may begin with; it stands for nothing.
const BYTE_ORDER_MARK: &[u8] = "\u{FEFF}".as_bytes();

/// What texts in other encodings of Unicode begin with, as bytes stand in them, and why they are
/// refused: the first that a text begins with tells.
const OTHERS: [(&[u8], &str); 4] = [
    (&[0xFF, 0xFE, 0, 0], UTF_32),
    (&[0, 0, 0xFE, 0xFF], UTF_32),
    (&[0xFF, 0xFE], UTF_16),
    (&[0xFE, 0xFF], UTF_16),
];
const UTF_16: &str = "it is UTF-16: make it UTF-8 first, as by iconv -f UTF-16 -t UTF-8";
const UTF_32: &str = "it is UTF-32: make it UTF-8 first, as by iconv -f UTF-32 -t UTF-8";

/// The most bytes that tell the encoding.
const MARK_BYTES_MOST: u64 = 4;

/// Bytes that are read at a time.
const BUFFER_BYTES: usize = 256 << 10;

/// Bytes to be read, and what is known of them. What is compressed is read to its end and verified
/// before anything of it comes out: its checksums stand behind what they are of. A frame of zstd
/// may have none.
pub struct Source {
    below: Box<dyn Read>,
    meter: Meter,
}

/// How much was read.
#[derive(Clone, Debug, Default)]
pub struct Meter {
    /// Bytes of the file; unknown for what is no file.
    bytes: Option<u64>,
    /// Bytes that were read from the file.
    read: Rc<Cell<u64>>,
    /// Bytes that came out since the last row.
    row: Rc<Cell<u64>>,
}

impl Meter {
    /// Bytes of the file; `None` for what is no file.
    #[must_use]
    pub const fn bytes(&self) -> Option<u64> {
        self.bytes
    }

    /// Bytes that were read from it.
    #[must_use]
    pub fn read(&self) -> u64 {
        self.read.get()
    }

    /// Tells that a row ended.
    pub fn end_row(&self) {
        self.row.set(0);
    }
}

impl Source {
    /// Opens `path`, or standard input for `-`; what is compressed is verified for as long as
    /// `go_on` is true.
    ///
    /// # Errors
    /// It can't be read, is damaged, or is no text in UTF-8; or `go_on` was false, of the kind
    /// [`io::ErrorKind::Interrupted`].
    pub fn open(path: &Path, go_on: &dyn Fn() -> bool) -> io::Result<Self> {
        if path == Path::new("-") {
            return Source::over(Box::new(io::stdin()), (None, Packing::Plain), go_on);
        }
        let file = File::open(path)?;
        let about = file.metadata()?;
        if about.is_dir() {
            return Err(io::Error::new(io::ErrorKind::IsADirectory, "it is a folder"));
        }
        let file_again = about.is_file().then(|| file.try_clone()).transpose()?;
        Source::over(Box::new(file), (file_again, Packing::of(path)?), go_on)
    }

    /// What is compressed tells so itself; a name that says `named` must not say it in vain.
    fn over(
        below: Box<dyn Read>,
        (file, named): (Option<File>, Packing),
        go_on: &dyn Fn() -> bool,
    ) -> io::Result<Self> {
        let bytes = file.as_ref().map(File::metadata).transpose()?.map(|about| about.len());
        let meter = Meter { bytes, ..Meter::default() };
        let counted = |below| Counted { below, count: Rc::clone(&meter.read) };
        let mut buffered = BufReader::with_capacity(BUFFER_BYTES, counted(below));
        let mut head = Vec::new();
        (&mut buffered).take(Packing::HEAD_BYTES).read_to_end(&mut head)?;
        let packing = Packing::in_head(&head)?;
        if packing == Packing::Plain && named != Packing::Plain && !head.is_empty() {
            let what = "its name says that it is compressed, and it is not: rename it";
            return Err(io::Error::new(io::ErrorKind::InvalidData, what));
        }
        let whole = Cursor::new(head).chain(buffered);
        let mut below: Box<dyn Read> = match packing {
            Packing::Plain => Box::new(whole),
            _ => {
                let mut file = file.map_or_else(|| kept(whole, go_on), Ok)?;
                file.rewind()?;
                let check = BufReader::with_capacity(BUFFER_BYTES, file.try_clone()?);
                pass(unpacked(check, packing)?, &mut io::sink(), go_on)?;
                file.rewind()?;
                meter.read.set(0);
                let file = counted(Box::new(file));
                unpacked(BufReader::with_capacity(BUFFER_BYTES, file), packing)?
            }
        };
        let mut text = Vec::new();
        (&mut below).take(MARK_BYTES_MOST).read_to_end(&mut text)?;
        if let Some((_, what)) = OTHERS.iter().find(|(mark, _)| text.starts_with(mark)) {
            return Err(io::Error::new(io::ErrorKind::InvalidData, *what));
        }
        if text.starts_with(BYTE_ORDER_MARK) {
            text.drain(..BYTE_ORDER_MARK.len());
        }
        Ok(Source { below: Box::new(Cursor::new(text).chain(below)), meter })
    }

    /// How much was read.
    #[must_use]
    pub fn meter(&self) -> Meter {
        self.meter.clone()
    }
}

fn unpacked<R: BufRead + 'static>(below: R, packing: Packing) -> io::Result<Box<dyn Read>> {
    Ok(match packing {
        Packing::Plain => Box::new(below),
        Packing::Gzip => Box::new(Members(MultiGzDecoder::new(below))),
        Packing::Zstd => Box::new(Frames::new(below)?),
    })
}

/// A file without a name that keeps what comes out of a pipe, which can be read once only.
fn kept(below: impl Read, go_on: &dyn Fn() -> bool) -> io::Result<File> {
    let mut file = tempfile::tempfile()?;
    pass(below, &mut file, go_on)?;
    Ok(file)
}

/// Passes all that comes out of `from` to `to`.
fn pass(mut from: impl Read, to: &mut dyn io::Write, go_on: &dyn Fn() -> bool) -> io::Result<()> {
    let mut piece = vec![0; BUFFER_BYTES];
    loop {
        if !go_on() {
            return Err(io::ErrorKind::Interrupted.into());
        }
        match from.read(&mut piece) {
            Ok(0) => return Ok(()),
            Ok(count) => to.write_all(&piece[..count])?,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
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
                io::Error::new(kind, "its compressed data are cut off, and no row of it was taken")
            }
            kind @ (io::ErrorKind::InvalidData | io::ErrorKind::InvalidInput) => {
                io::Error::new(kind, "its compressed data are damaged, and no row of it was taken")
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
