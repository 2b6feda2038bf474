//! What byte 7 of a page says that it is.
//!
//! No two kinds have one number: a page in the cache was checked as what it is, and a damaged
//! pointer may ask for it as anything else. Trees have 6 to 10 for pages of their own.

/// Where it stands.
pub(crate) const AT: usize = 7;

/// A node with entries of fixed length.
pub(crate) const PACKED: u8 = 1;
/// A node with slots.
pub(crate) const SLOTTED: u8 = 2;
/// A page of the free list.
pub(crate) const FREE: u8 = 3;
/// A page that names those of a long value.
pub(crate) const INDEX: u8 = 4;
/// A part of a long value.
pub(crate) const DATA: u8 = 5;
/// A node whose entries are of one length, and have one prefix.
pub(crate) const DENSE: u8 = 11;

#[cfg(test)]
mod tests {
    use super::{DATA, DENSE, FREE, INDEX, PACKED, SLOTTED};

    #[test]
    fn no_two_kinds_have_one_number() {
        let kinds = [PACKED, SLOTTED, FREE, INDEX, DATA, DENSE];
        let is_free = |kind| !(6..=10).contains(kind) && *kind > 0;
        assert!(kinds.iter().all(is_free), "a tree has that number");
        let is_twice = |kind| kinds.iter().filter(|other| *other == kind).count() > 1;
        assert!(!kinds.iter().any(is_twice), "two kinds have one number");
    }
}
