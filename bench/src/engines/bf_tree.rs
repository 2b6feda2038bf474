//! Bf-Tree: a B-tree whose leaves have small pages in memory for what changes.

use std::path::Path;

use bf_tree::{BfTree, Config, LeafInsertResult, LeafReadResult, ScanReturnField};

use crate::Outcome;
use crate::engine::{Engine, Kind, Setup, mebibytes};
use crate::workload::Batch;

/// Its longest record, by its defaults.
const RECORD_MOST: usize = 1952;

/// Its log is replayed by a function that it calls incomplete, and nothing of it is synced.
pub(crate) const KIND: Kind =
    Kind { name: "bf-tree", package: "bf-tree", settings, open, background: false, lasts: false };

fn settings(setup: &Setup) -> String {
    format!(
        "`cb_size_byte` {}, no log, no snapshots, else its defaults; puts of a batch one by one: \
         it has no batches, and nothing is there after it is closed",
        mebibytes(setup.memory)
    )
}

fn open(folder: &Path, setup: &Setup) -> Outcome<Box<dyn Engine>> {
    let config = Config::new(folder.join("bf-tree"), setup.memory);
    let tree = BfTree::with_config(config, None).map_err(|error| format!("{error:?}"))?;
    Ok(Box::new(Bf { tree, buffer: vec![0; 2 * RECORD_MOST] }))
}

struct Bf {
    tree: BfTree,
    buffer: Vec<u8>,
}

impl Engine for Bf {
    fn put(&mut self, batch: &Batch, durable: bool) -> Outcome<()> {
        if durable {
            return Err("it has no commits that last".into());
        }
        for (key, value) in batch.iter() {
            if let LeafInsertResult::InvalidKV(what) = self.tree.insert(key, value) {
                return Err(what.into());
            }
        }
        Ok(())
    }

    fn get(&mut self, key: &[u8], value: &mut Vec<u8>) -> Outcome<bool> {
        value.clear();
        match self.tree.read(key, &mut self.buffer) {
            LeafReadResult::Found(length) => {
                value.extend_from_slice(&self.buffer[..length as usize]);
                Ok(true)
            }
            LeafReadResult::InvalidKey => Err("the key is too long".into()),
            _ => Ok(false),
        }
    }

    fn scan(
        &mut self,
        from: &[u8],
        count: usize,
        each: &mut dyn FnMut(&[u8], &[u8]),
    ) -> Outcome<()> {
        let field = ScanReturnField::KeyAndValue;
        let scan = self.tree.scan_with_count(from, count, field);
        let mut scan = scan.map_err(|error| format!("{error:?}"))?;
        while let Some((key, value)) = scan.next(&mut self.buffer) {
            each(&self.buffer[..key], &self.buffer[key..key + value]);
        }
        Ok(())
    }

    fn delete(&mut self, key: &[u8]) -> Outcome<()> {
        self.tree.delete(key);
        Ok(())
    }

    fn sync(&mut self) -> Outcome<()> {
        Ok(())
    }

    fn close(self: Box<Self>) -> Outcome<()> {
        Ok(())
    }
}
