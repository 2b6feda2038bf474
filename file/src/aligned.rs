//! Memory that starts at a multiple of a given number of bytes.

/// Bytes in memory whose address is a multiple of an alignment.
pub(crate) struct AlignedBuffer {
    bytes: Box<[u8]>,
    start: usize,
    length: usize,
}

impl AlignedBuffer {
    /// `length` zeros at a multiple of `alignment`, which is a power of two.
    pub(crate) fn new(length: usize, alignment: usize) -> Self {
        let bytes = vec![0; length + alignment].into_boxed_slice();
        let start = bytes.as_ptr().addr().wrapping_neg() & (alignment - 1);
        AlignedBuffer { bytes, start, length }
    }

    pub(crate) fn as_mut(&mut self) -> &mut [u8] {
        &mut self.bytes[self.start..self.start + self.length]
    }
}

/// True if `bytes` lie at a multiple of `alignment`, which is a power of two.
pub(crate) fn is_aligned(bytes: &[u8], alignment: usize) -> bool {
    bytes.as_ptr().addr() & (alignment - 1) == 0
}

#[cfg(test)]
mod tests {
    use super::{AlignedBuffer, is_aligned};

    #[test]
    fn a_buffer_lies_at_a_multiple_of_its_alignment() {
        for alignment in [1, 2, 512, 4096, 1 << 20] {
            let mut buffer = AlignedBuffer::new(5000, alignment);
            assert_eq!(buffer.as_mut().len(), 5000);
            assert!(is_aligned(buffer.as_mut(), alignment));
            assert!(alignment == 1 || !is_aligned(&buffer.as_mut()[1..], alignment));
        }
    }
}
