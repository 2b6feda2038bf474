//! What an import is given that is not what it seems, or is damaged.

use std::fs;

use crate::bench::{Bench, complaint, rows, text};

const TEXTS: &str = "--key text --value text";

fn is_empty(bench: &Bench) -> bool {
    bench.json("stat a.db")["entries"] == 0
}

/// The letters of `text` in UTF-16 without a mark.
fn wide(text: &str, is_little: bool) -> Vec<u8> {
    let bytes = |unit: u16| if is_little { unit.to_le_bytes() } else { unit.to_be_bytes() };
    text.encode_utf16().flat_map(bytes).collect()
}

#[test]
fn the_column_that_is_left_holds_the_values() {
    for (rows, options) in [
        ("x,key\nv,k\n", ""),
        ("value,x\nv,k\n", ""),
        ("a,b\nv,k\n", "--key b"),
        ("a,b\nk,v\n", "--value b"),
    ] {
        let bench = Bench::with_database(TEXTS);
        bench.write("rows.csv", rows);
        bench.done(&format!("import a.db rows.csv {options}"));
        assert_eq!(bench.done("scan a.db"), "k\tv\n", "{rows} {options}");
    }
    let bench = Bench::with_database(TEXTS);
    bench.write("rows.csv", "value,x,y\nv,k,z\n");
    assert!(bench.wrong("import a.db rows.csv").contains("which column holds the key?"));
    bench.write("rows.jsonl", "{\"value\":\"v\",\"key\":\"k\"}\n");
    for options in ["--key value", "--value key"] {
        let error = bench.wrong(&format!("import a.db rows.jsonl {options}"));
        assert!(error.contains("give --key and --value different names"), "{error}");
    }
    assert!(is_empty(&bench));
}

#[test]
fn utf_16_without_a_mark_is_told_with_its_line() {
    let table = "key,value\nk,v\n";
    let quoted = "\"key\",\"value\"\n\"k\",\"v\"\n";
    let json = "{\"key\":\"k\",\"value\":\"v\"}\n";
    for (name, content) in [("a.csv", table), ("b.csv", quoted), ("c.jsonl", json)] {
        for is_little in [true, false] {
            for before in ["", content] {
                let bench = Bench::with_database(TEXTS);
                bench.write(name, [before.as_bytes(), &wide(content, is_little)].concat());
                let line = 1 + before.lines().count();
                let error = bench.failed(&format!("import a.db {name} --quiet"));
                assert!(error.contains("UTF-16") && error.contains("iconv"), "{error}");
                assert!(error.contains(&format!("{name}, line {line}: ")), "{line}: {error}");
                assert_eq!(is_empty(&bench), before.is_empty());
            }
        }
    }
}

#[test]
fn what_is_compressed_is_known_by_its_content() {
    let bench = Bench::with_database(TEXTS);
    bench.write("all.csv", rows(100));
    bench.done("import a.db all.csv");
    for ending in ["gz", "zst"] {
        bench.done(&format!("export a.db rows.csv.{ending}"));
        fs::rename(bench.path(&format!("rows.csv.{ending}")), bench.path("rows.csv")).unwrap();
        bench.done("create b.db --overwrite --key text --value text");
        bench.done("import b.db rows.csv");
        assert_eq!(bench.done("scan b.db"), bench.done("scan a.db"), "{ending}");
        bench.done("create b.db --overwrite --key text --value text");
        let packed = fs::read(bench.path("rows.csv")).unwrap();
        let piped = bench.fed(&["import", "b.db", "-"], &packed);
        assert!(piped.status.success(), "{}", text(&piped.stderr));
        assert_eq!(bench.done("scan b.db"), bench.done("scan a.db"), "{ending}");
    }
    for (head, name) in [
        (&b"\xFD7zXZ\0\0\x04"[..], "xz"),
        (b"BZh91AY&SY", "bzip2"),
        (b"BZh9\x17\x72\x45\x38\x50\x90", "bzip2"),
        (b"7z\xBC\xAF\x27\x1C", "7z"),
        (b"PK\x03\x04", "zip"),
        (b"\x04\x22\x4D\x18", "lz4"),
    ] {
        bench.write("rows.csv", [head, b"some more of it\n"].concat());
        let error = bench.failed("import a.db rows.csv");
        assert!(error.contains(&format!("compressed with {name}, and only gzip")), "{error}");
    }
    // Text may begin with the letters of bzip2.
    bench.write("rows.csv", "BZh9,value\nx,y\n");
    bench.done("import a.db rows.csv");
    assert_eq!(bench.done("get a.db x"), "y\n");
}

#[test]
fn of_damaged_compressed_rows_none_is_taken() {
    let bench = Bench::with_database(TEXTS);
    let all: String = (0..60_000_u64)
        .map(|row| format!("k{row:06},{:x}\n", row.wrapping_mul(0x9E37_79B9_7F4A_7C15)))
        .collect();
    bench.write("all.csv", format!("key,value\n{all}"));
    bench.done("import a.db all.csv");
    for ending in ["gz", "zst"] {
        let name = format!("rows.csv.{ending}");
        bench.done(&format!("export a.db {name}"));
        let whole = fs::read(bench.path(&name)).unwrap();
        let half = whole.len() / 2;
        let flipped = |place: usize| {
            let mut bytes = whole.clone();
            bytes[place] ^= 0x10;
            bytes
        };
        for damaged in [
            whole[..half].to_vec(),
            whole[..whole.len() - 1].to_vec(),
            flipped(half),
            flipped(whole.len() - 2),
            flipped(whole.len() * 9 / 10),
        ] {
            bench.done("create b.db --overwrite --key text --value text");
            bench.write(&name, &damaged);
            let files = bench.names();
            let error = bench.failed(&format!("import b.db {name} --buffer 64KiB --quiet"));
            assert!(error.contains("no row of it was taken"), "{error}");
            assert!(!error.contains("--resume"), "{error}");
            let line = ["import", "b.db", "-", "--buffer", "64KiB", "--quiet"];
            let piped = complaint(&bench.fed(&line, &damaged), 1);
            assert!(piped.contains("no row of it was taken"), "{piped}");
            assert_eq!(bench.json("stat b.db")["entries"], 0, "{ending}");
            assert_eq!(bench.names(), files);
        }
    }
}

#[test]
fn what_a_line_of_json_lacks_is_told_with_one_place() {
    let bench = Bench::with_database(TEXTS);
    bench.write("rows.jsonl", "{\"key\":\"a\",\"value\":\"b\"}\n{\"key\":\"c\", \"value\": d}\n");
    let error = bench.failed("import a.db rows.jsonl");
    assert!(error.contains("rows.jsonl, line 2: this is no JSON: "), "{error}");
    assert!(error.contains("at column 22") && !error.contains("line 1"), "{error}");
}

#[test]
fn a_text_in_a_line_has_one_meaning() {
    let bench = Bench::with_database(TEXTS);
    bench.output(&["put", "a.db", "1", "a\tb"]);
    bench.output(&["put", "a.db", "2", r"a\tb"]);
    assert_eq!(bench.done("scan a.db"), "1\ta\\tb\n2\ta\\\\tb\n");
    let bytes = Bench::with_database("");
    bytes.output(&["put", "a.db", r"\x09", r"\\t"]);
    assert_eq!(bytes.done("scan a.db"), "\\x09\t\\\\t\n");
}
