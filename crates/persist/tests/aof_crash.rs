//! Append-only logs that lose power at every call in turn: what was answered is found again, whole, once, in order.
//! Knows what the records are: `SET k <number>`, from 1.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tenon_journal::files::{Faulty, Files, Memory};
use tenon_journal::log::NoHooks;
use tenon_journal::{Log, Policy, Settings};
use tenon_persist::aof::append_only::RewriteError;
use tenon_persist::aof::directory::LoadTruncated;
use tenon_persist::aof::names::BaseFormat;
use tenon_persist::aof::{AppendOnly, Directory, Names, OpenError, Reader};

/// Far longer than anything takes: who reaches it waits in vain.
const LONG: Duration = Duration::from_secs(60);

fn names() -> Names {
    Names { dir: "data".into(), appenddirname: "appendonlydir".into(), appendfilename: "appendonly.aof".into() }
}

fn settings() -> Settings {
    Settings { policy: Policy::Always, ring_bytes: 64 << 10, ..Settings::default() }
}

fn record(number: u64) -> Vec<u8> {
    let number = number.to_string();
    format!("*3\r\n$3\r\nSET\r\n$1\r\nk\r\n${}\r\n{number}\r\n", number.len()).into_bytes()
}

fn records(numbers: std::ops::RangeInclusive<u64>) -> Vec<u8> {
    numbers.flat_map(record).collect()
}

fn new_files() -> Memory {
    let files = Memory::new();
    files.create_directory(Path::new("data")).expect("it has power");
    files
}

/// Numbers of all records, with a torn tail cut off.
fn load(directory: &Directory) -> Vec<u64> {
    let mut numbers = Vec::new();
    for part in directory.parts().expect("all files are there") {
        let mut reader = Reader::new(directory_files(directory).read(&part.path).expect("it can be read"));
        loop {
            match reader.next() {
                Ok(Some(record)) => {
                    let command = record.commands().next().expect("one");
                    let number = command.args().nth(2).expect("the value");
                    numbers.push(std::str::from_utf8(number).expect("text").parse().expect("a number"));
                }
                Ok(None) => break,
                Err(error) => {
                    let cut = directory.cut_torn_tail(&part, error, LoadTruncated::Cut);
                    cut.unwrap_or_else(|error| panic!("{error}; after {numbers:?}"));
                    break;
                }
            }
        }
    }
    numbers
}

fn directory_files(directory: &Directory) -> Arc<dyn Files> {
    Arc::clone(directory.files())
}

fn open(files: &Memory) -> Result<Directory, OpenError> {
    Directory::open(Arc::new(files.clone()), names())
}

/// Nobody goes on when the power is gone.
struct PowerIsGone;

type Stepped<T> = Result<T, PowerIsGone>;

fn gone<E>(_: E) -> PowerIsGone {
    PowerIsGone
}

/// A log under test, and how many records were appended, and answered.
struct Run {
    appended: u64,
    answered: u64,
}

impl Run {
    fn append(&mut self, log: &Log, count: u64) -> Stepped<()> {
        for _ in 0..count {
            self.appended += 1;
            let position = log.append(&record(self.appended));
            let since = Instant::now();
            while !log.may_answer(position) {
                if log.refuses_writes().is_some() {
                    return Err(PowerIsGone);
                }
                assert!(since.elapsed() < LONG, "{log:?} waits for {position}");
                std::thread::sleep(Duration::from_micros(20));
            }
            self.answered = self.appended;
        }
        Ok(())
    }

    fn start(&mut self, files: &Memory) -> Stepped<AppendOnly> {
        let directory = open(files).map_err(gone)?;
        load(&directory);
        directory.append((BaseFormat::Aof, b""), &settings(), Arc::new(NoHooks)).map_err(gone)
    }

    fn rewrite(&mut self, files: &Memory, aof: &AppendOnly) -> Stepped<()> {
        let mut rewrite = aof.begin_rewrite().map_err(gone)?;
        self.append(aof.log(), 2)?;
        aof.cut(&mut rewrite);
        let base = records(1..=self.appended);
        self.append(aof.log(), 1)?;
        write(files, rewrite.base_path(), &base)?;
        self.append(aof.log(), 1)?;
        aof.finish_rewrite(rewrite, (BaseFormat::Aof, base.len() as u64)).map_err(gone)
    }

    /// All that is done with a log in a life.
    fn life(&mut self, files: &Memory) -> Stepped<()> {
        let aof = self.start(files)?;
        self.append(aof.log(), 2)?;
        self.rewrite(files, &aof)?;
        self.append(aof.log(), 1)?;
        let before_cut = aof.begin_rewrite().map_err(gone)?;
        self.append(aof.log(), 1)?;
        aof.abort_rewrite(before_cut);
        let mut behind_cut = aof.begin_rewrite().map_err(gone)?;
        aof.cut(&mut behind_cut);
        self.append(aof.log(), 1)?;
        aof.abort_rewrite(behind_cut);
        self.append(aof.log(), 1)?;
        self.rewrite(files, &aof)?;
        self.append(aof.log(), 1)?;
        aof.close().map_err(gone)?;
        let aof = self.start(files)?;
        self.append(aof.log(), 1)?;
        aof.close().map_err(gone)
    }
}

fn write(files: &Memory, path: &Path, bytes: &[u8]) -> Stepped<()> {
    let file = files.create(path).map_err(gone)?;
    // Two writes, so that there is half a base, too.
    file.write_all(&bytes[..bytes.len() / 2]).map_err(gone)?;
    file.write_all(&bytes[bytes.len() / 2..]).map_err(gone)?;
    file.sync().map_err(gone)
}

/// A random number below what it is given, from a seed.
fn chance(seed: u64) -> impl FnMut(usize) -> usize {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    move |below| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 33) as usize % below
    }
}

/// Runs a life once with power, then once for each call at which it goes, and looks what crashes leave.
fn check(prepare: impl Fn(&Memory), before: u64, life: impl Fn(&mut Run, &Memory) -> Stepped<()>) {
    let new = || {
        let files = new_files();
        prepare(&files);
        (files, Run { appended: before, answered: before })
    };
    let (files, mut run) = new();
    let first = files.calls();
    assert!(life(&mut run, &files).is_ok(), "with power everything works");
    assert_eq!(run.appended, run.answered);
    let calls = files.calls();
    assert!(calls - first > 20, "there are calls to fail at");
    for call in first..calls + 2 {
        let (files, mut run) = new();
        files.lose_power_at(call);
        // It may end well: another order of the threads' calls can be shorter.
        let _ = life(&mut run, &files);
        for seed in 0..4 {
            let left = files.after_crash(chance(call * 100 + seed));
            let directory = open(&left).unwrap_or_else(|error| panic!("power lost at {call}, seed {seed}: {error}"));
            let numbers = load(&directory);
            let expected: Vec<u64> = (1..=numbers.len() as u64).collect();
            assert_eq!(numbers, expected, "power lost at {call}, seed {seed}");
            let found = numbers.len() as u64;
            assert!(
                found >= run.answered && found <= run.appended,
                "power lost at {call}, seed {seed}: {found} found of {} answered, {} appended",
                run.answered,
                run.appended
            );
            // What is found can be gone on with.
            let mut next = Run { appended: found, answered: found };
            let aof = next.start(&left).unwrap_or_else(|PowerIsGone| panic!("it cannot be gone on with at {call}"));
            assert!(next.append(aof.log(), 1).is_ok());
            // Nothing that was cleaned up was what is written to.
            assert_eq!(load(&open(&left).expect("it is fine")).len() as u64, next.appended, "power lost at {call}");
            assert!(next.rewrite(&left, &aof).is_ok());
            aof.close().unwrap_or_else(|error| panic!("{error}"));
            let numbers = load(&open(&left).expect("it is fine"));
            assert_eq!(numbers.len() as u64, next.appended);
        }
    }
}

#[test]
fn a_log_survives_the_loss_of_power_at_every_call() {
    check(|_| {}, 0, Run::life);
}

#[test]
fn a_file_of_an_older_version_survives_its_move() {
    let prepare = |files: &Memory| files.put(Path::new("data/appendonly.aof"), &records(1..=5));
    check(prepare, 5, Run::life);
}

#[test]
fn a_log_that_is_begun_while_the_server_runs_keeps_what_it_answers() {
    let life = |run: &mut Run, files: &Memory| {
        let aof = open(files).map_err(gone)?.begin(&settings(), Arc::new(NoHooks)).map_err(gone)?;
        run.append(aof.log(), 2)?;
        run.rewrite(files, &aof)?;
        run.append(aof.log(), 1)?;
        aof.close().map_err(gone)
    };
    check(|_| {}, 0, life);
    // Behind an older one, whose end may be torn.
    let older = |torn: &'static [u8]| {
        move |files: &Memory| {
            files.create_directory(&names().directory()).expect("it has power");
            let listed = "file appendonly.aof.1.incr.aof seq 1 type i\n";
            files.put(&names().path("appendonly.aof.manifest"), listed.as_bytes());
            files.put(&names().path("appendonly.aof.1.incr.aof"), &[&records(1..=3), torn].concat());
        }
    };
    check(older(b""), 3, life);
    check(older(b"*3\r\n$3\r\nSE"), 3, life);
}

#[test]
fn a_log_that_ends_before_its_base_leaves_what_was_there() {
    let life = |run: &mut Run, files: &Memory| {
        let before = run.answered;
        let aof = open(files).map_err(gone)?.begin(&settings(), Arc::new(NoHooks)).map_err(gone)?;
        run.append(aof.log(), 2)?;
        // One that was begun for the base, too.
        let base = aof.begin_rewrite().map_err(gone)?;
        run.answered = before;
        let withdrawn = aof.withdraw().map_err(gone)?;
        aof.abort_rewrite(base);
        assert!(withdrawn && matches!(aof.begin_rewrite(), Err(RewriteError::Retired)));
        aof.close().map_err(gone)?;
        run.appended = before;
        assert_eq!(load(&open(files).map_err(gone)?).len() as u64, before);
        let aof = open(files).map_err(gone)?.begin(&settings(), Arc::new(NoHooks)).map_err(gone)?;
        run.append(aof.log(), 2)?;
        run.rewrite(files, &aof)?;
        assert!(!aof.withdraw().map_err(gone)?, "it has its base");
        aof.close().map_err(gone)
    };
    check(|_| {}, 0, life);
    let older = |files: &Memory| {
        files.create_directory(&names().directory()).expect("it has power");
        let listed = "file appendonly.aof.1.incr.aof seq 1 type i\n";
        files.put(&names().path("appendonly.aof.manifest"), listed.as_bytes());
        files.put(&names().path("appendonly.aof.1.incr.aof"), &records(1..=3));
    };
    check(older, 3, life);
}

#[test]
fn a_log_without_a_base_is_withdrawn_with_what_rewrites_have_left_of_it() {
    let files = new_files();
    files.create_directory(&names().directory()).expect("it has power");
    let put = |name: &str, content: &[u8]| files.put(&names().path(name), content);
    assert!(!Directory::withdraw_baseless(&files, &names()).expect("there is nothing"));
    put("appendonly.aof.manifest", b"file appendonly.aof.1.incr.aof seq 1 type i lacks base\n");
    put("appendonly.aof.1.incr.aof", &records(1..=3));
    // A rewrite was about to list it, and another one had its base in place.
    put("appendonly.aof.2.incr.aof", b"");
    put("appendonly.aof.1.base.rdb", b"REDIS");
    assert_eq!(Directory::baseless(&files, &names()), Some(records(1..=3).len() as u64));
    assert!(Directory::withdraw_baseless(&files, &names()).expect("it has power"));
    assert_eq!(Directory::baseless(&files, &names()), None);
    assert!(open(&files).expect("a start finds nothing").is_empty());
}

#[test]
fn a_log_that_cannot_begin_leaves_what_was_there() {
    for plan in
        ["open:enospc@1", "open:enospc@2", "write:enospc@1", "sync:eio@1", "sync-directory:eio@1", "rename:eio@1"]
    {
        let files = new_files();
        let faulty = Faulty::new(files.clone(), plan.parse().expect("a plan"));
        let directory = Directory::open(Arc::new(faulty), names()).expect("there is nothing");
        assert!(directory.begin(&settings(), Arc::new(NoHooks)).is_err(), "{plan}");
        assert!(open(&files).unwrap_or_else(|error| panic!("{plan}: {error}")).is_empty(), "{plan}");
    }
}

#[test]
fn who_has_begun_another_log_has_the_list_for_itself() {
    let files = new_files();
    let mut run = Run { appended: 0, answered: 0 };
    let Ok(old) = run.start(&files) else { panic!("it has power") };
    assert!(run.append(old.log(), 2).is_ok());
    let unfinished = old.begin_rewrite().expect("it can be begun");
    old.retire();
    old.close().expect("it has power");
    let new = open(&files).expect("it is fine").begin(&settings(), Arc::new(NoHooks)).expect("it can be begun");
    assert!(run.append(new.log(), 2).is_ok());
    old.abort_rewrite(unfinished);
    assert!(matches!(old.begin_rewrite(), Err(RewriteError::Retired)));
    let left = open(&files).expect("it is fine");
    assert!(left.lacks_base());
    assert_eq!(load(&left), [1, 2, 3, 4]);
}

#[test]
fn a_log_that_is_begun_for_its_base_alone_is_valid_with_that() {
    let life = |run: &mut Run, files: &Memory| {
        let directory = open(files).map_err(gone)?;
        let (aof, rewrite) = directory.begin_with_rewrite(&settings(), Arc::new(NoHooks)).map_err(gone)?;
        // Three records were there before; nothing of it is promised before the base is.
        let base = records(1..=3);
        run.appended = 3;
        let promised = std::mem::take(&mut run.answered);
        let mut unpromised = Run { appended: 3, answered: 0 };
        let written = unpromised.append(aof.log(), 2).and_then(|()| write(files, rewrite.base_path(), &base));
        run.appended = unpromised.appended;
        run.answered = promised;
        written?;
        aof.finish_rewrite(rewrite, (BaseFormat::Aof, base.len() as u64)).map_err(gone)?;
        run.answered = run.appended;
        run.append(aof.log(), 2)?;
        run.rewrite(files, &aof)?;
        aof.close().map_err(gone)
    };
    check(|_| {}, 0, life);
}

/// A new log in a file system that can be made to fail, and what that writes to.
fn faulty_log() -> (Memory, Faulty<Memory>, AppendOnly) {
    let files = new_files();
    let faulty = Faulty::new(files.clone(), "".parse().expect("a plan"));
    let directory = Directory::open(Arc::new(faulty.clone()), names()).expect("there is nothing");
    let aof = directory.append((BaseFormat::Aof, b""), &settings(), Arc::new(NoHooks)).expect("it can be begun");
    (files, faulty, aof)
}

#[test]
fn a_failed_sync_is_healed_by_a_rewrite() {
    let (files, faulty, aof) = faulty_log();
    let mut run = Run { appended: 0, answered: 0 };
    assert!(run.append(aof.log(), 3).is_ok());
    faulty.set("sync:eio@1".parse().expect("a plan"));
    assert!(run.append(aof.log(), 1).is_err());
    assert!(aof.log().needs_rewrite());
    faulty.set("".parse().expect("a plan"));
    let mut rewrite = aof.begin_rewrite().expect("it can be begun");
    aof.cut(&mut rewrite);
    assert!(write(&files, rewrite.base_path(), &records(1..=4)).is_ok());
    aof.finish_rewrite(rewrite, (BaseFormat::Aof, records(1..=4).len() as u64)).expect("nothing fails any more");
    assert_eq!(aof.log().refuses_writes(), None);
    assert!(run.append(aof.log(), 1).is_ok());
    assert_eq!(load(&open(&files.after_crash(|_| 0)).expect("it is fine")), [1, 2, 3, 4, 5]);
}

#[test]
fn a_rewrite_that_waits_for_a_switch_heals_the_file_behind_it() {
    let (files, faulty, aof) = faulty_log();
    let mut run = Run { appended: 0, answered: 0 };
    // Given up behind its cut, with something to write before that.
    let mut given_up = aof.begin_rewrite().expect("it can be begun");
    faulty.set("write:enospc".parse().expect("a plan"));
    assert!(run.append(aof.log(), 1).is_err());
    aof.cut(&mut given_up);
    aof.abort_rewrite(given_up);
    let mut rewrite = std::thread::scope(|scope| {
        let rewrite = scope.spawn(|| aof.begin_rewrite().expect("it can be begun"));
        // It is to find the switch pending. Should it come later, this shows nothing.
        std::thread::sleep(Duration::from_millis(100));
        faulty.set("".parse().expect("a plan"));
        rewrite.join().expect("it does not panic")
    });
    faulty.set("sync:eio@1".parse().expect("a plan"));
    assert!(run.append(aof.log(), 1).is_err());
    assert!(aof.log().needs_rewrite());
    faulty.set("".parse().expect("a plan"));
    aof.cut(&mut rewrite);
    assert!(write(&files, rewrite.base_path(), &records(1..=2)).is_ok());
    aof.finish_rewrite(rewrite, (BaseFormat::Aof, records(1..=2).len() as u64)).expect("nothing fails any more");
    assert_eq!(aof.log().refuses_writes(), None);
    assert!(run.append(aof.log(), 1).is_ok());
    assert_eq!(load(&open(&files.after_crash(|_| 0)).expect("it is fine")), [1, 2, 3]);
}

#[test]
fn a_base_that_somebody_removes_or_cuts_replaces_nothing() {
    for left in [None, Some(2)] {
        let files = Memory::new();
        let directory = open(&files).expect("it is empty");
        let aof = directory.append((BaseFormat::Aof, b""), &settings(), Arc::new(NoHooks)).expect("it can be made");
        let mut run = Run { appended: 0, answered: 0 };
        assert!(run.append(aof.log(), 3).is_ok());
        let mut rewrite = aof.begin_rewrite().expect("it can be begun");
        aof.cut(&mut rewrite);
        assert!(run.append(aof.log(), 1).is_ok());
        let base = records(1..=3);
        assert!(write(&files, rewrite.base_path(), &base).is_ok());
        match left {
            None => files.remove(rewrite.base_path()).expect("it is there"),
            Some(len) => files.append(rewrite.base_path()).and_then(|file| file.truncate(len)).expect("it is there"),
        }
        let why = aof.finish_rewrite(rewrite, (BaseFormat::Aof, base.len() as u64)).expect_err("it is not the base");
        assert!(why.to_string().starts_with("The new AOF base file is not what was written: "), "{why}");
        assert!(run.append(aof.log(), 1).is_ok());
        assert_eq!(load(&open(&files.after_crash(|n| n - 1)).expect("it is fine")), [1, 2, 3, 4, 5], "{left:?}");
    }
}

#[test]
fn a_rewrite_that_is_given_up_before_the_writer_has_switched_leaves_the_size() {
    for plan in ["sync:slow=500", "write:slow=500"] {
        let (_, faulty, aof) = faulty_log();
        let mut run = Run { appended: 0, answered: 0 };
        assert!(run.append(aof.log(), 3).is_ok());
        let mut rewrite = aof.begin_rewrite().expect("it can be begun");
        faulty.set(plan.parse().expect("a plan"));
        let position = aof.log().append(&record(4));
        // Where the sync is slow the file has it by then.
        while plan.starts_with("sync") && aof.log().written() < position {
            std::thread::sleep(Duration::from_micros(20));
        }
        aof.cut(&mut rewrite);
        aof.abort_rewrite(rewrite);
        assert_eq!(aof.statistics().current_size, records(1..=4).len() as u64, "{plan}");
        faulty.set("".parse().expect("a plan"));
        run.appended = 4;
        assert!(run.append(aof.log(), 1).is_ok());
        assert_eq!(aof.statistics().current_size, records(1..=5).len() as u64, "{plan}");
    }
}

#[test]
fn rewrites_that_fail_leave_everything_as_it_was() {
    // Each plan fails one of a rewrite's steps.
    for plan in [
        "open:enospc@1",
        "open:enospc@2",
        "write:enospc@1",
        "sync:eio@1",
        "sync-directory:eio@1",
        "rename:eio@1",
        "sync-directory:eio@2",
    ] {
        let (files, faulty, aof) = faulty_log();
        let mut run = Run { appended: 0, answered: 0 };
        assert!(run.append(aof.log(), 2).is_ok());
        faulty.set(plan.parse().expect("a plan"));
        assert!(aof.begin_rewrite().is_err(), "{plan}");
        faulty.set("".parse().expect("a plan"));
        assert_eq!((aof.statistics().failures, aof.statistics().last_rewrite_ok), (1, false));
        assert!(run.append(aof.log(), 1).is_ok());

        let mut rewrite = aof.begin_rewrite().expect("it can be begun");
        aof.cut(&mut rewrite);
        assert!(run.append(aof.log(), 1).is_ok());
        assert!(write(&files, rewrite.base_path(), &records(1..=3)).is_ok());
        faulty.set(plan.parse().expect("a plan"));
        let finished = aof.finish_rewrite(rewrite, (BaseFormat::Aof, records(1..=3).len() as u64));
        faulty.set("".parse().expect("a plan"));
        assert!(finished.is_err(), "{plan}");
        assert!(run.append(aof.log(), 1).is_ok());
        assert_eq!(aof.statistics().current_size, records(1..=5).len() as u64, "{plan}");
        assert_eq!(load(&open(&files.after_crash(|_| 0)).expect("it is fine")), [1, 2, 3, 4, 5], "{plan}");
        assert_eq!(load(&open(&files.after_crash(|n| n - 1)).expect("it is fine")), [1, 2, 3, 4, 5], "{plan}");

        assert!(run.rewrite(&files, &aof).is_ok(), "{plan}");
        assert_eq!((aof.statistics().failures, aof.statistics().last_rewrite_ok), (0, true));
        aof.close().expect("nothing fails any more");
        assert_eq!(load(&open(&files).expect("it is fine")).len() as u64, run.appended);
        let names = files.list(&names().directory()).expect("it has power").expect("it is there");
        assert_eq!(names.len(), 3, "a manifest, a base and an increment: {names:?}");
    }
}
