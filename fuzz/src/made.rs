//! Pages that were never written: each number of them makes sense or nearly so, and the whole does
//! not.

use proptest::prelude::*;
use proptest::sample::Index;

use crate::structure::{self, JOURNAL, Kind, Piece, Plan, UNDO, seal, set_number};

/// An update in the journal.
#[derive(Clone, Debug)]
pub struct MadeUpdate {
    kind: u8,
    key: Vec<u8>,
    value_bytes: u16,
    /// What its head says beside the truth: added to the lengths of key and value.
    lies: (i8, i8),
}

/// A page, by what it says.
#[derive(Clone, Debug)]
pub enum Made {
    /// A page of this kind, 1 to 5, or of none: entries that it counts, its level, numbers.
    Page {
        /// The kind.
        kind: u8,
        /// Its level, if it is a node.
        level: u8,
        /// Entries, or pages that it names.
        count: u16,
        /// Pages that it names.
        pages: Vec<Index>,
        /// The length that its long value has, if it tells of one.
        value_bytes: u16,
    },
    /// A whole journal, whose records these are, each with something added to its length.
    Journal(Vec<(Vec<MadeUpdate>, i8)>),
    /// A group of the undo log: images of these units, at this position.
    Undo {
        /// Its position.
        position: u8,
        /// The images.
        units: Vec<Index>,
        /// True if the images' checksums are right.
        whole: bool,
    },
}

fn updates() -> impl Strategy<Value = MadeUpdate> {
    let kind = prop_oneof![6 => Just(0), 2 => Just(1), 1 => any::<u8>()];
    let lie = || prop_oneof![20 => Just(0i8), 1 => any::<i8>()];
    let length = prop_oneof![2 => Just(4u16), 2 => 0..40u16, 1 => 0..2000u16];
    let key = prop_oneof![
        Just(vec![0; 4]),
        Just(vec![1; 8]),
        prop::collection::vec(any::<u8>(), 0..12),
        prop::collection::vec(any::<u8>(), 0..200),
    ];
    (kind, key, length, (lie(), lie())).prop_map(|(kind, key, value_bytes, lies)| MadeUpdate {
        kind,
        key,
        value_bytes,
        lies,
    })
}

/// Pages that make sense or nearly so.
pub(crate) fn pages() -> impl Strategy<Value = Made> {
    let pages = prop::collection::vec(any::<Index>(), 1..40);
    let count = prop_oneof![2 => Just(0), 8 => 1..40u16, 1 => any::<u16>()];
    let kind = prop_oneof![7 => 0..7u8, 1 => Just(11)];
    let page = (kind, prop_oneof![6 => 0..4u8, 1 => any::<u8>()], count, pages, 0..5000u16);
    let record =
        (prop::collection::vec(updates(), 0..4), prop_oneof![10 => Just(0i8), 1 => any::<i8>()]);
    let units = prop::collection::vec(any::<Index>(), 1..8);
    prop_oneof![
        4 => page.prop_map(|(kind, level, count, pages, value_bytes)| Made::Page {
            kind, level, count, pages, value_bytes
        }),
        2 => prop::collection::vec(record, 1..8).prop_map(Made::Journal),
        2 => (0..6u8, units, any::<bool>())
            .prop_map(|(position, units, whole)| Made::Undo { position, units, whole }),
    ]
}

impl Made {
    /// Puts it on the disk: a page in the place of `piece`, the others where they belong.
    pub fn make(&self, disk: &mut [u8], plan: &Plan, piece: &Piece) {
        match self {
            Made::Page { kind, level, count, pages, value_bytes } => {
                let page = &mut disk[piece.at..piece.at + piece.length];
                let pages = pages.iter().map(|page| page.index(plan.high_water.max(1)) as u32);
                let count = usize::from(*count);
                let kind = if piece.kind == Kind::Image { 2 } else { *kind };
                make_page(page, (kind, *level, count), pages, u32::from(*value_bytes));
            }
            Made::Journal(records) => make_journal(disk, plan, records),
            Made::Undo { position, units, whole } => {
                make_group(disk, plan, usize::from(*position), units, *whole);
            }
        }
    }
}

/// Makes a page of this kind, level and count.
fn make_page(
    page: &mut [u8],
    (kind, level, count): (u8, u8, usize),
    mut names: impl Iterator<Item = u32> + Clone,
    value_bytes: u32,
) {
    page.fill(0);
    set_number(page, 4, 2, count as u64);
    page[6] = level;
    page[7] = kind;
    match kind {
        1 => {
            // Ascending keys of four bytes; the other four are a value, or a child.
            for (place, entry) in page[8..].chunks_exact_mut(8).take(count).enumerate() {
                entry[..4].copy_from_slice(&(place as u32).to_be_bytes());
                let name = names.next().unwrap_or(place as u32);
                entry[4..].copy_from_slice(&name.to_le_bytes());
            }
        }
        2 => make_slots(page, count, &mut names),
        _ => {
            let names = names.cycle();
            let starts = if kind == 3 { [8, 12] } else { [8, 20] };
            for (word, name) in page[starts[1]..].chunks_exact_mut(4).zip(names.clone()) {
                word.copy_from_slice(&name.to_le_bytes());
            }
            let next =
                names.clone().next().filter(|name| name.is_multiple_of(2)).unwrap_or(u32::MAX);
            set_number(page, starts[0], 4, u64::from(next));
            if kind == 4 {
                set_number(page, 12, 4, u64::from(value_bytes));
                set_number(page, 16, 4, u64::from(u32::MAX));
            }
        }
    }
}

/// Cells with keys of one byte, and values of four or, now and then, long ones.
fn make_slots(page: &mut [u8], count: usize, names: &mut impl Iterator<Item = u32>) {
    let count = count.min((page.len() - 16) / 24).min(200);
    let mut heap = page.len();
    for place in 0..count {
        let name = names.next().unwrap_or(place as u32);
        let is_long = page[6] == 0 && name.is_multiple_of(3);
        let value: &[u8] = &if is_long { [name, 1000].concat_le() } else { [name].concat_le() };
        let is_child = page[6] > 0;
        let mut cell = vec![1, 0];
        if !is_child {
            let mark = if is_long { 0x80 } else { 0 };
            cell.extend([value.len() as u8, mark]);
        }
        cell.push(place as u8);
        cell.extend(value);
        heap -= cell.len();
        page[heap..heap + cell.len()].copy_from_slice(&cell);
        set_number(page, 16 + 2 * place, 2, heap as u64);
    }
    set_number(page, 4, 2, count as u64);
    set_number(page, 10, 2, heap as u64);
}

trait ConcatLittleEndian {
    fn concat_le(&self) -> Vec<u8>;
}

impl<const N: usize> ConcatLittleEndian for [u32; N] {
    fn concat_le(&self) -> Vec<u8> {
        self.iter().flat_map(|number| number.to_le_bytes()).collect()
    }
}

/// Writes a journal that holds these records and nothing else.
fn make_journal(disk: &mut [u8], plan: &Plan, records: &[(Vec<MadeUpdate>, i8)]) {
    let mut stream = Vec::new();
    for (updates, lie) in records {
        let start = stream.len() + 4;
        stream.extend([0; 4]);
        for update in updates {
            let MadeUpdate { kind, key, value_bytes, lies } = update;
            let value_bytes = if *kind == 1 { 0 } else { u32::from(*value_bytes) };
            let told = (key.len() as u16).wrapping_add_signed(i16::from(lies.0));
            let told_value = value_bytes.wrapping_add_signed(i32::from(lies.1));
            stream.push(*kind);
            stream.extend(told.to_le_bytes());
            stream.extend(told_value.to_le_bytes());
            stream.extend(key);
            stream.resize(stream.len() + value_bytes as usize, 0x5A);
        }
        let length = ((stream.len() - start) as u32).wrapping_add_signed(i32::from(*lie));
        set_number(&mut stream, start - 4, 4, u64::from(length));
    }
    let mut previous = 0;
    let capacity = plan.sector - 40;
    for (index, part) in stream.chunks(capacity).take(plan.journal).enumerate() {
        let at = (plan.journal_at + index) * plan.sector;
        let page = &mut disk[at..at + plan.sector];
        page.fill(0);
        page[4..8].copy_from_slice(b"JRNL");
        set_number(page, 8, 8, plan.epochs.1);
        for (at, number) in [(16, index as u64), (20, 1), (24, part.len() as u64), (28, previous)] {
            set_number(page, at, 4, number);
        }
        page[40..40 + part.len()].copy_from_slice(part);
        seal(page, JOURNAL ^ plan.identity ^ index as u64);
        previous = structure::number(page, 0, 4);
    }
}

/// Writes a group of the undo log, of whatever stands where its images belong.
fn make_group(disk: &mut [u8], plan: &Plan, position: usize, units: &[Index], whole: bool) {
    let position = plan.undo_start + position;
    let mut header = vec![0; plan.sector];
    header[4..8].copy_from_slice(b"UNDO");
    set_number(&mut header, 8, 8, plan.epochs.0);
    set_number(&mut header, 16, 4, position as u64);
    set_number(&mut header, 20, 4, units.len() as u64);
    for (image, unit) in units.iter().enumerate() {
        let unit = unit.index(plan.units_most() + 2);
        let Some(at) = plan.position(position + 4 + image) else { return };
        let bytes = &disk[at..at + plan.unit()];
        let sum = device::checksum(&[&(unit as u64).to_le_bytes(), bytes]);
        set_number(&mut header, 24 + image * 8, 4, unit as u64);
        let sum = if whole { sum } else { !sum };
        set_number(&mut header, 28 + image * 8, 4, u64::from(sum));
    }
    seal(&mut header, UNDO ^ plan.identity);
    for copy in position..position + 4 {
        if let Some(at) = plan.position(copy) {
            disk[at..at + header.len()].copy_from_slice(&header);
        }
    }
}
