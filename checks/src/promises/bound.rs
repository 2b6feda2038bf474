//! What a figure must be.

use std::fmt;

use serde::Deserialize;

/// A bound as its file has it: an operator and a number (`>= 5000000`), or a text (`is true`).
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(try_from = "String")]
pub enum Bound {
    /// The figure is a number that compares so with another.
    Number(Comparison, f64),
    /// The figure is exactly this text.
    Text(String),
}

/// How a figure compares with the number of its bound.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Comparison {
    /// `>=`
    AtLeast,
    /// `<=`
    AtMost,
    /// `>`
    More,
    /// `<`
    Less,
    /// `=`
    Equal,
}

/// The operators; those of two characters first, since `>` begins `>=`.
const OPERATORS: [(&str, Comparison); 5] = [
    (">=", Comparison::AtLeast),
    ("<=", Comparison::AtMost),
    (">", Comparison::More),
    ("<", Comparison::Less),
    ("=", Comparison::Equal),
];

impl TryFrom<String> for Bound {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        if let Some(text) = text.strip_prefix("is ") {
            return Ok(Bound::Text(text.to_owned()));
        }
        for (operator, comparison) in OPERATORS {
            if let Some(number) = text.strip_prefix(operator) {
                let number = parse_number(number);
                return number
                    .map(|number| Bound::Number(comparison, number))
                    .ok_or_else(|| format!("'{text}' has no number after {operator}"));
            }
        }
        Err(format!("'{text}' is neither '>= 5' (or <=, >, <, =) nor 'is TEXT'"))
    }
}

impl Bound {
    /// Whether the figure is compared as a text.
    #[must_use]
    pub fn is_text(&self) -> bool {
        matches!(self, Bound::Text(_))
    }

    /// Whether `figure` is what it must be. A figure that should be a number and is none is not.
    #[must_use]
    pub fn holds(&self, figure: &str) -> bool {
        match self {
            Bound::Text(text) => figure == text,
            Bound::Number(comparison, bound) => {
                parse_number(figure).is_some_and(|figure| comparison.holds(figure, *bound))
            }
        }
    }

    /// Whether `figure` is nearer to what it should be than `other`.
    #[must_use]
    pub fn prefers(&self, figure: &str, other: &str) -> bool {
        let (Bound::Number(comparison, _), Some(figure), Some(other)) =
            (self, parse_number(figure), parse_number(other))
        else {
            return self.holds(figure) && !self.holds(other);
        };
        match comparison {
            Comparison::AtLeast | Comparison::More => figure > other,
            Comparison::AtMost | Comparison::Less => figure < other,
            Comparison::Equal => false,
        }
    }
}

impl Comparison {
    fn holds(self, figure: f64, bound: f64) -> bool {
        match self {
            Comparison::AtLeast => figure >= bound,
            Comparison::AtMost => figure <= bound,
            Comparison::More => figure > bound,
            Comparison::Less => figure < bound,
            // Both were read from decimal text, so the same text gives the same number.
            Comparison::Equal => figure.total_cmp(&bound).is_eq(),
        }
    }
}

impl fmt::Display for Bound {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Bound::Text(text) => write!(formatter, "is {text}"),
            Bound::Number(comparison, number) => {
                let operator = OPERATORS.iter().find(|(_, known)| known == comparison);
                write!(formatter, "{} {number}", operator.map_or("", |(operator, _)| operator))
            }
        }
    }
}

/// A finite number, with or without separators between its thousands.
#[must_use]
pub fn parse_number(text: &str) -> Option<f64> {
    let plain: String = text.trim().chars().filter(|c| !matches!(c, '_' | ',' | '\'')).collect();
    plain.parse().ok().filter(|number: &f64| number.is_finite())
}

#[cfg(test)]
mod tests {
    use super::Bound;

    fn bound(text: &str) -> Bound {
        Bound::try_from(text.to_owned()).unwrap()
    }

    #[test]
    fn numbers_are_compared_as_the_operator_says() {
        let cases = [
            (">= 5_000_000", "5,000,000", "4999999.9"),
            ("<= 1.5", "1.5", "1.51"),
            ("> 0", "1e-9", "0"),
            ("< 5", "4", "5"),
            ("= 211061", "211061", "211060"),
        ];
        for (text, good, bad) in cases {
            assert!(bound(text).holds(good), "{good} {text}");
            assert!(!bound(text).holds(bad), "{bad} {text}");
        }
    }

    #[test]
    fn what_is_no_number_never_holds() {
        for figure in ["", "fast", "NaN", "inf", "null"] {
            assert!(!bound(">= 0").holds(figure), "{figure}");
            assert!(!bound("< 5").holds(figure), "{figure}");
        }
    }

    #[test]
    fn texts_are_compared_exactly() {
        assert!(bound("is true").holds("true"));
        assert!(!bound("is true").holds("true "));
        assert!(!bound("is 5").holds("5.0"));
    }

    #[test]
    fn the_better_of_two_figures_is_the_one_further_on_the_good_side() {
        assert!(bound(">= 5").prefers("4", "3"));
        assert!(!bound("<= 5").prefers("4", "3"));
    }
}
