//! The database.

mod backup;
mod copying;
mod inspecting;
mod keeping;
mod opening;
mod reading;
mod typing;
mod updating;

use std::fmt;
use std::path::PathBuf;

use index::{Durability, Index};

use crate::backend::Standing;
use crate::{Error, Result, files};

pub use copying::Compaction;

/// An open database. Dropping it closes it, but ignores errors; [`close`](Database::close) reports
/// them.
///
/// ```
/// use flashtree::{Database, Options};
///
/// # fn main() -> flashtree::Result<()> {
/// # let folder = tempfile::tempdir().unwrap();
/// let mut fruit = Database::create(folder.path().join("fruit.db"), &Options::new())?;
/// fruit.put("apple", "red")?;
/// assert_eq!(fruit.get("apple")?, Some(b"red".to_vec()));
/// # Ok(()) }
/// ```
pub struct Database<'d> {
    pub(crate) standing: Standing<'d>,
    /// The file, for a database in one.
    path: Option<PathBuf>,
    access: Access,
}

/// What may be done with a database.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Access {
    Writing,
    Reading,
    /// It is closed already.
    Closed,
}

impl<'d> Database<'d> {
    /// The index, to be changed.
    pub(crate) fn changing(&mut self) -> Result<&mut (dyn Index + 'd)> {
        match self.access {
            Access::Writing => Ok(&mut *self.standing.index),
            Access::Reading | Access::Closed => Err(Error::ReadOnly),
        }
    }

    /// Writes back everything that is only in memory, and closes the database.
    ///
    /// # Errors
    /// The device failed; what lasts is what the durability says.
    ///
    /// ```
    /// # use flashtree::{Database, Options};
    /// # fn main() -> flashtree::Result<()> {
    /// # let folder = tempfile::tempdir().unwrap();
    /// # let mut fruit = Database::create(folder.path().join("fruit.db"), &Options::new())?;
    /// fruit.close()?;
    /// # Ok(()) }
    /// ```
    pub fn close(mut self) -> Result<()> {
        self.shut()
    }

    /// Closes the database, once.
    fn shut(&mut self) -> Result<()> {
        match std::mem::replace(&mut self.access, Access::Closed) {
            Access::Writing => self.settle(),
            Access::Reading | Access::Closed => Ok(()),
        }
    }

    /// Leaves the device closed, durably.
    fn settle(&mut self) -> Result<()> {
        self.standing.index.close()?;
        let is_lazy = self.standing.index.recovery().durability == Durability::None;
        match &self.path {
            // Without durability an imitated chip leaves to the system when it is written.
            Some(path) if is_lazy && self.standing.health.is_some() => files::flush(path),
            _ => Ok(()),
        }
    }
}

impl Drop for Database<'_> {
    fn drop(&mut self) {
        // There is nobody to tell; who wants to know calls `close`.
        let _ = self.shut();
    }
}

impl fmt::Debug for Database<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Database")
            .field("tree", &self.standing.tree)
            .field("path", &self.path)
            .field("access", &self.access)
            .finish_non_exhaustive()
    }
}
