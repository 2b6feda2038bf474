//! A database in a file whose requests are told to somebody who watches.

use std::error::Error;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use device::{Cause, Meter, Request, Sector, SectorGeometry, Sectors};
use file::{DiskOptions, FileDisk};
use flashtree::{Database, Medium, OpenOptions};

pub(crate) type Outcome<T> = Result<T, Box<dyn Error>>;

/// The most bytes that the file grows to.
pub(crate) const CAPACITY: u64 = 4 << 30;

/// Who watches a disk.
pub(crate) trait Watch: Send + Default + 'static {
    /// A read that began at `start` has ended.
    fn has_read(&mut self, _start: Instant, _cause: Cause) {}

    /// `bytes` bytes are about to be written at sector `first`.
    fn writes(&mut self, _first: Sector, _bytes: u64, _cause: Cause) {}

    /// A flush is asked for; false if it is not to be carried out.
    fn flushes(&mut self) -> bool {
        true
    }
}

/// What somebody saw so far, while the database is open.
pub(crate) struct Seen<W>(Arc<Mutex<W>>);

impl<W> Seen<W> {
    pub(crate) fn now(&self) -> MutexGuard<'_, W> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Opens the database at `path`, as `Database::open` does, with `W` watching its file.
pub(crate) fn open_watched<W: Watch>(
    path: &Path,
    open: &OpenOptions,
) -> Outcome<(Database<'static>, Seen<W>)> {
    let options = DiskOptions {
        sector_bytes: 4096,
        grows_to: Some(CAPACITY),
        gathers: true,
        ..DiskOptions::default()
    };
    let seen = Arc::new(Mutex::new(W::default()));
    let disk = Watched { disk: FileDisk::open(path, &options)?, watch: Arc::clone(&seen) };
    let medium = Medium::Sectors(Box::new(disk));
    Ok((Database::open_on(medium, open)?, Seen(seen)))
}

/// A disk that is watched.
struct Watched<W> {
    disk: FileDisk,
    watch: Arc<Mutex<W>>,
}

impl<W> Watched<W> {
    fn tell<R>(&self, what: impl FnOnce(&mut W) -> R) -> R {
        what(&mut self.watch.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl<W: Watch> Sectors for Watched<W> {
    fn geometry(&self) -> SectorGeometry {
        self.disk.geometry()
    }

    fn read(&mut self, requests: &mut [Request<'_>], cause: Cause) -> device::Result<()> {
        let start = Instant::now();
        let read = self.disk.read(requests, cause);
        self.tell(|watch| watch.has_read(start, cause));
        read
    }

    fn write(&mut self, first: Sector, from: &[u8], cause: Cause) -> device::Result<()> {
        self.tell(|watch| watch.writes(first, from.len() as u64, cause));
        self.disk.write(first, from, cause)
    }

    fn trim(&mut self, first: Sector, count: u64, cause: Cause) -> device::Result<()> {
        self.disk.trim(first, count, cause)
    }

    fn flush(&mut self, cause: Cause) -> device::Result<()> {
        if self.tell(W::flushes) { self.disk.flush(cause) } else { Ok(()) }
    }

    fn sectors_held(&self) -> Option<u64> {
        self.disk.sectors_held()
    }

    fn resize(&mut self, sectors: u64, cause: Cause) -> device::Result<()> {
        self.disk.resize(sectors, cause)
    }

    fn meter(&self) -> Option<&Meter> {
        self.disk.meter()
    }
}
