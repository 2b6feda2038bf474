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

use index::Durability;

use crate::backend::{About, Standing};
use crate::inside::Core;
use crate::keyspace::Scope;
use crate::lock::{Guard, Lock};
use crate::together::Together;
use crate::turns::{Turn, Turns};
use crate::view::whole_value;
use crate::{Error, Result, files};

pub use copying::Compaction;

/// An open database. Dropping it closes it, but ignores errors; [`close`](Database::close) reports
/// them.
///
/// Threads share it by reference. Calls take turns, in the order in which they come, but what
/// several threads get meanwhile is read together, and by a writer while its tree merges.
///
/// ```
/// use flashtree::{Database, Options};
///
/// # fn main() -> flashtree::Result<()> {
/// # let folder = tempfile::tempdir().unwrap();
/// let fruit = Database::create(folder.path().join("fruit.db"), &Options::new())?;
/// fruit.put("apple", "red")?;
/// assert_eq!(fruit.get("apple")?, Some(b"red".to_vec()));
/// # Ok(()) }
/// ```
pub struct Database<'d> {
    pub(crate) core: Lock<Core<'d>>,
    pub(crate) together: Together,
    pub(crate) turns: Turns,
    pub(crate) about: About,
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
    fn new(standing: Standing<'d>, path: Option<PathBuf>, access: Access) -> Self {
        let Standing { index, about } = standing;
        let core = Core::new(index, about.sharing.snapshot_bytes);
        let turns = Turns::new(about.sharing.turn_wait);
        let together = Together::new(whole_value);
        Database { core: Lock::new(core), together, turns, about, path, access }
    }

    /// The index, to be changed in a way that nobody reads.
    pub(crate) fn changing(&self) -> Result<Guard<'_, Core<'d>>> {
        self.check_writing()?;
        self.core.lock()
    }

    /// The turn to change what others read.
    pub(crate) fn turn(&self) -> Result<Turn<'_>> {
        self.check_writing()?;
        self.turns.change()
    }

    pub(crate) fn check_writing(&self) -> Result<()> {
        match self.access {
            Access::Writing => Ok(()),
            Access::Reading | Access::Closed => Err(Error::ReadOnly),
        }
    }

    /// Where the keys of the unnamed keyspace stand.
    pub(crate) fn unnamed(&self) -> Scope {
        let label = &self.about.label;
        match label.keyspaces {
            true => Scope::unnamed(&label.key, &label.value),
            false => Scope::WHOLE,
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
    /// # let fruit = Database::create(folder.path().join("fruit.db"), &Options::new())?;
    /// fruit.close()?;
    /// # Ok(()) }
    /// ```
    pub fn close(mut self) -> Result<()> {
        self.shut()
    }

    /// Closes the database, once.
    fn shut(&mut self) -> Result<()> {
        match std::mem::replace(&mut self.access, Access::Closed) {
            Access::Writing => {
                // After a panic the device stays as it is.
                let mut core = self.core.lock()?;
                self.settle(&mut core)
            }
            Access::Reading | Access::Closed => Ok(()),
        }
    }

    /// Leaves the device closed, durably.
    fn settle(&self, core: &mut Core<'_>) -> Result<()> {
        core.index.close()?;
        let is_lazy = core.index.recovery().durability == Durability::None;
        match &self.path {
            // Without durability an imitated chip leaves to the system when it is written.
            Some(path) if is_lazy && self.about.health.is_some() => files::flush(path),
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
            .field("tree", &self.about.tree)
            .field("path", &self.path)
            .field("access", &self.access)
            .finish_non_exhaustive()
    }
}
