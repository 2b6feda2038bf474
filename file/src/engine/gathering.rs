//! Small writes, gathered and then written several at once.
//!
//! A page of a tree is written at a time, in the order of the pages where many are. Those that
//! stand one behind the other become one **run**: the system takes about as long for 4 KiB as for
//! 32. The others become runs of their own, which are on their way to the file together.
//!
//! Invariants:
//! - What is gathered is not in the file yet, or only a part of it; it is forgotten only when all
//!   of it is. So a write that failed is tried again, and nothing is read as it was before.
//! - No two runs overlap, so they may reach the file in any order.

use rustix::io::Errno;

use super::{Channel, Piece, Shape, Way, flight};

/// The most bounce buffers that gather, which are 256 KiB.
const BUFFERS_MOST: u32 = 8;

/// The most runs for each of them: those of single pages of 4 KiB that fill it.
const RUNS_EACH: usize = 8;

/// A run of bytes of the file.
#[derive(Clone, Copy, Debug, Default)]
struct Run {
    offset: u64,
    bytes: usize,
}

impl Run {
    const fn end(self) -> u64 {
        self.offset + self.bytes as u64
    }

    const fn overlaps(self, offset: u64, bytes: usize) -> bool {
        offset < self.end() && self.offset < offset + bytes as u64
    }
}

/// Runs whose bytes stand one behind the other in the last of the bounce buffers.
#[derive(Debug, Default)]
pub(super) struct Gathered {
    runs: Vec<Run>,
    bytes: usize,
}

impl Gathered {
    /// Room for the runs of so many bounce buffers.
    pub(super) fn new(buffers: usize) -> Self {
        Gathered { runs: Vec::with_capacity(RUNS_EACH * buffers), bytes: 0 }
    }

    fn overlaps(&self, offset: u64, bytes: usize) -> bool {
        self.runs.iter().any(|run| run.overlaps(offset, bytes))
    }

    /// True if bytes of the file from `offset` on can come to the last run.
    fn ends_at(&self, offset: u64) -> bool {
        self.runs.last().is_some_and(|run| run.end() == offset)
    }

    fn clear(&mut self) {
        self.runs.clear();
        self.bytes = 0;
    }
}

/// Bounce buffers of a channel of this shape that gather.
pub(super) const fn gathering_buffers(shape: &Shape) -> usize {
    let half = shape.in_flight / 2;
    let buffers = if half < BUFFERS_MOST { half } else { BUFFERS_MOST };
    if shape.gathers { buffers as usize } else { 0 }
}

impl Channel {
    /// Bounce buffers that gather small writes; none where only one transfer is in flight.
    pub(super) const fn gathering_buffers(&self) -> usize {
        gathering_buffers(&self.shape)
    }

    /// Writes whole units at byte `offset`, or gathers them.
    pub(crate) fn write(&mut self, offset: u64, from: &[u8]) -> Result<(), Errno> {
        let buffers = self.gathering_buffers();
        if from.len() >= self.bounce_bytes || buffers == 0 {
            self.write_gathered()?;
            let pieces = self.cutter().write(offset, from);
            return self.transfer(pieces);
        }
        if !self.has_room(offset, from.len()) {
            self.write_gathered()?;
        }
        let start = self.gathered.bytes;
        let first = self.bounce_bytes * (self.shape.in_flight as usize - buffers) + start;
        self.bounce.as_mut()[first..first + from.len()].copy_from_slice(from);
        match self.gathered.runs.last_mut().filter(|run| run.end() == offset) {
            Some(run) => run.bytes += from.len(),
            None => self.gathered.runs.push(Run { offset, bytes: from.len() }),
        }
        self.gathered.bytes += from.len();
        Ok(())
    }

    /// True if so many bytes at `offset` can come to what is gathered.
    fn has_room(&self, offset: u64, bytes: usize) -> bool {
        let gathered = &self.gathered;
        let begins = gathered.runs.len() < RUNS_EACH * self.gathering_buffers()
            && gathered.bytes.is_multiple_of(self.shape.memory as usize);
        gathered.bytes + bytes <= self.bounce_bytes * self.gathering_buffers()
            && !gathered.overlaps(offset, bytes)
            && (gathered.ends_at(offset) || begins)
    }

    /// Writes what is gathered, if part of it will be read.
    pub(crate) fn make_readable(&mut self, offset: u64, bytes: usize) -> Result<(), Errno> {
        if self.gathered.overlaps(offset, bytes) {
            return self.write_gathered();
        }
        Ok(())
    }

    /// Writes what is gathered.
    pub(crate) fn write_gathered(&mut self) -> Result<(), Errno> {
        if self.gathered.runs.is_empty() {
            return Ok(());
        }
        let unit = self.shape.unit as usize;
        let free = self.bounce_bytes * (self.shape.in_flight as usize - self.gathering_buffers());
        let (bounces, mut rest) = self.bounce.as_mut().split_at_mut(free);
        let runs = self.gathered.runs.iter();
        let mut pieces = runs.map(|Run { offset, bytes }| {
            let (now, later) = core::mem::take(&mut rest).split_at_mut(*bytes);
            rest = later;
            Piece { offset: *offset, length: *bytes, way: Way::Write(now) }
        });
        match (pieces.len(), pieces.next()) {
            (1, Some(only)) => flight::alone(&self.file, only, &mut [], unit)?,
            (_, first) => {
                let slots = bounces.chunks_exact_mut(self.bounce_bytes);
                flight::Flight::new(&mut self.engine, slots, unit)
                    .fly(first.into_iter().chain(pieces))?;
            }
        }
        self.gathered.clear();
        Ok(())
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
    fn runs_that_do_not_touch_go_to_the_file_together() {
        for in_flight in [2, 4, 16] {
            let file = tempfile::tempfile().unwrap();
            let mut channel = channel(&file, in_flight);
            for page in [5, 1, 2, 0, 7] {
                channel.write(page * 512, &[page as u8; 512]).unwrap();
            }
            assert_eq!(content(&file), []);
            // Between two of them there is nothing to wait for.
            channel.make_readable(6 * 512, 512).unwrap();
            assert_eq!(content(&file), []);
            channel.make_readable(2 * 512, 1).unwrap();
            let pages = [0, 1, 2, 0, 0, 5, 0, 7].map(|page| [page; 512]);
            assert_eq!(content(&file), pages.concat());
        }
    }

    #[test]
    fn no_more_is_gathered_than_there_is_room_for() {
        let file = tempfile::tempfile().unwrap();
        let mut channel = channel(&file, 16);
        for place in 0..200u64 {
            channel.write(place * 8192, &[place as u8; 4096]).unwrap();
        }
        // 64 runs, and 256 KiB, are written three times.
        assert_eq!(content(&file).len(), 191 * 8192 + 4096);
        channel.write_gathered().unwrap();
        let bytes = content(&file);
        assert!((0..200).all(|place| bytes[place * 8192..][..4096] == [place as u8; 4096]));
    }

    #[test]
    fn what_overlaps_or_does_not_fit_goes_behind_what_came_before() {
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
            assert!(channel.write(5, &[1; 10]).is_err());
            assert!(channel.make_readable(5, 1).is_err());
        }
    }
}
