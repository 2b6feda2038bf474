//! flashtree's own trees.

use std::path::Path;

use flashtree::{Database, Durability, Entry, OpenOptions, Options, Value};

use crate::Outcome;
use crate::engine::{Engine, Kind, Setup, mebibytes};
use crate::workload::Batch;

/// The longest value that is read.
const VALUE_MOST: usize = 4096;

type Open = fn(&Path, &Setup) -> Outcome<Box<dyn Engine>>;

pub(crate) const KINDS: [Kind; 5] = [
    kind("flat-tree", |folder, setup| open("flat-tree", folder, setup)),
    kind("b-plus", |folder, setup| open("b-plus", folder, setup)),
    kind("la-tree", |folder, setup| open("la-tree", folder, setup)),
    kind("fd-tree", |folder, setup| open("fd-tree", folder, setup)),
    kind("lsm", |folder, setup| open("lsm", folder, setup)),
];

const fn kind(name: &'static str, open: Open) -> Kind {
    Kind { name, package: "flashtree", settings, open, background: false, lasts: true }
}

const fn durability(setup: &Setup) -> Durability {
    if setup.synced { Durability::Every } else { Durability::Batch }
}

fn settings(setup: &Setup) -> String {
    format!(
        "`memory_total` {}, durability `{:?}`, else as `Options::new()`: \
         direct I/O, pages of 4 KiB, keys and values of any length; all of its memory is in those \
         bytes, and none of it is the page cache's",
        mebibytes(setup.memory),
        durability(setup)
    )
}

fn open(tree: &str, folder: &Path, setup: &Setup) -> Outcome<Box<dyn Engine>> {
    let (path, memory) = (folder.join("flashtree.db"), setup.memory as u64);
    let durability = durability(setup);
    let database = if Database::is_at(&path) {
        let options = OpenOptions::new().memory_total(memory).durability(durability);
        Database::open(&path, &options)?
    } else {
        let options = Options::new().tree(tree).memory_total(memory).durability(durability);
        Database::create(&path, &options)?
    };
    Ok(Box::new(Flashtree { database, batch: flashtree::Batch::new() }))
}

struct Flashtree {
    database: Database<'static>,
    batch: flashtree::Batch,
}

impl Engine for Flashtree {
    fn put(&mut self, batch: &Batch, durable: bool) -> Outcome<()> {
        self.batch.clear();
        for (key, value) in batch.iter() {
            self.batch.put(key, value);
        }
        self.database.write_batch(&self.batch)?;
        // Under `every` there is nothing left to be done.
        if durable {
            self.database.sync()?;
        }
        Ok(())
    }

    fn get(&mut self, key: &[u8], value: &mut Vec<u8>) -> Outcome<bool> {
        value.resize(VALUE_MOST, 0);
        let length = self.database.get_into(key, 0, value)?;
        value.truncate(length.unwrap_or(0) as usize);
        Ok(length.is_some())
    }

    fn scan(
        &mut self,
        from: &[u8],
        count: usize,
        each: &mut dyn FnMut(&[u8], &[u8]),
    ) -> Outcome<()> {
        let mut range = self.database.range(from..)?;
        for _ in 0..count {
            let Some(Entry { key, value: Value::Inline(value) }) = range.next()? else { break };
            each(key, value);
        }
        Ok(())
    }

    fn delete(&mut self, key: &[u8]) -> Outcome<()> {
        Ok(self.database.delete(key)?)
    }

    fn sync(&mut self) -> Outcome<()> {
        Ok(self.database.sync()?)
    }

    fn close(self: Box<Self>) -> Outcome<()> {
        Ok(self.database.close()?)
    }
}
