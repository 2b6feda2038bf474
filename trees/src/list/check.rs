//! Verifying every invariant of the list.

use core::fmt::Display;

use device::Cause;

use super::List;
use index::{Error, Result};

/// Reads every page and every entry; damage is a finding.
pub(super) fn check(list: &mut List<'_>, finding: &mut dyn FnMut(&dyn Display)) -> Result<()> {
    let form = list.archive.form;
    let mut walk = list.archive.walk();
    let mut found = 0u64;
    loop {
        let page = walk.page;
        let mut rest = match list.archive.step(&mut walk, Cause::Lookup) {
            Ok(Some(rest)) => rest,
            Ok(None) => break,
            Err(error) => return error.report_damage(finding),
        };
        while !rest.is_empty() {
            let (_, before) = match form.last(rest) {
                Ok(last) => last,
                Err(what) => {
                    return Error::from(super::archive::damaged_at(page, what))
                        .report_damage(finding);
                }
            };
            rest = before;
            found += 1;
        }
    }
    let expected = list.archive.entries;
    if found != expected {
        finding(&format_args!("the list counts {expected} entries, but has {found}"));
    }
    Ok(())
}
