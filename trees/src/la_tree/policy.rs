//! When a buffer is emptied: ADAPT (section 2.2, algorithm 1), buffers of a fixed size, and none.
//!
//! ADAPT reasons in hindsight. Had the buffer been emptied at an earlier lookup `i`, every lookup
//! since would have saved that lookup's scan: `sav(i, j) = (j - i) s_i` at lookup `j`. As soon as
//! that exceeds what emptying would have cost at `i`, for any `i` since the last emptying, the
//! buffer is emptied:
//!
//! ```text
//! EMPTY at lookup j  if there is i < j with  (j - i) s_i > e_i
//! EMPTY at an update if the buffer has more than U bytes
//! ```
//!
//! The paper keeps a register `(s_i, e_i)` for each group of consecutive lookups. The rule can be
//! turned around: register `i` comes due at lookup `i + floor(e_i / s_i) + 1`, whatever happens in
//! between, and registers are erased together. So only the one that comes due first can ever
//! decide, and [`Registers`] keeps that one, exactly and in a few bytes. It takes every lookup into
//! account, which is what algorithm 1 says; the first of a group decides for the group.
//!
//! The paper counts the lookup at which a buffer is emptied in two ways; [`Rule`] has the rule for
//! either, and a tree uses the printed one.
//!
//! Invariant: nothing here reads a device or knows what a buffer holds. That ADAPT never costs more
//! than twice the offline optimum and a constant (theorem 1) is tested in
//! `lab/tests/adapt_optimum.rs`; that it decides as algorithm 1 does, here.

/// The part of the memory budget that U is at most: 8 KiB of 128 KiB, as in section 6.1.
pub(super) const MEMORY_PER_LIMIT: u64 = 16;

/// The unit in which [`Rule::Average`] sums up costs.
const PAID_UNIT: u64 = 8192;

/// How large buffers may grow: the tree's parameter `buffer`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Buffering {
    /// ADAPT decides.
    #[default]
    Adaptive,
    /// Buffers are emptied when they have more than so many bytes, and never for a lookup.
    Fixed(u32),
    /// Every update goes down to its leaf at once: a B+-tree with nodes of this size.
    None,
}

/// Which savings ADAPT counts at lookup `j` for an earlier lookup `i`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Rule {
    /// Those of the lookups after `i`, as algorithm 1 prints it: `(j - i) s_i`. Twice the optimum
    /// is kept if the lookup at which a buffer is emptied is taken to scan it, too.
    #[default]
    Printed,
    /// That of lookup `i` as well, which emptying there would have answered: `(j - i + 1) s_i`.
    /// Twice the optimum is kept if the lookup at which a buffer is emptied pays no scan.
    Inclusive,
    /// No savings in hindsight: a buffer is emptied as soon as a lookup's scan costs more than a
    /// lookup did on the average since the last emptying, emptying now included: `s_j >= (s_1 +
    /// ... + s_(j-1) + e_j) / j`. That is best where lookups and updates come as steadily as they
    /// did, and promises nothing where they do not: the ablation of ADAPT's caution.
    Average,
}

/// What to do with a buffer now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Decision {
    /// Leave the entries in it.
    Keep,
    /// Empty it before going on.
    Empty,
}

/// What a buffer costs at the moment, in nanoseconds or any other unit that both share.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Estimate {
    /// Reading all its entries: `s_i`.
    pub scan: u64,
    /// Emptying it into the buffers or leaves below: `e_i`.
    pub emptying: u64,
}

/// What ADAPT remembers of a buffer since it was emptied last, in four bytes.
///
/// It is in how many lookups the first register comes due; with [`Rule::Average`] how many lookups
/// there were, and what their scans cost, a unit for `PAID_UNIT`. And whether an update came
/// since the last lookup, and how that one found this.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Registers(u32);

/// Marks that no update came since the last lookup, and that none came before it, either.
const IN_GROUP: u32 = 1 << 31;
const GOES_ON: u32 = 1 << 30;

/// No register ever comes due.
const NEVER: u32 = GOES_ON - 1;

/// Bits of what scans cost, and of the number of lookups, beside each other.
const HALF_BITS: u32 = 15;
const HALF: u32 = (1 << HALF_BITS) - 1;

impl Registers {
    /// No lookup yet.
    #[must_use]
    pub const fn new() -> Self {
        Registers(NEVER)
    }

    /// True if the last lookup was the first of a group of consecutive ones: the paper's own form
    /// would hold a register for it.
    #[must_use]
    pub const fn is_new_group(&self) -> bool {
        self.0 & GOES_ON == 0
    }

    const fn value(&self) -> u32 {
        self.0 & NEVER
    }

    const fn set_value(&mut self, value: u32) {
        self.0 = self.0 & !NEVER | value;
    }

    /// Algorithm 1, lines 1 to 10.
    fn lookup(&mut self, estimate: Estimate, rule: Rule) -> Decision {
        let goes_on = if self.0 & IN_GROUP == 0 { 0 } else { GOES_ON };
        self.0 = IN_GROUP | goes_on | self.value();
        if rule == Rule::Average {
            return self.average(estimate);
        }
        let left = match self.value() {
            NEVER => NEVER,
            left => left.saturating_sub(1),
        };
        // With the lookup's own savings a register comes due one lookup earlier.
        let own = due_in(estimate, u32::from(rule == Rule::Printed));
        self.set_value(left.min(own));
        let is_due = if rule == Rule::Printed { left == 0 } else { self.value() == 0 };
        if is_due { Decision::Empty } else { Decision::Keep }
    }

    /// [`Rule::Average`].
    fn average(&mut self, estimate: Estimate) -> Decision {
        let known = if self.value() == NEVER { 0 } else { self.value() };
        let (paid, lookups) = (known >> HALF_BITS, (known & HALF) + 1);
        let scans = u64::from(lookups).saturating_mul(estimate.scan);
        let cost = (u64::from(paid) * PAID_UNIT).saturating_add(estimate.emptying);
        if estimate.scan > 0 && scans >= cost {
            return Decision::Empty;
        }
        let paid = u64::from(paid) + estimate.scan / PAID_UNIT;
        let paid = u32::try_from(paid).unwrap_or(HALF).min(HALF - 1);
        self.set_value(paid << HALF_BITS | lookups.min(HALF));
        Decision::Keep
    }
}

impl Default for Registers {
    fn default() -> Self {
        Self::new()
    }
}

/// In how many lookups the savings of the present one exceed its emptying cost, where `more` of
/// them save nothing; [`NEVER`] if they don't.
fn due_in(estimate: Estimate, more: u32) -> u32 {
    let Some(covered) = estimate.emptying.checked_div(estimate.scan) else {
        return NEVER;
    };
    let due = covered.saturating_add(more.into());
    u32::try_from(due).unwrap_or(NEVER).min(NEVER)
}

/// The policy of a tree: one for all its buffers, each of which has its own [`Registers`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Policy {
    buffering: Buffering,
    rule: Rule,
    most_bytes: u32,
}

impl Policy {
    /// The policy in a budget of `memory_bytes`, of which U is a sixteenth (table 1: U < M).
    #[must_use]
    pub fn new(buffering: Buffering, memory_bytes: u64) -> Self {
        let most_bytes = match buffering {
            Buffering::Adaptive => {
                u32::try_from(memory_bytes / MEMORY_PER_LIMIT).unwrap_or(u32::MAX)
            }
            Buffering::Fixed(bytes) => bytes,
            Buffering::None => 0,
        };
        Policy { buffering, rule: Rule::Printed, most_bytes }
    }

    /// The same policy with another rule.
    #[must_use]
    pub const fn with_rule(mut self, rule: Rule) -> Self {
        self.rule = rule;
        self
    }

    /// The most bytes that a buffer has between two operations: U. While a batch comes from above
    /// it may have more, until it is emptied.
    #[must_use]
    pub const fn most_bytes(&self) -> u32 {
        self.most_bytes
    }

    /// Decides at a lookup that has to scan the buffer, before it does. After
    /// [`Decision::Empty`] the buffer is to be emptied, and its registers begin anew.
    pub fn at_lookup(&self, registers: &mut Registers, estimate: Estimate) -> Decision {
        match self.buffering {
            Buffering::Adaptive => registers.lookup(estimate, self.rule),
            Buffering::Fixed(_) | Buffering::None => Decision::Keep,
        }
    }

    /// Decides after an update, or a whole batch of them from the buffer above, was appended to a
    /// buffer that now has `bytes` bytes: algorithm 1, lines 11 to 14.
    pub fn at_update(&self, registers: &mut Registers, bytes: u64) -> Decision {
        registers.0 &= !IN_GROUP;
        if bytes > u64::from(self.most_bytes) { Decision::Empty } else { Decision::Keep }
    }
}

#[cfg(test)]
mod tests;
