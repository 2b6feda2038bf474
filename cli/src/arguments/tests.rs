//! Tests of the grammar.

use lab::{Durability, MemoryLimit, Verify};

use super::{CompareFormat, Invocation, ListFormat, parse_from};
use crate::arguments::CompareRequest as Request;
use crate::failure::Failure;

fn parsed(line: &str) -> Result<Invocation, Failure> {
    parse_from(format!("flashtree {line}").split_whitespace().map(str::to_owned))
}

fn compare(line: &str) -> Request {
    match parsed(&format!("compare {line}")) {
        Ok(Invocation::Compare(request)) => *request,
        other => panic!("{line}: {other:?}"),
    }
}

#[test]
fn compare_without_options_has_the_defaults_and_a_report() {
    let request = compare("");
    let plan = &request.plan;
    let named = (plan.device.as_str(), plan.workload.as_str());
    assert_eq!(named, ("winbond-w25n01gv:blocks=256", "weather"));
    assert_eq!(plan.trees, Vec::<String>::new());
    assert_eq!(plan.ftl, None);
    assert_eq!(plan.memory, MemoryLimit::Total(393_216));
    assert_eq!((plan.size_bytes, plan.operations, plan.seed), (None, None, 1));
    assert_eq!((&plan.chip, plan.overwrite), (&None, false));
    assert_eq!((plan.durability, plan.verify), (Durability::None, Verify::Full));
    assert!(plan.jobs >= 1 && plan.input.is_none());
    assert_eq!(request.report.unwrap().to_str(), Some("flashtree-report.html"));
    assert!(request.announce && request.save.is_none());
    assert_eq!(request.format, CompareFormat::Table);
}

#[test]
fn any_option_leaves_the_report_to_the_user() {
    for line in ["--seed 1", "--memory 128KiB", "--quiet", "--format table", "--jobs 2"] {
        let request = compare(line);
        assert!(request.report.is_none() && !request.announce, "{line}");
    }
    let request = compare("--seed 1 --report x.html");
    assert_eq!(request.report.unwrap().to_str(), Some("x.html"));
    assert!(!request.announce);
}

#[test]
fn every_option_of_compare_reaches_the_plan() {
    let request = compare(
        "--device nandsim:blocks=64,spare=off --workload csv:key=a,value=b --input in.csv \
         --trees la-tree,la-tree:buffer=8192,k=3 --tree b-plus:node=4096,fill=80 --tree mu \
         --ftl page-map:over-provision=0.1 --memory-total 1MB --size 4MiB --ops 1000 --seed 7 \
         --durability batch --verify sampled --format csv --report r.html --save s.json --jobs 3",
    );
    let plan = request.plan;
    assert_eq!(plan.device, "nandsim:blocks=64,spare=off");
    assert_eq!(plan.workload, "csv:key=a,value=b");
    assert_eq!(plan.input.unwrap().to_str(), Some("in.csv"));
    assert_eq!(
        plan.trees,
        ["la-tree", "la-tree:buffer=8192,k=3", "b-plus:node=4096,fill=80", "mu"]
    );
    assert_eq!(plan.ftl.as_deref(), Some("page-map:over-provision=0.1"));
    assert_eq!(plan.memory, MemoryLimit::Total(1_000_000));
    assert_eq!(plan.size_bytes, Some(4 << 20));
    assert_eq!((plan.operations, plan.seed, plan.jobs), (Some(1000), 7, 3));
    assert_eq!((plan.durability, plan.verify), (Durability::Batch, Verify::Sampled));
    assert_eq!(request.format, CompareFormat::Csv);
    assert_eq!(request.save.unwrap().to_str(), Some("s.json"));
}

#[test]
fn a_device_in_a_file_takes_a_chip_and_may_overwrite() {
    let plan = compare("--device nand-file:a:b --chip nandsim:blocks=64,bad=2 --overwrite").plan;
    assert_eq!((plan.device.as_str(), plan.overwrite), ("nand-file:a:b", true));
    assert_eq!(plan.chip.as_deref(), Some("nandsim:blocks=64,bad=2"));
}

#[test]
fn every_word_of_the_grammar_is_known() {
    for (word, durability) in [
        ("none", Durability::None),
        ("checkpoint", Durability::Checkpoint),
        ("batch", Durability::Batch),
        ("every", Durability::Every),
    ] {
        assert_eq!(compare(&format!("--durability {word}")).plan.durability, durability);
    }
    for (word, verify) in
        [("full", Verify::Full), ("sampled", Verify::Sampled), ("off", Verify::Off)]
    {
        assert_eq!(compare(&format!("--verify {word}")).plan.verify, verify);
    }
    assert_eq!(compare("--format json").format, CompareFormat::Json);
}

#[test]
fn sizes_have_binary_and_decimal_units() {
    for (text, bytes) in [("1000", 1000), ("64KiB", 65_536), ("2MiB", 2 << 20), ("1kB", 1000)] {
        let plan = compare(&format!("--memory {text}")).plan;
        assert_eq!(plan.memory, MemoryLimit::CachesAndBuffers(bytes));
    }
}

#[test]
fn lists_take_a_name_and_a_format() {
    assert!(matches!(parsed("devices"), Ok(Invocation::Devices(list)) if list.name.is_none()));
    assert!(matches!(
        parsed("trees b-plus --format json"),
        Ok(Invocation::Trees(list))
            if list.name.as_deref() == Some("b-plus") && list.format == ListFormat::Json
    ));
    assert!(matches!(parsed("workloads weather --quiet"), Ok(Invocation::Workloads(_))));
}

#[test]
fn wrong_usage_is_refused_in_one_line() {
    for line in [
        "",
        "compar",
        "create",
        "compare b-plus",
        "compare --ops 0",
        "compare --ops -5",
        "compare --ops many",
        "compare --seed 1.5",
        "compare --seed -1",
        "compare --jobs 0",
        "compare --memory 1.5KiB",
        "compare --memory -1",
        "compare --memory 128kib",
        "compare --memory 1KiB --memory-total 2KiB",
        "compare --size 99999999999GiB",
        "compare --durability some",
        "compare --verify half",
        "compare --format xml",
        "compare --trees ,",
        "compare --trees k=3",
        "compare --tree b-plus,mu",
        "compare --device",
        "devices --format csv",
        "devices a b",
        "trees --seed 1",
    ] {
        let failure = parsed(line).expect_err(line);
        assert_eq!(failure.exit_code(), 2, "{line}");
        if !line.is_empty() {
            assert!(!failure.to_string().contains('\n'), "{line}: {failure}");
        }
    }
}

#[test]
fn a_wrong_number_is_told_with_what_is_expected() {
    for (line, expected) in [
        ("--ops 0", "1 or more"),
        ("--ops x", "a whole number"),
        ("--memory 12qB", "a size in bytes"),
        ("--seed x", "a whole number"),
        ("--durability some", "[possible values: none, checkpoint, batch, every]"),
    ] {
        let failure = parsed(&format!("compare {line}")).expect_err(line).to_string();
        assert!(failure.contains(expected), "{line}: {failure}");
    }
}

#[test]
fn near_commands_and_options_are_suggested() {
    assert!(parsed("compar").unwrap_err().to_string().contains("compare"));
    assert!(parsed("compare --memry 1KiB").unwrap_err().to_string().contains("--memory"));
}
