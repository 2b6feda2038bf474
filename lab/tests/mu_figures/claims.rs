//! What was published, beside what we have: a row a claim, which `./check claims` reads.

/// By how much of what is published a gain may be better before it counts as not comparable: then
/// the baseline is suspected first.
const MUCH_BETTER: f64 = 0.25;

/// The claims of one figure.
pub(crate) struct Claims {
    id: &'static str,
    held: u32,
    all: u32,
}

/// What is said of a claim.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Verdict {
    Holds,
    Fails,
    /// Better than published by so much that what it is compared with may be at fault.
    NotComparable,
}

impl Claims {
    /// No claims yet.
    pub(crate) fn of(id: &'static str) -> Self {
        Claims { id, held: 0, all: 0 }
    }

    fn row(&mut self, what: &str, published: &str, measured: &str, verdict: Verdict) -> bool {
        self.held += u32::from(verdict == Verdict::Holds);
        self.all += 1;
        let word = match verdict {
            Verdict::Holds => "holds",
            Verdict::Fails => "fails",
            Verdict::NotComparable => "not-comparable",
        };
        println!("claim {} | {what} | {published} | {measured} | {word}", self.id);
        verdict == Verdict::Holds
    }

    /// A figure that is to be as published, give or take `most`; true if it is.
    pub(crate) fn near(&mut self, what: &str, (published, ours): (f64, f64), most: f64) -> bool {
        // Steps of a plot are no exact numbers.
        let holds = (published - ours).abs() <= most + 1e-9;
        let verdict = if holds { Verdict::Holds } else { Verdict::Fails };
        self.row(what, &published.to_string(), &format!("{ours:.4}"), verdict)
    }

    /// A gain that is to be as published, give or take `most`, or better; true if it is, and not
    /// so much better that it can't be compared.
    pub(crate) fn gain(&mut self, what: &str, (published, ours): (f64, f64), most: f64) -> bool {
        let verdict = if ours.is_nan() || ours < published - most {
            Verdict::Fails
        } else if ours <= (published * (1.0 + MUCH_BETTER)).max(published + most) {
            Verdict::Holds
        } else {
            Verdict::NotComparable
        };
        self.row(what, &published.to_string(), &format!("{ours:.4}"), verdict)
    }

    /// A statement; true if it holds.
    pub(crate) fn holds(&mut self, what: &str, holds: bool) -> bool {
        self.told(what, "yes", if holds { "yes" } else { "no" }, holds)
    }

    /// A statement of a figure; true if it holds.
    pub(crate) fn told(
        &mut self,
        what: &str,
        published: &str,
        measured: &str,
        holds: bool,
    ) -> bool {
        let verdict = if holds { Verdict::Holds } else { Verdict::Fails };
        self.row(what, published, measured, verdict)
    }

    /// How many claims hold, and of how many.
    pub(crate) fn end(self) -> (u32, u32) {
        println!("{}: {} of {} hold", self.id, self.held, self.all);
        (self.held, self.all)
    }
}
