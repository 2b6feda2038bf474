//! Trees and translation layers by their specs, `NAME[:key=value,...]`.

use index::TreeDescriptor;
use index::parameters::{Settings, Value};
use spec::Spec;
use trees::TREES;

use crate::label::Label;
use crate::{Error, Result};

/// The tree of a file, where none is named.
const USUAL: &str = "flat-tree";

/// The tree where none is named on a chip, where what is usual takes values of any length; and
/// where pages have a size of their own, for those of the other are the device's.
const USUAL_OF_PAGES: &str = "b-plus:over=ftl";

/// The spec of the tree that is used where none is named.
pub(crate) const fn usual(on_chip: bool, page_bytes: Option<u32>) -> &'static str {
    if on_chip || page_bytes.is_some() { USUAL_OF_PAGES } else { USUAL }
}

/// The parameters on which the form of a tree depends, wherever it stands. The others say how it
/// works, and how it divides its memory.
const FORM: &[&str] = &["k", "fanout", "alpha", "beta", "delta", "log-pages"];

/// Share of the memory left over in which updates wait, where nothing is said.
const WAITING: Value = Value::Ratio(0.5);

/// Reads a spec, of which `option` is one.
fn parse<'t>(option: &'static str, text: &'t str) -> Result<Spec<'t>> {
    Spec::parse(text).map_err(|error| Error::BadOption { option, what: error.to_string() })
}

/// A tree with its settings.
pub(crate) struct TreeChoice {
    pub(crate) entry: &'static TreeDescriptor,
    pub(crate) settings: Settings,
    /// True if it stands on a translation layer where it could do without.
    pub(crate) over_ftl: bool,
    /// How full nodes are loaded; 0 where that was left open.
    pub(crate) fill_percent: u8,
}

impl TreeChoice {
    /// Reads a tree's spec; `page_bytes` are the `node` that it does not name itself, and so is
    /// `fill_percent`, if it is not 0, its `fill`.
    pub(crate) fn read(text: &str, page_bytes: Option<u32>, fill_percent: u8) -> Result<Self> {
        let spec = parse("tree", text)?;
        let entry = tree(spec.name)?;
        let over_ftl = is_over_ftl(entry, &spec.parameters)?;
        let mut given: Vec<(&str, String)> = spec
            .parameters
            .iter()
            .filter(|(name, _)| *name != OVER || !entry.has_choice())
            .map(|(name, value)| (*name, (*value).to_owned()))
            .collect();
        if let Some(bytes) = page_bytes {
            add_node(entry, &mut given, bytes)?;
        }
        let has_fill = given.iter().any(|(name, _)| *name == "fill");
        if fill_percent > 0 && has_parameter(entry, "fill") && !has_fill {
            given.push(("fill", fill_percent.to_string()));
        }
        let was_given = given.iter().any(|(name, _)| *name == "fill");
        let given = given.iter().map(|(name, value)| (*name, value.as_str()));
        let mut settings = settings(entry, given)?;
        // A database is no yardstick: there what waits for its leaf is written with others.
        settings.default_to("waiting", WAITING);
        let fill = settings.number("fill").filter(|_| was_given);
        let fill_percent = fill.and_then(|percent| u8::try_from(percent).ok()).unwrap_or(0);
        Ok(TreeChoice { entry, settings, over_ftl, fill_percent })
    }

    /// The tree of a database that exists, and has `label`.
    /// The size of its nodes is its pages', where that is not left to the device.
    ///
    /// # Errors
    /// There is no such tree, or it has no such settings.
    pub(crate) fn of(name: &str, page_bytes: Option<u32>, label: &Label) -> Result<Self> {
        let has_node = has_node(name)?;
        let page_bytes = page_bytes.filter(|_| has_node);
        let mut tree = TreeChoice::read(name, page_bytes, label.fill_percent)?;
        tree.take(&label.settings)?;
        Ok(tree)
    }

    /// Takes `packed` settings in place of its own.
    ///
    /// # Errors
    /// The tree has no such settings.
    pub(crate) fn take(&mut self, packed: &[u8]) -> Result<()> {
        if !self.settings.unpack(self.entry.parameters, packed) {
            let what = "its label has no settings of its tree".to_owned();
            return Err(Error::NotADatabase { path: None, is_ours: true, what });
        }
        Ok(())
    }

    /// What a label has of the settings: what does not stand elsewhere in the database.
    pub(crate) fn packed(&self) -> Vec<u8> {
        self.settings.pack(self.entry.parameters, &["node", "fill"])
    }

    /// What a tree of its form has of the settings in a label, wherever it stands.
    pub(crate) fn packed_form(&self) -> Vec<u8> {
        let names = self.entry.parameters.iter().map(|parameter| parameter.name);
        let others: Vec<&str> = names.filter(|name| !FORM.contains(name)).collect();
        self.settings.pack(self.entry.parameters, &others)
    }
}

/// The spec `text`, of a tree without settings of its own, with `packed` ones.
pub(crate) fn with_settings(text: &str, packed: &[u8]) -> Result<String> {
    let mut tree = TreeChoice::read(text, None, 0)?;
    tree.take(packed)?;
    let given = tree.settings.given().map(|(name, value)| format!("{name}={value}"));
    let given = given.collect::<Vec<_>>().join(",");
    let between = if text.contains(':') { "," } else { ":" };
    Ok(if given.is_empty() { text.to_owned() } else { format!("{text}{between}{given}") })
}

/// True if the tree of this spec has nodes of a size that can be chosen.
pub(crate) fn has_node(text: &str) -> Result<bool> {
    Ok(has_parameter(tree(parse("tree", text)?.name)?, "node"))
}

/// True if the tables of the tree of this spec grow with its entries; not if there is no such tree.
pub(crate) fn tables_grow(text: &str) -> bool {
    let name = text.split(':').next().unwrap_or_default();
    trees::find(name).is_some_and(|entry| entry.tables_grow())
}

/// The parameter that chooses a translation layer where a tree can do without.
const OVER: &str = "over";

/// True if `given` puts the tree on a translation layer.
fn is_over_ftl(entry: &TreeDescriptor, given: &[(&str, &str)]) -> Result<bool> {
    let Some((_, value)) = given.iter().find(|(name, _)| *name == OVER) else {
        return Ok(false);
    };
    let expected = match (entry.has_choice(), *value) {
        (true, "ftl") => return Ok(true),
        (true, _) => "it must be ftl; without it the tree stands on raw flash",
        (false, ..) if entry.nand => "this tree owns the chip and stands on no translation layer",
        (false, ..) => "this tree always stands on sectors",
    };
    let value = (*value).to_owned();
    Err(index::Error::BadParameter { name: OVER, value, expected: expected.into() }.into())
}

fn add_node(entry: &TreeDescriptor, given: &mut Vec<(&str, String)>, bytes: u32) -> Result<()> {
    if !has_parameter(entry, "node") {
        let what = format!("{} takes the pages of its device", entry.name);
        return Err(Error::Misplaced { option: "page bytes", what });
    }
    if !given.iter().any(|(name, _)| *name == "node") {
        given.push(("node", bytes.to_string()));
    }
    Ok(())
}

fn has_parameter(entry: &TreeDescriptor, name: &str) -> bool {
    entry.parameters.iter().any(|parameter| parameter.name == name)
}

fn tree(name: &str) -> Result<&'static TreeDescriptor> {
    trees::find(name)
        .ok_or_else(|| Error::unknown("tree", name, TREES.iter().map(|entry| entry.name)))
}

fn settings<'t>(
    entry: &'static TreeDescriptor,
    given: impl IntoIterator<Item = (&'t str, &'t str)>,
) -> Result<Settings> {
    Settings::parse(entry.name, entry.parameters, given).map_err(|error| match error {
        index::Error::UnknownParameter { name, .. } => {
            let over = entry.has_choice().then_some(OVER);
            let known = entry.parameters.iter().map(|parameter| parameter.name).chain(over);
            Error::unknown("parameter", &name, known)
        }
        other => Error::Index(other),
    })
}

/// A translation layer with its options.
pub(crate) struct LayerChoice {
    pub(crate) entry: &'static ftl::Entry,
    pub(crate) options: ftl::Options,
}

impl LayerChoice {
    /// Reads a translation layer's spec.
    pub(crate) fn read(text: &str) -> Result<Self> {
        let spec = parse("ftl", text)?;
        let entry = ftl::find(spec.name).ok_or_else(|| {
            let known = ftl::FTLS.iter().map(|entry| entry.name);
            Error::unknown("translation layer", spec.name, known)
        })?;
        let mut options = ftl::Options::default();
        for (name, value) in spec.parameters {
            options = options.set(entry, name, value).map_err(|bad| match bad {
                ftl::BadOption::Value { expected } => {
                    let what = format!("{name}={value}: expected {expected}");
                    Error::BadOption { option: "ftl", what }
                }
                _ => {
                    let known = entry.parameters.iter().map(|known| known.name);
                    Error::unknown("parameter", name, known)
                }
            })?;
        }
        Ok(LayerChoice { entry, options })
    }

    /// Page mapping, which suits everything.
    pub(crate) fn usual() -> Result<Self> {
        LayerChoice::read("page-map")
    }
}

#[cfg(test)]
mod tests {
    use super::{LayerChoice, TreeChoice, usual};
    use crate::Error;
    use crate::label::Label;

    #[test]
    fn trees_and_layers_are_found_with_their_parameters() {
        let tree = TreeChoice::read("b-plus:fill=90", Some(512), 0).unwrap();
        assert_eq!((tree.settings.number("fill"), tree.fill_percent), (Some(90), 90));
        assert_eq!(tree.settings.number("node"), Some(512));
        let tree = TreeChoice::read("b-plus:node=1024", Some(512), 0).unwrap();
        assert_eq!(tree.settings.number("node"), Some(1024));
        let read = |text| TreeChoice::read(text, None, 0).unwrap();
        let in_file = read(usual(false, None));
        assert_eq!((in_file.entry.name, in_file.fill_percent), ("flat-tree", 0));
        let on_chip = read(usual(true, None));
        assert!(on_chip.entry.name == "b-plus" && on_chip.over_ftl);
        assert_eq!(read(usual(false, Some(512))).entry.name, "b-plus");
        let label = Label { fill_percent: 80, settings: in_file.packed(), ..Label::default() };
        assert_eq!(TreeChoice::of("b-plus", Some(512), &label).unwrap().fill_percent, 80);
        let made = TreeChoice::read("la-tree:buffer=none,k=3", None, 0).unwrap();
        let label = Label { settings: made.packed(), ..Label::default() };
        let opened = TreeChoice::of("la-tree", None, &label).unwrap();
        assert_eq!(opened.settings.word("buffer"), Some("none"));
        assert_eq!(opened.settings.number("k"), Some(3));
        let layer = LayerChoice::read("dac:regions=2").unwrap();
        assert_eq!((layer.entry.name, layer.options.regions()), ("dac", 2));
    }

    #[test]
    fn what_does_not_exist_is_refused_and_something_near_suggested() {
        let refused = |text| TreeChoice::read(text, None, 0).err().unwrap();
        assert!(matches!(refused("b-pluss"), Error::Unknown { near: Some(near), .. }
            if near == "b-plus"));
        assert!(matches!(refused("b-plus:nodes=4"), Error::Unknown { near: Some(near), .. }
            if near == "node"));
        assert!(matches!(refused("b-plus:node"), Error::BadOption { .. }));
        assert!(matches!(refused("b-plus:node=x"), Error::Index(_)));
        for (text, told) in [
            ("la-tree:over=raw flash", "over=raw flash: it must be ftl; without it"),
            ("b-plus:over=ftl,over=ftl", "b-plus has over twice"),
            ("mu:over=ftl", "over=ftl: this tree owns the chip"),
        ] {
            assert!(refused(text).to_string().contains(told), "{}", refused(text));
        }
        assert!(LayerChoice::read("page-map:logs=1").is_err());
        assert!(LayerChoice::read("dac:regions=99").is_err());
        assert!(LayerChoice::read("slc").is_err());
    }
}
