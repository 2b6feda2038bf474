//! What a user chooses when an index is made.

use alloc::vec::Vec;

use store::{Durability, EntryShape, PageFileOptions, PageLogOptions};

use crate::parameters::Settings;

/// What a user chooses when an index is made.
#[derive(Clone, Debug)]
pub struct Options {
    /// The shape of the entries.
    pub shape: EntryShape,
    /// The memory budget for caches and buffers, in bytes.
    pub memory_bytes: u64,
    /// The tree's parameters.
    pub settings: Settings,
    /// How much lasts through a power cut. When an index is made, `None` means
    /// [`Durability::None`]; when it is opened, `None` keeps its durability.
    pub durability: Option<Durability>,
    /// Bytes of the journal, for durabilities that have one; `None` leaves the choice to the
    /// store. Its length bounds the time that opening takes, and the longest batch.
    pub journal_bytes: Option<u64>,
    /// Whether a journal on sectors writes each record before it returns, also where that is not
    /// made durable yet: so the end of the process loses nothing that returned.
    pub journal_through: bool,
    /// Bytes of the user, at most 64, that are kept with the index.
    pub label: Vec<u8>,
    /// The most bytes of tables that grow with the entries, beside the budget; `None` for no bound.
    /// See [`TreeDescriptor::tables_part`](crate::TreeDescriptor::tables_part).
    pub tables_bytes: Option<u64>,
    /// How many entries are expected, if that is known: a footprint's tables are those of so many.
    /// With a bound of the tables, nodes may be larger for it, so that these leave some memory.
    pub entries: Option<u64>,
    /// A number that tells this index from others whose pages may stand on the same device.
    pub identity: u64,
    /// The beginning of the root record of an existing index, from
    /// [`Description::root`](crate::Description::root). The choices that the tree keeps there
    /// override the settings.
    pub made: Option<Vec<u8>>,
    /// A deliberate mistake.
    #[cfg(feature = "canaries")]
    pub canary: Option<store::Canary>,
}

impl Options {
    /// Options without a journal, as the papers measure.
    #[must_use]
    pub const fn new(shape: EntryShape, memory_bytes: u64, settings: Settings) -> Self {
        Options {
            shape,
            memory_bytes,
            settings,
            durability: None,
            journal_bytes: None,
            journal_through: false,
            label: Vec::new(),
            tables_bytes: None,
            entries: None,
            identity: 0,
            made: None,
            #[cfg(feature = "canaries")]
            canary: None,
        }
    }
}

impl Options {
    /// The options of a page file with pages of `page_bytes` bytes.
    #[must_use]
    pub fn page_file(&self, page_bytes: u32, memory_bytes: u64) -> PageFileOptions {
        PageFileOptions {
            durability: self.durability.unwrap_or_default(),
            journal_bytes: self.journal_bytes,
            journal_through: self.journal_through,
            label: self.label.clone(),
            identity: self.identity,
            #[cfg(feature = "canaries")]
            canary: self.canary,
            ..PageFileOptions::new(page_bytes, memory_bytes)
        }
    }
}

impl Options {
    /// The options of a page log.
    #[must_use]
    pub fn page_log(&self) -> PageLogOptions {
        PageLogOptions {
            durability: self.durability.unwrap_or_default(),
            journal_bytes: self.journal_bytes,
            label: self.label.clone(),
            #[cfg(feature = "canaries")]
            canary: self.canary,
        }
    }
}
