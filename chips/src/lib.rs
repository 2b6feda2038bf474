//! chips
