//! Several changes at once.

use std::ops::Range;

use index::Update;

/// Changes that are made together, all or none; of those of one key the last counts.
///
/// ```
/// use flashtree::{Batch, Database, Options};
///
/// # fn main() -> flashtree::Result<()> {
/// # let folder = tempfile::tempdir().unwrap();
/// let accounts = Database::create(folder.path().join("accounts.db"), &Options::new())?;
/// accounts.put("ann", "10")?;
/// let mut batch = Batch::new();
/// batch.put("bob", "10").delete("ann");
/// accounts.write_batch(&batch)?;
/// assert!(!accounts.contains("ann")?);
/// # Ok(()) }
/// ```
#[derive(Clone, Debug, Default)]
pub struct Batch {
    bytes: Vec<u8>,
    changes: Vec<Change>,
}

/// Where key and value of a change stand in the bytes; a delete has no value.
#[derive(Clone, Debug)]
struct Change {
    key: Range<usize>,
    value: Option<Range<usize>>,
}

impl Batch {
    /// A batch without changes.
    ///
    /// ```
    /// assert!(flashtree::Batch::new().is_empty());
    /// ```
    #[must_use]
    pub const fn new() -> Self {
        Batch { bytes: Vec::new(), changes: Vec::new() }
    }

    /// Adds a put: inserts or replaces `key`.
    ///
    /// ```
    /// let mut batch = flashtree::Batch::new();
    /// batch.put("apple", "red").put("pear", "green");
    /// assert_eq!(batch.len(), 2);
    /// ```
    pub fn put(&mut self, key: impl AsRef<[u8]>, value: impl AsRef<[u8]>) -> &mut Self {
        let key = self.keep(key.as_ref());
        let value = Some(self.keep(value.as_ref()));
        self.changes.push(Change { key, value });
        self
    }

    /// Adds a delete of `key`.
    ///
    /// ```
    /// let mut batch = flashtree::Batch::new();
    /// batch.put("apple", "red").delete("apple");
    /// assert_eq!(batch.len(), 2);
    /// ```
    pub fn delete(&mut self, key: impl AsRef<[u8]>) -> &mut Self {
        let key = self.keep(key.as_ref());
        self.changes.push(Change { key, value: None });
        self
    }

    /// The number of changes.
    ///
    /// ```
    /// assert_eq!(flashtree::Batch::new().put("apple", "red").len(), 1);
    /// ```
    #[must_use]
    pub const fn len(&self) -> usize {
        self.changes.len()
    }

    /// True if there are no changes.
    ///
    /// ```
    /// assert!(!flashtree::Batch::new().delete("apple").is_empty());
    /// ```
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.changes.is_empty()
    }

    /// Bytes of all keys and values together.
    ///
    /// ```
    /// assert_eq!(flashtree::Batch::new().put("apple", "red").byte_len(), 8);
    /// ```
    #[must_use]
    pub const fn byte_len(&self) -> usize {
        self.bytes.len()
    }

    /// Removes all changes, and keeps the memory for others.
    ///
    /// ```
    /// let mut batch = flashtree::Batch::new();
    /// batch.put("apple", "red");
    /// batch.clear();
    /// assert!(batch.is_empty());
    /// ```
    pub fn clear(&mut self) {
        self.bytes.clear();
        self.changes.clear();
    }

    fn keep(&mut self, bytes: &[u8]) -> Range<usize> {
        let start = self.bytes.len();
        self.bytes.extend_from_slice(bytes);
        start..self.bytes.len()
    }

    /// The changes as the index takes them: in the order of their keys, those of one key in the
    /// order in which they came. So neighbours meet the same pages, and what waits in a buffer of
    /// `la-tree` is sorted in parts.
    pub(crate) fn updates(&self) -> Vec<Update<'_>> {
        let update = |change: &Change| {
            let key = &self.bytes[change.key.clone()];
            match &change.value {
                Some(value) => Update::Put { key, value: &self.bytes[value.clone()] },
                None => Update::Delete { key },
            }
        };
        let mut updates: Vec<_> = self.changes.iter().map(update).collect();
        updates.sort_by_key(Update::key);
        updates
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changes_are_made_by_their_keys_and_those_of_a_key_in_their_order() {
        let mut batch = Batch::new();
        for number in 0..100_u8 {
            batch.put([number % 3], [number]).delete([7]);
        }
        let updates = batch.updates();
        assert!(updates.is_sorted_by_key(Update::key));
        for key in 0..3_u8 {
            let of_key = updates.iter().filter_map(|update| match update {
                Update::Put { key: [it], value: [value] } if *it == key => Some(*value),
                _ => None,
            });
            assert!(of_key.eq((0..100).filter(|number| number % 3 == key)), "of {key}");
        }
    }
}
