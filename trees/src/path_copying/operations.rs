//! Updates: what is let in, what waits for the tree, and how one gets there.

use device::Cause;
use store::{Growth, Recovery, Update};

use super::PathTree;
use super::admission::Now;
use super::bare_tree::BareTree;
use super::collection::Collection;
use index::Result;

/// What room is counted for: the tree as it is, for which so many updates wait.
pub(super) fn now<'t>(tree: &'t BareTree<'_>, waiting: usize) -> Now<'t> {
    let is_replayed = tree.nodes.log.durability().has_journal();
    Now { census: &tree.census, room: tree.room(), waiting: waiting as u64, is_replayed }
}

impl<'d> PathTree<'d> {
    /// Refuses a batch that has no room.
    pub(super) fn admit_updates(&mut self, batch: &[Update<'_>]) -> Result<()> {
        self.note_keys(batch);
        // With a journal room is made between the steps of a batch. But named checkpoints may keep
        // so much that nothing can be made free there.
        let log = &self.bare.nodes.log;
        let is_made_within = log.durability().has_journal() && log.pinned_blocks() == 0;
        let needed = match is_made_within {
            true => self.bare.reserve_pages(),
            false => self.pages_for(batch.len() as u64),
        };
        let (is_short, lasts) = (u64::from(log.free_pages()) < needed, self.bare.nodes.lasts());
        if is_short && lasts && !is_made_within {
            self.admission.wanted = needed;
            return Err(self.bare.nodes.no_room());
        }
        self.admission.wanted = 0;
        if batch.len() > 1 && self.is_cramped() {
            return Err(self.bare.nodes.no_room());
        }
        let puts = batch.iter().filter(|update| !matches!(update, Update::Delete { .. })).count();
        let puts = puts as u64;
        let is_let_in = self.admission.admit(puts, &now(&self.bare, self.buffer.len()))
            // A checkpoint costs less than reading the path of each put.
            || !self.admission.has_room_after_checkpoint(puts) && self.fits_directly(batch)?;
        if !is_let_in {
            return Err(self.refusal(puts));
        }
        if lasts {
            let (collection, tree) = self.parts();
            collection.collect_lazily(tree, needed)?;
        }
        Ok(())
    }

    /// Why so many puts have no room. As long as updates wait, they might have some without these.
    fn refusal(&self, puts: u64) -> index::Error {
        let growth = self.bare.census.demand.growth(puts);
        match self.buffer.len() > 0 || self.bare.room().can_rise(growth) {
            true => self.bare.nodes.no_room(),
            false => self.bare.policy.clone().up_to(self.bare.height_possible()).tree_full(),
        }
    }

    /// Counts with keys as long as those of `batch`, where they vary.
    fn note_keys(&mut self, batch: &[Update<'_>]) {
        let puts = batch.iter().filter(|update| !matches!(update, Update::Delete { .. }));
        let longest = puts.map(|put| put.key().len()).max().unwrap_or(0);
        if self.bare.census.note_key(longest, &self.bare.policy) {
            self.admission.note_longer_keys(self.bare.nodes.log.durability().has_journal());
        }
    }

    /// Pages that have to be free before so many updates are taken, beside those that wait.
    fn pages_for(&self, updates: u64) -> u64 {
        // What one update writes is in the reserve.
        let more = (self.buffer.len() as u64 + updates).saturating_sub(1);
        let (room, census) = (self.bare.room(), &self.bare.census);
        room.written_most(&census.demand, more) + room.reserve_pages(census.demand.inner())
    }

    /// True if a batch is one put that adds no node, and nothing waits.
    fn fits_directly(&mut self, batch: &[Update<'_>]) -> Result<bool> {
        let ([Update::Put { key, value }], 0) = (batch, self.buffer.len()) else {
            return Ok(false);
        };
        match self.bare.order_of((key, Some(value)), Cause::Update)? {
            Some(order) => self.bare.can_add_none(&order),
            None => Ok(true),
        }
    }

    /// True if named checkpoints keep so much that not even the tree as it is has room for sure.
    fn is_cramped(&self) -> bool {
        let (log, demand) = (&self.bare.nodes.log, &self.bare.census.demand);
        log.pinned_blocks() > 0 && !self.bare.room().has_room(demand)(Growth::default())
    }

    /// What collects the tree, and the tree, which knows how many puts were promised room.
    pub(super) fn parts(&mut self) -> (&mut Collection, &mut BareTree<'d>) {
        self.bare.promised = self.buffer.len() as u64 + self.admission.puts;
        (&mut self.collection, &mut self.bare)
    }

    fn make_room_for_one(&mut self) -> Result<()> {
        let (collection, tree) = self.parts();
        collection.make_room_for_one(tree)
    }

    /// Makes one change, through the operation buffer if it is to wait there; or, for lack of room
    /// in that, a step towards it. True if it is made.
    pub(super) fn update(&mut self, key: &[u8], value: Option<&[u8]>) -> Result<bool> {
        if !(self.lets_wait(value.is_some()) && self.buffer.insert(key, value)) {
            // It is longer than the whole buffer, or adds no node to the tree as it is.
            if self.write_oldest()? {
                return Ok(false);
            }
            self.make_room_for_one()?;
            if let Some(order) = self.bare.order_of((key, value), Cause::Update)? {
                self.bare.rewrite(&order)?;
            }
        }
        self.admission.count_made(value.is_some());
        Ok(true)
    }

    /// True if an update may wait in memory. A replayed one was let in before: if that was for it
    /// adds no node to the tree as it is, this is found again.
    fn lets_wait(&mut self, is_put: bool) -> bool {
        if self.is_cramped() {
            return false;
        }
        if is_put && self.admission.puts == 0 {
            self.admission.admit(1, &now(&self.bare, self.buffer.len()));
        }
        !is_put || self.admission.puts > 0
    }

    /// Empties the blocks in which least lives; false if nothing can be gained.
    pub(super) fn empty_blocks(&mut self) -> Result<bool> {
        let (collection, tree) = self.parts();
        collection.empty_blocks(tree)
    }

    /// Writes the oldest entry of the operation buffer to the tree, and what goes with it; false if
    /// there is none.
    pub(super) fn write_oldest(&mut self) -> Result<bool> {
        let Some(place) = self.buffer.oldest_place() else {
            return Ok(false);
        };
        self.write_waiting(place)?;
        Ok(true)
    }

    /// Writes the entry at `place` of the operation buffer, in the order of keys, to the tree, and
    /// what goes with it.
    pub(super) fn write_waiting(&mut self, place: usize) -> Result<()> {
        self.bare.allow_growth();
        self.make_room_for_one()?;
        let (tree, buffer) = (&mut self.bare, &self.buffer);
        let Some(entry) = buffer.at(place) else {
            return Ok(());
        };
        let mut places = place..place + 1;
        if let Some(order) = tree.order_of(entry, Cause::Flush)? {
            places = self.flush.places_with((buffer, place), |other| tree.joins(other));
            if places.len() > 1 {
                tree.path.seek(entry.0);
            }
            tree.rewrite(&order)?;
        }
        self.buffer.remove(places);
        Ok(())
    }
}
