//! A run holds what was written to it, on every medium, in units of every size, and tells damage.

use crate::media::{self, CAUSE, MEDIA, Medium, Owned, SHAPES};
use flashtree_store::runs::{
    Entry, Fences, Hooks, Kind, Kinds, Lead, Merge, MergeOptions, Merged, NoHooks, Run, RunCursor,
    RunWriter, Source, Space, UnitHooks, UnitReader, UnitShape, Verdict, Way, WriterOptions,
};
use flashtree_store::{EntryShape, Error};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

/// Plays `test` on every medium with every shape and units of every size.
fn everywhere(test: impl Fn(&mut dyn Space, UnitShape, &mut ChaCha8Rng)) {
    for (place, medium) in MEDIA.into_iter().enumerate() {
        let sizes = medium.unit_bytes(&*medium.space());
        for (at, bytes) in sizes.into_iter().enumerate() {
            let mut space = medium.space();
            for (number, shape) in SHAPES.into_iter().enumerate() {
                let kinds = [Kinds::Puts, Kinds::Deletes, Kinds::Fences][(at + number) % 3];
                let unit = UnitShape::new(bytes, shape, kinds).unwrap();
                let seed = (place * 100 + at * 10 + number) as u64;
                test(&mut *space, unit, &mut ChaCha8Rng::seed_from_u64(seed));
            }
        }
    }
}

fn reader(space: &dyn Space, frames: u32) -> UnitReader {
    UnitReader::new(space.page_bytes(), frames, (4, space.alignment()), 2000)
}

/// A run of random entries.
fn make(
    space: &mut dyn Space,
    shape: UnitShape,
    random: &mut ChaCha8Rng,
) -> (Vec<Owned>, Run, Fences) {
    let entries = media::entries(random, shape.entries(), shape.kinds());
    let pages = media::pages_for(space, &shape, &entries);
    let id = random.random_range(1..1000);
    let mut options = media::writer_options(id, shape, pages);
    options.fence_step = random.random_range(0..4);
    options.request_bytes = random.random_range(1..20_000);
    let (run, fences) = media::write(space, &entries, options);
    (entries, run, fences)
}

fn owned(entry: Entry<'_>) -> Owned {
    (entry.key.to_vec(), entry.kind, entry.value.to_vec())
}

#[test]
fn a_lookup_finds_what_was_written_with_fences_and_without() {
    everywhere(|space, shape, random| {
        let (entries, run, fences) = make(space, shape, random);
        assert_eq!(run.entries, entries.len() as u64);
        let deletes = entries.iter().filter(|(_, kind, _)| *kind == Kind::Delete).count();
        assert_eq!(run.deletes, deletes as u64);
        let mut reader = reader(space, random.random_range(1..20));
        let opened = reader.open(space, &run, CAUSE).unwrap();
        assert!(opened == fences, "{run:?}");
        let fences = Some(&fences).filter(|fences| !fences.is_empty());
        for _ in 0..60 {
            let key = media::key(random, shape.entries());
            let place = entries.binary_search_by(|(other, ..)| other.cmp(&key)).ok();
            let expected = place.map(|place| entries[place].clone());
            for fences in [fences, None] {
                let found = reader.get(space, (&run, fences), &key, CAUSE).unwrap();
                assert_eq!(found.map(owned), expected, "{shape:?} {key:?}");
            }
        }
        space.free(&run.extents).unwrap();
    });
}

#[test]
fn a_cursor_turns_anywhere_and_finds_its_place() {
    everywhere(|space, shape, random| {
        let (entries, run, fences) = make(space, shape, random);
        let mut cursor = RunCursor::new(&run, media::cursor_options(random), space.alignment());
        let mut at = 0;
        for _ in 0..300 {
            match random.random_range(0..40) {
                0 => {
                    cursor.to_start();
                    at = 0;
                }
                1 => {
                    cursor.to_end();
                    at = entries.len();
                }
                2..6 => {
                    let key = media::key(random, shape.entries());
                    let is_behind = random.random_bool(0.5);
                    let units = (!fences.is_empty()).then(|| fences.plan(&key, run.units));
                    cursor.seek(space, &key, is_behind, units).unwrap();
                    let is_before = |entry: &Owned| match is_behind {
                        true => entry.0 <= key,
                        false => entry.0 < key,
                    };
                    at = entries.partition_point(is_before);
                }
                _ => {}
            }
            let way = if random.random_bool(0.5) { Way::Up } else { Way::Down };
            for _ in 0..random.random_range(1..30) {
                let expected = match way {
                    Way::Up => entries.get(at).cloned(),
                    Way::Down => at.checked_sub(1).map(|at| entries[at].clone()),
                };
                let is_there = cursor.load(space, way).unwrap();
                assert_eq!(is_there, expected.is_some(), "{shape:?} at {at}");
                if !is_there {
                    break;
                }
                assert_eq!(cursor.head(way).map(owned), expected, "{shape:?} at {at}");
                cursor.step(way);
                assert_eq!(cursor.head(way.turned()).map(owned), expected);
                at = if way == Way::Up { at + 1 } else { at - 1 };
            }
        }
        space.free(&run.extents).unwrap();
    });
}

/// Runs, the newest first, and what they come to.
fn several(
    space: &mut dyn Space,
    shape: UnitShape,
    random: &mut ChaCha8Rng,
) -> (Vec<Run>, Vec<Owned>) {
    let count = random.random_range(1..6);
    let (mut runs, mut all) = (Vec::new(), std::collections::BTreeMap::new());
    for _ in 0..count {
        let (entries, run, _) = make(space, shape, random);
        runs.push(run);
        for (key, kind, value) in entries {
            all.entry(key).or_insert((kind, value));
        }
    }
    (runs, all.into_iter().map(|(key, (kind, value))| (key, kind, value)).collect())
}

fn cursors(space: &dyn Space, runs: &[Run], random: &mut ChaCha8Rng) -> Vec<RunCursor> {
    let mut cursor = |run| RunCursor::new(run, media::cursor_options(random), space.alignment());
    runs.iter().map(&mut cursor).collect()
}

fn sources(cursors: &mut [RunCursor]) -> Vec<&mut dyn Source> {
    cursors.iter_mut().map(|cursor| cursor as &mut dyn Source).collect()
}

#[test]
fn merged_runs_are_read_as_one_and_turned_at_any_step() {
    everywhere(|space, shape, random| {
        let (runs, all) = several(space, shape, random);
        let mut cursors = cursors(space, &runs, random);
        let mut at = 0;
        for _ in 0..100 {
            let way = if random.random_bool(0.6) { Way::Up } else { Way::Down };
            for _ in 0..random.random_range(1..20) {
                let expected = match way {
                    Way::Up => all.get(at).cloned(),
                    Way::Down => at.checked_sub(1).map(|at| all[at].clone()),
                };
                let mut sources = sources(&mut cursors);
                let found = Merged::next(space, &mut sources, way).unwrap();
                assert_eq!(found.map(|(_, entry)| owned(entry)), expected, "{shape:?} at {at}");
                match (way, expected) {
                    (_, None) => break,
                    (Way::Up, _) => at += 1,
                    (Way::Down, _) => at -= 1,
                }
            }
        }
        runs.iter().for_each(|run| space.free(&run.extents).unwrap());
    });
}

/// The run that comes of a merge in steps of so many bytes.
fn merge(
    space: &mut dyn Space,
    runs: &[Run],
    options: (WriterOptions, MergeOptions),
    (random, step): (&mut ChaCha8Rng, u64),
) -> Run {
    let mut cursors = cursors(space, runs, random);
    let writer = RunWriter::new(space, options.0).unwrap();
    let mut merge = Merge::new(writer, options.1);
    loop {
        let before = merge.counts().bytes_read;
        let is_done = merge.step(space, &mut sources(&mut cursors), &mut NoHooks, step).unwrap();
        // Of each source one entry, at most 1600 bytes long.
        assert!(merge.counts().bytes_read - before <= step.saturating_add(6 * 1600));
        if is_done {
            return merge.finish(space).unwrap().0;
        }
    }
}

#[test]
fn a_merge_gives_the_same_run_whatever_its_steps_are() {
    everywhere(|space, shape, random| {
        let (runs, all) = several(space, shape, random);
        let drops_deletes = random.random_bool(0.5);
        let is_left = |entry: &&Owned| !drops_deletes || entry.1 != Kind::Delete;
        let left: Vec<Owned> = all.iter().filter(is_left).cloned().collect();
        let pages = media::pages_for(space, &shape, &left);
        let mut first: Option<Run> = None;
        for step in [u64::MAX, 1, random.random_range(1..3000)] {
            let options = media::writer_options(5000, shape, pages);
            let options = (options, MergeOptions { drops_deletes });
            let run = merge(space, &runs, options, (random, step));
            let mut cursor = RunCursor::new(&run, media::cursor_options(random), space.alignment());
            for expected in &left {
                assert!(cursor.load(space, Way::Up).unwrap());
                assert_eq!(cursor.head(Way::Up).map(owned).as_ref(), Some(expected));
                cursor.step(Way::Up);
            }
            assert!(!cursor.load(space, Way::Up).unwrap());
            space.free(&run.extents).unwrap();
            let mut same = run;
            same.extents = Vec::new();
            assert_eq!(first.get_or_insert(same.clone()), &same);
        }
        runs.iter().for_each(|run| space.free(&run.extents).unwrap());
    });
}

/// Each unit begins with a fence, and the tree above is told of it.
#[derive(Default)]
struct Fencing {
    last: u32,
    leads: u64,
    began: Vec<(u32, Vec<u8>)>,
}

impl UnitHooks for Fencing {
    fn lead(&mut self, _: u32, first: &Entry<'_>) -> Option<Lead> {
        let lead = Lead { kind: Kind::InnerFence, unit: self.last };
        let is_led = first.kind.is_fence();
        self.leads += u64::from(!is_led);
        (!is_led).then_some(lead)
    }

    fn unit_began(
        &mut self,
        _: &mut dyn Space,
        unit: u32,
        key: &[u8],
    ) -> flashtree_store::Result<()> {
        self.began.push((unit, key.to_vec()));
        Ok(())
    }
}

impl Hooks for Fencing {
    fn entry(&mut self, place: usize, entry: &Entry<'_>, _: bool) -> Verdict {
        match (place, entry.kind) {
            (1, Kind::Fence) => {
                self.last = entry.unit().unwrap();
                Verdict::Keep
            }
            (_, Kind::Put | Kind::Delete) => Verdict::Keep,
            _ => Verdict::Drop,
        }
    }
}

#[test]
fn fences_are_entries_that_lead_units_and_name_those_of_the_run_below() {
    let mut space = Medium::Disk { page_bytes: 512 }.space();
    let space = &mut *space;
    let shape = UnitShape::new(512, EntryShape::fixed(4, 4), Kinds::Fences).unwrap();
    let number = |number: u32| number.to_be_bytes().to_vec();
    // A fence each 50 keys, and one with the key of an entry.
    let fences =
        (0..40).map(|unit: u32| (number(unit * 50), Kind::Fence, unit.to_le_bytes().to_vec()));
    let entry = |at: u32| (number(at * 7), Kind::Put, number(at));
    let mut lower: Vec<Owned> = fences.chain((0..280).map(entry)).collect();
    lower.sort_by(|one, other| {
        let order = |it: &Owned| (it.0.clone(), !it.1.is_fence());
        order(one).cmp(&order(other))
    });
    let upper: Vec<Owned> =
        (0..100).map(|at: u32| (number(at * 21), Kind::Delete, Vec::new())).collect();
    let (lower, _) = media::write(space, &lower, media::writer_options(1, shape, 30));
    let (upper, _) = media::write(space, &upper, media::writer_options(2, shape, 30));
    let mut random = ChaCha8Rng::seed_from_u64(1);
    let mut cursors = cursors(space, &[upper, lower], &mut random);
    let writer = RunWriter::new(space, media::writer_options(3, shape, 60)).unwrap();
    let mut merge = Merge::new(writer, MergeOptions::default());
    let mut hooks = Fencing::default();
    while !merge.step(space, &mut sources(&mut cursors), &mut hooks, 100).unwrap() {}
    assert_eq!(merge.counts().superseded, 100 - 6);
    let (run, _) = merge.finish(space).unwrap();
    assert_eq!(run.entries, 280 + 6);
    assert_eq!(run.fences, 40 + hooks.leads);
    assert!(hooks.leads > 3);
    assert_eq!(hooks.began.len(), run.units as usize);
    let mut reader = reader(space, 8);
    for (unit, key) in &hooks.began {
        let (start, entries) = reader.unit(space, &run, *unit, CAUSE).unwrap();
        assert_eq!(start, *unit);
        assert!(entries.entry(0).kind.is_fence() && entries.entry(0).key == &key[..]);
    }
    // Whoever looks for a key finds the fence that leads on from it.
    for key in 0..2000u32 {
        let began = hooks.began.partition_point(|(_, first)| *first <= number(key)) - 1;
        let (_, entries) = reader.unit(space, &run, began as u32, CAUSE).unwrap();
        assert_eq!(entries.fence(&number(key)).unwrap().unit(), Some(key / 50), "key {key}");
    }
}

#[test]
fn entries_out_of_order_or_of_another_shape_are_refused() {
    let mut space = Medium::Disk { page_bytes: 512 }.space();
    let space = &mut *space;
    let shape = UnitShape::new(64, EntryShape::fixed(4, 4), Kinds::Puts).unwrap();
    let mut writer = RunWriter::new(space, media::writer_options(1, shape, 3)).unwrap();
    writer.push(space, &Entry::put(b"bbbb", b"1111"), &mut NoHooks).unwrap();
    for entry in [
        Entry::put(b"bbbb", b"1111"),
        Entry::put(b"aaaa", b"1111"),
        Entry::put(b"ccc", b"1111"),
        Entry::put(b"cccc", b"111"),
        Entry::delete(b"cccc"),
    ] {
        let refused = writer.push(space, &entry, &mut NoHooks);
        assert!(matches!(refused, Err(Error::RunEntry { .. })), "{entry:?} {refused:?}");
    }
    let free = space.pages_free();
    writer.abandon(space).unwrap();
    assert_eq!(space.pages_free(), free + 3);
}

#[test]
fn room_that_a_run_does_not_need_is_given_back_and_what_is_full_is_refused() {
    for medium in MEDIA {
        let mut space = medium.space();
        let free = space.pages_free();
        let shape = UnitShape::new(128, EntryShape::fixed(4, 4), Kinds::Puts).unwrap();
        let entries = [(vec![1; 4], Kind::Put, vec![2; 4])];
        let options = media::writer_options(1, shape, 500);
        let (run, _) = media::write(&mut *space, &entries, options.clone());
        assert_eq!(run.pages(), 1);
        assert_eq!(space.pages_free(), free - 1, "{medium:?}");
        let pages = u32::try_from(free).unwrap();
        let refused = RunWriter::new(&mut *space, WriterOptions { pages, ..options.clone() });
        assert!(matches!(refused.err(), Some(Error::Full { .. })), "{medium:?}");
        let writer = RunWriter::new(&mut *space, WriterOptions { pages: pages - 1, ..options });
        writer.unwrap().abandon(&mut *space).unwrap();
        assert_eq!(space.pages_free(), free - 1);
    }
}
