//! Ranges: the head and all levels as one, each of which reads the pages that its fences name.

use alloc::vec::Vec;
use core::ops::{Bound, Range};

use device::Cause;
use index::{Cursor, Direction, Error, KeyRange, KeyValue, Result, Value, read_piece};
use store::runs::{FileSpace, Kind, Manifest, Merged, RunCursor, Source, Space, UnitReader, Way};

use super::cascade::Input;
use super::head::HeadSource;
use super::{Component, Form, Levels, WRONG};

/// A range that is being read.
pub(super) struct Scan<'t, 'd> {
    space: &'t mut FileSpace<'d>,
    inputs: Vec<Input>,
    direction: Direction,
    limit: Bound<Vec<u8>>,
    ended: bool,
    /// The input that the last entry came from.
    last: Option<usize>,
}

const fn way(direction: Direction) -> Way {
    match direction {
        Direction::Ascending => Way::Up,
        Direction::Descending => Way::Down,
    }
}

/// The unit of each component where `key` is or belongs; 0 where it lies below all, and the last
/// where there is no key.
struct Places<'t, 'd> {
    space: &'t mut FileSpace<'d>,
    reader: &'t mut UnitReader,
    manifest: &'t Manifest,
    components: &'t [Component],
    form: Form,
}

impl Places<'_, '_> {
    fn find(&mut self, bound: Bound<&[u8]>, is_start: bool, to: &mut Vec<u32>) -> Result<()> {
        let (Bound::Included(key) | Bound::Excluded(key)) = bound else {
            for component in self.components {
                let run = self.manifest.run(component.run).ok_or(WRONG)?;
                to.push(if is_start { 0 } else { run.units.saturating_sub(1) });
            }
            return Ok(());
        };
        let mut unit = Some(0);
        for (place, component) in self.components.iter().enumerate() {
            if place == 0 || self.form == Form::Forest {
                unit = Some(0);
                for id in &component.stack {
                    let Some(at) = unit else { break };
                    let run = self.manifest.run(*id).ok_or(WRONG)?;
                    let (_, fences) = self.reader.unit(self.space, run, at, Cause::Lookup)?;
                    unit = fences.fence(key).and_then(|fence| fence.unit());
                }
            }
            to.push(unit.unwrap_or(0));
            let is_asked = self.form == Form::Cascading && place + 1 < self.components.len();
            if let Some(at) = unit.filter(|_| is_asked) {
                let run = self.manifest.run(component.run).ok_or(WRONG)?;
                let (_, entries) = self.reader.unit(self.space, run, at, Cause::Lookup)?;
                unit = entries.fence(key).and_then(|fence| fence.unit());
            }
        }
        Ok(())
    }
}

impl<'d> Levels<'d> {
    pub(super) fn scan(&mut self, range: KeyRange<'_>) -> Result<Scan<'_, 'd>> {
        let direction = range.direction;
        let (start, limit) = match direction {
            Direction::Ascending => (range.from, range.to),
            Direction::Descending => (range.to, range.from),
        };
        let (mut from, mut to) = (Vec::new(), Vec::new());
        let mut places = Places {
            space: &mut self.store.file,
            reader: &mut self.reader,
            manifest: &self.manifest,
            components: &self.components,
            form: self.kindred.form,
        };
        places.find(range.from, true, &mut from)?;
        places.find(range.to, false, &mut to)?;
        let mut inputs = Vec::with_capacity(2 + self.components.len());
        let full = self.full.as_ref().map(|full| &full.head);
        for head in core::iter::once(&self.head).chain(full) {
            inputs.push(Input::Head(HeadSource::new(&mut self.store, head, start, direction)?));
        }
        let bytes = self.plan.buffer_bytes(self.components.len(), 0);
        let options = self.plan.cursor(bytes, false, Cause::Lookup);
        for (component, (from, to)) in self.components.iter().zip(from.iter().zip(&to)) {
            let run = self.manifest.run(component.run).ok_or(WRONG)?;
            let mut cursor = RunCursor::new(run, options, self.store.file.alignment());
            cursor.set_reach(*from..to.saturating_add(1));
            let first = if direction == Direction::Ascending { *from } else { *to };
            seek(&mut self.store.file, &mut cursor, (start, direction), first..first + 1)?;
            inputs.push(Input::Run(cursor));
        }
        Ok(Scan {
            space: &mut self.store.file,
            inputs,
            direction,
            limit: limit.map(<[u8]>::to_vec),
            ended: false,
            last: None,
        })
    }
}

fn seek(
    space: &mut dyn Space,
    cursor: &mut RunCursor,
    (start, direction): (Bound<&[u8]>, Direction),
    units: Range<u32>,
) -> Result<()> {
    let is_ascending = direction == Direction::Ascending;
    match start {
        Bound::Unbounded if is_ascending => cursor.to_start(),
        Bound::Unbounded => cursor.to_end(),
        Bound::Included(key) => cursor.seek(space, key, !is_ascending, Some(units))?,
        Bound::Excluded(key) => cursor.seek(space, key, is_ascending, Some(units))?,
    }
    Ok(())
}

impl Cursor for Scan<'_, '_> {
    fn next(&mut self) -> Result<Option<KeyValue<'_>>> {
        if self.ended {
            return Ok(None);
        }
        // Until an entry was found, the range counts as ended: so it does after an error.
        self.ended = true;
        self.last = None;
        let way = way(self.direction);
        let found = loop {
            let next = Merged::next(self.space, &mut self.inputs, way)?;
            let Some((place, entry)) = next else {
                return Ok(None);
            };
            if self.direction.is_beyond(&self.limit, |limit| entry.key.cmp(limit)) {
                return Ok(None);
            }
            if entry.kind == Kind::Put {
                break place;
            }
        };
        self.ended = false;
        self.last = Some(found);
        let passed = self.inputs.get(found).and_then(|input| input.head(way.turned()));
        Ok(passed.map(|entry| (entry.key, Value::Inline(entry.value))))
    }

    fn read_value(&mut self, offset: u32, into: &mut [u8]) -> Result<u32> {
        let input = self.last.and_then(|place| self.inputs.get(place)).ok_or(Error::NoEntry)?;
        let entry = input.head(way(self.direction).turned()).ok_or(Error::NoEntry)?;
        Ok(read_piece(entry.value, offset, into))
    }
}
