//! A disk with one flipped byte, which keeps what is written to it to itself.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use device::{Cause, Request, Sector};
use flashtree::{Medium, SectorGeometry, Sectors};

/// The disk. Clones share what was written.
#[derive(Clone)]
pub struct FlippedDisk {
    geometry: SectorGeometry,
    base: Arc<[u8]>,
    place: usize,
    flip: u8,
    written: Arc<Mutex<BTreeMap<u64, Vec<u8>>>>,
    /// Sectors that there is room for, if it grows.
    held: Option<Arc<Mutex<u64>>>,
}

impl FlippedDisk {
    /// What `base` holds, but for the bits `flip` of the byte at `place`.
    pub fn new(sector_bytes: u32, base: &Arc<[u8]>, place: usize, flip: u8) -> Self {
        let sectors = base.len() as u64 / u64::from(sector_bytes);
        FlippedDisk {
            geometry: SectorGeometry::new(sector_bytes, sectors).unwrap(),
            base: Arc::clone(base),
            place,
            flip,
            written: Arc::default(),
            held: None,
        }
    }

    /// The same, which grows to `sectors` sectors.
    pub fn growing_to(mut self, sectors: u64) -> Self {
        self.held = Some(Arc::new(Mutex::new(self.geometry.sectors())));
        self.geometry = SectorGeometry::new(self.geometry.sector_bytes(), sectors).unwrap();
        self
    }

    pub fn medium(&self) -> Medium<'static> {
        Medium::Sectors(Box::new(self.clone()))
    }

    fn sector(&self, number: u64) -> Vec<u8> {
        let length = self.geometry.sector_bytes() as usize;
        let start = number as usize * length;
        let Some(bytes) = self.base.get(start..start + length) else {
            return vec![0; length];
        };
        let mut bytes = bytes.to_vec();
        if (start..start + length).contains(&self.place) {
            bytes[self.place - start] ^= self.flip;
        }
        bytes
    }

    fn read_into(&self, mut at: u64, mut into: &mut [u8]) {
        let length = u64::from(self.geometry.sector_bytes());
        let written = self.written.lock().unwrap();
        while !into.is_empty() {
            let (number, offset) = (at / length, (at % length) as usize);
            let part = into.len().min(length as usize - offset);
            let (now, rest) = into.split_at_mut(part);
            match written.get(&number) {
                Some(bytes) => now.copy_from_slice(&bytes[offset..offset + part]),
                None if at as usize >= self.base.len() => now.fill(0),
                None => {
                    let start = at as usize;
                    now.copy_from_slice(&self.base[start..start + part]);
                    if (start..start + part).contains(&self.place) {
                        now[self.place - start] ^= self.flip;
                    }
                }
            }
            at += part as u64;
            into = rest;
        }
    }
}

impl Sectors for FlippedDisk {
    fn geometry(&self) -> SectorGeometry {
        self.geometry
    }

    fn read(&mut self, requests: &mut [Request<'_>], _: Cause) -> device::Result<()> {
        for request in requests {
            self.geometry.check_bytes(request.first, request.offset, request.into.len())?;
            let start = request.first.0 * u64::from(self.geometry.sector_bytes());
            self.read_into(start + u64::from(request.offset), request.into);
        }
        Ok(())
    }

    fn write(&mut self, first: Sector, from: &[u8], _: Cause) -> device::Result<()> {
        self.geometry.check_run(first, from.len())?;
        let mut written = self.written.lock().unwrap();
        let sectors = from.chunks_exact(self.geometry.sector_bytes() as usize);
        for (place, bytes) in sectors.enumerate() {
            written.insert(first.0 + place as u64, bytes.to_vec());
        }
        Ok(())
    }

    fn trim(&mut self, first: Sector, count: u64, _: Cause) -> device::Result<()> {
        let mut written = self.written.lock().unwrap();
        for number in first.0..first.0 + count {
            written.entry(number).or_insert_with(|| self.sector(number)).fill(0xA5);
        }
        Ok(())
    }

    fn flush(&mut self, _: Cause) -> device::Result<()> {
        Ok(())
    }

    fn sectors_held(&self) -> Option<u64> {
        self.held.as_ref().map(|held| *held.lock().unwrap())
    }

    fn resize(&mut self, sectors: u64, _: Cause) -> device::Result<()> {
        if let Some(held) = &self.held {
            *held.lock().unwrap() = sectors;
            self.written.lock().unwrap().retain(|sector, _| *sector < sectors);
        }
        Ok(())
    }
}
