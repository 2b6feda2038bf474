//! Super groups (section 4.4.2.3): groups that are cheaper to commit together.

use super::LazyUpdate;
use super::blocks::{Block, BlockId, NONE, Operation};
use super::make::SuperGroups;
use super::order::Policy;
use crate::btree::NodeSource;
use device::Cause;
use index::Result;

/// Why two groups of one parent are committed together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Saving {
    /// Both rebalance, and so write their parent.
    Parent,
    /// One rebalances with the leaf of the other.
    Neighbour,
    /// One merges, and so writes the chain of the leaf behind its neighbour. Leaves here have no
    /// chain: as the paper has it.
    Chain,
}

/// The score of one page for one request.
const SCORE_ONE: u32 = 1 << 14;

/// The saving of two groups whose leaves are `distance` places apart, if there is one.
pub(super) fn saving((one, other): (&Block, &Block), distance: u16) -> Option<Saving> {
    let (one, other) = (one.operation(), other.operation());
    match (one == Operation::Normal, other == Operation::Normal) {
        (false, false) => Some(Saving::Parent),
        (true, true) => None,
        _ if distance == 1 => Some(Saving::Neighbour),
        _ => {
            let merges = one == Operation::Shrinking || other == Operation::Shrinking;
            (merges && distance == 2).then_some(Saving::Chain)
        }
    }
}

impl LazyUpdate<'_> {
    /// Chooses the super group of the group `id`, which is a member; none without super groups.
    pub(super) fn choose_super_group(&mut self, id: BlockId) -> Result<()> {
        if self.choices.super_groups == SuperGroups::None {
            return Ok(());
        }
        self.list_siblings(id)?;
        let mut siblings = core::mem::take(&mut self.siblings);
        let grown = self.grow_super_group(&mut siblings, id);
        self.siblings = siblings;
        self.waiting.list.choose(id, true);
        let grown = grown.inspect_err(|_| self.waiting.list.unmark())?;
        for (counted, saved) in self.counted.savings.iter_mut().zip(grown) {
            *counted += saved;
        }
        Ok(())
    }

    /// The groups of the parent of the group `id`, in the order of their leaves, with the places
    /// that these have.
    fn list_siblings(&mut self, id: BlockId) -> Result<()> {
        self.siblings.clear();
        let parent_id = self.waiting.list.block(id).parent;
        if parent_id == NONE {
            return Ok(());
        }
        let parent = *self.waiting.list.block(parent_id);
        let node = self.store.node(parent.at(), Cause::Update)?;
        let (waiting, key) = (&mut self.waiting, &mut self.sibling_key);
        for place in 0..node.count().min(self.siblings.capacity()) {
            node.key(place).copy_to(key);
            let Some((id, block)) = waiting.block_of(key) else { continue };
            if block.is_group() && block.parent == parent_id && block.page == node.child(place) {
                self.siblings.push((place as u16, id));
            }
        }
        Ok(())
    }

    /// Algorithm 6, from the group `id` on: adds siblings until none saves anything; how many were
    /// added for each saving.
    fn grow_super_group(
        &mut self,
        siblings: &mut [(u16, BlockId)],
        id: BlockId,
    ) -> Result<[u64; 3]> {
        let mut savings = [0; 3];
        if !self.waiting.list.block(id).is_known() {
            self.know(id)?;
        }
        let mut rebalances = self.waiting.list.block(id).operation() != Operation::Normal;
        self.waiting.list.choose(id, true);
        loop {
            let mut has_grown = false;
            for at in 0..siblings.len() {
                let (_, sibling) = siblings[at];
                if self.waiting.list.block(sibling).is_chosen
                    || !(rebalances || self.has_chosen_near(siblings, at))
                {
                    continue;
                }
                if !self.waiting.list.block(sibling).is_known() {
                    self.know(sibling)?;
                }
                let Some(saving) = self.saving_with_chosen(siblings, at, rebalances) else {
                    continue;
                };
                savings[saving as usize] += 1;
                self.waiting.list.choose(sibling, true);
                rebalances |= self.waiting.list.block(sibling).operation() != Operation::Normal;
                has_grown = true;
            }
            if !has_grown {
                self.waiting.list.choose(id, false);
                return Ok(savings);
            }
        }
    }

    /// The siblings whose leaves are at most two places from that of the sibling at `at`.
    fn near(siblings: &[(u16, BlockId)], at: usize) -> impl Iterator<Item = (u16, BlockId)> {
        let (place, _) = siblings[at];
        let around = &siblings[at.saturating_sub(2)..siblings.len().min(at + 3)];
        let near = around.iter().map(move |(other, id)| (other.abs_diff(place), *id));
        near.filter(|(distance, _)| (1..=2).contains(distance))
    }

    fn has_chosen_near(&self, siblings: &[(u16, BlockId)], at: usize) -> bool {
        Self::near(siblings, at).any(|(_, id)| self.waiting.list.block(id).is_chosen)
    }

    /// What committing the sibling at `at` with those that are chosen saves, some of which
    /// rebalance or not.
    fn saving_with_chosen(
        &self,
        siblings: &[(u16, BlockId)],
        at: usize,
        rebalances: bool,
    ) -> Option<Saving> {
        let list = &self.waiting.list;
        let block = list.block(siblings[at].1);
        if rebalances && block.operation() != Operation::Normal {
            return Some(Saving::Parent);
        }
        let chosen = Self::near(siblings, at).filter(|(_, id)| list.block(*id).is_chosen);
        chosen.map(|(distance, id)| saving((block, list.block(id)), distance)).find_map(|it| it)
    }

    /// A group of the super group that comes first (the second approach): of all groups, each with
    /// those that it is committed with.
    pub(super) fn victim_of_super_groups(&mut self) -> Result<Option<BlockId>> {
        self.form_all(true)?;
        let mut first: Option<(u16, u32, BlockId)> = None;
        for place in 0..self.waiting.list.blocks.len() {
            let id = BlockId(place as u16);
            let block = *self.waiting.list.block(id);
            // Groups hang on the blocks of level 1; a root that is a leaf is a group alone.
            let is_alone = block.is_group() && block.parent == NONE && block.count > 0;
            if !block.is_live || !(is_alone || block.level == 1 && block.children > 0) {
                continue;
            }
            let best = match block.best().filter(|_| !is_alone) {
                _ if is_alone => Some((id, 0)),
                Some(best) => Some(best),
                None => self.best_super_group(id)?,
            };
            let Some((member, score)) = best else { continue };
            let hit = self.waiting.list.block(member).hit;
            if first.is_none_or(|(least, oldest, _)| (score, hit) < (least, oldest)) {
                first = Some((score, hit, member));
            }
        }
        match first {
            Some((_, _, member)) => Ok(Some(member)),
            // There is no room for groups.
            None => self.victim(),
        }
    }

    /// The best super group below an index block: a member of it, and its score.
    fn best_super_group(&mut self, parent: BlockId) -> Result<Option<(BlockId, u16)>> {
        let children = self.waiting.list.live().find(|(_, block)| block.parent == parent);
        let Some((child, _)) = children else {
            return Ok(None);
        };
        self.list_siblings(child)?;
        let mut siblings = core::mem::take(&mut self.siblings);
        let mut best: Option<(BlockId, u16)> = None;
        for at in 0..siblings.len() {
            let (_, id) = siblings[at];
            if self.waiting.list.block(id).is_visited {
                continue;
            }
            let grown = self.grow_super_group(&mut siblings, id);
            let score = self.score(&siblings, id);
            if grown.is_ok() && best.is_none_or(|(_, least)| score < least) {
                best = Some((id, score));
            }
            if let Err(error) = grown {
                self.siblings = siblings;
                self.waiting.list.unmark();
                return Err(error);
            }
        }
        for (_, id) in &siblings {
            self.waiting.list.visit(*id, false);
        }
        self.siblings = siblings;
        if let Some(best) = best {
            self.waiting.list.note_best(parent, best);
        }
        Ok(best)
    }

    /// The score of the super group of `id`, whose other members are chosen, and are no more then:
    /// lower ones are better. All are visited.
    fn score(&mut self, siblings: &[(u16, BlockId)], id: BlockId) -> u16 {
        let list = &mut self.waiting.list;
        let (mut gain, mut size) = (0, 0);
        for (_, member) in siblings {
            let block = *list.block(*member);
            if *member == id || block.is_chosen {
                gain += u32::from(block.gain());
                size += u32::from(block.count);
                list.visit(*member, true);
                list.choose(*member, false);
            }
        }
        let score = match list.policy() {
            Policy::CostBased => gain * SCORE_ONE / size.max(1),
            _ => u32::from(u16::MAX - 1).saturating_sub(size),
        };
        score.min(u32::from(u16::MAX - 1)) as u16
    }

    /// The group of those that are chosen that is committed next: what rebalances comes behind its
    /// neighbours, whose leaves may be other nodes then.
    pub(super) fn next_of_super_group(&mut self) -> Option<BlockId> {
        let list = &mut self.waiting.list;
        if list.chosen == 0 {
            return None;
        }
        let chosen = list.live().filter(|(_, block)| block.is_chosen);
        let first = chosen.min_by_key(|(_, block)| block.operation() as u8).map(|(id, _)| id);
        match first {
            Some(id) => list.choose(id, false),
            None => list.chosen = 0,
        }
        first
    }
}
