use alloc::boxed::Box;
use alloc::vec;
use alloc::vec::Vec;

use contract::RamDisk;
use device::{Cause, Page, SectorGeometry};
use store::{LogicalPage, PageFile, PageFileOptions, PageKind};

use super::{Disk, PAGE_HEADER};
use crate::la_tree::layout::FRAGMENTS;

const CAUSE: Cause = Cause::Update;
const PAGE: usize = 512;
const TABLE: PageKind = PageKind::Tree(3);

fn ram() -> RamDisk {
    RamDisk::new(SectorGeometry::new(PAGE as u32, 500).unwrap())
}

fn disk(ram: &mut RamDisk) -> Disk<'_> {
    let options = PageFileOptions::new(PAGE as u32, 32 << 10);
    Disk::new(PageFile::create(Box::new(ram), &options).unwrap())
}

/// A page of this kind that is `number` all over.
fn page(disk: &mut Disk<'_>, number: u8, kind: PageKind) -> Page {
    let mut pages = Vec::new();
    disk.reserve(1, &mut pages, CAUSE).unwrap();
    disk.program(pages[0], &[number; PAGE], kind).unwrap();
    pages[0]
}

fn pages_used(disk: &Disk<'_>) -> u32 {
    disk.file.pages_used().0
}

#[test]
fn a_page_of_fragments_is_given_back_with_the_last_of_them() {
    let mut ram = ram();
    let mut disk = disk(&mut ram);
    let page = page(&mut disk, 7, FRAGMENTS);
    let used = pages_used(&disk);
    disk.hold(page);
    disk.hold(page);
    assert_eq!((disk.pages_live, disk.pages_of_fragments()), (1, 1));
    disk.let_go(page, CAUSE).unwrap();
    assert_eq!((disk.pages_live, pages_used(&disk)), (1, used));
    disk.let_go(page, CAUSE).unwrap();
    assert_eq!((disk.pages_live, pages_used(&disk)), (0, used - 1));
    disk.let_go(page, CAUSE).unwrap();
    assert_eq!(pages_used(&disk), used - 1, "it is given back once");
}

#[test]
fn a_page_of_the_state_stays_until_the_next_and_while_fragments_live_in_it() {
    let mut ram = ram();
    let mut disk = disk(&mut ram);
    let [one, other] = [1, 2].map(|number| page(&mut disk, number, TABLE));
    let used = pages_used(&disk);
    // The pool's pages of a checkpoint may become the newest fragments of buffers.
    disk.hold(one);
    disk.hold(other);
    disk.let_go(one, CAUSE).unwrap();
    assert_eq!((pages_used(&disk), &disk.state[..]), (used, &[one, other][..]));
    disk.begin_state().unwrap();
    assert_eq!((pages_used(&disk), disk.state.len(), disk.pages_live), (used - 1, 0, 1));
    disk.let_go(other, CAUSE).unwrap();
    assert_eq!((pages_used(&disk), disk.pages_live), (used - 2, 0));
}

#[test]
fn dropping_fragments_leaves_the_state() {
    let mut ram = ram();
    let mut disk = disk(&mut ram);
    let (fragments, state) = (page(&mut disk, 1, FRAGMENTS), page(&mut disk, 2, TABLE));
    let used = pages_used(&disk);
    disk.hold(fragments);
    disk.hold(state);
    disk.drop_fragments(CAUSE).unwrap();
    assert_eq!((pages_used(&disk), disk.pages_live, disk.pages_of_fragments()), (used - 1, 1, 0));
    assert_eq!(disk.state, [state]);
}

#[test]
fn only_pages_of_the_tree_are_read_and_not_beyond_their_end() {
    let mut ram = ram();
    let mut disk = disk(&mut ram);
    let page = page(&mut disk, 7, FRAGMENTS);
    let mut bytes = vec![0; PAGE - PAGE_HEADER];
    disk.read(page, 0, &mut bytes, CAUSE).unwrap();
    assert!(bytes.iter().all(|byte| *byte == 7));
    assert!(disk.read(page, 1, &mut bytes, CAUSE).is_err());
    let node = disk.file.allocate(CAUSE).unwrap();
    disk.file.fresh(node).unwrap();
    disk.file.write_now(node).unwrap();
    assert!(disk.read(Page(node.0), 0, &mut bytes[..8], CAUSE).is_err());
    assert!(disk.read(Page(LogicalPage(9999).0), 0, &mut bytes[..8], CAUSE).is_err());
}

#[test]
fn a_root_record_is_taken_if_the_file_can_hold_what_it_says() {
    let mut ram = ram();
    let mut disk = disk(&mut ram);
    let pages = [Page(5), Page(9)];
    let most = u64::from(disk.file.pages_most());
    (disk.nodes, disk.longest_value) = (40, 1000);
    let mut tail = Vec::new();
    disk.encode_tail(&mut tail);
    (disk.nodes, disk.longest_value) = (0, 0);
    assert!(disk.take_state(&tail, (300, 30), pages.into_iter()));
    assert_eq!((disk.nodes, disk.longest_value, disk.pages_live), (40, 1000, 2));
    let mut list = Vec::new();
    disk.encode_state_from(1, &mut list);
    assert_eq!(list, [1, 0, 0, 0, 9, 0, 0, 0], "one page behind the first");

    assert!(!disk.take_state(&tail[1..], (300, 30), pages.into_iter()), "it is cut off");
    assert!(!disk.take_state(&tail, (300, most + 1), pages.into_iter()), "leaves");
    assert!(!disk.take_state(&tail, (most * PAGE as u64 + 1, 30), pages.into_iter()), "entries");
    tail[..8].copy_from_slice(&(most + 1).to_le_bytes());
    assert!(!disk.take_state(&tail, (300, 30), pages.into_iter()), "nodes");
}
