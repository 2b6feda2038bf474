//! What machine this is.

use std::fs;
use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};

use crate::system;

/// The machine, the system, and the file system of `folder`.
#[must_use]
pub fn machine(folder: &Path) -> Value {
    let read = |path| fs::read_to_string(path).unwrap_or_default();
    let (processor, memory) = (read("/proc/cpuinfo"), read("/proc/meminfo"));
    let model =
        processor.lines().find_map(|line| line.strip_prefix("model name")?.split_once(": "));
    let folder = folder.to_string_lossy();
    json!({
        "phase": "machine",
        "processor": model.map_or("unknown", |(_, model)| model),
        "processors": std::thread::available_parallelism().map_or(0, usize::from),
        "memory_mib": system::figure(&memory, "MemTotal:").map_or(0, |kib| kib / 1024),
        "load": read("/proc/loadavg").split(' ').next(),
        "kernel": read("/proc/sys/kernel/osrelease").trim(),
        "file_system": said("df", &["--output=fstype", &folder]),
        "disk": said("df", &["--output=source", &folder]),
        "date": said("date", &["-u", "+%Y-%m-%d %H:%M UTC"]),
    })
}

/// The last line that a command prints; "unknown" where it can't be run.
fn said(command: &str, arguments: &[&str]) -> String {
    let output = Command::new(command).args(arguments).output().ok();
    let text = output.and_then(|output| String::from_utf8(output.stdout).ok());
    let line = text.as_deref().and_then(|text| text.lines().last());
    line.unwrap_or("unknown").trim().to_owned()
}
