//! Plays a folder of transcripts and reports, or rewrites them when asked to bless. Knows no protocol.

use super::escape::Captures;
use super::play::{Failure, Mode, play};
use super::script::{OracleRule, Script};
use crate::patience::PATIENCE;
use crate::server::Folder;
use crate::target::{Demand, NotReady, Setting, Side, Target};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// What playing a folder has given.
#[derive(Debug, Default)]
pub struct Report {
    /// How the target calls itself.
    pub target: String,
    /// Files played to their end or to their failures.
    pub files: usize,
    /// Steps played.
    pub steps: usize,
    /// Files left out, counted by reason.
    pub skipped: BTreeMap<String, usize>,
    /// One text for each file that failed.
    pub failures: Vec<String>,
    /// Files rewritten.
    pub blessed: Vec<PathBuf>,
}

impl Report {
    /// One line: what was played, what was left out and why.
    pub fn summary(&self) -> String {
        let mut line = format!("transcripts against {}: {} files, {} steps", self.target, self.files, self.steps);
        if !self.failures.is_empty() {
            let _ = write!(line, ", {} files failed", self.failures.len());
        }
        if !self.blessed.is_empty() {
            let _ = write!(line, ", {} files rewritten", self.blessed.len());
        }
        for (reason, count) in &self.skipped {
            let _ = write!(line, "; skipped {count}: {reason}");
        }
        line
    }
}

/// The workspace's own transcripts.
pub fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/transcripts")
}

/// Plays every transcript under `folder` whose path contains `filter`, and says on standard error what was played
/// and what was skipped. Without a filter, the variable TENON_FILTER is one.
///
/// With TENON_BLESS=oracle or TENON_BLESS=tenon, files are rewritten with what a target of that side answers. With
/// TENON_REQUIRE_ORACLES=1 an oracle that is not installed is a failure.
///
/// # Panics
/// With a report, when any file fails.
pub fn check(target: &mut dyn Target, folder: &Path, filter: Option<&str>) {
    let from_environment = std::env::var("TENON_FILTER").ok();
    let report = run(target, folder, filter.or(from_environment.as_deref()));
    // Written past the test harness, which would keep the line of a test that succeeds to itself.
    let _ = writeln!(std::io::stderr().lock(), "{}", report.summary());
    assert!(report.failures.is_empty(), "\n{}\n{}", report.failures.join("\n"), report.summary());
}

/// As [`check`], and hands the report back instead of panicking.
///
/// # Panics
/// When TENON_BLESS has a value that means nothing.
pub fn run(target: &mut dyn Target, folder: &Path, filter: Option<&str>) -> Report {
    let mode = match (std::env::var("TENON_BLESS").as_deref(), target.side()) {
        (Ok("oracle"), Side::Oracle) | (Ok("tenon"), Side::Tenon) => Mode::Bless,
        (Ok("oracle" | "tenon"), _) | (Err(_), _) => Mode::Compare,
        (Ok(other), _) => panic!("TENON_BLESS is oracle or tenon, not '{other}'"),
    };
    run_in_mode(target, folder, filter, mode, PATIENCE)
}

/// As [`run`], with the mode given instead of read from the environment, and how long each reply is waited for.
pub fn run_in_mode(
    target: &mut dyn Target,
    folder: &Path,
    filter: Option<&str>,
    mode: Mode,
    patience: Duration,
) -> Report {
    let mut report = Report { target: target.name(), ..Report::default() };
    let mut paths = Vec::new();
    if let Err(error) = find_transcripts(folder, &mut paths) {
        report.failures.push(error);
    }
    paths.retain(|path| filter.is_none_or(|filter| path.to_string_lossy().contains(filter)));
    paths.sort();
    if paths.is_empty() {
        report.failures.push(format!("no transcript under {} fits the filter", folder.display()));
    }
    for path in paths {
        if let Err(failure) = run_file(&path, target, mode, patience, &mut report) {
            report.failures.push(failure);
        }
    }
    report
}

fn find_transcripts(folder: &Path, paths: &mut Vec<PathBuf>) -> Result<(), String> {
    let readable = |error: std::io::Error| format!("{}: {error}", folder.display());
    for entry in fs::read_dir(folder).map_err(readable)? {
        let path = entry.map_err(readable)?.path();
        if path.is_dir() {
            find_transcripts(&path, paths)?;
        } else if path.extension().is_some_and(|extension| extension == "txt") {
            paths.push(path);
        }
    }
    Ok(())
}

fn run_file(
    path: &Path,
    target: &mut dyn Target,
    mode: Mode,
    patience: Duration,
    report: &mut Report,
) -> Result<(), String> {
    let text = fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))?;
    let script = Script::parse(path, &text)?;
    if target.side() == Side::Oracle && is_for_another(&script, target) {
        return Ok(());
    }
    if target.side() == Side::Oracle
        && let Some(reason) = wrong_oracle(&script, target)
    {
        *report.skipped.entry(reason).or_default() += 1;
        return Ok(());
    }
    let unwritten = |what: String| format!("{}: {what}", path.display());
    let (settings, _files) = with_files(&script).map_err(unwritten)?;
    let demand = Demand { dialect: script.dialect, settings: &settings, fresh: script.fresh };
    match target.prepare(&demand) {
        Ok(()) => {}
        Err(NotReady::Skip(reason)) if target.side() == Side::Oracle && !oracles_are_required() => {
            *report.skipped.entry(reason).or_default() += 1;
            return Ok(());
        }
        Err(NotReady::Skip(reason) | NotReady::Fail(reason)) => return Err(format!("{}: {reason}", path.display())),
    }
    let outcome = play(&script, target, mode, patience);
    report.files += 1;
    report.steps += outcome.steps;
    if outcome.replies.iter().any(Option::is_some) {
        let text = script.with_replies(&outcome.replies);
        fs::write(path, text).map_err(|error| format!("{}: {error}", path.display()))?;
        report.blessed.push(path.to_owned());
    }
    if outcome.failures.is_empty() { Ok(()) } else { Err(describe(path, &outcome.failures)) }
}

/// Writes the files that a script comes with; gives its settings with their paths, and what holds them.
fn with_files(script: &Script) -> Result<(Vec<Setting>, Option<Folder>), String> {
    let mut settings = script.settings.clone();
    if script.files.is_empty() {
        return Ok((settings, None));
    }
    let folder = Folder::new().map_err(|error| error.to_string())?;
    for (name, text) in &script.files {
        let path = folder.path.join(name);
        fs::write(&path, text.fill(&Captures::new())?).map_err(|error| format!("{name}: {error}"))?;
        for setting in settings.iter_mut().filter(|setting| setting.value == *name) {
            setting.value = path.display().to_string();
        }
    }
    Ok((settings, Some(folder)))
}

/// Whether another original server than this one judges the file.
fn is_for_another(script: &Script, target: &dyn Target) -> bool {
    let judge = match script.oracle {
        OracleRule::AtLeast(product, _) => product,
        OracleRule::Any | OracleRule::None(_) => script.dialect.product(),
    };
    judge != target.product(script.dialect)
}

/// Why the installed oracle can't judge this file, if so.
fn wrong_oracle(script: &Script, target: &dyn Target) -> Option<String> {
    match &script.oracle {
        OracleRule::Any => None,
        OracleRule::None(reason) => Some(format!("no oracle: {reason}")),
        OracleRule::AtLeast(product, needed) => {
            let installed = target.version(script.dialect)?;
            let name = product.name();
            (installed < *needed).then(|| format!("needs {name} {needed}, installed is {installed}"))
        }
    }
}

fn oracles_are_required() -> bool {
    std::env::var("TENON_REQUIRE_ORACLES").is_ok_and(|value| value == "1")
}

fn describe(path: &Path, failures: &[Failure]) -> String {
    let mut text = String::new();
    for failure in failures {
        let _ = writeln!(text, "{}:{}: {}", path.display(), failure.line, failure.title);
        let (expected, came) = (&failure.expected, &failure.came);
        let same = |pair: (&String, &String)| pair.0 == pair.1;
        let head = expected.iter().zip(came).take_while(|pair| same(*pair)).count();
        let tail_max = expected.len().min(came.len()) - head;
        let tail = expected.iter().rev().zip(came.iter().rev()).take(tail_max).take_while(|pair| same(*pair)).count();
        let mut list = |mark: &str, lines: &[String]| {
            for line in lines {
                let _ = writeln!(text, "    {mark} {line}");
            }
        };
        list(" ", &expected[..head]);
        list("- expected:", &expected[head..expected.len() - tail]);
        list("+ came:    ", &came[head..came.len() - tail]);
        list(" ", &expected[expected.len() - tail..]);
    }
    text
}
