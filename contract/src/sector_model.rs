//! What a disk may hold, as the contract on [`device::Sectors`] says it.
//!
//! Every write of a sector has a version, counted from 1; version 0 is zeros. A sector that was
//! trimmed may hold any version it ever had, or zeros.

use device::SectorGeometry;

/// Bytes of a word.
const WORD: usize = 8;

/// What `version` of `sector` holds, word by word.
fn words(sector: u64, version: u32) -> impl Iterator<Item = [u8; WORD]> {
    let mut state = sector.wrapping_mul(0x9E37_79B9_7F4A_7C15) ^ u64::from(version) << 32;
    std::iter::repeat_with(move || {
        if version == 0 {
            return [0; WORD];
        }
        state = state.wrapping_mul(0x5851_F42D_4C95_7F2D).wrapping_add(0x1405_7B7E_F767_814F);
        (state ^ state >> 29).to_le_bytes()
    })
}

/// Fills `content` with what `version` of `sector` holds.
pub fn pattern(sector: u64, version: u32, content: &mut [u8]) {
    let mut words = words(sector, version);
    let (whole, rest) = content.as_chunks_mut();
    for (bytes, word) in whole.iter_mut().zip(&mut words) {
        *bytes = word;
    }
    for (byte, held) in rest.iter_mut().zip(words.flatten()) {
        *byte = held;
    }
}

/// True if `piece` is what `version` of `sector` holds from byte `offset` on.
fn is_held(sector: u64, version: u32, offset: usize, piece: &[u8]) -> bool {
    let mut words = words(sector, version).skip(offset / WORD);
    // Up to the border of a word, whole words, and what is behind them.
    let head = piece.len().min(offset.next_multiple_of(WORD) - offset);
    let (head, behind) = piece.split_at(head);
    let first = if head.is_empty() { None } else { words.next() };
    let (whole, tail) = behind.as_chunks();
    first.is_none_or(|word| word[offset % WORD..].starts_with(head))
        && whole.iter().all(|found| words.next() == Some(*found))
        && (tail.is_empty() || words.next().is_some_and(|word| word.starts_with(tail)))
}

/// What is known of a sector.
#[derive(Clone, Copy, Debug)]
struct State {
    /// The version written last.
    latest: u32,
    /// What it holds now; `None` after a trim.
    current: Option<u32>,
    /// What it held at the last flush; `None` if it was trimmed then or after that.
    flushed: Option<u32>,
}

/// What a disk may hold.
#[derive(Clone, Debug)]
pub struct Model {
    geometry: SectorGeometry,
    states: Vec<State>,
    flushed: bool,
}

impl Model {
    /// An empty disk.
    pub fn new(geometry: SectorGeometry) -> Self {
        let state = State { latest: 0, current: Some(0), flushed: Some(0) };
        Model { geometry, states: vec![state; geometry.sectors() as usize], flushed: true }
    }

    /// The shape of the disk.
    pub const fn geometry(&self) -> &SectorGeometry {
        &self.geometry
    }

    /// True if nothing was written since the last flush.
    pub const fn is_flushed(&self) -> bool {
        self.flushed
    }

    /// The version that the next write of `sector` has.
    pub fn next_version(&self, sector: u64) -> u32 {
        self.states[sector as usize].latest + 1
    }

    /// Says that `count` sectors from `first` on were written, each its next version; or that
    /// they may have been, before a failure after which the disk is opened again.
    pub fn write(&mut self, first: u64, count: u64) {
        for state in &mut self.states[first as usize..(first + count) as usize] {
            state.latest += 1;
            state.current = Some(state.latest);
        }
        self.flushed = false;
    }

    /// Says that `count` sectors from `first` on were trimmed.
    pub fn trim(&mut self, first: u64, count: u64) {
        for state in &mut self.states[first as usize..(first + count) as usize] {
            state.current = None;
            state.flushed = None;
        }
    }

    /// Says that the disk was flushed.
    pub fn flush(&mut self) {
        for state in &mut self.states {
            state.flushed = state.current;
        }
        self.flushed = true;
    }

    /// Compares bytes that were read, from byte `offset` of `first` on, with what they may be.
    ///
    /// # Panics
    /// They differ.
    pub fn compare(&self, first: u64, offset: usize, found: &[u8]) {
        let bytes = self.geometry.sector_bytes() as usize;
        let (mut sector, mut offset) = (first + (offset / bytes) as u64, offset % bytes);
        let mut rest = found;
        while !rest.is_empty() {
            let (piece, after) = rest.split_at(rest.len().min(bytes - offset));
            let state = &self.states[sector as usize];
            let fits = match state.current {
                Some(version) => is_held(sector, version, offset, piece),
                None => (0..=state.latest).any(|old| is_held(sector, old, offset, piece)),
            };
            assert!(fits, "sector {sector} from byte {offset} on does not hold {state:?}");
            (rest, sector, offset) = (after, sector + 1, 0);
        }
    }

    /// Compares the whole content of a sector, after the disk was opened again, with what it may
    /// hold: what it held at the last flush, or something written since.
    ///
    /// # Panics
    /// It differs.
    pub fn learn(&mut self, sector: u64, found: &[u8]) {
        let state = self.states[sector as usize];
        let oldest = state.flushed.unwrap_or(0);
        let version = (oldest..=state.latest).rev().find(|v| is_held(sector, *v, 0, found));
        assert!(version.is_some(), "sector {sector} holds nothing that {state:?} allows");
        if state.flushed.is_some() {
            self.states[sector as usize].current = version;
            self.states[sector as usize].flushed = version;
        } else {
            self.states[sector as usize].current = None;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Model, is_held, pattern};
    use device::SectorGeometry;
    use std::panic::{AssertUnwindSafe, catch_unwind};

    fn content(version: u32) -> [u8; 64] {
        let mut content = [0; 64];
        pattern(3, version, &mut content);
        content
    }

    fn accepts(model: &Model, version: u32) -> bool {
        let mut model = model.clone();
        catch_unwind(AssertUnwindSafe(|| model.learn(3, &content(version)))).is_ok()
    }

    #[test]
    fn after_a_restart_a_sector_holds_its_flushed_content_or_a_later_one() {
        let mut model = Model::new(SectorGeometry::new(64, 8).unwrap());
        model.write(3, 1);
        model.write(3, 1);
        model.flush();
        model.write(3, 1);
        assert_eq!(
            [0, 1, 2, 3, 4].map(|version| accepts(&model, version)),
            [false, false, true, true, false]
        );
        model.trim(3, 1);
        assert_eq!(
            [0, 1, 2, 3, 4].map(|version| accepts(&model, version)),
            [true, true, true, true, false]
        );
    }

    #[test]
    fn every_piece_of_a_version_is_told_from_every_other() {
        for version in [0, 1, 7] {
            let mut whole = [0; 45];
            pattern(5, version, &mut whole);
            assert_eq!(whole.iter().all(|byte| *byte == 0), version == 0);
            for (start, end) in (0..45).flat_map(|from| (from..=45).map(move |to| (from, to))) {
                let mut piece = whole[start..end].to_vec();
                assert!(is_held(5, version, start, &piece), "{version}, {start}..{end}");
                for place in 0..piece.len() {
                    piece[place] ^= 1;
                    assert!(!is_held(5, version, start, &piece), "{version}, {start}..{end}");
                    piece[place] ^= 1;
                }
            }
        }
    }

    #[test]
    fn a_read_sees_the_last_write() {
        let mut model = Model::new(SectorGeometry::new(64, 8).unwrap());
        model.write(3, 1);
        model.write(3, 1);
        model.compare(3, 10, &content(2)[10..20]);
        let old = catch_unwind(|| model.compare(3, 10, &content(1)[10..20]));
        assert!(old.is_err(), "an old version was accepted");
    }
}
