//! The checksum of pages: CRC-32C over the page's own address and its bytes.
//!
//! Because the address is part of it, a page that was written to the wrong place, or read from it,
//! fails its check although its bytes are whole.

use crate::{Error, LogicalPage, Result};

/// Bytes that a checksum takes at the start of a page.
pub(crate) const BYTES: usize = 4;

/// The checksum of `bytes` at `address`.
pub(crate) fn of(address: u64, bytes: &[u8]) -> u32 {
    device::checksum(&[&address.to_le_bytes(), bytes])
}

/// The checksum that `page` of the page file `identity` should begin with.
pub(crate) fn of_page(identity: u64, address: LogicalPage, page: &[u8]) -> u32 {
    of(identity ^ u64::from(address.0), page.get(BYTES..).unwrap_or_default())
}

/// Writes the checksum of `page` of the page file `identity` into its first bytes.
pub(crate) fn seal(identity: u64, address: LogicalPage, page: &mut [u8]) {
    let checksum = of_page(identity, address, page);
    if let Some(head) = page.first_chunk_mut::<BYTES>() {
        *head = checksum.to_le_bytes();
    }
}

/// Refuses a page whose first bytes are not its checksum: also one of another page file.
pub(crate) fn verify(identity: u64, address: LogicalPage, page: &[u8]) -> Result<()> {
    let Some(head) = page.first_chunk::<BYTES>() else {
        return Err(Error::DamagedPage { page: address, what: "it is too short" });
    };
    let (expected, found) = (u32::from_le_bytes(*head), of_page(identity, address, page));
    if expected != found {
        return Err(Error::CorruptPage { page: address, expected, found });
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::{seal, verify};
    use crate::LogicalPage;

    #[test]
    fn a_page_that_lies_elsewhere_changed_or_is_another_files_is_refused() {
        let mut page = [7u8; 128];
        seal(9, LogicalPage(3), &mut page);
        assert!(verify(9, LogicalPage(3), &page).is_ok());
        assert!(verify(9, LogicalPage(4), &page).is_err());
        assert!(verify(8, LogicalPage(3), &page).is_err());
        for byte in 0..page.len() {
            page[byte] ^= 0x10;
            assert!(verify(9, LogicalPage(3), &page).is_err(), "byte {byte}");
            page[byte] ^= 0x10;
        }
        assert!(verify(9, LogicalPage(3), &[]).is_err());
    }
}
