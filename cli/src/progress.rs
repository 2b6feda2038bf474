//! Progress bars on a terminal.

use std::io::{self, IsTerminal};
use std::sync::RwLock;
use std::time::Duration;

use crate::interrupts::interrupted;
use indicatif::{MultiProgress, ProgressBar, ProgressStyle};
use lab::{Phase, Watcher};

/// A bar for each tree at work; none where standard error is no terminal.
pub(crate) struct Progress {
    bars: Option<MultiProgress>,
    by_tree: RwLock<Vec<Option<ProgressBar>>>,
}

impl Progress {
    /// Bars, unless it should be quiet.
    pub(crate) fn new(quiet: bool) -> Self {
        let shown = !quiet && io::stderr().is_terminal();
        Progress { bars: shown.then(MultiProgress::new), by_tree: RwLock::default() }
    }

    /// Replaces the bar of `tree` by `bar`, and removes the old one from the screen.
    fn replace(&self, tree: usize, bar: Option<ProgressBar>) {
        let Ok(mut bars) = self.by_tree.write() else { return };
        if bars.len() <= tree {
            bars.resize(tree + 1, None);
        }
        if let Some(Some(old)) = bars.get_mut(tree).map(|place| std::mem::replace(place, bar)) {
            old.finish_and_clear();
        }
    }
}

/// A bar for the cuts of a torture run; none where standard error is no terminal.
#[cfg(feature = "torture")]
pub(crate) struct CutBar {
    bar: Option<ProgressBar>,
}

#[cfg(feature = "torture")]
impl CutBar {
    /// A bar for `cuts` cuts, unless it should be quiet.
    pub(crate) fn new(quiet: bool, cuts: u64) -> Self {
        let shown = !quiet && io::stderr().is_terminal();
        let bar = shown.then(|| ProgressBar::new(cuts).with_style(style()).with_message("cuts"));
        CutBar { bar }
    }

    /// Removes the bar from the screen.
    pub(crate) fn finish(&self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}

#[cfg(feature = "torture")]
impl contract::torture::Watcher for CutBar {
    fn advance(&self, cuts: u64) {
        if let Some(bar) = &self.bar {
            bar.inc(cuts);
        }
    }

    fn cancelled(&self) -> bool {
        interrupted()
    }
}

/// A bar for bytes of a file whose length is known, or a count of what is done; none where standard
/// error is no terminal.
pub(crate) struct Counter {
    bar: Option<ProgressBar>,
}

impl Counter {
    /// A bar that says `word` and ends at `total`, unless it should be quiet.
    pub(crate) fn new(quiet: bool, word: &'static str, total: Option<u64>) -> Self {
        let shown = !quiet && io::stderr().is_terminal();
        let bar = shown.then(|| {
            let bar = match total {
                Some(total) => ProgressBar::new(total).with_style(style()),
                None => ProgressBar::new_spinner().with_style(counting_style()),
            };
            bar.enable_steady_tick(Duration::from_millis(200));
            bar.with_message(word)
        });
        Counter { bar }
    }

    /// Shows that so much is done.
    pub(crate) fn set(&self, position: u64) {
        if let Some(bar) = &self.bar {
            bar.set_position(position);
        }
    }

    /// Shows that so much is done; false after Ctrl-C.
    pub(crate) fn goes_on(&self, position: u64) -> bool {
        self.set(position);
        !interrupted()
    }

    /// Removes the bar from the screen.
    pub(crate) fn finish(&self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}

impl Drop for Counter {
    fn drop(&mut self) {
        self.finish();
    }
}

fn counting_style() -> ProgressStyle {
    ProgressStyle::with_template("{msg} {spinner} {human_pos}  {elapsed}")
        .unwrap_or_else(|_| ProgressStyle::default_spinner())
}

fn style() -> ProgressStyle {
    let template = "{prefix:20} {msg:9} {bar:32} {percent:>3} %  {eta:>4} left";
    ProgressStyle::with_template(template)
        .unwrap_or_else(|_| ProgressStyle::default_bar())
        .progress_chars("━━─")
}

const fn word(phase: Phase) -> &'static str {
    match phase {
        Phase::Preload => "loading",
        Phase::Run => "measuring",
        Phase::Verify => "verifying",
    }
}

impl Watcher for Progress {
    fn begin(&self, tree: usize, spec: &str, phase: Phase, steps: u64) {
        let Some(bars) = &self.bars else { return };
        self.replace(tree, None);
        let bar = bars.add(ProgressBar::new(steps));
        bar.set_style(style());
        bar.set_prefix(spec.to_owned());
        bar.set_message(word(phase));
        self.replace(tree, Some(bar));
    }

    fn advance(&self, tree: usize, steps: u64) {
        if self.bars.is_none() {
            return;
        }
        if let Ok(bars) = self.by_tree.read()
            && let Some(Some(bar)) = bars.get(tree)
        {
            bar.inc(steps);
        }
    }

    fn finish(&self, tree: usize) {
        if self.bars.is_some() {
            self.replace(tree, None);
        }
    }

    fn cancelled(&self) -> bool {
        interrupted()
    }
}
