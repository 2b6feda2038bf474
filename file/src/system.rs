//! What differs between operating systems: direct I/O, reserving room, giving it back.
//!
//! Linux has all of it. Elsewhere transfers go through the page cache, files are sparse, and
//! nothing is given back.

use std::fs::File;
use std::io;
use std::path::Path;

use rustix::io::Errno;

#[cfg(not(target_os = "linux"))]
use crate::opening::Kind;

/// What the file system wants of direct transfers; both are powers of two.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Alignment {
    /// For places in the file and lengths.
    pub(crate) offset: u32,
    /// For addresses in memory.
    pub(crate) memory: u32,
}

/// Makes what was written durable, the length of the file included.
pub(crate) fn flush(file: &File) -> Result<(), Errno> {
    #[cfg(target_os = "linux")]
    return rustix::io::retry_on_intr(|| rustix::fs::fdatasync(file));
    #[cfg(not(target_os = "linux"))]
    return file
        .sync_data()
        .map_err(|error| error.raw_os_error().map_or(Errno::IO, Errno::from_raw_os_error));
}

/// The error of a device for what the system reports.
pub(crate) fn driver(errno: Errno) -> device::Error {
    device::Error::Driver { code: errno.raw_os_error() }
}

/// Makes the name of a new file durable.
pub(crate) fn flush_folder_of(path: &Path) -> io::Result<()> {
    let folder = match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    };
    File::open(folder)?.sync_all()
}

/// The process that has locked `file`, where the system tells: Linux lists all locks.
#[must_use]
pub fn holder(file: &File) -> Option<u32> {
    #[cfg(target_os = "linux")]
    {
        use std::os::linux::fs::MetadataExt;
        let about = file.metadata().ok()?;
        let (major, minor) = (rustix::fs::major(about.st_dev()), rustix::fs::minor(about.st_dev()));
        let place = format!("{major:02x}:{minor:02x}:{}", about.st_ino());
        locker(&std::fs::read_to_string("/proc/locks").ok()?, &place)
    }
    #[cfg(not(target_os = "linux"))]
    {
        let _ = file;
        None
    }
}

/// The first process in `locks`, the text of `/proc/locks`, that holds a lock at `place`. Those
/// who wait for one have an arrow in their line.
#[cfg(target_os = "linux")]
fn locker(locks: &str, place: &str) -> Option<u32> {
    locks.lines().find_map(|line| {
        let words: Vec<_> = line.split_ascii_whitespace().collect();
        let [_, "FLOCK", _, _, process, file, ..] = words[..] else { return None };
        if file == place { process.parse().ok() } else { None }
    })
}

/// Makes a regular file at least so long, with room on the disk for all of it where the file system
/// can reserve room.
pub(crate) fn preallocate(file: &File, bytes: u64) -> io::Result<()> {
    #[cfg(target_os = "linux")]
    {
        use rustix::fs::{FallocateFlags, fallocate};
        let reserve = || fallocate(file, FallocateFlags::empty(), 0, bytes);
        match rustix::io::retry_on_intr(reserve) {
            Err(Errno::OPNOTSUPP | Errno::NOSYS) => {}
            other => return Ok(other?),
        }
    }
    file.set_len(bytes.max(file.metadata()?.len()))
}

/// Makes a regular file longer, from `from` to `to` bytes, with room for them where the file system
/// can reserve it. If there is none, the file is as long as before.
pub(crate) fn lengthen(file: &File, from: u64, to: u64) -> io::Result<()> {
    #[cfg(target_os = "linux")]
    {
        use rustix::fs::{FallocateFlags, fallocate};
        let reserve = || fallocate(file, FallocateFlags::empty(), from, to - from);
        match rustix::io::retry_on_intr(reserve) {
            Ok(()) => return Ok(()),
            Err(Errno::OPNOTSUPP | Errno::NOSYS) => {}
            Err(error) => {
                // A part of it may have been reserved; what counts is that there is too little.
                let _ = file.set_len(from);
                return Err(error.into());
            }
        }
    }
    file.set_len(to)
}

/// Gives room back; the bytes read as zeros after that. False if that is not possible here.
pub(crate) fn punch(file: &File, offset: u64, bytes: u64) -> Result<bool, Errno> {
    #[cfg(target_os = "linux")]
    {
        use rustix::fs::{FallocateFlags, fallocate};
        let flags = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
        let punched = rustix::io::retry_on_intr(|| fallocate(file, flags, offset, bytes));
        supported(punched)
    }
    #[cfg(not(target_os = "linux"))]
    {
        let _ = (file, offset, bytes);
        Ok(false)
    }
}

/// Fills a run of a block device with zeros. False if that is not possible here.
pub(crate) fn zero(file: &File, bytes: u64) -> Result<bool, Errno> {
    if punch(file, 0, bytes)? {
        return Ok(true);
    }
    #[cfg(target_os = "linux")]
    {
        use rustix::fs::{FallocateFlags, fallocate};
        let flags = FallocateFlags::ZERO_RANGE | FallocateFlags::KEEP_SIZE;
        supported(rustix::io::retry_on_intr(|| fallocate(file, flags, 0, bytes)))
    }
    #[cfg(not(target_os = "linux"))]
    Ok(false)
}

#[cfg(target_os = "linux")]
fn supported(result: Result<(), Errno>) -> Result<bool, Errno> {
    match result {
        Ok(()) => Ok(true),
        Err(Errno::OPNOTSUPP | Errno::NOSYS | Errno::NODEV | Errno::INVAL) => Ok(false),
        Err(errno) => Err(errno),
    }
}

/// Another handle of the same file, whose writes go to the page cache; none where the system gives
/// none.
pub(crate) fn cached(file: &File) -> Option<File> {
    #[cfg(target_os = "linux")]
    {
        use std::os::fd::AsRawFd;
        // The file itself, whatever its name is by now. A clone would share the flag for direct
        // transfers.
        File::options().write(true).open(format!("/proc/self/fd/{}", file.as_raw_fd())).ok()
    }
    #[cfg(not(target_os = "linux"))]
    file.try_clone().ok()
}

#[cfg(target_os = "linux")]
pub(crate) use linux::{direct, lower_direct};

#[cfg(target_os = "linux")]
mod linux {
    use std::fs::File;

    use rustix::fs::{AtFlags, OFlags, StatxFlags, fcntl_getfl, fcntl_setfl, fstatfs, statx};

    use super::Alignment;
    use crate::aligned::AlignedBuffer;
    use crate::opening::Kind;

    /// File systems that keep all in memory: they accept the flag and copy all the same.
    const IN_MEMORY: [u64; 2] = [0x0102_1994, 0x8584_58F6];

    /// The units that are tried where the file system does not tell its own.
    const TRIED: [u32; 3] = [512, 4096, 65_536];

    /// Switches direct I/O on, if the file system or block device has it. It must not be empty.
    pub(crate) fn direct(file: &File, kind: Kind) -> Option<Alignment> {
        let known = told(file);
        // The name of a block device is in a file system in memory too.
        let in_memory = kind == Kind::Regular && in_memory(file);
        if known.is_some_and(|alignment| alignment.is_none()) || in_memory {
            return None;
        }
        set_direct(file, true)?;
        let alignment = known.flatten().or_else(|| found_by_trying(file));
        if alignment.is_none() {
            lower_direct(file);
        }
        alignment
    }

    /// Switches direct I/O off again.
    pub(crate) fn lower_direct(file: &File) {
        // Clearing a flag can't fail on an open file, and buffered transfers work either way.
        let _ = set_direct(file, false);
    }

    fn set_direct(file: &File, on: bool) -> Option<()> {
        let mut flags = fcntl_getfl(file).ok()?;
        flags.set(OFlags::DIRECT, on);
        fcntl_setfl(file, flags).ok()
    }

    /// What the file system says: nothing, or that it has none, or its alignment.
    fn told(file: &File) -> Option<Option<Alignment>> {
        let about = statx(file, c"", AtFlags::EMPTY_PATH, StatxFlags::DIOALIGN).ok()?;
        if about.stx_mask & StatxFlags::DIOALIGN.bits() == 0 {
            return None;
        }
        let alignment =
            Alignment { offset: about.stx_dio_offset_align, memory: about.stx_dio_mem_align };
        let usable = alignment.offset.is_power_of_two() && alignment.memory.is_power_of_two();
        Some(usable.then_some(alignment))
    }

    fn in_memory(file: &File) -> bool {
        fstatfs(file).is_ok_and(|about| IN_MEMORY.contains(&(about.f_type as u64)))
    }

    /// The smallest unit in which the start of the file can be read.
    fn found_by_trying(file: &File) -> Option<Alignment> {
        TRIED.into_iter().find_map(|unit| {
            let mut buffer = AlignedBuffer::new(2 * unit as usize, 2 * unit as usize);
            // Not at a multiple of twice the unit, so that a larger unit does not pass.
            let into = &mut buffer.as_mut()[unit as usize..];
            let read = rustix::io::retry_on_intr(|| rustix::io::pread(file, &mut *into, 0));
            read.ok().map(|_| Alignment { offset: unit, memory: unit })
        })
    }
}

#[cfg(not(target_os = "linux"))]
pub(crate) fn direct(_file: &File, _kind: Kind) -> Option<Alignment> {
    None
}

#[cfg(not(target_os = "linux"))]
pub(crate) fn lower_direct(_file: &File) {}
