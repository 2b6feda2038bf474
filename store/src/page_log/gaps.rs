//! That the chip lost none of the log's own pages: of those that have others behind them.
//!
//! Blocks of the log's own are filled page after page, from the first one on, and after an opening
//! a new one is begun. So a blank page with another behind it was programmed, and is not there.
//! Without this an opening would take it for the end of the block, and what stands behind it was
//! acknowledged. A blank page that is the last of all can't be told from one that was never
//! programmed; one that is the last of its block is missed in the journal, or by a record.

use device::{Block, Cause, Page};

use super::pages::Pages;
use super::tag::{Found, PageKind};
use crate::{Error, Result};

/// Refuses a log of which a page of the journal, or the end of a checkpoint's record, that came
/// behind sequence `since` has a blank page before it. `newest` is the block of the log's own
/// that was begun last.
///
/// Older pages don't count: they are what an erase that a power cut broke off left. Those that
/// count are not erased before the next checkpoint.
pub(super) fn refuse(chip: &mut Pages<'_>, since: u64, newest: Option<Block>) -> Result<()> {
    for block in (0..chip.blocks.count()).map(Block) {
        let mut pages = chip.pages_of(block);
        if chip.blocks.is_bad(block) {
            continue;
        }
        let is_lost = if chip.blocks.is_free(block) {
            // Its first page is blank, or damaged.
            let (first, second) = (pages.next(), pages.next());
            first.is_some() && has_newer(chip, second, since)?
        } else if Some(block) == newest {
            has_newer_behind_blank(chip, pages, since)?
        } else {
            false
        };
        if is_lost {
            let what = "a page of its journal or of its last checkpoint is missing";
            return Err(Error::NotAnIndex { is_ours: true, what });
        }
    }
    Ok(())
}

fn has_newer_behind_blank(
    chip: &mut Pages<'_>,
    pages: impl Iterator<Item = Page>,
    since: u64,
) -> Result<bool> {
    let mut is_behind = false;
    for page in pages {
        if is_behind && has_newer(chip, Some(page), since)? {
            return Ok(true);
        }
        is_behind |= chip.find_tag(page, Cause::Recovery)? == Found::Blank;
    }
    Ok(false)
}

/// True if `page` has a tag of what is acknowledged behind sequence `since`.
fn has_newer(chip: &mut Pages<'_>, page: Option<Page>, since: u64) -> Result<bool> {
    let Some(page) = page else {
        return Ok(false);
    };
    Ok(chip.tag(page, Cause::Recovery)?.is_some_and(|tag| {
        matches!(tag.kind, PageKind::Journal | PageKind::Checkpoint) && tag.sequence > since
    }))
}
