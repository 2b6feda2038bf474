//! A disk in memory: the simplest device that keeps the contract of [`Sectors`].

use std::ops::Range;

use device::{Cause, Error, Request, Result, Sector, SectorGeometry, Sectors};

/// Bytes of a chunk.
const CHUNK_BYTES: usize = 64 << 10;

/// What is read of a sector that was trimmed: nobody hopes for that.
const TRIMMED: u8 = 0xA5;

/// A disk in memory. Chunks in which nothing was written take none.
#[derive(Clone)]
pub struct RamDisk {
    geometry: SectorGeometry,
    /// Sectors that there is room for, if it grows.
    held: Option<u64>,
    chunk_bytes: usize,
    chunks: Vec<Chunk>,
}

#[derive(Clone)]
enum Chunk {
    /// Every byte is this one.
    Alike(u8),
    Bytes(Box<[u8]>),
}

/// A part of a run of bytes that lies in one chunk.
struct Piece {
    chunk: usize,
    within: Range<usize>,
    run: Range<usize>,
}

impl RamDisk {
    /// A disk of zeros.
    #[must_use]
    pub fn new(geometry: SectorGeometry) -> Self {
        let chunks = (geometry.bytes() as usize).div_ceil(CHUNK_BYTES);
        let chunks = vec![Chunk::Alike(0); chunks];
        RamDisk { geometry, held: None, chunk_bytes: CHUNK_BYTES, chunks }
    }

    /// A disk of zeros that grows, with room for two sectors at first.
    #[must_use]
    pub fn growing(geometry: SectorGeometry) -> Self {
        RamDisk { held: Some(2), ..Self::new(geometry) }
    }

    /// Refuses `bytes` bytes from byte `offset` of sector `first` on where there is no room for
    /// them.
    fn check(&self, first: Sector, offset: u32, bytes: usize) -> Result<()> {
        self.geometry.check_bytes(first, offset, bytes)?;
        let sector = u64::from(self.geometry.sector_bytes());
        let end = first.0 + (u64::from(offset) + bytes as u64).div_ceil(sector);
        match self.held.filter(|held| end > *held) {
            Some(held) => Err(Error::NoSuchSector { sector: Sector(held), sectors: held }),
            None => Ok(()),
        }
    }

    /// All its bytes, which take memory from then on.
    pub fn bytes_mut(&mut self) -> &mut [u8] {
        let bytes = self.geometry.bytes() as usize;
        if self.chunk_bytes != bytes {
            let mut whole = vec![0; bytes].into_boxed_slice();
            self.copy(0, &mut whole);
            (self.chunk_bytes, self.chunks) = (bytes, vec![Chunk::Bytes(whole)]);
        }
        self.chunk(0)
    }

    fn start(&self, sector: Sector) -> usize {
        (sector.0 * u64::from(self.geometry.sector_bytes())) as usize
    }

    /// The bytes of a chunk.
    fn chunk(&mut self, number: usize) -> &mut [u8] {
        let chunk = &mut self.chunks[number];
        if let Chunk::Alike(byte) = *chunk {
            *chunk = Chunk::Bytes(vec![byte; self.chunk_bytes].into_boxed_slice());
        }
        match chunk {
            Chunk::Bytes(bytes) => bytes,
            Chunk::Alike(_) => &mut [],
        }
    }

    /// Splits so many bytes from byte `start` on at the borders of chunks.
    fn pieces(&self, start: usize, bytes: usize) -> impl Iterator<Item = Piece> + use<> {
        let (chunk_bytes, mut done) = (self.chunk_bytes, 0);
        std::iter::from_fn(move || {
            let (chunk, from) = ((start + done) / chunk_bytes, (start + done) % chunk_bytes);
            let length = (bytes - done).min(chunk_bytes - from);
            let run = done..done + length;
            done += length;
            (length > 0).then_some(Piece { chunk, within: from..from + length, run })
        })
    }

    fn copy(&self, start: usize, into: &mut [u8]) {
        for Piece { chunk, within, run } in self.pieces(start, into.len()) {
            match &self.chunks[chunk] {
                Chunk::Alike(byte) => into[run].fill(*byte),
                Chunk::Bytes(bytes) => into[run].copy_from_slice(&bytes[within]),
            }
        }
    }
}

impl Sectors for RamDisk {
    fn geometry(&self) -> SectorGeometry {
        self.geometry
    }

    fn read(&mut self, requests: &mut [Request<'_>], _cause: Cause) -> Result<()> {
        for request in requests {
            self.check(request.first, request.offset, request.into.len())?;
            self.copy(self.start(request.first) + request.offset as usize, request.into);
        }
        Ok(())
    }

    fn write(&mut self, first: Sector, from: &[u8], _cause: Cause) -> Result<()> {
        self.geometry.check_run(first, from.len())?;
        self.check(first, 0, from.len())?;
        for Piece { chunk, within, run } in self.pieces(self.start(first), from.len()) {
            self.chunk(chunk)[within].copy_from_slice(&from[run]);
        }
        Ok(())
    }

    fn trim(&mut self, first: Sector, count: u64, _cause: Cause) -> Result<()> {
        let bytes = count * u64::from(self.geometry.sector_bytes());
        self.check(first, 0, bytes as usize)?;
        // Whoever reads what it trimmed must not find what it hoped for.
        for Piece { chunk, within, .. } in self.pieces(self.start(first), bytes as usize) {
            if within.len() == self.chunk_bytes {
                self.chunks[chunk] = Chunk::Alike(TRIMMED);
            } else {
                self.chunk(chunk)[within].fill(TRIMMED);
            }
        }
        Ok(())
    }

    fn flush(&mut self, _cause: Cause) -> Result<()> {
        Ok(())
    }

    fn sectors_held(&self) -> Option<u64> {
        self.held
    }

    fn resize(&mut self, sectors: u64, _cause: Cause) -> Result<()> {
        let most = self.geometry.sectors();
        if sectors > most {
            return Err(Error::NoSuchSector { sector: Sector(most), sectors: most });
        }
        let Some(held) = self.held else {
            return Ok(());
        };
        self.held = Some(sectors);
        if sectors < held {
            // What is given back reads as zeros if there is room for it again.
            let bytes = (held - sectors) * u64::from(self.geometry.sector_bytes());
            for Piece { chunk, within, .. } in
                self.pieces(self.start(Sector(sectors)), bytes as usize)
            {
                if within.len() == self.chunk_bytes {
                    self.chunks[chunk] = Chunk::Alike(0);
                } else {
                    self.chunk(chunk)[within].fill(0);
                }
            }
        }
        Ok(())
    }
}
