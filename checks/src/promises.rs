//! Promises: sentences about the project, each with a command whose output shows that it is true.
//!
//! `checks/promises/README.md` describes the files.

pub mod bound;
pub mod figure;
pub mod run;
pub mod table;

use std::path::{Path, PathBuf};

use serde::Deserialize;

use crate::{Error, Result};
use bound::Bound;
use figure::Figure;

/// The folder of the promises, from the project's root.
pub const FOLDER: &str = "checks/promises";

/// Which of a promise's commands to run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// What the promise says.
    Full,
    /// A shorter run of the same thing, for promises that have one.
    Short,
}

/// One promise.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Promise {
    /// The name of its file, without the ending.
    #[serde(skip)]
    pub name: String,
    /// The sentence.
    pub promise: String,
    /// The command and its arguments, run in the project's root without a shell.
    pub command: Vec<String>,
    /// What the short form runs in its place.
    pub short_command: Option<Vec<String>>,
    /// How the figure is read from what the command prints.
    pub figure: Figure,
    /// What the figure must be.
    pub bound: Bound,
    /// What it must be in the short form, where that counts fewer.
    pub short_bound: Option<Bound>,
    /// The unit of figure and bound, printed behind them.
    pub unit: Option<String>,
    /// How often a timed command may run until its figure holds.
    #[serde(default)]
    pub repeat: Repeat,
    /// A program that the command needs beside Rust; where it is not there, the promise is skipped.
    pub needs: Option<String>,
    /// The exit code that the command must have.
    #[serde(default)]
    pub exit: i32,
    /// About how many seconds the full command takes, for promises that take more than a few.
    pub slow: Option<u32>,
}

/// "best of N": the best of at most N runs counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub struct Repeat(pub u32);

impl Default for Repeat {
    fn default() -> Self {
        Repeat(1)
    }
}

impl TryFrom<String> for Repeat {
    type Error = String;

    fn try_from(text: String) -> std::result::Result<Self, String> {
        let times = text.strip_prefix("best of ").and_then(|times| times.parse().ok());
        match times {
            Some(times @ 1..=100) => Ok(Repeat(times)),
            _ => Err(format!("'{text}' is not of the form 'best of 3', with 1 to 100 runs")),
        }
    }
}

impl Promise {
    /// Reads a promise from the text of its file.
    ///
    /// # Errors
    /// The text is not a promise; the error says where.
    pub fn parse(name: &str, text: &str) -> std::result::Result<Self, String> {
        let mut promise: Promise = toml::from_str(text).map_err(|error| error.to_string())?;
        name.clone_into(&mut promise.name);
        let commands = [Some(&promise.command), promise.short_command.as_ref()];
        if commands.into_iter().flatten().any(Vec::is_empty) {
            return Err("a command is empty".to_owned());
        }
        if promise.repeat.0 > 1 && promise.bound.is_text() {
            return Err("'repeat' is for figures that are numbers".to_owned());
        }
        if promise.short_bound.is_some() && promise.short_command.is_none() {
            return Err("a 'short_bound' is for a 'short_command'".to_owned());
        }
        Ok(promise)
    }

    /// The promise with the bound that holds in this form.
    #[must_use]
    pub fn bounded_for(mut self, form: Form) -> Self {
        if let (Form::Short, Some(short)) = (form, self.short_bound.take()) {
            self.bound = short;
        }
        self
    }

    /// The command of this form.
    #[must_use]
    pub fn command(&self, form: Form) -> &[String] {
        match (form, &self.short_command) {
            (Form::Short, Some(short)) => short,
            _ => &self.command,
        }
    }

    /// The command of this form as one line.
    #[must_use]
    pub fn command_line(&self, form: Form) -> String {
        self.command(form).join(" ")
    }
}

/// Reads the promises called `names`, or all of them if that is empty, sorted by name.
///
/// # Errors
/// A file can't be read or holds no promise; a name that no promise has.
pub fn read(root: &Path, names: &[String]) -> Result<Vec<Promise>> {
    let parse = |(name, file, text): (String, PathBuf, String)| {
        Promise::parse(&name, &text).map_err(|what| Error::Promise { file, what })
    };
    read_folder(root, FOLDER, names)?.into_iter().map(parse).collect()
}

/// The files of `folder` called `names`, or all of them if that is empty, sorted by name: name,
/// path and text.
///
/// # Errors
/// A file can't be read, or there is none of such a name.
pub fn read_folder(
    root: &Path,
    folder: &str,
    names: &[String],
) -> Result<Vec<(String, PathBuf, String)>> {
    let fault = |file: &Path, source| Error::Read { file: file.to_owned(), source };
    let folder = root.join(folder);
    let mut files = Vec::new();
    for entry in std::fs::read_dir(&folder).map_err(|source| fault(&folder, source))? {
        let file = entry.map_err(|source| fault(&folder, source))?.path();
        let name = file.file_stem().map(|name| name.to_string_lossy().into_owned());
        if let (Some(name), Some("toml")) = (name, file.extension().and_then(|it| it.to_str())) {
            files.push((name, file));
        }
    }
    files.sort();
    if let Some(name) = names.iter().find(|name| !files.iter().any(|(known, _)| known == *name)) {
        let known: Vec<&str> = files.iter().map(|(name, _)| name.as_str()).collect();
        return Err(Error::NoSuchPromise { name: name.clone(), known: known.join(", ") });
    }
    files.retain(|(name, _)| names.is_empty() || names.contains(name));
    let read = |(name, file): (String, PathBuf)| {
        let text = std::fs::read_to_string(&file).map_err(|source| fault(&file, source))?;
        Ok((name, file, text))
    };
    files.into_iter().map(read).collect()
}

#[cfg(test)]
mod tests {
    use super::{Form, Promise};

    const GOOD: &str = "promise = 'It is quick.'\ncommand = ['echo', '12']\n\
        figure = { regex = '(\\d+)' }\nbound = '>= 5'\n";

    #[test]
    fn a_promise_is_read_with_its_defaults() {
        let promise = Promise::parse("quick", GOOD).unwrap();
        assert_eq!(promise.name, "quick");
        assert_eq!(promise.repeat.0, 1);
        assert_eq!(promise.exit, 0);
        assert_eq!(promise.command_line(Form::Short), "echo 12");
    }

    #[test]
    fn the_short_form_takes_the_short_command() {
        let text = format!("{GOOD}short_command = ['echo', '6']\nrepeat = 'best of 3'");
        let promise = Promise::parse("quick", &text).unwrap();
        assert_eq!(promise.command_line(Form::Short), "echo 6");
        assert_eq!(promise.command_line(Form::Full), "echo 12");
        assert_eq!(promise.repeat.0, 3);
    }

    #[test]
    fn the_short_form_may_have_a_bound_of_its_own() {
        let text = format!("{GOOD}short_command = ['echo', '4']\nshort_bound = '>= 4'");
        let promise = Promise::parse("quick", &text).unwrap();
        assert!(promise.clone().bounded_for(Form::Short).bound.holds("4"));
        assert!(!promise.bounded_for(Form::Full).bound.holds("4"));
        assert!(Promise::parse("quick", &format!("{GOOD}short_bound = '>= 4'")).is_err());
    }

    #[test]
    fn files_that_are_no_promise_are_refused() {
        let refused = |from: &str, to: &str| {
            let text = GOOD.replace(from, to);
            assert_ne!(text, GOOD);
            Promise::parse("bad", &text).unwrap_err()
        };
        assert!(refused("promise =", "sentence =").contains("sentence"));
        assert!(refused("['echo', '12']", "[]").contains("empty"));
        assert!(refused("(\\d+)", "\\d+").contains("one group"));
        assert!(refused("(\\d+)", "(\\d+").contains("unclosed"));
        assert!(refused(">= 5", "about 5").contains("about 5"));
        assert!(refused(">= 5", ">= five").contains("five"));
        assert!(refused("bound", "repeat = 'often'\nbound").contains("often"));
        let text = "is 12'\nrepeat = 'best of 2";
        assert!(refused(">= 5", text).contains("numbers"));
    }
}
