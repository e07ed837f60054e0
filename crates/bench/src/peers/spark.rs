//! Spark in a process of its own, where its Python package is installed. Knows one program for it.

use super::guard::Guard;
use crate::graphs::Graph;
use crate::machine::cpu::Used;
use crate::results::Build;
use crate::session::Interrupt;
use anyhow::{Context, Result, bail};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use std::ffi::OsStr;
use std::fmt::Write;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

/// Names the Python that has the package; Spark knows the same variable.
const PYTHON_VARIABLE: &str = "PYSPARK_PYTHON";

/// What each program begins with.
const CONTEXT: &str = include_str!("spark_context.py");
const PAGERANK: &str = include_str!("spark_pagerank.py");
const LOOKUP: &str = include_str!("spark_lookup.py");

/// An installed Spark.
#[derive(Clone, Debug)]
pub struct Spark {
    python: PathBuf,
    /// What the package says of itself.
    pub version: String,
    /// Which build of it, by its version and those of Python and Java.
    pub build: Build,
}

/// What Spark has computed.
#[derive(Clone, Debug, PartialEq)]
pub struct Ranked {
    /// Seconds until the graph was in memory.
    pub load_s: f64,
    /// Seconds of each iteration.
    pub iterations_s: Vec<f64>,
    /// CPU time of them all, of all its processes.
    pub used: Used,
    /// The rank of each node.
    pub ranks: Vec<f64>,
}

/// How long objects of an RDD were looked for.
#[derive(Clone, Debug, PartialEq)]
pub struct Lookups {
    /// Seconds until all were in memory, and where they belong.
    pub load_s: f64,
    /// Seconds of each look but the first.
    pub took_s: Vec<f64>,
    /// How many looks there were.
    pub looks: u64,
    /// CPU time of them all, of all its processes.
    pub used: Used,
}

#[derive(Deserialize)]
struct SaidOfRanks {
    load_s: f64,
    iterations_s: Vec<f64>,
    #[serde(flatten)]
    cpu: SaidOfCpu,
}

#[derive(Deserialize)]
struct SaidOfLookups {
    load_s: f64,
    took_s: Vec<f64>,
    looks: u64,
    #[serde(flatten)]
    cpu: SaidOfCpu,
}

/// CPU time, to the kernel's ticks.
#[derive(Deserialize)]
struct SaidOfCpu {
    user_s: f64,
    system_s: f64,
}

impl SaidOfCpu {
    fn used(&self) -> Result<Used> {
        let [user, system] = [self.user_s, self.system_s].map(Duration::try_from_secs_f64);
        let (user, system) = (user.context("its CPU time")?, system.context("its CPU time")?);
        Ok(Used { total: user + system, user, system, ..Used::default() })
    }
}

impl Spark {
    /// The installed one, or why there is none.
    pub fn find() -> Result<Spark, String> {
        let python = std::env::var_os(PYTHON_VARIABLE).map_or_else(|| PathBuf::from("python3"), PathBuf::from);
        let mut command = Command::new(&python);
        command
            .args(["-c", "import pyspark, sys; print(pyspark.__version__); print(sys.version)"])
            .stdin(Stdio::null());
        let output = command.output().map_err(|error| format!("{}: {error}", python.display()))?;
        if !output.status.success() {
            return Err(format!("{} has no package pyspark (${PYTHON_VARIABLE} names another)", python.display()));
        }
        let said = String::from_utf8_lossy(&output.stdout).into_owned();
        let (version, python_version) = said.split_once('\n').unwrap_or((&said, ""));
        let says = format!("pyspark {version}, Python {}, {}", python_version.trim(), java());
        let build = Build { says, ..Build::default() };
        Ok(Spark { python, version: version.to_owned(), build })
    }

    /// Ranks a graph's nodes on an RDD, with so many threads, keeping its files in `scratch`.
    ///
    /// # Errors
    /// When Spark fails, or says what cannot be understood.
    pub fn pagerank(
        &self,
        graph: &Graph,
        iterations: usize,
        threads: usize,
        scratch: &Path,
        interrupt: &Interrupt,
    ) -> Result<Ranked> {
        let (nodes, ranks) = (scratch.join("spark-nodes"), scratch.join("spark-ranks"));
        std::fs::write(&nodes, lines(graph)).with_context(|| nodes.display().to_string())?;
        let (iterations, threads) = (iterations.to_string(), threads.to_string());
        let words: [&OsStr; 4] = [nodes.as_ref(), ranks.as_ref(), iterations.as_ref(), threads.as_ref()];
        let said: SaidOfRanks = self.run(PAGERANK, &words, scratch, interrupt)?;
        let ranks = read_ranks(&std::fs::read_to_string(&ranks)?, graph.nodes())?;
        Ok(Ranked { load_s: said.load_s, iterations_s: said.iterations_s, used: said.cpu.used()?, ranks })
    }

    /// Looks for objects of an RDD one at a time for so long, with so many threads: among all, or where they lie by their
    /// keys' hashes.
    ///
    /// # Errors
    /// When Spark fails, finds another object, or says what cannot be understood.
    pub fn lookups(
        &self,
        (records, bytes): (u64, usize),
        by_key: bool,
        lasts: Duration,
        threads: usize,
        scratch: &Path,
        interrupt: &Interrupt,
    ) -> Result<Lookups> {
        let (records, bytes, threads) = (records.to_string(), bytes.to_string(), threads.to_string());
        let (way, seconds) = (if by_key { "by-key" } else { "all" }, lasts.as_secs_f64().to_string());
        let words = [&records, &bytes, way, &seconds, &threads].map(AsRef::as_ref);
        let said: SaidOfLookups = self.run(LOOKUP, &words, scratch, interrupt)?;
        Ok(Lookups { load_s: said.load_s, took_s: said.took_s, looks: said.looks, used: said.cpu.used()? })
    }

    /// Runs a program, and reads the last line that it says.
    fn run<T: DeserializeOwned>(
        &self,
        text: &str,
        words: &[&OsStr],
        scratch: &Path,
        interrupt: &Interrupt,
    ) -> Result<T> {
        let file = |name: &str| scratch.join(format!("spark-{name}"));
        let (program, out, log) = (file("program.py"), file("out"), file("log"));
        std::fs::write(&program, [CONTEXT, text].concat()).with_context(|| program.display().to_string())?;
        let mut command = Command::new(&self.python);
        command.arg(&program).args(words);
        command.env(PYTHON_VARIABLE, &self.python).current_dir(scratch).stdin(Stdio::null());
        // So that all processes of Python agree on where a text lies.
        command.env("PYTHONHASHSEED", "0");
        command.stdout(File::create(&out)?).stderr(File::create(&log)?);
        let mut child = command.spawn().with_context(|| self.python.display().to_string())?;
        let mut guard = Guard::over(child.id())?;
        let ended = loop {
            match child.try_wait()? {
                Some(status) => break Ok(status),
                None => match interrupt.sleep(Duration::from_millis(50)) {
                    Ok(()) => {}
                    Err(error) => {
                        // The Java process that it has started ends with it.
                        child.kill()?;
                        child.wait()?;
                        break Err(error);
                    }
                },
            }
        };
        guard.dismiss();
        if !ended?.success() {
            let said = std::fs::read_to_string(&log).unwrap_or_default();
            bail!("Spark failed: {}", said.lines().rev().find(|line| !line.trim().is_empty()).unwrap_or("no word"));
        }
        let said = std::fs::read_to_string(&out)?;
        serde_json::from_str(said.lines().last().unwrap_or_default()).context("what Spark said")
    }
}

/// What the Java that Spark takes says of itself.
fn java() -> String {
    let program =
        std::env::var_os("JAVA_HOME").map_or_else(|| "java".into(), |home| PathBuf::from(home).join("bin/java"));
    let output = Command::new(program).arg("-version").stdin(Stdio::null()).output();
    // It says so among its errors.
    let said = output.map(|output| String::from_utf8_lossy(&output.stderr).into_owned()).unwrap_or_default();
    said.lines().find(|line| line.contains("version")).unwrap_or("no Java").to_owned()
}

fn lines(graph: &Graph) -> String {
    let mut text = String::new();
    for node in 0..graph.nodes() {
        let targets: Vec<String> = graph.targets(node).iter().map(u32::to_string).collect();
        // Writing into a string cannot fail.
        let _ = writeln!(text, "{node}\t{}", targets.join(" "));
    }
    text
}

fn read_ranks(text: &str, nodes: usize) -> Result<Vec<f64>> {
    let mut ranks = vec![f64::NAN; nodes];
    for line in text.lines() {
        let (node, rank) = line.split_once(' ').with_context(|| format!("'{line}' is no rank"))?;
        let place = node.parse().ok().and_then(|node: usize| ranks.get_mut(node));
        *place.with_context(|| format!("there is no node {node}"))? = rank.parse()?;
    }
    if let Some(node) = ranks.iter().position(|rank| rank.is_nan()) {
        bail!("node {node} has no rank");
    }
    Ok(ranks)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::graphs::ranks;
    use std::io::Write as _;

    #[test]
    fn every_node_must_have_a_rank() {
        assert_eq!(read_ranks("1 0.25\n0 7.5e-1\n", 2).unwrap(), [0.75, 0.25]);
        for bad in ["0 0.5\n", "0 0.5\n1\n", "0 0.5\n2 0.5\n", "0 x\n1 0.5\n"] {
            assert!(read_ranks(bad, 2).is_err(), "{bad}");
        }
    }

    #[test]
    fn spark_ranks_as_the_plain_program_does() {
        let spark = match Spark::find() {
            Ok(spark) => spark,
            Err(why) => {
                writeln!(std::io::stderr(), "skipped: PageRank on Spark is not tested: {why}").expect("stderr");
                return;
            }
        };
        let scratch = std::env::temp_dir().join(format!("tenon-bench-spark-{}", std::process::id()));
        std::fs::create_dir_all(&scratch).expect("a directory");
        let graph = Graph::drawn(100);
        let ranked = spark.pagerank(&graph, 2, 1, &scratch, &Interrupt::default()).expect("it ranks");
        for by_key in [false, true] {
            let lasts = Duration::from_millis(200);
            let looked = spark.lookups((1_000, 50), by_key, lasts, 1, &scratch, &Interrupt::default());
            let looked = looked.expect("it finds them");
            assert!(looked.took_s.len() > 2 && looked.looks == looked.took_s.len() as u64 + 1, "{looked:?}");
            assert!(looked.used.total > Duration::ZERO, "{looked:?}");
        }
        std::fs::remove_dir_all(&scratch).expect("it can go");
        assert_eq!(ranked.iterations_s.len(), 2);
        // Java and Python have worked for longer than this process has waited for its tick.
        assert!(ranked.used.total > Duration::from_millis(10), "{ranked:?}");
        let known = ranks(&graph, 2);
        assert!(ranked.ranks.iter().zip(&known).all(|(rank, known)| (rank - known).abs() < 1e-12));
    }
}
