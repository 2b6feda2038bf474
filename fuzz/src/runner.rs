//! Running a target: so many inputs a round, each round from its own seed.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use proptest::strategy::Strategy;
use proptest::test_runner::{Config, RngAlgorithm, TestError, TestRng, TestRunner};

/// Steps on the way to a smaller input, at most.
const SHRINK_STEPS_MOST: u32 = 1500;

/// Seconds after which an input that was not done is taken for endless.
const ENDLESS_SECONDS: u64 = 300;

/// What the environment asks for: the first round, and how many.
fn rounds() -> (u64, u64) {
    let number = |name: &str| match std::env::var(name) {
        Ok(text) => Some(text.parse().unwrap_or_else(|_| panic!("{name}={text}: no number"))),
        Err(_) => None,
    };
    (number("FLASHTREE_FUZZ_SEED").unwrap_or(0), number("FLASHTREE_FUZZ_ROUNDS").unwrap_or(1))
}

/// Runs the target called `name`, a test's name, on `inputs` inputs a round.
///
/// # Panics
/// An input failed: the smallest one found is printed, with the command that finds it again.
pub fn fuzz<S: Strategy>(name: &'static str, inputs: u32, strategy: S, test: impl Fn(S::Value)) {
    let (first, count) = rounds();
    let done = Arc::new(AtomicU64::new(0));
    let watch = Watch::start(name, first, done.clone());
    for round in first..first + count {
        watch.round.store(round, Ordering::Relaxed);
        let config = Config {
            cases: inputs,
            max_shrink_iters: SHRINK_STEPS_MOST,
            failure_persistence: None,
            ..Config::default()
        };
        let mut seed = [0; 32];
        seed[..8].copy_from_slice(&round.to_le_bytes());
        let random = TestRng::from_seed(RngAlgorithm::ChaCha, &seed);
        let outcome = TestRunner::new_with_rng(config, random).run(&strategy, |input| {
            test(input);
            done.fetch_add(1, Ordering::Relaxed);
            Ok(())
        });
        match outcome {
            Ok(()) => {}
            Err(TestError::Abort(reason)) => panic!("{name}: {reason}"),
            Err(TestError::Fail(reason, input)) => panic!(
                "{name}: {reason}\nthe smallest input that fails:\n{input:#?}\n{}",
                replay(name, round)
            ),
        }
    }
    println!("fuzz {name}: {} inputs, 0 failures", done.load(Ordering::Relaxed));
}

/// The command that runs a round again.
fn replay(name: &str, round: u64) -> String {
    format!("FLASHTREE_FUZZ_SEED={round} cargo test -p flashtree-fuzz {name}")
}

/// Ends the program if an input is never done: what calls no device can't be stopped otherwise.
struct Watch {
    round: Arc<AtomicU64>,
    over: Arc<AtomicU64>,
}

impl Watch {
    fn start(name: &'static str, first: u64, done: Arc<AtomicU64>) -> Self {
        let watch =
            Watch { round: Arc::new(AtomicU64::new(first)), over: Arc::new(AtomicU64::new(0)) };
        let (round, over) = (watch.round.clone(), watch.over.clone());
        thread::spawn(move || {
            let (mut before, mut seconds) = (0, 0);
            while over.load(Ordering::Relaxed) == 0 {
                thread::sleep(Duration::from_secs(1));
                let now = done.load(Ordering::Relaxed);
                seconds = if now == before { seconds + 1 } else { 0 };
                before = now;
                if seconds >= ENDLESS_SECONDS {
                    eprintln!("{name}: an input does not end");
                    eprintln!("{}", replay(name, round.load(Ordering::Relaxed)));
                    std::process::abort();
                }
            }
        });
        watch
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        self.over.store(1, Ordering::Relaxed);
    }
}
