//! What a refusal tells to do can be done, and suffices.

use crate::bench::{Bench, rows};

/// The word behind the first `before` in what is said, without what ends a sentence.
fn word_behind<'e>(error: &'e str, before: &str) -> &'e str {
    let rest = error.split(before).nth(1).unwrap_or_else(|| panic!("{before}: {error}"));
    rest.split_whitespace().next().unwrap().trim_end_matches([',', ';', '.'])
}

#[test]
fn what_names_keep_of_raw_flash_is_told_with_how_it_comes_back() {
    let bench = Bench::new();
    bench.done(
        "create nand-file:a.db --tree mu-star --chip winbond-w25n01gv:blocks=28 --key u64 \
         --value text --durability checkpoint",
    );
    // The second file has other keys, between those of the first.
    for (name, value) in [("first.csv", 0), ("second.csv", 1)] {
        let key = |number: u64| number * 577 % 2003 * 5 + value;
        let row = |number| format!("{},{}\n", key(number), "x".repeat(200));
        let rows: String = (0..2000).map(row).collect();
        bench.write(name, format!("key,value\n{rows}"));
    }
    // The first rows of an empty database are loaded, which takes less than puts.
    bench.done("put a.db 0 first");
    bench.done("import a.db first.csv");
    assert_eq!(bench.json("stat a.db")["kept_bytes"], 0);
    bench.done("checkpoint a.db one");
    let error = bench.failed("import a.db second.csv");
    assert!(error.contains("flashtree forget a.db one gives them back"), "{error}");
    let told = word_behind(&error, "the checkpoint one keeps ").replace(',', "");
    let kept = bench.json("stat a.db")["kept_bytes"].as_u64().unwrap();
    assert_eq!((told.parse::<u64>().unwrap() * 2048, kept > 0), (kept, true), "{error}");
    bench.done("forget a.db one");
    bench.done("import a.db second.csv");
    assert_eq!(bench.json("stat a.db")["kept_bytes"], 0);
}

#[test]
fn a_chip_without_a_layer_tells_its_wear_and_what_is_left_of_its_life() {
    let bench = Bench::new();
    bench.done("create nand-file:a.db --tree mu --chip winbond-w25n01gv:blocks=64");
    bench.done("put a.db k v");
    let told = bench.done("stat a.db --chip winbond-w25n01gv");
    assert!(told.contains("% left of 100,000 erases a block"), "{told}");
    let health = bench.json("stat a.db --chip winbond-w25n01gv")["health"].clone();
    assert!(health["erases_most"].as_u64() >= health["erases_least"].as_u64(), "{health}");
    assert!(health["erases_mean"].is_number() && health["life_left_percent"].is_number());
}

#[test]
fn la_tree_is_made_in_a_file_and_opened_again_without_any_other_option() {
    let bench = Bench::with_database("--tree la-tree");
    bench.write("rows.csv", rows(5000));
    bench.done("import a.db rows.csv");
    assert_eq!(bench.done("get a.db key004999"), "value of 4999\n");
    let taken = bench.json("stat a.db")["memory_bytes"].as_u64().unwrap();
    assert!(taken <= 16 << 20, "{taken}");
    for memory in ["256KiB", "512KiB", "4MiB", "16MiB"] {
        bench.done(&format!("create a.db --tree la-tree --overwrite --memory-total {memory}"));
        bench.done(&format!("put a.db k v --memory-total {memory}"));
    }
}

#[test]
fn the_memory_that_is_named_suffices() {
    let bench = Bench::new();
    for line in [
        "create FILE --tree la-tree --memory-total 8KiB",
        "create FILE --tree la-tree --size 4GiB --memory-total 1MiB",
        "create FILE --tree b-plus --memory-total 8KiB",
        "create nand-file:FILE --tree la-tree --memory-total 8KiB",
        "create nand-file:FILE --tree la-tree:over=ftl --memory-total 8KiB",
        "create nand-file:FILE --tree mu --memory-total 8KiB",
        "create nand-file:FILE --tree ipl --memory-total 8KiB",
    ] {
        let line = line.replace("FILE", "a.db --overwrite");
        let error = bench.wrong(&line);
        let need = word_behind(&error, "--memory-total ");
        let (before, _) = line.rsplit_once(' ').unwrap();
        bench.done(&format!("{before} {need}"));
    }
}

#[test]
fn the_room_that_is_named_suffices() {
    let bench = Bench::new();
    for tree in ["b-plus", "la-tree", "la-tree:k=4"] {
        for durability in ["none", "checkpoint", "batch"] {
            let line = format!("create a.db --overwrite --tree {tree} --durability {durability}");
            let error = bench.wrong(&format!("{line} --size 4KiB"));
            bench.done(&format!("{line} --size {}", word_behind(&error, "--size ")));
        }
    }
    for tree in [
        "b-plus",
        "b-plus:over=ftl",
        "b-plus:over=ftl --ftl fast",
        "b-plus:over=ftl --ftl block-map",
        "ipl",
        "la-tree",
        "la-tree:over=ftl",
        "list",
        "mu",
        "mu-star",
    ] {
        for durability in ["none", "checkpoint", "batch"] {
            let line = format!(
                "create nand-file:a.db --overwrite --tree {tree} --durability {durability} \
                 --memory-total 4MiB"
            );
            let chip = "--chip winbond-w25n01gv:blocks=";
            let error = bench.wrong(&format!("{line} {chip}1"));
            bench.done(&format!("{line} {chip}{}", word_behind(&error, "blocks=")));
            bench.done(&format!("{line} --size {}", word_behind(&error, "--size ")));
        }
    }
}

#[test]
fn what_raw_flash_takes_no_choice_of_is_refused_with_the_reason() {
    let bench = Bench::new();
    for (line, words) in [
        ("--tree la-tree --page 4KiB", ["--page: on raw flash", "leave it away"]),
        ("--tree mu --page 4KiB", ["--page: on raw flash", "leave it away"]),
        ("--tree la-tree:node=77", ["node=77: on raw flash", "leave node away"]),
        ("--tree la-tree:node=2048", ["node=2048: on raw flash", "leave node away"]),
        ("--tree mu --ftl fast", ["--ftl: mu owns the chip", "leave it away"]),
        ("--tree mu:over=ftl", ["over=ftl: this tree owns the chip", "leave it away"]),
    ] {
        let error = bench.wrong(&format!("create nand-file:a.db {line}"));
        assert!(words.iter().all(|word| error.contains(word)), "{line}: {error}");
    }
    assert!(bench.names().is_empty());
    for line in ["--tree la-tree:over=ftl --page 4KiB", "--tree la-tree --page 2KiB"] {
        bench.done(&format!("create nand-file:a.db --overwrite {line}"));
        bench.done("put a.db k v");
    }
}

#[test]
fn a_value_that_no_page_of_the_chip_takes_is_kept_and_a_key_has_somewhere_to_go() {
    let bench = Bench::new();
    bench.done("create nand-file:a.db --tree mu --chip winbond-w25n01gv:blocks=64");
    bench.done("put a.db k v");
    let long = "x".repeat(300_000);
    bench.write("long", &long);
    bench.done("put a.db long --input long");
    assert_eq!(bench.done("get a.db long").trim_end(), long);
    bench.done("convert a.db nand-file:b.db --tree ipl");
    assert_eq!(bench.done("get b.db long").trim_end(), long);
    bench.done("check b.db");
    // A key has to fit a node of any tree.
    bench.done("create c.db --page 512");
    let key = "k".repeat(1000);
    let error = bench.failed(&format!("put c.db {key} v"));
    let advised = error.split("flashtree ").nth(1).unwrap_or_else(|| panic!("{error}"));
    bench.done(&advised.replace("NEW", "d.db"));
    bench.done(&format!("put d.db {key} v"));
}

#[test]
fn an_import_that_outgrows_the_memory_of_tables_names_what_suffices_for_all_rows() {
    let bench = Bench::with_database("--tree la-tree --memory-total 450KiB");
    // The first rows of an empty database are loaded, which takes less than puts.
    bench.done("put a.db key000000 first");
    bench.write("rows.csv", rows(60_000));
    let error = bench.failed("import a.db rows.csv --memory-total 450KiB");
    let need = word_behind(&error, "--memory-total ").to_owned();
    assert!(!error.contains("none of the rows"), "{error}");
    assert!(error.contains("of the rows that were read went in"), "{error}");
    let first = bench.json("stat a.db")["entries"].as_u64().unwrap();
    let told = error.split("; ").nth(2).and_then(|words| words.split(' ').next()).unwrap();
    assert_eq!(told.replace(',', ""), first.to_string(), "{error}");
    bench.done(&format!("import a.db rows.csv --memory-total {need}"));
    assert_eq!(bench.json("stat a.db")["entries"], 60_000);
}

#[test]
fn a_database_of_ipl_with_other_log_pages_is_opened_with_what_making_it_takes() {
    let bench = Bench::new();
    let made = "nand-file:a.db --tree ipl:log-pages=10 --chip winbond-w25n01gv:blocks=64";
    let error = bench.wrong(&format!("create {made} --memory-total 1"));
    let need = word_behind(&error, "--memory-total ");
    bench.done(&format!("create {made} --memory-total {need}"));
    bench.done(&format!("put a.db k v --memory-total {need}"));
    bench.done("put a.db k v");
}

#[test]
fn the_memory_that_a_grown_database_needs_is_named_at_once() {
    for to in ["nand-file:a.db", "a.db"] {
        let bench = Bench::new();
        bench.done(&format!("create {to} --tree la-tree"));
        bench.write("rows.csv", rows(20_000));
        bench.done("import a.db rows.csv --memory-total 8MiB");
        let error = bench.wrong("put a.db key000001 other --memory-total 1");
        let need = word_behind(&error, "--memory-total ");
        for line in ["get a.db key000001", "check a.db", "put a.db key000001 other"] {
            bench.done(&format!("{line} --memory-total {need}"));
        }
    }
}

#[test]
fn parameters_for_which_no_memory_suffices_are_refused() {
    let bench = Bench::new();
    let error = bench.wrong(
        "create nand-file:a.db --tree la-tree:pool=0.99,share=shared --chip \
         winbond-w25n01gv:blocks=64",
    );
    assert!(error.contains("pool=0.99: ") && error.contains("0.01 to 0.93"), "{error}");
    bench.done(
        "create nand-file:a.db --tree la-tree:pool=0.93,share=shared --chip \
         winbond-w25n01gv:blocks=64 --memory-total 64MiB",
    );
}

#[test]
fn what_is_told_of_a_copy_that_found_no_room_names_the_database_that_there_is() {
    let bench = Bench::with_database("");
    let row = |number: u32| format!("key{number:06},{}\n", "x".repeat(200));
    let rows: String = (0..15_000).map(row).collect();
    bench.write("rows.csv", format!("key,value\n{rows}"));
    bench.done("import a.db rows.csv");
    for to in ["nand-file:b.db --tree mu --chip winbond-w25n01gv:blocks=26", "b.db --size 1MiB"] {
        let error = bench.failed(&format!("convert a.db {to}"));
        assert!(error.contains("flashtree convert a.db "), "{error}");
        assert!(!error.contains("convert b.db"), "{error}");
    }
}

#[test]
fn a_tree_without_a_name_is_refused_and_over_is_told_as_it_was_given() {
    let bench = Bench::new();
    let output = bench.command(&["create", "a.db", "--tree", ""]).output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    let error = bench.wrong("create nand-file:a.db --tree mu:over=ftl");
    assert!(error.contains("over=ftl: ") && !error.contains("--ftl"), "{error}");
    let line = ["create", "nand-file:a.db", "--tree", "la-tree:over=raw flash"];
    let output = bench.command(&line).output().unwrap();
    let error = String::from_utf8(output.stderr).unwrap();
    assert!(error.contains("over=raw flash: it must be ftl; without it"), "{error}");
}

#[test]
fn a_fanout_that_does_not_fit_is_refused_also_if_it_is_the_default() {
    let bench = Bench::new();
    for fanout in [4, 16] {
        let error = bench.wrong(&format!("create nand-file:a.db --tree la-tree:fanout={fanout}"));
        assert!(error.contains("from 32 to 64"), "{error}");
    }
    bench.done("create nand-file:a.db --tree la-tree");
    bench.done("create nand-file:b.db --tree la-tree:fanout=32");
    let told = bench.done("trees la-tree");
    let words = told.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(words.contains("follows from page and entries"), "{told}");
}

#[test]
fn a_key_longer_than_any_is_absent() {
    let bench = Bench::new();
    let long = "k".repeat(2000);
    for tree in ["b-plus", "ipl", "la-tree", "list", "mu", "mu-star"] {
        let line = format!("create nand-file:a.db --overwrite --tree {tree} --key text");
        bench.done(&format!("{line} --chip winbond-w25n01gv:blocks=64"));
        bench.done("put a.db a 1");
        bench.done("put a.db z 2");
        let output = bench.command(&["get", "a.db", &long]).output().unwrap();
        assert_eq!((output.status.code(), output.stdout.len()), (Some(1), 0), "{tree}");
        assert_eq!(output.stderr.len(), 0, "{tree}");
        let told = bench.done(&format!("scan a.db --from {long}"));
        assert!(told.contains('z') && !told.contains('a'), "{tree}: {told}");
    }
}

#[test]
fn a_full_chip_is_copied_to_a_larger_one_by_what_is_told() {
    let bench = Bench::new();
    bench.done(
        "create nand-file:a.db --tree mu-star --chip winbond-w25n01gv:blocks=40 --key u64 \
         --value text",
    );
    let row = |number: u64| format!("{},{}\n", number * 7919 % 20_011, "x".repeat(200));
    let rows: String = (0..20_000).map(row).collect();
    bench.write("rows.csv", format!("key,value\n{rows}"));
    let error = bench.failed("import a.db rows.csv");
    assert!(error.contains("flashtree convert a.db nand-file:NEW --size SIZE"), "{error}");
    bench.done("convert a.db nand-file:b.db --size 64MiB");
    assert_eq!(bench.json("stat b.db")["tree"], "mu-star");
}

#[test]
fn a_key_longer_than_the_largest_pages_take_is_not_sent_to_them() {
    let bench = Bench::with_database("");
    for (bytes, helps) in [(4_000, true), (9_000, false)] {
        let error = bench.failed(&format!("put a.db {} value", "k".repeat(bytes)));
        assert!(error.contains("shorten it"), "{error}");
        assert_eq!(error.contains("--page 32KiB"), helps, "{error}");
    }
}
