//! Reading all that an index holds.

use index::{Index, KeyRange, Value};

use super::failure::Failure;
use super::session::Stop;
use super::truth::Found;

/// Reads everything that `index` holds, of which there are at most `most` entries, and verifies
/// its invariants.
pub(super) fn read_all(index: &mut dyn Index, most: usize) -> Result<Found, Stop> {
    let mut found = Found::default();
    found.names.extend(index.checkpoints().iter().map(|kept| kept.name.clone()));
    read_entries(index, most, &mut found)?;
    let mut findings = Vec::new();
    index
        .check(&mut |finding| findings.push(finding.to_string()))
        .map_err(|error| Stop::of("check", error))?;
    // Where the power is cut in the middle, what can't be read is a finding.
    if !findings.is_empty() {
        findings.truncate(4);
        return Err(Failure::Findings(findings).into());
    }
    Ok(found)
}

fn read_entries(index: &mut dyn Index, most: usize, found: &mut Found) -> Result<(), Stop> {
    let stop = |error| Stop::of("a range", error);
    let mut cursor = index.range(KeyRange::ALL).map_err(stop)?;
    while let Some((key, value)) = cursor.next().map_err(stop)? {
        let key = key.to_vec();
        let value = match value {
            Value::Inline(bytes) => bytes.to_vec(),
            Value::Long(announced) => {
                let mut bytes = Vec::new();
                // What an index announces is not believed before it is read.
                let mut piece = [0; 700];
                while bytes.len() < announced as usize {
                    let found = cursor.read_value(bytes.len() as u32, &mut piece).map_err(stop)?;
                    if found != announced {
                        return Err(Failure::ValueLength { announced, found }.into());
                    }
                    let rest = (announced as usize - bytes.len()).min(piece.len());
                    bytes.extend_from_slice(&piece[..rest]);
                }
                bytes
            }
        };
        found.entries.push((key, value));
        if found.entries.len() > most {
            return Err(Failure::Endless { most }.into());
        }
    }
    Ok(())
}
