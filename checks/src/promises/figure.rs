//! How a figure is read from what a command printed.

use regex::Regex;
use serde::Deserialize;

/// Where a figure stands in a command's output.
#[derive(Clone, Debug, Deserialize)]
#[serde(try_from = "Written")]
pub enum Figure {
    /// At this JSON pointer (`/0/device_us_per_op`) of standard output, all of which is JSON.
    Json(String),
    /// In the one group of the last match of this expression.
    Regex {
        /// The expression; `^` and `$` are the ends of a line.
        regex: Regex,
        /// Which output it is matched in.
        stream: Stream,
    },
    /// The seconds that the command took.
    Seconds,
}

/// An output of a command.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Stream {
    /// Standard output.
    #[default]
    Stdout,
    /// Standard error.
    Stderr,
}

/// What a command printed and how long it took.
#[derive(Clone, Debug, Default)]
pub struct Output {
    /// Its standard output.
    pub stdout: String,
    /// Its standard error.
    pub stderr: String,
    /// How long it took, in seconds.
    pub seconds: f64,
}

/// A figure as its file has it.
#[derive(Deserialize)]
#[serde(untagged)]
enum Written {
    Json(JsonFigure),
    Regex(RegexFigure),
    Word(String),
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct JsonFigure {
    json: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RegexFigure {
    regex: String,
    #[serde(default)]
    from: Stream,
}

impl TryFrom<Written> for Figure {
    type Error = String;

    fn try_from(written: Written) -> Result<Self, String> {
        match written {
            Written::Json(JsonFigure { json }) if json.is_empty() || json.starts_with('/') => {
                Ok(Figure::Json(json))
            }
            Written::Json(JsonFigure { json }) => {
                Err(format!("the JSON pointer '{json}' does not begin with /"))
            }
            Written::Regex(RegexFigure { regex, from }) => {
                let lines = format!("(?m){regex}");
                let regex = Regex::new(&lines).map_err(|error| error.to_string())?;
                match regex.captures_len() {
                    2 => Ok(Figure::Regex { regex, stream: from }),
                    _ => Err(format!("'{regex}' must have exactly one group")),
                }
            }
            Written::Word(word) if word == "seconds" => Ok(Figure::Seconds),
            Written::Word(word) => Err(format!("no figure is called '{word}', only 'seconds'")),
        }
    }
}

impl Figure {
    /// Reads the figure.
    ///
    /// # Errors
    /// It is not there; the error says what was looked for.
    pub fn read(&self, output: &Output) -> Result<String, String> {
        match self {
            Figure::Json(pointer) => read_json(pointer, &output.stdout),
            Figure::Regex { regex, stream } => {
                let text = match stream {
                    Stream::Stdout => &output.stdout,
                    Stream::Stderr => &output.stderr,
                };
                let last = regex.captures_iter(text).last();
                let group = last.and_then(|found| found.get(1));
                group
                    .map(|group| group.as_str().to_owned())
                    .ok_or_else(|| format!("nothing matches {regex}"))
            }
            Figure::Seconds => Ok(format!("{:.3}", output.seconds)),
        }
    }
}

fn read_json(pointer: &str, text: &str) -> Result<String, String> {
    let json: serde_json::Value =
        serde_json::from_str(text).map_err(|error| format!("the output is no JSON: {error}"))?;
    match json.pointer(pointer) {
        None => Err(format!("the output has nothing at {pointer}")),
        Some(serde_json::Value::String(text)) => Ok(text.clone()),
        Some(value) => Ok(value.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::{Figure, Output};

    #[derive(serde::Deserialize)]
    struct File {
        figure: Figure,
    }

    fn figure(text: &str) -> Figure {
        toml::from_str::<File>(&format!("figure = {text}")).unwrap().figure
    }

    fn output(stdout: &str) -> Output {
        Output { stdout: stdout.to_owned(), stderr: "7 errors".to_owned(), seconds: 1.5 }
    }

    #[test]
    fn figures_are_read_from_json() {
        let json = output(r#"[{"rate": 5.5, "verified": true, "name": "b-plus", "x": null}]"#);
        assert_eq!(figure("{ json = '/0/rate' }").read(&json).unwrap(), "5.5");
        assert_eq!(figure("{ json = '/0/verified' }").read(&json).unwrap(), "true");
        assert_eq!(figure("{ json = '/0/name' }").read(&json).unwrap(), "b-plus");
        assert_eq!(figure("{ json = '/0/x' }").read(&json).unwrap(), "null");
    }

    #[test]
    fn figures_are_read_from_the_last_match_in_either_output() {
        let text = output("rate: 3 a second\nrate: 4 a second\n");
        assert_eq!(figure("{ regex = '^rate: (\\d+)' }").read(&text).unwrap(), "4");
        let errors = figure("{ regex = '(\\d+) errors', from = 'stderr' }");
        assert_eq!(errors.read(&text).unwrap(), "7");
        assert_eq!(figure("'seconds'").read(&text).unwrap(), "1.500");
    }

    #[test]
    fn a_figure_that_is_not_there_is_an_error() {
        let missing = |text: &str, stdout: &str| figure(text).read(&output(stdout)).unwrap_err();
        assert!(missing("{ json = '/0/rate' }", "[{}]").contains("nothing at /0/rate"));
        assert!(missing("{ json = '/0/rate' }", "").contains("no JSON"));
        assert!(missing("{ regex = '(x)' }", "abc").contains("nothing matches"));
    }

    #[test]
    fn figures_of_no_known_form_are_refused() {
        for text in ["'minutes'", "{ json = 'rate' }", "{ regex = 'x' }", "{ regex = '(x)(y)' }"] {
            assert!(toml::from_str::<File>(&format!("figure = {text}")).is_err(), "{text}");
        }
    }
}
