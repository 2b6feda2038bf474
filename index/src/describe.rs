//! What an index says of itself before it is opened.

use alloc::boxed::Box;
use alloc::string::String;
use alloc::vec::Vec;

use device::{Nand, Sectors};
use store::{Durability, EntryShape, PageFile, PageLog, PageLogDescription};

use crate::{Result, root_record};

/// What is known of the index on a disk before it is opened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Description {
    /// Its tree, by name: that of a [`TreeDescriptor`](crate::TreeDescriptor), unless a later
    /// program made it.
    pub tree: String,
    /// The shape of its entries.
    pub shape: EntryShape,
    /// Bytes in a page of its file.
    pub page_bytes: u32,
    /// How much of it lasts through a power cut.
    pub durability: Durability,
    /// Bytes of its journal, where the memory that it needs depends on them.
    pub journal_bytes: Option<u64>,
    /// The label it was made with.
    pub label: Vec<u8>,
    /// The beginning of its root record, where the tree keeps the choices it was made with.
    pub root: Vec<u8>,
}

/// Bytes of a root record in which all choices of a tree stand.
const ROOT_HEAD: usize = 128;

fn root_head(mut record: Vec<u8>) -> Vec<u8> {
    record.truncate(ROOT_HEAD);
    record.shrink_to_fit();
    record
}

/// Reads what the index on `disk` says of itself; changes nothing.
///
/// # Errors
/// There is none, or the disk failed.
pub fn describe(disk: &mut dyn Sectors) -> Result<Description> {
    let found = PageFile::describe(disk)?;
    let (tree, shape) = root_record::describe(&found.root_head)?;
    Ok(Description {
        tree,
        shape,
        page_bytes: found.page_bytes,
        durability: found.durability,
        journal_bytes: None,
        label: found.label,
        root: root_head(found.root_head),
    })
}

/// Reads what the index on the raw flash of `chip` says of itself; changes nothing.
///
/// # Errors
/// There is none, or the chip failed.
pub fn describe_chip(chip: &mut dyn Nand) -> Result<Description> {
    let page_bytes = chip.geometry().page_bytes();
    let found = PageLog::describe(Box::new(chip))?;
    let (tree, shape) = root_record::describe(&found.root)?;
    let PageLogDescription { durability, journal_bytes, label, root } = found;
    let (journal_bytes, root) = (Some(journal_bytes), root_head(root));
    Ok(Description { tree, shape, page_bytes, durability, journal_bytes, label, root })
}
