//! Whose a file is, and who may read and write it: what a file keeps that is replaced by another.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt, chown};
use std::path::Path;

/// The bits of a mode that say who may read, write and execute.
const RIGHTS: u32 = 0o777;

/// Owner, group and mode of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rights {
    owner: u32,
    group: u32,
    mode: u32,
}

impl Rights {
    /// Those of the regular file at `path`; `None` if there is none.
    #[must_use]
    pub fn of(path: &Path) -> Option<Self> {
        let about = fs::metadata(path).ok().filter(fs::Metadata::is_file)?;
        Some(Rights { owner: about.uid(), group: about.gid(), mode: about.mode() & RIGHTS })
    }

    /// Makes an empty file at `path`, where there must be none, which is to replace one with the
    /// rights `like`: only its owner may read it until [`give`](Rights::give). A file that
    /// replaces none gets the rights of every new file.
    ///
    /// # Errors
    /// There is one already, or the system refuses.
    pub fn make_file(path: &Path, like: Option<Rights>) -> io::Result<File> {
        let mut options = File::options();
        if like.is_some() {
            options.mode(0o600);
        }
        options.write(true).create_new(true).open(path)
    }

    /// Gives them to the file at `path`. Where the system does not let the owner or the group be
    /// kept, nobody may do more than before.
    ///
    /// # Errors
    /// The system refuses.
    pub fn give(self, path: &Path) -> io::Result<()> {
        let now = fs::metadata(path)?;
        if now.uid() != self.owner {
            // Only a privileged process may.
            let _ = chown(path, Some(self.owner), None);
        }
        let is_group_kept = now.gid() == self.group || chown(path, None, Some(self.group)).is_ok();
        let mode = if is_group_kept { self.mode } else { without_group(self.mode) };
        fs::set_permissions(path, fs::Permissions::from_mode(mode))
    }
}

/// The mode with no more rights for the group than others have.
const fn without_group(mode: u32) -> u32 {
    let others = mode & 0o007;
    (mode & !0o070) | (mode & (others << 3))
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::PermissionsExt;

    use super::{Rights, without_group};

    #[test]
    fn a_file_is_closed_to_others_until_it_has_the_rights_of_the_one_it_replaces() {
        let folder = tempfile::tempdir().unwrap();
        let (old, new) = (folder.path().join("old"), folder.path().join("new"));
        assert_eq!(Rights::of(&old), None);
        fs::write(&old, "").unwrap();
        let mode = |path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        for wanted in [0o600, 0o640, 0o444] {
            fs::set_permissions(&old, fs::Permissions::from_mode(wanted)).unwrap();
            let rights = Rights::of(&old);
            Rights::make_file(&new, rights).unwrap();
            assert_eq!(mode(&new), 0o600);
            rights.unwrap().give(&new).unwrap();
            assert_eq!(mode(&new), wanted);
            assert!(Rights::make_file(&new, rights).is_err());
            fs::remove_file(&new).unwrap();
        }
    }

    #[test]
    fn another_group_gets_what_everybody_has() {
        for (mode, left) in [(0o640, 0o600), (0o664, 0o644), (0o666, 0o666), (0o750, 0o700)] {
            assert_eq!(without_group(mode), left);
        }
    }
}
