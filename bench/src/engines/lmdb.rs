//! LMDB, through heed.

use std::ops::Bound;
use std::path::Path;

use heed::types::Bytes;
use heed::{CommitOrAbort, Database, Env, EnvFlags, EnvOpenOptions, WithoutTls};

use crate::Outcome;
use crate::engine::{Engine, Kind, Setup, mebibytes};
use crate::workload::Batch;

/// Bytes of addresses: how far the file may grow.
const MAP: usize = 4 << 30;

pub(crate) const KIND: Kind = Kind {
    name: "lmdb",
    package: "lmdb-master-sys",
    settings,
    open,
    background: false,
    lasts: true,
};

fn flags(setup: &Setup) -> EnvFlags {
    match setup.synced {
        true => EnvFlags::NO_READ_AHEAD,
        false => EnvFlags::NO_READ_AHEAD | EnvFlags::NO_SYNC,
    }
}

fn settings(setup: &Setup) -> String {
    format!(
        "{}, `map_size` {}, flags {:?}, pages of 4 KiB; it has no cache but the page cache, and \
         writes through files",
        heed::lmdb_version().string,
        mebibytes(MAP),
        flags(setup)
    )
}

fn open(folder: &Path, setup: &Setup) -> Outcome<Box<dyn Engine>> {
    let mut options = EnvOpenOptions::new().read_txn_without_tls();
    options.map_size(MAP);
    // SAFETY: the folder is this process's own, so nobody else changes the file under the map;
    // without syncs a power cut may damage it, which no measurement outlives.
    let environment = unsafe {
        options.flags(flags(setup));
        options.open(folder)?
    };
    let owned = Box::into_raw(Box::new(environment));
    // SAFETY: it is freed by `Lmdb` only, when that goes away with all that borrows it.
    let environment: &'static Env<WithoutTls> = unsafe { &*owned };
    let database = environment.create_databases_and_commit(
        environment.write_txn()?,
        |opener, transaction| -> heed::Result<CommitOrAbort<_, ()>> {
            opener.create_database::<Bytes, Bytes>(transaction, None).map(CommitOrAbort::Commit)
        },
    )?;
    let database = database.unwrap_commit();
    Ok(Box::new(Lmdb { owned, environment, database, synced: setup.synced }))
}

struct Lmdb {
    owned: *mut Env<WithoutTls>,
    environment: &'static Env<WithoutTls>,
    database: Database<'static, Bytes, Bytes>,
    synced: bool,
}

impl Drop for Lmdb {
    fn drop(&mut self) {
        // SAFETY: `open` took it from a box, and whoever borrows it is inside of `self`.
        unsafe { drop(Box::from_raw(self.owned)) };
    }
}

impl Engine for Lmdb {
    fn put(&mut self, batch: &Batch, durable: bool) -> Outcome<()> {
        let mut transaction = self.environment.write_txn()?;
        for (key, value) in batch.iter() {
            self.database.put(&mut transaction, key, value)?;
        }
        transaction.commit()?;
        if durable && !self.synced {
            self.environment.force_sync()?;
        }
        Ok(())
    }

    fn get(&mut self, key: &[u8], value: &mut Vec<u8>) -> Outcome<bool> {
        let transaction = self.environment.read_txn()?;
        value.clear();
        let found = self.database.get(&transaction, key)?;
        if let Some(found) = found {
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
        let transaction = self.environment.read_txn()?;
        let range = (Bound::Included(from), Bound::Unbounded);
        for entry in self.database.range(&transaction, &range)?.take(count) {
            let (key, value) = entry?;
            each(key, value);
        }
        Ok(())
    }

    fn delete(&mut self, key: &[u8]) -> Outcome<()> {
        let mut transaction = self.environment.write_txn()?;
        self.database.delete(&mut transaction, key)?;
        Ok(transaction.commit()?)
    }

    fn sync(&mut self) -> Outcome<()> {
        Ok(self.environment.force_sync()?)
    }

    fn close(self: Box<Self>) -> Outcome<()> {
        Ok(())
    }
}
