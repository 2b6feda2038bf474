//! Numbers and byte strings, one after the other, little-endian.

/// Reads from the front of a slice; `None` where that is too short.
#[derive(Debug)]
pub struct Reader<'b> {
    rest: &'b [u8],
}

impl<'b> Reader<'b> {
    /// Reads `bytes`.
    #[must_use]
    pub const fn new(bytes: &'b [u8]) -> Self {
        Reader { rest: bytes }
    }

    /// The next `length` bytes.
    pub fn bytes(&mut self, length: usize) -> Option<&'b [u8]> {
        let (bytes, rest) = self.rest.split_at_checked(length)?;
        self.rest = rest;
        Some(bytes)
    }

    /// Bytes that were not read yet.
    #[must_use]
    pub const fn left(&self) -> usize {
        self.rest.len()
    }

    /// The next `N` bytes.
    pub fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        self.bytes(N)?.first_chunk().copied()
    }

    /// The next number of 32 bits.
    pub fn u32(&mut self) -> Option<u32> {
        self.array().map(u32::from_le_bytes)
    }

    /// The next number of 64 bits.
    pub fn u64(&mut self) -> Option<u64> {
        self.array().map(u64::from_le_bytes)
    }
}

/// Writes to the front of a slice, and remembers whether it was too short.
pub(crate) struct Writer<'b> {
    bytes: &'b mut [u8],
    length: usize,
}

impl<'b> Writer<'b> {
    pub(crate) fn new(bytes: &'b mut [u8]) -> Self {
        Writer { bytes, length: 0 }
    }

    pub(crate) fn bytes(&mut self, from: &[u8]) {
        let end = self.length + from.len();
        if let Some(into) = self.bytes.get_mut(self.length..end) {
            into.copy_from_slice(from);
        }
        self.length = end;
    }

    pub(crate) fn u32(&mut self, number: u32) {
        self.bytes(&number.to_le_bytes());
    }

    pub(crate) fn u64(&mut self, number: u64) {
        self.bytes(&number.to_le_bytes());
    }

    /// Bytes written, if there was room for all.
    pub(crate) fn written(&self) -> Option<usize> {
        (self.length <= self.bytes.len()).then_some(self.length)
    }
}
