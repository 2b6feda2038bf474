//! What is done to the bytes of a disk.
//!
//! A **hit** changes one piece: a bit, a number, the whole of it. If it is *sealed*, the checksums
//! that cover the piece are repaired afterwards, so that the code behind the checksum sees what was
//! made up; if not, the checksum must tell.

use proptest::prelude::*;
use proptest::sample::Index;

use crate::made::{self, Made};
use crate::structure::{Kind, Piece, Plan, number, set_number};

/// A number that takes the place of another.
#[derive(Clone, Copy, Debug)]
pub enum Number {
    /// So much.
    Exactly(u64),
    /// The highest possible, less so much.
    BelowMost(u8),
    /// A power of two.
    Power(u8),
    /// The present number and so much.
    Add(i8),
    /// A page in use, or one of the next few.
    Page(Index),
}

impl Number {
    /// The number of `bytes` bytes that comes to stand where `old` stood, in a disk of `pages`
    /// pages.
    #[must_use]
    pub fn of(self, old: u64, bytes: usize, pages: usize) -> u64 {
        match self {
            Number::Exactly(number) => number,
            Number::BelowMost(less) => u64::MAX - u64::from(less),
            Number::Power(power) => 1 << (usize::from(power) % (8 * bytes)),
            Number::Add(more) => old.wrapping_add_signed(i64::from(more)),
            Number::Page(page) => page.index(pages + 4) as u64,
        }
    }
}

/// Numbers that are likely to hurt.
pub fn numbers() -> impl Strategy<Value = Number> {
    prop_oneof![
        3 => (0..40u64).prop_map(Number::Exactly),
        1 => any::<u64>().prop_map(Number::Exactly),
        2 => (0..4u8).prop_map(Number::BelowMost),
        2 => (0..64u8).prop_map(Number::Power),
        3 => (-3..4i8).prop_map(Number::Add),
        3 => any::<Index>().prop_map(Number::Page),
    ]
}

/// What is done to a piece.
#[derive(Clone, Debug)]
pub enum Change {
    /// A bit flips.
    Flip(u16, u8),
    /// A number becomes another.
    Number(Index, Number),
    /// A number and the one behind it become others.
    Two(Index, Number, Number),
    /// Bytes become others.
    Bytes(u16, Vec<u8>),
    /// All bytes become this one.
    Fill(u8),
    /// What stands elsewhere stands here too.
    Copy(Index),
    /// What stood here earlier stands here again.
    Older,
    /// A node loses all its entries.
    Empty,
    /// A whole page is made up.
    Make(Made),
}

/// One change of one piece.
#[derive(Clone, Debug)]
pub struct Hit {
    /// Which piece, among those that are wanted.
    pub piece: Index,
    /// What is done to it.
    pub change: Change,
    /// Whether its second copy, if there is one, is changed in the same way.
    pub twin: bool,
}

/// What damage did.
#[derive(Debug, Default)]
pub struct Done {
    /// The kinds of pieces that were hit.
    pub kinds: Vec<Kind>,
    /// True if checksums were repaired, or what came was written with them at some time: no code
    /// can tell it from what should stand there.
    pub is_vouched_for: bool,
    /// True if both copies of a header of the undo log were destroyed: what they tell of looks then
    /// as if a cut had torn it.
    pub is_beyond: bool,
}

impl Change {
    /// True if no code can tell what `piece` is now from what should stand there. A copy is judged
    /// by its checksum, not by the piece that it came from: where an image should stand in the undo
    /// log, a cut may have left an older one, of another page.
    fn is_vouched_for(&self, piece: &Piece, target: &Target<'_>) -> bool {
        match self {
            Change::Older | Change::Make(Made::Journal(_) | Made::Undo { .. }) => true,
            Change::Copy(_) => target.plan.is_sealed(target.disk, piece),
            _ => false,
        }
    }
}

/// Changes of any kind.
fn changes() -> impl Strategy<Value = Change> {
    prop_oneof![
        3 => (any::<u16>(), 0..8u8).prop_map(|(at, bit)| Change::Flip(at, bit)),
        8 => (any::<Index>(), numbers()).prop_map(|(field, number)| Change::Number(field, number)),
        3 => (any::<Index>(), numbers(), numbers())
            .prop_map(|(field, one, other)| Change::Two(field, one, other)),
        2 => (any::<u16>(), prop::collection::vec(any::<u8>(), 1..20))
            .prop_map(|(at, bytes)| Change::Bytes(at, bytes)),
        1 => prop_oneof![Just(0), Just(0xFF), any::<u8>()].prop_map(Change::Fill),
        2 => any::<Index>().prop_map(Change::Copy),
        2 => Just(Change::Older),
        1 => Just(Change::Empty),
        4 => made::pages().prop_map(Change::Make),
    ]
}

/// Up to `most` hits.
pub fn hits(most: usize) -> impl Strategy<Value = Vec<Hit>> {
    let hit = (any::<Index>(), changes(), prop::bool::weighted(0.6))
        .prop_map(|(piece, change, twin)| Hit { piece, change, twin });
    prop::collection::vec(hit, 1..=most)
}

/// Bytes to be damaged, and what is known of them.
pub struct Target<'b> {
    /// The bytes.
    pub disk: &'b mut [u8],
    /// What they were earlier.
    pub older: &'b [u8],
    /// Where everything stood before any damage.
    pub plan: Plan,
}

impl Target<'_> {
    /// Applies `hits` to pieces of these kinds, or of any kind if none of these is there.
    pub fn damage(&mut self, hits: &[Hit], kinds: &[Kind], sealed: bool) -> Done {
        let all = self.plan.pieces(self.disk);
        let mut wanted: Vec<_> =
            all.iter().filter(|piece| kinds.contains(&piece.kind)).copied().collect();
        if wanted.is_empty() {
            wanted.clone_from(&all);
        }
        let mut done = Done { is_vouched_for: sealed, ..Done::default() };
        let mut headers = Vec::new();
        for hit in hits {
            let piece = *hit.piece.get(&wanted);
            if piece.kind == Kind::Undo {
                let both = [Some(piece), piece.twin().filter(|_| hit.twin)];
                headers.extend(both.into_iter().flatten().map(|header| header.at));
                let twin = piece.twin().map(|twin| twin.at);
                done.is_beyond |= twin.is_some_and(|twin| headers.contains(&twin));
            }
            done.kinds.push(piece.kind);
            for piece in [Some(piece), piece.twin().filter(|_| hit.twin)].into_iter().flatten() {
                self.change(&piece, &hit.change, &all);
                done.is_vouched_for |= hit.change.is_vouched_for(&piece, self);
                if sealed && !matches!(hit.change, Change::Older) {
                    self.plan.repair(self.disk, &piece);
                }
            }
        }
        done
    }

    fn change(&mut self, piece: &Piece, change: &Change, all: &[Piece]) {
        let range = piece.at..piece.at + piece.length;
        let fields = piece.fields(self.disk);
        match change {
            Change::Flip(at, bit) => {
                self.disk[piece.at + usize::from(*at) % piece.length] ^= 1 << bit;
            }
            Change::Number(field, new) => self.set(piece, *field.get(&fields), *new),
            Change::Two(field, one, other) => {
                let place = field.index(fields.len() - 1);
                self.set(piece, fields[place], *one);
                self.set(piece, fields[place + 1], *other);
            }
            Change::Bytes(at, bytes) => {
                let at = usize::from(*at) % piece.length;
                for (old, new) in self.disk[range].iter_mut().skip(at).zip(bytes) {
                    *old = *new;
                }
            }
            Change::Fill(byte) => self.disk[range].fill(*byte),
            Change::Copy(from) => {
                let from = from.get(all);
                let length = from.length.min(piece.length);
                self.disk.copy_within(from.at..from.at + length, piece.at);
            }
            Change::Older => self.disk[range.clone()].copy_from_slice(&self.older[range]),
            Change::Empty => empty(&mut self.disk[range]),
            Change::Make(made) => made.make(self.disk, &self.plan, piece),
        }
    }

    fn set(&mut self, piece: &Piece, (at, bytes): (usize, usize), new: Number) {
        let old = number(self.disk, piece.at + at, bytes);
        let new = new.of(old, bytes, self.plan.high_water);
        set_number(&mut self.disk[piece.at..piece.at + piece.length], at, bytes, new);
    }
}

/// Makes a node one without entries; other pages lose their count.
fn empty(page: &mut [u8]) {
    set_number(page, 4, 2, 0);
    if page[7] == 2 {
        // Without a prefix and without cells.
        for (at, number) in [(8, 0), (10, page.len() as u64), (12, 0)] {
            set_number(page, at, 2, number);
        }
    }
}
