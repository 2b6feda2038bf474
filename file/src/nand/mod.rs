//! Raw NAND, imitated in a file.

mod layout;
mod state;

use std::fmt;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::time::Instant;

use device::{
    Block, Cause, Charge, Cost, Error as DeviceError, Geometry, Meter, Nand, Operation, Page,
    Result as DeviceResult,
};
use rustix::io::Errno;

pub use layout::is_nand_file;
use layout::{HEADER_BYTES, Layout};
use state::{PageState, Spare, States};

use crate::disk::nanoseconds_since;
use crate::flusher::Flusher;
use crate::opening::{self, Kind, Opened};
use crate::{Durability, Error, HeaderFault, NandOptions, Result};

/// A NAND chip in a regular file, with the rules of a real one.
///
/// - It enforces what the simulated chip enforces, with the same errors: a page that is not
///   erased, out of order, or programmed too often; a bad block; pages, blocks and bytes that do
///   not exist.
/// - Data, spare areas, what was programmed how often, and bad marks are in the file. It is
///   **locked** while it is open.
/// - A **program** writes the bytes first and then, in one small write, what is known of the page.
///   An **erase** clears what is known of the pages of its block and leaves their bytes. So after
///   the process was killed at any moment at most the page or block under way differs. What a
///   power cut of the machine leaves is the choice of [`NandOptions::durability`].
/// - A page of which the file says something **senseless** (it was damaged) can't be read
///   ([`device::Error::Uncorrectable`]) or programmed until its block is erased;
///   [`damaged_pages`](NandFile::damaged_pages) counts them. The bytes of pages have no checksum:
///   those who write them have their own.
/// - The **meter** charges the costs in [`NandOptions::costs`], as the simulated chip does; or,
///   without costs, the time by the clock, which mostly shows the page cache. Erases of each block
///   are those since the file was opened.
///
/// In memory it takes 8 bytes a page and 9 bytes a block.
pub struct NandFile {
    file: File,
    geometry: Geometry,
    layout: Layout,
    states: States,
    bad: Vec<bool>,
    /// Room for a page with its spare area.
    scratch: Box<[u8]>,
    options: NandOptions,
    flusher: Flusher,
    meter: Meter,
}

impl NandFile {
    /// Makes a chip on which nothing was done and no block is bad, and opens it.
    ///
    /// The file gets all its room at once where the file system can reserve it.
    ///
    /// # Errors
    /// The chip is too large; something exists at `path` that [`NandOptions::existing`] does not
    /// give up, or that is a block device; it is in use; the system refuses.
    pub fn create(path: &Path, geometry: Geometry, options: &NandOptions) -> Result<Self> {
        let layout = Layout::new(&geometry).map_err(in_header(path))?;
        Self::check_memory(path, geometry, options)?;
        let opened = opening::make(path, options.existing, options.recognises)?;
        check_regular(path, &opened)?;
        opening::filled(path, &opened, || prepare(path, &opened, &geometry, &layout))?;
        Self::load(path, opened.file, geometry, layout, options)
    }

    /// Opens a chip that exists.
    ///
    /// # Errors
    /// There is no such file, it is no NAND file or a damaged one, it is in use, or the system
    /// refuses.
    pub fn open(path: &Path, options: &NandOptions) -> Result<Self> {
        let opened = opening::open(path)?;
        check_regular(path, &opened)?;
        if opened.bytes < HEADER_BYTES as u64 {
            return Err(in_header(path)(HeaderFault::Magic));
        }
        let mut header = [0; HEADER_BYTES];
        opened.file.read_exact_at(&mut header, 0).map_err(Error::io("read", path))?;
        let geometry = layout::decode(&header).map_err(in_header(path))?;
        let layout = Layout::new(&geometry).map_err(in_header(path))?;
        if layout.bytes != opened.bytes {
            let fault = HeaderFault::Length { expected: layout.bytes, found: opened.bytes };
            return Err(in_header(path)(fault));
        }
        Self::check_memory(path, geometry, options)?;
        Self::load(path, opened.file, geometry, layout, options)
    }

    /// Bytes of memory that a chip of this geometry takes: the states of its pages, the marks and
    /// the books of its blocks, and a page.
    #[must_use]
    pub fn memory_bytes(geometry: Geometry) -> u64 {
        let page = u64::from(geometry.page_bytes()) + u64::from(geometry.spare_bytes());
        8 * u64::from(geometry.pages()) + 9 * u64::from(geometry.blocks()) + page
    }

    /// Refuses a chip that takes more memory than it may: before any is taken, for the header of a
    /// file may say anything.
    fn check_memory(path: &Path, geometry: Geometry, options: &NandOptions) -> Result<()> {
        let (have, need) = (options.memory_most, Self::memory_bytes(geometry));
        match need > have {
            true => Err(in_header(path)(HeaderFault::Memory { have, need })),
            false => Ok(()),
        }
    }

    /// Reads marks and states.
    fn load(
        path: &Path,
        file: File,
        geometry: Geometry,
        layout: Layout,
        options: &NandOptions,
    ) -> Result<Self> {
        let mut bad = Vec::new();
        let mut states = States::new(geometry);
        let blocks = u64::from(geometry.blocks());
        let state_bytes = u64::from(geometry.pages()) * PageState::BYTES as u64;
        scan(&file, Layout::MARKS, blocks, |marks| {
            bad.extend(marks.iter().map(|mark| *mark != 0));
        })
        .and_then(|()| scan(&file, layout.state(Page(0)), state_bytes, |part| states.add(part)))
        .map_err(Error::io("read", path))?;
        let energy_known = options.costs.is_some_and(|costs| costs.energy_known());
        let scratch = vec![0; (geometry.page_bytes() + geometry.spare_bytes()) as usize];
        Ok(NandFile {
            file,
            geometry,
            layout,
            states,
            bad,
            scratch: scratch.into_boxed_slice(),
            options: *options,
            flusher: Flusher::default(),
            meter: Meter::new(geometry.blocks(), energy_known),
        })
    }

    /// Pages of which the file said something senseless when it was opened.
    #[must_use]
    pub const fn damaged_pages(&self) -> u32 {
        self.states.unknown()
    }

    /// Makes all operations so far survive a power cut of the machine.
    ///
    /// # Errors
    /// [`device::Error::Driver`] with the system's code.
    pub fn sync(&mut self) -> DeviceResult<()> {
        self.flusher.flush(&self.file)
    }

    /// Makes an operation durable, if that is wanted.
    fn settle(&mut self) -> DeviceResult<()> {
        match self.options.durability {
            Durability::Process => Ok(()),
            Durability::Power => self.flusher.flush(&self.file),
        }
    }

    /// Refuses a program that a rule of the chip forbids.
    fn check_program(
        &self,
        page: Page,
        offset: u32,
        data: &[u8],
        spare: &[u8],
    ) -> DeviceResult<()> {
        self.geometry.check_page(page)?;
        self.geometry.check_bytes(offset, data.len(), spare.len())?;
        if data.is_empty() && spare.is_empty() {
            let limit = self.geometry.page_bytes();
            return Err(DeviceError::BadLength { offset, length: 0, limit });
        }
        self.check_usable(self.geometry.block_of(page))?;
        self.states.check_program(page, offset, data, spare)
    }

    /// Refuses a block in which nothing can be programmed or erased.
    fn check_usable(&self, block: Block) -> DeviceResult<()> {
        match self.bad[block.0 as usize] {
            true => Err(DeviceError::BadBlock { block }),
            false => self.flusher.check(),
        }
    }

    /// Writes the bytes of a program. What lies between the last part and this one, and behind
    /// the given spare bytes, becomes `0xFF`.
    fn write_bytes(
        &mut self,
        page: Page,
        offset: u32,
        data: &[u8],
        spare: &[u8],
    ) -> io::Result<()> {
        let at = self.layout.page(page);
        let (area, offset) = (self.geometry.page_bytes() as usize, offset as usize);
        if !data.is_empty() {
            let filled = self.states.get(page).filled as usize;
            let end = offset + data.len();
            self.scratch[filled..offset].fill(0xFF);
            self.scratch[offset..end].copy_from_slice(data);
            self.file.write_all_at(&self.scratch[filled..end], at + filled as u64)?;
        }
        if !spare.is_empty() {
            let (given, rest) = self.scratch[area..].split_at_mut(spare.len());
            given.copy_from_slice(spare);
            rest.fill(0xFF);
            self.file.write_all_at(&self.scratch[area..], at + area as u64)?;
        }
        Ok(())
    }

    /// Clears what is known of the pages of a block.
    fn write_erase(&self, first: Page) -> io::Result<()> {
        const ZEROS: [u8; 4096] = [0; 4096];
        let mut at = self.layout.state(first);
        let mut left = self.geometry.pages_per_block() as usize * PageState::BYTES;
        while left > 0 {
            let part = left.min(ZEROS.len());
            self.file.write_all_at(&ZEROS[..part], at)?;
            at += part as u64;
            left -= part;
        }
        Ok(())
    }

    /// Books an operation that started at `start`, at its costs or by the clock.
    fn book(&mut self, operation: Operation, cause: Cause, bytes: u64, start: Instant) {
        let charge = match &self.options.costs {
            Some(costs) => {
                let cost: &Cost = match operation {
                    Operation::Read => &costs.read,
                    Operation::Program => &costs.program,
                    Operation::Erase => &costs.erase,
                };
                cost.charge(bytes, 1)
            }
            None => Charge { time_ns: nanoseconds_since(start), energy_pj: 0 },
        };
        self.meter.book(operation, cause, 1, bytes, charge);
    }
}

// Each operation has the same steps: check (nothing changes), write the file, note it, book it.
impl Nand for NandFile {
    fn geometry(&self) -> Geometry {
        self.geometry
    }

    fn read(
        &mut self,
        page: Page,
        offset: u32,
        into: &mut [u8],
        spare: &mut [u8],
        cause: Cause,
    ) -> DeviceResult<u16> {
        let start = Instant::now();
        self.geometry.check_page(page)?;
        self.geometry.check_bytes(offset, into.len(), spare.len())?;
        let state = self.states.get(page);
        if state.is_unknown() {
            return Err(DeviceError::Uncorrectable { page });
        }
        let at = self.layout.page(page);
        let known = state.filled.saturating_sub(offset) as usize;
        let (programmed, erased) = into.split_at_mut(known.min(into.len()));
        self.file.read_exact_at(programmed, at + u64::from(offset)).map_err(code_of)?;
        erased.fill(0xFF);
        match state.spare {
            Spare::Programmed => {
                let area = at + u64::from(self.geometry.page_bytes());
                self.file.read_exact_at(spare, area).map_err(code_of)?;
            }
            _ => spare.fill(0xFF),
        }
        self.book(Operation::Read, cause, (into.len() + spare.len()) as u64, start);
        Ok(0)
    }

    fn program(
        &mut self,
        page: Page,
        offset: u32,
        data: &[u8],
        spare: &[u8],
        cause: Cause,
    ) -> DeviceResult<()> {
        let start = Instant::now();
        self.check_program(page, offset, data, spare)?;
        let state = self.states.get(page).after(offset, data, spare);
        self.write_bytes(page, offset, data, spare)
            .and_then(|()| self.file.write_all_at(&state.encode(page), self.layout.state(page)))
            .map_err(code_of)?;
        self.states.set(page, state);
        self.settle()?;
        self.book(Operation::Program, cause, (data.len() + spare.len()) as u64, start);
        Ok(())
    }

    fn erase(&mut self, block: Block, cause: Cause) -> DeviceResult<()> {
        let start = Instant::now();
        self.geometry.check_block(block)?;
        self.check_usable(block)?;
        let first = self.geometry.first_page(block);
        self.write_erase(first).map_err(code_of)?;
        self.states.erase(first);
        self.settle()?;
        self.book(Operation::Erase, cause, 0, start);
        self.meter.wear(block);
        Ok(())
    }

    fn is_bad(&mut self, block: Block) -> DeviceResult<bool> {
        self.geometry.check_block(block)?;
        Ok(self.bad[block.0 as usize])
    }

    fn mark_bad(&mut self, block: Block) -> DeviceResult<()> {
        self.geometry.check_block(block)?;
        self.file.write_all_at(&[1], self.layout.mark(block)).map_err(code_of)?;
        self.bad[block.0 as usize] = true;
        self.settle()
    }

    fn meter(&self) -> Option<&Meter> {
        Some(&self.meter)
    }
}

// Closing alone gives the lock back late if another thread is just starting a process, which holds
// a copy of every open file until it runs its own program: the chip could not be opened again.
impl Drop for NandFile {
    fn drop(&mut self) {
        let _ = self.file.unlock();
    }
}

impl fmt::Debug for NandFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("NandFile").field("geometry", &self.geometry).finish_non_exhaustive()
    }
}

fn in_header(path: &Path) -> impl FnOnce(HeaderFault) -> Error {
    move |fault| Error::Header { path: path.to_owned(), fault }
}

fn check_regular(path: &Path, opened: &Opened) -> Result<()> {
    match opened.kind {
        Kind::Regular => Ok(()),
        Kind::BlockDevice => Err(Error::NotRegular { path: path.to_owned() }),
    }
}

/// Makes a file of zeros, and then a chip of it by its header.
fn prepare(path: &Path, opened: &Opened, geometry: &Geometry, layout: &Layout) -> Result<()> {
    opening::fill_with_zeros(path, opened, layout.bytes)?;
    let file = &opened.file;
    file.sync_all().map_err(Error::io("flush", path))?;
    file.write_all_at(&layout::encode(geometry), 0).map_err(Error::io("write", path))
}

/// Hands `bytes` bytes from place `at` of the file on to `take`, in parts of whole 4096 bytes.
fn scan(file: &File, mut at: u64, bytes: u64, mut take: impl FnMut(&[u8])) -> io::Result<()> {
    let end = at + bytes;
    let mut buffer = vec![0; 64 << 10];
    while at < end {
        let part = buffer.len().min(usize::try_from(end - at).unwrap_or(usize::MAX));
        file.read_exact_at(&mut buffer[..part], at)?;
        take(&buffer[..part]);
        at += part as u64;
    }
    Ok(())
}

/// The system's code; a file that was cut off under us has none of its own.
fn code_of(error: io::Error) -> DeviceError {
    DeviceError::Driver { code: error.raw_os_error().unwrap_or(Errno::IO.raw_os_error()) }
}
