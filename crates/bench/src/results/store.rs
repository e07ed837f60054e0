//! Results on disk: one file for each experiment, a line for each run, so that what was measured survives whatever happens
//! to the bench; earlier results stay until there is one to replace them with. Knows no experiment.

use super::{Coverage, Mark, Plan, Record};
use anyhow::{Context, Result};
use serde::Serialize;
use std::collections::BTreeMap;
use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};

/// One experiment's results.
#[derive(Debug)]
pub struct Store {
    file: File,
    path: PathBuf,
    /// Where the file lies as long as it holds nothing to replace the earlier one with.
    beside: Option<PathBuf>,
    records: Vec<Record>,
    coverage: Coverage,
    /// Whether the earlier results say that some are missing.
    earlier_are_short: bool,
}

const ENDING: &str = "jsonl";

/// Of the file beside the earlier one.
const ENDING_BESIDE: &str = "jsonl.new";

/// Whether earlier results are kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Earlier {
    /// What is there need not be measured again.
    Continue,
    /// All is measured anew.
    Discard,
}

impl Store {
    /// Of the experiment of this name, in this directory.
    pub fn open(directory: &Path, experiment: &str, earlier: Earlier) -> Result<Store> {
        std::fs::create_dir_all(directory).with_context(|| directory.display().to_string())?;
        let path = directory.join(format!("{experiment}.{ENDING}"));
        let goes_on = earlier == Earlier::Continue && path.exists();
        let (records, earlier) = if goes_on { read(&path)? } else { Default::default() };
        // What failed is tried again, and half a line of a bench that was killed is dropped.
        let records: Vec<Record> = records.into_iter().filter(|record| record.failure.is_none()).collect();
        let beside = directory.join(format!("{experiment}.{ENDING_BESIDE}"));
        let file = File::create(&beside).with_context(|| beside.display().to_string())?;
        let (coverage, earlier_are_short) = (Coverage::default(), earlier.shortfall().is_some());
        let mut store = Store { file, path, beside: Some(beside), records: Vec::new(), coverage, earlier_are_short };
        records.into_iter().try_for_each(|record| store.add(record))?;
        Ok(store)
    }

    /// Whether this measurement has been made, with success.
    pub fn has(&self, record: &Record) -> bool {
        self.records.iter().any(|made| made.failure.is_none() && made.repeats(record))
    }

    /// Keeps a measurement. The first one that did not fail takes the earlier results' place, and all later ones are
    /// added to it. One without a figure only says why nothing was measured.
    pub fn push(&mut self, record: Record) -> Result<()> {
        let is_measured = record.failure.is_none() && !record.figures.is_empty();
        let replaces = is_measured || !self.path.exists();
        self.add(record)?;
        self.replace_earlier_if(replaces)
    }

    /// Keeps what is to be measured next.
    pub fn plan(&mut self, plan: Plan) -> Result<()> {
        self.mark(&Mark::Planned(plan))
    }

    /// Keeps that all has been come to.
    pub fn end(&mut self) -> Result<()> {
        self.mark(&Mark::Ended {})?;
        // Nothing was left to measure of what the earlier results say is missing.
        self.replace_earlier_if(self.earlier_are_short && self.coverage.shortfall().is_none())
    }

    fn mark(&mut self, mark: &Mark) -> Result<()> {
        self.coverage.mark(mark);
        self.write(mark)
    }

    fn add(&mut self, record: Record) -> Result<()> {
        self.write(&record)?;
        self.coverage.record(&record);
        self.records.push(record);
        Ok(())
    }

    fn write(&mut self, line: &impl Serialize) -> Result<()> {
        let mut line = serde_json::to_vec(line)?;
        line.push(b'\n');
        self.file.write_all(&line).with_context(|| self.path.display().to_string())
    }

    fn replace_earlier_if(&mut self, replaces: bool) -> Result<()> {
        if let Some(beside) = self.beside.take_if(|_| replaces) {
            std::fs::rename(&beside, &self.path).with_context(|| self.path.display().to_string())?;
        }
        Ok(())
    }

    /// All measurements, in the order in which they were made.
    pub fn records(&self) -> &[Record] {
        &self.records
    }

    /// How much was measured of what was planned.
    pub fn coverage(&self) -> &Coverage {
        &self.coverage
    }

    /// The results of all experiments in a directory.
    pub fn read_all(directory: &Path) -> Result<Vec<Record>> {
        let files = Store::read_files(directory)?;
        Ok(files.into_iter().flat_map(|(_, (records, _))| records).collect())
    }

    /// How much each experiment in a directory has measured of what it had planned.
    pub fn coverages(directory: &Path) -> Result<BTreeMap<String, Coverage>> {
        let files = Store::read_files(directory)?;
        let name = |path: &Path| path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        Ok(files.into_iter().map(|(path, (_, coverage))| (name(&path), coverage)).collect())
    }

    fn read_files(directory: &Path) -> Result<Vec<(PathBuf, Lines)>> {
        let entries = std::fs::read_dir(directory).with_context(|| directory.display().to_string())?;
        let mut paths = Vec::new();
        for entry in entries {
            paths.push(entry.with_context(|| directory.display().to_string())?.path());
        }
        paths.sort();
        paths.retain(|path| path.extension().is_some_and(|ending| ending == ENDING));
        paths.into_iter().map(|path| read(&path).map(|lines| (path, lines))).collect()
    }
}

impl Drop for Store {
    fn drop(&mut self) {
        if let Some(beside) = &self.beside {
            // It holds nothing that anybody will miss.
            let _ = std::fs::remove_file(beside);
        }
    }
}

/// What a file holds.
type Lines = (Vec<Record>, Coverage);

fn read(path: &Path) -> Result<Lines> {
    let text = std::fs::read_to_string(path).with_context(|| path.display().to_string())?;
    let (mut records, mut coverage) = (Vec::new(), Coverage::default());
    for (index, line) in text.lines().enumerate() {
        if let Ok(mark) = serde_json::from_str(line) {
            coverage.mark(&mark);
            continue;
        }
        match serde_json::from_str(line) {
            Ok(record) => {
                coverage.record(&record);
                records.push(record);
            }
            // The last line may have been cut off with the bench.
            Err(_) if index + 1 == text.lines().count() && !text.ends_with('\n') => {}
            Err(error) => return Err(error).with_context(|| format!("{}, line {}", path.display(), index + 1)),
        }
    }
    Ok((records, coverage))
}

#[cfg(test)]
mod tests {
    use super::super::{Build, Case};
    use super::*;

    fn record(round: u64, failure: Option<&str>) -> Record {
        Record {
            experiment: "latency".into(),
            server: "tenon".into(),
            version: "1.0".into(),
            build: Build { sha256: "a0".into(), ..Build::default() },
            said: BTreeMap::new(),
            at: "2026-01-02T03:04:05Z".into(),
            case: Case::new().word("operation", "get"),
            round,
            rounds: 2,
            quick: true,
            setup: BTreeMap::from([("keys".to_owned(), "100".to_owned())]),
            command: String::new(),
            machine: vec!["Machine: a toy".to_owned()],
            figures: BTreeMap::from([("ops_s".to_owned(), 5.0)]),
            series: BTreeMap::new(),
            notes: Vec::new(),
            failure: failure.map(str::to_owned),
        }
    }

    #[test]
    fn an_interrupted_run_is_continued() {
        let directory = std::env::temp_dir().join(format!("tenon-bench-store-{}", std::process::id()));
        let mut store = Store::open(&directory, "latency", Earlier::Discard).unwrap();
        store.push(record(0, None)).unwrap();
        store.push(record(1, Some("it broke"))).unwrap();
        assert!(store.has(&record(0, None)) && !store.has(&record(1, None)));
        // Another size, another machine, another version, another build: another measurement. Another time is none.
        let mut others = [record(0, None), record(0, None), record(0, None), record(0, None)];
        others[0].setup.insert("keys".to_owned(), "200".to_owned());
        others[1].machine = vec!["Machine: another".to_owned()];
        others[2].version = "1.1".to_owned();
        others[3].build.sha256 = "b1".to_owned();
        assert!(others.iter().all(|other| !store.has(other)));
        assert!(store.has(&Record { at: "2026-02-03T04:05:06Z".to_owned(), ..record(0, None) }));
        drop(store);
        let path = directory.join("latency.jsonl");
        let mut text = std::fs::read_to_string(&path).unwrap();
        text += "{\"experiment\":\"lat";
        std::fs::write(&path, text).unwrap();

        let mut store = Store::open(&directory, "latency", Earlier::Continue).unwrap();
        assert_eq!(store.records(), [record(0, None)]);
        store.push(record(1, None)).unwrap();
        assert_eq!(Store::read_all(&directory).unwrap(), [record(0, None), record(1, None)]);
        assert!(Store::open(&directory, "latency", Earlier::Discard).unwrap().records().is_empty());
        std::fs::write(&path, "nonsense\n{}\n").unwrap();
        assert!(format!("{:#}", Store::read_all(&directory).unwrap_err()).contains("line 1"));
        std::fs::remove_dir_all(&directory).unwrap();
    }

    #[test]
    fn what_is_missing_is_told() {
        let directory = std::env::temp_dir().join(format!("tenon-bench-missing-{}", std::process::id()));
        let open = |earlier| Store::open(&directory, "latency", earlier).unwrap();
        let plan = |there| Plan { measurements: 3, there, servers: vec!["tenon".into(), "memcached".into()] };
        let missing = || Store::coverages(&directory).unwrap()["latency"].shortfall();
        let mut store = open(Earlier::Discard);
        store.push(record(0, None)).unwrap();
        assert_eq!(missing(), None, "nothing is known of what was planned");
        drop(store);

        let early = ", then the run was ended early, and more may have been to come";
        let mut store = open(Earlier::Discard);
        store.plan(plan(0)).unwrap();
        store.push(record(0, None)).unwrap();
        store.push(record(1, Some("it broke"))).unwrap();
        let told = format!("1 of 3 measurements were made (with tenon, memcached){early}");
        assert_eq!((store.coverage().shortfall(), missing()), (Some(told.clone()), Some(told)));
        drop(store);

        let mut store = open(Earlier::Continue);
        store.plan(plan(1)).unwrap();
        store.push(record(1, None)).unwrap();
        store.end().unwrap();
        assert_eq!(missing().as_deref(), Some("2 of 3 measurements were made (with tenon, memcached)"));
        drop(store);

        // It was ended between its last measurement and its end.
        let mut store = open(Earlier::Continue);
        store.plan(plan(2)).unwrap();
        store.push(record(2, None)).unwrap();
        drop(store);
        assert!(missing().is_some_and(|told| told.starts_with("3 of 3 ") && told.ends_with(early)));
        let mut store = open(Earlier::Continue);
        store.plan(plan(3)).unwrap();
        store.end().unwrap();
        drop(store);
        assert_eq!((missing(), Store::read_all(&directory).unwrap().len()), (None, 3));
        std::fs::remove_dir_all(&directory).unwrap();
    }

    #[test]
    fn earlier_results_stay_until_there_is_one_to_replace_them_with() {
        let directory = std::env::temp_dir().join(format!("tenon-bench-earlier-{}", std::process::id()));
        let open = |earlier| Store::open(&directory, "latency", earlier).unwrap();
        let files = || std::fs::read_dir(&directory).unwrap().count();
        // Where nothing was, a failure is something.
        let mut store = open(Earlier::Discard);
        store.push(record(0, Some("it broke"))).unwrap();
        assert_eq!(Store::read_all(&directory).unwrap(), [record(0, Some("it broke"))]);
        store.push(record(1, None)).unwrap();
        let there = Store::read_all(&directory).unwrap();
        assert_eq!((there.len(), files()), (2, 1));
        drop(store);

        for earlier in [Earlier::Discard, Earlier::Continue] {
            let mut store = open(earlier);
            assert_eq!(Store::read_all(&directory).unwrap(), there, "nothing was measured yet");
            store.push(record(0, Some("it broke again"))).unwrap();
            store.push(Record { figures: BTreeMap::new(), ..record(7, None) }).unwrap();
            drop(store);
            assert_eq!((Store::read_all(&directory).unwrap(), files()), (there.clone(), 1), "nor was it at the end");
        }
        let mut store = open(Earlier::Discard);
        store.push(record(0, Some("it broke again"))).unwrap();
        store.push(record(3, None)).unwrap();
        store.push(record(4, None)).unwrap();
        let new = [record(0, Some("it broke again")), record(3, None), record(4, None)];
        assert_eq!((Store::read_all(&directory).unwrap(), files()), (new.to_vec(), 1));
        drop(store);
        assert_eq!(Store::read_all(&directory).unwrap(), new);
        std::fs::remove_dir_all(&directory).unwrap();
    }
}
