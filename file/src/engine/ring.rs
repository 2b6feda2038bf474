//! Transfers through io_uring.

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::sync::Arc;

use io_uring::{IoUring, Probe, opcode, squeue, types};
use rustix::io::Errno;

use super::{Completion, Direction, Order};

/// A pair of queues that is shared with the kernel.
pub(super) struct Ring {
    ring: IoUring,
    file: Arc<File>,
}

impl Ring {
    /// Queues for `in_flight` transfers.
    ///
    /// # Errors
    /// The kernel has no io_uring, forbids it, or has one that can't read and write.
    pub(super) fn new(file: &Arc<File>, in_flight: u32) -> io::Result<Self> {
        let ring = IoUring::new(in_flight.next_power_of_two())?;
        let mut probe = Probe::new();
        ring.submitter().register_probe(&mut probe)?;
        let able = [opcode::Read::CODE, opcode::Write::CODE];
        if !able.into_iter().all(|code| probe.is_supported(code)) {
            return Err(io::ErrorKind::Unsupported.into());
        }
        Ok(Ring { ring, file: Arc::clone(file) })
    }

    /// Queues a transfer; [`finish`](Ring::finish) hands it to the kernel.
    ///
    /// # Safety
    /// As for [`Engine::start`](super::Engine::start).
    pub(super) unsafe fn start(&mut self, order: Order) {
        let entry = self.entry(order);
        // SAFETY: the caller keeps the memory valid and untouched until the transfer comes back.
        while unsafe { self.ring.submission().push(&entry) }.is_err() {
            // The queue has a place for each slot, so this only happens if it was not handed over.
            self.enter(0);
        }
    }

    /// Waits for a transfer.
    pub(super) fn finish(&mut self) -> Completion {
        loop {
            if let Some(entry) = self.ring.completion().next() {
                let outcome = match entry.result() {
                    bytes @ 0.. => Ok(bytes.unsigned_abs() as usize),
                    code => Err(Errno::from_raw_os_error(code.wrapping_neg())),
                };
                return Completion { slot: entry.user_data() as usize, outcome };
            }
            self.enter(1);
        }
    }

    /// Hands over what is queued, and waits for `wanted` transfers.
    ///
    /// What the kernel reports here passes: a signal, or no memory for the moment. Memory that is
    /// in flight must not be given back, so there is nothing to do but to try again.
    fn enter(&mut self, wanted: usize) {
        if self.ring.submit_and_wait(wanted).is_err() {
            std::thread::yield_now();
        }
    }

    fn entry(&self, order: Order) -> squeue::Entry {
        let file = types::Fd(self.file.as_raw_fd());
        let Order { slot, offset, memory, length, direction } = order;
        let entry = match direction {
            Direction::Read => opcode::Read::new(file, memory, length).offset(offset).build(),
            Direction::Write => opcode::Write::new(file, memory, length).offset(offset).build(),
        };
        entry.user_data(slot as u64)
    }
}
