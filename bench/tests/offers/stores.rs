//! Rows that each store is asked in its own way.

use std::any::Any;
use std::path::Path;
use std::time::Duration;

use flashtree::encoding::Type;
use flashtree::{Database, OpenOptions, Options, Readable};
use flashtree_bench::{Outcome, system};
use heed::types::Bytes;
use redb::{ReadableDatabase, ReadableTable, TableDefinition};

use crate::{row, word};

const TABLE: TableDefinition<'static, &[u8], &[u8]> = TableDefinition::new("entries");
const OTHER: TableDefinition<'static, &[u8], &[u8]> = TableDefinition::new("others");
/// A store whose interface has no call for what is asked.
const NO_CALL: &str = "no call";
/// RocksDB is asked by what the benchmark has of its interface; the rest is not tried.
const NOT_TRIED: &str = "not tried";

type Fjall = (fjall::SingleWriterTxDatabase, fjall::SingleWriterTxKeyspace);
type Lmdb = heed::Env<heed::WithoutTls>;

fn flashtree(folder: &Path) -> Outcome<Database<'static>> {
    Ok(Database::create(folder.join("flashtree.db"), &Options::new().keyspaces(true))?)
}

fn redb(folder: &Path) -> Outcome<redb::Database> {
    let database = redb::Database::create(folder.join("redb.db"))?;
    let transaction = database.begin_write()?;
    transaction.open_table(TABLE)?;
    transaction.open_table(OTHER)?;
    transaction.commit()?;
    Ok(database)
}

fn fjall(folder: &Path) -> Outcome<Fjall> {
    let database = fjall::SingleWriterTxDatabase::builder(folder.join("fjall")).open()?;
    let entries = database.keyspace("entries", fjall::KeyspaceCreateOptions::default)?;
    Ok((database, entries))
}

fn sqlite(folder: &Path) -> Outcome<rusqlite::Connection> {
    let connection = rusqlite::Connection::open(folder.join("sqlite.db"))?;
    connection.execute_batch(
        "PRAGMA journal_mode = WAL; \
         CREATE TABLE IF NOT EXISTS entries (key BLOB PRIMARY KEY, value BLOB); \
         CREATE TABLE IF NOT EXISTS others (key BLOB PRIMARY KEY, value BLOB)",
    )?;
    Ok(connection)
}

fn lmdb(folder: &Path, flags: heed::EnvFlags) -> Outcome<Lmdb> {
    let mut options = heed::EnvOpenOptions::new().read_txn_without_tls();
    options.map_size(64 << 20).max_dbs(4);
    // SAFETY: nobody changes the file but LMDB itself.
    unsafe {
        options.flags(flags);
        Ok(options.open(folder)?)
    }
}

fn lmdb_table<'e>(
    store: &'e Lmdb,
    name: Option<&str>,
) -> Outcome<heed::Database<'e, Bytes, Bytes>> {
    let made = store.create_databases_and_commit(store.write_txn()?, |opener, transaction| {
        let made = opener.create_database::<Bytes, Bytes>(transaction, name)?;
        heed::Result::Ok(heed::CommitOrAbort::<_, ()>::Commit(made))
    })?;
    Ok(made.unwrap_commit())
}

fn redb_shared() -> redb::Builder {
    let mut builder = redb::Builder::new();
    builder.set_concurrency_mode(redb::ConcurrencyMode::SingleWriter);
    builder
}

/// Opens to write such that others may read, where that is a choice.
pub(crate) fn open_to_write(engine: &str, folder: &Path) -> Outcome<Box<dyn Any>> {
    Ok(match engine {
        "redb" => Box::new(redb_shared().open(folder.join("redb.db"))?),
        other => Box::new(crate::common::open(other, folder)?),
    })
}

/// Opens for reading; what has no such call is opened as usual. It stays open with the result.
pub(crate) fn open_to_read(engine: &str, folder: &Path) -> Outcome<Box<dyn Any>> {
    Ok(match engine {
        "flat-tree" => {
            let options = OpenOptions::new();
            Box::new(Database::open_read_only(folder.join("flashtree.db"), &options)?)
        }
        "redb" => Box::new(redb_shared().open_read_only(folder.join("redb.db"))?),
        "sqlite" => {
            let flags = rusqlite::OpenFlags::SQLITE_OPEN_READ_ONLY;
            let path = folder.join("sqlite.db");
            let connection = rusqlite::Connection::open_with_flags(path, flags)?;
            connection.query_row("SELECT count(*) FROM entries", [], |_| Ok(()))?;
            Box::new(connection)
        }
        "lmdb" => {
            let store = lmdb(folder, heed::EnvFlags::READ_ONLY)?;
            store.read_txn()?;
            Box::new(store)
        }
        #[cfg(feature = "rocksdb")]
        "rocksdb" => Box::new(crate::rocksdb::open(folder, true)?),
        other => Box::new(crate::common::open(other, folder)?),
    })
}

#[test]
fn snapshots() {
    row("a snapshot stays while others write", |engine, folder| {
        Ok(match engine {
            "flat-tree" => {
                let store = flashtree(folder)?;
                let snapshot = store.snapshot()?;
                store.put("a", "b")?;
                word(snapshot.get("a")?.is_none() && store.get("a")?.is_some())
            }
            "redb" => {
                let store = redb(folder)?;
                let before = store.begin_read()?;
                let writing = store.begin_write()?;
                writing.open_table(TABLE)?.insert(&b"a"[..], &b"b"[..])?;
                writing.commit()?;
                let get = |reading: redb::ReadTransaction| -> Outcome<bool> {
                    Ok(reading.open_table(TABLE)?.get(&b"a"[..])?.is_some())
                };
                word(!get(before)? && get(store.begin_read()?)?)
            }
            "fjall" => {
                let (store, entries) = fjall(folder)?;
                let before = store.read_tx();
                entries.insert("a", "b")?;
                let there = |view: &fjall::Snapshot| fjall::Readable::get(view, &entries, "a");
                word(there(&before)?.is_none() && there(&store.read_tx())?.is_some())
            }
            "sqlite" => {
                let (writer, reader) = (sqlite(folder)?, sqlite(folder)?);
                let count = |by: &rusqlite::Connection| {
                    by.query_row("SELECT count(*) FROM entries", [], |row| row.get::<_, i64>(0))
                };
                reader.execute_batch("BEGIN")?;
                count(&reader)?;
                writer.execute("INSERT INTO entries VALUES ('a', 'b')", [])?;
                word(count(&reader)? == 0 && count(&writer)? == 1)
            }
            "lmdb" => {
                let store = lmdb(folder, heed::EnvFlags::empty())?;
                let table = lmdb_table(&store, None)?;
                let before = store.read_txn()?;
                let mut writing = store.write_txn()?;
                table.put(&mut writing, b"a", b"b")?;
                writing.commit()?;
                let after = store.read_txn()?;
                word(table.get(&before, b"a")?.is_none() && table.get(&after, b"a")?.is_some())
            }
            _ => NOT_TRIED.to_owned(),
        })
    });
}

#[test]
fn transactions() {
    row("a transaction reads what it writes, and can be taken back", |engine, folder| {
        Ok(match engine {
            "flat-tree" => {
                let store = flashtree(folder)?;
                let mut transaction = store.begin()?;
                transaction.put("a", "b")?;
                let seen = transaction.get("a")?.is_some();
                drop(transaction);
                word(seen && store.get("a")?.is_none())
            }
            "redb" => {
                let store = redb(folder)?;
                let writing = store.begin_write()?;
                let mut table = writing.open_table(TABLE)?;
                table.insert(&b"a"[..], &b"b"[..])?;
                let seen = table.get(&b"a"[..])?.is_some();
                drop(table);
                writing.abort()?;
                let table = store.begin_read()?.open_table(TABLE)?;
                word(seen && table.get(&b"a"[..])?.is_none())
            }
            "fjall" => {
                let (store, entries) = fjall(folder)?;
                let mut writing = store.write_tx();
                writing.insert(&entries, "a", "b");
                let seen = fjall::Readable::get(&writing, &entries, "a")?.is_some();
                writing.rollback();
                word(seen && entries.get("a")?.is_none())
            }
            "sqlite" => {
                let store = sqlite(folder)?;
                let count = || {
                    let sql = "SELECT count(*) FROM entries";
                    store.query_row(sql, [], |row| row.get::<_, i64>(0))
                };
                store.execute_batch("BEGIN; INSERT INTO entries VALUES ('a', 'b')")?;
                let seen = count()? == 1;
                store.execute_batch("ROLLBACK")?;
                word(seen && count()? == 0)
            }
            "lmdb" => {
                let store = lmdb(folder, heed::EnvFlags::empty())?;
                let table = lmdb_table(&store, None)?;
                let mut writing = store.write_txn()?;
                table.put(&mut writing, b"a", b"b")?;
                let seen = table.get(&writing, b"a")?.is_some();
                writing.abort();
                let reading = store.read_txn()?;
                word(seen && table.get(&reading, b"a")?.is_none())
            }
            _ => NOT_TRIED.to_owned(),
        })
    });
}

#[test]
fn keyspaces() {
    row("a transaction spans keyspaces with names", |engine, folder| {
        Ok(match engine {
            "flat-tree" => {
                let store = flashtree(folder)?;
                let one = store.create_keyspace("one", Type::Text, Type::Text)?;
                let two = store.create_keyspace("two", Type::Text, Type::Text)?;
                store.write(|transaction| {
                    transaction.keyspace(&one)?.put("a", "b")?;
                    transaction.keyspace(&two)?.put("a", "b")
                })?;
                word(one.get("a")?.is_some() && two.get("a")?.is_some())
            }
            "redb" => {
                let store = redb(folder)?;
                let writing = store.begin_write()?;
                writing.open_table(TABLE)?.insert(&b"a"[..], &b"b"[..])?;
                writing.open_table(OTHER)?.insert(&b"a"[..], &b"b"[..])?;
                writing.commit()?;
                let reading = store.begin_read()?;
                let other = reading.open_table(OTHER)?;
                word(other.get(&b"a"[..])?.is_some())
            }
            "fjall" => {
                let (store, one) = fjall(folder)?;
                let two = store.keyspace("others", fjall::KeyspaceCreateOptions::default)?;
                let mut writing = store.write_tx();
                writing.insert(&one, "a", "b");
                writing.insert(&two, "a", "b");
                writing.commit()?;
                word(one.get("a")?.is_some() && two.get("a")?.is_some())
            }
            "sqlite" => {
                let store = sqlite(folder)?;
                store.execute_batch(
                    "BEGIN; INSERT INTO entries VALUES ('a', 'b'); \
                     INSERT INTO others VALUES ('a', 'b'); COMMIT",
                )?;
                let sql = "SELECT count(*) FROM entries NATURAL JOIN others";
                word(store.query_row(sql, [], |row| row.get::<_, i64>(0))? == 1)
            }
            "lmdb" => {
                let store = lmdb(folder, heed::EnvFlags::empty())?;
                let (one, two) = (lmdb_table(&store, Some("1"))?, lmdb_table(&store, Some("2"))?);
                let mut writing = store.write_txn()?;
                one.put(&mut writing, b"a", b"b")?;
                two.put(&mut writing, b"a", b"b")?;
                writing.commit()?;
                let reading = store.read_txn()?;
                word(two.get(&reading, b"a")?.is_some())
            }
            _ => NOT_TRIED.to_owned(),
        })
    });
}

#[test]
fn backups() {
    row("a copy is made while it is open, and opens", |engine, folder| {
        let copy = folder.join("copy");
        Ok(match engine {
            "flat-tree" => {
                let store = flashtree(folder)?;
                store.put("a", "b")?;
                store.backup(&copy)?;
                word(Database::open(&copy, &OpenOptions::new())?.get("a")?.is_some())
            }
            "sqlite" => {
                let store = sqlite(folder)?;
                store.execute_batch("INSERT INTO entries VALUES ('a', 'b')")?;
                store.execute("VACUUM INTO ?1", [copy.to_string_lossy()])?;
                let sql = "SELECT count(*) FROM entries";
                let copy = rusqlite::Connection::open(copy)?;
                word(copy.query_row(sql, [], |row| row.get::<_, i64>(0))? == 1)
            }
            "lmdb" => {
                let store = lmdb(folder, heed::EnvFlags::empty())?;
                let table = lmdb_table(&store, None)?;
                let mut writing = store.write_txn()?;
                table.put(&mut writing, b"a", b"b")?;
                writing.commit()?;
                std::fs::create_dir(&copy)?;
                store.copy_to_path(copy.join("data.mdb"), heed::CompactionOption::Enabled)?;
                let copied = lmdb(&copy, heed::EnvFlags::empty())?;
                let table = lmdb_table(&copied, None)?;
                let reading = copied.read_txn()?;
                word(table.get(&reading, b"a")?.is_some())
            }
            "rocksdb" => NOT_TRIED.to_owned(),
            _ => NO_CALL.to_owned(),
        })
    });
}

#[test]
fn checkpoints() {
    row("it goes back to a state that was kept, after it was closed", |engine, folder| {
        Ok(match engine {
            "flat-tree" => {
                let store = flashtree(folder)?;
                store.checkpoint("before")?;
                store.put("a", "b")?;
                store.close()?;
                let path = folder.join("flashtree.db");
                let store = Database::open(path, &OpenOptions::new())?;
                store.rollback("before")?;
                word(store.get("a")?.is_none())
            }
            "redb" => {
                let store = redb(folder)?;
                let writing = store.begin_write()?;
                let kept = writing.persistent_savepoint()?;
                writing.commit()?;
                let writing = store.begin_write()?;
                writing.open_table(TABLE)?.insert(&b"a"[..], &b"b"[..])?;
                writing.commit()?;
                drop(store);
                let store = redb::Database::open(folder.join("redb.db"))?;
                let mut writing = store.begin_write()?;
                let kept = writing.get_persistent_savepoint(kept)?;
                writing.restore_savepoint(&kept)?;
                writing.commit()?;
                let table = store.begin_read()?.open_table(TABLE)?;
                word(table.get(&b"a"[..])?.is_none())
            }
            _ => NO_CALL.to_owned(),
        })
    });
}

#[test]
fn pieces() {
    row("a long value is read by pieces", |engine, folder| {
        let long = vec![7; 1 << 20];
        let mut piece = [0; 10];
        Ok(match engine {
            "flat-tree" => {
                let store = flashtree(folder)?;
                store.put("a", &long)?;
                store.get_into("a", 1_000_000, &mut piece)?;
                word(piece == [7; 10])
            }
            "sqlite" => {
                use std::io::{Read, Seek, SeekFrom};
                let store = sqlite(folder)?;
                store.execute("INSERT INTO entries VALUES ('a', ?1)", [&long])?;
                let row = store.last_insert_rowid();
                let mut blob = store.blob_open("main", "entries", "value", row, true)?;
                blob.seek(SeekFrom::Start(1_000_000))?;
                blob.read_exact(&mut piece)?;
                word(piece == [7; 10])
            }
            // A value is a part of the mapped file.
            "lmdb" => {
                let store = lmdb(folder, heed::EnvFlags::empty())?;
                let table = lmdb_table(&store, None)?;
                let mut writing = store.write_txn()?;
                table.put(&mut writing, b"a", &long)?;
                writing.commit()?;
                let reading = store.read_txn()?;
                word(table.get(&reading, b"a")?.is_some_and(|value| value[1_000_000] == 7))
            }
            _ => NO_CALL.to_owned(),
        })
    });
}

/// Makes the closed store as short as it can.
pub(crate) fn compact(engine: &str, folder: &Path) -> Outcome<()> {
    match engine {
        "flat-tree" => {
            Database::compact(folder.join("flashtree.db"), &OpenOptions::new())?;
        }
        "redb" => {
            let mut store = redb::Database::open(folder.join("redb.db"))?;
            while store.compact()? {}
        }
        "fjall" => {
            let store = fjall::Database::builder(folder.join("fjall")).open()?;
            let entries = store.keyspace("entries", fjall::KeyspaceCreateOptions::default)?;
            entries.rotate_memtable_and_wait()?;
            entries.major_compact()?;
            system::wait_until_quiet(Duration::from_secs(10))?;
        }
        "sqlite" => sqlite(folder)?.execute_batch("VACUUM")?,
        "lmdb" => {
            let copy = folder.join("copy.mdb");
            let store = lmdb(folder, heed::EnvFlags::empty())?;
            store.copy_to_path(&copy, heed::CompactionOption::Enabled)?;
            drop(store);
            std::fs::rename(copy, folder.join("data.mdb"))?;
        }
        #[cfg(feature = "rocksdb")]
        "rocksdb" => crate::rocksdb::open(folder, false)?.compact(),
        _ => return Err("unknown".into()),
    }
    Ok(())
}
