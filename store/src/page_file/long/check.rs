//! Verifying long values.

use device::Cause;

use super::{Link, NONE, PageFile, count};
use crate::{Error, OverflowValue, Result};

impl PageFile<'_> {
    /// Verifies every page of a long value, and tells each damage to `told`; returns how many
    /// pages it names, those that tell where it stands included.
    ///
    /// # Errors
    /// The disk failed. Damage is told, and no error.
    pub fn check_long(
        &mut self,
        value: OverflowValue,
        cause: Cause,
        told: &mut dyn FnMut(Error),
    ) -> Result<u32> {
        let mut pages = 0_u32;
        let mut link = Some(Link { page: value.first, previous: NONE, before: 0 });
        while let Some(now) = link {
            pages = pages.saturating_add(1);
            let index = self.index_page(value, now, cause).map(|page| u32::from(count(page)));
            let Some(names) = unless_damaged(index, told)? else {
                return Ok(pages);
            };
            for place in 0..names {
                let data = self.data_page(value, now, place, cause).map(|_| ());
                unless_damaged(data, told)?;
                pages = pages.saturating_add(1);
            }
            link = match unless_damaged(self.next_link(value, now, cause), told)? {
                Some(next) => next,
                None => return Ok(pages),
            };
        }
        Ok(pages)
    }
}

/// What a look at a page gave; `None` if the page is damaged, which is told.
fn unless_damaged<T>(outcome: Result<T>, told: &mut dyn FnMut(Error)) -> Result<Option<T>> {
    match outcome {
        Err(error) if error.is_damage() => {
            told(error);
            Ok(None)
        }
        other => other.map(Some),
    }
}
