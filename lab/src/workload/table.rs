//! Entries that were read from a data set.

use index::{EntryShape, Width};

use super::numbers::push_decimal;

/// Byte strings one after the other.
#[derive(Clone, Debug, Default)]
pub(super) struct Arena {
    bytes: Vec<u8>,
    ends: Vec<usize>,
}

impl Arena {
    pub(super) fn push(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
        self.ends.push(self.bytes.len());
    }

    pub(super) fn get(&self, place: usize) -> &[u8] {
        let start = if place == 0 { 0 } else { self.ends[place - 1] };
        &self.bytes[start..self.ends[place]]
    }

    pub(super) fn len(&self) -> usize {
        self.ends.len()
    }

    fn longest(&self) -> usize {
        (0..self.len()).map(|place| self.get(place).len()).max().unwrap_or(0)
    }
}

/// What a row asks for, where a data set says so.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Asked {
    Put,
    Delete,
    Get,
    Range,
}

/// How to make a key that no row has.
#[derive(Clone, Debug)]
pub(super) enum Misses {
    /// The low bits of 4 bytes are the number of a row: numbers from `from` to `to` are free.
    FreeRows { mask: u32, from: u32, to: u32 },
    /// Numbers of rows end each key: a `-` before the number makes it another.
    Dashed,
    /// Search among all keys, whose numbers stand here sorted by key.
    Sorted(Vec<u32>),
}

/// Rows of a data set: row `r` puts the value `r` under the key of entry `row_ids[r]`.
#[derive(Clone, Debug)]
pub(super) struct Table {
    pub(super) shape: EntryShape,
    /// The keys of the entries.
    pub(super) keys: Arena,
    /// The values of the rows.
    pub(super) values: Arena,
    /// The entry of each row; empty if each row is an entry of its own.
    pub(super) row_ids: Vec<u32>,
    /// What each row asks for; empty if all are puts.
    pub(super) asked: Vec<Asked>,
    /// True if keys end with the number of their entry, which `keys` leaves out. Then rows that
    /// are read once more run on with new numbers.
    pub(super) numbered: bool,
    pub(super) misses: Misses,
}

impl Table {
    /// Rows.
    pub(super) fn rows(&self) -> u64 {
        self.values.len() as u64
    }

    /// The entry that the update number `row` puts; rows begin again after the last.
    pub(super) fn id_of(&self, row: u64) -> u32 {
        if self.numbered {
            return row as u32;
        }
        let row = row % self.rows();
        self.row_ids.get(row as usize).copied().unwrap_or(row as u32)
    }

    pub(super) fn key(&self, id: u32, out: &mut Vec<u8>) {
        out.extend_from_slice(self.keys.get(id as usize % self.keys.len()));
        if self.numbered {
            push_decimal(u64::from(id), 1, out);
        }
    }

    pub(super) fn value(&self, row: u64, out: &mut Vec<u8>) {
        out.extend_from_slice(self.values.get((row % self.rows()) as usize));
    }

    /// A key that no row has, near to one that a row has.
    pub(super) fn miss(&self, draw: u64, out: &mut Vec<u8>) {
        let near = (draw % self.keys.len() as u64) as usize;
        let key = self.keys.get(near);
        out.extend_from_slice(key);
        match &self.misses {
            Misses::FreeRows { mask, from, to } => {
                let start = out.len() - key.len();
                let mut number = [0; 4];
                number.copy_from_slice(&out[start..]);
                let row = from + ((draw >> 32) as u32) % (to - from + 1);
                let free = u32::from_be_bytes(number) & !mask | row;
                out[start..].copy_from_slice(&free.to_be_bytes());
            }
            Misses::Dashed => {
                out.push(b'-');
                push_decimal(near as u64, 1, out);
            }
            Misses::Sorted(sorted) => self.step_to_a_free_key(sorted, out),
        }
    }

    /// Changes the key in `out` until no entry has it: numbers go up, texts grow.
    fn step_to_a_free_key(&self, sorted: &[u32], out: &mut Vec<u8>) {
        let taken =
            |key: &[u8]| sorted.binary_search_by(|id| self.keys.get(*id as usize).cmp(key)).is_ok();
        // With at most as many keys as there are steps, one of them leads to a free key.
        for _ in 0..=sorted.len() {
            match self.shape.key {
                Width::Fixed(_) => add_one(out),
                Width::Variable => out.push(b'-'),
            }
            if !taken(out) {
                return;
            }
        }
    }

    /// The longest value, in bytes.
    pub(super) fn longest_value(&self) -> usize {
        self.values.longest()
    }
}

/// Adds 1 to a number whose most significant byte is the first; wraps around.
fn add_one(number: &mut [u8]) {
    for byte in number.iter_mut().rev() {
        *byte = byte.wrapping_add(1);
        if *byte != 0 {
            return;
        }
    }
}
