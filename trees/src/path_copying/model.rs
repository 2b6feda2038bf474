//! For tests: a mu-Tree whose flash is a list of pages that are never rewritten.

use std::collections::{BTreeMap, BTreeSet};
use std::vec;
use std::vec::Vec;

use device::Page;
use store::EntryShape;
use store::node;

use super::assembly::{Stamp, write_page};
use super::layout::{Division, Layout, Pages, Share};
use super::page::{Header, check_page};
use super::plan::worst::{change_pages, path_bytes};
use super::plan::{Edit, Plan, Rewrite, Scratch, Step};
use super::policy::{Bounds, Change, Policy, State};

/// The paper's alpha, beta and delta.
pub(crate) fn paper_bounds() -> Bounds {
    bounds(0.9, 0.5)
}

pub(crate) fn bounds(alpha: f64, beta: f64) -> Bounds {
    let share = |ratio| Share::from_ratio(ratio).unwrap();
    Bounds { alpha: share(alpha), beta: share(beta), delta: share(1.0 / 256.0) }
}

pub(crate) fn star(page_bytes: u32, shape: EntryShape) -> Policy {
    let pages = Pages::new(page_bytes, shape, Division::Even).unwrap();
    Policy::adaptive(pages, paper_bounds()).unwrap()
}

pub(crate) fn mu(page_bytes: u32, shape: EntryShape) -> Policy {
    Policy::halves(Pages::new(page_bytes, shape, Division::Halves).unwrap())
}

/// A small generator.
pub(crate) struct Dice(pub(crate) u64);

impl Dice {
    pub(crate) fn roll(&mut self, sides: u64) -> u64 {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % sides
    }
}

/// The tree, and what happened to it.
pub(crate) struct Model {
    pub(crate) policy: Policy,
    /// Every page that was written; empty once nothing in it lives.
    pub(crate) pages: Vec<Vec<u8>>,
    plan: Plan,
    scratch: Scratch,
    pub(super) root: Header,
    pub(crate) height_changes: u32,
    pub(crate) pages_most: u32,
    /// True if nodes are spared.
    pub(crate) is_sparing: bool,
    /// Nodes of each level, as plans count them.
    pub(crate) nodes: [i64; 8],
}

/// A place on the path down.
struct Place {
    page: usize,
    header: Header,
    place: usize,
}

/// The nodes of a path, from `base` up.
fn steps_of<'m>(policy: &Policy, pages: &'m [Vec<u8>], path: &[Place], base: u8) -> Vec<Step<'m>> {
    let step = |(level, at): (u8, &Place)| Step {
        codec: policy.pages().codec(&at.header.layout, level).unwrap(),
        node: &pages[at.page][policy.pages().bytes_of(&at.header.layout, level).unwrap()],
        place: at.place,
        is_lowest_of_page: at.header.lowest == level,
    };
    (base..).zip(path).map(step).collect()
}

impl Model {
    pub(crate) fn new(policy: Policy) -> Self {
        let layout = policy.first().layout;
        let mut page = vec![0xFF; policy.pages().page_bytes() as usize];
        let node = &mut page[policy.pages().bytes_of(&layout, 0).unwrap()];
        let codec = policy.pages().codec(&layout, 0).unwrap();
        codec.initialise(node, 0);
        super::page::seal_node(&codec, Page(0), 0, node);
        let root = Header {
            sequence: 0,
            live_pages: 1,
            layout,
            lowest: 0,
            highest: 0,
            has_root: true,
            next: policy.first(),
        };
        root.encode(Page(0), &mut page);
        let (plan, scratch) = (Plan::new(&policy), Scratch::new(&policy));
        let pages = vec![page];
        let mut nodes = [0; 8];
        nodes[0] = 1;
        Model {
            policy,
            pages,
            plan,
            scratch,
            root,
            height_changes: 0,
            pages_most: 1,
            is_sparing: false,
            nodes,
        }
    }

    fn header(&self, page: usize) -> Header {
        Header::decode(self.policy.pages(), Page(page as u32), &self.pages[page]).unwrap()
    }

    fn node(&self, page: usize, header: &Header, level: u8) -> &[u8] {
        assert!(header.holds(level), "page {page} has no node of level {level}");
        &self.pages[page][self.policy.pages().bytes_of(&header.layout, level).unwrap()]
    }

    /// The path to where `key` belongs, from the node of `base` up.
    fn descend(&self, key: &[u8], base: u8) -> (Vec<Place>, bool) {
        let mut page = self.pages.len() - 1;
        let mut path = Vec::new();
        let mut is_found = false;
        for level in (base..self.root.layout.height).rev() {
            let header = self.header(page);
            let node = self.node(page, &header, level);
            let codec = self.policy.pages().codec(&header.layout, level).unwrap();
            let found = codec.search(node, key);
            is_found = found.is_ok();
            let place = if level == 0 {
                found.unwrap_or_else(|place| place)
            } else {
                found.unwrap_or_else(|place| place.saturating_sub(1))
            };
            path.insert(0, Place { page, header, place });
            if level > base {
                let child = codec.value(node, place).bytes().first_chunk::<4>().unwrap();
                page = u32::from_le_bytes(*child) as usize;
            }
        }
        (path, is_found)
    }

    pub(crate) fn get(&self, key: &[u8]) -> Option<Vec<u8>> {
        let (path, is_found) = self.descend(key, 0);
        let leaf = &path[0];
        let codec = self.policy.pages().codec(&leaf.header.layout, 0).unwrap();
        is_found.then(|| {
            codec.value(self.node(leaf.page, &leaf.header, 0), leaf.place).bytes().to_vec()
        })
    }

    /// False if there was no room for it at any height.
    pub(crate) fn put(&mut self, key: &[u8], value: &[u8]) -> bool {
        let (path, is_found) = self.descend(key, 0);
        let edit = if is_found { Edit::Replace { value } } else { Edit::Insert { key, value } };
        self.rewrite(&path, 0, edit, Change::Put)
    }

    pub(crate) fn delete(&mut self, key: &[u8]) -> bool {
        let (path, is_found) = self.descend(key, 0);
        !is_found || self.rewrite(&path, 0, Edit::Remove, Change::Delete)
    }

    /// Moves what lives in a page, as collection would; false if there was no room, or nothing
    /// lives.
    pub(crate) fn move_page(&mut self, page: usize) -> bool {
        if self.pages[page].is_empty() {
            return false;
        }
        let header = self.header(page);
        let node = self.node(page, &header, header.lowest);
        if node::count(node) == 0 {
            return page + 1 == self.pages.len();
        }
        let codec = self.policy.pages().codec(&header.layout, header.lowest).unwrap();
        let mut key = Vec::new();
        codec.key(node, 0).copy_to(&mut key);
        let (path, _) = self.descend(&key, header.lowest);
        assert_eq!(path[0].page, page, "a page that was not given up lives");
        self.rewrite(&path, header.lowest, Edit::Keep, Change::Move)
    }

    fn rewrite(&mut self, path: &[Place], base: u8, edit: Edit<'_>, change: Change) -> bool {
        let mut written = Vec::new();
        {
            let steps = steps_of(&self.policy, &self.pages, path, base);
            let bytes: u64 = steps.iter().map(|step| step.node.len() as u64).sum();
            assert!(bytes <= path_bytes(&self.policy), "a path of {bytes} bytes");
            let rewrite = Rewrite { steps: &steps, base, edit };
            let layout = self.root.next.layout;
            let by = &self.policy;
            let is_made = match self.is_sparing {
                true => self.plan.make_sparing(by, &rewrite, &mut self.scratch),
                false => self.plan.make(by, &rewrite, layout, &mut self.scratch),
            };
            if !is_made {
                return false;
            }
            if self.is_sparing {
                let growth: i64 = self.plan.added(&rewrite).iter().sum();
                let is_fixed = !by.pages().is_variable();
                assert!(change == Change::Put || !is_fixed || growth <= 0, "{change:?}: {growth}");
                let most = change_pages(by, rewrite.height());
                assert!(u64::from(self.plan.pages) <= most, "{} of {most}", self.plan.pages);
            }
            for (nodes, added) in self.nodes.iter_mut().zip(self.plan.added(&rewrite)) {
                *nodes += added;
            }
            let first = self.pages.len() as u32;
            let addresses: Vec<Page> = (first..first + self.plan.pages).map(Page).collect();
            let stamp = Stamp {
                addresses: &addresses,
                sequence: u64::from(first),
                before: &self.root,
                change: if self.is_sparing { Change::Move } else { change },
            };
            for number in 0..self.plan.pages {
                let mut page = vec![0; self.policy.pages().page_bytes() as usize];
                let target = (page.as_mut_slice(), &mut self.scratch);
                let header =
                    write_page(&self.policy, (&self.plan, &rewrite), number, &stamp, target);
                written.push((page, header.unwrap()));
            }
        }
        self.pages_most = self.pages_most.max(self.plan.pages);
        for (level, at) in (base..).zip(path) {
            if at.header.lowest == level {
                self.pages[at.page] = Vec::new();
            }
        }
        for (page, header) in written {
            let address = Page(self.pages.len() as u32);
            if address.0.is_multiple_of(16) {
                assert_eq!(check_page(self.policy.pages(), address, &page), Ok(header));
            }
            self.height_changes +=
                u32::from(header.has_root && header.layout.height != self.root.layout.height);
            self.pages.push(page);
            if header.has_root {
                self.root = header;
            }
        }
        assert_eq!(self.root.sequence, self.pages.len() as u64 - 1, "the last page has the root");
        true
    }

    /// Every entry, found by walking the whole tree; checks its invariants.
    pub(crate) fn entries(&self) -> BTreeMap<Vec<u8>, Vec<u8>> {
        let mut walk = Walk::default();
        let top = self.root.layout.height - 1;
        self.walk(&mut walk, (self.pages.len() - 1, top), (&[], None));
        assert_eq!(walk.pages.len() as u32, self.root.live_pages, "live pages");
        for (page, lowest) in &walk.pages {
            assert_eq!(self.header(*page).lowest, *lowest, "a live page's lowest node lives");
        }
        let mut by_level = [0; 8];
        walk.nodes.iter().for_each(|(_, level)| by_level[usize::from(*level)] += 1);
        assert_eq!(self.nodes, by_level, "nodes are counted");
        walk.entries
    }

    fn walk(&self, walk: &mut Walk, (page, level): (usize, u8), (from, to): Bounded<'_>) {
        let header = self.header(page);
        let node = self.node(page, &header, level);
        let codec = self.policy.pages().codec(&header.layout, level).unwrap();
        let lowest = walk.pages.entry(page).or_insert(level);
        *lowest = (*lowest).min(level);
        assert!(walk.nodes.insert((page, level)), "a node has two parents");
        let mut keys = Vec::new();
        for place in 0..node::count(node) {
            let mut key = Vec::new();
            codec.key(node, place).copy_to(&mut key);
            assert!(key.as_slice() >= from && to.is_none_or(|to| key.as_slice() < to), "{key:?}");
            keys.push(key);
        }
        if level == 0 {
            let values = (0..keys.len()).map(|place| codec.value(node, place).bytes().to_vec());
            walk.entries.extend(keys.into_iter().zip(values));
            return;
        }
        for (place, key) in keys.iter().enumerate() {
            // What is below the first key of a node, but not below its separator, is in the first
            // child.
            let from = if place == 0 { from } else { key.as_slice() };
            let child =
                u32::from_le_bytes(*codec.value(node, place).bytes().first_chunk().unwrap());
            assert!(child as usize <= page, "a page points to a later one");
            let to = keys.get(place + 1).map(Vec::as_slice).or(to);
            self.walk(walk, (child as usize, level - 1), (from, to));
        }
    }

    pub(crate) fn layout(&self) -> Layout {
        self.root.layout
    }

    pub(crate) fn state(&self) -> State {
        self.root.next
    }
}

type Bounded<'k> = (&'k [u8], Option<&'k [u8]>);

#[derive(Default)]
struct Walk {
    entries: BTreeMap<Vec<u8>, Vec<u8>>,
    pages: BTreeMap<usize, u8>,
    nodes: BTreeSet<(usize, u8)>,
}
