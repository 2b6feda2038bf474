//! Where an index's memory goes.

use alloc::vec::Vec;

use crate::{Error, Result};

/// Bytes of memory that an index holds. `cache` and `buffers` are what a memory budget bounds;
/// tables come beside it, each with a stated bound.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Memory {
    /// Caches of pages and nodes, with the tables that find them.
    pub cache: u64,
    /// Buffers of updates, and scratch space for merges and recovery.
    pub buffers: u64,
    /// The tree's own tables (node table, node translation table).
    pub tables: u64,
    /// The translation layer's mapping.
    pub ftl: u64,
}

/// Refuses a part of a budget that the system can't provide. Taking it would end the program.
///
/// # Errors
/// [`Error::NoMemory`].
pub fn check_memory(bytes: u64) -> Result<()> {
    let mut probe = Vec::<u8>::new();
    let reserved = usize::try_from(bytes).map(|bytes| probe.try_reserve_exact(bytes));
    // What nobody looks at might never be asked for.
    match core::hint::black_box((reserved, probe)) {
        (Ok(Ok(())), _) => Ok(()),
        _ => Err(Error::NoMemory { bytes }),
    }
}
