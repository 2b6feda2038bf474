//! Databases that are damaged: `check`, and what the others say.

use std::fs;
use std::os::unix::fs::FileExt;

use db::{Database, OpenOptions};

use crate::bench::{Bench, complaint, rows, text};

const PAGE: usize = 4096;

/// A database of 2,000 rows, closed, and the places of its pages of the tree: all behind the
/// journal.
fn full(tree: &str) -> (Bench, Vec<u64>) {
    let options = format!("--tree {tree} --key text --value text --size 8MiB");
    let bench = Bench::with_database(&options);
    bench.write("rows.csv", rows(2000));
    bench.done("import a.db rows.csv");
    let bytes = fs::read(bench.path("a.db")).unwrap();
    let is_page = |page: &[u8]| page.windows(9).any(|word| word == b"value of ");
    let pages: Vec<u64> = (2..bytes.len() / PAGE)
        .filter(|page| is_page(&bytes[page * PAGE..(page + 1) * PAGE]))
        .map(|page| (page * PAGE) as u64)
        .collect();
    (bench, pages)
}

/// Flips one bit of the file.
fn flip(bench: &Bench, place: u64) {
    let file = fs::File::options().read(true).write(true).open(bench.path("a.db")).unwrap();
    let mut byte = [0];
    file.read_exact_at(&mut byte, place).unwrap();
    file.write_all_at(&[byte[0] ^ 4], place).unwrap();
}

#[test]
fn check_says_which_page_is_damaged_and_how() {
    let (bench, pages) = full("b-plus");
    assert!(pages.len() > 10, "{}", pages.len());
    assert!(bench.done("check a.db").contains("all is well"));
    assert_eq!(bench.json("check a.db")["ok"], true);
    flip(&bench, pages[3] + 2000);
    flip(&bench, pages[7] + 5);
    let output = bench.command(&["check", "a.db"]).output().unwrap();
    let error = complaint(&output, 1);
    assert!(error.contains("3 findings") && error.contains("--skip-damaged"), "{error}");
    let findings = text(&output.stdout);
    let lines: Vec<&str> = findings.lines().collect();
    let names_page = |line: &&&str| line.contains("page") && line.contains("checksum");
    assert_eq!(lines.iter().filter(names_page).count(), 2, "{findings}");
    assert!(lines[2].contains("entries"), "{findings}");
    let output = bench.command(&["check", "a.db", "--format", "json"]).output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    let verdict: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!((&verdict["ok"], &verdict["finding_count"]), (&false.into(), &3.into()));
    assert_eq!(verdict["findings"].as_array().unwrap().len(), 3);
}

#[test]
fn what_is_not_damaged_can_be_read_and_nothing_wrong_is_ever_printed() {
    for tree in ["b-plus", "flat-tree", "fd-tree", "lsm"] {
        let (bench, pages) = full(tree);
        flip(&bench, pages[pages.len() / 2] + 100);
        let all = rows(2000);
        let right: Vec<&str> = all.lines().skip(1).collect();
        let scan = bench.command(&["scan", "a.db"]).output().unwrap();
        let error = complaint(&scan, 1);
        assert!(error.contains("is corrupt"), "{error}");
        let printed = text(&scan.stdout).replace('\t', ",");
        assert!(!printed.is_empty() && all.contains(&printed));
        assert_eq!(bench.done("get a.db key000000"), "value of 0\n");
        assert_eq!(bench.done("get a.db key001999"), "value of 1999\n");
        bench.failed("export a.db out.csv");
        assert!(!bench.path("out.csv").exists());

        let error = bench.failed("export a.db out.csv --skip-damaged");
        assert!(error.contains("the keys between key"), "{error}");
        let saved = bench.read("out.csv");
        let saved: Vec<&str> = saved.lines().skip(1).collect();
        assert!(saved.iter().all(|row| right.contains(row)));
        // A page of flat-tree holds 254 of them.
        assert!(saved.is_sorted() && saved.len() > 1740 && saved.len() < 2000, "{}", saved.len());
        assert_eq!((saved[0], saved[saved.len() - 1]), (right[0], right[1999]));
        let stat = bench.command(&["stat", "a.db", "--format", "json"]).output().unwrap();
        assert!(text(&stat.stderr).contains("can't be counted"));
        let stat: serde_json::Value = serde_json::from_slice(&stat.stdout).unwrap();
        assert!(stat["entries"].is_null());
    }
}

#[test]
fn of_a_database_that_does_not_open_it_is_said_that_nothing_can_be_saved() {
    let (bench, _) = full("flat-tree");
    let pages = fs::metadata(bench.path("a.db")).unwrap().len() / PAGE as u64;
    (2..pages).for_each(|page| flip(&bench, page * PAGE as u64 + 100));
    assert!(bench.failed("export a.db out.csv").contains("--skip-damaged"));
    let error = bench.failed("export a.db out.csv --skip-damaged");
    assert!(error.contains("nothing can be saved") && error.contains("a copy"), "{error}");
    assert!(!error.contains("--skip-damaged") && !bench.path("out.csv").exists(), "{error}");
}

#[test]
fn on_raw_flash_flat_tree_is_read_around_damage() {
    let bench = Bench::new();
    bench.write("rows.csv", rows(2000));
    bench.done(
        "create nand-file:a.db --tree flat-tree --chip winbond-w25n01gv:blocks=64 --key text \
         --value text",
    );
    bench.done("import nand-file:a.db rows.csv");
    let mut bytes = fs::read(bench.path("a.db")).unwrap();
    // More wrong bits than the chip corrects, among rows in the middle.
    let middle = bytes.windows(13).rposition(|word| word == b"value of 1000").unwrap();
    bytes[middle - 100..middle + 100].iter_mut().for_each(|byte| *byte ^= 0x55);
    bench.write("a.db", bytes);
    for line in ["check nand-file:a.db", "export nand-file:a.db out.csv"] {
        assert!(bench.failed(line).contains("--skip-damaged"), "{line}");
    }
    let error = bench.failed("export nand-file:a.db out.csv --skip-damaged");
    assert!(error.contains("the keys between key"), "{error}");
    let (all, saved) = (rows(2000), bench.read("out.csv"));
    assert!(saved.lines().all(|row| all.contains(row)));
    assert!((1800..2000).contains(&saved.lines().count()), "{}", saved.lines().count());
}

/// How many rows of a damaged database `check` finds in its leaves.
fn rows_in_leaves(bench: &Bench) -> usize {
    let output = bench.command(&["check", "a.db"]).output().unwrap();
    let findings = text(&output.stdout);
    let line = findings.lines().find(|line| line.contains("the leaves hold")).unwrap();
    line.rsplit(' ').next().unwrap().parse().unwrap()
}

#[test]
fn all_that_is_in_whole_pages_is_saved_whatever_the_damage_and_every_gap_is_told() {
    let (bench, pages) = full("b-plus");
    let (first, last) = (pages[0], pages[pages.len() - 1]);
    let all = rows(2000);
    let right: Vec<&str> = all.lines().skip(1).collect();
    for (damaged, gaps) in [
        (vec![first, last], 2),
        (vec![pages[4], pages[10]], 2),
        (vec![pages[4], pages[5], pages[10]], 2),
        (vec![first, pages[3], pages[6], pages[9], last], 5),
        (pages.clone(), 1),
    ] {
        damaged.iter().for_each(|page| flip(&bench, page + 100));
        let error = bench.failed("export a.db out.csv --skip-damaged");
        let saved = bench.read("out.csv");
        let saved: Vec<&str> = saved.lines().skip(1).collect();
        assert_eq!(saved.len(), rows_in_leaves(&bench), "{error}");
        assert!(saved.is_sorted() && saved.iter().all(|row| right.contains(row)));
        assert_eq!(error.matches("keys").count(), gaps, "{error}");
        // The keys that are told are those around what is lost.
        let told = |row: &&str| error.contains(&row[..9]);
        let around = right.iter().enumerate().filter(|(place, row)| {
            let is_lost = |place: Option<usize>| {
                place.and_then(|place| right.get(place)).is_some_and(|row| !saved.contains(row))
            };
            saved.contains(row) && (is_lost(place.checked_sub(1)) || is_lost(Some(place + 1)))
        });
        assert!(around.map(|(_, row)| row).all(told), "{error}");
        damaged.iter().for_each(|page| flip(&bench, page + 100));
    }
    assert!(bench.done("check a.db").contains("all is well"));
}

#[test]
fn behind_a_damaged_inner_page_all_is_saved() {
    let bench = Bench::with_database("--key text --value text --size 8MiB --page 512");
    bench.write("rows.csv", rows(2000));
    // Otherwise the rows were loaded, and the nodes filled.
    bench.done("put a.db key000000 first");
    bench.done("import a.db rows.csv");
    assert!(bench.json("stat a.db")["height"].as_u64().unwrap() > 2);
    let bytes = fs::read(bench.path("a.db")).unwrap();
    // An inner page has keys, and no values.
    let holds = |page: &[u8], word: &[u8]| page.windows(word.len()).any(|found| found == word);
    let inner = |page: &usize| {
        let page = &bytes[page * 512..(page + 1) * 512];
        holds(page, b"key0") && !holds(page, b"value of ")
    };
    let inner: Vec<usize> = (2 * PAGE / 512..bytes.len() / 512).filter(inner).collect();
    assert!(inner.len() > 3, "{inner:?}");
    let mut most = 0;
    for pair in inner.windows(2) {
        pair.iter().for_each(|page| flip(&bench, (page * 512 + 100) as u64));
        let output = bench.command(&["export", "a.db", "-", "--skip-damaged"]).output().unwrap();
        if output.status.code() == Some(1) {
            let saved = text(&output.stdout).lines().count().saturating_sub(1);
            assert_eq!(saved, rows_in_leaves(&bench), "{pair:?}: {}", text(&output.stderr));
            most = most.max(saved);
        }
        pair.iter().for_each(|page| flip(&bench, (page * 512 + 100) as u64));
    }
    assert!(most > 1000, "{most}");
}

#[test]
fn nothing_is_left_out_of_a_database_that_is_well() {
    let (bench, _) = full("b-plus");
    bench.done("export a.db out.csv --skip-damaged");
    assert_eq!(bench.read("out.csv"), rows(2000));
}

#[test]
fn a_damaged_long_value_is_left_out_alone() {
    let bench = Bench::with_database("--key text --value text --size 8MiB");
    bench.write("rows.csv", format!("key,value\na,1\nb,{}\nc,3\n", "long ".repeat(20_000)));
    bench.done("import a.db rows.csv");
    let bytes = fs::read(bench.path("a.db")).unwrap();
    let last = bytes.windows(PAGE).rposition(|page| page.starts_with(b"long long ")).unwrap();
    flip(&bench, last as u64 + 1000);
    assert!(complaint(&bench.command(&["check", "a.db"]).output().unwrap(), 1).contains("a.db"));
    let error = bench.failed("export a.db out.csv --skip-damaged");
    assert!(error.contains("1 long value can't be read"), "{error}");
    assert_eq!(bench.read("out.csv"), "key,value\na,1\nc,3\n");
}

#[test]
fn a_damaged_beginning_is_told_or_repaired() {
    for place in [0, 9, 40, 100, 4096, 4140] {
        let (bench, _) = full("b-plus");
        flip(&bench, place);
        let output = bench.command(&["check", "a.db"]).output().unwrap();
        match output.status.code() {
            Some(0) => assert_eq!(bench.done("export a.db - --quiet"), rows(2000), "{place}"),
            _ => assert!(complaint(&output, 1).contains("a.db"), "{place}"),
        }
    }
}

#[test]
fn our_own_files_are_not_called_foreign_when_their_beginning_is_damaged() {
    let (bench, _) = full("b-plus");
    bench.done("create nand-file:chip.db --tree mu --size 8MiB");
    // Both superblocks of a file; the header of a chip.
    for place in [40, 4096 + 40] {
        flip(&bench, place);
    }
    let mut chip = fs::read(bench.path("chip.db")).unwrap();
    chip[20] ^= 1;
    bench.write("chip.db", chip);
    for name in ["a.db", "chip.db"] {
        for line in ["check FILE", "get FILE key000000", "export FILE - --skip-damaged"] {
            let error = bench.failed(&line.replace("FILE", name));
            assert!(error.contains("this flashtree database can't be used"), "{error}");
            assert!(error.contains("copy") && !error.contains("no flashtree"), "{error}");
        }
    }
}

#[test]
fn check_tells_of_entries_that_are_not_of_their_types() {
    let bench = Bench::with_database("--key text --value text");
    let database = Database::open(bench.path("a.db"), &OpenOptions::new()).unwrap();
    database.put([0xFF], "red").unwrap();
    database.put("pear", [0xFE]).unwrap();
    database.close().unwrap();
    assert!(bench.failed("scan a.db").contains("see flashtree check"));
    let output = bench.command(&["check", "a.db"]).output().unwrap();
    assert!(complaint(&output, 1).contains("2 findings"));
    let findings = text(&output.stdout);
    assert!(findings.contains("the value of \"pear\" is not of type text"), "{findings}");
    assert!(findings.contains("the key \"\\xff\" is not of type text"), "{findings}");
}

#[test]
fn a_file_cut_short_is_refused() {
    let (bench, pages) = full("b-plus");
    for bytes in [0, 1, 4096, 4097, pages[2]] {
        let file = fs::File::options().write(true).open(bench.path("a.db")).unwrap();
        file.set_len(bytes).unwrap();
        for line in ["get a.db key000000", "check a.db", "scan a.db", "put a.db a b"] {
            let error = bench.failed(line);
            assert!(error.contains("a.db"), "{line} of {bytes} bytes: {error}");
        }
    }
}

#[test]
fn under_a_translation_layer_older_values_are_exported_with_a_warning_only() {
    const BLOCKS: usize = 48;
    const PAGES: usize = BLOCKS * 64;
    const DATA: usize = 2048;
    const SPARE: usize = 24;
    let bench = Bench::new();
    let chip = format!("--chip winbond-w25n01gv:blocks={BLOCKS}");
    bench.done(&format!(
        "create nand-file:a.db --tree b-plus:over=ftl {chip} --key text --value text"
    ));
    for (step, value) in [(1, "old"), (15, "new")] {
        let row = |number: usize| format!("k{number:06},{value}\n");
        let all: String = (0..3000).step_by(step).map(row).collect();
        bench.write("rows.csv", format!("key,value\n{all}"));
        bench.done("import a.db rows.csv");
    }
    let right = bench.done("export a.db -");
    assert_eq!(right.matches(",new").count(), 200);
    let whole = fs::read(bench.path("a.db")).unwrap();
    // The head, eight bytes of state for each page, the pages.
    let state = |page: usize| 8192 + 8 * page..8192 + 8 * (page + 1);
    let behind = |page: usize| 8192 + 8 * PAGES + page * (DATA + SPARE) + DATA;
    let is_used = |page: &usize| whole[state(*page)].iter().any(|byte| *byte != 0);
    let mut warned = 0;
    for page in (0..PAGES).rev().filter(is_used).take(60) {
        let mut damaged = whole.clone();
        damaged[behind(page)..][..SPARE].iter_mut().for_each(|byte| *byte ^= 0x55);
        bench.write("a.db", damaged);
        let output = bench.command(&["export", "a.db", "-"]).output().unwrap();
        let is_right = text(&output.stdout) == right;
        assert!(is_right || !output.status.success(), "page {page}: other rows, and no word");
        if !output.status.success() && text(&output.stderr).contains("as it was earlier") {
            warned += 1;
            assert!(bench.failed("check a.db").contains("finding"), "page {page}");
        }
    }
    assert!(warned > 0, "no page was found damaged");
}
