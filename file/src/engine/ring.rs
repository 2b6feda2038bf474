//! Transfers through io_uring.

use std::collections::VecDeque;
use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use io_uring::{IoUring, Probe, opcode, squeue, types};
use rustix::io::Errno;

use super::{Completion, Direction, Order};

/// A pair of queues that is shared with the kernel.
pub(super) struct Ring {
    ring: IoUring,
    file: Arc<File>,
    /// The slots of transfers that the kernel has not taken yet, oldest first.
    queued: VecDeque<usize>,
    /// Why the kernel takes no more; it is not asked again.
    broken: Option<Errno>,
}

/// How long to wait between looks at what the kernel gives back, where it can't be waited for.
const PAUSE: Duration = Duration::from_micros(200);

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
        let queued = VecDeque::with_capacity(in_flight as usize + 1);
        Ok(Ring { ring, file: Arc::clone(file), queued, broken: None })
    }

    /// Queues a transfer; [`finish`](Ring::finish) hands it to the kernel.
    ///
    /// # Safety
    /// As for [`Engine::start`](super::Engine::start).
    pub(super) unsafe fn start(&mut self, order: Order) {
        let entry = self.entry(order);
        // SAFETY: the caller keeps the memory valid and untouched until the transfer comes back.
        while self.broken.is_none() && unsafe { self.ring.submission().push(&entry) }.is_err() {
            // The queue has a place for each slot, so this only happens if it was not handed over.
            self.enter(0);
        }
        self.queued.push_back(order.slot);
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
            match self.broken {
                None => self.enter(1),
                Some(errno) => match self.queued.pop_front() {
                    Some(slot) => return Completion { slot, outcome: Err(errno) },
                    // What the kernel took it gives back without being asked.
                    None => thread::sleep(PAUSE),
                },
            }
        }
    }

    /// Hands over what is queued, and waits for `wanted` transfers.
    ///
    /// A signal, no memory for the moment and a full queue pass. After anything else the kernel is
    /// not asked again: what it has not taken comes back with the error.
    fn enter(&mut self, wanted: usize) {
        if let Err(error) = self.ring.submit_and_wait(wanted) {
            match Errno::from_io_error(&error) {
                Some(Errno::INTR | Errno::AGAIN | Errno::BUSY) => thread::yield_now(),
                errno => self.broken = Some(errno.unwrap_or(Errno::IO)),
            }
        }
        let left = self.ring.submission().len();
        while self.queued.len() > left {
            self.queued.pop_front();
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

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::mem::ManuallyDrop;
    use std::os::fd::{FromRawFd, OwnedFd};

    use super::*;

    #[test]
    fn transfers_that_the_kernel_does_not_take_come_back_with_its_error() {
        let file = Arc::new(tempfile::tempfile().unwrap());
        let Ok(mut ring) = Ring::new(&file, 4) else {
            return;
        };
        let null = File::open("/dev/null").unwrap();
        // SAFETY: the number stays the ring's own; only what it leads to is another file, in which
        // the kernel finds no ring.
        let mut number = ManuallyDrop::new(unsafe { OwnedFd::from_raw_fd(ring.ring.as_raw_fd()) });
        rustix::io::dup2(&null, &mut number).unwrap();
        let mut memory = [0; 16];
        for slot in 0..8 {
            let memory = memory.as_mut_ptr();
            let order = Order { slot, offset: 0, memory, length: 16, direction: Direction::Read };
            // SAFETY: the memory outlives every transfer.
            unsafe { ring.start(order) };
        }
        for slot in 0..8 {
            let Completion { slot: found, outcome } = ring.finish();
            assert_eq!(found, slot);
            assert!(outcome.is_err(), "{outcome:?}");
        }
    }
}
