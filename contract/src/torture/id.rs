//! What plays a failure again: `CELL@life:SEED:SESSION` or `CELL@each:SEED:CUT[:CUT]`.

use std::fmt;

use index::TreeDescriptor;

use super::cell::{Cell, find_cell};
use super::each::Which;

/// One cut of one history on one cell.
#[derive(Clone)]
pub struct ReplayId {
    pub(super) cell: Cell,
    pub(super) play: Play,
}

/// A history, and the place in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Play {
    /// A random life, up to this session.
    Life { seed: u64, session: u32 },
    /// A short history, cut at one operation.
    Each { seed: u64, which: Which },
}

impl ReplayId {
    /// Reads what the `Display` of an id wrote; `None` if it is no id, or names no cell of `trees`.
    #[must_use]
    pub fn parse(trees: &[&'static TreeDescriptor], text: &str) -> Option<Self> {
        let (cell, play) = text.split_once('@')?;
        let mut parts = play.split(':');
        let kind = parts.next()?;
        let numbers: Vec<u64> = parts.map(number).collect::<Option<_>>()?;
        let play = match (kind, numbers.as_slice()) {
            ("life", [seed, session]) => {
                Play::Life { seed: *seed, session: u32::try_from(*session).ok()? }
            }
            ("each", [seed, cut]) => {
                Play::Each { seed: *seed, which: Which { cut: *cut, again: None } }
            }
            ("each", [seed, cut, again]) => {
                Play::Each { seed: *seed, which: Which { cut: *cut, again: Some(*again) } }
            }
            _ => return None,
        };
        Some(ReplayId { cell: find_cell(trees, cell)?, play })
    }

    /// The command that plays it.
    #[must_use]
    pub fn command(&self) -> String {
        format!("flashtree torture --replay {self}")
    }
}

fn number(text: &str) -> Option<u64> {
    if !text.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    text.parse().ok()
}

impl fmt::Display for ReplayId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}@{}", self.cell, self.play)
    }
}

impl fmt::Display for Play {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Play::Life { seed, session } => write!(f, "life:{seed}:{session}"),
            Play::Each { seed, which: Which { cut, again } } => {
                write!(f, "each:{seed}:{cut}")?;
                again.map_or(Ok(()), |again| write!(f, ":{again}"))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use trees::TREES;

    use super::ReplayId;

    #[test]
    fn an_id_is_read_as_it_was_written() {
        for text in [
            "b-plus/page-map+spare/512/4+4/every@life:7:12",
            "b-plus:node=1024/file/4096/variable/batch@each:18446744073709551615:3",
            "b-plus/disk-torn/2048/8+8/checkpoint@each:1:30:2",
        ] {
            assert_eq!(ReplayId::parse(TREES, text).unwrap().to_string(), text);
        }
    }

    #[test]
    fn what_is_no_id_is_refused() {
        for text in [
            "",
            "b-plus",
            "b-plus/file/512/4+4/every",
            "b-plus/file/512/4+4/every@",
            "b-plus/file/512/4+4/none@life:1:1",
            "no-tree/file/512/4+4/every@life:1:1",
            "b-plus/file/512/4+4/every@life:1",
            "b-plus/file/512/4+4/every@life:1:-1",
            "b-plus/file/512/4+4/every@life:1:99999999999",
            "b-plus/file/512/4+4/every@each:1:2:3:4",
            "b-plus/file/512/4+4/every@death:1:2",
        ] {
            assert!(ReplayId::parse(TREES, text).is_none(), "{text}");
        }
    }
}
