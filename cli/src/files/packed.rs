//! Compression by the ending of a name: `.gz` and `.zst`.

use std::io::{self, Write};
use std::path::Path;

use flate2::Compression;
use flate2::write::GzEncoder;
use lab::input::Packing;
use ruzstd::encoding::{CompressionLevel, compress_to_vec};

use super::part_file::Output;

/// Bytes in a frame of zstd; frames stand one behind the other.
const FRAME_BYTES: usize = 1 << 20;

/// Rows on their way to a file, compressed as the ending of its name says.
pub(super) enum PackedOutput {
    Plain(Output),
    Gzip(GzEncoder<Output>),
    /// What of the present frame there is.
    Zstd(Output, Vec<u8>),
}

impl PackedOutput {
    /// Opens `path`, or standard output for `-`.
    ///
    /// # Errors
    /// The file can't be made.
    pub(super) fn open(path: &Path) -> io::Result<Self> {
        let packing = Packing::of(path)?;
        let output = Output::open(path)?;
        Ok(match packing {
            Packing::Plain => PackedOutput::Plain(output),
            Packing::Gzip => PackedOutput::Gzip(GzEncoder::new(output, Compression::default())),
            Packing::Zstd => PackedOutput::Zstd(output, Vec::with_capacity(FRAME_BYTES)),
        })
    }

    /// True for standard output, whose reader may go away.
    pub(super) const fn is_standard(&self) -> bool {
        matches!(self, PackedOutput::Plain(output) if output.is_standard())
    }

    /// Ends the file, which has its name from now on.
    ///
    /// # Errors
    /// What is left can't be written.
    pub(super) fn finish(self) -> io::Result<()> {
        match self {
            PackedOutput::Plain(output) => output.finish(),
            PackedOutput::Gzip(encoder) => encoder.finish()?.finish(),
            PackedOutput::Zstd(mut output, frame) => {
                write_frame(&mut output, &frame)?;
                output.finish()
            }
        }
    }
}

fn write_frame(output: &mut Output, bytes: &[u8]) -> io::Result<()> {
    output.write_all(&compress_to_vec(bytes, CompressionLevel::Fastest))
}

impl Write for PackedOutput {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            PackedOutput::Plain(output) => output.write(bytes),
            PackedOutput::Gzip(encoder) => encoder.write(bytes),
            PackedOutput::Zstd(output, frame) => {
                let length = bytes.len().min(FRAME_BYTES - frame.len());
                frame.extend_from_slice(&bytes[..length]);
                if frame.len() == FRAME_BYTES {
                    write_frame(output, frame)?;
                    frame.clear();
                }
                Ok(length)
            }
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            PackedOutput::Plain(output) => output.flush(),
            // Short pieces compress badly, and nobody reads what is not whole.
            PackedOutput::Gzip(_) | PackedOutput::Zstd(..) => Ok(()),
        }
    }
}
