//! The write cache of a drive: units of which some sectors were written and not yet programmed.
//!
//! Invariant: each unit has at most one line, and a line holds at least one written sector and not
//! all of them: a unit that is whole leaves at once.

/// No unit has this line.
const NONE: u16 = u16::MAX;

/// A line of the cache.
#[derive(Clone, Debug)]
struct Line {
    unit: u32,
    written: u32,
    /// The line used before and after this one.
    older: u16,
    newer: u16,
}

/// Written sectors by unit, in the order of last use.
#[derive(Clone, Debug)]
pub(super) struct Cache {
    line_of: Box<[u16]>,
    lines: Vec<Line>,
    /// A bit for each sector of each line.
    bits: Vec<u64>,
    words: usize,
    sectors_per_unit: u32,
    unused: Vec<u16>,
    oldest: u16,
    newest: u16,
}

impl Cache {
    /// A cache for a drive of `units` units, with at most `lines` of them.
    pub(super) fn new(units: u32, lines: u16, sectors_per_unit: u32) -> Self {
        let words = sectors_per_unit.div_ceil(64) as usize;
        let line = Line { unit: 0, written: 0, older: NONE, newer: NONE };
        Cache {
            line_of: vec![NONE; units as usize].into_boxed_slice(),
            lines: vec![line; usize::from(lines)],
            bits: vec![0; usize::from(lines) * words],
            words,
            sectors_per_unit,
            unused: (0..lines).rev().collect(),
            oldest: NONE,
            newest: NONE,
        }
    }

    /// Lines that hold a unit.
    pub(super) fn held(&self) -> usize {
        self.lines.len() - self.unused.len()
    }

    pub(super) fn holds(&self, unit: u32) -> bool {
        self.line_of[unit as usize] != NONE
    }

    /// The unit that was not written for the longest time.
    pub(super) fn oldest(&self) -> Option<u32> {
        self.lines.get(usize::from(self.oldest)).map(|line| line.unit)
    }

    /// True if all of `count` sectors from sector `first` of `unit` on were written.
    pub(super) fn has(&self, unit: u32, first: u32, count: u32) -> bool {
        let line = self.line_of[unit as usize];
        line != NONE && (first..first + count).all(|sector| self.bit(line, sector))
    }

    fn bit(&self, line: u16, sector: u32) -> bool {
        let word = usize::from(line) * self.words + sector as usize / 64;
        self.bits[word] >> (sector % 64) & 1 != 0
    }

    /// Writes `count` sectors from sector `first` of `unit` on; true if the unit is whole now. A
    /// unit without a line takes an unused one, which must be there.
    pub(super) fn write(&mut self, unit: u32, first: u32, count: u32) -> bool {
        let held = self.line_of[unit as usize];
        let line = if held == NONE { self.take(unit) } else { held };
        for sector in first..first + count {
            let word = usize::from(line) * self.words + sector as usize / 64;
            let bit = 1 << (sector % 64);
            self.lines[usize::from(line)].written += u32::from(self.bits[word] & bit == 0);
            self.bits[word] |= bit;
        }
        self.unlink(line);
        self.link_newest(line);
        self.lines[usize::from(line)].written == self.sectors_per_unit
    }

    /// Takes `unit` out; its sectors can still be asked for by `line` until the next write.
    pub(super) fn take_out(&mut self, unit: u32) -> Taken {
        let line = std::mem::replace(&mut self.line_of[unit as usize], NONE);
        if line == NONE {
            return Taken { line: 0, whole: true };
        }
        self.unlink(line);
        self.unused.push(line);
        Taken { line, whole: self.lines[usize::from(line)].written == self.sectors_per_unit }
    }

    /// True if all of `count` sectors from sector `first` of a unit that was taken out were
    /// written.
    pub(super) fn had(&self, taken: Taken, first: u32, count: u32) -> bool {
        taken.whole || (first..first + count).all(|sector| self.bit(taken.line, sector))
    }

    fn take(&mut self, unit: u32) -> u16 {
        // The caller made room; the oldest line would be the one to lose otherwise.
        let line = self.unused.pop().unwrap_or(self.oldest);
        self.line_of[unit as usize] = line;
        let start = usize::from(line) * self.words;
        self.bits[start..start + self.words].fill(0);
        self.lines[usize::from(line)] = Line { unit, written: 0, older: NONE, newer: NONE };
        line
    }

    fn link_newest(&mut self, line: u16) {
        self.lines[usize::from(line)].older = self.newest;
        self.lines[usize::from(line)].newer = NONE;
        match self.lines.get_mut(usize::from(self.newest)) {
            Some(newest) => newest.newer = line,
            None => self.oldest = line,
        }
        self.newest = line;
    }

    fn unlink(&mut self, line: u16) {
        let Line { older, newer, .. } = self.lines[usize::from(line)];
        if older == NONE && newer == NONE && self.newest != line {
            return;
        }
        match self.lines.get_mut(usize::from(older)) {
            Some(older) => older.newer = newer,
            None => self.oldest = newer,
        }
        match self.lines.get_mut(usize::from(newer)) {
            Some(newer) => newer.older = older,
            None => self.newest = older,
        }
        self.lines[usize::from(line)].older = NONE;
        self.lines[usize::from(line)].newer = NONE;
    }
}

/// A unit that was taken out of the cache.
#[derive(Clone, Copy, Debug)]
pub(super) struct Taken {
    line: u16,
    /// True if all of its sectors were written.
    pub(super) whole: bool,
}
