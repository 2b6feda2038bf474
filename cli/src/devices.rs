//! `flashtree devices`: the catalogue of devices.

use chips::{Device, Figure, Value};

use crate::arguments::{ListArguments, ListFormat};
use crate::failure::Failure;
use crate::numbers::{rounded_size, short, thousands, three_digits};
use crate::output::{self, Sheet};

/// Prints all devices, or every figure of one.
///
/// # Errors
/// There is no such device, or standard output can't be written.
pub(crate) fn run(arguments: &ListArguments) -> Result<(), Failure> {
    let named = arguments.name.as_deref().map(find).transpose()?;
    let text = match (arguments.format, named) {
        (ListFormat::Json, None) => output::json(chips::all())?,
        (ListFormat::Json, Some(device)) => output::json(&[device])?,
        (ListFormat::Table, None) => list(chips::all()),
        (ListFormat::Table, Some(device)) => describe(device),
    };
    output::print(&text)
}

fn find(name: &str) -> Result<&'static Device, Failure> {
    let near = || chips::near(name);
    chips::find(name).ok_or_else(|| Failure::Unknown {
        kind: "device",
        name: name.to_owned(),
        near: near(),
    })
}

/// The figures of the first name that the device has, in the order of preference.
fn first<'d>(device: &'d Device, names: &[&str]) -> Option<&'d Figure> {
    names.iter().find_map(|name| device.figure(name))
}

fn dash(text: Option<String>) -> String {
    text.unwrap_or_else(|| "-".to_owned())
}

fn amount(device: &Device, names: &[&str]) -> Option<u64> {
    first(device, names).and_then(Figure::base_amount)
}

fn time(device: &Device, names: &[&str]) -> String {
    dash(amount(device, names).map(|ns| match ns {
        _ if ns >= 1_000_000 => format!("{} ms", short(ns as f64 / 1e6)),
        _ => format!("{} µs", short(ns as f64 / 1e3)),
    }))
}

fn block(device: &Device) -> Option<String> {
    let page = amount(device, &["page_bytes", "flash_page_bytes"])?;
    let pages = amount(device, &["pages_per_block", "flash_pages_per_block"])?;
    page.checked_mul(pages).map(rounded_size)
}

fn list(devices: &[Device]) -> String {
    let mut sheet = Sheet {
        heading: HEADING.iter().map(ToString::to_string).collect(),
        rows: Vec::new(),
        text_columns: vec![0, 1, 9],
    };
    for device in devices {
        sheet.rows.push(vec![
            device.name().to_owned(),
            device.kind().name().to_owned(),
            dash(amount(device, &["page_bytes", "sector_bytes"]).map(rounded_size)),
            dash(block(device)),
            dash(device.capacity_bytes().map(rounded_size)),
            time(device, &["read_typical", "read_most", "random_read", "flash_read"]),
            time(device, &["program_typical", "program_most", "random_write", "flash_program"]),
            time(device, &["erase_typical", "erase_most", "flash_erase"]),
            dash(amount(device, &["endurance_cycles"]).map(thousands)),
            device.missing().join(", "),
        ]);
    }
    format!(
        "{}\nTimes are without the bytes moved; of a disk, those of a random request, or of the \
         chips in it. A device with missing figures can't be simulated.\nAll figures of one with \
         their sources: flashtree devices NAME\nIn real files: file:PATH is a disk, \
         nand-file:PATH imitates a chip of these\n",
        sheet.to_text()
    )
}

const HEADING: [&str; 10] = [
    "name",
    "kind",
    "page",
    "block",
    "capacity",
    "read",
    "program",
    "erase",
    "endurance\ncycles",
    "missing",
];

fn describe(device: &Device) -> String {
    let mut sheet = Sheet {
        heading: ["figure", "value", "kind", "source"].map(str::to_owned).to_vec(),
        rows: Vec::new(),
        text_columns: vec![0, 2, 3],
    };
    for figure in device.figures() {
        let unit = figure.unit.map(|unit| format!(" {}", unit.replace("us", "µs")));
        sheet.rows.push(vec![
            figure.name.to_owned(),
            value(&figure.value) + &unit.unwrap_or_default(),
            figure.kind.name().to_owned(),
            figure.source.clone(),
        ]);
    }
    let missing = match device.missing().as_slice() {
        [] => String::new(),
        missing => {
            format!("\nMissing for a simulation, since no source has it: {}\n", missing.join(", "))
        }
    };
    format!(
        "{}: {} {}, {}\n{}\n\n{}{missing}",
        device.name(),
        device.maker(),
        device.model(),
        device.kind(),
        device.about(),
        sheet.to_text(),
    )
}

fn value(value: &Value) -> String {
    match value {
        Value::Integer(number) if *number < 10_000 => number.to_string(),
        Value::Integer(number) => thousands(*number),
        Value::Decimal(number) if number.abs() >= 10_000.0 => three_digits(*number),
        other => other.to_string(),
    }
}
