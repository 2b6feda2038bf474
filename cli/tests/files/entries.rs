//! `create`, `put`, `get`, `delete` and `scan`.

use std::io::{BufRead, BufReader, Read};

use crate::bench::{Bench, complaint, rows, text};

#[test]
fn an_entry_is_put_got_and_deleted() {
    let bench = Bench::with_database("--key text --value text");
    assert_eq!(bench.done("put a.db apple red"), "");
    assert_eq!(bench.done("get a.db apple"), "red\n");
    bench.done("put a.db apple green");
    assert_eq!(bench.done("get a.db apple"), "green\n");
    bench.done("delete a.db apple");
    bench.done("delete a.db apple");
    // No entry has a key as long as that.
    bench.done(&format!("delete a.db {}", "a".repeat(5000)));
    assert_eq!(bench.names(), ["a.db"]);
}

#[test]
fn an_absent_key_has_an_empty_output_and_exit_code_1() {
    let bench = Bench::with_database("");
    for line in [&["get", "a.db", "x"][..], &["get", "a.db", "x", "--raw"]] {
        let output = bench.command(line).output().unwrap();
        assert_eq!(output.status.code(), Some(1));
        assert!(output.stdout.is_empty() && output.stderr.is_empty());
    }
}

#[test]
fn bytes_of_every_value_go_in_and_come_out() {
    let bench = Bench::with_database("");
    bench.output(&["put", "a.db", r"\x00\xff\x0a", r"a\\b"]);
    bench.output(&["put", "a.db", "", "the empty key"]);
    assert_eq!(bench.output(&["get", "a.db", r"\x00\xFF\x0a"]), "a\\\\b\n");
    assert_eq!(bench.done("scan a.db"), "\tthe empty key\n\\x00\\xff\\x0a\ta\\\\b\n");
    let all: Vec<u8> = (0..=255).collect();
    let put = bench.fed(&["put", "a.db", "all", "--input", "-"], &all);
    assert!(put.status.success());
    let got = bench.command(&["get", "a.db", "all", "--raw"]).output().unwrap();
    assert_eq!(got.stdout, all);
    let bad = bench.command(&["put", "a.db", r"\xg", "x"]).output().unwrap();
    assert!(complaint(&bad, 2).contains("\\xHH"));
}

#[test]
fn a_value_of_a_mebibyte_and_more_goes_in_and_comes_out() {
    let bench = Bench::with_database("");
    let long: Vec<u8> = (0..3_000_000_u32).map(|place| (place % 251) as u8).collect();
    bench.write("long", &long);
    bench.done("put a.db long --input long");
    let got = bench.command(&["get", "a.db", "long", "--raw"]).output().unwrap();
    assert!(got.stdout == long);
    // Longer than the journal can become.
    let most = bench.json("stat a.db")["journal_bytes_most"].as_u64().unwrap();
    bench.write("longer", vec![7; 20_000_000]);
    bench.done("put a.db longer --input longer");
    bench.write("rows.csv", format!("key,value\na,1\nb,{}\n", "x".repeat(most as usize)));
    bench.done("import a.db rows.csv");
    assert_eq!(bench.json("stat a.db")["entries"], 4);
    bench.done("delete a.db longer");
    bench.done("delete a.db a");
    bench.done("delete a.db b");
    assert!(bench.failed(&format!("put a.db {} v", "k".repeat(3000))).contains("key"));
    assert!(bench.done("check a.db").contains("all is well"));
    assert_eq!(bench.json("scan a.db --limit 9").as_array().unwrap().len(), 1);
}

#[test]
fn an_input_without_end_is_refused() {
    for options in ["--size 32MiB", "--value u64 --size 1MiB"] {
        let bench = Bench::with_database(options);
        let error = bench.failed("put a.db k --input /dev/zero");
        assert!(error.contains("/dev/zero has more than"), "{error}");
        let output = bench.command(&["put", "a.db", "k", "--input", "-"]);
        let zeros = std::fs::File::open("/dev/zero").unwrap();
        let output = { output }.stdin(zeros).output().unwrap();
        assert!(complaint(&output, 1).contains("standard input has more than"));
        assert_eq!(bench.done("scan a.db"), "");
    }
}

#[test]
fn every_type_is_in_its_order() {
    for (kind, sorted) in [
        ("i64", &["-9223372036854775808", "-1", "0", "7"][..]),
        ("u64", &["0", "9", "10", "18446744073709551615"]),
        ("f64", &["-inf", "-1.5", "0.25", "12345678.5"]),
        ("text", &["Z", "a", "ab", "é"]),
        ("hex", &["00", "00ff", "ff"]),
        ("time", &["1969-12-31T23:59:59Z", "2013-01-01T10:00:00Z", "2013-01-01T10:00:00.5Z"]),
        ("tuple(text,i64)", &[r#"["",5]"#, r#"["a",-5]"#, r#"["a",5]"#, r#"["ab",0]"#]),
    ] {
        let bench = Bench::new();
        bench.output(&["create", "a.db", "--key", kind, "--value", "text"]);
        for key in sorted.iter().rev() {
            bench.output(&["put", "a.db", "--", key, "v"]);
        }
        let keys = |text: String| -> Vec<String> {
            text.lines().map(|line| line.trim_end_matches("\tv").to_owned()).collect()
        };
        let found = keys(bench.done("scan a.db"));
        assert_eq!(found, sorted, "{kind}");
        let last_first: Vec<_> = sorted.iter().rev().copied().collect();
        assert_eq!(keys(bench.done("scan a.db --reverse")), last_first, "{kind}");
        let from = bench.output(&["scan", "a.db", "--from", sorted[1], "--to", sorted[2]]);
        assert_eq!(keys(from), [sorted[1]], "{kind}");
        let bad = bench.command(&["put", "a.db", "[", "v"]).output().unwrap();
        if kind != "text" {
            assert!(complaint(&bad, 2).contains(kind), "{kind}");
        }
    }
}

#[test]
fn a_scan_takes_bounds_prefixes_and_a_limit() {
    let bench = Bench::with_database("--key text --value text");
    for key in ["a", "ab", "abc", "b"] {
        bench.done(&format!("put a.db {key} {key}{key}"));
    }
    let keys = |line: &str| bench.done(line).lines().count();
    assert_eq!(keys("scan a.db --prefix ab"), 2);
    assert_eq!(keys("scan a.db --from ab --to b"), 2);
    assert_eq!(keys("scan a.db --limit 3"), 3);
    assert_eq!(keys("scan a.db --limit 0"), 0);
    assert_eq!(bench.done("scan a.db --prefix ab --reverse --limit 1"), "abc\tabcabc\n");
    assert_eq!(bench.done("scan a.db --from b --to a"), "");
    let json = bench.json("scan a.db --from ab --limit 1");
    assert_eq!(json, serde_json::json!([{ "key": "ab", "value": "abab" }]));
    assert_eq!(bench.json("scan a.db --prefix x"), serde_json::json!([]));
    assert!(bench.wrong("scan a.db --prefix a --from a").contains("--from"));
    assert!(bench.wrong("scan a.db --limit -1").contains("--limit"));
}

#[test]
fn a_prefix_of_a_tuple_is_its_first_components() {
    let bench = Bench::new();
    bench.output(&["create", "a.db", "--key", "tuple(text,i64)", "--value", "f64"]);
    for (key, value) in [(r#"["EWR",1]"#, "1.5"), (r#"["EWR",2]"#, "-3"), (r#"["LGA",1]"#, "0")] {
        bench.output(&["put", "a.db", key, value]);
    }
    let found = bench.output(&["scan", "a.db", "--prefix", r#"["EWR"]"#]);
    assert_eq!(found, "[\"EWR\",1]\t1.5\n[\"EWR\",2]\t-3\n");
    let numbers = Bench::with_database("--key u64");
    assert!(numbers.wrong("scan a.db --prefix 1").contains("--from"));
}

#[test]
fn a_reader_that_goes_away_is_no_failure() {
    let bench = Bench::with_database("--key text --value text");
    bench.write("rows.csv", rows(20_000));
    bench.done("import a.db rows.csv --quiet");
    for line in
        [&["scan", "a.db"][..], &["scan", "a.db", "--format", "json"], &["export", "a.db", "-"]]
    {
        let mut child = bench.start(line);
        let mut first = String::new();
        let mut out = BufReader::with_capacity(64, child.stdout.take().unwrap());
        out.read_line(&mut first).unwrap();
        drop(out);
        let mut error = String::new();
        child.stderr.take().unwrap().read_to_string(&mut error).unwrap();
        assert!(!first.is_empty() && error.is_empty(), "{line:?}: {error}");
        assert_eq!(child.wait().unwrap().code(), Some(0), "{line:?}");
    }
}

#[test]
fn every_option_of_create_reaches_the_database() {
    let bench = Bench::new();
    let line = "create a.db --tree b-plus:fill=70 --key u64 --value hex --page 8KiB \
                --memory-total 256KiB --durability every --size 16MiB";
    assert_eq!(bench.done(line), "");
    let stat = bench.json("stat a.db --memory-total 256KiB");
    assert_eq!(stat["tree"], "b-plus");
    assert_eq!((&stat["key"], &stat["value"]), (&"u64".into(), &"hex".into()));
    assert_eq!((&stat["page_bytes"], &stat["durability"]), (&8192.into(), &"every".into()));
    assert_eq!(stat["capacity_bytes"], 16 << 20);
    assert!(stat["memory_bytes"].as_u64().unwrap() <= 256 << 10);
    for durability in ["none", "checkpoint", "batch"] {
        bench.done(&format!("create a.db --durability {durability} --overwrite"));
        bench.done("put a.db k v");
        assert_eq!(bench.json("stat a.db")["durability"], durability);
        assert_eq!(bench.done("get a.db k"), "v\n");
    }
    assert_eq!(bench.names(), ["a.db"]);
}

#[test]
fn a_path_may_hold_colons_and_words_of_the_grammar() {
    let bench = Bench::new();
    bench.done("create file:nand-file:x");
    bench.done("put file:nand-file:x k v");
    assert_eq!(bench.done("get ./nand-file:x k"), "v\n");
    assert_eq!(bench.names(), ["nand-file:x"]);
    let help = bench.command(&["create", "--help"]).output().unwrap();
    assert!(text(&help.stdout).contains("tuple(TYPE,...)"));
}

#[test]
fn a_key_too_long_is_told_the_longest_that_its_tree_takes() {
    let bench = Bench::new();
    let put = |file: &str, bytes: usize| format!("put {file} {} v", "k".repeat(bytes));
    // Larger pages than these there are none.
    bench.done("create a.db --tree b-plus --page 32KiB");
    bench.done(&put("a.db", 8174));
    assert!(bench.failed(&put("a.db", 8175)).ends_with("has at most 8174; shorten it\n"));
    bench.done("create b.db --tree b-plus");
    assert!(bench.failed(&put("b.db", 8159)).contains("--page 32KiB"));
    let refused = bench.failed(&put("b.db", 8160));
    assert!(refused.ends_with("and about 8160 with pages of 32 KiB; shorten it\n"), "{refused}");
    // Of all levels of a path, the smallest part of a page counts.
    bench.done("create nand-file:c.db --tree mu --chip winbond-w25n01gv:blocks=64");
    bench.done(&put("nand-file:c.db", 49));
    for bytes in [50, 300] {
        assert!(bench.failed(&put("nand-file:c.db", bytes)).contains("has at most 49;"));
    }
}
