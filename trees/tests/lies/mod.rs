//! What a device that lies is tried with: a history, what it leaves, and what comes of it.

use std::collections::BTreeMap;

use index::{Durability, Index, KeyRange, Update, Value};

/// What an index should hold.
pub(crate) type Model = BTreeMap<Vec<u8>, Vec<u8>>;

/// What a history is like.
#[derive(Clone, Copy)]
pub(crate) struct History {
    /// How many keys there are.
    pub(crate) keys: u32,
    /// What has to last of it.
    pub(crate) durability: Durability,
}

impl History {
    /// One step: one in five deletes, one in eleven is synced.
    pub(crate) fn step(
        &self,
        index: &mut dyn Index,
        model: &mut Model,
        step: u32,
    ) -> index::Result<()> {
        let key = (step.wrapping_mul(31) % self.keys).wrapping_mul(0x9E37_79B9).to_be_bytes();
        let value = step.to_le_bytes();
        if step.is_multiple_of(5) {
            index.update(&[Update::Delete { key: &key }])?;
            model.remove(&key[..]);
        } else {
            index.update(&[Update::Put { key: &key, value: &value }])?;
            model.insert(key.to_vec(), value.to_vec());
        }
        let is_synced = step.is_multiple_of(11) && self.durability != Durability::None;
        if is_synced { index.sync() } else { Ok(()) }
    }

    /// Makes all of it last; what has no durability lasts by being closed.
    pub(crate) fn make_last(&self, index: &mut dyn Index) -> index::Result<()> {
        if self.durability == Durability::None { index.close() } else { index.sync() }
    }
}

fn read_all(index: &mut dyn Index) -> index::Result<Model> {
    let mut model = Model::new();
    let mut cursor = index.range(KeyRange::ALL)?;
    while let Some((key, value)) = cursor.next()? {
        let Value::Inline(value) = value else { panic!("no value is long") };
        model.insert(key.to_vec(), value.to_vec());
    }
    Ok(model)
}

/// What came of a lie.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Outcome {
    Right,
    Error,
    /// The check tells, whatever is read.
    Checked,
    Wrong,
}

/// What an index holds, and how many findings its check has.
pub(crate) fn judge(index: &mut dyn Index) -> index::Result<(Model, u32)> {
    let mut findings = 0;
    let found = read_all(index)?;
    index.check(&mut |_| findings += 1)?;
    Ok((found, findings))
}

impl Outcome {
    /// What came of a history that should leave `model`, and in which an error `is_told`, or not.
    pub(crate) fn of(found: index::Result<(Model, u32)>, model: &Model, is_told: bool) -> Self {
        match found {
            _ if is_told => Outcome::Error,
            Ok((_, findings)) if findings > 0 => Outcome::Checked,
            Ok((found, _)) if found == *model => Outcome::Right,
            Ok(_) => Outcome::Wrong,
            Err(_) => Outcome::Error,
        }
    }
}
