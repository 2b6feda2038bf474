//! Claims of the papers: what is published, beside what the trees do.
//!
//! A promise is ours and has to hold. A claim is a paper's: it holds, or it fails, or what we
//! measure can't be compared with it; and which of these was seen last stands in
//! `checks/claims`. `checks/claims/README.md` describes the files.

use std::fmt::Write as _;
use std::path::Path;

use comfy_table::Table;
use comfy_table::presets::ASCII_MARKDOWN;
use serde::Deserialize;

use crate::promises::{Form, read_folder, run};
use crate::{Error, Result};

/// The folder of the claims, from the project's root.
pub const FOLDER: &str = "checks/claims";

/// The variable that names a folder with data of others, which the project may not pass on.
pub const DATA: &str = "FLASHTREE_DATA";

/// What is said of a claim.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// As published, or better.
    Holds,
    /// Not as published.
    Fails,
    /// So much better than published that what it is compared with may be at fault.
    NotComparable,
}

impl Verdict {
    const ALL: [Verdict; 3] = [Verdict::Holds, Verdict::Fails, Verdict::NotComparable];

    /// The word for it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Verdict::Holds => "holds",
            Verdict::Fails => "fails",
            Verdict::NotComparable => "not-comparable",
        }
    }
}

/// The claims of one figure or table.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Claims {
    /// The name of its file, without the ending.
    #[serde(skip)]
    pub name: String,
    /// What of which paper.
    pub figure: String,
    /// The command and its arguments, run in the project's root without a shell.
    pub command: Vec<String>,
    /// What the short form runs in its place; it is not compared with what is recorded.
    pub short_command: Option<Vec<String>>,
    /// About how many seconds the command takes, if it takes more than a few.
    pub slow: Option<u32>,
    /// A file that the command needs in the folder that [`DATA`] names; without it the claims are
    /// skipped.
    pub data: Option<String>,
    /// A program that the command needs beside Rust; without it the claims are skipped.
    pub needs: Option<String>,
    /// Each claim with its verdict, in the order in which they are printed.
    pub claims: Vec<(String, Verdict)>,
}

/// A claim that was measured.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Row {
    /// The claim.
    pub claim: String,
    /// What the paper says.
    pub published: String,
    /// What we have.
    pub measured: String,
    /// What comes of it.
    pub verdict: Verdict,
}

impl Claims {
    /// Reads claims from the text of their file.
    ///
    /// # Errors
    /// The text is none; the error says where.
    pub fn parse(name: &str, text: &str) -> std::result::Result<Self, String> {
        let mut claims: Claims = toml::from_str(text).map_err(|error| error.to_string())?;
        name.clone_into(&mut claims.name);
        Ok(claims)
    }

    /// The command of this form.
    #[must_use]
    pub fn command(&self, form: Form) -> &[String] {
        match (form, &self.short_command) {
            (Form::Short, Some(short)) => short,
            _ => &self.command,
        }
    }

    /// What is not there that the claims need: data in `folder`, or a program.
    #[must_use]
    pub fn missing(&self, folder: Option<&Path>) -> Option<String> {
        let has = |file: &str| folder.is_some_and(|folder| folder.join(file).is_file());
        let data = self.data.as_deref().filter(|file| !has(file));
        let data = data.map(|file| format!("{DATA} names no folder with {file}"));
        let program = self.needs.as_deref().filter(|program| !run::is_here(program));
        data.or_else(|| program.map(|program| format!("{program} can't be run")))
    }

    /// Runs the command, and reads what it prints.
    ///
    /// # Errors
    /// It could not be run, failed, or printed no claim.
    pub fn measure(&self, root: &Path, form: Form) -> std::result::Result<Vec<Row>, String> {
        let output = run::output_of(root, self.command(form), 0)?;
        let rows = self.rows(&output.stdout)?;
        if rows.is_empty() {
            return Err("the command prints no claim".to_owned());
        }
        Ok(rows)
    }

    /// The rows in what a command printed: `claim NAME | claim | published | measured | verdict`.
    fn rows(&self, printed: &str) -> std::result::Result<Vec<Row>, String> {
        let begin = format!("claim {} | ", self.name);
        // What the test program says of a test stands before its first line.
        let rows = printed.lines().filter_map(|line| Some(&line[line.find(&begin)?..]));
        rows.map(|line| {
            let parts: Vec<_> = line[begin.len()..].split(" | ").map(str::to_owned).collect();
            let [claim, published, measured, word] = <[String; 4]>::try_from(parts)
                .map_err(|_| format!("this is no row of a claim: {line}"))?;
            let verdict = Verdict::ALL.into_iter().find(|verdict| verdict.name() == word);
            let verdict = verdict.ok_or_else(|| format!("this is no verdict: {line}"))?;
            Ok(Row { claim, published, measured, verdict })
        })
        .collect()
    }

    /// Where `rows` are not what is recorded.
    #[must_use]
    pub fn changes(&self, rows: &[Row]) -> Vec<String> {
        let mut changes = Vec::new();
        for place in 0..rows.len().max(self.claims.len()) {
            match (self.claims.get(place), rows.get(place)) {
                (Some((claim, verdict)), Some(row)) if *claim == row.claim => {
                    if *verdict != row.verdict {
                        let (old, new) = (verdict.name(), row.verdict.name());
                        changes.push(format!("{claim}: {new}, it was {old}"));
                    }
                }
                (Some((claim, _)), Some(row)) => {
                    changes.push(format!("{}: in the place of: {claim}", row.claim));
                }
                (Some((claim, _)), None) => changes.push(format!("{claim}: is not printed")),
                (None, Some(row)) => changes.push(format!("{}: is not recorded", row.claim)),
                (None, None) => {}
            }
        }
        changes
    }
}

/// Reads the claims called `names`, or all of them if that is empty, sorted by name.
///
/// # Errors
/// A file can't be read or is none, or there is none of such a name.
pub fn read(root: &Path, names: &[String]) -> Result<Vec<Claims>> {
    let files = read_folder(root, FOLDER, names)?;
    let parse = |(name, file, text): (String, _, String)| {
        Claims::parse(&name, &text).map_err(|what| Error::Promise { file, what })
    };
    files.into_iter().map(parse).collect()
}

/// Writes what was seen into the file of `claims`.
///
/// # Errors
/// The file can't be read or written.
pub fn record(root: &Path, claims: &Claims, rows: &[Row]) -> Result<()> {
    let file = root.join(FOLDER).join(format!("{}.toml", claims.name));
    let failed = |source| Error::Read { file: file.clone(), source };
    let text = std::fs::read_to_string(&file).map_err(failed)?;
    let head = text.split("claims = [").next().unwrap_or_default();
    let mut text = format!("{head}claims = [\n");
    for row in rows {
        let claim = toml::Value::String(row.claim.clone());
        let _ = writeln!(text, "    [{claim}, \"{}\"],", row.verdict.name());
    }
    text.push_str("]\n");
    std::fs::write(&file, text).map_err(failed)
}

/// The rows as a table, with how many hold.
#[must_use]
pub fn table(claims: &Claims, rows: &[Row]) -> String {
    let mut table = Table::new();
    table.load_style(ASCII_MARKDOWN);
    table.set_header(["claim", "published", "measured", "verdict"]);
    for Row { claim, published, measured, verdict } in rows {
        table.add_row([claim, published, measured, verdict.name()]);
    }
    format!("{}\n{table}\n{}: {}\n", claims.figure, claims.name, count(rows))
}

/// How many of `rows` hold.
#[must_use]
pub fn count(rows: &[Row]) -> String {
    let of = |verdict| rows.iter().filter(|row| row.verdict == verdict).count();
    let beyond = match of(Verdict::NotComparable) {
        0 => String::new(),
        beyond => format!(", {beyond} not comparable"),
    };
    format!("{} of {} hold{beyond}", of(Verdict::Holds), rows.len())
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::{Claims, Verdict, count, table};

    const FILE: &str = "figure = 'Figure 1'\ncommand = ['echo']\nclaims = [['a is 1', 'holds'], \
        ['b is so many times', 'fails']]\n";

    const PRINTED: &str = "test one ... claim x-1 | a is 1 | 1 | 1.2 | holds\n  a cause\n\
        claim x-1 | b is so many times | 2 | 3.1 | not-comparable\nclaim y | c | 1 | 1 | holds\n";

    #[test]
    fn each_claim_is_a_row_with_what_is_published_and_measured() {
        let claims = Claims::parse("x-1", FILE).unwrap();
        let rows = claims.rows(PRINTED).unwrap();
        assert_eq!(rows.len(), 2);
        assert_eq!(rows[1].verdict, Verdict::NotComparable);
        assert_eq!(count(&rows), "1 of 2 hold, 1 not comparable");
        let table = table(&claims, &rows);
        assert!(table.contains("| a is 1             | 1         | 1.2      | holds          |"));
        assert!(claims.rows("claim x-1 | a | 1 | holds").is_err());
        assert!(claims.rows("claim x-1 | a | 1 | 1 | maybe").is_err());
    }

    #[test]
    fn claims_whose_data_are_not_there_are_skipped() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR"));
        let of = |file| Claims::parse("x-1", &format!("data = '{file}'\n{FILE}")).unwrap();
        assert_eq!(of("Cargo.toml").missing(Some(folder)), None);
        let without = Some("FLASHTREE_DATA names no folder with Cargo.toml".to_owned());
        assert_eq!(of("Cargo.toml").missing(None), without);
        assert!(of("none.csv").missing(Some(folder)).is_some());
        assert_eq!(Claims::parse("x-1", FILE).unwrap().missing(None), None);
        let needs = Claims::parse("x-1", &format!("needs = 'no-such-program-here'\n{FILE}"));
        let missing = needs.unwrap().missing(None);
        assert_eq!(missing, Some("no-such-program-here can't be run".to_owned()));
    }

    #[test]
    fn a_change_either_way_is_told() {
        let claims = Claims::parse("x-1", FILE).unwrap();
        let mut rows = claims.rows(PRINTED).unwrap();
        assert_eq!(claims.changes(&rows), ["b is so many times: not-comparable, it was fails"]);
        rows[1].verdict = Verdict::Fails;
        assert!(claims.changes(&rows).is_empty());
        rows[0].verdict = Verdict::Fails;
        assert_eq!(claims.changes(&rows).len(), 1);
        assert_eq!(claims.changes(&rows[..1]).len(), 2);
    }
}
