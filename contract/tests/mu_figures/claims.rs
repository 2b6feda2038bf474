//! What was published, beside what we have.

/// The claims of one figure.
pub(crate) struct Claims {
    id: &'static str,
    held: u32,
    all: u32,
}

impl Claims {
    /// No claims yet.
    pub(crate) fn of(id: &'static str) -> Self {
        Claims { id, held: 0, all: 0 }
    }

    fn note(&mut self, holds: bool) -> &'static str {
        self.held += u32::from(holds);
        self.all += 1;
        if holds { "holds" } else { "FAILS" }
    }

    /// A figure that is to be as published, give or take `most`; true if it is.
    pub(crate) fn near(&mut self, what: &str, (published, ours): (f64, f64), most: f64) -> bool {
        // Steps of a plot are no exact numbers.
        let holds = (published - ours).abs() <= most + 1e-9;
        let word = self.note(holds);
        println!("{}  {what}: published {published}, ours {ours:.4}: {word}", self.id);
        holds
    }

    /// A statement; true if it holds.
    pub(crate) fn holds(&mut self, what: &str, holds: bool) -> bool {
        let word = self.note(holds);
        println!("{}  {what}: {word}", self.id);
        holds
    }

    /// How many claims hold, and of how many.
    pub(crate) fn end(self) -> (u32, u32) {
        println!("{}: {} of {} claims hold", self.id, self.held, self.all);
        (self.held, self.all)
    }
}
