//! fjall: a log-structured merge tree in pure Rust.

use std::path::Path;

use fjall::config::CompressionPolicy;
use fjall::{Database, Keyspace, KeyspaceCreateOptions, PersistMode};

use crate::Outcome;
use crate::engine::{Engine, Kind, Setup, mebibytes};
use crate::workload::Batch;

/// The least that it takes.
const JOURNALS: u64 = 64 << 20;
const WORKERS: usize = 2;

pub(crate) const KIND: Kind =
    Kind { name: "fjall", package: "fjall", settings, open, background: true, lasts: true };

/// Half of the memory for blocks, the rest for four memtables: some are being written out.
const fn cache_bytes(setup: &Setup) -> u64 {
    setup.memory as u64 / 2
}

const fn memtable_bytes(setup: &Setup) -> u64 {
    setup.memory as u64 / 8
}

fn settings(setup: &Setup) -> String {
    format!(
        "`cache_size` {}, `max_memtable_size` {}, `max_journaling_size` {} (the least), \
         `worker_threads` {WORKERS}, no \
         compression, batches with `PersistMode::{:?}`, else its defaults",
        mebibytes(cache_bytes(setup) as usize),
        mebibytes(memtable_bytes(setup) as usize),
        mebibytes(JOURNALS as usize),
        mode(setup.synced)
    )
}

const fn mode(durable: bool) -> PersistMode {
    if durable { PersistMode::SyncData } else { PersistMode::Buffer }
}

fn open(folder: &Path, setup: &Setup) -> Outcome<Box<dyn Engine>> {
    let database = Database::builder(folder.join("fjall"))
        .cache_size(cache_bytes(setup))
        .max_journaling_size(JOURNALS)
        .worker_threads(WORKERS)
        .open()?;
    let entries = database.keyspace("entries", || {
        KeyspaceCreateOptions::default()
            .max_memtable_size(memtable_bytes(setup))
            .data_block_compression_policy(CompressionPolicy::disabled())
    })?;
    Ok(Box::new(Fjall { entries, database }))
}

struct Fjall {
    entries: Keyspace,
    database: Database,
}

impl Engine for Fjall {
    fn put(&mut self, batch: &Batch, durable: bool) -> Outcome<()> {
        let mut changes = self.database.batch().durability(Some(mode(durable)));
        for (key, value) in batch.iter() {
            changes.insert(&self.entries, key, value);
        }
        Ok(changes.commit()?)
    }

    fn get(&mut self, key: &[u8], value: &mut Vec<u8>) -> Outcome<bool> {
        value.clear();
        let found = self.entries.get(key)?;
        if let Some(found) = &found {
            value.extend_from_slice(found);
        }
        Ok(found.is_some())
    }

    fn scan(
        &mut self,
        from: &[u8],
        count: usize,
        each: &mut dyn FnMut(&[u8], &[u8]),
    ) -> Outcome<()> {
        for entry in self.entries.range(from..).take(count) {
            let (key, value) = entry.into_inner()?;
            each(&key, &value);
        }
        Ok(())
    }

    fn delete(&mut self, key: &[u8]) -> Outcome<()> {
        Ok(self.entries.remove(key)?)
    }

    fn sync(&mut self) -> Outcome<()> {
        Ok(self.database.persist(PersistMode::SyncAll)?)
    }

    fn close(self: Box<Self>) -> Outcome<()> {
        Ok(())
    }
}
