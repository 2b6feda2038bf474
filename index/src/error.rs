//! What can go wrong with an index.

use alloc::borrow::Cow;
use alloc::string::String;
use core::fmt::Display;

/// A result of this layer.
pub type Result<T> = core::result::Result<T, Error>;

/// What went wrong, with the facts that a reader needs to act.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The layer below failed or refused.
    #[error(transparent)]
    Store(#[from] store::Error),
    /// A key of another length than the index was made for.
    #[error("a key of {found} bytes: this index holds keys of {expected} bytes")]
    KeyLength {
        /// The length chosen when the index was made.
        expected: u64,
        /// The length given.
        found: u64,
    },
    /// A value of another length than the index was made for.
    #[error("a value of {found} bytes: this index holds values of {expected} bytes")]
    ValueLength {
        /// The length chosen when the index was made.
        expected: u64,
        /// The length given.
        found: u64,
    },
    /// A key and value too long for a node.
    #[error(
        "an entry of {found} bytes is too long: in these nodes, key and value have at most {limit}"
    )]
    EntryTooLong {
        /// The length of key and value together.
        found: u64,
        /// The most that key and value can have together.
        limit: u64,
    },
    /// A key too long for a node.
    #[error("a key of {found} bytes is too long: in these nodes, a key has at most {limit}")]
    KeyTooLong {
        /// The length of the key.
        found: u64,
        /// The most that a key can have.
        limit: u64,
    },
    /// A value longer than any index holds.
    #[error("a value of {found} bytes is too long: a value has at most {limit}")]
    ValueTooLong {
        /// The length of the value.
        found: u64,
        /// The most that a value can have.
        limit: u64,
    },
    /// The tree can't have another level, because its nodes share small pages.
    #[error(
        "full: in pages of {page_bytes} usable bytes this tree has at most {height} levels{}",
        about(*entries)
    )]
    TreeFull {
        /// Bytes of a page that the tree can use: without the tag, where that has no spare area.
        page_bytes: u32,
        /// The most levels that it can have.
        height: u8,
        /// Entries that so many levels hold where every node of the best layout is full, if they
        /// have one length.
        entries: Option<u64>,
    },
    /// A cursor was asked for the value of an entry before it returned one, or after its end.
    #[error("the cursor is not at an entry")]
    NoEntry,
    /// Entries to load do not come in ascending order of their keys.
    #[error("entry {position} is out of order: keys must ascend")]
    NotSorted {
        /// Its place among the entries, from 0.
        position: u64,
    },
    /// Loading into an index that is not empty.
    #[error("only an empty index can be loaded")]
    NotEmpty,
    /// A tree that can't stand on this view of a device.
    #[error("{tree} can't stand on {medium}")]
    WrongMedium {
        /// The tree.
        tree: &'static str,
        /// The view that was given.
        medium: &'static str,
    },
    /// A parameter that the tree does not have.
    #[error("{tree} has no parameter {name}")]
    UnknownParameter {
        /// The tree.
        tree: &'static str,
        /// The parameter given.
        name: String,
    },
    /// A parameter whose value does not fit.
    #[error("{name}={value}: {expected}")]
    BadParameter {
        /// The parameter.
        name: &'static str,
        /// The value given.
        value: String,
        /// What is possible.
        expected: Cow<'static, str>,
    },
    /// An operation that this kind of index or durability does not offer.
    #[error("{what}")]
    Unsupported {
        /// What can't be done.
        what: &'static str,
    },
}

impl Error {
    /// Reports damage as a finding, so that a check goes on. Other errors end the check.
    pub fn report_damage(self, finding: &mut dyn FnMut(&dyn Display)) -> Result<()> {
        match self {
            Error::Store(damage) if damage.is_damage() => {
                finding(&self);
                Ok(())
            }
            error => Err(error),
        }
    }
}

/// About how many entries these levels hold.
fn about(entries: Option<u64>) -> Cow<'static, str> {
    entries.map_or("".into(), |entries| {
        alloc::format!(": about {entries} entries if every node is full, fewer in random order")
            .into()
    })
}

impl From<device::Error> for Error {
    fn from(error: device::Error) -> Self {
        Error::Store(error.into())
    }
}
