//! The file that a device lives in.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

use file::Existing;

/// Bytes that the operating system counts as moved between this process and storage. What the
/// page cache answers does not count as read, and what it keeps counts as written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct SystemBytes {
    pub(crate) read: u64,
    pub(crate) written: u64,
}

impl SystemBytes {
    /// The count until now, where the system keeps one.
    pub(crate) fn now() -> Option<Self> {
        Self::parse(&fs::read_to_string("/proc/self/io").ok()?)
    }

    fn parse(text: &str) -> Option<Self> {
        let number = |name: &str| {
            let mut lines = text.lines().filter_map(|line| line.split_once(": "));
            lines.find(|(found, _)| *found == name)?.1.trim().parse().ok()
        };
        Some(SystemBytes { read: number("read_bytes")?, written: number("write_bytes")? })
    }

    /// What was added since an earlier count.
    pub(crate) const fn since(self, earlier: SystemBytes) -> SystemBytes {
        SystemBytes {
            read: self.read.saturating_sub(earlier.read),
            written: self.written.saturating_sub(earlier.written),
        }
    }
}

/// A file or block device in which a device of kind `D` is made: once before a comparison, so that
/// what can be refused is refused before anything runs, and anew for each tree.
///
/// Invariant: only a file that was made here is ever taken away.
#[derive(Debug)]
pub(crate) struct Home<D> {
    path: PathBuf,
    existing: Existing,
    made_here: AtomicBool,
    ready: Mutex<Option<Box<D>>>,
}

impl<D> Home<D> {
    /// A device at `path`; a file that is not ours is replaced only with `overwrite`.
    pub(crate) fn new(path: &str, overwrite: bool) -> Self {
        Home {
            path: PathBuf::from(path),
            existing: if overwrite { Existing::Overwrite } else { Existing::ReplaceOurs },
            made_here: AtomicBool::new(false),
            ready: Mutex::new(None),
        }
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Keeps a device, locked, for the next [`make`](Home::make).
    pub(crate) fn keep(&self, device: Box<D>) {
        if let Ok(mut ready) = self.ready.lock() {
            *ready = Some(device);
        }
    }

    /// A new device, by means of `create`.
    pub(crate) fn make(
        &self,
        create: impl Fn(&Path, Existing) -> file::Result<D>,
    ) -> file::Result<Box<D>> {
        if let Some(device) = self.take() {
            return Ok(device);
        }
        match create(&self.path, Existing::Keep) {
            Err(file::Error::Exists { .. }) => create(&self.path, self.existing).map(Box::new),
            Ok(device) => {
                self.made_here.store(true, Ordering::Relaxed);
                Ok(Box::new(device))
            }
            Err(other) => Err(other),
        }
    }

    /// Takes the file away, if it was made here.
    pub(crate) fn discard(&self) {
        drop(self.take());
        if self.made_here.swap(false, Ordering::Relaxed) {
            // What is reported is why it is of no use; that it is still there would be less.
            let _ = fs::remove_file(&self.path);
        }
    }

    /// True if there is a regular file now.
    pub(crate) fn has_file(&self) -> bool {
        fs::metadata(&self.path).is_ok_and(|about| about.is_file())
    }

    fn take(&self) -> Option<Box<D>> {
        self.ready.lock().ok().and_then(|mut ready| ready.take())
    }
}

#[cfg(test)]
mod tests {
    use super::SystemBytes;

    #[test]
    fn the_counts_of_storage_are_read_and_not_those_of_calls() {
        let text = "rchar: 1\nwchar: 2\nsyscr: 3\nsyscw: 4\nread_bytes: 4096\n\
                    write_bytes: 8192\ncancelled_write_bytes: 7\n";
        let bytes = SystemBytes { read: 4096, written: 8192 };
        assert_eq!(SystemBytes::parse(text), Some(bytes));
        assert_eq!(bytes.since(SystemBytes { read: 96, written: 0 }).read, 4000);
        for broken in ["", "read_bytes: 1\n", "read_bytes: x\nwrite_bytes: 1\n"] {
            assert_eq!(SystemBytes::parse(broken), None);
        }
    }
}
