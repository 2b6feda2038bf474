//! What the threads of a database share under its lock.

use std::ops::Bound;

use index::{Index, Update};

use crate::Result;
use crate::keyspace::{Catalog, Scope, free_some, under};
use crate::snapshot::Snapshots;

/// Where a range of the tree's keys begins and ends.
pub(crate) type Bounds = (Bound<Vec<u8>>, Bound<Vec<u8>>);

/// The index.
pub(crate) struct Core<'d> {
    pub(crate) index: Box<dyn Index + 'd>,
    /// What snapshots need that was changed since.
    pub(crate) snapshots: Snapshots,
    /// Room for the tree's key of a user's.
    pub(crate) key: Vec<u8>,
    /// The keyspaces, once they were asked for.
    catalog: Option<Catalog>,
}

impl<'d> Core<'d> {
    /// Snapshots keep up to `snapshot_bytes`.
    pub(crate) const fn new(index: Box<dyn Index + 'd>, snapshot_bytes: u64) -> Self {
        let snapshots = Snapshots::new(snapshot_bytes);
        Core { index, snapshots, key: Vec::new(), catalog: None }
    }

    /// Where keys of the tree are looked up.
    pub(crate) fn lookup(&mut self) -> &mut (dyn Index + 'd) {
        &mut *self.index
    }

    /// The keyspaces.
    pub(crate) fn catalog(&mut self) -> Result<&mut Catalog> {
        let catalog = match self.catalog.take() {
            Some(catalog) => catalog,
            None => Catalog::read(&mut *self.index)?,
        };
        Ok(self.catalog.insert(catalog))
    }

    /// Forgets what keyspaces there are: everything may be another.
    pub(crate) fn forget_catalog(&mut self) {
        if let Some(catalog) = self.catalog.take() {
            catalog.forget();
        }
    }

    /// Deletes some entries of a keyspace that was dropped.
    pub(crate) fn free_some(&mut self) -> Result<()> {
        let mut catalog = self.catalog.take();
        let freed = match &mut catalog {
            Some(catalog) => free_some(&mut *self.index, &mut self.snapshots, catalog),
            None => Ok(()),
        };
        self.catalog = catalog;
        freed
    }

    /// Makes one change in a keyspace.
    pub(crate) fn update_one(
        &mut self,
        scope: &Scope,
        update: &Update<'_>,
    ) -> Result<index::Result<()>> {
        let key = scope.join(update.key(), &mut self.key);
        let update = under(scope, key, update)?;
        Ok(self.snapshots.update(&mut *self.index, &[update]))
    }

    /// Makes changes of the tree's own keys, all or none.
    pub(crate) fn update(&mut self, updates: &[Update<'_>]) -> index::Result<()> {
        self.snapshots.update(&mut *self.index, updates)
    }
}
