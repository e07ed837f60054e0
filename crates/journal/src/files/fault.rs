//! A file system that fails as it is told to: for crash tests and for DEBUG. Knows nothing of what is written.
//!
//! It is told in words such as `write:enospc@100-120 sync:slow=5`: what is done, what goes wrong with it, and with
//! which of the calls, counted from 1 (all of them if nothing is said; `@7` is one call, `@7-` all from there on).
//!
//! | what goes wrong | with what | |
//! | --- | --- | --- |
//! | `enospc`, `eio`, `edquot`, `erofs` | any | it fails with this error |
//! | `short` | `write` | half of the bytes are written |
//! | `torn` | `write` | half of the bytes are written, and it fails with an I/O error |
//! | `abort` | any | the process ends, a write after half of its bytes |
//! | `slow=MS` | any | it takes so many milliseconds longer |

use super::{File, Files, Hold, Kept, Want};
use rustix::io::Errno;
use std::ffi::OsString;
use std::io::{self, IoSlice, Read};
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// What can go wrong, by what is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Operation {
    Open,
    Write,
    Room,
    Sync,
    Truncate,
    Rename,
    Remove,
    SyncDirectory,
}

const OPERATIONS: [(&str, Operation); 8] = [
    ("open", Operation::Open),
    ("write", Operation::Write),
    ("room", Operation::Room),
    ("sync", Operation::Sync),
    ("truncate", Operation::Truncate),
    ("rename", Operation::Rename),
    ("remove", Operation::Remove),
    ("sync-directory", Operation::SyncDirectory),
];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Effect {
    Fail(Errno),
    Short,
    Torn,
    Abort,
    Slow(Duration),
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Rule {
    operation: Operation,
    effect: Effect,
    first: u64,
    last: u64,
}

/// What is to go wrong, and when.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Plan {
    rules: Vec<Rule>,
}

impl std::str::FromStr for Plan {
    type Err = String;

    fn from_str(text: &str) -> Result<Plan, String> {
        let rules = text.split_whitespace().map(|word| rule(word).ok_or(format!("no fault: '{word}'")));
        Ok(Plan { rules: rules.collect::<Result<_, String>>()? })
    }
}

fn rule(word: &str) -> Option<Rule> {
    let (operation, rest) = word.split_once(':')?;
    let operation = OPERATIONS.iter().find(|(name, _)| *name == operation)?.1;
    let (effect, calls) = rest.split_once('@').map_or((rest, None), |(effect, calls)| (effect, Some(calls)));
    let is_write = operation == Operation::Write;
    let effect = match effect {
        "enospc" => Effect::Fail(Errno::NOSPC),
        "eio" => Effect::Fail(Errno::IO),
        "edquot" => Effect::Fail(Errno::DQUOT),
        "erofs" => Effect::Fail(Errno::ROFS),
        "short" if is_write => Effect::Short,
        "torn" if is_write => Effect::Torn,
        "abort" => Effect::Abort,
        slow => Effect::Slow(Duration::from_millis(slow.strip_prefix("slow=")?.parse().ok()?)),
    };
    let (first, last) = match calls {
        None => (1, u64::MAX),
        Some(calls) => match calls.split_once('-') {
            None => (calls.parse().ok()?, calls.parse().ok()?),
            Some((first, "")) => (first.parse().ok()?, u64::MAX),
            Some((first, last)) => (first.parse().ok()?, last.parse().ok()?),
        },
    };
    Some(Rule { operation, effect, first, last })
}

#[derive(Debug, Default)]
struct State {
    plan: Plan,
    /// Calls of each operation since the plan was set.
    calls: [u64; OPERATIONS.len()],
}

/// Another file system, with a plan of failures before it; clones share plan and counts.
#[derive(Clone, Debug)]
pub struct Faulty<F> {
    inner: F,
    state: Arc<Mutex<State>>,
}

impl<F> Faulty<F> {
    /// Fails as the plan says.
    pub fn new(inner: F, plan: Plan) -> Faulty<F> {
        Faulty { inner, state: Arc::new(Mutex::new(State { plan, ..State::default() })) }
    }

    /// Changes the plan, and counts calls anew.
    pub fn set(&self, plan: Plan) {
        *self.state.lock().unwrap_or_else(std::sync::PoisonError::into_inner) = State { plan, ..State::default() };
    }
}

impl State {
    /// Counts a call, and tells what is to happen to it.
    fn effects(&mut self, operation: Operation) -> Vec<Effect> {
        let calls = &mut self.calls[operation as usize];
        *calls += 1;
        let rules = self.plan.rules.iter().filter(|rule| rule.operation == operation);
        rules.filter(|rule| (rule.first..=rule.last).contains(calls)).map(|rule| rule.effect).collect()
    }
}

fn effects(state: &Mutex<State>, operation: Operation) -> Vec<Effect> {
    state.lock().unwrap_or_else(std::sync::PoisonError::into_inner).effects(operation)
}

/// Lets happen what is to happen before the call.
fn before(state: &Mutex<State>, operation: Operation) -> io::Result<()> {
    for effect in effects(state, operation) {
        match effect {
            Effect::Slow(time) => std::thread::sleep(time),
            Effect::Fail(errno) => return Err(errno.into()),
            Effect::Abort => std::process::abort(),
            Effect::Short | Effect::Torn => {}
        }
    }
    Ok(())
}

struct FaultyFile {
    inner: Arc<dyn File>,
    state: Arc<Mutex<State>>,
}

impl File for FaultyFile {
    fn write(&self, bytes: &[IoSlice<'_>]) -> io::Result<usize> {
        let half = || {
            let all: Vec<u8> = bytes.iter().flat_map(|slice| slice.iter().copied()).collect();
            self.inner.write(&[IoSlice::new(&all[..all.len() / 2])])
        };
        for effect in effects(&self.state, Operation::Write) {
            match effect {
                Effect::Slow(time) => std::thread::sleep(time),
                Effect::Fail(errno) => return Err(errno.into()),
                Effect::Short if bytes.iter().map(|slice| slice.len()).sum::<usize>() > 1 => return half(),
                Effect::Short => {}
                Effect::Torn => return half().and(Err(Errno::IO.into())),
                Effect::Abort => {
                    // Nobody is left to hear of an error.
                    let _ = half();
                    std::process::abort()
                }
            }
        }
        self.inner.write(bytes)
    }

    fn sync(&self) -> io::Result<()> {
        before(&self.state, Operation::Sync)?;
        self.inner.sync()
    }

    fn forget(&self, len: u64) {
        self.inner.forget(len);
    }

    fn keep_room(&self, from: u64, len: u64) -> io::Result<()> {
        before(&self.state, Operation::Room)?;
        self.inner.keep_room(from, len)
    }

    fn truncate(&self, len: u64) -> io::Result<()> {
        before(&self.state, Operation::Truncate)?;
        self.inner.truncate(len)
    }

    fn size(&self) -> io::Result<u64> {
        self.inner.size()
    }

    fn identity(&self) -> Option<[u64; 2]> {
        self.inner.identity()
    }
}

impl<F> Faulty<F> {
    fn file(&self, opened: io::Result<Arc<dyn File>>) -> io::Result<Arc<dyn File>> {
        Ok(Arc::new(FaultyFile { inner: opened?, state: Arc::clone(&self.state) }))
    }
}

impl<F: Files> Files for Faulty<F> {
    fn create(&self, path: &Path) -> io::Result<Arc<dyn File>> {
        before(&self.state, Operation::Open)?;
        self.file(self.inner.create(path))
    }

    fn append(&self, path: &Path) -> io::Result<Arc<dyn File>> {
        before(&self.state, Operation::Open)?;
        self.file(self.inner.append(path))
    }

    fn read(&self, path: &Path) -> io::Result<Box<dyn Read + Send>> {
        self.inner.read(path)
    }

    fn len(&self, path: &Path) -> io::Result<Option<u64>> {
        self.inner.len(path)
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        before(&self.state, Operation::Rename)?;
        self.inner.rename(from, to)
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        before(&self.state, Operation::Remove)?;
        self.inner.remove(path)
    }

    fn create_directory(&self, path: &Path) -> io::Result<()> {
        before(&self.state, Operation::Open)?;
        self.inner.create_directory(path)
    }

    fn list(&self, path: &Path) -> io::Result<Option<Vec<OsString>>> {
        self.inner.list(path)
    }

    fn sync_directory(&self, path: &Path) -> io::Result<()> {
        before(&self.state, Operation::SyncDirectory)?;
        self.inner.sync_directory(path)
    }

    fn hold_directory(&self, path: &Path) -> io::Result<Option<Hold>> {
        self.inner.hold_directory(path)
    }

    fn kept_memory(&self, directory: &Path, len: usize, want: Want) -> io::Result<Option<Kept>> {
        self.inner.kept_memory(directory, len, want)
    }

    fn identity(&self, path: &Path) -> io::Result<Option<[u64; 2]>> {
        self.inner.identity(path)
    }

    fn read_end(&self, path: &Path, len: usize) -> io::Result<Vec<u8>> {
        self.inner.read_end(path, len)
    }
}

#[cfg(test)]
mod tests {
    use super::super::Memory;
    use super::*;

    fn plan(text: &str) -> Plan {
        text.parse().expect("it is a plan")
    }

    #[test]
    fn plans_are_read() {
        let rule = |operation, effect, first, last| Rule { operation, effect, first, last };
        let rules = [
            rule(Operation::Write, Effect::Fail(Errno::NOSPC), 100, 120),
            rule(Operation::Sync, Effect::Slow(Duration::from_millis(5)), 1, u64::MAX),
            rule(Operation::SyncDirectory, Effect::Abort, 3, u64::MAX),
        ];
        assert_eq!(plan("write:enospc@100-120 sync:slow=5\n sync-directory:abort@3-").rules, rules);
        for wrong in ["write", "write:", "sync:short", "fly:eio", "write:eio@", "write:eio@x-2", "write:slow"] {
            assert_eq!(wrong.parse::<Plan>(), Err(format!("no fault: '{wrong}'")));
        }
    }

    #[test]
    fn calls_fail_as_planned() {
        let files = Faulty::new(Memory::new(), plan("write:short@1 write:enospc@2 write:torn@4 sync:eio@2-"));
        let path = Path::new("f");
        let file = files.create(path).expect("nothing is planned");
        let write = |bytes: &[u8]| file.write(&[IoSlice::new(bytes)]).map_err(|error| error.raw_os_error());
        assert_eq!(write(b"abcd"), Ok(2));
        assert_eq!(write(b"cd"), Err(Some(Errno::NOSPC.raw_os_error())));
        assert_eq!(write(b"cd"), Ok(2));
        assert_eq!(write(b"efgh"), Err(Some(Errno::IO.raw_os_error())));
        assert_eq!(files.inner.content(path).as_deref(), Some(&b"abcdef"[..]));
        assert!(file.sync().is_ok() && file.sync().is_err() && file.sync().is_err());
        files.set(Plan::default());
        assert!(file.sync().is_ok());
    }
}
