//! The memory budget, by a counting allocator.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test fails by panicking"
)]

use flashtree::{Database, Durability, Error, OpenOptions, Options};

/// What may come beside the budget: paths, options, the parts of a handle.
const BESIDE: u64 = 4 << 10;

/// The most memory that was in use while `work` was done.
fn peak(work: impl FnOnce()) -> u64 {
    allocation_counter::measure(work).bytes_max
}

#[test]
fn everything_together_stays_inside_the_total() {
    for durability in Durability::ALL {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("budget.db");
        let options = Options::new().capacity(16 << 20).durability(durability);
        let Err(Error::LittleMemory { need, .. }) =
            Database::create(&path, &options.clone().memory_total(0))
        else {
            panic!("no memory is too little");
        };
        for total in [need, 2 * need, 16 * need, 1 << 20] {
            let options = options.clone().memory_total(total).overwrite(true);
            let long = vec![7; 100_000];
            let making = peak(|| {
                let database = Database::create(&path, &options).unwrap();
                let entries = if durability == Durability::Every { 200 } else { 3000 };
                for number in 0..entries {
                    database
                        .put(u32::wrapping_mul(number, 0x9E37_79B9).to_be_bytes(), [1; 40])
                        .unwrap();
                }
                database.put("long", &long).unwrap();
                database.close().unwrap();
            });
            assert!(making <= total + BESIDE, "{durability}: {making} of {total} bytes");
            let mut piece = vec![0; 1000];
            let opening = peak(|| {
                let options = OpenOptions::new().memory_total(total);
                let database = Database::open(&path, &options).unwrap();
                let mut range = database.all().unwrap();
                while range.next().unwrap().is_some() {
                    range.read_value(50, &mut piece).unwrap();
                }
            });
            assert!(opening <= total + BESIDE, "{durability}: {opening} of {total} bytes");
        }
    }
}

/// What it takes is the caller's: the value to put, and the piece to read into.
#[test]
fn values_of_a_mebibyte_are_written_and_read_in_pieces_inside_the_total() {
    for (tree, least) in [("b-plus", 128 << 10), ("flat-tree", 160 << 10)] {
        for durability in Durability::ALL {
            let options = Options::new().tree(tree).capacity(16 << 20).durability(durability);
            long_values_stay_inside(&options, durability, least);
        }
    }
}

/// With the least memory, which is less than `least`.
fn long_values_stay_inside(options: &Options, durability: Durability, least: u64) {
    let value: Vec<u8> = (0..1_u32 << 20).map(|place| ((place * 31) >> 4) as u8).collect();
    let mut piece = vec![0; 10_000];
    let folder = tempfile::tempdir().unwrap();
    let [path, left] = ["long.db", "left.db"].map(|name| folder.path().join(name));
    let Err(Error::LittleMemory { need, .. }) =
        Database::create(&path, &options.clone().memory_total(0))
    else {
        panic!("no memory is too little");
    };
    assert!(need < least, "{need}");
    let writing = peak(|| {
        let database = Database::create(&path, &options.clone().memory_total(need)).unwrap();
        database.put("long", &value).unwrap();
        database.put("longer", &value).unwrap();
        database.put("long", &value[1..]).unwrap();
        database.delete("longer").unwrap();
        if durability != Durability::None {
            database.sync().unwrap();
            // What a killed process leaves, to be replayed.
            std::fs::copy(&path, &left).unwrap();
        }
        database.close().unwrap();
    });
    assert!(writing <= need + BESIDE, "{durability}: {writing} of {need} bytes");
    for path in [&path, &left].into_iter().filter(|path| path.exists()) {
        let reading = peak(|| {
            let options = OpenOptions::new().memory_total(need);
            let mut database = Database::open(path, &options).unwrap();
            read_in_pieces(&mut database, &mut piece, &value[1..]);
        });
        assert!(reading <= need + BESIDE, "{durability}: {reading} of {need} bytes");
    }
}

/// Reads the only entry by its key and by its place.
fn read_in_pieces(database: &mut Database<'_>, piece: &mut [u8], expected: &[u8]) {
    for (number, wanted) in expected.chunks(piece.len()).enumerate() {
        let offset = (number * piece.len()) as u32;
        let length = database.get_into("long", offset, piece).unwrap();
        assert_eq!(length, Some(expected.len() as u32));
        assert!(piece[..wanted.len()] == *wanted);
    }
    let mut range = database.all_descending().unwrap();
    assert_eq!(range.next().unwrap().unwrap().value.len(), expected.len() as u32);
    for (number, wanted) in expected.chunks(piece.len()).enumerate() {
        range.read_value((number * piece.len()) as u32, piece).unwrap();
        assert!(piece[..wanted.len()] == *wanted);
    }
    assert_eq!(range.next().unwrap(), None);
}
