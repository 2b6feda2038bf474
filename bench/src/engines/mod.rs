//! One file a store, with all that is set in it.

pub(crate) mod bf_tree;
pub(crate) mod fjall;
pub(crate) mod flashtree;
pub(crate) mod lmdb;
pub(crate) mod redb;
#[cfg(feature = "rocksdb")]
pub(crate) mod rocksdb;
pub(crate) mod sqlite;
