//! What a database is, how it stands, and whether it is whole.

use std::fmt::Display;

use crate::backend::About;
use crate::encoding::Type;
use crate::{Database, FileSizes, Result, Resume, Stats, files};

/// Looking at it.
impl Database<'_> {
    /// The type of the keys, chosen when the database was made.
    ///
    /// ```
    /// # use flashtree::{Database, Options, encoding::Type};
    /// # fn main() -> flashtree::Result<()> {
    /// # let folder = tempfile::tempdir().unwrap();
    /// # let path = folder.path().join("fruit.db");
    /// let fruit = Database::create(path, &Options::new().key(Type::Text))?;
    /// assert_eq!(fruit.key_type(), &Type::Text);
    /// # Ok(()) }
    /// ```
    #[must_use]
    pub const fn key_type(&self) -> &Type {
        &self.about.label.key
    }

    /// The type of the values, chosen when the database was made.
    ///
    /// ```
    /// # use flashtree::{Database, Options, encoding::Type};
    /// # fn main() -> flashtree::Result<()> {
    /// # let folder = tempfile::tempdir().unwrap();
    /// # let path = folder.path().join("fruit.db");
    /// let fruit = Database::create(path, &Options::new())?;
    /// assert_eq!(fruit.value_type(), &Type::Bytes);
    /// # Ok(()) }
    /// ```
    #[must_use]
    pub const fn value_type(&self) -> &Type {
        &self.about.label.value
    }

    /// The state of the database, in numbers.
    ///
    /// # Errors
    /// The system can't measure the file.
    ///
    /// ```
    /// # use flashtree::{Database, Durability, Options};
    /// # fn main() -> flashtree::Result<()> {
    /// # let folder = tempfile::tempdir().unwrap();
    /// # let fruit = Database::create(folder.path().join("fruit.db"), &Options::new())?;
    /// assert_eq!(fruit.stats()?.recovery.durability, Durability::Batch);
    /// # Ok(()) }
    /// ```
    pub fn stats(&self) -> Result<Stats> {
        let About { tree, page_bytes, label, driver_bytes, health, .. } = &self.about;
        let sizes = self.path.as_deref().map(files::sizes).transpose()?;
        let most = self.about.grows_to;
        let core = self.core.lock()?;
        let index = &core.index;
        let statistics = index.statistics();
        Ok(Stats {
            tree,
            key: label.key.clone(),
            value: label.value.clone(),
            page_bytes: *page_bytes,
            height: statistics.height,
            live_pages: statistics.live_pages,
            live_page_bytes: self.about.unit_bytes,
            memory: statistics.memory,
            driver_bytes: *driver_bytes,
            memory_peak: statistics.memory_peak,
            recovery: index.recovery(),
            checkpoints: index.checkpoints().to_vec(),
            file: sizes.map(|(taken, length)| FileSizes {
                taken,
                length,
                capacity: most.unwrap_or(length),
            }),
            health: health.as_ref().map(|health| health.get().with_wear(index.wear())),
        })
    }

    /// Verifies every page, every invariant, and that keys and values have their types. Returns
    /// each violation and its place as one line.
    ///
    /// # Errors
    /// The device failed. Damage is a finding, not an error.
    ///
    /// ```
    /// # use flashtree::{Database, Options};
    /// # fn main() -> flashtree::Result<()> {
    /// # let folder = tempfile::tempdir().unwrap();
    /// # let fruit = Database::create(folder.path().join("fruit.db"), &Options::new())?;
    /// assert!(fruit.check()?.is_empty());
    /// # Ok(()) }
    /// ```
    pub fn check(&self) -> Result<Vec<String>> {
        let mut findings = Vec::new();
        self.check_with(&mut |finding| findings.push(finding.to_string()))?;
        Ok(findings)
    }

    /// As [`check`](Database::check), but reports each finding as it comes: there can be many.
    ///
    /// # Errors
    /// As [`check`](Database::check).
    ///
    /// ```
    /// # use flashtree::{Database, Options};
    /// # fn main() -> flashtree::Result<()> {
    /// # let folder = tempfile::tempdir().unwrap();
    /// # let fruit = Database::create(folder.path().join("fruit.db"), &Options::new())?;
    /// fruit.check_with(&mut |finding| eprintln!("{finding}"))?;
    /// # Ok(()) }
    /// ```
    pub fn check_with(&self, finding: &mut dyn FnMut(&dyn Display)) -> Result<()> {
        let mut core = self.core.lock()?;
        core.index.check(finding)?;
        self.check_types(&mut core, finding)
    }

    /// Where reading can continue after the page that holds `key` or would hold it. `None` stands
    /// for the lowest key. So the entries around a damaged page can be saved.
    ///
    /// # Errors
    /// The key is of a wrong length, or the device failed. Damage is no error.
    ///
    /// ```
    /// # use flashtree::{Database, Options, Resume};
    /// # fn main() -> flashtree::Result<()> {
    /// # let folder = tempfile::tempdir().unwrap();
    /// # let fruit = Database::create(folder.path().join("fruit.db"), &Options::new())?;
    /// # fruit.put("apple", "red")?;
    /// if fruit.range("apple"..)?.next().is_err_and(|error| error.is_damage()) {
    ///     if let Resume::From(key) = fruit.resume_after(Some(b"apple"))? {
    ///         println!("going on at {}", key.escape_ascii());
    ///     }
    /// }
    /// # Ok(()) }
    /// ```
    pub fn resume_after(&self, key: Option<&[u8]>) -> Result<Resume> {
        let (scope, mut buffer) = (self.unnamed(), Vec::new());
        let key = match (key, scope.prefix()) {
            (Some(key), _) => Some(scope.join(key, &mut buffer)),
            (None, []) => None,
            (None, prefix) => Some(prefix),
        };
        let resume = self.core.lock()?.index.resume_after(key)?;
        Ok(match resume {
            Resume::From(key) => match key.strip_prefix(scope.prefix()) {
                Some(key) => Resume::From(key.to_vec()),
                None => Resume::End,
            },
            other => other,
        })
    }
}
