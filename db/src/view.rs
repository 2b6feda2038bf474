//! What a reader sees: a keyspace of the index, and over it what a transaction changed or what a
//! snapshot kept.

use std::collections::btree_map::Range as Changes;
use std::iter::Peekable;
use std::ops::Bound;
use std::sync::Arc;

use index::{Direction, KeyRange, Lookup, read_piece};

use crate::ahead::Ahead;
use crate::inside::Core;
use crate::keyspace::Scope;
use crate::lock::Lock;
use crate::range::read_whole;
use crate::snapshot::{Overlay, Snapshots};
use crate::together::{AT_ONCE, Found, Together};
use crate::{Database, Range, Result};

/// Values up to so many bytes are read at once.
const SHORT_BYTES: usize = 1024;

/// What stands over the index.
#[derive(Clone, Copy)]
pub(crate) enum Over<'v> {
    Nothing,
    /// What a transaction changed.
    Changes(&'v Overlay),
    /// What the snapshot of this number kept.
    Snapshot(u64),
}

impl Over<'_> {
    /// The entries in place of those of the index.
    pub(crate) fn overlay<'o>(&'o self, snapshots: &'o Snapshots) -> Result<Option<&'o Overlay>> {
        match *self {
            Over::Nothing => Ok(None),
            Over::Changes(changes) => Ok(Some(changes)),
            Over::Snapshot(number) => snapshots.before(number).map(Some),
        }
    }
}

/// What is read.
#[derive(Clone)]
pub(crate) struct View<'v, 'd> {
    pub(crate) core: &'v Lock<Core<'d>>,
    pub(crate) together: &'v Together,
    pub(crate) scope: Scope,
    pub(crate) over: Over<'v>,
    /// The most bytes of entries that a range reads ahead.
    pub(crate) most_ahead: usize,
}

impl<'v, 'd> View<'v, 'd> {
    pub(crate) fn new(database: &'v Database<'d>, scope: Scope, over: Over<'v>) -> Self {
        let most_ahead = database.about.memory.bytes_ahead();
        View { core: &database.core, together: &database.together, scope, over, most_ahead }
    }

    /// Refuses a keyspace that was dropped; a snapshot may be older than that.
    pub(crate) fn check(&self) -> Result<()> {
        match self.over {
            Over::Snapshot(_) => Ok(()),
            Over::Nothing | Over::Changes(_) => self.scope.check(),
        }
    }

    /// Reads a piece of the value of `key`, as [`index::Read::get`].
    pub(crate) fn get_into(&self, key: &[u8], offset: u32, into: &mut [u8]) -> Result<Option<u32>> {
        self.read(&mut *self.core.lock()?, key, offset, into)
    }

    /// The whole value of `key`.
    pub(crate) fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>> {
        match self.over {
            Over::Nothing => self.get_together(key),
            Over::Changes(_) | Over::Snapshot(_) => self.read_whole(&mut *self.core.lock()?, key),
        }
    }

    /// The whole value that the index has of `key`, looked up with what other threads ask for.
    fn get_together(&self, key: &[u8]) -> Result<Option<Vec<u8>>> {
        self.scope.check_key(key)?;
        let mut whole = Vec::new();
        let key = self.scope.join(key, &mut whole);
        let found = self.together.get(self.core, key)?;
        // Of a keyspace that was dropped meanwhile a part may be left.
        self.check()?;
        found.map_err(|error| self.scope.without(error).into())
    }

    /// The whole values of `keys`.
    pub(crate) fn get_many(&self, keys: &[&[u8]]) -> Result<Vec<Option<Vec<u8>>>> {
        let mut values = vec![None; keys.len()];
        // In their order those come together that stand on one page.
        let mut order: Vec<usize> = (0..keys.len()).collect();
        order.sort_unstable_by_key(|place| keys[*place]);
        for places in order.chunks(AT_ONCE) {
            let core = &mut *self.core.lock()?;
            let whole = |place: &usize| [self.scope.prefix(), keys[*place]].concat();
            let whole: Vec<Vec<u8>> = places.iter().map(whole).collect();
            let whole: Vec<&[u8]> = whole.iter().map(Vec::as_slice).collect();
            core.index.prefetch(&whole)?;
            for &place in places {
                values[place] = self.read_whole(core, keys[place])?;
            }
        }
        Ok(values)
    }

    fn read_whole(&self, core: &mut Core<'_>, key: &[u8]) -> Result<Option<Vec<u8>>> {
        self.check()?;
        self.scope.check_key(key)?;
        let key = self.scope.join(key, &mut core.key);
        if let Some(value) = self.over.overlay(&core.snapshots)?.and_then(|over| over.get(key)) {
            return Ok(value.as_ref().map(|value| value.to_vec()));
        }
        whole_value(&mut &mut *core.index, key).map_err(|error| self.scope.without(error).into())
    }

    fn read(
        &self,
        core: &mut Core<'_>,
        key: &[u8],
        offset: u32,
        into: &mut [u8],
    ) -> Result<Option<u32>> {
        self.check()?;
        self.scope.check_key(key)?;
        let key = self.scope.join(key, &mut core.key);
        if let Some(value) = self.over.overlay(&core.snapshots)?.and_then(|over| over.get(key)) {
            return Ok(value.as_ref().map(|value| read_piece(value, offset, into)));
        }
        core.index.get(key, offset, into).map_err(|error| self.scope.without(error).into())
    }

    /// The entries of `range`.
    pub(crate) fn scan(self, range: KeyRange<'_>) -> Result<Range<'v>>
    where
        'd: 'v,
    {
        Ok(Range::new(Ahead::new(self, range)?))
    }
}

/// The whole value that the index has of a key of the tree.
pub(crate) fn whole_value(index: &mut dyn Lookup, key: &[u8]) -> Found {
    let mut short = [0; SHORT_BYTES];
    let Some(length) = index.get(key, 0, &mut short)? else {
        return Ok(None);
    };
    if let Some(value) = short.get(..length as usize) {
        return Ok(Some(value.to_vec()));
    }
    let read =
        |offset, into: &mut [u8]| index.get(key, offset, into).map(Option::unwrap_or_default);
    read_whole(read).map(Some)
}

/// The part of an overlay that is in a range, in its direction.
pub(crate) struct Placed<'o> {
    changes: Peekable<Box<dyn Iterator<Item = Change<'o>> + 'o>>,
    direction: Direction,
}

/// A key of the tree, and its value in an overlay.
pub(crate) type Change<'o> = (&'o Vec<u8>, &'o Option<Arc<[u8]>>);

impl<'o> Placed<'o> {
    pub(crate) fn new(overlay: &'o Overlay, range: KeyRange<'_>) -> Self {
        let changes = match is_empty(range) {
            true => Changes::default(),
            false => overlay.range::<[u8], _>((range.from, range.to)),
        };
        let changes: Box<dyn Iterator<Item = Change<'o>>> = match range.direction {
            Direction::Ascending => Box::new(changes),
            Direction::Descending => Box::new(changes.rev()),
        };
        Placed { changes: changes.peekable(), direction: range.direction }
    }

    /// The next change up to this key of the tree, or up to the end.
    pub(crate) fn up_to(&mut self, key: Option<&[u8]>) -> Option<Change<'o>> {
        let direction = self.direction;
        self.changes.next_if(|(changed, _)| {
            key.is_none_or(|key| direction.order(changed.as_slice().cmp(key)).is_le())
        })
    }
}

/// True if no key is in this range; a map would panic.
fn is_empty(range: KeyRange<'_>) -> bool {
    match (range.from, range.to) {
        (Bound::Included(from), Bound::Included(to)) => from > to,
        (
            Bound::Included(from) | Bound::Excluded(from),
            Bound::Included(to) | Bound::Excluded(to),
        ) => from >= to,
        (Bound::Unbounded, _) | (_, Bound::Unbounded) => false,
    }
}
