//! What a history is played on.

use device::{Geometry, NandCosts, ProgramOrder, SectorGeometry, Sectors};
use index::parameters::Settings;
use index::{Durability, EntryShape, Index, Width};
use index::{MediumShape, Options, TreeDescriptor};
use sim::SimulatedNand;

use crate::ram_disk::RamDisk;

/// A shape of entries with the name that cases give it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shape {
    /// Its name.
    pub name: &'static str,
    /// The shape.
    pub shape: EntryShape,
}

pub(crate) const SHAPES: [Shape; 4] = [
    Shape { name: "4+4", shape: EntryShape::fixed(4, 4) },
    Shape { name: "8+4", shape: EntryShape::fixed(8, 4) },
    Shape { name: "8+8", shape: EntryShape::fixed(8, 8) },
    Shape { name: "variable", shape: EntryShape::VARIABLE },
];

/// How much memory the tree gets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MemoryLevel {
    /// The least that it says it works with.
    Least,
    /// Twice that.
    Double,
    /// Sixteen times that.
    Sixteenfold,
    /// 1 MiB.
    Mebibyte,
}

impl MemoryLevel {
    const ALL: [(MemoryLevel, &'static str); 4] = [
        (MemoryLevel::Least, "least"),
        (MemoryLevel::Double, "2x"),
        (MemoryLevel::Sixteenfold, "16x"),
        (MemoryLevel::Mebibyte, "1MiB"),
    ];

    fn bytes(self, least: u64) -> u64 {
        match self {
            MemoryLevel::Least => least,
            MemoryLevel::Double => least * 2,
            MemoryLevel::Sixteenfold => least * 16,
            MemoryLevel::Mebibyte => 1 << 20,
        }
    }
}

/// What the tree stands on.
#[derive(Clone, Copy)]
pub enum Stand {
    /// A disk in memory.
    Ram,
    /// A disk in memory that grows.
    Growing,
    /// A translation layer over a simulated chip.
    Ftl(&'static ftl::Entry),
    /// A simulated chip.
    Nand,
}

impl Stand {
    /// Its name.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self {
            Stand::Ram => "ram",
            Stand::Growing => "growing",
            Stand::Ftl(entry) => entry.name,
            Stand::Nand => "nand",
        }
    }

    fn all() -> Vec<Stand> {
        let ftls = ftl::FTLS.iter().map(|entry| Stand::Ftl(entry));
        [Stand::Ram, Stand::Growing, Stand::Nand].into_iter().chain(ftls).collect()
    }

    fn carries(&self, entry: &TreeDescriptor) -> bool {
        match self {
            Stand::Nand => entry.nand,
            Stand::Ram | Stand::Growing | Stand::Ftl(_) => entry.sectors,
        }
    }
}

/// One case of the suite.
#[derive(Clone)]
pub struct Case {
    /// The tree.
    pub entry: &'static TreeDescriptor,
    /// Parameters of the tree, as text.
    pub parameters: Vec<(&'static str, String)>,
    /// Bytes in a page of the device.
    pub page_bytes: u32,
    /// The shape of the entries.
    pub shape: Shape,
    /// The memory.
    pub memory: MemoryLevel,
    /// What the tree stands on.
    pub stand: Stand,
    /// How much of the tree lasts; each case of a tree has another than the one before.
    pub durability: Durability,
    /// The seed of the history.
    pub seed: u64,
}

/// Every one of `trees` on raw flash with every durability, on small chips with a spare area and
/// without.
pub fn cases_on_small_chips(trees: &[&'static TreeDescriptor]) -> impl Iterator<Item = Case> {
    let is_wanted = |case: &Case| {
        matches!(case.stand, Stand::Nand)
            && case.shape.name == "4+4"
            && case.page_bytes == 512
            && case.parameters.is_empty()
            && case.memory == MemoryLevel::Double
    };
    let all = trees.iter().flat_map(|entry| cases(entry)).filter(is_wanted);
    all.flat_map(|case| {
        Durability::ALL.into_iter().flat_map(move |durability| {
            // The seed decides whether there is a spare area.
            let seeds = [case.seed / 6 * 6 + 1, case.seed / 6 * 6 + 3];
            let case = case.clone();
            seeds.map(move |seed| Case { durability, seed, ..case.clone() })
        })
    })
}

/// All cases of a tree: every page size, shape, memory level and stand, and parameters that make
/// nodes larger and smaller than pages where the tree has them.
#[must_use]
pub fn cases(entry: &'static TreeDescriptor) -> Vec<Case> {
    let mut cases = Vec::new();
    for stand in Stand::all().into_iter().filter(|stand| stand.carries(entry)) {
        let is_nand = matches!(stand, Stand::Nand);
        for page_bytes in [512, 2048, 4096] {
            for shape in SHAPES {
                for (memory, _) in MemoryLevel::ALL {
                    for parameters in parameter_sets(entry, page_bytes, is_nand) {
                        let seed = cases.len() as u64 + 1;
                        cases.push(Case {
                            entry,
                            parameters,
                            page_bytes,
                            shape,
                            memory,
                            stand,
                            durability: Durability::ALL[cases.len() % 4],
                            seed,
                        });
                    }
                }
            }
        }
    }
    let others: Vec<Case> = cases.iter().filter_map(Case::with_other_waiting).collect();
    cases.extend(others);
    cases
}

/// Sets of parameters for a tree. On raw flash a tree's nodes follow from the chip's pages.
pub(crate) fn parameter_sets(
    entry: &TreeDescriptor,
    page_bytes: u32,
    is_nand: bool,
) -> Vec<Vec<(&'static str, String)>> {
    let has = |name| entry.parameters.iter().any(|parameter| parameter.name == name);
    let mut sets = vec![Vec::new()];
    if has("ratio") {
        // A small head above many levels.
        sets.push(vec![("ratio", "2".to_string()), ("head", (page_bytes * 8).to_string())]);
    }
    if has("mode") {
        // All nodes in one form, and in the other; the default has both.
        sets.extend(["log", "disk"].map(|mode| vec![("mode", mode.to_string())]));
        let log = ("log-buffer", (page_bytes * 4).to_string());
        sets.push(vec![log, ("counter", "printed".to_string())]);
        let node = ("node", (page_bytes * 2).to_string());
        sets.push(vec![node, ("split-off", "alike".to_string())]);
    }
    if has("sector") {
        sets.push(vec![("sector", (page_bytes * 2).to_string())]);
    }
    let has_parts = !is_nand && has("node") && sets.len() == 1;
    if has("super-groups") {
        // Each policy with another way to look for what is committed with its victim.
        let ways = [
            ("biggest-size", "on", "first"),
            ("cost-based", "off", "second"),
            ("lru", "on", "none"),
            ("fifo", "off", "first"),
        ];
        sets.extend(ways.map(|(policy, pruning, groups)| {
            let set = [("policy", policy), ("pruning", pruning), ("super-groups", groups)];
            set.map(|(name, word)| (name, word.to_owned())).to_vec()
        }));
    }
    if has_parts {
        sets.extend(
            [page_bytes / 4, page_bytes * 2].map(|bytes| vec![("node", bytes.to_string())]),
        );
    }
    sets
}

/// What is not the tree's default of how updates wait in memory, if they can: on raw flash what
/// leaves the operation buffer together, on sectors whether there is one, or a second head.
pub(crate) fn other_waiting(
    entry: &TreeDescriptor,
    is_nand: bool,
) -> Option<(&'static str, String)> {
    let of = |name| entry.parameters.iter().find(|parameter| parameter.name == name);
    if !is_nand {
        let head = || of("deamortized").map(|steps| (steps.name, "on".to_owned()));
        return of("waiting").map(|waiting| (waiting.name, "0.75".to_owned())).or_else(head);
    }
    let flush = of("flush")?;
    let other = ["entry", "leaf"].into_iter().find(|word| *word != flush.default)?;
    Some((flush.name, other.to_owned()))
}

/// The case of one of `trees` that is called `name`.
#[must_use]
pub fn find(trees: &[&'static TreeDescriptor], name: &str) -> Option<Case> {
    trees.iter().flat_map(|entry| cases(entry)).find(|case| case.name() == name)
}

impl Case {
    /// The same where updates wait otherwise, with the next durability.
    fn with_other_waiting(&self) -> Option<Case> {
        if !self.parameters.is_empty() {
            return None;
        }
        let is_nand = matches!(self.stand, Stand::Nand);
        let parameters = vec![other_waiting(self.entry, is_nand)?];
        let durability = Durability::ALL[(self.seed as usize) % 4];
        Some(Case { parameters, durability, ..self.clone() })
    }

    /// True if a value may be longer than a node.
    #[must_use]
    pub fn has_long_values(&self) -> bool {
        let is_varying = self.shape.shape.value == Width::Variable;
        is_varying && self.entry.long_values && !matches!(self.stand, Stand::Nand)
    }

    /// A name that tells the case from all others.
    #[must_use]
    pub fn name(&self) -> String {
        let memory = MemoryLevel::ALL.iter().find(|(level, _)| *level == self.memory);
        let parameters: String =
            self.parameters.iter().map(|(name, value)| format!(":{name}={value}")).collect();
        format!(
            "{}{parameters}/{}/{}/{}/{}/{}/seed-{}",
            self.entry.name,
            self.stand.name(),
            self.page_bytes,
            self.shape.name,
            memory.map_or("", |(_, name)| name),
            self.durability,
            self.seed
        )
    }

    /// The command that plays this case again.
    #[must_use]
    pub fn replay(&self) -> String {
        format!(
            "FLASHTREE_CASE='{}' cargo test -p flashtree-trees --test trees one_case_again",
            self.name()
        )
    }

    /// The device under the case, empty.
    #[must_use]
    pub fn storage(&self, bytes: u64) -> Storage {
        // Room for the journal, and for the images of pages, of which a small device keeps many.
        let bytes = if self.durability == Durability::None { bytes } else { 4 * bytes };
        let pages_per_block = 16;
        // What layers below a tree, and trees on raw flash, keep for themselves.
        let beside = if matches!(self.stand, Stand::Nand) { 28 } else { 12 };
        let blocks = (bytes / u64::from(self.page_bytes * pages_per_block)) as u32 + beside;
        let (spare, order) = self.spare_and_order();
        let geometry = Geometry::new(self.page_bytes, pages_per_block, blocks)
            .and_then(|geometry| geometry.with_spare(spare))
            .and_then(|geometry| geometry.with_programs(self.programs()))
            .expect("the geometry is sound")
            .with_order(order);
        match self.stand {
            Stand::Ram | Stand::Growing => {
                let sectors = bytes / u64::from(self.page_bytes);
                let disk = SectorGeometry::new(self.page_bytes, sectors).expect("it is sound");
                Storage::Ram(match self.stand {
                    Stand::Growing => RamDisk::growing(disk),
                    _ => RamDisk::new(disk),
                })
            }
            Stand::Nand | Stand::Ftl(_) => {
                let chip = SimulatedNand::new(geometry, NandCosts::default());
                Storage::Nand(Box::new(chip))
            }
        }
    }

    /// Bytes of the spare area, and the order of programs. Every third case on raw flash has a chip
    /// without a spare area; such chips order their programs.
    fn spare_and_order(&self) -> (u32, ProgramOrder) {
        if matches!(self.stand, Stand::Nand) && self.seed.is_multiple_of(3) {
            (0, ProgramOrder::Ascending)
        } else {
            (self.page_bytes / 32, ProgramOrder::Any)
        }
    }

    /// Programs of a page: every other chip takes a page in parts, for trees that use that.
    fn programs(&self) -> u16 {
        if matches!(self.stand, Stand::Nand) && self.seed.is_multiple_of(2) { 4 } else { 1 }
    }

    /// The options of the index, with the memory that the case gives it.
    #[must_use]
    pub fn options(&self, medium: MediumShape) -> Options {
        let given = self.parameters.iter().map(|(name, value)| (*name, value.as_str()));
        let settings = Settings::parse(self.entry.name, self.entry.parameters, given)
            .expect("the case's parameters are the tree's");
        let mut options = Options {
            durability: Some(self.durability),
            ..Options::new(self.shape.shape, 0, settings)
        };
        let least = self.entry.least_memory(&options, medium).expect("the case fits the tree");
        options.memory_bytes = self.memory.bytes(least).max(least);
        if self.memory == MemoryLevel::Double && matches!(medium, MediumShape::Nand(_)) {
            // Of a bound that is not reached a tree may use the rest.
            options.tables_bytes = self.entry.tables_grow().then_some(1 << 20);
        }
        options
    }

    /// Makes the index on `storage`, or opens it.
    #[must_use]
    pub fn index<'g>(&self, storage: &'g mut Storage, open: bool) -> Box<dyn Index + 'g> {
        self.index_over(storage, open, |disk| disk)
    }

    /// As [`Case::index`], with `wrap` around the disk that the tree stands on.
    #[must_use]
    pub fn index_over<'g>(
        &self,
        storage: &'g mut Storage,
        open: bool,
        wrap: impl FnOnce(Box<dyn Sectors + 'g>) -> Box<dyn Sectors + 'g>,
    ) -> Box<dyn Index + 'g> {
        let made = self.try_index_over(storage, open, wrap);
        made.unwrap_or_else(|error| panic!("{}: {error}\n{}", self.name(), self.replay()))
    }

    /// As [`Case::index_over`].
    ///
    /// # Errors
    /// The tree refuses the device.
    pub fn try_index_over<'g>(
        &self,
        storage: &'g mut Storage,
        open: bool,
        wrap: impl FnOnce(Box<dyn Sectors + 'g>) -> Box<dyn Sectors + 'g>,
    ) -> index::Result<Box<dyn Index + 'g>> {
        let medium = self.medium(storage, open, wrap);
        let shape = match &medium {
            device::Medium::Nand(nand) => MediumShape::Nand(nand.geometry()),
            device::Medium::Sectors(disk) => MediumShape::Sectors(disk.geometry()),
        };
        let make = if open { self.entry.open } else { self.entry.create };
        make(medium, &self.options(shape))
    }

    fn medium<'g>(
        &self,
        storage: &'g mut Storage,
        open: bool,
        wrap: impl FnOnce(Box<dyn Sectors + 'g>) -> Box<dyn Sectors + 'g>,
    ) -> device::Medium<'g> {
        match (storage, self.stand) {
            (Storage::Ram(disk), _) => device::Medium::Sectors(wrap(Box::new(disk))),
            (Storage::Nand(nand), Stand::Ftl(entry)) => {
                let make = if open { entry.open } else { entry.create };
                let disk = make(Box::new(nand), &ftl::Options::default());
                device::Medium::Sectors(wrap(disk.expect("the translation layer works")))
            }
            (Storage::Nand(nand), _) => device::Medium::Nand(Box::new(nand)),
        }
    }
}

/// A device that outlives the indexes on it.
pub enum Storage {
    /// A disk in memory.
    Ram(RamDisk),
    /// A simulated chip.
    Nand(Box<SimulatedNand>),
}
