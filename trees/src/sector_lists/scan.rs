//! The table made anew from the sectors themselves (FlashDB, section 5.1.3), for when no root
//! record can be read.
//!
//! Each sector has a sequence, and the page file knows which are in use. Of a node, the newest
//! whole in them and all that is newer is its list; what is older is stale. So a whole does what a
//! new log version does in the paper. Nodes that are no more are not reached from the root.
//!
//! Sectors of a future that was given up, by a rollback, a cut or a commit that failed, are not in
//! use, so their sequences, which are given again, do no harm.
//!
//! Only nodes that are reached from the root come into the table. Of one that is no more any part
//! may be left, in sectors that it shared with others.

use alloc::vec;
use alloc::vec::Vec;
use core::fmt::Display;

use device::Cause;
use index::Result;
use store::{LogicalPage, PageFile, Recovery};

use super::layout::{Sector, groups, sequence};
use super::store::{Shape, Store, bad_node};
use super::table::{NodeId, Table};
use crate::btree::{At, NodeSource};

/// What a sector has of a node.
#[derive(Clone, Copy, Debug)]
struct Found {
    node: NodeId,
    sector: LogicalPage,
    sequence: u64,
    is_whole: bool,
    is_page: bool,
}

/// A set of numbers.
#[derive(Debug)]
struct Set(Vec<u8>);

impl Set {
    fn new(numbers: u32) -> Self {
        Set(vec![0; Self::bytes(numbers) as usize])
    }

    const fn bytes(numbers: u32) -> u64 {
        numbers as u64 / 8 + 1
    }

    fn has(&self, number: u32) -> bool {
        self.0.get(number as usize / 8).is_some_and(|byte| byte >> (number % 8) & 1 > 0)
    }

    /// False if it is there, or out of bounds.
    fn add(&mut self, number: u32) -> bool {
        let Some(byte) = self.0.get_mut(number as usize / 8) else { return false };
        let (bit, before) = (1 << (number % 8), *byte);
        *byte |= bit;
        before & bit == 0
    }
}

/// What was found in all sectors in use.
#[derive(Debug)]
pub(crate) struct Scanned {
    /// By node, the oldest first.
    found: Vec<Found>,
    /// Pages in use that hold no nodes.
    beside: Vec<LogicalPage>,
    /// Numbers that nodes may have.
    numbers: u32,
    /// Bytes of memory that it takes.
    pub(crate) bytes: u64,
}

impl Scanned {
    /// Reads all sectors of `file` that are in use, with `memory` bytes beyond the least.
    ///
    /// # Errors
    /// The memory is too small, a sector is damaged, or the disk failed.
    pub(crate) fn of(
        file: &mut PageFile<'_>,
        shape: &Shape,
        (have, least, memory): (u64, u64, u64),
    ) -> Result<Option<Self>> {
        let (used, end) = file.pages_used();
        let numbers = file.pages_most().saturating_add(shape.sectors_most() as u32);
        let sets = Set::bytes(end) + Set::bytes(numbers);
        let check = |bytes: u64| match bytes <= memory {
            true => Ok(()),
            false => Err(store::Error::LittleMemory { have, need: least.saturating_add(bytes) }),
        };
        check(sets)?;
        let mut free = Set::new(end);
        file.each_free(Cause::Recovery, &mut |page| {
            free.add(page.0);
        })?;
        let (mut count, mut beside) = (0, 0);
        read_all(file, &free, &mut |_, page| match page {
            Some(page) => count += groups(page).count(),
            None => beside += 1,
        })?;
        // Records stand in the others, and a sector that is damaged is one too many.
        let is_whole = (0..end).filter(|page| !free.has(*page)).count() == used as usize;
        if !is_whole || beside != file.record_pages() as usize {
            return Ok(None);
        }
        let bytes = sets + (count * size_of::<Found>() + beside * size_of::<LogicalPage>()) as u64;
        check(bytes)?;
        let (mut found, mut pages) = (Vec::with_capacity(count), Vec::with_capacity(beside));
        read_all(file, &free, &mut |sector, page| match page {
            Some(page) => found.extend(groups(page).map(|group| Found {
                node: group.node,
                sector,
                sequence: sequence(page),
                is_whole: group.is_whole,
                is_page: group.is_page,
            })),
            None => pages.push(sector),
        })?;
        found.sort_unstable_by_key(|it| (it.node.0, it.sequence));
        Ok(Some(Scanned { found, beside: pages, numbers, bytes }))
    }

    /// Puts the list of `node`, which has none yet, into a table; false if it makes no sense.
    #[must_use]
    fn enter(&self, node: NodeId, table: &mut Table) -> bool {
        let start = self.found.partition_point(|it| it.node.0 < node.0);
        let behind = &self.found[start..];
        let of_node = &behind[..behind.partition_point(|it| it.node == node)];
        let Some(whole) = of_node.iter().rposition(|it| it.is_whole) else { return false };
        let list = &of_node[whole..];
        node.0 < self.numbers
            && table.enter(node, list[0].is_page, list.len())
            && list.iter().all(|it| table.push(node, it.sector))
    }
}

/// Reads all pages that are in use; `None` of one that holds no nodes.
fn read_all(
    file: &mut PageFile<'_>,
    free: &Set,
    tell: &mut dyn FnMut(LogicalPage, Option<&[u8]>),
) -> Result<()> {
    let (_, end) = file.pages_used();
    for sector in (0..end).filter(|page| !free.has(*page)).map(LogicalPage) {
        match file.page(sector, Cause::Recovery, &Sector) {
            Ok(page) => tell(sector, Some(page)),
            Err(error) if error.is_damage() => tell(sector, None),
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}

impl Store<'_> {
    /// Becomes what was found, of which `root` is the root. Where no checkpoint is kept, the pages
    /// beside are those of the root record that is to be replaced.
    pub(crate) fn rebuild(&mut self, scan: Scanned, root: At<NodeId>) -> Result<()> {
        self.forget_all();
        self.table.clear();
        self.sequence = scan.found.iter().map(|it| it.sequence).max().unwrap_or(0);
        if !self.reach(root, &scan)? {
            return Err(bad_node(root.id, "the sectors do not make a tree").into());
        }
        for node in self.table.numbers() {
            self.table.set_counter(node, 0);
        }
        self.due.clear();
        if self.file.checkpoints().is_empty() {
            self.root_pages = Some(scan.beside);
        }
        Ok(())
    }

    /// Enters all nodes from `root` on, and counts them; false if they are no tree.
    fn reach(&mut self, root: At<NodeId>, scan: &Scanned) -> Result<bool> {
        let mut reached = Set::new(scan.numbers);
        self.levels = Default::default();
        self.levels[usize::from(root.level)] = 1;
        if !reached.add(root.id.0) || !scan.enter(root.id, &mut self.table) {
            return Ok(false);
        }
        let mut path = vec![(root, 0)];
        while let Some((at, place)) = path.pop() {
            let node = self.node(at, Cause::Recovery)?;
            let Some(level) = at.level.checked_sub(1).filter(|_| place < node.count()) else {
                continue;
            };
            let child: At<NodeId> = At { id: node.child(place), level };
            if !reached.add(child.id.0) || !scan.enter(child.id, &mut self.table) {
                return Ok(false);
            }
            self.levels[usize::from(level)] += 1;
            path.push((at, place + 1));
            if level > 0 {
                path.push((child, 0));
            }
        }
        Ok(true)
    }

    /// Tells where a scan would find another list of a node than the table has.
    pub(crate) fn check_scan(&mut self, finding: &mut dyn FnMut(&dyn Display)) -> Result<()> {
        let (_, end) = self.file.pages_used();
        for sector in (0..end).map(LogicalPage) {
            if !self.table.is_listed(sector) {
                continue;
            }
            if let Err(error) = self.check_groups(sector, finding) {
                error.report_damage(finding)?;
            }
        }
        Ok(())
    }

    fn check_groups(
        &mut self,
        sector: LogicalPage,
        finding: &mut dyn FnMut(&dyn Display),
    ) -> Result<()> {
        for number in 0.. {
            let Store { file, table, marked, .. } = self;
            let page = file.page(sector, Cause::Lookup, &Sector)?;
            let Some(group) = groups(page).nth(number) else { break };
            let (node, own) = (group.node, sequence(page));
            let is_mode_right = group.is_page == table.is_page(node) || marked.contains(&node);
            let place = table.list(node).position(|listed| listed == sector);
            // A whole begins a list, and each behind it is newer; what is not in it is older.
            let (is_right, other) = match place {
                Some(0) => (group.is_whole && is_mode_right, None),
                Some(place) => (!group.is_whole, table.list(node).nth(place - 1)),
                None => (true, table.list(node).next()),
            };
            let is_newer = match other {
                Some(other) => own > sequence(file.page(other, Cause::Lookup, &Sector)?),
                None => place.is_some(),
            };
            if !is_right || is_newer != place.is_some() {
                finding(&format_args!("a scan finds another list of sectors of node {}", node.0));
            }
        }
        Ok(())
    }
}
