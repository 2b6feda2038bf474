//! Several transfers between memory and a file at once.
//!
//! All unsafe code of this crate is in this module, for one reason: while a transfer is in
//! flight, the kernel or another thread reads or writes memory that belongs to the caller.
//!
//! Invariant: [`Flight`](flight::Flight) is the only one that starts transfers. It holds the
//! exclusive borrow of every piece of memory that is in flight, does not touch it, and does not
//! end, not even in a panic, before the last transfer has come back.

#![allow(unsafe_code, reason = "the kernel works on the caller's memory while a call waits")]

mod flight;
mod gathering;
mod piece;
mod pool;
#[cfg(target_os = "linux")]
mod ring;

use std::fs::File;
use std::io;
use std::sync::Arc;

use rustix::io::Errno;

pub(crate) use piece::{Piece, Way};

use crate::aligned::AlignedBuffer;
use crate::{EngineChoice, EngineKind};
use gathering::Gathered;

/// Which way bytes go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Direction {
    /// From the file into memory.
    Read,
    /// From memory into the file.
    Write,
}

/// One transfer to start.
#[derive(Clone, Copy, Debug)]
struct Order {
    /// Who waits for it.
    slot: usize,
    offset: u64,
    memory: *mut u8,
    length: u32,
    direction: Direction,
}

/// One transfer that came back.
#[derive(Clone, Copy, Debug)]
struct Completion {
    slot: usize,
    /// How many bytes went over: perhaps fewer than ordered.
    outcome: Result<usize, Errno>,
}

/// What carries out orders.
enum Engine {
    #[cfg(target_os = "linux")]
    Ring(Box<ring::Ring>),
    Pool(pool::Pool),
}

impl Engine {
    fn new(file: &Arc<File>, choice: EngineChoice, in_flight: u32) -> io::Result<Self> {
        if choice != EngineChoice::Threads {
            #[cfg(target_os = "linux")]
            let ring = ring::Ring::new(file, in_flight).map(|ring| Engine::Ring(Box::new(ring)));
            #[cfg(not(target_os = "linux"))]
            let ring = Err(io::ErrorKind::Unsupported.into());
            if ring.is_ok() || choice == EngineChoice::IoUring {
                return ring;
            }
        }
        Ok(Engine::Pool(pool::Pool::new(file, in_flight)))
    }

    const fn kind(&self) -> EngineKind {
        match self {
            #[cfg(target_os = "linux")]
            Engine::Ring(_) => EngineKind::IoUring,
            Engine::Pool(_) => EngineKind::Threads,
        }
    }

    /// Starts a transfer.
    ///
    /// # Safety
    /// The memory of the order stays valid, and nobody else touches it (for a write: changes it),
    /// until [`finish`](Engine::finish) has returned the order's slot.
    unsafe fn start(&mut self, order: Order) {
        match self {
            #[cfg(target_os = "linux")]
            // SAFETY: the caller keeps the same promise.
            Engine::Ring(ring) => unsafe { ring.start(order) },
            // SAFETY: the caller keeps the same promise.
            Engine::Pool(pool) => unsafe { pool.start(order) },
        }
    }

    /// Waits for one of the transfers in flight, of which there must be one.
    fn finish(&mut self) -> Completion {
        match self {
            #[cfg(target_os = "linux")]
            Engine::Ring(ring) => ring.finish(),
            Engine::Pool(pool) => pool.finish(),
        }
    }
}

/// How a [`Channel`] is made.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Shape {
    pub(crate) engine: EngineChoice,
    /// Transfers in flight, from 1 to [`crate::IN_FLIGHT_MOST`].
    pub(crate) in_flight: u32,
    /// What places in the file and lengths are multiples of.
    pub(crate) unit: u32,
    /// What addresses in memory are multiples of.
    pub(crate) memory: u32,
    /// Whether the memory of half of the transfers gathers small writes, up to 256 KiB of it.
    pub(crate) gathers: bool,
}

/// A file with what it takes to move pieces of it.
pub(crate) struct Channel {
    file: Arc<File>,
    engine: Engine,
    shape: Shape,
    bounce: AlignedBuffer,
    bounce_bytes: usize,
    /// What is gathered in the last bounce buffers.
    gathered: Gathered,
}

// Closing alone gives the lock back late if another thread is just starting a process, which holds
// a copy of every open file until it runs its own program: the disk could not be opened again.
impl Drop for Channel {
    fn drop(&mut self) {
        // Who wants to know flushes.
        let _ = self.write_gathered();
        let _ = self.file.unlock();
    }
}

impl Channel {
    /// Memory for a piece that is not aligned.
    const BOUNCE_BYTES: u32 = 32 << 10;

    pub(crate) fn new(file: File, shape: Shape) -> io::Result<Self> {
        let file = Arc::new(file);
        let engine = Engine::new(&file, shape.engine, shape.in_flight)?;
        let bounce_bytes = Self::BOUNCE_BYTES.max(shape.unit).max(shape.memory) as usize;
        let whole = bounce_bytes * shape.in_flight as usize;
        let bounce = AlignedBuffer::new(whole, shape.memory as usize);
        let gathered = Gathered::new(gathering::gathering_buffers(&shape));
        Ok(Channel { file, engine, shape, bounce, bounce_bytes, gathered })
    }

    pub(crate) fn file(&self) -> &File {
        &self.file
    }

    pub(crate) const fn kind(&self) -> EngineKind {
        self.engine.kind()
    }

    /// What pieces have to look like.
    pub(crate) const fn cutter(&self) -> piece::Cutter {
        piece::Cutter {
            unit: self.shape.unit as usize,
            memory: self.shape.memory as usize,
            bounce: self.bounce_bytes,
        }
    }

    /// Moves all pieces, several at once; stops starting new ones after the first failure.
    pub(crate) fn transfer<'b>(
        &'b mut self,
        mut pieces: impl Iterator<Item = Piece<'b>>,
    ) -> Result<(), Errno> {
        let unit = self.shape.unit as usize;
        let Some(first) = pieces.next() else {
            return Ok(());
        };
        let usable = self.shape.in_flight as usize - self.gathering_buffers();
        let bounces = self.bounce.as_mut().chunks_exact_mut(self.bounce_bytes).take(usable);
        match pieces.next() {
            None => {
                let bounce = bounces.into_iter().next().unwrap_or_default();
                flight::alone(&self.file, first, bounce, unit)
            }
            Some(second) => {
                let pieces = [first, second].into_iter().chain(pieces);
                flight::Flight::new(&mut self.engine, bounces, unit).fly(pieces)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::panic::{AssertUnwindSafe, catch_unwind};

    use super::{Channel, Shape};
    use crate::EngineChoice;

    const CONTENT: usize = 256 << 10;

    fn channel(engine: EngineChoice) -> Channel {
        let mut file = tempfile::tempfile().unwrap();
        let content: Vec<u8> = (0..CONTENT).map(|place| (place / 4096) as u8).collect();
        file.write_all(&content).unwrap();
        Channel::new(file, Shape { engine, in_flight: 8, unit: 1, memory: 1, gathers: false })
            .unwrap()
    }

    /// Reads all in 64 pieces; gives up with a panic before the last `left_out` of them.
    fn read(channel: &mut Channel, left_out: usize) -> Vec<u8> {
        let mut into = vec![0xEE; CONTENT];
        let cutter = channel.cutter();
        let pieces = into.chunks_mut(4096).enumerate().flat_map(|(number, into)| {
            assert!(number < 64 - left_out, "gives up");
            cutter.read(4096 * number as u64, into)
        });
        channel.transfer(pieces).unwrap();
        into
    }

    #[test]
    fn a_panic_between_transfers_leaves_none_in_flight() {
        for engine in [EngineChoice::Any, EngineChoice::Threads] {
            let mut channel = channel(engine);
            for left_out in [60, 50, 1] {
                let stopped = catch_unwind(AssertUnwindSafe(|| read(&mut channel, left_out)));
                assert!(stopped.is_err());
                // A transfer that came back late would be taken for one of these.
                let content = read(&mut channel, 0);
                assert!(
                    (0..).zip(content.chunks(4096)).all(|(number, chunk)| chunk == [number; 4096])
                );
            }
        }
    }
}
