//! Copies of pages.

/// How much is copied at a time.
const PIECE_BYTES: usize = 1024;

/// Copies `from` to `into`, which is as long: the way to copy what may be a whole page.
///
/// Long copies are left to one instruction of the processor by most C libraries. Some processors
/// take 2.5 us for 4 KiB that way, instead of 0.1 us, if the target begins 1 to 63 bytes behind the
/// source in the low 12 bits of their addresses: and buffers of one page that are allocated one
/// after the other lie just so. Pieces of 1 KiB are copied in other ways, about as fast at best and
/// never slow.
///
/// # Panics
/// The lengths differ.
#[inline]
pub fn copy(into: &mut [u8], from: &[u8]) {
    if from.len() <= PIECE_BYTES {
        into.copy_from_slice(from);
        return;
    }
    assert_eq!(into.len(), from.len(), "a copy is as long as what is copied");
    for (into, from) in into.chunks_mut(PIECE_BYTES).zip(from.chunks(PIECE_BYTES)) {
        into.copy_from_slice(from);
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec;
    use alloc::vec::Vec;

    use super::{PIECE_BYTES, copy};

    #[test]
    fn all_bytes_are_copied_and_no_others() {
        let from: Vec<u8> = (0..3 * PIECE_BYTES + 5).map(|at| (at % 251) as u8).collect();
        for bytes in [0, 1, PIECE_BYTES - 1, PIECE_BYTES, PIECE_BYTES + 1, from.len()] {
            let mut into = vec![0xFF; from.len() + 2];
            copy(&mut into[1..=bytes], &from[..bytes]);
            assert_eq!(into[0], 0xFF);
            assert_eq!(into[1..=bytes], from[..bytes]);
            assert!(into[bytes + 1..].iter().all(|byte| *byte == 0xFF), "{bytes}");
        }
    }

    #[test]
    #[should_panic(expected = "as long as")]
    fn a_copy_of_another_length_is_refused() {
        copy(&mut [0; 2 * PIECE_BYTES], &[0; 2 * PIECE_BYTES + 1]);
    }
}
