//! `export`.

use std::fs;

use crate::bench::{Bench, complaint, rows, text};

#[test]
fn what_is_exported_makes_the_same_database_again() {
    for (kind, keys) in [
        ("bytes", &[r"\x00\xff", "a,b", "\"", " c ", r"\\x41", r"\\\\", r"a\x00", r"\x0d\x0a"][..]),
        ("hex", &["00ff", "10"]),
        (
            "text",
            &["", "two\nlines", "é", "a\tb", r"a\tb", r"\x41", "\u{0}", "a\u{0},\"\r", "\u{FEFF}"],
        ),
        ("f64", &["-0.1", "1e300"]),
        ("time", &["2013-01-01T10:00:00.000000001Z"]),
        ("tuple(bytes,i64)", &[r#"["a\\x00",-1]"#, r#"["b",2]"#]),
    ] {
        for name in ["rows.csv", "rows.tsv.zst", "rows.jsonl"] {
            let bench = Bench::new();
            bench.output(&["create", "a.db", "--key", kind, "--value", kind]);
            bench.output(&["create", "b.db", "--key", kind, "--value", kind]);
            // Not every key can be an argument of a command line.
            let json = |text: &str| match kind.starts_with("tuple") {
                true => text.to_owned(),
                false => serde_json::to_string(text).unwrap(),
            };
            let row =
                |key: &&str| format!("{{\"key\":{},\"value\":{}}}\n", json(key), json(keys[0]));
            bench.write("in.jsonl", keys.iter().map(row).collect::<String>());
            bench.done("import a.db in.jsonl");
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
    for line in [&["export", "a.db", "-"][..], &["help"]] {
        let full = fs::File::options().write(true).open("/dev/full").unwrap();
        let output = bench.command(line).stdout(full).output().unwrap();
        assert!(complaint(&output, 1).contains("space"), "{line:?}");
    }
}

#[test]
fn another_database_is_never_written_over() {
    let bench = Bench::with_database("");
    bench.done("put a.db k v");
    bench.done("create b.db");
    bench.done("put b.db other value");
    bench.done("create nand-file:chip.db --chip winbond-w25n01gv:blocks=64");
    std::os::unix::fs::symlink("b.db", bench.path("link.csv")).unwrap();
    for name in ["b.db", "chip.db", "link.csv"] {
        let error = bench.wrong(&format!("export a.db {name}"));
        assert!(error.contains("a flashtree database") && error.contains(name), "{error}");
    }
    assert_eq!(bench.done("get b.db other"), "value\n");
    // What is none is replaced, whatever its length.
    for length in [0, 1, 511, 512, 4096, 65_536, 1 << 20, (1 << 20) + 1] {
        bench.write("out.csv", vec![b'x'; length]);
        bench.done("export a.db out.csv");
        assert_eq!(bench.read("out.csv"), "key,value\nk,v\n", "{length}");
    }
}

#[test]
fn columns_of_one_name_are_refused() {
    let bench = Bench::new();
    bench.output(&["create", "a.db", "--key", "tuple(text,text)", "--value", "text"]);
    bench.output(&["put", "a.db", r#"["1","2"]"#, "3"]);
    for line in ["--key a,b --value a", "--key a,a", "--value key --key key,x"] {
        for format in ["jsonl", "csv"] {
            let error = bench.wrong(&format!("export a.db - --format {format} {line}"));
            assert!(error.contains("two columns are called"), "{error}");
        }
    }
}

#[test]
fn tuples_within_tuples_and_numbers_of_every_size_come_back() {
    let bench = Bench::new();
    let kind = "tuple(tuple(text),tuple(f64,bytes),f64)";
    bench.output(&["create", "a.db", "--key", kind, "--value", "tuple(text)"]);
    bench.output(&["create", "b.db", "--key", kind, "--value", "tuple(text)"]);
    for number in ["1e308", "-5e-324", "0.1", "1e15", "123456789012345680000"] {
        let key = format!(r#"[["a"],[{number},"b"],{number}]"#);
        bench.output(&["put", "a.db", &key, r#"["x,y"]"#]);
    }
    for line in ["", "--key a,b,c", "--key a,b,c --format jsonl"] {
        bench.done(&format!("export a.db rows {line}"));
        bench.done(&format!("import b.db rows {line} --quiet"));
        assert_eq!(bench.json("scan a.db"), bench.json("scan b.db"), "{line}");
    }
    let rows = bench.done("export a.db - --key a,b,c --quiet");
    assert!(rows.contains(r#""[""a""]","[1e+308,""b""]",1e308,"x,y""#), "{rows}");
    assert!(bench.wrong("put a.db [[\"a\"],[1,\"b\"],\"1e400\"] x").contains("1e400"));
}
