//! Rows of JSON: an object a line.

use std::borrow::Cow;
use std::fmt;
use std::io::{BufRead, BufReader};

use db::encoding::{Time, Type};
use lab::input::{Meter, NUL, RowFault, Source};
use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde_json::error::Category;
use serde_json::value::RawValue;

use super::{Entry, Row};
use crate::arguments::files::Import;
use crate::failure::FileFailure;
use crate::files::columns::{ROW, check_count, names};

/// Objects, with keys and values in some of their members.
pub(super) struct JsonRows {
    reader: BufReader<Source>,
    meter: Meter,
    types: (Type, Type),
    key: Vec<String>,
    value: Vec<String>,
    null: Option<String>,
    time_format: Option<String>,
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
        if arguments.rows.delimiter.is_some() {
            return Err(FileFailure::Option("--delimiter is for CSV: JSON lines have none"));
        }
        if arguments.no_header {
            return Err(FileFailure::Option("--no-header is for CSV: JSON lines have no heading"));
        }
        let members = |what: &'static str, given: &Option<String>, kind: &Type| {
            let list = given.as_deref().unwrap_or(what);
            let is_one = !matches!(kind, Type::Tuple(_));
            let mut members: Vec<String> =
                names(list, |_| is_one).into_iter().map(str::to_owned).collect();
            if what == "value" && list.is_empty() {
                // Keys only.
                members.clear();
            }
            check_count(what, members.len(), kind).map(|()| members)
        };
        let key = members("key", &arguments.rows.key, &types.0)?;
        let value = members("value", &arguments.rows.value, &types.1)?;
        let is_left_out = arguments.rows.key.is_none() || arguments.rows.value.is_none();
        if let Some(both) = key.iter().find(|name| is_left_out && value.contains(name)) {
            return Err(FileFailure::SameColumns { column: both.clone() });
        }
        Ok(JsonRows {
            meter: source.meter(),
            reader: BufReader::new(source),
            key,
            value,
            types,
            null: arguments.null.clone(),
            time_format: arguments.rows.time_format.clone(),
            line: 0,
            bytes: Vec::new(),
        })
    }

    /// Reads row `number`. Empty lines are passed over.
    pub(super) fn next(&mut self, number: u64, into: &mut Entry) -> Result<Row, RowFault> {
        loop {
            self.bytes.clear();
            self.line += 1;
            let read = self.reader.read_until(b'\n', &mut self.bytes);
            if read.map_err(RowFault::Unreadable)? == 0 {
                return Ok(Row::End);
            }
            self.meter.end_row();
            if !self.bytes.trim_ascii().is_empty() {
                break;
            }
        }
        into.line = self.line;
        let bad = |what: String| RowFault::Bad { line: self.line, what };
        let object: Object<'_> =
            serde_json::from_slice(self.bytes.trim_ascii_end()).map_err(|error| {
                match error.classify() {
                    _ if self.bytes.contains(&0) => bad(NUL.to_owned()),
                    Category::Data => bad("this is no JSON object".to_owned()),
                    _ => bad(no_json(&error)),
                }
            })?;
        if let Some(name) = object.name_twice() {
            return Err(bad(format!("it has two members \"{name}\"; take one of them out")));
        }
        if let Some(null) = &self.null
            && self.key.iter().chain(&self.value).any(|name| object.is_null(name, null))
        {
            return Ok(Row::Null);
        }
        let bytes = |names: &[String], kind: &Type| {
            object.bytes(names, (kind, self.time_format.as_deref()), number)
        };
        into.key = bytes(&self.key, &self.types.0).map_err(bad)?;
        into.value = bytes(&self.value, &self.types.1).map_err(bad)?;
        Ok(Row::Entry)
    }

    /// How much was read.
    pub(super) const fn meter(&self) -> &Meter {
        &self.meter
    }
}

/// A time, written as JSON in `format`, in the form that all times have.
fn in_usual_form(format: &str, json: &str) -> Result<String, String> {
    let text: String =
        serde_json::from_str(json).map_err(|_| format!("expected a time in a text, not {json}"))?;
    match Time::strptime(format, &text) {
        Ok(time) => Ok(format!("\"{time}\"")),
        Err(error) => Err(error.to_string()),
    }
}

/// What is said of a line that is no JSON. Its number is not said once more.
fn no_json(error: &serde_json::Error) -> String {
    let text = error.to_string();
    let what = text.rsplit_once(" at line ").map_or(text.as_str(), |(what, _)| what);
    format!("this is no JSON: {what} at column {}", error.column())
}

/// The members of an object, by name, with their values as they are written: what a value is, its
/// type says. A number that went through a float would not be the same any more.
struct Object<'r>(Vec<(String, &'r RawValue)>);

impl<'r> Object<'r> {
    /// A name that several members have.
    fn name_twice(&self) -> Option<&str> {
        let pair = self.0.windows(2).find(|pair| pair[0].0 == pair[1].0)?;
        Some(&pair[0].0)
    }

    fn member(&self, name: &str) -> Option<&'r str> {
        let place = self.0.binary_search_by(|(known, _)| known.as_str().cmp(name)).ok()?;
        Some(self.0[place].1.get())
    }

    /// True if the member is null, or a text that stands for it.
    fn is_null(&self, name: &str, null: &str) -> bool {
        self.member(name).is_some_and(|json| {
            json == "null" || serde_json::from_str::<String>(json).is_ok_and(|text| text == null)
        })
    }

    /// The key or value that stands in the members `names`.
    fn bytes(
        &self,
        names: &[String],
        (kind, time_format): (&Type, Option<&str>),
        number: u64,
    ) -> Result<Vec<u8>, String> {
        let kinds = match kind {
            Type::Tuple(types) if types.len() == names.len() => types.as_slice(),
            kind => std::slice::from_ref(kind),
        };
        let is_time = |name: &String| {
            let place = names.iter().position(|known| known == name);
            place.and_then(|place| kinds.get(place)) == Some(&Type::Time)
        };
        let member = |name: &String| match self.member(name) {
            Some(json) => match time_format.filter(|_| is_time(name)) {
                Some(format) => in_usual_form(format, json).map(Cow::Owned),
                None => Ok(Cow::Borrowed(json)),
            },
            None if name == ROW => Ok(Cow::Owned(number.to_string())),
            None => Err(format!("it has no member \"{name}\"")),
        };
        let json = match names {
            [] => return Ok(Vec::new()),
            [one] => member(one)?,
            several => {
                let components = several.iter().map(member).collect::<Result<Vec<_>, _>>()?;
                Cow::Owned(format!("[{}]", components.join(",")))
            }
        };
        kind.from_json(&json).map_err(|error| format!("{}: {error}", names.join(",")))
    }
}

impl<'de> Deserialize<'de> for Object<'de> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct Members;

        impl<'de> Visitor<'de> for Members {
            type Value = Object<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Object<'de>, A::Error> {
                let mut members = Vec::new();
                while let Some(member) = map.next_entry()? {
                    members.push(member);
                }
                members.sort_by(|(one, _): &(String, _), (other, _)| one.cmp(other));
                Ok(Object(members))
            }
        }

        from.deserialize_map(Members)
    }
}
