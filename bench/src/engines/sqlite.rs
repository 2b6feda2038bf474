//! SQLite, through rusqlite.

use std::path::Path;

use rusqlite::{Connection, OptionalExtension};

use crate::Outcome;
use crate::engine::{Engine, Kind, Setup};
use crate::workload::Batch;

/// Pages of the log after which it goes to the file: SQLite's own default.
const AUTOCHECKPOINT: u32 = 1000;

const PUT: &str = "INSERT INTO entries VALUES (?1, ?2) ON CONFLICT DO UPDATE SET value = ?2";
const GET: &str = "SELECT value FROM entries WHERE key = ?1";
const SCAN: &str = "SELECT key, value FROM entries WHERE key >= ?1 ORDER BY key LIMIT ?2";
const DELETE: &str = "DELETE FROM entries WHERE key = ?1";

pub(crate) const KIND: Kind =
    Kind { name: "sqlite", package: "rusqlite", settings, open, background: false, lasts: true };

fn pragmas(setup: &Setup) -> String {
    format!(
        "PRAGMA page_size = 4096; PRAGMA journal_mode = WAL; \
         PRAGMA wal_autocheckpoint = {AUTOCHECKPOINT}; PRAGMA cache_size = -{}; \
         PRAGMA mmap_size = 0; PRAGMA synchronous = {}",
        setup.memory / 1024,
        usual(setup.synced),
    )
}

const fn usual(synced: bool) -> &'static str {
    if synced { "FULL" } else { "OFF" }
}

fn settings(setup: &Setup) -> String {
    format!(
        "SQLite {}, `{}`, table `(key BLOB PRIMARY KEY, value BLOB) WITHOUT ROWID`, prepared \
         statements",
        rusqlite::version(),
        pragmas(setup)
    )
}

fn open(folder: &Path, setup: &Setup) -> Outcome<Box<dyn Engine>> {
    let connection = Connection::open(folder.join("sqlite.db"))?;
    connection.execute_batch(&pragmas(setup))?;
    connection.execute_batch(
        "CREATE TABLE IF NOT EXISTS entries (key BLOB PRIMARY KEY, value BLOB NOT NULL) \
         WITHOUT ROWID",
    )?;
    Ok(Box::new(Sqlite { connection, synced: setup.synced }))
}

struct Sqlite {
    connection: Connection,
    synced: bool,
}

impl Engine for Sqlite {
    fn put(&mut self, batch: &Batch, durable: bool) -> Outcome<()> {
        let is_unusual = durable != self.synced;
        if is_unusual {
            self.connection.pragma_update(None, "synchronous", usual(durable))?;
        }
        let transaction = self.connection.transaction()?;
        let mut put = transaction.prepare_cached(PUT)?;
        for (key, value) in batch.iter() {
            put.execute((key, value))?;
        }
        drop(put);
        transaction.commit()?;
        if is_unusual {
            self.connection.pragma_update(None, "synchronous", usual(self.synced))?;
        }
        Ok(())
    }

    fn get(&mut self, key: &[u8], value: &mut Vec<u8>) -> Outcome<bool> {
        let mut get = self.connection.prepare_cached(GET)?;
        value.clear();
        let found = get.query_row([key], |row| {
            value.extend_from_slice(row.get_ref(0)?.as_blob()?);
            Ok(())
        });
        Ok(found.optional()?.is_some())
    }

    fn scan(
        &mut self,
        from: &[u8],
        count: usize,
        each: &mut dyn FnMut(&[u8], &[u8]),
    ) -> Outcome<()> {
        let mut scan = self.connection.prepare_cached(SCAN)?;
        let mut rows = scan.query((from, count as i64))?;
        while let Some(row) = rows.next()? {
            each(row.get_ref(0)?.as_blob()?, row.get_ref(1)?.as_blob()?);
        }
        Ok(())
    }

    fn delete(&mut self, key: &[u8]) -> Outcome<()> {
        self.connection.prepare_cached(DELETE)?.execute([key])?;
        Ok(())
    }

    /// The log goes to the file, and both to the disk.
    fn sync(&mut self) -> Outcome<()> {
        self.connection.pragma_update(None, "synchronous", "FULL")?;
        self.connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()))?;
        self.connection.pragma_update(None, "synchronous", usual(self.synced))?;
        Ok(())
    }

    fn close(self: Box<Self>) -> Outcome<()> {
        self.connection.close().map_err(|(_, error)| error.into())
    }
}
