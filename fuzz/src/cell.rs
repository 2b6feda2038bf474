//! What an index is made of: its tree, the shape of its entries, its sizes, and how much lasts.

use device::{Medium, SectorGeometry, Sectors};
use index::parameters::Settings;
use index::{Durability, EntryShape, Index, Width};
use index::{MediumShape, Options, TreeDescriptor};
use trees::TREES;

/// Bytes in a sector, and in a page of a chip.
pub const SECTOR_BYTES: u32 = 512;

/// Nodes, or sectors where those are larger, that a disk has room for: recovery needs most of it.
const UNITS: u64 = 320;

/// Keys that entries have, at most.
pub const KEYS: u16 = 160;

const SHAPES: [EntryShape; 3] = [
    EntryShape::fixed(4, 4),
    EntryShape::VARIABLE,
    EntryShape { key: Width::Fixed(8), value: Width::Variable },
];

/// One kind of index.
#[derive(Clone, Copy)]
pub struct Cell {
    /// Its tree.
    pub entry: &'static TreeDescriptor,
    /// The shape of its entries.
    pub shape: EntryShape,
    /// Bytes in a node.
    pub node_bytes: u32,
    /// How much of it lasts.
    pub durability: Durability,
}

impl std::fmt::Debug for Cell {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Cell { entry, shape, node_bytes, durability } = self;
        write!(f, "{}/{shape}/{node_bytes}/{durability}", entry.name)
    }
}

/// All cells of the trees that stand on sectors.
#[must_use]
pub fn cells() -> Vec<Cell> {
    let mut cells = Vec::new();
    for entry in TREES.iter().filter(|entry| entry.sectors) {
        let has_nodes = entry.parameters.iter().any(|parameter| parameter.name == "node");
        let sizes: &[u32] = match entry.name {
            // Its nodes are whole sectors.
            "flashdb" => &[SECTOR_BYTES, 2 * SECTOR_BYTES],
            _ if has_nodes => &[256, 512, 1024],
            _ => &[SECTOR_BYTES],
        };
        for node_bytes in sizes {
            for shape in SHAPES {
                for durability in Durability::ALL {
                    cells.push(Cell { entry, shape, node_bytes: *node_bytes, durability });
                }
            }
        }
    }
    cells
}

impl Cell {
    /// The disk that such an index stands on.
    #[must_use]
    pub fn disk(&self) -> SectorGeometry {
        let sectors = UNITS * u64::from((self.node_bytes / SECTOR_BYTES).max(1));
        SectorGeometry::new(SECTOR_BYTES, sectors).expect("it is a disk")
    }

    /// The options with which it is made and opened on a disk of this shape.
    ///
    /// # Panics
    /// The tree refuses its own parameters.
    #[must_use]
    pub fn options(&self, disk: SectorGeometry) -> Options {
        let node = self.node_bytes.to_string();
        let has_nodes = self.entry.parameters.iter().any(|parameter| parameter.name == "node");
        let given = has_nodes.then_some(("node", node.as_str()));
        let settings = Settings::parse(self.entry.name, self.entry.parameters, given)
            .expect("the tree takes its parameters");
        let mut options = Options::new(self.shape, 0, settings);
        options.durability = Some(self.durability);
        let least = self.entry.least_memory(&options, MediumShape::Sectors(disk));
        // A little more than the least, so that not every page leaves at once.
        options.memory_bytes =
            least.expect("the disk suits the tree") + 3 * u64::from(self.node_bytes);
        options
    }

    /// Makes such an index on `disk`.
    ///
    /// # Errors
    /// As the tree.
    pub fn create<'d>(&self, disk: Box<dyn Sectors + 'd>) -> index::Result<Box<dyn Index + 'd>> {
        let options = self.options(disk.geometry());
        (self.entry.create)(Medium::Sectors(disk), &options)
    }

    /// Opens the index on `disk`, with the memory of such an index.
    ///
    /// # Errors
    /// As the tree.
    pub fn open<'d>(&self, disk: Box<dyn Sectors + 'd>) -> index::Result<Box<dyn Index + 'd>> {
        let mut options = self.options(disk.geometry());
        options.durability = None;
        (self.entry.open)(Medium::Sectors(disk), &options)
    }

    /// The key with this number; higher numbers have higher keys, but for the last few.
    #[must_use]
    pub fn key(&self, number: u16) -> Vec<u8> {
        let number = number % KEYS;
        match self.shape.key {
            Width::Fixed(4) => (u32::from(number) << 20 | 9).to_be_bytes().to_vec(),
            Width::Fixed(bytes) => {
                let mut key = (u64::from(number) << 40).to_be_bytes().to_vec();
                key.resize(usize::from(bytes), 0);
                key
            }
            Width::Variable => {
                let stems = ["", "a", "flights/", "flights/e"];
                let stem = stems[usize::from(number) * stems.len() / usize::from(KEYS)];
                if number == 0 { Vec::new() } else { format!("{stem}{number:03}").into_bytes() }
            }
        }
    }

    /// The most bytes of key and value that stand in a node for certain.
    fn entry_most(&self) -> usize {
        (self.node_bytes as usize - 16) / 4 - 8
    }

    /// A value of about `length` bytes, where values vary; `mark` makes it unlike others.
    #[must_use]
    pub fn value(&self, key: &[u8], length: u16, mark: u32) -> Vec<u8> {
        let bytes = match self.shape.value {
            Width::Fixed(bytes) => usize::from(bytes),
            // One in eight is long.
            Width::Variable if length.is_multiple_of(8) => {
                self.entry_most() + usize::from(length) % (3 * self.node_bytes as usize)
            }
            Width::Variable => usize::from(length) % (self.entry_most() - key.len()),
        };
        mark.to_le_bytes().into_iter().cycle().take(bytes).collect()
    }
}
