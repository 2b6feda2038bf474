//! What targets must reach, and what no reading reaches.
//!
//! Names are those of [`crate::reach`]: the variant of an error behind its layer, or the reason
//! that an error gives. Each list holds what one round of its target reaches for certain; longer
//! runs reach more. `tests/reach.rs` fails if the sources have an error or a reason that stands in
//! no list.

/// What the codec refuses in bytes that are no node.
pub const NODES: &[&str] = &[
    "accepted",
    "a cell ends outside the cells",
    "a slot points outside its cells",
    "it counts more entries than a node can hold",
    "it is no node with entries of fixed length",
    "it is no node with entries of variable length",
    "its cells do not add up",
    "its entries have other lengths than this index's",
    "its keys are not in ascending order",
    "its prefix is longer than a key",
    "its slots, cells and prefix overlap",
];

/// What damaged superblocks and checkpoints lead to.
pub const SUPERBLOCKS: &[&str] = &[
    "store DamagedJournal",
    "store DamagedPage",
    "store NodeSize",
    "store NotAnIndex",
    "store NotClosed",
    "store OtherLength",
    "store OtherVersion",
    "a record is longer than its device",
    "it counts more pages than the device has",
    "it holds another tree",
    "it is at another level",
    "it is named but was never allocated",
    "its superblock is corrupt",
    "its journal holds an entry that it can't hold",
    "its creation was interrupted",
    "its root record is damaged",
    "its root record names no page",
    "no superblock stands in its first two sectors",
    "the image of it in the undo log is damaged",
    "they can't hold four entries",
    "they must be a multiple or a whole fraction of the device's page",
    "they must have 128 to 32768 bytes",
];

/// What damaged journals lead to.
pub const JOURNALS: &[&str] =
    &["store DamagedJournal", "store NotAnIndex", "its journal holds an entry that it can't hold"];

/// What damaged undo logs lead to.
pub const UNDO_LOGS: &[&str] =
    &["store DamagedPage", "store DamagedUndo", "the image of it in the undo log is damaged"];

/// What damaged nodes of a tree lead to.
pub const TREES: &[&str] = &[
    "finding",
    "store CorruptPage",
    "store DamagedPage",
    "a cell ends outside the cells",
    "a slot points outside its cells",
    "it counts more entries than a node can hold",
    "it has no children",
    "it is at another level",
    "it is named but was never allocated",
    "its cells do not add up",
    "its keys are not in ascending order",
    "its slots, cells and prefix overlap",
    "the key at place # belongs to another node",
    "what tells of a long value has another length",
];

/// What damaged free lists, long values and directories of checkpoints lead to.
pub const LONG_VALUES: &[&str] = &[
    "it belongs to a long value of another length",
    "it belongs to another long value",
    "it counts more free pages than it can name",
    "it counts more pages of a long value than it can name",
    "it does not name as many pages as its long value has",
    "it does not tell where a long value stands",
    "it holds no part of a long value",
    "it is a page of another kind",
    "it is another part of a long value, or one of another",
    "it is named but was never allocated",
    "it is no page of the free list",
    "its directory of checkpoints is damaged",
    "the free list is circular",
];

/// What damaged chips lead to.
pub const CHIPS: &[&str] = &[
    "Closing",
    "Header",
    "Own",
    "Spare",
    "db Damaged",
    "db Index",
    "db NotADatabase",
    "db NotClosed",
    "db OtherLength",
    "device TooFewBlocks",
    "device Uncorrectable",
    "no superblock stands in its first two sectors",
    "it holds no checkpoint",
    "store CorruptPage",
    "store DamagedPage",
];

/// What damaged files lead to.
pub const FILES: &[&str] = &[
    "as an imitated chip, it is # bytes long, its chip takes #",
    "as an imitated chip, its header describes no chip: # pages in all: at most # can be addressed",
    "as an imitated chip, its header describes no chip: a page of # bytes: it must be a power of \
     two from # to #",
    "as an imitated chip, its header describes no chip: a spare area of # bytes: it can't be \
     larger than the page",
    "as an imitated chip, its header is damaged: checksum #, expected #",
    "as an imitated chip, its header says # for the order of programming",
    "db Damaged",
    "db Encoding",
    "db NeedsRecovery",
    "db NotADatabase",
    "db NotClosed",
    "db OtherLength",
    "db OtherVersion",
];

/// What damaged raw flash gives.
pub const RAW_FLASH: &[&str] = &[
    "it holds no checkpoint",
    "its checkpoint is damaged",
    "its last checkpoint is damaged",
    "a page of its journal or of its last checkpoint is missing",
    "the record of a named checkpoint is damaged",
    "a node has another checksum than its bytes, its number and its place give",
    "a page of the tree's tables has another checksum, or mark",
    "a record of deltas has another checksum than its bytes and place give",
    "device Uncorrectable",
    "store CorruptPage",
    "store DamagedJournal",
    "store DamagedPage",
    "store NoCheckpoint",
    "db Damaged",
    "db NotADatabase",
    "db NotClosed",
];

/// Every list.
pub const ALL: &[&[&str]] = &[
    NODES,
    SUPERBLOCKS,
    JOURNALS,
    UNDO_LOGS,
    TREES,
    LONG_VALUES,
    CHIPS,
    FILES,
    RAW_FLASH,
    LONG_RUNS,
];

/// What only long runs reach for certain.
pub const LONG_RUNS: &[&str] = &[
    // A replay into a disk that damage made full.
    "store Full",
    "db Full",
    "device Geometry",
    "device TooSmall",
    // A record of a checkpoint on raw flash, or a tag, whose numbers were made up.
    "its checkpoint makes no sense",
    "its journal is longer than the chip",
    "device NoSuchPage",
    // A block of a tree on raw flash that was marked bad.
    "device BadBlock",
    // The name of the tree in the root record.
    "db Unknown",
    // The header of an imitated chip is as it should be, with too many pages.
    "header Pages",
    // An imitated chip that is cut off within its header.
    "header Magic",
    "header Version",
    // Changes of a tree whose pages were made up.
    "it is its own neighbour",
    "the root counts fewer entries than there are",
    "it was on the free list, and it is in use",
    "it is full with one entry",
    "its keys are not above those of its left neighbour",
    // Sorted runs and their manifest, each of whose bytes is flipped in `store/tests/runs`.
    "store CorruptUnit",
    "store DamagedUnit",
    "store RunEntry",
    "it is a piece of an entry that is longer than any",
    "it is a piece of an entry that does not begin",
    "it is named, but its run is shorter",
    "it is longer than what holds it",
    "four of the longest entries have to fit",
    "a run's units have 24 to 32768 bytes",
    "a long entry has another length",
    "it has no entries",
    "it counts more entries than fit",
    "it has an entry of a kind that its run has not",
    "it has a piece of an entry, where runs have none",
    "it has no entries, where its run has nothing else",
    "its gaps make no sense",
    "a fence has another length",
    "its run's footer makes no sense",
    "its page file has nothing behind it",
    "a page of runs is a multiple of the device's page",
    "its manifest names pages behind the end of the device",
    "its manifest names pages of a run twice, or none",
    "it gives back pages of a run that are free",
    "it is named, but no page file is in front",
    "its lengths or its kind are not those of its run",
    "it does not stand behind the one before it",
    "a unit is no longer than a page of runs",
    "its manifest has a run that makes no sense",
    "it is a piece of an entry that does not begin, or is longer than any",
    "two of its runs have a page in common",
    "its manifest makes no sense",
    "a delta names what there is not",
    "a delta names pages that are gone",
    "a delta names a run twice",
    "a delta names a run that there is not",
    "a change of its runs is missing",
];

/// What no reading gives, and why.
pub const OUT_OF_REACH: &[(&str, &str)] = &[
    ("db Deleted", "no damage, but an entry that is deleted while a range is at it"),
    ("db NoKeyspace", "no damage, but a name that is asked for"),
    ("db Panicked", "no damage, but a thread that panicked"),
    ("db SnapshotOver", "no damage, but what others changed since"),
    ("db Waited", "no damage, but threads that have the database"),
    ("db WithinItself", "no damage, but a call from inside of another"),
    (
        "device AfterFailedFlush",
        "no damage, but a disk that fails: the contract's failed operations",
    ),
    (
        "device AfterFailedWrite",
        "no damage, but a disk that fails: the contract's failed operations",
    ),
    ("device BadLength", "nothing that stands on a device sizes a request"),
    ("device Checksum", "no device gives it so far"),
    ("device Driver", "no damage, but a system that fails"),
    ("device EraseRefused", "the chips of this fuzzer never refuse: that is the storms' part"),
    ("device Failing", "the chips of this fuzzer never refuse: the contract's failing chips do"),
    ("device Full", "comes with writing only"),
    ("device NoSuchBlock", "layers bound every number of a block that they read"),
    ("device NoSuchSector", "the page file bounds every number of a page that it reads"),
    ("device NotErased", "the chips of this fuzzer obey no rule of programming"),
    ("device NotFormatted", "a database looks for every layer, and says then that there is none"),
    ("device OutOfOrder", "the chips of this fuzzer obey no rule of programming"),
    ("device PowerCut", "no damage: the histories' and the torture's part"),
    ("device ProgramRefused", "the chips of this fuzzer never refuse: that is the storms' part"),
    ("device TooFewPages", "chips are formatted before they are damaged"),
    ("device TooManyPrograms", "the chips of this fuzzer obey no rule of programming"),
    ("it is not the one that was to be split", "a disk that gives back other than was written"),
    ("store AdoptedTwice", "only who writes can ask for it"),
    ("store Superblock", "a superblock that was read fits its sector again"),
    ("store CheckpointName", "only who makes a checkpoint gives a name"),
    ("store Device", "counted by what is inside"),
    ("store Durability", "only who asks for another one gets it"),
    ("store Kept", "only who writes needs room"),
    ("store Label", "only who makes an index gives a label"),
    ("its making was broken off", "no damage, but a cut while an index was made"),
    ("its first checkpoint is damaged", "a database makes a second one when it is made"),
    ("store LittleTables", "only who puts makes tables grow"),
    ("store LittleMemory", "the memory suits the images: another length is told first"),
    ("store LongBatch", "only who writes has batches"),
    ("store LongValuePieces", "only who writes has pieces"),
    ("store NoMemory", "no damage, but a system that has too little"),
    ("index BadParameter", "only who makes an index gives parameters"),
    ("index EntryTooLong", "in a journal it is told as a journal that holds what it can't hold"),
    ("index KeyLength", "in a journal it is told as a journal that holds what it can't hold"),
    ("index KeyTooLong", "in a journal it is told as a journal that holds what it can't hold"),
    ("index NoEntry", "only a cursor that stands nowhere gives it"),
    ("index NotEmpty", "only loading gives it"),
    ("index NotSorted", "only loading gives it"),
    ("index Store", "counted by what is inside"),
    ("index TreeFull", "only puts and loading give it"),
    ("index UnknownParameter", "only who makes an index gives parameters"),
    ("index Unsupported", "only an index that failed before gives it, to who goes on"),
    ("index ValueLength", "in a journal it is told as a journal that holds what it can't hold"),
    ("index ValueTooLong", "in a journal it is told as a journal that holds what it can't hold"),
    ("index WrongMedium", "no medium is chosen while reading"),
    ("db Misplaced", "no options are chosen while reading"),
    ("db BadOption", "no options are chosen while reading"),
    ("db CheckpointsKept", "only who compacts loses checkpoints"),
    ("db DanglingLink", "nothing is made while reading"),
    ("db NoRandomNumber", "nothing is made while reading"),
    ("db Driver", "no damage, but a system that fails"),
    ("db Exists", "nothing is made while reading"),
    ("db File", "no damage, but a file that is none"),
    ("db Ended", "only who copies can be told to end"),
    ("db NotHere", "only who copies takes parameters along that may not be possible there"),
    ("db InUse", "nobody else has the file"),
    ("db Io", "no damage, but a system that fails"),
    ("db Kept", "only who writes needs room"),
    ("db LittleMemory", "the memory suits the files"),
    ("db LittleTables", "only who puts makes tables grow"),
    ("db LittleRoom", "only who makes a database chooses how large"),
    ("db OverflowValue", "only who writes has values"),
    ("db Missing", "the file is there"),
    ("db NotAPlainFile", "nothing is compacted"),
    ("db NoRandomness", "nothing is made while reading"),
    ("db ReadOnly", "nothing is written by who opened for reading"),
    ("header Checksum", "told in words: its header is damaged"),
    ("header Geometry", "told in words: its header describes no chip"),
    ("header Memory", "told as too little memory, and only where it is bounded"),
    ("header Length", "told in words: it is # bytes long"),
    ("header Order", "told in words: for the order of programming"),
    ("it goes on behind the end of its long value", "pages are counted before, with an error then"),
    (
        "it and those before it have more children than there are nodes",
        "takes a node on each of three levels that names one child only: `tests/separators.rs`",
    ),
    ("it has another size than this index's nodes", "pages are read as long as they are"),
    ("an empty node has no room", "only loading gives it"),
    ("it has no room", "a split looks for room before"),
    ("its children have keys of others", "a child gets its separator by writing only"),
    ("it is empty and has no room", "only loading gives it"),
    ("it is too short", "no page is shorter than its checksum"),
    ("the tree is higher than its pages allow", "32 levels of pages that all are full"),
];
