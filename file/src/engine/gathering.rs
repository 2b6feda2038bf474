//! Small writes that follow each other in the file, gathered to one.
//!
//! A page of a tree is written at a time, and pages that are written together often stand one
//! behind the other. The system takes about as long for 4 KiB as for 32.
//!
//! Invariant: what is gathered is not in the file yet, or only a part of it; it is forgotten only
//! when all of it is. So a write that failed is tried again, and nothing is read as it was before.

use rustix::io::Errno;

use super::{Channel, Piece, Way, flight};

/// A run of bytes of the file.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Run {
    offset: u64,
    bytes: usize,
}

impl Run {
    const fn end(self) -> u64 {
        self.offset + self.bytes as u64
    }

    const fn overlaps(self, offset: u64, bytes: usize) -> bool {
        self.bytes > 0 && offset < self.end() && self.offset < offset + bytes as u64
    }
}

impl Channel {
    /// True if small writes are gathered, in the last of the bounce buffers.
    pub(super) const fn is_gathering(&self) -> bool {
        self.shape.gathers && self.shape.in_flight > 1
    }

    /// Writes whole units at byte `offset`, or gathers them.
    pub(crate) fn write(&mut self, offset: u64, from: &[u8]) -> Result<(), Errno> {
        if !self.is_gathering() {
            let pieces = self.cutter().write(offset, from);
            return self.transfer(pieces);
        }
        let run = self.gathered;
        let fits = run.bytes + from.len() <= self.bounce_bytes;
        if run.bytes > 0 && (run.end() != offset || !fits) {
            self.write_gathered()?;
        }
        if from.len() >= self.bounce_bytes {
            let pieces = self.cutter().write(offset, from);
            return self.transfer(pieces);
        }
        let start = self.gathered.bytes;
        self.gathering_buffer()[start..start + from.len()].copy_from_slice(from);
        if start == 0 {
            self.gathered.offset = offset;
        }
        self.gathered.bytes += from.len();
        Ok(())
    }

    /// Writes what is gathered, if it is part of what will be read.
    pub(crate) fn make_readable(&mut self, offset: u64, bytes: usize) -> Result<(), Errno> {
        if self.gathered.overlaps(offset, bytes) {
            return self.write_gathered();
        }
        Ok(())
    }

    /// Writes what is gathered.
    pub(crate) fn write_gathered(&mut self) -> Result<(), Errno> {
        let Run { offset, bytes } = self.gathered;
        if bytes == 0 {
            return Ok(());
        }
        let unit = self.shape.unit as usize;
        let file = std::sync::Arc::clone(&self.file);
        let way = Way::Write(&self.gathering_buffer()[..bytes]);
        flight::alone(&file, Piece { offset, length: bytes, way }, &mut [], unit)?;
        self.gathered = Run::default();
        Ok(())
    }

    fn gathering_buffer(&mut self) -> &mut [u8] {
        let last = self.bounce_bytes * (self.shape.in_flight as usize - 1);
        &mut self.bounce.as_mut()[last..]
    }
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::os::unix::fs::FileExt;

    use super::super::{Channel, Shape};
    use crate::EngineChoice;

    fn channel(file: &File, in_flight: u32) -> Channel {
        let (engine, unit, memory) = (EngineChoice::Threads, 1, 1);
        let shape = Shape { engine, in_flight, unit, memory, gathers: true };
        Channel::new(file.try_clone().unwrap(), shape).unwrap()
    }

    fn content(file: &File) -> Vec<u8> {
        let mut bytes = vec![0; file.metadata().unwrap().len() as usize];
        file.read_exact_at(&mut bytes, 0).unwrap();
        bytes
    }

    #[test]
    fn writes_that_follow_each_other_go_to_the_file_together() {
        let file = tempfile::tempfile().unwrap();
        let mut channel = channel(&file, 2);
        channel.write(0, &[1; 4096]).unwrap();
        channel.write(4096, &[2; 4096]).unwrap();
        assert_eq!(content(&file), []);
        channel.make_readable(8192, 10).unwrap();
        assert_eq!(content(&file), []);
        channel.make_readable(8191, 1).unwrap();
        assert_eq!(content(&file), [[1; 4096], [2; 4096]].concat());
    }

    #[test]
    fn what_does_not_follow_or_fit_goes_behind_what_came_before() {
        let file = tempfile::tempfile().unwrap();
        let mut channel = channel(&file, 2);
        channel.write(0, &[1; 4096]).unwrap();
        channel.write(0, &[2; 8192]).unwrap();
        assert_eq!(content(&file), [1; 4096]);
        channel.write(0, &[3; 40_000]).unwrap();
        assert_eq!(content(&file), [3; 40_000]);
        channel.write(40_000, &[4; 20_000]).unwrap();
        channel.write(60_000, &[5; 20_000]).unwrap();
        assert_eq!(content(&file).len(), 60_000);
        drop(channel);
        assert_eq!(content(&file)[40_000..], [[4; 20_000], [5; 20_000]].concat());
    }

    #[test]
    fn a_single_transfer_in_flight_gathers_nothing() {
        let file = tempfile::tempfile().unwrap();
        channel(&file, 1).write(0, &[1; 10]).unwrap();
        assert_eq!(content(&file), [1; 10]);
    }

    #[test]
    fn what_could_not_be_written_is_kept_and_tried_again() {
        let file = File::options().read(true).open("/dev/null").unwrap();
        let mut channel = channel(&file, 2);
        channel.write(0, &[1; 10]).unwrap();
        for _ in 0..2 {
            assert!(channel.write_gathered().is_err());
            assert!(channel.write(100, &[1; 10]).is_err());
            assert!(channel.make_readable(5, 1).is_err());
        }
    }
}
