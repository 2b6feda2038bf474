//! What a user can do about an error of the libraries, which state facts alone.

use db::Error;

/// What can be done, behind the words of the library; empty where these say enough.
pub(super) fn about(error: &Error) -> String {
    let words = match error {
        Error::Unknown { known, .. } if known.is_empty() => "it has none at all",
        Error::Unknown { near, known, .. } => {
            return format!("; {}", spec::suggestion(near.as_slice(), known));
        }
        Error::Index(error) => about_index(error),
        Error::DanglingLink { .. } => "remove it, or name another file",
        Error::OtherVersion { .. } => {
            "export it with the program that reads it, and import it with this one"
        }
        Error::OtherLength { .. } => {
            "the file was cut off, lengthened or copied in part: give it its length again, or take \
             a whole copy"
        }
        Error::Misplaced { option: "page bytes", .. } => {
            "leave it away, or choose a chip with other pages"
        }
        Error::Misplaced { .. } => "leave it away",
        Error::NotClosed => "make it anew",
        Error::NeedsRecovery => "open it once with a command that writes, such as put",
        Error::ReadOnly => "take a copy that can be written",
        Error::Damaged { .. } => {
            "flashtree export --skip-damaged saves what can still be read, the rest has to come \
             from a copy"
        }
        Error::Full { .. } => "delete something and compact the database, or give it more room",
        Error::Driver { .. } => "put that right, then run the command again",
        _ => "",
    };
    if words.is_empty() { String::new() } else { format!("; {words}") }
}

fn about_index(error: &index::Error) -> &'static str {
    use device::Error as Device;
    use index::Error as Index;
    use store::Error as Store;
    match error {
        Index::KeyLength { .. } | Index::ValueLength { .. } => {
            "give it that length, or copy the database to one of variable lengths"
        }
        Index::WrongMedium { medium: "a disk", .. } => {
            "make the database on a chip, or choose a tree that stands on sectors, as b-plus does"
        }
        Index::BadParameter { name: "node", expected, .. } if expected.contains("fanout") => {
            "give fanout, or leave node away"
        }
        Index::BadParameter { name: "over", .. } => "leave it away",
        Index::NotSorted { .. } => "sort the entries, or put them one by one",
        Index::NotEmpty => "make a new database, or put the entries one by one",
        Index::Store(Store::LongBatch { .. }) => {
            "split the batch, or copy the database to one with a longer journal"
        }
        Index::Store(Store::NoCheckpoint) => "see flashtree checkpoints",
        Index::Store(Store::Durability { .. }) => {
            "copy the database to one that is made with the other durability"
        }
        Index::Store(Store::CheckpointName { .. }) => {
            "choose another name, or forget a checkpoint that is kept"
        }
        Index::Store(Store::Kept { .. }) => "forget one of them, or roll back",
        Index::Store(Store::Device(Device::Failing { .. })) => "run it again once the chip works",
        Index::Store(Store::NoMemory { .. }) => "give less with --memory-total",
        Index::Store(Store::Device(Device::TooSmall { .. } | Device::TooFewBlocks { .. })) => {
            "give the database a larger device, or more with --size"
        }
        Index::Store(Store::Device(Device::TooFewPages { .. })) => {
            "choose a chip with more pages in a block"
        }
        Index::Store(Store::Device(Device::PowerCut)) => "run the command again",
        _ => "",
    }
}

/// What can be done about a comparison that could not be made.
pub(super) fn about_comparison(error: &lab::Error) -> String {
    use lab::{Error, InputFault, Misfit};
    if let Some((near, known)) = error.meant() {
        let is_parameter = matches!(error, Error::DoesNotFit { .. });
        return match known {
            [] if is_parameter => "; it has none at all".to_owned(),
            known => format!("; {}", spec::suggestion(near, known)),
        };
    }
    let words = match error {
        Error::Exclusive { .. } => "give one of them",
        Error::NoOperations { .. } => "give --ops 1 or more, or leave rows after the preload",
        Error::TooManyPages { .. } => "give blocks= or --size",
        Error::TooManyDeletes { .. } => "lower deletes, or give a preload",
        Error::DeviceInFile(file::Error::NotOurs { .. }) => {
            "name another path, or give --overwrite"
        }
        Error::DeviceInFile(file::Error::Missing { .. }) => "make it first",
        Error::Input { fault: InputFault::ColumnTwice { .. }, .. } => {
            "give one of them another name"
        }
        Error::DoesNotFit { reason: Misfit::LittleMemory { need, .. }, .. } => {
            return format!("; give --memory {need} or more");
        }
        Error::DoesNotFit { reason: Misfit::LittleTotal { need, .. }, .. } => {
            return format!("; give --memory-total {need} or more");
        }
        Error::NothingFits(trees) => return least_memory(trees),
        _ => "",
    };
    if words.is_empty() { String::new() } else { format!("; {words}") }
}

/// The option with the least memory that one of `trees` can do with.
fn least_memory(trees: &[(String, lab::Misfit)]) -> String {
    let needs = trees.iter().filter_map(|(tree, misfit)| match *misfit {
        lab::Misfit::LittleMemory { need, .. } => Some((need, "--memory", tree)),
        lab::Misfit::LittleTotal { need, .. } => Some((need, "--memory-total", tree)),
        _ => None,
    });
    needs.min().map_or_else(String::new, |(need, option, tree)| {
        format!("; the least is {option} {need}, for {tree}")
    })
}
