//! Reading: what a chip says of its pages is compared with the model.

use device::{Cause, Error, Nand, Page};
use rand::RngExt;
use sim::FaultKind;

use super::{Run, at_cut};
use crate::nand::model::{Content, Part};
use crate::nand::{Fault, Subject};

/// The most bits that flip at once on a chip that does not notice it.
const UNSEEN_BITS: u32 = 2;

impl<S: Subject> Run<S> {
    pub(super) fn read(&mut self) {
        let page = self.page();
        let geometry = self.case.geometry;
        let offset = self.random.random_range(0..=geometry.page_bytes());
        let mut data = self.bytes(geometry.page_bytes() - offset + 1);
        let mut spare = self.bytes(geometry.spare_bytes() + 1);
        self.read_at(page, offset, &mut data, &mut spare);
    }

    pub(super) fn read_at(&mut self, page: Page, offset: u32, data: &mut [u8], spare: &mut [u8]) {
        let part = Part { page, offset, data: data.len(), spare: spare.len() };
        let verdict = self.model.of_read(part);
        let meter = self.subject.chip().meter().cloned();
        let answer = self.subject.chip().read(page, offset, data, spare, Cause::Lookup);
        if self.is_refused(&verdict, answer.err(), meter.as_ref()) {
            return;
        }
        self.witness.reads += 1;
        let cut = self.reach(false);
        match answer {
            Ok(bits) if !cut => {
                self.corrected(page, bits);
                self.found(page, offset, data, spare);
            }
            Err(Error::PowerCut) if cut => self.power_was_cut(&[], None),
            Err(Error::Uncorrectable { page: named }) if !cut && named == page => {
                self.uncorrectable(page);
            }
            other => panic!("reading {page}: {other:?}{}", at_cut(cut)),
        }
    }

    /// The chip says that it corrected so many bits.
    fn corrected(&mut self, page: Page, bits: u16) {
        let flips = &self.armed.plan.flips;
        let code = flips.ecc_bits.unwrap_or(0);
        assert!(bits <= code, "{bits} bits corrected in {page} by a code for {code}");
        let weak = self.weak.get(&page).copied().unwrap_or(0);
        if flips.corrected_rate == 0.0 {
            assert_eq!(bits, weak, "bits corrected in {page}");
        }
        let (always, never) = (flips.corrected_rate >= 1.0, flips.uncorrectable_rate >= 1.0);
        assert!(bits > 0 || !always, "the flipped bits in {page} were not reported");
        assert!(!never || flips.ecc_bits.is_none(), "{page} can't be corrected");
        if bits > 0 {
            self.see(FaultKind::CorrectedRead, 1);
            self.bits_corrected += u64::from(bits);
        }
    }

    /// The chip says that it can't correct the page.
    fn uncorrectable(&mut self, page: Page) {
        self.see(FaultKind::UncorrectableRead, 1);
        let flips = &self.armed.plan.flips;
        let weak = self.weak.get(&page).copied().unwrap_or(0);
        let beyond =
            flips.uncorrectable_rate > 0.0 || flips.ecc_bits.is_some_and(|code| weak > code);
        let known = match self.model.pages[page.0 as usize].content {
            Content::Anything => true,
            Content::Mixed => flips.ecc_bits.is_some(),
            Content::Holds => beyond && flips.ecc_bits.is_some(),
        };
        assert!(known, "{page} is called uncorrectable, though nothing was done to it");
    }

    /// The chip says that the page holds this.
    fn found(&mut self, page: Page, offset: u32, data: &[u8], spare: &[u8]) {
        let unseen = self.has_happened(FaultKind::UnseenFlips);
        let state = &self.model.pages[page.0 as usize];
        if state.content == Content::Anything {
            return;
        }
        let has_code = self.armed.plan.flips.ecc_bits.is_some();
        assert!(state.content == Content::Holds || !has_code, "{page} was programmed twice");
        let (from, area) = (offset as usize, self.case.geometry.page_bytes() as usize);
        let wanted = &state.bytes[from..from + data.len()];
        let wanted_spare = &state.bytes[area..area + spare.len()];
        let flipped = distance(data, wanted) + distance(spare, wanted_spare);
        let most = if unseen { UNSEEN_BITS } else { 0 };
        assert!(flipped <= most, "{page} from byte {offset} on differs in {flipped} bits");
        assert!(!unseen || self.case.fault == Fault::FlipsUnseen, "unseen flips in {page}");
    }

    /// Compares every page.
    pub(super) fn compare_all(&mut self) {
        let steps = self.steps;
        let mut data = vec![0; self.case.geometry.page_bytes() as usize];
        let mut spare = vec![0; self.case.geometry.spare_bytes() as usize];
        for page in (0..self.case.geometry.pages()).map(Page) {
            data.fill(0x55);
            spare.fill(0x55);
            self.read_at(page, 0, &mut data, &mut spare);
            self.witness.compared += 1;
        }
        self.steps = steps;
    }
}

/// How many bits differ.
fn distance(found: &[u8], wanted: &[u8]) -> u32 {
    if found == wanted {
        return 0;
    }
    found.iter().zip(wanted).map(|(found, wanted)| (found ^ wanted).count_ones()).sum()
}
