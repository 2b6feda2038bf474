//! Disks with an index, damaged: in one kind of their pieces, or anywhere.

use contract::torture::truth::Found;
use index::{Index, KeyRange, Update, Value};
use proptest::prelude::*;
use proptest::sample::Index as Choice;

use crate::OPERATIONS_MOST;
use crate::damage::{Hit, Target, hits};
use crate::disk::ImageDisk;
use crate::image::Image;
use crate::memory::memory_of;
use crate::outcome::{Outcome, is_world};
use crate::reach::Reach;
use crate::reading::{held_bytes, read_into};
use crate::structure::Kind;

/// What reading takes beside the memory budget: the tables, the handles, and what grows by
/// doubling.
const BESIDE: u64 = 32 << 10;

/// A case: an image, what is done to it, whether checksums are repaired, and what is done to the
/// index afterwards.
pub type Case = (Choice, Vec<Hit>, bool, Vec<Choice>);

/// Cases of this target.
pub fn cases(most: usize, sealed: f64) -> impl Strategy<Value = Case> {
    let after = prop::collection::vec(any::<Choice>(), 0..12);
    (any::<Choice>(), hits(most), prop::bool::weighted(sealed), after)
}

/// Damages an image in these kinds of pieces, and uses what is left.
///
/// # Panics
/// Wrong data, memory beyond the budget, a use of the disk without end.
pub fn play(images: &[Image], case: &Case, kinds: &[Kind], reach: &Reach) -> Outcome {
    let (choice, hits, sealed, after) = case;
    let image = choice.get(images);
    let mut bytes = image.bytes.clone();
    let mut target = Target { disk: &mut bytes, older: &image.older, plan: image.plan };
    let done = target.damage(hits, kinds, *sealed);
    let lost_superblock = done.kinds.contains(&Kind::Superblock);
    let hit = format!("{:?} {:?} of {:?}", done.kinds, hits, image.plan);
    for kind in done.kinds {
        reach.note(format!("{kind:?}"));
    }
    let vouched = done.is_vouched_for || done.is_beyond;
    let mut disk = ImageDisk::of(image.geometry, bytes);
    let found = read_measured(image, &mut disk, reach);
    assert!(!disk.is_endless(), "more than {OPERATIONS_MOST} operations of the disk");
    match found {
        Ok(found) if vouched => {
            use_on(image, &mut disk, after, reach);
            let _ = found;
            Outcome::Believed
        }
        Ok(found) => {
            let is_right = image.worlds.iter().any(|world| is_world(&found, world));
            let is_earlier =
                lost_superblock && image.earlier.iter().any(|world| is_world(&found, world));
            assert!(
                is_right || is_earlier,
                "wrong data in {image:?}: {} entries that never stood there together, names {:?}; \
                 the worlds have {:?}; hit: {hit}",
                found.entries.len(),
                found.names,
                image.worlds.iter().map(|world| world.entries.len()).collect::<Vec<_>>(),
            );
            use_on(image, &mut disk, after, reach);
            if is_right { Outcome::Right } else { Outcome::Earlier }
        }
        Err(error) => {
            reach.note_index(&error);
            assert!(vouched || is_expected(&error), "damage is told as {error:?}");
            // What can still be used must not panic either.
            use_on(image, &mut disk, after, reach);
            Outcome::Error
        }
    }
}

/// The errors by which damage shows that no checksum hides.
fn is_expected(error: &index::Error) -> bool {
    use device::Error::{Checksum, Uncorrectable};
    use store::Error as Store;
    match error {
        index::Error::Store(error) => matches!(
            error,
            Store::CorruptPage { .. }
                | Store::DamagedPage { .. }
                | Store::NotAnIndex { .. }
                | Store::OtherVersion { .. }
                | Store::DamagedJournal { .. }
                | Store::DamagedUndo { .. }
                | Store::NotClosed
                | Store::Device(Checksum { .. } | Uncorrectable { .. })
        ),
        _ => false,
    }
}

/// Opens the index and reads all of it, in no more memory than it may take.
fn read_measured(image: &Image, disk: &mut ImageDisk, reach: &Reach) -> index::Result<Found> {
    disk.start(None);
    let budget = image.cell.options(image.geometry).memory_bytes;
    let mut found = Found::default();
    let (peak, outcome) = memory_of(|| read(image, disk, reach, &mut found));
    let held = held_bytes(&found);
    let most = budget + BESIDE + 4 * held;
    assert!(
        peak <= most,
        "{peak} bytes of memory, with a budget of {budget} and {held} read, in {image:?}"
    );
    outcome.map(|()| found)
}

fn read(
    image: &Image,
    disk: &mut ImageDisk,
    reach: &Reach,
    found: &mut Found,
) -> index::Result<()> {
    let mut index = image.cell.open(Box::new(disk))?;
    index.check(&mut |finding| reach.note_finding(finding))?;
    read_into(&mut *index, image.bytes.len() / 4, found)?;
    for (key, value) in &found.entries {
        let mut piece = [0; 32];
        let length = index.get(key, 0, &mut piece)?;
        if length == Some(value.len() as u32)
            && piece[..value.len().min(32)] != value[..value.len().min(32)]
        {
            reach.note("another value by get");
        }
    }
    Ok(())
}

/// Changes what is on the disk, for better or worse.
fn use_on(image: &Image, disk: &mut ImageDisk, after: &[Choice], reach: &Reach) {
    disk.start(None);
    if let Err(error) = change(image, disk, after) {
        reach.note_index(&error);
    }
    assert!(!disk.is_endless(), "more than {OPERATIONS_MOST} operations of the disk");
    disk.start(None);
    if let Ok(mut index) = image.cell.open(Box::new(&mut *disk)) {
        let _ = walk(&mut *index);
    }
    assert!(!disk.is_endless(), "more than {OPERATIONS_MOST} operations of the disk");
}

fn change(image: &Image, disk: &mut ImageDisk, after: &[Choice]) -> index::Result<()> {
    let mut index = image.cell.open(Box::new(disk))?;
    let mut failed = Ok(());
    for (place, choice) in after.iter().enumerate() {
        let number = choice.index(usize::from(crate::cell::KEYS)) as u16;
        let key = image.cell.key(number);
        let value = image.cell.value(&key, number * 7, 9);
        let names: Vec<_> = index.checkpoints().iter().map(|kept| kept.name.clone()).collect();
        let name = names.get(usize::from(number) % names.len().max(1));
        let done = match choice.index(10 + place) {
            0..5 => index.update(&[Update::Put { key: &key, value: &value }]),
            5..8 => index.update(&[Update::Delete { key: &key }]),
            8 => index.checkpoint(Some("fuzz")).map(drop),
            9 => name.map_or(Ok(()), |name| index.roll_back(name)),
            10 => name.map_or(Ok(()), |name| index.forget(name)),
            11 => index.close(),
            12 => index.sync(),
            _ => walk(&mut *index),
        };
        // An index that failed is asked on: it must refuse, not panic.
        failed = failed.and(done);
    }
    failed.and(index.close())
}

/// Reads everything, and keeps nothing.
fn walk(index: &mut dyn Index) -> index::Result<()> {
    let mut piece = [0; 100];
    for range in [KeyRange::ALL, KeyRange::ALL.reversed()] {
        let mut cursor = index.range(range)?;
        while let Some((_, value)) = cursor.next()? {
            if let Value::Long(bytes) = value {
                for offset in [0, bytes / 2, bytes.saturating_sub(1)] {
                    cursor.read_value(offset, &mut piece)?;
                }
            }
        }
    }
    Ok(())
}
