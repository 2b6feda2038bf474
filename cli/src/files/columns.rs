//! Which columns of a table are keys and values.

use std::path::Path;

use db::encoding::Type;

use super::FileFailure;
use crate::failure;

/// The pseudo column of a row's number, from 0.
pub(super) const ROW: &str = "@row";

/// A column of rows that are read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Column {
    /// The field at this place, from 0.
    Field(usize),
    /// The row's number.
    Row,
}

/// A column by its heading or, without one, by its number from 1.
#[derive(Clone, Copy)]
pub(super) struct Heading<'h> {
    /// What is read.
    pub(super) path: &'h Path,
    /// The headings of the columns.
    pub(super) names: &'h [String],
}

/// The columns of keys and of values.
pub(super) struct Columns {
    pub(super) key: Vec<Column>,
    pub(super) value: Vec<Column>,
}

impl Heading<'_> {
    /// Finds the columns that the user named; of those not named, `key` and `value`, or else the
    /// first, and of two the second. Of a single one, and where the user says so, there are keys
    /// only.
    ///
    /// # Errors
    /// A column is not there, not named, or there are not as many as the types have components.
    pub(super) fn find(
        &self,
        options: (Option<&str>, Option<&str>),
        types: (&Type, &Type),
    ) -> Result<Columns, FileFailure> {
        let key = match options.0 {
            Some(list) => self.list(list)?,
            None => vec![self.usual("key", 0)?],
        };
        let value = match options.1 {
            Some("") => Vec::new(),
            Some(list) => self.list(list)?,
            None if self.names.len() == 1 && takes_nothing(types.1) => Vec::new(),
            None => vec![self.usual("value", 1)?],
        };
        check_count("key", key.len(), types.0)?;
        check_count("value", value.len(), types.1)?;
        Ok(Columns { key, value })
    }

    fn list(&self, list: &str) -> Result<Vec<Column>, FileFailure> {
        names(list, |name| self.place(name).is_some())
            .into_iter()
            .map(|name| match self.place(name) {
                Some(place) => Ok(Column::Field(place)),
                None if name == ROW => Ok(Column::Row),
                None => Err(self.unknown(name)),
            })
            .collect()
    }

    fn place(&self, name: &str) -> Option<usize> {
        self.names.iter().position(|known| known == name)
    }

    fn usual(&self, what: &'static str, place: usize) -> Result<Column, FileFailure> {
        if let Some(named) = self.place(what) {
            return Ok(Column::Field(named));
        }
        // The first column is the key; the second is the value only where nothing else can be.
        if (what == "key" && !self.names.is_empty()) || (what == "value" && self.names.len() == 2) {
            return Ok(Column::Field(place));
        }
        let (path, found) = (self.path.to_owned(), self.names.to_vec());
        Err(FileFailure::WhichColumn { path, what, found })
    }

    fn unknown(&self, name: &str) -> FileFailure {
        let found = self.names.to_vec();
        FileFailure::NoColumn {
            path: self.path.to_owned(),
            column: name.to_owned(),
            near: failure::near(name, found.iter().map(String::as_str)),
            found,
        }
    }
}

/// True if a value of this type may be empty: so there need be no column of values.
fn takes_nothing(kind: &Type) -> bool {
    matches!(kind, Type::Bytes | Type::Hex | Type::Text)
}

/// The names in a list, which is one name where that is known as such.
pub(super) fn names(list: &str, is_known: impl Fn(&str) -> bool) -> Vec<&str> {
    if is_known(list) { vec![list] } else { list.split(',').map(str::trim).collect() }
}

/// Refuses a number of columns that does not fit `kind`: one, or one a component of a tuple.
///
/// # Errors
/// [`FileFailure::Columns`].
pub(super) fn check_count(
    what: &'static str,
    given: usize,
    kind: &Type,
) -> Result<(), FileFailure> {
    let wanted = match kind {
        _ if given == 0 && what == "value" && takes_nothing(kind) => return Ok(()),
        Type::Tuple(types) if given == types.len() || given == 1 => return Ok(()),
        Type::Tuple(types) => format!("{}, or one of JSON arrays", types.len()),
        _ if given == 1 => return Ok(()),
        _ => "one".to_owned(),
    };
    Err(FileFailure::Columns { what, given, kind: kind.to_string(), wanted })
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use db::encoding::Type;

    use super::{Column, FileFailure, Heading};

    fn found(
        names: &[&str],
        options: (Option<&str>, Option<&str>),
        types: (&str, &str),
    ) -> Result<(Vec<Column>, Vec<Column>), FileFailure> {
        let names: Vec<String> = names.iter().map(ToString::to_string).collect();
        let (key, value): (Type, Type) = (types.0.parse().unwrap(), types.1.parse().unwrap());
        let heading = Heading { path: Path::new("x.csv"), names: &names };
        heading.find(options, (&key, &value)).map(|columns| (columns.key, columns.value))
    }

    #[test]
    fn columns_are_found_by_name_and_by_place() {
        let field = |place| vec![Column::Field(place)];
        let plain = ("text", "text");
        assert_eq!(found(&["a", "b"], (None, None), plain).unwrap(), (field(0), field(1)));
        let named = found(&["value", "x", "key"], (None, None), plain).unwrap();
        assert_eq!(named, (field(2), field(0)));
        let chosen = found(&["a,b", "c", "d"], (Some("a,b"), Some("d")), plain).unwrap();
        assert_eq!(chosen, (field(0), field(2)));
        let tuple = found(&["a", "b"], (Some("b, @row"), Some("a")), ("tuple(text,u64)", "text"));
        assert_eq!(tuple.unwrap(), (vec![Column::Field(1), Column::Row], field(0)));
    }

    #[test]
    fn a_column_of_keys_alone_is_enough_where_values_may_be_empty() {
        let field = |place| vec![Column::Field(place)];
        let keys = found(&["id"], (None, None), ("u64", "text")).unwrap();
        assert_eq!(keys, (field(0), vec![]));
        let keys = found(&["a", "b"], (Some("b"), Some("")), ("u64", "bytes")).unwrap();
        assert_eq!(keys, (field(1), vec![]));
        assert!(found(&["id"], (None, None), ("u64", "u64")).is_err());
        assert!(found(&["a", "b"], (Some("b"), Some("")), ("u64", "u64")).is_err());
        assert!(found(&["a", "b"], (Some(""), None), ("text", "text")).is_err());
    }

    #[test]
    fn what_is_not_there_or_does_not_fit_is_refused() {
        let plain = ("text", "text");
        assert!(matches!(
            found(&["station", "b"], (Some("statoin"), None), plain),
            Err(FileFailure::NoColumn { near, .. }) if near == ["station"]
        ));
        assert!(matches!(
            found(&["a", "b", "c"], (None, None), plain),
            Err(FileFailure::WhichColumn { what: "value", .. })
        ));
        assert!(matches!(
            found(&["a", "b", "c"], (Some("a,b"), Some("c")), plain),
            Err(FileFailure::Columns { given: 2, .. })
        ));
        let tuple = ("tuple(text,text,text)", "text");
        assert!(found(&["a", "b", "c"], (Some("a,b"), Some("c")), tuple).is_err());
        assert!(found(&[], (None, None), plain).is_err());
    }
}
