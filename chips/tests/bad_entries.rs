//! Text from outside: every error names its line, and nothing panics.

#![expect(clippy::unwrap_used, reason = "helpers of tests")]

use flashtree_chips::{CatalogueError, Device};

const ENTRY: &str = "\
name = 'mine'
maker = 'Me'
model = 'One'
kind = 'nand'
about = 'Mine.'
[figures]
page_bytes = { value = 512, unit = 'B', kind = 'paper', source = 'a paper' }
pages_per_block = { value = 32, kind = 'paper', source = 'a paper' }
blocks = { value = 8, kind = 'paper', source = 'a paper' }
bus = { value = 25.5, unit = 'ns/B', kind = 'paper', source = 'a paper' }
read_typical = { value = 25, unit = 'us', kind = 'paper', source = 'a paper' }
program_typical = { value = 0.2, unit = 'ms', kind = 'paper', source = 'a paper' }
erase_typical = { value = 2, unit = 'ms', kind = 'paper', source = 'a paper' }
program_order = { value = 'any', kind = 'paper', source = 'a paper' }
";

fn error_of(from: &str, to: &str) -> CatalogueError {
    assert!(ENTRY.contains(from), "{from}");
    Device::from_toml(&ENTRY.replacen(from, to, 1)).unwrap_err()
}

#[test]
fn the_entry_that_these_tests_break_is_sound() {
    assert_eq!(Device::from_toml(ENTRY).map(|device| device.missing()), Ok(vec![]));
}

#[test]
fn every_truncated_entry_is_an_error() {
    let whole = include_str!("../devices/toshiba-tc58dvg02a1ft00.toml");
    for text in [ENTRY, whole] {
        let needed = text.find("about").unwrap();
        for end in 0..text.len() {
            if let (true, Some(part)) = (text.is_char_boundary(end), text.get(..end)) {
                let result = Device::from_toml(part);
                // Cut between two figures it is an entry that lacks some, or nothing optional.
                let sound = part.ends_with('\n') || text[end..].starts_with('\n');
                assert!(result.is_err() || (sound && end > needed), "cut at {end}: {result:?}");
            }
        }
    }
}

#[test]
fn a_hostile_value_in_any_figure_is_an_error_that_names_its_line() {
    let hostile = [
        "-1",
        "-0.5",
        "nan",
        "inf",
        "-inf",
        "1e400",
        "1e30",
        "9223372036854775807",
        "99999999999999999999999999",
        "0xffffffffffffffff",
        "true",
        "[1]",
        "{}",
        "1979-05-27",
        "'fast'",
        "''",
    ];
    for (number, line) in ENTRY.lines().enumerate().skip(6) {
        let value = line.split("value = ").nth(1).and_then(|rest| rest.split(',').next()).unwrap();
        for bad in hostile {
            let broken = line.replacen(value, bad, 1);
            let error = Device::from_toml(&ENTRY.replacen(line, &broken, 1)).unwrap_err();
            let text = error.to_string();
            assert!(text.starts_with(&format!("line {}: ", number + 1)), "{broken}\n{text}");
            assert!(!text.contains('\n'), "{text}");
        }
    }
}

#[test]
fn wrong_types_of_whole_keys_are_errors() {
    for key in ["name", "maker", "model", "kind", "about"] {
        let line = ENTRY.lines().find(|line| line.starts_with(key)).unwrap();
        for bad in ["3", "true", "['x']", "{ a = 1 }", "''", "\"two\\u0000\""] {
            let error = error_of(line, &format!("{key} = {bad}"));
            assert!(error.to_string().contains(key), "{key} = {bad}: {error}");
        }
        let error = error_of(line, "");
        assert!(matches!(error, CatalogueError::MissingKey { .. }), "{error:?}");
    }
    let rows: String = ENTRY.lines().take(5).flat_map(|line| [line, "\n"]).collect();
    for figures in ["", "figures = 3", "figures = []", "[figures]\nblocks = 3", "[[figures]]"] {
        assert!(Device::from_toml(&format!("{rows}{figures}")).is_err(), "{figures}");
    }
}

#[test]
fn each_mistake_is_told_apart() {
    use CatalogueError as E;
    let error = error_of("blocks =", "block =");
    assert!(
        matches!(&error, E::UnknownKey { line: 9, near, .. } if near.contains(&"blocks".to_owned()))
    );
    assert!(error.to_string().starts_with("line 9: `block` is unknown; did you mean "), "{error}");
    assert!(matches!(error_of("model", "modell"), E::UnknownKey { line: 3, .. }));
    assert!(matches!(error_of("'B', ", "'Byte', "), E::WrongUnit { line: 7, .. }));
    let error = error_of(", unit = 'us'", "");
    assert_eq!(error.to_string(), "line 11: read_typical has no unit, but needs ns or us or ms");
    let error = error_of("value = 32,", "value = 32, unit = 'B',");
    assert!(matches!(error, E::WrongUnit { line: 8, .. }));
    assert!(matches!(error_of("value = 8,", "value = 8.0,"), E::WrongType { line: 9, .. }));
    assert!(matches!(error_of("value = 8,", "value = 0,"), E::OutOfRange { line: 9, .. }));
    assert!(matches!(error_of("value = 512", "value = 500"), E::Geometry { .. }));
    assert!(matches!(error_of("'any'", "'some'"), E::UnknownWord { line: 14, .. }));
    assert!(matches!(error_of("kind = 'nand'", "kind = 'tape'"), E::UnknownWord { line: 4, .. }));
    assert!(matches!(error_of("'paper'", "'hearsay'"), E::UnknownWord { line: 7, .. }));
    assert!(matches!(error_of("kind = 'nand'", "kind = 'disk'"), E::NotForKind { .. }));
    assert!(matches!(error_of("'a paper'", "' '"), E::BadText { line: 7, key: "source", .. }));
    let error = error_of(", source = 'a paper'", "");
    assert!(matches!(error, E::MissingKey { line: 7, key: "source" }));
    assert!(matches!(error_of("name = 'mine'", "name = 'Mein Chip'"), E::BadText { line: 1, .. }));
    assert!(matches!(error_of("[figures]", "[figures"), E::Syntax { line: 6, .. }));
    let twice = "pages_per_block = { value = 32, kind = 'paper', source = 'a paper' }\n";
    let error = Device::from_toml(&format!("{ENTRY}{twice}")).unwrap_err();
    assert!(matches!(error, E::Syntax { line: 15, .. }), "{error:?}");
    let most = "read_most = { value = 24, unit = 'us', kind = 'paper', source = 'a paper' }\n";
    let error = Device::from_toml(&format!("{ENTRY}{most}")).unwrap_err();
    assert_eq!(error.to_string(), "mine: read_typical is more than read_most");
}

#[test]
fn text_that_is_no_entry_at_all_is_an_error() {
    let deep = "[".repeat(100_000);
    let nested = format!("a = {}", "{ a = ".repeat(50_000));
    let long = format!("name = '{}'", "x".repeat(2 << 20));
    let dotted = format!("{} = 1", vec!["a"; 5000].join("."));
    for text in ["", "\0", "\u{feff}", "name", "= = =", "a.b.c = 1", &deep, &nested, &dotted] {
        assert!(Device::from_toml(text).is_err());
    }
    let error = Device::from_toml(&long).unwrap_err();
    assert!(matches!(error, CatalogueError::TooLong { .. }));
    let many: String = (0..10_000).map(|figure| format!("f{figure} = 1\n")).collect();
    let error = Device::from_toml(&format!("{ENTRY}{many}")).unwrap_err();
    assert!(matches!(error, CatalogueError::UnknownKey { .. }), "{error:?}");
}

#[test]
fn bytes_changed_at_random_never_panic() {
    // One to four bytes changed, chosen by splitmix64 from the seed.
    let seed = std::env::var("FLASHTREE_SEED").ok().and_then(|seed| seed.parse().ok());
    let seed: u64 = seed.unwrap_or(1);
    let mut state = seed;
    let mut random = move |below: usize| {
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        usize::try_from((mixed ^ (mixed >> 31)) % below.max(1) as u64).unwrap()
    };
    let (mut refused, rounds) = (0, 20_000);
    for round in 0..rounds {
        let mut bytes = ENTRY.as_bytes().to_vec();
        for _ in 0..=random(4) {
            let place = random(bytes.len());
            bytes[place] = b"09-+.eE'\"{}[]=,\n ab\\#x"[random(22)];
        }
        let text = String::from_utf8(bytes).unwrap();
        let outcome = std::panic::catch_unwind(|| Device::from_toml(&text).is_err());
        let replay = "cargo test -p flashtree-chips --test bad_entries";
        let is_error = outcome.unwrap_or_else(|_| {
            panic!("round {round}; replay: FLASHTREE_SEED={seed} {replay}\n{text}")
        });
        refused += usize::from(is_error);
    }
    assert!(refused > rounds / 2 && refused < rounds, "{refused} of {rounds} refused");
}
