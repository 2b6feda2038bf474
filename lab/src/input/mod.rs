//! Files that are read from outside: plain or compressed, rows of CSV with their lines. What would
//! be misread is told as what it is.

mod frames;
mod packing;
mod quotes;
mod source;
mod table;

pub use packing::{Packing, bare_name, delimiter_of};
pub use quotes::NUL;
pub use source::{Meter, Source};
pub use table::{RowFault, Table, names};
