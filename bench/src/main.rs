//! The program behind `bench/run`: one engine a process, and the tables of what they print.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use flashtree_bench::engine::{self, Setup};
use flashtree_bench::measure::{self, Plan};
use flashtree_bench::workload::{Shape, Workload};
use flashtree_bench::{Outcome, machine, probe, tables};
use serde_json::{Value, json};

const USAGE: &str = "usage: flashtree-bench engines
       flashtree-bench machine FOLDER
       flashtree-bench probe FOLDER
       flashtree-bench engine NAME FOLDER none|synced KEY+VALUE ENTRIES SECONDS MEMORY
       flashtree-bench tables RESULTS
       flashtree-bench document RESULTS DOCUMENT";

fn main() {
    let arguments: Vec<_> = std::env::args().skip(1).collect();
    let arguments: Vec<_> = arguments.iter().map(String::as_str).collect();
    if let Err(error) = act(&arguments) {
        eprintln!("flashtree-bench: {error}");
        std::process::exit(1);
    }
}

fn act(arguments: &[&str]) -> Outcome<()> {
    match arguments {
        ["engines"] => engine::all().iter().for_each(|kind| println!("{}", kind.name)),
        ["machine", folder] => println!("{}", machine::machine(Path::new(folder))),
        ["probe", folder] => println!("{}", probe::probe(Path::new(folder))?),
        ["engine", name, folder, durability, shape, sizes @ ..] => {
            engine(name, folder, (durability, shape), sizes)?;
        }
        ["tables", results] => print!("{}", tables::tables(&fs::read_to_string(results)?)?),
        ["document", results, document] => {
            let made = tables::tables(&fs::read_to_string(results)?)?;
            let whole = tables::put_into(&fs::read_to_string(document)?, &made)?;
            fs::write(document, whole)?;
        }
        _ => return Err(USAGE.into()),
    }
    Ok(())
}

fn engine(
    name: &str,
    folder: &str,
    (durability, shape): (&str, &str),
    sizes: &[&str],
) -> Outcome<()> {
    let [entries, seconds, memory] = sizes else { return Err(USAGE.into()) };
    let synced = match durability {
        "synced" => true,
        "none" => false,
        _ => return Err(USAGE.into()),
    };
    let plan = Plan {
        workload: Workload { entries: entries.parse()?, shape: Shape::parse(shape)? },
        setup: Setup { memory: memory.parse()?, synced },
        limit: Duration::from_secs_f64(seconds.parse()?),
        folder: PathBuf::from(folder),
    };
    let mut say = |mut figures: Value| {
        figures["engine"] = json!(name);
        figures["durability"] = json!(durability);
        figures["shape"] = json!(shape);
        println!("{figures}");
        eprint!(" {}", figures["phase"].as_str().unwrap_or_default());
    };
    let outcome = measure::run(engine::find(name)?, &plan, &mut say);
    if let Err(error) = &outcome {
        say(json!({ "phase": "error", "what": error.to_string() }));
    }
    outcome
}
