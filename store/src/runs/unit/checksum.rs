//! The checksum of a unit: it covers whose it is, so that a unit in a wrong place fails.

use super::UnitShape;

/// Whose unit it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Seed {
    /// The identity of the index.
    pub identity: u64,
    /// The number of the run.
    pub run: u64,
    /// The number of the unit.
    pub unit: u32,
}

impl Seed {
    fn bytes(&self) -> [u8; 20] {
        let mut bytes = [0; 20];
        bytes[..8].copy_from_slice(&self.identity.to_le_bytes());
        bytes[8..16].copy_from_slice(&self.run.to_le_bytes());
        bytes[16..].copy_from_slice(&self.unit.to_le_bytes());
        bytes
    }

    /// The checksum of `body`.
    fn of(&self, shape: &UnitShape, body: &[u8]) -> u32 {
        match shape.checksum_bytes() {
            2 => u32::from(crc_16(&[&self.bytes(), body])),
            _ => device::checksum(&[&self.bytes(), body]),
        }
    }

    /// The checksum that stands in a unit, and that of what it holds.
    pub(super) fn compare(&self, shape: &UnitShape, unit: &[u8]) -> (u32, u32) {
        let (head, body) = unit.split_at(shape.checksum_bytes().min(unit.len()));
        let mut stored = [0; 4];
        stored[..head.len()].copy_from_slice(head);
        (u32::from_le_bytes(stored), self.of(shape, body))
    }

    /// Writes the checksum of a unit into its first bytes; returns it.
    pub(crate) fn seal(&self, shape: &UnitShape, unit: &mut [u8]) -> u32 {
        let (head, body) = unit.split_at_mut(shape.checksum_bytes());
        let checksum = self.of(shape, body);
        head.copy_from_slice(&checksum.to_le_bytes()[..head.len()]);
        checksum
    }
}

/// CRC-16 with the polynomial 0x1021, the highest bit first, from 0xFFFF on.
fn crc_16(pieces: &[&[u8]]) -> u16 {
    const TABLE: [u16; 256] = table();
    let mut crc = 0xFFFF;
    for byte in pieces.iter().flat_map(|piece| piece.iter()) {
        crc = crc << 8 ^ TABLE[usize::from((crc >> 8) as u8 ^ byte)];
    }
    crc
}

const fn table() -> [u16; 256] {
    let mut table = [0; 256];
    let mut byte = 0;
    while byte < 256 {
        let mut crc = (byte as u16) << 8;
        let mut bit = 0;
        while bit < 8 {
            crc = if crc & 0x8000 != 0 { crc << 1 ^ 0x1021 } else { crc << 1 };
            bit += 1;
        }
        table[byte] = crc;
        byte += 1;
    }
    table
}

#[cfg(test)]
mod tests {
    use super::crc_16;

    /// The check value of the catalogue of parametrised CRC algorithms for CRC-16/IBM-3740.
    #[test]
    fn the_short_checksum_is_a_crc_16() {
        assert_eq!(crc_16(&[b"123456789"]), 0x29B1);
        assert_eq!(crc_16(&[b"12", b"", b"3456789"]), 0x29B1);
    }
}
