//! What stands where on a disk with an index, read out of its bytes by FORMAT.md alone.
//!
//! Nothing here is shared with the code that is fuzzed: so a checksum that is repaired here is one
//! by the document, and a mistake in either is seen.

/// Bytes of a checksum.
const CHECKSUM: usize = 4;

/// Where the label begins in a superblock; behind it stands the checkpoint.
const LABEL: usize = 92;

/// What a piece of a disk is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kind {
    /// A superblock.
    Superblock,
    /// A page of the journal.
    Journal,
    /// A header of a group of the undo log.
    Undo,
    /// An image in the undo log.
    Image,
    /// A node with entries of fixed length.
    Packed,
    /// A node with slots.
    Slotted,
    /// A node whose entries are of one length, and have one prefix.
    Dense,
    /// A page of the free list.
    Free,
    /// A page that tells where a long value stands.
    Index,
    /// A part of a long value.
    Data,
}

/// A page, a sector, or an image.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Piece {
    /// What it is.
    pub kind: Kind,
    /// Where it begins on the disk, in bytes.
    pub at: usize,
    /// Its length in bytes.
    pub length: usize,
    /// The address that its checksum covers, before the identity changes it; of an image its unit.
    address: u64,
    /// Where both copies begin, of a superblock or of a header of the undo log; of an image, those
    /// of its group's header.
    copies: Option<[usize; 2]>,
    /// Of an image, its place in the group.
    place: usize,
}

/// Where everything stands.
#[derive(Clone, Copy, Debug)]
pub struct Plan {
    /// Bytes in a sector.
    pub sector: usize,
    /// Bytes in a page.
    pub page: usize,
    /// Sectors of the journal.
    pub journal: usize,
    /// The first of them.
    pub journal_at: usize,
    /// Where page 0 begins, in bytes.
    base: usize,
    /// Pages that are or were in use.
    pub high_water: usize,
    /// Units that there is room for, and those that there can be.
    units: [usize; 2],
    /// The epoch that the superblock began, and the one that the journal is marked with.
    pub epochs: (u64, u64),
    /// Where the undo log begins.
    pub undo_start: usize,
    /// What changes the address that a checksum covers, but that of a superblock and of an image.
    pub identity: u64,
}

/// The number of `bytes` bytes at `at`, at most 8; 0 where there are none.
#[must_use]
pub fn number(from: &[u8], at: usize, bytes: usize) -> u64 {
    let found = from.get(at..at + bytes).unwrap_or_default();
    found.iter().rev().fold(0, |number, byte| number << 8 | u64::from(*byte))
}

/// Writes a number of `bytes` bytes, as far as there is room for it.
pub fn set_number(into: &mut [u8], at: usize, bytes: usize, number: u64) {
    if let Some(place) = into.get_mut(at..at + bytes) {
        place.copy_from_slice(&number.to_le_bytes()[..bytes]);
    }
}

fn checksum(address: u64, bytes: &[u8]) -> u32 {
    device::checksum(&[&address.to_le_bytes(), bytes])
}

const SUPERBLOCK: u64 = u64::MAX;
/// What the checksums of pages of the journal cover as their address.
pub const JOURNAL: u64 = 1 << 61;
/// What the checksums of headers of the undo log cover as their address.
pub const UNDO: u64 = 1 << 62;

/// Makes the first bytes of `piece` its checksum.
pub fn seal(piece: &mut [u8], address: u64) {
    let sum = checksum(address, &piece[CHECKSUM..]);
    set_number(piece, 0, CHECKSUM, u64::from(sum));
}

impl Plan {
    /// The plan of a disk that holds an index; none if it does not.
    #[must_use]
    pub fn of(disk: &[u8], sector: usize) -> Option<Plan> {
        let superblocks = [&disk[..sector], &disk[sector..2 * sector]];
        let whole = |superblock: &&&[u8]| {
            superblock[4..12] == *b"flshtree"
                && number(superblock, 0, 4) == u64::from(checksum(SUPERBLOCK, &superblock[4..]))
        };
        let superblock =
            superblocks.iter().filter(whole).max_by_key(|superblock| number(superblock, 16, 8))?;
        let page = number(superblock, 24, 4) as usize;
        let journal = number(superblock, 48, 4) as usize;
        let journal_most = number(superblock, 40, 4) as usize;
        let checkpoint = LABEL + usize::from(superblock[31]);
        let unit = page.max(sector);
        let base = 2_usize.next_multiple_of((page / sector).max(1)) * sector;
        let units = (number(superblock, 44, 4) as usize).div_ceil(unit / page);
        let most = (number(superblock, 32, 8) as usize).checked_sub(journal_most)? * sector;
        Some(Plan {
            sector,
            page,
            journal,
            journal_at: (base + units * unit) / sector,
            base,
            units: [units, most.checked_sub(base)? / unit],
            high_water: number(superblock, checkpoint + 8, 4) as usize,
            epochs: (number(superblock, 64, 8), number(superblock, 56, 8)),
            undo_start: number(superblock, checkpoint + 20, 4) as usize,
            identity: number(superblock, 72, 8),
        })
    }

    /// Bytes in what is written at once.
    #[must_use]
    pub fn unit(&self) -> usize {
        self.page.max(self.sector)
    }

    /// Units that there can be.
    #[must_use]
    pub const fn units_most(&self) -> usize {
        self.units[1]
    }

    /// Where the unit at this position of the undo log begins; none if the run can't go so far.
    #[must_use]
    pub fn position(&self, position: usize) -> Option<usize> {
        let [units, most] = self.units;
        let chunk = (most / 64).clamp(1, 16);
        let first = units.checked_sub((position / chunk + 1) * chunk)?;
        Some(self.base + (first + position % chunk) * self.unit())
    }

    /// Where a page begins.
    #[must_use]
    pub fn page_at(&self, page: usize) -> usize {
        self.base + page * self.page
    }

    /// Everything that stands on the disk.
    #[must_use]
    pub fn pieces(&self, disk: &[u8]) -> Vec<Piece> {
        let mut pieces = self.superblocks();
        pieces.extend(self.journal_pages(disk));
        pieces.extend(self.undo_log(disk));
        pieces.extend((0..self.high_water).filter_map(|page| self.page_piece(disk, page)));
        pieces
    }

    fn superblocks(&self) -> Vec<Piece> {
        let superblock = |slot: usize| Piece {
            kind: Kind::Superblock,
            at: slot * self.sector,
            length: self.sector,
            address: SUPERBLOCK,
            copies: Some([0, self.sector]),
            place: 0,
        };
        vec![superblock(0), superblock(1)]
    }

    /// Pages of the journal: one a sector, or the same twice.
    fn journal_pages(&self, disk: &[u8]) -> Vec<Piece> {
        let mut pieces = Vec::new();
        for sector in 0..self.journal {
            let (at, half) = ((self.journal_at + sector) * self.sector, self.sector / 2);
            let address = JOURNAL ^ sector as u64;
            let Some(page) = disk.get(at..at + self.sector) else {
                break;
            };
            if page[4..8] != *b"JRNL" || number(page, 8, 8) != self.epochs.1 {
                continue;
            }
            let sum = checksum(address ^ self.identity, &page[CHECKSUM..]);
            if number(page, 0, CHECKSUM) == u64::from(sum) {
                pieces.push(self.piece(Kind::Journal, at, self.sector, address));
            } else {
                pieces.push(self.piece(Kind::Journal, at, half, address));
                pieces.push(self.piece(Kind::Journal, at + half, half, address));
            }
        }
        pieces
    }

    fn piece(&self, kind: Kind, at: usize, length: usize, address: u64) -> Piece {
        Piece { kind, at, length, address, copies: None, place: 0 }
    }

    /// The groups of the run of the present epoch, and those that named checkpoints keep.
    fn undo_log(&self, disk: &[u8]) -> Vec<Piece> {
        let mut pieces = Vec::new();
        let mut position = 0;
        while self.position(position).is_some() {
            let Some([at, twin]) = self.last_version(disk, position) else {
                if position >= self.undo_start {
                    break;
                }
                position += 1;
                continue;
            };
            let header = &disk[at..at + self.sector];
            let images = (number(header, 20, 4) as usize).min((self.sector - 24) / 8);
            for copy in [at, twin] {
                let header = self.piece(Kind::Undo, copy, self.sector, UNDO);
                pieces.push(Piece { copies: Some([at, twin]), ..header });
            }
            for image in 0..images {
                let unit = number(header, 24 + image * 8, 4);
                if let Some(place) = self.position(position + 4 + image) {
                    let piece = self.piece(Kind::Image, place, self.unit(), unit);
                    pieces.push(Piece { copies: Some([at, twin]), place: image, ..piece });
                }
            }
            position += 4 + images;
        }
        pieces
    }

    /// Where both copies of the last version of the header at this position begin.
    fn last_version(&self, disk: &[u8], position: usize) -> Option<[usize; 2]> {
        let pairs = [0, 2].map(|pair| {
            Some([self.position(position + pair)?, self.position(position + pair + 1)?])
        });
        let rank = |[at, _]: &[usize; 2]| {
            let header = &disk[*at..at + self.sector];
            let is_header = header[4..8] == *b"UNDO" && number(header, 16, 4) == position as u64;
            is_header.then(|| (number(header, 8, 8), number(header, 20, 4)))
        };
        let versions = pairs.into_iter().flatten().filter(|pair| rank(pair).is_some());
        versions.max_by_key(rank)
    }

    fn page_piece(&self, disk: &[u8], page: usize) -> Option<Piece> {
        let at = self.page_at(page);
        let kind = match disk.get(at + 7)? {
            1 => Kind::Packed,
            2 => Kind::Slotted,
            3 => Kind::Free,
            4 => Kind::Index,
            5 => Kind::Data,
            11 => Kind::Dense,
            _ => return None,
        };
        (at + self.page <= disk.len()).then(|| self.piece(kind, at, self.page, page as u64))
    }

    /// What the checksum of `piece` covers as its address.
    const fn address(&self, piece: &Piece) -> u64 {
        match piece.kind {
            Kind::Superblock | Kind::Image => piece.address,
            _ => piece.address ^ self.identity,
        }
    }

    /// True if the checksum that covers `piece` is right.
    #[must_use]
    pub fn is_sealed(&self, disk: &[u8], piece: &Piece) -> bool {
        let bytes = &disk[piece.at..piece.at + piece.length];
        let stands = |at: usize, bytes: &[u8]| {
            number(disk, at, CHECKSUM) == u64::from(checksum(self.address(piece), bytes))
        };
        match (piece.kind, piece.copies) {
            (Kind::Image, Some([header, _])) => stands(header + 24 + piece.place * 8 + 4, bytes),
            _ => stands(piece.at, &bytes[CHECKSUM..]),
        }
    }

    /// Repairs the checksum of `piece`, and whatever else covers it.
    pub fn repair(&self, disk: &mut [u8], piece: &Piece) {
        if piece.kind == Kind::Image {
            return self.repair_image(disk, piece);
        }
        let before = number(disk, piece.at, CHECKSUM);
        seal(&mut disk[piece.at..piece.at + piece.length], self.address(piece));
        let after = number(disk, piece.at, CHECKSUM);
        if piece.kind == Kind::Journal && before != after {
            self.repair_chain(disk, (before, after));
        }
    }

    /// Pages of the journal name the checksum of the page before.
    fn repair_chain(&self, disk: &mut [u8], first: (u64, u64)) {
        let mut changed = vec![first];
        // Each page is repaired once, so that damage can't make a circle.
        let mut pages = self.journal_pages(disk);
        while let Some((before, after)) = changed.pop() {
            let follows = |page: &Piece, disk: &[u8]| number(disk, page.at + 28, 4) == before;
            while let Some(place) = pages.iter().position(|page| follows(page, disk)) {
                let next = pages.swap_remove(place);
                let old = number(disk, next.at, CHECKSUM);
                let page = &mut disk[next.at..next.at + next.length];
                set_number(page, 28, 4, after);
                seal(page, next.address ^ self.identity);
                changed.push((old, number(page, 0, CHECKSUM)));
            }
        }
    }

    /// The checksum of an image stands in both headers of its group; what the image holds are pages
    /// with checksums of their own.
    fn repair_image(&self, disk: &mut [u8], piece: &Piece) {
        for part in 0..self.unit() / self.page {
            let page = piece.address * (self.unit() / self.page) as u64 + part as u64;
            let at = piece.at + part * self.page;
            seal(&mut disk[at..at + self.page], page ^ self.identity);
        }
        let sum = checksum(piece.address, &disk[piece.at..piece.at + piece.length]);
        for header in piece.copies.into_iter().flatten() {
            let header = &mut disk[header..header + self.sector];
            set_number(header, 24 + piece.place * 8 + 4, 4, u64::from(sum));
            seal(header, UNDO ^ self.identity);
        }
    }
}

impl Piece {
    /// The second copy of a superblock or of a header of the undo log.
    #[must_use]
    pub fn twin(&self) -> Option<Piece> {
        let copies = self.copies.filter(|_| self.kind != Kind::Image)?;
        let at = copies.into_iter().find(|copy| *copy != self.at)?;
        Some(Piece { at, ..*self })
    }

    /// Where its numbers stand, in bytes from its start, and their lengths.
    #[must_use]
    pub fn fields(&self, disk: &[u8]) -> Vec<(usize, usize)> {
        match self.kind {
            Kind::Superblock => superblock_fields(usize::from(disk[self.at + 31])),
            Kind::Journal => journal_fields(),
            Kind::Undo => {
                let mut fields = vec![(4, 4), (8, 8), (16, 4), (20, 4)];
                fields.extend((0..6).map(|entry| (24 + 4 * entry, 4)));
                fields
            }
            Kind::Packed => vec![(4, 2), (6, 1), (7, 1), (8, 4), (12, 4), (16, 4), (20, 4)],
            Kind::Slotted => self.slotted_fields(disk),
            Kind::Dense => vec![(4, 2), (6, 1), (7, 1), (8, 2), (10, 2), (12, 2), (16, 4)],
            Kind::Free => {
                vec![(4, 2), (6, 1), (7, 1), (8, 4), (12, 4), (16, 4), (self.length - 4, 4)]
            }
            Kind::Index => vec![(4, 2), (7, 1), (8, 4), (12, 4), (16, 4), (20, 4), (24, 4)],
            Kind::Data => vec![(4, 2), (7, 1), (8, 4)],
            Kind::Image => vec![(4, 2), (6, 1), (7, 1), (8, 4), (12, 4)],
        }
    }

    /// The header, the first slots, and what stands at the start of the first cells.
    fn slotted_fields(&self, disk: &[u8]) -> Vec<(usize, usize)> {
        let mut fields = vec![(4, 2), (6, 1), (7, 1), (8, 2), (10, 2), (12, 2), (14, 2)];
        let entries = (number(disk, self.at + 4, 2) as usize).min(20);
        for slot in 0..entries {
            let slot = 16 + 2 * slot;
            let cell = number(disk, self.at + slot, 2) as usize;
            fields.push((slot, 2));
            if cell + 12 <= self.length {
                fields.extend([(cell, 2), (cell + 2, 2), (cell + 4, 4), (cell + 8, 4)]);
            }
        }
        fields
    }
}

/// The superblock's own numbers, its label's first bytes, the numbers of its checkpoint, and those
/// of the root record in it.
fn superblock_fields(label: usize) -> Vec<(usize, usize)> {
    let own = [(12, 4), (16, 8), (24, 4), (28, 1), (29, 1), (31, 1), (32, 8), (40, 4), (44, 4)];
    let own =
        own.into_iter().chain([(48, 4), (52, 4), (56, 8), (64, 8), (72, 8), (80, 8), (88, 4)]);
    let label_bytes = (LABEL..LABEL + label.min(4)).map(|at| (at, 1));
    let state = [(0, 8), (8, 4), (12, 4), (16, 4), (20, 4), (24, 4), (28, 4), (32, 4), (36, 4)];
    let state = state.into_iter().chain([(40, 4), (44, 8), (52, 1)]);
    // The name of the tree has 6 bytes; without a name of the checkpoint the record begins at 53.
    let root = [(53, 1), (54, 1), (60, 2), (62, 2), (64, 4), (68, 1), (69, 8), (77, 4)];
    let behind = state.chain(root).map(|(at, bytes)| (LABEL + label + at, bytes));
    own.chain(label_bytes).chain(behind).collect()
}

/// The header, and the first record with its first update.
fn journal_fields() -> Vec<(usize, usize)> {
    vec![
        (4, 4),
        (8, 8),
        (16, 4),
        (20, 4),
        (24, 4),
        (28, 4),
        (32, 8),
        (40, 4),
        (44, 1),
        (45, 2),
        (47, 4),
    ]
}
