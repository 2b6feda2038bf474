//! Rows about several processes: this program runs itself once more.

use std::io::{BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use flashtree_bench::Outcome;
use flashtree_bench::workload::Shape;

use crate::common::{has_one, open, put_one};
use crate::stores::{open_to_read, open_to_write};
use crate::{row, word};

const SHAPE: Shape = Shape { key: 8, value: 8 };

/// What another process has done, and that it waits.
const READY: &str = "ready";
const REFUSED: &str = "refused";

struct Other {
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
}

impl Other {
    /// Starts one that does `task`; returns what it says, too.
    fn start(task: &str, engine: &str, folder: &Path) -> Outcome<(Self, String)> {
        let mut command = Command::new(std::env::current_exe()?);
        command.args([
            "--exact",
            "processes::the_other_process",
            "--nocapture",
            "--test-threads=1",
        ]);
        command.env("OFFERS_TASK", task).env("OFFERS_ENGINE", engine).env("OFFERS_FOLDER", folder);
        let pipes = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = pipes.spawn()?;
        let input = child.stdin.take().ok_or("no input")?;
        let output = BufReader::new(child.stdout.take().ok_or("no output")?);
        let mut other = Other { child, input, output };
        let said = other.line()?;
        Ok((other, said))
    }

    /// The next line that is no talk of the test program.
    fn line(&mut self) -> Outcome<String> {
        let mut line = String::new();
        while self.output.read_line(&mut line)? > 0 {
            let said = [READY, REFUSED].into_iter().find(|word| line.trim_end().ends_with(word));
            if let Some(said) = said {
                return Ok(said.to_owned());
            }
            line.clear();
        }
        Ok("ended".to_owned())
    }

    fn end(mut self) -> Outcome<()> {
        self.input.write_all(b"\n")?;
        self.child.wait()?;
        Ok(())
    }

    fn kill(mut self) -> Outcome<()> {
        self.child.kill()?;
        self.child.wait()?;
        Ok(())
    }
}

/// What the other process does; in the usual run of the tests there is nothing to do.
#[test]
fn the_other_process() {
    let variable = std::env::var;
    let (Ok(task), Ok(engine)) = (variable("OFFERS_TASK"), variable("OFFERS_ENGINE")) else {
        return;
    };
    let folder = PathBuf::from(std::env::var_os("OFFERS_FOLDER").unwrap());
    let wait = |said: &str| {
        println!("{said}");
        std::io::stdin().read_exact(&mut [0]).unwrap();
    };
    match task.as_str() {
        "put" => {
            let mut store = open(&engine, &folder).unwrap();
            put_one(store.as_mut(), SHAPE, false).unwrap();
            wait(READY);
        }
        "read" => match open_to_read(&engine, &folder) {
            Ok(_open) => wait(READY),
            Err(_) => wait(REFUSED),
        },
        task => panic!("{task} is no task"),
    }
}

fn make(engine: &str, folder: &Path) -> Outcome<()> {
    let mut store = open(engine, folder)?;
    put_one(store.as_mut(), SHAPE, true)?;
    store.close()
}

#[test]
fn processes_that_read() {
    row("several processes read at once", |engine, folder| {
        make(engine, folder)?;
        let (one, said_one) = Other::start("read", engine, folder)?;
        let (two, said_two) = Other::start("read", engine, folder)?;
        one.end()?;
        two.end()?;
        Ok(word(said_one == READY && said_two == READY))
    });
}

#[test]
fn processes_that_read_beside_one_that_writes() {
    row("a process reads while another has it open to write", |engine, folder| {
        make(engine, folder)?;
        let _store = open_to_write(engine, folder)?;
        let (other, said) = Other::start("read", engine, folder)?;
        other.end()?;
        Ok(word(said == READY))
    });
}

#[test]
fn killed_processes() {
    row("a killed process loses no put that returned without a sync", |engine, folder| {
        let (other, said) = Other::start("put", engine, folder)?;
        assert_eq!(said, READY, "{engine}");
        other.kill()?;
        let mut store = open(engine, folder)?;
        Ok(word(has_one(store.as_mut(), SHAPE)?))
    });
}
