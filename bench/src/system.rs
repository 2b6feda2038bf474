//! What the system counts of this process, and what files take.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::thread::sleep;
use std::time::{Duration, Instant};

use crate::Outcome;

/// Bytes that this process had the disk move, by all of its threads.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Moved {
    /// Read from the disk, what the system read ahead included.
    pub read: u64,
    /// Written, or made dirty in the page cache.
    pub written: u64,
}

impl Moved {
    /// All so far, by `/proc/self/io`.
    ///
    /// # Errors
    /// A system that has no such file.
    pub fn so_far() -> Outcome<Self> {
        let text = fs::read_to_string("/proc/self/io")?;
        let count = |name| figure(&text, name).ok_or("/proc/self/io counts no bytes");
        Ok(Moved { read: count("read_bytes:")?, written: count("write_bytes:")? })
    }

    /// What was moved since `self`.
    ///
    /// # Errors
    /// As [`Moved::so_far`].
    pub fn since(self) -> Outcome<Self> {
        let now = Moved::so_far()?;
        Ok(Moved { read: now.read - self.read, written: now.written - self.written })
    }
}

/// The most memory that this process has had resident, in bytes.
///
/// # Errors
/// A system that has no `/proc/self/status`.
pub fn peak_memory() -> Outcome<u64> {
    let text = fs::read_to_string("/proc/self/status")?;
    Ok(figure(&text, "VmHWM:").ok_or("/proc/self/status has no VmHWM")? * 1024)
}

/// The first number behind `name`.
#[must_use]
pub fn figure(text: &str, name: &str) -> Option<u64> {
    let line = text.lines().find(|line| line.starts_with(name))?;
    line[name.len()..].split_whitespace().next()?.parse().ok()
}

/// Bytes of the disk that the files of `folder` take.
///
/// # Errors
/// A folder or file that can't be read.
pub fn bytes_taken(folder: &Path) -> Outcome<u64> {
    let mut bytes = 0;
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let metadata = entry.metadata()?;
        bytes += match metadata.is_dir() {
            true => bytes_taken(&entry.path())?,
            false => metadata.blocks() * 512,
        };
    }
    Ok(bytes)
}

/// Waits until other threads of this process write nothing and compute nothing for half a second,
/// or `limit` is over. Returns how long they were busy, and whether they came to an end.
///
/// # Errors
/// As [`Moved::so_far`].
pub fn wait_until_quiet(limit: Duration) -> Outcome<(Duration, bool)> {
    let start = Instant::now();
    let mut busy = Duration::ZERO;
    let mut last = (Moved::so_far()?, ticks()?);
    while start.elapsed() < limit {
        sleep(Duration::from_millis(50));
        let now = (Moved::so_far()?, ticks()?);
        // This loop itself takes a tick at times.
        if now.0 != last.0 || now.1 > last.1 + 1 {
            busy = start.elapsed();
        }
        last = now;
        if start.elapsed() >= busy + Duration::from_millis(500) {
            return Ok((busy, true));
        }
    }
    Ok((busy, false))
}

/// Time of processors that this process took, in the system's ticks.
fn ticks() -> Outcome<u64> {
    let text = fs::read_to_string("/proc/self/stat")?;
    // Behind the name, which may have blanks: the 12th and 13th fields.
    let (_, fields) = text.rsplit_once(')').ok_or("/proc/self/stat is of another form")?;
    let mut ticks = fields.split_whitespace().skip(11).take(2);
    let mut next = || -> Outcome<u64> { Ok(ticks.next().ok_or("too short")?.parse()?) };
    Ok(next()? + next()?)
}
