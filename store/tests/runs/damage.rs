//! Damage of a run is told, wherever it is, and by a typed error; so is that of a manifest.

use crate::media::{self, CAUSE, MEDIA, Medium, Owned};
use device::{Geometry, NandCosts};
use flashtree_store::runs::{
    Delta, Entry, Extent, FileSpace, Kinds, LogSpace, Manifest, NoHooks, Run, RunCursor, RunWriter,
    Source, Space, UnitReader, UnitShape, Way,
};
use flashtree_store::{
    Durability, EntryShape, Error, PageFileOptions, PageLog, PageLogOptions, Replayed,
};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use sim::SimulatedNand;

/// Reads all of a run, and its footer.
fn read_all(space: &mut dyn Space, run: &Run) -> Result<Vec<Owned>, Error> {
    UnitReader::new(space.page_bytes(), 2, (1, 1), 2000).open(space, run, CAUSE)?;
    let options = media::cursor_options(&mut ChaCha8Rng::seed_from_u64(1));
    let mut cursor = RunCursor::new(run, options, 1);
    let mut entries = Vec::new();
    while cursor.load(space, Way::Up)? {
        let entry = cursor.head(Way::Up).unwrap();
        entries.push((entry.key.to_vec(), entry.kind, entry.value.to_vec()));
        cursor.step(Way::Up);
    }
    Ok(entries)
}

/// A disk whose bytes are at hand.
fn with_disk(
    test: impl Fn(&mut FileSpace<'_>, &mut dyn FnMut(&mut FileSpace<'_>, u32, usize, u8)),
) {
    let options = PageFileOptions {
        durability: Durability::Batch,
        journal_bytes: Some(8192),
        front: Some(7),
        ..PageFileOptions::new(512, 1 << 16)
    };
    let mut space = FileSpace::create(Box::new(Medium::disk()), 512, &options).unwrap();
    // A page that is written again, changed, as a disk that flips bits would have it.
    let mut flip = |space: &mut FileSpace<'_>, page: u32, byte: usize, bits: u8| {
        let mut bytes = vec![0; 512];
        let request = flashtree_store::runs::PageRequest { page, offset: 0, into: &mut bytes };
        space.read(&mut [request], CAUSE).unwrap();
        bytes[byte] ^= bits;
        let at = [Extent { first: page, pages: 1 }];
        space.free(&at).unwrap();
        let free = space.pages_free();
        // The lowest free page is the one that was just given back.
        let mut reserved = space.reserve(1, CAUSE).unwrap();
        let mut written = Vec::new();
        space.write(&mut reserved, &mut bytes, &mut written, CAUSE).unwrap();
        assert_eq!((&written[..], space.pages_free()), (&at[..], free - 1));
    };
    test(&mut space, &mut flip);
}

#[test]
fn every_flipped_bit_of_a_run_is_told() {
    for (bytes, shape) in [(24, EntryShape::fixed(4, 4)), (128, EntryShape::VARIABLE)] {
        with_disk(|space, flip| {
            let mut random = ChaCha8Rng::seed_from_u64(bytes.into());
            let shape = UnitShape::new(bytes, shape, Kinds::Deletes).unwrap();
            let mut entries = media::entries(&mut random, shape.entries(), shape.kinds());
            entries.truncate(60);
            let options = media::writer_options(7, shape, 60);
            let (run, _) = media::write(space, &entries, options);
            assert!(read_all(space, &run).unwrap() == entries);
            let first = run.extents[0].first;
            let a_page = 512 / bytes as usize;
            // Units are all of each page but its end; the last page has units of zeros.
            let mut told = 0;
            for page in 0..u32::try_from(run.pages()).unwrap() {
                for byte in 0..a_page * bytes as usize {
                    let bits = 1 << random.random_range(0..8);
                    flip(space, first + page, byte, bits);
                    match read_all(space, &run) {
                        Ok(read) => assert!(read == entries, "page {page}, byte {byte}"),
                        Err(Error::CorruptUnit { .. }) => told += 1,
                        Err(other) => panic!("page {page}, byte {byte}: {other}"),
                    }
                    flip(space, first + page, byte, bits);
                }
            }
            let whole = (run.pages() as usize - 1) * a_page * bytes as usize;
            assert!(told > whole, "{told} of {whole}");
        });
    }
}

#[test]
fn a_unit_in_a_wrong_place_or_of_another_run_is_told() {
    for medium in MEDIA {
        let mut space = medium.space();
        let space = &mut *space;
        let shape = UnitShape::new(64, EntryShape::fixed(4, 4), Kinds::Puts).unwrap();
        let mut random = ChaCha8Rng::seed_from_u64(3);
        let mut entries = media::entries(&mut random, shape.entries(), shape.kinds());
        while entries.len() < 200 {
            entries = media::entries(&mut random, shape.entries(), shape.kinds());
        }
        let (one, _) = media::write(space, &entries, media::writer_options(1, shape, 90));
        let (other, _) = media::write(space, &entries, media::writer_options(2, shape, 90));
        assert!(read_all(space, &one).is_ok());
        let mut swapped = one.clone();
        swapped.extents = other.extents.clone();
        let told = read_all(space, &swapped);
        assert!(matches!(told, Err(Error::CorruptUnit { run: 1, .. })), "{medium:?}");
        // Its own pages, in another order.
        if one.pages() == 1 {
            continue;
        }
        let last = one.extents.last().unwrap().end() - 1;
        let mut extents = vec![Extent { first: last, pages: 1 }];
        extents.extend(one.extents.iter().copied());
        swapped.extents = extents;
        let told = read_all(space, &swapped);
        assert!(matches!(told, Err(Error::CorruptUnit { run: 1, .. })), "{medium:?}");
    }
}

fn shape() -> UnitShape {
    UnitShape::new(64, EntryShape::fixed(4, 4), Kinds::Deletes).unwrap()
}

/// A manifest with some runs.
fn manifest(space: &mut dyn Space, random: &mut ChaCha8Rng) -> Manifest {
    let mut manifest = Manifest::new();
    for number in 0..5 {
        let entries = media::entries(random, shape().entries(), Kinds::Deletes);
        let pages = media::pages_for(space, &shape(), &entries);
        let mut options = media::writer_options(1, shape(), pages);
        options.id = manifest.number_run();
        let (run, _) = media::write(space, &entries, options);
        let dead = manifest.runs().map(|run| run.id).take(usize::from(number == 3)).collect();
        let delta =
            Delta { born: vec![run], dead, covered: number, note: b"note", ..Delta::default() };
        assert!(manifest.record(space, delta).unwrap());
    }
    manifest
}

#[test]
fn a_manifest_comes_back_from_its_snapshot_and_damage_of_it_is_told() {
    for medium in MEDIA {
        let mut space = medium.space();
        let mut random = ChaCha8Rng::seed_from_u64(4);
        let mut before = manifest(&mut *space, &mut random);
        before.checkpointed(&mut *space).unwrap();
        let mut snapshot = Vec::new();
        before.encode(&mut snapshot);
        let mut fresh = medium.space();
        let (after, rest) = Manifest::restore(&mut *fresh, &snapshot).unwrap();
        assert!(after == before && rest.is_empty() && after.runs().count() == 4);
        // Two runs in the same pages.
        let mut twin = before.runs().next().unwrap().clone();
        twin.id = before.number_run();
        let delta = Delta { born: vec![twin], ..Delta::default() };
        assert!(before.record(&mut *space, delta).unwrap());
        let mut twins = Vec::new();
        before.encode(&mut twins);
        assert!(Manifest::restore(&mut *medium.space(), &twins).is_err(), "{medium:?}");
        for cut in 0..snapshot.len() {
            let told = Manifest::restore(&mut *medium.space(), &snapshot[..cut]);
            assert!(matches!(told, Err(Error::NotAnIndex { .. })), "{medium:?}, cut {cut}");
        }
        for _ in 0..300 {
            // Its record has a checksum: this is only not to panic.
            let mut damaged = snapshot.clone();
            let at = random.random_range(0..damaged.len());
            damaged[at] ^= 1 << random.random_range(0..8);
            let _ = Manifest::restore(&mut *medium.space(), &damaged);
        }
    }
}

#[test]
fn deltas_are_replayed_in_their_order_and_once() {
    let options = PageFileOptions {
        durability: Durability::Batch,
        journal_bytes: Some(16 << 10),
        front: Some(8),
        ..PageFileOptions::new(512, 1 << 16)
    };
    let mut disk = Medium::disk();
    let expected = {
        let mut space = FileSpace::create(Box::new(&mut disk), 512, &options).unwrap();
        let mut none = Vec::new();
        Manifest::new().encode(&mut none);
        space.recovery_mut().checkpoint(&none, None).unwrap();
        let mut manifest = manifest(&mut space, &mut ChaCha8Rng::seed_from_u64(6));
        let free = space.pages_free();
        assert!(manifest.pages().1 > 0);
        let freed = manifest.sync(&mut space).unwrap();
        assert!(freed > 0 && space.pages_free() == free + freed);
        manifest
    };
    let (mut space, root) = FileSpace::open(Box::new(&mut disk), 512, &options).unwrap();
    let (mut manifest, _) = Manifest::restore(&mut space, &root).unwrap();
    let (mut buffer, mut deltas) = (vec![0; 4096], Vec::new());
    while let Some(replayed) = space.recovery_mut().next_replayed(&mut buffer).unwrap() {
        let Replayed::Delta(delta) = replayed else { panic!("no update was recorded") };
        deltas.push(delta.to_vec());
    }
    assert_eq!(deltas.len(), 5);
    let missing = manifest.clone().replay(&mut space, &deltas[1]);
    assert!(missing.is_err());
    for delta in &deltas {
        assert_eq!(manifest.replay(&mut space, delta).unwrap(), Some(&b"note"[..]));
        assert_eq!(manifest.replay(&mut space, delta).unwrap(), None);
    }
    assert!(manifest == expected);
    for run in manifest.runs() {
        read_all(&mut space, run).unwrap();
    }
}

#[test]
fn a_named_checkpoint_keeps_the_room_of_their_time() {
    for medium in MEDIA {
        let mut space = medium.space();
        let mut manifest = manifest(&mut *space, &mut ChaCha8Rng::seed_from_u64(8));
        manifest.checkpointed(&mut *space).unwrap();
        let id = space.recovery_mut().checkpoint(b"root", Some("kept")).unwrap();
        manifest.pin_checkpoints(space.recovery().checkpoints());
        assert_eq!(space.recovery().checkpoints()[0].id, id);
        let live = manifest.pages().0;
        let dead: Vec<_> = manifest.runs().map(|run| run.id).collect();
        let delta = Delta { dead, ..Delta::default() };
        assert!(manifest.record(&mut *space, delta).unwrap());
        assert_eq!(manifest.checkpointed(&mut *space).unwrap(), 0);
        assert_eq!(manifest.pages(), (0, live));
        // They are in the snapshot, too.
        let mut snapshot = Vec::new();
        manifest.encode(&mut snapshot);
        let again = Manifest::restore(&mut *medium.space(), &snapshot).unwrap().0;
        assert!(again.pages() == manifest.pages());
        manifest.pin_checkpoints(&[]);
        assert_eq!(manifest.checkpointed(&mut *space).unwrap(), live, "{medium:?}");
    }
}

/// Writes a run to a chip whose power goes at change `at`, if at all.
fn write_to_chip(nand: &mut SimulatedNand, at: Option<u64>, entries: &[Owned]) -> Option<Run> {
    let power_cut = at.map(sim::Cut::Change);
    nand.arm(sim::FaultPlan { power_cut, ..sim::FaultPlan::seeded(at.unwrap_or(0)) });
    let options = PageLogOptions { durability: Durability::Batch, ..PageLogOptions::default() };
    let mut space = LogSpace::new(PageLog::create(Box::new(nand), &options).ok()?, 0);
    let options = media::writer_options(1, shape(), 60);
    let mut writer = RunWriter::new(&mut space, options).ok()?;
    for (key, kind, value) in entries {
        writer.push(&mut space, &Entry { key, kind: *kind, value }, &mut NoHooks).ok()?;
    }
    writer.finish(&mut space).ok().map(|(run, _)| run)
}

#[test]
fn a_torn_program_of_a_chip_is_told_by_the_units_in_it() {
    let chip = SimulatedNand::new(Geometry::new(512, 16, 64).unwrap(), NandCosts::default());
    let mut random = ChaCha8Rng::seed_from_u64(2);
    let mut entries = Vec::new();
    while entries.len() < 300 {
        entries = media::entries(&mut random, shape().entries(), Kinds::Deletes);
    }
    let run = write_to_chip(&mut chip.clone(), None, &entries).unwrap();
    let mut cuts = 0;
    for at in 1.. {
        let mut torn = chip.clone();
        let written = write_to_chip(&mut torn, Some(at), &entries);
        if !torn.is_without_power() {
            assert!(written == Some(run));
            break;
        }
        torn.restore_power();
        let log = PageLog::create(Box::new(&mut torn), &PageLogOptions::default()).unwrap();
        match read_all(&mut LogSpace::new(log, 0), &run) {
            Err(Error::CorruptUnit { .. }) => cuts += 1,
            // All of the last page may stand there.
            Ok(read) => assert!(read == entries, "cut {at}"),
            Err(other) => panic!("cut {at}: {other}"),
        }
    }
    assert!(cuts > 5, "{cuts}");
}

#[test]
fn pages_of_a_run_that_nothing_needs_are_given_back_while_it_lives_on() {
    for medium in [MEDIA[1], MEDIA[2]] {
        let mut space = medium.space();
        let space = &mut *space;
        let mut manifest = Manifest::new();
        let mut random = ChaCha8Rng::seed_from_u64(12);
        let mut entries = Vec::new();
        while entries.len() < 300 {
            entries = run_entries(&mut random);
        }
        let mut options = media::writer_options(1, shape(), 60);
        options.id = manifest.number_run();
        let (run, _) = media::write(space, &entries, options);
        let (id, pages) = (run.id, u32::try_from(run.pages()).unwrap());
        assert!(pages > 5);
        let delta = Delta { born: vec![run], ..Delta::default() };
        assert!(manifest.record(space, delta).unwrap());
        manifest.checkpointed(space).unwrap();
        space.recovery_mut().checkpoint(b"root", Some("kept")).unwrap();
        manifest.pin_checkpoints(space.recovery().checkpoints());
        let cut = |manifest: &mut Manifest, space: &mut dyn Space, pages| {
            let delta = Delta { cuts: vec![(id, pages)], ..Delta::default() };
            manifest.record(space, delta)
        };
        assert!(cut(&mut manifest, space, 1..3).unwrap());
        for gone in [0..2, 2..4, 1..1, pages..pages + 1] {
            assert!(cut(&mut manifest, space, gone).is_err());
        }
        // The name keeps them, also in the snapshot.
        assert_eq!(manifest.checkpointed(space).unwrap(), 0);
        assert_eq!(manifest.pages(), (u64::from(pages) - 2, 2));
        let mut snapshot = Vec::new();
        manifest.encode(&mut snapshot);
        let (mut again, _) = Manifest::restore(&mut *medium.space(), &snapshot).unwrap();
        assert!(again == manifest);
        again.pin_checkpoints(&[]);
        manifest.pin_checkpoints(&[]);
        assert_eq!(manifest.checkpointed(space).unwrap(), 2);
        let units = |page: u32| page * 512 / 64;
        let live = manifest.run(id).unwrap().clone();
        assert_eq!(live.pages_of(units(1)..units(3), 512), 1..3);
        let mut reader = UnitReader::new(512, 2, (1, 1), 2000);
        assert!(reader.unit(space, &live, 0, CAUSE).is_ok());
        assert!(reader.unit(space, &live, units(3), CAUSE).is_ok());
        assert!(reader.unit(space, &live, units(1), CAUSE).is_err());
        // What is left goes as a whole.
        let delta = Delta { dead: vec![id], ..Delta::default() };
        assert!(manifest.record(space, delta).unwrap());
        assert_eq!(manifest.checkpointed(space).unwrap(), u64::from(pages) - 2);
    }
}

fn run_entries(random: &mut ChaCha8Rng) -> Vec<Owned> {
    media::entries(random, shape().entries(), Kinds::Deletes)
}
