//! Rows of JSON: an object a line.

use std::io::{BufRead, BufReader};

use db::encoding::Type;
use serde_json::{Map, Value as Json};

use super::source::{Meter, Source};
use super::{Entry, RowFault};
use crate::files::FileFailure;
use crate::files::arguments::Import;
use crate::files::columns::{ROW, check_count, names};

/// Objects, with keys and values in some of their members.
pub(super) struct JsonRows {
    reader: BufReader<Source>,
    meter: Meter,
    types: (Type, Type),
    key: Vec<String>,
    value: Vec<String>,
    line: u64,
    bytes: Vec<u8>,
}

impl JsonRows {
    /// Reads objects with the members that the user names, or else `key` and `value`.
    ///
    /// # Errors
    /// There are not as many as the types have components.
    pub(super) fn open(
        source: Source,
        arguments: &Import,
        types: (Type, Type),
    ) -> Result<Self, FileFailure> {
        if arguments.no_header {
            return Err(FileFailure::Option("--no-header is for CSV: JSON lines have no heading"));
        }
        let members = |what: &'static str, given: &Option<String>, kind: &Type| {
            let list = given.as_deref().unwrap_or(what);
            let is_one = !matches!(kind, Type::Tuple(_));
            let members: Vec<String> =
                names(list, |_| is_one).into_iter().map(str::to_owned).collect();
            check_count(what, members.len(), kind).map(|()| members)
        };
        Ok(JsonRows {
            meter: source.meter(),
            reader: BufReader::new(source),
            key: members("key", &arguments.rows.key, &types.0)?,
            value: members("value", &arguments.rows.value, &types.1)?,
            types,
            line: 0,
            bytes: Vec::new(),
        })
    }

    /// Reads row `number`; false at the end. Empty lines are passed over.
    pub(super) fn next(&mut self, number: u64, into: &mut Entry) -> Result<bool, RowFault> {
        loop {
            self.bytes.clear();
            self.line += 1;
            let read = self.reader.read_until(b'\n', &mut self.bytes);
            if read.map_err(RowFault::Unreadable)? == 0 {
                return Ok(false);
            }
            self.meter.end_row();
            if !self.bytes.trim_ascii().is_empty() {
                break;
            }
        }
        into.line = self.line;
        let bad = |what: String| RowFault::Bad { line: self.line, what };
        let object = match serde_json::from_slice(&self.bytes) {
            Ok(Json::Object(object)) => object,
            Ok(_) => return Err(bad("this is no JSON object".to_owned())),
            Err(error) => return Err(bad(format!("this is no JSON: {error}"))),
        };
        into.key = bytes(&object, &self.key, &self.types.0, number).map_err(bad)?;
        into.value = bytes(&object, &self.value, &self.types.1, number).map_err(bad)?;
        Ok(true)
    }

    /// How much was read.
    pub(super) const fn meter(&self) -> &Meter {
        &self.meter
    }
}

/// The key or value that stands in some members.
fn bytes(
    object: &Map<String, Json>,
    members: &[String],
    kind: &Type,
    number: u64,
) -> Result<Vec<u8>, String> {
    let member = |name: &String| match object.get(name) {
        Some(json) => Ok(json.clone()),
        None if name == ROW => Ok(number.into()),
        None => Err(format!("it has no member \"{name}\"")),
    };
    let json = match members {
        [one] => member(one)?,
        several => Json::Array(several.iter().map(member).collect::<Result<_, _>>()?),
    };
    let read = match (kind, &json) {
        // A number is a text where one is wanted, as @row is.
        (Type::Bytes | Type::Text, Json::Number(text)) => kind.to_bytes(&text.to_string()),
        _ => kind.from_json(&json),
    };
    read.map_err(|error| format!("{}: {error}", members.join(",")))
}
