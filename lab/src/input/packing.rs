//! Compression, by the ending of a name and by what a file begins with.

use std::io;
use std::path::Path;

use super::frames::Frames;

/// What a member of a gzip file begins with.
const GZIP: [u8; 2] = [0x1F, 0x8B];

/// What files of other compressions begin with.
const OTHERS: [(&[u8], &str); 5] = [
    (b"\xFD7zXZ\0", "xz"),
    (b"7z\xBC\xAF\x27\x1C", "7z"),
    (b"PK\x03\x04", "zip"),
    (b"\x04\x22\x4D\x18", "lz4"),
    (b"\x1F\x9D", "compress"),
];

/// What stands behind `BZh` and a digit in a file of bzip2: a block, or the end of an empty one.
const BZIP2: [&[u8]; 2] = [b"\x31\x41\x59\x26\x53\x59", b"\x17\x72\x45\x38\x50\x90"];

/// How a file is compressed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Packing {
    /// Not at all.
    Plain,
    /// With gzip.
    Gzip,
    /// With zstd.
    Zstd,
}

impl Packing {
    /// Bytes that tell how a file is compressed.
    pub(super) const HEAD_BYTES: u64 = 10;

    /// What the ending of `path` says.
    ///
    /// # Errors
    /// It says what is not known here.
    pub fn of(path: &Path) -> io::Result<Self> {
        let ending = path.extension().unwrap_or_default().to_string_lossy().to_lowercase();
        match &*ending {
            "gz" => Ok(Packing::Gzip),
            "zst" => Ok(Packing::Zstd),
            "7z" | "bz2" | "lz4" | "xz" | "zip" => {
                let what = format!("its name ends in .{ending}, and only .gz and .zst are known");
                Err(io::Error::new(io::ErrorKind::Unsupported, what))
            }
            _ => Ok(Packing::Plain),
        }
    }

    /// What a file is that begins with `head`, whatever its name.
    ///
    /// # Errors
    /// It is compressed in a way that is not known here.
    pub(super) fn in_head(head: &[u8]) -> io::Result<Self> {
        let is_bzip2 = || {
            let rest = head.strip_prefix(b"BZh")?.split_first()?.1;
            Some(BZIP2.iter().any(|mark| rest.starts_with(mark)))
        };
        let other = OTHERS.iter().find(|(mark, _)| head.starts_with(mark)).map(|(_, name)| *name);
        let other = other.or_else(|| is_bzip2().filter(|is| *is).map(|_| "bzip2"));
        if let Some(name) = other {
            let what = format!(
                "it is compressed with {name}, and only gzip and zstd are known: unpack it first"
            );
            return Err(io::Error::new(io::ErrorKind::Unsupported, what));
        }
        Ok(match () {
            () if Frames::<&[u8]>::are_in(head) => Packing::Zstd,
            () if head.starts_with(&GZIP) => Packing::Gzip,
            () => Packing::Plain,
        })
    }
}

/// A name in small letters, without what says that it is compressed.
#[must_use]
pub fn bare_name(path: &Path) -> String {
    let name = path.to_string_lossy().to_lowercase();
    let bare = name.strip_suffix(".zst").or_else(|| name.strip_suffix(".gz"));
    bare.unwrap_or(&name).to_owned()
}

/// What stands between two fields of a file, as its name ends.
#[must_use]
pub fn delimiter_of(path: &Path) -> u8 {
    if bare_name(path).ends_with(".tsv") { b'\t' } else { b',' }
}
