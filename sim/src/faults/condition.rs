//! What faults did to the medium: it stays when the plan is spent or replaced.

use std::collections::BTreeMap;

/// How a block answers programs, or erases.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Habit {
    /// It does them.
    #[default]
    Works,
    /// It refuses them.
    Refuses,
    /// It says that it does them.
    Drops,
}

/// How a page reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reading {
    /// Always the same.
    Stable,
    /// Mostly the same: some reads find flipped bits or fail.
    Unstable,
    /// Not at all.
    Unreadable,
}

/// What stands in a page in place of what was programmed there.
#[derive(Clone, Debug)]
pub(crate) struct PageImage {
    /// The data, then the spare area; `None` if the page looks erased.
    bytes: Option<Box<[u8]>>,
    reading: Reading,
    /// True if the page takes no program before an erase.
    closed: bool,
}

impl PageImage {
    /// A page that holds `bytes`.
    pub(crate) fn new(bytes: Box<[u8]>, reading: Reading) -> Self {
        let blank = bytes.iter().all(|byte| *byte == 0xFF);
        PageImage { bytes: (!blank).then_some(bytes), reading, closed: true }
    }

    /// A page that looks erased.
    pub(crate) const fn blank(reading: Reading) -> Self {
        PageImage { bytes: None, reading, closed: true }
    }

    /// The same page, which takes programs.
    pub(crate) fn open(mut self) -> Self {
        self.closed = false;
        self
    }

    /// The same page, which takes no program before an erase.
    pub(crate) fn close(mut self) -> Self {
        self.closed = true;
        self
    }

    pub(crate) const fn reading(&self) -> Reading {
        self.reading
    }

    pub(crate) const fn is_closed(&self) -> bool {
        self.closed
    }

    /// True if nothing tells the page from one that was erased.
    pub(crate) fn is_erased(&self) -> bool {
        !self.closed && self.bytes.is_none() && self.reading == Reading::Stable
    }

    /// The page as it reads, of `stride` bytes.
    pub(crate) fn bytes(&self, stride: usize) -> Box<[u8]> {
        self.bytes.clone().unwrap_or_else(|| vec![0xFF; stride].into_boxed_slice())
    }

    /// Copies bytes of the page from `offset` on.
    pub(crate) fn read(&self, offset: usize, into: &mut [u8]) {
        match &self.bytes {
            Some(bytes) => into.copy_from_slice(&bytes[offset..offset + into.len()]),
            None => into.fill(0xFF),
        }
    }

    /// Programs over what is there: bits can only go from 1 to 0. True if what was given stands
    /// there now.
    pub(crate) fn program(&mut self, offset: usize, given: &[u8], stride: usize) -> bool {
        let mut bytes = self.bytes(stride);
        let mut clean = true;
        for (byte, new) in bytes[offset..].iter_mut().zip(given) {
            *byte &= new;
            clean &= *byte == *new;
        }
        self.bytes = Some(bytes);
        clean
    }

    /// Calls the page unreadable.
    pub(crate) fn spoil(&mut self) {
        self.reading = Reading::Unreadable;
    }
}

/// What is wrong with a block.
#[derive(Clone, Debug, Default)]
pub(crate) struct BlockCondition {
    pub(crate) program: Habit,
    pub(crate) erase: Habit,
    /// Pages that hold something else than what was programmed, by their place.
    pub(crate) pages: BTreeMap<u32, PageImage>,
    /// How many bits flip at every read of a page, by its place.
    pub(crate) weak: BTreeMap<u32, u16>,
}

impl BlockCondition {
    /// True if nothing is wrong with the block.
    pub(crate) fn is_sound(&self) -> bool {
        self.program == Habit::Works
            && self.erase == Habit::Works
            && self.pages.is_empty()
            && self.weak.is_empty()
    }
}
