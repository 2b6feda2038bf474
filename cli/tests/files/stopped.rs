//! Imports that can't go on, and what they say of the rows.

use crate::bench::{Bench, complaint, rows, text};

const TEXTS: &str = "--key text --value text";

#[test]
fn a_quote_that_is_not_closed_is_named_by_its_line_and_swallows_nothing() {
    let bench = Bench::with_database(TEXTS);
    for (content, line) in [
        ("key,value\n1,\"a\n2,b\n3,c\n", 2),
        ("key,value\n1,a\n\"2\"x,b\n3,c\n", 3),
        ("\"key,value\n1,a\n", 1),
    ] {
        bench.write("rows.csv", content);
        let error = bench.failed("import a.db rows.csv --quiet");
        assert!(error.contains(&format!("rows.csv, line {line}: ")), "{error}");
        assert!(error.contains("quote"), "{error}");
    }
    // What stands before it went in.
    assert_eq!(bench.done("export a.db - --quiet"), "key,value\n1,a\n");
    bench.write("rows.csv", format!("key,value\na,\"{}\n", "x,y\n".repeat(17 << 20)));
    let error = bench.failed("import a.db rows.csv --quiet");
    assert!(error.contains("line 2") && error.contains("not closed within 64 MiB"), "{error}");
}

#[test]
fn without_durability_all_rows_are_counted() {
    let bench = Bench::with_database("--key text --value text --durability none");
    bench.write("rows.csv", rows(3000));
    let output = bench.command(&["import", "a.db", "rows.csv", "--buffer", "16KiB"]).output();
    let remark = text(&output.unwrap().stderr);
    assert!(remark.contains("3,000 rows imported"), "{remark}");
}

#[test]
fn a_file_of_the_user_is_no_bookmark() {
    let bench = Bench::new();
    bench.write("a.db.import", "my notes");
    bench.done(&format!("create a.db {TEXTS}"));
    bench.write("rows.csv", rows(10));
    let error = bench.failed("import a.db rows.csv");
    assert!(error.contains("a.db.import") && error.contains("another name"), "{error}");
    bench.done("checkpoint a.db one");
    bench.done("rollback a.db one");
    assert_eq!(bench.read("a.db.import"), "my notes");
}

#[test]
fn a_bookmark_is_of_the_database_whatever_link_leads_there() {
    let bench = Bench::with_database(TEXTS);
    std::os::unix::fs::symlink("a.db", bench.path("link.db")).unwrap();
    bench.write("rows.csv", "key,value\na,1\nb\n");
    bench.failed("import link.db rows.csv");
    assert_eq!(bench.names(), ["a.db", "a.db.import", "link.db", "rows.csv"]);
    bench.write("rows.csv", "key,value\na,1\nb,2\n");
    let output = bench.command(&["import", "a.db", "rows.csv", "--resume"]).output().unwrap();
    assert!(text(&output.stderr).contains("behind row 1"), "{}", text(&output.stderr));
    assert_eq!(bench.names(), ["a.db", "link.db", "rows.csv"]);
}

#[test]
fn where_no_row_is_safe_there_is_nothing_to_resume_and_that_is_said() {
    let bench = Bench::with_database(TEXTS);
    bench.write("rows.csv", "key,value\na\n");
    let error = bench.failed("import a.db rows.csv");
    assert!(error.contains("line 2") && error.contains("import again"), "{error}");
    assert_eq!(bench.names(), ["a.db", "rows.csv"]);
    bench.write("rows.csv", "key,value\na,1\n");
    let output = bench.command(&["import", "a.db", "rows.csv", "--resume"]).output().unwrap();
    let remark = text(&output.stderr);
    assert!(output.status.success() && remark.contains("begins with the first row"), "{remark}");
}

#[test]
fn a_full_database_tells_what_went_in() {
    let bench = Bench::with_database("--tree b-plus --key text --value text --size 2MiB");
    bench.write("rows.csv", rows(100_000));
    let error = bench.failed("import a.db rows.csv");
    assert!(
        error.contains("full") && error.contains("of the rows that were read went in"),
        "{error}"
    );
    assert!(!bench.path("a.db.import").exists());
    let error = bench.failed("import a.db rows.csv");
    assert!(error.contains("none of the rows is safe yet"), "{error}");
    bench.done("create a.db --tree b-plus --key text --value text --size 2MiB --overwrite");
    let error = bench.failed("import a.db rows.csv --buffer 256KiB");
    assert!(error.contains("full") && error.contains("imported for good"), "{error}");
    assert!(error.contains("--resume"), "{error}");
}

/// A file of the shipped data.
const WEATHER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../data/nyc_weather_2013.csv.zst");
const COLUMNS: &str = "--no-header --key @row --value 1";

#[test]
fn compressed_files_that_were_joined_are_read_to_their_end() {
    let bench = Bench::with_database("--key u64 --value text");
    let one = std::fs::read(WEATHER).unwrap();
    // Between them a frame that is to be skipped.
    let skipped = [0x50, 0x2A, 0x4D, 0x18, 3, 0, 0, 0, 1, 2, 3];
    bench.write("two.zst", [&skipped[..], &one, &skipped, &one].concat());
    bench.done(&format!("import a.db two.zst {COLUMNS}"));
    assert_eq!(bench.json("stat a.db")["entries"], 2 * 26_116);
}

#[test]
fn a_compressed_file_that_is_cut_off_or_damaged_is_told_in_words() {
    let bench = Bench::with_database("--key u64 --value text");
    let one = std::fs::read(WEATHER).unwrap();
    bench.write("cut.zst", [&one[..], &one[..one.len() * 3 / 4]].concat());
    let line = format!("import a.db cut.zst {COLUMNS} --buffer 64KiB");
    let error = bench.failed(&line);
    assert!(error.contains("cut off") && !error.contains("Error"), "{error}");
    assert!(error.contains("no row of it was taken") && !error.contains("--resume"), "{error}");
    assert_eq!(bench.json("stat a.db")["entries"], 0);
    bench.write("cut.zst", [&one[..], &one].concat());
    bench.done(&line);
    assert_eq!(bench.json("stat a.db")["entries"], 2 * 26_116);

    let mut damaged = one.clone();
    *damaged.last_mut().unwrap() ^= 1;
    bench.write("damaged.zst", &damaged);
    let error = complaint(
        &bench
            .command(&["import", "a.db", "damaged.zst", "--no-header", "--value", "1"])
            .args(["--key", "@row"])
            .output()
            .unwrap(),
        1,
    );
    assert!(error.contains("damaged"), "{error}");
}
