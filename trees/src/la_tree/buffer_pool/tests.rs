use alloc::collections::BTreeMap;
use alloc::vec;
use alloc::vec::Vec;

use store::EntryShape;

use super::{BufferId, BufferPool, Copied, PoolSize};
use crate::la_tree::stream::{Form, Pending, prefix};

const FORM: Form = Form::new(EntryShape::fixed(4, 4));

/// What the pool must hold: for each buffer keys and values, oldest first.
type Model = BTreeMap<u32, Vec<([u8; 4], Option<[u8; 4]>)>>;

fn stream(form: Form, bytes: &[u8]) -> Vec<([u8; 4], Option<[u8; 4]>)> {
    let mut reader = form.reader(bytes);
    let mut entries = Vec::new();
    while let Some((entry, _)) = reader.next().unwrap() {
        let value = entry.value.map(|value| value.try_into().unwrap());
        entries.push((entry.key.try_into().unwrap(), value));
    }
    entries
}

/// A pool for entries of 4 + 4 bytes.
fn pool_of(memory_bytes: u64, page_entries: u32) -> BufferPool {
    BufferPool::new(PoolSize::fixed(memory_bytes), FORM, page_entries, 8)
}

/// What a pool needs at least to have pieces of several cells.
const IN_PIECES: u64 = 400_000;

fn held(pool: &mut BufferPool, buffer: u32) -> Vec<([u8; 4], Option<[u8; 4]>)> {
    let mut bytes = vec![0; pool.held(BufferId(buffer)).bytes];
    let copied = pool.copy(BufferId(buffer), &mut Copied::default(), &mut bytes).unwrap();
    assert_eq!(copied, pool.held(BufferId(buffer)), "what is held is known exactly");
    stream(FORM, &bytes)
}

#[test]
fn the_buffer_with_the_most_entries_leaves_first() {
    let mut pool = pool_of(4096, 60);
    assert_eq!(pool.fullest(), None);
    for (buffer, entries) in [(3, 5), (6, 9), (0, 2)] {
        for _ in 0..entries {
            assert!(pool.append(BufferId(buffer), &Pending { key: b"key1", value: None }));
        }
    }
    let mut bytes = [0; 512];
    for (buffer, entries) in [(6, 9), (3, 5), (0, 2)] {
        assert_eq!(pool.fullest(), Some(BufferId(buffer)));
        let taken = pool.take(BufferId(buffer), &mut bytes).unwrap();
        assert_eq!(taken.entries, entries);
    }
    assert_eq!(pool.fullest(), None);
}

#[test]
fn the_oldest_entries_leave_and_the_others_stay_in_order() {
    let mut pool = pool_of(8192, 60);
    for number in 0..200_u32 {
        let value = number.to_le_bytes();
        let value = (number % 3 != 0).then_some(&value[..]);
        assert!(pool.append(BufferId(1), &Pending { key: &number.to_be_bytes(), value }));
    }
    let before = held(&mut pool, 1);
    let mut page = [0; 100];
    let taken = pool.take(BufferId(1), &mut page).unwrap();
    assert!(taken.bytes <= 100 && taken.bytes > 100 - 9, "{taken:?}");
    let left = taken.entries as usize;
    assert_eq!(stream(FORM, &page[..taken.bytes]), before[..left]);
    assert_eq!(held(&mut pool, 1), before[left..]);
    let taken = pool.take(BufferId(1), &mut [0; 8]).unwrap();
    assert_eq!(taken.entries, 0, "no room, nothing taken");
    assert_eq!(held(&mut pool, 1), before[left..]);
}

/// Plays `steps` random appends, evictions and emptyings, one of these in each `clear`, and
/// compares all contents with the model; returns the appends that found no room.
fn play(seed: u64, size: PoolSize, (steps, clear): (u32, u64)) -> u32 {
    let mut state = seed;
    let mut below = |bound: u64| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963);
        (state >> 33) % bound
    };
    let mut pool = BufferPool::new(size, FORM, 10, 8);
    let mut model = Model::new();
    let mut full = 0;
    for _ in 0..steps {
        let buffer = below(20) as u32;
        if below(clear) == 0 {
            pool.clear(BufferId(buffer));
            model.remove(&buffer);
        }
        let (key, value) = ((below(1 << 20) as u32).to_be_bytes(), [buffer as u8; 4]);
        let value = (below(3) > 0).then_some(value);
        let entry = Pending { key: &key, value: value.as_ref().map(|value| &value[..]) };
        if pool.append(BufferId(buffer), &entry) {
            model.entry(buffer).or_default().push((key, value));
            continue;
        }
        full += 1;
        let fullest = pool.fullest().expect("a full pool holds something").0;
        let most = model.values().map(Vec::len).max().unwrap();
        let entries = model[&fullest].len();
        assert!(entries == most || entries >= 10, "seed {seed}: {entries} of {most}");
        let mut page = vec![0; 20 + below(100) as usize];
        let taken = pool.take(BufferId(fullest), &mut page).unwrap();
        let left = model.get_mut(&fullest).unwrap();
        let gone: Vec<_> = left.drain(..taken.entries as usize).collect();
        assert_eq!(stream(FORM, &page[..taken.bytes]), gone, "seed {seed}");
    }
    for buffer in 0..20 {
        let expected = model.get(&buffer).cloned().unwrap_or_default();
        assert!(held(&mut pool, buffer) == expected, "seed {seed}, buffer {buffer}");
        for wanted in [0..=u64::MAX, 5 << 44..=7 << 44] {
            let mut visited = Vec::new();
            let mut take = |entry: &Pending<'_>| {
                let value = entry.value.map(|value| value.try_into().unwrap());
                visited.push((entry.key.try_into().unwrap(), value));
            };
            pool.visit(BufferId(buffer), &wanted, &mut take).unwrap();
            let is_wanted = |entry: &&([u8; 4], _)| wanted.contains(&prefix(&entry.0));
            let least = expected.iter().filter(is_wanted).count();
            assert_eq!(visited.iter().filter(is_wanted).count(), least, "seed {seed}");
            assert!(visited.len() == least || !pool.cells.has_tags(), "seed {seed}");
        }
        let newest: BTreeMap<_, _> = expected.into_iter().collect();
        for number in (0..1 << 20).step_by(997).map(u32::to_be_bytes).chain(newest.keys().copied())
        {
            let read = &mut |entry: &Pending<'_>| entry.value.map(<[u8]>::to_vec);
            let found = pool.find(BufferId(buffer), &number, read).unwrap();
            let wanted = newest.get(&number).map(|value| value.map(Vec::from));
            assert_eq!(found, wanted, "seed {seed}, buffer {buffer}");
        }
        pool.clear(BufferId(buffer));
    }
    let (cells, free) = pool.cells.count();
    assert_eq!(free, cells, "seed {seed}: every cell is free again");
    full
}

#[test]
fn the_pool_holds_what_was_appended_less_what_was_taken() {
    let size = |seed| PoolSize::fixed(300 + 40 * seed);
    let full: u32 = (0..50).map(|seed| play(seed, size(seed), (3000, 40))).sum();
    assert!(full > 1000, "the pool was full only {full} times");
}

#[test]
fn a_pool_in_pieces_finds_the_newest_entry_of_each_key() {
    let full: u32 =
        (0..3).map(|seed| play(seed, PoolSize::in_pieces(IN_PIECES), (60_000, 20_000))).sum();
    assert!(full > 100, "the pool was full only {full} times");
}

#[test]
fn a_pool_in_pieces_holds_more_entries_than_one_of_single_cells() {
    for (shape, less, more) in [
        (EntryShape::fixed(4, 4), 110, 125),
        (EntryShape::fixed(8, 8), 105, 120),
        (EntryShape::VARIABLE, 120, 150),
    ] {
        let entries = |size| {
            let form = Form::new(shape);
            let mut pool = BufferPool::new(size, form, 60, 24);
            let (width, mut entries) =
                if shape == EntryShape::fixed(4, 4) { (4, 0) } else { (8, 0) };
            let field = &[7; 8][..width];
            while pool.append(BufferId(entries % 100), &Pending { key: field, value: Some(field) })
            {
                entries += 1;
            }
            assert!(pool.memory_bytes() <= size.bytes);
            u64::from(entries)
        };
        let of_cells = entries(PoolSize::fixed(8 << 20));
        let percent = entries(PoolSize::in_pieces(8 << 20)) * 100 / of_cells;
        std::println!("{shape}: {of_cells} in cells, {percent} % of that in pieces");
        assert!((less..more).contains(&percent), "{shape}: {percent} %");
    }
}

#[test]
fn a_pool_keeps_to_its_memory_and_uses_it() {
    for memory in [100, 1000, 96 << 10, 1 << 20, 5 << 20] {
        let pool = pool_of(memory, 60);
        assert!(pool.memory_bytes() <= memory.max(4 * 61));
        if memory > 500 {
            assert!(pool.memory_bytes() > memory - 300, "{memory}");
        }
    }
}

#[test]
fn a_shared_pool_gives_chunks_back_and_takes_others() {
    let size = PoolSize::shared(6000, 12_000, 600);
    let mut pool = BufferPool::new(size, FORM, 10, 8);
    let mut model = Model::new();
    let mut most = 0;
    for step in 0..20_000_u32 {
        let (buffer, key) = (step.wrapping_mul(0x9E37_79B9) >> 27, step.to_be_bytes());
        let value = (step % 3 > 0).then_some([7; 4]);
        let entry = Pending { key: &key, value: value.as_ref().map(|value| &value[..]) };
        if pool.append(BufferId(buffer), &entry) {
            model.entry(buffer).or_default().push((key, value));
        } else {
            pool.clear(BufferId(buffer));
            model.remove(&buffer);
        }
        let (memory, chunk) = (pool.memory_bytes(), pool.cells.chunk_bytes);
        match step % 70 {
            0 if memory + chunk <= 12_000 => pool.cells.grow(),
            35 if pool.cells.can_shrink() && step % 9 > 2 => {
                pool.shrink();
                assert_eq!(pool.memory_bytes(), memory - chunk);
            }
            _ => {}
        }
        most = most.max(pool.memory_bytes());
        if step % 100 == 0 {
            for buffer in 0..32 {
                let expected = model.get(&buffer).cloned().unwrap_or_default();
                assert_eq!(held(&mut pool, buffer), expected, "step {step}, buffer {buffer}");
            }
        }
    }
    assert!(most > 10_000, "it grew to {most} bytes only");
    (0..32).for_each(|buffer| pool.clear(BufferId(buffer)));
    let (cells, free) = pool.cells.count();
    assert_eq!(free, cells, "every cell is free again");
}

#[test]
fn small_fragments_of_many_buffers_waste_little() {
    // Seven entries a buffer, as 96 KiB hold for the leaf subtrees of 200,000 keys.
    let mut pool = pool_of(96 << 10, 60);
    let mut entries = 0_u32;
    while pool.append(BufferId(entries / 7), &Pending { key: b"key1", value: Some(b"four") }) {
        entries += 1;
    }
    let memory = pool.memory_bytes();
    std::println!("{entries} entries of 8 bytes in {memory} bytes");
    assert!(u64::from(entries) * 10 + 300 > memory, "ten bytes an entry");
    let buffers = u64::from(entries / 7);
    assert!(pool.table_bytes() < 32 * buffers, "{} bytes of tables", pool.table_bytes());
}

#[test]
fn entries_of_all_lengths_come_back_from_their_cells() {
    let shapes = [EntryShape::VARIABLE, EntryShape::fixed(9, 40), EntryShape::fixed(3, 0)];
    let sizes = [PoolSize::fixed(20_000), PoolSize::in_pieces(2 * IN_PIECES)];
    for (shape, size) in shapes.into_iter().flat_map(|shape| sizes.map(|size| (shape, size))) {
        let form = Form::new(shape);
        let mut pool = BufferPool::new(size, form, 10, 400);
        let bytes: Vec<u8> = (0..=255).collect();
        let length = |width, number: usize| match width {
            store::Width::Fixed(bytes) => usize::from(bytes),
            store::Width::Variable => 1 + number % 150,
        };
        let entry = |number: usize| {
            let key = &bytes[number..number + length(shape.key, number)];
            let value = &bytes[..length(shape.value, number * 7)];
            Pending { key, value: (!number.is_multiple_of(4)).then_some(value) }
        };
        for number in 0..100 {
            assert!(pool.append(BufferId(7), &entry(number)), "{shape}");
        }
        let mut number = 0;
        let mut compare = |found: &Pending<'_>| {
            assert_eq!(*found, entry(number), "{shape}, entry {number}");
            number += 1;
        };
        pool.visit(BufferId(7), &(0..=u64::MAX), &mut compare).unwrap();
        assert_eq!(number, 100);
        let mut page = vec![0; 700];
        let mut left = 100;
        while left > 0 {
            let taken = pool.take(BufferId(7), &mut page).unwrap();
            let mut reader = form.reader(&page[..taken.bytes]);
            for place in 0..taken.entries as usize {
                let found = reader.next().unwrap().unwrap().0;
                assert_eq!(found, entry(100 - left + place), "{shape}");
            }
            left -= taken.entries as usize;
        }
        let (cells, free) = pool.cells.count();
        assert_eq!(free, cells, "{shape}: every cell is free again");
    }
}

#[test]
fn a_large_pool_numbers_its_cells_in_three_bytes() {
    let mut pool = pool_of(4 << 20, 60);
    let mut entries = 0_u32;
    while pool.append(BufferId(entries % 50), &Pending { key: &entries.to_be_bytes(), value: None })
    {
        entries += 1;
    }
    assert!(entries > 0x7FFF, "{entries} entries");
    for buffer in 0..50 {
        let keys: Vec<u32> =
            held(&mut pool, buffer).into_iter().map(|(key, _)| u32::from_be_bytes(key)).collect();
        let expected: Vec<u32> = (0..entries).filter(|number| number % 50 == buffer).collect();
        assert!(keys == expected, "buffer {buffer}");
    }
}

#[test]
fn a_buffer_that_may_have_more_than_fits_is_not_taken_for_a_rest() {
    // A page has room for more entries than there are lists.
    let mut pool = pool_of(64 << 10, 1000);
    for (buffer, entries) in [(1, 700), (2, 200)] {
        for number in 0u32..entries {
            let key = number.to_be_bytes();
            assert!(pool.append(BufferId(buffer), &Pending { key: &key, value: None }));
        }
    }
    assert_eq!(pool.fullest_within(100, 300), Some(BufferId(2)));
    assert_eq!(pool.fullest_within(201, 300), None);
    assert_eq!(pool.fullest_within(100, 199), None);
}
