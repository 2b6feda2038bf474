use device::Page;
use store::EntryShape;

use super::super::super::stream::{Pending, Writer};
use super::*;

const FORM: Form = Form::new(EntryShape::fixed(8, 0));

const fn link(page: u32) -> Link {
    Link { page: Page(page), offset: 8, bytes: 100 }
}

fn note(fences: &mut Fences, link: Link, before: Option<Link>, keys: impl Iterator<Item = u64>) {
    let mut bytes = [0; 4096];
    let mut writer = Writer::new(FORM, &mut bytes);
    for key in keys {
        assert!(writer.push(&Pending { key: &key.to_be_bytes(), value: Some(&[]) }));
    }
    let length = writer.bytes();
    fences.note((link, before), FORM, &bytes[..length]).unwrap();
}

#[test]
fn a_fragment_is_passed_by_if_its_keys_are_others() {
    let mut fences = Fences::new(64, 4096);
    note(&mut fences, link(3), Some(link(2)), 10..=20);
    let passed = |link, keys| fences.passed(link, &Wanted::all(keys));
    assert_eq!(passed(link(3), 21..=30), Some(Some(link(2))));
    assert_eq!(passed(link(3), 0..=9), Some(Some(link(2))));
    assert_eq!(passed(link(3), 20..=30), None);
    assert_eq!(passed(link(2), 0..=9), None);
}

#[test]
fn a_fragment_is_passed_by_for_nearly_all_keys_that_it_does_not_have() {
    for (page_bytes, entries) in [(4096, 220), (512, 27)] {
        let (mut fences, mut read) = (Fences::new(64, page_bytes), 0);
        note(&mut fences, link(3), None, (0..entries).map(|number| 1000 * number));
        for key in 0..1000 * (entries - 1) {
            let passed = fences.passed(link(3), &Wanted::one(&key.to_be_bytes())).is_some();
            assert!(!passed || key % 1000 != 0, "{key} is there");
            read += u64::from(!passed);
        }
        assert!(read < 1000 * entries / 25, "{read} of {entries} thousand");
    }
}

#[test]
fn what_was_written_last_at_a_link_is_what_is_known() {
    let mut fences = Fences::new(8, 512);
    for page in 0..100 {
        note(&mut fences, link(page % 10), None, 0..=u64::from(page));
        assert_eq!(fences.end(link(page % 10)), Some((u64::from(page), None)));
    }
    let shorter = Link { bytes: 50, ..link(9) };
    note(&mut fences, shorter, None, 5..=5);
    assert!(!fences.is_known(link(9)) && fences.is_known(shorter));
    fences.forget(link(9));
    assert!(fences.is_known(shorter));
    fences.forget(shorter);
    assert!(!fences.is_known(shorter));
}
