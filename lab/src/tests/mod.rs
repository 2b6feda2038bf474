//! Comparisons as a whole, of a toy and of the real trees.

mod files;
mod toy;

use std::sync::atomic::{AtomicU64, Ordering};

use index::TreeDescriptor;

use crate::compare::compare_among;
use crate::{Comparison, Durability, Error, MemoryLimit, Misfit, Phase, Plan, Result, Row};
use crate::{Unwatched, Verified, Verify, Watcher, compare};

static TOYS: &[&TreeDescriptor] = &[&toy::BOTH, &toy::HUNGRY, &toy::TOY];

/// Everything that a workload can do, on a small chip.
const ALL: &str = "uniform:preload=1000,updates=3000,ltu=100,deletes=25,hits=70,ranges=20,scan=10";

pub(crate) fn plan(workload: &str, trees: &[&str]) -> Plan {
    Plan {
        device: "winbond-w25n01gv:blocks=64".to_string(),
        chip: None,
        overwrite: false,
        workload: workload.to_string(),
        trees: trees.iter().map(|tree| (*tree).to_string()).collect(),
        ftl: None,
        memory: MemoryLimit::CachesAndBuffers(128 << 10),
        size_bytes: None,
        operations: None,
        seed: 1,
        durability: Durability::None,
        verify: Verify::Full,
        input: None,
        jobs: 1,
    }
}

fn toys(plan: &Plan) -> Result<Comparison> {
    compare_among(plan, &Unwatched, TOYS)
}

fn rows(plan: &Plan) -> Vec<Row> {
    toys(plan).unwrap().measured.into_iter().map(|measured| measured.row).collect()
}

fn row(workload: &str, tree: &str) -> Row {
    rows(&plan(workload, &[tree])).remove(0)
}

/// A row's JSON without the wall times, the only figures that may differ between two runs.
fn timeless(mut row: Row) -> String {
    row.wall_seconds = 0.0;
    row.wall_us_per_op = 0.0;
    serde_json::to_string(&row).unwrap()
}

#[test]
fn a_row_tells_what_was_done_and_what_it_cost() {
    let row = row(ALL, "toy");
    assert_eq!(row.error, None);
    assert_eq!(row.verified, Verified::Full);
    assert_eq!((row.tree.as_str(), row.workload.as_str()), ("toy", ALL));
    assert_eq!(row.device, "winbond-w25n01gv:blocks=64");
    assert_eq!(row.ftl.as_deref(), Some("page-map"));
    assert_eq!((row.seed, row.memory_bytes), (1, 128 << 10));
    assert_eq!(row.operations, 6000);
    // The toy writes at every fourth update, and reads at every lookup.
    assert!(row.page_programs >= 750 && row.page_reads >= 3000, "{row:?}");
    assert!(row.by_cause["lookup"] > 0.0 && row.by_cause["update"] > 0.0);
    assert_eq!(row.by_cause["load"], 0.0);
    assert_eq!(row.device_us_per_op, row.by_cause.values().sum::<f64>());
    let bytes = 2250 * 8 + 750 * 4;
    assert_eq!(row.write_amplification, Some(row.bytes_programmed as f64 / f64::from(bytes)));
    assert!(row.memory.ftl > Some(0) && row.block_erases.is_some() && row.erases_most.is_some());
    assert_eq!(row.peak_memory_bytes, (128 << 10) + toy::TABLES);
    assert_eq!(row.live_pages, 1000 + 2250 - 750);
    let latency = row.latency_us;
    assert!(latency.p50 <= latency.p99 && latency.p99 <= latency.p99_9, "{latency:?}");
    assert!(latency.p99_9 <= latency.max && latency.max > 0.0, "{latency:?}");
    assert!(row.wall_seconds > 0.0 && row.wall_us_per_op > 0.0);
}

#[test]
fn a_workload_without_updates_has_no_write_amplification() {
    let row = row("uniform:preload=500,mix=100/0/0/0", "toy");
    assert_eq!((row.error, row.write_amplification), (None, None));
    assert_eq!(row.settle_us, 0.0);
}

#[test]
fn what_was_buffered_at_the_end_is_settled_apart() {
    let row = row("uniform:preload=0,updates=1001,ltu=0", "toy");
    assert!(row.settle_us > 0.0);
    assert_eq!(row.by_cause["flush"], 0.0);
}

#[test]
fn a_tree_on_both_views_prefers_raw_flash() {
    let raw = row(ALL, "both-toy");
    assert_eq!((raw.error, raw.ftl, raw.memory.ftl), (None, None, None));
    let over = row(ALL, "both-toy:over=ftl");
    assert_eq!((over.error, over.ftl.as_deref()), (None, Some("page-map")));
    assert_eq!(over.tree, "both-toy:over=ftl");
}

#[test]
fn the_same_seed_gives_the_same_rows_whatever_runs_at_the_same_time() {
    for workload in [ALL, "weather:updates=5000", "zipf:preload=1000,updates=5000"] {
        let mut plan = plan(workload, &["toy", "both-toy", "toy:after=7", "both-toy:over=ftl"]);
        let first: Vec<String> = rows(&plan).into_iter().map(timeless).collect();
        plan.jobs = 4;
        let again: Vec<String> = rows(&plan).into_iter().map(timeless).collect();
        assert_eq!(first, again, "{workload}");
        plan.seed = 2;
        let other: Vec<String> = rows(&plan).into_iter().map(timeless).collect();
        assert_ne!(first, other, "{workload}");
    }
}

#[test]
fn verification_is_not_in_the_figures() {
    let mut plan = plan(ALL, &["toy"]);
    let mut full = rows(&plan).remove(0);
    for (verify, verified) in [(Verify::Sampled, Verified::Sampled), (Verify::Off, Verified::No)] {
        plan.verify = verify;
        let row = rows(&plan).remove(0);
        assert_eq!(row.verified, verified);
        full.verified = verified;
        assert_eq!(timeless(row), timeless(full.clone()));
    }
}

#[test]
fn a_wrong_answer_fails_the_run_and_the_others_finish() {
    for fault in ["stale", "forget", "keep", "invent", "lose"] {
        let workload = match fault {
            "stale" => "zipf:preload=100,updates=3000",
            _ => ALL,
        };
        let wrong = format!("toy:fault={fault}");
        let rows = rows(&plan(workload, &["toy", &wrong, "both-toy"]));
        let errors: Vec<bool> = rows.iter().map(|row| row.error.is_some()).collect();
        assert_eq!(errors, [false, true, false], "{fault}");
        let error = rows[1].error.clone().unwrap();
        assert!(error.contains("wrong contents at key"), "{fault}: {error}");
        assert!(!error.contains('\n'), "{error}");
        assert_eq!(rows[1].verified, Verified::No);
    }
}

#[test]
fn contents_are_compared_at_the_end_even_if_no_lookup_meets_them() {
    let error = row("uniform:preload=0,updates=2000,ltu=0", "toy:fault=forget").error.unwrap();
    assert!(error.starts_with("verifying, after "), "{error}");
}

#[test]
fn sampled_verification_meets_what_is_wrong_everywhere() {
    for workload in ["zipf:preload=1000,updates=5000,ltu=100", "zipf:preload=9000,ltu=0"] {
        let mut plan = plan(workload, &["toy:fault=stale"]);
        plan.verify = Verify::Sampled;
        let error = rows(&plan).remove(0).error.expect(workload);
        assert!(error.contains("wrong contents"), "{error}");
    }
}

#[test]
fn a_full_device_gives_a_row_that_says_how_far_it_got() {
    let row = row("uniform:preload=10,updates=2000,ltu=0", "toy:fault=full,after=1234");
    let error = row.error.unwrap();
    assert!(error.starts_with("measuring, after 1233 of 2000 operations: "), "{error}");
    assert!(error.contains("larger device"), "{error}");
    assert_eq!((row.operations, row.verified), (1233, Verified::No));
    assert!(row.page_programs > 0);
}

#[test]
fn a_tree_that_loads_less_than_it_was_given_fails() {
    let error = row(ALL, "toy:fault=unloaded").error.unwrap();
    assert!(error.contains("999"), "{error}");
}

#[test]
fn a_tree_that_panics_leaves_a_row_and_the_others_finish() {
    let mut plan = plan(ALL, &["toy:fault=panic", "toy"]);
    for jobs in [1, 2] {
        plan.jobs = jobs;
        let rows = rows(&plan);
        let errors: Vec<bool> = rows.iter().map(|row| row.error.is_some()).collect();
        assert_eq!(errors, [true, false], "{jobs}");
    }
}

#[test]
fn without_names_every_tree_that_fits_takes_part() {
    let comparison = toys(&plan(ALL, &[])).unwrap();
    let names: Vec<&str> =
        comparison.measured.iter().map(|measured| measured.row.tree.as_str()).collect();
    assert_eq!(names, ["both-toy", "toy"]);
    assert_eq!(comparison.left_out.len(), 1);
    assert_eq!(comparison.left_out[0].tree, "hungry-toy");
    assert!(comparison.left_out[0].reason.contains("1099511627776"));
}

#[test]
fn a_named_tree_that_does_not_fit_is_wrong_usage() {
    for (tree, part) in [
        ("toy:fil=3", "did you mean fill"),
        ("toy:fill=0", "percentage"),
        ("toy:over=nand", "over=nand"),
        ("toi", "did you mean toy"),
        ("toy:fill=70,fill=70", "twice"),
        ("toy:", "key=value"),
    ] {
        let error = toys(&plan(ALL, &["both-toy", tree])).unwrap_err();
        let meant = error.meant().map(|(near, known)| spec::suggestion(near, known));
        let line = format!("{error}; {}", meant.unwrap_or_default());
        assert!(error.is_usage() && line.contains(part), "{tree}: {line}");
        assert!(!line.contains('\n'), "{line}");
    }
    for hungry in [&["hungry-toy"][..], &["hungry-toy", "hungry-toy:fill=80"]] {
        let error = toys(&plan(ALL, hungry)).unwrap_err();
        assert!(error.is_usage() && error.to_string().contains("1099511627776"), "{error}");
    }
}

#[test]
fn beside_a_named_tree_that_does_not_fit_the_others_run() {
    let comparison = toys(&plan(ALL, &["toy", "hungry-toy", "both-toy"])).unwrap();
    let rows: Vec<&Row> = comparison.measured.iter().map(|measured| &measured.row).collect();
    let trees: Vec<&str> = rows.iter().map(|row| row.tree.as_str()).collect();
    assert_eq!((trees, comparison.refused), (vec!["toy", "hungry-toy", "both-toy"], 1));
    assert!(rows[1].error.as_ref().is_some_and(|error| error.contains("1099511627776")));
    for row in [rows[0], rows[2]] {
        assert_eq!((&row.error, row.verified), (&None, Verified::Full));
        assert_eq!((&row.device, row.seed), (&rows[1].device, rows[1].seed));
    }
}

#[test]
fn a_translation_layer_that_serves_no_tree_is_told() {
    let told = |ftl: Option<&str>, trees: &[&str]| {
        let plan = Plan { ftl: ftl.map(str::to_string), ..plan(ALL, trees) };
        toys(&plan).unwrap().remarks
    };
    assert!(told(None, &["both-toy"]).is_empty());
    assert!(told(Some("dac"), &["toy", "both-toy:over=ftl"]).is_empty());
    assert_eq!(
        told(Some("dac"), &["toy", "both-toy"]),
        ["--ftl dac means nothing for both-toy: on a chip they stand on raw flash; with \
             over=ftl, both-toy would not"]
    );
}

#[test]
fn the_least_memory_in_all_lets_a_tree_whose_tables_grow_begin() {
    let la_tree = |total| {
        let workload = "uniform:preload=0,updates=200,ltu=10";
        let memory = MemoryLimit::Total(total);
        compare(&Plan { memory, ..plan(workload, &["la-tree"]) }, &Unwatched)
    };
    let refused = la_tree(0).unwrap_err();
    let Error::DoesNotFit { reason: Misfit::LittleTotal { need, .. }, .. } = refused else {
        panic!("{refused}");
    };
    assert_eq!(la_tree(need).unwrap().measured[0].row.error, None, "{need} bytes");
    assert!(la_tree(need - 1).is_err());
}

#[test]
fn tables_that_grow_beyond_the_memory_tell_how_much_would_do() {
    let workload = "uniform:preload=0,updates=30000,ltu=0";
    let run = |total| {
        let memory = MemoryLimit::Total(total);
        let run = compare(&Plan { memory, ..plan(workload, &["la-tree"]) }, &Unwatched);
        run.unwrap().measured.remove(0).row.error
    };
    let error = run(40_000).unwrap();
    let total = error.rsplit(' ').next().and_then(|word| word.parse().ok()).unwrap();
    assert!(error.contains("for the tables") && total > 40_000, "{error}");
    assert_eq!(run(total), None);
}

/// Where a load leaves hardly any room, what a few operations need says little of what all do.
#[test]
fn a_bound_on_all_memory_holds_after_a_load_and_what_is_advised_suffices() {
    // Of the last, it advised too little.
    let cases = [
        (200_000, "la-tree:fanout=16", 192 << 10),
        (24_000, "la-tree:fanout=16,k=1", 128 << 10),
        (20_000, "la-tree:fanout=16,k=1", 112 << 10),
    ];
    for (preload, tree, little) in cases {
        let run = |total| {
            let workload = format!("uniform:preload={preload},updates=20000,ltu=0");
            let memory = MemoryLimit::Total(total);
            let device = "toshiba-tc58dvg02a1ft00".to_string();
            let plan = Plan { memory, device, size_bytes: None, ..plan(&workload, &[tree]) };
            let mut compared = compare(&plan, &Unwatched).unwrap();
            compared.measured.remove(0).row
        };
        let row = run(little);
        let peak = row.peak_memory_bytes;
        assert!((little / 2..=little).contains(&peak), "{tree}: {peak} bytes");
        let error = row.error.unwrap();
        let total: u64 = error.rsplit(' ').next().and_then(|word| word.parse().ok()).unwrap();
        assert!(total > little && total < 4 << 20, "{tree}: {error}");
        assert_eq!(run(total).error, None, "{tree}");
    }
}

#[test]
fn too_little_memory_names_the_least_that_works() {
    for trees in [&["toy"][..], &[]] {
        let mut plan = plan(ALL, trees);
        plan.memory = MemoryLimit::CachesAndBuffers(1024);
        let error = toys(&plan).unwrap_err();
        assert!(error.is_usage() && error.to_string().contains("4096"), "{error}");
        plan.memory = MemoryLimit::CachesAndBuffers(toy::LEAST);
        assert!(toys(&plan).is_ok());
    }
}

#[test]
fn a_bound_on_all_memory_leaves_to_the_tree_what_the_mapping_does_not_take() {
    let mut plan = plan(ALL, &["toy"]);
    plan.memory = MemoryLimit::Total(1024);
    let need = match toys(&plan).unwrap_err() {
        Error::DoesNotFit { reason: Misfit::LittleTotal { need, .. }, .. } => need,
        other => panic!("{other}"),
    };
    plan.memory = MemoryLimit::Total(need - 1);
    assert!(toys(&plan).is_err());
    plan.memory = MemoryLimit::Total(need);
    let row = rows(&plan).remove(0);
    assert_eq!((row.error, row.memory.cache), (None, toy::LEAST));
    assert_eq!(row.memory.ftl.unwrap() + row.memory.tables + row.memory.cache, need);
    plan.trees = vec!["toy:fault=greedy".to_string()];
    let error = rows(&plan).remove(0).error.unwrap();
    assert!(error.contains("--memory-total"), "{error}");
}

#[test]
fn wrong_plans_are_refused_before_anything_runs() {
    let good = plan(ALL, &["toy"]);
    let wrong = [
        Plan { operations: Some(0), ..good.clone() },
        Plan { ftl: Some("page-mop".to_string()), ..good.clone() },
        Plan { ftl: Some("page-map:over-provision=2".to_string()), ..good.clone() },
        Plan { ftl: Some("page-map:logs=3".to_string()), ..good.clone() },
        Plan { device: "winbond".to_string(), ..good.clone() },
        Plan { size_bytes: Some(1), ..good.clone() },
        Plan { workload: "wether".to_string(), ..good.clone() },
        Plan { workload: "uniform:preload=50000000".to_string(), ..good.clone() },
        Plan { device: "winbond-w25n01gv:blocks=1".to_string(), ..good },
    ];
    for plan in wrong {
        let watcher = Counting::default();
        let error = compare_among(&plan, &watcher, TOYS).expect_err(&plan.workload);
        assert!(error.is_usage(), "{error}");
        assert!(!error.to_string().contains('\n'), "{error}");
        assert_eq!(watcher.begun.load(Ordering::Relaxed), 0);
    }
}

#[derive(Default)]
struct Counting {
    begun: AtomicU64,
    steps: AtomicU64,
    finished: AtomicU64,
    specs: Vec<&'static str>,
    patience: Option<u64>,
}

impl Watcher for Counting {
    fn begin(&self, tree: usize, spec: &str, phase: Phase, _steps: u64) {
        assert_eq!(spec, self.specs.get(tree).copied().unwrap_or(spec));
        let digit = match phase {
            Phase::Preload => 1,
            Phase::Run => 100,
            Phase::Verify => 10_000,
        };
        self.begun.fetch_add(digit, Ordering::Relaxed);
    }

    fn advance(&self, _tree: usize, steps: u64) {
        self.steps.fetch_add(steps, Ordering::Relaxed);
    }

    fn finish(&self, _tree: usize) {
        self.finished.fetch_add(1, Ordering::Relaxed);
    }

    fn cancelled(&self) -> bool {
        self.patience.is_some_and(|patience| self.steps.load(Ordering::Relaxed) > patience)
    }
}

#[test]
fn what_comes_before_measuring_is_checked_and_costs_nothing() {
    let row = row("uniform:preload=500,before=2000,mix=100/0/0/0", "toy");
    assert_eq!((row.error, row.write_amplification), (None, None));
    assert_eq!(row.operations, 100_000);
}

#[test]
fn a_watcher_sees_every_phase_of_every_tree() {
    let watcher = Counting { specs: vec!["toy", "both-toy"], ..Counting::default() };
    compare_among(&plan(ALL, &["toy", "both-toy"]), &watcher, TOYS).unwrap();
    assert_eq!(watcher.begun.load(Ordering::Relaxed), 20_202);
    assert_eq!(watcher.finished.load(Ordering::Relaxed), 2);
    assert!(watcher.steps.load(Ordering::Relaxed) > 2 * 9000);
}

#[test]
fn a_watcher_can_end_a_comparison_in_every_phase() {
    for (patience, doing) in [(0, "loading"), (5000, "measuring"), (24_000, "verifying")] {
        let watcher = Counting { patience: Some(patience), ..Counting::default() };
        let workload = "uniform:preload=4000,updates=10000,ltu=10";
        let comparison = compare_among(&plan(workload, &["toy", "toy"]), &watcher, TOYS).unwrap();
        for measured in comparison.measured {
            let error = measured.row.error.unwrap();
            assert!(error.contains("ended from outside"), "{error}");
        }
        assert_eq!(watcher.finished.load(Ordering::Relaxed), 2, "{doing}");
    }
}

#[test]
fn plots_get_erases_by_block_and_a_course() {
    let comparison = toys(&plan(ALL, &["both-toy"])).unwrap();
    let measured = &comparison.measured[0];
    assert_eq!(measured.erases_by_block.len(), 64);
    let sum: u64 = measured.erases_by_block.iter().map(|erases| u64::from(*erases)).sum();
    let mean = measured.row.erases_mean.unwrap();
    assert!((mean * 64.0 - sum as f64).abs() < 1e-9);
    assert_eq!(measured.course_us_per_op.len(), 200);
    let course: f64 = measured.course_us_per_op.iter().sum::<f64>() / 200.0;
    assert!((course - measured.row.device_us_per_op).abs() < 1e-6);
}

#[test]
fn real_trees_are_verified_on_all_kinds_of_workload() {
    for (device, workload) in [
        ("winbond-w25n01gv", "weather:updates=20000,deletes=10"),
        ("winbond-w25n01gv", "flights:preload=5000,updates=5000,ltu=100,ranges=10,hits=50"),
        ("toshiba-tc58dvg02a1ft00", "uniform:preload=10000,updates=5000,entry=8+4"),
        ("samsung-k9wag08u1a:blocks=256", "zipf:preload=10000,updates=5000,entry=8+8"),
        ("samsung-k9gag08u0m:blocks=256", "sequential:updates=5000,entry=variable,deletes=30"),
    ] {
        let plan = Plan { device: device.to_string(), ..plan(workload, &[]) };
        let comparison = compare(&plan, &Unwatched).unwrap_or_else(|error| panic!("{error}"));
        for measured in comparison.measured {
            let row = measured.row;
            assert_eq!(row.error, None, "{} {device} {workload}", row.tree);
            assert_eq!(row.verified, Verified::Full, "{} {device} {workload}", row.tree);
            assert!(row.device_us_per_op > 0.0);
        }
    }
}

#[test]
fn a_device_that_gets_full_is_a_row_with_an_error() {
    let mut plan = plan("uniform:preload=1000,updates=2000000,ltu=0", &["b-plus"]);
    plan.device = "winbond-w25n01gv:blocks=24".to_string();
    let row = compare(&plan, &Unwatched).unwrap().measured.remove(0).row;
    let error = row.error.expect("it gets full");
    assert!(error.starts_with("measuring, after ") && error.contains("full"), "{error}");
    assert!(row.operations > 10_000 && row.operations < 2_000_000);
}
