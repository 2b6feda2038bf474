//! Which columns of a table are keys and values.

use std::path::Path;

use db::encoding::Type;

use crate::failure::FileFailure;

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
    /// Finds the columns that the user named. Those not named are called `key` and `value`; else
    /// the key is the first column, and each is the only one that is left. No column is both unless
    /// the user says so. Where none is left for the values, and where the user says so, there are
    /// keys only.
    ///
    /// # Errors
    /// A column is not there, not named, or there are not as many as the types have components.
    pub(super) fn find(
        &self,
        options: (Option<&str>, Option<&str>),
        types: (&Type, &Type),
    ) -> Result<Columns, FileFailure> {
        let value =
            options.1.map(|list| if list.is_empty() { Ok(vec![]) } else { self.list(list) });
        let value = value.transpose()?;
        let key = options.0.map(|list| self.list(list)).transpose()?;
        let key = key.or_else(|| self.called("key", value.as_deref()));
        let value = value.or_else(|| self.called("value", key.as_deref()));
        let key = match key {
            Some(key) => key,
            None => self.left("key", value.as_deref().unwrap_or_default())?,
        };
        let value = match value {
            Some(value) => value,
            None if takes_nothing(types.1) && self.free(&key).next().is_none() => Vec::new(),
            None => self.left("value", &key)?,
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

    /// The column called `what`, if the others do not have it.
    fn called(&self, what: &str, others: Option<&[Column]>) -> Option<Vec<Column>> {
        let column = Column::Field(self.place(what)?);
        (!others.unwrap_or_default().contains(&column)).then(|| vec![column])
    }

    /// The columns that the others do not have.
    fn free<'c>(&self, others: &'c [Column]) -> impl Iterator<Item = Column> + 'c {
        (0..self.names.len()).map(Column::Field).filter(|column| !others.contains(column))
    }

    /// The column that holds `what`, which has no name of its own: the first can be the key, and
    /// what is the only one left can be nothing else.
    fn left(&self, what: &'static str, others: &[Column]) -> Result<Vec<Column>, FileFailure> {
        let mut free = self.free(others);
        match (free.next(), free.next()) {
            (Some(first), _) if what == "key" && first == Column::Field(0) => Ok(vec![first]),
            (Some(only), None) => Ok(vec![only]),
            _ => {
                let (path, found) = (self.path.to_owned(), self.names.to_vec());
                Err(FileFailure::WhichColumn { path, what, found })
            }
        }
    }

    fn unknown(&self, name: &str) -> FileFailure {
        let found = self.names.to_vec();
        FileFailure::NoColumn {
            path: self.path.to_owned(),
            column: name.to_owned(),
            near: spec::near(name, found.iter().map(String::as_str)),
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
    fn no_column_is_both_unless_the_user_says_so() {
        let field = |place| vec![Column::Field(place)];
        let plain = ("text", "text");
        for (names, options, key, value) in [
            (&["x", "key"][..], (None, None), 1, 0),
            (&["value", "x"], (None, None), 1, 0),
            (&["a", "b"], (Some("b"), None), 1, 0),
            (&["a", "b"], (None, Some("a")), 1, 0),
            (&["value", "x"], (Some("value"), None), 0, 1),
            (&["x", "key"], (None, Some("key")), 0, 1),
            (&["key", "value"], (Some("value"), None), 1, 0),
            (&["a", "b"], (Some("a"), Some("a")), 0, 0),
        ] {
            let found = found(names, options, plain).unwrap();
            assert_eq!(found, (field(key), field(value)), "{names:?} {options:?}");
        }
        for (names, options, asked) in [
            (&["value", "x", "y"][..], (None, None), "key"),
            (&["x", "key", "y"], (None, None), "value"),
            (&["a", "b", "c"], (None, Some("a")), "key"),
            (&["a", "b"], (Some("@row"), None), "value"),
        ] {
            match found(names, options, plain) {
                Err(FileFailure::WhichColumn { what, .. }) => assert_eq!(what, asked, "{names:?}"),
                other => panic!("{names:?} {options:?}: {other:?}"),
            }
        }
        let both = found(&["a", "b", "c"], (Some("c,a"), None), ("tuple(text,text)", "text"));
        assert_eq!(both.unwrap().1, field(1));
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
