//! The trees' parameters, beside those that the program's grammar names.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

use flashtree_trees::TREES;
use index::parameters::Settings;

/// Each tree's parameters as the grammar has them: name, default where it names one, other values.
type Named = (&'static str, &'static [(&'static str, &'static str, &'static [&'static str])]);

/// Those of trees of levels.
const LEVELS: &[(&str, &str, &[&str])] = &[
    ("ratio", "auto", &["16"]),
    ("levels", "auto", &["4"]),
    ("head", "", &["65536"]),
    ("unit", "", &["524288"]),
    ("deamortized", "off", &["on"]),
];

const NAMED: &[Named] = &[
    ("b-plus", &[("node", "", &["4096"]), ("fill", "", &["70"]), ("flush", "leaf", &["entry"])]),
    ("bftl", &[("reservation", "60", &["10"]), ("list", "3", &["16"]), ("sector", "", &["4096"])]),
    ("fd-tree", LEVELS),
    (
        "flashdb",
        &[
            ("mode", "self-tuning", &["log", "disk"]),
            ("log-buffer", "", &["4096"]),
            ("counter", "clamped", &["printed"]),
            ("split-off", "log", &["alike"]),
            ("compaction", "5", &["16"]),
            ("node", "", &["4096"]),
        ],
    ),
    (
        "flat-tree",
        &[
            ("unit", "auto", &["8192"]),
            ("filter", "auto", &["14"]),
            ("partition", "auto", &["1MiB"]),
            ("memtable", "", &["0.125"]),
            ("space", "", &["1.2"]),
        ],
    ),
    ("ipl", &[("log-pages", "", &["4"])]),
    (
        "la-tree",
        &[
            ("k", "2", &["1", "3", "4"]),
            ("fanout", "16", &["8", "64"]),
            ("buffer", "adaptive", &["none", "8192", "128"]),
            ("pool", "0.75", &["0.5"]),
            ("share", "", &["fixed", "shared"]),
            ("place", "", &["log", "in-place"]),
        ],
    ),
    (
        "lazy-update",
        &[
            ("policy", "cost-based", &["biggest-size", "lru", "fifo"]),
            ("pool", "0.5", &["0.1", "0.94"]),
            ("pruning", "on", &["off"]),
            ("super-groups", "none", &["first", "second"]),
            ("node", "", &["4096"]),
        ],
    ),
    ("list", &[]),
    ("lsm", LEVELS),
    (
        "mu",
        &[("collect", "0.1", &["0.2"]), ("cache", "0.5", &["0.25"]), ("flush", "entry", &["leaf"])],
    ),
    (
        "mu-star",
        &[
            ("alpha", "0.9", &["0.8"]),
            ("beta", "0.5", &["0.9"]),
            ("delta", "", &["0.01"]),
            ("collect", "0.1", &["0.2"]),
            ("cache", "0.5", &["0.25"]),
            ("flush", "entry", &["leaf"]),
        ],
    ),
];

#[test]
fn every_tree_has_the_parameters_that_the_grammar_names() {
    for tree in TREES {
        let (_, named) = NAMED.iter().find(|(name, _)| *name == tree.name).unwrap();
        for (name, default, others) in *named {
            let found = tree.parameters.iter().find(|parameter| parameter.name == *name);
            let found = found.unwrap_or_else(|| panic!("{} has no parameter {name}", tree.name));
            assert!(default.is_empty() || found.default == *default, "{}: {name}", tree.name);
            for value in *others {
                let settings = Settings::parse(tree.name, tree.parameters, [(*name, *value)]);
                assert!(settings.unwrap().value(name).is_some(), "{}: {name}={value}", tree.name);
            }
        }
    }
}
