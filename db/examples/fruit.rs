//! The example of the README: a database in a file.

use flashtree::{Batch, Database, OpenOptions, Options};

fn main() -> flashtree::Result<()> {
    let path = std::env::temp_dir().join("fruit.flash");
    let fruit = Database::create(&path, &Options::new().overwrite(true))?;
    fruit.put("apple", "red")?;
    fruit.write_batch(Batch::new().put("banana", "yellow").put("cherry", "red").delete("apple"))?;
    fruit.sync()?; // From here on all of it survives a power cut.
    fruit.write(|transaction| {
        // All of these changes, or none; durable when it returns.
        transaction.put("date", "brown")?;
        transaction.delete("banana")
    })?;
    for entry in fruit.range("a".."c")? {
        let (key, value) = entry?;
        println!("{}: {}", key.escape_ascii(), value.escape_ascii());
    }
    fruit.checkpoint("harvest")?;
    fruit.delete("cherry")?;
    fruit.rollback("harvest")?;
    fruit.close()?;

    let fruit = Database::open(&path, &OpenOptions::new())?;
    assert_eq!(fruit.get("cherry")?, Some(b"red".to_vec()));
    assert!(fruit.check()?.is_empty());
    Ok(())
}
