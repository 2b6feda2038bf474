use alloc::boxed::Box;
use alloc::vec;
use alloc::vec::Vec;

use device::Cause;

use super::super::tests::{Any, Ram, options};
use super::super::{FRAMES_LEAST, PageFile};
use super::{COUNT, NAMES, NEXT, OWNER, PREVIOUS, VALUE_BYTES};
use crate::{Error, LogicalPage, OverflowValue, page_kind};

const CAUSE: Cause = Cause::Update;

fn file(disk: &mut Ram, page_bytes: u32) -> PageFile<'_> {
    PageFile::create(Box::new(disk), &options(page_bytes, u64::from(FRAMES_LEAST))).unwrap()
}

fn bytes(length: u32, seed: u32) -> Vec<u8> {
    (0..length).map(|at| (at.wrapping_mul(2_654_435_761).wrapping_add(seed) >> 13) as u8).collect()
}

fn write(file: &mut PageFile<'_>, value: &[u8], piece: usize) -> OverflowValue {
    let mut writer = file.start_long(value.len() as u32, CAUSE).unwrap();
    for piece in value.chunks(piece) {
        file.append_long(&mut writer, piece, CAUSE).unwrap();
    }
    file.finish_long(writer).unwrap()
}

fn read(file: &mut PageFile<'_>, value: OverflowValue, piece: usize) -> Result<Vec<u8>, Error> {
    let mut whole = Vec::new();
    for offset in (0..value.bytes()).step_by(piece) {
        let mut into = vec![0xEE; piece];
        file.read_long(value, offset, &mut into, CAUSE)?;
        whole.extend_from_slice(&into);
    }
    let behind = whole.split_off(value.bytes() as usize);
    assert!(behind.iter().all(|byte| *byte == 0xEE), "bytes behind the value");
    Ok(whole)
}

#[test]
fn a_value_of_any_length_is_read_as_it_was_written_in_any_pieces() {
    for page_bytes in [128, 512, 2048] {
        let mut disk = Ram::new(512, 8192);
        let mut file = file(&mut disk, page_bytes);
        let data = page_bytes - 12;
        let names = (page_bytes - 20) / 4;
        let lengths = [0, 1, data - 1, data, data + 1, 3 * data];
        let edges = [names * data - 1, names * data, names * data + 1, 2 * names * data + 5];
        for (seed, length) in lengths.into_iter().chain(edges).enumerate() {
            let (value, used) = (bytes(length, seed as u32), file.pages_used().0);
            for piece in [7, 1000, 1 << 20] {
                let long = write(&mut file, &value, piece);
                assert_eq!(long.bytes(), length);
                assert_eq!(OverflowValue::from_bytes(long.to_bytes()), long);
                assert_eq!(file.pages_used().0 - used, file.pages_for_long(length));
                assert_eq!(read(&mut file, long, piece.min(length as usize + 3)).unwrap(), value);
                let pages = file.check_long(long, CAUSE, &mut |damage| panic!("{damage}"));
                assert_eq!(pages, Ok(file.pages_for_long(length)));
                file.free_long(long, CAUSE).unwrap();
                assert_eq!(file.pages_used().0, used, "all pages are given back");
            }
        }
    }
}

#[test]
fn several_values_can_be_written_at_once_and_given_up_anywhere() {
    let mut disk = Ram::new(512, 4096);
    let mut file = file(&mut disk, 512);
    let values: Vec<_> = (0..5).map(|seed| bytes(50_000 + 9000 * seed, seed)).collect();
    let mut writers: Vec<_> =
        values.iter().map(|value| file.start_long(value.len() as u32, CAUSE).unwrap()).collect();
    for at in 0..90 {
        for (value, writer) in values.iter().zip(&mut writers) {
            let piece = value.chunks(1000).nth(at).unwrap_or_default();
            file.append_long(writer, piece, CAUSE).unwrap();
        }
    }
    let given_up = writers.split_off(3);
    for (value, writer) in values.iter().zip(writers) {
        let long = file.finish_long(writer).unwrap();
        assert_eq!(read(&mut file, long, 4096).unwrap(), *value);
        file.free_long(long, CAUSE).unwrap();
    }
    for mut writer in given_up {
        let left = writer.bytes_left();
        let long = vec![0; left as usize + 1];
        let refused = file.append_long(&mut writer, &long, CAUSE);
        assert_eq!(
            refused,
            Err(Error::LongValuePieces { bytes: long.len() as u64, limit: u64::from(left) })
        );
        file.abandon_long(writer).unwrap();
    }
    assert_eq!(file.pages_used().0, 0);
    let writer = file.start_long(2, CAUSE).unwrap();
    assert_eq!(file.finish_long(writer), Err(Error::LongValuePieces { bytes: 0, limit: 2 }));
    assert_eq!(file.pages_used().0, 0);
}

#[test]
fn a_value_that_finds_the_file_full_gives_back_what_it_took() {
    for page_bytes in [128, 512] {
        let mut disk = Ram::new(512, 80);
        let mut file = file(&mut disk, page_bytes);
        let kept = bytes(5000, 1);
        let long = write(&mut file, &kept, 5000);
        let free = file.pages_free();
        let fits = (free - free / 20 - 2) * (page_bytes - 12);
        for length in [fits * 2, 40 * fits] {
            let refused = file.write_long(&vec![0; length as usize], CAUSE);
            assert!(matches!(refused, Err(Error::Full { .. })), "{refused:?}");
            assert_eq!(file.pages_free(), free);
        }
        let other = file.write_long(&bytes(fits, 2), CAUSE).unwrap();
        assert_eq!(read(&mut file, long, 999).unwrap(), kept);
        assert_eq!(read(&mut file, other, 999).unwrap(), bytes(fits, 2));
    }
}

/// The pages of a file with two values of three index pages, and one of the values.
fn two_values(value: &[u8]) -> (Vec<Vec<u8>>, OverflowValue) {
    let mut disk = Ram::new(256, 400);
    let mut file = file(&mut disk, 128);
    let long = write(&mut file, value, 777);
    let other = write(&mut file, value, 777);
    assert_ne!(long, other);
    let pages = 0..file.pages_used().1;
    let copy = |page| file.page(LogicalPage(page), CAUSE, &Any).unwrap().to_vec();
    (pages.map(copy).collect(), long)
}

#[test]
fn damage_under_good_checksums_is_an_error_or_a_finding_and_never_wrong_data() {
    let value = bytes(2 * 27 * 116 + 1000, 9);
    let (pages, long) = two_values(&value);
    let mut found = 0;
    for page in 0..pages.len() as u32 {
        for at in [COUNT, NEXT, VALUE_BYTES, PREVIOUS, NAMES, NAMES + 4 * 5, OWNER, 7] {
            for number in [0_u32, 1, 2, 29, 30, 57, 58, 70, u32::MAX] {
                let mut disk = Ram::new(256, 400);
                let mut file = file(&mut disk, 128);
                // The same file again, whose pages are then changed in the cache.
                for from in &pages {
                    let page = file.allocate(CAUSE).unwrap();
                    file.fresh(page).unwrap().copy_from_slice(from);
                }
                let bytes = file.page_mut(LogicalPage(page), CAUSE, &Any).unwrap();
                let is_data = bytes[page_kind::AT] == page_kind::DATA;
                bytes[at..at + 4].copy_from_slice(&number.to_le_bytes());
                if is_data && at >= super::DATA {
                    // Bytes of the value itself: what was written is what is read.
                    continue;
                }
                let mut findings = 0;
                file.check_long(long, CAUSE, &mut |_| findings += 1).unwrap();
                match read(&mut file, long, 4096) {
                    Ok(whole) => assert_eq!(whole, value, "page {page}, byte {at}: {number}"),
                    Err(error) => {
                        assert!(error.is_damage(), "{error}");
                        assert!(findings > 0, "page {page}, byte {at}: {number}: {error}");
                        found += 1;
                    }
                }
                let _ = file.free_long(long, CAUSE);
            }
        }
    }
    assert!(found > 1000, "{found} damages were found");
}

#[test]
fn a_pointer_that_leads_elsewhere_is_damage() {
    let mut disk = Ram::new(256, 400);
    let mut file = file(&mut disk, 128);
    let long = write(&mut file, &bytes(9000, 1), 9000);
    for first in 0..500 {
        for length in [0, 1, 8999, 9000, 9001, u32::MAX] {
            let wrong = OverflowValue { first: LogicalPage(first), bytes: length };
            if wrong == long {
                continue;
            }
            let mut findings = 0;
            file.check_long(wrong, CAUSE, &mut |_| findings += 1).unwrap();
            assert!(findings > 0, "{wrong:?}");
            let refused = file.read_long(wrong, 0, &mut [0; 10], CAUSE);
            assert!(length == 0 || refused.is_err_and(|error| error.is_damage()), "{wrong:?}");
            assert!(file.free_long(wrong, CAUSE).is_err(), "{wrong:?}");
        }
    }
    assert_eq!(read(&mut file, long, 500).unwrap(), bytes(9000, 1));
}
