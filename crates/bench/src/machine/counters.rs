//! System calls, and where the machine counts them instructions and cache misses, of a running process: perf is asked,
//! else strace. Knows not what the process does.

use super::process::{self, children};
use anyhow::{Context, Result, bail};
use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::Duration;

/// What perf is asked for, and what it is called in figures.
const EVENTS: [(&str, &str); 7] = [
    ("raw_syscalls:sys_enter", "syscalls"),
    ("syscalls:sys_enter_futex", "futexes"),
    ("instructions", "instructions"),
    ("cycles", "cycles"),
    ("L1-icache-load-misses", "l1i_misses"),
    ("L1-dcache-load-misses", "l1d_misses"),
    ("LLC-load-misses", "llc_misses"),
];

/// What was counted, by name, and what must be known of it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// By the names of figures.
    pub by_name: BTreeMap<String, u64>,
    /// What was not counted, and why; what counting costs.
    pub notes: Vec<String>,
}

impl Counts {
    /// Nothing was counted.
    pub fn none(why: &anyhow::Error) -> Counts {
        Counts { by_name: BTreeMap::new(), notes: vec![format!("nothing was counted: {why:#}")] }
    }
}

/// Counts from its start to its end.
#[derive(Debug)]
pub enum Counter {
    /// perf, which costs little.
    Perf(Perf),
    /// strace, which stops the process at each call.
    Strace(Strace),
}

impl Counter {
    /// Begins to count what a process and those that it has started do; what it writes goes to `scratch`.
    ///
    /// # Errors
    /// When neither program is there and allowed to.
    pub fn start(pid: u32, scratch: &Path) -> Result<Counter> {
        let perf = match Perf::start(pid, scratch) {
            Ok(perf) => return Ok(Counter::Perf(perf)),
            Err(error) => error,
        };
        let strace = Strace::start(pid, scratch).map(Counter::Strace);
        strace.map_err(|error| error.context(format!("perf: {perf:#}")))
    }

    /// Ends counting.
    pub fn finish(self) -> Result<Counts> {
        match self {
            Counter::Perf(perf) => perf.finish(),
            Counter::Strace(strace) => strace.finish(),
        }
    }
}

/// The processes, as both programs list them.
fn list(pid: u32) -> String {
    let all = std::iter::once(pid).chain(children(pid));
    all.map(|pid| pid.to_string()).collect::<Vec<_>>().join(",")
}

/// How long a program may take to write what it has counted.
const PATIENCE: Duration = Duration::from_secs(10);

/// A program that counts. Dropped, as when a load fails, it lets go of what it counts, too.
#[derive(Debug)]
struct Attached(Child);

impl Attached {
    /// Interrupts it, at which it writes what it has counted, and waits for it.
    fn end(&mut self) -> Result<()> {
        process::end(&mut self.0, rustix::process::Signal::INT, PATIENCE)
    }
}

impl Drop for Attached {
    fn drop(&mut self) {
        // Who needs what it has counted has ended it already.
        let _ = self.end();
    }
}

/// A running `perf stat`, which counts when it is told to and says that it does.
#[derive(Debug)]
pub struct Perf {
    child: Attached,
    acknowledged: BufReader<ChildStdout>,
    output: PathBuf,
}

impl Perf {
    fn start(pid: u32, scratch: &Path) -> Result<Perf> {
        let output = scratch.join("perf");
        let events: Vec<&str> = EVENTS.iter().map(|(event, _)| *event).collect();
        let mut command = Command::new("perf");
        command.args(["stat", "-x", ";", "-D", "-1", "--control", "fd:0,1", "-e", &events.join(","), "-p", &list(pid)]);
        command.arg("-o").arg(&output).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = Attached(command.spawn()?);
        let acknowledged = BufReader::new(child.0.stdout.take().context("it has a pipe")?);
        let mut perf = Perf { child, acknowledged, output };
        perf.tell("enable")?;
        Ok(perf)
    }

    fn tell(&mut self, word: &str) -> Result<()> {
        let pipe = self.child.0.stdin.as_mut().context("it has a pipe")?;
        writeln!(pipe, "{word}").context("it counts nothing here")?;
        let mut answer = Vec::new();
        self.acknowledged.read_until(b'\n', &mut answer)?;
        // The end of each of its answers, a zero, comes behind the line.
        if answer.strip_prefix(&[0]).unwrap_or(&answer) != b"ack\n" {
            bail!("it counts nothing here");
        }
        Ok(())
    }

    fn finish(mut self) -> Result<Counts> {
        self.tell("disable")?;
        self.child.end()?;
        Ok(perf_counts(&std::fs::read_to_string(&self.output)?))
    }
}

/// Reads lines `count;unit;event;...`.
fn perf_counts(text: &str) -> Counts {
    let mut counts = Counts::default();
    for line in text.lines() {
        let mut words = line.split(';');
        let (Some(count), Some(event)) = (words.next(), words.nth(1)) else { continue };
        // Behind the event, perf may say that it counted in the user's or the kernel's part only.
        let named = EVENTS.iter().find(|(known, _)| event.split(":u").next() == Some(known) || event == *known);
        if let (Ok(count), Some((_, name))) = (count.parse(), named) {
            counts.by_name.insert((*name).to_owned(), count);
        }
    }
    let missing = EVENTS.iter().filter(|(_, name)| !counts.by_name.contains_key(*name)).map(|(event, _)| *event);
    let missing = missing.collect::<Vec<_>>().join(", ");
    if !missing.is_empty() {
        counts.notes.push(format!("this machine does not count {missing}"));
    }
    counts
}

/// A running `strace -c`.
#[derive(Debug)]
pub struct Strace {
    child: Attached,
    output: PathBuf,
}

impl Strace {
    fn start(pid: u32, scratch: &Path) -> Result<Strace> {
        let output = scratch.join("strace");
        let mut command = Command::new("strace");
        command.args(["-c", "-f", "-p", &list(pid)]).arg("-o").arg(&output);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
        let mut child = Attached(command.spawn().context("strace")?);
        let mut said = String::new();
        let mut lines = BufReader::new(child.0.stderr.take().context("it has a pipe")?);
        lines.read_line(&mut said)?;
        if !said.contains("attached") {
            bail!("strace: {}", said.trim());
        }
        // It says more, and must have somebody to say it to.
        std::thread::spawn(move || lines.lines().for_each(drop));
        Ok(Strace { child, output })
    }

    fn finish(mut self) -> Result<Counts> {
        self.child.end()?;
        Ok(strace_counts(&std::fs::read_to_string(&self.output)?))
    }
}

/// Reads a table of lines `share seconds microseconds calls [errors] name`.
fn strace_counts(text: &str) -> Counts {
    let mut counts = Counts::default();
    let (mut calls, mut futexes) = (0, 0);
    for line in text.lines() {
        let words: Vec<&str> = line.split_whitespace().collect();
        let (Some(count), Some(name)) = (words.get(3).and_then(|word| word.parse::<u64>().ok()), words.last()) else {
            continue;
        };
        if *name != "total" {
            calls += count;
        }
        if *name == "futex" {
            futexes += count;
        }
    }
    counts.by_name.extend([("syscalls".to_owned(), calls), ("futexes".to_owned(), futexes)]);
    counts.notes.push("counted by strace, which slows the server down; perf counts nothing here".to_owned());
    counts
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::machine::cpu;
    use tenon_testkit::patience::wait_until;

    #[test]
    fn what_perf_and_strace_write_is_read() {
        let text = "# started on today\n\n1873;;raw_syscalls:sys_enter;52;100.00;;\n7;;syscalls:sys_enter_futex;52;100.00;;\n\
                    99;;instructions:u;52;100.00;;\n<not supported>;;cycles;0;100.00;;\n";
        let counts = perf_counts(text);
        let known = [("syscalls", 1873), ("futexes", 7), ("instructions", 99)];
        assert_eq!(counts.by_name, known.map(|(name, count)| (name.to_owned(), count)).into());
        assert!(
            counts.notes[0].ends_with("count cycles, L1-icache-load-misses, L1-dcache-load-misses, LLC-load-misses")
        );

        let text = "% time     seconds  usecs/call     calls    errors syscall\n------ ----------- -----------\n \
                    90.00    0.000900           9       100        20 futex\n 10.00    0.000100           1        50           read\n\
                    100.00    0.001000           6       150        20 total\n";
        let counts = strace_counts(text);
        assert_eq!((counts.by_name["syscalls"], counts.by_name["futexes"]), (150, 100));
    }

    #[test]
    fn a_counter_that_is_dropped_has_ended() {
        let child = Command::new("sleep").arg("600").spawn().expect("sleep");
        let stat = format!("/proc/{}/stat", child.id());
        drop(Attached(child));
        assert!(!Path::new(&stat).exists());
    }

    #[test]
    fn the_calls_of_a_process_are_counted_where_that_is_allowed() {
        let scratch = std::env::temp_dir().join(format!("tenon-bench-counters-{}", std::process::id()));
        std::fs::create_dir_all(&scratch).expect("a directory");
        let mut busy = Command::new("dd")
            .args(["if=/dev/zero", "of=/dev/null", "bs=1"])
            .stderr(Stdio::null())
            .spawn()
            .expect("every system has dd");
        let counted = Counter::start(busy.id(), &scratch).and_then(|counter| {
            // On a busy machine it has to wait for its turn.
            let used = || cpu::of_process(busy.id()).expect("it runs");
            let worked = used() + Duration::from_millis(20);
            wait_until("the work of dd", || used() >= worked);
            counter.finish()
        });
        busy.kill().expect("it runs");
        busy.wait().expect("it ends");
        std::fs::remove_dir_all(&scratch).expect("it can go");
        match counted {
            Ok(counts) => assert!(counts.by_name["syscalls"] > 0, "{counts:?}"),
            Err(why) => writeln!(std::io::stderr(), "skipped: nothing is counted here: {why:#}").expect("stderr"),
        }
    }
}
