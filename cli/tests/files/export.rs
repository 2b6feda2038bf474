//! `export`.

use std::fs;

use crate::bench::{Bench, complaint, rows, text};

#[test]
fn what_is_exported_makes_the_same_database_again() {
    for (kind, keys) in [
        ("bytes", &[r"\x00\xff", "a,b", "\"", " c "][..]),
        ("hex", &["00ff", "10"]),
        ("text", &["", "two\nlines", "é"]),
        ("f64", &["-0.1", "1e300"]),
        ("time", &["2013-01-01T10:00:00.000000001Z"]),
        ("tuple(bytes,i64)", &[r#"["a\\x00",-1]"#, r#"["b",2]"#]),
    ] {
        for name in ["rows.csv", "rows.jsonl"] {
            let bench = Bench::new();
            bench.output(&["create", "a.db", "--key", kind, "--value", kind]);
            bench.output(&["create", "b.db", "--key", kind, "--value", kind]);
            for key in keys {
                bench.output(&["put", "a.db", key, keys[0]]);
            }
            bench.done(&format!("export a.db {name}"));
            bench.done(&format!("import b.db {name}"));
            let (before, after) = (bench.json("scan a.db"), bench.json("scan b.db"));
            assert_eq!(before.as_array().unwrap().len(), keys.len(), "{kind}");
            assert_eq!(before, after, "{kind} in {name}");
        }
    }
}

#[test]
fn columns_have_the_names_that_are_asked_for() {
    let bench = Bench::new();
    bench.output(&["create", "a.db", "--key", "tuple(text,u64)", "--value", "i64"]);
    bench.output(&["put", "a.db", r#"["N1",7]"#, "-3"]);
    let csv = bench.done("export a.db - --key tail,row --value delay --quiet");
    assert_eq!(csv, "tail,row,delay\nN1,7,-3\n");
    let whole = bench.done("export a.db - --quiet");
    assert_eq!(whole, "key,value\n\"[\"\"N1\"\",7]\",-3\n");
    let json = bench.done("export a.db - --format jsonl --key tail,row --value delay --quiet");
    assert_eq!(json, "{\"tail\":\"N1\",\"row\":7,\"delay\":-3}\n");
    assert!(bench.wrong("export a.db - --key a,b,c").contains("3 columns"));
    // Where one column is meant, commas belong to its name.
    assert!(bench.done("export a.db - --value a,b --quiet").starts_with("key,\"a,b\"\n"));
}

#[test]
fn a_file_is_there_when_it_is_whole_or_not_at_all() {
    let bench = Bench::with_database("--key text --value text");
    bench.write("rows.csv", rows(1000));
    bench.done("import a.db rows.csv");
    bench.write("out.csv", "old");
    let remark = bench.command(&["export", "a.db", "out.csv"]).output().unwrap();
    assert_eq!(text(&remark.stderr), "1,000 rows exported\n");
    assert_eq!(bench.read("out.csv"), rows(1000));
    fs::create_dir(bench.path("folder")).unwrap();
    assert!(bench.failed("export a.db folder").contains("folder"));
    assert!(bench.failed("export a.db no/out.csv").contains("no/out.csv"));
    assert!(bench.wrong("export a.db ./a.db").contains("the database itself"));
    assert_eq!(bench.names(), ["a.db", "folder", "out.csv", "rows.csv"]);
}

#[test]
fn a_full_disk_is_told() {
    let bench = Bench::with_database("--key text --value text");
    bench.write("rows.csv", rows(1000));
    bench.done("import a.db rows.csv");
    let error = bench.failed("export a.db /dev/full");
    assert!(error.contains("/dev/full") && error.contains("space"), "{error}");
    let full = fs::File::options().write(true).open("/dev/full").unwrap();
    let output = bench.command(&["export", "a.db", "-"]).stdout(full).output().unwrap();
    assert!(complaint(&output, 1).contains("space"));
}
