//! Why an operation on the device happened.

use core::fmt;

/// The reason that a caller passes down with every operation, under which its cost is booked.
///
/// A cause is an argument of each call and never ambient state: two callers that share a device
/// can't book under each other's name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum Cause {
    /// Reading for a get or a range.
    Lookup,
    /// Reading or writing for a put or a delete.
    Update,
    /// Writing back what was buffered: a dirty page that leaves a cache, a full buffer.
    Flush,
    /// Merging runs, levels or log pages.
    Merge,
    /// Moving live data away and erasing what is left.
    Reclamation,
    /// Writing or reading the journal.
    Journal,
    /// Writing a checkpoint or its undo.
    Checkpoint,
    /// Opening a device: scanning, rolling back, replaying.
    Recovery,
    /// Loading sorted entries into an empty index.
    Load,
}

impl Cause {
    /// How many causes there are.
    pub const COUNT: usize = 9;

    /// All causes, in the order of their numbers.
    pub const ALL: [Cause; Cause::COUNT] = [
        Cause::Lookup,
        Cause::Update,
        Cause::Flush,
        Cause::Merge,
        Cause::Reclamation,
        Cause::Journal,
        Cause::Checkpoint,
        Cause::Recovery,
        Cause::Load,
    ];

    /// The word by which reports name this cause.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Cause::Lookup => "lookup",
            Cause::Update => "update",
            Cause::Flush => "flush",
            Cause::Merge => "merge",
            Cause::Reclamation => "reclamation",
            Cause::Journal => "journal",
            Cause::Checkpoint => "checkpoint",
            Cause::Recovery => "recovery",
            Cause::Load => "load",
        }
    }
}

impl fmt::Display for Cause {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::Cause;

    #[test]
    fn every_cause_stands_at_its_own_number() {
        for (number, cause) in Cause::ALL.into_iter().enumerate() {
            assert_eq!(cause as usize, number, "{cause}");
        }
    }
}
