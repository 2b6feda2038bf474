//! Runs: sorted entries, written once, as packed trees of pages that are never changed.
//!
//! A run is the B+-tree that loading sorted entries makes, so its fences are its inner nodes: small
//! enough to stay in the cache, and read only when they are needed. A **bottom** has values as
//! users gave them. A **fragment** has one byte more behind each, which tells puts from deletes.
//!
//! Invariant: a page of a run is written once, and given back when the run is.

use alloc::vec::Vec;
use core::ops::Bound;

use device::Cause;
use index::{Direction, Error, Result};
use store::node::{Codec, Stored};
use store::runs::{Kind, MemtableCursor, Source as _};
use store::{EntryShape, LogicalPage, OverflowValue, Width};

use super::filter::Filter;
use super::merger::{Load, Merger, Sorted, way};
use crate::btree::{At, BTree, Codecs, NodeSource, NodeStore, PageStore, Position};

/// The byte behind the value of a put in a fragment; behind that of a delete it is 0.
const PUT: u8 = 1;

/// What memory says of a value that stands in pages of its own. No index has fences in memory.
pub(super) const LONG: Kind = Kind::Fence;

/// Runs are packed: nothing is ever put into them.
const FILL: u8 = 100;

/// What a run is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    /// What a partition held when it was merged.
    Bottom,
    /// Updates that came since.
    Fragment,
}

/// A run, and what is counted of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Run {
    pub(super) root: At<LogicalPage>,
    pub(super) pages: u32,
    pub(super) entries: u64,
}

/// What entries take in the leaves of bottoms, at most; less where leaves have longer prefixes than
/// the partition.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Content {
    pub(super) bytes: u32,
    /// Bytes of the longest entry.
    pub(super) longest: u16,
    /// Bytes of the longest key.
    pub(super) longest_key: u16,
}

impl Content {
    /// An entry in a leaf of `codec`, with a key of so many bytes, of which the first `prefix` are
    /// those of all, and a value.
    pub(super) fn of(codec: &Codec, (key, prefix): (usize, usize), value: usize) -> Self {
        // Entries have a quarter of a page at most.
        let bytes = codec.entry_bytes(key.saturating_sub(prefix), value) as u16;
        Content { bytes: bytes.into(), longest: bytes, longest_key: key as u16 }
    }

    /// These entries and others.
    pub(super) fn with(self, other: Self) -> Self {
        Content {
            bytes: self.bytes.saturating_add(other.bytes),
            longest: self.longest.max(other.longest),
            longest_key: self.longest_key.max(other.longest_key),
        }
    }
}

/// What an entry says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Held<'v> {
    Value(&'v [u8]),
    Long(OverflowValue),
    Deleted,
}

impl<'v> Held<'v> {
    /// What the bytes in a run say.
    pub(super) fn of(form: Form, stored: Stored<'v>) -> Self {
        if let Some(long) = stored.as_long() {
            return Held::Long(long);
        }
        match (form, stored.bytes().split_last()) {
            (Form::Bottom, _) => Held::Value(stored.bytes()),
            (Form::Fragment, Some((kind, value))) if *kind == PUT => Held::Value(value),
            (Form::Fragment, _) => Held::Deleted,
        }
    }

    /// What an entry in memory says.
    pub(super) fn waiting((kind, value): (Kind, &'v [u8])) -> Self {
        match kind {
            Kind::Put => Held::Value(value),
            LONG => value
                .first_chunk()
                .map_or(Held::Deleted, |bytes| Held::Long(OverflowValue::from_bytes(*bytes))),
            _ => Held::Deleted,
        }
    }

    /// Bytes that stand in a bottom for it; none for what is deleted.
    pub(super) const fn bytes(&self) -> Option<usize> {
        match self {
            Held::Value(value) => Some(value.len()),
            Held::Long(_) => Some(OverflowValue::ENCODED_BYTES),
            Held::Deleted => None,
        }
    }

    pub(super) const fn long(&self) -> Option<OverflowValue> {
        match self {
            Held::Long(long) => Some(*long),
            _ => None,
        }
    }
}

/// The codecs of both forms.
#[derive(Clone, Copy, Debug)]
pub(super) struct Forms {
    bottom: Codecs,
    fragment: Codecs,
}

impl Forms {
    /// Those of pages of `bytes` bytes; `None` if they could not hold four entries.
    pub(super) fn new(bytes: u32, shape: EntryShape) -> Option<Self> {
        let value = match shape.value {
            Width::Fixed(bytes) => Width::Fixed(bytes.checked_add(1)?),
            Width::Variable => Width::Variable,
        };
        let one_of_two =
            |codecs: Codecs| Codecs { leaf: codecs.leaf.dense(), is_one_of_many: true, ..codecs };
        let fragment = Codecs::new(bytes, EntryShape { value, ..shape }).map(one_of_two)?;
        Some(Forms { bottom: Codecs::new(bytes, shape).map(one_of_two)?, fragment })
    }

    pub(super) const fn of(&self, form: Form) -> &Codecs {
        match form {
            Form::Bottom => &self.bottom,
            Form::Fragment => &self.fragment,
        }
    }

    pub(super) const fn shape(&self) -> EntryShape {
        self.bottom.shape
    }

    pub(super) fn check_key(&self, key: &[u8]) -> Result<()> {
        match self.shape().key {
            Width::Fixed(bytes) if key.len() != usize::from(bytes) => {
                Err(Error::KeyLength { expected: u64::from(bytes), found: key.len() as u64 })
            }
            _ => Ok(()),
        }
    }

    /// The most bytes of a key and its value that stand in a page.
    pub(super) fn entry_most(&self) -> usize {
        let fragment = self.fragment.leaf.entry_bytes_most().saturating_sub(1);
        self.bottom.leaf.entry_bytes_most().min(fragment)
    }
}

/// All runs.
pub(super) struct Runs<'d> {
    pub(super) store: PageStore<'d>,
    pub(super) forms: Forms,
    /// A value with its kind behind it.
    stored: Vec<u8>,
}

/// A run that is being written.
pub(super) struct Writing {
    form: Form,
    tree: BTree<LogicalPage>,
    /// Pages in use before.
    before: u32,
    leaves: u64,
    /// Bytes with which all keys begin.
    prefix: usize,
    content: Content,
}

impl Writing {
    pub(super) const fn content(&self) -> Content {
        self.content
    }

    pub(super) const fn leaves(&self) -> u64 {
        self.leaves
    }

    /// So many pages that were taken meanwhile are not the run's.
    pub(super) const fn leave_out(&mut self, pages: u32) {
        self.before += pages;
    }
}

impl<'d> Runs<'d> {
    pub(super) fn new(store: PageStore<'d>, forms: Forms) -> Self {
        let stored = Vec::with_capacity(forms.entry_most() + 1);
        Runs { store, forms, stored }
    }

    /// The nodes are read, and made, as those of this form.
    pub(super) fn choose(&mut self, form: Form) -> &mut PageStore<'d> {
        self.store.codecs = *self.forms.of(form);
        &mut self.store
    }

    /// Begins a run of keys that have their first `prefix` bytes in common.
    pub(super) fn begin(&mut self, form: Form, prefix: usize, cause: Cause) -> Result<Writing> {
        let before = self.store.file.pages_used().0;
        let codecs = *self.forms.of(form);
        let store = self.choose(form);
        let root = store.create(0, cause)?;
        let mut tree = BTree::new(root, codecs, FILL);
        tree.begin_load(store)?;
        Ok(Writing { form, tree, before, leaves: 1, prefix, content: Content::default() })
    }

    /// Adds an entry behind all others of the run. A bottom has no deletes.
    pub(super) fn push(&mut self, to: &mut Writing, key: &[u8], held: Held<'_>) -> Result<()> {
        self.push_within(to, (key, held), u64::MAX).map(drop)
    }

    /// The same, as long as the run has no more than so many leaves; else false.
    pub(super) fn push_within(
        &mut self,
        to: &mut Writing,
        (key, held): (&[u8], Held<'_>),
        leaves: u64,
    ) -> Result<bool> {
        let mut stored = core::mem::take(&mut self.stored);
        stored.clear();
        let long;
        let value = match (held, to.form) {
            (Held::Long(value), _) => {
                long = value.to_bytes();
                Stored::long(&long)
            }
            (Held::Value(value), Form::Bottom) => Stored::inline(value),
            (Held::Value(value), Form::Fragment) => {
                stored.extend_from_slice(value);
                stored.push(PUT);
                Stored::inline(&stored)
            }
            (Held::Deleted, _) => {
                if let Width::Fixed(bytes) = self.forms.shape().value {
                    stored.resize(usize::from(bytes), 0);
                }
                stored.push(0);
                Stored::inline(&stored)
            }
        };
        let pushed = self.append(to, (key, value), leaves);
        self.stored = stored;
        if let Some(bytes) = held.bytes().filter(|_| matches!(pushed, Ok(true))) {
            let key = (key.len(), to.prefix);
            to.content = to.content.with(Content::of(&self.forms.bottom.leaf, key, bytes));
        }
        pushed
    }

    fn append(
        &mut self,
        to: &mut Writing,
        (key, value): (&[u8], Stored<'_>),
        leaves: u64,
    ) -> Result<bool> {
        let store = self.choose(to.form);
        if to.tree.append(store, (key, value), FILL)? {
            return Ok(true);
        }
        if to.leaves >= leaves {
            return Ok(false);
        }
        let leaf = to.tree.begin_leaf(store, key, FILL)?;
        to.leaves += 1;
        if to.tree.append(store, (key, value), FILL)? {
            return Ok(true);
        }
        let what = "it is empty and has no room";
        Err(store::Error::DamagedPage { page: leaf, what }.into())
    }

    /// Ends a run that has entries.
    pub(super) fn finish(&mut self, written: &Writing) -> Run {
        let pages = self.store.file.pages_used().0.saturating_sub(written.before);
        Run { root: written.tree.root, pages, entries: written.tree.entries }
    }

    /// Gives the pages of a run back.
    pub(super) fn free(&mut self, form: Form, run: Run) -> Result<()> {
        self.choose(form);
        self.free_below(run.root)
    }

    fn free_below(&mut self, at: At<LogicalPage>) -> Result<()> {
        if at.level > 0 {
            let children = self.store.node(at, Cause::Merge)?.count();
            for place in 0..children {
                let id = self.store.node(at, Cause::Merge)?.child(place);
                self.free_below(At { id, level: at.level - 1 })?;
            }
        }
        self.store.free(at, Cause::Merge)
    }

    /// A filter over the keys of a fragment.
    pub(super) fn filter_of(&mut self, run: Run, bits: u32) -> Result<Filter> {
        // The root record has the number, and a damaged one any: memory is taken for what fits.
        let fit = self.forms.of(Form::Fragment).leaf.capacity(0, 0) as u64;
        if run.entries > fit.saturating_mul(run.pages.into()) {
            return Err(self.store.damaged(run.root.id, "it has more entries than its pages fit"));
        }
        let mut filter = Filter::for_keys(run.entries, bits);
        let mut cursor = RunCursor::whole(self, (Form::Fragment, run), Cause::Lookup)?;
        while cursor.load(self, Direction::Ascending)? {
            filter.add(cursor.key());
            cursor.pass(Direction::Ascending);
        }
        Ok(filter)
    }
}

/// The entries of a run, one after the other. It has its own copy of the leaf that it stands in, so
/// many of them go through a small cache.
pub(super) struct RunCursor {
    form: Form,
    codec: Codec,
    position: Position<LogicalPage>,
    /// The leaf that was copied.
    leaf: Option<LogicalPage>,
    bytes: Vec<u8>,
    key: Vec<u8>,
    /// The place of the entry that was loaded.
    place: Option<usize>,
    /// Leaves that are read ahead.
    ahead: usize,
}

/// A run that is read as a whole reads ahead so many leaves for each of these in the cache: so what
/// the sources of a merge read ahead stays there until they come to it.
const AHEAD_PART: u32 = 128;

impl RunCursor {
    pub(super) fn seek(
        runs: &mut Runs<'_>,
        (form, run): (Form, Run),
        (start, direction): (Bound<&[u8]>, Direction),
        cause: Cause,
    ) -> Result<Self> {
        let store = runs.choose(form);
        let position = Position::seek(store, run.root, (start, direction), cause)?;
        let codec = runs.forms.of(form).leaf;
        let (bytes, key) = (Vec::new(), Vec::new());
        Ok(RunCursor { form, codec, position, leaf: None, bytes, key, place: None, ahead: 0 })
    }

    /// All entries of a run, for whom reads all.
    pub(super) fn whole(runs: &mut Runs<'_>, run: (Form, Run), cause: Cause) -> Result<Self> {
        let all = (Bound::Unbounded, Direction::Ascending);
        let cursor = Self::seek(runs, run, all, cause)?;
        let ahead = (runs.store.file.cache_frames() / AHEAD_PART) as usize;
        Ok(RunCursor { ahead, ..cursor })
    }

    /// Loads the next entry; false if there is none.
    pub(super) fn load(&mut self, runs: &mut Runs<'_>, direction: Direction) -> Result<bool> {
        if self.place.is_some() {
            return Ok(true);
        }
        let store = runs.choose(self.form);
        let Some(place) = self.position.peek(store, direction)? else {
            return Ok(false);
        };
        let leaf = self.position.leaf();
        if self.leaf != Some(leaf) {
            let is_next = self.leaf.take().is_some();
            let node = store.node(At::leaf(leaf), self.position.cause())?;
            self.bytes.clear();
            self.bytes.extend_from_slice(node.bytes);
            // What is written from here must ascend; within a node the order was checked.
            let order = self.codec.key(&self.bytes, place).compare(&self.key);
            if is_next && direction.order(order).is_le() {
                return Err(store.damaged(leaf, "its keys are not behind those of the leaf before"));
            }
            self.leaf = Some(leaf);
            if self.ahead > 0 {
                store.read_ahead(&self.position, self.ahead)?;
            }
        }
        self.codec.key(&self.bytes, place).copy_to(&mut self.key);
        self.place = Some(place);
        Ok(true)
    }

    pub(super) fn key(&self) -> &[u8] {
        &self.key
    }

    pub(super) fn held(&self) -> Held<'_> {
        match self.place {
            Some(place) => Held::of(self.form, self.codec.value(&self.bytes, place)),
            None => Held::Deleted,
        }
    }

    pub(super) fn pass(&mut self, direction: Direction) {
        if self.place.take().is_some() {
            self.position.pass(direction);
        }
    }
}

/// Entries that are merged: those of a run, or those that wait in memory.
#[allow(clippy::large_enum_variant, reason = "most of them are runs")]
pub(super) enum Source<'m> {
    Memory(MemtableCursor<'m>),
    Run(RunCursor),
}

impl Source<'_> {
    fn held(&self, direction: Direction) -> Held<'_> {
        match self {
            Source::Memory(cursor) => cursor
                .head(way(direction))
                .map_or(Held::Deleted, |entry| Held::waiting((entry.kind, entry.value))),
            Source::Run(cursor) => cursor.held(),
        }
    }
}

impl Sorted for Source<'_> {
    fn key(&self, direction: Direction) -> Option<&[u8]> {
        match self {
            Source::Memory(cursor) => cursor.head(way(direction)).map(|entry| entry.key),
            Source::Run(cursor) => cursor.place.map(|_| cursor.key()),
        }
    }

    fn pass(&mut self, direction: Direction) {
        match self {
            Source::Memory(cursor) => cursor.step(way(direction)),
            Source::Run(cursor) => cursor.pass(direction),
        }
    }
}

impl<'d> Load<Runs<'d>> for Source<'_> {
    fn load(&mut self, runs: &mut Runs<'d>, direction: Direction) -> Result<bool> {
        match self {
            Source::Memory(cursor) => Ok(cursor.advance(way(direction))),
            Source::Run(cursor) => cursor.load(runs, direction),
        }
    }
}

impl Merger<Source<'_>> {
    /// The present key.
    pub(super) fn key(&self) -> &[u8] {
        self.newest().and_then(|source| source.key(self.direction)).unwrap_or_default()
    }

    /// What the newest entry of the present key says.
    pub(super) fn held(&self) -> Held<'_> {
        self.newest().map_or(Held::Deleted, |source| source.held(self.direction))
    }

    /// What the older entries of the present key say.
    pub(super) fn superseded(&self) -> impl Iterator<Item = Held<'_>> {
        self.older().map(|source| source.held(self.direction))
    }
}
