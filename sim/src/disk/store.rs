//! The sectors of a disk that hold data.

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use device::SectorGeometry;

/// Bytes in a chunk, the unit in which memory is taken; a larger sector is a chunk of its own.
const CHUNK_BYTES: u64 = 16 << 10;

/// The contents of a disk; what was never written is zeros and takes no memory.
#[derive(Clone, Debug)]
pub(crate) struct Store {
    chunk_bytes: u64,
    sector_bytes: u64,
    chunks: HashMap<u64, Box<[u8]>>,
}

impl Store {
    pub(crate) fn new(geometry: &SectorGeometry) -> Self {
        let sector_bytes = u64::from(geometry.sector_bytes());
        Store { chunk_bytes: CHUNK_BYTES.max(sector_bytes), sector_bytes, chunks: HashMap::new() }
    }

    pub(crate) const fn sector_bytes(&self) -> usize {
        self.sector_bytes as usize
    }

    /// Bytes of memory that the contents take.
    pub(crate) fn memory(&self) -> u64 {
        self.chunks.len() as u64 * self.chunk_bytes
    }

    /// Splits `length` bytes from byte `start` on at the borders of chunks: number of the chunk,
    /// where in it the piece starts, and where in the run.
    fn pieces(&self, start: u64, length: usize) -> impl Iterator<Item = Piece> + use<> {
        let chunk_bytes = self.chunk_bytes;
        let mut done = 0;
        std::iter::from_fn(move || {
            let at = start + done as u64;
            let within = (at % chunk_bytes) as usize;
            let length = (length - done).min(chunk_bytes as usize - within);
            let piece = Piece { chunk: at / chunk_bytes, within, run: done, length };
            done += length;
            (length > 0).then_some(piece)
        })
    }

    /// Reads bytes from byte `start` of the disk on.
    pub(crate) fn read(&self, start: u64, into: &mut [u8]) {
        for piece in self.pieces(start, into.len()) {
            let target = &mut into[piece.run..piece.run + piece.length];
            match self.chunks.get(&piece.chunk) {
                Some(chunk) => {
                    device::copy(target, &chunk[piece.within..piece.within + piece.length]);
                }
                None => target.fill(0),
            }
        }
    }

    /// Writes bytes from byte `start` of the disk on.
    pub(crate) fn write(&mut self, start: u64, from: &[u8]) {
        for piece in self.pieces(start, from.len()) {
            let chunk = match self.chunks.entry(piece.chunk) {
                Entry::Occupied(chunk) => chunk.into_mut(),
                Entry::Vacant(place) => {
                    place.insert(vec![0; self.chunk_bytes as usize].into_boxed_slice())
                }
            };
            let source = &from[piece.run..piece.run + piece.length];
            device::copy(&mut chunk[piece.within..piece.within + piece.length], source);
        }
    }

    /// The sector `sector`.
    pub(crate) fn sector(&self, sector: u64) -> Box<[u8]> {
        let mut bytes = vec![0; self.sector_bytes()].into_boxed_slice();
        self.read(sector * self.sector_bytes, &mut bytes);
        bytes
    }

    pub(crate) fn put_sector(&mut self, sector: u64, bytes: &[u8]) {
        self.write(sector * self.sector_bytes, bytes);
    }

    /// Of `count` sectors from `first` on those that may hold something else than zeros, in
    /// ascending order.
    pub(crate) fn held(&self, first: u64, count: u64) -> Vec<u64> {
        let each = self.chunk_bytes / self.sector_bytes;
        let end = first + count;
        let chunks = first / each..end.div_ceil(each);
        let mut found: Vec<u64> = if chunks.end - chunks.start < self.chunks.len() as u64 {
            chunks.filter(|chunk| self.chunks.contains_key(chunk)).collect()
        } else {
            self.chunks.keys().copied().filter(|chunk| chunks.contains(chunk)).collect()
        };
        found.sort_unstable();
        let sectors = |chunk: u64| (chunk * each).max(first)..((chunk + 1) * each).min(end);
        found.into_iter().flat_map(sectors).collect()
    }

    /// Gives back the memory of chunks within `count` sectors from `first` on and zeros the rest.
    pub(crate) fn clear(&mut self, first: u64, count: u64) {
        let each = self.chunk_bytes / self.sector_bytes;
        let end = first + count;
        let zeros = vec![0; self.sector_bytes()];
        for sector in self.held(first, count) {
            let chunk = sector / each;
            if chunk * each >= first && (chunk + 1) * each <= end {
                self.chunks.remove(&chunk);
            } else {
                self.put_sector(sector, &zeros);
            }
        }
    }
}

/// A part of a run of bytes that lies in one chunk.
struct Piece {
    chunk: u64,
    within: usize,
    run: usize,
    length: usize,
}

#[cfg(test)]
mod tests {
    use device::SectorGeometry;

    use super::Store;

    #[test]
    fn a_run_may_lie_anywhere_and_what_was_cleared_takes_no_memory() {
        let geometry = SectorGeometry::new(512, 1 << 40).unwrap();
        let mut store = Store::new(&geometry);
        let far = 1 << 48;
        let bytes: Vec<u8> = (0..100_000_u32).map(|number| number as u8 | 1).collect();
        store.write(far + 512, &bytes);
        let mut back = vec![9; bytes.len() + 2000];
        store.read(far, &mut back);
        assert_eq!(&back[..512], &[0; 512]);
        assert_eq!(&back[512..512 + bytes.len()], &bytes[..]);
        assert!(back[512 + bytes.len()..].iter().all(|byte| *byte == 0));
        assert_eq!(store.memory(), 7 << 14);
        let first = far / 512;
        assert_eq!(store.held(first + 3, 2), [first + 3, first + 4]);
        assert_eq!(store.held(0, 1 << 40).len(), 7 * 32);
        store.clear(first + 3, 1000);
        assert_eq!(store.memory(), 1 << 14);
        store.read(far, &mut back);
        assert_eq!(&back[512..1536], &bytes[..1024]);
        assert!(back[1536..].iter().all(|byte| *byte == 0));
        store.clear(0, 1 << 40);
        assert_eq!(store.memory(), 0);
    }
}
