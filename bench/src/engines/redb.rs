//! redb: a copy-on-write B-tree in pure Rust.

use std::path::Path;

use redb::{Database, Durability, ReadableDatabase, TableDefinition};

use crate::Outcome;
use crate::engine::{Engine, Kind, Setup, mebibytes};
use crate::workload::Batch;

const TABLE: TableDefinition<'static, &[u8], &[u8]> = TableDefinition::new("entries");

/// Pages that were freed by commits without durability are used again after one with it only.
const COMMITS_MOST: u32 = 1000;

pub(crate) const KIND: Kind =
    Kind { name: "redb", package: "redb", settings, open, background: false, lasts: true };

fn settings(setup: &Setup) -> String {
    let durability = match setup.synced {
        true => "durability `Immediate`".to_owned(),
        false => format!("durability `None`, each {COMMITS_MOST}th commit `Immediate`"),
    };
    format!("`set_cache_size` {}, {durability}, a transaction a call", mebibytes(setup.memory))
}

fn open(folder: &Path, setup: &Setup) -> Outcome<Box<dyn Engine>> {
    let path = folder.join("redb.db");
    let database = Database::builder().set_cache_size(setup.memory).create(path)?;
    let mut engine = Redb { database, commits: 0 };
    engine.write(true, |_| Ok(()))?;
    Ok(Box::new(engine))
}

struct Redb {
    database: Database,
    /// Since the last one with durability.
    commits: u32,
}

impl Redb {
    fn write(
        &mut self,
        durable: bool,
        change: impl FnOnce(&mut redb::Table<'_, &[u8], &[u8]>) -> Outcome<()>,
    ) -> Outcome<()> {
        let mut transaction = self.database.begin_write()?;
        self.commits += 1;
        if durable || self.commits == COMMITS_MOST {
            self.commits = 0;
            transaction.set_durability(Durability::Immediate)?;
        } else {
            transaction.set_durability(Durability::None)?;
        }
        change(&mut transaction.open_table(TABLE)?)?;
        Ok(transaction.commit()?)
    }
}

impl Engine for Redb {
    fn put(&mut self, batch: &Batch, durable: bool) -> Outcome<()> {
        self.write(durable, |table| {
            for (key, value) in batch.iter() {
                table.insert(key, value)?;
            }
            Ok(())
        })
    }

    fn get(&mut self, key: &[u8], value: &mut Vec<u8>) -> Outcome<bool> {
        let table = self.database.begin_read()?.open_table(TABLE)?;
        value.clear();
        let found = table.get(key)?;
        if let Some(found) = &found {
            value.extend_from_slice(found.value());
        }
        Ok(found.is_some())
    }

    fn scan(
        &mut self,
        from: &[u8],
        count: usize,
        each: &mut dyn FnMut(&[u8], &[u8]),
    ) -> Outcome<()> {
        let table = self.database.begin_read()?.open_table(TABLE)?;
        for entry in table.range(from..)?.take(count) {
            let (key, value) = entry?;
            each(key.value(), value.value());
        }
        Ok(())
    }

    fn delete(&mut self, key: &[u8]) -> Outcome<()> {
        self.write(false, |table| {
            table.remove(key)?;
            Ok(())
        })
    }

    fn sync(&mut self) -> Outcome<()> {
        self.write(true, |_| Ok(()))
    }

    fn close(self: Box<Self>) -> Outcome<()> {
        Ok(())
    }
}
