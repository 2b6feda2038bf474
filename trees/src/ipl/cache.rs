//! The cache of nodes: what of them flash does not have yet, and how many of those there are,
//! without a look at each.
//!
//! A frame has a node as it is, and its newest record of deltas: see `layout.rs`.
//!
//! Invariant: `dirty` and `unwritten` count the frames that are.

use store::Frames;

use super::block::RecordPlace;
use super::layout::begin_record;
use super::table::NodeId;

/// What of a node flash does not have.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Unsaved {
    #[default]
    Nothing,
    /// Deltas of its newest record.
    Deltas,
    /// Deltas of which no record is kept, for it has too many: it is to be written anew.
    Anew,
    /// Anything: no page holds it.
    All,
}

#[derive(Clone, Copy, Debug, Default)]
struct State {
    /// Bytes of its newest record; 0 if it has none.
    record_bytes: u16,
    unsaved: Unsaved,
}

/// The cache.
pub(super) struct Cache {
    frames: Frames<State>,
    node_bytes: usize,
    dirty: u32,
    unwritten: u32,
}

impl Cache {
    /// A cache of `frames` nodes of `node_bytes` bytes, with room for records of so many bytes.
    pub(super) fn new(frames: u32, node_bytes: usize, record_bytes: usize) -> Self {
        let frames = Frames::new(frames, node_bytes + record_bytes, 1);
        Cache { frames, node_bytes, dirty: 0, unwritten: 0 }
    }

    /// Bytes of memory of a node in a cache.
    pub(super) const fn frame_bytes(node_bytes: usize, record_bytes: usize) -> u64 {
        (Frames::<State>::TABLE_BYTES + node_bytes + record_bytes) as u64
    }

    /// Nodes that it can hold.
    pub(super) fn len(&self) -> u32 {
        self.frames.len()
    }

    /// Nodes in it that have to be written.
    pub(super) const fn dirty(&self) -> u32 {
        self.dirty
    }

    /// Nodes in it that no page holds yet.
    pub(super) const fn unwritten(&self) -> u32 {
        self.unwritten
    }

    /// The frame of node `id`.
    pub(super) fn find(&self, id: NodeId) -> Option<u32> {
        self.frames.find(id.0)
    }

    /// The frame of node `id`, which is the one used last from now on.
    pub(super) fn touch(&mut self, id: NodeId) -> Option<u32> {
        self.frames.touch(id.0)
    }

    /// The frame whose node has to leave before another can enter, if none is free.
    pub(super) fn victim(&self) -> Option<u32> {
        self.frames.victim()
    }

    /// The node in `frame`, if it has one.
    pub(super) fn id(&self, frame: u32) -> Option<NodeId> {
        self.frames.key(frame).map(NodeId)
    }

    /// What of the node in `frame` flash does not have.
    pub(super) fn unsaved(&self, frame: u32) -> Unsaved {
        self.frames.state(frame).unsaved
    }

    /// The bytes of the node in `frame`.
    pub(super) fn node(&self, frame: u32) -> &[u8] {
        &self.frames.bytes(frame)[..self.node_bytes]
    }

    /// The bytes of the node in `frame`, to be changed.
    pub(super) fn node_mut(&mut self, frame: u32) -> &mut [u8] {
        &mut self.frames.bytes_mut(frame)[..self.node_bytes]
    }

    /// The bytes of two nodes; `None` if they are the same.
    pub(super) fn two_mut(&mut self, [one, other]: [u32; 2]) -> Option<(&mut [u8], &mut [u8])> {
        let (one, other) = self.frames.two_mut(one, other)?;
        Some((&mut one[..self.node_bytes], &mut other[..self.node_bytes]))
    }

    fn record_end(&self, frame: u32) -> usize {
        self.node_bytes + usize::from(self.frames.state(frame).record_bytes)
    }

    /// The newest record of the node in `frame`; no bytes if it has none.
    pub(super) fn record(&self, frame: u32) -> &[u8] {
        &self.frames.bytes(frame)[self.node_bytes..self.record_end(frame)]
    }

    /// The same, to be sealed.
    pub(super) fn record_mut(&mut self, frame: u32) -> &mut [u8] {
        let end = self.record_end(frame);
        &mut self.frames.bytes_mut(frame)[self.node_bytes..end]
    }

    /// Lets a frame hold node `id`, which has none: the one whose node was used longest ago, if
    /// none is free. The node's bytes are up to the caller; it has no record.
    pub(super) fn enter(&mut self, id: NodeId, unsaved: Unsaved) -> u32 {
        if let Some(victim) = self.victim() {
            self.forget(victim);
        }
        let frame = self.frames.enter(id.0);
        self.change(frame, |state| state.unsaved = unsaved);
        frame
    }

    /// The node in `frame` has this record, and flash has it, too.
    pub(super) fn set_record(&mut self, frame: u32, record: &[u8]) {
        let (room, state) = self.record_room(frame);
        state.record_bytes = record.len() as u16;
        device::copy(&mut room[..record.len()], record);
    }

    fn record_room(&mut self, frame: u32) -> (&mut [u8], &mut State) {
        let (bytes, state) = self.frames.both_mut(frame);
        (&mut bytes[self.node_bytes..], state)
    }

    /// Lets `frame` hold nothing.
    pub(super) fn forget(&mut self, frame: u32) {
        self.saved(frame);
        self.frames.forget(frame);
    }

    /// Nothing is in the cache.
    pub(super) fn clear(&mut self) {
        self.frames.forget_all();
        (self.dirty, self.unwritten) = (0, 0);
    }

    /// Flash has the node in `frame` as it is.
    pub(super) fn saved(&mut self, frame: u32) {
        self.change(frame, |state| state.unsaved = Unsaved::Nothing);
    }

    /// The node in `frame` has no record: a page holds it as it is, or it is to be written anew.
    pub(super) fn renewed(&mut self, frame: u32, unsaved: Unsaved) {
        self.change(frame, |state| *state = State { record_bytes: 0, unsaved });
    }

    /// A further record of the node in `frame` begins behind the one that stands at `before`; false
    /// if it has too many.
    #[must_use]
    pub(super) fn begin_record(&mut self, frame: u32, before: RecordPlace) -> bool {
        let (room, state) = self.record_room(frame);
        let begun = begin_record(room, Some(before));
        if let Some(bytes) = begun {
            state.record_bytes = bytes as u16;
        }
        begun.is_some()
    }

    /// Adds a delta of `bytes` bytes, which `write` writes, to the newest record of the node in
    /// `frame`, unless all of that is to be written anyway.
    pub(super) fn add_delta(&mut self, frame: u32, bytes: usize, write: impl FnOnce(&mut [u8])) {
        if matches!(self.unsaved(frame), Unsaved::Anew | Unsaved::All) {
            return;
        }
        let (room, state) = self.record_room(frame);
        let at = match state.record_bytes {
            0 => begin_record(room, None).unwrap_or_default(),
            bytes => usize::from(bytes),
        };
        write(&mut room[at..at + bytes]);
        state.record_bytes = (at + bytes) as u16;
        self.change(frame, |state| state.unsaved = Unsaved::Deltas);
    }

    fn change(&mut self, frame: u32, change: impl FnOnce(&mut State)) {
        let state = self.frames.state_mut(frame);
        let before = state.unsaved;
        change(state);
        let after = state.unsaved;
        let is = |unsaved: Unsaved, what: Unsaved| u32::from(unsaved == what);
        self.dirty = self.dirty + is(before, Unsaved::Nothing) - is(after, Unsaved::Nothing);
        self.unwritten = self.unwritten + is(after, Unsaved::All) - is(before, Unsaved::All);
    }
}

#[cfg(test)]
mod tests;
