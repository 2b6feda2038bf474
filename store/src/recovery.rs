//! How an index comes back after it was closed.

use crate::Result;

/// What a tree's pages stand on keeps the tree's root record.
///
/// The page file implements it, and later the page log will. Under the only durability that exists
/// so far, `none`, an index can be opened again only after it was closed.
pub trait Recovery: Send {
    /// Makes all that was written the state to open from, with `root` as the root record.
    ///
    /// # Errors
    /// The record is too long, or the device failed.
    fn close(&mut self, root: &[u8]) -> Result<()>;

    /// Tells the medium, before the first change, that it is not closed any more.
    ///
    /// # Errors
    /// The device failed.
    fn reopen(&mut self) -> Result<()>;
}
