//! Transfers by threads, each of which waits for one at a time.

use std::collections::VecDeque;
use std::fs::File;
use std::slice;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};

use rustix::io::{pread, pwrite};

use super::{Completion, Direction, Order};

/// The most threads. More of them would cost more in switching than they bring.
const THREADS_MOST: u32 = 16;

/// Threads that are started when they are first needed.
pub(super) struct Pool {
    shared: Arc<Shared>,
    threads: Vec<JoinHandle<()>>,
    threads_most: usize,
}

struct Shared {
    file: Arc<File>,
    queues: Mutex<Queues>,
    /// There is something to do, or the pool closes.
    work: Condvar,
    /// Something came back.
    finished: Condvar,
}

struct Queues {
    orders: VecDeque<Order>,
    completions: VecDeque<Completion>,
    /// Threads that wait for work.
    idle: usize,
    closing: bool,
}

// SAFETY: an order is a promise that its memory may be used by whoever carries it out, until it
// comes back (see `Engine::start`); nothing in it belongs to one thread.
unsafe impl Send for Order {}

impl Pool {
    pub(super) fn new(file: &Arc<File>, in_flight: u32) -> Self {
        let threads_most = in_flight.min(THREADS_MOST) as usize;
        let queues = Queues {
            orders: VecDeque::with_capacity(threads_most),
            completions: VecDeque::with_capacity(threads_most),
            idle: 0,
            closing: false,
        };
        let shared = Shared {
            file: Arc::clone(file),
            queues: Mutex::new(queues),
            work: Condvar::new(),
            finished: Condvar::new(),
        };
        Pool { shared: Arc::new(shared), threads: Vec::new(), threads_most }
    }

    /// Gives a transfer to a thread.
    ///
    /// # Safety
    /// As for [`Engine::start`](super::Engine::start).
    pub(super) unsafe fn start(&mut self, order: Order) {
        let waiting = {
            let mut queues = self.shared.lock();
            queues.orders.push_back(order);
            queues.orders.len() > queues.idle
        };
        if waiting && self.threads.len() < self.threads_most {
            let shared = Arc::clone(&self.shared);
            let name = "transfer".to_owned();
            // Without one more thread it only takes longer.
            if let Ok(thread) = thread::Builder::new().name(name).spawn(move || shared.serve()) {
                self.threads.push(thread);
            }
        }
        self.shared.work.notify_one();
    }

    /// Waits for a transfer; carries one out meanwhile that no thread has begun. So it also works
    /// if the system gives no thread.
    pub(super) fn finish(&mut self) -> Completion {
        let mut queues = self.shared.lock();
        loop {
            if let Some(completion) = queues.completions.pop_front() {
                return completion;
            }
            if let Some(order) = queues.orders.pop_front() {
                drop(queues);
                return self.shared.carry_out(order);
            }
            queues = self.shared.finished.wait(queues).unwrap_or_else(PoisonError::into_inner);
        }
    }
}

impl Drop for Pool {
    /// Ends the threads, so that the file is closed (and its lock given back) after this.
    fn drop(&mut self) {
        self.shared.lock().closing = true;
        self.shared.work.notify_all();
        for thread in self.threads.drain(..) {
            // A thread that panicked has ended too.
            let _ = thread.join();
        }
    }
}

impl Shared {
    /// The queues are whole at every moment, so a panic elsewhere does not matter.
    fn lock(&self) -> MutexGuard<'_, Queues> {
        self.queues.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What a thread does all its life.
    fn serve(&self) {
        let mut queues = self.lock();
        loop {
            if let Some(order) = queues.orders.pop_front() {
                drop(queues);
                let completion = self.carry_out(order);
                queues = self.lock();
                queues.completions.push_back(completion);
                // While orders wait, the starter has its hands full: waking it would cost more.
                if queues.orders.is_empty() {
                    self.finished.notify_one();
                }
            } else if queues.closing {
                return;
            } else {
                queues.idle += 1;
                queues = self.work.wait(queues).unwrap_or_else(PoisonError::into_inner);
                queues.idle -= 1;
            }
        }
    }

    fn carry_out(&self, order: Order) -> Completion {
        let Order { slot, offset, memory, length, direction } = order;
        let outcome = match direction {
            Direction::Read => {
                // SAFETY: whoever started the order promised that the memory is valid, that it is
                // this long, and that nobody else touches it until the order comes back.
                let into = unsafe { slice::from_raw_parts_mut(memory, length as usize) };
                pread(&self.file, into, offset)
            }
            Direction::Write => {
                // SAFETY: as above; nobody changes it until the order comes back.
                let from = unsafe { slice::from_raw_parts(memory, length as usize) };
                pwrite(&self.file, from, offset)
            }
        };
        Completion { slot, outcome }
    }
}
