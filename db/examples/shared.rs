//! Eight threads read a database while one writes: `cargo run --release -p flashtree --example
//! shared -- [SECONDS]`. The writer moves money between accounts, each time in a transaction; so
//! whatever moment a reader sees, the sum is the same. It prints how many reads were checked.

use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use flashtree::{Database, Options, Readable, Result};

const ACCOUNTS: u64 = 1000;
const EACH: u64 = 100;

fn number(bytes: Option<Vec<u8>>) -> u64 {
    bytes.and_then(|bytes| bytes.try_into().ok()).map_or(0, u64::from_be_bytes)
}

fn main() -> Result<()> {
    let seconds = std::env::args().nth(1).and_then(|text| text.parse().ok()).unwrap_or(2);
    let end = Instant::now() + Duration::from_secs(seconds);
    let path = std::env::temp_dir().join(format!("shared-{}.flash", std::process::id()));
    let bank = Database::create(&path, &Options::new().tree("flat-tree").overwrite(true))?;
    bank.load((0..ACCOUNTS).map(|account| (account.to_be_bytes(), EACH.to_be_bytes())))?;
    let (reads, writes) = (AtomicU64::new(0), AtomicU64::new(0));
    thread::scope(|scope| {
        let write = || -> Result<()> {
            while Instant::now() < end {
                let round = writes.fetch_add(1, Ordering::Relaxed);
                let [from, to] = [7, 13].map(|step| (round * step % ACCOUNTS).to_be_bytes());
                bank.write(|transaction| {
                    transaction.sync_later();
                    let moved = number(transaction.get(from)?).min(3);
                    let left = number(transaction.get(from)?) - moved;
                    transaction.put(from, left.to_be_bytes())?;
                    let more = number(transaction.get(to)?) + moved;
                    transaction.put(to, more.to_be_bytes())
                })?;
            }
            Ok(())
        };
        let read = || -> Result<()> {
            while Instant::now() < end {
                let sum = bank.read(|bank| {
                    bank.all()?
                        .into_iter()
                        .try_fold(0, |sum, entry| entry.map(|(_, value)| sum + number(Some(value))))
                })?;
                assert_eq!(sum, ACCOUNTS * EACH, "a state that never was");
                reads.fetch_add(1, Ordering::Relaxed);
            }
            Ok(())
        };
        let threads: Vec<_> =
            (0..8).map(|_| scope.spawn(read)).chain([scope.spawn(write)]).collect();
        threads
            .into_iter()
            .try_for_each(|thread| thread.join().unwrap_or(Err(flashtree::Error::Panicked)))
    })?;
    println!(
        "{} reads of all accounts were right beside {} transactions",
        reads.into_inner(),
        writes.into_inner()
    );
    bank.close()?;
    std::fs::remove_file(&path).map_err(|source| flashtree::Error::Io {
        action: "remove",
        path,
        source,
    })
}
