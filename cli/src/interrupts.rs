//! Ctrl-C. SIGTERM is taken as Ctrl-C is.

use std::process;
use std::sync::Arc;
use std::sync::atomic::{AtomicI32, Ordering};
use std::thread;

use signal_hook::consts::{SIGINT, SIGTERM, SIGXFSZ};
use signal_hook::iterator::Signals;

/// The signal that asked for an end; 0 before.
static INTERRUPTED: AtomicI32 = AtomicI32::new(0);

/// What is added to the number of the signal that ended a process, as a shell does.
const SIGNALLED: i32 = 128;

/// From here on the first Ctrl-C asks for a clean end; a second one ends the process at once.
pub(crate) fn catch_interrupts() {
    on_interrupt(|signal| {
        if INTERRUPTED.swap(signal, Ordering::SeqCst) != 0 {
            process::exit(SIGNALLED + signal);
        }
    });
}

/// From here on Ctrl-C ends the process, which `tell`s so: for what changes nothing and leaves
/// nothing behind.
pub(crate) fn end_at_interrupts(tell: impl Fn() + Send + 'static) {
    on_interrupt(move |signal| {
        tell();
        process::exit(SIGNALLED + signal);
    });
}

/// A write beyond the limit on the length of files (`ulimit -f`) fails from here on, as one to a
/// full disk does. Otherwise the system would end the process without a word.
pub(crate) fn fail_beyond_file_limits() {
    let _ = signal_hook::flag::register(SIGXFSZ, Arc::default());
}

/// Lets a thread call `handler` whenever an end is asked for.
fn on_interrupt(handler: impl Fn(i32) + Send + 'static) {
    // Without a handler Ctrl-C ends the process at once, as it does everywhere.
    let Ok(mut signals) = Signals::new([SIGINT, SIGTERM]) else { return };
    thread::spawn(move || signals.forever().for_each(&handler));
}

/// True after Ctrl-C.
pub(crate) fn interrupted() -> bool {
    INTERRUPTED.load(Ordering::SeqCst) != 0
}

/// The exit code of what was ended by a signal: 130 after Ctrl-C.
pub(crate) fn interrupted_code() -> u8 {
    let signal = match INTERRUPTED.load(Ordering::SeqCst) {
        0 => SIGINT,
        signal => signal,
    };
    u8::try_from(SIGNALLED + signal).unwrap_or(u8::MAX)
}
