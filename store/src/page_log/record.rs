//! The record of a checkpoint, and how it stands in the log.
//!
//! ```text
//!  record   FLOG | version u32 | id u64 | durability u8 | flags u8 | journal pages u32
//!           | label bytes u8 | label | names u8 | each: id u64, page u32, bytes u8, name
//!           | sequence u64 | epoch of the journal u64 | sequence that it follows u64
//!           | blocks that nothing needs (`stale.rs`)
//!           | root bytes u32 | root record of the tree
//!
//!  piece    0          4        12           16           20            24
//!           +----------+--------+------------+------------+-------------+----------
//!           | checksum | id     | where it   | where it   | page of the | bytes of
//!           | u32      | u64    | begins u32 | ends u32   | piece before| the record
//!           +----------+--------+------------+------------+-------------+----------
//! ```
//!
//! A record is cut into pieces of a page each. The last one is a page of another kind: with it the
//! checkpoint is made, and from it the pieces are found, each from the one behind it. Numbers are
//! little-endian. Where the journal stays, which a flag says, it is that of an earlier checkpoint,
//! and all of it is replayed. The checksum covers the page's address and the rest of the page's
//! content.

use alloc::string::String;
use alloc::vec::Vec;

use device::{Cause, Geometry, Page};

use super::checkpoint::NAMES_MOST;
use super::own_pages::{CHECKSUM_BYTES, Form, OwnPages, content_bytes_twice};
use super::stale::Stale;
use super::{PageKind, content_start};
use crate::bytes::{Reader, Writer};
use crate::recovery::NAME_BYTES_MOST;
use crate::{CheckpointId, Durability, Error, Result, Savepoint};

const MAGIC: [u8; 4] = *b"FLOG";

/// The version of everything that the page log writes.
pub(super) const VERSION: u32 = 4;

/// The most bytes of a label.
pub(super) const LABEL_BYTES_MOST: usize = 64;

const CLOSED: u8 = 1;
const JOURNAL_STAYS: u8 = 2;

/// Bytes in front of what a piece has of the record, with the checksum.
const PIECE_HEADER: usize = 24;

/// Bytes of a record beside its root record and its stale blocks, at most.
const BESIDE_BYTES_MOST: u64 = 80 + (LABEL_BYTES_MOST + NAMES_MOST * (13 + NAME_BYTES_MOST)) as u64;

/// Pages of a record on `chip`, at most, whose root record has `root_bytes` bytes.
pub(super) fn pages_most(chip: Geometry, root_bytes: u64) -> u64 {
    let stale = Stale::bytes_most(chip.blocks()) as u64;
    let room = u64::from(chip.page_bytes()) - (content_start(chip) + PIECE_HEADER) as u64;
    let room_of_last = (content_bytes_twice(chip) - PIECE_HEADER) as u64;
    (BESIDE_BYTES_MOST + stale + root_bytes).saturating_sub(room_of_last).div_ceil(room) + 1
}

const NO_PAGE: u32 = u32::MAX;

/// What a checkpoint says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Record {
    pub(super) id: CheckpointId,
    pub(super) durability: Durability,
    /// True if nothing was in memory only.
    pub(super) is_closed: bool,
    pub(super) journal_pages: u32,
    pub(super) label: Vec<u8>,
    /// The checkpoints that are kept, and the last pages of their records.
    pub(super) names: Vec<(Savepoint, Page)>,
    /// The sequence of the record's first page.
    pub(super) sequence: u64,
    /// The journal, if it began before the checkpoint and stays.
    pub(super) journal: Option<Epoch>,
    /// Blocks that nothing needs, though they were not erased.
    pub(super) stale: Stale,
    pub(super) root: Vec<u8>,
}

/// Which journal is replayed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Epoch {
    /// The number of the checkpoint before it.
    pub(super) id: u64,
    /// The sequence of the last page of that.
    pub(super) since: u64,
}

impl Record {
    /// The record, but for the root record at its end, of which there are `root_bytes` bytes.
    pub(super) fn encode_head(&self, root_bytes: usize) -> Vec<u8> {
        let names: usize = self.names.iter().map(|(kept, _)| 13 + kept.name.len()).sum();
        let beside = self.label.len() + names + self.stale.bytes();
        let mut bytes = Vec::with_capacity(80 + beside);
        bytes.extend_from_slice(&MAGIC);
        bytes.extend_from_slice(&VERSION.to_le_bytes());
        bytes.extend_from_slice(&self.id.0.to_le_bytes());
        let durability = Durability::ALL.iter().position(|known| *known == self.durability);
        bytes.push(durability.unwrap_or_default() as u8);
        let flag = |is_set, flag| if is_set { flag } else { 0 };
        bytes.push(flag(self.is_closed, CLOSED) | flag(self.journal.is_some(), JOURNAL_STAYS));
        bytes.extend_from_slice(&self.journal_pages.to_le_bytes());
        bytes.push(self.label.len() as u8);
        bytes.extend_from_slice(&self.label);
        bytes.push(self.names.len() as u8);
        for (kept, page) in &self.names {
            bytes.extend_from_slice(&kept.id.0.to_le_bytes());
            bytes.extend_from_slice(&page.0.to_le_bytes());
            bytes.push(kept.name.len() as u8);
            bytes.extend_from_slice(kept.name.as_bytes());
        }
        bytes.extend_from_slice(&self.sequence.to_le_bytes());
        let journal = self.journal.unwrap_or_default();
        bytes.extend_from_slice(&journal.id.to_le_bytes());
        bytes.extend_from_slice(&journal.since.to_le_bytes());
        self.stale.encode(&mut bytes);
        bytes.extend_from_slice(&(root_bytes as u32).to_le_bytes());
        bytes
    }

    /// Reads the record whose last piece stands in `last`.
    ///
    /// # Errors
    /// There is none, it is damaged, or the chip failed.
    pub(super) fn read(own: &mut OwnPages<'_>, last: Page, cause: Cause) -> Result<Self> {
        let damaged = Error::NotAnIndex { is_ours: true, what: "its checkpoint is damaged" };
        // Once to see that all of it is there, and only then for its bytes.
        let first = Piece::read(own, last, cause)?.ok_or(damaged)?;
        let mut piece = first;
        while let Some(page) = piece.before {
            piece = piece.read_before(own, page, cause)?.ok_or(damaged)?;
        }
        let mut record = alloc::vec![0; first.end as usize];
        let mut page = last;
        loop {
            let piece = Piece::read(own, page, cause)?.ok_or(damaged)?;
            let into = record.get_mut(piece.start as usize..piece.end as usize).ok_or(damaged)?;
            let content = &own.content()[PIECE_HEADER - CHECKSUM_BYTES..];
            into.copy_from_slice(content.get(..into.len()).ok_or(damaged)?);
            let Some(next) = piece.before else {
                return Record::decode(record);
            };
            page = next;
        }
    }

    fn decode(mut bytes: Vec<u8>) -> Result<Self> {
        let damaged = Error::NotAnIndex { is_ours: true, what: "its checkpoint makes no sense" };
        let (mut record, head_bytes) = Self::decode_head(&bytes)?;
        let root_bytes = bytes.len() - head_bytes;
        let said = bytes.get(head_bytes.wrapping_sub(4)..head_bytes).map(|said| said.to_vec());
        if said.as_deref() != Some(&(root_bytes as u32).to_le_bytes()) {
            return Err(damaged);
        }
        // It may be long: so there is no second copy of it.
        bytes.drain(..head_bytes);
        record.root = bytes;
        Ok(record)
    }

    /// The record without its root record, and where that begins.
    fn decode_head(bytes: &[u8]) -> Result<(Self, usize)> {
        let damaged = Error::NotAnIndex { is_ours: true, what: "its checkpoint makes no sense" };
        let mut from = Reader::new(bytes);
        if from.array() != Some(MAGIC) {
            return Err(damaged);
        }
        match from.u32() {
            Some(VERSION) => {}
            Some(found) => return Err(Error::OtherVersion { expected: VERSION, found }),
            None => return Err(damaged),
        }
        let record = Self::decode_fields(&mut from).ok_or(damaged)?;
        Ok((record, bytes.len() - from.left()))
    }

    fn decode_fields(from: &mut Reader<'_>) -> Option<Self> {
        let id = CheckpointId(from.u64()?);
        let [durability, flags] = from.array()?;
        let durability = *Durability::ALL.get(usize::from(durability))?;
        let journal_pages = from.u32()?;
        let [label_bytes] = from.array()?;
        let label = from.bytes(usize::from(label_bytes))?.to_vec();
        let [count] = from.array()?;
        let mut names = Vec::new();
        for _ in 0..count {
            names.push(decode_name(from)?);
        }
        let sequence = from.u64()?;
        let journal = Epoch { id: from.u64()?, since: from.u64()? };
        let stale = Stale::decode(from)?;
        let _root_bytes = from.u32()?;
        let is_plausible = label.len() <= LABEL_BYTES_MOST && names.len() <= NAMES_MOST;
        let is_known = flags & !(CLOSED | JOURNAL_STAYS) == 0;
        (is_plausible && is_known).then_some(Record {
            id,
            durability,
            is_closed: flags & CLOSED != 0,
            journal_pages,
            label,
            names,
            sequence,
            journal: (flags & JOURNAL_STAYS != 0).then_some(journal),
            stale,
            root: Vec::new(),
        })
    }
}

fn decode_name(from: &mut Reader<'_>) -> Option<(Savepoint, Page)> {
    let id = CheckpointId(from.u64()?);
    let page = Page(from.u32()?);
    let [bytes] = from.array()?;
    let name = core::str::from_utf8(from.bytes(usize::from(bytes))?).ok()?;
    let is_plausible = !name.is_empty() && name.len() <= NAME_BYTES_MOST;
    is_plausible.then(|| (Savepoint { name: String::from(name), id }, page))
}

/// What a piece says beside its bytes of the record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Piece {
    id: u64,
    /// Where it begins in the record, and where it ends.
    start: u32,
    end: u32,
    before: Option<Page>,
}

impl Piece {
    /// Reads the piece in `page`; `None` if there is none that is whole.
    pub(super) fn read(own: &mut OwnPages<'_>, page: Page, cause: Cause) -> Result<Option<Self>> {
        if own.pages.geometry.check_page(page).is_err() {
            return Ok(None);
        }
        let Some(form) = own.read(page, cause)? else {
            return Ok(None);
        };
        let mut from = Reader::new(own.content());
        let fields = (from.u64(), from.u32(), from.u32(), from.u32());
        let (Some(id), Some(start), Some(end), Some(before)) = fields else {
            return Ok(None);
        };
        let before = (before != NO_PAGE).then_some(Page(before));
        // The first piece has no other before it, and no other piece has.
        let room = own.content_bytes(form) - PIECE_HEADER;
        let bytes = end.checked_sub(start).filter(|bytes| *bytes as usize <= room);
        let is_plausible = bytes.is_some() && end > 0 && before.is_none() == (start == 0);
        Ok(is_plausible.then_some(Piece { id, start, end, before }))
    }

    /// Reads the piece in `page` that has to stand before this one.
    fn read_before(
        &self,
        own: &mut OwnPages<'_>,
        page: Page,
        cause: Cause,
    ) -> Result<Option<Self>> {
        let piece = Piece::read(own, page, cause)?;
        // Only the last one may be empty: so this comes to an end.
        Ok(piece.filter(|piece| {
            piece.id == self.id && piece.end == self.start && piece.start < piece.end
        }))
    }

    /// Gives the page of each piece of the record whose last stands in `last` to `each`.
    pub(super) fn each(
        own: &mut OwnPages<'_>,
        last: Page,
        mut each: impl FnMut(&mut OwnPages<'_>, Page),
    ) -> Result<()> {
        let what = "the record of a named checkpoint is damaged";
        let damaged = Error::NotAnIndex { is_ours: true, what };
        let mut page = Some(last);
        let mut pages_left = own.pages.geometry.pages();
        while let Some(piece) = page {
            each(own, piece);
            pages_left = pages_left.checked_sub(1).ok_or(Error::NoCheckpoint)?;
            page = Piece::read(own, piece, Cause::Recovery)?.ok_or(damaged)?.before;
        }
        Ok(())
    }
}

/// Writes the record that is `head` and then `root` behind what there is, in one block if it has
/// room in one: else three blocks could be in use at once, and two are kept back. Returns its last
/// page.
pub(super) fn write(
    own: &mut OwnPages<'_>,
    id: CheckpointId,
    (head, root): (&[u8], &[u8]),
) -> Result<Page> {
    let [room, room_of_last] =
        [Form::Once, Form::Twice].map(|form| own.content_bytes(form) - PIECE_HEADER);
    let all = head.len() + root.len();
    let pages = 1 + all.saturating_sub(room_of_last).div_ceil(room);
    own.stream.leave_unless(pages, own.pages.geometry);
    let (mut before, mut bytes) = (NO_PAGE, 0);
    loop {
        let is_last = all - bytes <= room_of_last;
        let end = all.min(bytes + room);
        let content = own.content_mut();
        content.fill(0xFF);
        let mut to = Writer::new(content);
        to.u64(id.0);
        to.u32(bytes as u32);
        to.u32(end as u32);
        to.u32(before);
        to.bytes(&head[bytes.min(head.len())..end.min(head.len())]);
        let in_root = |place: usize| place.saturating_sub(head.len());
        to.bytes(&root[in_root(bytes)..in_root(end)]);
        bytes = end;
        if is_last {
            return own.append(PageKind::Checkpoint, Form::Twice, Cause::Checkpoint);
        }
        before = own.append(PageKind::Piece, Form::Once, Cause::Checkpoint)?.0;
    }
}
