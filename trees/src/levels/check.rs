//! Verifying every invariant: of the head, of each run, of fences, of the room in use.

use alloc::vec::Vec;
use core::fmt::Display;

use device::Cause;
use index::{Error, Result};
use store::runs::{Kind, Run, RunId, Source, Space, Way};

use super::{Component, Form, Levels};
use crate::btree::{self, Rules};

/// What a run was found to hold.
#[derive(Default)]
struct Found {
    entries: u64,
    deletes: u64,
    fences: u64,
}

/// What is expected of a run beside its own order.
#[derive(Clone, Copy)]
struct Expected {
    /// The run that its fences lead to.
    below: Option<RunId>,
    has_entries: bool,
    is_last: bool,
}

impl Levels<'_> {
    pub(super) fn check_all(&mut self, finding: &mut dyn FnMut(&dyn Display)) -> Result<()> {
        self.check_head(finding)?;
        let components = self.components.clone();
        for (place, component) in components.iter().enumerate() {
            let lower = components.get(place + 1).map(|lower| lower.run);
            let is_cascading = self.kindred.form == Form::Cascading;
            if is_cascading && place > 0 && !component.stack.is_empty() {
                finding(&format_args!("level {} has fences above it", component.level));
            }
            self.check_component(component, lower.filter(|_| is_cascading), finding)?;
        }
        self.check_room(finding);
        match self.store.file.file_mut().check_pages(finding) {
            Ok(()) => Ok(()),
            Err(error) => Error::Store(error).report_damage(finding),
        }
    }

    fn check_head(&mut self, finding: &mut dyn FnMut(&dyn Display)) -> Result<()> {
        let mut lowest = Vec::new();
        self.store.codecs.lowest(&mut lowest);
        let rules =
            Rules { has_exact_separators: true, is_half_full: false, has_branching_root: true };
        let mut nodes = 0;
        let full = self.full.as_ref().map(|full| &full.head);
        for head in core::iter::once(&self.head).chain(full) {
            let root = head.btree.root;
            let counted =
                btree::check((&mut self.store, root), &lowest, rules, &mut (), &mut *finding)?;
            nodes += counted.nodes;
            let (known, found) = (head.btree.entries, counted.entries);
            if known != found {
                let what = format_args!("a head counts {known} entries, but has {found}");
                finding(&what);
            }
        }
        let file = self.store.file.file();
        let own = file.pages_used().0.saturating_sub(file.record_pages());
        if nodes != u64::from(own) {
            finding(&format_args!("{own} pages are in use, but heads have {nodes} nodes"));
        }
        Ok(())
    }

    /// That the pages in use are those of the runs that there are.
    fn check_room(&self, finding: &mut dyn FnMut(&dyn Display)) {
        let (live, dead) = self.manifest.pages();
        let used = self.store.file.pages_most() - self.store.file.pages_free();
        let known = live + dead + self.pages_reserved();
        if used != known {
            finding(&format_args!("{used} pages of runs are in use, not {known}"));
        }
        let named: usize = self.components.iter().map(|one| 1 + one.stack.len()).sum();
        let there = self.manifest.runs().count();
        if named != there {
            finding(&format_args!("{there} runs are there, but {named} are part of a level"));
        }
    }

    fn check_component(
        &mut self,
        component: &Component,
        lower: Option<RunId>,
        finding: &mut dyn FnMut(&dyn Display),
    ) -> Result<()> {
        let is_last = self.components.last().is_some_and(|last| last.run == component.run);
        let mut stack = component.stack.iter().peekable();
        while let Some(id) = stack.next() {
            let below = Some(**stack.peek().unwrap_or(&&component.run));
            let expected = Expected { below, has_entries: false, is_last: false };
            self.check_run(*id, expected, finding)?;
        }
        let expected = Expected { below: lower, has_entries: true, is_last };
        self.check_run(component.run, expected, finding)
    }

    fn check_run(
        &mut self,
        id: RunId,
        expected: Expected,
        finding: &mut dyn FnMut(&dyn Display),
    ) -> Result<()> {
        let run = self.run(id)?.clone();
        let below = match expected.below {
            Some(below) => Some(self.run(below)?.clone()),
            None => None,
        };
        let mut said = |what: &dyn Display| finding(&format_args!("run {}: {what}", id.0));
        if let Err(error) = self.reader.open(&mut self.store.file, &run, Cause::Lookup) {
            Error::Store(error).report_damage(&mut said)?;
        }
        let found = match self.walk(&run, below.as_ref(), &mut said) {
            Ok(found) => found,
            Err(error) => return error.report_damage(&mut said),
        };
        let (entries, fences) = (found.entries, found.fences);
        if (entries, found.deletes, fences) != (run.entries, run.deletes, run.fences) {
            said(&format_args!(
                "it counts {} entries and {} fences, but has {entries} and {fences}",
                run.entries, run.fences
            ));
        }
        if expected.is_last && found.deletes > 0 {
            said(&"deletes stand in the last level");
        }
        if !expected.has_entries && entries > 0 {
            said(&"entries stand among fences");
        }
        Ok(())
    }

    /// Goes through a run, and through the units that its fences name.
    fn walk(
        &mut self,
        run: &Run,
        below: Option<&Run>,
        said: &mut dyn FnMut(&dyn Display),
    ) -> Result<Found> {
        let bytes = self.plan.page_bytes;
        let options = self.plan.cursor(bytes, true, Cause::Lookup);
        let alignment = self.store.file.alignment();
        let mut cursor = store::runs::RunCursor::new(run, options, alignment);
        let (mut found, mut last, mut unit) = (Found::default(), Vec::new(), u32::MAX);
        // The unit below that the last fence names, and its first key.
        let (mut named, mut next_named) = (0, 0);
        while cursor.load(&mut self.store.file, Way::Up)? {
            let here = cursor.unit();
            let Some(entry) = cursor.head(Way::Up) else { break };
            if entry.key < last.as_slice() {
                said(&format_args!("unit {here} has a key below the one before"));
            }
            if here != unit && below.is_some() && !entry.kind.is_fence() {
                said(&format_args!("unit {here} does not begin with a fence"));
            }
            unit = here;
            last.clear();
            last.extend_from_slice(entry.key);
            match entry.kind {
                Kind::Put => found.entries += 1,
                Kind::Delete => {
                    (found.entries, found.deletes) = (found.entries + 1, found.deletes + 1);
                }
                Kind::Fence | Kind::InnerFence => found.fences += 1,
            }
            let (kind, names) = (entry.kind, entry.unit());
            cursor.step(Way::Up);
            let Some((below, names)) = below.zip(names) else { continue };
            let is_outer = kind == Kind::Fence;
            // One that leads to a run of a single unit has nothing above to come from.
            if is_outer && names != next_named || !is_outer && names != named {
                said(&format_args!("unit {here} has a fence to unit {names}"));
            }
            if is_outer {
                (named, next_named) = (names, names + 1);
                let (_, entries) =
                    self.reader.unit(&mut self.store.file, below, names, Cause::Lookup)?;
                if entries.entry(0).key != last.as_slice() {
                    said(&format_args!("a fence to unit {names} has another key than that"));
                }
            }
        }
        if let Some(below) = below.filter(|below| next_named != below.units && below.units > 1) {
            said(&format_args!("its fences name {next_named} units of {}", below.units));
        }
        Ok(found)
    }
}
