//! What an opening finds on the chip: which blocks hold pages, and the newest of each stream.

use alloc::vec::Vec;

use device::{Block, Cause, Nand, Page};

use super::pages::Pages;
use super::record::Record;
use super::tag::{self, APART_KIND, Found, PageKind, Tag};
use crate::Result;
use crate::canary::Canary;

/// The newest page of a stream.
#[derive(Clone, Copy)]
pub(super) struct Newest {
    pub(super) page: Page,
    block: Block,
    pub(super) tag: Tag,
    /// True if something that is no whole page stands behind it.
    pub(super) is_torn: bool,
}

/// The newest pages of both streams.
#[derive(Clone, Copy, Default)]
pub(super) struct Ends {
    pub(super) tree: Option<Newest>,
    pub(super) own: Option<Newest>,
}

impl Ends {
    /// The block of the log's own that was begun last.
    pub(super) fn own_block(&self) -> Option<Block> {
        self.own.map(|newest| newest.block)
    }

    /// The sequence behind all.
    pub(super) fn next_sequence(&self) -> u64 {
        let next = |end: Option<Newest>| end.map_or(0, |newest| newest.tag.sequence + 1);
        next(self.tree).max(next(self.own))
    }
}

/// Finds out which blocks hold pages, and the newest pages.
pub(super) fn survey(chip: &mut Pages<'_>) -> Result<Ends> {
    let (mut tree, mut apart, mut own) = (None, None, None);
    let (mut known, mut erases) = (0u64, 0u64);
    for block in (0..chip.blocks.count()).map(Block) {
        if chip.nand.is_bad(block)? {
            chip.blocks.set_bad(block);
            continue;
        }
        let Some(tag) = chip.first_tag(block)? else {
            chip.blocks.set_free(block);
            continue;
        };
        chip.blocks.set_erases(block, tag.erases);
        known += 1;
        erases += u64::from(tag.erases);
        let newest = match tag.kind {
            PageKind::Tree(APART_KIND) => {
                chip.blocks.set_apart(block);
                &mut apart
            }
            PageKind::Tree(_) => &mut tree,
            _ => {
                chip.blocks.set_own(block);
                &mut own
            }
        };
        *newest = (*newest).max(Some((tag.sequence, block)));
    }
    // How often a blank block was erased is nowhere told; the mean does it no wrong.
    let mean = u32::try_from(erases.checked_div(known).unwrap_or(0)).unwrap_or(tag::ERASES_MOST);
    for block in (0..chip.blocks.count()).map(Block) {
        if chip.blocks.is_free(block) {
            chip.blocks.set_erases(block, mean);
        }
    }
    let mut end =
        |newest: Option<(u64, Block)>| newest.map_or(Ok(None), |(_, block)| newest_of(chip, block));
    let tree = [end(tree)?, end(apart)?].into_iter().flatten();
    Ok(Ends { tree: tree.max_by_key(|newest| newest.tag.sequence), own: end(own)? })
}

/// True if the tag of the first page of `block` is whole. No torn page has others behind it: so
/// where it is not, and others are, it is damaged, and may be older than the last checkpoint.
pub(super) fn has_first_tag(chip: &mut Pages<'_>, block: Block) -> Result<bool> {
    let first = chip.geometry.first_page(block);
    Ok(matches!(chip.find_tag(first, Cause::Recovery)?, Found::Tag(_)))
}

fn newest_of(chip: &mut Pages<'_>, block: Block) -> Result<Option<Newest>> {
    let mut newest = None;
    let mut is_torn = false;
    for page in chip.pages_of(block) {
        match chip.find_tag(page, Cause::Recovery)? {
            Found::Tag(tag) => {
                newest = Some((page, tag));
                is_torn = false;
            }
            Found::Damaged => is_torn = true,
            Found::Blank => break,
        }
    }
    Ok(newest.map(|(page, tag)| Newest { page, block, tag, is_torn }))
}

/// Keeps the blocks that were in use with the last checkpoint, though no tag in them can be
/// read: these are damaged, not torn, and what points to them must not find something else.
pub(super) fn keep_damaged(chip: &mut Pages<'_>, record: &Record) -> Result<()> {
    let count = chip.blocks.count();
    let mut next = 0;
    for stale in record.stale.ranges(count).chain(core::iter::once(count..count)) {
        for block in (next..stale.start).map(Block) {
            let first = chip.geometry.first_page(block);
            if chip.blocks.is_free(block)
                && chip.find_tag(first, Cause::Recovery)? == Found::Damaged
            {
                chip.blocks.set_used(block);
            }
        }
        next = next.max(stale.end);
    }
    Ok(())
}

/// Frees the blocks that nothing needed any more with the last checkpoint, unless they were
/// used since.
pub(super) fn free_stale(chip: &mut Pages<'_>, record: &Record) -> Result<()> {
    for block in record.stale.ranges(chip.blocks.count()).flatten().map(Block) {
        if chip.blocks.is_bad(block) {
            continue;
        }
        if chip.first_tag(block)?.is_some_and(|tag| tag.sequence < record.sequence) {
            chip.blocks.set_free(block);
        }
    }
    Ok(())
}

/// The pages of the journal in `block` behind sequence `since`, in their order.
pub(super) fn journal_pages(
    chip: &mut Pages<'_>,
    block: Block,
    since: u64,
    to: &mut Vec<Page>,
) -> Result<()> {
    for page in chip.pages_of(block) {
        match chip.find_tag(page, Cause::Recovery)? {
            Found::Tag(tag) if tag.kind == PageKind::Journal => {
                if tag.sequence > since || chip.mistake.is(Canary::StaleJournalReplayed) {
                    to.push(page);
                }
            }
            Found::Tag(_) | Found::Damaged => {}
            Found::Blank => break,
        }
    }
    Ok(())
}
