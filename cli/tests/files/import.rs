//! `import`.

use std::fs;
use std::io::Write;
use std::process::{Child, Command};
use std::time::Duration;

use crate::bench::{Bench, complaint, rows, text};

const TEXTS: &str = "--key text --value text";

/// Exports `a.db` as CSV.
fn exported(bench: &Bench) -> String {
    bench.done("export a.db - --quiet")
}

#[test]
fn rows_go_in_and_come_out_in_order() {
    let bench = Bench::with_database(TEXTS);
    bench.write("rows.csv", "key,value\nb,2\na,1\nc,\"3, and \"\"more\"\"\nin two lines\"\n");
    bench.done("import a.db rows.csv");
    let expected = "key,value\na,1\nb,2\nc,\"3, and \"\"more\"\"\nin two lines\"\n";
    assert_eq!(exported(&bench), expected);
    assert_eq!(bench.names(), ["a.db", "rows.csv"]);
}

#[test]
fn of_several_rows_with_one_key_the_last_counts_whatever_the_buffer() {
    let bench = Bench::with_database(TEXTS);
    let row = |number: usize| format!("k{},{number}\n", number * 7 % 500);
    let all: String = (0..5000).map(row).collect();
    bench.write("rows.csv", format!("key,value\n{all}"));
    bench.done("import a.db rows.csv --buffer 1KiB");
    let mut expected = std::collections::BTreeMap::new();
    for line in all.lines() {
        let (key, value) = line.split_once(',').unwrap();
        expected.insert(key, value);
    }
    let expected: String =
        expected.into_iter().map(|(key, value)| format!("{key},{value}\n")).collect();
    assert_eq!(exported(&bench), format!("key,value\n{expected}"));
}

#[test]
fn standard_input_is_read_to_its_end() {
    let bench = Bench::with_database(TEXTS);
    let output = bench.fed(&["import", "a.db", "-"], rows(3000).as_bytes());
    assert!(output.status.success());
    assert!(text(&output.stderr).contains("3,000 rows imported"));
    assert_eq!(exported(&bench), rows(3000));
    let lines = "{\"key\":\"x\",\"value\":\"y\"}\n\n{\"value\":1,\"key\":2}\n";
    let json =
        bench.fed(&["import", "a.db", "-", "--format", "jsonl", "--quiet"], lines.as_bytes());
    assert!(json.status.success() && json.stderr.is_empty());
    assert_eq!(bench.done("get a.db x"), "y\n");
    assert_eq!(bench.done("get a.db 2"), "1\n");
}

#[test]
fn columns_are_chosen_by_name_and_number() {
    let bench = Bench::new();
    bench.output(&["create", "a.db", "--key", "tuple(text,u64)", "--value", "tuple(i64,f64)"]);
    bench.write("rows.csv", "\u{FEFF}delay,tail,speed\n-3,N1,1.5\n7,N2,2\n");
    bench.done("import a.db rows.csv --key tail,@row --value delay,speed");
    let json = bench.json("scan a.db");
    assert_eq!(json[1], serde_json::json!({ "key": ["N2", 1], "value": [7, 2.0] }));
    bench.write("bare.csv", "9,N3,8,0.5\n");
    bench.done("import a.db bare.csv --no-header --key 2,3 --value 1,4");
    let found = bench.output(&["get", "a.db", r#"["N3",8]"#]);
    assert_eq!(found, "[9,0.5]\n");
    bench.write("arrays.csv", "k,v\n\"[\"\"N4\"\",1]\",\"[1,2]\"\n");
    bench.done("import a.db arrays.csv");
    assert_eq!(bench.output(&["get", "a.db", r#"["N4",1]"#]), "[1,2.0]\n");
}

#[test]
fn the_shipped_departures_are_read_compressed() {
    let bench = Bench::with_database("--key tuple(text,time,u64) --value text");
    let data = concat!(env!("CARGO_MANIFEST_DIR"), "/../data/nyc_weather_2013.csv.zst");
    bench.done(&format!("import a.db {data} --key origin,time_hour,@row --value temp"));
    assert_eq!(bench.json("stat a.db")["entries"], 26_115);
    assert!(bench.done("check a.db").contains("all is well"));
}

#[test]
fn a_bad_row_is_named_and_the_rows_before_it_are_in() {
    for (kind, bad, word) in [
        ("u64", "seven,x\n", "seven"),
        ("u64", "7\n", "1 field where the first line has 2"),
        ("u64", "-7,x\n", "-7"),
        ("time", "2013-02-30T00:00:00Z,x\n", "2013-02-30"),
        ("text", "\u{0}", "a NUL byte"),
    ] {
        let bench = Bench::with_database(&format!("--key {kind} --value text"));
        let good = if kind == "time" { "2013-01-01T00:00:00Z" } else { "5" };
        bench.write("rows.csv", format!("key,value\n{good},first\n{bad}\n{good},last\n"));
        let error = bench.failed("import a.db rows.csv");
        assert!(error.contains("rows.csv, line 3") && error.contains(word), "{kind}: {error}");
        assert!(error.contains("the first row is imported for good"), "{error}");
        assert_eq!(bench.done(&format!("get a.db {good}")), "first\n");
        // Mended, it goes on where it stopped.
        bench.write("rows.csv", format!("key,value\n{good},first\n{good},last\n"));
        let resumed = bench.command(&["import", "a.db", "rows.csv", "--resume"]).output().unwrap();
        assert!(text(&resumed.stderr).contains("behind row 1"), "{}", text(&resumed.stderr));
        assert_eq!(bench.done(&format!("get a.db {good}")), "last\n");
        assert_eq!(bench.names(), ["a.db", "rows.csv"]);
    }
}

#[test]
fn rows_of_bytes_that_are_no_text_go_in_unless_text_is_wanted() {
    let bench = Bench::with_database("");
    bench.write("rows.csv", b"key,value\n\xFF\x80,\"\x01\x00\"\n");
    bench.done("import a.db rows.csv");
    assert_eq!(bench.output(&["get", "a.db", r"\xff\x80"]), "\\x01\\x00\n");
    let texts = Bench::with_database(TEXTS);
    texts.write("rows.csv", b"key,value\n\xFF\x80,x\n");
    assert!(texts.failed("import a.db rows.csv").contains("line 2"));
}

#[test]
fn an_input_that_is_none_is_refused() {
    let bench = Bench::with_database(TEXTS);
    bench.write("empty.csv", "");
    assert!(bench.failed("import a.db empty.csv").contains("empty"));
    bench.write("three.csv", "station,time,temp\na,b,c\n");
    assert!(bench.wrong("import a.db three.csv").contains("station, time, temp"));
    let near = bench.wrong("import a.db three.csv --key statoin --value temp");
    assert!(near.contains("did you mean station?"), "{near}");
    let count = bench.wrong("import a.db three.csv --key station,time --value temp");
    assert!(count.contains("2 columns") && count.contains("text"), "{count}");
    assert!(bench.failed("import a.db no.csv").contains("no.csv"));
    assert!(bench.failed("import a.db .").contains("folder"));
    assert!(bench.wrong("import a.db a.db").contains("the database itself"));
    assert!(bench.wrong("import a.db three.csv --buffer 2GiB").contains("1GiB"));
    assert!(bench.wrong("import a.db three.csv --format xml").contains("jsonl"));
    bench.write("bad.jsonl", "{\"key\":\"a\",\"value\":\"b\"}\n[1]\n");
    assert!(bench.failed("import a.db bad.jsonl").contains("line 2: this is no JSON object"));
    bench.write("torn.jsonl", "{\"key\":");
    assert!(bench.failed("import a.db torn.jsonl --quiet").contains("line 1: this is no JSON"));
    bench.write("less.jsonl", "{\"key\":\"a\"}\n");
    assert!(bench.failed("import a.db less.jsonl --quiet").contains("value"));
    bench.write("torn.zst", b"\x28\xB5\x2F\xFD\x00\x00");
    bench.failed("import a.db torn.zst --quiet");
    assert!(bench.done("check a.db").contains("all is well"));
}

#[test]
fn a_file_without_lines_does_not_fill_the_memory() {
    let bench = Bench::with_database(TEXTS);
    let error = bench.failed("import a.db /dev/zero");
    assert!(error.contains("line 1: a NUL byte"), "{error}");
    bench.write("long.csv", "x".repeat(65 << 20));
    let error = bench.failed("import a.db long.csv");
    assert!(error.contains("a row of more than 64 MiB"), "{error}");
}

#[test]
fn a_row_that_the_database_cannot_take_is_named() {
    let bench = Bench::with_database(TEXTS);
    let long = "k".repeat(5000);
    bench.write("rows.csv", format!("key,value\na,1\nb,2\n{long},3\nc,4\n"));
    let error = bench.failed("import a.db rows.csv");
    assert!(error.contains("line 4") && error.contains("import again"), "{error}");
    bench.write("rows.csv", format!("key,value\na,1\nb,{}\n", "v".repeat(2_000_000)));
    bench.done("import a.db rows.csv");
    assert_eq!(bench.json("stat a.db")["entries"], 3);
    assert_eq!(bench.done("get a.db c"), "4\n");
}

/// Waits until the import in `child` has called rows safe.
fn wait_for_bookmark(bench: &Bench, child: &mut Child) {
    for _ in 0..6000 {
        if bench.path("a.db.import").exists() {
            return;
        }
        assert!(child.try_wait().unwrap().is_none(), "the import ended");
        std::thread::sleep(Duration::from_millis(10));
    }
    panic!("no row was ever safe");
}

/// An import out of a pipe that has got `input`, and calls some of it safe.
fn begun(bench: &Bench, input: &str) -> Child {
    let line = ["import", "a.db", "-", "--buffer", "64KiB"];
    let mut child = bench.start(&line);
    child.stdin.as_mut().unwrap().write_all(input.as_bytes()).unwrap();
    wait_for_bookmark(bench, &mut child);
    child
}

#[test]
fn a_killed_import_goes_on_where_it_was() {
    let bench = Bench::with_database(TEXTS);
    let all = rows(20_000);
    let mut child = begun(&bench, &all[..all.len() / 2]);
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(bench.done("check a.db").contains("all is well"));
    let safe: serde_json::Value = serde_json::from_str(&bench.read("a.db.import")).unwrap();
    let safe = safe["rows"].as_u64().unwrap() as usize;
    assert!(safe > 0 && exported(&bench).starts_with(&rows(safe)), "{safe}");

    bench.write("other.csv", all.replace("value of 7\n", "value of 8\n"));
    let other = bench.failed("import a.db other.csv --resume");
    assert!(other.contains("not those that were imported"), "{other}");
    bench.write("rows.csv", &all);
    bench.done("import a.db rows.csv --resume");
    assert_eq!(exported(&bench), all);
    assert!(!bench.path("a.db.import").exists());
}

#[test]
fn ctrl_c_ends_an_import_and_says_how_it_goes_on() {
    let bench = Bench::with_database(TEXTS);
    let all = rows(20_000);
    let mut child = begun(&bench, &all[..all.len() / 2]);
    let interrupted = Command::new("kill").args(["-INT", &child.id().to_string()]).status();
    assert!(interrupted.unwrap().success());
    drop(child.stdin.take());
    let output = child.wait_with_output().unwrap();
    let error = complaint(&output, 130);
    assert!(error.contains("interrupted") && error.contains("--resume"), "{error}");
    bench.write("rows.csv", &all);
    // Without --resume it begins anew, which comes to the same.
    let anew = bench.command(&["import", "a.db", "rows.csv"]).output().unwrap();
    assert!(text(&anew.stderr).contains("begins anew"), "{}", text(&anew.stderr));
    assert_eq!(exported(&bench), all);
}

#[test]
fn a_rollback_is_nothing_that_an_import_goes_on_from() {
    let bench = Bench::with_database(TEXTS);
    bench.done("checkpoint a.db empty");
    bench.write("rows.csv", "key,value\na,1\nb\n");
    bench.failed("import a.db rows.csv");
    assert!(bench.path("a.db.import").exists());
    bench.done("rollback a.db empty");
    assert!(!bench.path("a.db.import").exists());
    bench.write("rows.csv", "key,value\na,1\nb,2\n");
    bench.done("import a.db rows.csv --resume");
    assert_eq!(exported(&bench), "key,value\na,1\nb,2\n");
}

#[test]
fn a_full_database_keeps_what_it_has_and_can_be_emptied() {
    let bench = Bench::with_database("--key text --value text --size 2MiB");
    bench.write("rows.csv", rows(100_000));
    let error = bench.failed("import a.db rows.csv --buffer 256KiB");
    assert!(error.contains("room") || error.contains("full"), "{error}");
    let safe: serde_json::Value = serde_json::from_str(&bench.read("a.db.import")).unwrap();
    let safe = safe["rows"].as_u64().unwrap() as usize;
    assert!(safe > 1000 && exported(&bench).starts_with(&rows(safe)), "{safe}");
    assert!(bench.done("check a.db").contains("all is well"));
    bench.failed("put a.db x --input rows.csv");
    for key in ["key000000", "key000001", "key000002"] {
        bench.done(&format!("delete a.db {key}"));
        assert_eq!(bench.command(&["get", "a.db", key]).output().unwrap().status.code(), Some(1));
    }
    assert!(bench.done("check a.db").contains("all is well"));
}

#[test]
fn an_import_that_was_broken_off_is_told_of_only_where_another_begins() {
    let bench = Bench::with_database("");
    bench.write("rows.csv", "key,value\na,1\nb\n");
    bench.failed("import a.db rows.csv");
    bench.write("none.csv", "");
    bench.write("which.csv", "a,b,c\n1,2,3\n");
    for other in ["none.csv", "which.csv"] {
        let output = bench.command(&["import", "a.db", other]).output().unwrap();
        assert!(!output.status.success());
        let told = text(&output.stderr);
        assert!(!told.contains("broken off"), "{told}");
    }
    bench.write("mended.csv", "key,value\na,1\nb,2\n");
    let output = bench.command(&["import", "a.db", "mended.csv"]).output().unwrap();
    let told = text(&output.stderr);
    assert!(output.status.success() && told.contains("broken off after 1 row"), "{told}");
}

#[test]
fn digits_of_json_are_taken_as_they_are_written() {
    let bench = Bench::with_database("--key text --value text");
    bench.write(
        "rows.jsonl",
        "{\"key\":123456789012345678901,\"value\":10.50}\n\
         {\"key\":123456789012345678902,\"value\":1E+3}\n",
    );
    bench.done("import a.db rows.jsonl");
    assert_eq!(bench.done("get a.db 123456789012345678901"), "10.50\n");
    assert_eq!(bench.done("get a.db 123456789012345678902"), "1E+3\n");
    let bench = Bench::with_database("--key u64 --value f64");
    bench.write(
        "rows.jsonl",
        "{\"key\":1,\"value\":1}\n{\"key\":18446744073709551616,\"value\":1}\n",
    );
    let error = bench.failed("import a.db rows.jsonl");
    assert!(error.contains("line 2") && error.contains("18446744073709551616"), "{error}");
    bench.done("create a.db --overwrite --key u64 --value f64");
    bench.write("rows.jsonl", "{\"key\":1,\"value\":1}\n{\"key\":2,\"value\":1e-400}\n");
    let error = bench.failed("import a.db rows.jsonl");
    assert!(error.contains("line 2") && error.contains("1e-400"), "{error}");
    bench.done("create a.db --overwrite --key u64 --value f64");
    bench.write("rows.jsonl", "{\"key\":1,\"value\":1,\"key\":2}\n");
    let error = bench.failed("import a.db rows.jsonl");
    assert!(error.contains("two members \"key\""), "{error}");
}

#[test]
fn of_two_rows_with_one_key_the_last_stays_though_the_first_is_empty() {
    let bench = Bench::with_database("");
    bench.write("rows.csv", "key,value\n,\n,x\n");
    bench.done("import a.db rows.csv");
    assert_eq!(bench.output(&["get", "a.db", ""]), "x\n");
}

#[test]
fn what_a_type_cannot_represent_is_refused_with_its_line() {
    for (kind, key, said) in [
        ("time", "2016-12-31T23:59:60Z", "leap second"),
        ("f64", "1e-400", "1e-400"),
        ("f64", "1e400", "1e400"),
        ("i64", "9223372036854775808", "9223372036854775808"),
    ] {
        let bench = Bench::with_database(&format!("--key {kind}"));
        bench.write("rows.csv", format!("key,value\n{key},a\n"));
        let error = bench.failed("import a.db rows.csv");
        assert!(error.contains("line 2") && error.contains(said), "{error}");
    }
    let bench = Bench::with_database("--key f64");
    bench.write("rows.csv", "key,value\n-0,a\n0,b\n");
    bench.done("import a.db rows.csv");
    assert_eq!(bench.json("stat a.db")["entries"], 1);
    assert_eq!(bench.output(&["get", "a.db", "--", "-0"]), "b\n");
}

#[test]
fn rows_that_would_be_misread_are_refused() {
    let bench = Bench::with_database("");
    bench.write("twice.csv", "key,value,key\na,b,c\n");
    let error = bench.wrong("import a.db twice.csv");
    assert!(error.contains("two columns are called \"key\""), "{error}");
    for (text, encoding) in [
        (&b"\xFF\xFEk\0,\0v\0\n\0"[..], "UTF-16"),
        (b"\xFE\xFF\0k\0,\0v\0\n", "UTF-16"),
        (b"\xFF\xFE\0\0k\0\0\0", "UTF-32"),
        (b"\0\0\xFE\xFF\0\0\0k", "UTF-32"),
    ] {
        bench.write("wide.csv", text);
        let error = bench.failed("import a.db wide.csv");
        assert!(error.contains(&format!("it is {encoding}")), "{error}");
    }
    for name in ["rows.csv.gz", "rows.csv.zst"] {
        bench.write(name, "key,value\na,b\n");
        let error = bench.failed(&format!("import a.db {name}"));
        assert!(error.contains("its name says that it is compressed"), "{error}");
    }
    assert_eq!(bench.json("stat a.db")["entries"], 0);
}

#[test]
fn the_ending_of_a_name_decides_how_rows_are_compressed_and_divided() {
    let bench = Bench::with_database("--key text --value text");
    bench.write("rows.csv", "key,value\n\"a,b\",\"tab\there\"\nsecond,2\n");
    bench.done("import a.db rows.csv");
    for name in ["rows.csv.gz", "rows.csv.zst", "rows.tsv", "rows.tsv.gz", "rows.jsonl.zst"] {
        bench.done(&format!("export a.db {name}"));
        let written = fs::read(bench.path(name)).unwrap();
        match name.rsplit('.').next().unwrap() {
            "gz" => assert!(written.starts_with(&[0x1F, 0x8B]), "{name}"),
            "zst" => assert!(written.starts_with(&[0x28, 0xB5, 0x2F, 0xFD]), "{name}"),
            _ => assert_eq!(bench.read(name), "key\tvalue\na,b\t\"tab\there\"\nsecond\t2\n"),
        }
        bench.done("create b.db --overwrite --key text --value text");
        bench.done(&format!("import b.db {name}"));
        assert_eq!(bench.done("scan b.db"), bench.done("scan a.db"), "{name}");
    }
    bench.done("export a.db piped.txt --delimiter |");
    assert!(bench.read("piped.txt").starts_with("key|value\na,b|"));
    bench.done("create b.db --overwrite --key text --value text");
    bench.done("import b.db piped.txt --delimiter |");
    assert_eq!(bench.done("scan b.db"), bench.done("scan a.db"));
}

#[test]
fn a_column_of_keys_alone_gives_empty_values() {
    let bench = Bench::with_database("--key u64");
    bench.write("ids.csv", "id\n3\n1\n");
    bench.done("import a.db ids.csv");
    assert_eq!(bench.json("stat a.db")["entries"], 2);
    assert_eq!(bench.done("get a.db 3"), "\n");
    bench.write("more.csv", "id,name\n7,x\n");
    bench.output(&["import", "a.db", "more.csv", "--key", "id", "--value", ""]);
    assert_eq!(bench.done("get a.db 7"), "\n");
}

#[test]
fn a_byte_order_mark_stands_for_nothing() {
    for (name, text) in [
        ("rows.csv", "\u{FEFF}\"key\",value\na,b\n"),
        ("bare.csv", "\u{FEFF}a,b\n"),
        ("rows.jsonl", "\u{FEFF}{\"key\":\"a\",\"value\":\"b\"}\n"),
    ] {
        let bench = Bench::with_database(TEXTS);
        bench.write(name, text);
        let header = if name == "bare.csv" { "--no-header" } else { "" };
        bench.done(&format!("import a.db {name} {header}"));
        assert_eq!(exported(&bench), "key,value\na,b\n", "{name}");
    }
}

#[test]
fn one_column_that_seems_to_be_several_is_refused() {
    let bench = Bench::with_database(TEXTS);
    for (name, text, said) in [
        ("rows.csv", "key;value\na;b\n", "--delimiter ';'"),
        ("rows.csv", "key\tvalue\na\tb\n", "--delimiter 'tab'"),
        ("rows.tsv", "key,value\na,b\n", "--delimiter ','"),
    ] {
        bench.write(name, text);
        let error = bench.wrong(&format!("import a.db {name}"));
        assert!(error.contains(said), "{error}");
    }
    bench.write("rows.csv", "key;value\na;b\n");
    bench.done("import a.db rows.csv --delimiter ;");
    assert_eq!(bench.done("get a.db a"), "b\n");
    bench.done("import a.db rows.csv --delimiter ,");
    assert_eq!(bench.done("get a.db a;b"), "\n");
}

#[test]
fn gzip_that_is_damaged_or_cut_off_is_told() {
    let bench = Bench::with_database(TEXTS);
    bench.write("all.csv", rows(1000));
    bench.done("import a.db all.csv");
    bench.done("export a.db rows.csv.gz");
    let whole = fs::read(bench.path("rows.csv.gz")).unwrap();
    bench.write("torn.csv.gz", &whole[..whole.len() - 9]);
    assert!(bench.failed("import a.db torn.csv.gz --quiet").contains("are cut off"));
    let mut damaged = whole.clone();
    let sum = whole.len() - 8;
    damaged[sum] ^= 1;
    bench.write("damaged.csv.gz", damaged);
    assert!(bench.failed("import a.db damaged.csv.gz --quiet").contains("are damaged"));
    // Two files that were joined, the second without headings.
    bench.done("create b.db --key text --value text");
    bench.write("all.csv", "x,key\ny,value\n");
    bench.done("import b.db all.csv --no-header");
    bench.done("export b.db more.csv.gz");
    let more = fs::read(bench.path("more.csv.gz")).unwrap();
    bench.write("joined.csv.gz", [whole, more].concat());
    bench.done("import b.db joined.csv.gz");
    assert_eq!(bench.json("stat b.db")["entries"], 1003);
}

#[test]
fn compressions_and_delimiters_that_are_not_known_are_refused() {
    let bench = Bench::with_database(TEXTS);
    bench.write("rows.csv.xz", "\u{FD}7zXZ\0");
    for command in ["import", "export"] {
        let error = bench.failed(&format!("{command} a.db rows.csv.xz"));
        assert!(error.contains("ends in .xz"), "{error}");
    }
    bench.write("rows.jsonl", "");
    for command in ["import", "export"] {
        let error = bench.wrong(&format!("{command} a.db rows.jsonl --delimiter ;"));
        assert!(error.contains("JSON lines have none"), "{error}");
    }
    assert!(bench.wrong("export a.db rows.csv --delimiter ab").contains("one character"));
}

#[test]
fn a_bad_row_is_named_by_its_line_whatever_ends_the_lines() {
    for (text, line) in [
        ("key,value\r\n1,a\r\nx,b\r\n", 3),
        ("key,value\r\n1,a\r\n2\r\n", 3),
        ("key,value\n\n1,\"two\nlines\"\n\n\nx,b\n", 7),
        ("\r\nkey,value\r\n1,\"two\r\nlines\"\r\nx,b", 5),
    ] {
        let bench = Bench::with_database("--key u64 --value text");
        bench.write("rows.csv", text);
        let error = bench.failed("import a.db rows.csv");
        assert!(error.contains(&format!("rows.csv, line {line}: ")), "{text:?}: {error}");
    }
}

#[test]
fn rows_without_a_key_or_a_value_are_left_out_where_a_text_stands_for_none() {
    for (name, rows) in [
        ("a.csv", "key,value\n1,10\n2,NA\nNA,30\n4,40\n"),
        (
            "a.jsonl",
            "{\"key\":1,\"value\":10}\n{\"key\":2,\"value\":null}\n\
             {\"key\":\"NA\",\"value\":3}\n{\"key\":4,\"value\":40}\n",
        ),
    ] {
        let bench = Bench::with_database("--key u64 --value u64");
        bench.write(name, rows);
        assert!(bench.failed(&format!("import a.db {name}")).contains("value"));
        bench.done(&format!("import a.db {name} --null NA"));
        assert_eq!(bench.done("scan a.db"), "1\t10\n4\t40\n");
    }
}

#[test]
fn times_are_read_and_written_in_the_format_that_is_asked_for() {
    let bench = Bench::with_database("--key tuple(text,time) --value time");
    bench.write("a.csv", "who,at,until\nA,2013-01-01 10:00:00,2013-01-02 00:00:00.5\n");
    let columns = "--key who,at --value until";
    assert!(bench.failed(&format!("import a.db a.csv {columns}")).contains("RFC 3339"));
    bench.done(&format!("import a.db a.csv {columns} --time-format sqlite"));
    assert_eq!(
        bench.done("scan a.db"),
        "[\"A\",\"2013-01-01T10:00:00Z\"]\t2013-01-02T00:00:00.5Z\n"
    );
    bench.done(&format!("export a.db b.csv {columns} --time-format sqlite"));
    assert_eq!(bench.read("b.csv"), bench.read("a.csv"));
    let format = "%d.%m.%Y %H:%M:%S";
    bench.output(&["export", "a.db", "b.jsonl", "--key", "a,b", "--time-format", format]);
    assert!(bench.read("b.jsonl").contains("\"01.01.2013 10:00:00\""), "{}", bench.read("b.jsonl"));
    // An array in one column can be read again as any other.
    bench.output(&["export", "a.db", "d.jsonl", "--time-format", "%F %T%.f"]);
    bench.output(&["import", "a.db", "d.jsonl", "--time-format", "%F %T%.f"]);
    bench.done("create b.db --key tuple(text,time) --value time");
    let cut = ["export", "a.db", "c.jsonl", "--key", "who,at", "--time-format", "%F %T"];
    let said = bench.command(&cut).output().unwrap();
    assert!(said.status.success());
    assert!(text(&said.stderr).contains("--time-format %F %T left something out of 1 time:"));
    bench.output(&["import", "b.db", "c.jsonl", "--key", "who,at", "--time-format", "%F %T"]);
    assert!(bench.done("scan b.db").starts_with("[\"A\",\"2013-01-01T10:00:00Z\"]"));
    for format in ["%", "%!", "plain"] {
        let error = bench.wrong(&format!("import a.db a.csv --time-format {format}"));
        assert!(error.contains("--time-format"), "{error}");
    }
}
