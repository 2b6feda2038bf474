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

/// CRC-16 with the polynomial 0x1021, the highest bit first, from 0xFFFF on; four bytes at a time.
fn crc_16(pieces: &[&[u8]]) -> u16 {
    const TABLES: [[u16; 256]; 4] = tables();
    let [last, third, second, first] = &TABLES;
    let at = |table: &[u16; 256], byte: u8| table[usize::from(byte)];
    let mut crc = 0xFFFF_u16;
    for piece in pieces {
        let (fours, rest) = piece.as_chunks::<4>();
        for [one, two, three, four] in fours {
            let [high, low] = crc.to_be_bytes();
            crc =
                at(first, high ^ one) ^ at(second, low ^ two) ^ at(third, *three) ^ at(last, *four);
        }
        for byte in rest {
            crc = crc << 8 ^ at(last, (crc >> 8) as u8 ^ byte);
        }
    }
    crc
}

/// The checksum of a byte that none, one, two or three of zero follow.
const fn tables() -> [[u16; 256]; 4] {
    let mut tables = [[0; 256]; 4];
    let mut byte = 0;
    while byte < 256 {
        let mut crc = (byte as u16) << 8;
        let mut zeros = 0;
        while zeros < 4 {
            let mut bit = 0;
            while bit < 8 {
                crc = if crc & 0x8000 != 0 { crc << 1 ^ 0x1021 } else { crc << 1 };
                bit += 1;
            }
            tables[zeros][byte] = crc;
            zeros += 1;
        }
        byte += 1;
    }
    tables
}

#[cfg(test)]
mod tests {
    use alloc::vec::Vec;

    use super::crc_16;

    /// The check value of the catalogue of parametrised CRC algorithms for CRC-16/IBM-3740.
    #[test]
    fn the_short_checksum_is_a_crc_16() {
        assert_eq!(crc_16(&[b"123456789"]), 0x29B1);
        assert_eq!(crc_16(&[b"12", b"", b"3456789"]), 0x29B1);
    }

    #[test]
    fn four_bytes_at_a_time_come_to_what_one_at_a_time_does() {
        let bytes: Vec<u8> = (0..100u32).map(|number| (number * number * 7 / 3) as u8).collect();
        for length in 0..bytes.len() {
            let single: Vec<&[u8]> = bytes[..length].chunks(1).collect();
            assert_eq!(crc_16(&[&bytes[..length]]), crc_16(&single), "{length} bytes");
        }
    }
}
