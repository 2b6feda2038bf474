//! Numbers and byte strings, one after the other, little-endian.

/// Reads from the front of a slice; `None` where that is too short.
pub(super) struct Reader<'b> {
    rest: &'b [u8],
}

impl<'b> Reader<'b> {
    pub(super) fn new(bytes: &'b [u8]) -> Self {
        Reader { rest: bytes }
    }

    pub(super) fn bytes(&mut self, length: usize) -> Option<&'b [u8]> {
        let (bytes, rest) = self.rest.split_at_checked(length)?;
        self.rest = rest;
        Some(bytes)
    }

    /// Bytes that were not read yet.
    pub(super) fn left(&self) -> usize {
        self.rest.len()
    }

    pub(super) fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        self.bytes(N)?.first_chunk().copied()
    }

    pub(super) fn u32(&mut self) -> Option<u32> {
        self.array().map(u32::from_le_bytes)
    }

    pub(super) fn u64(&mut self) -> Option<u64> {
        self.array().map(u64::from_le_bytes)
    }
}

/// Writes to the front of a slice, and remembers whether it was too short.
pub(super) struct Writer<'b> {
    bytes: &'b mut [u8],
    length: usize,
}

impl<'b> Writer<'b> {
    pub(super) fn new(bytes: &'b mut [u8]) -> Self {
        Writer { bytes, length: 0 }
    }

    pub(super) fn bytes(&mut self, from: &[u8]) {
        let end = self.length + from.len();
        if let Some(into) = self.bytes.get_mut(self.length..end) {
            into.copy_from_slice(from);
        }
        self.length = end;
    }

    pub(super) fn u32(&mut self, number: u32) {
        self.bytes(&number.to_le_bytes());
    }

    pub(super) fn u64(&mut self, number: u64) {
        self.bytes(&number.to_le_bytes());
    }

    /// Bytes written, if there was room for all.
    pub(super) fn written(&self) -> Option<usize> {
        (self.length <= self.bytes.len()).then_some(self.length)
    }
}
