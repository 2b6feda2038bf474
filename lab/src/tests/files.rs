//! Comparisons on devices in real files and on simulated disks.

use std::fs;
use std::path::{Path, PathBuf};

use tempfile::{TempDir, tempdir};

use super::{Counting, plan, timeless};
use crate::{Clock, Comparison, Error, MemoryLimit, Plan, Result, Unwatched, Verified, compare};

/// Everything that a workload can do; more than the cache holds.
const ALL: &str = "uniform:preload=20000,updates=2000,ltu=100,deletes=20,ranges=20,scan=10";

/// More than fits the device.
const TOO_MUCH: &str = "sequential:updates=2000000,ltu=0";

/// A folder, and a path in it where nothing is yet.
fn place() -> (TempDir, PathBuf) {
    let folder = tempdir().unwrap();
    let path = folder.path().join("device");
    (folder, path)
}

fn plan_on(kind: &str, path: &Path) -> Plan {
    Plan {
        device: format!("{kind}:{}", path.display()),
        size_bytes: Some(8 << 20),
        ..plan(ALL, &["b-plus"])
    }
}

fn run(plan: &Plan) -> Result<Comparison> {
    compare(plan, &Unwatched)
}

/// What is wrong with a plan on a device in a file; the line helps, and nothing is left behind.
fn refused(plan: &Plan, part: &str) -> Error {
    let error = run(plan).map(|comparison| comparison.remarks).expect_err(part);
    let line = error.to_string();
    assert!(line.contains(part) && !line.contains('\n'), "{line}");
    error
}

#[test]
fn trees_on_a_file_run_one_after_the_other_by_the_clock_of_the_wall() {
    let (_folder, path) = place();
    let mut plan = plan_on("file", &path);
    plan.trees.push("b-plus:fill=90".to_string());
    plan.jobs = 4;
    let comparison = run(&plan).unwrap();
    assert_eq!(comparison.measured.len(), 2);
    for measured in &comparison.measured {
        let row = &measured.row;
        assert_eq!((row.error.as_deref(), row.verified), (None, Verified::Full));
        assert_eq!(measured.clock, Clock::Wall);
        assert_eq!((&row.ftl, row.memory.ftl, row.energy_uj_per_op), (&None, None, None));
        assert_eq!((row.block_erases, row.erases_most, row.erases_mean), (None, None, None));
        assert!(row.page_reads > 0 && row.page_programs > 0, "{row:?}");
        let bytes = row.bytes_programmed as f64;
        assert_eq!(bytes % 4096.0, 0.0);
        assert_eq!(row.write_amplification, Some(bytes / f64::from(1600 * 8 + 400 * 4)));
        assert_eq!(row.device_us_per_op, row.by_cause.values().sum::<f64>());
        // The time of all operations holds that of the device.
        let latency = row.latency_us;
        assert!(latency.p50 > 0.0 && latency.p50 <= latency.p99 && latency.p99 <= latency.max);
        assert!((latency.p99_9..=latency.max).contains(&latency.p99_99.unwrap()), "{latency:?}");
        // A file system in memory counts nothing; another one all that is moved directly.
        let system = (row.system_bytes_read.unwrap(), row.system_bytes_written.unwrap());
        if system.0 > 0 {
            assert!(system.0 >= row.bytes_read && system.1 >= row.bytes_programmed, "{row:?}");
        }
        assert_eq!((row.flash_bytes_programmed, row.flash_write_amplification), (None, None));
        assert!(row.wall_us_per_op >= row.device_us_per_op, "{row:?}");
    }
    assert_eq!(fs::metadata(&path).unwrap().len(), 8 << 20);
    let stays = |remark: &String| remark.contains("stays") && !remark.contains('\n');
    assert_eq!(comparison.remarks.iter().filter(|remark| stays(remark)).count(), 1);
}

#[test]
fn a_file_of_an_earlier_comparison_is_replaced() {
    let (_folder, path) = place();
    let mut plan = plan_on("file", &path);
    assert!(run(&plan).unwrap().measured[0].row.error.is_none());
    plan.size_bytes = Some(4 << 20);
    assert!(run(&plan).unwrap().measured[0].row.error.is_none());
    assert_eq!(fs::metadata(&path).unwrap().len(), 4 << 20);
}

#[test]
fn a_chip_in_a_file_gives_the_figures_of_the_simulated_one() {
    for chip in ["winbond-w25n01gv:blocks=48,bad=2", "toshiba-tc58dvg02a1ft00:blocks=300"] {
        let (_folder, path) = place();
        let simulated = Plan { device: chip.to_string(), ..plan(ALL, &["b-plus"]) };
        let in_file =
            Plan { chip: Some(chip.to_string()), size_bytes: None, ..plan_on("nand-file", &path) };
        let simulated = run(&simulated).unwrap().measured.remove(0);
        let mut in_file = run(&in_file).unwrap().measured.remove(0);
        assert_eq!(in_file.clock, Clock::Model);
        assert_eq!(in_file.erases_by_block, simulated.erases_by_block);
        in_file.row.device.clone_from(&simulated.row.device);
        assert_eq!(in_file.row.error, None);
        assert_eq!(timeless(in_file.row), timeless(simulated.row));
        assert!(path.exists());
    }
}

#[test]
fn a_disk_of_the_catalogue_needs_no_translation_layer_and_shows_no_erases() {
    for (device, energy_known) in
        [("mtron-msp-sata7525", false), ("sandisk-cf-512", true), ("kingston-minisd-512", true)]
    {
        let plan = Plan {
            device: device.to_string(),
            size_bytes: Some(8 << 20),
            ..plan(ALL, &["b-plus", "b-plus:node=4096"])
        };
        let rows = run(&plan).unwrap().measured;
        for measured in &rows {
            let row = &measured.row;
            assert_eq!((row.error.as_deref(), row.verified), (None, Verified::Full), "{device}");
            assert_eq!((&row.ftl, row.memory.ftl), (&None, None));
            assert_eq!((row.block_erases, row.erases_most, row.erases_mean), (None, None, None));
            assert_eq!(row.energy_uj_per_op.is_some(), energy_known, "{device}");
            assert!(row.device_us_per_op > 0.0 && row.page_programs > 0, "{row:?}");
            assert_eq!(measured.clock, Clock::Model);
        }
        let again = run(&plan).unwrap().measured;
        assert_eq!(timeless(rows[0].row.clone()), timeless(again[0].row.clone()));
    }
}

#[test]
fn a_tree_over_a_translation_layer_needs_a_chip() {
    let mut plan = plan(ALL, &["b-plus:over=ftl"]);
    plan.device = "mtron-msp-sata7525".to_string();
    assert!(refused(&plan, "over=ftl").is_usage());
}

#[test]
fn a_foreign_file_stays_as_it_is_to_the_last_byte() {
    for kind in ["file", "nand-file"] {
        for content in [&b""[..], b"my thesis", &[0; 9_000_000]] {
            let (_folder, path) = place();
            fs::write(&path, content).unwrap();
            let mut plan = plan_on(kind, &path);
            assert!(!refused(&plan, "something else").is_usage());
            assert!(fs::read(&path).unwrap() == content, "{kind}: it was changed");
            plan.overwrite = true;
            assert_eq!(run(&plan).unwrap().measured[0].row.error, None);
        }
    }
}

#[test]
fn a_locked_file_stays_as_it_is() {
    for kind in ["file", "nand-file"] {
        let (_folder, path) = place();
        let mut plan = plan_on(kind, &path);
        run(&plan).unwrap();
        let before = fs::read(&path).unwrap();
        let lock = fs::File::open(&path).unwrap();
        lock.lock().unwrap();
        for overwrite in [false, true] {
            plan.overwrite = overwrite;
            assert!(!refused(&plan, "in use").is_usage());
        }
        drop(lock);
        assert!(fs::read(&path).unwrap() == before, "{kind}: it was changed");
    }
}

#[test]
fn what_is_no_file_is_refused_and_nothing_is_left_behind() {
    for kind in ["file", "nand-file"] {
        let (folder, path) = place();
        let plan = plan_on(kind, &path);
        let other = |path: &Path| Plan { overwrite: true, ..plan_on(kind, path) };
        assert!(!refused(&other(folder.path()), "neither a regular file").is_usage());
        assert!(!refused(&other(&path.join("below")), "folder").is_usage());
        assert!(!refused(&other(Path::new("/dev/null")), "neither a regular file").is_usage());
        // What makes no sense is refused before there is a file.
        let tree = Plan { trees: vec!["b-plus:node=3000".to_string()], ..plan.clone() };
        let memory = Plan { memory: MemoryLimit::CachesAndBuffers(1024), ..plan.clone() };
        for wrong in [
            Plan { size_bytes: Some(100), ..plan.clone() },
            Plan { workload: "uniform:preload=50000000".to_string(), ..plan.clone() },
            tree,
            memory,
        ] {
            assert!(refused(&wrong, "").is_usage());
        }
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0, "{kind}");
    }
}

#[test]
fn a_run_that_fails_takes_away_the_file_that_it_made() {
    for kind in ["file", "nand-file"] {
        let (folder, path) = place();
        let mut plan = plan_on(kind, &path);
        plan.workload = TOO_MUCH.to_string();
        plan.size_bytes = Some(3 << 20);
        let comparison = run(&plan).unwrap();
        let error = comparison.measured[0].row.error.clone().expect("it gets full");
        assert!(error.contains("full"), "{error}");
        assert!(!comparison.remarks.iter().any(|remark| remark.contains("stays")));
        let watcher = Counting { patience: Some(0), ..Counting::default() };
        let error = compare(&plan_on(kind, &path), &watcher).unwrap().measured[0].row.error.clone();
        assert!(error.is_some_and(|error| error.contains("ended from outside")));
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0, "{kind}");
    }
}

#[test]
fn a_run_that_fails_leaves_a_file_that_was_there_before() {
    let (_folder, path) = place();
    let mut plan = plan_on("file", &path);
    run(&plan).unwrap();
    plan.workload = TOO_MUCH.to_string();
    plan.size_bytes = Some(1 << 20);
    assert!(run(&plan).unwrap().measured[0].row.error.is_some());
    assert!(path.exists());
}

#[test]
fn blocks_wear_out_where_an_endurance_is_given() {
    let lasting = Plan {
        device: "winbond-w25n01gv:blocks=24".to_string(),
        memory: MemoryLimit::CachesAndBuffers(32 << 10),
        ..plan("uniform:preload=5000,updates=20000,ltu=0", &["b-plus:flush=entry"])
    };
    let worn = Plan { device: lasting.device.clone() + ",endurance=3", ..lasting.clone() };
    let lasts = run(&lasting).unwrap().measured.remove(0).row;
    assert!(lasts.error.is_none() && lasts.erases_most > Some(6), "{lasts:?}");
    let row = run(&worn).unwrap().measured.remove(0).row;
    assert!(row.error.is_some_and(|error| error.contains("measuring")));
    assert!(row.operations < lasts.operations);
}

#[test]
fn every_parameter_of_every_translation_layer_is_reached_by_its_spec() {
    for layer in ftl::FTLS {
        let parameters: Vec<String> = layer
            .parameters
            .iter()
            .map(|parameter| format!("{}={}", parameter.name, parameter.default))
            .collect();
        let whole = format!("{}:{}", layer.name, parameters.join(","));
        for ftl in [layer.name.to_string(), whole] {
            let workload = "uniform:preload=2000,updates=1000,deletes=20";
            let plan = Plan { ftl: Some(ftl.clone()), ..plan(workload, &["b-plus:over=ftl"]) };
            let row = run(&plan).unwrap().measured.remove(0).row;
            assert_eq!((row.error, row.verified), (None, Verified::Full), "{ftl}");
            assert_eq!(row.ftl, Some(ftl));
        }
        let wrong = |ftl: String| Plan { ftl: Some(ftl), ..plan(ALL, &["b-plus"]) };
        assert!(refused(&wrong(format!("{}x", layer.name)), layer.name).is_usage());
        for parameter in layer.parameters {
            let name = parameter.name;
            refused(&wrong(format!("{}:{name}x=1", layer.name)), name);
            refused(&wrong(format!("{}:{name}=nonsense", layer.name)), "is not");
        }
    }
}

#[test]
fn a_drive_tells_what_its_flash_programmed_beside_what_the_tree_wrote() {
    let plan = Plan {
        device: "mtron-msd-sata3035".to_string(),
        size_bytes: Some(128 << 20),
        ..plan(ALL, &["b-plus"])
    };
    let comparison = run(&plan).unwrap();
    let row = &comparison.measured[0].row;
    assert_eq!((row.error.as_deref(), row.verified), (None, Verified::Full));
    let flash = row.flash_bytes_programmed.unwrap();
    assert_eq!(flash % (512 << 10), 0, "mapping units are programmed");
    let bytes = f64::from(1600 * 8 + 400 * 4);
    assert_eq!(row.flash_write_amplification, Some(flash as f64 / bytes));
    assert_eq!(row.write_amplification, Some(row.bytes_programmed as f64 / bytes));
    assert!(row.block_erases.is_some() && row.erases_most.is_some() && row.erases_mean.is_some());
    assert_eq!((row.system_bytes_read, row.latency_us.p99_99), (None, None));
    let again = run(&plan).unwrap().measured.remove(0).row;
    assert_eq!(timeless(again), timeless(row.clone()));
}
