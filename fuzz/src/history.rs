//! What is done to an index: sessions of actions, each of which ends in its own way.

use proptest::prelude::*;

use crate::cell::KEYS;

/// A change of one key: its value's length, or none if it is deleted.
pub type KeyChange = (u16, Option<u16>);

/// One step.
#[derive(Clone, Debug)]
pub enum Action {
    /// A batch.
    Update(Vec<KeyChange>),
    /// Keys side by side are put, or deleted.
    Span {
        /// The first key.
        first: u16,
        /// How many.
        count: u16,
        /// Their values' length, or none if they are deleted.
        length: Option<u16>,
    },
    /// A sync.
    Sync,
    /// A checkpoint without a name.
    Checkpoint,
    /// A checkpoint with a new name.
    Keep,
    /// A rollback to one of the names.
    RollBack(u8),
    /// One of the names is forgotten.
    Forget(u8),
    /// The index is closed, and used on.
    Close,
    /// A get.
    Get(u16),
    /// A range between two keys, one way or the other.
    Range(u16, u16, bool),
    /// Everything is read and checked.
    Read,
}

/// How a session ends.
#[derive(Clone, Copy, Debug)]
pub enum End {
    /// The index is closed.
    Close,
    /// It is dropped, and the power goes.
    Drop,
    /// The power goes at this operation, if the session lasts so long; the other number decides
    /// what is left of what was not flushed.
    Cut(u16, u64),
}

/// From an opening, or the making, to its end.
#[derive(Clone, Debug)]
pub struct Session {
    /// What is done.
    pub actions: Vec<Action>,
    /// How it ends.
    pub end: End,
}

fn key() -> impl Strategy<Value = u16> {
    0..KEYS
}

fn change() -> impl Strategy<Value = KeyChange> {
    (key(), prop::option::weighted(0.7, 0..2000u16))
}

fn action() -> impl Strategy<Value = Action> {
    prop_oneof![
        24 => prop::collection::vec(change(), 1..2).prop_map(Action::Update),
        8 => prop::collection::vec(change(), 2..7).prop_map(Action::Update),
        8 => (key(), 1..24u16, prop::option::weighted(0.6, 1..8u16))
            .prop_map(|(first, count, length)| Action::Span { first, count, length }),
        3 => Just(Action::Sync),
        2 => Just(Action::Checkpoint),
        2 => Just(Action::Keep),
        2 => any::<u8>().prop_map(Action::RollBack),
        1 => any::<u8>().prop_map(Action::Forget),
        1 => Just(Action::Close),
        2 => key().prop_map(Action::Get),
        2 => (key(), key(), any::<bool>())
            .prop_map(|(from, to, backward)| Action::Range(from, to, backward)),
        1 => Just(Action::Read),
    ]
}

fn end() -> impl Strategy<Value = End> {
    let cut = prop_oneof![1..40u16, 1..400u16];
    prop_oneof![
        1 => Just(End::Close),
        1 => Just(End::Drop),
        3 => (cut, any::<u64>()).prop_map(|(at, fate)| End::Cut(at, fate)),
    ]
}

/// Sessions of at most `actions` actions.
pub fn sessions(
    count: std::ops::Range<usize>,
    actions: usize,
) -> impl Strategy<Value = Vec<Session>> {
    let session = (prop::collection::vec(action(), 0..actions), end())
        .prop_map(|(actions, end)| Session { actions, end });
    prop::collection::vec(session, count)
}
