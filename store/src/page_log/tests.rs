//! Each part of the page log alone: pages with tags, the log's own, the journal, the checkpoints.
#![allow(clippy::unwrap_used, reason = "tests")]

use alloc::boxed::Box;
use alloc::vec::Vec;

use device::{Block, Cause, Geometry, NandCosts, Page};
use sim::{Failure, FaultPlan, SimulatedNand};

use super::checkpoint::Checkpoints;
use super::journal::Journal;
use super::own_pages::{Form, OwnPages};
use super::pages::Pages;
use super::record::{Epoch, Record};
use super::stream::{Stream, StreamOf};
use super::survey;
use super::{PageKind, PageLogOptions};
use crate::canary::Mistake;
use crate::{Durability, Error, Replayed, Update};

const CAUSE: Cause = Cause::Update;

/// The pages of a chip of 8 blocks of 4 pages that refuses program `refused`, all of them free.
fn pages(spare: u32, refused: Option<u64>) -> Pages<'static> {
    let geometry = Geometry::new(512, 4, 8).unwrap().with_spare(spare).unwrap();
    let refused_program = refused.map_or(Failure::default(), Failure::at);
    let plan = FaultPlan { refused_program, ..FaultPlan::seeded(1) };
    let chip = SimulatedNand::new(geometry, NandCosts::default()).with_faults(plan);
    let mut pages = Pages::new(Box::new(chip), Mistake::default());
    survey::survey(&mut pages).unwrap();
    pages
}

fn own(spare: u32, refused: Option<u64>) -> OwnPages<'static> {
    OwnPages::new(pages(spare, refused))
}

#[test]
fn a_stream_takes_no_block_that_is_kept_back_and_goes_on_behind_a_refused_page() {
    for spare in [0, 64] {
        let mut chip = pages(spare, Some(6));
        let mut stream = Stream::new(StreamOf::Tree);
        let (mut next, mut bytes) = (Vec::new(), [0xA5; 512]);
        let mut written = Vec::new();
        let end = loop {
            match chip.reserve(&mut stream, (1, 2), &mut next, CAUSE) {
                Ok(()) => {}
                Err(error) => break error,
            }
            match chip.program(&mut stream, next[0], &mut bytes, (PageKind::Tree(1), CAUSE)) {
                Err(error) => assert!(error.is_refusal() && written.len() < 8, "{error}"),
                Ok(()) => written.push(next[0]),
            }
        };
        assert!(matches!(end, Error::Full { .. }) && chip.blocks.free() == 2, "{end}");
        // One page of the six blocks was refused, and those behind it in its block are left out.
        assert!((20..24).contains(&written.len()), "{written:?}");
        let tag = |page: &Page| chip.tag(*page, CAUSE).unwrap().unwrap().sequence;
        let sequences: Vec<u64> = written.iter().map(tag).collect();
        // The refused page's own never comes again.
        assert!(sequences.is_sorted() && sequences[sequences.len() - 1] == written.len() as u64);
    }
}

#[test]
fn a_page_of_the_logs_own_is_read_as_it_was_written_wherever_the_chip_took_it() {
    for (spare, refused) in [(0, None), (64, None), (0, Some(0)), (64, Some(1))] {
        let mut own = own(spare, refused);
        for form in [Form::Once, Form::Twice] {
            let content = own.content_bytes(form) - 4;
            own.content_mut()[..content].fill(0x5A);
            let page = own.append(PageKind::Piece, form, CAUSE).unwrap();
            own.append_blank(CAUSE).unwrap();
            assert!(own.content()[..content].iter().all(|byte| *byte == 0x5A), "it stays");
            own.content_mut().fill(0);
            assert_eq!(own.read(page, CAUSE).unwrap(), Some(form));
            assert!(own.content()[..content].iter().all(|byte| *byte == 0x5A));
        }
        // A page that is not sealed says nothing.
        let (mut tree, mut next) = (Stream::new(StreamOf::Tree), Vec::new());
        own.pages.reserve(&mut tree, (1, 0), &mut next, CAUSE).unwrap();
        let of_tree = (PageKind::Tree(0), CAUSE);
        own.pages.program(&mut tree, next[0], &mut [0xA5; 512], of_tree).unwrap();
        assert_eq!(own.read(next[0], CAUSE).unwrap(), None);
    }
}

#[test]
fn a_journal_gives_back_whole_batches_and_says_when_it_is_full() {
    let mut own = own(64, None);
    // Of the checkpoint that it follows.
    own.pages.sequence = 1;
    let mut journal = Journal::new(6);
    journal.begin(Epoch { id: 7, since: 0 });
    let put = |byte: u8| [byte; 150];
    for byte in 0..8 {
        let value = put(byte);
        let batch = [Update::Put { key: &[byte], value: &value }, Update::Delete { key: b"gone" }];
        assert!(!journal.is_full_for(&own, 200).unwrap(), "{byte}");
        journal.append_record(&mut own, &batch).unwrap();
        if byte == 6 {
            journal.sync(&mut own).unwrap();
        }
    }
    assert!(journal.is_full_for(&own, 2000).unwrap());
    assert!(matches!(journal.is_full_for(&own, 4000), Err(Error::LongBatch { .. })));
    let mut found = Vec::new();
    for block in (0..own.pages.blocks.count()).map(Block) {
        survey::journal_pages(&mut own.pages, block, 0, &mut found).unwrap();
    }
    let mut replayed = Journal::new(6);
    replayed.begin(Epoch { id: 7, since: 0 });
    replayed.find(&mut own, &found).unwrap();
    let mut buffer = [0; 512];
    for byte in 0..7 {
        let next = replayed.next_replayed(&mut own, &mut buffer).unwrap();
        let value = put(byte);
        assert_eq!(next, Some(Replayed::Update(Update::Put { key: &[byte], value: &value })));
        let next = replayed.next_replayed(&mut own, &mut buffer).unwrap();
        assert_eq!(next, Some(Replayed::Update(Update::Delete { key: b"gone" })));
    }
    // The last batch was not flushed.
    assert_eq!(replayed.next_replayed(&mut own, &mut buffer).unwrap(), None);
    assert_eq!(replayed.replayed, 14);
}

#[test]
fn checkpoints_are_kept_by_name_forgotten_and_gone_back_to() {
    let mut own = own(64, None);
    let mut checkpoints = Checkpoints::default();
    let options = PageLogOptions { durability: Durability::Batch, ..PageLogOptions::default() };
    // Longer than a page.
    let roots: Vec<Vec<u8>> = (1..4).map(|byte| alloc::vec![byte; 700]).collect();
    for (root, name) in roots.iter().zip(["first", "second", "third"]) {
        let page = checkpoints.write(&mut own, (&options, 6), (root, true), None).unwrap();
        checkpoints.keep(&mut own, name, page).unwrap();
        let record = Record::read(&mut own, page, CAUSE).unwrap();
        assert_eq!((record.id, &record.root), (checkpoints.id(), root));
    }
    assert!(own.pages.blocks.pinned() > 0);
    for (root, name) in roots.iter().zip(["first", "second", "third"]) {
        assert_eq!(&checkpoints.read(&mut own, name).unwrap().root, root);
    }
    checkpoints.forget("first").unwrap();
    assert!(matches!(checkpoints.read(&mut own, "first"), Err(Error::NoCheckpoint)));
    let record = checkpoints.read(&mut own, "second").unwrap();
    checkpoints.go_back("second", &record);
    let left: Vec<&str> = checkpoints.names().iter().map(|kept| &*kept.name).collect();
    // The third came later, and the first is not on the chip any more.
    assert_eq!(left, ["second"]);
}
