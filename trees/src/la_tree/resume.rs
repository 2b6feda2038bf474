//! Where reading goes on behind damage.

use device::Cause;

use super::LaTree;
use super::bare_tree::Toward;
use index::{Error, Result, Resume};

/// Nothing below a node can be read if its buffer can't be: its entries are newer than all there.
pub(super) fn resume_after(tree: &mut LaTree<'_>, key: Option<&[u8]>) -> Result<Resume> {
    if let Some(key) = key {
        tree.limits.check_key(key)?;
    }
    let (mut id, mut level) = tree.bare.begin();
    loop {
        if let Some(number) = id.buffer()
            && !is_readable(tree.buffers.scan(&mut tree.bare.log, number, &mut |_, _| {}))?
        {
            break;
        }
        if level == 0 {
            break;
        }
        // The bounds are those of the child that can't be reached, too.
        let toward = Toward::Key(key.unwrap_or_default());
        let child = tree.bare.step_down(level, id, toward, Cause::Lookup);
        id = *child.as_ref().unwrap_or(&id);
        if !is_readable(child.map(|_| ()))? {
            break;
        }
        level -= 1;
    }
    let bounds = &tree.bare.bounds;
    Ok(if bounds.has_upper { Resume::From(bounds.upper.clone()) } else { Resume::End })
}

/// False if what was read is damaged.
fn is_readable(read: Result<()>) -> Result<bool> {
    match read {
        Err(Error::Store(error)) if error.is_damage() => Ok(false),
        read => read.map(|()| true),
    }
}
