//! How page mapping chooses: which block to collect, and which to wear.

/// Which block is collected.
///
/// Whatever the policy, blocks that would win nothing are left alone, and the emptiest block is
/// taken while free blocks are scarce, as they are after power cuts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Victim {
    /// The block with the fewest live pages.
    Greedy,
    /// The next one in the order of the blocks.
    RoundRobin,
    /// The one for which `age * (1 - u) / 2u` is largest, where `u` is the share of its pages that
    /// live and `age` the pages programmed since one of its pages died (Kawaguchi, Nishioka,
    /// Motoda: "A Flash-Memory Based File System", 1995).
    CostBenefit,
}

impl Victim {
    /// All policies and their names.
    pub const ALL: [(&str, Victim); 3] = [
        ("greedy", Victim::Greedy),
        ("round-robin", Victim::RoundRobin),
        ("cost-benefit", Victim::CostBenefit),
    ];
}

/// How erases are spread over the blocks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Levelling {
    /// Free blocks are used in the order in which they became free.
    None,
    /// Of the free blocks the one with the fewest erases is used.
    Dynamic,
    /// Beside that, data that rests on blocks with few erases is moved to blocks with many.
    #[default]
    Static,
}

impl Levelling {
    /// All ways and their names.
    pub const ALL: [(&str, Levelling); 3] =
        [("none", Levelling::None), ("dynamic", Levelling::Dynamic), ("static", Levelling::Static)];
}

/// The choice called `name`.
pub(crate) fn named<T: Copy>(all: &[(&str, T)], name: &str) -> Option<T> {
    all.iter().find(|(known, _)| *known == name).map(|(_, choice)| *choice)
}
