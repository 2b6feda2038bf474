//! What is asked of every store.

use std::path::Path;

use crate::Outcome;
use crate::engines::{bf_tree, fjall, flashtree, lmdb, redb, sqlite};
use crate::workload::Batch;

/// How a store is opened.
#[derive(Clone, Copy, Debug)]
pub struct Setup {
    /// Bytes for its caches and buffers.
    pub memory: usize,
    /// Whether commits last when they return. Otherwise a power cut may take what came after the
    /// last sync.
    pub synced: bool,
}

/// A store that is open. It closes when it is dropped, unless `close` says how that went.
pub trait Engine {
    /// Puts all of the batch or nothing; it lasts if `durable`.
    ///
    /// # Errors
    /// What the store says.
    fn put(&mut self, batch: &Batch, durable: bool) -> Outcome<()>;

    /// Reads the value of a key into `value`; false if there is none.
    ///
    /// # Errors
    /// What the store says.
    fn get(&mut self, key: &[u8], value: &mut Vec<u8>) -> Outcome<bool>;

    /// Calls `each` with the keys and values from a key on, at most `count`.
    ///
    /// # Errors
    /// What the store says.
    fn scan(
        &mut self,
        from: &[u8],
        count: usize,
        each: &mut dyn FnMut(&[u8], &[u8]),
    ) -> Outcome<()>;

    /// Deletes a key.
    ///
    /// # Errors
    /// What the store says.
    fn delete(&mut self, key: &[u8]) -> Outcome<()>;

    /// All that was put lasts.
    ///
    /// # Errors
    /// What the store says.
    fn sync(&mut self) -> Outcome<()>;

    /// Closes it.
    ///
    /// # Errors
    /// What the store says.
    fn close(self: Box<Self>) -> Outcome<()>;
}

/// A kind of store.
#[derive(Clone, Copy)]
pub struct Kind {
    /// Its name.
    pub name: &'static str,
    /// The package that it comes from.
    pub package: &'static str,
    /// All that is set, and all that matters and is not.
    pub settings: fn(&Setup) -> String,
    /// Opens the one in an existing folder; makes it where there is none.
    pub open: fn(&Path, &Setup) -> Outcome<Box<dyn Engine>>,
    /// Whether threads of its own go on when calls have returned.
    pub background: bool,
    /// Whether commits can be made to last, and what was put is there when it is opened again.
    pub lasts: bool,
}

impl Kind {
    /// The version of its package, as `Cargo.lock` has it.
    #[must_use]
    pub fn version(&self) -> &'static str {
        let entry = format!("name = \"{}\"\nversion = \"", self.package);
        let version = include_str!("../Cargo.lock").split_once(&entry);
        version.and_then(|(_, rest)| rest.split('"').next()).unwrap_or("of the system")
    }
}

/// All of them, in the order of the tables.
#[must_use]
pub fn all() -> Vec<Kind> {
    let mut kinds = flashtree::KINDS.to_vec();
    kinds.extend([redb::KIND, sqlite::KIND, lmdb::KIND, fjall::KIND]);
    #[cfg(feature = "rocksdb")]
    kinds.push(crate::engines::rocksdb::KIND);
    kinds.push(bf_tree::KIND);
    kinds
}

/// The one of this name.
///
/// # Errors
/// A name that none has, with those that there are.
pub fn find(name: &str) -> Outcome<Kind> {
    let kinds = all();
    let names: Vec<_> = kinds.iter().map(|kind| kind.name).collect();
    let found = kinds.iter().find(|kind| kind.name == name);
    Ok(*found.ok_or_else(|| format!("no engine is called {name}: {}", names.join(", ")))?)
}

/// Bytes as settings name them.
#[must_use]
pub fn mebibytes(bytes: usize) -> String {
    format!("{} MiB", bytes as f64 / f64::from(1 << 20))
}
