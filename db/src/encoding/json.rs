//! The JSON forms of values: numbers are numbers, all else are strings, tuples are arrays.

use serde_json::{Number, Value as Json};

use super::text::print_f64;
use super::{Datum, Error, Type};

impl Type {
    /// The bytes of the value whose JSON form is `json`. Numbers may be given as strings too.
    ///
    /// # Errors
    /// It is no JSON form of a value of this type.
    ///
    /// ```
    /// use flashtree::encoding::{Type, encode};
    /// let key: Type = "tuple(text,f64)".parse()?;
    /// let json = serde_json::json!(["a", 1.5]);
    /// assert_eq!(key.from_json(&json)?, encode(&("a", 1.5)));
    /// # Ok::<(), flashtree::encoding::Error>(())
    /// ```
    pub fn from_json(&self, json: &Json) -> Result<Vec<u8>, Error> {
        self.encode(&self.datum_from_json(json)?)
    }

    /// The JSON form of the value that `bytes` stand for.
    ///
    /// # Errors
    /// They stand for none of this type.
    ///
    /// ```
    /// use flashtree::encoding::{Type, encode};
    /// assert_eq!(Type::I64.to_json(&encode(&-5_i64))?, serde_json::json!(-5));
    /// # Ok::<(), flashtree::encoding::Error>(())
    /// ```
    pub fn to_json(&self, bytes: &[u8]) -> Result<Json, Error> {
        Ok(self.datum_to_json(&self.decode(bytes)?))
    }

    pub(super) fn datum_from_json(&self, json: &Json) -> Result<Datum, Error> {
        match (self, json) {
            (Type::Tuple(types), Json::Array(components)) => {
                if types.len() != components.len() {
                    let (expected, found) = (types.len(), components.len());
                    return Err(Error::Components { expected, found });
                }
                let components = types.iter().zip(components);
                let data = components.map(|(one, json)| one.datum_from_json(json));
                Ok(Datum::Tuple(data.collect::<Result<_, _>>()?))
            }
            (Type::Tuple(_), _) => Err(Error::bad_text(&json.to_string(), "JSON array")),
            (Type::F64, Json::Number(number)) => number
                .as_f64()
                .map(Datum::F64)
                .ok_or_else(|| Error::bad_text(&json.to_string(), "number")),
            (Type::I64 | Type::U64, Json::Number(number)) => self.parse_datum(&number.to_string()),
            (_, Json::String(text)) => self.parse_datum(text),
            _ => Err(Error::bad_text(&json.to_string(), "string, or number where that is meant")),
        }
    }

    pub(super) fn datum_to_json(&self, datum: &Datum) -> Json {
        match (self, datum) {
            (Type::Tuple(types), Datum::Tuple(data)) => {
                types.iter().zip(data).map(|(one, datum)| one.datum_to_json(datum)).collect()
            }
            (_, Datum::I64(number)) => (*number).into(),
            (_, Datum::U64(number)) => (*number).into(),
            // JSON has no NaN and no infinity.
            (_, Datum::F64(number)) => {
                Number::from_f64(*number).map_or_else(|| print_f64(*number).into(), Json::Number)
            }
            _ => self.print_datum(datum).into(),
        }
    }
}
