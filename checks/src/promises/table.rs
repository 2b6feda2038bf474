//! Promises as tables of text.

use comfy_table::Table;
use comfy_table::presets::ASCII_MARKDOWN;

use super::run::{Outcome, Verdict};
use super::{Form, Promise};

/// A table of promises that did not run.
#[must_use]
pub fn of_promises(promises: &[Promise]) -> String {
    let mut table = table(&["promise", "command", "bound", "takes"]);
    for promise in promises {
        table.add_row([
            format!("{}: {}", promise.name, promise.promise),
            promise.command_line(Form::Full),
            with_unit(&promise.bound.to_string(), promise),
            promise.slow.map_or_else(String::new, |slow| format!("{slow} s")),
        ]);
    }
    format!("{table}\n")
}

/// A table of promises and what came of them.
#[must_use]
pub fn of_outcomes(outcomes: &[Outcome]) -> String {
    let mut table = table(&["promise", "command", "figure", "bound", "took", "holds"]);
    for outcome in outcomes {
        let Outcome { promise, form, figure, seconds, runs } = outcome;
        let runs = if *runs > 1 { format!(" in {runs} runs") } else { String::new() };
        table.add_row([
            format!("{}: {}", promise.name, promise.promise),
            promise.command_line(*form),
            figure.clone().map_or_else(|why| why, |figure| with_unit(&figure, promise)),
            with_unit(&promise.bound.to_string(), promise),
            format!("{seconds:.1} s{runs}"),
            match outcome.verdict() {
                Verdict::Holds => "yes".to_owned(),
                Verdict::Slow => "slow here".to_owned(),
                Verdict::Skipped => "skipped".to_owned(),
                Verdict::Broken => "NO".to_owned(),
            },
        ]);
    }
    format!("{table}\n")
}

fn table(header: &[&str]) -> Table {
    let mut table = Table::new();
    table.load_style(ASCII_MARKDOWN).set_header(header);
    table
}

/// A figure or bound with its unit behind it.
fn with_unit(figure: &str, promise: &Promise) -> String {
    match &promise.unit {
        Some(unit) => format!("{figure} {unit}"),
        None => figure.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::{of_outcomes, of_promises};
    use crate::promises::run::Outcome;
    use crate::promises::{Form, Promise};

    #[test]
    fn each_promise_is_a_row_with_its_figure_bound_and_time() {
        let text = "promise = 'It is quick.'\ncommand = ['echo', '4']\n\
            figure = { regex = '(\\d)' }\nbound = '>= 5'\nunit = 'MB'\nslow = 60";
        let promise = Promise::parse("quick", text).unwrap();
        assert!(
            of_promises(std::slice::from_ref(&promise)).contains("| echo 4  | >= 5 MB | 60 s  |")
        );
        let figure = Ok("4".to_owned());
        let mut outcome = Outcome { promise, form: Form::Full, figure, seconds: 1.26, runs: 2 };
        let table = of_outcomes(&[outcome.clone()]);
        assert!(table.contains("| promise             | command | figure | bound   |"), "{table}");
        let row = "| quick: It is quick. | echo 4  | 4 MB   | >= 5 MB | 1.3 s in 2 runs | NO    |";
        assert!(table.contains(row), "{table}");
        outcome.figure = Ok("5".to_owned());
        assert!(of_outcomes(&[outcome]).contains("| yes   |"));
    }
}
