//! The entries: their keys lie all over the space of keys, and which come when is random.

use crate::Outcome;

/// Bytes of a key and of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shape {
    /// Of a key: at least 8.
    pub key: usize,
    /// Of a value: at least 8.
    pub value: usize,
}

impl Shape {
    /// `KEY+VALUE`.
    ///
    /// # Errors
    /// Text of another form, and lengths below 8.
    pub fn parse(text: &str) -> Outcome<Self> {
        let (key, value) = text.split_once('+').ok_or("entries are KEY+VALUE bytes: 8+8")?;
        let shape = Shape { key: key.parse()?, value: value.parse()? };
        match shape.key.min(shape.value) {
            0..8 => Err("keys and values have at least 8 bytes".into()),
            _ => Ok(shape),
        }
    }

    /// Bytes of an entry.
    #[must_use]
    pub const fn bytes(self) -> usize {
        self.key + self.value
    }
}

/// A bijection of 64 bits that looks random (the finalizer of splitmix64).
fn mixed(number: u64) -> u64 {
    let number = (number ^ (number >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let number = (number ^ (number >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    number ^ (number >> 31)
}

/// Numbers that look random.
#[derive(Clone, Debug)]
pub struct Random(pub u64);

impl Random {
    /// A number below `end`.
    pub fn below(&mut self, end: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let wide = u128::from(mixed(self.0)) * u128::from(end);
        (wide >> 64) as u64
    }
}

/// Entries by their number: the order of the numbers is that of the keys.
#[derive(Clone, Copy, Debug)]
pub struct Workload {
    /// How many there are.
    pub entries: u64,
    /// Bytes of each.
    pub shape: Shape,
}

impl Workload {
    /// Writes the key of entry `number` to `out`. Each has its own stretch of the space of keys,
    /// and a random place in it.
    pub fn key(&self, number: u64, out: &mut Vec<u8>) {
        let stretch = u64::MAX / self.entries;
        let place = number * stretch + mixed(number) % stretch;
        let start = out.len();
        out.extend_from_slice(&place.to_be_bytes());
        fill(start + self.shape.key, !number, out);
    }

    /// Writes the `version`th value of entry `number` to `out`.
    pub fn value(&self, number: u64, version: u32, out: &mut Vec<u8>) {
        let start = out.len();
        out.extend_from_slice(&mark(number));
        out.extend_from_slice(&version.to_be_bytes());
        fill(start + self.shape.value, number ^ (u64::from(version) << 40), out);
    }

    /// Whether `value` is one of entry `number`.
    #[must_use]
    pub fn is_value_of(&self, number: u64, value: &[u8]) -> bool {
        value.len() == self.shape.value && value.starts_with(&mark(number))
    }

    /// The number of the entry that is the `at`th to be loaded: a random order, each once. A
    /// Feistel network over the least power of four that has all, walked until one is inside.
    #[must_use]
    pub fn in_random_order(&self, at: u64) -> u64 {
        let half = (64 - self.entries.leading_zeros()).div_ceil(2);
        let low = (1 << half) - 1;
        let mut number = at;
        loop {
            let (mut left, mut right) = (number >> half, number & low);
            for round in 1..=4 {
                (left, right) = (right, left ^ (mixed(right ^ (round << 32)) & low));
            }
            number = (left << half) | right;
            if number < self.entries {
                return number;
            }
        }
    }
}

fn mark(number: u64) -> [u8; 4] {
    (mixed(number) as u32).to_be_bytes()
}

/// Bytes that can't be compressed, up to a length of `end`.
fn fill(end: usize, seed: u64, out: &mut Vec<u8>) {
    let mut state = seed;
    while out.len() < end {
        state = state.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let bytes = mixed(state).to_be_bytes();
        let count = bytes.len().min(end - out.len());
        out.extend_from_slice(&bytes[..count]);
    }
}

/// Entries that are put at once.
#[derive(Debug)]
pub struct Batch {
    workload: Workload,
    bytes: Vec<u8>,
}

impl Batch {
    /// None yet.
    #[must_use]
    pub const fn new(workload: Workload) -> Self {
        Batch { workload, bytes: Vec::new() }
    }

    /// One more.
    pub fn add(&mut self, number: u64, version: u32) {
        self.workload.key(number, &mut self.bytes);
        self.workload.value(number, version, &mut self.bytes);
    }

    /// Takes all out.
    pub fn clear(&mut self) {
        self.bytes.clear();
    }

    /// How many there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.bytes.len() / self.workload.shape.bytes()
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// Keys and values, in the order of adding.
    pub fn iter(&self) -> impl Iterator<Item = (&[u8], &[u8])> {
        let Shape { key, .. } = self.workload.shape;
        self.bytes.chunks_exact(self.workload.shape.bytes()).map(move |entry| entry.split_at(key))
    }
}

/// Which entries are there.
#[derive(Debug)]
pub struct Present {
    words: Vec<u64>,
    entries: u64,
    count: u64,
}

impl Present {
    /// None of `entries`.
    #[must_use]
    pub fn none_of(entries: u64) -> Self {
        Present { words: vec![0; entries.div_ceil(64) as usize], entries, count: 0 }
    }

    /// Whether `number` is there.
    #[must_use]
    pub fn has(&self, number: u64) -> bool {
        self.words[(number / 64) as usize] >> (number % 64) & 1 == 1
    }

    /// From here on `number` is there.
    pub fn add(&mut self, number: u64) {
        self.count += u64::from(!self.has(number));
        self.words[(number / 64) as usize] |= 1 << (number % 64);
    }

    /// How many are there.
    #[must_use]
    pub const fn count(&self) -> u64 {
        self.count
    }

    /// One of those that are there, of which there has to be one.
    pub fn any(&self, random: &mut Random) -> u64 {
        loop {
            let number = random.below(self.entries);
            if self.has(number) {
                return number;
            }
        }
    }
}
