//! The bench's side: starts the processes, has them begin together, looks at the server while their connections are open,
//! and adds up what they tell. Knows not what they send.

use super::child::{ENDED, FAILED, READY};
use super::order::{Order, Told};
use crate::load::{Observer, Outcome};
use anyhow::{Context, Result, bail};
use std::io::{BufRead, BufReader, Write};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::Duration;

/// The bench's subcommand that [`super::drive`] is.
pub const SUBCOMMAND: &str = "drive";

/// How often it is looked whether somebody wants an early end.
const LOOK: Duration = Duration::from_millis(100);

/// A process that is spoken to. Ended with this.
struct Process {
    child: Child,
    lines: Receiver<String>,
}

impl Drop for Process {
    fn drop(&mut self) {
        // One that has ended by itself needs no more.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Process {
    fn start(program: &Path, order: &Order) -> Result<Process> {
        let mut command = Command::new(program);
        command.arg(SUBCOMMAND).stdin(Stdio::piped()).stdout(Stdio::piped());
        // In a group of its own: an interrupt from the terminal is the bench's to deal with.
        command.process_group(0);
        let mut child = command.spawn().with_context(|| format!("{} cannot be started", program.display()))?;
        let output = child.stdout.take().context("it is piped")?;
        let (sender, lines) = channel();
        // Ends with the process's output, at the latest when that is killed.
        std::thread::spawn(move || {
            for line in BufReader::new(output).lines().map_while(Result::ok) {
                if sender.send(line).is_err() {
                    break;
                }
            }
        });
        let mut process = Process { child, lines };
        process.say(&serde_json::to_string(order)?)?;
        Ok(process)
    }

    fn say(&mut self, line: &str) -> Result<()> {
        let input = self.child.stdin.as_mut().context("it is piped")?;
        writeln!(input, "{line}").context("a process of the client has ended")
    }

    /// The next line, unless it says that something failed.
    fn line(&self, stop: &AtomicBool) -> Result<String> {
        loop {
            match self.lines.recv_timeout(LOOK) {
                Ok(line) => match line.strip_prefix(FAILED) {
                    Some(why) => bail!("a process of the client: {why}"),
                    None => return Ok(line),
                },
                Err(RecvTimeoutError::Timeout) if stop.load(Ordering::Relaxed) => bail!("stopped"),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => bail!("a process of the client has ended early"),
            }
        }
    }
}

/// Has each order followed by a process of `program`, which is the bench, and gives the sum of what came of it.
///
/// # Errors
/// As [`crate::load::run`], of any of them, and when a process cannot be started or ends early.
pub fn run(program: &Path, orders: &[Order], observer: &mut dyn Observer, stop: &AtomicBool) -> Result<Outcome> {
    let mut processes: Vec<Process> =
        orders.iter().map(|order| Process::start(program, order)).collect::<Result<_>>()?;
    all_say(&processes, READY, stop)?;
    observer.begins()?;
    processes.iter_mut().try_for_each(|process| process.say("begin"))?;
    all_say(&processes, ENDED, stop)?;
    observer.ended()?;
    processes.iter_mut().try_for_each(|process| process.say("end"))?;
    let mut sum: Option<Outcome> = None;
    for process in &processes {
        let told: Told = serde_json::from_str(&process.line(stop)?).context("an outcome is a line of JSON")?;
        let outcome = told.outcome();
        match &mut sum {
            Some(sum) => sum.add(&outcome),
            None => sum = Some(outcome),
        }
    }
    sum.context("a load has a process")
}

fn all_say(processes: &[Process], word: &str, stop: &AtomicBool) -> Result<()> {
    for process in processes {
        let line = process.line(stop)?;
        if line != word {
            bail!("a process of the client says '{line}' instead of '{word}'");
        }
    }
    Ok(())
}
