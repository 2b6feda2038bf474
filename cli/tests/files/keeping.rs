//! `checkpoint`, `checkpoints`, `rollback`, `forget`, `compact`, `convert` and `stat`.

use crate::bench::{Bench, complaint, rows, text};

const TEXTS: &str = "--key text --value text";

#[test]
fn a_database_goes_back_to_what_a_checkpoint_kept() {
    let bench = Bench::with_database(TEXTS);
    assert_eq!(bench.done("checkpoints a.db"), "");
    bench.done("put a.db apple red");
    bench.done("checkpoint a.db one");
    bench.done("put a.db apple green");
    bench.done("put a.db pear yellow");
    bench.done("checkpoint a.db two");
    bench.done("delete a.db apple");
    let listed = bench.json("checkpoints a.db");
    assert_eq!((&listed[0]["name"], &listed[1]["name"]), (&"one".into(), &"two".into()));
    assert!(listed[0]["id"].as_u64() < listed[1]["id"].as_u64());
    bench.done("rollback a.db two");
    assert_eq!(bench.done("scan a.db"), "apple\tgreen\npear\tyellow\n");
    bench.done("rollback a.db one");
    assert_eq!(bench.done("scan a.db"), "apple\tred\n");
    let gone = bench.failed("rollback a.db two");
    assert!(gone.contains("no checkpoint \"two\""), "{gone}");
    assert!(bench.failed("forget a.db on").contains("did you mean one?"));
    let taken = bench.failed("checkpoint a.db one");
    assert!(taken.contains("name"), "{taken}");
    bench.done("forget a.db one");
    assert_eq!(bench.json("checkpoints a.db"), serde_json::json!([]));
    assert!(bench.failed("rollback a.db one").contains("none at all"));
    assert!(bench.done("check a.db").contains("all is well"));
}

#[test]
fn names_of_checkpoints_are_1_to_64_bytes() {
    let bench = Bench::with_database("");
    let long = "x".repeat(65);
    for command in ["checkpoint", "rollback", "forget"] {
        for name in ["", &long] {
            let output = bench.command(&[command, "a.db", name]).output().unwrap();
            assert!(complaint(&output, 2).contains("1 to 64"), "{name}");
        }
    }
    bench.done(&format!("checkpoint a.db {}", "x".repeat(64)));
    bench.output(&["checkpoint", "a.db", "two words"]);
    assert_eq!(bench.json("checkpoints a.db").as_array().unwrap().len(), 2);
}

#[test]
fn a_backup_opens_and_has_the_checkpoints_too() {
    for place in ["a.db", "nand-file:a.db"] {
        let bench = Bench::new();
        bench.done(&format!("create {place} {TEXTS}"));
        bench.done("put a.db apple red");
        bench.done("checkpoint a.db one");
        bench.done("put a.db apple green");
        bench.done("backup a.db b.db");
        bench.done("put a.db apple brown");
        assert_eq!(bench.done("get b.db apple"), "green\n");
        assert!(bench.done("check b.db").contains("all is well"));
        bench.done("rollback b.db one");
        assert_eq!(bench.done("get b.db apple"), "red\n");
        assert_eq!(bench.done("get a.db apple"), "brown\n");
        assert!(bench.failed("backup a.db b.db").contains("it exists already; name another"));
        assert!(bench.failed("backup missing.db c.db").contains("no such file"));
        assert_eq!(bench.names(), ["a.db", "b.db"]);
    }
}

#[test]
fn compacting_gives_room_back_and_keeps_the_entries() {
    let bench = Bench::with_database(TEXTS);
    // In another order than that of the keys, which leaves pages half full.
    let all = rows(30_000);
    let lines: Vec<&str> = all.lines().skip(1).collect();
    let mixed = |place: usize| lines[place * 7919 % lines.len()].to_owned() + "\n";
    let mixed: String = (0..lines.len()).map(mixed).collect();
    bench.write("rows.csv", format!("key,value\n{mixed}"));
    bench.done("import a.db rows.csv --buffer 256KiB");
    bench.done("checkpoint a.db one");
    let kept = bench.failed("compact a.db");
    assert!(kept.contains("1 named checkpoint") && kept.contains("forget"), "{kept}");
    bench.done("forget a.db one");
    let before = bench.json("stat a.db");
    bench.done("compact a.db");
    let after = bench.json("stat a.db");
    let pages = |stat: &serde_json::Value| stat["live_pages"].as_u64().unwrap();
    assert!(pages(&after) < pages(&before), "{before} {after}");
    assert_eq!(after["entries"], 30_000);
    assert_eq!((&after["key"], &after["durability"]), (&"text".into(), &"batch".into()));
    assert_eq!(bench.done("export a.db - --quiet"), rows(30_000));
    assert_eq!(bench.names(), ["a.db", "rows.csv"]);
}

#[test]
fn a_database_is_converted_to_another_tree_and_onto_a_chip() {
    let bench = Bench::with_database(TEXTS);
    bench.write("rows.csv", rows(3000));
    bench.done("import a.db rows.csv");
    bench.done("convert a.db b.db --tree b-plus:fill=70 --page 1KiB --durability every");
    let stat = bench.json("stat b.db");
    assert_eq!((&stat["page_bytes"], &stat["durability"]), (&1024.into(), &"every".into()));
    assert_eq!((&stat["key"], &stat["value"]), (&"text".into(), &"text".into()));
    bench.done("convert b.db nand-file:c.db --chip winbond-w25n01gv:blocks=128");
    assert_eq!(bench.json("stat c.db")["health"]["blocks"], 128);
    for name in ["b.db", "c.db"] {
        assert!(bench.done(&format!("check {name}")).contains("all is well"));
        assert_eq!(bench.done(&format!("export {name} - --quiet")), rows(3000));
    }
    assert!(bench.failed("convert a.db b.db").contains("--overwrite"));
    bench.done("convert a.db b.db --overwrite");
    assert!(bench.wrong("convert a.db ./a.db --overwrite").contains("the database itself"));
    assert!(bench.wrong("convert a.db d.db --size 64KiB").contains("--size 1MiB"));
    assert!(bench.wrong("convert a.db d.db --tree b-pls").contains("b-plus"));
    assert_eq!(bench.names(), ["a.db", "b.db", "c.db", "rows.csv"]);
}

#[test]
fn the_memory_that_a_converted_database_needs_is_told_once() {
    let bench = Bench::with_database(TEXTS);
    bench.write("rows.csv", rows(100));
    bench.done("import a.db rows.csv");
    for tree in ["ipl", "mu", "la-tree", "list"] {
        let line = format!("convert a.db nand-file:{tree}.db --tree {tree} --memory-total");
        let error = bench.wrong(&format!("{line} 64KiB"));
        let need = error.split("--memory-total ").nth(1).unwrap_or_else(|| panic!("{error}"));
        let need: String = need.chars().take_while(char::is_ascii_digit).collect();
        bench.done(&format!("{line} {need}"));
        for memory in [format!(" --memory-total {need}"), String::new()] {
            let exported = bench.done(&format!("export {tree}.db - --quiet{memory}"));
            assert_eq!(exported, rows(100), "{tree}{memory}");
        }
        let less = need.parse::<u64>().unwrap() / 2;
        let error = bench.wrong(&format!("stat {tree}.db --memory-total {less}"));
        let need = error.split("--memory-total ").nth(1).unwrap_or_else(|| panic!("{error}"));
        let need: String = need.chars().take_while(char::is_ascii_digit).collect();
        bench.done(&format!("stat {tree}.db --memory-total {need}"));
    }
}

#[test]
fn a_tree_of_raw_flash_tells_what_to_do_where_it_can_not_stand() {
    let bench = Bench::new();
    bench.done("create nand-file:mu.db --tree mu");
    for (line, path) in [("create a.db --tree mu", "a.db"), ("convert mu.db b.db", "b.db")] {
        let error = bench.wrong(line);
        let advice = [&*format!("nand-file:{path}"), "--tree b-plus"];
        assert!(advice.iter().all(|advice| error.contains(advice)), "{line}: {error}");
    }
    let error = bench.failed("compact mu.db");
    assert!(error.contains("convert mu.db nand-file:NEW"), "{error}");
    bench.done("convert mu.db nand-file:c.db");
    bench.done("convert mu.db d.db --tree b-plus");
    assert_eq!(bench.names(), ["c.db", "d.db", "mu.db"]);
}

#[test]
fn what_is_not_named_is_taken_from_the_database_that_is_converted() {
    let choices = "--durability every --page 2KiB --size 64MiB --tree b-plus:fill=70";
    let bench = Bench::with_database(&format!("{TEXTS} {choices}"));
    bench.write("rows.csv", rows(3000));
    bench.done("import a.db rows.csv");
    let names = ["durability", "page_bytes", "capacity_bytes", "journal_bytes_most", "tree"];
    let of = |line: &str| {
        let stat = bench.json(line);
        names.map(|name| stat[name].clone())
    };
    let before = of("stat a.db");
    bench.done("convert a.db b.db");
    assert_eq!(of("stat b.db"), before);
    let output = bench.command(&["convert", "a.db", "c.db", "--page", "4KiB"]).output().unwrap();
    assert!(!text(&output.stderr).contains("left behind"), "{}", text(&output.stderr));
    let [durability, page, ..] = of("stat c.db");
    assert_eq!((durability, page), ("every".into(), 4096.into()));
    for _ in 0..2 {
        bench.done("compact a.db");
        assert_eq!(of("stat a.db"), before);
    }
    bench.done("checkpoint a.db one");
    let output = bench.command(&["convert", "a.db", "d.db"]).output().unwrap();
    let told = text(&output.stderr);
    assert!(told.contains("1 named checkpoint of a.db left behind"), "{told}");
}

#[test]
fn a_tree_keeps_its_parameters_on_another_chip_or_says_that_it_can_not() {
    let bench = Bench::new();
    let winbond = "--chip winbond-w25n01gv:blocks=64";
    for (tree, word) in [("la-tree:fanout=64,k=3", "from 8 to 16"), ("ipl:log-pages=40", "to 31")] {
        bench.done(&format!("create nand-file:a.db {winbond} --tree {tree} --overwrite"));
        bench.done("put a.db apple red");
        let larger = "--chip samsung-k9gag08u0m:blocks=64 --overwrite";
        bench.done(&format!("convert a.db nand-file:b.db {larger}"));
        assert_eq!(bench.done("get b.db apple"), "red\n");
        let error = bench.wrong("convert b.db nand-file:c.db --chip capsule:blocks=512");
        let advice = format!("b.db has that: give --tree {tree} with another value there");
        assert!(error.contains(word) && error.contains(&advice), "{error}");
        // What was left to the tree is left to it again.
        let (name, _) = tree.split_once(':').unwrap();
        bench.done(&format!("create nand-file:a.db {winbond} --tree {name} --overwrite"));
        bench.done("convert a.db nand-file:c.db --chip capsule:blocks=512 --overwrite");
        std::fs::remove_file(bench.path("c.db")).unwrap();
    }
    // Into a plain file goes what does not depend on raw flash.
    let tree = "la-tree:k=3,place=log,share=shared";
    bench.done(&format!("create nand-file:a.db {winbond} --tree {tree} --overwrite"));
    bench.done("convert a.db c.db");
    assert_eq!(bench.json("stat c.db")["tree"], "la-tree");
}

#[test]
fn stat_tells_of_recovery_and_size() {
    let bench = Bench::with_database(TEXTS);
    bench.write("rows.csv", rows(5000));
    bench.done("import a.db rows.csv");
    let stat = bench.json("stat a.db");
    assert_eq!(stat["entries"], 5000);
    assert!(stat["health"].is_null());
    for field in ["journal_bytes_most", "undo_bytes_most", "file_bytes", "live_pages", "height"] {
        assert!(stat[field].as_u64().unwrap() > 0, "{field}: {stat}");
    }
    let most = |field: &str| stat[field].as_u64().unwrap();
    assert!(most("journal_bytes") <= most("journal_bytes_most"));
    assert!(most("memory_bytes") <= 16 << 20);
    let parts = stat["memory"].as_object().unwrap().values();
    assert_eq!(parts.map(|part| part.as_u64().unwrap()).sum::<u64>(), most("memory_bytes"));
    assert!(bench.json("stat a.db --no-count")["entries"].is_null());
    let table = bench.done("stat a.db");
    assert!(table.contains("entries          5,000\n"), "{table}");
    assert!(!table.contains("bad blocks"), "{table}");
}

#[test]
fn stat_shows_the_health_of_a_chip() {
    let bench = Bench::new();
    let chip = "winbond-w25n01gv:blocks=64,endurance=1000";
    bench.done(&format!("create nand-file:a.db --chip {chip} {TEXTS}"));
    bench.write("rows.csv", rows(20_000));
    bench.done("import a.db rows.csv --buffer 32KiB");
    let health = bench.json(&format!("stat a.db --chip {chip}"))["health"].clone();
    assert_eq!((&health["blocks"], &health["bad_blocks"]), (&64.into(), &0.into()));
    assert_eq!((&health["bits_corrected"], &health["endurance"]), (&0.into(), &1000.into()));
    let erases = |field: &str| health[field].as_f64().unwrap();
    assert!(erases("erases_least") <= erases("erases_mean"), "{health}");
    assert!(erases("erases_mean") <= erases("erases_most"), "{health}");
    let life = 100.0 * (1.0 - erases("erases_most") / 1000.0);
    assert!((erases("life_left_percent") - life).abs() < 1e-9 && life < 100.0, "{health}");
    let table = bench.done(&format!("stat a.db --chip {chip}"));
    for word in ["bad blocks       0 of 64", "erases a block", "bits corrected", "expected life"] {
        assert!(table.contains(word), "{table}");
    }
    assert!(bench.json("stat a.db")["health"]["life_left_percent"].is_null());
    assert!(bench.wrong("stat a.db --chip winbond-w25n01g").contains("winbond-w25n01gv"));
    assert!(bench.failed("compact a.db").contains("convert a.db NEW"));
}

#[test]
fn a_name_with_control_characters_leaves_the_table_as_it_is() {
    let bench = Bench::with_database("");
    bench.output(&["checkpoint", "a.db", "a\nb\u{1b}[1m"]);
    let table = bench.done("checkpoints a.db");
    assert_eq!(table.lines().count(), 3, "{table}");
    assert!(table.contains("a\\nb\\u{1b}[1m"), "{table}");
    assert_eq!(bench.json("checkpoints a.db")[0]["name"], "a\nb\u{1b}[1m");
}

#[test]
fn a_comparison_replaces_no_database() {
    let bench = Bench::with_database(TEXTS);
    bench.done("put a.db apple red");
    for (path, more) in [("raw.db", "--tree mu"), ("mapped.db", "--ftl page-map")] {
        bench.done(&format!(
            "create nand-file:{path} --chip winbond-w25n01gv:blocks=64 {TEXTS} {more}"
        ));
        bench.done(&format!("put {path} apple red"));
    }
    let run = "--trees b-plus --workload uniform --ops 10 --quiet";
    for (kind, path) in [("file", "a.db"), ("nand-file", "raw.db"), ("nand-file", "mapped.db")] {
        let error = bench.failed(&format!("compare --device {kind}:{path} {run}"));
        assert!(error.contains("it holds a database") && error.contains("--overwrite"), "{error}");
        assert_eq!(bench.done(&format!("get {path} apple")), "red\n");
    }
    bench.done(&format!("compare --device file:a.db {run} --overwrite"));
    bench.done(&format!("compare --device file:a.db {run}"));
}
