//! What the benchmark has no need of in RocksDB's interface.

use std::ffi::{CString, c_char, c_uchar, c_void};
use std::path::Path;
use std::ptr::{null, null_mut};

use flashtree_bench::Outcome;

type Handle = *mut c_void;

#[link(name = "rocksdb")]
unsafe extern "C" {
    fn rocksdb_options_create() -> Handle;
    fn rocksdb_open(options: Handle, name: *const c_char, failure: *mut *mut c_char) -> Handle;
    fn rocksdb_open_for_read_only(
        options: Handle,
        name: *const c_char,
        refuse_logs: c_uchar,
        failure: *mut *mut c_char,
    ) -> Handle;
    fn rocksdb_compact_range(
        store: Handle,
        from: *const c_char,
        from_length: usize,
        to: *const c_char,
        to_length: usize,
    );
    fn rocksdb_close(store: Handle);
}

/// A store that is open, with default options.
pub(crate) struct Store(Handle);

/// Opens one that exists.
pub(crate) fn open(folder: &Path, to_read: bool) -> Outcome<Store> {
    let name = CString::new(folder.join("rocksdb").to_string_lossy().as_bytes())?;
    let mut failure = null_mut();
    // SAFETY: the options are the library's own, the name ends in zero and lives until it returns.
    let store = unsafe {
        let options = rocksdb_options_create();
        match to_read {
            true => rocksdb_open_for_read_only(options, name.as_ptr(), 0, &raw mut failure),
            false => rocksdb_open(options, name.as_ptr(), &raw mut failure),
        }
    };
    if store.is_null() { Err("it can't be opened".into()) } else { Ok(Store(store)) }
}

impl Store {
    pub(crate) fn compact(&self) {
        // SAFETY: the store is open, and two nulls are all keys.
        unsafe { rocksdb_compact_range(self.0, null(), 0, null(), 0) };
    }
}

impl Drop for Store {
    fn drop(&mut self) {
        // SAFETY: it is open, and closed here only.
        unsafe { rocksdb_close(self.0) };
    }
}
