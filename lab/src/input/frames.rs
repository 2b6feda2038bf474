//! What is compressed with zstd: frames one behind the other, as several files that were joined
//! have them, and programs that compress on several cores.

use std::io::{self, BufRead, Read};

use ruzstd::decoding::errors::{FrameDecoderError, ReadFrameHeaderError};
use ruzstd::decoding::{BlockDecodingStrategy, FrameDecoder};

/// What a frame begins with.
const FRAME: [u8; 4] = [0x28, 0xB5, 0x2F, 0xFD];

/// What a frame that is to be skipped begins with; the first byte is 0x50 to 0x5F.
const SKIPPED: [u8; 3] = [0x2A, 0x4D, 0x18];

/// The content of all frames, to the end of what is below.
pub(super) struct Frames<R> {
    below: R,
    decoder: FrameDecoder,
    /// Bytes that came out of the present frame.
    bytes: u64,
}

impl<R: BufRead> Frames<R> {
    /// True if what begins with `head` is compressed.
    pub(super) fn are_in(head: &[u8]) -> bool {
        let is_skipped = |head: &[u8; 4]| head[0] >> 4 == 5 && head[1..] == SKIPPED;
        head.first_chunk().is_some_and(|head| *head == FRAME || is_skipped(head))
    }

    /// Begins with the first frame.
    ///
    /// # Errors
    /// It can't be read.
    pub(super) fn new(below: R) -> io::Result<Self> {
        let mut frames = Frames { below, decoder: FrameDecoder::new(), bytes: 0 };
        frames.next_frame()?;
        Ok(frames)
    }

    /// Goes to the next frame; false at the end.
    fn next_frame(&mut self) -> io::Result<bool> {
        while !self.below.fill_buf()?.is_empty() {
            match self.decoder.reset(&mut self.below) {
                Ok(()) => {
                    self.bytes = 0;
                    return Ok(true);
                }
                Err(FrameDecoderError::ReadFrameHeaderError(ReadFrameHeaderError::SkipFrame {
                    length,
                    ..
                })) => {
                    let length = u64::from(length);
                    let skipped = io::copy(&mut (&mut self.below).take(length), &mut io::sink())?;
                    if skipped < length {
                        return Err(self.fault());
                    }
                }
                Err(FrameDecoderError::WindowSizeTooBig { requested, max }) => {
                    return Err(io::Error::other(format!(
                        "to read its compressed data takes {requested} bytes of memory, more than \
                         {max}: compress it without --long"
                    )));
                }
                Err(_) => return Err(self.fault()),
            }
        }
        Ok(false)
    }

    /// Reads from the present frame; 0 at its end.
    fn read_frame(&mut self, into: &mut [u8]) -> io::Result<usize> {
        while self.decoder.can_collect() == 0 && !self.decoder.is_finished() {
            let strategy = BlockDecodingStrategy::UptoBlocks(1);
            if self.decoder.decode_blocks(&mut self.below, strategy).is_err() {
                return Err(self.fault());
            }
        }
        self.decoder.read(into)
    }

    /// What is said of data that can't be decoded.
    fn fault(&mut self) -> io::Error {
        match self.below.fill_buf() {
            Err(error) => error,
            Ok([]) => io::Error::new(
                io::ErrorKind::UnexpectedEof,
                "its compressed data are cut off, or damaged at their end, and no row of it was \
                 taken",
            ),
            Ok(_) => io::Error::new(
                io::ErrorKind::InvalidData,
                "its compressed data are damaged, and no row of it was taken",
            ),
        }
    }
}

impl<R: BufRead> Read for Frames<R> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        loop {
            let count = self.read_frame(into)?;
            if count > 0 || into.is_empty() {
                self.bytes += count as u64;
                return Ok(count);
            }
            let stored = self.decoder.get_checksum_from_data();
            let is_right = stored.is_none() || stored == self.decoder.get_calculated_checksum();
            // 0 stands for a length that is not told.
            let told = self.decoder.content_size();
            if !is_right || (told != 0 && told != self.bytes) {
                let what = "its compressed data are damaged: a checksum or a length is wrong, and \
                            no row of it was taken";
                return Err(io::Error::new(io::ErrorKind::InvalidData, what));
            }
            if !self.next_frame()? {
                return Ok(0);
            }
        }
    }
}
