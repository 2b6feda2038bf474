//! The grammar of specs: `NAME[:key=value,...]`, lists of them, and the numbers in them.

use std::fmt;

/// A name and its parameters, borrowed from the text that the user wrote.
///
/// Invariant: no part is empty, and no parameter is there twice.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Spec<'t> {
    /// The name.
    pub name: &'t str,
    /// Names and values of the parameters, in the order in which they were written.
    pub parameters: Vec<(&'t str, &'t str)>,
}

/// Why a text is no spec.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum SpecError {
    /// Nothing where a spec should be.
    Empty {
        /// The whole text.
        text: String,
    },
    /// A list that starts with a parameter.
    NoName {
        /// The parameter.
        piece: String,
    },
    /// A parameter that is not `key=value`.
    NoValue {
        /// What the parameter belongs to.
        owner: String,
        /// What was written.
        piece: String,
    },
    /// A parameter given twice.
    Twice {
        /// What the parameter belongs to.
        owner: String,
        /// The parameter.
        key: String,
    },
}

impl fmt::Display for SpecError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SpecError::Empty { text } => {
                write!(f, "a name is missing in \"{}\": write NAME[:key=value,...]", shown(text))
            }
            SpecError::NoName { piece } => {
                write!(f, "\"{}\" belongs to no name: write NAME:{}", shown(piece), shown(piece))
            }
            SpecError::NoValue { owner, piece } if piece.is_empty() => write!(
                f,
                "a parameter is missing in \"{}:\": write NAME[:key=value,...]",
                shown(owner)
            ),
            SpecError::NoValue { owner, piece } => write!(
                f,
                "\"{}\" is no parameter of {}: write key=value",
                shown(piece),
                shown(owner)
            ),
            SpecError::Twice { owner, key } => {
                write!(f, "{} has {} twice: give it once", shown(owner), shown(key))
            }
        }
    }
}

impl std::error::Error for SpecError {}

impl<'t> Spec<'t> {
    /// Reads one spec.
    ///
    /// # Errors
    /// A part is missing, or a parameter is there twice.
    pub fn parse(text: &'t str) -> Result<Self, SpecError> {
        match text.split_once(':') {
            Some((name, parameters)) => Spec::from_parts(text, name, Some(parameters)),
            None => Spec::from_parts(text, text, None),
        }
    }

    /// Reads a spec whose name is known already, `parameters` being what follows its colon.
    ///
    /// # Errors
    /// As [`Spec::parse`].
    pub fn from_parts(
        text: &str,
        name: &'t str,
        parameters: Option<&'t str>,
    ) -> Result<Self, SpecError> {
        if name.trim().is_empty() {
            return Err(SpecError::Empty { text: text.to_string() });
        }
        let mut spec = Spec { name, parameters: Vec::new() };
        for piece in parameters.into_iter().flat_map(|parameters| parameters.split(',')) {
            let Some((key, value)) = piece.split_once('=').filter(|(key, _)| !key.is_empty())
            else {
                let (owner, piece) = (name.to_string(), piece.to_string());
                return Err(SpecError::NoValue { owner, piece });
            };
            if spec.parameters.iter().any(|(known, _)| *known == key) {
                let (owner, key) = (name.to_string(), key.to_string());
                return Err(SpecError::Twice { owner, key });
            }
            spec.parameters.push((key, value));
        }
        Ok(spec)
    }
}

/// Splits a list of specs at its commas. A piece of the form `key=value` continues the spec before
/// it: `la-tree,la-tree:buffer=8192,k=3,b-plus` is three specs.
///
/// # Errors
/// A piece is empty, or the first one is a parameter.
pub fn split_list(text: &str) -> Result<Vec<String>, SpecError> {
    let mut specs: Vec<String> = Vec::new();
    for piece in text.split(',') {
        if piece.trim().is_empty() {
            return Err(SpecError::Empty { text: text.to_string() });
        }
        if !continues(piece) {
            specs.push(piece.to_string());
            continue;
        }
        let Some(spec) = specs.last_mut() else {
            return Err(SpecError::NoName { piece: piece.to_string() });
        };
        spec.push(if spec.contains(':') { ',' } else { ':' });
        spec.push_str(piece);
    }
    Ok(specs)
}

/// A parameter has its `=` before any colon; a spec has its colon first, or no `=` at all.
fn continues(piece: &str) -> bool {
    piece.find(['=', ':']).is_some_and(|place| piece.as_bytes().get(place) == Some(&b'='))
}

/// Reads a whole number: digits only, at most 64 bits.
#[must_use]
pub fn parse_count(text: &str) -> Option<u64> {
    if text.is_empty() || !text.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    text.parse().ok()
}

/// Reads a number that is not negative and may have decimals.
#[must_use]
pub fn parse_decimal(text: &str) -> Option<f64> {
    let plain = text.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
    text.parse().ok().filter(|_| plain)
}

/// A text from outside as it may stand in a line of output: short, and without control characters.
#[must_use]
pub fn shown(text: &str) -> String {
    const MOST: usize = 60;
    let mut line: String =
        text.chars().take(MOST).map(|c| if c.is_control() { '?' } else { c }).collect();
    if text.chars().nth(MOST).is_some() {
        line.push_str("...");
    }
    line
}

#[cfg(test)]
mod tests {
    use super::{Spec, SpecError, parse_count, parse_decimal, split_list};

    #[test]
    fn a_spec_is_a_name_and_its_parameters() {
        let spec = Spec::parse("la-tree:buffer=8192,k=3").unwrap();
        assert_eq!(spec.name, "la-tree");
        assert_eq!(spec.parameters, [("buffer", "8192"), ("k", "3")]);
        assert_eq!(Spec::parse("b-plus").unwrap().parameters, []);
        assert_eq!(Spec::parse("csv:key=a=b").unwrap().parameters, [("key", "a=b")]);
    }

    #[test]
    fn a_spec_with_a_part_missing_is_refused() {
        assert!(matches!(Spec::parse(""), Err(SpecError::Empty { .. })));
        assert!(matches!(Spec::parse(":node=1"), Err(SpecError::Empty { .. })));
        for text in ["a:", "a:b", "a:=1", "a:b=1,", "a:b=1,,c=2"] {
            assert!(matches!(Spec::parse(text), Err(SpecError::NoValue { .. })), "{text}");
        }
        let twice = Spec::parse("a:b=1,c=2,b=1");
        assert_eq!(twice, Err(SpecError::Twice { owner: "a".into(), key: "b".into() }));
    }

    #[test]
    fn a_list_continues_a_spec_with_pieces_that_are_parameters() {
        assert_eq!(
            split_list("la-tree,la-tree:buffer=8192,k=3,b-plus").unwrap(),
            ["la-tree", "la-tree:buffer=8192,k=3", "b-plus"]
        );
        assert_eq!(split_list("b-plus,node=4096,mu").unwrap(), ["b-plus:node=4096", "mu"]);
        assert_eq!(split_list("a:b=1,c=x:y").unwrap(), ["a:b=1,c=x:y"]);
        assert!(matches!(split_list("k=3,b-plus"), Err(SpecError::NoName { .. })));
        assert!(matches!(split_list("a,,b"), Err(SpecError::Empty { .. })));
        assert!(matches!(split_list(""), Err(SpecError::Empty { .. })));
    }

    #[test]
    fn errors_stay_on_one_line() {
        let text = format!("{}\n\u{1b}[31m", "x".repeat(500));
        let error = Spec::parse(&format!("a:{text}")).unwrap_err().to_string();
        assert!(error.len() < 200 && !error.contains(char::is_control), "{error}");
    }

    #[test]
    fn numbers_are_digits() {
        assert_eq!(parse_count("100"), Some(100));
        for wrong in ["", "-1", "+1", "1.5", "1e3", " 1", "99999999999999999999", "x"] {
            assert_eq!(parse_count(wrong), None, "{wrong}");
        }
        assert_eq!(parse_decimal("0.99"), Some(0.99));
        for wrong in ["", "-1", "1e3", "inf", "NaN", ".", "1.2.3"] {
            assert_eq!(parse_decimal(wrong), None, "{wrong}");
        }
    }
}
