//! Names that were perhaps meant.

/// A name less like the one given than this is not suggested.
const LEAST_LIKENESS: f64 = 0.7;
/// How many names are suggested.
const MOST: usize = 3;
/// Longer names are not compared: nobody means one of ours by them.
const LONGEST: usize = 128;

/// The names most like `name`, the best first, at most three. A name that holds `name`, or that
/// `name` holds, is like it whatever their lengths.
pub(crate) fn nearest(name: &str, names: impl Iterator<Item = &'static str>) -> Vec<&'static str> {
    if name.is_empty() || name.len() > LONGEST {
        return Vec::new();
    }
    let name = name.to_lowercase();
    let mut scored: Vec<(f64, &'static str)> = names
        .map(|known| (likeness(&name, known), known))
        .filter(|(score, _)| *score >= LEAST_LIKENESS)
        .collect();
    scored.sort_by(|(left, a), (right, b)| right.total_cmp(left).then(a.cmp(b)));
    scored.into_iter().take(MOST).map(|(_, known)| known).collect()
}

fn likeness(name: &str, known: &str) -> f64 {
    let whole = strsim::jaro_winkler(name, known).max(strsim::normalized_levenshtein(name, known));
    let held = name.len() >= 3 && (known.contains(name) || name.contains(known));
    // The model alone, as it is printed on the chip.
    let model =
        known.split_once('-').map_or(0.0, |(_, model)| strsim::normalized_levenshtein(name, model));
    whole.max(model).max(if held { 0.95 } else { 0.0 })
}
