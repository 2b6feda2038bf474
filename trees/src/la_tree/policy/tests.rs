use alloc::vec::Vec;

use super::{Buffering, Decision, Estimate, Policy, Registers, Rule};

/// Algorithm 1 as it is printed: a register for each lookup, or for each group of them.
#[derive(Default)]
struct Printed {
    j: u64,
    registers: Vec<(u64, Estimate)>,
    one_a_group: bool,
    in_group: bool,
    most_bytes: u64,
}

impl Printed {
    fn lookup(&mut self, now: Estimate) -> Decision {
        self.j += 1;
        for (i, register) in &self.registers {
            let savings = (self.j - i) * register.scan;
            if savings > register.emptying {
                return Decision::Empty;
            }
        }
        if !(self.one_a_group && self.in_group) {
            self.registers.push((self.j, now));
        }
        self.in_group = true;
        Decision::Keep
    }

    fn update(&mut self, bytes: u64) -> Decision {
        self.in_group = false;
        if bytes > self.most_bytes { Decision::Empty } else { Decision::Keep }
    }

    fn emptied(&mut self) {
        self.registers.clear();
        self.in_group = false;
    }
}

/// Numbers that look random, from a seed (Knuth's generator).
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963);
        (self.0 >> 33) % bound
    }
}

fn adaptive() -> Policy {
    Policy::new(Buffering::Adaptive, 128 << 10)
}

#[test]
fn the_example_of_figure_4_empties_at_the_fourth_lookup() {
    let (policy, mut registers) = (adaptive(), Registers::new());
    // The figure prints the first two; the scan grows with the buffer, and so does emptying.
    for (scan, emptying) in [(75, 215), (90, 230), (100, 240)] {
        let decision = policy.at_lookup(&mut registers, Estimate { scan, emptying });
        assert_eq!(decision, Decision::Keep);
        assert_eq!(policy.at_update(&mut registers, 100), Decision::Keep);
    }
    // sav(1, 4) = 3 * 75 = 225 > 215.
    let fourth = policy.at_lookup(&mut registers, Estimate { scan: 110, emptying: 250 });
    assert_eq!(fourth, Decision::Empty);
    assert!(registers.is_new_group(), "an update came before it");
}

#[test]
fn savings_that_only_equal_the_cost_of_emptying_do_not_suffice() {
    let (policy, mut registers) = (adaptive(), Registers::new());
    let estimate = Estimate { scan: 10, emptying: 30 };
    let decisions: Vec<_> = (0..5).map(|_| policy.at_lookup(&mut registers, estimate)).collect();
    assert_eq!(decisions[..4], [Decision::Keep; 4]);
    assert_eq!(decisions[4], Decision::Empty);
}

#[test]
fn the_inclusive_rule_empties_one_lookup_earlier() {
    let policy = adaptive().with_rule(Rule::Inclusive);
    let decisions = |estimate| {
        let mut registers = Registers::new();
        (0..4).filter(|_| policy.at_lookup(&mut registers, estimate) == Decision::Keep).count()
    };
    assert_eq!(decisions(Estimate { scan: 10, emptying: 30 }), 3);
    assert_eq!(decisions(Estimate { scan: 10, emptying: 9 }), 0);
    assert_eq!(decisions(Estimate { scan: 0, emptying: 0 }), 4);
}

/// Plays `operations` random ones of a buffer whose costs are linear in its entries, with this
/// policy beside the printed algorithm; returns how often both emptied.
fn compare(seed: u64, operations: u32, one_a_group: bool) -> u32 {
    let mut numbers = Numbers(seed);
    let policy = adaptive();
    let mut registers = Registers::new();
    let most_bytes = u64::from(policy.most_bytes());
    let mut printed = Printed { one_a_group, most_bytes, ..Printed::default() };
    let (scan, fixed, each) = (1 + numbers.below(9), numbers.below(5000), numbers.below(20));
    let lookups_percent = 1 + numbers.below(98);
    let (mut bytes, mut emptied) = (0, 0);
    for operation in 0..operations {
        let decisions = if numbers.below(100) < lookups_percent {
            let now = Estimate { scan: scan * bytes, emptying: fixed + each * bytes };
            (policy.at_lookup(&mut registers, now), printed.lookup(now))
        } else {
            bytes += 8 * (1 + numbers.below(4));
            (policy.at_update(&mut registers, bytes), printed.update(bytes))
        };
        assert_eq!(decisions.0, decisions.1, "seed {seed}, operation {operation}");
        if decisions.0 == Decision::Empty {
            registers = Registers::new();
            printed.emptied();
            bytes = 0;
            emptied += 1;
        }
    }
    emptied
}

#[test]
fn one_register_decides_as_a_register_for_each_lookup_does() {
    let emptied: u32 = (0..200).map(|seed| compare(seed, 2000, false)).sum();
    assert!(emptied > 2000, "only {emptied} emptyings were compared");
}

#[test]
fn one_register_a_group_of_lookups_decides_as_one_a_lookup_does() {
    let emptied: u32 = (0..200).map(|seed| compare(seed, 2000, true)).sum();
    assert!(emptied > 2000, "only {emptied} emptyings were compared");
}

#[test]
fn a_buffer_in_memory_costs_nothing_and_is_never_emptied_for_lookups() {
    let (policy, mut registers) = (adaptive(), Registers::new());
    for _ in 0..10_000 {
        let free = Estimate { scan: 0, emptying: 1 };
        assert_eq!(policy.at_lookup(&mut registers, free), Decision::Keep);
    }
    // Once a part of it is on flash, lookups count, also those of the same group.
    let dear = Estimate { scan: 100, emptying: 250 };
    assert_eq!(policy.at_lookup(&mut registers, dear), Decision::Keep);
    assert_eq!(policy.at_lookup(&mut registers, dear), Decision::Keep);
    assert_eq!(policy.at_lookup(&mut registers, dear), Decision::Keep);
    assert_eq!(policy.at_lookup(&mut registers, dear), Decision::Empty);
}

#[test]
fn costs_and_counts_at_their_ends_do_no_harm() {
    let policy = adaptive();
    for (scan, emptying) in [(u64::MAX, u64::MAX), (1, u64::MAX), (u64::MAX, 0), (0, u64::MAX)] {
        let mut registers = Registers(super::NEVER - 1);
        let estimate = Estimate { scan, emptying };
        assert_eq!(policy.at_lookup(&mut registers, estimate), Decision::Keep);
        policy.at_lookup(&mut registers, estimate);
        assert!(registers.value() <= super::NEVER);
    }
}

#[test]
fn an_update_empties_a_buffer_above_its_limit_only() {
    let (policy, mut registers) = (adaptive(), Registers::new());
    assert_eq!(policy.most_bytes(), 8 << 10);
    assert_eq!(policy.at_update(&mut registers, 8 << 10), Decision::Keep);
    assert_eq!(policy.at_update(&mut registers, (8 << 10) + 1), Decision::Empty);
}

#[test]
fn fixed_buffers_and_none_do_not_care_for_lookups() {
    let mut registers = Registers::new();
    let dear = Estimate { scan: 1000, emptying: 1 };
    let small = Policy::new(Buffering::Fixed(128), 128 << 10);
    let none = Policy::new(Buffering::None, 128 << 10);
    for _ in 0..10 {
        assert_eq!(small.at_lookup(&mut registers, dear), Decision::Keep);
    }
    assert_eq!(small.at_update(&mut registers, 128), Decision::Keep);
    assert_eq!(small.at_update(&mut registers, 136), Decision::Empty);
    assert_eq!(none.at_update(&mut registers, 8), Decision::Empty);
}

#[test]
fn by_averages_a_buffer_is_emptied_when_a_scan_costs_more_than_a_lookup_did() {
    let (policy, mut registers) = (adaptive().with_rule(Rule::Average), Registers::new());
    let estimate =
        |scan: u64, emptying: u64| Estimate { scan: scan << 13, emptying: emptying << 13 };
    // While all is in memory scans are free, and nothing is gained.
    for _ in 0..4 {
        assert_eq!(policy.at_lookup(&mut registers, estimate(0, 100)), Decision::Keep);
    }
    // 5 x 15 < 100, then 6 x 15 < 15 + 100, then 7 x 20 >= 30 + 100.
    assert_eq!(policy.at_lookup(&mut registers, estimate(15, 100)), Decision::Keep);
    assert_eq!(policy.at_lookup(&mut registers, estimate(15, 100)), Decision::Keep);
    assert_eq!(policy.at_lookup(&mut registers, estimate(20, 100)), Decision::Empty);
    registers = Registers::new();
    assert_eq!(policy.at_lookup(&mut registers, estimate(99, 100)), Decision::Keep);
    assert_eq!(policy.at_lookup(&mut registers, estimate(100, 100)), Decision::Empty);
}
