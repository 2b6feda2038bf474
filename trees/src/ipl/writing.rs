//! What is written: nodes that no page holds yet, and the deltas of all others.

use device::{Block, Cause, Page};
use store::PageKind;

use super::cache::Unsaved;
use super::layout::{Address, seal};
use super::log_store::{LogStore, checksum, no_node};
use super::table::NodeId;
use index::{Error, Result};

impl LogStore<'_> {
    /// Writes what of the node in a frame is in memory only.
    pub(super) fn write_back(&mut self, frame: u32, cause: Cause) -> Result<()> {
        let Some(id) = self.cache.id(frame) else {
            return Ok(());
        };
        let Some(place) = self.table.place(id) else {
            return self.write_born(frame, id, cause);
        };
        let unsaved = self.cache.unsaved(frame);
        let state = self.table.state(place.block);
        match unsaved {
            Unsaved::Nothing => Ok(()),
            // A page of it is at hand, and a log page would end its time as a home of the newborn.
            _ if state.is_closed_by_logs(&self.shape) => self.write_born(frame, id, cause),
            Unsaved::Deltas => self.write_deltas(frame, id, cause),
            Unsaved::Anew | Unsaved::All => self.renew(frame, id, cause),
        }
    }

    pub(super) fn write_back_all(&mut self, cause: Cause) -> Result<()> {
        (0..self.cache.len()).try_for_each(|frame| self.write_back(frame, cause))
    }

    /// Writes a node as a page.
    fn write_born(&mut self, frame: u32, id: NodeId, cause: Cause) -> Result<()> {
        loop {
            let found = self.table.block_with_room(&self.shape);
            let block = match found {
                Some(block) => block,
                None => self.begin_block(cause)?,
            };
            let Some(page) = self.table.state(block).take_node(&self.shape) else {
                continue;
            };
            device::copy(&mut self.image, self.cache.node(frame));
            match self.program_image(block, page, cause) {
                Err(Error::Store(error)) if error.is_refusal() => {
                    self.table.state(block).seal(&self.shape);
                    self.drop_if_empty(block);
                }
                programmed => {
                    programmed?;
                    self.cache.renewed(frame, Unsaved::Nothing);
                    if let Some(left) = self.table.put(id, block, page) {
                        self.drop_if_empty(left);
                    }
                    return Ok(());
                }
            }
        }
    }

    fn begin_block(&mut self, cause: Cause) -> Result<Block> {
        let block = self.log.allocate_block(cause)?;
        self.table.begin_block(block);
        Ok(block)
    }

    pub(super) fn page_of(&self, block: Block, place: u16) -> Page {
        Page(self.log.geometry().first_page(block).0 + u32::from(place))
    }

    /// Programs `self.image` as node page `place` of `block`.
    pub(super) fn program_image(&mut self, block: Block, place: u16, cause: Cause) -> Result<()> {
        let page = self.page_of(block, place);
        let start = self.log.content_start();
        let content = &mut self.page[start..];
        device::copy(content, &self.image);
        let checksum = checksum(page, content);
        content[..4].copy_from_slice(&checksum.to_le_bytes());
        Ok(self.log.program_at(page, &mut self.page, PageKind::Tree(0), cause)?)
    }

    /// Writes a node anew: its block is merged, or if that would take a block that is needed, the
    /// node alone gets another page.
    fn renew(&mut self, frame: u32, id: NodeId, cause: Cause) -> Result<()> {
        match self.table.place(id) {
            Some(place) if self.may_merge(place.block) => self.merge(place.block, cause),
            _ => self.write_born(frame, id, cause),
        }
    }

    /// Writes the newest record of a node to a log page of its block; where there is no room, the
    /// node is written anew.
    fn write_deltas(&mut self, frame: u32, id: NodeId, cause: Cause) -> Result<()> {
        let Some(place) = self.table.place(id) else {
            return Err(no_node(id).into());
        };
        let bytes = self.cache.record(frame).len();
        let Some(at) = self.table.state(place.block).take_log(&self.shape, bytes) else {
            return self.renew(frame, id, cause);
        };
        let page = self.page_of(place.block, self.shape.log_place(at.page));
        let has_earlier = at.offset > 0 && !self.parts.is_empty();
        if has_earlier {
            self.keep_parts(page, at.offset, cause)?;
        }
        let record = self.cache.record_mut(frame);
        seal(Address { page, offset: at.offset, node: place.page }, record);
        let programmed = if self.shape.is_whole() {
            let end = self.log.content_start() + bytes;
            device::copy(&mut self.page[end - bytes..end], record);
            self.log.program_at(page, &mut self.page[..end], PageKind::Tree(1), cause)
        } else {
            self.log.program_part(page, at.offset.into(), record, cause)
        };
        match programmed {
            Err(error) if error.is_refusal() => {
                self.table.state(place.block).seal(&self.shape);
                self.lost = has_earlier.then_some(page);
                let merged = self.merge(place.block, cause);
                self.lost = None;
                merged
            }
            programmed => {
                programmed?;
                self.table.set_record(id, at);
                self.cache.saved(frame);
                Ok(())
            }
        }
    }
}
