//! What is newer than the full blocks: sectors of the log, and blocks that were being filled.

use alloc::vec;
use alloc::vec::Vec;

use device::{Block, Nand, Page, Result};

use super::fill::{Filling, Merge, Role};
use super::log::LogBlock;
use super::own::{self, Head};
use super::survey::{Begun, Scan, Seen};
use crate::reading::{can_read, intact, read_metadata};
use crate::spare::{self, Found, Metadata, is_sequence};

/// A sector in the log.
pub(super) struct Entry {
    pub(super) sector: u32,
    pub(super) sequence: u64,
    pub(super) row: usize,
    pub(super) place: u32,
    pub(super) page: Page,
}

/// A block that was being filled.
pub(super) struct Unfinished {
    pub(super) filling: Filling,
    pub(super) flawed: bool,
}

/// What the log and the blocks that were being filled hold.
pub(super) struct Loaded {
    /// The highest sequence seen.
    pub(super) sequence: u64,
    /// In ascending order of their sequences.
    pub(super) sectors: Vec<Entry>,
    pub(super) fillings: Vec<Unfinished>,
    /// Pages of the log that nothing tells.
    pub(super) pages_damaged: u64,
}

impl Loaded {
    fn add(&mut self, sequence: u64, begun: Begun, block: Block, next: u32) {
        if next == 0 {
            return;
        }
        let filling = Filling {
            logical: begun.logical,
            block,
            sequence: begun.sequence,
            next,
            durable: next,
            role: Role::InOrder,
            closed: true,
            worn: false,
            merge: Merge::Partial,
            used: begun.sequence,
        };
        self.sequence = self.sequence.max(sequence);
        self.fillings.push(Unfinished { filling, flawed: begun.flawed });
    }
}

/// The full block of each logical block that counts, with its sequence.
pub(super) fn full_blocks(survey: &[Seen], logical: usize) -> Vec<Option<(u64, Block)>> {
    let mut full = vec![None; logical];
    for (block, seen) in (0..).map(Block).zip(survey) {
        if let Seen::Block(begun) = seen
            && begun.full
            && let Some(newest) = full.get_mut(begun.logical as usize)
        {
            *newest = (*newest).max(Some((begun.sequence, block)));
        }
    }
    full
}

/// The blocks of the log that count, the oldest first.
pub(super) fn log_queue(survey: &[Seen], newest: Head, most: usize) -> Vec<LogBlock> {
    let mut queue: Vec<(u64, Block)> = (0..)
        .map(Block)
        .zip(survey)
        .filter_map(|(block, seen)| match seen {
            Seen::Log { sequence, .. } if *sequence >= newest.base => Some((*sequence, block)),
            _ => None,
        })
        .collect();
    queue.sort_unstable();
    // There are more only if the newest header cannot be read; then the oldest was done.
    let surplus = queue.len().saturating_sub(most);
    let queue = queue.into_iter().skip(surplus).enumerate();
    queue.map(|(row, (sequence, block))| LogBlock { block, sequence, row, worn: false }).collect()
}

impl<N: Nand> Scan<N> {
    /// Looks for blocks that were being filled: of each logical block the newest, if it is newer
    /// than the full one.
    pub(super) fn find_fillings(
        &mut self,
        survey: &[Seen],
        full: &[Option<(u64, Block)>],
        found: &mut Loaded,
    ) -> Result<()> {
        let mut begun: Vec<(u32, u64, Block)> = (0..)
            .map(Block)
            .zip(survey)
            .filter_map(|(block, seen)| match seen {
                Seen::Block(begun) if begun.counts_beside(full) => {
                    Some((begun.logical, begun.sequence, block))
                }
                _ => None,
            })
            .collect();
        begun.sort_unstable_by(|one, other| other.cmp(one));
        begun.dedup_by_key(|(logical, ..)| *logical);
        for (_, sequence, block) in begun {
            if let Seen::Block(begun) = survey[block.0 as usize] {
                let (next, flawed) = self.filled(block, begun)?;
                found.add(sequence, Begun { flawed, ..begun }, block, next);
            }
        }
        Ok(())
    }

    /// How many places of a block are filled, and whether one of them was lost.
    fn filled(&mut self, block: Block, begun: Begun) -> Result<(u32, bool)> {
        let mut last = None;
        let mut before = begun.flawed;
        let mut flawed = begun.flawed;
        for offset in 0..self.shape.sectors_per_block() {
            if let Some((metadata, place)) = self.in_order_at(block, offset, begun)? {
                last = Some((offset, metadata));
                (before, flawed) = (flawed, place.flawed);
            }
        }
        match last {
            Some((offset, metadata)) if self.intact(block, offset, metadata)? => {
                Ok((offset + 1, flawed))
            }
            Some((offset, _)) => Ok((offset, before)),
            None => Ok((0, false)),
        }
    }

    /// Keeps what the log says of blocks that were being filled if it still holds.
    pub(super) fn check_named(
        &self,
        survey: &[Seen],
        full: &[Option<(u64, Block)>],
        found: &mut Loaded,
    ) {
        let named = core::mem::take(&mut found.fillings);
        for Unfinished { filling, flawed } in named {
            let begun = match survey.get(filling.block.0 as usize) {
                Some(Seen::Block(begun)) => Some(*begun),
                // The log knows what the header of the block said.
                Some(Seen::Dark) => Some(Begun {
                    logical: filling.logical,
                    sequence: filling.sequence,
                    role: Role::InOrder,
                    full: false,
                    dark_end: false,
                    flawed,
                }),
                _ => None,
            };
            if let Some(begun) = begun
                && begun.sequence == filling.sequence
                // A logical block is named once: what names it twice was made up.
                && found.fillings.iter().all(|other| other.filling.logical != begun.logical)
                && begun.counts_beside(full)
            {
                let next = filling.next.min(self.shape.sectors_per_block());
                found.add(begun.sequence, Begun { flawed, ..begun }, filling.block, next);
            }
        }
    }

    /// Notes the sectors of a block of the log, and the blocks that it says are being filled.
    pub(super) fn load_log(&mut self, log: LogBlock, found: &mut Loaded) -> Result<()> {
        if self.shape.has_own_pages() {
            self.load_states(log, found)
        } else if self.shape.kind.sectors_in_log {
            self.load_spares(log, found)
        } else {
            Ok(())
        }
    }

    fn load_spares(&mut self, log: LogBlock, found: &mut Loaded) -> Result<()> {
        let first = self.shape.geometry.first_page(log.block).0;
        let mut suspect = None;
        let mut is_dark = false;
        for place in 1..self.shape.geometry.pages_per_block() {
            let page = Page(first + place);
            let metadata = read_metadata(&mut self.nand, page)?;
            if metadata == Found::Blank {
                break;
            }
            // With another page behind it, it was not torn.
            found.pages_damaged += u64::from(is_dark);
            is_dark = metadata == Found::Damaged;
            match metadata {
                Found::Blank | Found::Damaged => suspect = None,
                Found::Page(metadata) if metadata.kind == spare::Kind::Log => {
                    let Metadata { sector, sequence, .. } = metadata;
                    suspect = Some((page, metadata));
                    found.sectors.push(Entry { sector, sequence, row: log.row, place, page });
                    found.sequence = found.sequence.max(sequence);
                }
                Found::Page(_) => {}
            }
        }
        if let Some((page, metadata)) = suspect
            && !intact(&mut self.nand, page, metadata, &mut self.page)?
        {
            found.sectors.pop();
        }
        Ok(())
    }

    /// Reads the states of a block of the log, from the last to the first. What the last one says
    /// of the blocks being filled replaces what older ones said.
    fn load_states(&mut self, log: LogBlock, found: &mut Loaded) -> Result<()> {
        let first = self.shape.geometry.first_page(log.block).0;
        let older = found.sectors.len();
        let mut place = self.shape.geometry.pages_per_block() - 1;
        let mut newest = true;
        let mut behind = None;
        loop {
            let page = Page(first + place);
            let mark = self.shape.kind.mark;
            let own = &mut self.page[..4];
            // Blank pages and data are told by a few bytes.
            let marked = can_read(&mut self.nand, page, own)? && *own == mark;
            let head = if marked { self.own_page(page)? } else { None };
            let head = head.filter(|head| head.sequence == log.sequence);
            if let Some(head) = head {
                if newest {
                    self.name_fillings(found);
                    newest = false;
                }
                place = self.load_group(head, (log.row, first, place), found);
                behind = place.checked_sub(1);
            } else if behind == Some(place) && self.shape.kind.sectors_in_log && place > 0 {
                // Directly before a group stands another state, or the header.
                found.pages_damaged += 1;
            }
            if place == 0 {
                break;
            }
            place -= 1;
        }
        found.sectors[older..].sort_unstable_by_key(|entry| entry.sequence);
        Ok(())
    }

    /// Notes the blocks that the page just read says are being filled.
    fn name_fillings(&self, found: &mut Loaded) {
        found.fillings.clear();
        for state in own::states(&self.page).filter(|state| is_sequence(state.sequence)) {
            let begun = Begun {
                logical: state.logical,
                sequence: state.sequence,
                role: Role::InOrder,
                full: false,
                dark_end: false,
                flawed: state.flawed,
            };
            found.add(state.sequence, begun, state.block, state.filled);
        }
    }

    /// Notes the members of the state just read, which stands on `place`; returns the place of
    /// the first.
    fn load_group(
        &self,
        head: Head,
        (row, first, place): (usize, u32, u32),
        found: &mut Loaded,
    ) -> u32 {
        let members = own::members(&self.page);
        let possible = self.shape.kind.sectors_in_log && members.len() < place as usize;
        if head.kind != own::Kind::State || !possible {
            return place;
        }
        let start = place - members.len() as u32;
        for (place, member) in (start..).zip(members) {
            let sequence = head.base + u64::from(member.delta);
            let (sector, page) = (member.sector, Page(first + place));
            found.sectors.push(Entry { sector, sequence, row, place, page });
            found.sequence = found.sequence.max(sequence);
        }
        start
    }
}
