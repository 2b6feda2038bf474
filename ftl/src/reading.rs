//! Reading pages that may be damaged.

use device::{Cause, Error, Nand, Page, Result};

use crate::spare::{self, DataCheck, Found, Metadata};

/// How often a page is read before it counts as unreadable: flips come and go.
const TRIES: u32 = 3;

/// Reads a page, again if more bits flipped than can be corrected.
pub(crate) fn read_patiently<N: Nand>(
    nand: &mut N,
    page: Page,
    offset: u32,
    (into, spare): (&mut [u8], &mut [u8]),
    cause: Cause,
) -> Result<u16> {
    for _ in 1..TRIES {
        match nand.read(page, offset, into, spare, cause) {
            Err(Error::Uncorrectable { .. }) => {}
            read => return read,
        }
    }
    nand.read(page, offset, into, spare, cause)
}

/// Whether a page could be read: false if more bits flipped than can be corrected.
pub(crate) fn readable(read: Result<u16>) -> Result<bool> {
    match read {
        Ok(_) => Ok(true),
        Err(Error::Uncorrectable { .. }) => Ok(false),
        Err(error) => Err(error),
    }
}

/// Reads the first bytes of `page` to open a disk; false if it cannot be read.
pub(crate) fn can_read<N: Nand>(nand: &mut N, page: Page, into: &mut [u8]) -> Result<bool> {
    readable(read_patiently(nand, page, 0, (into, &mut []), Cause::Recovery))
}

/// The metadata in the spare area of `page`, read to open a disk.
pub(crate) fn read_spare<N: Nand>(nand: &mut N, page: Page) -> Result<Found> {
    let mut bytes = [0; spare::BYTES];
    let read = read_patiently(nand, page, 0, (&mut [], &mut bytes), Cause::Recovery);
    if !readable(read)? {
        return Ok(Found::Damaged);
    }
    Ok(Metadata::decode(&bytes, page))
}

/// The metadata of `page`, read to open a disk: where its spare area is damaged, as the page behind
/// it in its block echoes it. A page that is echoed was programmed in full.
pub(crate) fn read_metadata<N: Nand>(nand: &mut N, page: Page) -> Result<Found> {
    match read_spare(nand, page)? {
        Found::Damaged => read_echo(nand, page, Cause::Recovery),
        found => Ok(found),
    }
}

/// The metadata of `page` as the page behind it in its block echoes it, or [`Found::Damaged`].
pub(crate) fn read_echo<N: Nand>(nand: &mut N, page: Page, cause: Cause) -> Result<Found> {
    let geometry = nand.geometry();
    let behind = Page(page.0 + 1);
    let is_last = behind.0.is_multiple_of(geometry.pages_per_block());
    let mut area = [0; spare::ECHOED];
    if is_last
        || (geometry.spare_bytes() as usize) < spare::ECHOED
        || !readable(read_patiently(nand, behind, 0, (&mut [], &mut area), cause))?
    {
        return Ok(Found::Damaged);
    }
    let mut echo = [0; spare::BYTES];
    echo.copy_from_slice(&area[spare::BYTES..]);
    Ok(match Metadata::decode(&echo, page) {
        Found::Page(metadata) => Found::Page(metadata),
        _ => Found::Damaged,
    })
}

/// Whether the data of `page` is what was programmed with its metadata; read to open a disk.
pub(crate) fn intact<N: Nand>(
    nand: &mut N,
    page: Page,
    metadata: Metadata,
    buffer: &mut [u8],
) -> Result<bool> {
    Ok(can_read(nand, page, buffer)? && DataCheck::of(buffer) == metadata.data)
}
