//! RocksDB, the library of the system by its C interface, which is the same in all versions.

use std::ffi::{CStr, CString, c_char, c_double, c_int, c_uchar, c_void};
use std::path::Path;
use std::ptr::null_mut;

use crate::Outcome;
use crate::engine::{Engine, Kind, Setup, mebibytes};
use crate::workload::Batch;

/// Shares of the memory: half for blocks, the rest for two write buffers.
const BUFFERS: usize = 2;
const BLOOM_BITS: f64 = 10.0;
const JOBS: c_int = 2;
const LEVEL_BYTES: u64 = 64 << 20;
const FILE_BYTES: u64 = 8 << 20;

pub(crate) const KIND: Kind =
    Kind { name: "rocksdb", package: "librocksdb", settings, open, background: true, lasts: true };

const fn cache_bytes(setup: &Setup) -> usize {
    setup.memory / 2
}

const fn buffer_bytes(setup: &Setup) -> usize {
    setup.memory / 2 / BUFFERS
}

fn settings(setup: &Setup) -> String {
    format!(
        "{}, block cache {}, indexes and filters in it, `write_buffer_size` {}, \
         `max_write_buffer_number` {BUFFERS}, Bloom filters of {BLOOM_BITS} bits, no compression, \
         `max_background_jobs` {JOBS}, `target_file_size_base` {}, \
         `max_bytes_for_level_base` {}, `sync` {}, else its defaults",
        library(),
        mebibytes(cache_bytes(setup)),
        mebibytes(buffer_bytes(setup)),
        mebibytes(FILE_BYTES as usize),
        mebibytes(LEVEL_BYTES as usize),
        setup.synced
    )
}

/// The file of the library that this process is linked with: its name has the version.
fn library() -> String {
    let maps = std::fs::read_to_string("/proc/self/maps").unwrap_or_default();
    let file = maps.lines().find_map(|line| line.rsplit('/').next()?.strip_prefix("librocksdb.so"));
    format!("`librocksdb.so{}`", file.unwrap_or_default())
}

type Handle = *mut c_void;
type Failure = *mut *mut c_char;

#[link(name = "rocksdb")]
unsafe extern "C" {
    fn rocksdb_options_create() -> Handle;
    fn rocksdb_options_destroy(options: Handle);
    fn rocksdb_options_set_create_if_missing(options: Handle, value: c_uchar);
    fn rocksdb_options_set_write_buffer_size(options: Handle, value: usize);
    fn rocksdb_options_set_max_write_buffer_number(options: Handle, value: c_int);
    fn rocksdb_options_set_compression(options: Handle, value: c_int);
    fn rocksdb_options_set_max_background_jobs(options: Handle, value: c_int);
    fn rocksdb_options_set_target_file_size_base(options: Handle, value: u64);
    fn rocksdb_options_set_max_bytes_for_level_base(options: Handle, value: u64);
    fn rocksdb_options_set_block_based_table_factory(options: Handle, table: Handle);
    fn rocksdb_block_based_options_create() -> Handle;
    fn rocksdb_block_based_options_destroy(table: Handle);
    fn rocksdb_block_based_options_set_block_cache(table: Handle, cache: Handle);
    fn rocksdb_block_based_options_set_cache_index_and_filter_blocks(table: Handle, value: c_uchar);
    fn rocksdb_block_based_options_set_filter_policy(table: Handle, policy: Handle);
    fn rocksdb_cache_create_lru(bytes: usize) -> Handle;
    fn rocksdb_cache_destroy(cache: Handle);
    fn rocksdb_filterpolicy_create_bloom_full(bits: c_double) -> Handle;
    fn rocksdb_open(options: Handle, name: *const c_char, failure: Failure) -> Handle;
    fn rocksdb_close(database: Handle);
    fn rocksdb_writeoptions_create() -> Handle;
    fn rocksdb_writeoptions_destroy(options: Handle);
    fn rocksdb_writeoptions_set_sync(options: Handle, value: c_uchar);
    fn rocksdb_readoptions_create() -> Handle;
    fn rocksdb_readoptions_destroy(options: Handle);
    fn rocksdb_writebatch_create() -> Handle;
    fn rocksdb_writebatch_destroy(batch: Handle);
    fn rocksdb_writebatch_clear(batch: Handle);
    fn rocksdb_writebatch_put(b: Handle, k: *const u8, key: usize, v: *const u8, value: usize);
    fn rocksdb_writebatch_delete(batch: Handle, key: *const u8, length: usize);
    fn rocksdb_write(database: Handle, options: Handle, batch: Handle, failure: Failure);
    fn rocksdb_get(
        database: Handle,
        options: Handle,
        key: *const u8,
        key_length: usize,
        length: *mut usize,
        failure: Failure,
    ) -> *mut u8;
    fn rocksdb_free(memory: *mut c_void);
    fn rocksdb_flush_wal(database: Handle, sync: c_uchar, failure: Failure);
    fn rocksdb_create_iterator(database: Handle, options: Handle) -> Handle;
    fn rocksdb_iter_destroy(iterator: Handle);
    fn rocksdb_iter_seek(iterator: Handle, key: *const u8, length: usize);
    fn rocksdb_iter_valid(iterator: Handle) -> c_uchar;
    fn rocksdb_iter_next(iterator: Handle);
    fn rocksdb_iter_key(iterator: Handle, length: *mut usize) -> *const u8;
    fn rocksdb_iter_value(iterator: Handle, length: *mut usize) -> *const u8;
    fn rocksdb_iter_get_error(iterator: Handle, failure: Failure);
}

/// Calls what reports a failure by a string, and takes that over.
fn checked<T>(call: impl FnOnce(Failure) -> T) -> Outcome<T> {
    let mut failure = null_mut();
    let result = call(&raw mut failure);
    if failure.is_null() {
        return Ok(result);
    }
    // SAFETY: the library made a string that ends in zero, and left it to its caller to free.
    let text = unsafe {
        let text = CStr::from_ptr(failure).to_string_lossy().into_owned();
        rocksdb_free(failure.cast());
        text
    };
    Err(text.into())
}

fn open(folder: &Path, setup: &Setup) -> Outcome<Box<dyn Engine>> {
    let name = CString::new(folder.join("rocksdb").to_string_lossy().as_bytes())?;
    // SAFETY: each handle is made by the library and given back once; the table's options take over
    // the policy, the database keeps its own share of the cache and copies of the options.
    unsafe {
        let options = rocksdb_options_create();
        rocksdb_options_set_create_if_missing(options, 1);
        rocksdb_options_set_write_buffer_size(options, buffer_bytes(setup));
        rocksdb_options_set_max_write_buffer_number(options, BUFFERS as c_int);
        rocksdb_options_set_compression(options, 0);
        rocksdb_options_set_max_background_jobs(options, JOBS);
        rocksdb_options_set_target_file_size_base(options, FILE_BYTES);
        rocksdb_options_set_max_bytes_for_level_base(options, LEVEL_BYTES);
        let (table, cache) =
            (rocksdb_block_based_options_create(), rocksdb_cache_create_lru(cache_bytes(setup)));
        rocksdb_block_based_options_set_block_cache(table, cache);
        rocksdb_block_based_options_set_cache_index_and_filter_blocks(table, 1);
        let policy = rocksdb_filterpolicy_create_bloom_full(BLOOM_BITS);
        rocksdb_block_based_options_set_filter_policy(table, policy);
        rocksdb_options_set_block_based_table_factory(options, table);
        let database = checked(|failure| rocksdb_open(options, name.as_ptr(), failure));
        rocksdb_options_destroy(options);
        rocksdb_block_based_options_destroy(table);
        rocksdb_cache_destroy(cache);
        Ok(Box::new(Rocksdb {
            database: database?,
            reading: rocksdb_readoptions_create(),
            writing: rocksdb_writeoptions_create(),
            batch: rocksdb_writebatch_create(),
        }))
    }
}

struct Rocksdb {
    database: Handle,
    reading: Handle,
    writing: Handle,
    batch: Handle,
}

impl Rocksdb {
    fn write(&mut self, durable: bool) -> Outcome<()> {
        // SAFETY: all handles are alive as long as `self`.
        checked(|failure| unsafe {
            rocksdb_writeoptions_set_sync(self.writing, c_uchar::from(durable));
            rocksdb_write(self.database, self.writing, self.batch, failure);
            rocksdb_writebatch_clear(self.batch);
        })
    }
}

impl Drop for Rocksdb {
    fn drop(&mut self) {
        // SAFETY: each is given back here only.
        unsafe {
            rocksdb_writebatch_destroy(self.batch);
            rocksdb_writeoptions_destroy(self.writing);
            rocksdb_readoptions_destroy(self.reading);
            rocksdb_close(self.database);
        }
    }
}

impl Engine for Rocksdb {
    fn put(&mut self, batch: &Batch, durable: bool) -> Outcome<()> {
        for (key, value) in batch.iter() {
            let (k, v) = (key.as_ptr(), value.as_ptr());
            // SAFETY: the batch copies both.
            unsafe { rocksdb_writebatch_put(self.batch, k, key.len(), v, value.len()) };
        }
        self.write(durable)
    }

    fn get(&mut self, key: &[u8], value: &mut Vec<u8>) -> Outcome<bool> {
        let (mut length, read) = (0, key.as_ptr());
        let (database, options) = (self.database, self.reading);
        value.clear();
        // SAFETY: what comes back is null, or `length` bytes for its caller to free.
        unsafe {
            let found = checked(|failure| {
                rocksdb_get(database, options, read, key.len(), &raw mut length, failure)
            })?;
            if found.is_null() {
                return Ok(false);
            }
            value.extend_from_slice(std::slice::from_raw_parts(found, length));
            rocksdb_free(found.cast());
        }
        Ok(true)
    }

    fn scan(
        &mut self,
        from: &[u8],
        count: usize,
        each: &mut dyn FnMut(&[u8], &[u8]),
    ) -> Outcome<()> {
        // SAFETY: key and value stay as they are until the iterator goes on.
        unsafe {
            let iterator = rocksdb_create_iterator(self.database, self.reading);
            rocksdb_iter_seek(iterator, from.as_ptr(), from.len());
            let mut left = count;
            while left > 0 && rocksdb_iter_valid(iterator) != 0 {
                let (mut key_length, mut length) = (0, 0);
                let key = rocksdb_iter_key(iterator, &raw mut key_length);
                let value = rocksdb_iter_value(iterator, &raw mut length);
                each(
                    std::slice::from_raw_parts(key, key_length),
                    std::slice::from_raw_parts(value, length),
                );
                rocksdb_iter_next(iterator);
                left -= 1;
            }
            let outcome = checked(|failure| rocksdb_iter_get_error(iterator, failure));
            rocksdb_iter_destroy(iterator);
            outcome
        }
    }

    fn delete(&mut self, key: &[u8]) -> Outcome<()> {
        // SAFETY: the batch copies the key.
        unsafe { rocksdb_writebatch_delete(self.batch, key.as_ptr(), key.len()) };
        self.write(false)
    }

    fn sync(&mut self) -> Outcome<()> {
        // SAFETY: the database is open.
        checked(|failure| unsafe { rocksdb_flush_wal(self.database, 1, failure) })
    }

    fn close(self: Box<Self>) -> Outcome<()> {
        Ok(())
    }
}
