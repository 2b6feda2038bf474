//! Running a target: so many inputs a round, each round from its own seed.

use std::io::Write;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use proptest::strategy::Strategy;
use proptest::test_runner::{Config, RngAlgorithm, TestError, TestRng, TestRunner};

/// Steps on the way to a smaller input, at most.
const SHRINK_STEPS_MOST: u32 = 1500;

/// Seconds after which an input that was not done is taken for endless.
const ENDLESS_SECONDS: u64 = 120;

/// Seconds between two lines of progress of a long run.
const PROGRESS_SECONDS: u64 = 30;

/// A target: the test's name, and how many inputs a round has.
#[derive(Clone, Copy, Debug)]
pub struct Target {
    /// The name of the test.
    pub name: &'static str,
    /// Inputs a round.
    pub inputs: u32,
}

/// What the environment asks for.
struct Plan {
    first: u64,
    rounds: u64,
    /// Rounds go on until so much time is over.
    time: Option<Duration>,
}

impl Plan {
    fn read() -> Self {
        let number = |name: &str| match std::env::var(name) {
            Ok(text) => Some(text.parse().unwrap_or_else(|_| panic!("{name}={text}: no number"))),
            Err(_) => None,
        };
        Plan {
            first: number("FLASHTREE_FUZZ_SEED").unwrap_or(0),
            rounds: number("FLASHTREE_FUZZ_ROUNDS").unwrap_or(1),
            time: number("FLASHTREE_FUZZ_SECONDS").map(Duration::from_secs),
        }
    }

    fn goes_on(&self, round: u64, start: Instant) -> bool {
        match self.time {
            Some(time) => start.elapsed() < time,
            None => round - self.first < self.rounds,
        }
    }
}

impl Target {
    /// Runs the target on what `strategy` makes.
    ///
    /// # Panics
    /// An input failed: the smallest one found is printed, with the command that finds it again.
    pub fn fuzz<S: Strategy>(&self, strategy: S, test: impl Fn(S::Value)) {
        self.fuzz_with(|_| (), strategy, |(), input| test(input));
    }

    /// Runs the target on what `prepare` makes once a round, and `strategy` for each input.
    ///
    /// # Panics
    /// As [`Target::fuzz`].
    pub fn fuzz_with<P, S: Strategy>(
        &self,
        prepare: impl Fn(&mut TestRunner) -> P,
        strategy: S,
        test: impl Fn(&P, S::Value),
    ) {
        let plan = Plan::read();
        let start = Instant::now();
        let mut watch = Watch::start(*self, plan.first);
        let mut round = plan.first;
        while plan.goes_on(round, start) {
            watch.round.store(round, Ordering::Relaxed);
            self.round(round, (&prepare, &strategy, &test), &watch.done);
            round += 1;
            watch.tell(plan.time.is_some(), round);
        }
        let inputs = watch.done.load(Ordering::Relaxed);
        println!(
            "fuzz {}: {inputs} inputs in {} rounds, 0 failures",
            self.name,
            round - plan.first
        );
    }

    fn round<P, S: Strategy>(
        &self,
        round: u64,
        (prepare, strategy, test): (impl Fn(&mut TestRunner) -> P, &S, impl Fn(&P, S::Value)),
        done: &AtomicU64,
    ) {
        let config = Config {
            cases: self.inputs,
            max_shrink_iters: SHRINK_STEPS_MOST,
            failure_persistence: None,
            ..Config::default()
        };
        let mut seed = [0; 32];
        seed[..8].copy_from_slice(&round.to_le_bytes());
        let random = TestRng::from_seed(RngAlgorithm::ChaCha, &seed);
        let mut runner = TestRunner::new_with_rng(config, random);
        let prepared = prepare(&mut runner);
        let outcome = runner.run(strategy, |input| {
            test(&prepared, input);
            done.fetch_add(1, Ordering::Relaxed);
            Ok(())
        });
        let name = self.name;
        match outcome {
            Ok(()) => {}
            Err(TestError::Abort(reason)) => panic!("{name}: {reason}"),
            Err(TestError::Fail(reason, input)) => panic!(
                "{name}: {reason}\nthe smallest input that fails:\n{input:#?}\n{}",
                self.replay(round)
            ),
        }
    }

    /// The command that runs a round again.
    fn replay(&self, round: u64) -> String {
        format!("FLASHTREE_FUZZ_SEED={round} cargo test -p flashtree-fuzz {}", self.name)
    }
}

/// Ends the program if an input is never done: what calls no device can't be stopped otherwise.
struct Watch {
    target: Target,
    round: Arc<AtomicU64>,
    done: Arc<AtomicU64>,
    over: Arc<AtomicU64>,
    told: Instant,
}

impl Watch {
    fn start(target: Target, first: u64) -> Self {
        let number = |number| Arc::new(AtomicU64::new(number));
        let (round, done, over) = (number(first), number(0), number(0));
        let watch = Watch { target, round, done, over, told: Instant::now() };
        let (round, done, over) = (watch.round.clone(), watch.done.clone(), watch.over.clone());
        thread::spawn(move || {
            let (mut before, mut seconds) = ((0, 0), 0);
            while over.load(Ordering::Relaxed) == 0 {
                thread::sleep(Duration::from_secs(1));
                let now = (done.load(Ordering::Relaxed), round.load(Ordering::Relaxed));
                seconds = if now == before { seconds + 1 } else { 0 };
                before = now;
                if seconds >= ENDLESS_SECONDS {
                    // Past the test harness, which keeps what is printed until the test ends.
                    let replay = target.replay(round.load(Ordering::Relaxed));
                    let line = format!("{}: an input does not end\n{replay}\n", target.name);
                    let _ = std::io::stderr().write_all(line.as_bytes());
                    std::process::abort();
                }
            }
        });
        watch
    }

    /// Says how far a long run is, and what its next round is called: should it be killed there.
    fn tell(&mut self, is_long: bool, round: u64) {
        if is_long && self.told.elapsed().as_secs() >= PROGRESS_SECONDS {
            let done = self.done.load(Ordering::Relaxed);
            let replay = self.target.replay(round);
            let line = format!("fuzz: {done} inputs done; next {replay}\n");
            let _ = std::io::stderr().write_all(line.as_bytes());
            self.told = Instant::now();
        }
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        self.over.store(1, Ordering::Relaxed);
    }
}
