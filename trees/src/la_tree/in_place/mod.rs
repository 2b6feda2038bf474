//! In place on a disk (section 6.4): nodes are pages of a page file, rewritten where they stand.
//!
//! A child is named by its page. Only a node with a buffer is named by the buffer's number, for the
//! buffer's record is needed on every way through the node; a table beside the records says its
//! page. There is no table of other nodes, and no reclamation. What leaves the pool is packed into
//! pages of fragments as on raw flash; such a page is given back when no buffer has a fragment in
//! it any more.
//!
//! # What is different from raw flash
//! - A value too long for a leaf stands in pages of its own, as everywhere on disks. Such an entry
//!   does not wait in buffers: it goes to its leaf at once ([`operations`](super::operations)).
//! - Emptying rewrites many pages that the last checkpoint needs. Where the way back has no room
//!   for them, a buffer is emptied only in part, and the rest waits for the next checkpoint
//!   ([`room`]).
//! - From a large pool a buffer leaves as a whole and sorted, and a lookup knows which of its pages
//!   to read ([`spill`](super::spill)).

pub(super) mod disk;
pub(super) mod nodes;
pub(super) mod plan;
pub(super) mod room;

pub(super) use disk::{Disk, PAGE_HEADER};

use alloc::boxed::Box;
use alloc::vec::Vec;

use device::Sectors;
use store::PageFile;

use super::checkpoint_state;
use super::ground::Ground;
use super::plan::Plan;
use index::{MediumShape, Options, Result};

/// Pages of a root record that is longer than a superblock has room for, twice.
const ROOT_PAGES: u64 = 6;

/// Makes `disk` ready for an empty tree.
pub(super) fn create<'d>(
    disk: Box<dyn Sectors + 'd>,
    options: &Options,
) -> Result<(Ground<'d>, Plan)> {
    let geometry = disk.geometry();
    let choices = plan::choices(options, geometry)?;
    let durability = options.durability.unwrap_or_default();
    let (plan, bytes) = plan::plan(options, options.shape, (choices, durability), geometry)?;
    plan.check_memory()?;
    let needs = |like| super::plan::footprint(options, like);
    MediumShape::Sectors(geometry).check_units(geometry.sectors(), needs)?;
    let file = PageFile::create(disk, &options.page_file(choices.node_bytes, bytes))?;
    Ok((Ground::Disk(Box::new(Disk::new(file))), plan))
}

/// Opens `disk`, and reads the root record of its tree.
pub(super) fn open<'d>(
    mut disk: Box<dyn Sectors + 'd>,
    options: &Options,
) -> Result<(Ground<'d>, Plan, Vec<u8>)> {
    let geometry = disk.geometry();
    let found = PageFile::describe(&mut *disk)?;
    let (shape, choices) = checkpoint_state::describe(&found.root_head)?;
    if choices.node_bytes != found.page_bytes {
        return Err(checkpoint_state::damaged_root());
    }
    let (plan, bytes) = plan::plan(options, shape, (choices, found.durability), geometry)?;
    plan.check_memory()?;
    let (file, record) = PageFile::open(disk, &options.page_file(found.page_bytes, bytes))?;
    Ok((Ground::Disk(Box::new(Disk::new(file))), plan, record))
}
