//! Tests of the page.

use super::{command, page, quoted};
use crate::report::samples;

#[test]
fn the_page_refers_to_nothing_outside_itself() {
    for trees in [0, 1, 3, 10] {
        let html = page(&samples::plan(trees), &samples::comparison(trees)).unwrap();
        for reference in ["http:", "https:", "src=", "href=", "url(", "@import", "<script", "<link"]
        {
            assert!(!html.contains(reference), "{trees} trees: {reference}");
        }
    }
}

#[test]
fn text_from_outside_is_escaped_everywhere() {
    const ATTACK: &str = "<script>alert(\"'1'\")</script>&";
    let mut plan = samples::plan(2);
    let mut comparison = samples::comparison(2);
    plan.device = ATTACK.to_owned();
    plan.workload = ATTACK.to_owned();
    plan.input = Some(ATTACK.into());
    comparison.left_out[0].tree = ATTACK.to_owned();
    comparison.left_out[0].reason = ATTACK.to_owned();
    for measured in &mut comparison.measured {
        measured.row.tree = ATTACK.to_owned();
        measured.row.ftl = Some(ATTACK.to_owned());
        measured.row.by_cause.insert(ATTACK.to_owned(), 1.0);
    }
    comparison.measured[1].row.error = Some(ATTACK.to_owned());
    comparison.measured.push(comparison.measured[0].clone());
    comparison.measured[2].erases_by_block.clear();
    let html = page(&plan, &comparison).unwrap();
    assert!(!html.contains("<script"));
    assert!(html.matches("script").count() > 10, "the text is shown");
}

#[test]
fn the_page_holds_every_plot_and_figure_of_every_tree() {
    let html = page(&samples::plan(10), &samples::comparison(10)).unwrap();
    assert_eq!(html.matches("role=\"img\"").count(), 1 + 10 + 1);
    for measured in samples::measured(10) {
        assert!(html.contains(&measured.row.tree));
        assert!(html.contains(&crate::numbers::thousands(measured.row.page_reads)));
    }
    assert!(html.contains("mu-star") && html.contains("list"));
}

#[test]
fn trees_that_failed_are_told_with_their_reason() {
    let mut comparison = samples::comparison(2);
    for measured in &mut comparison.measured {
        measured.row.error = Some("the device is full".to_owned());
    }
    let html = page(&samples::plan(2), &comparison).unwrap();
    assert!(html.contains("No tree finished"));
    assert!(html.contains("the device is full"));
}

#[test]
fn the_command_can_be_typed_again() {
    let mut plan = samples::plan(2);
    plan.operations = Some(1000);
    assert_eq!(
        command(&plan, &samples::measured(2)),
        "flashtree compare --device winbond-w25n01gv --workload weather:ltu=10 \
         --trees b-plus,b-plus:node=4096,fill=80 --ftl page-map --memory 128KiB --ops 1000 \
         --seed 1 --durability none --verify full"
    );
    assert_eq!(quoted("my file's.csv"), r"'my file'\''s.csv'");
    assert_eq!(quoted(""), "''");
}
