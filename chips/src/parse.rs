//! Reads an entry from TOML. Every error names the line.

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use crate::entry::{Figure, FigureKind, Value};
use crate::figures::{Dimension, KNOWN, Known, ORDERED};
use crate::{CatalogueError, Device, Kind, Overrides};

/// Bytes of the longest text that is taken for an entry; the real ones have a few thousand.
const MOST_BYTES: usize = 1 << 20;
/// Bytes of the longest name, maker or model; of the longest source.
const MOST_NAME: usize = 64;
const MOST_TEXT: usize = 1000;

const ENTRY_KEYS: &[&str] = &["name", "maker", "model", "kind", "about", "figures"];
const FIGURE_KEYS: &[&str] = &["value", "unit", "source", "kind"];

type Result<T> = core::result::Result<T, CatalogueError>;

/// One table of the text, and where it begins.
#[derive(Clone, Copy)]
struct Table<'t> {
    text: &'t str,
    table: &'t DeTable<'t>,
    line: usize,
}

pub(crate) fn device(text: &str) -> Result<Device> {
    if text.len() > MOST_BYTES {
        return Err(CatalogueError::TooLong { bytes: text.len(), most: MOST_BYTES });
    }
    let root = DeTable::parse(text).map_err(|error| CatalogueError::Syntax {
        line: line_at(text, error.span().map_or(0, |span| span.start)),
        message: String::from(error.message()),
    })?;
    let entry = Table { text, table: root.get_ref(), line: 1 };
    entry.check_keys(ENTRY_KEYS)?;
    let kind = entry.one_of("kind", &Kind::ALL, Kind::name)?;
    let mut device = Device {
        name: entry.name("name")?,
        maker: entry.text("maker", MOST_NAME)?,
        model: entry.text("model", MOST_NAME)?,
        kind,
        about: entry.text("about", MOST_TEXT)?,
        figures: figures(entry, kind)?,
        missing: Vec::new(),
    };
    check_pairs(&device)?;
    check_shape(&mut device)?;
    Ok(device)
}

fn line_at(text: &str, offset: usize) -> usize {
    let before = text.as_bytes().get(..offset).unwrap_or(text.as_bytes());
    1 + before.iter().filter(|byte| **byte == b'\n').count()
}

impl<'t> Table<'t> {
    fn line_of<T>(&self, spanned: &Spanned<T>) -> usize {
        line_at(self.text, spanned.span().start)
    }

    fn check_keys(&self, keys: &[&'static str]) -> Result<()> {
        for key in self.table.keys() {
            if !keys.contains(&key.get_ref().as_ref()) {
                return Err(self.unknown(key, keys.iter().copied()));
            }
        }
        Ok(())
    }

    fn unknown(
        &self,
        key: &Spanned<impl AsRef<str>>,
        keys: impl Iterator<Item = &'static str>,
    ) -> CatalogueError {
        let name = key.get_ref().as_ref();
        CatalogueError::UnknownKey {
            line: self.line_of(key),
            key: shortened(name),
            near: spec::near(name, keys),
        }
    }

    fn get(&self, key: &'static str) -> Result<&'t Spanned<DeValue<'t>>> {
        self.table.get(key).ok_or(CatalogueError::MissingKey { line: self.line, key })
    }

    fn string(&self, key: &'static str) -> Result<(&'t str, usize)> {
        let value = self.get(key)?;
        let line = self.line_of(value);
        let text = value.get_ref().as_str().ok_or_else(|| CatalogueError::WrongType {
            line,
            key: String::from(key),
            wanted: "a text",
            found: value.get_ref().type_str(),
        })?;
        Ok((text, line))
    }

    fn text(&self, key: &'static str, most: usize) -> Result<String> {
        let (text, line) = self.string(key)?;
        if text.trim().is_empty() || text.len() > most || text.chars().any(char::is_control) {
            let wanted = "a text of one line that is neither empty nor very long";
            return Err(CatalogueError::BadText { line, key, wanted });
        }
        Ok(String::from(text))
    }

    fn name(&self, key: &'static str) -> Result<String> {
        let (name, line) = self.string(key)?;
        let plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
        if name.is_empty() || name.len() > MOST_NAME || !name.bytes().all(plain) {
            let wanted = "1 to 64 small letters, digits and hyphens";
            return Err(CatalogueError::BadText { line, key, wanted });
        }
        Ok(String::from(name))
    }

    fn one_of<T: Copy>(
        &self,
        key: &'static str,
        all: &[T],
        name: fn(T) -> &'static str,
    ) -> Result<T> {
        let (word, line) = self.string(key)?;
        all.iter().copied().find(|one| name(*one) == word).ok_or_else(|| {
            let allowed = all.iter().map(|one| name(*one)).collect();
            let (key, word) = (String::from(key), shortened(word));
            CatalogueError::UnknownWord { line, key, word, allowed }
        })
    }

    fn table_at(&self, key: &str, value: &'t Spanned<DeValue<'t>>) -> Result<Table<'t>> {
        let line = self.line_of(value);
        let table = value.get_ref().as_table().ok_or_else(|| CatalogueError::WrongType {
            line,
            key: shortened(key),
            wanted: "a table with value, unit, source and kind",
            found: value.get_ref().type_str(),
        })?;
        Ok(Table { text: self.text, table, line })
    }
}

/// Enough of a text from outside to recognise it.
fn shortened(text: &str) -> String {
    text.chars().filter(|character| !character.is_control()).take(MOST_NAME).collect()
}

fn figures(entry: Table<'_>, kind: Kind) -> Result<Vec<Figure>> {
    let all = entry.table_at("figures", entry.get("figures")?)?;
    let mut figures = Vec::new();
    for (key, value) in all.table {
        let name: &str = key.get_ref().as_ref();
        let known = KNOWN
            .iter()
            .find(|known| known.name == name)
            .ok_or_else(|| all.unknown(key, KNOWN.iter().map(|known| known.name)))?;
        if !known.kinds.allows(kind) {
            let line = all.line_of(key);
            return Err(CatalogueError::NotForKind { line, figure: known.name, kind });
        }
        figures.push(figure(known, all.table_at(name, value)?)?);
    }
    figures.sort_by_key(|figure| KNOWN.iter().position(|known| known.name == figure.name));
    Ok(figures)
}

fn figure(known: &Known, table: Table<'_>) -> Result<Figure> {
    table.check_keys(FIGURE_KEYS)?;
    let value = table.get("value")?;
    let line = table.line_of(value);
    let unit = unit(known, table)?;
    let (value, amount) = match known.dimension {
        Dimension::Word(allowed) => (word(known, allowed, value.get_ref(), line)?, 0),
        _ => number(known, unit.map_or(1.0, |(_, scale)| scale), value.get_ref(), line)?,
    };
    Ok(Figure {
        name: known.name,
        value,
        unit: unit.map(|(name, _)| name),
        source: table.text("source", MOST_TEXT)?,
        kind: table.one_of("kind", &FigureKind::ALL, FigureKind::name)?,
        amount,
    })
}

fn unit(known: &Known, table: Table<'_>) -> Result<Option<(&'static str, f64)>> {
    let units = known.dimension.units();
    let given = if table.table.contains_key("unit") { Some(table.string("unit")?) } else { None };
    match given {
        None if units.is_empty() => return Ok(None),
        Some((name, _)) => {
            if let Some(unit) = units.iter().find(|unit| unit.0 == name) {
                return Ok(Some(*unit));
            }
        }
        None => {}
    }
    Err(CatalogueError::WrongUnit {
        line: given.map_or(table.line, |(_, line)| line),
        figure: known.name,
        unit: given.map(|(name, _)| shortened(name)),
        allowed: units.iter().map(|unit| unit.0).collect(),
    })
}

fn wrong_type(
    known: &Known,
    wanted: &'static str,
    value: &DeValue<'_>,
    line: usize,
) -> CatalogueError {
    let key = String::from(known.name);
    CatalogueError::WrongType { line, key, wanted, found: value.type_str() }
}

fn word(
    known: &Known,
    allowed: &[&'static str],
    value: &DeValue<'_>,
    line: usize,
) -> Result<Value> {
    let word = value.as_str().ok_or_else(|| wrong_type(known, "a text", value, line))?;
    if allowed.contains(&word) {
        return Ok(Value::Word(String::from(word)));
    }
    Err(CatalogueError::UnknownWord {
        line,
        key: String::from(known.name),
        word: shortened(word),
        allowed: allowed.to_vec(),
    })
}

/// The number, and its amount in base units, of which one is a `scale`th of the figure's unit.
fn number(known: &Known, scale: f64, value: &DeValue<'_>, line: usize) -> Result<(Value, u64)> {
    let out_of_range = |written: &str| CatalogueError::OutOfRange {
        line,
        figure: known.name,
        value: shortened(written),
        least: known.least,
        most: known.most,
        unit: known.dimension.base(),
    };
    let number = match value {
        DeValue::Integer(integer) => u64::from_str_radix(integer.as_str(), integer.radix())
            .map(Value::Integer)
            .map_err(|_| out_of_range(integer.as_str()))?,
        DeValue::Float(float) if known.dimension != Dimension::Count => {
            float.as_str().parse().map(Value::Decimal).map_err(|_| out_of_range(float.as_str()))?
        }
        _ if known.dimension == Dimension::Count => {
            return Err(wrong_type(known, "a whole number", value, line));
        }
        _ => return Err(wrong_type(known, "a number", value, line)),
    };
    let amount = match &number {
        Value::Integer(integer) => *integer as f64 * scale,
        Value::Decimal(decimal) => *decimal * scale,
        Value::Word(_) => f64::NAN,
    };
    // Not a number is in no range.
    if !(known.least as f64..=known.most as f64).contains(&amount) {
        return Err(out_of_range(&number.to_string()));
    }
    let amount = if known.dimension == Dimension::Ratio { 0 } else { amount.round() as u64 };
    Ok((number, amount))
}

fn check_pairs(device: &Device) -> Result<()> {
    for (smaller, larger) in ORDERED {
        if let (Some(low), Some(high)) = (device.amount(smaller), device.amount(larger))
            && low > high
        {
            let device = device.name.clone();
            return Err(CatalogueError::Contradiction { device, smaller, larger });
        }
    }
    Ok(())
}

/// Notes what is missing; an entry that lacks nothing must make a device.
fn check_shape(device: &mut Device) -> Result<()> {
    device.missing = crate::chip::lacking(device);
    if !device.missing.is_empty() {
        return Ok(());
    }
    if device.kind.is_chip() {
        device.nand(&Overrides::default()).map(|_| ())
    } else {
        device.disk(&Overrides::default()).map(|_| ())
    }
}
