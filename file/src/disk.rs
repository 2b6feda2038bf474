//! A disk out of a file or block device.

use std::fmt;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::time::Instant;

use device::{
    Cause, Charge, Error as DeviceError, Meter, Operation, Request, Result as DeviceResult, Sector,
    SectorGeometry, Sectors,
};
use rustix::io::Errno;

use crate::engine::{Channel, Shape};
use crate::flusher::Flusher;
use crate::opening::{self, Kind, Opened};
use crate::{
    Buffered, Direct, DiskOptions, EngineKind, Error, IN_FLIGHT_MOST, Result, Transfer, system,
};

/// What stands at byte 4 of a superblock of a page file.
const PAGE_FILE_MAGIC: &[u8] = b"flshtree";

/// A disk in a regular file or on a block device, whose sectors lie one after the other from its
/// first byte on.
///
/// - It is **locked** while it is open. A file keeps its length, or [grows](DiskOptions::grows_to).
/// - Transfers go **directly** between memory and disk where the file system can do that:
///   [`transfer`](FileDisk::transfer) tells. Memory that lies at a multiple of
///   [`SectorGeometry::alignment`] then needs no copy; other memory is copied through a buffer.
/// - The requests of one [`read`](Sectors::read), and the parts of a long read or write, are in
///   flight **at once**: [`engine`](FileDisk::engine) tells by which means.
/// - Small writes can be **gathered**: [`DiskOptions::gathers`].
/// - [`trim`](Sectors::trim) gives room back to the file system or block device, where these can
///   take it. Writing there again needs room again.
/// - The **meter** holds wall-clock time: each call is booked once, with the sectors that it
///   touched and the nanoseconds until it returned. Flush and trim take time and move no bytes;
///   erases can't be seen, the energy is not known.
/// - After a **flush that failed** nobody knows what is on the disk (the system drops what it
///   could not write): writes and flushes are refused with the same code until it is opened again.
///
/// Errors of the system are [`device::Error::Driver`] with its code (errno).
pub struct FileDisk {
    geometry: SectorGeometry,
    /// The same with the sectors that there is room for.
    room: SectorGeometry,
    /// True if that changes.
    grows: bool,
    channel: Channel,
    /// The same file through the page cache, for the journal.
    cached: Option<File>,
    journal_cached: bool,
    transfer: Transfer,
    can_trim: bool,
    flusher: Flusher,
    meter: Meter,
}

impl FileDisk {
    /// Makes a disk of `bytes` bytes and opens it.
    ///
    /// A regular file gets all its room at once where the file system can reserve it. Of a block
    /// device the first `bytes` bytes are used, and filled with zeros first, which may take long;
    /// one that is mounted is never used.
    ///
    /// # Errors
    /// The options or the size can't be used, something exists at `path` that
    /// [`DiskOptions::existing`] does not give up, it is in use, or the system refuses.
    pub fn create(path: &Path, bytes: u64, options: &DiskOptions) -> Result<Self> {
        let geometry = geometry(bytes, options)?;
        let opened = opening::make(path, options.existing, options.recognises)?;
        if opened.kind == Kind::BlockDevice && opened.bytes < bytes {
            return Err(Error::TooSmall { path: path.to_owned(), have: opened.bytes, need: bytes });
        }
        opening::filled(path, &opened, || prepare(path, &opened, bytes))?;
        Self::start(path, opened, geometry, options)
    }

    /// Opens a disk that exists, as large as the file or block device is.
    ///
    /// # Errors
    /// The options can't be used; there is no such file; it is neither a file nor a block device,
    /// or no whole number of sectors; it is in use; the system refuses.
    pub fn open(path: &Path, options: &DiskOptions) -> Result<Self> {
        check_in_flight(options)?;
        let mut opened = opening::open(path)?;
        if opened.kind == Kind::BlockDevice {
            // What remains at its end can't be used.
            opened.bytes -= opened.bytes % u64::from(options.sector_bytes.max(1));
        }
        let room = geometry(opened.bytes, options)?;
        let most = options.grows_to.filter(|_| opened.kind == Kind::Regular);
        let mut disk = Self::start(path, opened, room, options)?;
        if let Some(most) = most {
            let alignment = disk.geometry.alignment();
            disk.geometry = geometry(most, options)?.with_alignment(alignment)?;
            disk.room = disk.room_for(disk.room.sectors().min(disk.geometry.sectors()))?;
            disk.grows = true;
        }
        Ok(disk)
    }

    fn start(
        path: &Path,
        opened: Opened,
        geometry: SectorGeometry,
        options: &DiskOptions,
    ) -> Result<Self> {
        let transfer = choose_transfer(&opened, options);
        let (unit, memory) = match transfer {
            Transfer::Direct { offset_alignment, memory_alignment } => {
                (offset_alignment, memory_alignment)
            }
            Transfer::Buffered(reason) if options.direct == Direct::Required => {
                return Err(Error::NotDirect { path: path.to_owned(), reason });
            }
            Transfer::Buffered(_) => (1, 1),
        };
        let shape = Shape {
            engine: options.engine,
            in_flight: options.in_flight,
            unit,
            memory,
            gathers: options.gathers,
        };
        let geometry = geometry.with_alignment(memory)?;
        let cached = options.journal_cached.then(|| system::cached(&opened.file)).flatten();
        Ok(FileDisk {
            geometry,
            room: geometry,
            grows: false,
            channel: Channel::new(opened.file, shape).map_err(Error::NoRing)?,
            cached,
            journal_cached: options.journal_cached,
            transfer,
            can_trim: true,
            flusher: Flusher::default(),
            meter: Meter::new(0, false),
        })
    }

    /// How bytes go between memory and file: directly, or why not.
    #[must_use]
    pub const fn transfer(&self) -> Transfer {
        self.transfer
    }

    /// What keeps several transfers in flight.
    #[must_use]
    pub const fn engine(&self) -> EngineKind {
        self.channel.kind()
    }

    /// The shape of the disk with room for so many sectors.
    fn room_for(&self, sectors: u64) -> DeviceResult<SectorGeometry> {
        let room = SectorGeometry::new(self.geometry.sector_bytes(), sectors)?;
        room.with_alignment(self.geometry.alignment())
    }

    /// Books a call that started at `start`.
    fn book(&mut self, operation: Operation, cause: Cause, moved: Moved, start: Instant) {
        let charge = Charge { time_ns: nanoseconds_since(start), energy_pj: 0 };
        self.meter.book(operation, cause, moved.sectors, moved.bytes, charge);
    }
}

/// What a call moved.
#[derive(Clone, Copy, Default)]
struct Moved {
    sectors: u64,
    bytes: u64,
}

impl Sectors for FileDisk {
    fn geometry(&self) -> SectorGeometry {
        self.geometry
    }

    fn read(&mut self, requests: &mut [Request<'_>], cause: Cause) -> DeviceResult<()> {
        let start = Instant::now();
        let geometry = self.room;
        let mut moved = Moved::default();
        for request in requests.iter() {
            geometry.check_bytes(request.first, request.offset, request.into.len())?;
            moved.sectors += sectors_touched(&geometry, request);
            moved.bytes += request.into.len() as u64;
        }
        for request in requests.iter() {
            let offset = position(&geometry, request.first, request.offset);
            self.channel.make_readable(offset, request.into.len()).map_err(system::driver)?;
        }
        let cutter = self.channel.cutter();
        let pieces = requests.iter_mut().flat_map(|request| {
            cutter.read(position(&geometry, request.first, request.offset), &mut *request.into)
        });
        self.channel.transfer(pieces).map_err(system::driver)?;
        self.book(Operation::Read, cause, moved, start);
        Ok(())
    }

    fn write(&mut self, first: Sector, from: &[u8], cause: Cause) -> DeviceResult<()> {
        let start = Instant::now();
        self.room.check_run(first, from.len())?;
        self.flusher.check()?;
        let offset = position(&self.geometry, first, 0);
        let is_single = from.len() == self.geometry.sector_bytes() as usize;
        match &self.cached {
            Some(cached) if cause == Cause::Journal && is_single => {
                // What is gathered of this sector is older.
                self.channel.make_readable(offset, from.len()).map_err(system::driver)?;
                let written = cached.write_all_at(from, offset);
                written.map_err(|error| system::driver(errno_of(&error)))?;
            }
            _ => self.channel.write(offset, from).map_err(system::driver)?,
        }
        if self.journal_cached && self.cached.is_none() && cause == Cause::Journal {
            self.channel.write_gathered().map_err(system::driver)?;
        }
        let bytes = from.len() as u64;
        let sectors = bytes / u64::from(self.geometry.sector_bytes());
        self.book(Operation::Program, cause, Moved { sectors, bytes }, start);
        Ok(())
    }

    fn trim(&mut self, first: Sector, count: u64, cause: Cause) -> DeviceResult<()> {
        let start = Instant::now();
        let sectors = self.room.sectors();
        if first.0 >= sectors {
            return Err(DeviceError::NoSuchSector { sector: first, sectors });
        }
        if count > sectors - first.0 {
            return Err(DeviceError::NoSuchSector { sector: Sector(sectors), sectors });
        }
        self.channel.write_gathered().map_err(system::driver)?;
        if count > 0 && self.can_trim {
            let bytes = count * u64::from(self.geometry.sector_bytes());
            let offset = position(&self.geometry, first, 0);
            self.can_trim =
                system::punch(self.channel.file(), offset, bytes).map_err(system::driver)?;
        }
        self.book(Operation::Program, cause, Moved::default(), start);
        Ok(())
    }

    fn flush(&mut self, cause: Cause) -> DeviceResult<()> {
        let start = Instant::now();
        self.flusher.check()?;
        self.channel.write_gathered().map_err(system::driver)?;
        self.flusher.flush(self.channel.file())?;
        self.book(Operation::Program, cause, Moved::default(), start);
        Ok(())
    }

    fn sectors_held(&self) -> Option<u64> {
        self.grows.then_some(self.room.sectors())
    }

    fn resize(&mut self, sectors: u64, cause: Cause) -> DeviceResult<()> {
        let most = self.geometry.sectors();
        if !self.grows || sectors == self.room.sectors() {
            return Ok(());
        }
        if sectors > most {
            return Err(DeviceError::NoSuchSector { sector: Sector(most), sectors: most });
        }
        let start = Instant::now();
        let room = self.room_for(sectors)?;
        self.channel.write_gathered().map_err(system::driver)?;
        let (held, file) = (self.room.bytes(), self.channel.file());
        let resized = match room.bytes() > held {
            true => system::lengthen(file, held, room.bytes()),
            false => file.set_len(room.bytes()),
        };
        resized.map_err(|error| system::driver(errno_of(&error)))?;
        self.room = room;
        self.book(Operation::Program, cause, Moved::default(), start);
        Ok(())
    }

    fn meter(&self) -> Option<&Meter> {
        Some(&self.meter)
    }
}

impl fmt::Debug for FileDisk {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FileDisk")
            .field("geometry", &self.geometry)
            .field("transfer", &self.transfer)
            .field("engine", &self.engine())
            .finish_non_exhaustive()
    }
}

/// Tells from the first bytes of a file or block device whether it holds a page file: one of its
/// two superblocks stands in sector 0 or in sector 1, of whatever size.
#[must_use]
pub fn is_page_file(head: &[u8]) -> bool {
    let superblock_at = |start: usize| {
        head.get(start + 4..).is_some_and(|after| after.starts_with(PAGE_FILE_MAGIC))
    };
    superblock_at(0) || (6..=20).any(|power| superblock_at(1 << power))
}

/// What the system does not number is an error of input and output.
fn errno_of(error: &io::Error) -> Errno {
    error.raw_os_error().map_or(Errno::IO, Errno::from_raw_os_error)
}

fn check_in_flight(options: &DiskOptions) -> Result<()> {
    match options.in_flight {
        1..=IN_FLIGHT_MOST => Ok(()),
        asked => Err(Error::InFlight { asked, most: IN_FLIGHT_MOST }),
    }
}

fn geometry(bytes: u64, options: &DiskOptions) -> Result<SectorGeometry> {
    check_in_flight(options)?;
    let unit = options.sector_bytes;
    // A sector size that can't be used is reported before a length that does not fit it.
    SectorGeometry::new(unit, 1)?;
    if bytes == 0 || !bytes.is_multiple_of(u64::from(unit)) {
        return Err(Error::Length { bytes, unit });
    }
    Ok(SectorGeometry::new(unit, bytes / u64::from(unit))?)
}

/// Gives a new disk its length and zeros.
fn prepare(path: &Path, opened: &Opened, bytes: u64) -> Result<()> {
    match opened.kind {
        Kind::Regular => opening::fill_with_zeros(path, opened, bytes),
        Kind::BlockDevice => match system::zero(&opened.file, bytes) {
            Ok(true) => Ok(()),
            Ok(false) => Err(Error::io("fill with zeros", path)(Errno::OPNOTSUPP)),
            Err(errno) => Err(Error::io("fill with zeros", path)(errno)),
        },
    }
}

fn choose_transfer(opened: &Opened, options: &DiskOptions) -> Transfer {
    if options.direct == Direct::Never {
        return Transfer::Buffered(Buffered::Asked);
    }
    let Some(alignment) = system::direct(&opened.file, opened.kind) else {
        return Transfer::Buffered(Buffered::FileSystem);
    };
    if !options.sector_bytes.is_multiple_of(alignment.offset) {
        system::lower_direct(&opened.file);
        return Transfer::Buffered(Buffered::Sectors { unit: alignment.offset });
    }
    Transfer::Direct { offset_alignment: alignment.offset, memory_alignment: alignment.memory }
}

/// The byte of the file where `offset` bytes after the start of `first` is; both were checked.
fn position(geometry: &SectorGeometry, first: Sector, offset: u32) -> u64 {
    first.0 * u64::from(geometry.sector_bytes()) + u64::from(offset)
}

/// How many sectors a request reads from.
fn sectors_touched(geometry: &SectorGeometry, request: &Request<'_>) -> u64 {
    let sector = u64::from(geometry.sector_bytes());
    match request.into.len() as u64 {
        0 => 0,
        length => {
            let start = u64::from(request.offset) % sector;
            (start + length).div_ceil(sector)
        }
    }
}

/// Nanoseconds from `start` to now.
pub(crate) fn nanoseconds_since(start: Instant) -> u64 {
    u64::try_from(start.elapsed().as_nanos()).unwrap_or(u64::MAX)
}
