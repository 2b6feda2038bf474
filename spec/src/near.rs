//! Names that are near to one that nobody knows.

use std::collections::BTreeSet;

/// How alike two names must be, from 0 to 1, to be taken for each other.
const ALIKE: f64 = 0.78;

/// The most names worth suggesting.
const MOST: usize = 3;

/// Those of `known` that `name` may have been meant to be, the likeliest first.
#[must_use]
pub fn near<'k>(name: &str, known: impl IntoIterator<Item = &'k str>) -> Vec<String> {
    // A long name is near to nothing, and comparing it would take long.
    if name.len() > 100 {
        return Vec::new();
    }
    let name = name.to_lowercase();
    // Some are told more than once.
    let known: BTreeSet<&str> = known.into_iter().collect();
    let mut found: Vec<(f64, &str)> = known
        .into_iter()
        .map(|candidate| (likeness(&name, candidate), candidate))
        .filter(|(likeness, _)| *likeness >= ALIKE)
        .collect();
    found.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(b.1)));
    found.into_iter().take(MOST).map(|(_, candidate)| candidate.to_string()).collect()
}

fn likeness(name: &str, candidate: &str) -> f64 {
    let lower = candidate.to_lowercase();
    let is_long = name.len() >= 3;
    // Names are short, so one slip is most of what the usual measure sees.
    let slip = match is_long && strsim::damerau_levenshtein(name, &lower) <= 1 {
        true => 0.95,
        false => 0.0,
    };
    let held = if is_long && lower.contains(name) { 0.9 } else { 0.0 };
    // A chip is called by its model alone, as it is printed on it.
    let of_model = |(_, model): (&str, &str)| strsim::normalized_levenshtein(name, model);
    let model = lower.split_once('-').map_or(0.0, of_model);
    strsim::jaro_winkler(name, &lower).max(slip).max(held).max(model)
}

/// "did you mean a or b?", or all that there is if nothing is near.
#[must_use]
pub fn suggestion(near: &[String], known: &[String]) -> String {
    match (near, known) {
        ([], []) => "list them with `flashtree devices`".to_string(),
        ([], known) => format!("choose from {}", known.join(", ")),
        (near, _) => did_you_mean(near),
    }
}

/// "did you mean a, b or c?", of one name or more.
#[must_use]
pub fn did_you_mean(near: &[String]) -> String {
    match near {
        [most @ .., one, last] if !most.is_empty() => {
            format!("did you mean {}, {one} or {last}?", most.join(", "))
        }
        near => format!("did you mean {}?", near.join(" or ")),
    }
}

#[cfg(test)]
mod tests {
    use super::near;

    #[test]
    fn a_slip_of_the_keyboard_finds_its_name() {
        let names = ["b-plus", "bftl", "fd-tree", "la-tree", "lsm"];
        assert_eq!(near("bplus", names)[0], "b-plus");
        assert_eq!(near("B-Plus", names)[0], "b-plus");
        assert_eq!(near("lms", names), ["lsm"]);
        assert_eq!(near("tree", names), ["fd-tree", "la-tree"]);
        assert!(near("zzzz", names).is_empty());
        assert!(near(&"b".repeat(1 << 20), names).is_empty());
    }
}
