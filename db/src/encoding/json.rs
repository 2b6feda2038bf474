//! The JSON forms of values: numbers are numbers, all else are strings, tuples are arrays.

use serde_json::value::RawValue;
use serde_json::{Number, Value as Json};

use super::text::print_f64;
use super::{Datum, Error, Type};

impl Type {
    /// The bytes of the value whose JSON form is `json`. A string stands for the text in it, and a
    /// number for its digits as they are written: so numbers may be given as strings, and numbers
    /// are texts where texts are wanted.
    ///
    /// # Errors
    /// It is no JSON form of a value of this type.
    ///
    /// ```
    /// use flashtree::encoding::{Type, encode};
    /// let key: Type = "tuple(text,f64)".parse()?;
    /// assert_eq!(key.from_json(r#"["a",1.5]"#)?, encode(&("a", 1.5)));
    /// assert_eq!(key.from_json("[1.50,1.50]")?, encode(&("1.50", 1.5)));
    /// # Ok::<(), flashtree::encoding::Error>(())
    /// ```
    pub fn from_json(&self, json: &str) -> Result<Vec<u8>, Error> {
        let json = serde_json::from_str(json).map_err(|_| Error::bad_text(json, "JSON"))?;
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

    pub(super) fn datum_from_json(&self, json: &RawValue) -> Result<Datum, Error> {
        let json = json.get();
        let bad = |expected| Error::bad_text(json, expected);
        if let Type::Tuple(types) = self {
            let components: Vec<&RawValue> =
                serde_json::from_str(json).map_err(|_| bad("JSON array"))?;
            if types.len() != components.len() {
                let (expected, found) = (types.len(), components.len());
                return Err(Error::Components { expected, found });
            }
            let components = types.iter().zip(components);
            let data = components.map(|(one, json)| one.datum_from_json(json));
            return Ok(Datum::Tuple(data.collect::<Result<_, _>>()?));
        }
        match json.as_bytes().first() {
            Some(b'"') => {
                let text: String = serde_json::from_str(json)
                    .map_err(|_| bad("string of JSON: half a character stands in it"))?;
                self.parse_datum(&text)
            }
            // A float between would lose digits.
            Some(b'-' | b'0'..=b'9') => self.parse_datum(json),
            _ => Err(bad("string or number")),
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
